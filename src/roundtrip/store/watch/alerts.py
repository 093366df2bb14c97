"""Alerts as they are kept. Each function uses the caller's connection and does not end the transaction."""

from collections.abc import Collection, Sequence
from datetime import datetime

from roundtrip.domain.watch.alerts import MINUTE_S, Alert, Draft
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_value, fetch_values

MAX_FORGOTTEN = 10_000
"""Rows of each table that one call of ``forget`` deletes at most."""
MAX_COUNTED = 10_000


_ALERT_COLUMNS = (
    "alert.id, alert.account_id, alert.kind, alert.source_id, alert.at_s, alert.said, alert.verb, alert.who,"
    " alert.wallet, alert.token, alert.eth_wei, alert.micro_usd, alert.share_ppm, alert.tx_hash,"
    " alert.block_number, alert.log_index, alert.rule, alert.more, alert.level,"
    " alert.retracted_at IS NOT NULL AS retracted, token.symbol"
)

_PUT = """
INSERT INTO accounts.alert (id, account_id, kind, source_id, verb, who, wallet, token, eth_wei, micro_usd,
    share_ppm, tx_hash, block_number, log_index, at_s, rule, said, more, level, made_at)
OVERRIDING SYSTEM VALUE
SELECT given.*, $20 FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[],
    $6::text[], $7::bytea[], $8::bytea[], $9::numeric[], $10::numeric[], $11::bigint[], $12::bytea[],
    $13::int[], $14::int[], $15::int[], $16::text[], $17::text[], $18::int[],
    $19::text[]) AS given
ON CONFLICT DO NOTHING RETURNING id
"""


async def put(connection: Connection, drafts: Sequence[Draft], now: datetime) -> list[Alert]:
    """Inserts the drafts, in order, and returns the alerts. A draft of a fact that already has its alert is
    left out."""
    if not drafts:
        return []
    # Ids are drawn first: RETURNING does not say which rows ON CONFLICT DO NOTHING left out.
    ids = await fetch_values(
        connection,
        int,
        "SELECT nextval(pg_get_serial_sequence('accounts.alert', 'id')) AS id FROM generate_series(1, $1)",
        len(drafts),
    )
    numbered = list(zip(sorted(ids), drafts, strict=True))
    inserted = await fetch_values(
        connection,
        int,
        _PUT,
        [alert_id for alert_id, _ in numbered],
        [draft.account_id for draft in drafts],
        [draft.kind for draft in drafts],
        [draft.source_id for draft in drafts],
        [draft.verb for draft in drafts],
        [draft.who for draft in drafts],
        [_bytes(draft.wallet) for draft in drafts],
        [_bytes(draft.token) for draft in drafts],
        [draft.eth_wei for draft in drafts],
        [draft.micro_usd for draft in drafts],
        [draft.share_ppm for draft in drafts],
        [_bytes(draft.tx_hash) for draft in drafts],
        [draft.block_number for draft in drafts],
        [draft.log_index for draft in drafts],
        [draft.at_s for draft in drafts],
        [draft.rule for draft in drafts],
        [draft.said for draft in drafts],
        [draft.more for draft in drafts],
        [draft.level for draft in drafts],
        now,
    )
    kept_ids = set(inserted)
    return [Alert(alert_id, draft) for alert_id, draft in numbered if alert_id in kept_ids]


_ALERT = (
    f"SELECT {_ALERT_COLUMNS} FROM accounts.alert AS alert"  # noqa: S608
    " LEFT JOIN facts.token AS token ON token.token = alert.token"
)


async def alerts(connection: Connection, ids: Collection[int]) -> list[Alert]:
    """The alerts of these ids that are still kept, by id, with their tokens' symbols."""
    query = f"{_ALERT} WHERE alert.id = ANY($1::bigint[]) ORDER BY alert.id"
    return await fetch(connection, Alert, query, list(ids))


async def newest(
    connection: Connection, account_id: int, since: datetime, limit: int
) -> tuple[list[Alert], int]:
    """An account's newest ``limit`` alerts since ``since``, the newest first; and how many there are since
    then, counted up to MAX_COUNTED + 1."""
    rows = await fetch(
        connection,
        Alert,
        f"{_ALERT} WHERE alert.account_id = $1 AND alert.made_at >= $2 ORDER BY alert.id DESC LIMIT $3",
        account_id,
        since,
        limit,
    )
    total = await fetch_value(
        connection,
        int,
        "SELECT count(*) FROM"
        " (SELECT FROM accounts.alert WHERE account_id = $1 AND made_at >= $2 LIMIT $3) AS counted",
        account_id,
        since,
        MAX_COUNTED + 1,
    )
    return rows, total


async def retract(connection: Connection, number: int, at_s: int, now: datetime) -> list[Alert]:
    """Marks as retracted the alerts of facts above block ``number``, which is of ``at_s``, and the summaries
    of its minute and of later ones. Returns them by id."""
    retracted = await fetch_values(
        connection,
        int,
        "UPDATE accounts.alert SET retracted_at = $3 WHERE retracted_at IS NULL"
        " AND (block_number > $1 OR (more > 0 AND at_s >= $2)) RETURNING id",
        number,
        at_s // MINUTE_S * MINUTE_S,
        now,
    )
    return await alerts(connection, retracted)


async def forget(connection: Connection, before: datetime) -> bool:
    """Deletes some alerts and messages made before ``before``. True: there may be more of them."""
    alerts_status = await connection.execute(
        "DELETE FROM accounts.alert WHERE id IN"
        " (SELECT id FROM accounts.alert WHERE made_at < $1 ORDER BY made_at LIMIT $2)",
        before,
        MAX_FORGOTTEN,
    )
    messages_status = await connection.execute(
        "DELETE FROM accounts.delivery WHERE id IN"
        " (SELECT id FROM accounts.delivery WHERE made_at < $1 ORDER BY made_at LIMIT $2)",
        before,
        MAX_FORGOTTEN,
    )
    return f"DELETE {MAX_FORGOTTEN}" in (alerts_status, messages_status)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else as_bytes(text)
