"""Launches and hooked pools: verdicts against what real wallets meet, to the wei; one launch through its
whole life."""

from dataclasses import replace

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, ZERO_ADDRESS, Address
from roundtrip.domain.check import curve
from roundtrip.domain.check.evidence import (
    CompletedBuy,
    Curve,
    Evidence,
    RefusedCall,
    Size,
    Sold,
    VenueEvidence,
)
from roundtrip.domain.check.evidence import LaunchRecord as LaunchFacts
from roundtrip.domain.check.flags import JudgedCheck, raised_flags
from roundtrip.domain.check.venue_reading import MAIN_SIZES
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.deploy import ContractDeployer
from roundtrip_development.devnet.launchpad import CurveToken, LaunchRequest, curve_buy, launch
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.gathering import gather_evidence
from support.trader import Market, MarketTrader
from support.wallet import Wallet

ON_CURVE = ("curve", "curve_taxed", "curve_usdg", "curve_other", "curve_nearly_full")
IN_POOL = ("graduated", "graduated_usdg", "graduated_taxed", "graduated_other")
HOOKED = (
    "hook_harmless", "hook_reverts_on_sell", "hook_takes_tenth", "hook_fee_jump", "hook_allow_list",
    "taxed_v4_hooked", "odd_key",
)  # fmt: skip


async def gathered(ctx: Context, token: str) -> tuple[Evidence, Judgement]:
    await ctx.heads.refresh()
    evidence = await gather_evidence(ctx, Address(token), Meter())
    return evidence, judge(evidence, POLICY)


def main_buy(venue: VenueEvidence) -> tuple[Size, CompletedBuy]:
    """The largest buy that leaves a curve open."""
    outcomes = {buy.size: buy.outcome for buy in venue.buys}
    return next(
        (size, outcome)
        for size in MAIN_SIZES
        if isinstance(outcome := outcomes.get(size), CompletedBuy) and not outcome.closes
    )


def now_s(rpc: SyncRpc) -> int:
    return int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)


def pass_s(rpc: SyncRpc, seconds: int) -> None:
    rpc.call("evm_setNextBlockTimestamp", now_s(rpc) + seconds)
    rpc.call("evm_mine")


def market_of(venue: VenueEvidence, token: str) -> Market:
    found = venue.venue
    if found.kind == "launchpad_curve":
        return Market(token, found.quote_address, curve=found.pool or "")
    hook = found.hook or ZERO_ADDRESS
    return Market(token, found.quote_address, "", found.fee_pips, found.tick_spacing, hook)


def with_money(rpc: SyncRpc, built: Built, wallet: Wallet, quote: str, amount_raw: int) -> None:
    """What the wallet pays with: usdg bought, shares sent to it."""
    if quote == built.contracts["usdg"]:
        wallet.get_usdg(amount_raw)
    elif quote == built.contracts["share"]:
        data = "0xa9059cbb" + wallet.address[2:].rjust(64, "0") + format(amount_raw, "064x")
        ContractDeployer(rpc, built.accounts[0]).receipt(
            ContractDeployer(rpc, built.accounts[0]).send(quote, data)
        )


@pytest.mark.parametrize("key", [*ON_CURVE, *IN_POOL, *HOOKED])
async def test_every_cell_is_what_a_wallet_meets(ctx: Context, rpc: SyncRpc, built: Built, key: str) -> None:
    token = built.tokens[key]
    evidence, _ = await gathered(ctx, token)
    (venue,) = evidence.venues
    size, bought = main_buy(venue)
    wallet = Wallet(rpc, built.contracts, f"truth {key}")
    trader = MarketTrader(wallet, built.contracts, market_of(venue, token))
    with_money(rpc, built, wallet, trader.market.quote, bought.offered_raw)
    assert trader.buy(bought.offered_raw) == bought.received_raw
    since_s, compared = now_s(rpc), 0
    for cell in venue.cells:
        probe = cell.probe
        if (probe.size, probe.seller, probe.share_bps) != (size, "buyer", 10_000):
            continue
        snapshot = rpc.call("evm_snapshot")
        pass_s(rpc, since_s + probe.delay_s - now_s(rpc))
        fill = trader.sell(bought.received_raw)
        if isinstance(cell.outcome, Sold):
            assert (fill.ok, fill.sold_raw, fill.back_raw) == (
                True,
                cell.outcome.sold_raw,
                cell.outcome.back_raw,
            )
        else:
            assert isinstance(cell.outcome, RefusedCall)
            assert not fill.ok
        rpc.call("evm_mine")
        assert rpc.call("evm_revert", snapshot)
        compared += 1
    assert compared == 3


