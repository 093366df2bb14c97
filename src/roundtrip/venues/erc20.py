"""Selectors of ERC-20, which every plan speaks."""

APPROVE = "0x095ea7b3"
BALANCE_OF = "0x70a08231"
TRANSFER = "0xa9059cbb"
TRANSFER_FROM = "0x23b872dd"
