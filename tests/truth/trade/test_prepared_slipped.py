"""A trade slipped in before a prepared one: it lands for its minimum, or reverts and loses nothing."""

from random import Random

import pytest

from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.signing import Done, Prepared, Signer, prepared

ETH_USDG = 3500
AMOUNT = {"eth": "0.1", "usdg": "350"}
VENUES = (
    "plain", "usdg_pool", "v4_eth", "v4_weth", "v4_usdg", "v4_fee_on_sell", "fee_on_buy", "hook_takes_tenth",
    "taxed_v4_hooked", "curve", "curve_usdg", "curve_taxed", "graduated", "graduated_usdg",
    "graduated_taxed",
)  # fmt: skip
"""One story of every sort of venue, with and without taxes."""


def quote_of(key: str) -> str:
    return "usdg" if "usdg" in key else "eth"


def amount_of(key: str, eth: float) -> str:
    """So much of what the venue is paid in, as it is written."""
    return f"{eth * ETH_USDG:.6f}" if quote_of(key) == "usdg" else f"{eth:.18f}"


def signer(rpc: SyncRpc, built: Built, seed: str, key: str, eth: float = 0.1) -> Signer:
    """A wallet that can pay so much there."""
    wallet = Signer(rpc, built.contracts, seed, eth=40)
    if quote_of(key) == "usdg":
        wallet.fill_usdg(int((eth + 0.01) * ETH_USDG) * 10**6)
    return wallet


async def buys(ctx: Context, built: Built, wallet: Signer, key: str, eth: float) -> None:
    """At any price."""
    given = {"amount": amount_of(key, eth), "slippageBps": 5000}
    trade = await prepared(ctx, "buy", built.tokens[key], wallet.address, **given)
    assert trade.steps, trade.text
    assert wallet.trade(trade).ok


async def sells(ctx: Context, built: Built, wallet: Signer, key: str, percent: float) -> None:
    """At any price."""
    given = {"percent": percent, "slippageBps": 5000}
    trade = await prepared(ctx, "sell", built.tokens[key], wallet.address, **given)
    assert trade.steps, trade.text
    assert wallet.trade(trade).ok


def approvals(trade: Prepared) -> set[tuple[str, str]]:
    """Which allowances its steps give: who asks whom, by what they say."""
    return {(step["to"], step["data"][:10]) for step in trade.steps[:-1]}


def landed(wallet: Signer, built: Built, trade: Prepared, done: Done) -> bool:
    """Whether it landed; asserts that it did so for its minimum, or lost nothing."""
    answer = trade.answer
    token, venue = answer["token"]["address"], answer["venue"]
    curve = venue["at"] if venue["kind"] == "launchpad_curve" else None
    left = wallet.leftovers([built.contracts["usdg"], built.contracts["weth"], token], curve)
    came, went = done.token_raw, -done.money_raw
    if answer["side"] == "sell":
        came, went = -went, -came
    if done.ok:
        assert came >= trade.min_raw
        assert went <= trade.spend_raw
        assert went == trade.spend_raw or venue["kind"] == "launchpad_curve"
        # A curve that takes less than it was allowed leaves the rest of an exact approval.
        assert sum(left.values()) == (0 if len(trade.steps) == 1 else trade.spend_raw - went)
        return True
    # Only the trade itself reverts, and nothing has moved; what was allowed is exactly what was asked for.
    assert [receipt.ok for receipt in done.receipts] == [True] * (len(trade.steps) - 1) + [False]
    assert (came, went) == (0, 0)
    assert set(left.values()) <= {trade.spend_raw}
    assert len(left) == len(approvals(trade))
    return False


@pytest.mark.parametrize(
    ("key", "eth"),
    # The largest would sell a curve out, and move what becomes of it so far that it is refused.
    [(key, eth) for key in VENUES for eth in (0.5, 2, 5) if eth < 5 or not key.startswith(("curve", "grad"))],
)
async def test_a_buy_slipped_in_before_a_buy(
    ctx: Context, rpc: SyncRpc, built: Built, key: str, eth: float
) -> None:
    wallet = signer(rpc, built, f"slow {key} {eth}", key)
    other = signer(rpc, built, f"fast {key} {eth}", key, eth)
    given = {"amount": amount_of(key, 0.1), "slippageBps": 300}
    trade = await prepared(ctx, "buy", built.tokens[key], wallet.address, **given)
    await buys(ctx, built, other, key, eth)
    assert not landed(wallet, built, trade, wallet.trade(trade))


@pytest.mark.parametrize("eth", [0.5, 1.2])
@pytest.mark.parametrize("key", VENUES)
async def test_a_sell_slipped_in_before_a_sell(
    ctx: Context, rpc: SyncRpc, built: Built, key: str, eth: float
) -> None:
    wallet = signer(rpc, built, f"slow {key} {eth}", key)
    other = signer(rpc, built, f"fast {key} {eth}", key, eth)
    await buys(ctx, built, wallet, key, 0.1)
    await buys(ctx, built, other, key, eth)
    given = {"amount": "all", "slippageBps": 300}
    trade = await prepared(ctx, "sell", built.tokens[key], wallet.address, **given)
    await sells(ctx, built, other, key, 100)
    assert not landed(wallet, built, trade, wallet.trade(trade))


