"""Accounts, credits and counted calls."""
