"""Measures the index's largest tables on the nodes of a database with Citus, beside one PostgreSQL.

    make bench NAME=shards FLAGS='COORDINATOR_URL WORKER_URL [WORKER_URL ...] [--trades 500000]
        [--runs 100] [--stop COMMAND --start COMMAND] [--statements]'

The urls name servers with Citus (``deploy/citus/local.sh`` starts some on this machine). Two databases are
made on them, and left there until the next run: one plain, one distributed. Both are filled with the same
trades, positions and closings. Printed: bytes on each node, and the median and 95th percentile of statements
as the store has them, asked of each database in turn.

--stop, --start  end the last worker's server and start it again: what each statement raises meanwhile
--statements     instead: which of the store's statements Citus plans with its tables placed like this
"""

import argparse
import ast
import asyncio
import contextlib
import datetime
import importlib
import pkgutil
import re
import shlex
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import asyncpg
from deploy.citus.join import join

import roundtrip.store
from roundtrip.domain.base.types import BlockRef
from roundtrip.store.boards import price_candles
from roundtrip.store.index import cursor
from roundtrip.store.server import partitions
from roundtrip.store.server.migrate import migrate, place
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets import wallets

from .timing import Times, timed

ONE, SHARDED = "bench_one", "bench_sharded"
DAYS, DAY_S, FIRST_S = 7, partitions.DAY_S, 1_760_054_400
TRADES_A_POOL, TRADES_A_WALLET, AT_ONCE = 200, 20, 100_000
_FILL = (
    "INSERT INTO facts.trade (micro_usd, at_s, block_number, log_index, pool_id, trader_id, buys, token_raw,"
    " quote_raw, eth_wei, tx_hash) SELECT n % 1000000, $3::int + (n * $4::bigint / $5)::int, n / 8, n % 8,"
    " 1 + (n * 7919::bigint % $6)::int, 1 + (n * 104729::bigint % $7)::int, n % 2 = 0,"
    " (1 + n % 999983) * 10::numeric ^ 18, (1 + n % 9973) * 10::numeric ^ 15, NULL,"
    " decode(md5(n::text) || md5((-n)::text), 'hex') FROM generate_series($1::int, $2::int) AS n",
    "INSERT INTO facts.position SELECT 1 + n / 5, 1 + n % 5000, 10 ^ 24, 10 ^ 23, 10 ^ 23, 10 ^ 17, 10 ^ 18,"
    " 10 ^ 18, 10 ^ 17, 5000000, 3, 2, 0, 1, 0, 0, 0, 0, 1, $3::int, $3::int + n % $4::int"
    " FROM generate_series($1::int, $2::int) AS n WHERE $5::int + $6::int + $7::int > 0 AND n % 4 = 0",
    "INSERT INTO facts.closing SELECT n / 8, n % 8, $3::int + n % $4::int, 1 + n / 5, 1 + n % 5000,"
    " 10 ^ 17, 2 * 10 ^ 17"
    " FROM generate_series($1::int, $2::int) AS n WHERE $5::int + $6::int + $7::int > 0 AND n % 6 = 0",
)
"""$1 to $2 rows; $3 the first second, $4 seconds in all, $5 trades, $6 pools, $7 wallets."""
# As price_candles.newest_trades, of one pool: its id stands in the subquery, too, and so the whole statement
# goes to the pool's shard. Citus refuses it otherwise.
_NEWEST = price_candles._TRADES.replace(
    "given.pool_id ORDER", "given.pool_id AND trade.pool_id = ANY($1) ORDER"
)
_WINDOW = "SELECT pool_id, sum(quote_raw) FROM facts.trade WHERE at_s > $1 AND at_s <= $2 GROUP BY pool_id"
Ask = Callable[[Connection, int], Awaitable[object]]


def named(url: str, name: str) -> str:
    """The address of another database of the same server."""
    return re.sub(r"^(postgres(?:ql)?://[^/?]*)(?:/[^?]*)?", rf"\g<1>/{name}", url)


