"""Marks and flags."""
