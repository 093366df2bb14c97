"""What a wallet holds, and what it would sell for."""
