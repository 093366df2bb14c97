"""Fills a migrated database with a made-up history, straight into the tables of facts.

    PYTHONPATH=src python -m bench.index_filler DSN --trades 240000

Rows come from ``made_lives``, by COPY, a day of UTC after the other: while one is written the next is made.
Indexes go before and come back afterwards. Addresses, blocks and prices are made by the database itself.
"""

import argparse
import asyncio
import io
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import asyncpg

from roundtrip.config.networks import ROBINHOOD
from roundtrip.domain.market.profit import WalletPosition
from roundtrip.store.index.positions import fills_of_wallets, reset_wallets
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.partitions import DAILY, DAY_S, partition_of
from roundtrip.store.server.rows import Connection
from roundtrip.sync.position_fold import fold_onto

from . import made_lives
from .made_cast import FIRST_BLOCK, Cast, Scale
from .made_up import ETH_USD, LINE_COLUMNS, World
from .schema_adopter import DERIVED, Change, columns, indexes, put_column

LAST_S = 1_790_020_000
"""A September evening, UTC: the last 24 hours lie in two partitions."""
PRICED_BLOCKS = 4
"""Of so many blocks one tells a price."""
PLAIN = (
    "address", "block", "pool", "launch", "launch_step", "price", "origin", "position", "closing", "curve",
    "inside", "token",
)  # fmt: skip
REBUILT = 200
"""Wallets in a range. Their trades are folded again, to verify that the result is the same."""
BY_MAKER = ("pool", "launch", "launch_step", "position", "closing", "curve", "inside")
COLUMNS = LINE_COLUMNS | {"position": ("wallet_id", "token_id", *WalletPosition._fields)}
Say = Callable[[str], None]


class Made(NamedTuple):
    """Bytes in COPY's text form: of one day, and of the tables that are not cut into days."""

    day: int
    daily: dict[str, bytes]
    plain: dict[str, bytes]


