"""Boards of what moves, and the chain's vital signs."""
