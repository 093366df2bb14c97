"""Where a wallet comes from, asked by a use case, which wishes for the search, and by a person, who waits."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest
from typer.testing import CliRunner, Result

from roundtrip.cli.main import app
from roundtrip.domain.base.types import Address
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.runtime.context import Context
from roundtrip.services.wallets.history import origin_of
from roundtrip.store.index import origins
from roundtrip.store.index.origins import ORIGIN_JOB, ArchiveSearch
from roundtrip.store.server import connections
from roundtrip.store.server.rows import Connection
from roundtrip_development.devnet import world
from support import archive as archives
from support.archive import BLOCKS, EARLY, FUNDED, FUNDED_LATE, LATE, NOBODY, START, Archive
from support.fixtures import context_for
from support.nodes import QuirkyNode
from support.tables import emptied, own_database

WAIT_S = 30
LATE_S = 1_700_000_500
Ask = Callable[..., "asyncio.Future[Result]"]


@pytest.fixture(scope="module")
def archive(places: world.DevnetFolders) -> Iterator[Archive]:
    with archives.archive(places) as found:
        yield found


@pytest.fixture(scope="module")
def pruned(places: world.DevnetFolders) -> Iterator[Archive]:
    with archives.archive(places, kept_blocks=10) as found:
        yield found


@pytest.fixture(scope="session")
async def url(database_url: str) -> AsyncIterator[str]:
    async with own_database(database_url, "origin_asked") as found:
        yield found


@pytest.fixture
async def index(url: str) -> AsyncIterator[Connection]:
    """Empty; ``follow`` makes it one that stands at the end of the chain."""
    connection = await asyncpg.connect(url)
    await emptied(connection)
    yield connection
    await connection.close()


async def follow(index: Connection, start: int, funder: Address) -> None:
    """An index from block ``start`` on, which met LATE."""
    await index.execute(
        "INSERT INTO facts.cursor (only_one, start_number, number, hash, at_s, rewinds)"
        " VALUES (true, $1, $2, $3, 7, 1)",
        start,
        BLOCKS,
        bytes(32),
    )
    late, by = [
        await index.fetchval(
            "INSERT INTO facts.address (address) VALUES ($1) RETURNING id", bytes.fromhex(one[2:])
        )
        for one in (LATE, funder)
    ]
    await index.execute(
        "INSERT INTO facts.origin (wallet_id, first_number, first_s, funder_id, funded_number, funded_s)"
        " VALUES ($1, $2, $3, $4, $2, $3)",
        late,
        FUNDED_LATE,
        LATE_S,
        by,
    )


# --- a use case ------------------------------------------------------------------------------------


@pytest.fixture
async def asks(archive: Archive, built: world.Built, url: str) -> AsyncIterator[Context]:
    async with (
        connections.create_pool(url, min_size=1, max_size=4) as pool,
        context_for(archive.url, built, pool) as found,
    ):
        yield found


async def wished(index: Connection) -> list[str]:
    rows = await index.fetch("SELECT key FROM jobs.job WHERE kind = $1 ORDER BY key", ORIGIN_JOB)
    return [row["key"] for row in rows]


async def work(ctx: Context) -> None:
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*await Worker(ctx, KINDS, lambda: 0.5).take())


async def test_what_the_index_does_not_reach_is_wished_for_and_known_later(
    asks: Context, index: Connection, archive: Archive
) -> None:
    await follow(index, START, archive.busy)
    wallets = EARLY, LATE, NOBODY
    assert [await origin_of(asks, wallet) for wallet in wallets] == [None, None, None]
    assert await wished(index) == sorted(wallets)
    for _ in wallets:
        await work(asks)
    assert await wished(index) == []
    assert [await origin_of(asks, wallet) for wallet in wallets] == [
        FirstSeen(FUNDED, archive.funded_s, archive.funder),
        FirstSeen(FUNDED_LATE, LATE_S, archive.busy),
        None,
    ]
    # Of all three everything was searched.
    assert await wished(index) == []


@pytest.mark.parametrize("begun", [False, True])
async def test_where_nothing_is_older_nothing_is_wished_for(
    asks: Context, index: Connection, archive: Archive, begun: bool
) -> None:
    """The index is whole, or there is none up to which to search."""
    if begun:
        await follow(index, 0, archive.busy)
    known = FirstSeen(FUNDED_LATE, LATE_S, archive.busy) if begun else None
    assert await origin_of(asks, LATE) == known
    assert await origin_of(asks, NOBODY) is None
    assert await wished(index) == []


async def test_an_index_that_now_begins_later_leaves_more_to_search(
    asks: Context, index: Connection, archive: Archive
) -> None:
    await follow(index, START, archive.busy)
    await origins.keep_archive_search(index, NOBODY, ArchiveSearch(None, START - 2))
    assert await origin_of(asks, NOBODY) is None
    assert await wished(index) == [NOBODY]


async def test_a_search_that_waits_or_was_given_up_is_left_alone(
    asks: Context, index: Connection, archive: Archive
) -> None:
    await follow(index, START, archive.busy)
    await origin_of(asks, EARLY)
    await index.execute("UPDATE jobs.job SET failed_at = now(), run_at = now() + '1 day', tries = 3")
    before = await index.fetch("SELECT * FROM jobs.job")
    assert await origin_of(asks, EARLY) is None
    assert await index.fetch("SELECT * FROM jobs.job") == before


# --- a person --------------------------------------------------------------------------------------


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, built: world.Built) -> Ask:
    """Runs ``roundtrip origin`` of a wallet at a node."""

    async def asked(node_url: str, wallet: str) -> Result:
        (tmp_path / "devnet.json").write_text(json.dumps(world.describe(built, node_url)))
        monkeypatch.setenv("ROUNDTRIP_VAR", str(tmp_path))
        monkeypatch.setenv("ROUNDTRIP_DATABASE_URL", url)
        return await asyncio.to_thread(CliRunner().invoke, app, ["origin", wallet])

    return lambda *given: asyncio.ensure_future(asked(*given))


async def test_the_archive_is_searched_where_the_index_does_not_reach_and_remembered(
    ask: Ask, index: Connection, archive: Archive
) -> None:
    await follow(index, START, archive.busy)
    at = datetime.fromtimestamp(archive.funded_s, UTC)
    text = (
        f"{EARLY} first appeared in block {FUNDED}, {at:%Y-%m-%d %H:%M:%S} UTC; funded by "
        f"{archive.funder}.\n",
        f"{LATE} first appeared in block {FUNDED_LATE}, 2023-11-14 22:21:40 UTC; funded by {archive.busy}.\n",
        f"{NOBODY} has not appeared up to block {BLOCKS}.\n",
    )
    # The second time there is no node, and none is needed.
    for node_url in (archive.url, "http://127.0.0.1:1"):
        for wallet, line in zip((EARLY, LATE, NOBODY), text, strict=True):
            done = await ask(node_url, wallet)
            assert (done.exit_code, done.output) == (0, line)


@pytest.mark.parametrize("begun", [False, True])
async def test_without_an_archive_it_could_not_be_found_out(
    ask: Ask, index: Connection, pruned: Archive, begun: bool
) -> None:
    if begun:
        await follow(index, START, pruned.busy)
    # LATE was met; that it was not there before is not known.
    for node_url in (pruned.url, "http://127.0.0.1:1"):
        for wallet in (EARLY, LATE, NOBODY):
            done = await ask(node_url, wallet)
            assert done.exit_code == 2
            assert done.output.startswith(f"{wallet}: unknown. ")
            assert done.output.count("\n") == 1
    assert await index.fetchval("SELECT count(*) FROM facts.older_origin") == 0


async def test_of_a_whole_index_no_node_is_asked(ask: Ask, index: Connection, archive: Archive) -> None:
    await follow(index, 0, archive.busy)
    assert (await ask("http://127.0.0.1:1", LATE)).exit_code == 0
    done = await ask("http://127.0.0.1:1", NOBODY)
    assert (done.exit_code, done.output) == (0, f"{NOBODY} has not appeared up to block {BLOCKS}.\n")


async def test_without_an_index_the_archive_is_searched_whole_and_nothing_kept(
    ask: Ask, index: Connection, archive: Archive
) -> None:
    done = await ask(archive.url, EARLY)
    assert done.exit_code == 0
    assert f"in block {FUNDED}," in done.output
    done = await ask(archive.url, NOBODY)
    assert (done.exit_code, done.output) == (0, f"{NOBODY} has not appeared up to block {BLOCKS}.\n")
    assert await index.fetchval("SELECT count(*) FROM facts.older_origin") == 0


async def test_another_chain_is_not_believed(ask: Ask, index: Connection, archive: Archive) -> None:
    await follow(index, START, archive.busy)
    async with QuirkyNode(archive.url, "wrong chain id").running() as other:
        done = await ask(other.url, EARLY)
    assert (done.exit_code, "another chain" in done.output) == (2, True)
    assert await origins.read_archive_search(index, EARLY) is None


@pytest.mark.parametrize("wallet", ["0x12", "vitalik.eth", EARLY + "00", ""])
async def test_what_is_no_address_is_one_clear_line(ask: Ask, wallet: str) -> None:
    done = await ask("http://127.0.0.1:1", wallet)
    assert (done.exit_code, done.output) == (2, "roundtrip: an address is 0x and 40 hex digits\n")
