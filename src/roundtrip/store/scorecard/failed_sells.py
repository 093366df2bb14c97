"""Real sells that failed, of tokens with verdicts. Each function uses the caller's connection and does not
end the transaction."""

from collections.abc import Collection
from datetime import datetime

from roundtrip.domain.base.types import Address
from roundtrip.domain.scorecard.scorecard import FailedSell
from roundtrip.store.server.rows import Connection, as_bytes, fetch


async def checked_among(
    connection: Connection, sold: Collection[Address], since: datetime
) -> dict[Address, Address]:
    """Those of these tokens and curves whose token has a verdict of ``since`` or later, each with its
    token."""
    rows = await fetch(
        connection,
        tuple[Address, Address],
        "SELECT named.sold, named.token FROM ( SELECT given.sold, coalesce(token.address, given.sold) AS "
        "token FROM unnest($1::bytea[]) AS given (sold) LEFT JOIN facts.pool AS pool ON pool.at = given.sold "
        "LEFT JOIN facts.address AS token ON token.id = pool.token_id) AS named CROSS JOIN LATERAL (SELECT "
        "checked_at FROM facts.evidence WHERE evidence.token = named.token ORDER BY id DESC LIMIT 1) AS "
        "newest WHERE newest.checked_at >= $2",
        [as_bytes(address) for address in sold],
        since,
    )
    return dict(rows)


async def put_sell(connection: Connection, token: Address, sell: FailedSell) -> None:
    """Inserts a failed sell, once."""
    await connection.execute(
        "INSERT INTO facts.failed_sell (tx_hash, token, wallet, block_number, at_s, token_raw, refused)"
        " VALUES ($1, $2, $3, $4, $5, $6::text::numeric, $7) ON CONFLICT DO NOTHING",
        as_bytes(sell.tx_hash), as_bytes(token), as_bytes(sell.wallet), sell.block_number, sell.at_s,
        str(sell.token_raw), sell.refused,
    )  # fmt: skip


async def sells_between(
    connection: Connection, token: Address, after_number: int, from_s: int, to_s: int, limit: int = 200
) -> list[FailedSell]:
    """Failed sells of a token after block ``after_number``, from second ``from_s`` up to ``to_s``, in their
    order; of more than ``limit`` the first, and refused ones before others."""
    sells = await fetch(
        connection,
        FailedSell,
        "SELECT block_number, at_s, tx_hash, wallet, token_raw::text, refused FROM facts.failed_sell"
        " WHERE token = $1 AND at_s BETWEEN $3 AND $4 AND block_number > $2"
        " ORDER BY refused DESC, block_number, tx_hash LIMIT $5",
        as_bytes(token),
        after_number,
        from_s,
        to_s,
        limit,
    )
    return sorted(sells, key=lambda sell: sell.block_number)


async def forget(connection: Connection, before_s: int) -> None:
    """Deletes failed sells before ``before_s``."""
    await connection.execute("DELETE FROM facts.failed_sell WHERE at_s < $1", before_s)
