"""Writes a trade, rehearses it on every venue, and runs its final form with the sell after it."""
