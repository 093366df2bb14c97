"""What an address or a transaction is, and what it did."""
