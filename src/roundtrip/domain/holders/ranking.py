"""Ranks the holders of a token, from one answer to the next: of a million wallets a few hundred move in
between, and only they can change place among the leaders."""

import heapq
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from itertools import accumulate

from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.holders.book import HolderColumns

KEPT = 400
"""How many wallets with the largest balances are remembered."""
_MIN_CERTAIN = 100
"""How many leaders must be certain for the remembered ranking to be used."""
MAX_MOVED = 20_000
"""If more wallets moved, ranking all of them is as fast."""


@dataclass(slots=True)
class HolderRanking:
    """``moved``: wallets whose balance changed since the last ``look``; None: any wallet may have."""

    moved: set[Address] | None = None
    kept: int = KEPT
    min_certain: int = _MIN_CERTAIN
    _leaders: list[Address] = field(default_factory=list)
    _negative: list[Address] = field(default_factory=list)
    _is_cut: bool = False
    _cutoff_raw: int = 0
    """Where the list was cut: no wallet outside the leaders that did not move since has more."""

    def touch(self, wallets: Iterable[Address]) -> None:
        """Marks wallets as moved."""
        if self.moved is None:
            return
        self.moved.update(wallets)
        if len(self.moved) > MAX_MOVED:
            self.moved = None

    def look(self, wallets: Mapping[Address, HolderColumns]) -> tuple[list[Address], list[Address]]:
        """The wallets with the largest balances, at least ``min_certain`` of them if there are as many,
        largest first; and those with a balance below zero, at most ``kept``."""
        if self.moved is None or not self._update(wallets, self.moved):
            self._rank_all(wallets)
        self.moved = set()
        return self._leaders, self._negative

    def _update(self, wallets: Mapping[Address, HolderColumns], moved: set[Address]) -> bool:
        """Updates the ranking from the leaders and the wallets that moved. False: these are not enough to
        decide."""
        certain = _by_balance(wallets, {*self._leaders, *moved})
        if self._is_cut:
            certain = [wallet for wallet in certain if wallets[wallet].balance_raw >= self._cutoff_raw]
            if len(certain) < self.min_certain:
                return False
        self._set_leaders(certain, wallets)
        self._negative = [
            wallet
            for wallet in {*self._negative, *moved}
            if wallet in wallets and wallets[wallet].balance_raw < 0
        ]
        return True

    def _set_leaders(self, ranked: list[Address], wallets: Mapping[Address, HolderColumns]) -> None:
        if len(ranked) > self.kept:
            self._is_cut, self._cutoff_raw = True, wallets[ranked[self.kept]].balance_raw
        self._leaders = ranked[: self.kept]

    def _rank_all(self, wallets: Mapping[Address, HolderColumns]) -> None:
        balances = {wallet: holding.balance_raw for wallet, holding in wallets.items()}
        self._is_cut = False
        self._set_leaders(heapq.nlargest(self.kept + 1, balances, key=balances.__getitem__), wallets)
        negative = [wallet for wallet, balance_raw in balances.items() if balance_raw < 0]
        self._negative = heapq.nsmallest(self.kept, negative, key=balances.__getitem__)


def _by_balance(wallets: Mapping[Address, HolderColumns], among: Iterable[Address]) -> list[Address]:
    present = [wallet for wallet in among if wallet in wallets]
    return sorted(present, key=lambda wallet: wallets[wallet].balance_raw, reverse=True)


def largest(
    held: Iterable[tuple[Address, int]], limit: int, skipped: Collection[Address]
) -> list[tuple[Address, int]]:
    """The largest amounts above zero, largest first; of equals the lower address."""
    heap: list[tuple[int, int, Address]] = []
    min_raw = 1
    for wallet, raw in held if limit > 0 else ():
        # Nearly all of half a million wallets end here.
        if raw < min_raw or wallet in skipped:
            continue
        entry = raw, -int(wallet, 16), wallet
        if len(heap) < limit:
            heappush(heap, entry)
        else:
            heappushpop(heap, entry)
        min_raw = heap[0][0] if len(heap) == limit else 1
    return [(wallet, raw) for raw, _, wallet in sorted(heap, reverse=True)]


def evenness(ascending: Sequence[int]) -> tuple[int, int] | None:
    """The Gini coefficient of amounts above zero, given in ascending order, from 0 (all equal) to 10,000; and
    the fewest of them that make more than half of the total. None: there are no amounts."""
    sums = list(accumulate(ascending))
    if not sums:
        return None
    count, whole = len(sums), sums[-1]
    gini_bps = BPS * ((count + 1) * whole - 2 * sum(sums)) // (count * whole)
    # The bisection counts the smallest amounts that together are less than half.
    return gini_bps, count - bisect_right(sums, (whole - 1) // 2)
