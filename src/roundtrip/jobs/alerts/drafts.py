"""What happened into rows: those that there is room for; one that cannot be kept stops no other."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg
import structlog

from roundtrip.domain.watch.alert_text import draft_alert, more_alerts_text
from roundtrip.domain.watch.alerts import MINUTE_S, MOST_A_MINUTE, Alert, Draft
from roundtrip.domain.watch.rule_index import AlertSource
from roundtrip.domain.watch.rules import Happening
from roundtrip.jobs.engine.loop import describe_error
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alerts
from roundtrip.store.watch.alert_cursor import MinuteCount, MinuteKey, UntoldMinute

_CANNOT_BE_KEPT = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, ValueError)
"""The last: what the driver says of a value that it cannot even send."""
log = structlog.get_logger(__name__)


def key_of(source: AlertSource, happening: Happening) -> MinuteKey:
    """Under which it counts."""
    return MinuteKey(source.kind, source.id, happening.spot.at_s // MINUTE_S, source.account_id)


def cap_drafts(
    matches: Sequence[tuple[AlertSource, Happening]], counts: dict[MinuteKey, MinuteCount]
) -> tuple[list[Draft], dict[int, int]]:
    """The rows that these become, in order, and how often each rule was hit. ``counts`` is counted up: what a
    minute has no room for is counted only."""
    drafts: list[Draft] = []
    hits: dict[int, int] = {}
    for source, happening in matches:
        counted = counts.setdefault(key_of(source, happening), MinuteCount())
        if counted.raised < MOST_A_MINUTE:
            counted.raised += 1
            drafts.append(draft_alert(source, happening))
        else:
            counted.beyond += 1
        if source.kind == "rule":
            hits[source.id] = hits.get(source.id, 0) + 1
    return drafts, hits


def more_of(one: UntoldMinute) -> Draft | None:
    """The row that says how many there were; None: nobody watches for it any more."""
    if one.name is None:
        return None
    key, more, is_rule = one.key, one.counted.beyond - one.counted.told, one.key.kind == "rule"
    # A follow may have no name.
    name = one.name or one.wallet or ""
    return Draft(
        account_id=key.account_id,
        kind=key.kind,
        source_id=key.source_id,
        at_s=key.minute * MINUTE_S + MINUTE_S - 1,
        said=more_alerts_text(name, more),
        who=one.name.split(" ", 1)[0] if is_rule else one.name or one.wallet,
        wallet=one.wallet,
        token=one.token,
        rule=one.name if is_rule else None,
        more=more,
    )


async def put_alerts(connection: Connection, drafts: Sequence[Draft], now: datetime) -> list[Alert]:
    """Keeps them as ``alerts.put`` does, but for what the database does not take: everybody's alerts would
    wait for that one for ever."""
    try:
        async with connection.transaction():
            return await alerts.put(connection, drafts, now)
    except _CANNOT_BE_KEPT as error:
        if len(drafts) == 1:
            draft = drafts[0]
            log.error(
                "an alert cannot be kept",
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
