"""Pools of read replicas (PostgreSQL's hot standbys), and the loop that watches them. ``PrimaryLog`` and
``ReplicaStanding`` determine how far behind its primary a replica is, and how long one that failed is left
alone: both are pure. Times are seconds of one monotonic clock, positions are bytes of the write-ahead log."""

import asyncio
import contextlib
import functools
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import asyncpg
import structlog

from roundtrip.domain.base.metrics import Measures
from roundtrip.store.server import connections
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection, fetch_one

MAX_BEHIND_S = 2.0
"""A replica further behind does not answer."""
UNFLUSHED_S = 0.6
"""How long a commit that does not wait for the disk is in no log yet: three times PostgreSQL's
``wal_writer_delay``. The part of ``MAX_BEHIND_S`` that no position shows."""
FIRST_LEAVE_S = 1.0
"""How long a replica is left alone after its first fault; twice as long after each further one."""
LONGEST_LEAVE_S = 30.0
FORGIVEN_S = 60.0
"""After this time without a fault, the next one counts as the first."""

T = TypeVar("T")


class _LogEnd(NamedTuple):
    at_s: float
    position: int


@dataclass(slots=True)
class PrimaryLog:
    """Where the primary's log ended lately. ``position``: at ``at_s`` or a little later."""

    _ends: deque[_LogEnd] = field(default_factory=deque)

    def note(self, at_s: float, position: int) -> None:
        """Adds the newest end. An end before the last one is another primary's: then all others are
        dropped."""
        if self._ends and position < self._ends[-1].position:
            self._ends.clear()
        self._ends.append(_LogEnd(at_s, position))
        while self._ends[0].at_s < at_s - 2 * MAX_BEHIND_S:
            self._ends.popleft()

    def clear(self) -> None:
        """Forgets all: the next primary may be another one."""
        self._ends.clear()

    def current_until(self, replayed: int) -> float | None:
        """The time until which a replica has every commit, if it had replayed the log up to ``replayed``
        before the last ``note``. None: not known; minus infinity: it is ahead of the primary, so its history
        is another one."""
        if self._ends and replayed > self._ends[-1].position:
            return -math.inf
        return max((end.at_s for end in self._ends if end.position <= replayed), default=None)


@dataclass(slots=True)
class ReplicaStanding:
    """What is known of one replica. ``current_s``: it has every commit until then; minus infinity: it does
    not answer, or is no replica. ``left_until_s``: it failed, and is left alone until then."""

    current_s: float = -math.inf
    left_until_s: float = -math.inf
    _faults: int = 0

    def note_fault(self, now_s: float) -> None:
        """Leaves it alone: a second at first, twice as long each time, half a minute at most. Faults of
        requests that began before the replica was left are one fault."""
        if now_s < self.left_until_s:
            return
        if now_s > self.left_until_s + FORGIVEN_S:
            self._faults = 0
        self.left_until_s = now_s + min(LONGEST_LEAVE_S, FIRST_LEAVE_S * 2.0**self._faults)
        self._faults = min(self._faults + 1, 10)

    def fits(self, now_s: float, primary_lost_s: float | None) -> bool:
        """Whether it may answer. ``primary_lost_s``: when a primary that is gone last answered; a replica
        that was current then has all that is known. None: the primary answers."""
        judged_s = now_s if primary_lost_s is None else primary_lost_s
        return now_s >= self.left_until_s and judged_s - self.current_s <= MAX_BEHIND_S - UNFLUSHED_S


def pick_least_lent(fit: Sequence[T], lent: Sequence[int], turn: int) -> T | None:
    """The one of ``fit`` with the fewest lent connections; equals take turns by ``turn``. None: there is
    none."""
    if not fit:
        return None
    order = sorted(range(len(fit)), key=lambda index: (lent[index], (index - turn) % len(fit)))
    return fit[order[0]]


EVERY_S = 0.25
"""The pause between two questions to one server."""
PROBE_S = 1.0
"""How long a server may take to say how far it is."""
log = structlog.get_logger(__name__)

_UNFIT = (
    asyncpg.SerializationError,  # a recovery conflict: replayed changes removed what the statement reads
    asyncpg.OperatorInterventionError,  # cancelled, shut down, starting up
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)
"""Errors after which a replica is left alone for a while."""


class _ServerPlace(NamedTuple):
    """Where a server is. ``position``: the end of a primary's flushed log, or what a replica has replayed.
    ``cluster`` and ``base`` identify the database: a primary and its replicas have the same."""

    is_standby: bool
    position: int | None
    cluster: int
    base: int


_ASK_PLACE = (
    "SELECT pg_is_in_recovery() is_standby, pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery()"
    " THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END, '0/0')::bigint position,"
    " (SELECT system_identifier FROM pg_control_system()) cluster,"
    " (SELECT oid::bigint FROM pg_database WHERE datname = current_database()) base"
)


@dataclass(slots=True)
class _PlaceProbe:
    """Asks one server where it is, over a connection of its own: a pool may be busy."""

    url: str
    _opening: asyncio.Task[Connection] | None = None

    async def ask(self) -> _ServerPlace | None:
        """None: it does not answer."""
        try:
            async with asyncio.timeout(PROBE_S):
                if self._opening is None:
                    self._opening = asyncio.create_task(connections.connect(self.url), name="replica probe")
                # Opening may take longer than an answer may; it goes on meanwhile.
                connection = await asyncio.shield(self._opening)
                return await fetch_one(connection, _ServerPlace, _ASK_PLACE)
        except DATABASE_FAULTS:
            if self._opening is not None and self._opening.done():
                self.close()
            return None

    def close(self) -> None:
        """Ends its connection."""
        opening, self._opening = self._opening, None
        if opening is not None and not opening.cancel() and opening.exception() is None:
            opening.result().terminate()