@pytest.mark.parametrize("key", VENUES)
async def test_what_helps_is_kept(ctx: Context, rpc: SyncRpc, built: Built, key: str) -> None:
    """A buy before a sell, and a sell before a buy, bring more than was told; it is the wallet's."""
    wallet = signer(rpc, built, f"slow {key}", key)
    other = signer(rpc, built, f"fast {key}", key, 0.6)
    await buys(ctx, built, other, key, 0.3)
    given = {"amount": amount_of(key, 0.1)}
    buy = await prepared(ctx, "buy", built.tokens[key], wallet.address, **given)
    await sells(ctx, built, other, key, 100)
    done = wallet.trade(buy)
    assert landed(wallet, built, buy, done)
    assert done.token_raw > buy.raw
    sell = await prepared(ctx, "sell", built.tokens[key], wallet.address, amount="all")
    await buys(ctx, built, other, key, 0.3)
    done = wallet.trade(sell)
    assert landed(wallet, built, sell, done)
    assert done.money_raw > sell.raw
    assert wallet.tokens(built.tokens[key]) == 0


LINE = {
    "plain": 0.1, "usdg_pool": 0.3, "v4_weth": 0.1, "v4_fee_on_sell": 0.1, "fee_on_buy": 0.1,
    "hook_takes_tenth": 0.1, "curve": 0.015, "curve_usdg": 0.03, "curve_taxed": 0.017,
    "graduated_taxed": 0.03,
}  # fmt: skip
"""About how much eth slipped in moves the price by the default slippage."""


@pytest.mark.parametrize("side", ["buy", "sell"])
@pytest.mark.parametrize("key", LINE)
async def test_sizes_around_the_line(ctx: Context, rpc: SyncRpc, built: Built, key: str, side: str) -> None:
    """Some land, some revert; none for less than its minimum, and none costs anything when it reverts."""
    rng, token = Random(f"{key} {side}"), built.tokens[key]
    wallet = signer(rpc, built, f"slow {key}", key)
    other = signer(rpc, built, f"fast {key}", key, 4 * LINE[key])
    if side == "sell":
        await buys(ctx, built, wallet, key, 0.1)
        await buys(ctx, built, other, key, 3 * LINE[key])
    given = {"amount": amount_of(key, 0.1) if side == "buy" else "all"}
    trade = await prepared(ctx, side, token, wallet.address, **given)
    # The second half of the seeds looks between the largest that landed and the smallest that did not.
    least, most, outcomes = 0.0, 2.5 * LINE[key], []
    for seed in range(8):
        size = rng.uniform(least, most) if seed < 3 else (least + most) / 2
        kept = rpc.call("evm_snapshot")
        if side == "buy":
            await buys(ctx, built, other, key, size)
        else:
            await sells(ctx, built, other, key, 100 * size / (3 * LINE[key]))
        done = wallet.trade(trade)
        outcomes.append(landed(wallet, built, trade, done))
        if outcomes[-1]:
            came = done.token_raw if side == "buy" else done.money_raw
            assert came < trade.raw
        least, most = (max(least, size), most) if outcomes[-1] else (least, min(most, size))
        assert rpc.call("evm_revert", kept)
        assert least <= most
    assert set(outcomes) == {True, False}


@pytest.mark.parametrize(("key", "eth"), [("curve_nearly_full", 0.03), ("curve_usdg", 1.5)])
async def test_a_curve_that_takes_less_than_it_did(
    ctx: Context, rpc: SyncRpc, built: Built, key: str, eth: float
) -> None:
    """Where the slipped-in buy left less than is sent, the rest comes back; the minimum holds as a price, and
    no allowance stays."""
    wallet = signer(rpc, built, f"slow {key}", key, 3)
    other = signer(rpc, built, f"fast {key}", key, 3)
    slippage = {"slippageBps": 100 if key == "curve_nearly_full" else 5000}
    trade = await prepared(
        ctx, "buy", built.tokens[key], wallet.address, amount=amount_of(key, 3), **slippage
    )
    assert trade.spend_raw < int(3 * (10**18 if quote_of(key) == "eth" else ETH_USDG * 10**6))
    await buys(ctx, built, other, key, eth)
    done = wallet.trade(trade)
    assert done.ok
    assert 0 < done.token_raw < trade.raw
    assert 0 < -done.money_raw < trade.spend_raw
    assert done.token_raw * trade.spend_raw >= -done.money_raw * trade.min_raw
    assert wallet.leftovers([built.contracts["usdg"]], trade.answer["venue"]["at"]) == {}


@pytest.mark.parametrize("key", ["curve_nearly_full", "curve_all_but_full"])
async def test_a_curve_that_somebody_else_sells_out(
    ctx: Context, rpc: SyncRpc, built: Built, key: str
) -> None:
    wallet = signer(rpc, built, f"slow {key}", key)
    trade = await prepared(ctx, "buy", built.tokens[key], wallet.address, amount="0.1")
    await buys(ctx, built, signer(rpc, built, f"fast {key}", key, 0.2), key, 0.2)
    assert not landed(wallet, built, trade, wallet.trade(trade))


async def test_a_sandwiched_trade_keeps_its_minimum(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    """The widest slippage: it lands for half or more, however large the trade before it."""
    wallet = signer(rpc, built, "wide", "plain")
    given: dict[str, object] = {"amount": "0.1", "slippageBps": 5000}
    trade = await prepared(ctx, "buy", built.tokens["plain"], wallet.address, **given)
    await buys(ctx, built, signer(rpc, built, "large", "plain", 7), "plain", 7)
    done = wallet.trade(trade)
    assert landed(wallet, built, trade, done)
    assert trade.min_raw <= done.token_raw < trade.raw * 6 // 10
