"""The sync's cursor, and lookups of the blocks, pools and prices that are indexed up to it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from roundtrip.domain.base.events import PoolPlace, Price
from roundtrip.domain.base.types import Address, BlockRef, HexBytes
from roundtrip.domain.base.venue import OtherPool
from roundtrip.store.server import partitions
from roundtrip.store.server.rows import (
    Connection,
    as_bytes,
    fetch,
    fetch_optional,
    fetch_row,
    fetch_value,
    fetch_values,
)

BLOCKS_KEPT = 2048
"""Newest blocks that are kept to find a fork: three and a half minutes at ten blocks a second."""
CHECKPOINT_BLOCKS = 1000
"""Older blocks are kept permanently if their number is a multiple of this."""
MAX_IDS = 50_000
"""An ``Ids`` map with more entries is cleared by ``trim``."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far the chain is indexed. ``start_number``: the first block that was read in full. ``block``: the
    newest one; before the first is read, its parent. ``older_number``: the next block before ``start_number``
    whose launches and pools are to be read. ``trades_from_s``: raw trades are kept from then on.
    ``genesis_hash``: the hash of the chain's block 0. ``is_local``: the chain is a local one, which may be
    restarted. ``rewinds``: changes whenever blocks are removed. Cursors are equal if they are at one place:
    the other fields are not compared."""

    start_number: int
    block: BlockRef
    older_number: int = 0
    trades_from_s: int = field(default=0, compare=False)
    genesis_hash: HexBytes = field(default="0x", compare=False)
    is_local: bool = field(default=False, compare=False)
    rewinds: int = field(default=0, compare=False)

    def is_whole(self) -> bool:
        """Whether the index has every place that ever existed up to the cursor's block."""
        return self.older_number >= self.start_number


@dataclass(slots=True)
class Ids:
    """A cache of the ids of addresses and places; cleared when a transaction fails."""

    addresses: dict[str, int] = field(default_factory=dict)
    pools: dict[str, int] = field(default_factory=dict)

    def clear(self) -> None:
        """Forgets all ids, since those that a failed transaction assigned are not valid."""
        self.addresses.clear()
        self.pools.clear()

    def trim(self) -> None:
        """Clears a map that has grown beyond ``MAX_IDS``."""
        for ids in (self.addresses, self.pools):
            if len(ids) > MAX_IDS:
                ids.clear()


# --- the cursor ------------------------------------------------------------------------------------


async def cursor(connection: Connection) -> Cursor | None:
    """The sync's cursor; None: the sync never started."""
    return await fetch_row(
        connection,
        Cursor,
        "SELECT start_number, number, hash, at_s AS timestamp_s, older_number, trades_from_s,"
        " first_hash AS genesis_hash, is_local, rewinds FROM facts.cursor",
    )


async def newest_number(connection: Connection) -> int | None:
    """The number of the newest indexed block; None: the sync never started."""
    return await fetch_optional(connection, int, "SELECT number FROM facts.cursor")


async def begin(
    connection: Connection,
    start_number: int,
    parent: BlockRef,
    genesis_hash: str = "0x",
    is_local: bool = False,
) -> None:
    """Creates the cursor: the sync starts with block ``start_number``, whose parent is ``parent``, on the
    chain whose block 0 has ``genesis_hash``. Does nothing if there is a cursor."""
    await connection.execute(
        "INSERT INTO facts.cursor (start_number, number, hash, at_s, first_hash, is_local, rewinds)"
        " VALUES ($1, $2, $3, $4, $5, $6, nextval('facts.rewinds')) ON CONFLICT DO NOTHING",
        start_number,
        parent.number,
        as_bytes(parent.hash),
        parent.timestamp_s,
        as_bytes(genesis_hash),
        is_local,
    )


async def set_genesis_hash(connection: Connection, genesis_hash: str) -> None:
    """Sets the hash of the chain's block 0: a local chain was restarted."""
    await connection.execute("UPDATE facts.cursor SET first_hash = $1", as_bytes(genesis_hash))


