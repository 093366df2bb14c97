"""Verdicts on the local chain, and real wallets that trade after them: what the scorecard makes of it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.check.evidence import Missing
from roundtrip.services.runtime.context import Context
from roundtrip.services.scorecard.failed_sells import find_failed_sell
from roundtrip.services.valuation.holdings import Valued
from roundtrip.store.scorecard import failed_sells
from roundtrip.store.server import connections
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import context_for
from support.ground import Ground, view
from support.holding_asked import copied
from support.scoring import ETH, PROBE, Scoring, begin_index
from support.trader import Market, MarketTrader
from support.wallet import UnsignedStep, calldata


@pytest.fixture
async def scoring(
    ctx: Context, rpc: SyncRpc, built: Built, database_url: str, indexed_url: str
) -> AsyncIterator[Scoring]:
    async with (
        copied(database_url, indexed_url) as url,
        connections.create_pool(url, min_size=1, max_size=6) as pool,
    ):
        yield await begin_index(Ground(replace(ctx, pool=pool), rpc, built, url), pool)


# --- what the job finds ----------------------------------------------------------------------------


async def test_an_ok_is_right_when_a_plain_wallet_really_sells(scoring: Scoring) -> None:
    token = scoring.token()
    assert await scoring.checked(token) == "ok"
    tx_hash = scoring.sells(wallet := scoring.buyer(token), token)
    await scoring.later()
    await scoring.work()
    # Its day is not over.
    assert await scoring.scores() == []
    await scoring.over()
    assert await scoring.scores() == [("ok", "right", "sold")]
    row = await scoring.ctx.pool.fetchrow("SELECT * FROM facts.score")
    assert row is not None
    assert ("0x" + row["by_tx"].hex(), "0x" + row["by_wallet"].hex()) == (tx_hash, wallet.address)
    # The pool's fee, and what it moves: against the price that the buy before it had left.
    assert 30 <= row["cost_bps"] < 200
    before = dict(row)
    await scoring.ctx.pool.execute("UPDATE facts.score_cursor SET evidence_id = 0")
    for _ in range(2):
        await scoring.work()
    [row] = await scoring.ctx.pool.fetch("SELECT * FROM facts.score")
    assert dict(row) == before
    card = await scoring.card()
    assert (card.right, card.wrong, card.undecided, card.mistakes) == (1, 0, 0, [])


@pytest.mark.parametrize("where", ["v4", "v4 taxed", "curve"])
async def test_wherever_it_trades_a_real_sell_tells_what_it_cost(
    scoring: Scoring, built: Built, where: str
) -> None:
    wallet = scoring.wallet("a trader")
    if where == "curve":
        made = scoring.ground.launch(91)
        # Past the tax of its first seconds.
        scoring.ground.pass_s(20)
        token = made.token
        trader = MarketTrader(wallet, built.contracts, Market(token, "0x" + "0" * 40, curve=made.curve))
        assert await scoring.checked(token) == "ok"
        assert trader.buy(PROBE)
        assert trader.sell(wallet.tokens(token)).ok
        least, most = 90, 130
    else:
        token = built.tokens["v4_eth" if where == "v4" else "v4_fee_on_sell"]
        assert await scoring.checked(token) == "ok"
        assert wallet.buy(token, "eth", 3000, PROBE, 4)
        assert wallet.sell(token, "eth", 3000, wallet.tokens(token), 4).ok
        # The pool's fee and what it moves; and of the other one a tenth of what is sold.
        least, most = (30, 130) if where == "v4" else (1000, 1130)
    await scoring.over()
    assert await scoring.scores() == [("ok", "right", "sold")]
    assert least <= await scoring.ctx.pool.fetchval("SELECT cost_bps FROM facts.score") <= most


@pytest.mark.parametrize("who", ["owner", "given", "small", "large", "code", "late"])
async def test_who_and_what_does_not_count(scoring: Scoring, who: str) -> None:
    token = scoring.token()
    assert await scoring.checked(token) == "ok"
    me, wallet = scoring.ground.me, scoring.wallet("somebody")
    if who == "owner":
        # He filled the pool, and holds most of it.
        router, amount = scoring.ground.built.contracts["swapRouter02"], 10**21
        me.send(token, calldata("approve(address,uint256)", router, amount))
        swap = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"
        weth = scoring.ground.built.contracts["weth"]
        bought = (weth, token, 3000, me.account, PROBE, 0, 0)
        me.send(router, calldata(swap, bought), PROBE)
        me.send(router, calldata(swap, (token, weth, 3000, me.account, amount, 0, 0)))
        me.check_receipts()
    elif who == "given":
        some = scoring.buyer(token).tokens(token)
        me.receipt(me.send(token, calldata("transfer(address,uint256)", wallet.address, some)))
        scoring.sells(wallet, token)
    else:
        wei = {"small": PROBE // 100_000, "large": 4 * ETH}.get(who, PROBE)
        wallet = scoring.buyer(token, "somebody", wei)
        if who == "late":
            scoring.ground.pass_s(86_400)
        scoring.sells(wallet, token)
        if who == "code":
            await scoring.follows()
            scoring.ground.rpc.call("anvil_setCode", wallet.address, "0x00")
    await scoring.over()
    assert await scoring.scores() == [("ok", "undecided", "no_sell")]


async def test_a_trap_that_lets_go_within_the_day_was_a_mistake(scoring: Scoring) -> None:
    token = scoring.token("zoo/pausable_owner.vy")
    wallet = scoring.buyer(token)
    scoring.does(token, "setSelling(bool)", False)
    assert await scoring.checked(token) == "cannot_sell"
    scoring.does(token, "setSelling(bool)", True)
    scoring.sells(wallet, token)
    await scoring.over()
    assert await scoring.scores() == [("cannot_sell", "wrong", "sold")]
    (mistake,) = (await scoring.card()).mistakes
    assert (mistake.token.address, mistake.wallet) == (token, wallet.address)
    assert "something changed" in mistake.text


async def test_that_it_changed_is_said_where_a_later_check_shows_it(scoring: Scoring) -> None:
    token = scoring.token("zoo/pausable_owner.vy")
    wallet = scoring.buyer(token)
    scoring.does(token, "setSelling(bool)", False)
    assert await scoring.checked(token) == "cannot_sell"
    scoring.does(token, "setSelling(bool)", True)
    assert await scoring.checked(token) == "ok"
    scoring.sells(wallet, token)
    await scoring.over()
    assert await scoring.scores() == [("cannot_sell", "wrong", "changed"), ("ok", "right", "sold")]


async def test_what_was_paused_and_is_bought_within_the_day_was_a_mistake(scoring: Scoring) -> None:
    token = scoring.token("tokens/paused.vy")
    scoring.does(token, "pause()")
    assert await scoring.checked(token) == "cannot_buy"
    scoring.does(token, "unpause()")
    scoring.sells(scoring.buyer(token), token)
    await scoring.over()
    assert await scoring.scores() == [("cannot_buy", "wrong", "bought")]


async def test_an_ok_that_a_later_check_found_a_trap_was_a_mistake(scoring: Scoring) -> None:
    token = scoring.token("zoo/pausable_owner.vy")
    assert await scoring.checked(token) == "ok"
    scoring.sells(scoring.buyer(token), token)
    scoring.does(token, "setSelling(bool)", False)
    assert await scoring.checked(token) == "cannot_sell"
    await scoring.over()
    assert await scoring.scores() == [("ok", "wrong", "turned"), ("cannot_sell", "undecided", "no_sell")]
    (mistake,) = (await scoring.card()).mistakes
    assert (mistake.transaction, mistake.wallet) == (None, None)
    assert mistake.block is not None


_DECREASE = "decreaseLiquidity((uint256,uint128,uint256,uint256,uint256))"


async def test_an_ok_whose_pool_is_drained_was_a_mistake_by_what_a_sell_then_costs(scoring: Scoring) -> None:
    token = scoring.token()
    assert await scoring.checked(token) == "ok"
    wallet = scoring.buyer(token)
    positions, me = scoring.ground.built.contracts["v3PositionManager"], scoring.ground.me
    number = view(scoring.ground.rpc, positions, "totalSupply()")
    asked = {"to": positions, "data": calldata("positions(uint256)", number)}
    words = scoring.ground.rpc.call("eth_call", asked, "latest")[2:]
    liquidity = int(words[7 * 64 : 8 * 64], 16)
    me.receipt(me.send(positions, calldata(_DECREASE, (number, liquidity * 98 // 100, 0, 0, 2**40))))
    worth_raw = wallet.tokens(token)
    money = wallet.eth()
    done = wallet.sell(token, "weth", 3000, worth_raw)
    assert done.ok
    await scoring.over()
    assert await scoring.scores() == [("ok", "wrong", "cost")]
    cost = await scoring.ctx.pool.fetchval("SELECT cost_bps FROM facts.score")
    # Before it was drained 0.1 eth had bought as much, and the price is where that left it.
    assert cost == pytest.approx(10_000 * (1 - done.back_raw / PROBE), abs=150)
    assert wallet.eth() > money - PROBE
    assert f"lost {cost // 100}.{cost % 100:02d} %" in (await scoring.card()).mistakes[0].text


async def test_of_a_token_an_hour_and_a_code_one_verdict_counts(scoring: Scoring) -> None:
    token = scoring.token()
    for _ in range(3):
        assert await scoring.checked(token) == "ok"
    scoring.ground.pass_s(3600)
    assert await scoring.checked(token) == "ok"
    await scoring.over()
    assert len(await scoring.scores()) == 2
    assert await scoring.ctx.pool.fetchval("SELECT evidence_id FROM facts.score_cursor") == (
        await scoring.ctx.pool.fetchval("SELECT max(id) FROM facts.evidence")
    )


async def test_without_a_node_nothing_is_settled_however_long_it_is_away(
    scoring: Scoring, built: Built
) -> None:
    token = scoring.token()
    assert await scoring.checked(token) == "ok"
    scoring.sells(scoring.buyer(token), token)
    await scoring.over()
    kept = "facts.score, facts.score_count, facts.score_cursor, facts.score_token, facts.score_wait"
    await scoring.ctx.pool.execute(f"TRUNCATE {kept}")
    async with context_for("http://127.0.0.1:9", built, scoring.ctx.pool) as deaf:
        await scoring.work(deaf)
        assert await scoring.scores() == []
        assert "NodeFault" in (await scoring.failure() or "")
    await scoring.work()
    assert await scoring.scores() == [("ok", "right", "sold")]


# --- sells that failed -----------------------------------------------------------------------------


@pytest.mark.parametrize("others_sold", [False, True])
async def test_a_real_sell_that_the_token_refuses_makes_an_ok_wrong(
    scoring: Scoring, others_sold: bool
) -> None:
    token = scoring.token("zoo/pausable_owner.vy")
    assert await scoring.checked(token) == "ok"
    wallet = scoring.buyer(token)
    if others_sold:
        scoring.sells(scoring.buyer(token, "a quick one"), token)
    scoring.does(token, "setSelling(bool)", False)
    tx_hash = scoring.sells(wallet, token)
    assert await scoring.find_failed() == [(tx_hash, True)]
    await scoring.over()
    assert await scoring.scores() == [("ok", "wrong", "failed")]
    (mistake,) = (await scoring.card()).mistakes
    assert (mistake.transaction, mistake.wallet) == (tx_hash, wallet.address)


_SWAP = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"


@pytest.mark.parametrize("why", ["minimum", "deadline", "approval", "gas"])
async def test_a_sell_that_fails_for_its_own_reason_counts_for_nothing(scoring: Scoring, why: str) -> None:
    token = scoring.token()
    assert await scoring.checked(token) == "ok"
    wallet = scoring.buyer(token)
    router, weth = (scoring.ground.built.contracts[name] for name in ("swapRouter02", "weth"))
    raw = wallet.tokens(token)
    if why != "approval":
        assert wallet.send(token, calldata("approve(address,uint256)", router, raw)).ok
    least = ETH if why == "minimum" else 0
    data = calldata(_SWAP, (token, weth, 3000, wallet.address, raw, least, 0))
    if why == "deadline":
        data = calldata("multicall(uint256,bytes[])", 1, [bytes.fromhex(data[2:])])
    if why == "gas":
        (queued,) = wallet.queue([UnsignedStep(router, data)], 60_000, 10**12, 0)
        assert not wallet.receipt(queued).ok
    else:
        assert not wallet.send(router, data).ok
    await scoring.follows()
    assert await scoring.ctx.pool.fetchval("SELECT count(*) FROM jobs.job WHERE kind = 'failed_sell'") == 1
    assert await scoring.find_failed() == []
    await scoring.over()
    assert await scoring.scores() == [("ok", "undecided", "no_sell")]


async def test_a_failed_sell_of_which_the_node_has_no_state_leaves_no_ok_right(scoring: Scoring) -> None:
    token = scoring.token("zoo/pausable_owner.vy")
    assert await scoring.checked(token) == "ok"
    wallet = scoring.buyer(token)
    scoring.sells(scoring.buyer(token, "a quick one"), token)
    scoring.does(token, "setSelling(bool)", False)
    tx_hash = TxHash(scoring.sells(wallet, token))
    await scoring.follows()

    async def no_state(*_: Any, **__: Any) -> list[Valued]:
        return [Missing("node", "the state is gone")]

    with pytest.raises(NodeFault):
        await find_failed_sell(scoring.ctx, Address(token), tx_hash, is_last=False, values=no_state)
    sell = await find_failed_sell(scoring.ctx, Address(token), tx_hash, is_last=True, values=no_state)
    assert sell is not None
    assert not sell.refused
    async with scoring.ctx.pool.acquire() as connection:
        await failed_sells.put_sell(connection, Address(token), sell)
    await scoring.over()
    assert await scoring.scores() == [("ok", "undecided", "not_told")]


async def test_a_failed_sell_of_what_was_given_counts_for_nothing(scoring: Scoring) -> None:
    token = scoring.token("zoo/pausable_owner.vy")
    assert await scoring.checked(token) == "ok"
    given = scoring.wallet("given")
    some = scoring.buyer(token).tokens(token)
    me = scoring.ground.me
    me.receipt(me.send(token, calldata("transfer(address,uint256)", given.address, some)))
    scoring.does(token, "setSelling(bool)", False)
    scoring.sells(given, token)
    assert await scoring.find_failed() == []


async def test_on_a_curve_a_failed_sell_is_found_by_the_curve(scoring: Scoring, built: Built) -> None:
    made = scoring.ground.launch(92)
    scoring.ground.pass_s(20)
    assert await scoring.checked(made.token) == "ok"
    wallet = scoring.wallet("a trader")
    trader = MarketTrader(wallet, built.contracts, Market(made.token, "0x" + "0" * 40, curve=made.curve))
    assert trader.buy(PROBE)
    sell = calldata("sell(uint256,uint256,address)", wallet.tokens(made.token), 0, wallet.address)
    assert not wallet.send(made.curve, sell).ok
    await scoring.follows()
    jobs = await scoring.ctx.pool.fetch("SELECT key, payload FROM jobs.job WHERE kind = 'failed_sell'")
    assert [(row["key"], made.token in row["payload"]) for row in jobs] == [(scoring.newest(), True)]
    # It approved nothing: on the state before, its sell goes through.
    assert await scoring.find_failed() == []