@dataclass(slots=True, eq=False)
class Replica:
    """One replica. ``name``: in logs and metrics, since its url may hold a password."""

    name: str
    pool: asyncpg.Pool
    probe: _PlaceProbe
    standing: ReplicaStanding = field(default_factory=ReplicaStanding)
    place: _ServerPlace | None = None
    is_used: bool = False


@dataclass(slots=True)
class ReplicaLoan:
    """A replica for the reads of one request, so that all of them are of one history. ``has_failed``: what
    was read is incomplete, and has to be read from the primary."""

    replica: Replica
    fits: Callable[[Replica], bool]
    clock: Callable[[], float]
    has_failed: bool = False

    @contextlib.asynccontextmanager
    async def acquire(self, *, timeout: float | None = None) -> AsyncIterator[Connection]:  # noqa: ASYNC109
        """A connection, as of a pool. Raises one of DATABASE_FAULTS."""
        is_lent = False
        try:
            async with self.replica.pool.acquire(timeout=timeout) as connection:
                is_lent = True
                yield connection
        except DATABASE_FAULTS as error:
            self._note(error, is_lent)
            raise

    def _note(self, error: BaseException, is_lent: bool) -> None:
        if isinstance(error, TimeoutError):
            # A long statement is no fault of the replica, and would take as long on the primary.
            self.has_failed |= not (is_lent and self.fits(self.replica))
            return
        self.has_failed = True
        if isinstance(error, _UNFIT):
            self.replica.standing.note_fault(self.clock())


@dataclass(slots=True, eq=False)
class Replicas:
    """Lends the replicas that are at most two seconds behind. ``clock``: seconds, monotonic."""

    replicas: Sequence[Replica] = ()
    primary: _PlaceProbe | None = None
    clock: Callable[[], float] = lambda: 0.0
    _log: PrimaryLog = field(default_factory=PrimaryLog)
    _answered_s: float = -math.inf
    _lost_s: float | None = None
    _turn: int = 0

    def lend(self) -> ReplicaLoan | None:
        """The replica for one request; None: the primary has to answer."""
        fit = [replica for replica in self.replicas if self.fits(replica)]
        lent = [replica.pool.get_size() - replica.pool.get_idle_size() for replica in fit]
        self._turn += 1
        chosen = pick_least_lent(fit, lent, self._turn)
        return None if chosen is None else ReplicaLoan(chosen, self.fits, self.clock)

    def fits(self, replica: Replica) -> bool:
        """Whether this one may answer now."""
        return replica.standing.fits(self.clock(), self._lost_s)

    async def watch(self) -> None:
        """Asks the primary and all replicas, each on its own, until it is cancelled: one that hangs delays no
        other."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self.look))
            for replica in self.replicas:
                group.create_task(self._repeat(functools.partial(self.ask, replica)))

    async def _repeat(self, ask: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await ask()
            except Exception:
                # Any error: without this loop no replica would be used again.
                log.exception("asking for the replicas failed")
            await asyncio.sleep(EVERY_S)

    async def ask(self, replica: Replica) -> None:
        """Asks one replica how far it is."""
        place = await replica.probe.ask()
        if place is None or place.position is None or not place.is_standby:
            place, replica.standing.current_s = None, -math.inf
        replica.place = place
        self._report(replica)

    async def look(self) -> None:
        """Asks the primary how far it is, and judges what the replicas had answered before: none of them can
        have replayed more than that."""
        assert self.primary is not None
        places = [replica.place for replica in self.replicas]
        asked_s = self.clock()
        head = await self.primary.ask()
        if head is None or head.position is None or head.is_standby:
            self._log.clear()
            self._lost_s = self._answered_s
            return
        self._log.note(asked_s, head.position)
        self._answered_s, self._lost_s = asked_s, None
        for replica, place in zip(self.replicas, places, strict=True):
            if place is not None and place.position is not None:
                current_s = self._log.current_until(place.position)
                if (place.cluster, place.base) != (head.cluster, head.base):
                    current_s = -math.inf
                # One that has stopped answering meanwhile has no place any more.
                if current_s is not None and replica.place is not None:
                    replica.standing.current_s = current_s
            self._report(replica)

    def _report(self, replica: Replica) -> None:
        is_fit = self.fits(replica)
        if is_fit != replica.is_used:
            log.info("a replica answers" if is_fit else "a replica is left for the primary", of=replica.name)
        replica.is_used = is_fit


NO_REPLICAS = Replicas()
"""The primary answers everything."""


@contextlib.asynccontextmanager
async def open_replicas(
    urls: Sequence[str],
    primary_url: str,
    clock: Callable[[], float],
    measures: Measures | None = None,
    **options: Any,
) -> AsyncIterator[Replicas]:
    """Opens a pool for each url; ``options``: as for ``connections.create_pool``. None of them is connected
    to yet, and none is lent before ``watch`` runs."""
    async with contextlib.AsyncExitStack() as stack:
        replicas = []
        for number, url in enumerate(urls, 1):
            name = f"replica {number}"
            pool = connections.create_pool(url, measures, name, timeout=PROBE_S, **options)
            replicas.append(Replica(name, await stack.enter_async_context(pool), _PlaceProbe(url)))
        opened = Replicas(replicas, _PlaceProbe(primary_url), clock)
        for probe in (opened.primary, *(replica.probe for replica in replicas)):
            assert probe is not None
            stack.callback(probe.close)
        if measures is not None:
            for replica in replicas:
                measures.watch("replica_answers", replica.name, functools.partial(opened.fits, replica))
        yield opened
