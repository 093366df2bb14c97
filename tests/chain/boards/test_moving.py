"""What moves now, the checks behind it, and the chain's vitals: on the local chain, with known answers."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from roundtrip.domain.base.figures import format_gas_price
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.market.chain_stats import block_time_ms
from roundtrip.domain.market.exposure import EXPOSED_FOR_S
from roundtrip.domain.market.moving import CHECKED_EVERY_S, PROVEN_FOR_S
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.kinds.boards import EVERY_S, MAX_READINGS, MAX_WAITING
from roundtrip.jobs.registry import KINDS
from roundtrip.services.boards.chain_vitals import ChainVitals, chain_vitals
from roundtrip.services.boards.graduating_soon import graduating_page
from roundtrip.services.boards.moving_now import (
    WINDOWS_S,
    Moving,
    MovingNow,
    MovingParams,
    moving_now,
    moving_page,
)
from roundtrip.services.boards.newest_verdicts import NewestParams, newest_verdicts
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.shown_verdict import SHARED_MS
from roundtrip.store.boards.moving import put_insiders
from roundtrip.store.check import evidence
from roundtrip.store.server import connections, jobs
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.rows import Connection
from roundtrip_development.devnet.deploy import ContractDeployer
from roundtrip_development.devnet.launchpad import LaunchRequest, graduate, launch
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import GENESIS_S, Built
from support.databases import connected, database
from support.fixtures import context_for
from support.indexing import at, follow
from support.nodes import node_of
from support.trader import Market, MarketTrader
from support.wallet import Wallet

WAIT_S = 60
ETH, MILLI, USDG = 10**18, 10**15, 10**6
DAY_S = 86_400
TRADES = 17


@dataclass(frozen=True)
class MovingStory:
    """What happened: ``launched``: a token on its curve; ``back_wei``: what a seller of "plain" got."""

    launched: str
    back_wei: int
    newest: int
    newest_s: int


def block_of(rpc: SyncRpc, number: str = "latest") -> tuple[int, int]:
    found = rpc.call("eth_getBlockByNumber", number, False)
    return int(found["number"], 16), int(found["timestamp"], 16)


def wallets(rpc: SyncRpc, built: Built) -> list[Wallet]:
    """Five: the first three with a funder each, the other two have the first one's."""
    found = [Wallet(rpc, built.contracts, f"moving {n}", wei=0) for n in range(5)]
    for wallet, giver in zip(found, (1, 2, 3, 1, 1), strict=True):
        sender = ContractDeployer(rpc, built.accounts[giver])
        sender.receipt(sender.send(wallet.address, "0x", 20 * ETH))
    return found


@pytest.fixture
def story(rpc: SyncRpc, built: Built) -> MovingStory:
    """Nothing for a day, and then some minutes of trading."""
    rpc.call("evm_setNextBlockTimestamp", block_of(rpc)[1] + DAY_S + 100)
    rpc.call("evm_mine")
    tokens, people = built.tokens, wallets(rpc, built)
    graduate(ContractDeployer(rpc, built.accounts[5], 6_000_000), built.contracts, tokens["curve_full"])
    launcher = ContractDeployer(rpc, built.accounts[6], 6_000_000)
    made = launch(launcher, built.contracts, LaunchRequest("Moving", "MOVE", creator_tax_bps=0))
    for wallet in people[:3]:
        wallet.get_usdg(100 * USDG)
    rpc.call("evm_setNextBlockTimestamp", block_of(rpc)[1] + 100)
    for wallet, milli in zip(people, (1000, 500, 250, 125), strict=False):
        assert wallet.buy(tokens["plain"], "weth", 3000, milli * MILLI)
    for wallet, milli in zip(people, (100, 200, 300), strict=False):
        assert wallet.buy(tokens["owner_only_sell"], "weth", 3000, 3 * ETH)
        assert wallet.buy(tokens["usdg_pool"], "usdg", 3000, 100 * USDG)
        trader = MarketTrader(wallet, built.contracts, Market(made.token, ZERO_ADDRESS, curve=made.curve))
        assert trader.buy(milli * MILLI)
    for wallet in (people[0], *people[3:]):
        assert wallet.buy(tokens["v4_eth"], "eth", 3000, 2 * ETH, version=4)
    fill = people[0].sell(tokens["plain"], "weth", 3000, people[0].tokens(tokens["plain"]) // 2)
    assert fill.ok
    return MovingStory(made.token.lower(), fill.back_raw, *block_of(rpc))


@pytest.fixture
async def url(database_url: str) -> AsyncIterator[str]:
    async with database(database_url, "moving") as found:
        async with connected(found) as connection:
            await migrate(connection)
        yield found


@pytest.fixture
async def moved(rpc: SyncRpc, built: Built, story: MovingStory, url: str) -> AsyncIterator[Context]:
    """A context over the chain after the story and the index of all of it, its jobs taken away."""
    await follow(rpc.url, built, url, 0, at(story.newest))
    async with (
        connections.create_pool(url, min_size=1, max_size=4) as pool,
        context_for(rpc.url, built, pool) as found,
    ):
        await found.heads.refresh()
        async with connected(url) as connection:
            await connection.execute("TRUNCATE jobs.job")
        yield found


@pytest.fixture
async def rows(moved: Context, url: str) -> AsyncIterator[Connection]:
    """A connection to the index."""
    async with connected(url) as connection:
        yield connection


async def work(ctx: Context, rounds: int = 1) -> None:
    """So many rounds, each of what is due to its end."""
    for _ in range(rounds):
        await ctx.heads.refresh()
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*await Worker(ctx, KINDS, lambda: 0.5).take())


