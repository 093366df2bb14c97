"""Prices, depth and holders of a board's tokens are what a slow and obvious count of the facts says."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from roundtrip.domain.base.types import BPS, BURN_ADDRESSES, ZERO_ADDRESS, Address
from roundtrip.domain.market.moving import MoneyFlow
from roundtrip.services.runtime.turnover_cache import TurnoverCache
from roundtrip.store.boards import market_figures, moving
from roundtrip.store.boards.market_figures import POINTS, SPANS_S, MarketDepth, PriceLine, WindowTurnover
from roundtrip.store.server.rows import Connection
from support.hex_columns import as_address
from support.tables import append_blocks, begin_index
from support.told_blocks import (
    V3_POSITIONS,
    WETH,
    Chain,
    MadeUp,
    bought,
    launched,
    nft_moved,
    sent,
    sold,
    v3_at,
    v3_minted,
    v3_numbered,
    v3_opened,
    v3_priced,
    v3_swap,
)
from unit.sync.telling import ALICE, BOB, CURVE, DEV, HIGH, LOW
from unit.venues.logs import NETWORK

Q96 = 1 << 96
ALL_S = 10**6
DEAD = max(BURN_ADDRESSES)


async def flows_of(connection: Connection, now_s: int) -> list[MoneyFlow]:
    return await moving.flows(connection, (now_s - ALL_S, now_s), NETWORK, 1)


async def obvious_price(
    connection: Connection, flow: MoneyFlow, moment_s: int, least_wei: int = 1
) -> int | None:
    """Of the last trade in the place up to a moment, else of the last one on the launch's curve."""
    trades = [dict(row) for row in await connection.fetch("SELECT * FROM facts.trade")]
    pools = {row["id"]: dict(row) for row in await connection.fetch("SELECT * FROM facts.pool")}
    launch = await connection.fetchrow("SELECT at FROM facts.launch WHERE token_id = $1", flow.token_id)
    quotes = {row["id"]: as_address(row["address"]) for row in await connection.fetch("TABLE facts.address")}
    places = [flow.pool_id]
    quote = pools[flow.pool_id]["quote_id"]
    places += [one for one, pool in pools.items() if launch and pool["at"] == launch["at"]]
    is_eth = quotes[quote] in (ZERO_ADDRESS, WETH)

    def worth(trade: Mapping[str, Any]) -> int | None:
        wei = trade["eth_wei"]
        raw = trade["quote_raw"] if wei is None and is_eth else wei
        return None if raw is None else int(raw)

    for place in places:
        answer = [
            trade
            for trade in trades
            if trade["pool_id"] == place
            and pools[place]["quote_id"] == quote
            and trade["at_s"] <= moment_s
            and (worth(trade) or 0) >= least_wei
            and trade["token_raw"] > 0
            and trade["quote_raw"] > 0
        ]
        if answer:
            last = max(answer, key=lambda one: (one["at_s"], one["block_number"], one["log_index"]))
            kept = int(last["kept_raw"] or 0)
            quote_raw = int(last["quote_raw"])
            net = quote_raw + (-kept if last["buys"] else kept)
            return int(worth(last) or 0) * net * 10**36 // (quote_raw * int(last["token_raw"]))
    return None


