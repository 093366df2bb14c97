"""Marks on wallets and flags on tokens, by users."""
