"""Turns happenings into alert rows, up to the limit a minute. A row that cannot be stored does not stop the
others. For the bag guard (``domain/watch/bag_guard.py``), finds the accounts that hold the token of a large
sale or drain. ``Subscriptions`` has all rules and follows in memory."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

import asyncpg
import structlog

from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import (
    BAG,
    MAX_A_MINUTE,
    MINUTE_S,
    Alert,
    Draft,
    draft_alert,
    more_alerts_text,
)
from roundtrip.domain.watch.bag_guard import (
    GUARD,
    drains_enough,
    drains_much,
    guard_source_id,
    pool_matters,
    sells_much,
)
from roundtrip.domain.watch.rule_index import AlertSource, RuleIndex
from roundtrip.domain.watch.rules import Happening
from roundtrip.jobs.engine.loop import describe_error
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alerts, bag_changes, bags, watches
from roundtrip.store.watch.alert_cursor import MinuteCount, MinuteKey, UntoldMinute
from roundtrip.store.watch.bags import BagHolder
from roundtrip.store.watch.watches import WatchChange
from roundtrip.venues.base import Contracts

_ROW_ERRORS = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, ValueError)
"""Errors of a row that cannot be stored. The driver raises ValueError for a value that it cannot encode."""
log = structlog.get_logger(__name__)


def key_of(source: AlertSource, happening: Happening) -> MinuteKey:
    """The counter that this match belongs to."""
    return MinuteKey(source.kind, source.id, happening.spot.at_s // MINUTE_S, source.account_id)


def cap_drafts(
    matches: Sequence[tuple[AlertSource, Happening]], counts: dict[MinuteKey, MinuteCount]
) -> tuple[list[Draft], dict[int, int]]:
    """The alert rows of these matches, in order, and the hits of each rule. Increments ``counts``: matches
    beyond a minute's limit are only counted."""
    drafts: list[Draft] = []
    hits: dict[int, int] = {}
    for source, happening in matches:
        count = counts.setdefault(key_of(source, happening), MinuteCount())
        if count.raised < MAX_A_MINUTE:
            count.raised += 1
            drafts.append(draft_alert(source, happening))
        else:
            count.beyond += 1
        if source.kind == "rule":
            hits[source.id] = hits.get(source.id, 0) + 1
    return drafts, hits


def draft_more(minute: UntoldMinute) -> Draft | None:
    """The row that says how many more matches a minute had; None when the rule or follow no longer exists."""
    if minute.name is None:
        return None
    key, is_rule = minute.key, minute.key.kind == "rule"
    more = minute.counted.beyond - minute.counted.told
    # A follow may have no name.
    name = minute.name or minute.wallet or ""
    return Draft(
        account_id=key.account_id,
        kind=key.kind,
        source_id=key.source_id,
        at_s=key.minute * MINUTE_S + MINUTE_S - 1,
        said=more_alerts_text(name, more),
        who=minute.name.split(" ", 1)[0] if is_rule else minute.name or minute.wallet,
        wallet=minute.wallet,
        token=minute.token,
        rule=minute.name if is_rule else None,
        more=more,
    )


async def put_alerts(connection: Connection, drafts: Sequence[Draft], now: datetime) -> list[Alert]:
    """Stores the drafts as ``alerts.put`` does, but skips a row that the database rejects: it would block all
    alerts for ever."""
    try:
        async with connection.transaction():
            return await alerts.put(connection, drafts, now)
    except _ROW_ERRORS as error:
        if len(drafts) == 1:
            draft = drafts[0]
            log.error(
                "storing an alert failed",
                kind=draft.kind,
                source=draft.source_id,
                error=describe_error(error),
            )
            return []
    half = len(drafts) // 2
    return [
        *await put_alerts(connection, drafts[:half], now),
        *await put_alerts(connection, drafts[half:], now),
    ]


async def holders_to_alert(
    connection: Connection, contracts: Contracts, happenings: Sequence[Happening]
) -> dict[int, list[AlertSource]]:
    """The holders to alert of each happening, by its index in ``happenings``; an entry is never empty. An
    account is not alerted of its own actions."""
    drains = [i for i, happening in enumerate(happenings) if happening.verb == "draining"]
    candidates = sorted({*await _large_sales(connection, happenings), *drains})
    alerted: dict[int, list[AlertSource]] = {}
    holders_of_each = await bags.holders(connection, [happenings[i] for i in candidates])
    for i, holders in zip(candidates, holders_of_each, strict=True):
        sources = [_source(holder, happenings[i]) for holder in holders if _is_alerted(holder, happenings[i])]
        if sources:
            alerted[i] = sources
    # Drains are weighed last: most tokens have no account that holds them.
    held = [i for i in drains if i in alerted]
    large = await _large_drains(connection, contracts, [happenings[i] for i in held])
    for i, is_large in zip(held, large, strict=True):
        if not is_large:
            del alerted[i]
    return alerted