@pytest.mark.parametrize("seed", range(4))
async def test_prices_are_what_an_obvious_search_finds(index: Connection, seed: int) -> None:
    makes, found, chance = MadeUp(seed), Chain(), random.Random(seed)
    writer = await begin_index(index, found.parent)
    makes.grow(found, 60)
    await append_blocks(index, writer, found.blocks)
    now_s, known = found.blocks[-1].ref.timestamp_s, 0
    flows = await flows_of(index, now_s)
    lines = await market_figures.read_prices(index, flows, now_s, 0, NETWORK, 1)
    for flow in flows:
        line = lines[flow.token_id]
        for span_s in SPANS_S:
            expected = await obvious_price(index, flow, now_s - span_s)
            assert line.spans[span_s] == expected
            known += expected is not None
        from_s = max(flow.opened_s, now_s - SPANS_S[-1])
        n = chance.randrange(POINTS)
        expected = await obvious_price(index, flow, from_s + (now_s - from_s) * n // POINTS)
        assert line.points[n] == expected
        assert line.points[-1] == line.newest
    assert known >= 4


@pytest.mark.parametrize("seed", range(3))
async def test_a_turnover_is_what_an_obvious_count_finds_and_says_where_it_is_cut(
    index: Connection, seed: int
) -> None:
    makes, found = MadeUp(seed), Chain()
    writer = await begin_index(index, found.parent)
    makes.grow(found, 60)
    await append_blocks(index, writer, found.blocks)
    now_s = found.blocks[-1].ref.timestamp_s
    flows, counted = await flows_of(index, now_s), 0
    trades = [dict(row) for row in await index.fetch("SELECT * FROM facts.trade")]
    pools = {row["id"]: dict(row) for row in await index.fetch("SELECT * FROM facts.pool")}
    addresses = {row["id"]: as_address(row["address"]) for row in await index.fetch("TABLE facts.address")}
    for span_s in (60, ALL_S):
        turned = await market_figures.read_turnovers(index, flows, (now_s - span_s, now_s), NETWORK)
        for flow in flows:
            told = [
                (trade, int(trade["quote_raw"] if trade["eth_wei"] is None else trade["eth_wei"]))
                for trade in trades
                if pools[trade["pool_id"]]["token_id"] == flow.token_id
                and now_s - span_s < trade["at_s"] <= now_s
                and (
                    trade["eth_wei"] is not None
                    or addresses[pools[trade["pool_id"]]["quote_id"]] in (ZERO_ADDRESS, WETH)
                )
            ]
            buys, sells = ([wei for trade, wei in told if trade["buys"] == way] for way in (True, False))
            makers = len({trade["trader_id"] for trade, _ in told})
            assert turned[flow.token_id] == WindowTurnover(
                sum(buys), sum(sells), len(buys), len(sells), makers
            )
            counted += len(told)
    assert counted
    cut = await market_figures.read_turnovers(index, flows, (now_s - ALL_S, now_s), NETWORK, 1)
    assert all(turnover.is_cut for turnover in cut.values())


def opened(fee_pips: int, wei: int = 0) -> list[Any]:
    """A v3 pool of ``LOW`` with this fee, and a buy of so much in it."""
    at = v3_at(LOW, WETH, fee_pips)
    amounts = (wei, -wei) if int(WETH, 16) < int(LOW, 16) else (-wei, wei)
    swap = [v3_swap(at, *amounts, recipient=ALICE, sender=ALICE)] if wei else []
    return [v3_opened(LOW, WETH, fee_pips), v3_priced(at, Q96), *swap]


@pytest.mark.parametrize(("others", "is_traded_last", "is_cut"), [
    (5, True, False), (5, False, True), (6, True, True), (4, False, False),
])  # fmt: skip
async def test_a_turnover_of_more_places_than_are_counted_says_so(
    index: Connection, others: int, is_traded_last: bool, is_cut: bool
) -> None:
    """The five oldest places are counted, and that where most of the money goes in."""
    chain, wei = Chain(), 10**15
    fees = range(100, 100 * (others + 2), 100)
    traded = fees[-1] if is_traded_last else fees[0]
    for fee_pips in fees:
        chain.block(sent(*opened(fee_pips, wei if fee_pips == traded else 0)))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    now_s = chain.blocks[-1].ref.timestamp_s
    flows = await flows_of(index, now_s)
    (counted,) = (await market_figures.read_turnovers(index, flows, (now_s - ALL_S, now_s), NETWORK)).values()
    assert (counted.buys, counted.is_cut) == (1, is_cut)
    # Also where nothing was traded within the window.
    later = now_s + 10, now_s + 20
    (counted,) = (await market_figures.read_turnovers(index, flows, later, NETWORK)).values()
    assert counted == WindowTurnover(is_cut=is_cut)


async def test_a_turnover_is_counted_again_after_its_part_of_the_window(index: Connection) -> None:
    chain, cache = Chain(), TurnoverCache()
    chain.block(sent(launched(HIGH, CURVE, DEV), bought(CURVE, ALICE, ALICE, 1000, 700)))
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks)
    now_s = chain.blocks[-1].ref.timestamp_s
    flows = await flows_of(index, now_s)

    async def buys(clock_s: float, span_s: int, flows: list[MoneyFlow]) -> list[int]:
        span = now_s - span_s, now_s
        found = await cache.read_turnovers(index, flows, span, NETWORK, clock_s)
        return [found[flow.token_id].buys for flow in flows]

    assert await buys(100.0, 86_400, flows) == [1]
    seen = len(chain.blocks)
    chain.block(sent(bought(CURVE, BOB, BOB, 500, 300)))
    chain.block(sent(*opened(100, 10**15)))
    await append_blocks(index, writer, chain.blocks[seen:])
    now_s = chain.blocks[-1].ref.timestamp_s
    both = flows + [flow for flow in await flows_of(index, now_s) if flow.token_id != flows[0].token_id]
    # A token that is new on the board is counted at once, and each window by itself.
    assert await buys(143.0, 86_400, both) == [1, 1]
    assert await buys(143.0, 21_600, both) == [2, 1]
    assert await buys(143.5, 86_400, both) == [2, 1]
    # The clock was set back.
    seen = len(chain.blocks)
    chain.block(sent(bought(CURVE, BOB, BOB, 500, 300)))
    await append_blocks(index, writer, chain.blocks[seen:])
    now_s = chain.blocks[-1].ref.timestamp_s
    assert await buys(143.3, 86_400, both) == [3, 1]


