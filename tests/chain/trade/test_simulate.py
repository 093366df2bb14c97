"""Simulations of a wallet's own calls on the real local chain."""

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.services.trade.simulate_params import OwnFees
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.signing import prepared
from support.simulated import Strangers, approve, pay, simulated, transfer
from support.simulating import ETH, SOMEBODY, usdg
from support.wallet import UnsignedStep, Wallet, calldata

# --- what moves ------------------------------------------------------------------------------------


async def test_plain_eth_is_spent_and_gas_is_told_apart(ctx: Context, wallet: Wallet) -> None:
    result = await simulated(ctx, wallet.address, pay(SOMEBODY, 3 * ETH))
    assert (result.code, result.level) == ("nothing_received", "warn")
    text = "It goes through, but the wallet gives 3 eth and nothing comes back."
    assert result.answer["verdict"]["text"] == text
    assert result.answer["spent"] == [{"amount": "3", "raw": str(3 * ETH), "asset": "eth", "symbol": "ETH"}]
    assert result.received() == {}
    assert result.answer["calls"] == [{"ok": True, "gasUsed": 21_000, "reverts": None}]
    assert (result.answer["sellBack"], result.answer["check"]) == (None, None)
    assert result.answer["block"] == ctx.heads.current().block.number
    assert result.answer["from"] == wallet.address
    assert result.answer["chainId"] == 4663
    assert result.trips <= 2
    assert result.counted


def wallet_nonce(rpc: SyncRpc, wallet: Wallet) -> int:
    return int(rpc.call("eth_getTransactionCount", wallet.address, "latest"), 16)


async def test_a_nonce_that_is_not_the_next_one_is_said(ctx: Context, rpc: SyncRpc, wallet: Wallet) -> None:
    following = wallet_nonce(rpc, wallet)
    plain = await simulated(ctx, wallet.address, pay(SOMEBODY, ETH))
    right = await simulated(ctx, wallet.address, pay(SOMEBODY, ETH), nonce=[following])
    assert (right.text, right.trips) == (plain.text, plain.trips)
    late = await simulated(ctx, wallet.address, pay(SOMEBODY, ETH), nonce=[following + 9])
    assert late.code == plain.code
    assert late.text == (
        f"{plain.text} Its nonce is {following + 9}, but {following} comes next: it waits until the wallet "
        "has used the nonces before it."
    )
    assert late.level == "warn"


async def test_what_the_chain_refuses_does_not_go_through(ctx: Context, rpc: SyncRpc, wallet: Wallet) -> None:
    following, call = wallet_nonce(rpc, wallet), pay(wallet.address, ETH)
    for refused in (
        await simulated(ctx, wallet.address, call, nonce=[following - 1]),
        await simulated(ctx, wallet.address, call, fees=[OwnFees(10**9, 2 * 10**9)]),
        await simulated(ctx, wallet.address, call, gas=[100_000], fees=[OwnFees(2**63 - 1, None)]),
    ):
        assert (refused.code, refused.level) == ("tx_reverts", "warn")
        assert refused.text.startswith("It would fail: ")
        assert refused.answer["calls"] == [{"ok": False, "gasUsed": 0, "reverts": None}]
    waits = await simulated(ctx, wallet.address, call, fees=[OwnFees(0, 0)])
    assert (waits.code, waits.level) == ("ok", "warn")
    assert waits.text.endswith("it waits until that falls.")


async def test_eth_to_oneself_moves_nothing(ctx: Context, wallet: Wallet) -> None:
    result = await simulated(ctx, wallet.address, pay(wallet.address, ETH))
    assert (result.code, result.spent(), result.received()) == ("ok", {}, {})


async def test_a_token_transfer_is_spent(ctx: Context, built: Built, wallet: Wallet) -> None:
    wallet.get_usdg(5 * 10**6)
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, transfer(usdg(built), SOMEBODY, 2 * 10**6))
    assert result.code == "nothing_received"
    assert result.answer["spent"] == [
        {"amount": "2", "raw": "2000000", "asset": "usdg", "symbol": result.answer["spent"][0]["symbol"]}
    ]
    assert result.trips <= 2


