"""Accounts, keys, credits, sign-in."""
