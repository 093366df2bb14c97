"""Simulated and prepared trades."""
