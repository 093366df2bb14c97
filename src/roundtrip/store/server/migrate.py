"""Numbered migrations, applied in order, each in its own transaction, while the service runs. With Citus,
places the largest tables of the index on the workers, and copies of those that they are joined with on every
node (``distribute``). Statements stay the same; docs/scale.md says what they cost then."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib import resources
from typing import NamedTuple

import asyncpg

from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.server.rows import Connection, fetch_value, fetch_values


class Placement(NamedTuple):
    """Rows of ``table`` with one value of ``column`` are on one shard. ``key``: the primary key, where that
    of the schema lacks the column, since Citus keeps a key unique within a shard only; empty: as it is."""

    table: str
    column: str
    key: str = ""


PLACED = (
    Placement("trade", "pool_id", "at_s, block_number, log_index, pool_id"),
    Placement("transfer", "token_id", "at_s, block_number, log_index, token_id"),
    Placement("position", "wallet_id"),
    Placement("position_base", "wallet_id"),
    Placement("closing", "wallet_id", "block_number, log_index, wallet_id"),
)
COPIED = (
    "address", "buyback", "curve", "fair_token", "inside", "launch", "launch_quote", "launch_step",
    "lp_transfer", "origin", "pool", "price", "token",
)  # fmt: skip
"""Each node has these whole (reference tables). All others stay on the coordinator."""

_HAS_WORKERS = "SELECT EXISTS (SELECT FROM pg_dist_node WHERE groupid > 0)"
_DONE = """
SELECT relname FROM pg_dist_partition JOIN pg_class ON pg_class.oid = logicalrelid
WHERE relnamespace = 'facts'::regnamespace
"""
# A transaction of the sync writes tables of both kinds. Of several connections to one worker, one would not
# see what another has written.
_IN_SEQUENCE = "citus.multi_shard_modify_mode = 'sequential'"
# Citus refuses the functions that read by key while they are in SQL. In PL/pgSQL each is a query of its own.
_READS = """
SELECT format('CREATE OR REPLACE FUNCTION %s(%s) RETURNS %s LANGUAGE plpgsql STABLE AS %L',
    pg_proc.oid::regproc, pg_get_function_arguments(pg_proc.oid), pg_get_function_result(pg_proc.oid),
    format('BEGIN RETURN QUERY %s; END', coalesce($1::json ->> proname, prosrc)))
FROM pg_proc JOIN pg_language ON pg_language.oid = prolang
WHERE pronamespace = 'facts'::regnamespace AND lanname = 'sql'
"""
# Citus refuses a recursion over a placed table: on it this function adds up by pool instead.
_OTHER_BODIES = {
    "dear_prices": """
    SELECT trade.pool_id, max(coalesce(trade.eth_wei, trade.quote_raw) / nullif(trade.token_raw, 0))
    FROM facts.trade AS trade
    WHERE trade.at_s BETWEEN $1 AND $2 AND trade.block_number > $3 AND trade.block_number <= $4
        AND coalesce(trade.eth_wei, trade.quote_raw) * 10000000 > trade.token_raw AND trade.token_raw > 0
    GROUP BY trade.pool_id
