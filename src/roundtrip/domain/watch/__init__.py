"""Rules, alerts, follows, channels."""