VERDICTS = {
    "curve": ("ok", "ok"),
    "curve_taxed": ("high_fees", "warn"),
    "curve_usdg": ("ok", "ok"),
    "curve_other": ("ok", "ok"),
    "curve_nearly_full": ("ok", "warn"),
    "curve_all_but_full": ("empty_pool", "warn"),
    "curve_full": ("no_pool", "warn"),
    "swept": ("no_pool", "warn"),
    "rescued": ("no_pool", "warn"),
    "graduated": ("ok", "ok"),
    "graduated_usdg": ("ok", "ok"),
    "graduated_taxed": ("ok", "ok"),
    "graduated_other": ("ok", "ok"),
    "hook_harmless": ("ok", "ok"),
    "hook_reverts_on_sell": ("cannot_sell", "danger"),
    "hook_takes_tenth": ("toll_pool", "warn"),
    "hook_fee_jump": ("toll_pool", "danger"),
    "hook_allow_list": ("cannot_sell", "danger"),
    "hook_bait": ("ok", "warn"),
    "hook_slightly_cheaper": ("ok", "ok"),
    "hook_much_cheaper": ("ok", "ok"),
    "toll_beside_fair": ("ok", "ok"),
    "taxed_v4_hooked": ("ok", "ok"),
    "odd_key": ("ok", "ok"),
    "odd_tier": ("ok", "ok"),
    "one_sided": ("ok", "ok"),
}
CHOSEN = {
    "hook_bait": "amm_v3",
    "hook_slightly_cheaper": "amm_v3",
    "hook_much_cheaper": "amm_v4",
    "toll_beside_fair": "amm_v3",
}
FLAGGED = {
    "curve_taxed": ("high_creator_tax",),
    "curve_full": ("curve_closed",),
    "swept": ("curve_closed",),
    "rescued": ("curve_closed",),
    "graduated_taxed": ("high_creator_tax",),
    "hook_fee_jump": ("hook", "dynamic_fee"),
    "toll_beside_fair": ("toll_pool",),
    "hook_much_cheaper": ("hook",),
    "hook_slightly_cheaper": (),
    "odd_key": (),
    "one_sided": ("no_liquidity",),
    "graduated": (),
}


@pytest.mark.parametrize("key", VERDICTS)
async def test_a_story_is_judged_as_it_is_told(ctx: Context, built: Built, key: str) -> None:
    evidence, judgement = await gathered(ctx, built.tokens[key])
    assert (judgement.verdict.code, judgement.verdict.level) == VERDICTS[key], judgement.verdict.text
    if key in CHOSEN:
        assert judgement.best is not None
        assert evidence.venues[judgement.best].venue.kind == CHOSEN[key]
    if key in FLAGGED:
        assert raised_flags(JudgedCheck(evidence, judgement, POLICY)) == FLAGGED[key]


@pytest.mark.parametrize("key", ON_CURVE)
async def test_the_curves_formula_is_what_the_simulation_saw(ctx: Context, built: Built, key: str) -> None:
    evidence, _ = await gathered(ctx, built.tokens[key])
    (venue,) = evidence.venues
    assert isinstance(evidence.launch, LaunchFacts)
    state = evidence.launch.curve_state
    assert isinstance(state, Curve)
    bought = {buy.size: buy.outcome for buy in venue.buys}
    after_small = state
    for size in ("thousandth", *MAIN_SIZES, "large"):
        outcome = bought.get(size)
        if outcome is None:
            continue
        assert isinstance(outcome, CompletedBuy)
        # The large buy follows the small one.
        before = after_small if size == "large" else state
        result = curve.buy(before, outcome.offered_raw, 0)
        assert (result.spent_raw, result.tokens_raw) == (outcome.paid_raw, outcome.received_raw), size
        quote_raw, token_raw = curve.after_buy(state, result, 0)
        if size == "thousandth":
            after_small = replace(state, quote_raw=quote_raw, token_raw=token_raw)
    main_size, main = main_buy(venue)
    held = curve.after_buy(state, curve.buy(state, main.offered_raw, 0), 0)
    whole = [cell for cell in venue.cells if (cell.probe.size, cell.probe.share_bps) == (main_size, 10_000)]
    for cell in whole:
        assert isinstance(cell.outcome, Sold)
        assert curve.sell(state, *held, cell.outcome.planned_raw) == cell.outcome.back_raw
    # Soon, after an hour and after a day; soon with much and with little gas.
    assert len(whole) == 5


# --- a launch's whole life -------------------------------------------------------------------------


