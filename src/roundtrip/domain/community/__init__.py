"""Marks and flags by users."""
