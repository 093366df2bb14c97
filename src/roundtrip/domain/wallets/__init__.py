"""Links between wallets."""