async def boarded(ctx: Context, connection: Connection, rounds: int = 1) -> list[str]:
    """What waits to be checked when the job has run, and as many rounds more."""
    await jobs.enqueue(connection, "boards", "moving")
    await work(ctx, rounds)
    return await waiting(connection)


async def waiting(connection: Connection) -> list[str]:
    found = await connection.fetch("SELECT key FROM jobs.job WHERE kind = 'recheck' ORDER BY key")
    return [row["key"] for row in found]


def later(ctx: Context, seconds: float) -> Context:
    now_s = ctx.now_s() + seconds
    return replace(ctx, now_s=lambda: now_s)


async def read_board(ctx: Context) -> MovingNow:
    return (await moving_now(ctx, Nothing())).answer


def by_address(answer: MovingNow) -> dict[str, Moving]:
    return {row.token.address: row for row in answer.tokens}


# --- what moves ------------------------------------------------------------------------------------


async def test_a_launch_is_listed_at_once_and_every_field_is_known(
    moved: Context, rows: Connection, rpc: SyncRpc, built: Built, story: MovingStory
) -> None:
    await jobs.enqueue(rows, "token", story.launched)
    await work(moved)
    answer = await read_board(moved)
    assert (answer.chain_id, answer.block) == (4663, story.newest)
    assert answer.block_time.timestamp() == story.newest_s
    assert answer.since.timestamp() == story.newest_s - 600
    (row,) = answer.tokens
    assert (row.token.address, row.token.symbol, row.token.name) == (story.launched, "MOVE", "Moving")
    assert (row.launchpad, row.venue, row.check) == (True, "launchpad_curve", None)
    assert (row.net_in_eth, row.in_eth, row.out_eth) == (0.6, 0.6, 0.0)
    assert row.in_usd == pytest.approx(0.6 * 3500, rel=0.01)
    assert (row.buys, row.sells, row.buyers, row.sellers, row.crowd) == (3, 0, 3, 0, 3)
    assert row.launched_at is not None
    assert row.launched_at == row.opened_at
    async with moved.pool.acquire() as connection:
        launched_s = await connection.fetchval("SELECT max(at_s) FROM facts.launch")
    assert row.launched_at.timestamp() == launched_s
    # The trap, "plain" and "usdg_pool": nobody has sold any of them yet. One wallet's friends are no crowd.
    assert (answer.unproven, answer.traps) == (3, 0)
    assert "UTC 1 token took in more eth than came out and had 3 or more buyers" in answer.text
    assert "younger than a day" not in answer.text
    assert f'\n1. "MOVE" ({story.launched}): 0.6 eth more in than out, 3 buyers.\n' in answer.text
    assert "1 launchpad token was not checked in the last hour: run check_token before" in answer.text
    assert "3 tokens are left out: no sell of them is proven yet." in answer.text


