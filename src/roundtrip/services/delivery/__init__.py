"""Channels, deliveries and their tests."""
