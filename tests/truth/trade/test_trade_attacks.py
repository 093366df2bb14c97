"""Attacks on simulate and prepare: what is said, beside what a wallet loses."""

import pytest

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.stories import PoolPlan
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.attacks import FAIR, Parties
from support.signing import Prepared, Signer, prepared
from support.simulated import SimulatedAnswer, approve, simulated, transfer
from support.swindles import ETH, Swindles, asked_uint, buy_order, for_real, sent_with
from support.wallet import PoolSpec, UnsignedStep, calldata

THOUSAND_USDG_RAW = 1000 * 10**6
HIGH_GAS = 16_000_000
V3 = PoolSpec("weth", 3000)


@pytest.fixture
def wallet(rpc: SyncRpc, built: Built) -> Signer:
    """Twenty eth."""
    return Signer(rpc, built.contracts, "attacked", eth=20)


@pytest.fixture
def parties(rpc: SyncRpc, built: Built) -> Parties:
    return Parties(rpc, built)


@pytest.fixture
def swindles(rpc: SyncRpc, parties: Parties, tmp_path_factory: pytest.TempPathFactory) -> Swindles:
    return Swindles(rpc, parties, tmp_path_factory.mktemp("swindles"))


async def said_of(ctx: Context, wallet: Signer, *steps: UnsignedStep) -> SimulatedAnswer:
    """On the newest block."""
    await ctx.heads.refresh()
    return await simulated(ctx, wallet.address, *steps)


def pool_of(ctx: Context, token: str) -> str:
    assert ctx.heads.venue_index is not None
    (venue,) = ctx.heads.venue_index.venues_of(Address(token))
    return str(venue.pool)


def approve_usdg(built: Built, wallet: Signer, swindler: str) -> str:
    """Gives the wallet three thousand usdg, and has it let that contract take them; usdg's address."""
    usdg = built.contracts["usdg"]
    wallet.get_usdg(3 * THOUSAND_USDG_RAW)
    assert wallet.send(usdg, approve(usdg, swindler).data).ok
    return usdg


# --- contracts that notice that they are looked at -------------------------------------------------


async def test_asking_for_balances_changes_nothing(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, swindles: Swindles
) -> None:
    """A balanceOf that is no view tells the contract that somebody looks."""
    swindler = swindles.swindler()
    usdg = approve_usdg(built, wallet, swindler)
    step = UnsignedStep(swindler, calldata("take_unless_asked(address,uint256)", usdg, THOUSAND_USDG_RAW))
    result = await said_of(ctx, wallet, step)
    assert (result.code, result.spent()) == ("nothing_received", {"usdg": THOUSAND_USDG_RAW}), result.text
    with for_real(rpc):
        assert wallet.send(step.to, step.data).ok
        assert wallet.tokens(usdg) == 2 * THOUSAND_USDG_RAW


