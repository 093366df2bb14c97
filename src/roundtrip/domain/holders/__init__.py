"""Folding transfers into holders, ties and groups."""