async def advance(connection: Connection, parent_hash: str, last: BlockRef) -> int | None:
    """Moves the cursor from ``parent_hash`` to ``last``; None: the cursor is at another block. The row stays
    locked until the transaction ends, so a second writer waits, and then finds the cursor moved. Returns how
    often others changed folded rows: a caller that caches some reads them again when it differs."""
    return await fetch_optional(
        connection,
        int,
        "UPDATE facts.cursor SET number = $2, hash = $3, at_s = $4, rewinds = CASE WHEN $2 < number THEN "
        "nextval('facts.rewinds') ELSE rewinds END, positions_from = coalesce(positions_from, number + 1) "
        "WHERE hash = $1 RETURNING changes",
        as_bytes(parent_hash),
        last.number,
        as_bytes(last.hash),
        last.timestamp_s,
    )


async def advance_older(connection: Connection, at: Cursor, older_number: int) -> int | None:
    """Moves ``older_number``, up to which the launches and pools of older blocks are indexed. Returns as
    ``advance``; None: the cursor is no longer as in ``at``."""
    return await fetch_optional(
        connection,
        int,
        "UPDATE facts.cursor SET older_number = $3 WHERE hash = $1 AND older_number = $2 RETURNING changes",
        as_bytes(at.block.hash),
        at.older_number,
        older_number,
    )


async def forget_older(connection: Connection, number: int) -> bool:
    """If the cursor went back to ``number``, before its first block, has older blocks read again. Returns
    whether it did."""
    start_number = await fetch_optional(
        connection,
        int,
        "UPDATE facts.cursor SET older_number = 0 WHERE start_number > $1 RETURNING start_number",
        number,
    )
    return start_number is not None


async def delete_position_base(connection: Connection) -> None:
    """Deletes what was folded from deleted trades, and forgets that they were deleted: all trades are read
    again."""
    await connection.execute("DELETE FROM facts.position_base")
    await connection.execute("UPDATE facts.cursor SET trades_from_s = 0")


async def lock_for_refold(connection: Connection) -> int | None:
    """Locks the cursor until the transaction ends, so that the caller can change folded rows, and counts the
    change, so that the sync then drops its caches. Returns the time from which on trades are kept; None: the
    sync never started."""
    return await fetch_optional(
        connection, int, "UPDATE facts.cursor SET changes = changes + 1 RETURNING trades_from_s"
    )


async def record_deleted_trades(connection: Connection, before_s: int) -> None:
    """Records that trades before ``before_s`` are deleted."""
    await connection.execute("UPDATE facts.cursor SET trades_from_s = greatest(trades_from_s, $1)", before_s)


async def highest_address_id(connection: Connection) -> int:
    """The highest id of an interned address; 0: there is none."""
    return await fetch_value(connection, int, "SELECT coalesce(max(id), 0) FROM facts.address")


async def keep_blocks(connection: Connection, blocks: Sequence[BlockRef]) -> None:
    """Stores the blocks that serve to find a fork, and deletes most of the older ones."""
    last = blocks[-1].number
    stored = [b for b in blocks if b.number > last - BLOCKS_KEPT or b.number % CHECKPOINT_BLOCKS == 0]
    await connection.execute(
        "INSERT INTO facts.block (number, hash, at_s)"
        " SELECT * FROM unnest($1::int[], $2::bytea[], $3::int[])",
        [block.number for block in stored],
        [as_bytes(block.hash) for block in stored],
        [block.timestamp_s for block in stored],
    )
    await connection.execute(
        "DELETE FROM facts.block WHERE number > $1 AND number <= $2 AND number % $3 <> 0",
        blocks[0].number - BLOCKS_KEPT - 1,
        last - BLOCKS_KEPT,
        CHECKPOINT_BLOCKS,
    )


async def stored_blocks(connection: Connection) -> list[BlockRef]:
    """The stored blocks, which serve to find a fork, oldest first."""
    query = "SELECT number, hash, at_s AS timestamp_s FROM facts.block ORDER BY number"
    return await fetch(connection, BlockRef, query)


# --- pools, launches and prices --------------------------------------------------------------------

