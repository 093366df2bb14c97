"""Channels and deliveries."""