async def fill(dsn: str, scale: Scale, say: Say = print) -> None:
    """Empties the tables of facts and fills them. Minutes for millions."""
    connection = await asyncpg.connect(dsn, command_timeout=1800)
    try:
        await migrate(connection)
        await connection.execute("SET maintenance_work_mem = '1GB'; SET work_mem = '256MB'")
        await _empty(connection)
        dropped = {table: await _without_indexes(connection, table) for table in PLAIN}
        derived = [column for place, column in (await columns(connection)).items() if place in DERIVED]
        for column in derived:
            await connection.execute(f"ALTER TABLE facts.{column.table} DROP COLUMN {column.name}")
        world = World(scale)
        await _timed(say, "trades and what they make", _write_history(connection, world, say))
        await _timed(say, "origins", _write_origins(connection, world))
        await _timed(say, "addresses", _write_addresses(connection, world))
        await _timed(say, "blocks and prices", _write_blocks(connection, scale))
        await _timed(say, "symbols", _write_tokens(connection, scale))
        for column in derived:
            await put_column(connection, column)
        await _timed(say, "indexes", _with_indexes(connection, dropped))
        await _timed(say, "evidence", _write_evidence(connection, scale))
        await _begin_identities(connection, world)
        for first in (Cast.TRADERS[-REBUILT], (Cast.FIRST_WALLET + world.cast.end) // 2):
            await _timed(say, f"rebuilt from {first}", _rebuilt_alike(connection, first, first + REBUILT))
        await _timed(say, "VACUUM ANALYZE", connection.execute("VACUUM (ANALYZE)"))
    finally:
        await connection.close()


async def _timed(say: Say, what: str, doing: Awaitable[object]) -> None:
    began = time.perf_counter()
    await doing
    say(f"  {what:30} {time.perf_counter() - began:7.1f} s")


# --- the tables ------------------------------------------------------------------------------------


async def _empty(connection: Connection) -> None:
    names = await connection.fetch(
        "SELECT format('facts.%I', relname) AS name FROM pg_class WHERE relnamespace = 'facts'::regnamespace"
        " AND relkind IN ('r', 'p') AND NOT relispartition"
    )
    await connection.execute(f"TRUNCATE {', '.join(row['name'] for row in names)} RESTART IDENTITY CASCADE")
    for table in DAILY:
        for row in await connection.fetch(
            "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = $1::text::regclass",
            table,
        ):
            await connection.execute(f"DROP TABLE {row['name']}")


async def _without_indexes(connection: Connection, table: str) -> list[Change]:
    """Takes a table's keys and indexes away; how to have them again."""
    found = await indexes(connection, table)
    for index in found:
        await connection.execute(index.drop)
    return found


async def _with_indexes(connection: Connection, dropped: dict[str, list[Change]]) -> None:
    for table in PLAIN:
        for index in dropped[table]:
            await connection.execute(index.make)


async def _copy(connection: Connection, table: str, columns: Sequence[str], text: bytes) -> None:
    if text:
        await connection.copy_to_table(
            table, schema_name="facts", columns=list(columns), source=io.BytesIO(text), format="text"
        )


async def _write_day(connection: Connection, table: str, day: int, text: bytes) -> None:
    """One day's partition; its indexes are made when it is attached."""
    whole = next(name for name in DAILY if name == f"facts.{table}")
    name = partition_of(whole, datetime.fromtimestamp(day * DAY_S, UTC).date())
    async with connection.transaction():
        await connection.execute(
            f"CREATE TABLE {name} (LIKE {whole} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
        )
        await _copy(connection, name.removeprefix("facts."), COLUMNS[table], text)
        await connection.execute(
            f"ALTER TABLE {whole} ATTACH PARTITION {name}"
            f" FOR VALUES FROM ({day * DAY_S}) TO ({(day + 1) * DAY_S})"
        )


# --- the history -----------------------------------------------------------------------------------


def _made(world: World, lives: made_lives.Lives) -> Iterator[Made]:
    """Day after day, in the bytes that are written."""
    scale = world.scale
    for day in range(scale.first_s // DAY_S, (scale.last_s - 1) // DAY_S + 1):
        lives.play(max(scale.first_s, day * DAY_S), min(scale.last_s, (day + 1) * DAY_S))
        if day == (scale.last_s - 1) // DAY_S:
            lives.end()
        tables = [name.removeprefix("facts.") for name in DAILY]
        daily = {table: "".join(world.rows.take_day(table, day)).encode() for table in tables}
        yield Made(day, daily, {table: "".join(world.rows.take(table)).encode() for table in BY_MAKER})


async def _write_history(connection: Connection, world: World, say: Say) -> None:
    lives = made_lives.Lives(world)
    days = _made(world, lives)
    making = asyncio.create_task(asyncio.to_thread(next, days, None))
    while (made := await making) is not None:
        making = asyncio.create_task(asyncio.to_thread(next, days, None))
        for table, text in made.daily.items():
            await _write_day(connection, table, made.day, text)
        for table, text in made.plain.items():
            await _copy(connection, table, COLUMNS[table], text)
        say(f"  {datetime.fromtimestamp(made.day * DAY_S, UTC):%Y-%m-%d}: {world.trades:,} trades made")
    chance = random.Random(world.scale.seed)
    symbols = "".join(
        f"{token}\t{made_lives.symbol(chance)}\n"
        for token, launched in lives.played
        if launched or token % 3 == 0
    )
    await connection.execute("CREATE TEMPORARY TABLE named (token_id int, symbol text)")
    await connection.copy_to_table("named", source=io.BytesIO(symbols.encode()), format="text")


async def _write_origins(connection: Connection, world: World) -> None:
    cast, scale = world.cast, world.scale

    def lines() -> Iterator[str]:
        for wallet, funder in cast.funders():
            block = cast.birth(wallet)
            at_s = scale.at_s(block)
            known = f"{funder}\t{block}\t{at_s}" if funder else "\\N\t\\N\t\\N"
            yield f"{wallet}\t{block}\t{at_s}\t{known}\n"

    text = await asyncio.to_thread(lambda: "".join(lines()).encode())
    columns = ("wallet_id", "first_number", "first_s", "funder_id", "funded_number", "funded_s")
    await _copy(connection, "origin", columns, text)


async def _write_addresses(connection: Connection, world: World) -> None:
    """Every number its address: random bytes that are always the same."""
    network = ROBINHOOD.contracts
    known = {
        Cast.ZERO: "0x" + "00" * 20,
        Cast.WETH: network.weth,
        Cast.USDG: network.usdg,
        Cast.MANAGER: network.v4_pool_manager,
        Cast.HOOK: str(network.launchpad_hook),
        Cast.LAUNCHPAD: str(network.launchpad_factory),
    }
    await connection.execute(
        "INSERT INTO facts.address (id, address) OVERRIDING SYSTEM VALUE"
        " SELECT n, decode(substr(md5('a' || n) || md5('b' || n), 1, 40), 'hex')"
        " FROM generate_series($1::int, $2::int) AS n",
        max(known) + 1,
        world.tokens - 1,
    )
    await connection.executemany(
        "INSERT INTO facts.address (id, address) OVERRIDING SYSTEM VALUE VALUES ($1, $2)",
        [(number, bytes.fromhex(address[2:])) for number, address in known.items()],
    )


async def _write_blocks(connection: Connection, scale: Scale) -> None:
    """Blocks by which a fork is found, where the sync stands, and prices."""
    last = scale.last_block
    await connection.execute(
        "INSERT INTO facts.block (number, hash, at_s)"
        " SELECT n, decode(md5('h' || n) || md5('g' || n), 'hex'), $1 + (n - $2) / 10"
        " FROM generate_series($2::int, $3::int) AS n WHERE n > $3 - 2048 OR n % 1000 = 0",
        scale.first_s,
        FIRST_BLOCK,
        last,
    )
    await connection.execute(
        "INSERT INTO facts.cursor (start_number, number, hash, at_s, older_number, first_hash)"
        " SELECT $1, number, hash, at_s, $1, hash FROM facts.block WHERE number = $2",
        FIRST_BLOCK,
        last,
    )
    await connection.execute(
        "INSERT INTO facts.price (quote_id, block_number, at_s, pool_id, usdg_raw, depth_raw)"
        " SELECT $4, n, $1 + (n - $2) / 10, 1, $5::int * 1000000::numeric + n % 9999999, 2000000000000 + n"
        " FROM generate_series($2::int, $3::int, $6::int) AS n",
        scale.first_s,
        FIRST_BLOCK,
        last,
        Cast.WETH,
        ETH_USD,
        PRICED_BLOCKS,
    )


async def _write_tokens(connection: Connection, scale: Scale) -> None:
    """What launched tokens say of themselves, and a third of the others that trade."""
    await connection.execute(
        "INSERT INTO facts.token (token, symbol, name, decimals, supply_raw, read_number, symbol_key)"
        " SELECT address.address, named.symbol, named.symbol || ' coin', 18, trunc(10::numeric ^ 27), $1,"
        " lower(named.symbol) FROM named JOIN facts.address AS address ON address.id = named.token_id",
        scale.last_block,
    )


async def _write_evidence(connection: Connection, scale: Scale) -> None:
    """Checks of most tokens that were traded in the last hours, one in twelve of them a trap."""
    await connection.execute(
        "INSERT INTO facts.evidence (checked_at, token, block_number, policy_version, verdict_code,"
        " verdict_level, document, asked) SELECT to_timestamp($1 - n % 3000), address.address,"
        " $2::int - (n % 3000) * 10, 'bench', CASE WHEN n % 12 = 0 THEN 'cannot_sell' ELSE 'ok' END,"
        " CASE WHEN n % 12 = 0 THEN 'danger' ELSE 'ok' END, '{}'::bytea, n % 3 = 0 FROM ("
        "  SELECT token_id, row_number() OVER (ORDER BY token_id)::int AS n FROM ("
        "  SELECT DISTINCT pool.token_id FROM facts.trade AS trade"
        "  JOIN facts.pool AS pool ON pool.id = trade.pool_id WHERE trade.at_s > $1 - 7200) AS traded"
        ") AS numbered JOIN facts.address AS address ON address.id = numbered.token_id WHERE n % 5 <> 0",
        scale.last_s,
        scale.last_block,
    )


async def _rebuilt_alike(connection: Connection, first: int, end: int) -> None:
    """Folds some wallets' trades out of the database, as ``sync/position_fold`` does, and compares: what was
    written beside them has to be the same to the last unit. Changes nothing."""

    async def told() -> list[str]:
        return [
            await connection.fetchval(
                f"SELECT md5(string_agg(one::text, ' ' ORDER BY one::text)) FROM facts.{table} AS one"  # noqa: S608
                " WHERE wallet_id >= $1 AND wallet_id < $2",
                first,
                end,
            )
            for table in ("position", "closing")
        ]

    before, transaction = await told(), connection.transaction()
    await transaction.start()
    await reset_wallets(connection, first, end, 0)
    trades = fills_of_wallets(connection, first, end, ROBINHOOD.contracts)
    await fold_onto(connection, "position", trades, puts_closings=True)
    after = await told()
    await transaction.rollback()
    if None in before or after != before:
        raise AssertionError(f"the wallets from {first} to {end} have other positions than their trades make")


async def _begin_identities(connection: Connection, world: World) -> None:
    for table, last in (("address", world.tokens - 1), ("pool", world.pools)):
        await connection.fetchval(
            "SELECT setval(pg_get_serial_sequence($1, 'id'), $2)", f"facts.{table}", last
        )


def main() -> None:
    """Fills the database that is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dsn")
    parser.add_argument("--trades", type=int, default=240_000)
    parser.add_argument("--last-s", type=int, default=LAST_S)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    asyncio.run(fill(asked.dsn, Scale(asked.trades, asked.last_s, asked.seed)))


if __name__ == "__main__":
    main()
