"""Permit2: a wallet approves it at the token once, and Permit2 grants routers allowances that expire."""

APPROVE = "0x87517c45"
ALLOWANCE = "0x927da105"