async def test_a_token_is_as_old_as_its_launch_or_its_oldest_place(index: Connection) -> None:
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV), bought(CURVE, ALICE, ALICE, 1000, 700)))
    chain.block(sent(*opened(100)), after_s=100)
    chain.block(sent(*opened(200, 10**15), v3_opened(HIGH, WETH)), after_s=100)
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    times = [block.ref.timestamp_s for block in chain.blocks[-3:]]
    rows = await index.fetch("SELECT id, address FROM facts.address")
    ids = {as_address(row["address"]): row["id"] for row in rows}
    found = await market_figures.read_opened(index, [ids[HIGH], ids[LOW], ids[ALICE]])
    assert found == {ids[HIGH]: times[0], ids[LOW]: times[1]}
    # The place where its money goes in is younger.
    flows = {flow.token_id: flow for flow in await flows_of(index, times[2])}
    assert flows[ids[LOW]].opened_s == times[2]
    await index.execute("UPDATE facts.launch SET at_s = at_s - 7")
    assert (await market_figures.read_opened(index, [ids[HIGH]])) == {ids[HIGH]: times[0] - 7}


def test_a_change_of_what_is_not_known_is_not_known() -> None:
    line = PriceLine((), {0: 150, 300: 100, 3600: None, 86_400: 0})
    assert [line.change_bps(span_s) for span_s in (300, 3600, 86_400)] == [5000, None, None]
    assert PriceLine((), dict.fromkeys(SPANS_S)).change_bps(300) is None


