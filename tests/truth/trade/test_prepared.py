"""Prepared trades against what wallets really get: signed and sent as returned, to the last unit."""

from datetime import datetime

import pytest

from roundtrip.domain.base.errors import CallerFault
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.hook_tokens import HOOKED
from roundtrip_development.devnet.launch_samples import LAUNCHES
from roundtrip_development.devnet.launchpad_v1 import FIRST
from roundtrip_development.devnet.stories import STORIES
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.signing import Done, Prepared, Signer, now_s, open_pool, prepared

AMOUNT = {"eth": "0.1", "usdg": "350"}

BOUGHT = {
    "plain": "amm_v3", "max_transaction": "amm_v3", "cooldown": "amm_v3", "six_decimals": "amm_v3",
    "no_return_value": "amm_v3", "bytes32_symbol": "amm_v3", "strange_name": "amm_v3",
    "usdg_pool": "amm_v3", "two_pools": "amm_v3", "v4_eth": "amm_v4", "v4_weth": "amm_v4",
    "v4_usdg": "amm_v4", "v4_fee_on_sell": "amm_v4", "both_versions": "amm_v4", "fee_on_buy": "amm_v3",
    "transfer_tax": "amm_v3", "loops_on_views": "amm_v3", "megabyte_name": "amm_v3",
    "garbage_text": "amm_v3", "malformed_text": "amm_v3", "hook_harmless": "amm_v4",
    "hook_takes_tenth": "amm_v4", "hook_bait": "amm_v3", "hook_slightly_cheaper": "amm_v3",
    "hook_much_cheaper": "amm_v4", "toll_beside_fair": "amm_v3", "taxed_v4_hooked": "amm_v4",
    "odd_key": "amm_v4", "odd_tier": "amm_v3", "one_sided": "amm_v3", "curve": "launchpad_curve",
    "curve_taxed": "launchpad_curve", "curve_usdg": "launchpad_curve",
    "curve_nearly_full": "launchpad_curve", "curve_all_but_full": "launchpad_curve",
    "graduated": "launchpad_pool", "graduated_usdg": "launchpad_pool", "graduated_taxed": "launchpad_pool",
    "first_fresh": "amm_v3", "first_graduated": "amm_v3",
}  # fmt: skip
"""Stories that are bought as asked, and where."""

REFUSED = {
    "lying_balance": "cannot_sell", "owner_only_sell": "cannot_sell", "blacklist_after_buy": "cannot_sell",
    "thin": "heavy_loss", "fee_on_sell": "cannot_sell", "time_bomb": "cannot_sell",
    "heavy_fee_on_buy": "heavy_loss", "detect_simulation": "cannot_sell", "detect_prevrandao": "cannot_sell",
    "loops_on_transfer": "cannot_sell", "megabyte_revert": "cannot_sell",
    "hook_reverts_on_sell": "cannot_sell", "hook_fee_jump": "heavy_loss", "hook_allow_list": "cannot_sell",
}  # fmt: skip
"""Stories whose buy is not written, and the verdict."""

CHEAPEST_REFUSES = ("hook_bait",)
"""Stories whose cheapest pool takes no single sale: their check also tries ten there."""

FAILS = {
    "paused": "would_fail", "no_pool": "no_route", "empty_pool": "no_route",
    "loops_on_balance": "not_a_token", "not_a_token": "not_a_token", "curve_other": "no_route",
    "curve_full": "no_route", "swept": "no_route", "rescued": "no_route", "graduated_other": "no_route",
}  # fmt: skip
"""Stories that no buy is answered for, and the code."""

SOLD_OUT = ("curve_nearly_full", "curve_all_but_full")
NOT_WHOLE_AT_ONCE = ("max_transaction", "cooldown")
"""These sell in parts, or later."""


LATER = {"max_transaction": (5000, 13), "cooldown": (10_000, 3600)}
"""How much of those is shown to sell, and after how many seconds."""


