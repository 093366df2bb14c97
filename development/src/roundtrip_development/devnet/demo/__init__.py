"""Activity on the running demo chain. The built chain does not depend on it."""
