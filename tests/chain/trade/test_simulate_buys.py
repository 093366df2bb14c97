"""A wallet's own buys, simulated and sold straight back."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.figures import format_percent
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.venues import amm_v4
from roundtrip.venues.base import TradeTerms
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, put_token, v3_pool
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.simulated import SimulatedAnswer, Strangers, approve, simulated, transfer
from support.simulating import ETH, steps_of, usdg
from support.wallet import PoolSpec, UnsignedStep, Wallet, calldata
from truth.simulated import buy_steps, money_for, spot_of
from truth.spring_trial import deploy_spring
from truth.springs import drawn

VENUES = {
    "plain": PoolSpec("weth", 3000),
    "usdg_pool": PoolSpec("usdg", 3000),
    "v4_eth": PoolSpec("eth", 3000, 4),
    "v4_weth": PoolSpec("weth", 3000, 4),
    "v4_usdg": PoolSpec("usdg", 500, 4),
    "six_decimals": PoolSpec("weth", 3000),
}


async def bought(
    ctx: Context, built: Built, wallet: Wallet, key: str
) -> tuple[SimulatedAnswer, dict[str, int]]:
    """A buy for a tenth of an eth, or as many dollars, and what is to be spent."""
    place, token = VENUES[key], built.tokens[key]
    if place.quote == "usdg":
        wallet.get_usdg(350 * 10**6)
        await ctx.heads.refresh()
        return await simulated(ctx, wallet.address, *steps_of(wallet, token, place, 350 * 10**6)), {
            "usdg": 350 * 10**6
        }
    return await simulated(ctx, wallet.address, *steps_of(wallet, token, place, ETH // 10)), {
        "eth": ETH // 10
    }


@pytest.mark.parametrize("key", VENUES)
async def test_a_buy_is_sold_straight_back(ctx: Context, built: Built, wallet: Wallet, key: str) -> None:
    result, spent = await bought(ctx, built, wallet, key)
    place, token = VENUES[key], built.tokens[key]
    assert (result.code, result.level) == ("ok", "ok"), result.text
    assert result.spent() == spent
    assert result.received().keys() == {token}
    back = result.answer["sellBack"]
    assert (back["token"], back["venue"]) == (token, f"amm_v{place.version}")
    assert back["back"]["asset"] == ("usdg" if place.quote == "usdg" else "eth")
    assert back["roundTripLossBps"] == (10 if place.fee_pips == 500 else 60)
    assert back["laterLossBps"] == back["roundTripLossBps"]
    assert f"The price impact is {format_percent(back['priceImpactBps'])}:" in result.text
    assert back["sold"] == result.answer["received"][0]["amount"]
    assert back["reverts"] is None
    assert result.answer["check"]["address"] == token
    assert result.answer["check"]["verdict"]["code"] == "ok"
    assert "The price impact is " in result.text
    assert result.trips == 2
    # Approvals of exactly what is spent are spent, too.
    assert result.approvals() == set()


async def test_a_trap_for_other_wallets_is_one_for_this_wallet_too(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Wallet
) -> None:
    """Its own sell goes through, now; an owner who picks victims can pick this wallet, too."""
    cases = drawn(40, 29, ("address, 1 in 8",))
    case = next(one for one in cases if one.pool.quote == "weth" and not one.takes_bps)
    token = deploy_spring(rpc, built, case)
    await ctx.heads.refresh()
    own = replace(ctx, entropy=lambda: b"\x07" * 32)
    place = PoolSpec("weth", case.pool.fee_pips, case.pool.version)
    result = await simulated(own, wallet.address, *steps_of(wallet, token, place, ETH // 10))
    assert (result.code, result.level) == ("cannot_sell", "danger"), result.text
    assert "test wallets could buy it and not sell it" in result.text
    assert result.answer["check"]["verdict"]["code"] == "cannot_sell"


@pytest.mark.parametrize(
    ("key", "venue", "trips"),
    [
        ("curve", "launchpad_curve", 2), ("curve_usdg", "launchpad_curve", 2),
        ("curve_other", "launchpad_curve", 3),
        ("graduated", "launchpad_pool", 2), ("graduated_usdg", "launchpad_pool", 2),
    ],
)  # fmt: skip
async def test_a_launch_is_bought_and_sold_straight_back(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Wallet, key: str, venue: str, trips: int
) -> None:
    assert ctx.heads.venue_index is not None
    token = built.tokens[key]
    spot = spot_of(built, ctx.heads.venue_index.venues_of(Address(token))[-1])
    raw = money_for(rpc, built, wallet, spot)
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, *buy_steps(built, wallet, token, spot, raw))
    assert (result.code, result.level) == ("ok", "ok"), result.text
    assert result.spent() == {built.contracts["share"] if spot.quote == "share" else spot.quote: raw}
    assert result.received().keys() == {token}
    assert result.answer["sellBack"]["venue"] == venue
    assert result.answer["check"]["verdict"]["level"] == "ok"
    # Money that is not eth, weth or usdg has its rate asked, once in half a minute.
    assert result.trips == trips
    assert result.approvals() == set()


@pytest.mark.parametrize("key", ["bare", "loud"])
async def test_a_token_that_nobody_trades_has_no_route(
    ctx: Context, wallet: Wallet, strangers: Strangers, key: str
) -> None:
    token = strangers.token(loud=key == "loud")
    giver = strangers.mover(token)
    strangers.give(token, giver, 8 * ETH)
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, UnsignedStep(giver, calldata("give()"), ETH))
    assert (result.spent(), result.received()) == ({"eth": ETH}, {token: 4 * ETH})
    assert (result.code, result.level) == ("no_route", "unknown")
    assert result.answer["sellBack"] is None


async def test_an_airdrop_that_sells_is_ok(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    token = built.tokens["plain"]
    giver = strangers.mover(token)
    Wallet(strangers.rpc, built.contracts, "giver").buy(token, "weth", 3000, ETH)
    donor = Wallet(strangers.rpc, built.contracts, "giver")
    assert donor.send(token, transfer(token, giver, 10**24).data).ok
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, UnsignedStep(giver, calldata("give()")))
    assert (result.spent(), result.received()) == ({}, {token: 10**24 // 2})
    assert (result.code, result.answer["sellBack"]["roundTripLossBps"]) == ("ok", None), result.text


async def test_of_several_tokens_the_worst_decides(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    good, trap = built.tokens["plain"], built.tokens["owner_only_sell"]
    steps = [steps_of(wallet, token, PoolSpec("weth", 3000), ETH // 10)[0] for token in (good, trap)]
    for order in (steps, steps[::-1]):
        result = await simulated(ctx, wallet.address, *order)
        assert (result.code, result.level) == ("cannot_sell", "danger")
        assert result.received().keys() == {good, trap}
        assert result.spent() == {"eth": ETH // 5}
        assert result.answer["sellBack"]["token"] == trap
        assert result.answer["sellBack"]["reverts"] == "trading not open"
        assert result.answer["check"]["address"] == trap
        assert result.answer["check"]["verdict"]["code"] == "cannot_sell"


async def test_two_good_tokens_lose_what_both_lose(ctx: Context, built: Built, wallet: Wallet) -> None:
    tokens = (built.tokens["plain"], built.tokens["six_decimals"])
    steps = [steps_of(wallet, token, PoolSpec("weth", 3000), ETH // 10)[0] for token in tokens]
    result = await simulated(ctx, wallet.address, *steps)
    assert result.code == "ok"
    assert result.answer["sellBack"]["roundTripLossBps"] in (59, 60, 61)


async def test_a_large_good_buy_hides_no_heavy_loss(ctx: Context, built: Built, wallet: Wallet) -> None:
    good, bad = built.tokens["plain"], built.tokens["heavy_fee_on_buy"]
    place = PoolSpec("weth", 3000)
    large, small = steps_of(wallet, good, place, ETH // 10)[0], steps_of(wallet, bad, place, ETH // 100)[0]
    for order in ((large, small), (small, large)):
        result = await simulated(ctx, wallet.address, *order)
        assert (result.code, result.level) == ("heavy_loss", "danger"), result.text
        sell_back = result.answer["sellBack"]
        assert sell_back["token"] == bad
        assert sell_back["roundTripLossBps"] == pytest.approx(6023, abs=50)


async def test_a_dear_buy_beside_a_large_good_one_is_no_ok(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    """The thin pool's price moves by a third."""
    good, dear = built.tokens["plain"], built.tokens["two_pools"]
    small, *_ = steps_of(wallet, dear, PoolSpec("weth", 10_000), ETH // 10)
    for beside, result_code in (([], "high_loss"), ([ETH // 2], "high_loss"), ([ETH], "unproven")):
        large = [steps_of(wallet, good, PoolSpec("weth", 3000), size)[0] for size in beside]
        result = await simulated(ctx, wallet.address, small, *large)
        assert result.code == result_code, result.text


async def test_what_a_small_token_cost_beside_a_large_one_may_be_unknown(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    """A tenth of an eth more than usual was paid, for one of both."""
    tokens = (built.tokens["plain"], built.tokens["six_decimals"])
    large, small = (
        steps_of(wallet, token, PoolSpec("weth", 3000), size)[0]
        for token, size in zip(tokens, (ETH, ETH // 100), strict=True)
    )
    assert (await simulated(ctx, wallet.address, large, small)).code == "ok"
    weth = built.contracts["weth"]
    lost = UnsignedStep(weth, "0xd0e30db0", ETH // 10), transfer(weth, weth, ETH // 10)
    result = await simulated(ctx, wallet.address, large, small, *lost)
    assert (result.code, result.level) == ("unproven", "unknown"), result.text
    assert "simulate each buy alone" in result.text


async def test_a_small_buy_in_a_thin_pool_is_priced_by_a_small_buy(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    """The check's own buy moves that pool's price by half."""
    tokens = (built.tokens["plain"], built.tokens["thin"])
    large, small = (
        steps_of(wallet, token, PoolSpec("weth", 3000), size)[0]
        for token, size in zip(tokens, (ETH // 10, ETH // 500), strict=True)
    )
    assert (await simulated(ctx, wallet.address, small)).code == "ok"
    result = await simulated(ctx, wallet.address, large, small)
    assert result.code == "ok", result.text
    assert result.answer["sellBack"]["roundTripLossBps"] < 500


async def test_only_what_was_received_is_sold(ctx: Context, built: Built, wallet: Wallet) -> None:
    token = built.tokens["plain"]
    (step,) = steps_of(wallet, token, PoolSpec("weth", 3000), ETH // 10)
    alone = await simulated(ctx, wallet.address, step)
    held = wallet.buy(token, "weth", 3000, 10 * ETH // 4)
    assert held
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, step)
    assert result.code == "ok", result.text
    assert result.received()[token] < alone.received()[token]
    assert result.answer["sellBack"]["sold"] == result.answer["received"][0]["amount"]
    assert result.answer["sellBack"]["roundTripLossBps"] == 60


async def test_a_sell_brings_eth_and_leaves_no_approval(ctx: Context, built: Built, wallet: Wallet) -> None:
    token = built.tokens["plain"]
    held = wallet.buy(token, "weth", 3000, ETH)
    assert held
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, *wallet.sell_steps(token, PoolSpec("weth", 3000), held))
    assert result.code == "ok"
    assert result.trips <= 2
    assert result.spent() == {token: held}
    assert result.received().keys() == {"eth"}
    assert result.approvals() == set()
    more = wallet.sell_steps(token, PoolSpec("weth", 3000), held, held + 5)
    result = await simulated(ctx, wallet.address, *more)
    assert result.approvals() == {(token, built.contracts["swapRouter02"], False)}
    assert result.answer["approvals"][0]["amount"] == "0.000000000000000005"
    # The router is known: nothing opens the text.
    assert result.text.startswith("It goes through")


async def test_a_v4_sell_of_an_exact_amount(ctx: Context, built: Built, wallet: Wallet) -> None:
    token, place = built.tokens["v4_eth"], PoolSpec("eth", 3000, 4)
    held = wallet.buy(token, "eth", 3000, ETH, 4)
    assert held
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, *wallet.sell_steps(token, place, held))
    assert (result.code, result.spent(), result.approvals()) == ("ok", {token: held}, set())


async def test_a_cooldown_token_is_spoken_of_as_a_check_does(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    result = await simulated(
        ctx, wallet.address, *steps_of(wallet, built.tokens["cooldown"], PoolSpec("weth", 3000), ETH // 10)
    )
    assert (result.code, result.answer["check"]["verdict"]["code"]) == ("ok", "ok")
    assert (
        'you cannot sell what it buys at once (the token says "cooldown"); you can after an hour'
        in result.text
    )


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("thin", "heavy_loss"), ("fee_on_buy", "high_loss"), ("heavy_fee_on_buy", "heavy_loss"),
        ("time_bomb", "cannot_sell"), ("fee_on_sell", "cannot_sell"), ("blacklist_after_buy", "cannot_sell"),
        ("detect_simulation", "cannot_sell"), ("megabyte_revert", "cannot_sell"),
        ("loops_on_transfer", "cannot_sell"), ("paused", "tx_reverts"),
    ],
)  # fmt: skip
async def test_what_a_token_does_is_told(
    ctx: Context, built: Built, wallet: Wallet, key: str, code: str
) -> None:
    result = await simulated(
        ctx, wallet.address, *steps_of(wallet, built.tokens[key], PoolSpec("weth", 3000), ETH // 10)
    )
    assert result.code == code, result.text


async def test_a_buy_quotes_the_reason_of_the_token(ctx: Context, built: Built, wallet: Wallet) -> None:
    """The pool says TF; the check beside it has asked the token."""
    steps = steps_of(wallet, built.tokens["paused"], PoolSpec("weth", 3000), ETH // 10)
    result = await simulated(ctx, wallet.address, *steps)
    assert result.text == 'It would fail: the token says "paused".'
    assert result.answer["calls"][-1]["reverts"] == "paused"


@pytest.mark.parametrize(
    ("key", "reason"), [("paused", "paused"), ("owner_only_sell", "trading not open"), ("plain", None)]
)
async def test_a_sell_quotes_the_reason_of_the_token(
    ctx: Context, rpc: SyncRpc, built: Built, wallet: Wallet, key: str, reason: str | None
) -> None:
    """The router says STF, also for an allowance that is missing: then nothing is said of the token."""
    token = built.tokens[key]
    owner = ContractDeployer(rpc, built.accounts[0])
    owner.receipt(owner.send(token, transfer(token, wallet.address, ETH).data))
    await ctx.heads.refresh()
    steps = wallet.sell_steps(token, PoolSpec("weth", 3000), ETH)
    result = await simulated(ctx, wallet.address, *(steps if reason else steps[-1:]))
    assert result.code == "tx_reverts"
    if reason is None:
        assert result.text == (
            "It would fail: the router could not take the token: the wallet holds too little of it, has not "
            "approved the router, or the token refuses the transfer."
        )
    else:
        assert result.text == f'Call 2 of 2 would fail: the token says "{reason}".'
    assert result.answer["calls"][-1]["reverts"] == (reason or "STF")


async def test_a_sell_without_the_token_says_nothing_of_the_token(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    steps = wallet.sell_steps(built.tokens["plain"], PoolSpec("weth", 3000), ETH)
    result = await simulated(ctx, wallet.address, *steps)
    assert (result.code, result.answer["calls"][-1]["reverts"]) == ("tx_reverts", "STF")
    assert "says" not in result.text


async def test_a_minimum_that_is_not_met_is_told_in_words(ctx: Context, built: Built, wallet: Wallet) -> None:
    assert ctx.heads.venue_index is not None
    token, sender, terms = Address(built.tokens["v4_eth"]), Address(wallet.address), TradeTerms(10**30)
    (venue,) = ctx.heads.venue_index.venues_of(token)
    (buy,) = amm_v4.plan_buy(venue, token, ctx.contracts, ETH // 10, sender, terms)
    result = await simulated(ctx, wallet.address, UnsignedStep(buy.to, buy.data, buy.value_wei))
    assert result.code == "tx_reverts"
    assert result.text == (
        "It would fail: the swap brings less than its own minimum. More slippage may let it through."
    )
    assert result.answer["calls"][0]["reverts"] == "V4TooLittleReceived"


async def test_an_allowance_that_was_there_makes_no_trap(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    """Of a token that raises no allowance (usdt): a wallet takes the old one back first."""
    token = strangers.token(strict=True)
    deployer = strangers.deployer
    deployer.send(token, approve(token, built.contracts["v3PositionManager"]).data)
    deployer.send(built.contracts["weth"], calldata("deposit()"), 20 * ETH)
    deployer.send(
        built.contracts["weth"], approve(built.contracts["weth"], built.contracts["v3PositionManager"]).data
    )
    v3_pool(deployer, built.contracts, {token: 10**24, built.contracts["weth"]: 20 * ETH}, 3000, fill=True)
    deployer.check_receipts()
    assert wallet.send(token, approve(token, built.contracts["swapRouter02"], 1).data).ok
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, *steps_of(wallet, token, PoolSpec("weth", 3000), ETH // 10))
    assert result.code == "ok", result.text
    assert "sold straight back for a loss of 0.60 %" in result.text


async def test_more_tokens_than_are_sold_are_the_calls_own_doing(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    few = replace(ctx, policy=replace(ctx.policy, most_received=1))
    steps = [
        step
        for token in ("plain", "six_decimals")
        for step in wallet.buy_steps(built.tokens[token], PoolSpec("weth", 3000), ETH // 10)
    ]
    result = await simulated(few, wallet.address, *steps)
    assert (result.code, result.level) == ("unproven", "unknown")
    assert result.text == "The calls bring more tokens than one simulation sells. This is not a pass."


async def exchanged(
    ctx: Context, built: Built, wallet: Wallet, paid: tuple[str, PoolSpec], got: str
) -> tuple[SimulatedAnswer, int]:
    """One token for another, over eth: sold for what it brings, and that spent."""
    token, place = paid[0], paid[1]
    held = wallet.buy(token, place.quote, place.fee_pips, ETH, place.version)
    assert held
    await ctx.heads.refresh()
    sells = wallet.sell_steps(token, place, held)
    back = (await simulated(ctx, wallet.address, *sells)).received()["eth"]
    buys = wallet.buy_steps(got, PoolSpec("weth", 3000), back)
    return await simulated(ctx, wallet.address, *sells, *buys), held


async def test_a_token_paid_with_a_token_has_its_price(ctx: Context, built: Built, wallet: Wallet) -> None:
    paid, got = built.tokens["plain"], built.tokens["six_decimals"]
    result, held = await exchanged(ctx, built, wallet, (paid, PoolSpec("weth", 3000)), got)
    assert result.spent() == {paid: held}
    assert result.received().keys() == {got}
    assert result.code == "ok", result.text
    # Its own pool's fee and price impact, and the round trip of the other.
    assert 60 < result.answer["sellBack"]["roundTripLossBps"] < 700
    # The rate is asked while it is sold back.
    assert result.trips == 2


async def test_a_token_paid_with_what_has_no_price_has_no_route(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    paid, got = strangers.token(), built.tokens["plain"]
    strangers.give(paid, wallet.address, ETH)
    giver, donor = strangers.mover(got), Wallet(strangers.rpc, built.contracts, "donor")
    assert donor.buy(got, "weth", 3000, ETH)
    assert donor.send(got, transfer(got, giver, 10**24).data).ok
    await ctx.heads.refresh()
    steps = (transfer(paid, giver, ETH), UnsignedStep(giver, calldata("give()")))
    result = await simulated(ctx, wallet.address, *steps)
    assert (result.spent(), result.received()) == ({paid: ETH}, {got: 10**24 // 2})
    assert (result.code, result.level) == ("no_route", "unknown"), result.text
    assert "no known price" in result.text
    assert result.answer["sellBack"]["roundTripLossBps"] is None


async def test_money_for_money_at_a_terrible_rate_is_a_loss(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    giver = strangers.mover(usdg(built))
    wallet.get_usdg(700 * 10**6)
    assert wallet.send(usdg(built), transfer(usdg(built), giver, 700 * 10**6).data).ok
    await ctx.heads.refresh()
    for wei, code in ((ETH // 10, "ok"), (ETH // 8, "high_loss"), (ETH, "heavy_loss")):
        result = await simulated(ctx, wallet.address, UnsignedStep(giver, calldata("give()"), wei))
        assert (result.spent(), result.received()) == ({"eth": wei}, {"usdg": 350 * 10**6})
        assert result.code == code, result.text


async def test_more_tokens_than_are_tried_are_unproven(
    ctx: Context, wallet: Wallet, strangers: Strangers
) -> None:
    tokens = [strangers.token() for _ in range(5)]
    giver = strangers.mover(*tokens)
    for token in tokens:
        strangers.give(token, giver, 2 * ETH)
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, UnsignedStep(giver, calldata("give()"), ETH))
    assert (result.code, result.level) == ("unproven", "unknown")
    assert result.received() == dict.fromkeys(tokens, ETH)


async def test_dear_calls_do_not_make_a_good_token_a_trap(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    """Where the calls burn much gas fewer places are tried: what was not tried is not refused."""
    token = put_token(
        strangers.deployer,
        built.contracts,
        Story("", "", "tokens/fee_on_sell.vy", "Two", "TWO", extra_types=("uint256",), extra_values=(100,),
              pools=(PoolPlan("weth", 500, supply_bps=2000), PoolPlan("weth", 3000, supply_bps=2000),
                     PoolPlan("weth", 10_000, supply_bps=2000),
                     PoolPlan("eth", 3000, supply_bps=2000, version=4))),
        _code("tokens/fee_on_sell.vy"),
    )  # fmt: skip
    giver = strangers.mover(token)
    strangers.give(token, giver, 10**22)
    strangers.deployer.check_receipts()
    await ctx.heads.refresh()
    light = await simulated(ctx, wallet.address, UnsignedStep(giver, calldata("give()"), 10**14))
    heavy = [UnsignedStep(giver, calldata("give_behind_burn(uint256)", 2_000_000), 10**14)] * 6
    result = await simulated(ctx, wallet.address, *heavy)
    assert light.code == "ok", light.text
    assert result.code != "cannot_sell", result.text


def _code(path: str) -> str:
    return compile_contract(PROJECT / "contracts" / path)


async def test_eth_for_a_stranger_is_no_price_impact(ctx: Context, built: Built, wallet: Wallet) -> None:
    token, stranger = built.tokens["plain"], "0x" + "ab" * 20
    swap = steps_of(wallet, token, VENUES["plain"], ETH // 10)
    alone = await simulated(ctx, wallet.address, *swap)
    result = await simulated(ctx, wallet.address, *swap, UnsignedStep(stranger, "0x", ETH // 50))
    impact_bps = alone.answer["sellBack"]["priceImpactBps"]
    assert impact_bps < 100
    assert abs(result.answer["sellBack"]["priceImpactBps"] - impact_bps) <= 1
    assert (result.code, result.answer["sellBack"]["roundTripLossBps"] > 1500) == ("high_loss", True)
    assert "fewer tokens" not in result.text
    assert "0.02 eth of what it spends leaves for other addresses." in result.text


async def test_a_bait_pool_leaves_the_sell_in_the_fair_pool_proven(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    token = built.tokens["hook_bait"]
    for _ in range(4):
        result = await simulated(ctx, wallet.address, *steps_of(wallet, token, VENUES["plain"], ETH // 10))
        assert (result.code, result.level) == ("ok", "ok"), result.text
