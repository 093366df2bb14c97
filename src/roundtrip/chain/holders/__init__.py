"""Balances, origins and simulated sells of holders."""
