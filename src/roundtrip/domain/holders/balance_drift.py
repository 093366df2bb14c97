"""Whether a token's transfers add up to the balances that the token reports. Pure."""

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
