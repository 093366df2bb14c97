"""Books of who holds what, in this process: read once, gone on with at the next question.

A book is changed while it is read on, so whoever reads on holds the token's lock; looking at one takes none,
as nothing here runs at the same time as anything else between two waits.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakValueDictionary

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.holders.token_logs import new_width
from roundtrip.chain.rpc.client import Budget
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.holders.book import HolderBook
from roundtrip.domain.holders.findings import Concentration
from roundtrip.domain.holders.ranking import HolderRanking
from roundtrip.domain.holders.read_state import State

MOST_WALLETS = 2_000_000
"""Of all books together, which is twice what one may have: some 400 bytes each."""
MOST_BOOKS = 2_000
"""The smallest takes some eight kilobytes."""
MOST_READING = 4
"""So many tokens are read at once while somebody waits."""
AGAIN_S = 2
BUDGET_SAID = "Today's budget for reading who holds tokens is used up."
MOST_LOADING = 2
"""So many are unpacked at once: one of 500,000 wallets takes this process 1.6 s."""


class UnreadVenue(NamedTuple):
    """A venue that had no trade up to the end of block ``empty_to``; those after ``last`` are read."""

    empty_to: int
    last: int


@dataclass(slots=True)
class OpenBook:
    """A book in memory. ``kept_transfers``: how many transfers were in it when it was last written down; -1:
    it never was. ``pruned``: the node has let go what was before ``beginning.first_number``. ``is_begun``
    False: where its transfers begin takes longer to find out than anybody waits; nothing in the book says
    anything."""

    book: HolderBook
    state: State
    pruned: bool = False
    kept_transfers: int = -1
    is_begun: bool = True
    unread_venues: dict[str, "UnreadVenue"] = field(default_factory=dict)
    """Places that the book did not know of when it was read, and of which it is not known yet whether there
    were trades. They are not among ``beginning.venues``: nor does the book that is kept know of them."""
    venues_width: Width = field(default_factory=lambda: new_width())
    width: Width = field(default_factory=lambda: new_width())
    """How many blocks of it a node gives at once."""
    standing: HolderRanking = field(default_factory=HolderRanking)
    spread: Concentration | None = None
    """As it was last counted, and ``spread_moved``: how many wallets moved since; None: anybody."""
    spread_moved: int | None = None


@dataclass(slots=True)
class ProbeTimes:
    """When the node was asked for a token's oldest transfers, in seconds since 1970; None: it was not. It
    outlives the books that are read meanwhile. ``probed_s``: when it last had let them go, ``gone_s``: when
    it first said so of what comes next, and gave nothing since. ``again_s``: when all was last begun anew
    beside a book that there was."""

    probed_s: float | None = None
    gone_s: float | None = None
    again_s: float | None = None


def reading_budget(calls_per_day: int) -> Budget:
    """Node calls that may be spent a day on reading transfers; 0: no limit."""
    return Budget(calls_per_day, "holders_budget", BUDGET_SAID)


@dataclass(slots=True)
class BookCache:
    """``budget``: of node calls that read transfers; by default without end. ``behind_blocks``: so far behind
    the head everything is read: a node may tell of a block before it has its logs in order, and what is
    folded without them is never asked for again."""

    budget: Budget = field(default_factory=lambda: reading_budget(0))
    behind_blocks: int = 0
    loading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_LOADING))
    """Held while a book is unpacked."""
    no_archive_s: float | None = None
    """When the node last had no old states of anybody, in seconds since 1970."""
    _asked: OrderedDict[Address, ProbeTimes] = field(default_factory=OrderedDict)
    _open: OrderedDict[Address, OpenBook] = field(default_factory=OrderedDict)
    _locks: WeakValueDictionary[Address, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    _reading: int = 0

    def get(self, token: Address) -> OpenBook | None:
        """The token's book, where it is in memory."""
        found = self._open.get(token)
        if found is not None:
            self._open.move_to_end(token)
        return found

    def put(self, token: Address, opened: OpenBook) -> None:
        """Remembers it; those that were not asked for longest make room."""
        self._open[token] = opened
        self._open.move_to_end(token)
        while len(self._open) > MOST_BOOKS or (len(self._open) > 1 and self._wallets() > MOST_WALLETS):
            self._open.popitem(last=False)

    def drop(self, token: Address) -> None:
        """Forgets it: it is another chain's, or was begun with too little."""
        self._open.pop(token, None)

    def probe_times(self, token: Address) -> ProbeTimes:
        """When the node was asked for its oldest transfers. Those longest unused are forgotten."""
        found = self._asked.setdefault(token, ProbeTimes())
        self._asked.move_to_end(token)
        while len(self._asked) > MOST_BOOKS:
            self._asked.popitem(last=False)
        return found

    def is_locked(self, token: Address) -> bool:
        """Whether somebody reads it on just now."""
        lock = self._locks.get(token)
        return lock is not None and lock.locked()

    @contextlib.asynccontextmanager
    async def alone(self, token: Address) -> AsyncIterator[None]:
        """Nobody else reads the token on meanwhile."""
        # Kept for as long as somebody here holds it or waits for it.
        lock = self._locks.setdefault(token, asyncio.Lock())
        async with lock:
            yield

    @contextlib.contextmanager
    def a_place(self) -> Iterator[None]:
        """One of the places for reading while somebody waits. Raises ServiceFull (holders_busy)."""
        if self._reading >= MOST_READING:
            raise ServiceFull(
                "holders_busy", "Too many tokens' holders are being read; ask again in a moment.", AGAIN_S
            )
        self._reading += 1
        try:
            yield
        finally:
            self._reading -= 1

    def _wallets(self) -> int:
        return sum(len(one.book.wallets) for one in self._open.values())
