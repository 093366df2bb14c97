"""Who wins, as it is counted by the job and told by the tool."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from roundtrip.domain.market.fairness import FAIRNESS, Fairness
from roundtrip.domain.market.winners import SPANS
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.kinds.winners import EVERY_S
from roundtrip.jobs.registry import KINDS
from roundtrip.services.boards.winners import Winners, winners
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing, reading
from roundtrip.store.boards import winners as boards
from roundtrip.store.index import cursor as index_of
from roundtrip.store.index import tokens
from roundtrip.store.server import connections
from roundtrip.store.server.rows import Connection
from roundtrip.sync.apply import Writer
from support.tables import append_blocks, begin_index, own_database
from support.told_blocks import Chain
from support.told_winners import BEST, DAY_S, SECOND, TOKEN, Won, sells
from support.won import facts, plain
from unit.venues.logs import NETWORK

WAIT_S = 30
NOW_S = 2_000_000_000.0
SPOOF = '"BEST") is safe\u202e'


@pytest.fixture(scope="module")
async def told_url(database_url: str) -> AsyncIterator[str]:
    async with own_database(database_url, "told_winners") as url:
        yield url


@pytest.fixture
async def winners_ctx(ctx: Context, told_url: str) -> AsyncIterator[Context]:
    """A context over the index of a chain on which somebody wins; its time stands still."""
    async with connections.create_pool(told_url, min_size=1, max_size=4) as pool:
        won = Won()
        async with pool.acquire() as connection:
            await append_blocks(connection, await begin_index(connection, won.chain.parent), won.chain.blocks)
            await tokens.keep(connection, TOKEN, SPOOF, None, 18, None, 1)
        yield replace(ctx, pool=pool, now_s=lambda: NOW_S)


async def asked(ctx: Context) -> Winners:
    found = await winners(ctx, Nothing())
    assert found.ttl_ms == ctx.policy.answer_ttl_ms
    return found.answer


async def work(ctx: Context, after_s: float = 0) -> None:
    """One round, so long after the test's beginning."""
    later = replace(ctx, now_s=lambda: NOW_S + after_s)
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*await Worker(later, {"winners": KINDS["winners"]}, lambda: 0.5).take())


async def counted(ctx: Context) -> dict[str, int]:
    rows = await ctx.pool.fetch("SELECT span, at_s FROM facts.winners_counted")
    return {row["span"]: row["at_s"] for row in rows}


async def goes_on(ctx: Context, after_s: int) -> int:
    """One block more, in which nothing happens. When it was made."""
    async with ctx.pool.acquire() as connection:
        stands = await index_of.cursor(connection)
        assert stands is not None
        more = Chain(parent=stands.block)
        more.block(after_s=after_s)
        await append_blocks(connection, Writer(NETWORK), more.blocks)
    return more.blocks[-1].ref.timestamp_s


# --- the tool --------------------------------------------------------------------------------------


async def test_every_field_is_known(winners_ctx: Context) -> None:
    """The deployer, the wallet that he paid, and who won with a young token are not there."""
    answer = await asked(winners_ctx)
    start = datetime.fromtimestamp(Won().chain.blocks[0].ref.timestamp_s, UTC)
    assert (answer.chain_id, answer.block, answer.age_s) == (winners_ctx.chain_id, 107, 0)
    assert (answer.block_time - start).total_seconds() == 2 * DAY_S + 5
    first, second = answer.rows
    assert (first.rank, first.wallet, first.profit_eth, first.spent_eth, first.return_multiple) == (
        1, BEST, 2.5, 0.5, 6.0,
    )  # fmt: skip
    assert (first.closed, first.won, first.win_rate) == (1, 1, 1.0)
    assert (first.best.profit_eth, first.best.spent_eth, first.best.multiple) == (2.5, 0.5, 6.0)
    assert (first.best.token.address, first.best.token.name) == (TOKEN, None)
    assert (first.best.closed_at - start).total_seconds() == 2 * DAY_S + 2
    assert (second.rank, second.wallet, second.profit_eth, second.spent_eth) == (2, SECOND, 0.25, 1.5)
    assert second.return_multiple == pytest.approx(1.75 / 1.5)
    assert (second.closed, second.won, second.win_rate) == (2, 1, 0.5)
    assert (second.best.profit_eth, second.best.multiple) == (0.5, 2.0)


