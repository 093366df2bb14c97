"""Paid calls: how many a payment buys."""

from dataclasses import dataclass

from roundtrip.domain.base.types import Address, TxHash

USDG_UNITS = 10**6
"""Base units of one usdg."""
MAX_CREDITS = 2**53 - 1
"""Of one account: the largest whole number that every JSON parser reads exactly."""


@dataclass(frozen=True, slots=True)
class Payments:
    """Where calls are paid for, and their price. ``calls_per_usdg``: for one whole usdg."""

    pay_to: Address
    calls_per_usdg: int


@dataclass(frozen=True, slots=True)
class CreditPayment:
    """A wallet's payment in one transaction. ``amount_raw``: base units of usdg; ``block_hash``: 0x and 64
    lower-case hex digits."""

    tx_hash: TxHash
    amount_raw: int
    block_number: int
    block_hash: str


def calls_for(amount_raw: int, calls_per_usdg: int) -> int:
    """Whole calls that ``amount_raw`` base units of usdg buy, rounded down."""
    return amount_raw * calls_per_usdg // USDG_UNITS
