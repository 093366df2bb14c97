"""The history of how much the ten biggest wallets hold, hour by hour, over the last days."""

import heapq
from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from roundtrip.domain.base.types import Address

from .book_packing import read_ints
from .columns import HolderColumns

TOP = 10
KEPT_HOURS = 8 * 24
"""Eight days, as ``HolderMinutes`` keeps the numbers of holders."""
_KEPT_LEADERS = 100
_NOT_KNOWN_RAW = 1 << 300
"""No balance is above this, so that no wallet becomes a leader until all of them are ranked."""


class TopShare(NamedTuple):
    """What the ten biggest wallets hold, and the amount that exists, in base units."""

    top_raw: int
    existing_raw: int


@dataclass(slots=True)
class Leaders:
    """``members``: every wallet with a balance above ``floor_raw``, and perhaps others. ``top``: how many of
    the biggest are added up. ``kept``: how many members stay once there are more than twice as many."""

    floor_raw: int = 0
    members: set[Address] = field(default_factory=set)
    top: int = TOP
    kept: int = _KEPT_LEADERS

    def note_balance(self, wallet: Address, raw: int) -> None:
        """Takes notice of a balance that grew."""
        if raw > self.floor_raw:
            self.members.add(wallet)

    def forget(self) -> None:
        """Nothing is known of the balances: the next ``top_raw`` ranks all wallets."""
        self.floor_raw, self.members = _NOT_KNOWN_RAW, set()

    def top_raw(self, wallets: Mapping[Address, HolderColumns], skipped: Collection[Address]) -> int:
        """What the ``top`` biggest wallets hold, without the skipped ones, which must be skipped from then
        on."""
        ranked = self._rank(wallets, self.members, skipped)
        if self.floor_raw and (len(ranked) < self.top or ranked[self.top - 1][0] < self.floor_raw):
            ranked = self._rank(wallets, wallets, skipped)
            self.floor_raw, self.members = 0, {wallet for _, wallet in ranked}
        if len(ranked) > 2 * self.kept:
            del ranked[self.kept :]
            self.floor_raw, self.members = ranked[-1][0], {wallet for _, wallet in ranked}
        return sum(raw for raw, _ in ranked[: self.top])

    def _rank(
        self,
        wallets: Mapping[Address, HolderColumns],
        among: Collection[Address],
        skipped: Collection[Address],
    ) -> list[tuple[int, Address]]:
        """The balances above zero, at most one more than twice ``kept``, largest first."""
        balances = (
            (wallets[wallet].balance_raw, wallet)
            for wallet in among
            if wallet not in skipped and wallets[wallet].balance_raw > 0
        )
        return heapq.nlargest(2 * self.kept + 1, balances)


@dataclass(slots=True)
class HourlyTops:
    """``numbers``: the hours since 1970 in which the token moved, without the ``newest`` one, which may not
    be over. ``shares``: of the end of each."""

    numbers: list[int] = field(default_factory=list)
    shares: list[TopShare] = field(default_factory=list)
    newest: int | None = None

    def put(self, hour: int, share: TopShare) -> None:
        """Records the share at the end of an hour that is later than all before."""
        self.numbers.append(hour)
        self.shares.append(share)
        # The last entry before the kept range gives the share at its start.
        expired = bisect_right(self.numbers, hour - KEPT_HOURS) - 1
        if expired > 0:
            del self.numbers[:expired]
            del self.shares[:expired]

    def at(self, hour: int) -> TopShare | None:
        """The share at the end of an hour before ``newest``; None: before the first entry, or no longer
        kept."""
        end = bisect_right(self.numbers, hour)
        return self.shares[end - 1] if end else None

    def as_json(self) -> list[Any]:
        """As JSON returns it."""
        tops, existing = [share.top_raw for share in self.shares], [s.existing_raw for s in self.shares]
        return [self.numbers, tops, existing, self.newest]


def read_hours(encoded: Any) -> HourlyTops:
    """Decodes ``as_json``. Raises ValueError or TypeError for anything else."""
    numbers, tops, existing, newest = encoded
    shares = [TopShare(*pair) for pair in zip(read_ints(tops), read_ints(existing), strict=True)]
    if len(numbers) != len(shares):
        raise ValueError("no holder book")
    return HourlyTops(read_ints(numbers), shares, None if newest is None else read_ints([newest])[0])
