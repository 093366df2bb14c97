"""Launches of the launchpad's first generation: verdicts against what real wallets meet, to the wei."""

from pathlib import Path

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import (
    CompletedBuy,
    Evidence,
    PoolLaunch,
    RefusedCall,
    Sold,
    VenueEvidence,
)
from roundtrip.domain.check.verdict import judge
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.check_answer import Check, LaunchpadAnswer
from roundtrip_development.devnet.deploy import ContractDeployer, calldata
from roundtrip_development.devnet.launchpad_v1 import (
    FIRST,
    LAUNCH,
    LIMITED_BLOCKS,
    FirstStory,
    deploy_first,
    launch_first,
    launched_token,
)
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built, DevnetFolders
from support.gathering import gather_evidence
from support.mining import by_hand
from support.wallet import PoolSpec, Wallet

PROBE_WEI, TENTH_WEI = 10**17, 10**16
FEE_PIPS = 10_000
EACH = pytest.mark.parametrize("story", FIRST, ids=lambda story: story.key)


async def answered(ctx: Context, token: str) -> Check:
    await ctx.heads.refresh()
    return (await check(ctx, CheckParams(token))).answer


async def gathered(ctx: Context, token: str) -> tuple[Evidence, VenueEvidence]:
    await ctx.heads.refresh()
    evidence = await gather_evidence(ctx, Address(token), Meter())
    (venue,) = evidence.venues
    return evidence, venue


def pass_s(rpc: SyncRpc, until_s: int) -> None:
    rpc.call("evm_setNextBlockTimestamp", until_s)
    rpc.call("evm_mine")


def now_s(rpc: SyncRpc) -> int:
    return int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)


# --- the samples ----------------------------------------------------------------------------------


def expected(story: FirstStory) -> LaunchpadAnswer:
    """By what was bought: a hundredth of it is the pool's, the rest counts."""
    fill = sum(story.buys_milli) * 10**15 * 99 // 100 * 10_000 // (42 * 10**17)
    done = fill >= 10_000
    return LaunchpadAnswer("graduated" if done else "curve", None if done else fill, 0, 0, 0, None)


@EACH
async def test_a_launch_is_answered_as_a_v3_pool_with_its_launchpad(
    ctx: Context, built: Built, story: FirstStory
) -> None:
    found = await answered(ctx, built.tokens[story.key])
    assert (found.verdict.code, found.verdict.level) == ("ok", "ok"), found.verdict.text
    assert found.launchpad == expected(story)
    assert found.venue is not None
    assert (found.venue.kind, found.venue.quote, found.venue.pool_fee_bps) == ("amm_v3", "weth", 100)
    assert (found.venue.hook, found.venue.dynamic_fee, found.venue.pools_found) == (None, False, 1)
    assert found.flags == []


@EACH
async def test_every_cell_is_what_a_wallet_meets(
    ctx: Context, rpc: SyncRpc, built: Built, story: FirstStory
) -> None:
    token = built.tokens[story.key]
    _, venue = await gathered(ctx, token)
    bought = buy_of(venue, "probe")
    assert isinstance(bought, CompletedBuy)
    wallet = Wallet(rpc, built.contracts, f"truth {story.key}")
    assert wallet.buy(token, "weth", FEE_PIPS, bought.offered_raw) == bought.received_raw
    since_s, compared = now_s(rpc), 0
    for cell in venue.cells:
        probe = cell.probe
        if (probe.size, probe.seller, probe.share_bps) != ("probe", "buyer", 10_000):
            continue
        assert isinstance(cell.outcome, Sold)
        snapshot = rpc.call("evm_snapshot")
        pass_s(rpc, since_s + probe.delay_s)
        fill = wallet.sell(token, "weth", FEE_PIPS, bought.received_raw)
        assert (fill.ok, fill.sold_raw, fill.back_raw) == (True, cell.outcome.sold_raw, cell.outcome.back_raw)
        assert rpc.call("evm_revert", snapshot)
        compared += 1
    assert compared == 3


def buy_of(venue: VenueEvidence, size: str) -> object:
    return next(b.outcome for b in venue.buys if (b.size, b.environment) == (size, 0))


# --- the first blocks -----------------------------------------------------------------------------