@contextlib.asynccontextmanager
async def databases(urls: Sequence[str]) -> AsyncIterator[tuple[Connection, Connection]]:
    """Connections to a plain database and to a distributed one."""
    async with contextlib.AsyncExitStack() as stack:
        for url, names in [(urls[0], (ONE, SHARDED)), *((url, (SHARDED,)) for url in urls[1:])]:
            admin = await asyncpg.connect(url)
            stack.push_async_callback(admin.close)
            for name in names:
                await admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
                await admin.execute(f"CREATE DATABASE {name}")
        await join([named(url, SHARDED) for url in urls])
        found = []
        for name in (ONE, SHARDED):
            found.append(await asyncpg.connect(named(urls[0], name)))
            stack.push_async_callback(found[-1].close)
            await migrate(found[-1])
        await place(found[1])
        yield found[0], found[1]


async def fill(connection: Connection, trades: int) -> None:
    """As many trades over a week, with a position for four of them and a closing for six."""
    for from_s in range(FIRST_S, FIRST_S + DAYS * DAY_S, DAY_S):
        await partitions.ensure(connection, "facts.trade", from_s, from_s)
    scale = (FIRST_S, DAYS * DAY_S - 1, trades, trades // TRADES_A_POOL, trades // TRADES_A_WALLET)
    for first in range(0, trades, AT_ONCE):
        for statement in _FILL:
            await connection.execute(statement, first, min(first + AT_ONCE, trades) - 1, *scale)
    at = "decode(lpad(to_hex(n), 40, '0'), 'hex') FROM generate_series(1, $1::int) AS n"
    await connection.execute(f"INSERT INTO facts.address (address) SELECT {at}", trades // TRADES_A_WALLET)
    await connection.execute(
        "INSERT INTO facts.pool (kind, token_id, quote_id, in_money_from, fee_pips, tick_spacing,"
        f" block_number, log_index, at_s, at) SELECT 'curve', 1, 1, 1, 10000, 1, 1, 1, 1, {at}",
        trades // TRADES_A_POOL,
    )
    await cursor.begin(connection, 1, BlockRef(0, "0x" + "ab" * 32, FIRST_S))
    await connection.execute("ANALYZE")


def questions(trades: int) -> dict[str, Ask]:
    """What is asked, by its name; with the number of the run."""
    pools, holders, end_s = trades // TRADES_A_POOL, trades // 5, FIRST_S + DAYS * DAY_S

    async def write(connection: Connection, n: int) -> None:
        columns = (
            "at_s", "block_number", "log_index", "pool_id", "trader_id", "buys", "token_raw", "quote_raw",
            "tx_hash",
        )  # fmt: skip
        rows = [
            (end_s - 1, 2**30 + n, m, 1 + (n + m) % pools, 1, True, Decimal(10), Decimal(10), b"\1" * 32)
            for m in range(100)
        ]
        async with connection.transaction():
            await connection.execute("UPDATE facts.cursor SET number = number + 1")
            await connection.copy_records_to_table(
                "trade", schema_name="facts", columns=columns, records=rows
            )

    return {
        "a pool's newest 50 trades": lambda c, n: c.fetch(_NEWEST, [1 + n * 37 % pools], 50),
        "a chart of a pool, 7 days by the hour": lambda c, n: c.fetch(
            price_candles._CANDLES, 1 + n * 37 % pools, None, FIRST_S, end_s, 2000, 3600
        ),
        "a wallet's positions, summed": lambda c, n: c.fetch(
            wallets._TRADED, 1 + n * 97 % holders, 1000, FIRST_S
        ),
        "ten minutes of all trades, by pool": lambda c, n: c.fetch(
            _WINDOW, end_s - 1200 - n, end_s - 600 - n
        ),
        "the sync writes 100 trades and its cursor": write,
    }


async def measure(connection: Connection, ask: Ask, runs: int) -> Times:
    """Times of one question of one database."""
    turn = iter(range(10**9))
    return await timed(lambda: ask(connection, next(turn)), runs)


async def sizes(urls: Sequence[str], name: str) -> list[int]:
    """Bytes of a database on each node that has it."""
    found = []
    for url in urls:
        admin = await asyncpg.connect(url)
        found.append(await admin.fetchval("SELECT pg_database_size($1::text)", name))
        await admin.close()
    return found


async def fall(connection: Connection, asks: dict[str, Ask], stop: str, start: str) -> None:
    """Ends a worker, and tells what each question raises until it is back."""
    await asyncio.to_thread(subprocess.run, shlex.split(stop), check=True, stdout=subprocess.DEVNULL)
    for name, ask in asks.items():
        raised: dict[str, int] = {}
        for n in range(20):
            try:
                await ask(connection, 10_000 + n)
            except (asyncpg.PostgresError, OSError) as error:
                code = f"{type(error).__name__} {getattr(error, 'sqlstate', '')}".strip()
            else:
                code = "answered"
            raised[code] = raised.get(code, 0) + 1
        print(f"a worker is gone: {name}: {raised}", flush=True)
    await asyncio.to_thread(subprocess.run, shlex.split(start), check=True, stdout=subprocess.DEVNULL)
    began = time.perf_counter()
    for ask in asks.values():
        for n in range(20):
            await ask(connection, 20_000 + n)
    print(f"it is back: all of them answer, {time.perf_counter() - began:.1f} s for twenty of each")


# --- which statements Citus plans -------------------------------------------------------------------

_HEAD = re.compile(r"\s*(--.*\n\s*)*\(?\s*(SELECT|WITH|INSERT|UPDATE|DELETE|MERGE)\b")
_EXAMPLES: dict[str, Any] = {
    "int4": 1, "int8": 1, "int2": 1, "bytea": b"\1" * 20, "text": "1", "numeric": Decimal(1), "bool": True,
    "float8": 1.0, "timestamptz": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    "interval": datetime.timedelta(1), "date": datetime.date(2026, 1, 1),
}  # fmt: skip


def store_statements() -> Iterator[tuple[str, str]]:
    """The store's statements over facts that are complete as they stand in the code, with their places."""
    seen = set()
    for found in pkgutil.walk_packages(roundtrip.store.__path__, "roundtrip.store."):
        module = importlib.import_module(found.name)
        texts = {name: value for name, value in vars(module).items() if isinstance(value, str)}
        if not found.ispkg and module.__file__ is not None:
            with open(module.__file__) as file:
                for node in ast.walk(ast.parse(file.read())):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        texts.setdefault(f"line {node.lineno}", node.value)
        for place_, text in texts.items():
            if "facts." in text and "{" not in text and _HEAD.match(text) and text not in seen:
                seen.add(text)
                yield f"{found.name.removeprefix('roundtrip.store.')}: {place_}", text


async def plan(connection: Connection) -> None:
    """Prints what Citus refuses to plan, and how many statements it plans."""
    planned = partial = 0
    for where, text in store_statements():
        transaction = connection.transaction()
        await transaction.start()
        try:
            types = [parameter.name for parameter in (await connection.prepare(text)).get_parameters()]
            examples = [
                [_EXAMPLES[name[:-2]]] * 2 if name.endswith("[]") else _EXAMPLES[name] for name in types
            ]
        except (asyncpg.PostgresError, KeyError):
            partial += 1  # only a part of a statement
        else:
            try:
                await connection.fetch(f"EXPLAIN {text}", *examples)
                planned += 1
            except asyncpg.PostgresError as error:
                print(f"refused  {where}: {' '.join(str(error).split())[:150]}", flush=True)
        await transaction.rollback()
    print(f"{planned} planned; {partial} parts of statements were not tried")


async def main() -> None:
    """Runs the bench."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("urls", nargs="+", metavar="URL")
    parser.add_argument("--trades", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--statements", action="store_true")
    parser.add_argument("--stop", default="")
    parser.add_argument("--start", default="")
    asked = parser.parse_args()
    async with databases(asked.urls) as (one, sharded):
        if asked.statements:
            await plan(sharded)
            return
        for connection in (one, sharded):
            began = time.perf_counter()
            await fill(connection, asked.trades)
            print(f"filled in {time.perf_counter() - began:.0f} s", flush=True)
        print("bytes, one:", await sizes(asked.urls[:1], ONE), "sharded:", await sizes(asked.urls, SHARDED))
        asks = questions(asked.trades)
        for name, ask in asks.items():
            for kind, connection in (("one", one), ("sharded", sharded)):
                times = await measure(connection, ask, asked.runs)
                print(
                    f"{name:45}{kind:8} median {times.median:8.2f} ms   p95 {times.p95:8.2f} ms", flush=True
                )
        if asked.stop:
            await fall(sharded, asks, asked.stop, asked.start)


if __name__ == "__main__":
    asyncio.run(main())
