"""Types, errors, events, policy: what every other room uses."""