async def test_in_its_first_blocks_a_launch_is_judged_by_what_a_wallet_may_buy(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """0.1 eth is more than a twentieth of the supply here, 0.01 eth is less."""
    launcher = ContractDeployer(rpc, built.accounts[5])
    token = launch_first(launcher, built.contracts["launchpadV1Factories"], "Early", "ERL")
    for _ in range(LIMITED_BLOCKS):
        evidence, venue = await gathered(ctx, token)
        assert isinstance(buy_of(venue, "probe"), RefusedCall)
        small = buy_of(venue, "tenth")
        assert isinstance(small, CompletedBuy)
        found = judge(evidence, POLICY).verdict
        assert found.code == "ok"
        assert "Only a smaller buy than usual went through." in found.text
        snapshot = rpc.call("evm_snapshot")
        assert Wallet(rpc, built.contracts, "early, much").buy(token, "weth", FEE_PIPS, PROBE_WEI) is None
        assert rpc.call("evm_revert", snapshot)
        snapshot = rpc.call("evm_snapshot")
        modest = Wallet(rpc, built.contracts, "early, little")
        assert modest.buy(token, "weth", FEE_PIPS, TENTH_WEI) == small.received_raw
        assert modest.sell(token, "weth", FEE_PIPS, small.received_raw).ok
        assert rpc.call("evm_revert", snapshot)
        rpc.call("evm_mine")
    evidence, venue = await gathered(ctx, token)
    usual = buy_of(venue, "probe")
    assert isinstance(usual, CompletedBuy)
    assert "smaller" not in judge(evidence, POLICY).verdict.text
    late = Wallet(rpc, built.contracts, "late, much")
    assert late.buy(token, "weth", FEE_PIPS, PROBE_WEI) == usual.received_raw


def test_in_the_launch_block_only_its_creator_buys(rpc: SyncRpc, built: Built) -> None:
    """No check can meet this where numbers pass: it simulates the block after the newest."""
    launcher, factory = ContractDeployer(rpc, built.accounts[5]), built.contracts["launchpadV1Factories"]
    snapshot = rpc.call("evm_snapshot")
    token = launch_first(launcher, factory, "Rush", "RSH", TENTH_WEI)
    assert rpc.call("evm_revert", snapshot)
    wallet = Wallet(rpc, built.contracts, "in a hurry")
    (buy,) = wallet.buy_steps(token, PoolSpec("weth", FEE_PIPS), TENTH_WEI)
    with by_hand(rpc):
        # The launch pays the higher tip, so it comes first.
        launched = {"from": launcher.account, "to": factory, "data": calldata(LAUNCH, "Rush", "RSH")}
        fees = {"maxFeePerGas": hex(40 * 10**9), "maxPriorityFeePerGas": hex(9 * 10**9)}
        more = {"gas": hex(12 * 10**6), "value": hex(TENTH_WEI)}
        hash_of_launch = rpc.call("eth_sendTransaction", launched | more | fees)
        (hash_of_buy,) = wallet.queue([buy], 10**6, 40 * 10**9, 10**9)
        rpc.call("evm_mine")
    receipts = [rpc.call("eth_getTransactionReceipt", one) for one in (hash_of_launch, hash_of_buy)]
    assert receipts[0]["blockNumber"] == receipts[1]["blockNumber"]
    assert [receipt["status"] for receipt in receipts] == ["0x1", "0x0"]
    assert launched_token(receipts[0]) == token
    call = {"to": token, "data": calldata("balanceOf(address)", launcher.account)}
    assert int(rpc.call("eth_call", call, "latest"), 16) > 0
    assert wallet.buy(token, "weth", FEE_PIPS, TENTH_WEI)


# --- who may speak of a launch --------------------------------------------------------------------


async def test_a_launch_by_a_factory_that_nobody_trusts_has_no_launchpad(
    ctx: Context, rpc: SyncRpc, built: Built, places: DevnetFolders
) -> None:
    """Token, pool, position and log are all the same; only the factory is another."""
    stranger = ContractDeployer(rpc, built.accounts[9])
    copy = deploy_first(stranger, built.contracts, Path(places.project) / "contracts")
    token = launch_first(stranger, copy["launchpadV1Factories"], "Dawn", "DAWN", TENTH_WEI)
    for _ in range(LIMITED_BLOCKS + 1):
        rpc.call("evm_mine")
    evidence, venue = await gathered(ctx, token)
    assert evidence.launch is None
    assert venue.venue.kind == "amm_v3"
    found = await answered(ctx, token)
    assert (found.launchpad, found.verdict.code) == (None, "ok")


async def test_a_launch_that_no_log_told_of_is_found_by_its_usual_key(ctx: Context, built: Built) -> None:
    ctx.heads.venue_index = None
    meter = Meter()
    evidence = await gather_evidence(ctx, Address(built.tokens["first_fresh"]), meter)
    assert isinstance(evidence.launch, PoolLaunch)
    assert [venue.venue.kind for venue in evidence.venues] == ["amm_v3"]
    # One more looks up the standard pools.
    assert (meter.trips, evidence.candidates_complete) == (3, False)
    assert judge(evidence, POLICY).verdict.level == "ok"
