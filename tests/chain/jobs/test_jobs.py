"""Every kind of job on the real local chain, run by the worker."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import asyncpg
import pytest

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.domain.base.events import LiquidityChange, Spot
from roundtrip.domain.base.types import Address, BlockRef, HexBytes, TxHash
from roundtrip.domain.liquidity.unlocks import Unlock
from roundtrip.jobs.engine import head_barrier
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.runtime.context import Context
from roundtrip.store.check import evidence
from roundtrip.store.liquidity.positions import put_unlocks
from roundtrip.store.server import jobs, partitions
from roundtrip.store.server.partitions import DAY_S, Daily
from roundtrip.store.server.rows import Connection
from roundtrip.sync.apply import MAX_RECHECKS, RequestedJobs
from roundtrip.sync.batch import Batch
from roundtrip_development.devnet.stories import STRANGE_NAME, STRANGE_SYMBOL
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.faulty_node import ANSWER_FAULTS, WIRE_FAULTS, FaultyNode
from support.fixtures import context_for
from support.tables import emptied_tables

WAIT_S = 30
NOW = datetime(2025, 10, 9, 12, tzinfo=UTC)
NOBODY = "0x" + "7" * 40


@pytest.fixture
async def clean(database_url: str) -> AsyncIterator[Connection]:
    """A connection over empty tables."""
    tables = "jobs.job, facts.unlock, facts.token, facts.evidence, facts.proof, facts.cursor"
    async with emptied_tables(database_url, tables) as connection:
        yield connection


async def work(ctx: Context) -> None:
    """One round: what is due, to its end."""
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*await Worker(ctx, KINDS, lambda: 0.5).take())


async def follow_to(connection: Connection, number: int = 1, at_s: int = 1) -> None:
    """The index stands at that block, of that second."""
    await connection.execute(
        "INSERT INTO facts.cursor (only_one, start_number, number, hash, at_s, rewinds)"
        " VALUES (true, 0, $1, $2, $3, 1)",
        number,
        bytes(32),
        at_s,
    )


async def left(connection: Connection) -> list[tuple[str, str]]:
    rows = await connection.fetch("SELECT kind, key FROM jobs.job ORDER BY id")
    return [(row["kind"], row["key"]) for row in rows]


async def test_the_liquidity_of_a_token_is_read_and_its_unlocks_are_replaced(
    ctx: Context, clean: Connection, built: Built
) -> None:
    await follow_to(clean)
    plain = Address(built.tokens["plain"])
    await put_unlocks(clean, plain, [Unlock(plain, Address(NOBODY), 1, Address(NOBODY), 2**31 - 1, None)], 0)
    await jobs.enqueue(clean, "liquidity", plain)
    await work(ctx)
    # No account watches it: it is not read again.
    assert await left(clean) == []
    assert await clean.fetchval("SELECT count(*) FROM facts.unlock") == 0


# --- what they read is not older than what they were wished for ---------------------------------------

_READ = {"token": "SELECT read_number FROM facts.token", "recheck": "SELECT block_number FROM facts.evidence"}


@pytest.mark.parametrize("kind", _READ)
async def test_a_block_that_the_index_has_and_the_worker_has_not_heard_of_is_asked_for(
    ctx: Context, clean: Connection, built: Built, rpc: SyncRpc, kind: str
) -> None:
    before = ctx.heads.current().block.number
    rpc.call("evm_mine")
    await follow_to(clean, before + 1)
    await jobs.enqueue(clean, kind, built.tokens["plain"])
    await work(ctx)
    assert await left(clean) == []
    assert await clean.fetchval(_READ[kind]) == before + 1


@pytest.mark.parametrize("kind", _READ)
async def test_a_node_a_little_behind_the_index_is_waited_for(
    ctx: Context, clean: Connection, built: Built, rpc: SyncRpc, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_barrier, "EVERY_S", 0.0)
    before, refresh, asked = ctx.heads.current().block.number, ctx.heads.refresh, 0

    async def a_block_each_time() -> ChainHead:
        nonlocal asked
        asked += 1
        found = await refresh()
        rpc.call("evm_mine")
        return found

    monkeypatch.setattr(ctx.heads, "refresh", a_block_each_time)
    await follow_to(clean, before + 2)
    await jobs.enqueue(clean, kind, built.tokens["plain"])
    await work(ctx)
    assert (await left(clean), asked) == ([], 3)
    assert await clean.fetchval(_READ[kind]) == before + 2


@pytest.mark.parametrize("kind", _READ)
async def test_a_node_behind_the_index_is_asked_again_later(
    ctx: Context, clean: Connection, built: Built, rpc: SyncRpc, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_barrier, "EVERY_S", 0.0)
    before = ctx.heads.current().block.number
    await follow_to(clean, before + 1)
    await jobs.enqueue(clean, kind, built.tokens["plain"])
    await work(ctx)
    assert await clean.fetchval(_READ[kind]) is None
    [row] = await clean.fetch("SELECT run_at, last_error FROM jobs.job")
    assert row["last_error"] == "NotYet: the node is behind the index"
    rpc.call("evm_mine")
    await work(replace(ctx, now_s=lambda: row["run_at"].timestamp()))
    assert await left(clean) == []
    assert await clean.fetchval(_READ[kind]) == before + 1


# --- token -----------------------------------------------------------------------------------------


async def run_token_job(ctx: Context, connection: Connection, token: str) -> asyncpg.Record:
    await jobs.enqueue(connection, "token", token)
    await work(ctx)
    assert await left(connection) == []
    [row] = await connection.fetch("SELECT * FROM facts.token WHERE token = $1", bytes.fromhex(token[2:]))
    return row


@pytest.mark.parametrize(
    ("key", "symbol", "name", "decimals"),
    [
        ("plain", "PLAIN", "Plain", 18),
        ("six_decimals", "SIX", "Six", 6),
        ("bytes32_symbol", "WORD", "Words", 18),
        ("strange_name", STRANGE_SYMBOL, STRANGE_NAME, 18),
        ("malformed_text", None, None, 18),
    ],
)
async def test_a_token_is_kept_as_it_tells_of_itself(
    ctx: Context,
    clean: Connection,
    built: Built,
    key: str,
    symbol: str | None,
    name: str | None,
    decimals: int,
) -> None:
    """Strange letters, too: they are cleaned where they are shown."""
    row = await run_token_job(ctx, clean, built.tokens[key])
    assert (row["symbol"], row["name"], row["decimals"]) == (symbol, name, decimals)
    assert row["supply_raw"] > Decimal(10) ** (decimals + 3)
    assert row["read_number"] == ctx.heads.current().block.number


@pytest.mark.parametrize("key", ["garbage_text", "megabyte_name", "loops_on_views"])
async def test_no_token_keeps_its_job_from_ending(
    ctx: Context, clean: Connection, built: Built, key: str
) -> None:
    row = await run_token_job(ctx, clean, built.tokens[key])
    for text in (row["symbol"], row["name"]):
        assert text is None or (len(text) <= 256 and "\0" not in text)


async def test_where_there_is_no_token_nothing_is_told(ctx: Context, clean: Connection) -> None:
    row = await run_token_job(ctx, clean, NOBODY)
    assert [row[name] for name in ("symbol", "name", "decimals", "supply_raw")] == [None] * 4


_TWISTS = ("half an answer", "first answer only", "all null", "all errors", "strange ids", "an empty batch")


@pytest.mark.parametrize("fault", [*_TWISTS, "numbers", *WIRE_FAULTS])
async def test_a_node_that_does_not_answer_writes_nothing(
    ctx: Context, clean: Connection, built: Built, pool: asyncpg.Pool, fault: str, chain_url: str
) -> None:
    token = built.tokens["plain"]
    assert fault in ANSWER_FAULTS or fault in WIRE_FAULTS
    async with FaultyNode(chain_url).running() as faulty:
        # What is answered has all the time that a busy machine takes.
        timeout_s = 2.0 if fault == "slow" else 20.0
        async with context_for(faulty.url, built, pool, timeout_s) as asks:
            await asks.heads.refresh()
            faulty.fault = fault
            await jobs.enqueue(clean, "token", token)
            await work(asks)
            assert await clean.fetchval("SELECT count(*) FROM facts.token") == 0
            [row] = await clean.fetch("SELECT run_at, tries, last_error FROM jobs.job")
            assert row["tries"] == 1
            assert row["last_error"].startswith("Node")
            faulty.fault = None
            later = replace(asks, now_s=lambda: row["run_at"].timestamp())
            await work(later)
        assert await left(clean) == []
        assert await clean.fetchval("SELECT symbol FROM facts.token") == "PLAIN"


async def test_an_older_reading_does_not_replace_a_newer_one(
    ctx: Context, clean: Connection, built: Built
) -> None:
    token = built.tokens["plain"]
    await run_token_job(ctx, clean, token)
    await clean.execute("UPDATE facts.token SET symbol = 'NEWER', read_number = read_number + 1")
    assert (await run_token_job(ctx, clean, token))["symbol"] == "NEWER"
    await clean.execute("UPDATE facts.token SET symbol = 'OLDER', read_number = read_number - 2")
    assert (await run_token_job(ctx, clean, token))["symbol"] == "PLAIN"


# --- recheck ---------------------------------------------------------------------------------------


async def test_a_check_made_again_keeps_its_evidence(ctx: Context, clean: Connection, built: Built) -> None:
    token = Address(built.tokens["owner_only_sell"])
    await jobs.enqueue(clean, "recheck", token)
    await work(ctx)
    assert await left(clean) == []
    kept = await evidence.latest(clean, token)
    assert kept is not None
    assert (kept.verdict_code, kept.verdict_level) == ("cannot_sell", "danger")
    assert await clean.fetchval("SELECT count(*) FROM facts.proof") == 1
    assert [row["deep"] for row in await clean.fetch("SELECT deep FROM facts.evidence")] == [False]
    await jobs.enqueue(clean, "recheck", token, {"deep": True})
    await work(ctx)
    kept_deep = await clean.fetch("SELECT deep, asked FROM facts.evidence ORDER BY id")
    assert [tuple(row) for row in kept_deep] == [(False, False), (True, False)]


@pytest.mark.parametrize("fault", ["no eth_simulateV1", "all errors", "status 500"])
async def test_a_check_that_the_node_left_open_is_made_again_later(
    clean: Connection, built: Built, pool: asyncpg.Pool, fault: str, chain_url: str
) -> None:
    token = Address(built.tokens["plain"])
    async with (
        FaultyNode(chain_url).running() as faulty,
        context_for(faulty.url, built, pool, timeout_s=5) as asks,
    ):
        await asks.heads.refresh()
        faulty.fault = fault
        await jobs.enqueue(clean, "recheck", token)
        await work(asks)
        assert await left(clean) == [("recheck", token)]
        kept = await evidence.latest(clean, token)
        assert kept is None or kept.verdict_level == "unknown"
        faulty.fault = None
        later_s = asks.now_s() + 60
        await work(replace(asks, now_s=lambda: later_s))
    assert await left(clean) == []
    kept = await evidence.latest(clean, token)
    assert kept is not None
    assert kept.verdict_code == "ok"


async def test_who_was_checked_lately_is_known(connection: Connection) -> None:
    tokens = [Address(f"0x{n:040x}") for n in range(1, 5)]
    for token, age_s in zip(tokens, (10, 100, 1000, 10), strict=True):
        checked_at = NOW - timedelta(seconds=age_s)
        await evidence.keep(connection, token, evidence.KeptEvidence(checked_at, 1, "p", "ok", "ok", b""))
    await evidence.keep(
        connection, tokens[2], evidence.KeptEvidence(NOW - timedelta(seconds=99), 1, "p", "ok", "ok", b"")
    )
    since = NOW - timedelta(seconds=100)
    asked = [*tokens[:3], Address(NOBODY)]
    assert await evidence.checked_since(connection, asked, since) == set(tokens[:3])
    assert await evidence.checked_since(connection, asked, since + timedelta(seconds=0.5)) == {
        tokens[0],
        tokens[2],
    }
    assert await evidence.checked_since(connection, [], since) == frozenset()


async def test_only_a_few_tokens_that_lost_liquidity_wait_for_a_check(connection: Connection) -> None:
    """Anybody can take a little liquidity out of many pools of his own."""
    tokens = [Address(f"0x{n:040x}") for n in range(1, MAX_RECHECKS + 3)]
    for token in tokens:
        await evidence.keep(connection, token, evidence.KeptEvidence(NOW, 1, "p", "ok", "ok", b""))
    spot = Spot(1, 0, int(NOW.timestamp()), TxHash("0x" + "ab" * 32))
    changes = [
        LiquidityChange(spot, "0xp", token, Address(NOBODY), Address(NOBODY), -60, 60, -1000, None, None)
        for token in tokens
    ]
    batch = Batch("0x", [BlockRef(1, HexBytes("0x" + "ab" * 32), int(NOW.timestamp()))], liquidity=changes)
    requested = RequestedJobs()
    for _ in range(2):
        await requested.enqueue(connection, batch)
        rows = await connection.fetch("SELECT key, payload, run_at FROM jobs.job WHERE kind = 'recheck'")
        assert {row["key"] for row in rows} == set(tokens[:MAX_RECHECKS])
        assert {(row["payload"], row["run_at"]) for row in rows} == {('{"chain": true}', NOW)}
    await connection.execute("DELETE FROM jobs.job WHERE key = $1", tokens[0])
    await requested.enqueue(connection, batch)
    rows = await connection.fetch("SELECT key FROM jobs.job WHERE kind = 'recheck'")
    assert {row["key"] for row in rows} == set(tokens[1 : MAX_RECHECKS + 1])
    # One that could not be decided and waits for another try takes no room.
    await connection.execute("UPDATE jobs.job SET run_at = $1", NOW + timedelta(seconds=1))
    await requested.enqueue(connection, batch)
    rows = await connection.fetch("SELECT key FROM jobs.job WHERE kind = 'recheck'")
    assert {row["key"] for row in rows} == set(tokens[1:])


# --- prune -----------------------------------------------------------------------------------------


@pytest.fixture
async def cut(clean: Connection) -> AsyncIterator[Connection]:
    """Days of every table that is cut into days, dropped afterwards."""
    yield clean
    async with clean.transaction():
        for table in partitions.DAILY:
            await partitions.drop_before(clean, table, date(2100, 1, 1))


async def test_days_that_are_no_longer_kept_are_dropped_by_the_chains_clock(
    ctx: Context, cut: Connection
) -> None:
    """Which stands in 2025, whatever time of day it is."""
    chain_s = int(NOW.timestamp())
    kept: dict[Daily, int] = {"facts.transfer": 8, "facts.liquidity": 91, "facts.trade": 91}
    for table in kept:
        await partitions.ensure(cut, table, chain_s - 94 * DAY_S, chain_s)
    await follow_to(cut, at_s=chain_s)
    worker = Worker(ctx, KINDS, lambda: 0.5)
    await worker.start()
    # Transfers, liquidity, four days of trades, and a run that finds nothing.
    for _ in range(7):
        await work(ctx)
    assert {table: len(await partitions.days(cut, table)) for table in kept} == kept
    # What is kept of transfers goes seven whole days back from now.
    assert (await partitions.days(cut, "facts.transfer"))[0] == date(2025, 10, 2)
    await _puts_itself_back(ctx, cut)


async def _puts_itself_back(ctx: Context, connection: Connection) -> None:
    [row] = await connection.fetch("SELECT key, run_at, tries FROM jobs.job WHERE kind = 'prune'")
    assert (row["key"], row["tries"]) == ("facts", 0)
    assert abs(row["run_at"].timestamp() - ctx.now_s() - DAY_S) < 60


async def test_before_the_chain_was_followed_there_is_nothing_to_drop(ctx: Context, cut: Connection) -> None:
    await partitions.ensure(cut, "facts.transfer", 1_600_000_000, 1_600_000_000)
    await jobs.enqueue(cut, "prune", "facts")
    await work(ctx)
    assert len(await partitions.days(cut, "facts.transfer")) == 1
    await _puts_itself_back(ctx, cut)


async def test_a_table_in_use_is_pruned_later(ctx: Context, cut: Connection, database_url: str) -> None:
    chain_s = int(NOW.timestamp())
    await partitions.ensure(cut, "facts.transfer", chain_s - 30 * DAY_S, chain_s)
    await follow_to(cut, at_s=chain_s)
    await jobs.enqueue(cut, "prune", "facts")
    reader = await asyncpg.connect(database_url)
    async with reader.transaction():
        await reader.fetchval("SELECT count(*) FROM facts.transfer")
        await work(ctx)
    await reader.close()
    assert len(await partitions.days(cut, "facts.transfer")) == 31
    [row] = await cut.fetch("SELECT run_at, last_error FROM jobs.job")
    assert row["last_error"].startswith("LockNotAvailableError")
    await work(replace(ctx, now_s=lambda: row["run_at"].timestamp()))
    assert len(await partitions.days(cut, "facts.transfer")) == 8


async def test_what_was_given_up_is_kept_a_week(ctx: Context, cut: Connection) -> None:
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    await jobs.enqueue_many(cut, "recheck", ["old", "new"])
    for job in await jobs.claim(cut, ["recheck"], 2, 60, now):
        age = timedelta(days=8 if job.key == "old" else 6)
        await jobs.give_up(cut, job, now - age, "it did not work")
    await jobs.enqueue(cut, "prune", "facts")
    await work(ctx)
    assert await left(cut) == [("recheck", "new"), ("prune", "facts")]
