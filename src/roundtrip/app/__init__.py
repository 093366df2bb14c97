"""Builds the service from settings, and runs its processes."""
