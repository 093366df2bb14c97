"""Cards of a token's newest check, to be shared: what they say, and how they are drawn."""