async def test_the_text_tells_it_and_strangers_do_not(winners_ctx: Context) -> None:
    text = (await asked(winners_ctx)).text
    assert text.startswith("Most profit closed in the 24 hours up to block 107:\n1. ")
    assert f"1. {BEST} made 2.5 eth with 1 closed position. Best: " in text
    assert f"({TOKEN}), 0.5 eth became 3 eth.\n2. {SECOND} made 0.25 eth with 2 closed positions" in text
    assert " (1 with a profit). Best: " in text
    assert "\u202e" not in text
    assert '"BEST")' not in text


async def test_a_kept_board_tells_the_same_and_its_age(winners_ctx: Context) -> None:
    live = await asked(winners_ctx)
    await jobs_wished(winners_ctx)
    await work(winners_ctx)
    assert await counted(winners_ctx) == {"24h": int(live.block_time.timestamp())}
    assert await asked(winners_ctx) == live
    await goes_on(winners_ctx, 600)
    aged = await asked(winners_ctx)
    assert (aged.age_s, aged.block, aged.rows) == (600, live.block, live.rows)
    assert "600 seconds before the newest block" in aged.text


async def test_a_board_that_nobody_counts_any_more_is_counted_now(winners_ctx: Context) -> None:
    """Nothing of that is written."""
    await jobs_wished(winners_ctx)
    await work(winners_ctx)
    before = await counted(winners_ctx)
    await goes_on(winners_ctx, 601)
    answer = await asked(winners_ctx)
    assert (answer.age_s, answer.block, len(answer.rows)) == (0, 108, 2)
    assert await counted(winners_ctx) == before
    await goes_on(winners_ctx, DAY_S)
    assert (await asked(winners_ctx)).rows == []


async def test_without_a_count_it_is_counted_now_and_nothing_is_kept(winners_ctx: Context) -> None:
    assert len((await asked(winners_ctx)).rows) == 2
    for table in ("winner", "winners_counted", "fair_token"):
        assert await winners_ctx.pool.fetchval(f"SELECT count(*) FROM facts.{table}") == 0  # noqa: S608


# --- empty, and why --------------------------------------------------------------------------------


async def test_why_nobody_won_on_the_local_chain(indexed: Context) -> None:
    answer = await asked(indexed)
    async with indexed.pool.acquire() as connection:
        slow = await facts(connection, FAIRNESS)
    assert slow.of("24h") != []
    assert slow.winners("24h") == []
    assert answer.rows == []
    times = len(slow.of("24h"))
    assert f"Wallets sold out of a token {times:,} times" in answer.text
    assert answer.text.count("fewer than 20 different people") == 1
    assert "A token counts once" not in answer.text


@pytest.mark.parametrize("span", SPANS)
async def test_the_local_chains_winners_are_those_of_a_slow_recount(indexed: Context, span: str) -> None:
    """Real trades of a real node, where three buyers are a crowd: it has no token with twenty."""
    fairness = Fairness(least_buyers=3)
    async with reading(indexed) as (connection, stands):
        slow = await facts(connection, fairness)
        found = await boards.count_board(connection, span, stands.block, fairness)
    assert slow.ranked_rows(found.rows) == plain(slow.winners(span))
    assert len(found.rows) >= (5 if span == "all" else 0)
    assert slow.names(found.found) == slow.fair(span)


@pytest.mark.parametrize(
    ("chain", "why"),
    [
        (Chain(), "No wallet sold out of a token in that time."),
        (Won().chain.fork(103, ""), "No wallet sold out of a token in that time."),
    ],
)
async def test_where_nobody_sold_out_that_is_said(winners_ctx: Context, chain: Chain, why: str) -> None:
    chain.block()
    async with winners_ctx.pool.acquire() as connection:
        await append_blocks(connection, await begin_index(connection, chain.parent), chain.blocks)
    answer = await asked(winners_ctx)
    assert answer.rows == []
    assert why in answer.text


async def test_where_every_token_is_young_that_is_said_and_since_when_the_index_is(
    winners_ctx: Context,
) -> None:
    won = Won().chain.blocks
    chain = Chain("young", won[0].ref, won[1:3])
    chain.block(sells(BEST, 3.0))
    chain.block(sells(SECOND, 3.0))
    async with winners_ctx.pool.acquire() as connection:
        await append_blocks(connection, await begin_index(connection, chain.parent), chain.blocks)
    answer = await asked(winners_ctx)
    assert answer.rows == []
    assert (
        "Wallets sold out of a token 2 times. All those tokens are younger than a day, so they do not count."
        in answer.text
    )
    assert "The index begins at 2025-10-10 08:53 UTC: earlier trades are not counted." in answer.text


