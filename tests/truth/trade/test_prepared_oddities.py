"""Prepared trades of odd tokens, against what wallets really get; and what the steps promise."""

import re
from dataclasses import replace

import pytest

from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, put_token
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.signing import Signer, now_s, prepared

V3, V4 = (PoolPlan(),), (PoolPlan("eth", version=4),)

ODD: tuple[tuple[str, tuple[int, ...], tuple[PoolPlan, ...], int], ...] = (
    ("odd_24_decimals", (), V3, 24),
    ("odd_0_decimals", (), V3, 0),
    ("odd_no_decimals", (), V3, 18),
    ("odd_dear_approval", (5,), V4, 18),
    ("gas_bomb", (2_000_000,), V3, 18),
    ("transfer_callback", (), V3, 18),
    ("max_wallet", (100,), V3, 18),
    ("tax_by_direction", (300, 700), V4, 18),
    ("reflection", (200,), V4, 18),
)
"""Source, what its constructor takes more, its pools, decimals."""


def put(
    rpc: SyncRpc,
    built: Built,
    source: str,
    extra: tuple[int, ...],
    pools: tuple[PoolPlan, ...],
    decimals: int = 18,
) -> str:
    path = f"zoo/{source}.vy"
    story = Story(
        source, "", path, "Zoo", "ZOO", decimals, ("uint256",) * len(extra), extra, pools
    )  # fmt: skip
    owner = ContractDeployer(rpc, built.accounts[0])
    token = put_token(owner, built.contracts, story, compile_contract(PROJECT / "contracts" / path))
    owner.check_receipts()
    return token


@pytest.mark.parametrize(("source", "extra", "pools", "decimals"), ODD)
async def test_an_odd_token_trades_exactly_as_told(
    ctx: Context,
    rpc: SyncRpc,
    built: Built,
    source: str,
    extra: tuple[int, ...],
    pools: tuple[PoolPlan, ...],
    decimals: int,
) -> None:
    token, wallet = put(rpc, built, source, extra, pools, decimals), Signer(rpc, built.contracts, source)
    buy = await prepared(ctx, "buy", token, wallet.address, amount="0.1")
    done = wallet.trade(buy)
    assert (done.ok, done.token_raw, -done.money_raw) == (True, buy.raw, buy.spend_raw)
    assert done.token_raw >= buy.min_raw
    sell = await prepared(ctx, "sell", token, wallet.address, amount="all")
    back = wallet.trade(sell)
    assert (back.ok, -back.token_raw, back.money_raw) == (True, sell.spend_raw, sell.raw)
    assert wallet.tokens(token) == 0
    assert wallet.leftovers([token]) == {}


@pytest.mark.parametrize(
    ("source", "step_s"),
    [
        ("rebase_up", 10),
        ("rebase_up", 3600),
        ("rebase_down", 86_400),
        ("rebase_down", 60),
        ("rebase_down", 10),
    ],
)
async def test_a_token_whose_balances_change_is_no_trap(
    ctx: Context, rpc: SyncRpc, built: Built, source: str, step_s: int
) -> None:
    """By one percent a day, in steps; a check calls it ok, and so does what it buys."""
    token, wallet = put(rpc, built, source, (100, step_s), V3), Signer(rpc, built.contracts, source)
    trade = await prepared(ctx, "buy", token, wallet.address, amount="0.1")
    assert trade.answer["check"]["verdict"]["code"] == "ok"
    assert (trade.answer["refused"], trade.code) == (False, "ok"), trade.text
    # Whatever the second it is mined in.
    done = wallet.trade(trade, now_s(rpc) + 7)
    assert done.ok
    assert done.token_raw >= trade.min_raw
    held_raw = wallet.tokens(token)
    sell = await prepared(ctx, "sell", token, wallet.address, amount="all")
    shrinks = source == "rebase_down" and step_s < 1200
    assert (sell.spend_raw < held_raw) is shrinks
    assert ("shrink by themselves" in sell.text) is shrinks
    nearly = await prepared(ctx, "sell", token, wallet.address, percent=99.99)
    assert (nearly.spend_raw == sell.spend_raw) is shrinks
    # A wallet takes its time to sign: all of it is there until the deadline.
    back = wallet.trade(sell, now_s(rpc) + 1000)
    assert (back.ok, back.money_raw >= sell.min_raw) == (True, True)


async def test_a_token_that_wants_gas_left_is_sold_as_a_wallet_would(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    token = put(rpc, built, "detect_gasleft", (2_000_000,), V3)
    wallet = Signer(rpc, built.contracts, "gasleft")
    assert wallet.trade(await prepared(ctx, "buy", token, wallet.address, amount="0.1")).ok
    snapshot = rpc.call("evm_snapshot")
    assert wallet.sell(token, "weth", 3000, wallet.tokens(token)).ok
    assert rpc.call("evm_revert", snapshot)
    assert wallet.trade(await prepared(ctx, "sell", token, wallet.address, amount="all")).ok


# --- what the steps say ----------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["plain", "v4_weth", "graduated_taxed", "curve_taxed", "fee_on_buy"])
async def test_a_step_promises_no_more_than_the_minimum(
    ctx: Context, rpc: SyncRpc, built: Built, key: str
) -> None:
    wallet = Signer(rpc, built.contracts, "reader")
    trade = await prepared(ctx, "buy", built.tokens[key], wallet.address, amount="0.1")
    found = re.search(r"(for|pays out) at least ([0-9.]+) ", trade.does[-1])
    assert found is not None
    least, taxed = float(found.group(2)), key == "fee_on_buy"
    assert (found.group(1) == "pays out") is taxed
    assert least * (0.8 if taxed else 1) <= float(trade.answer["expect"]["min"]) * 1.000001


async def test_every_step_can_be_paid_for(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    """A wallet whose eth is just enough for what a trade uses, and not for what a node asks up front."""
    # The deadline stands in the calldata.
    ctx = replace(ctx, now_s=lambda: 2_000_000_000.5)
    token, wallet = built.tokens["plain"], Signer(rpc, built.contracts, "tight")
    trade = await prepared(ctx, "buy", token, wallet.address, amount="0.1")
    (step,) = trade.steps
    rpc.call("anvil_setBalance", wallet.address, hex(10**17 + 10**10 * step["gas"]))
    again = await prepared(ctx, "buy", token, wallet.address, amount="0.1")
    assert again.steps == trade.steps
    assert wallet.trade(again).token_raw == again.raw
