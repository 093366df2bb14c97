"""Verdicts and what became of them."""
