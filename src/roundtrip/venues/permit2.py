"""Permit2: a token allows it once, and it lets routers take what was allowed, up to a time."""

APPROVE = "0x87517c45"
ALLOWANCE = "0x927da105"
