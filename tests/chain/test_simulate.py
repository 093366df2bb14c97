"""Simulations of a wallet's own calls on the real local chain."""

import pytest

from conftest import PROJECT
from roundtrip.devnet.compile import compile_contract
from roundtrip.devnet.deploy import put_token, v3_pool
from roundtrip.devnet.stories import PoolPlan, Story
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.types import Address
from roundtrip.services.context import Context
from support.simulated import (
    ALLOW,
    LATE,
    Said,
    Strangers,
    approve,
    pay,
    simulated,
    transfer,
)
from support.wallet import Place, Step, Wallet, calldata
from truth.simulated import buy_steps, money_for, spot_of

ETH = 10**18
SOMEBODY = "0x" + "ab" * 20


@pytest.fixture
def wallet(rpc: SyncRpc, built: Built) -> Wallet:
    """Ten eth and nothing else."""
    return Wallet(rpc, built.contracts, "simulated")


@pytest.fixture
def strangers(rpc: SyncRpc, tmp_path_factory: pytest.TempPathFactory) -> Strangers:
    return Strangers(rpc, tmp_path_factory.mktemp("odd"))


def steps_of(wallet: Wallet, token: str, place: Place, amount_raw: int) -> list[Step]:
    return wallet.buy_steps(token, place, amount_raw)


def usdg(built: Built) -> str:
    return built.contracts["usdg"]


# --- what moves ------------------------------------------------------------------------------------


async def test_plain_eth_is_spent_and_gas_is_told_apart(ctx: Context, wallet: Wallet) -> None:
    said = await simulated(ctx, wallet.address, pay(SOMEBODY, 3 * ETH))
    assert (said.code, said.level) == ("nothing_received", "warn")
    assert said.answer["spent"] == [{"amount": "3", "raw": str(3 * ETH), "asset": "eth", "symbol": "ETH"}]
    assert said.received() == {}
    assert said.answer["calls"] == [{"ok": True, "gasUsed": 21_000, "reverts": None}]
    assert (said.answer["sellBack"], said.answer["check"]) == (None, None)
    assert said.answer["block"] == ctx.heads.current().block.number
    assert said.answer["from"] == wallet.address
    assert said.answer["chainId"] == 4663
    assert said.trips <= 2
    assert said.counted


async def test_eth_to_oneself_moves_nothing(ctx: Context, wallet: Wallet) -> None:
    said = await simulated(ctx, wallet.address, pay(wallet.address, ETH))
    assert (said.code, said.spent(), said.received()) == ("ok", {}, {})


async def test_a_token_transfer_is_spent(ctx: Context, built: Built, wallet: Wallet) -> None:
    wallet.get_usdg(5 * 10**6)
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, transfer(usdg(built), SOMEBODY, 2 * 10**6))
    assert said.code == "nothing_received"
    assert said.answer["spent"] == [
        {"amount": "2", "raw": "2000000", "asset": "usdg", "symbol": said.answer["spent"][0]["symbol"]}
    ]
    assert said.trips <= 2


async def test_a_transfer_of_a_strangers_token_is_spent(
    ctx: Context, wallet: Wallet, strangers: Strangers
) -> None:
    token = strangers.token(loud=False)
    strangers.give(token, wallet.address, 7 * ETH)
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, transfer(token, SOMEBODY, 2 * ETH))
    assert (said.code, said.spent()) == ("nothing_received", {token: 2 * ETH})
    assert said.answer["spent"][0]["amount"] == "2"
    assert said.answer["spent"][0]["symbol"] == "ODD"


