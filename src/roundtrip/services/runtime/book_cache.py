"""The holder books in this process: read once, then extended at the next question.

Extending a book changes it, so the reader holds the token's lock. Looking at a book needs no lock, because
all code here runs on one event loop without awaits in between.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
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

MAX_BOOKS = 2_000
"""The smallest book takes some eight kilobytes."""
MAX_READING = 4
"""Limit of tokens that are read at once for waiting callers."""
AGAIN_S = 2
"""When a caller may ask again that found no reading slot."""
BUDGET_SAID = "Today's budget for reading token holders is used up. It renews at 00:00 UTC."
MAX_LOADING = 2
"""Limit of books that are unpacked at once: a book of 500,000 wallets takes this process 1.6 s."""


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """How much is read at once: it stops after this many logs or seconds. ``patience_s``: the timeout for a
    node that returns nothing."""

    logs: int
    seconds: float
    patience_s: float = 12.0


@dataclass(slots=True)
class ReadLimits:
    """How far tokens are read. ``at_once``: within a request. ``piece``: within one job run, which is what is
    lost if the process dies."""

    at_once: ReadBounds = ReadBounds(25_000, 4.0)
    piece: ReadBounds = ReadBounds(500_000, 15.0, 30.0)
    new_width: Callable[[], Width] = new_width
    """How many blocks of a new book's logs are asked for at first."""
    max_transfers: int = 5_000_000
    max_wallets: int = 1_000_000
    """A larger book is not read further, and is reported as far as it goes."""
    max_wallets_of_all: int = 2_000_000
    """Limit for all books in memory, twice the limit of one book; some 400 bytes each."""
    near_blocks: int = 5_000
    """A book at most this far behind does not need a reading slot: it takes two trips."""
    late_venues_s: float = 4.0
    """How long one request searches for trades of late venues; the next request continues from there."""
    written_every: int = 500
    """A whole book is saved again when this many transfers, or a fiftieth of all, are new: unsaved ones are
    read again."""
    max_jobs: int = 50
    """Limit of waiting reads of busy tokens: each may have a million transfers."""


class UnreadVenue(NamedTuple):
    """A venue whose trades in the blocks after ``empty_to`` up to ``last`` are not read. Up to ``empty_to``
    it has none; those after ``last`` are read with the book."""

    empty_to: int
    last: int


@dataclass(slots=True)
class OpenBook:
    """A book in memory. ``kept_transfers``: number of its transfers when it was last stored; -1: never
    stored. ``pruned``: the node has pruned the logs before ``beginning.first_number``. ``is_begun`` False:
    finding the token's first transfer takes longer than a caller waits, and the book means nothing yet."""

    book: HolderBook
    state: State
    pruned: bool = False
    kept_transfers: int = -1
    is_begun: bool = True
    unread_venues: dict[str, "UnreadVenue"] = field(default_factory=dict)
    """Venues that were unknown when the book was read, and whose trades are not read yet. Neither
    ``beginning.venues`` nor the stored book has them."""
    venues_width: Width = field(default_factory=new_width)
    width: Width = field(default_factory=new_width)
    """How many blocks of its logs a node returns at once. ``venues_width``: the same for the trades of late
    venues."""
    standing: HolderRanking = field(default_factory=HolderRanking)
    spread: Concentration | None = None
    """As last computed. ``spread_moved``: number of wallets that moved since; None: any may have."""
    spread_moved: int | None = None


@dataclass(slots=True)
class ProbeTimes:
    """When the node was asked for a token's oldest transfers, in seconds since 1970; None: never. It outlives
    the token's books. ``probed_s``: when the node last turned out to have pruned them. ``gone_s``: when it
    first said so of the next transfers, without any answer since. ``again_s``: when the token was last read
    again from the start although it had a book."""

    probed_s: float | None = None
    gone_s: float | None = None
    again_s: float | None = None


def reading_budget(calls_per_day: int) -> Budget:
    """The daily budget of node calls for reading transfers; 0: no limit."""
    return Budget(calls_per_day, "holders_budget", BUDGET_SAID)


@dataclass(slots=True)
class BookCache:
    """``budget``: of node calls that read transfers; unlimited by default. ``behind_blocks``: reading stops
    this far behind the head, because a node may announce a block before it has all of its logs, and logs that
    are missed are never read again."""

    budget: Budget = field(default_factory=lambda: reading_budget(0))
    behind_blocks: int = 0
    limits: ReadLimits = field(default_factory=ReadLimits)
    loading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_LOADING))
    """Held while a book is unpacked."""
    no_archive_s: float | None = None
    """When the node last turned out to have no archive state, in seconds since 1970."""
    _asked: OrderedDict[Address, ProbeTimes] = field(default_factory=OrderedDict)
    _open: OrderedDict[Address, OpenBook] = field(default_factory=OrderedDict)
    _locks: WeakValueDictionary[Address, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    _reading: int = 0

    def new_book(
        self,
        book: HolderBook,
        state: State,
        pruned: bool = False,
        kept_transfers: int = -1,
        is_begun: bool = True,
    ) -> OpenBook:
        """A book that is not stored here yet."""
        width, venues_width = self.limits.new_width(), self.limits.new_width()
        return OpenBook(book, state, pruned, kept_transfers, is_begun, width=width, venues_width=venues_width)

    def get(self, token: Address) -> OpenBook | None:
        """The token's book, if it is in memory."""
        opened = self._open.get(token)
        if opened is not None:
            self._open.move_to_end(token)
        return opened

    def put(self, token: Address, opened: OpenBook) -> None:
        """Stores the book; the least recently used ones make room."""
        self._open[token] = opened
        self._open.move_to_end(token)
        limit = self.limits.max_wallets_of_all
        while len(self._open) > MAX_BOOKS or (len(self._open) > 1 and self._count_wallets() > limit):
            self._open.popitem(last=False)

    def drop(self, token: Address) -> None:
        """Forgets the book: it is of another chain, or started from too little data."""
        self._open.pop(token, None)

    def probe_times(self, token: Address) -> ProbeTimes:
        """When the node was asked for the token's oldest transfers. The least recently used are forgotten."""
        times = self._asked.setdefault(token, ProbeTimes())
        self._asked.move_to_end(token)
        while len(self._asked) > MAX_BOOKS:
            self._asked.popitem(last=False)
        return times

    def is_locked(self, token: Address) -> bool:
        """Whether the token is being read now."""
        lock = self._locks.get(token)
        return lock is not None and lock.locked()

    @contextlib.asynccontextmanager
    async def alone(self, token: Address) -> AsyncIterator[None]:
        """Holds the token's lock: no other task reads the token then."""
        # The lock lives as long as a task holds it or waits for it.
        lock = self._locks.setdefault(token, asyncio.Lock())
        async with lock:
            yield

    @contextlib.contextmanager
    def take_place(self) -> Iterator[None]:
        """Holds one of the ``MAX_READING`` reading slots. Raises ServiceFull (holders_busy)."""
        if self._reading >= MAX_READING:
            raise ServiceFull(
                "holders_busy",
                "The holders of too many tokens are being read. Retry in a few seconds.",
                AGAIN_S,
            )
        self._reading += 1
        try:
            yield
        finally:
            self._reading -= 1

    def _count_wallets(self) -> int:
        return sum(len(opened.book.wallets) for opened in self._open.values())
