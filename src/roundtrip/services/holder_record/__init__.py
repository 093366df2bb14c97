"""What is known of who holds a token: its book, the balances it reports, its wallets' origins."""
