"""Whatever befalls the sync, the index comes to what a fresh sync makes of the same chain."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet.world import Built, DevnetFolders
from sim import arena
from sim.digest import DIGESTED, LEFT_OUT, NO_FACTS, difference, digest
from sim.run import run

SEEDS = range(1, 4)
"""``make long NAME=sweep`` runs more of them."""
_TABLES = (
    "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'facts' AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
)
_COLUMNS = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'facts'"


@pytest.fixture(scope="session")
async def server(open_folder: Path) -> AsyncIterator[EmbeddedPostgres]:
    """A database server that runs may end as they like."""
    async with arena.server(open_folder / "sim") as found:
        yield found


@pytest.mark.parametrize("seed", SEEDS)
async def test_an_index_is_whole_whatever_befell_it(
    seed: int, places: DevnetFolders, built: Built, server: EmbeddedPostgres, open_folder: Path
) -> None:
    outcome = await run(seed, places, built, server, open_folder)
    print(outcome.line())
    assert not outcome.wrong, "\n".join(outcome.report())
    assert outcome.rows > 3000


async def test_one_row_less_is_another_digest(
    places: DevnetFolders, built: Built, server: EmbeddedPostgres, open_folder: Path
) -> None:
    with arena.chain(places, built) as (node, rpc):
        head = rpc.call("eth_getBlockByNumber", "latest", False)
        async with arena.fresh(server, "sim_broken") as database:
            async with arena.program(places, built, database, node.url, open_folder) as sync:
                await sync.start()
                assert await sync.reach(int(head["number"], 16), head["hash"], arena.START_S), sync.tail()
                await sync.end()
            async with arena.connected(database) as connection:
                whole = await digest(connection)
                assert await digest(connection) == whole
                row = await connection.fetchrow(
                    "DELETE FROM facts.trade WHERE block_number = (SELECT max(block_number) FROM facts.trade)"
                    " RETURNING block_number"
                )
                broken = await digest(connection)
                assert row is not None
                await connection.execute("UPDATE facts.position SET buys = buys + 1")
                twice = await digest(connection)
    assert broken.short != whole.short
    title, line = difference(whole, broken, ("the whole", "the broken"))
    assert title.startswith("trade: ")
    assert line.startswith("  only in the whole: ")
    assert f"block_number={row['block_number']} " in line
    assert [name for name in whole.tables if whole.tables[name] != twice.tables[name]] == [
        "trade",
        "position",
    ]


async def test_every_table_of_facts_is_digested_or_left_out_by_name(server: EmbeddedPostgres) -> None:
    async with arena.connected(arena.Database(server, arena.TEMPLATE)) as connection:
        tables = {row["relname"] for row in await connection.fetch(_TABLES)}
        columns = {(row["table_name"], row["column_name"]) for row in await connection.fetch(_COLUMNS)}
    assert set(DIGESTED) | set(LEFT_OUT) == tables
    assert not set(DIGESTED) & set(LEFT_OUT)
    assert {(table, name) for table, names in NO_FACTS.items() for name in names} <= columns
