"""Whether what a token's transfers add up to is what the token tells. Pure."""

_NOISE = 10**9
"""Less than this part of the supply is rounding: tokens that keep shares are off by a few base units."""
_OF_SUPPLY = 10_000
_OF_BALANCE = 100


def has_drifted(by_logs_raw: int, told_raw: int, supply_raw: int) -> bool:
    """Whether the two differ by what matters: a hundredth of a percent of the supply, or a hundredth of the
    balance itself. A balance below zero does by anything that is no rounding."""
    off = abs(told_raw - by_logs_raw)
    if off * _NOISE <= supply_raw:
        return False
    return (
        by_logs_raw < 0 or off * _OF_SUPPLY >= supply_raw or off * _OF_BALANCE >= max(told_raw, by_logs_raw)
    )
