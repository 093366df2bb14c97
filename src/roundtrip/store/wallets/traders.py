"""Who holds a token, as far as trades tell."""

from collections.abc import Collection

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.profit import DUST
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection

MOST_LOOKED_AT = 2000
"""So many who traded it and were met last, and as many from a place by chance on: a token of a million is not
read through."""

_ALL = "FROM facts.position WHERE (token_id, wallet_id) >= ($1, 0) AND (token_id, wallet_id) < ($1 + 1, 0)"
"""All of a token's. That both columns tell it leaves no way but along the index of the two in their order,
whatever the database thinks of how many there are."""

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
    connection: Connection, token_id: int, without: Collection[Address], seed: bytes, most: int
) -> tuple[Address, ...]:
    """At most so many wallets that bought more of a token than they sold, none of ``without``: a third of
    them hold most, a third traded last, and a third is drawn with ``seed`` (32 bytes). Where it has more
    traders than are looked at, of those. What was moved otherwise is not known here."""
    rows = await connection.fetch(
        _SOME,
        token_id,
        MOST_LOOKED_AT,
        int.from_bytes(seed[:4], "big") / 2**32,
        DUST,
        [as_bytes(one) for one in without],
        most // 3,
        seed,
    )
    return tuple(as_address(row["address"]) for row in rows)
