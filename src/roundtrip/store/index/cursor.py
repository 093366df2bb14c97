"""How far the chain was followed, and what is known of it up to there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import asyncpg

from roundtrip.domain.base.events import PoolPlace, Price, Spot
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.store.server.hex import as_address, as_bytes, as_text
from roundtrip.store.server.rows import Connection

BLOCKS_KEPT = 2048
"""By which a fork is found: three and a half minutes of a chain that makes ten a second."""
CHECKPOINT_BLOCKS = 1000
"""Of older blocks every so many is kept for ever."""
MOST_IDS = 50_000


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far the chain was followed. ``start_number``: the first block that was read in full.
    ``older_number``: of those before it the next one whose launches and pools are to be read.
    ``trades_from_s``: raw trades are kept from then on. ``first_hash``: of the chain's block 0. ``rewinds``:
    another number whenever blocks were taken away."""

    start_number: int
    block: BlockRef
    older_number: int = 0
    trades_from_s: int = field(default=0, compare=False)
    first_hash: str = field(default="0x", compare=False)
    is_local: bool = field(default=False, compare=False)
    rewinds: int = field(default=0, compare=False)

    def is_whole(self) -> bool:
        """Whether it has every place that there ever was up to its block."""
        return self.older_number >= self.start_number


@dataclass(slots=True)
class Ids:
    """Interned addresses and places, as far as they are remembered; forgotten when a transaction fails."""

    addresses: dict[str, int] = field(default_factory=dict)
    pools: dict[str, int] = field(default_factory=dict)

    def clear(self) -> None:
        """What a transaction that failed gave away is gone."""
        self.addresses.clear()
        self.pools.clear()

    def trim(self) -> None:
        """Keeps it bounded."""
        for memory in (self.addresses, self.pools):
            if len(memory) > MOST_IDS:
                memory.clear()


# --- the cursor ------------------------------------------------------------------------------------


async def cursor(connection: Connection) -> Cursor | None:
    """Where the sync stands; None: it never began."""
    row = await connection.fetchrow(
        "SELECT start_number, older_number, number, hash, at_s, trades_from_s, first_hash, is_local,"
        " rewinds FROM facts.cursor"
    )
    if row is None:
        return None
    block = BlockRef(row["number"], as_text(row["hash"]), row["at_s"])
    whose = row["trades_from_s"], as_text(row["first_hash"]), row["is_local"], row["rewinds"]
    return Cursor(row["start_number"], block, row["older_number"], *whose)


async def newest_number(connection: Connection) -> int | None:
    """The number of the newest block that was followed; None: the sync never began."""
    found: int | None = await connection.fetchval("SELECT number FROM facts.cursor")
    return found


async def begin(
    connection: Connection,
    first: int,
    parent: BlockRef,
    first_hash: str = "0x",
    is_local: bool = False,
) -> None:
    """The sync begins with block ``first``, on ``parent``, of the chain whose block 0 has ``first_hash``.
    Where it began already nothing changes."""
    await connection.execute(
        "INSERT INTO facts.cursor (start_number, number, hash, at_s, first_hash, is_local, rewinds)"
        " VALUES ($1, $2, $3, $4, $5, $6, nextval('facts.rewinds')) ON CONFLICT DO NOTHING",
        first,
        parent.number,
        as_bytes(parent.hash),
        parent.timestamp_s,
        as_bytes(first_hash),
        is_local,
    )


async def adopt(connection: Connection, first_hash: str) -> None:
    """From here on it is the chain whose block 0 has ``first_hash``: a local one was made anew."""
    await connection.execute("UPDATE facts.cursor SET first_hash = $1", as_bytes(first_hash))


async def advance(connection: Connection, parent_hash: str, last: BlockRef) -> int | None:
    """Moves the cursor from ``parent_hash`` to ``last``; None: it stands elsewhere. The row stays locked
    until the transaction ends, so of two writers one waits, and then finds it moved. Gives how often somebody
    else changed what was folded before: who remembers anything of that reads it again."""
    changes: int | None = await connection.fetchval(
        "UPDATE facts.cursor SET number = $2, hash = $3, at_s = $4, rewinds ="
        " CASE WHEN $2 < number THEN nextval('facts.rewinds') ELSE rewinds END"
        " WHERE hash = $1 RETURNING changes",
        as_bytes(parent_hash),
        last.number,
        as_bytes(last.hash),
        last.timestamp_s,
    )
    return changes


async def advance_older(connection: Connection, at: Cursor, older_number: int) -> int | None:
    """The same for launches and pools of older blocks, which are known up to ``older_number`` then. None: the
    cursor is not as it was ``at``."""
    changes: int | None = await connection.fetchval(
        "UPDATE facts.cursor SET older_number = $3 WHERE hash = $1 AND older_number = $2 RETURNING changes",
        as_bytes(at.block.hash),
        at.older_number,
        older_number,
    )
    return changes


