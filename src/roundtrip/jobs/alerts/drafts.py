"""Turns happenings into alert rows, up to the limit a minute. A row that cannot be stored does not stop the
others."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg
import structlog

from roundtrip.domain.watch.alert_text import draft_alert, more_alerts_text
from roundtrip.domain.watch.alerts import MAX_A_MINUTE, MINUTE_S, Alert, Draft
from roundtrip.domain.watch.rule_index import AlertSource
from roundtrip.domain.watch.rules import Happening
from roundtrip.jobs.engine.loop import describe_error
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alerts
from roundtrip.store.watch.alert_cursor import MinuteCount, MinuteKey, UntoldMinute

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