async def test_what_is_in_a_pool_is_listed_once_it_was_sold_in_a_check_and_a_trap_never(
    moved: Context, rows: Connection, built: Built, story: MovingStory
) -> None:
    plain, dollar, trap, alone = (
        built.tokens[key] for key in ("plain", "usdg_pool", "owner_only_sell", "v4_eth")
    )
    before = by_address(await read_board(moved))
    assert before.keys() == {story.launched}
    # Whom people see is another question than what programs are told: nothing without a check.
    assert await groups(moved) == dict.fromkeys((plain, story.launched, dollar, trap), "checking")
    assert await boarded(moved, rows) == sorted([plain, dollar, trap, story.launched])
    await work(moved, 2)
    assert await waiting(rows) == []
    after = later(moved, 100)
    answer = await read_board(after)
    assert [row.token.address for row in answer.tokens] == [plain, story.launched, dollar]
    assert (answer.unproven, answer.traps) == (0, 1)
    listed = dict.fromkeys((plain, story.launched, dollar), "listed")
    assert await groups(after) == {**listed, trap: "danger"}
    row = answer.tokens[0]
    assert (row.launchpad, row.venue, row.launched_at) == (False, "amm_v3", None)
    assert (row.in_eth, row.out_eth) == (1.875, story.back_wei / ETH)
    assert row.net_in_eth == (1_875 * MILLI - story.back_wei) / ETH
    assert row.in_usd == pytest.approx(1.875 * 3500, rel=0.01)
    assert (row.buys, row.sells, row.buyers, row.sellers, row.crowd) == (4, 1, 4, 1, 3)
    assert row.opened_at.timestamp() < story.newest_s - DAY_S
    assert row.check is not None
    assert (row.check.code, row.check.level) == ("ok", "ok")
    assert 100 <= row.check.age_s < 100 + WAIT_S
    assert abs(after.now_s() - row.check.age_s - row.check.checked_at.timestamp()) < 2
    dollars = answer.tokens[2]
    assert (dollars.in_usd, dollars.buyers) == (300.0, 3)
    assert dollars.in_eth == pytest.approx(300 / 3500, rel=0.01)
    assert "1 token is left out: a check found that you cannot sell it." in answer.text
    kept = await evidence.latest(rows, Address(trap))
    assert kept is not None
    assert kept.verdict_code == "cannot_sell"
    assert await evidence.latest(rows, Address(alone)) is None
    # A proof ages; a trap stays one.
    answer = await read_board(later(moved, PROVEN_FOR_S + WAIT_S + 1))
    assert by_address(answer).keys() == {story.launched}
    assert (answer.unproven, answer.traps) == (2, 1)