"""
}
_HAS_COPY = """
SELECT pg_relation_size($1::text::regclass) > 0 OR EXISTS (
    SELECT FROM pg_partition_tree($1::text::regclass) WHERE pg_relation_size(relid) > 0
)
"""
_HAS_CITUS = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"


async def distribute(connection: Connection) -> list[str]:
    """Places the tables that are not placed yet; returns their names. Rows move with them, and meanwhile
    nobody can read or write that table. What was interrupted is finished by the next call. The caller holds
    the lock of migrations. Raises CannotRun: the database has no Citus, or no worker."""
    if not await fetch_value(connection, bool, _HAS_CITUS) or not await fetch_value(
        connection, bool, _HAS_WORKERS
    ):
        raise CannotRun("This database has no Citus, or no worker: deploy/citus/join.py adds them.")
    database = await fetch_value(connection, str, "SELECT quote_ident(current_database())")
    await connection.execute(f"ALTER DATABASE {database} SET {_IN_SEQUENCE}")
    await connection.execute(f"SET {_IN_SEQUENCE}")
    done = await fetch_values(connection, str, _DONE)
    copied = [table for table in COPIED if table not in done]
    for table in copied:
        await connection.execute("SELECT create_reference_table($1::text::regclass)", f"facts.{table}")
    placed = [placement for placement in PLACED if placement.table not in done]
    for table, column, key in placed:
        async with connection.transaction():
            if key:
                await connection.execute(
                    f"ALTER TABLE facts.{table} DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY ({key})"
                )
            await connection.execute(
                "SELECT create_distributed_table($1::text::regclass, $2)", f"facts.{table}", column
            )
    # Rows that moved leave a hidden copy, also those of a call that was interrupted.
    for table in (*COPIED, *(placement.table for placement in PLACED)):
        if await fetch_value(connection, bool, _HAS_COPY, f"facts.{table}"):
            await connection.execute(
                "SELECT truncate_local_data_after_distributing_table($1::text::regclass)", f"facts.{table}"
            )
    for statement in await fetch_values(connection, str, _READS, json.dumps(_OTHER_BODIES)):
        await connection.execute(statement)
    return copied + [placement.table for placement in placed]


async def keep_distributed(connection: Connection) -> None:
    """If tables of this database are placed: places what a migration made, and finishes what was interrupted.
    Raises as ``distribute``."""
    if await fetch_value(connection, bool, _HAS_CITUS) and await fetch_values(connection, str, _DONE):
        wanted = {*COPIED, *(placement.table for placement in PLACED)}
        unplaced = wanted.difference(await fetch_values(connection, str, _DONE))
        if unplaced or await fetch_values(connection, str, _READS, "{}"):
            await distribute(connection)


_LOCK = 4663_0001
"""The advisory lock that is held to migrate, so that two processes that start together do not both do so. The
service's lock keys are 4663, its chain's id, and a number."""
LOCK_TIMEOUT_MS = 500
"""Other statements queue behind a migration that waits for a table lock, so it gives up soon and tries
again."""
TABLE = (
    "CREATE TABLE IF NOT EXISTS public.migration"
    " (number int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
)
_BEFORE_RELEASES = "SELECT to_regclass('public.migrations') IS NOT NULL"
"""Whether development before 0.1.0 made the database: its numbers mean other migrations."""
_TRIES = 60
_AGAIN_S = 1.0


def migrations() -> list[tuple[int, str]]:
    """Every migration's number and SQL, in order."""
    folder = resources.files("roundtrip.store") / "schema"
    files = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return [(int(name.split("_")[0]), (folder / name).read_text()) for name in files]


async def migrate(
    connection: Connection,
    all_of_them: Sequence[tuple[int, str]] | None = None,
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> list[int]:
    """Applies the missing ones of ``all_of_them`` (None: of ``migrations``) and returns the numbers applied.
    Raises asyncpg.LockNotAvailableError if a table was in use for a minute and a half; earlier ones stay.
    Raises CannotRun: development before the first release made the database."""
    applied = []
    async with _alone(connection):
        if await fetch_value(connection, bool, _BEFORE_RELEASES):
            raise CannotRun(
                "The database was made before release 0.1.0, and no migration brings it up to date. "
                "Nothing was changed: use an empty database."
            )
        await connection.execute(TABLE)
        done = set(await fetch_values(connection, int, "SELECT number FROM public.migration"))
        for number, sql in migrations() if all_of_them is None else all_of_them:
            if number not in done:
                await _apply(connection, number, sql, wait)
                applied.append(number)
        await keep_distributed(connection)
    return applied


async def place(connection: Connection) -> list[str]:
    """``distribute``, while no migration runs."""
    async with _alone(connection):
        return await distribute(connection)


@contextlib.asynccontextmanager
async def _alone(connection: Connection) -> AsyncIterator[None]:
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        yield
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def _apply(
    connection: Connection, number: int, sql: str, wait: Callable[[float], Awaitable[None]]
) -> None:
    for tries_left in reversed(range(_TRIES)):
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
                await connection.execute(sql)
                await connection.execute("INSERT INTO public.migration (number) VALUES ($1)", number)
        except asyncpg.LockNotAvailableError:
            if not tries_left:
                raise
            await wait(_AGAIN_S)
        else:
            return
