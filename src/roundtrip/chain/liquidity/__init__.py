"""Reads of positions and their holders, and simulated withdrawals."""
