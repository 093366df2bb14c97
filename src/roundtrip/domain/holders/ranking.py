"""Who has most of a token and who has less than nothing, kept from one answer to the next: of a million
wallets a few hundred moved since, and nobody else's place among the first can have changed."""

import heapq
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from itertools import accumulate

from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.holders.book import HolderColumns

KEPT = 400
"""So many of those with most are remembered."""
_LEAST = 100
"""As many of them have to be sure for what is remembered to count."""
MOST_MOVED = 20_000
"""Where more moved, looking at all is as quick."""


@dataclass(slots=True)
class HolderRanking:
    """``moved``: whose balance changed since the last look; None: anybody's."""

    moved: set[Address] | None = None
    _first: list[Address] = field(default_factory=list)
    _below: list[Address] = field(default_factory=list)
    _is_cut: bool = False
    _edge_raw: int = 0
    """Where some were cut off: nobody who is not among the first, and did not move since, has more."""

    def touch(self, wallets: Iterable[Address]) -> None:
        """These moved."""
        if self.moved is None:
            return
        self.moved.update(wallets)
        if len(self.moved) > MOST_MOVED:
            self.moved = None

    def look(self, wallets: Mapping[Address, HolderColumns]) -> tuple[list[Address], list[Address]]:
        """Those with most, at least ``_LEAST`` of them where there are so many, the most first; and all that
        have less than nothing, at most as many as are kept."""
        if self.moved is None or not self._again(wallets, self.moved):
            self._look_at_all(wallets)
        self.moved = set()
        return self._first, self._below

    def _again(self, wallets: Mapping[Address, HolderColumns], moved: set[Address]) -> bool:
        """Whether those who were first and those who moved are enough to tell who is first now."""
        sure = _by_balance(wallets, {*self._first, *moved})
        if self._is_cut:
            sure = [wallet for wallet in sure if wallets[wallet].balance_raw >= self._edge_raw]
            if len(sure) < _LEAST:
                return False
        self._keep(sure, wallets)
        self._below = [
            one for one in {*self._below, *moved} if one in wallets and wallets[one].balance_raw < 0
        ]
        return True

    def _keep(self, first: list[Address], wallets: Mapping[Address, HolderColumns]) -> None:
        if len(first) > KEPT:
            self._is_cut, self._edge_raw = True, wallets[first[KEPT]].balance_raw
        self._first = first[:KEPT]

    def _look_at_all(self, wallets: Mapping[Address, HolderColumns]) -> None:
        raw = {wallet: holding.balance_raw for wallet, holding in wallets.items()}
        self._is_cut = False
        self._keep(heapq.nlargest(KEPT + 1, raw, key=raw.__getitem__), wallets)
        below = [wallet for wallet, balance_raw in raw.items() if balance_raw < 0]
        self._below = heapq.nsmallest(KEPT, below, key=raw.__getitem__)


def _by_balance(wallets: Mapping[Address, HolderColumns], among: Iterable[Address]) -> list[Address]:
    found = [wallet for wallet in among if wallet in wallets]
    return sorted(found, key=lambda wallet: wallets[wallet].balance_raw, reverse=True)


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
