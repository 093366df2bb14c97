"""What wallets traded, and their links."""