@pytest.mark.parametrize(
    ("code", "level", "listed", "expected"),
    [
        ("cannot_sell", "danger", False, "a check found that you cannot sell it"),
        ("unproven", "unknown", True, "We could not find out whether you can sell"),
        ("heavy_fees", "danger", True, "You lose half or more"),
        ("ok", "ok", True, "MOVE"),
    ],
)
async def test_what_a_check_said_of_a_launch_is_shown(
    moved: Context, rows: Connection, story: MovingStory, code: str, level: str, listed: bool, expected: str
) -> None:
    await jobs.enqueue(rows, "token", story.launched)
    await work(moved)
    now = datetime.fromtimestamp(moved.now_s(), UTC) - timedelta(seconds=50)
    kept = evidence.KeptEvidence(now, 1, "p", code, level, b"")
    await evidence.keep(rows, Address(story.launched), kept)
    answer = await read_board(moved)
    assert expected in answer.text
    found = by_address(answer).get(story.launched)
    assert (found is not None) == listed
    if found is not None:
        assert found.check is not None
        assert (found.check.code, found.check.level, found.check.age_s // 10) == (code, level, 5)


async def groups(ctx: Context) -> dict[str, str]:
    return {row.token.address: row.group for row in (await moving_page(ctx, MovingParams())).answer.rows}


async def test_the_page_knows_prices_depth_and_holders(
    moved: Context, rows: Connection, story: MovingStory
) -> None:
    for token in await groups(moved):
        await jobs.enqueue(rows, "token", token)
    await work(moved, 3)
    page = (await moving_page(moved, MovingParams())).answer
    found = {row.token.address: row for row in page.rows}
    launch, dollars = found[story.launched], [row for row in page.rows if row.venue == "amm_v3"]
    assert (launch.venue, launch.kept_bps, launch.holders) == ("launchpad_curve", 10_000, 3)
    assert launch.price_eth is not None
    assert launch.price_usd is not None
    assert launch.price_usd == pytest.approx(launch.price_eth * 3500, rel=0.01)
    assert launch.cap_usd == pytest.approx(launch.price_usd * 10**9, rel=0.01)
    assert launch.liquidity_eth == pytest.approx(0.6, rel=0.05)
    assert launch.change24h is None
    # All of its trades lie in the newest part of the day: one height, in the middle.
    assert [height for height in launch.line if height is not None] == [50]
    assert all(row.price_usd and row.liquidity_usd for row in dollars)
    # Their first trades are of this hour: there is no earlier price.
    assert {row.change24h for row in dollars} == {None}


async def test_a_window_counts_what_was_traded_within_it(moved: Context) -> None:
    """All trades of the story lie within ten minutes: any longer window counts the same."""
    found = {
        window: {
            row.token.address: (row.buys, row.sells, row.makers, row.volume_eth, row.net_in_eth, row.is_cut)
            for row in (await moving_page(moved, MovingParams(window))).answer.rows
        }
        for window in WINDOWS_S
    }
    assert found["10m"]
    assert found["24h"] == found["6h"] == found["1h"] == found["10m"]
    assert found["5m"].keys() == found["10m"].keys()
    assert all(makers <= buys + sells for buys, sells, makers, *_ in found["10m"].values())


async def test_a_long_window_shows_verdicts_as_soon_as_the_usual_one(
    moved: Context, rows: Connection
) -> None:
    day = MovingParams("24h")
    before = await moving_page(moved, day)
    assert before.ttl_ms == (await moving_page(moved, MovingParams())).ttl_ms == SHARED_MS
    token = next(row.token.address for row in before.answer.rows if row.group != "danger")
    now = datetime.fromtimestamp(moved.now_s(), UTC)
    kept = evidence.KeptEvidence(now, 1, "p", "cannot_sell", "danger", b"")
    await evidence.keep(rows, Address(token), kept)
    (row,) = [row for row in (await moving_page(moved, day)).answer.rows if row.token.address == token]
    assert (row.group, row.verdict and row.verdict.code) == ("danger", "cannot_sell")
    # The board of new verdicts knows the same age.
    newest = (await newest_verdicts(moved, NewestParams())).answer.rows[0]
    assert (newest.token.address, newest.age_s) == (token, row.age_s)


async def test_the_page_says_what_insiders_hold_and_what_can_leave_once_that_was_read(
    moved: Context, rows: Connection, built: Built, story: MovingStory
) -> None:
    plain = built.tokens["plain"]
    exposed = await exposures(moved)
    assert exposed.keys() >= {plain, story.launched}
    assert set(exposed.values()) == {(None, None, None)}
    await jobs.enqueue(rows, "boards", "moving")
    await run_alone(moved, "boards")
    assert await rows.fetchval("SELECT count(*) FROM jobs.job WHERE kind = 'exposure'") == MAX_READINGS
    await rows.execute("DELETE FROM jobs.job")
    for token in exposed:
        await jobs.enqueue(rows, "exposure", token)
        await run_alone(moved, "exposure")
    assert await rows.fetchval("SELECT count(*) FROM jobs.job") == 0
    exposed = await exposures(moved)
    # A wallet holds its positions; three of its buyers were paid by one.
    assert exposed[plain][:2] == (10_000, 0)
    assert exposed[story.launched][:2] == (0, 0)
    assert all(exposed[token][2] for token in (plain, story.launched))
    # Read lately, none is due: the tokens of the other board have their turn.
    await jobs.enqueue(rows, "boards", "moving")
    await run_alone(moved, "boards")
    filling = (await graduating_page(moved, Nothing())).answer
    insiders = {curve.token.address: curve.insiders_bps for curve in filling.rows}
    assert {token: bps for token, bps in insiders.items() if bps is not None} == {
        story.launched: exposed[story.launched][2]
    }
    others = {curve.token.address for curve in filling.rows} - {*exposed}
    queued = {row["key"] for row in await rows.fetch("SELECT key FROM jobs.job WHERE kind = 'exposure'")}
    assert queued <= others
    assert len(queued) == min(len(others), MAX_READINGS)
    # A reading counts for an hour.
    assert (await exposures(later(moved, EXPOSED_FOR_S + WAIT_S)))[plain] == (None, None, None)


async def test_both_boards_tell_one_price_of_a_launch(
    moved: Context, rows: Connection, story: MovingStory
) -> None:
    await jobs.enqueue(rows, "token", story.launched)
    await work(moved)
    moving = (await moving_page(moved, MovingParams())).answer.rows
    filling = (await graduating_page(moved, Nothing())).answer.rows
    (row,) = (row for row in moving if row.token.address == story.launched)
    (curve,) = (row for row in filling if row.token.address == story.launched)
    assert row.cap_usd is not None
    told = (row.price_eth, row.price_usd, row.cap_usd, row.change1h)
    assert (curve.price_eth, curve.price_usd, curve.cap_usd, curve.change1h) == told


async def exposures(ctx: Context) -> dict[str, tuple[int | None, int | None, int | None]]:
    page = (await moving_page(ctx, MovingParams())).answer
    return {row.token.address: (row.free_bps, row.unproven_bps, row.insiders_bps) for row in page.rows}


async def test_the_newest_verdicts_show_each_token_once_traps_too(moved: Context, rows: Connection) -> None:
    now = datetime.fromtimestamp(moved.now_s(), UTC)
    cases: tuple[tuple[str, str, int, bool], ...] = (
        ("ok", "ok", 50, False),
        ("cannot_sell", "danger", 40, False),
        ("ok", "warn", 30, False),
        ("ok", "ok", 7200, False),
        ("cannot_sell", "danger", 20, True),
    )
    for number, (code, level, ago_s, deep) in enumerate(cases, 1):
        for at_s in (ago_s + 5, ago_s):
            kept = evidence.KeptEvidence(
                now - timedelta(seconds=at_s), 1, "p", code, level, b"", deep=deep, holders=3 * deep
            )
            await evidence.keep(rows, Address(f"0x{number:040x}"), kept)
    # A plain check refutes no deep one.
    plain = evidence.KeptEvidence(now, 1, "p", "ok", "ok", b"")
    await evidence.keep(rows, Address(f"0x{5:040x}"), plain)
    answer = (await newest_verdicts(moved, NewestParams())).answer
    shown = {int(row.token.address, 16): (row.verdict.code, row.verdict.level) for row in answer.rows}
    trap = ("cannot_sell", "danger")
    assert shown == {1: ("ok", "ok"), 2: trap, 3: ("ok", "warn"), 4: ("ok", "unknown"), 5: trap}
    assert [int(row.token.address, 16) for row in answer.rows] == [5, 3, 2, 1, 4]
    # What insiders hold is known of none, and a good example is one whose insiders hold little.
    assert [int(row.token.address, 16) for row in answer.examples] == [5, 3]
    for bps, examples in ((1999, [1, 5, 3]), (2000, [5, 3])):
        await put_insiders(rows, Address(f"0x{1:040x}"), bps, now)
        answer = (await newest_verdicts(moved, NewestParams())).answer
        found = [int(row.token.address, 16) for row in answer.examples]
        assert (found, bps) == (examples, bps)


async def test_where_nothing_moved_it_says_so(moved: Context, rows: Connection) -> None:
    await rows.execute("UPDATE facts.cursor SET at_s = at_s + 601")
    answer = await read_board(moved)
    assert (answer.tokens, answer.unproven, answer.traps) == ([], 0, 0)
    assert "there was no token to list" in answer.text


# --- what is checked for it ------------------------------------------------------------------------


async def test_a_token_is_checked_every_ten_minutes_and_the_job_wishes_for_itself(
    moved: Context, rows: Connection
) -> None:
    assert len(await boarded(moved, rows)) == 4
    [row] = await rows.fetch("SELECT key, run_at, tries, last_error FROM jobs.job WHERE kind = 'boards'")
    assert (row["key"], row["tries"], row["last_error"]) == ("moving", 0, None)
    assert abs(row["run_at"].timestamp() - moved.now_s() - EVERY_S) < WAIT_S
    # Those that wait are not wished for again.
    ids = await rows.fetch("SELECT id, run_at FROM jobs.job WHERE kind = 'recheck' ORDER BY id")
    held = replace(moved, now_s=lambda: ids[0]["run_at"].timestamp() - 1)
    await boarded(held, rows)
    assert await rows.fetch("SELECT id, run_at FROM jobs.job WHERE kind = 'recheck' ORDER BY id") == ids
    await work(moved, 2)
    assert await boarded(moved, rows) == []
    assert await rows.fetchval("SELECT count(*) FROM facts.evidence WHERE deep") == 4
    oldest = await rows.fetchval("SELECT min(checked_at) FROM facts.evidence")
    early, late = (
        replace(moved, now_s=lambda s=s: oldest.timestamp() + s)  # type: ignore[misc]
        for s in (CHECKED_EVERY_S - 1, CHECKED_EVERY_S + WAIT_S)
    )
    assert await boarded(early, rows) == []
    # The launch sold within an hour, and trades where it is bought back.
    assert len(await boarded(late, rows)) == 3


async def test_a_check_that_fails_is_not_wished_for_again_while_its_job_is_there(
    moved: Context, rows: Connection, built: Built
) -> None:
    """It runs again by itself, ever more seldom; given up it rests ten minutes, too."""
    plain, now = built.tokens["plain"], datetime.fromtimestamp(moved.now_s(), UTC)
    await jobs.enqueue(rows, "recheck", plain)
    (job,) = await jobs.claim(rows, ["recheck"], 1, 60, now)
    await jobs.postpone(rows, job, now + timedelta(hours=1), "it did not work")
    await boarded(moved, rows)
    assert await retried_at(rows, plain) == now + timedelta(hours=1)
    await rows.execute("UPDATE jobs.job SET run_at = $1 WHERE key = $2", now, plain)
    (job,) = [one for one in await jobs.claim(rows, ["recheck"], 9, 60, now) if one.key == plain]
    await jobs.give_up(rows, job, now, "it did not work")
    await rows.execute("DELETE FROM jobs.job WHERE key <> $1", plain)
    await boarded(later(moved, CHECKED_EVERY_S - 30), rows)
    assert await rows.fetchval("SELECT failed_at FROM jobs.job WHERE key = $1", plain) == now
    await boarded(later(moved, CHECKED_EVERY_S + 1), rows)
    assert await rows.fetchval("SELECT failed_at FROM jobs.job WHERE key = $1", plain) is None


async def retried_at(connection: Connection, key: str) -> datetime:
    found: datetime = await connection.fetchval("SELECT run_at FROM jobs.job WHERE key = $1", key)
    return found


async def test_where_enough_wait_no_more_are_wished_for(moved: Context, rows: Connection) -> None:
    others = [f"0x{n:040x}" for n in range(MAX_WAITING - 1)]
    far = datetime.fromtimestamp(moved.now_s(), UTC) + timedelta(hours=1)
    # What failed and is run again later waits for nobody.
    await jobs.enqueue_many(rows, "recheck", [f"0x{n:040x}" for n in range(100, 110)], run_at=far)
    now = datetime.fromtimestamp(moved.now_s(), UTC) - timedelta(seconds=1)
    await jobs.enqueue_many(rows, "recheck", others, run_at=now)
    (kind,) = (kind for name, kind in KINDS.items() if name == "boards")
    await jobs.enqueue(rows, "boards", "moving")
    before = len(await waiting(rows))
    await run_alone(moved, kind_name="boards")
    assert len(await waiting(rows)) == before + 1
    await jobs.enqueue(rows, "boards", "moving")
    await run_alone(moved, kind_name="boards")
    assert len(await waiting(rows)) == before + 1
    assert kind.max_running == 1


async def run_alone(ctx: Context, kind_name: str) -> None:
    async with asyncio.timeout(WAIT_S):
        only = {kind_name: KINDS[kind_name]}
        await asyncio.gather(*await Worker(ctx, only, lambda: 0.5).take())


async def test_without_a_node_or_an_index_nothing_is_wished_for(
    moved: Context, rows: Connection, built: Built
) -> None:
    async with context_for(node_of(moved).url, built, moved.pool) as unheard:
        await jobs.enqueue(rows, "boards", "moving")
        await run_alone(unheard, "boards")
    assert await waiting(rows) == []
    assert await rows.fetchval("SELECT tries + count(*) OVER () FROM jobs.job") == 1
    await rows.execute("DELETE FROM facts.cursor")
    assert await boarded(moved, rows) == []
    assert await rows.fetchval("SELECT last_error FROM jobs.job WHERE kind = 'boards'") is None


# --- vitals ----------------------------------------------------------------------------------------


async def vital(ctx: Context) -> ChainVitals:
    return (await chain_vitals(ctx, Nothing())).answer


async def test_every_vital_is_known(moved: Context, rpc: SyncRpc, story: MovingStory) -> None:
    found = await vital(moved)
    head = rpc.call("eth_getBlockByNumber", "latest", False)
    times = [block_of(rpc, hex(story.newest - 100 + n))[1] for n in range(101)]
    assert (found.chain_id, found.block, found.block_time.timestamp()) == (4663, story.newest, story.newest_s)
    assert found.block_time_ms == block_time_ms(times)
    assert found.gas_price_wei == str(int(head["baseFeePerGas"], 16))
    assert found.gas_price_gwei == int(head["baseFeePerGas"], 16) / 10**9
    assert found.eth_usd == pytest.approx(3500, rel=0.01)
    assert (found.launches_last_hour, found.graduations_last_day) == (1, 1)
    assert found.trades_per_minute == TRADES / 10
    assert (found.blocks_behind, found.seconds_behind) == (0, 0)
    assert (found.followed_from.block, found.followed_from.time.timestamp()) == (0, GENESIS_S)
    assert "The last hour had 1 launch." in found.text
    assert "1.7 trades a minute" in found.text
    assert "not behind the chain" in found.text
    assert "The index begins" not in found.text
    assert "The last day had 1 graduation from a curve to a pool." in found.text
    assert f"Gas costs {format_gas_price(int(found.gas_price_wei))}." in found.text


async def test_how_far_it_is_behind_is_told(moved: Context, rpc: SyncRpc, story: MovingStory) -> None:
    for seconds in (5, 9, 14):
        rpc.call("evm_setNextBlockTimestamp", story.newest_s + seconds)
        rpc.call("evm_mine")
    await moved.heads.refresh()
    found = await vital(moved)
    assert (found.blocks_behind, found.seconds_behind) == (3, 14)
    assert "The service is 3 blocks (14 s) behind the chain." in found.text


async def test_a_node_below_what_was_followed_is_told_of(moved: Context, rows: Connection) -> None:
    """As after a local chain was taken back: nobody is told that all is well."""
    head = moved.heads.current().block
    await rows.execute("UPDATE facts.cursor SET number = number + 600, at_s = at_s + 600")
    found = await vital(moved)
    assert (found.block, found.blocks_behind, found.seconds_behind) == (head.number + 600, None, None)
    assert found.gas_price_wei is not None
    assert f"The node is only at block {head.number:,}, behind the index" in found.text
    assert "not behind the chain" not in found.text


async def test_of_a_node_that_does_not_answer_nothing_is_made_up(moved: Context, built: Built) -> None:
    async with context_for(node_of(moved).url, built, moved.pool) as unheard:
        found = await vital(unheard)
    lost = (
        found.gas_price_wei,
        found.gas_price_gwei,
        found.eth_usd,
        found.blocks_behind,
        found.seconds_behind,
    )
    assert lost == (None,) * 5
    assert (found.launches_last_hour, found.trades_per_minute) == (1, TRADES / 10)
    assert "The node does not answer: the gas price" in found.text


async def test_a_young_index_is_not_taken_for_a_quiet_chain(
    rpc: SyncRpc, built: Built, story: MovingStory, url: str
) -> None:
    """It began with the last trade but one, and has not read yet what launched before."""
    first = story.newest - 1
    await follow(rpc.url, built, url, first, at(story.newest))
    async with connected(url) as connection:
        await connection.execute("UPDATE facts.cursor SET older_number = 0")
    async with (
        connections.create_pool(url, min_size=1, max_size=2) as pool,
        context_for(rpc.url, built, pool) as ctx,
    ):
        found, moving = await vital(ctx), await read_board(ctx)
    assert found.followed_from.block == first
    assert found.followed_from.time.timestamp() == block_of(rpc, hex(first))[1]
    assert found.trades_per_minute is None
    text = f"The index begins at {found.followed_from.time:%Y-%m-%d %H:%M:%S} UTC"
    assert f"{text}: earlier trades, launches and graduations are not counted." in found.text
    assert moving.tokens == []
    assert "The index begins at " in moving.text
    assert ": 10 new wallets count as one person." in moving.text