async def test_a_pool_goes_on_where_its_curve_ended_and_dust_tells_no_price(index: Connection) -> None:
    chain, at = Chain(), v3_at(HIGH, WETH)
    # The curve keeps one in a hundred.
    chain.block(sent(launched(HIGH, CURVE, DEV, WETH), bought(CURVE, ALICE, ALICE, 4 * 10**15, 10**15)))
    chain.block(sent(v3_opened(HIGH, WETH), v3_priced(at, Q96)), after_s=400)
    weth_first = int(WETH, 16) < int(HIGH, 16)
    amounts = (6 * 10**15, -(10**15)) if weth_first else (-(10**15), 6 * 10**15)
    chain.block(sent(v3_swap(at, *amounts, recipient=BOB, sender=BOB)), after_s=400)
    dust = (9, -1) if weth_first else (-1, 9)
    chain.block(sent(v3_swap(at, *dust, recipient=BOB, sender=BOB)))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    now_s = chain.blocks[-1].ref.timestamp_s
    (flow,) = await flows_of(index, now_s)
    line = (await market_figures.read_prices(index, [flow], now_s, 0, NETWORK))[flow.token_id]
    assert (line.newest, line.spans[300], line.spans[3600]) == (6 * 10**36, 396 * 10**34, None)
    assert line.change_bps(300) == 5151


async def depth_of(index: Connection, chain: Chain) -> MarketDepth:
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    (flow,) = await flows_of(index, chain.blocks[-1].ref.timestamp_s)
    return (await market_figures.read_depths(index, [flow], NETWORK))[flow.token_id]


async def test_what_lies_in_a_curve_is_the_launchpads_and_who_sold_out_holds_nothing(
    index: Connection,
) -> None:
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV), bought(CURVE, ALICE, ALICE, 1000, 700)))
    chain.block(sent(bought(CURVE, BOB, BOB, 500, 300)))
    chain.block(sent(sold(CURVE, BOB, BOB, 400, 300)))
    depth = await depth_of(index, chain)
    raised = await index.fetchval("SELECT raised_raw FROM facts.curve")
    assert depth == MarketDepth(ZERO_ADDRESS, int(raised), BPS, 1, False)


def pool(holder: Address, second: Address = BOB) -> Chain:
    """A v3 pool with 900 of liquidity of an NFT that ``holder`` has, and 100 of ``second``."""
    chain, at = Chain(), v3_at(LOW, WETH)
    big = 9 * 10**20
    chain.block(sent(v3_opened(LOW, WETH), v3_priced(at, Q96)))
    chain.block(
        sent(
            v3_minted(at, V3_POSITIONS, big, 1, 2),
            nft_moved(V3_POSITIONS, 7, ZERO_ADDRESS, holder),
            v3_numbered(7, big, 1, 2),
        ),
        sent(v3_minted(at, second, 10**20, 1, 2)),
    )
    weth_first = int(WETH, 16) < int(LOW, 16)
    amounts = (6 * 10**15, -(10**15)) if weth_first else (-(10**15), 6 * 10**15)
    chain.block(sent(v3_swap(at, *amounts, liquidity=10**21, recipient=ALICE, sender=ALICE)))
    return chain


async def test_of_a_pool_only_what_was_burned_or_is_the_launchpads_stays(index: Connection) -> None:
    burned = await depth_of(index, pool(DEAD))
    assert burned.kept_bps == 9000
    assert burned.quote_raw is not None
    # Positions from tick -60 to 60, at tick 0: liquidity times 1 - 1.0001^-30.
    assert burned.quote_raw == pytest.approx(10**21 * (1 - 1.0001**-30), rel=1e-9)
    assert (await depth_of(index, pool(ALICE))).kept_bps == 0
    assert (await depth_of(index, pool(DEAD, DEAD))).kept_bps == BPS


async def test_of_a_pool_that_is_not_known_whole_nothing_is_said(index: Connection) -> None:
    chain = pool(DEAD)
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    await index.execute("UPDATE facts.cursor SET positions_from = $1", chain.blocks[1].ref.number)
    (flow,) = await flows_of(index, chain.blocks[-1].ref.timestamp_s)
    depth = (await market_figures.read_depths(index, [flow], NETWORK))[flow.token_id]
    assert (depth.quote_raw, depth.kept_bps, depth.holders) == (None, None, 1)