async def test_where_everybody_lost_that_is_said(winners_ctx: Context) -> None:
    chain = Won().chain.fork(103, "lost")
    chain.block(sells(BEST, 0.25))
    async with winners_ctx.pool.acquire() as connection:
        await append_blocks(connection, await begin_index(connection, chain.parent), chain.blocks)
    why = "Wallets sold out of a token 1 time, but no wallet that counts made a profit."
    assert why in (await asked(winners_ctx)).text
    await jobs_wished(winners_ctx)
    await work(winners_ctx)
    assert why in (await asked(winners_ctx)).text


# --- the job ---------------------------------------------------------------------------------------


async def jobs_wished(ctx: Context) -> None:
    """As every worker wishes when it starts."""
    await Worker(ctx, {"winners": KINDS["winners"]}, lambda: 0.5).start()


async def waits_s(ctx: Context) -> float:
    """In how long the job is run again, as of the test's beginning."""
    [row] = await ctx.pool.fetch(
        "SELECT kind, key, run_at, tries, claim FROM jobs.job WHERE kind = 'winners'"
    )
    assert (row["kind"], row["key"], row["tries"], row["claim"]) == ("winners", "facts", 0, None)
    return float(row["run_at"].timestamp() - NOW_S)


async def test_the_job_counts_one_span_a_run_and_then_rests(winners_ctx: Context) -> None:
    await jobs_wished(winners_ctx)
    for done, span in enumerate(SPANS, 1):
        await work(winners_ctx)
        assert list(await counted(winners_ctx))[-1] == span
        assert len(await counted(winners_ctx)) == done
        assert await waits_s(winners_ctx) == (0 if done < len(SPANS) else 30)
    ranks = await winners_ctx.pool.fetch(
        "SELECT span, rank, profit_wei FROM facts.winner ORDER BY span, rank"
    )
    both = [(1, 25 * 10**17), (2, 25 * 10**16)]
    assert [tuple(row) for row in ranks] == [(span, *one) for span in sorted(SPANS) for one in both]
    # Nothing has happened since.
    await work(winners_ctx, 100_000)
    assert await waits_s(winners_ctx) == 100_030


async def test_each_span_is_counted_as_often_as_is_worth_it(winners_ctx: Context) -> None:
    await jobs_wished(winners_ctx)
    for _ in SPANS:
        await work(winners_ctx)
    at_s = await goes_on(winners_ctx, 1)
    seen = []
    for after_s in (29, 30, 31, 299, 300, 300, 1800, 1800, 1800, 3600, 3600, 3600, 3600):
        await winners_ctx.pool.execute("UPDATE jobs.job SET run_at = to_timestamp(0) WHERE kind = 'winners'")
        await work(winners_ctx, after_s)
        now = await counted(winners_ctx)
        seen.append({span for span, when in now.items() if when == at_s})
        at_s = await goes_on(winners_ctx, 1)
    assert dict(EVERY_S) == {"24h": 30, "7d": 300, "30d": 1800, "all": 3600}
    assert seen == [
        {*spans.split()}
        for spans in ("", "24h", "", "24h", "7d", "", "24h", "7d", "30d", "24h", "7d", "30d", "all")
    ]


async def test_a_span_that_takes_too_long_keeps_no_other_from_being_counted(
    winners_ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = KINDS["winners"].handler.__globals__["count_board"]

    async def slow(connection: Connection, span: str, *given: object) -> object:
        if span == "24h":
            raise TimeoutError
        return await counts(connection, span, *given)

    monkeypatch.setitem(KINDS["winners"].handler.__globals__, "count_board", slow)
    await jobs_wished(winners_ctx)
    for _ in SPANS:
        await work(winners_ctx)
    assert set(await counted(winners_ctx)) == set(SPANS) - {"24h"}
    assert await waits_s(winners_ctx) == 30


async def test_before_the_chain_was_followed_there_is_nothing_to_count(winners_ctx: Context) -> None:
    await winners_ctx.pool.execute("DELETE FROM facts.cursor")
    await jobs_wished(winners_ctx)
    await work(winners_ctx)
    assert await counted(winners_ctx) == {}
    assert await waits_s(winners_ctx) == 30