_POOL = (
    "SELECT pool.id, pool.at, pool.kind, token.address AS token, quote.address AS quote, pool.in_money_from,"
    " pool.fee_pips, pool.tick_spacing, hook.address AS hook, pool.block_number, pool.log_index, pool.at_s,"
    " '\\x'::bytea AS tx_hash FROM facts.pool AS pool JOIN facts.address AS token ON token.id = pool.token_id"
    " JOIN facts.address AS quote ON quote.id = pool.quote_id"
    " LEFT JOIN facts.address AS hook ON hook.id = pool.hook_id"
)


async def pools_at(connection: Connection, places: Iterable[str], ids: Ids) -> dict[str, PoolPlace]:
    """The indexed pools at these places, by place. Adds their ids to ``ids``."""
    rows = await fetch(
        connection,
        tuple[int, PoolPlace],
        f"{_POOL} WHERE pool.at = ANY($1::bytea[])",
        [as_bytes(at) for at in places],
    )
    ids.pools.update((pool.at, pool_id) for pool_id, pool in rows)
    return {pool.at: pool for _, pool in rows}


async def pools_without_money(
    connection: Connection, quotes: Iterable[Address], ids: Ids
) -> dict[str, PoolPlace]:
    """The pools with one of these on a side, and money on neither, by place. Adds their ids to ``ids``."""
    rows = await fetch(
        connection,
        tuple[int, PoolPlace],
        f"{_POOL} WHERE pool.in_money_from IS NULL AND (token.address = ANY($1::bytea[])"
        " OR quote.address = ANY($1::bytea[]))",
        [as_bytes(quote) for quote in quotes],
    )
    ids.pools.update((pool.at, pool_id) for pool_id, pool in rows)
    return {pool.at: pool for _, pool in rows}


async def pools_of(connection: Connection, token_id: int, limit: int) -> list[PoolPlace]:
    """At most ``limit`` places where the token trades for money, the oldest first."""
    rows = await fetch(
        connection,
        tuple[int, PoolPlace],
        f"{_POOL} WHERE pool.in_money_from IS NOT NULL AND pool.token_id = $1"
        " ORDER BY pool.block_number, pool.log_index LIMIT $2",
        token_id,
        limit,
    )
    return [pool for _, pool in rows]


LAUNCH_PLACES = """
own AS MATERIALIZED (SELECT id FROM facts.address WHERE address = $1),
first AS MATERIALIZED (
    -- The launch's own place, and the pools opened as that graduated: before the pools that others opened.
    SELECT pool.id FROM facts.launch AS launch JOIN facts.pool AS pool ON pool.at = launch.at
    WHERE launch.token_id = (SELECT id FROM own)
    UNION
    SELECT pool.id FROM facts.launch_step AS step JOIN facts.pool AS pool
        ON pool.block_number = step.block_number AND pool.token_id = step.token_id
    WHERE step.token_id = (SELECT id FROM own)
)
"""
"""For WITH: the number of the token $1, and the ids of its launch's own places."""

_VENUES = f"""
WITH {LAUNCH_PLACES}, found AS MATERIALIZED (
    -- BETWEEN, and in that order: otherwise the plan scans all pools by id.
    SELECT id FROM first
    UNION
    (SELECT id FROM facts.pool WHERE token_id BETWEEN (SELECT id FROM own) AND (SELECT id FROM own)
    ORDER BY token_id, id LIMIT $2)
    UNION
    (SELECT id FROM facts.pool WHERE quote_id BETWEEN (SELECT id FROM own) AND (SELECT id FROM own)
    ORDER BY quote_id, id LIMIT $2)
)
{_POOL} JOIN found ON found.id = pool.id
ORDER BY (pool.id IN (SELECT id FROM first)) DESC, (pool.token_id = (SELECT id FROM own)) DESC,
    pool.in_money_from IS NULL, pool.block_number, pool.log_index
LIMIT $2
"""  # noqa: S608


async def venues_of(connection: Connection, token: Address, limit: int) -> list[PoolPlace]:
    """At most ``limit`` places where ``token`` may trade, for any currency and on either side: the launch's
    own places first, then those where it is the token side, for money, then the oldest. If ``limit`` are
    returned there may be more, since anybody can open a pool. ``spot``: when the place was opened."""
    rows = await fetch(connection, tuple[int, PoolPlace], _VENUES, as_bytes(token), limit)
    return [pool for _, pool in rows]


