"""What accounts were told. Each function takes the caller's connection and ends no transaction."""

from collections.abc import Collection, Sequence
from datetime import datetime

import asyncpg

from roundtrip.domain.base.types import TxHash
from roundtrip.domain.watch.alerts import MINUTE_S, Alert, Draft
from roundtrip.store.server.hex import as_address, as_bytes, as_text
from roundtrip.store.server.rows import Connection

MOST_FORGOTTEN = 10_000
"""At once."""
MOST_COUNTED = 10_000

_PUT = """
INSERT INTO accounts.alert (id, account_id, kind, source_id, verb, who, wallet, token, eth_wei, micro_usd,
    share_ppm, tx_hash, block_number, log_index, at_s, rule, said, more, made_at)
OVERRIDING SYSTEM VALUE
SELECT given.*, $19 FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[],
    $6::text[], $7::bytea[], $8::bytea[], $9::numeric[], $10::numeric[], $11::bigint[], $12::bytea[],
    $13::int[], $14::int[], $15::int[], $16::text[], $17::text[], $18::int[]) AS given
ON CONFLICT DO NOTHING RETURNING id
"""


async def put(connection: Connection, drafts: Sequence[Draft], now: datetime) -> list[Alert]:
    """Keeps them, in order. A fact that was told of already is left out."""
    if not drafts:
        return []
    # Drawn before: of rows that are left out nothing comes back to tell which they were.
    drawn = await connection.fetch(
        "SELECT nextval(pg_get_serial_sequence('accounts.alert', 'id')) AS id FROM generate_series(1, $1)",
        len(drafts),
    )
    numbered = list(zip(sorted(row["id"] for row in drawn), drafts, strict=True))
    rows = await connection.fetch(
        _PUT,
        [number for number, _ in numbered],
        [one.account_id for one in drafts],
        [one.kind for one in drafts],
        [one.source_id for one in drafts],
        [one.verb for one in drafts],
        [one.who for one in drafts],
        [_bytes(one.wallet) for one in drafts],
        [_bytes(one.token) for one in drafts],
        [one.eth_wei for one in drafts],
        [one.micro_usd for one in drafts],
        [one.share_ppm for one in drafts],
        [_bytes(one.tx_hash) for one in drafts],
        [one.block_number for one in drafts],
        [one.log_index for one in drafts],
        [one.at_s for one in drafts],
        [one.rule for one in drafts],
        [one.said for one in drafts],
        [one.more for one in drafts],
        now,
    )
    kept = {row["id"] for row in rows}
    return [Alert(number, draft) for number, draft in numbered if number in kept]


_ALERT = (
    "SELECT alert.*, token.symbol FROM accounts.alert AS alert"
    " LEFT JOIN facts.token AS token ON token.token = alert.token"
)


async def alerts(connection: Connection, ids: Collection[int]) -> list[Alert]:
    """Those that are still kept, by id, with their tokens' symbols."""
    rows = await connection.fetch(f"{_ALERT} WHERE alert.id = ANY($1::bigint[]) ORDER BY alert.id", list(ids))
    return [_alert(row) for row in rows]


async def newest(
    connection: Connection, account_id: int, since: datetime, most: int
) -> tuple[list[Alert], int]:
    """An account's since then, the newest first, ``most`` of them; and how many there are: more than
    MOST_COUNTED are given as one more."""
    rows = await connection.fetch(
        f"{_ALERT} WHERE alert.account_id = $1 AND alert.made_at >= $2 ORDER BY alert.id DESC LIMIT $3",
        account_id,
        since,
        most,
    )
    total: int = await connection.fetchval(
        "SELECT count(*) FROM"
        " (SELECT FROM accounts.alert WHERE account_id = $1 AND made_at >= $2 LIMIT $3) AS counted",
        account_id,
        since,
        MOST_COUNTED + 1,
    )
    return [_alert(row) for row in rows], total


async def retract(connection: Connection, number: int, at_s: int, now: datetime) -> list[Alert]:
    """Takes back what was told of facts above block ``number``, which is of ``at_s``, and how many more there
    were in its minute and later. By id."""
    rows = await connection.fetch(
        "WITH gone AS (UPDATE accounts.alert SET retracted_at = $3"
        " WHERE retracted_at IS NULL AND (block_number > $1 OR (more > 0 AND at_s >= $2)) RETURNING *)"
        " SELECT gone.*, token.symbol FROM gone LEFT JOIN facts.token AS token ON token.token = gone.token"
        " ORDER BY gone.id",
        number,
        at_s // MINUTE_S * MINUTE_S,
        now,
    )
    return [_alert(row) for row in rows]


async def forget(connection: Connection, before: datetime) -> bool:
    """Takes some of what is older away, and messages of then; whether there may be more of it."""
    done: str = await connection.execute(
        "DELETE FROM accounts.alert WHERE id IN"
        " (SELECT id FROM accounts.alert WHERE made_at < $1 ORDER BY made_at LIMIT $2)",
        before,
        MOST_FORGOTTEN,
    )
    sent: str = await connection.execute(
        "DELETE FROM accounts.delivery WHERE id IN"
        " (SELECT id FROM accounts.delivery WHERE made_at < $1 ORDER BY made_at LIMIT $2)",
        before,
        MOST_FORGOTTEN,
    )
    return f"DELETE {MOST_FORGOTTEN}" in (done, sent)


def _alert(row: asyncpg.Record) -> Alert:
    tx_hash, eth_wei, micro_usd = row["tx_hash"], row["eth_wei"], row["micro_usd"]
    draft = Draft(
        account_id=row["account_id"],
        kind=row["kind"],
        source_id=row["source_id"],
        at_s=row["at_s"],
        said=row["said"],
        verb=row["verb"],
        who=row["who"],
        wallet=None if row["wallet"] is None else as_address(row["wallet"]),
        token=None if row["token"] is None else as_address(row["token"]),
        eth_wei=None if eth_wei is None else int(eth_wei),
        micro_usd=None if micro_usd is None else int(micro_usd),
        share_ppm=row["share_ppm"],
        tx_hash=None if tx_hash is None else TxHash(as_text(tx_hash)),
        block_number=row["block_number"],
        log_index=row["log_index"],
        rule=row["rule"],
        more=row["more"],
    )
    return Alert(row["id"], draft, row["retracted_at"] is not None, row["symbol"])


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else as_bytes(text)
