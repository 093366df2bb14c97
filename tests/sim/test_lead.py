"""Two real syncs over one database: whichever leads is killed while it writes, and the other takes over."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from roundtrip.devnet import live_actors
from roundtrip.devnet.world import Built, DevnetFolders
from roundtrip.store.server.rows import Connection
from roundtrip.store.server.sync_lock import leader
from sim.arena import Database, Program, chain, connected, cursor, digest_of, fresh, program, server, until
from sim.run import STANDS_BY

WAIT_S = 60.0


async def takes_over(connection: Connection, one: Program) -> None:
    """Waits until this one leads."""
    assert one.process is not None
    name = f"process {one.process.pid} on "

    async def it_does() -> bool:
        one.must_run()
        return name in (await leader(connection) or "")

    assert await until(it_does, WAIT_S)


async def test_what_killed_leaders_began_the_others_end_as_one_sync_would(
    places: DevnetFolders, built: Built, open_folder: Path, tmp_path: Path
) -> None:
    async with server(open_folder / "lead") as on:
        with chain(places, built) as (node, rpc):
            async with fresh(on, "taken_over") as database:
                async with two(places, built, database, node.url, tmp_path) as (first, second):
                    with live_actors.trading(node.url, built):
                        await killed_in_turn(first, second)
                    head = rpc.call("eth_getBlockByNumber", "latest", False)
                    last = int(head["number"], 16), head["hash"]
                    assert await first.reach(*last, WAIT_S)
                    await first.end()
                found = await digest_of(database)
            async with fresh(on, "undisturbed") as database:
                async with program(places, built, database, node.url, tmp_path / "alone") as alone:
                    await alone.start()
                    assert await alone.reach(*last, WAIT_S)
                    await alone.end()
                assert await digest_of(database) == found


@contextlib.asynccontextmanager
async def two(
    places: DevnetFolders, built: Built, database: Database, url: str, folder: Path
) -> AsyncIterator[tuple[Program, Program]]:
    async with (
        program(places, built, database, url, folder / "first") as first,
        program(places, built, database, url, folder / "second") as second,
    ):
        yield first, second


async def killed_in_turn(first: Program, second: Program) -> None:
    """Each while it leads and blocks come, with the other standing by."""
    async with connected(first.database) as connection:
        await first.start()
        await takes_over(connection, first)
        for leads, stands_by in ((first, second), (second, first)):
            text = stands_by.tail().count(STANDS_BY)
            if not stands_by.runs:
                await stands_by.start()

            async def it_does(one: Program = stands_by, before: int = text) -> bool:
                one.must_run()
                return one.tail().count(STANDS_BY) > before

            assert await until(it_does, WAIT_S)
            at = await cursor(first.database)

            async def it_goes_on(before: tuple[int, str] | None = at) -> bool:
                return await cursor(first.database) != before

            assert await until(it_goes_on, WAIT_S)
            await leads.kill()
            await takes_over(connection, stands_by)