async def _large_sales(connection: Connection, happenings: Sequence[Happening]) -> list[int]:
    """The indexes of sales in which a token's deployer sold so much that holders are alerted. A sale whose
    size is unknown counts as large."""
    sales = [i for i, happening in enumerate(happenings) if happening.verb == "selling"]
    if not sales:
        return []
    deployers = await bags.deployers(connection, {happenings[i].token for i in sales})
    by_deployer = [i for i in sales if deployers.get(happenings[i].token) == happenings[i].wallet]
    if not by_deployer:
        return []
    large = []
    totals_raw = await bags.read_sold_totals(connection, [happenings[i] for i in by_deployer])
    for i, total_raw in zip(by_deployer, totals_raw, strict=True):
        sold_raw, whole_raw = happenings[i].part_raw, happenings[i].whole_raw
        if (
            sold_raw is None
            or total_raw is None
            or sells_much(max(0, total_raw - sold_raw), sold_raw, whole_raw)
        ):
            large.append(i)
    return large


async def _large_drains(
    connection: Connection, contracts: Contracts, drains: Sequence[Happening]
) -> list[bool]:
    """Whether each removal alerts its token's holders. Pools are weighed only for removals whose money
    can."""
    before_raw = await bags.read_drained_before(connection, drains)
    large = [drains_enough(drain, raw) for drain, raw in zip(drains, before_raw, strict=True)]
    weighable = [nth for nth, is_large in enumerate(large) if is_large]
    weighed = await bag_changes.weigh_drains(connection, contracts, [drains[nth] for nth in weighable])
    for nth, weights in zip(weighable, weighed, strict=True):
        pool_wei, pools = weights or (None, None)
        large[nth] = drains_much(drains[nth], before_raw[nth], pool_wei) and (
            pools is None or pool_matters(*pools)
        )
    return large


def _is_alerted(holder: BagHolder, happening: Happening) -> bool:
    return holder.wallet != happening.wallet and holder.from_number < happening.spot.block_number


def _source(holder: BagHolder, happening: Happening) -> AlertSource:
    number = guard_source_id(holder.token_number, happening.verb)
    return AlertSource("bag_guard", number, holder.account_id, BAG, holder.from_number)


async def enqueue_checks(connection: Connection, tokens: Collection[Address], now: datetime) -> None:
    """Enqueues a check of each token, each once a minute at most, as far as the queue has room; the others
    are checked in their turn. The holders are alerted when a verdict changes."""
    every = timedelta(seconds=GUARD.event_every_s)
    waiting = await jobs.waiting(connection, "recheck", EVENT) if tokens else 0
    room = GUARD.most_of_events - waiting
    if room <= 0:
        return
    checked = await bags.checked_at(connection, tokens, now)
    # The longest unchecked tokens go first, so that users cannot influence which are checked.
    never = now - 2 * every
    oldest = sorted(tokens, key=lambda token: (max(never, checked.get(token, never)), token))[:room]
    tokens_at: dict[datetime, list[Address]] = {}
    for token in oldest:
        run_at = max(now, checked[token] + every) if token in checked else now
        tokens_at.setdefault(run_at, []).append(token)
    for run_at, due_tokens in tokens_at.items():
        await jobs.enqueue_many(connection, "recheck", due_tokens, {**DEEP, **EVENT}, run_at=run_at)


DEEP: Mapping[str, bool] = {"deep": True}
"""The payload that ``boards`` uses too: a finding of deep checks must not come and go with the caller."""
EVENT: Mapping[str, bool] = {"event": True}
"""Marks the checks that a happening enqueued, so that they can be counted."""


_RELOAD_S = watches.ENDED_KEPT.total_seconds() / 2
"""Half of the time for which ended ones are kept, so that no process misses that one has ended."""


class Subscriptions:
    """All rules and follows in memory, as the database has them while a step holds its lock. ``empty`` makes
    an empty index."""

    def __init__(self, empty: Callable[[], RuleIndex], now_s: Callable[[], float]) -> None:
        self._empty, self._now_s = empty, now_s
        self._index: RuleIndex | None = None
        self._change, self._loaded_s = 0, 0.0
        self._rewound = -1
        """The last reorg that the start blocks in the index include."""

    def forget(self) -> None:
        """Drops the index, so that all of it is read again. A database that is back after a crash, or is
        another copy, may have lost its last changes and may reuse their numbers."""
        self._index = None

    async def index(
        self, connection: Connection, rewound: int, before: int, moved: Sequence[WatchChange] = ()
    ) -> RuleIndex:
        """The index as it is now. A reorg moves the start blocks of rules and follows without changing them:
        ``rewound`` is the last reorg, ``moved`` are the watches that moved since reorg ``before``."""
        index = self._index
        if index is None or self._rewound != before or self._now_s() - self._loaded_s > _RELOAD_S:
            # If reading fails half way, the part must not be used as the whole.
            self._index = None
            index, self._change, self._loaded_s = self._empty(), 0, self._now_s()
            moved = ()
        for change in moved:
            _apply(index, change)
        self._rewound = rewound
        while True:
            changes = await watches.changes_since(connection, self._change, watches.MAX_CHANGES)
            for change in changes:
                _apply(index, change)
                self._change = change.number
            if len(changes) < watches.MAX_CHANGES:
                break
            await asyncio.sleep(0)
        self._index = index
        return index


def _apply(index: RuleIndex, change: WatchChange) -> None:
    source, rule, wallet = change.source, change.rule, change.wallet
    if not change.live:
        index.remove(source.kind, source.id)
    elif rule is not None:
        index.add_rule(source, rule, wallet)
    elif wallet is not None:
        index.add_follow(source, wallet)