# $1 the token, $2 places, $3 the limit for each side
_BEYOND = f"""
WITH own AS MATERIALIZED (SELECT id FROM facts.address WHERE address = $1),
found AS MATERIALIZED (
    (SELECT * FROM facts.pool WHERE token_id BETWEEN (SELECT id FROM own) AND (SELECT id FROM own)
    ORDER BY token_id, id LIMIT $3)
    UNION ALL
    (SELECT * FROM facts.pool WHERE quote_id BETWEEN (SELECT id FROM own) AND (SELECT id FROM own)
    ORDER BY quote_id, id LIMIT $3)
), beyond AS MATERIALIZED (
    SELECT id, at_s FROM found WHERE in_money_from IS NOT NULL AND NOT at = ANY($2::bytea[])
)
SELECT (SELECT count(*) FROM found) >= $3
    OR EXISTS (SELECT FROM beyond WHERE at_s < (SELECT trades_from_s FROM facts.cursor))
    OR EXISTS (
        SELECT FROM beyond CROSS JOIN LATERAL facts.trades_by_second(beyond.id, 0, {partitions.LAST_S}, 1)
    )
"""  # noqa: S608
_MAX_BEYOND = 4096


async def may_trade_beyond(connection: Connection, token: Address, places: Iterable[str]) -> bool:
    """Whether ``token`` was traded for money anywhere but at ``places``, or may have been: it is not known of
    places older than the stored trades, nor of more than some thousand places. Empty places do not count,
    since anybody can open one."""
    encoded = [as_bytes(at) for at in places]
    return bool(await fetch_optional(connection, bool, _BEYOND, as_bytes(token), encoded, _MAX_BEYOND))


async def pools_no_check_trades(connection: Connection, token_id: int, limit: int) -> list[OtherPool]:
    """At most ``limit`` pools of the token against a currency that is not money, or where it is the money."""
    return await fetch(
        connection,
        OtherPool,
        "SELECT pool.at, against.address AS against FROM facts.pool AS pool JOIN facts.address AS against ON "
        "against.id = CASE WHEN pool.quote_id = $1 THEN pool.token_id ELSE pool.quote_id END WHERE "
        "pool.quote_id = $1 OR (pool.in_money_from IS NULL AND pool.token_id = $1) LIMIT $2",
        token_id,
        limit,
    )


async def launched_among(connection: Connection, tokens: Iterable[Address]) -> set[Address]:
    """Those of the tokens that a launchpad launched."""
    launched = await fetch_values(
        connection,
        Address,
        "SELECT address.address FROM facts.launch AS launch JOIN facts.address AS address"
        " ON address.id = launch.token_id WHERE address.address = ANY($1::bytea[])",
        [as_bytes(token) for token in tokens],
    )
    return set(launched)


async def launch_quotes(connection: Connection) -> set[Address]:
    """The quotes that launches were made against, without eth, weth and usdg."""
    quotes = await fetch_values(
        connection,
        Address,
        "SELECT address.address FROM facts.launch_quote AS quote"
        " JOIN facts.address AS address ON address.id = quote.quote_id",
    )
    return set(quotes)


async def newest_prices(connection: Connection) -> dict[Address, Price]:
    """The newest price of every quote that has one."""
    # Steps along the key from quote to quote: the table has a row for nearly every block.
    rows = await fetch(
        connection,
        Price,
        "WITH RECURSIVE newest AS ((SELECT * FROM facts.price ORDER BY quote_id DESC, block_number DESC "
        "LIMIT 1) UNION ALL SELECT lower.* FROM newest, LATERAL (SELECT * FROM facts.price WHERE "
        "price.quote_id < newest.quote_id ORDER BY quote_id DESC, block_number DESC LIMIT 1) AS lower) "
        "SELECT quote.address AS quote, newest.block_number, newest.at_s, pool.at, newest.usdg_raw, "
        "newest.depth_raw FROM newest JOIN facts.address AS quote ON quote.id = newest.quote_id JOIN "
        "facts.pool AS pool ON pool.id = newest.pool_id",
    )
    return {price.quote: price for price in rows}