async def test_a_buy_that_takes_more_unless_it_is_asked(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, parties: Parties, swindles: Swindles
) -> None:
    token, swindler = parties.honest(FAIR), swindles.swindler()
    parties.give(token, swindler, 10**25)
    usdg = approve_usdg(built, wallet, swindler)
    signature = "trade_unless_asked(address,uint256,address,uint256)"
    step = UnsignedStep(swindler, calldata(signature, token, 34 * 10**23, usdg, THOUSAND_USDG_RAW), ETH // 10)
    result = await said_of(ctx, wallet, step)
    assert result.spent() == {"eth": ETH // 10, "usdg": THOUSAND_USDG_RAW}
    assert result.code == "heavy_loss", result.text
    with for_real(rpc):
        assert wallet.send(step.to, step.data, step.value_wei).ok
        assert wallet.tokens(usdg) == 2 * THOUSAND_USDG_RAW


@pytest.mark.parametrize(
    ("least", "most", "of_use", "work"),
    [
        (0, 1_700_000, False, 60),
        (0, 125, True, 60),
        (0, 102, True, 60),
        (130, 170, True, 60),
        (700_000, 1_500_000, False, 0),
        (2_500_000, 4_000_000, False, 0),
    ],
    ids=["below much", "below 1.25x", "hardly enough", "around 1.5x", "a band", "another band"],
)
async def test_what_is_taken_at_some_gas_limit_is_no_pass(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, swindles: Swindles,
    least: int, most: int, of_use: bool, work: int,
) -> None:  # fmt: skip
    """``of_use``: the bounds are percent of what it takes while it behaves."""
    swindler, signature = swindles.swindler(), "take_between(address,uint256,uint256,uint256,uint256)"
    usdg = approve_usdg(built, wallet, swindler)
    if of_use:
        never = UnsignedStep(swindler, calldata(signature, usdg, THOUSAND_USDG_RAW, 1, 0, work))
        with for_real(rpc):
            used = sent_with(rpc, wallet, never, HIGH_GAS).gas_used
        least, most = used * least // 100, used * most // 100
    step = UnsignedStep(swindler, calldata(signature, usdg, THOUSAND_USDG_RAW, least, most, work))
    result = await said_of(ctx, wallet, step)
    assert result.level != "ok", result.text
    with for_real(rpc):
        assert sent_with(rpc, wallet, step, max(100_000, (least + most) // 2)).ok
        assert wallet.tokens(usdg) == 2 * THOUSAND_USDG_RAW


@pytest.mark.parametrize("left", [0, 300_000, 2_000_000])
async def test_calls_that_must_leave_gas_are_no_trap(
    ctx: Context, rpc: SyncRpc, wallet: Signer, parties: Parties, swindles: Swindles, left: int
) -> None:
    """As relayers do: what they bring is sold back as ever."""
    token, relayer = parties.honest(FAIR), swindles.swindler()
    parties.give(token, relayer, 10**25)
    data = calldata("relay(address,uint256,uint256)", token, 34 * 10**23, left)
    result = await said_of(ctx, wallet, UnsignedStep(relayer, data, ETH // 10))
    assert (result.code, result.received()) == ("ok", {token: 34 * 10**23}), result.text
    with for_real(rpc):
        assert wallet.send(relayer, data, ETH // 10).ok
        assert wallet.tokens(token) == 34 * 10**23


async def test_megabytes_of_events_count(
    ctx: Context, rpc: SyncRpc, wallet: Signer, parties: Parties, swindles: Swindles
) -> None:
    """What the caller's own calls make the chain's answer too large is no fault of the chain's."""
    token, ranter = parties.honest(FAIR), swindles.swindler()
    parties.give(token, ranter, 10**25)
    step = UnsignedStep(ranter, calldata("rant(address,uint256,uint256)", token, 10**22, 50))
    result = await said_of(ctx, wallet, *[step] * 6)
    assert (result.code, result.level) == ("unproven", "unknown"), result.text
    assert result.counted is True
    with for_real(rpc):
        assert sent_with(rpc, wallet, step, HIGH_GAS).ok


# --- the gas limits of prepared trades -------------------------------------------------------------


async def prepare_ok_buy(ctx: Context, wallet: Signer, token: str) -> Prepared | None:
    """A buy that is said to be ok; None: it is not."""
    try:
        buy = await prepared(ctx, "buy", token, wallet.address, amount="0.1")
    except CallerFault:
        return None
    is_ok = not buy.answer["refused"] and buy.answer["verdict"]["level"] == "ok"
    return buy if is_ok else None


async def assert_comes_out(ctx: Context, rpc: SyncRpc, wallet: Signer, token: str, buy: Prepared) -> None:
    """The buy brings what was told, and what it brings can be sold."""
    with for_real(rpc):
        done = wallet.trade(buy)
        assert (done.ok, done.token_raw) == (True, buy.raw)
        assert asked_uint(rpc, token, "banned(address)", wallet.address) == 0, buy.steps
        sell = await prepared(ctx, "sell", token, wallet.address, amount="all")
        back = wallet.trade(sell)
        assert (back.ok, back.money_raw) == (True, sell.raw)
        assert back.money_raw > ETH * 9 // 100
    await ctx.heads.refresh()


async def run_ok_buy(ctx: Context, rpc: SyncRpc, wallet: Signer, token: str) -> int:
    """Runs a buy that is said to be ok; its gas limit, or 0 where none is."""
    buy = await prepare_ok_buy(ctx, wallet, token)
    if buy is None:
        return 0
    await assert_comes_out(ctx, rpc, wallet, token, buy)
    return int(buy.steps[-1]["gas"])


async def test_a_trade_is_run_with_the_gas_that_is_returned(
    ctx: Context, rpc: SyncRpc, wallet: Signer, swindles: Swindles
) -> None:
    """A token that works hard where gas costs nothing, and bans who comes with much; and one that bans below
    or above one limit."""
    token = swindles.fickle()
    await ctx.heads.refresh()
    pool, ban = pool_of(ctx, token), "ban(address,bool,uint256,uint256)"
    gas = await run_ok_buy(ctx, rpc, wallet, token)
    assert gas > 100_000
    swindles.do(token, ban, pool, True, 600_000, 12_000_000)
    assert await run_ok_buy(ctx, rpc, wallet, token) < 600_000
    bounds = [gas * percent // 100 for percent in (20, 40, 55, 80, 97)]
    kept = []
    for least, most in [(one, 2**64) for one in bounds] + [(0, one) for one in bounds]:
        swindles.do(token, ban, pool, False, least, most)
        kept.append(bool(await run_ok_buy(ctx, rpc, wallet, token)))
    # What bans nobody who sends what is returned is written, what bans all is not.
    assert (kept[4], kept[0], kept[5], kept[9]) == (True, False, True, False)


async def test_without_a_quote_there_is_no_buy_of_a_taxed_token(
    ctx: Context, built: Built, wallet: Signer, swindles: Swindles
) -> None:
    """A minimum taken from what arrives would let a third be taken by who trades in front."""
    open_, shuns = (swindles.fickle(3000, who) for who in ("0x" + "0" * 40, built.contracts["quoterV2"]))
    assert (await prepared(ctx, "buy", open_, wallet.address, amount="0.1")).code == "high_loss"
    with pytest.raises(CallerFault, match="does not say how much it pays out") as fault:
        await prepared(ctx, "buy", shuns, wallet.address, amount="0.1")
    assert fault.value.code == "would_fail"


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize("spares", [False, True], ids=["taken from", "spared"])
async def test_the_minimum_is_what_this_very_wallet_gets(
    ctx: Context, rpc: SyncRpc, wallet: Signer, parties: Parties, spares: bool, side: str
) -> None:
    """A hook takes a twentieth of one wallet's swaps, or of all the others'."""
    hook = parties.hook("singles_out")
    plan = PoolPlan("eth", 3000, 20_000, 7000, version=4, hook="singles_out", dynamic_fee=True)
    token = parties.honest(plan, hooks={"singles_out_eth": hook})
    parties.give(token, wallet.address, 10**24)
    single_out = calldata("single_out(address,bool)", wallet.address, spares)
    parties.owner.receipt(parties.owner.send(hook, single_out))
    trade = await prepared(ctx, side, token, wallet.address, amount="0.1" if side == "buy" else "all")
    # The token takes nothing: what the pool is asked for at least is what arrives at least.
    assert trade.min_raw >= trade.raw * 99 // 100 - 2
    assert f"{trade.min_raw:064x}" in trade.steps[-1]["data"]
    with for_real(rpc):
        done = wallet.trade(trade)
        assert (done.ok, done.token_raw if side == "buy" else done.money_raw) == (True, trade.raw)


# --- prices that are made up -----------------------------------------------------------------------


async def test_a_dust_pool_makes_no_sell_fair(
    ctx: Context, rpc: SyncRpc, wallet: Signer, parties: Parties, swindles: Swindles
) -> None:
    """A thousandth of a token at a two-thousandth of its price does not say what a token is worth."""
    token, crumbs, buyer = parties.honest(FAIR), parties.honest(FAIR), swindles.swindler(eth=1)
    parties.give(crumbs, buyer, 10**25)
    held = wallet.buy(token, "weth", 3000, ETH)
    assert held
    assert wallet.send(token, approve(token, buyer).data).ok
    sell = UnsignedStep(buyer, calldata("buy_cheap(address,uint256,uint256)", token, held, ETH // 1000))
    swap = (
        transfer(token, buyer, held),
        UnsignedStep(buyer, calldata("give(address,uint256)", crumbs, 10**21)),
    )
    for _ in ("without it", "with it"):
        assert (await said_of(ctx, wallet, sell)).code == "heavy_loss"
        assert (await said_of(ctx, wallet, *swap)).code == "heavy_loss"
        swindles.dust_pool(token, 10**15, 35 * 10**6 * 2000)
    with for_real(rpc):
        before = wallet.eth()
        assert wallet.send(sell.to, sell.data).ok
        assert (wallet.tokens(token), wallet.eth() - before < ETH // 1000) == (0, True)


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed to others"])
async def test_a_price_pushed_up_within_the_call_is_no_price(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, swindles: Swindles, closed: bool
) -> None:
    """The contract buys with its own money, hands tokens over at that price, and sells afterwards."""
    token, swindler, raw = swindles.fickle(), swindles.swindler(eth=60), 12 * 10**24
    swindles.do(token, "transfer(address,uint256)", swindler, raw)
    await ctx.heads.refresh()
    if closed:
        swindles.do(token, "close(address,address)", pool_of(ctx, token), swindler)
    router, weth = built.contracts["swapRouter02"], built.contracts["weth"]
    order, signature = (
        buy_order(built.contracts, token, swindler, 60 * ETH),
        "bid_up(address,bytes,uint256,address,uint256)",
    )
    step = UnsignedStep(swindler, calldata(signature, router, order, 60 * ETH, token, raw), 5 * ETH)
    result = await said_of(ctx, wallet, step)
    assert (result.code == "heavy_loss") or (closed and result.level == "unknown"), result.text
    assert result.received() == {token: raw}
    with for_real(rpc):
        assert wallet.send(step.to, step.data, step.value_wei).ok
        all_of_it = asked_uint(rpc, token, "balanceOf(address)", swindler)
        swap = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"
        for to, data in (
            (token, approve(token, router).data),
            (router, calldata(swap, (token, weth, 3000, swindler, all_of_it, 0, 0))),
        ):
            swindles.do(swindler, "act(address,bytes)", to, bytes.fromhex(data[2:]))
        # Five eth were paid.
        assert wallet.sell(token, "weth", 3000, raw).back_raw < ETH // 2


async def test_weth_left_in_the_router_hides_no_loss(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, swindles: Swindles
) -> None:
    """Whoever sells next gets it, once; it is none of what the tokens bring."""
    token, weth, router = swindles.fickle(6000), built.contracts["weth"], built.contracts["swapRouter02"]
    (buy,) = wallet.buy_steps(token, V3, ETH // 10)
    losses = []
    for _ in ("without it", "with it"):
        result = await said_of(ctx, wallet, buy)
        assert result.code == "heavy_loss", result.text
        assert (await prepared(ctx, "buy", token, wallet.address, amount="0.1")).answer["refused"]
        losses.append(result.answer["sellBack"]["roundTripLossBps"])
        swindles.do(weth, "deposit()", wei=ETH)
        swindles.do(weth, "transfer(address,uint256)", router, 6 * ETH // 100)
    assert losses[0] == losses[1]
    with for_real(rpc):
        swindles.do(router, "unwrapWETH9(uint256,address)", 0, swindles.who.account)
        held = wallet.buy(token, "weth", 3000, ETH // 10)
        assert held
        assert wallet.sell(token, "weth", 3000, held).back_raw < ETH // 10 * 41 // 100


# --- what is no balance ----------------------------------------------------------------------------


async def test_tokens_for_an_item_are_not_for_nothing(
    ctx: Context, rpc: SyncRpc, wallet: Signer, parties: Parties, swindles: Swindles
) -> None:
    token, swindler = parties.honest(FAIR), swindles.swindler()
    parties.give(token, swindler, 10**25)
    swindles.do(swindler, "hand_item(address)", wallet.address)
    step = UnsignedStep(swindler, calldata("give_for_item(address,uint256)", token, 10**20))
    result = await said_of(ctx, wallet, step)
    assert result.level != "ok", result.text
    assert "for nothing" not in result.text
    assert result.text.startswith(f"Items of the collection {swindler} leave the wallet."), result.text
    with for_real(rpc):
        assert wallet.send(step.to, step.data).ok
        assert asked_uint(rpc, swindler, "items(address)", wallet.address) == 0


async def test_claims_on_the_pool_manager_are_told(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, swindles: Swindles
) -> None:
    manager, thief, raw = built.contracts["v4PoolManager"], swindles.who.account.lower(), 10**18
    swindles.claims(wallet.address, 5, raw)
    assert asked_uint(rpc, manager, "balanceOf(address,uint256)", wallet.address, 5) == raw
    lent = UnsignedStep(manager, calldata("approve(address,uint256,uint256)", thief, 5, raw))
    outcome = await said_of(ctx, wallet, lent)
    assert {(token, spender) for token, spender, _ in outcome.approvals()} == {(manager, thief)}
    assert outcome.text.startswith(f"It lets {thief}"), outcome.text
    gone = UnsignedStep(manager, calldata("transfer(address,uint256,uint256)", thief, 5, raw))
    result = await said_of(ctx, wallet, gone)
    assert result.code == "nothing_received", result.text
    assert manager in result.text
    with for_real(rpc):
        assert wallet.send(lent.to, lent.data).ok
        taken = "transferFrom(address,address,uint256,uint256)"
        swindles.do(manager, taken, wallet.address, thief, 5, raw)
        assert asked_uint(rpc, manager, "balanceOf(address,uint256)", wallet.address, 5) == 0


async def test_an_approval_of_one_position_is_told(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, parties: Parties, swindles: Swindles
) -> None:
    manager, thief, owner = built.contracts["v3PositionManager"], swindles.who.account.lower(), parties.owner
    number = asked_uint(rpc, manager, "tokenOfOwnerByIndex(address,uint256)", owner.account, 0)
    moved = "transferFrom(address,address,uint256)"
    owner.receipt(owner.send(manager, calldata(moved, owner.account, wallet.address, number)))
    step = UnsignedStep(manager, calldata("approve(address,uint256)", thief, number))
    result = await said_of(ctx, wallet, step)
    assert {(token, spender) for token, spender, _ in result.approvals()} == {(manager, thief)}
    assert result.text.startswith(f"It lets {thief} take an item of the collection {manager}"), result.text
    with for_real(rpc):
        assert wallet.send(step.to, step.data).ok
        swindles.do(manager, moved, wallet.address, thief, number)
        assert wallet.tokens(manager) == 0


async def test_what_multicall_may_take_anybody_may(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Signer, swindles: Swindles
) -> None:
    usdg, multicall = built.contracts["usdg"], built.contracts["multicall3"].lower()
    wallet.get_usdg(THOUSAND_USDG_RAW)
    step = approve(usdg, multicall, THOUSAND_USDG_RAW)
    result = await said_of(ctx, wallet, step)
    assert result.approvals() == {(usdg, multicall, False)}
    assert result.text.startswith(f"It lets {multicall}, an address that we do not know"), result.text
    with for_real(rpc):
        assert wallet.send(step.to, step.data).ok
        moved = "transferFrom(address,address,uint256)"
        taken = calldata(moved, wallet.address, swindles.who.account, THOUSAND_USDG_RAW)
        calls = [(usdg, False, bytes.fromhex(taken[2:]))]
        swindles.do(multicall, "aggregate3((address,bool,bytes)[])", calls)
        assert wallet.tokens(usdg) == 0
