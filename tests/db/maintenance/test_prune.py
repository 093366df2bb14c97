"""``prune`` over an index: it drops a day of trades in each run while the sync goes on, and data is old only
by the chain's clock and by ours."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

import asyncpg
import pytest

from roundtrip.domain.practice.practice import open_account as begun_account
from roundtrip.domain.watch.alerts import INBOX_S, Draft
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.runtime.context import Context
from roundtrip.store.holders import books
from roundtrip.store.holders.books import KEPT_FOR, StoredBook
from roundtrip.store.practice import practice
from roundtrip.store.practice.practice import Repeat
from roundtrip.store.server import connections, jobs, partitions
from roundtrip.store.server.partitions import DAY_S, Daily
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alerts
from roundtrip.sync import position_fold
from roundtrip.sync.position_fold import fold_onto
from roundtrip.venues.base import Contracts
from support.alerting import accounts
from support.tables import all_rows, append_blocks, begin_index, tables
from support.told_blocks import Chain, bought, launched, moved, sent, sold
from unit.sync.telling import ALICE, BOB, CURVE, DEV, HIGH
from unit.venues.logs import NETWORK

WAIT_S = 20
BUYS, SELLS = bought(CURVE, ALICE, ALICE, 7, 500), sold(CURVE, ALICE, ALICE, 9, 500)


@dataclass
class PruneContext:
    """What the worker and the job need of a context."""

    pool: asyncpg.Pool
    at_s: float
    contracts: Contracts = NETWORK

    def now_s(self) -> float:
        return self.at_s


@pytest.fixture
async def index(url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(url)
    yield connection
    for table in partitions.DAILY:
        async with connection.transaction():
            await partitions.drop_before(connection, table, partitions.day_of(2**31 - 1 + DAY_S))
    await connection.close()


@pytest.fixture
async def pool(url: str) -> AsyncIterator[asyncpg.Pool]:
    async with connections.create_pool(url, min_size=1, max_size=4, command_timeout=5) as own_pool:
        yield own_pool


def old_story(last_after_s: int = 100 * DAY_S) -> Chain:
    """Three days of a trade each, and a block ``last_after_s`` later."""
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV), BUYS, sender=BOB))
    chain.block(sent(SELLS), after_s=DAY_S)
    chain.block(sent(BUYS), after_s=DAY_S)
    chain.block(sent(sender=BOB), after_s=last_after_s)
    return chain


async def followed(connection: Connection, chain: Chain) -> None:
    await append_blocks(connection, await begin_index(connection, chain.parent), chain.blocks, [1])
    await connection.execute("TRUNCATE jobs.job")
    await jobs.enqueue(connection, "prune", "facts")


async def run_of(ground: PruneContext) -> None:
    """One round of the worker."""
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*await Worker(cast(Context, ground), KINDS, lambda: 0.5).take())


async def days_of(connection: Connection) -> list[int]:
    names: tuple[Daily, ...] = ("facts.transfer", "facts.liquidity", "facts.trade")
    return [len(await partitions.days(connection, name)) for name in names]


async def test_each_run_drops_a_day_of_trades_and_enqueues_the_next_at_once(
    index: Connection, pool: asyncpg.Pool
) -> None:
    chain = old_story()
    await followed(index, chain)
    before = (await tables(index))["position"]
    newest_s = chain.blocks[-1].ref.timestamp_s
    others: tuple[Daily, ...] = ("facts.transfer", "facts.liquidity")
    for table in others:
        await partitions.ensure(index, table, newest_s - 100 * DAY_S, newest_s - 99 * DAY_S)
    ground, seen = PruneContext(pool, newest_s + 1), list[tuple[list[int], bool]]()
    for _ in range(6):
        await run_of(ground)
        row = await index.fetchrow("SELECT run_at, tries, last_error FROM jobs.job")
        assert row is not None
        assert (row["tries"], row["last_error"]) == (0, None)
        seen.append((await days_of(index), row["run_at"] <= datetime.fromtimestamp(ground.at_s, UTC)))
    gone = [[0, 2, 3], [0, 0, 3], [0, 0, 2], [0, 0, 1], [0, 0, 0]]
    assert seen == [*((days, True) for days in gone), ([0, 0, 0], False)]
    assert (await index.fetchval("SELECT run_at FROM jobs.job")).timestamp() == ground.at_s + DAY_S
    assert (await tables(index))["position"] == before


async def test_while_a_day_is_folded_the_sync_goes_on(
    index: Connection, pool: asyncpg.Pool, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While each day is folded, neither the cursor nor the table of trades is locked."""
    chain = old_story()
    await followed(index, chain)
    other = await asyncpg.connect(url)
    await other.execute("SET lock_timeout = '100ms'")
    probed = []

    async def probes(*given: object) -> None:
        async with other.transaction():
            await other.execute("SELECT 1 FROM facts.cursor FOR UPDATE NOWAIT")
            await other.execute("LOCK facts.trade IN SHARE UPDATE EXCLUSIVE MODE")
        await fold_onto(*given)  # type: ignore[arg-type]
        async with other.transaction():
            probed.append(await other.fetchval("SELECT number FROM facts.cursor FOR UPDATE NOWAIT"))
            await other.execute("LOCK facts.trade IN SHARE UPDATE EXCLUSIVE MODE")

    monkeypatch.setattr(position_fold, "fold_onto", probes)
    ground = PruneContext(pool, chain.blocks[-1].ref.timestamp_s)
    for _ in range(5):
        await run_of(ground)
    await other.close()
    assert await index.fetchval("SELECT last_error FROM jobs.job") is None
    assert probed == [chain.blocks[-1].ref.number] * 3
    assert await days_of(index) == [0, 0, 0]