async def test_a_transfer_of_a_strangers_token_is_spent(
    ctx: Context, wallet: Wallet, strangers: Strangers
) -> None:
    token = strangers.token(loud=False)
    strangers.give(token, wallet.address, 7 * ETH)
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, transfer(token, SOMEBODY, 2 * ETH))
    assert (result.code, result.spent()) == ("nothing_received", {token: 2 * ETH})
    assert (
        f"the wallet gives 2 of the token {token} and nothing comes back." in result.answer["verdict"]["text"]
    )
    assert result.answer["spent"][0]["amount"] == "2"
    assert result.answer["spent"][0]["symbol"] == "ODD"


async def test_wrapping_and_unwrapping_lose_nothing(ctx: Context, built: Built, wallet: Wallet) -> None:
    weth = built.contracts["weth"]
    result = await simulated(ctx, wallet.address, UnsignedStep(weth, calldata("deposit()"), ETH))
    assert (result.code, result.spent(), result.received()) == ("ok", {"eth": ETH}, {"weth": ETH})
    assert result.trips <= 2
    back = UnsignedStep(weth, calldata("withdraw(uint256)", ETH // 4))
    result = await simulated(ctx, wallet.address, UnsignedStep(weth, calldata("deposit()"), ETH), back)
    assert (result.spent(), result.received()) == ({"eth": 3 * ETH // 4}, {"weth": 3 * ETH // 4})


async def test_false_events_bring_nothing(ctx: Context, wallet: Wallet, strangers: Strangers) -> None:
    token = strangers.token()
    await ctx.heads.refresh()
    lie = UnsignedStep(token, calldata("lie(address,uint256)", wallet.address, 10**24))
    result = await simulated(ctx, wallet.address, lie)
    assert (result.code, result.spent(), result.received()) == ("ok", {}, {})
    result = await simulated(ctx, wallet.address, lie, pay(SOMEBODY, ETH))
    assert (result.code, result.spent(), result.received()) == ("nothing_received", {"eth": ETH}, {})


@pytest.mark.parametrize("loud", [True, False], ids=["with events", "without events"])
async def test_what_is_taken_by_an_earlier_allowance_is_seen(
    ctx: Context, wallet: Wallet, strangers: Strangers, loud: bool
) -> None:
    """The token's address stands nowhere in the calldata."""
    token = strangers.token(loud=loud)
    mover = strangers.mover(token)
    strangers.give(token, wallet.address, 7 * ETH)
    assert wallet.send(token, approve(token, mover).data).ok
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, UnsignedStep(mover, calldata("take()")))
    assert (result.code, result.spent()) == ("nothing_received", {token: 7 * ETH})


@pytest.mark.parametrize(
    "way",
    [("take_behind_voices()",), ("take_behind_noise(uint256)", 4200)],
    ids=["many emitters", "many events"],
)
async def test_noise_hides_nothing(
    ctx: Context, wallet: Wallet, strangers: Strangers, way: tuple[str, int]
) -> None:
    token = strangers.token()
    mover = strangers.mover(token)
    strangers.do(mover, "gather(uint256)", 60)
    strangers.give(token, wallet.address, 7 * ETH)
    assert wallet.send(token, approve(token, mover).data).ok
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, UnsignedStep(mover, calldata(*way)))
    # What cannot be looked at whole is at least no pass.
    assert result.spent() == {token: 7 * ETH} or result.code == "unproven", result.answer


@pytest.mark.parametrize("way", ["take_from_the_poor()", "take_with_little_gas()"])
async def test_a_contract_cannot_tell_a_simulation_by_the_wallets_eth_or_gas(
    ctx: Context, wallet: Wallet, strangers: Strangers, way: str
) -> None:
    token = strangers.token()
    mover = strangers.mover(token)
    strangers.give(token, wallet.address, 7 * ETH)
    assert wallet.send(token, approve(token, mover).data).ok
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, UnsignedStep(mover, calldata(way)))
    # What the calls do with less is at least no pass.
    assert result.spent() == {token: 7 * ETH} or result.code in ("unproven", "tx_reverts"), result.text


async def test_a_claim_that_drains_another_token_is_seen(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    token = strangers.token()
    strangers.do(token, "grasp(address)", usdg(built))
    wallet.get_usdg(9 * 10**6)
    assert wallet.send(usdg(built), approve(usdg(built), token).data).ok
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, UnsignedStep(token, calldata("claim()")))
    assert (result.spent(), result.received()) == ({"usdg": 9 * 10**6}, {token: ETH})
    assert (result.code, result.level) == ("no_route", "unknown")
    assert "we found no pool" in result.text


# --- curves ----------------------------------------------------------------------------------------


def curve_of(ctx: Context, token: str) -> str:
    assert ctx.heads.venue_index is not None
    (venue,) = [v for v in ctx.heads.venue_index.venues_of(Address(token)) if v.kind == "launchpad_curve"]
    return str(venue.pool)


def curve_buy(ctx: Context, token: str, wei: int, to: str) -> UnsignedStep:
    data = calldata("buy(uint256,uint256,address)", wei, 0, to)
    return UnsignedStep(curve_of(ctx, token), data, wei)


@pytest.mark.parametrize("key", ["curve", "curve_nearly_full", "curve_all_but_full"])
async def test_a_buy_that_sells_the_curve_out_is_no_trap(
    ctx: Context, built: Built, wallet: Wallet, key: str
) -> None:
    token = built.tokens[key]
    result = await simulated(ctx, wallet.address, curve_buy(ctx, token, 9 * ETH, wallet.address))
    assert result.code in ("ok", "high_loss", "heavy_loss"), result.text
    assert result.answer["sellBack"]["venue"] == "launchpad_pool"
    assert "until it opens you cannot sell" in result.text
    assert result.spent()["eth"] < 9 * ETH


async def test_a_curve_sold_out_for_others_is_no_trap_for_the_wallet(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    token = built.tokens["curve"]
    mine = curve_buy(ctx, token, ETH // 10, wallet.address)
    theirs = curve_buy(ctx, token, 9 * ETH, SOMEBODY)
    result = await simulated(ctx, wallet.address, mine, theirs)
    assert result.received().keys() == {token}
    assert result.code != "cannot_sell", result.text


async def test_a_buy_on_a_curve_and_a_sell_of_half_of_it(ctx: Context, built: Built, wallet: Wallet) -> None:
    token = built.tokens["curve"]
    buy = curve_buy(ctx, token, ETH // 10, wallet.address)
    alone = await simulated(ctx, wallet.address, buy)
    got = alone.received()[token]
    curve = curve_of(ctx, token)
    sell = UnsignedStep(curve, calldata("sell(uint256,uint256,address)", got // 2, 0, wallet.address))
    result = await simulated(ctx, wallet.address, buy, approve(token, curve, got // 2), sell)
    assert result.code == "ok", result.text
    assert result.received() == {token: got - got // 2}
    assert 0 < result.spent()["eth"] < alone.spent()["eth"]


@pytest.mark.parametrize(
    ("key", "account", "code"), [("curve_all_but_full", 6, "heavy_loss"), ("paused", 0, "high_loss")]
)
async def test_a_sale_of_what_nobody_can_buy_now_is_priced_by_its_pools(
    ctx: Context, built: Built, key: str, account: int, code: str
) -> None:
    """Simulate says of a prepared sale what prepare says."""
    seller, token = built.accounts[account].lower(), built.tokens[key]
    trade = await prepared(ctx, "sell", token, seller, percent=100)
    steps = [UnsignedStep(step["to"], step["data"], int(step["value"])) for step in trade.steps]
    again = await simulated(ctx, seller, *steps)
    assert (trade.code, again.code) == (code, code), (trade.text, again.text)
    assert trade.answer["verdict"]["level"] == again.answer["verdict"]["level"]
    assert "we do not know what it loses" not in trade.text + again.text


async def test_a_buy_that_goes_through_says_what_a_check_warns_of(ctx: Context, built: Built) -> None:
    """Another pool, where a buy brings most, takes no sell: this buy is not made there."""
    buyer, token = built.accounts[6].lower(), built.tokens["hook_bait"]
    trade = await prepared(ctx, "buy", token, buyer, amount="0.1")
    steps = [UnsignedStep(step["to"], step["data"], int(step["value"])) for step in trade.steps]
    again = await simulated(ctx, buyer, *steps)
    assert (trade.code, again.code) == ("ok", "ok")
    for text in (trade.text, again.text):
        assert "A check of the token says: " in text
        assert "another pool, where a buy brings most, takes no sell" in text
