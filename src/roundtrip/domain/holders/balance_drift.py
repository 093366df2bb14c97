"""Whether a token's transfers add up to the balances that the token reports. Pure."""

from collections.abc import Mapping

from roundtrip.domain.base.types import BURN_ADDRESSES, Address

_NOISE = 10**9
"""A difference below one part in this many of the supply is rounding: tokens that track shares are off by a
few base units."""
_OF_SUPPLY = 10_000
_OF_BALANCE = 100


def has_drifted(by_logs_raw: int, reported_raw: int, supply_raw: int) -> bool:
    """Whether the two balances differ materially: by a hundredth of a percent of the supply, or by a
    hundredth of the balance itself. A balance below zero has drifted by anything beyond rounding."""
    difference_raw = abs(reported_raw - by_logs_raw)
    if difference_raw * _NOISE <= supply_raw:
        return False
    return (
        by_logs_raw < 0
        or difference_raw * _OF_SUPPLY >= supply_raw
        or difference_raw * _OF_BALANCE >= max(reported_raw, by_logs_raw)
    )


def sum_balances(balances: Mapping[Address, int]) -> int:
    """What the addresses have together. Burn addresses are left out: some tokens deduct what lies there from
    their supply."""
    return sum(max(0, raw) for address, raw in balances.items() if address not in BURN_ADDRESSES)


def exceeds_supply(balances: Mapping[Address, int], supply_raw: int) -> bool:
    """Whether reported balances, each of another address, add up to more than the reported supply, by a
    hundredth of a percent of it or more: there are tokens that the supply does not count."""
    excess_raw = sum_balances(balances) - supply_raw
    return 0 < supply_raw <= excess_raw * _OF_SUPPLY
