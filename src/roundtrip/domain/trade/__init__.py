"""Judging simulated trades."""
