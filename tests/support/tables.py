"""All that the index says, as lines that two indexes of one chain have in common."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg

from roundtrip.chain.blocks.spans import BlockRead
from roundtrip.domain.base.types import BlockRef
from roundtrip.store.index import cursor
from roundtrip.store.server.rows import Connection
from roundtrip.sync.apply import Writer
from sim.digest import digest
from support.databases import connected, database, migrate_placed
from unit.venues.logs import NETWORK


@asynccontextmanager
async def own_database(server_url: str, name: str) -> AsyncIterator[str]:
    """A migrated database of its own on the tests' server; its url."""
    async with database(server_url, name) as url:
        await migrate_placed(url)
        yield url


@asynccontextmanager
async def emptied_tables(database_url: str, tables: str) -> AsyncIterator[Connection]:
    """A connection over these tables, empty before and afterwards."""
    connection = await asyncpg.connect(database_url)
    await connection.execute(f"TRUNCATE {tables}")
    yield connection
    await connection.execute(f"TRUNCATE {tables}")
    await connection.close()


async def emptied(connection: Connection) -> None:
    """Takes every row of every table of facts and jobs away."""
    rows = await connection.fetch(
        "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables"
        " WHERE schemaname IN ('facts', 'jobs')"
    )
    await connection.execute(f"TRUNCATE {', '.join(row['name'] for row in rows)}")


async def begin_index(connection: Connection, parent: BlockRef) -> Writer:
    """A new index of what follows ``parent``."""
    await emptied(connection)
    await cursor.begin(connection, parent.number + 1, parent)
    return Writer(NETWORK)


async def append_blocks(
    connection: Connection, writer: Writer, blocks: Sequence[BlockRead], at_once: Sequence[int] = ()
) -> None:
    """Appends blocks in batches of these sizes, taken in turn; none: all at once."""
    sizes, first, turn = list(at_once) or [len(blocks)], 0, 0
    while first < len(blocks):
        some = blocks[first : first + sizes[turn % len(sizes)]]
        await writer.append(connection, some, some[-1].ref.timestamp_s)
        first, turn = first + len(some), turn + 1


async def tables(connection: Connection) -> dict[str, tuple[str, ...]]:
    """What the digest is made of: every table's rows as text, with addresses and places for their numbers."""
    return {name: table.lines for name, table in (await digest(connection)).tables.items()}


async def all_rows(connection: Connection, table: str, order: str) -> list[dict[str, object]]:
    """Rows of a table of facts as they are."""
    rows = await connection.fetch(f"SELECT * FROM facts.{table} ORDER BY {order}")  # noqa: S608
    return [dict(row) for row in rows]


async def everything(url: str) -> dict[str, tuple[int, str]]:
    """The count and digest of every table's rows, and the last value of every sequence."""
    async with connected(url) as connection:
        contents = {}
        for row in await connection.fetch(
            "SELECT schemaname || '.' || tablename AS name FROM pg_tables"
            " WHERE schemaname IN ('public', 'facts', 'jobs', 'accounts')"
        ):
            name = row["name"]
            rows = await connection.fetch(f"SELECT entry::text AS line FROM {name} AS entry")  # noqa: S608
            lines = sorted(line["line"] for line in rows)
            contents[name] = (len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest())
        for row in await connection.fetch(
            "SELECT schemaname || '.' || sequencename AS name, last_value FROM pg_sequences"
        ):
            contents[row["name"]] = (row["last_value"] or 0, "sequence")
        return contents
