"""Permit2: a wallet approves it at the token once, and Permit2 grants routers allowances that expire."""

APPROVE = "0x87517c45"
"""approve(address,address,uint160,uint48): token, spender, amount, end in seconds."""
ALLOWANCE = "0x927da105"
"""allowance(address,address,address): owner, token, spender."""
