"""Verdicts on the local chain, and real wallets that trade after them: what the scorecard makes of it."""

from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.services.runtime.context import Context
from roundtrip.services.scorecard.failed_sells import NO_SELL, OWN_REASON
from roundtrip.services.scorecard.report_review import AGAIN_S, NEVER_CAME
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import context_for
from support.ground import Ground, view
from support.holding_asked import copied
from support.scoring import ETH, PROBE, Scoring, begun
from support.trader import Market, MarketTrader
from support.wallet import calldata


@pytest.fixture
async def scoring(
    ctx: Context, rpc: SyncRpc, built: Built, database_url: str, indexed_url: str
) -> AsyncIterator[Scoring]:
    async with (
        copied(database_url, indexed_url) as url,
        asyncpg.create_pool(url, min_size=1, max_size=6) as pool,
    ):
        yield await begun(Ground(replace(ctx, pool=pool), rpc, built, url), pool)


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


# --- what people report ----------------------------------------------------------------------------


async def test_a_real_sell_that_failed_proves_an_ok_wrong(scoring: Scoring) -> None:
    token = scoring.token("zoo/pausable_owner.vy")
    assert await scoring.checked(token) == "ok"
    wallet = scoring.buyer(token)
    scoring.does(token, "setSelling(bool)", False)
    tx_hash = scoring.sells(wallet, token)
    account = await scoring.account()
    result = await scoring.report(account, token, tx_hash, "it\u202e would not <b>sell</b>")
    assert (result.proved, result.again, result.note) == (True, False, "it would not <b>sell</b>")
    assert await scoring.scores() == [("ok", "wrong", "failed")]
    (mistake,) = (await scoring.card()).mistakes
    assert (mistake.transaction, mistake.wallet, mistake.reported) == (tx_hash, wallet.address, True)
    again = await scoring.report(account, token, tx_hash)
    assert (again.proved, again.again) == (True, True)
    await scoring.report(await scoring.account("mite-two"), token, tx_hash)
    await scoring.over()
    assert await scoring.scores() == [("ok", "wrong", "failed")]
    assert (await scoring.card()).wrong == 1


async def test_a_sell_that_failed_for_its_own_reason_changes_no_count(scoring: Scoring) -> None:
    token = scoring.token()
    assert await scoring.checked(token) == "ok"
    wallet = scoring.buyer(token)
    router, weth = (scoring.ground.built.contracts[name] for name in ("swapRouter02", "weth"))
    swap = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"
    # It allowed nobody to take its tokens.
    one = (token, weth, 3000, wallet.address, wallet.tokens(token), 0, 0)
    assert not wallet.send(router, calldata(swap, one)).ok
    result = await scoring.report(await scoring.account(), token, scoring.newest())
    assert (result.proved, OWN_REASON in result.text) == (False, True)
    assert await scoring.scores() == []
    assert (await scoring.card()).open_reports == 1


async def test_another_call_that_failed_is_no_sell(scoring: Scoring) -> None:
    token = scoring.token()
    assert await scoring.checked(token) == "ok"
    wallet = scoring.buyer(token)
    assert not wallet.send(token, calldata("transferFrom(address,address,uint256)", token, token, 1)).ok
    result = await scoring.report(await scoring.account(), token, scoring.newest())
    assert (result.proved, NO_SELL in result.text) == (False, True)


async def test_a_sell_that_went_through_proves_a_trap_wrong_once_it_is_settled(scoring: Scoring) -> None:
    token = scoring.token("zoo/pausable_owner.vy")
    wallet = scoring.buyer(token)
    scoring.does(token, "setSelling(bool)", False)
    assert await scoring.checked(token) == "cannot_sell"
    scoring.does(token, "setSelling(bool)", True)
    tx_hash = scoring.sells(wallet, token)
    account = await scoring.account()
    result = await scoring.report(account, token, tx_hash)
    assert (result.proved, "We review it again a few times within a day" in result.text) == (False, True)
    await scoring.again()
    assert (await scoring.scores(), (await scoring.card()).open_reports) == ([], 1)
    await scoring.later()
    await scoring.again()
    assert await scoring.scores() == [("cannot_sell", "wrong", "sold")]
    assert (await scoring.card()).open_reports == 0
    result = await scoring.report(account, token, tx_hash)
    assert (result.proved, result.again) == (True, True)
    assert not await scoring.waits()


async def test_a_failed_sell_that_the_index_does_not_have_yet_proves_it_by_itself_later(
    scoring: Scoring,
) -> None:
    token = scoring.token("zoo/pausable_owner.vy")
    assert await scoring.checked(token) == "ok"
    wallet = scoring.buyer(token)
    scoring.does(token, "setSelling(bool)", False)
    await scoring.follows()
    scoring.ground.pass_s(2)
    tx_hash = scoring.sells(wallet, token)
    result = await scoring.report(await scoring.account(), token, tx_hash, follows=False)
    assert (result.proved, "We review it again a few times within a day" in result.text) == (False, True)
    # The job that does it is wished for with the report.
    assert await scoring.ctx.pool.fetchval("SELECT count(*) FROM jobs.job WHERE kind = 'scorecard'") == 1
    await scoring.follows()
    await scoring.again()
    assert await scoring.scores() == [("ok", "wrong", "failed")]
    (mistake,) = (await scoring.card()).mistakes
    assert (mistake.transaction, mistake.reported) == (tx_hash, True)


async def test_a_report_that_never_comes_round_is_weighed_a_few_times(scoring: Scoring) -> None:
    token = scoring.token()
    assert await scoring.checked(token) == "ok"
    tx_hash = scoring.sells(scoring.buyer(token), token)
    account = await scoring.account()
    await scoring.report(account, token, tx_hash)
    for _ in AGAIN_S:
        assert await scoring.waits()
        await scoring.again()
    assert not await scoring.waits()
    result = await scoring.report(account, token, tx_hash)
    assert (result.proved, NEVER_CAME in result.text) == (False, True)


@pytest.mark.parametrize("both", [True, False])
async def test_a_report_marks_the_first_of_an_hour_only_where_it_lies_in_its_time(
    scoring: Scoring, both: bool
) -> None:
    token = scoring.token("zoo/pausable_owner.vy")
    wallet = scoring.buyer(token)
    assert await scoring.checked(token) == "ok"
    scoring.ground.pass_s(60)
    assert await scoring.checked(token) == "ok"
    rows = await scoring.ctx.pool.fetch("SELECT id FROM facts.evidence ORDER BY id")
    first, second = [row["id"] for row in rows]
    scoring.does(token, "setSelling(bool)", False)
    if not both:
        # As if it had been of some minutes later: the sell is not in its time.
        pool = scoring.ctx.pool
        document = await pool.fetchval("SELECT document FROM facts.evidence WHERE id = $1", first)
        whole = canonical_json.load(Evidence, document)
        late = replace(whole.block, timestamp_s=whole.block.timestamp_s + 300)
        document = canonical_json.dump(replace(whole, block=late))
        await pool.execute("UPDATE facts.evidence SET document = $2 WHERE id = $1", first, document)
    result = await scoring.report(await scoring.account(), token, scoring.sells(wallet, token))
    assert result.proved
    scores = "SELECT evidence_id, outcome FROM facts.score ORDER BY 1"
    marked = first if both else second
    assert [tuple(row) for row in await scoring.ctx.pool.fetch(scores)] == [(marked, "wrong")]
    await scoring.later()
    await scoring.over()
    rows = await scoring.ctx.pool.fetch(scores)
    own = [(first, "wrong")] if both else [(first, "undecided"), (second, "wrong")]
    assert [tuple(row) for row in rows] == own
