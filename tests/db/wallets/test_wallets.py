"""What the index tells of wallets is what a slow and obvious counting of its raw rows tells."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import BPS, ZERO_ADDRESS
from roundtrip.domain.wallets.linked import MIN_SHARED, WINDOW_BLOCKS, WINDOW_S
from roundtrip.store.server.rows import Connection, as_bytes
from roundtrip.store.wallets import linked, wallets
from support.made_index import MadeIndex, number_address
from support.tables import all_rows, append_blocks, begin_index, emptied
from support.told_blocks import START_S, Chain, MadeUp
from unit.venues.logs import NETWORK

DAY_S = 86_400
SEEDS = st.integers(0, 2**20)
few = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
Row = dict[str, Any]


async def grown(index: Connection, seed: int, blocks: int, back: int) -> Chain:
    """A made-up chain that was followed; ``back`` of its blocks were then taken away by a fork, and others
    put in their place."""
    makes, chain = MadeUp(seed), Chain()
    makes.grow(chain, blocks)
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks)
    if back:
        newest = chain.blocks[-1].ref
        chain = chain.fork(newest.number - back, "fork")
        await writer.rewind(index, newest, chain.blocks[-1].ref)
        start = len(chain.blocks)
        makes.grow(chain, 2 * back)
        await append_blocks(index, writer, chain.blocks[start:])
    return chain


async def rows_of(index: Connection, table: str) -> list[Row]:
    return await all_rows(index, table, "1")


async def trades_of(index: Connection) -> list[Row]:
    """In the order of the chain."""
    return await all_rows(index, "trade", "block_number, log_index")


async def traders(index: Connection) -> list[int]:
    rows = await index.fetch("SELECT DISTINCT wallet_id FROM facts.position ORDER BY 1")
    return [row["wallet_id"] for row in rows]


# --- wallet_history --------------------------------------------------------------------------------


@few
@given(seed=SEEDS, blocks=st.integers(10, 60), back=st.integers(0, 8), ago_s=st.integers(0, 100_000))
async def test_a_record_is_the_sum_of_its_rows(
    index: Connection, seed: int, blocks: int, back: int, ago_s: int
) -> None:
    chain = await grown(index, seed, blocks, back)
    since_s = chain.blocks[-1].ref.timestamp_s - ago_s
    positions, closings = await rows_of(index, "position"), await rows_of(index, "closing")
    trades = await rows_of(index, "trade")
    for wallet in await traders(index):
        own = [row for row in positions if row["wallet_id"] == wallet]
        result = await wallets.sum_trades(index, wallet, since_s)
        assert result.buys == sum(row["trader_id"] == wallet and row["buys"] for row in trades)
        assert result.sells == sum(row["trader_id"] == wallet and not row["buys"] for row in trades)
        assert (result.tokens, result.is_part) == (len(own), False)
        assert result.spent_wei == sum(row["spent_wei"] for row in own)
        assert result.got_wei == sum(row["got_wei"] for row in own)
        assert result.unpriced == sum(row["unpriced"] for row in own)
        assert result.held == sum(row["held_raw"] > 0 for row in own)
        assert result.recent_tokens == sum(row["last_s"] >= since_s for row in own)
        ended = [row for row in closings if row["wallet_id"] == wallet]
        recent = [row for row in ended if row["at_s"] >= since_s]
        closed = await wallets.closings(index, wallet, since_s)
        assert (closed.all, closed.recent) == (summed(ended), summed(recent))
        assert (closed.best, closed.worst) == ends_of(ended)
        assert await wallets.profit_days(index, wallet) == by_day(ended)
        assert await wallets.list_held(index, wallet) == biggest(own)


def summed(ended: list[Row]) -> wallets.WalletClosings:
    """The slow way."""
    won = sum(row["got_wei"] > row["spent_wei"] for row in ended)
    spent, got = (int(sum(row[name] for row in ended)) for name in ("spent_wei", "got_wei"))
    return wallets.WalletClosings(len(ended), won, spent, got, False)


def by_day(ended: list[Row]) -> list[wallets.ProfitDay]:
    days: dict[int, list[int]] = {}
    for row in ended:
        days.setdefault(row["at_s"] // DAY_S * DAY_S, []).append(int(row["got_wei"] - row["spent_wei"]))
    return [wallets.ProfitDay(day_s, len(gains), sum(gains)) for day_s, gains in sorted(days.items())]


def ends_of(ended: list[Row]) -> tuple[wallets.WalletClosing | None, wallets.WalletClosing | None]:
    """The best and the worst; of equals the first."""
    ended = sorted(ended, key=lambda row: (row["block_number"], row["log_index"]))
    gains = [int(row["got_wei"] - row["spent_wei"]) for row in ended]
    if not ended:
        return None, None
    return closing(ended[gains.index(max(gains))]), closing(ended[gains.index(min(gains))])


def closing(row: Row) -> wallets.WalletClosing:
    return wallets.WalletClosing(row["token_id"], row["at_s"], int(row["spent_wei"]), int(row["got_wei"]))


def biggest(own: list[Row]) -> list[wallets.OpenPosition]:
    left = [row for row in own if row["held_raw"] > 0]
    left.sort(key=lambda row: (-row["cost_wei"], -row["last_s"], row["token_id"]))
    return [
        wallets.OpenPosition(
            row["token_id"],
            int(row["held_raw"]),
            int(row["cost_wei"]),
            int(row["bought_raw"]),
            int(row["spent_wei"]),
            row["unpriced"],
            None if row["spent_micro_usd"] is None else int(row["spent_micro_usd"]),
            row["last_s"],
            row["round_unpriced"],
        )
        for row in left[: wallets.MAX_HELD_SHOWN]
    ]


@few
@given(seed=SEEDS, window=st.sampled_from([0, 3, 30]))
async def test_whoever_buys_anothers_launch_in_its_window_is_its_sniper(
    index: Connection, seed: int, window: int
) -> None:
    await grown(index, seed, 60, 0)
    launches, pools = await rows_of(index, "launch"), await rows_of(index, "pool")
    buys = [trade for trade in await trades_of(index) if trade["buys"]]
    for wallet in await traders(index):
        sniped = set()
        for launch in launches:
            at = {pool["id"] for pool in pools if pool["at"] == launch["at"]}
            sniped |= {
                launch["token_id"]
                for trade in buys
                if trade["trader_id"] == wallet != launch["deployer_id"] and trade["pool_id"] in at
                and trade["block_number"] <= launch["block_number"] + window
                and launch["at_s"] <= trade["at_s"] <= launch["at_s"] + 60
            }  # fmt: skip
        assert await wallets.count_sniped(index, wallet, window) == len(sniped)


async def test_the_nearest_board_is_the_shortest_with_a_profit(index: Connection) -> None:
    for span, rank, profit in (("24h", 9, 0), ("30d", 2, 5), ("7d", 3, 4)):
        await index.execute(
            "INSERT INTO facts.winner (span, rank, wallet_id, profit_wei, spent_wei, closed, won,"
            " best_token_id, best_spent_wei, best_got_wei, best_s)"
            " VALUES ($1, $2, 7, $3, 1, 1, 1, 1, 1, 1, 1)",
            span, rank, profit,
        )  # fmt: skip
    assert await wallets.nearest_board(index, 7) == ("7d", 3)
    assert await wallets.nearest_board(index, 8) is None


@few
@given(seed=SEEDS, blocks=st.integers(10, 60), back=st.integers(0, 8))
async def test_launches_are_told_with_what_became_of_them(
    index: Connection, seed: int, blocks: int, back: int
) -> None:
    await grown(index, seed, blocks, back)
    launches, steps = await rows_of(index, "launch"), await rows_of(index, "launch_step")
    positions, pools = await rows_of(index, "position"), await rows_of(index, "pool")
    raised = {row["pool_id"]: row["raised_raw"] for row in await rows_of(index, "curve")}
    for deployer in {row["deployer_id"] for row in launches}:
        own = [row for row in launches if row["deployer_id"] == deployer]
        own.sort(key=lambda row: (-row["block_number"], -row["log_index"]))
        assert await wallets.pool_launches(index, deployer) == sum(row["generation"] == 1 for row in own)
        rows = await wallets.launches(index, deployer)
        assert [one.token_id for one in rows] == [row["token_id"] for row in own][:10]
        for one, row in zip(rows, own, strict=False):
            assert one.steps == {step["step"] for step in steps if step["token_id"] == one.token_id}
            assert (one.at_s, one.generation) == (row["at_s"], row["generation"])
            assert one.threshold_raw == row["threshold_raw"]
            curve = [pool["id"] for pool in pools if pool["at"] == row["at"]]
            assert one.raised_raw == (raised.get(curve[0]) if curve else None)
            assert (one.raised_raw is None) is (one.generation == 1)
            held = [p for p in positions if (p["wallet_id"], p["token_id"]) == (deployer, one.token_id)]
            bought = sum(p["bought_raw"] for p in held), sum(p["sold_raw"] for p in held)
            assert (one.bought_raw, one.sold_raw) == bought


@few
@given(
    seed=SEEDS, blocks=st.integers(10, 60), back=st.integers(0, 8), ahead_s=st.sampled_from([0, 800, 90_000])
)
async def test_the_last_price_is_of_the_place_where_most_trade(
    index: Connection, seed: int, blocks: int, back: int, ahead_s: int
) -> None:
    chain = await grown(index, seed, blocks, back)
    ids = {row["address"]: row["id"] for row in await rows_of(index, "address")}
    in_eth = {ids.get(as_bytes(one)) for one in (ZERO_ADDRESS, NETWORK.weth)}
    pools = {row["id"]: row for row in await rows_of(index, "pool")}
    trades = [row for row in await trades_of(index) if row["token_raw"] > 0]
    now_s = chain.blocks[-1].ref.timestamp_s + ahead_s
    tokens = {pool["token_id"] for pool in pools.values()}
    expected = {}
    for token in tokens:
        places = sorted(n for n, pool in pools.items() if (pool["token_id"], pool["in_money_from"] is None)
                        == (token, False))[: wallets.PLACES_LOOKED_AT]  # fmt: skip
        end_s = now_s + 1
        for back_s in wallets.PRICES_BACK_S:
            messages = []
            for place in places:
                own = [t for t in trades if t["pool_id"] == place and now_s - back_s <= t["at_s"] < end_s]
                last = own[::-1][: wallets.TRADES_LOOKED_AT]
                is_eth = pools[place]["quote_id"] in in_eth
                priced = [
                    (t, t["quote_raw"] if t["eth_wei"] is None and is_eth else t["eth_wei"]) for t in last
                ]
                priced = [(t, wei) for t, wei in priced if wei is not None and wei >= wallets.MIN_PRICED_WEI]
                if priced:
                    traders = len({t["trader_id"] for t, _ in priced})
                    one = wallets.LastTrade(
                        priced[0][0]["at_s"], int(priced[0][0]["token_raw"]), int(priced[0][1])
                    )
                    messages.append((-traders, -sum(wei for _, wei in priced), place, one))
            if messages:
                expected[token] = min(messages)[3]
                break
            end_s = now_s - back_s
    assert await wallets.last_trades(index, tokens, NETWORK, now_s) == expected
    assert await wallets.last_trades(index, [], NETWORK, now_s) == {}


async def bot(index: Connection, count: int) -> None:
    """A wallet with number 7 that traded and closed so many tokens, each for one wei more than the last."""
    await emptied(index)
    named = [row["column_name"] for row in await index.fetch(_COLUMNS)]
    values = {
        "wallet_id": "7",
        "token_id": "n",
        "buys": "1",
        "held_raw": "n % 2",
        "cost_wei": "n",
        "last_s": "n",
    }
    chosen = ", ".join(values.get(name, "1") for name in named)
    await index.execute(
        f"INSERT INTO facts.position ({', '.join(named)}) SELECT {chosen}"  # noqa: S608
        f" FROM generate_series(1, {count}) n"
    )
    await index.execute(
        f"INSERT INTO facts.closing SELECT n, 0, n, 7, n, 10, 10 + n FROM generate_series(1, {count}) n"  # noqa: S608
    )


_COLUMNS = (
    "SELECT column_name FROM information_schema.columns"
    " WHERE (table_schema, table_name) = ('facts', 'position') ORDER BY ordinal_position"
)


@pytest.mark.parametrize("more", [0, 3])
async def test_of_a_bot_the_newest_are_counted_and_it_is_told_that_there_are_more(
    index: Connection, more: int
) -> None:
    await bot(index, wallets.MAX_ROWS + more)
    newest = wallets.MAX_ROWS + more
    traded, closed = await wallets.sum_trades(index, 7, newest), await wallets.closings(index, 7, 100)
    assert (traded.tokens, traded.is_part) == (wallets.MAX_ROWS, more > 0)
    assert traded.recent_tokens == 1
    assert (closed.all.closed, closed.all.is_part) == (wallets.MAX_ROWS, more > 0)
    assert (closed.recent.closed, closed.recent.is_part) == (wallets.MAX_ROWS - 99 + more, False)
    assert closed.worst is not None
    assert closed.worst.token_id == 1 + more, "the oldest are left out"
    held = await wallets.list_held(index, 7)
    assert len(held) == wallets.MAX_HELD_SHOWN
    assert [one.cost_wei for one in held[:2]] == [newest - 1 + newest % 2, newest - 3 + newest % 2]


async def test_closings_are_told_to_the_wei_and_to_the_second(index: Connection) -> None:
    await emptied(index)
    rows = [(1, 100, 10, 10), (2, 200, 5, 9), (3, 300, 7, 11), (4, 400, 9, 1), (5, 400, 19, 11)]
    for n, *row in rows:
        await index.execute("INSERT INTO facts.closing VALUES ($1, 0, $2, 7, $1, $3, $4)", n, *row)
    found = await wallets.closings(index, 7, 200)
    assert found.all == wallets.WalletClosings(5, 2, 50, 42, False)
    assert found.recent == wallets.WalletClosings(4, 2, 40, 32, False)
    assert found.best == wallets.WalletClosing(2, 200, 5, 9), "of equals the first"
    assert found.worst == wallets.WalletClosing(4, 400, 9, 1)


@few
@given(seed=SEEDS, blocks=st.integers(10, 60), back=st.integers(0, 8), size=st.integers(1, 5))
async def test_pages_of_trades_are_the_trades_of_the_wallet(
    index: Connection, seed: int, blocks: int, back: int, size: int
) -> None:
    await grown(index, seed, blocks, back)
    trades = await trades_of(index)
    for wallet in await traders(index):
        own = [row for row in reversed(trades) if row["trader_id"] == wallet]
        listed: list[wallets.WalletTrade] = []
        place = None
        while page := await wallets.list_trades(index, wallet, place, size, NETWORK):
            listed += page
            place = wallets.TradePlace(page[-1].at_s, page[-1].block_number, page[-1].log_index)
        assert [(one.block_number, one.log_index, one.buys, one.token_raw) for one in listed] == [
            (row["block_number"], row["log_index"], row["buys"], row["token_raw"]) for row in own
        ]


async def test_trades_of_long_ago_are_listed_too(index: Connection) -> None:
    await emptied(index)
    made, token, wallet = MadeIndex(index), number_address(1), number_address(2)
    times = [START_S - days * DAY_S for days in (1, 3, 40, 200)]
    for number, at_s in enumerate(times):
        await made.trade(token, wallet, 9 - number, ZERO_ADDRESS, at_s=at_s)
    await made.position(wallet, token, last_s=times[0])
    page = await wallets.list_trades(index, await made.id_of(wallet), None, 9, NETWORK)
    assert [one.at_s for one in page] == times
    assert {one.eth_wei for one in page} == {10**18}


# --- linked_wallets --------------------------------------------------------------------------------


@few
@given(seed=SEEDS, blocks=st.integers(10, 70), back=st.integers(0, 8), kin=st.booleans())
async def test_who_bought_the_same_in_the_same_moment(
    index: Connection, seed: int, blocks: int, back: int, kin: bool
) -> None:
    chain = await grown(index, seed, blocks, back)
    token_of = {row["id"]: row["token_id"] for row in await rows_of(index, "pool")}
    bought = [row for row in await trades_of(index) if row["buys"]]
    everybody = await traders(index)
    for wallet in everybody:
        newest = {token_of[row["pool_id"]]: row for row in bought if row["trader_id"] == wallet}
        rows = await linked.newest_buys(index, wallet, chain.blocks[-1].ref.timestamp_s)
        assert {buy.token_id: buy.tx_hash for buy in rows} == {
            token: "0x" + row["tx_hash"].hex() for token, row in newest.items()
        }
        spots = [(buy.block_number, buy.log_index) for buy in rows]
        assert spots == sorted(spots, reverse=True)
        near: dict[int, dict[int, Row]] = {}
        for token, own in newest.items():
            near[token] = {}
            for row in bought:
                if row["trader_id"] != wallet and token_of[row["pool_id"]] == token and is_near(own, row):
                    before = near[token].get(row["trader_id"])
                    if before is None or apart(own, row) < apart(own, before):
                        near[token][row["trader_id"]] = row
        found = await linked.find_co_buyers(index, wallet, rows, everybody if kin else [])
        expected = beside(newest, near, 1 if kin else MIN_SHARED)
        assert {other: (one.shared, one.weight_bps) for other, one in found.items()} == expected
        for other, one in found.items():
            assert len(one.tokens) == min(one.shared, linked.TOKENS_SHOWN)
            assert list(one.tokens) == sorted(
                one.tokens, key=lambda token: (token.others, token.blocks_apart)
            )
            for shared in one.tokens:
                own, row = newest[shared.token_id], near[shared.token_id][other]
                assert shared.blocks_apart == apart(own, row)
                assert shared.others == len(near[shared.token_id])
                assert shared.own_tx == "0x" + own["tx_hash"].hex()
                assert shared.other_tx == "0x" + row["tx_hash"].hex()


def apart(one: Row, other: Row) -> int:
    return abs(int(one["block_number"]) - int(other["block_number"]))


def is_near(one: Row, other: Row) -> bool:
    return apart(one, other) <= WINDOW_BLOCKS and abs(one["at_s"] - other["at_s"]) <= WINDOW_S


def beside(newest: dict[int, Row], near: dict[int, dict[int, Row]], least: int) -> dict[int, tuple[int, int]]:
    """Shared tokens and their weight, of everybody with ``least``."""
    found: dict[int, tuple[int, int]] = {}
    for token in newest:
        for other in near[token]:
            shared, weight = found.get(other, (0, 0))
            found[other] = shared + 1, weight + BPS // len(near[token])
    return {other: one for other, one in found.items() if one[0] >= least}


@few
@given(seed=SEEDS, blocks=st.integers(10, 60), back=st.integers(0, 8))
async def test_who_first_sent_whom_eth(index: Connection, seed: int, blocks: int, back: int) -> None:
    await grown(index, seed, blocks, back)
    origins, positions = await rows_of(index, "origin"), await rows_of(index, "position")
    ids = [row["id"] for row in await rows_of(index, "address")]
    families, traded = await linked.count_funded(index, ids), await linked.tokens_traded(index, ids)
    for one in ids:
        given_ = {row["wallet_id"]: row["funded_s"] for row in origins if row["funder_id"] == one}
        assert {f.wallet_id: f.funded_s for f in await linked.funded_by(index, one)} == given_
        assert families[one] == len(given_)
        assert traded[one] == sum(row["wallet_id"] == one for row in positions)
        funding = await linked.funding(index, one)
        own = [row for row in origins if row["wallet_id"] == one and row["funder_id"] is not None]
        assert (funding and (funding.funder_id, funding.funded_s)) == (
            (own[0]["funder_id"], own[0]["funded_s"]) if own else None
        )


async def test_an_exchanges_customers_are_not_all_read(index: Connection) -> None:
    await emptied(index)
    await index.execute("INSERT INTO facts.origin SELECT n, 1, 1, 5, 1, 1 FROM generate_series(10, 900) n")
    assert len(await linked.funded_by(index, 5)) == 501
    assert await linked.count_funded(index, [5, 6]) == {5: 501, 6: 0}


async def test_buys_of_long_ago_are_not_compared(index: Connection) -> None:
    await grown(index, 3, 60, 0)
    newest = [row for row in await trades_of(index) if row["buys"]][-1]
    wallet, newest_s = newest["trader_id"], newest["at_s"]
    rows = await linked.newest_buys(index, wallet, newest_s + linked.LOOK_BACK_S)
    assert {buy.at_s for buy in rows} == {newest_s}
    assert await linked.newest_buys(index, wallet, newest_s + linked.LOOK_BACK_S + 1) == []


async def test_what_a_bot_bought_is_not_all_compared(index: Connection) -> None:
    await emptied(index)
    made, wallet, other = MadeIndex(index), number_address(1), number_address(2)
    bought = [number_address(100 + n) for n in range(linked.MAX_TOKENS + 1)]
    times = linked.NEWEST_BUYS // len(bought) + 1
    for place, token in enumerate(bought * times):
        await made.trade(token, wallet, place, ZERO_ADDRESS)
    newest = len(bought) * times - 1
    for place, token in enumerate(bought, newest + 1 - len(bought)):
        await made.trade(token, other, place, ZERO_ADDRESS)
    wallet_id, other_id = await made.id_of(wallet), await made.id_of(other)
    buys = await linked.newest_buys(index, wallet_id, START_S + 1000)
    assert [buy.block_number for buy in buys] == [*range(newest, newest - linked.MAX_TOKENS, -1)]
    (beside,) = (await linked.find_co_buyers(index, wallet_id, buys, [])).values()
    assert (beside.shared, len(beside.tokens)) == (linked.MAX_TOKENS, linked.TOKENS_SHOWN)
    await made.many_positions(other, linked.MAX_COUNTED + 1)
    assert await linked.tokens_traded(index, [other_id]) == {other_id: linked.MAX_COUNTED}


async def test_of_a_crowd_beside_it_those_with_most_that_tells(index: Connection) -> None:
    """Each with as few tokens as tell anything, the last with one more that nobody else bought."""
    await emptied(index)
    made, wallet = MadeIndex(index), number_address(1)
    few_, own = [number_address(10 + n) for n in range(MIN_SHARED)], number_address(9)
    crowd = [number_address(100 + n) for n in range(linked.MAX_BESIDE + 2)]
    for place, token in enumerate([*few_, own]):
        for one in (wallet, *(crowd if token != own else crowd[-1:])):
            await made.trade(token, one, 20 + 40 * place, ZERO_ADDRESS)
    wallet_id, *crowd_ids = [await made.id_of(one) for one in (wallet, *crowd)]
    buys = await linked.newest_buys(index, wallet_id, START_S + 1000)
    found = await linked.find_co_buyers(index, wallet_id, buys, [])
    assert set(found) == {*crowd_ids[: linked.MAX_BESIDE - 1], crowd_ids[-1]}
    assert {one.shared for one in found.values()} == {MIN_SHARED, MIN_SHARED + 1}
