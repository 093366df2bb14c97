"""Verdicts of many tokens in one request, and of one token over time."""
