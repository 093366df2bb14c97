"""The holders of a token, by its trades."""

from collections.abc import Collection

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.profit import DUST
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection, fetch_values

MAX_LOOKED_AT = 2000
"""Traders of a token that are read: this many that were met last, and as many from a random position on. A
token with a million traders is not read completely."""

_ALL = "FROM facts.position WHERE (token_id, wallet_id) >= ($1, 0) AND (token_id, wallet_id) < ($1 + 1, 0)"
"""All positions of a token. The row comparison leaves the planner no choice but the index of the two columns
in their order, whatever it estimates."""

_COLUMNS = "wallet_id, bought_raw, sold_raw, last_s"
_SOME = f"""
WITH ends AS (
    SELECT (SELECT wallet_id {_ALL} ORDER BY token_id, wallet_id LIMIT 1) AS low,
        (SELECT wallet_id {_ALL} ORDER BY token_id DESC, wallet_id DESC LIMIT 1) AS high
), looked_at AS (
    (SELECT {_COLUMNS} {_ALL} ORDER BY token_id DESC, wallet_id DESC LIMIT $2)
    UNION
    (SELECT {_COLUMNS} {_ALL}
        AND (token_id, wallet_id) >= ($1, (SELECT low + ((high - low) * $3::float8)::int FROM ends))
        ORDER BY token_id, wallet_id LIMIT $2)
), holding AS MATERIALIZED (
    SELECT wallet_id, address, bought_raw - sold_raw AS left_raw, last_s
    FROM looked_at JOIN facts.address ON address.id = wallet_id
    WHERE (bought_raw - sold_raw) * $4 > bought_raw AND NOT address = ANY($5::bytea[])
), largest AS (
    SELECT wallet_id, address FROM holding ORDER BY left_raw DESC, wallet_id LIMIT $6
), latest AS (
    SELECT wallet_id, address FROM holding WHERE wallet_id NOT IN (SELECT wallet_id FROM largest)
    ORDER BY last_s DESC, wallet_id LIMIT $6
), others AS (
    SELECT wallet_id, address FROM holding WHERE wallet_id NOT IN (SELECT wallet_id FROM largest)
        AND wallet_id NOT IN (SELECT wallet_id FROM latest)
    ORDER BY md5($7::bytea || address), wallet_id LIMIT $6
)
SELECT address FROM largest UNION ALL SELECT address FROM latest UNION ALL SELECT address FROM others
"""  # noqa: S608


async def traders_holding(
    connection: Connection, token_id: int, without: Collection[Address], seed: bytes, limit: int
) -> tuple[Address, ...]:
    """At most ``limit`` wallets that bought more of a token than they sold, none of ``without``: a third hold
    most, a third traded last, and a third are drawn with ``seed`` (32 bytes). Where the token has more
    traders than are read, of those that are. Transfers other than trades are not considered."""
    addresses = await fetch_values(
        connection,
        Address,
        _SOME,
        token_id,
        MAX_LOOKED_AT,
        int.from_bytes(seed[:4], "big") / 2**32,
        DUST,
        [as_bytes(wallet) for wallet in without],
        limit // 3,
        seed,
    )
    return tuple(addresses)