async def forget_older(connection: Connection, number: int) -> bool:
    """Older blocks are to be read again, where the cursor went back to ``number`` before the first block;
    whether it did."""
    start: int | None = await connection.fetchval(
        "UPDATE facts.cursor SET older_number = 0 WHERE start_number > $1 RETURNING start_number", number
    )
    return start is not None


async def forget_retired(connection: Connection) -> None:
    """What was folded of trades that are gone goes, too: all of it is read anew."""
    await connection.execute("DELETE FROM facts.position_base")
    await connection.execute("UPDATE facts.cursor SET trades_from_s = 0")


async def hold(connection: Connection) -> int | None:
    """Keeps the cursor where it is until the transaction ends, to change what was folded up to there. Gives
    the time from which on trades are kept; None: nothing was ever followed."""
    from_s: int | None = await connection.fetchval(
        "UPDATE facts.cursor SET changes = changes + 1 RETURNING trades_from_s"
    )
    return from_s


async def trades_gone(connection: Connection, before_s: int) -> None:
    """Notes that no trade from before then is kept."""
    await connection.execute("UPDATE facts.cursor SET trades_from_s = greatest(trades_from_s, $1)", before_s)


async def last_address(connection: Connection) -> int:
    """The highest number that an address has; 0 where there is none."""
    number: int = await connection.fetchval("SELECT coalesce(max(id), 0) FROM facts.address")
    return number


async def keep_blocks(connection: Connection, blocks: Sequence[BlockRef]) -> None:
    """Remembers the blocks by which a fork is found, and forgets most of the older ones."""
    last = blocks[-1].number
    kept = [b for b in blocks if b.number > last - BLOCKS_KEPT or b.number % CHECKPOINT_BLOCKS == 0]
    await connection.execute(
        "INSERT INTO facts.block (number, hash, at_s)"
        " SELECT * FROM unnest($1::int[], $2::bytea[], $3::int[])",
        [block.number for block in kept],
        [as_bytes(block.hash) for block in kept],
        [block.timestamp_s for block in kept],
    )
    await connection.execute(
        "DELETE FROM facts.block WHERE number > $1 AND number <= $2 AND number % $3 <> 0",
        blocks[0].number - BLOCKS_KEPT - 1,
        last - BLOCKS_KEPT,
        CHECKPOINT_BLOCKS,
    )


async def blocks_kept(connection: Connection) -> list[BlockRef]:
    """The blocks by which a fork is found, oldest first."""
    rows = await connection.fetch("SELECT number, hash, at_s FROM facts.block ORDER BY number")
    return [BlockRef(row["number"], as_text(row["hash"]), row["at_s"]) for row in rows]


# --- what was before -------------------------------------------------------------------------------

_POOL = (
    "SELECT pool.id, pool.at, pool.kind, token.address AS token, quote.address AS quote, pool.in_money_from,"
    " pool.fee_pips, pool.tick_spacing, hook.address AS hook, pool.block_number, pool.log_index, pool.at_s"
    " FROM facts.pool AS pool JOIN facts.address AS token ON token.id = pool.token_id"
    " JOIN facts.address AS quote ON quote.id = pool.quote_id"
    " LEFT JOIN facts.address AS hook ON hook.id = pool.hook_id"
)


async def pools_at(connection: Connection, places: Iterable[str], ids: Ids) -> dict[str, PoolPlace]:
    """The pools at these places, as far as there are any."""
    rows = await connection.fetch(
        f"{_POOL} WHERE pool.at = ANY($1::bytea[])", [as_bytes(at) for at in places]
    )
    return {pool.at: pool for pool in _pools(rows, ids)}


async def unpaid_pools_of(
    connection: Connection, quotes: Iterable[Address], ids: Ids
) -> dict[str, PoolPlace]:
    """The pools of these that are in nobody's money so far."""
    given = [as_bytes(quote) for quote in quotes]
    rows = await connection.fetch(
        f"{_POOL} WHERE pool.in_money_from IS NULL AND (token.address = ANY($1::bytea[])"
        " OR quote.address = ANY($1::bytea[]))",
        given,
    )
    return {pool.at: pool for pool in _pools(rows, ids)}


async def pools_of(connection: Connection, token: Address, most: int) -> list[PoolPlace]:
    """Where ``token`` trades for money, the oldest places first."""
    rows = await connection.fetch(
        f"{_POOL} WHERE pool.in_money_from IS NOT NULL"  # noqa: S608
        " AND pool.token_id = (SELECT id FROM facts.address WHERE address = $1)"
        " ORDER BY pool.block_number, pool.log_index LIMIT $2",
        as_bytes(token),
        most,
    )
    return _pools(rows, Ids())


