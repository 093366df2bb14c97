"""Channels, deliveries and test messages."""
