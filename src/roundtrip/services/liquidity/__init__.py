"""Who can withdraw a token's liquidity."""
