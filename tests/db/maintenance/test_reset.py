"""``forget`` drops what the sync wrote, and a new sync writes the same; what checks and jobs wrote stays."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from typer.testing import CliRunner, Result

from roundtrip.cli.main import app
from roundtrip.domain.base.errors import CannotRun
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.domain.check.proof_input import RecalledWallet
from roundtrip.domain.liquidity.unlocks import Unlock
from roundtrip.domain.scorecard.scorecard import FailedSell, VerdictScore
from roundtrip.store.boards.moving import put_insiders
from roundtrip.store.check import evidence, token_index
from roundtrip.store.check.evidence import KeptEvidence
from roundtrip.store.holders import books
from roundtrip.store.holders.books import StoredBook
from roundtrip.store.index import cursor
from roundtrip.store.index.origins import ArchiveSearch, keep_archive_search
from roundtrip.store.liquidity.positions import put_unlocks
from roundtrip.store.maintenance.backup import FORGOTTEN, KEPT, forget
from roundtrip.store.scorecard import failed_sells, scorecard
from roundtrip.store.scorecard.scorecard import MissingReceipt, ScoredVerdict
from roundtrip.store.server import jobs, partitions
from roundtrip.store.server.partitions import DAY_S
from roundtrip.store.server.rows import Connection
from roundtrip.store.server.sync_lock import SYNC_LOCK
from roundtrip.sync.apply import Writer
from roundtrip.sync.position_fold import retire_trades
from support.tables import append_blocks, begin_index, tables
from support.told_blocks import Chain, MadeUp
from unit.venues.logs import NETWORK

TOKEN = Address("0x" + "ab" * 20)
OTHERS = *KEPT, "jobs.job", "public.migration"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def followed(index: Connection) -> Chain:
    """A chain, and all of it in the index."""
    made = Chain()
    MadeUp(7).grow(made, 60)
    await append_blocks(index, await begin_index(index, made.parent), made.blocks)
    return made


async def counts(index: Connection, names: tuple[str, ...]) -> dict[str, int]:
    return {name: await index.fetchval(f"SELECT count(*) FROM {name}") for name in names}  # noqa: S608


async def rest_is_there(index: Connection) -> None:
    """Writes a row of each table that something else than the sync writes."""
    kept = KeptEvidence(NOW, 1, "1", "ok", "ok", b"{}")
    row_id = await evidence.keep(index, TOKEN, kept, evidence.NewProof(b"{}", [b"1"]))
    recalled = RecalledWallet("0x" + "aa" * 20, "0x" + "00" * 32, 3)
    await token_index.keep_recalled_wallets(index, TOKEN, [recalled], NOW, NOW - timedelta(days=1))
    await token_index.keep_caught_holders(index, TOKEN, [TOKEN], (), True, NOW, NOW - timedelta(days=1))
    await keep_archive_search(index, TOKEN, ArchiveSearch(None, 9))
    block = BlockRef(9, "0x" + "09" * 32, 9)
    await books.save_book(index, TOKEN, StoredBook("whole", block, 1, 1, False, b"1", NOW, NOW))
    await index.execute("INSERT INTO facts.token (token, read_number) VALUES ($1, 1)", bytes(20))
    await index.execute("INSERT INTO facts.rewound (to_number, to_s) VALUES (1, 1)")
    await put_insiders(index, TOKEN, 1, NOW)
    await put_unlocks(index, TOKEN, [Unlock(TOKEN, TOKEN, 1, TOKEN, 9, None)], 1)
    scored = ScoredVerdict(row_id, TOKEN, "ok", "ok", 1, 1, VerdictScore("undecided", "no_sell"))
    waits = MissingReceipt(row_id + 1, TOKEN, "ok", 7200, 1, NOW)
    await scorecard.put(index, [scored], 0, row_id, NOW, [waits])
    sell = FailedSell(1, 1, TxHash("0x" + "a" * 64), TOKEN, 1)
    await failed_sells.put_sell(index, TOKEN, sell)
    await jobs.enqueue(index, "token", TOKEN)


async def test_every_table_of_facts_is_forgotten_or_kept(index: Connection) -> None:
    rows = await index.fetch(
        "SELECT 'facts.' || relname AS name FROM pg_class WHERE relnamespace = 'facts'::regnamespace"
        " AND relkind IN ('r', 'p') AND NOT relispartition"
    )
    assert sorted(row["name"] for row in rows) == sorted(FORGOTTEN + KEPT)


async def test_all_that_the_sync_wrote_goes_and_nothing_else(index: Connection, followed: Chain) -> None:
    last_s = followed.blocks[-1].ref.timestamp_s
    while await retire_trades(index, last_s - DAY_S, NETWORK):
        pass
    await rest_is_there(index)
    full, others = await counts(index, FORGOTTEN), await counts(index, OTHERS)
    assert all(others.values())
    for name in ("facts.trade", "facts.position", "facts.pool", "facts.origin", "facts.holder_read"):
        assert full[name], name
    await forget(index)
    assert set((await counts(index, FORGOTTEN)).values()) == {0}
    assert [await partitions.days(index, table) for table in partitions.DAILY] == [[], [], []]
    assert await counts(index, OTHERS) == others


async def test_the_next_sync_makes_it_again(index: Connection, followed: Chain) -> None:
    before, last_id = await tables(index), await cursor.highest_address_id(index)
    await forget(index)
    await cursor.begin(index, followed.parent.number + 1, followed.parent)
    await append_blocks(index, Writer(NETWORK), followed.blocks)
    assert await tables(index) == before
    assert await cursor.highest_address_id(index) == last_id


async def test_forgotten_twice_is_forgotten(index: Connection, followed: Chain) -> None:
    await forget(index)
    await forget(index)
    assert await cursor.cursor(index) is None


async def test_while_a_sync_holds_its_lock_nothing_goes(index: Connection, followed: Chain, url: str) -> None:
    before = await tables(index)
    other = await asyncpg.connect(url)
    await other.execute("SELECT pg_advisory_lock($1)", SYNC_LOCK)
    with pytest.raises(CannotRun):
        await forget(index)
    assert await tables(index) == before
    await other.close()


@pytest.mark.parametrize("table", ["facts.address", "facts.trade", "facts.closing"])
async def test_while_a_table_is_in_use_nothing_goes(
    index: Connection, followed: Chain, url: str, table: str
) -> None:
    before = await tables(index)
    other = await asyncpg.connect(url)
    async with other.transaction():
        await other.execute(f"LOCK {table} IN ACCESS SHARE MODE")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await forget(index)
    await other.close()
    assert await tables(index) == before


# --- the command -----------------------------------------------------------------------------------


async def run_command(monkeypatch: pytest.MonkeyPatch, url: str, *arguments: str) -> Result:
    monkeypatch.setenv("ROUNDTRIP_DATABASE_URL", url)
    return await asyncio.to_thread(CliRunner().invoke, app, ["forget", *arguments])


async def test_the_command_needs_yes(
    index: Connection, followed: Chain, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await tables(index)
    asked = await run_command(monkeypatch, url)
    assert asked.exit_code == 1
    assert "trade" in asked.output
    assert asked.output.endswith("Add --yes to do it.\n")
    assert await tables(index) == before
    done = await run_command(monkeypatch, url, "--yes")
    assert (done.exit_code, done.output) == (0, "Emptied. The next sync starts over.\n")
    assert await cursor.cursor(index) is None


async def test_the_command_is_refused_while_a_sync_runs_or_a_table_is_in_use(
    index: Connection, followed: Chain, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with index.transaction():
        await index.execute("LOCK facts.pool IN ACCESS SHARE MODE")
        refused = await run_command(monkeypatch, url, "--yes")
        assert (refused.exit_code, "in use" in refused.output) == (1, True)
        await index.execute("SELECT pg_advisory_xact_lock($1)", SYNC_LOCK)
        refused = await run_command(monkeypatch, url, "--yes")
        # ``main`` prints it as a line.
        assert isinstance(refused.exception, CannotRun)
    assert await cursor.cursor(index) is not None
