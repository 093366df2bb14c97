"""Who holds a token's liquidity, and what is left of a trade when it leaves."""