async def test_wrapping_and_unwrapping_lose_nothing(ctx: Context, built: Built, wallet: Wallet) -> None:
    weth = built.contracts["weth"]
    said = await simulated(ctx, wallet.address, Step(weth, calldata("deposit()"), ETH))
    assert (said.code, said.spent(), said.received()) == ("ok", {"eth": ETH}, {"weth": ETH})
    assert said.trips <= 2
    back = Step(weth, calldata("withdraw(uint256)", ETH // 4))
    said = await simulated(ctx, wallet.address, Step(weth, calldata("deposit()"), ETH), back)
    assert (said.spent(), said.received()) == ({"eth": 3 * ETH // 4}, {"weth": 3 * ETH // 4})


async def test_false_events_bring_nothing(ctx: Context, wallet: Wallet, strangers: Strangers) -> None:
    token = strangers.token()
    await ctx.heads.refresh()
    lie = Step(token, calldata("lie(address,uint256)", wallet.address, 10**24))
    said = await simulated(ctx, wallet.address, lie)
    assert (said.code, said.spent(), said.received()) == ("ok", {}, {})
    said = await simulated(ctx, wallet.address, lie, pay(SOMEBODY, ETH))
    assert (said.code, said.spent(), said.received()) == ("nothing_received", {"eth": ETH}, {})


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
    said = await simulated(ctx, wallet.address, Step(mover, calldata("take()")))
    assert (said.code, said.spent()) == ("nothing_received", {token: 7 * ETH})


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
    said = await simulated(ctx, wallet.address, Step(mover, calldata(*way)))
    # What cannot be looked at whole is at least no pass.
    assert said.spent() == {token: 7 * ETH} or said.code == "unproven", said.answer


@pytest.mark.parametrize("way", ["take_from_the_poor()", "take_with_little_gas()"])
async def test_a_contract_cannot_tell_a_simulation_by_the_wallets_eth_or_gas(
    ctx: Context, wallet: Wallet, strangers: Strangers, way: str
) -> None:
    token = strangers.token()
    mover = strangers.mover(token)
    strangers.give(token, wallet.address, 7 * ETH)
    assert wallet.send(token, approve(token, mover).data).ok
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, Step(mover, calldata(way)))
    # What the calls do with less is at least no pass.
    assert said.spent() == {token: 7 * ETH} or said.code in ("unproven", "tx_reverts"), said.text


async def test_a_claim_that_drains_another_token_is_seen(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    token = strangers.token()
    strangers.do(token, "grasp(address)", usdg(built))
    wallet.get_usdg(9 * 10**6)
    assert wallet.send(usdg(built), approve(usdg(built), token).data).ok
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, Step(token, calldata("claim()")))
    assert (said.spent(), said.received()) == ({"usdg": 9 * 10**6}, {token: ETH})
    assert (said.code, said.level) == ("no_route", "unknown")
    assert "no pool was found" in said.text


# --- buys ------------------------------------------------------------------------------------------

VENUES = {
    "plain": Place("weth", 3000),
    "usdg_pool": Place("usdg", 3000),
    "v4_eth": Place("eth", 3000, 4),
    "v4_weth": Place("weth", 3000, 4),
    "v4_usdg": Place("usdg", 500, 4),
    "six_decimals": Place("weth", 3000),
}


async def bought(ctx: Context, built: Built, wallet: Wallet, key: str) -> tuple[Said, dict[str, int]]:
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
    said, spent = await bought(ctx, built, wallet, key)
    place, token = VENUES[key], built.tokens[key]
    assert (said.code, said.level) == ("ok", "ok"), said.text
    assert said.spent() == spent
    assert said.received().keys() == {token}
    back = said.answer["sellBack"]
    assert (back["token"], back["venue"]) == (token, f"amm_v{place.version}")
    assert back["back"]["asset"] == ("usdg" if place.quote == "usdg" else "eth")
    assert back["roundTripLossBps"] == (10 if place.fee_pips == 500 else 60)
    assert back["sold"] == said.answer["received"][0]["amount"]
    assert back["reverts"] is None
    assert said.answer["check"]["address"] == token
    assert said.answer["check"]["verdict"]["code"] == "ok"
    assert "Price impact" in said.text
    assert said.trips == 2
    # Approvals of exactly what is spent are spent, too.
    assert said.approvals() == set()


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
    assert ctx.heads.book is not None
    token = built.tokens[key]
    spot = spot_of(built, ctx.heads.book.known(Address(token))[-1])
    raw = money_for(rpc, built, wallet, spot)
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, *buy_steps(built, wallet, token, spot, raw))
    assert (said.code, said.level) == ("ok", "ok"), said.text
    assert said.spent() == {built.contracts["share"] if spot.quote == "share" else spot.quote: raw}
    assert said.received().keys() == {token}
    assert said.answer["sellBack"]["venue"] == venue
    assert said.answer["check"]["verdict"]["level"] == "ok"
    # Money that is not eth, weth or usdg has its rate asked, once in half a minute.
    assert said.trips == trips
    assert said.approvals() == set()


@pytest.mark.parametrize("key", ["bare", "loud"])
async def test_a_token_that_nobody_trades_has_no_route(
    ctx: Context, wallet: Wallet, strangers: Strangers, key: str
) -> None:
    token = strangers.token(loud=key == "loud")
    giver = strangers.mover(token)
    strangers.give(token, giver, 8 * ETH)
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, Step(giver, calldata("give()"), ETH))
    assert (said.spent(), said.received()) == ({"eth": ETH}, {token: 4 * ETH})
    assert (said.code, said.level) == ("no_route", "unknown")
    assert said.answer["sellBack"] is None


async def test_an_airdrop_that_sells_is_ok(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    token = built.tokens["plain"]
    giver = strangers.mover(token)
    Wallet(strangers.rpc, built.contracts, "giver").buy(token, "weth", 3000, ETH)
    donor = Wallet(strangers.rpc, built.contracts, "giver")
    assert donor.send(token, transfer(token, giver, 10**24).data).ok
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, Step(giver, calldata("give()")))
    assert (said.spent(), said.received()) == ({}, {token: 10**24 // 2})
    assert (said.code, said.answer["sellBack"]["roundTripLossBps"]) == ("ok", None), said.text


async def test_of_several_tokens_the_worst_decides(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    good, trap = built.tokens["plain"], built.tokens["owner_only_sell"]
    steps = [steps_of(wallet, token, Place("weth", 3000), ETH // 10)[0] for token in (good, trap)]
    for order in (steps, steps[::-1]):
        said = await simulated(ctx, wallet.address, *order)
        assert (said.code, said.level) == ("cannot_sell", "danger")
        assert said.received().keys() == {good, trap}
        assert said.spent() == {"eth": ETH // 5}
        assert said.answer["sellBack"]["token"] == trap
        assert said.answer["sellBack"]["reverts"] == "trading not open"
        assert said.answer["check"]["address"] == trap
        assert said.answer["check"]["verdict"]["code"] == "cannot_sell"


async def test_two_good_tokens_lose_what_both_lose(ctx: Context, built: Built, wallet: Wallet) -> None:
    tokens = (built.tokens["plain"], built.tokens["six_decimals"])
    steps = [steps_of(wallet, token, Place("weth", 3000), ETH // 10)[0] for token in tokens]
    said = await simulated(ctx, wallet.address, *steps)
    assert said.code == "ok"
    assert said.answer["sellBack"]["roundTripLossBps"] in (59, 60, 61)


async def test_only_what_was_received_is_sold(ctx: Context, built: Built, wallet: Wallet) -> None:
    token = built.tokens["plain"]
    (step,) = steps_of(wallet, token, Place("weth", 3000), ETH // 10)
    alone = await simulated(ctx, wallet.address, step)
    held = wallet.buy(token, "weth", 3000, 10 * ETH // 4)
    assert held
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, step)
    assert said.code == "ok", said.text
    assert said.received()[token] < alone.received()[token]
    assert said.answer["sellBack"]["sold"] == said.answer["received"][0]["amount"]
    assert said.answer["sellBack"]["roundTripLossBps"] == 60


async def test_a_sell_brings_eth_and_leaves_no_approval(ctx: Context, built: Built, wallet: Wallet) -> None:
    token = built.tokens["plain"]
    held = wallet.buy(token, "weth", 3000, ETH)
    assert held
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, *wallet.sell_steps(token, Place("weth", 3000), held))
    assert said.code == "ok"
    assert said.trips <= 2
    assert said.spent() == {token: held}
    assert said.received().keys() == {"eth"}
    assert said.approvals() == set()
    more = wallet.sell_steps(token, Place("weth", 3000), held, held + 5)
    said = await simulated(ctx, wallet.address, *more)
    assert said.approvals() == {(token, built.contracts["swapRouter02"], False)}
    assert said.answer["approvals"][0]["amount"] == "0.000000000000000005"
    # The router is known: nothing opens the text.
    assert said.text.startswith("It goes through")


async def test_a_v4_sell_of_an_exact_amount(ctx: Context, built: Built, wallet: Wallet) -> None:
    token, place = built.tokens["v4_eth"], Place("eth", 3000, 4)
    held = wallet.buy(token, "eth", 3000, ETH, 4)
    assert held
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, *wallet.sell_steps(token, place, held))
    assert (said.code, said.spent(), said.approvals()) == ("ok", {token: held}, set())


async def test_a_cooldown_token_is_spoken_of_as_a_check_does(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    said = await simulated(
        ctx, wallet.address, *steps_of(wallet, built.tokens["cooldown"], Place("weth", 3000), ETH // 10)
    )
    assert (said.code, said.answer["check"]["verdict"]["code"]) == ("ok", "ok")
    assert 'does not sell at once ("cooldown")' in said.text


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("thin", "heavy_loss"), ("fee_on_buy", "high_loss"), ("heavy_fee_on_buy", "heavy_loss"),
        ("time_bomb", "high_loss"), ("fee_on_sell", "cannot_sell"), ("blacklist_after_buy", "cannot_sell"),
        ("detect_simulation", "cannot_sell"), ("megabyte_revert", "cannot_sell"),
        ("loops_on_transfer", "cannot_sell"), ("paused", "tx_reverts"),
    ],
)  # fmt: skip
async def test_what_a_token_does_is_told(
    ctx: Context, built: Built, wallet: Wallet, key: str, code: str
) -> None:
    said = await simulated(
        ctx, wallet.address, *steps_of(wallet, built.tokens[key], Place("weth", 3000), ETH // 10)
    )
    assert said.code == code, said.text


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
    deployer.settle()
    assert wallet.send(token, approve(token, built.contracts["swapRouter02"], 1).data).ok
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, *steps_of(wallet, token, Place("weth", 3000), ETH // 10))
    assert said.code == "ok", said.text
    assert "sold straight back for a loss of 0.60 %" in said.text


async def exchanged(
    ctx: Context, built: Built, wallet: Wallet, paid: tuple[str, Place], got: str
) -> tuple[Said, int]:
    """One token for another, over eth: sold for what it brings, and that spent."""
    token, place = paid[0], paid[1]
    held = wallet.buy(token, place.quote, place.fee_pips, ETH, place.version)
    assert held
    await ctx.heads.refresh()
    sells = wallet.sell_steps(token, place, held)
    back = (await simulated(ctx, wallet.address, *sells)).received()["eth"]
    buys = wallet.buy_steps(got, Place("weth", 3000), back)
    return await simulated(ctx, wallet.address, *sells, *buys), held


async def test_a_token_paid_with_a_token_has_its_price(ctx: Context, built: Built, wallet: Wallet) -> None:
    paid, got = built.tokens["plain"], built.tokens["six_decimals"]
    said, held = await exchanged(ctx, built, wallet, (paid, Place("weth", 3000)), got)
    assert said.spent() == {paid: held}
    assert said.received().keys() == {got}
    assert said.code == "ok", said.text
    # Its own pool's fee and price impact, and the round trip of the other.
    assert 60 < said.answer["sellBack"]["roundTripLossBps"] < 700
    # The rate is asked while it is sold back.
    assert said.trips == 2


async def test_a_token_paid_with_what_has_no_price_has_no_route(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    paid, got = strangers.token(), built.tokens["plain"]
    strangers.give(paid, wallet.address, ETH)
    giver, donor = strangers.mover(got), Wallet(strangers.rpc, built.contracts, "donor")
    assert donor.buy(got, "weth", 3000, ETH)
    assert donor.send(got, transfer(got, giver, 10**24).data).ok
    await ctx.heads.refresh()
    steps = (transfer(paid, giver, ETH), Step(giver, calldata("give()")))
    said = await simulated(ctx, wallet.address, *steps)
    assert (said.spent(), said.received()) == ({paid: ETH}, {got: 10**24 // 2})
    assert (said.code, said.level) == ("no_route", "unknown"), said.text
    assert "no known price" in said.text
    assert said.answer["sellBack"]["roundTripLossBps"] is None


async def test_money_for_money_at_a_terrible_rate_is_a_loss(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    giver = strangers.mover(usdg(built))
    wallet.get_usdg(700 * 10**6)
    assert wallet.send(usdg(built), transfer(usdg(built), giver, 700 * 10**6).data).ok
    await ctx.heads.refresh()
    for wei, code in ((ETH // 10, "ok"), (ETH // 8, "high_loss"), (ETH, "heavy_loss")):
        said = await simulated(ctx, wallet.address, Step(giver, calldata("give()"), wei))
        assert (said.spent(), said.received()) == ({"eth": wei}, {"usdg": 350 * 10**6})
        assert said.code == code, said.text


async def test_more_tokens_than_are_tried_are_unproven(
    ctx: Context, wallet: Wallet, strangers: Strangers
) -> None:
    tokens = [strangers.token() for _ in range(5)]
    giver = strangers.mover(*tokens)
    for token in tokens:
        strangers.give(token, giver, 2 * ETH)
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, Step(giver, calldata("give()"), ETH))
    assert (said.code, said.level) == ("unproven", "unknown")
    assert said.received() == dict.fromkeys(tokens, ETH)


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
    strangers.deployer.settle()
    await ctx.heads.refresh()
    light = await simulated(ctx, wallet.address, Step(giver, calldata("give()"), 10**14))
    heavy = [Step(giver, calldata("give_behind_burn(uint256)", 2_000_000), 10**14)] * 6
    said = await simulated(ctx, wallet.address, *heavy)
    assert light.code == "ok", light.text
    assert said.code != "cannot_sell", said.text


def _code(path: str) -> str:
    return compile_contract(PROJECT / "contracts" / path)


# --- curves ----------------------------------------------------------------------------------------


def curve_of(ctx: Context, token: str) -> str:
    assert ctx.heads.book is not None
    (venue,) = [v for v in ctx.heads.book.known(Address(token)) if v.kind == "launchpad_curve"]
    return str(venue.pool)


def curve_buy(ctx: Context, token: str, wei: int, to: str) -> Step:
    data = calldata("buy(uint256,uint256,address)", wei, 0, to)
    return Step(curve_of(ctx, token), data, wei)


@pytest.mark.parametrize("key", ["curve", "curve_nearly_full", "curve_all_but_full"])
async def test_a_buy_that_sells_the_curve_out_is_no_trap(
    ctx: Context, built: Built, wallet: Wallet, key: str
) -> None:
    token = built.tokens[key]
    said = await simulated(ctx, wallet.address, curve_buy(ctx, token, 9 * ETH, wallet.address))
    assert said.code in ("ok", "high_loss", "heavy_loss"), said.text
    assert said.answer["sellBack"]["venue"] == "launchpad_pool"
    assert "until it opens nobody can sell" in said.text
    assert said.spent()["eth"] < 9 * ETH


async def test_a_curve_sold_out_for_others_is_no_trap_for_the_wallet(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    token = built.tokens["curve"]
    mine = curve_buy(ctx, token, ETH // 10, wallet.address)
    theirs = curve_buy(ctx, token, 9 * ETH, SOMEBODY)
    said = await simulated(ctx, wallet.address, mine, theirs)
    assert said.received().keys() == {token}
    assert said.code != "cannot_sell", said.text


async def test_a_buy_on_a_curve_and_a_sell_of_half_of_it(ctx: Context, built: Built, wallet: Wallet) -> None:
    token = built.tokens["curve"]
    buy = curve_buy(ctx, token, ETH // 10, wallet.address)
    alone = await simulated(ctx, wallet.address, buy)
    got = alone.received()[token]
    curve = curve_of(ctx, token)
    sell = Step(curve, calldata("sell(uint256,uint256,address)", got // 2, 0, wallet.address))
    said = await simulated(ctx, wallet.address, buy, approve(token, curve, got // 2), sell)
    assert said.code == "ok", said.text
    assert said.received() == {token: got - got // 2}
    assert 0 < said.spent()["eth"] < alone.spent()["eth"]


# --- approvals -------------------------------------------------------------------------------------


async def test_an_unlimited_approval_opens_the_text(ctx: Context, built: Built, wallet: Wallet) -> None:
    router = built.contracts["swapRouter02"]
    said = await simulated(ctx, wallet.address, approve(usdg(built), router))
    assert said.answer["approvals"] == [
        {"token": usdg(built), "spender": router, "amount": None, "unlimited": True}
    ]
    assert said.text.startswith(f"It lets {router} take all you have")
    assert said.code == "ok"
    assert said.trips <= 2


@pytest.mark.parametrize("raw", [2**256 - 1, 2**160, 2**128, 2**96 - 1])
async def test_what_stands_for_no_bound(ctx: Context, built: Built, wallet: Wallet, raw: int) -> None:
    said = await simulated(ctx, wallet.address, approve(usdg(built), built.contracts["permit2"], raw))
    assert said.approvals() == {(usdg(built), built.contracts["permit2"], True)}


async def test_a_bounded_approval_to_a_person_opens_the_text(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    said = await simulated(ctx, wallet.address, approve(usdg(built), SOMEBODY, 1_500_000))
    assert said.answer["approvals"] == [
        {"token": usdg(built), "spender": SOMEBODY, "amount": "1.5", "unlimited": False}
    ]
    assert said.text.startswith(f"It lets {SOMEBODY}, whose code is not known here")


async def test_a_strangers_token_is_no_spender_whose_code_is_known(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    """Anybody can write a token and make a pool of it."""
    spender = built.tokens["owner_only_sell"]
    said = await simulated(ctx, wallet.address, approve(usdg(built), spender, 10**12))
    assert said.approvals() == {(usdg(built), spender, False)}
    assert said.text.startswith(f"It lets {spender}"), said.text


async def test_an_approval_taken_back_is_none(ctx: Context, built: Built, wallet: Wallet) -> None:
    steps = (approve(usdg(built), SOMEBODY), approve(usdg(built), SOMEBODY, 0))
    said = await simulated(ctx, wallet.address, *steps)
    assert said.approvals() == set()
    assert said.text.startswith("It goes through")


async def test_an_approval_that_was_there_is_not_new(ctx: Context, built: Built, wallet: Wallet) -> None:
    assert wallet.send(usdg(built), approve(usdg(built), SOMEBODY, 500).data).ok
    await ctx.heads.refresh()
    assert (await simulated(ctx, wallet.address, approve(usdg(built), SOMEBODY, 400))).approvals() == set()
    assert (await simulated(ctx, wallet.address, approve(usdg(built), SOMEBODY, 500))).approvals() == set()
    said = await simulated(ctx, wallet.address, approve(usdg(built), SOMEBODY, 501))
    assert said.approvals() == {(usdg(built), SOMEBODY, False)}


@pytest.mark.parametrize("loud", [True, False])
async def test_an_approval_of_a_strangers_token(
    ctx: Context, wallet: Wallet, strangers: Strangers, loud: bool
) -> None:
    token = strangers.token(loud=loud)
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, approve(token, SOMEBODY))
    assert said.approvals() == {(token, SOMEBODY, True)}


@pytest.mark.parametrize("loud", [True, False])
async def test_an_approval_for_all_is_unlimited(
    ctx: Context, wallet: Wallet, strangers: Strangers, loud: bool
) -> None:
    token = strangers.token(loud=loud)
    await ctx.heads.refresh()
    step = Step(token, calldata("setApprovalForAll(address,bool)", SOMEBODY, True))
    said = await simulated(ctx, wallet.address, step)
    assert said.answer["approvals"] == [
        {"token": token, "spender": SOMEBODY, "amount": None, "unlimited": True}
    ]
    assert said.text.startswith(f"It lets {SOMEBODY} take everything you hold")
    step = Step(token, calldata("setApprovalForAll(address,bool)", SOMEBODY, False))
    assert (await simulated(ctx, wallet.address, step)).approvals() == set()


def permit2(built: Built, spender: str, raw: int, until_s: int = LATE) -> Step:
    return Step(built.contracts["permit2"], calldata(ALLOW, usdg(built), spender, raw, until_s))


async def test_approvals_by_permit2(ctx: Context, built: Built, wallet: Wallet) -> None:
    router = built.contracts["universalRouter"]
    said = await simulated(ctx, wallet.address, permit2(built, router, 10**6))
    assert said.answer["approvals"] == [
        {"token": usdg(built), "spender": router, "amount": "1", "unlimited": False}
    ]
    assert said.text.startswith("It goes through")
    said = await simulated(ctx, wallet.address, permit2(built, SOMEBODY, 2**160 - 1))
    assert said.approvals() == {(usdg(built), SOMEBODY, True)}
    assert said.text.startswith(f"It lets {SOMEBODY} take all you have")


async def test_an_approval_by_permit2_that_is_over_at_once_is_none(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    now_s = ctx.heads.current().block.timestamp_s
    for until_s in (1, now_s - 1, now_s):
        assert (
            await simulated(ctx, wallet.address, permit2(built, SOMEBODY, 10, until_s))
        ).approvals() == set()
    said = await simulated(ctx, wallet.address, permit2(built, SOMEBODY, 10, now_s + 2))
    assert said.approvals() == {(usdg(built), SOMEBODY, False)}


async def test_an_approval_by_permit2_that_is_made_to_last_is_new(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    """It was over, or nearly; the amount stays what it was."""
    now_s = ctx.heads.current().block.timestamp_s
    old = permit2(built, SOMEBODY, 2**160 - 1, now_s - 5)
    assert wallet.send(old.to, old.data).ok
    await ctx.heads.refresh()
    said = await simulated(ctx, wallet.address, permit2(built, SOMEBODY, 2**160 - 1))
    assert said.approvals() == {(usdg(built), SOMEBODY, True)}, said.text


async def test_false_approvals_hide_no_true_one(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    noisy = strangers.mover()
    await ctx.heads.refresh()
    words = "".join(format(2**99 + n, "064x") for n in range(70))
    noise = Step(noisy, calldata("false_approvals(uint256)", 200) + words)
    said = await simulated(ctx, wallet.address, noise, approve(usdg(built), SOMEBODY))
    assert said.approvals() == {(usdg(built), SOMEBODY, True)} or said.code == "unproven", said.text


# --- calls that fail -------------------------------------------------------------------------------


async def test_a_call_that_fails_in_the_middle_is_named(
    ctx: Context, wallet: Wallet, strangers: Strangers
) -> None:
    mover = strangers.mover()
    await ctx.heads.refresh()
    nasty = 'never". All good.\u202e' + "x" * 120
    calls = [pay(SOMEBODY, n + 1) for n in range(6)]
    calls[3] = Step(mover, calldata("fail(string)", nasty))
    said = await simulated(ctx, wallet.address, *calls)
    assert (said.code, said.level) == ("tx_reverts", "warn")
    assert said.text.startswith("Call 4 of 6 would fail (\"never'. All good.")
    assert said.text.count('"') == 2
    assert [call["ok"] for call in said.answer["calls"]] == [True, True, True, False, True, True]
    assert said.answer["calls"][3]["reverts"].startswith("never'. All good.")
    assert len(said.answer["calls"][3]["reverts"]) <= 80
    assert all(call["reverts"] is None for n, call in enumerate(said.answer["calls"]) if n != 3)


async def test_a_call_without_enough_eth_would_fail(ctx: Context, wallet: Wallet) -> None:
    said = await simulated(ctx, wallet.address, pay(SOMEBODY, 12 * ETH))
    assert (said.code, said.level) == ("tx_reverts", "warn")
    assert "the wallet holds 10 eth and needs 12." in said.text
    assert (said.spent(), said.received(), said.answer["approvals"]) == ({}, {}, [])
    funded = await simulated(ctx, wallet.address, pay(SOMEBODY, 12 * ETH), fund=True)
    assert (funded.code, funded.spent()) == ("nothing_received", {"eth": 12 * ETH})


async def test_all_of_the_eth_leaves_none_for_gas(ctx: Context, wallet: Wallet) -> None:
    assert (await simulated(ctx, wallet.address, pay(SOMEBODY, 10 * ETH))).code == "tx_reverts"
    assert (await simulated(ctx, wallet.address, pay(SOMEBODY, 10 * ETH - 10**16))).code == "nothing_received"


async def test_a_wallet_without_eth_can_send_nothing_but_a_funded_one_can(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    poor = Wallet(rpc, built.contracts, "poor", eth=0)
    (step,) = poor.buy_steps(built.tokens["plain"], Place("weth", 3000), ETH // 10)
    await ctx.heads.refresh()
    said = await simulated(ctx, poor.address, step)
    assert said.code == "tx_reverts"
    assert "holds 0 eth" in said.text
    funded = await simulated(ctx, poor.address, step, fund=True)
    assert (funded.code, funded.spent()) == ("ok", {"eth": ETH // 10}), funded.text


async def test_eth_that_earlier_calls_bring_pays_for_later_ones(
    ctx: Context, wallet: Wallet, strangers: Strangers
) -> None:
    payer = strangers.mover()
    strangers.rpc.call("anvil_setBalance", payer, hex(50 * ETH))
    await ctx.heads.refresh()
    brings = Step(payer, calldata("pay_out(uint256)", 30 * ETH))
    said = await simulated(ctx, wallet.address, brings, pay(SOMEBODY, 35 * ETH))
    assert (said.code, said.spent()) == ("nothing_received", {"eth": 5 * ETH}), said.text
    said = await simulated(ctx, wallet.address, pay(SOMEBODY, 35 * ETH), brings)
    assert said.code == "tx_reverts"
    assert said.text.startswith("Call 1 of 2 would fail: the wallet holds 10 eth")
    said = await simulated(ctx, wallet.address, pay(SOMEBODY, 6 * ETH), brings, pay(SOMEBODY, 35 * ETH))
    assert said.code == "tx_reverts"
    assert said.text.startswith("Call 3 of 3 would fail: the wallet holds 33.9")


@pytest.mark.parametrize("wei", [2**256 - 1, 10**24 + 1, 10**30])
@pytest.mark.parametrize("fund", [True, False])
async def test_more_eth_than_there_is(ctx: Context, wallet: Wallet, wei: int, fund: bool) -> None:
    said = await simulated(ctx, wallet.address, pay(SOMEBODY, wei), fund=fund)
    assert (said.code, said.level) == ("tx_reverts", "warn")
    assert [call["ok"] for call in said.answer["calls"]] == [False]


# --- odd wallets and targets -----------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2, 4, 9, 10, 255])
async def test_precompiles_and_empty_addresses_are_called(ctx: Context, wallet: Wallet, number: int) -> None:
    target = "0x" + format(number, "040x")
    said = await simulated(ctx, wallet.address, Step(target, "0x" + "00" * 32, 0))
    assert said.code in ("ok", "tx_reverts")
    assert (said.spent(), said.received(), said.approvals()) == ({}, {}, set())


async def test_a_target_without_code_takes_anything(ctx: Context, wallet: Wallet) -> None:
    said = await simulated(ctx, wallet.address, Step(SOMEBODY, calldata("mint(uint256)", 5)))
    assert said.code == "ok"
    assert said.text.startswith("It goes through")


async def test_a_contract_as_sender_is_answered(
    ctx: Context, built: Built, wallet: Wallet, strangers: Strangers
) -> None:
    sender = strangers.mover()
    strangers.rpc.call("anvil_setBalance", sender, hex(5 * ETH))
    await ctx.heads.refresh()
    said = await simulated(ctx, sender, pay(SOMEBODY, ETH))
    assert said.code in ("nothing_received", "unproven"), said.text
    (step,) = wallet.buy_steps(built.tokens["plain"], Place("weth", 3000), ETH // 10)
    said = await simulated(ctx, sender, step)
    assert said.code in ("ok", "tx_reverts", "unproven", "nothing_received"), said.text


@pytest.mark.parametrize("key", ["weth", "usdg", "multicall3", "permit2", "universalRouter"])
async def test_the_exchanges_own_machinery_as_sender_ends_nothing(
    ctx: Context, built: Built, key: str
) -> None:
    said = await simulated(ctx, built.contracts[key], pay(SOMEBODY, 1), fund=True)
    assert said.code in ("nothing_received", "unproven", "tx_reverts")
    assert said.level != "ok"


async def test_the_zero_address_as_sender_ends_nothing(ctx: Context) -> None:
    said = await simulated(ctx, "0x" + "00" * 20, pay(SOMEBODY, ETH), fund=True)
    assert said.code in ("nothing_received", "unproven")


async def test_long_calldata_is_read(ctx: Context, built: Built, wallet: Wallet) -> None:
    said = await simulated(ctx, wallet.address, Step(SOMEBODY, "0x" + "ff" * 30_000))
    assert said.code in ("ok", "tx_reverts")
    words = "".join(format(2**150 + n, "064x") for n in range(900))
    noisy = Step(SOMEBODY, "0x12345678" + words)
    (buy,) = wallet.buy_steps(built.tokens["plain"], Place("weth", 3000), ETH // 10)
    said = await simulated(ctx, wallet.address, noisy, buy)
    # Words that may be addresses, more than are looked at: nothing is proven.
    assert (said.code, said.received()) == ("unproven", {}), said.text
