"""How amounts are spread over wallets: the largest, and how evenly. Integers only."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from heapq import heappush, heappushpop
from itertools import accumulate

from roundtrip.domain.base.types import BPS, Address


def largest(
    held: Iterable[tuple[Address, int]], most: int, skipped: Collection[Address]
) -> list[tuple[Address, int]]:
    """The largest amounts above zero, the largest first; of equals the lower address."""
    kept: list[tuple[int, int, Address]] = []
    least = 1
    for wallet, raw in held if most > 0 else ():
        # Nearly everybody ends here, of half a million.
        if raw < least or wallet in skipped:
            continue
        one = raw, -int(wallet, 16), wallet
        if len(kept) < most:
            heappush(kept, one)
        else:
            heappushpop(kept, one)
        least = kept[0][0] if len(kept) == most else 1
    return [(wallet, raw) for raw, _, wallet in sorted(kept, reverse=True)]


def evenness(ascending: Sequence[int]) -> tuple[int, int] | None:
    """Of amounts above zero, the smallest first: their Gini coefficient, 0, all the same, to 10,000, and the
    fewest of them that make more than half of all. None: there are none."""
    sums = list(accumulate(ascending))
    if not sums:
        return None
    count, whole = len(sums), sums[-1]
    gini_bps = BPS * ((count + 1) * whole - 2 * sum(sums)) // (count * whole)
    # So many of the smallest are less than half together.
    return gini_bps, count - bisect_right(sums, (whole - 1) // 2)
