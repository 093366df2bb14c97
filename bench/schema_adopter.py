"""Gives a filled database the tables, columns, keys and indexes that a new one would have.

A schema that has not been released yet is changed in place, and then no migration brings an old database
up to date. Filling one takes minutes: here an index is tried without that. What is new is empty.
"""

from collections.abc import Callable
from typing import NamedTuple

import asyncpg

Say = Callable[[str], None]


class Change(NamedTuple):
    """A part of the schema: how to take it away, and how to have it."""

    drop: str
    make: str


_TABLES = """
SELECT class.relname AS name, 'DROP TABLE facts.' || quote_ident(class.relname) AS drop,
    format('CREATE TABLE facts.%I ()', class.relname) AS make
FROM pg_class AS class WHERE class.relnamespace = 'facts'::regnamespace AND class.relkind = 'r'
    AND NOT class.relispartition ORDER BY 1
"""
_COLUMNS = """
SELECT format('ALTER TABLE facts.%I DROP COLUMN %I', class.relname, attname) AS drop,
    format('ALTER TABLE facts.%I ADD COLUMN %I %s%s%s', class.relname, attname,
        format_type(atttypid, atttypmod),
        coalesce(' DEFAULT ' || pg_get_expr(adbin, adrelid), ''),
        CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END) AS make
FROM pg_attribute JOIN pg_class AS class ON class.oid = attrelid
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE class.relnamespace = 'facts'::regnamespace AND class.relkind IN ('r', 'p') AND NOT class.relispartition
    AND attnum > 0 AND NOT attisdropped ORDER BY class.relname, attnum
"""
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


async def indexes(connection: asyncpg.Connection, table: str | None = None) -> list[Change]:
    """Keys and indexes of a table of facts, or of all of them."""
    return [Change(row["drop"], row["make"]) for row in await connection.fetch(_INDEXES, table)]


async def adopt(filled: asyncpg.Connection, new: asyncpg.Connection, say: Say = print) -> None:
    """Changes ``filled`` to what ``new``, an empty database that was just migrated, is. Columns that are to
    go stay: nobody reads them. Raises asyncpg.NotNullViolationError for a column that needs a value."""
    changed = False
    for statement in (_TABLES, _COLUMNS):
        there = {row["make"] for row in await filled.fetch(statement)}
        for row in await new.fetch(statement):
            if row["make"] not in there:
                say(f"  {row['make']}")
                await filled.execute(row["make"])
                changed = True
    old, wanted = await indexes(filled), await indexes(new)
    for change in old:
        if change.make not in {one.make for one in wanted}:
            say(f"  {change.drop}")
            await filled.execute(change.drop)
    await filled.execute("SET maintenance_work_mem = '1GB'")
    for change in wanted:
        if change.make not in {one.make for one in old}:
            say(f"  {change.make}")
            await filled.execute(change.make)
            changed = True
    if changed:
        await filled.execute("VACUUM (ANALYZE)")
