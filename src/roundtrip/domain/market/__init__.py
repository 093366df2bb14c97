"""Moves, prices, profit, winners."""
