"""What happens on the demo's chain once it runs. The built chain does not depend on it."""