async def test_a_launch_from_its_first_second_to_its_pool(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    deployer = ContractDeployer(rpc, built.accounts[0])
    made = launch(deployer, built.contracts, LaunchRequest("Life", "LIFE", salt=77))
    await _first_seconds(ctx, rpc, built, made)
    pass_s(rpc, 10)
    evidence, judgement = await gathered(ctx, made.token)
    assert (judgement.verdict.code, judgement.verdict.level) == ("ok", "ok"), judgement.verdict.text
    assert raised_flags(JudgedCheck(evidence, judgement, POLICY)) == ("no_liquidity",)
    curve_buy(deployer, made, 5 * 10**18)
    deployer.check_receipts()
    for phase_flag in ("ready", "swept"):
        if phase_flag == "swept":
            from_factory = ContractDeployer(rpc, built.accounts[0])
            data = "0xff6d8d05" + made.token[2:].rjust(64, "0")
            from_factory.receipt(from_factory.send(built.contracts["launchpadFactory"], data))
        evidence, judgement = await gathered(ctx, made.token)
        assert (judgement.verdict.code, judgement.verdict.level) == ("no_pool", "warn")
        assert raised_flags(JudgedCheck(evidence, judgement, POLICY)) == ("curve_closed",)
        assert "sold out" in judgement.verdict.text
    pass_s(rpc, 7200)
    _, judgement = await gathered(ctx, made.token)
    assert "for 2 h 0 min" in judgement.verdict.text
    data = "0x2f53ef2f" + made.token[2:].rjust(64, "0")
    deployer.receipt(deployer.send(built.contracts["launchpadFactory"], data))
    evidence, judgement = await gathered(ctx, made.token)
    assert (judgement.verdict.code, judgement.verdict.level) == ("ok", "ok"), judgement.verdict.text
    assert [venue.venue.kind for venue in evidence.venues] == ["launchpad_pool"]
    assert raised_flags(JudgedCheck(evidence, judgement, POLICY)) == ()


@pytest.mark.parametrize("left_milli", [105, 115, 130, 150, 170, 190, 220, 260, 330])
async def test_a_curve_that_is_nearly_full_is_no_trap(
    ctx: Context, rpc: SyncRpc, built: Built, left_milli: int
) -> None:
    """The crowd buys after the main wallet's 0.1 eth, and must not close the curve that it sells to."""
    deployer = ContractDeployer(rpc, built.accounts[0])
    made = launch(deployer, built.contracts, LaunchRequest("Brink", "BRNK", salt=78))
    pass_s(rpc, 60)
    evidence, _ = await gathered(ctx, made.token)
    assert isinstance(evidence.launch, LaunchFacts)
    state = evidence.launch.curve_state
    assert isinstance(state, Curve)
    sold_out_raw = state.quote_raw * (state.token_raw - state.reserved_raw) // state.reserved_raw
    curve_buy(deployer, made, (sold_out_raw - left_milli * 10**15) * BPS // (BPS - state.fee_bps))
    deployer.check_receipts()
    pass_s(rpc, 60)
    for _ in range(4):
        evidence, judgement = await gathered(ctx, made.token)
        verdict = judgement.verdict
        assert verdict.code == "ok", verdict.text
        assert "CurveGraduated" not in verdict.text


async def _first_seconds(ctx: Context, rpc: SyncRpc, built: Built, made: CurveToken) -> None:
    """Right after the launch: what a fresh wallet pays counts, and the answer does not outlive it."""
    evidence, judgement = await gathered(ctx, made.token)
    assert (judgement.verdict.code, judgement.verdict.level) == ("heavy_fees", "danger")
    assert "now 99.00 %, ends in 3 s" in judgement.verdict.text
    assert "snipe_tax_active" in raised_flags(JudgedCheck(evidence, judgement, POLICY))
    answered = await check(ctx, CheckParams(made.token))
    assert answered.ttl_ms == 3000
    assert answered.answer.launchpad is not None
    assert (answered.answer.launchpad.buy_tax_bps, answered.answer.launchpad.sell_tax_bps) == (9_900, 100)
    assert answered.answer.trade is not None
    assert answered.answer.trade.fees_bps == 9900
    # What a real wallet meets a second later is what the simulated buy of that second met.
    wallet = Wallet(rpc, built.contracts, "sniper")
    (venue,) = evidence.venues
    probe = next(b.outcome for b in venue.buys if (b.size, b.environment) == ("probe", 0))
    assert isinstance(probe, CompletedBuy)
    snapshot = rpc.call("evm_snapshot")
    rpc.call("evm_setNextBlockTimestamp", evidence.block.timestamp_s + 1)
    assert (
        MarketTrader(wallet, built.contracts, market_of(venue, made.token)).buy(10**17) == probe.received_raw
    )
    rpc.call("evm_mine")
    assert rpc.call("evm_revert", snapshot)


async def test_a_launch_that_no_log_told_of_costs_two_trips_more(ctx: Context, built: Built) -> None:
    """One looks up the standard pools, and one buys on its curve."""
    book = ctx.heads.venue_index
    assert book is not None
    ctx.heads.venue_index = None
    meter = Meter()
    evidence = await gather_evidence(ctx, Address(built.tokens["curve"]), meter)
    assert meter.trips == 4
    assert judge(evidence, POLICY).verdict.level == "ok"
    assert not evidence.candidates_complete
