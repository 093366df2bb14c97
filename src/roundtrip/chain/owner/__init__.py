"""Simulates hostile calls of a token's owner."""