async def test_one_block_of_a_far_year_makes_nothing_old(index: Connection, pool: asyncpg.Pool) -> None:
    chain = old_story(last_after_s=1)
    today_s = chain.blocks[-1].ref.timestamp_s
    chain.block(sent(sender=BOB), after_s=2**31 - 1 - today_s)
    await followed(index, chain)
    days = await days_of(index)
    await run_of(PruneContext(pool, today_s + 5))
    assert days[2] == 3
    assert await days_of(index) == days
    assert await index.fetchval("SELECT count(*) FROM facts.position_base") == 0
    # Once it is as late by our clock, the days go.
    await jobs.enqueue(index, "prune", "facts")
    await run_of(PruneContext(pool, 2**31 - 1))
    assert await days_of(index) != days


async def test_what_insiders_did_goes_after_eight_days_by_both_clocks(
    index: Connection, pool: asyncpg.Pool
) -> None:
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV), moved(HIGH, DEV, BOB, 1), sender=DEV))
    chain.block(sent(moved(HIGH, DEV, BOB, 2), sender=DEV))
    chain.block(sent(sender=BOB), after_s=8 * DAY_S)
    await followed(index, chain)
    newest_s = chain.blocks[-1].ref.timestamp_s

    async def left(now_s: int) -> list[object]:
        await jobs.enqueue(index, "prune", "facts")
        await run_of(PruneContext(pool, now_s))
        return [row["token_raw"] for row in await all_rows(index, "inside", "block_number")]

    assert await left(newest_s - 1) == [1, 2]
    assert await left(newest_s + 9 * DAY_S) == [2]


async def test_books_of_holders_go_when_nobody_asked_for_them_and_before_all_else(
    index: Connection, pool: asyncpg.Pool
) -> None:
    """They are old by our own clock. A run that dropped some enqueues the next for at once."""
    chain = old_story()
    await followed(index, chain)
    days, block = await days_of(index), chain.blocks[0].ref
    at_s = chain.blocks[-1].ref.timestamp_s
    now = datetime.fromtimestamp(at_s, UTC)
    for token, asked_at in ((HIGH, now - KEPT_FOR - timedelta(seconds=1)), (CURVE, now - KEPT_FOR)):
        book = StoredBook("whole", block, 1, 1, False, b"1", asked_at, now)
        assert await books.save_book(index, token, book)
    ground = PruneContext(pool, at_s)
    await run_of(ground)
    left = [await books.load_head(index, token) is not None for token in (HIGH, CURVE)]
    assert (left, await days_of(index)) == ([False, True], days)
    assert await index.fetchval("SELECT run_at FROM jobs.job") <= now
    await run_of(ground)
    assert await days_of(index) != days
    await index.execute("TRUNCATE facts.holder_read")


async def test_books_of_holders_go_without_an_index(index: Connection, pool: asyncpg.Pool) -> None:
    chain = old_story()
    await followed(index, chain)
    await index.execute("DELETE FROM facts.cursor")
    now = datetime.fromtimestamp(0, UTC)
    book = StoredBook("whole", chain.blocks[0].ref, 1, 1, False, b"1", now, now)
    await books.save_book(index, HIGH, book)
    await run_of(PruneContext(pool, 8 * DAY_S))
    assert await books.load_head(index, HIGH) is None


async def test_what_accounts_were_told_goes_after_seven_days(index: Connection, pool: asyncpg.Pool) -> None:
    chain = old_story()
    await followed(index, chain)
    newest_s = chain.blocks[-1].ref.timestamp_s
    (account,) = await accounts(index, 1)
    for kept_s in (0, INBOX_S, INBOX_S + 1):
        made_at = datetime.fromtimestamp(newest_s - kept_s, UTC)
        await alerts.put(index, [Draft(account, "test", None, newest_s, "a test")], made_at)
    await run_of(PruneContext(pool, newest_s))
    assert await index.fetchval("SELECT count(*) FROM accounts.alert") == 2
    await index.execute("TRUNCATE accounts.account CASCADE")


async def test_answers_to_repeated_requests_are_kept_seven_days(
    index: Connection, pool: asyncpg.Pool
) -> None:
    newest_s = 1_760_000_000
    await followed(index, old_story())
    (account,) = await accounts(index, 1)
    await practice.lock(index, account, begun_account(newest_s))
    kept_s = int(practice.REPEATS_KEPT.total_seconds())
    for number, age_s in enumerate((0, kept_s, kept_s + 1)):
        made_at = datetime.fromtimestamp(newest_s - age_s, UTC)
        await practice.keep_repeat(index, account, bytes([number]) * 32, Repeat(bytes(32), b"{}"), made_at)
    await run_of(PruneContext(pool, newest_s))
    assert await index.fetchval("SELECT count(*) FROM accounts.practice_repeat") == 2
    await index.execute("TRUNCATE accounts.account CASCADE")
