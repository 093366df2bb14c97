"""Facts into alerts, exactly once: what was told, what is to be sent and how far facts were read are one
transaction. Whoever has the cursor's row reads on; any process may, and none remembers anything that the
database does not say.

Facts are read over several statements, while the sync goes on. Up to a block they stay what they are, unless
blocks are taken away; so at its end a step looks whether any were, and is made again then. One moment for all
of it, by a stricter isolation, would have steps refused whenever a channel or a rule was written meanwhile:
the busier it is the more often, and in the end always."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import asyncpg
import structlog

from roundtrip.domain.watch.alerts import MINUTE_S, MOST_A_MINUTE, Alert
from roundtrip.domain.watch.rule_index import AlertSource, RuleIndex
from roundtrip.domain.watch.rules import Happening
from roundtrip.jobs.engine.loop import JobLoop
from roundtrip.store.delivery import deliveries
from roundtrip.store.index import cursor
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alert_cursor, alerts, bags, happenings, watches
from roundtrip.store.watch.alert_cursor import AlertCursor, MinuteKey
from roundtrip.store.watch.happenings import IndexedBlock
from roundtrip.venues.base import Contracts

from .drafts import cap_drafts, key_of, more_of, put_alerts
from .guard import holders_to_alert, wish_checks
from .subscriptions import Subscriptions

CHANNEL = "facts"
"""Notified by the sync with each of its transactions."""
POLL_S = 1.0
MOST_BLOCKS = 100
MOST_MATCHES = 2_000
"""Read and told in one transaction: nobody waits long for it. Blocks are never parted."""
MOST_UNTOLD = 500
STILL_S = MINUTE_S + 5.0
"""Of a chain that stands still so long the minute is over, too."""
_TURN = 256
"""Happenings after which others have their turn."""
_REFUSED_S, _DATABASE_S = 0.02, 5.0
log = structlog.get_logger(__name__)


class AlertContext(Protocol):
    """What it needs of a context."""

    @property
    def pool(self) -> asyncpg.Pool: ...

    @property
    def contracts(self) -> Contracts: ...

    @property
    def now_s(self) -> Callable[[], float]: ...


Happened = Callable[[Connection, Contracts, IndexedBlock, IndexedBlock], Awaitable[list[Happening]]]
Guarded = Callable[
    [Connection, Contracts, Sequence[Happening]], Awaitable[Mapping[int, Sequence[AlertSource]]]
]


class EnqueueDeliveries(Protocol):
    """As ``deliveries.wish``."""

    def __call__(
        self, connection: Connection, alerts: Sequence[Alert], now: datetime, retracted: bool = False
    ) -> Awaitable[None]: ...


@dataclass(frozen=True, slots=True)
class AlertParts:
    """What it is made of."""

    index: Callable[[], RuleIndex] = RuleIndex
    happened: Happened = happenings.read_happenings
    wish: EnqueueDeliveries = deliveries.wish
    guarded: Guarded = holders_to_alert


class _TakenAway(Exception):
    """Blocks were taken away while they were read."""


class Alerts:
    """``most_blocks``, ``most_matches``: of one transaction."""

    def __init__(
        self,
        ctx: AlertContext,
        parts: AlertParts | None = None,
        poll_s: float = POLL_S,
        most_blocks: int = MOST_BLOCKS,
        most_matches: int = MOST_MATCHES,
    ) -> None:
        self._ctx = ctx
        self._parts = parts or AlertParts()
        self._most_blocks, self._most_matches = most_blocks, most_matches
        self._rounds = JobLoop(ctx.pool, CHANNEL, poll_s, "no alerts can be made", "alerts are made again")
        self._watched = Subscriptions(self._parts.index, ctx.now_s)
        self._stood: tuple[int, float] | None = None
        """The index's last block that was seen, and when it was seen first."""

    # --- going on ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until it is cancelled; a database that goes away is waited for."""
        await self._rounds.run(self._begin, self._catch_up)

    async def _begin(self) -> None:
        self._watched.forget()

    async def _catch_up(self) -> None:
        while await self._step_again():
            pass

    async def _step_again(self) -> bool:
        """A step; one that stood in another's way is made again."""
        try:
            return await self.step()
        except asyncpg.TransactionRollbackError:
            await asyncio.sleep(_REFUSED_S)
            return True

    # --- one step ----------------------------------------------------------------------------------

    async def step(self) -> bool:
        """One transaction; whether there may be more to do. With any error nothing was done."""
        try:
            async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection, connection.transaction():
                return await self._step(connection)
        except _TakenAway:
            return True

    async def _step(self, connection: Connection) -> bool:
        taken = await alert_cursor.take(connection)
        if taken is None:
            return await self._begin_once(connection)
        # What is set from here on counts from where this comes to, or later.
        await watches.hold(connection)
        now = self._now()
        at, index = await self._undone(connection, taken, now)
        # After that: blocks that are taken away from here on are met at the end.
        known = await cursor.cursor(connection)
        last = at.at if known is None else IndexedBlock(known.block.number, known.block.timestamp_s)
        # Facts that were forgotten are read again: until they are all there again nothing is new.
        to = (
            await self._alert_next(connection, index, at.at, last, now)
            if last.number > at.at.number
            else at.at
        )
        if AlertCursor(to, at.rewound) != taken:
            await alert_cursor.move(connection, AlertCursor(to, at.rewound))
        more = await self._tell_of_more(connection, self._over_before(to, last), now)
        if await alert_cursor.last_rewound(connection) > at.rewound:
            raise _TakenAway
        return more or to.number < last.number

    async def _begin_once(self, connection: Connection) -> bool:
        """Whether it began just now."""
        if await alert_cursor.is_there(connection):
            return False
        await watches.hold(connection)
        rewound, known = await alert_cursor.last_rewound(connection), await cursor.cursor(connection)
        if known is None:
            return False
        await watches.turn_back(connection, 0, rewound)
        last = IndexedBlock(known.block.number, known.block.timestamp_s)
        began = await alert_cursor.begin(connection, last, rewound)
        if await alert_cursor.last_rewound(connection) > rewound:
            raise _TakenAway
        return began

    # --- what happened -----------------------------------------------------------------------------

    async def _alert_next(
        self,
        connection: Connection,
        index: RuleIndex,
        after: IndexedBlock,
        last: IndexedBlock,
        now: datetime,
    ) -> IndexedBlock:
        """Tells of what comes next after ``after``, and gives how far that was."""
        to = await alert_cursor.place_after(connection, after, self._most_blocks, last)
        found = await self._parts.happened(connection, self._ctx.contracts, after, to)
        held = await self._parts.guarded(connection, self._ctx.contracts, found)
        matches: list[tuple[AlertSource, Happening]] = []
        for number, happening in enumerate(found):
            spot = happening.spot
            if len(matches) >= self._most_matches and spot.block_number > found[number - 1].spot.block_number:
                before = found[number - 1].spot
                to = IndexedBlock(before.block_number, before.at_s)
                break
            matches += [(source, happening) for source in index.matching(happening)]
            matches += [(source, happening) for source in held.get(number, ())]
            if number % _TURN == _TURN - 1:
                await asyncio.sleep(0)
        if matches:
            await self._put(connection, matches, now)
        return to

    async def _put(
        self, connection: Connection, matches: Sequence[tuple[AlertSource, Happening]], now: datetime
    ) -> None:
        counts = await alert_cursor.minutes(connection, {key_of(*match) for match in matches})
        drafts, hits = cap_drafts(matches, counts)
        made = await put_alerts(connection, drafts, now)
        # Before deliveries: everybody wishes for jobs in this order.
        await wish_checks(
            connection, {done.token for source, done in matches if source.kind == "bag_guard"}, now
        )
        await self._parts.wish(connection, made, now)
        await alert_cursor.put_minutes(connection, counts)
        await watches.count_hits(connection, list(hits.items()))

    async def _tell_of_more(self, connection: Connection, before_minute: int, now: datetime) -> bool:
        """Of minutes that are over, how many happenings became no rows; whether there may be more of them."""
        found = await alert_cursor.untold(connection, before_minute, MOST_UNTOLD)
        if not found:
            return False
        drafts = [more_of(one) for one in found]
        made = await put_alerts(connection, [draft for draft in drafts if draft is not None], now)
        await self._parts.wish(connection, made, now)
        for one in found:
            one.counted.told = one.counted.beyond
        await alert_cursor.put_minutes(connection, {one.key: one.counted for one in found})
        return len(found) == MOST_UNTOLD

    def _over_before(self, at: IndexedBlock, last: IndexedBlock) -> int:
        """The first minute that is not over yet: by the chain's clock; where all was read and the chain
        stands still, by how long it does."""
        minute, now_s = at.at_s // MINUTE_S, self._ctx.now_s()
        if self._stood is None or self._stood[0] != last.number:
            self._stood = (last.number, now_s)
        stands_still = at.number == last.number and now_s - self._stood[1] >= STILL_S
        return minute + 1 if stands_still else minute

    # --- what was taken away -----------------------------------------------------------------------

    async def _undone(
        self, connection: Connection, taken: AlertCursor, now: datetime
    ) -> tuple[AlertCursor, RuleIndex]:
        """Steps back to where the index's facts are still those that were read, takes back what was told of
        the others, and counts anew."""
        found = await alert_cursor.rewinds_after(connection, taken.rewound)
        if found is None:
            return taken, await self._watched.index(connection, taken.rewound, taken.rewound)
        turned = await watches.turn_back(connection, taken.rewound, found.last)
        await bags.turn_back(connection, found.to.number)
        index = await self._watched.index(connection, found.last, taken.rewound, turned)
        to = found.to
        if to.number >= taken.at.number:
            return AlertCursor(taken.at, found.last), index
        gone = await alerts.retract(connection, to.number, to.at_s, now)
        await self._parts.wish(connection, gone, now, retracted=True)
        await self._count_back(connection, index, to, gone)
        return AlertCursor(to, found.last), index

    async def _count_back(
        self, connection: Connection, index: RuleIndex, to: IndexedBlock, gone: Sequence[Alert]
    ) -> None:
        """What was counted of the blocks after ``to`` is no more. Of its own minute something stays."""
        own = to.at_s // MINUTE_S
        taken = await alert_cursor.take_minutes(connection, own)
        left = {key: counted for key, counted in taken.items() if key.minute == own}
        hits = {key.source_id: 0 for key in taken if key.kind == "rule"}
        for key, counted in taken.items():
            if key.kind == "rule":
                hits[key.source_id] -= counted.raised + counted.beyond
        for alert in gone:
            draft = alert.draft
            if draft.more == 0 and draft.at_s // MINUTE_S == own and draft.source_id is not None:
                left_of = left.get(MinuteKey(draft.kind, draft.source_id, own, draft.account_id))  # type: ignore[arg-type]
                if left_of is not None:
                    left_of.raised -= 1
        full = {key for key, counted in left.items() if counted.beyond and counted.raised >= MOST_A_MINUTE}
        again = await self._counted_again(connection, index, to, full)
        for key, counted in left.items():
            # Rows come first: where there is room for more of them, nothing was beyond yet.
            counted.beyond = max(0, min(counted.beyond, again.get(key, 0) - counted.raised))
            counted.told = 0
            if key.kind == "rule":
                hits[key.source_id] += counted.raised + counted.beyond
        await alert_cursor.put_minutes(connection, left)
        await watches.count_hits(connection, list(hits.items()))

    async def _counted_again(
        self, connection: Connection, index: RuleIndex, to: IndexedBlock, keys: set[MinuteKey]
    ) -> dict[MinuteKey, int]:
        """How often these were matched in the minute of ``to`` up to there."""
        found = dict.fromkeys(keys, 0)
        if keys:
            after = await alert_cursor.place_before(connection, to.at_s // MINUTE_S * MINUTE_S)
            happened = await self._parts.happened(connection, self._ctx.contracts, after, to)
            held = await self._parts.guarded(connection, self._ctx.contracts, happened)
            for number, happening in enumerate(happened):
                for source in (*index.matching(happening), *held.get(number, ())):
                    key = key_of(source, happening)
                    if key in found:
                        found[key] += 1
        return found

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._ctx.now_s(), UTC)
