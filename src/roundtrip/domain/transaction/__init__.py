"""Reading a transaction: what moved, what was traded."""
