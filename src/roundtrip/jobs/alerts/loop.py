"""Turns facts into alerts, exactly once: alert rows, deliveries and the cursor over facts are written in one
transaction. The process that locks the cursor's row makes the next step; any process may, and none keeps
state that is not in the database.

A step reads facts in several statements while the sync writes. Facts up to a block do not change unless a
reorg removes blocks, so each step checks at its end whether one happened, and is repeated if so. A stricter
isolation level is no alternative: it would refuse a step whenever a channel or a rule is written at the same
time, and under load refuse every step."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import asyncpg
import structlog

from roundtrip.domain.watch.alerts import MAX_A_MINUTE, MINUTE_S, Alert
from roundtrip.domain.watch.rule_index import AlertSource, RuleIndex
from roundtrip.domain.watch.rules import Happening
from roundtrip.jobs.alerts.drafts import (
    Subscriptions,
    cap_drafts,
    draft_more,
    enqueue_checks,
    holders_to_alert,
    key_of,
    put_alerts,
)
from roundtrip.jobs.engine.loop import JobLoop
from roundtrip.store.delivery import deliveries
from roundtrip.store.index import cursor
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alert_cursor, alerts, bags, happenings, watches
from roundtrip.store.watch.alert_cursor import AlertCursor, MinuteKey
from roundtrip.store.watch.happenings import IndexedBlock
from roundtrip.venues.base import Contracts

CHANNEL = "facts"
"""Notified by the sync with each of its transactions."""
POLL_S = 1.0
MAX_BLOCKS = 100
MAX_MATCHES = 2_000
"""The most that one transaction reads and writes, so that no other waits long for it. A block is never
split."""
MAX_UNTOLD = 500
"""Minutes of which one transaction reports the matches beyond the limit."""
STILL_S = MINUTE_S + 5.0
"""When the chain has had no new block for this long, its current minute counts as over."""
_TURN = 256
"""Happenings after which other tasks get a turn of the event loop."""
_RETRY_S, _DATABASE_S = 0.02, 5.0
log = structlog.get_logger(__name__)


class AlertContext(Protocol):
    """What the alert loop needs of a context."""

    @property
    def pool(self) -> asyncpg.Pool: ...

    @property
    def contracts(self) -> Contracts: ...

    @property
    def now_s(self) -> Callable[[], float]: ...


ReadHappenings = Callable[[Connection, Contracts, IndexedBlock, IndexedBlock], Awaitable[list[Happening]]]
FindHolders = Callable[
    [Connection, Contracts, Sequence[Happening]], Awaitable[Mapping[int, Sequence[AlertSource]]]
]
EnqueueDeliveries = Callable[[Connection, Sequence[Alert], datetime, bool], Awaitable[None]]
"""The signature of ``deliveries.enqueue``."""


@dataclass(frozen=True, slots=True)
class AlertParts:
    """The replaceable parts of the alert loop."""

    index: Callable[[], RuleIndex] = RuleIndex
    read_happenings: ReadHappenings = happenings.read_happenings
    enqueue: EnqueueDeliveries = deliveries.enqueue
    find_holders: FindHolders = holders_to_alert


class _ReorgDuringStep(Exception):
    """A reorg removed blocks while a step read them."""


class AlertLoop:
    """The alert loop. ``most_blocks``, ``most_matches``: the limits of one transaction."""

    def __init__(
        self,
        ctx: AlertContext,
        parts: AlertParts | None = None,
        poll_s: float = POLL_S,
        most_blocks: int = MAX_BLOCKS,
        most_matches: int = MAX_MATCHES,
    ) -> None:
        self._ctx = ctx
        self._parts = parts or AlertParts()
        self._most_blocks, self._most_matches = most_blocks, most_matches
        self._loop = JobLoop(ctx.pool, CHANNEL, poll_s, "making alerts failed", "making alerts works again")
        self._subscriptions = Subscriptions(self._parts.index, ctx.now_s)
        self._last_seen: tuple[int, float] | None = None
        """The index's last block at the latest step, and when it was first seen."""

    # --- the loop ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Runs until it is cancelled, and waits for a lost database to return."""
        await self._loop.run(self._begin, self._catch_up)

    async def _begin(self) -> None:
        self._subscriptions.forget()

    async def _catch_up(self) -> None:
        while await self._step_or_retry():
            pass

    async def _step_or_retry(self) -> bool:
        """Makes a step; True also when the database refused it because of another transaction."""
        try:
            return await self.step()
        except asyncpg.TransactionRollbackError:
            await asyncio.sleep(_RETRY_S)
            return True

    # --- one step ----------------------------------------------------------------------------------

    async def step(self) -> bool:
        """Makes one step in one transaction; returns whether there may be more to do. Any error rolls the
        whole step back."""
        try:
            async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection, connection.transaction():
                return await self._step(connection)
        except _ReorgDuringStep:
            return True

    async def _step(self, connection: Connection) -> bool:
        current = await alert_cursor.lock(connection)
        if current is None:
            return await self._start_cursor(connection)
        # A rule or follow that is written from here on starts at the block that this step reaches, or later.
        await watches.lock_shared(connection)
        now = self._now()
        at, index = await self._roll_back(connection, current, now)
        # Read after the rollback: a reorg from here on is detected at the end of the step.
        indexed = await cursor.cursor(connection)
        last = at.at if indexed is None else IndexedBlock(indexed.block.number, indexed.block.timestamp_s)
        # The index may be behind this cursor while dropped facts are read again: then nothing is new.
        to = (
            await self._alert_next(connection, index, at.at, last, now)
            if last.number > at.at.number
            else at.at
        )
        if AlertCursor(to, at.rewound) != current:
            await alert_cursor.update(connection, AlertCursor(to, at.rewound))
        is_more = await self._alert_of_more(connection, self._first_open_minute(to, last), now)
        if await alert_cursor.last_rewind(connection) > at.rewound:
            raise _ReorgDuringStep
        return is_more or to.number < last.number

    async def _start_cursor(self, connection: Connection) -> bool:
        """Creates the cursor at the index's last block; returns whether this call did."""
        if await alert_cursor.exists(connection):
            return False
        await watches.lock_shared(connection)
        rewound, indexed = await alert_cursor.last_rewind(connection), await cursor.cursor(connection)
        if indexed is None:
            return False
        await watches.rewind_watches(connection, 0, rewound)
        last = IndexedBlock(indexed.block.number, indexed.block.timestamp_s)
        is_new = await alert_cursor.create(connection, last, rewound)
        if await alert_cursor.last_rewind(connection) > rewound:
            raise _ReorgDuringStep
        return is_new

    # --- new facts ---------------------------------------------------------------------------------

    async def _alert_next(
        self, connection: Connection, index: RuleIndex, after: IndexedBlock, last: IndexedBlock, now: datetime
    ) -> IndexedBlock:
        """Writes alerts for the next blocks after ``after``; returns the last block it covered."""
        to = await alert_cursor.block_after(connection, after, self._most_blocks, last)
        happened = await self._parts.read_happenings(connection, self._ctx.contracts, after, to)
        holders = await self._parts.find_holders(connection, self._ctx.contracts, happened)
        matches: list[tuple[AlertSource, Happening]] = []
        for i, happening in enumerate(happened):
            spot = happening.spot
            if len(matches) >= self._most_matches and spot.block_number > happened[i - 1].spot.block_number:
                before = happened[i - 1].spot
                to = IndexedBlock(before.block_number, before.at_s)
                break
            matches += [(source, happening) for source in index.matching(happening)]
            matches += [(source, happening) for source in holders.get(i, ())]
            if i % _TURN == _TURN - 1:
                await asyncio.sleep(0)
        if matches:
            await self._write_alerts(connection, matches, now)
        return to

    async def _write_alerts(
        self, connection: Connection, matches: Sequence[tuple[AlertSource, Happening]], now: datetime
    ) -> None:
        counts = await alert_cursor.read_minutes(connection, {key_of(*match) for match in matches})
        drafts, hits = cap_drafts(matches, counts)
        written = await put_alerts(connection, drafts, now)
        # Before deliveries: every transaction enqueues jobs in this order.
        guarded_tokens = {happening.token for source, happening in matches if source.kind == "bag_guard"}
        await enqueue_checks(connection, guarded_tokens, now)
        await self._parts.enqueue(connection, written, now, False)
        await alert_cursor.write_minutes(connection, counts)
        await watches.count_hits(connection, list(hits.items()))

    async def _alert_of_more(self, connection: Connection, before_minute: int, now: datetime) -> bool:
        """Writes, for minutes that are over, how many matches had no row of their own; returns whether there
        may be more such minutes."""
        minutes = await alert_cursor.read_unreported(connection, before_minute, MAX_UNTOLD)
        if not minutes:
            return False
        drafts = [draft_more(minute) for minute in minutes]
        written = await put_alerts(connection, [draft for draft in drafts if draft is not None], now)
        await self._parts.enqueue(connection, written, now, False)
        for minute in minutes:
            minute.counted.told = minute.counted.beyond
        await alert_cursor.write_minutes(connection, {minute.key: minute.counted for minute in minutes})
        return len(minutes) == MAX_UNTOLD

    def _first_open_minute(self, at: IndexedBlock, last: IndexedBlock) -> int:
        """The first minute that is not over, by the chain's clock. When all blocks were read and the chain
        has had no new one for ``STILL_S``, the current minute is over too."""
        minute, now_s = at.at_s // MINUTE_S, self._ctx.now_s()
        if self._last_seen is None or self._last_seen[0] != last.number:
            self._last_seen = (last.number, now_s)
        stands_still = at.number == last.number and now_s - self._last_seen[1] >= STILL_S
        return minute + 1 if stands_still else minute

    # --- reorgs ------------------------------------------------------------------------------------

    async def _roll_back(
        self, connection: Connection, current: AlertCursor, now: datetime
    ) -> tuple[AlertCursor, RuleIndex]:
        """After a reorg: moves the cursor back to the last block that is still in the index, retracts the
        alerts of later blocks and corrects the counts."""
        rewinds = await alert_cursor.rewinds_after(connection, current.rewound)
        if rewinds is None:
            return current, await self._subscriptions.index(connection, current.rewound, current.rewound)
        last, to = rewinds
        moved = await watches.rewind_watches(connection, current.rewound, last)
        await bags.rewind_accounts(connection, to.number)
        index = await self._subscriptions.index(connection, last, current.rewound, moved)
        if to.number >= current.at.number:
            return AlertCursor(current.at, last), index
        retracted = await alerts.retract(connection, to.number, to.at_s, now)
        await self._parts.enqueue(connection, retracted, now, True)
        await self._correct_counts(connection, index, to, retracted)
        return AlertCursor(to, last), index

    async def _correct_counts(
        self, connection: Connection, index: RuleIndex, to: IndexedBlock, retracted: Sequence[Alert]
    ) -> None:
        """Removes the counts of the blocks after ``to``. The minute of ``to`` keeps what it had up to
        ``to``."""
        last_minute = to.at_s // MINUTE_S
        removed = await alert_cursor.delete_minutes(connection, last_minute)
        remaining = {key: count for key, count in removed.items() if key.minute == last_minute}
        hits = {key.source_id: 0 for key in removed if key.kind == "rule"}
        for key, count in removed.items():
            if key.kind == "rule":
                hits[key.source_id] -= count.raised + count.beyond
        for alert in retracted:
            draft = alert.draft
            if draft.more == 0 and draft.at_s // MINUTE_S == last_minute and draft.source_id is not None:
                draft_key = MinuteKey(draft.kind, draft.source_id, last_minute, draft.account_id)  # type: ignore[arg-type]
                if (remaining_count := remaining.get(draft_key)) is not None:
                    remaining_count.raised -= 1
        full = {key for key, count in remaining.items() if count.beyond and count.raised >= MAX_A_MINUTE}
        recounted = await self._recount(connection, index, to, full)
        for key, count in remaining.items():
            # Rows are filled first: while there is room for more of them, no match is beyond.
            count.beyond = max(0, min(count.beyond, recounted.get(key, 0) - count.raised))
            count.told = 0
            if key.kind == "rule":
                hits[key.source_id] += count.raised + count.beyond
        await alert_cursor.write_minutes(connection, remaining)
        await watches.count_hits(connection, list(hits.items()))

    async def _recount(
        self, connection: Connection, index: RuleIndex, to: IndexedBlock, keys: set[MinuteKey]
    ) -> dict[MinuteKey, int]:
        """The matches of each key from the start of the minute of ``to`` up to ``to``."""
        matched = dict.fromkeys(keys, 0)
        if keys:
            after = await alert_cursor.block_before(connection, to.at_s // MINUTE_S * MINUTE_S)
            happened = await self._parts.read_happenings(connection, self._ctx.contracts, after, to)
            holders = await self._parts.find_holders(connection, self._ctx.contracts, happened)
            for i, happening in enumerate(happened):
                for source in (*index.matching(happening), *holders.get(i, ())):
                    key = key_of(source, happening)
                    if key in matched:
                        matched[key] += 1
        return matched

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._ctx.now_s(), UTC)
