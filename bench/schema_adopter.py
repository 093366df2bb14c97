"""Gives a filled database the tables, columns, keys and indexes that a new one would have.

A schema that has not been released yet is changed in place, and then no migration brings an old database
up to date. Filling one takes minutes: here an index is tried without that. What is new is empty.
"""

from collections.abc import Callable
from typing import NamedTuple

import asyncpg

from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.rows import Connection

Say = Callable[[str], None]


class Change(NamedTuple):
    """A part of the schema: how to take it away, and how to have it."""

    drop: str
    make: str


class Column(NamedTuple):
    """A table's column. ``needed``: it may not be NULL."""

    table: str
    name: str
    type: str
    needed: bool


_TABLES = """
SELECT format('CREATE TABLE facts.%I ()', class.relname) AS make
FROM pg_class AS class WHERE class.relnamespace = 'facts'::regnamespace AND class.relkind = 'r'
    AND NOT class.relispartition ORDER BY 1
"""
_COLUMNS = """
SELECT class.relname::text AS table, attname::text AS name, format_type(atttypid, atttypmod)
    || coalesce(' DEFAULT ' || pg_get_expr(adbin, adrelid), '') AS type, attnotnull AS needed
FROM pg_attribute JOIN pg_class AS class ON class.oid = attrelid
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE class.relnamespace = 'facts'::regnamespace AND class.relkind IN ('r', 'p') AND NOT class.relispartition
    AND attnum > 0 AND NOT attisdropped ORDER BY class.relname, attnum
"""
DERIVED = {
    ("curve", "token_id"): "UPDATE facts.curve SET token_id = pool.token_id FROM facts.pool AS pool"
    " WHERE pool.id = curve.pool_id",
    ("curve", "threshold_raw"): "UPDATE facts.curve SET threshold_raw = launch.threshold_raw"
    " FROM facts.pool AS pool JOIN facts.launch AS launch ON launch.token_id = pool.token_id"
    " WHERE pool.id = curve.pool_id",
    ("cursor", "rewinds"): "UPDATE facts.cursor SET rewinds = 1",
    ("launch", "symbol_key"): "UPDATE facts.launch SET symbol_key = token.symbol_key"
    " FROM facts.address AS address JOIN facts.token AS token ON token.token = address.address"
    " WHERE address.id = launch.token_id",
}
"""Columns that repeat what stands elsewhere, and how to have them from there."""
# Of a table that is cut into days "ONLY" would leave the days without.
_INDEXES = """
SELECT format('ALTER TABLE facts.%I DROP CONSTRAINT %I', class.relname, conname) AS drop,
    format('ALTER TABLE facts.%I ADD CONSTRAINT %I %s', class.relname, conname,
        pg_get_constraintdef(constr.oid)) AS make
FROM pg_constraint AS constr JOIN pg_class AS class ON class.oid = conrelid
WHERE class.relnamespace = 'facts'::regnamespace AND NOT class.relispartition AND contype IN ('p', 'u')
    AND ($1::text IS NULL OR class.relname = $1)
UNION ALL
SELECT format('DROP INDEX facts.%I', class.relname),
    replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ')
FROM pg_index JOIN pg_class AS class ON class.oid = indexrelid
JOIN pg_class AS owner ON owner.oid = indrelid
WHERE owner.relnamespace = 'facts'::regnamespace AND NOT owner.relispartition
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
    AND ($1::text IS NULL OR owner.relname = $1)
ORDER BY 2
"""


async def indexes(connection: Connection, table: str | None = None) -> list[Change]:
    """Keys and indexes of a table of facts, or of all of them."""
    return [Change(row["drop"], row["make"]) for row in await connection.fetch(_INDEXES, table)]


async def columns(connection: Connection) -> dict[tuple[str, str], Column]:
    """Those of every table of facts, by table and name."""
    rows = await connection.fetch(_COLUMNS)
    return {(row["table"], row["name"]): Column(*row) for row in rows}


async def put_column(connection: Connection, column: Column) -> None:
    """Adds a column, with what is derived from others in it. Raises asyncpg.NotNullViolationError for one
    that needs a value and has none."""
    place = f"ALTER TABLE facts.{column.table}"
    await connection.execute(f"{place} ADD COLUMN {column.name} {column.type}")
    if (column.table, column.name) in DERIVED:
        await connection.execute(DERIVED[column.table, column.name])
    if column.needed:
        await connection.execute(f"{place} ALTER COLUMN {column.name} SET NOT NULL")


async def adopt(filled: Connection, new: Connection, say: Say = print) -> None:
    """Changes ``filled`` to what ``new``, an empty database that was just migrated, is. Columns that are to
    go stay, unused. Raises as ``put_column``."""
    await filled.execute("SET maintenance_work_mem = '1GB'")
    changed = False
    tables = {row["make"] for row in await filled.fetch(_TABLES)}
    for row in await new.fetch(_TABLES):
        if row["make"] not in tables:
            say(f"  {row['make']}")
            await filled.execute(row["make"])
    there = await columns(filled)
    for place, column in (await columns(new)).items():
        if place not in there:
            say(f"  {column}")
            await put_column(filled, column)
            changed = True
    old, wanted = await indexes(filled), await indexes(new)
    for change in old:
        if change.make not in {one.make for one in wanted}:
            say(f"  {change.drop}")
            await filled.execute(change.drop)
    for change in wanted:
        if change.make not in {one.make for one in old}:
            say(f"  {change.make}")
            await filled.execute(change.make)
            changed = True
    if changed:
        await filled.execute("VACUUM (ANALYZE)")


async def brought_up(admin: Connection, server_dsn: str, dsn: str) -> None:
    """Has the filled database at ``dsn`` adopt today's schema, which may have been changed since.
    ``server_dsn``: the server's own database, which ``admin`` is connected to."""
    await admin.execute("DROP DATABASE IF EXISTS new_schema")
    await admin.execute("CREATE DATABASE new_schema")
    new = await asyncpg.connect(server_dsn.replace("///roundtrip?", "///new_schema?"))
    there = await asyncpg.connect(dsn, command_timeout=1800)
    try:
        await migrate(new)
        await migrate(there)
        await adopt(there, new)
    finally:
        await there.close()
        await new.close()
