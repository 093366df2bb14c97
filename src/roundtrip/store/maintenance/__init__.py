"""Backup, restore, reset."""
