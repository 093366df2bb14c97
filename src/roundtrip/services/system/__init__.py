"""Health and status."""
