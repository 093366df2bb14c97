"""Positions in pools, and unlocks, in the database."""