_VENUES = f"""
WITH own AS MATERIALIZED (SELECT id FROM facts.address WHERE address = $1),
first AS MATERIALIZED (
    -- Its launch's own place, and what was opened as that became a pool: before whatever anybody else opened.
    SELECT pool.id FROM facts.launch AS launch JOIN facts.pool AS pool ON pool.at = launch.at
    WHERE launch.token_id = (SELECT id FROM own)
    UNION
    SELECT pool.id FROM facts.launch_step AS step JOIN facts.pool AS pool
        ON pool.block_number = step.block_number AND pool.token_id = step.token_id
    WHERE step.token_id = (SELECT id FROM own)
), found AS MATERIALIZED (
    -- BETWEEN, and in that order: else all pools that there are would be walked by their ids.
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


async def venues_of(connection: Connection, token: Address, most: int) -> list[PoolPlace]:
    """Every place where ``token`` may trade, whatever for, on whichever side it stands: the launch's own
    places first, then those where it is what is traded, for money, then the oldest. Where there are ``most``
    there may be more: anybody can open some. ``spot`` tells when each was opened."""
    return _pools(await connection.fetch(_VENUES, as_bytes(token), most), Ids())


# $1 the token, $2 places, $3 at most so many on each side
_BEYOND = """
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
    OR EXISTS (SELECT FROM beyond CROSS JOIN LATERAL (
        SELECT 1 FROM facts.trade AS trade WHERE trade.pool_id = beyond.id LIMIT 1) AS one)
"""
_MOST_BEYOND = 4096


async def may_trade_beyond(connection: Connection, token: Address, places: Iterable[str]) -> bool:
    """Whether ``token`` was traded for money anywhere but at ``places``, or may have been: of places that are
    older than the trades that are kept, or beyond some thousand, nobody knows. Anybody can open empty
    ones."""
    given = as_bytes(token), [as_bytes(at) for at in places], _MOST_BEYOND
    return bool(await connection.fetchval(_BEYOND, *given))


async def unpaid_places_of(connection: Connection, token: Address, most: int) -> list[str]:
    """Pools of ``token`` against what is nobody's money, or where it is the money itself."""
    rows = await connection.fetch(
        "SELECT at FROM facts.pool WHERE quote_id = (SELECT id FROM facts.address WHERE address = $1)"
        " OR (in_money_from IS NULL AND token_id = (SELECT id FROM facts.address WHERE address = $1))"
        " LIMIT $2",
        as_bytes(token),
        most,
    )
    return [as_text(row["at"]) for row in rows]


def _pools(rows: Sequence[asyncpg.Record], ids: Ids) -> list[PoolPlace]:
    found = []
    for row in rows:
        at = as_text(row["at"])
        ids.pools[at] = row["id"]
        spot = Spot(row["block_number"], row["log_index"], row["at_s"], TxHash(""))
        hook = None if row["hook"] is None else as_address(row["hook"])
        token, quote = as_address(row["token"]), as_address(row["quote"])
        fee, spacing = row["fee_pips"], row["tick_spacing"]
        found.append(PoolPlace(at, row["kind"], token, quote, row["in_money_from"], fee, spacing, hook, spot))
    return found


async def launched_among(connection: Connection, tokens: Iterable[Address]) -> set[Address]:
    """Which of these tokens a launchpad launched."""
    rows = await connection.fetch(
        "SELECT address.address FROM facts.launch AS launch JOIN facts.address AS address"
        " ON address.id = launch.token_id WHERE address.address = ANY($1::bytea[])",
        [as_bytes(token) for token in tokens],
    )
    return {as_address(row["address"]) for row in rows}


async def launch_quotes(connection: Connection) -> set[Address]:
    """What launches were made against, eth, weth and usdg left out."""
    rows = await connection.fetch(
        "SELECT address.address FROM facts.launch_quote AS quote"
        " JOIN facts.address AS address ON address.id = quote.quote_id"
    )
    return {as_address(row["address"]) for row in rows}


async def newest_prices(connection: Connection) -> dict[Address, Price]:
    """The newest price of every quote that has one."""
    # From quote to quote along the key: there is a row for nearly every block, and they are many.
    rows = await connection.fetch(
        "WITH RECURSIVE newest AS ("
        "(SELECT * FROM facts.price ORDER BY quote_id DESC, block_number DESC LIMIT 1)"
        " UNION ALL SELECT lower.* FROM newest, LATERAL (SELECT * FROM facts.price"
        " WHERE price.quote_id < newest.quote_id ORDER BY quote_id DESC, block_number DESC LIMIT 1) AS lower"
        ") SELECT quote.address, newest.block_number, newest.at_s, pool.at, newest.usdg_raw, newest.depth_raw"
        " FROM newest JOIN facts.address AS quote ON quote.id = newest.quote_id"
        " JOIN facts.pool AS pool ON pool.id = newest.pool_id"
    )
    found = {}
    for row in rows:
        quote, at = as_address(row["address"]), as_text(row["at"])
        raw = int(row["usdg_raw"]), int(row["depth_raw"])
        found[quote] = Price(quote, row["block_number"], row["at_s"], at, *raw)
    return found
