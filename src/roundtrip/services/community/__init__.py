"""Users' marks on wallets and flags on tokens."""