def test_every_story_has_its_outcome(built: Built) -> None:
    answer = [*BOUGHT, *REFUSED, *FAILS]
    assert len(answer) == len(set(answer))
    stories = {story.key for story in (*STORIES, *HOOKED)} | {launch.key for launch in LAUNCHES}
    stories |= {launch.key for launch in FIRST}
    assert set(answer) == stories == built.tokens.keys()


def signer(rpc: SyncRpc, built: Built, seed: str, usdg: int = 0, eth: int = 10) -> Signer:
    """A fresh wallet, with so many whole usdg beside its eth."""
    wallet = Signer(rpc, built.contracts, seed, eth=eth)
    if usdg:
        wallet.fill_usdg(usdg * 10**6)
    return wallet


def quote_of(key: str) -> str:
    return "usdg" if "usdg" in key else "eth"


async def bought(ctx: Context, built: Built, wallet: Signer, key: str) -> Prepared:
    amount = AMOUNT[quote_of(key)]
    return await prepared(ctx, "buy", built.tokens[key], wallet.address, amount=amount)


def leftovers(wallet: Signer, built: Built, trade: Prepared) -> dict[tuple[str, str], int]:
    venue = trade.answer["venue"]
    curve = venue["at"] if venue["kind"] == "launchpad_curve" else None
    assets = [built.contracts["usdg"], built.contracts["weth"], trade.answer["token"]["address"]]
    return wallet.leftovers(assets, curve)


def assert_gas(trade: Prepared, done: Done) -> None:
    """Half as much again as was simulated, which is what it took; the first step may have the node's own
    estimate."""
    for n, (step, receipt) in enumerate(zip(trade.steps, done.receipts, strict=True)):
        assert step["n"] == n + 1
        assert step["gas"] >= receipt.gas_used * 3 // 2
        assert n == 0 or step["gas"] == receipt.gas_used * 3 // 2


def assert_exact(wallet: Signer, built: Built, trade: Prepared, done: Done) -> None:
    """It brought what was told and took what was told, and no allowance is left."""
    assert done.ok
    came, went = done.token_raw, -done.money_raw
    if trade.answer["side"] == "sell":
        came, went = -went, -came
    assert came == trade.raw
    assert went == trade.spend_raw
    assert trade.raw * 99 // 100 - 2 <= trade.min_raw <= trade.raw
    assert leftovers(wallet, built, trade) == {}
    assert_gas(trade, done)


ODD_FEES = ("odd_tier",)
"""Pools whose tick spacing is not known from their fee: a crowd's buys are measured there."""

MORE_BUYS = frozenset({"one_sided", "curve_nearly_full", "curve_all_but_full", "hook_fee_jump", *ODD_FEES})
"""Only the node knows what smaller buys, or a crowd's, bring there: one trip more."""

READS_NUMBER = frozenset({"hook_takes_tenth", "toll_beside_fair", "blacklist_after_buy"})
"""Code that reads the block number: the buys run again on copies of it, with their control: one trip more."""


# --- nobody trades in between ----------------------------------------------------------------------


@pytest.mark.parametrize("key", BOUGHT)
async def test_a_trade_brings_exactly_what_was_told(
    ctx: Context, rpc: SyncRpc, built: Built, key: str
) -> None:
    wallet = signer(rpc, built, f"exact {key}", usdg=400 if quote_of(key) == "usdg" else 0)
    token = built.tokens[key]
    buy = await bought(ctx, built, wallet, key)
    trips = 4 if key in (*CHEAPEST_REFUSES, *MORE_BUYS, *READS_NUMBER) else 3
    # Both the check and the trade try nearly all.
    trips += 2 if key in NOT_WHOLE_AT_ONCE else 0
    assert (buy.answer["venue"]["kind"], buy.trips, buy.answer["refused"]) == (BOUGHT[key], trips, False)
    assert (buy.answer["venue"]["pays"], buy.answer["spend"]["asset"]) == (quote_of(key),) * 2
    assert buy.answer["expect"]["asset"] == token
    by_permit2 = BOUGHT[key] in ("amm_v4", "launchpad_pool")
    assert len(buy.steps) == (1 if quote_of(key) == "eth" else 2 + by_permit2)
    at_s = now_s(rpc) + 1
    done = wallet.trade(buy, at_s)
    assert_exact(wallet, built, buy, done)
    assert wallet.tokens(token) == buy.raw
    if key in (*NOT_WHOLE_AT_ONCE, *SOLD_OUT):
        assert buy.answer["verdict"]["level"] == "warn"
    if key in NOT_WHOLE_AT_ONCE:
        answer = buy.answer["sellBack"]
        assert (answer["shareBps"], answer["afterS"]) == LATER[key]
        with pytest.raises(CallerFault, match="would_fail"):
            await prepared(ctx, "sell", token, wallet.address, amount="all")
        return
    if key in SOLD_OUT:
        assert buy.spend_raw < 10**17
        open_pool(signer(rpc, built, "anybody"), built.contracts, token)
        at_s = now_s(rpc)
    sell = await prepared(ctx, "sell", token, wallet.address, amount="all")
    trips = 4 if key in (*CHEAPEST_REFUSES, *ODD_FEES, *READS_NUMBER) else 3
    assert (sell.trips, sell.answer["refused"], sell.spend_raw) == (trips, False, buy.raw)
    assert len(sell.steps) == 2 + (sell.answer["venue"]["kind"] in ("amm_v4", "launchpad_pool"))
    assert sell.answer["sellBack"] is None
    assert sell.answer["expect"]["asset"] == quote_of(key)
    back = wallet.trade(sell, at_s + 13)
    assert_exact(wallet, built, sell, back)
    assert wallet.tokens(token) == 0
    answer = buy.answer["sellBack"]
    assert (answer["shareBps"], answer["afterS"]) == (10_000, 13)
    assert int(answer["back"]["raw"]) == back.money_raw
    assert (answer["token"], answer["reverts"], answer["back"]["asset"]) == (token, None, quote_of(key))
    loss_bps = -((back.money_raw - buy.spend_raw) * 10_000 // buy.spend_raw)
    assert answer["roundTripLossBps"] == loss_bps
    assert (answer["venue"], answer["at"]) == (sell.answer["venue"]["kind"], sell.answer["venue"]["at"])


@pytest.mark.parametrize("key", REFUSED)
async def test_what_no_wallet_gets_out_of_is_not_written(
    ctx: Context, rpc: SyncRpc, built: Built, key: str
) -> None:
    buy = await bought(ctx, built, signer(rpc, built, f"refused {key}"), key)
    assert (buy.answer["refused"], buy.steps, buy.code) == (True, [], REFUSED[key])
    assert buy.answer["verdict"]["level"] == "danger"
    assert buy.text.startswith("Refused. ")
    # The check and the trade each try nearly all, and other ways where no single sale goes through.
    trips = (5 if buy.code == "cannot_sell" else 4 if key in MORE_BUYS else 3) + (key in READS_NUMBER)
    # Its crowd lacks what its balances show, and trades once more with what was measured.
    trips += key == "lying_balance"
    assert (buy.trips, buy.counted) == (trips, True)


@pytest.mark.parametrize("key", FAILS)
async def test_what_cannot_be_bought_has_its_code(ctx: Context, rpc: SyncRpc, built: Built, key: str) -> None:
    with pytest.raises(CallerFault) as raised:
        await bought(ctx, built, signer(rpc, built, f"fails {key}"), key)
    assert raised.value.code == FAILS[key]


@pytest.mark.parametrize(
    "key", ["plain", "v4_usdg", "v4_fee_on_sell", "v4_weth", "curve_usdg", "graduated_taxed"]
)
async def test_parts_sell_to_the_last_unit(ctx: Context, rpc: SyncRpc, built: Built, key: str) -> None:
    wallet = signer(rpc, built, f"parts {key}", usdg=400 if quote_of(key) == "usdg" else 0)
    token = built.tokens[key]
    assert wallet.trade(await bought(ctx, built, wallet, key)).ok
    shares: list[tuple[dict[str, object], int, int]] = [
        ({"percent": 33.3}, 333, 1000),
        ({"percent": 50, "amount": "7"}, 1, 2),
        ({"percent": 0.0001}, 1, 10**6),
        ({"amount": "1234.000000000000000001"}, 0, 1),
        ({"percent": 100}, 1, 1),
    ]
    for given, part, of in shares:
        held = wallet.tokens(token)
        sell = await prepared(ctx, "sell", token, wallet.address, **given)
        asked = held * part // of if part else 1234 * 10**18 + 1
        assert sell.spend_raw == asked
        assert_exact(wallet, built, sell, wallet.trade(sell))
        assert wallet.tokens(token) == held - asked
    assert wallet.tokens(token) == 0


async def test_what_was_held_before_stays(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    """A buy sells back what it brought, not what was there; a second buy is as exact as the first."""
    wallet = signer(rpc, built, "twice")
    first = await bought(ctx, built, wallet, "v4_eth")
    assert_exact(wallet, built, first, wallet.trade(first))
    second = await bought(ctx, built, wallet, "v4_eth")
    assert float(second.answer["sellBack"]["sold"]) == pytest.approx(float(second.answer["expect"]["amount"]))
    assert_exact(wallet, built, second, wallet.trade(second))
    assert wallet.tokens(built.tokens["v4_eth"]) == first.raw + second.raw


# --- too late --------------------------------------------------------------------------------------


def valid_until_s(trade: Prepared) -> int:
    return int(datetime.fromisoformat(trade.answer["validUntil"]).timestamp())


@pytest.mark.parametrize("key", ["plain", "usdg_pool", "v4_eth", "v4_weth", "v4_usdg", "graduated"])
@pytest.mark.parametrize("side", ["buy", "sell"])
async def test_a_trade_that_is_sent_too_late_loses_nothing(
    ctx: Context, rpc: SyncRpc, built: Built, key: str, side: str
) -> None:
    wallet = signer(rpc, built, f"late {key} {side}", usdg=400 if quote_of(key) == "usdg" else 0)
    trade = await bought(ctx, built, wallet, key)
    if side == "sell":
        assert wallet.trade(trade).ok
        trade = await prepared(ctx, "sell", built.tokens[key], wallet.address, amount="all")
    until_s = valid_until_s(trade)
    kept = rpc.call("evm_snapshot")
    assert_exact(wallet, built, trade, wallet.trade(trade, until_s))
    assert rpc.call("evm_revert", kept)
    late = wallet.trade(trade, until_s + 1)
    assert [receipt.ok for receipt in late.receipts] == [True] * (len(trade.steps) - 1) + [False]
    assert (late.token_raw, late.money_raw) == (0, 0)


async def test_the_chains_clock_decides_where_it_is_ahead(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    ahead_s = int(ctx.now_s()) + 10**7
    rpc.call("evm_setNextBlockTimestamp", ahead_s)
    rpc.call("evm_mine")
    wallet = signer(rpc, built, "ahead")
    buy = await bought(ctx, built, wallet, "v4_eth")
    assert ahead_s + 1200 <= valid_until_s(buy) <= ahead_s + 1260
    assert_exact(wallet, built, buy, wallet.trade(buy))
    sell = await prepared(ctx, "sell", built.tokens["v4_eth"], wallet.address, amount="all")
    assert_exact(wallet, built, sell, wallet.trade(sell))


async def test_our_clock_decides_where_it_is_ahead(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    assert now_s(rpc) < ctx.now_s() - 10**6
    before = int(ctx.now_s())
    trade = await bought(ctx, built, signer(rpc, built, "behind"), "plain")
    assert before + 1200 <= valid_until_s(trade) <= int(ctx.now_s()) + 1200
