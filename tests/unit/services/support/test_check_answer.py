"""The check's answer: its parts about a launch, a pool's fee, and quotes other than eth and usdg."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, BURN_ADDRESS, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.curve import buy
from roundtrip.domain.check.evidence import (
    CompletedBuy,
    DeployerRecord,
    Evidence,
    LaunchRecord,
    Missing,
    QuoteRate,
    VenueEvidence,
)
from roundtrip.domain.check.verdict import judge
from roundtrip.services.support.check_answer import (
    Check,
    DeployerAnswer,
    LaunchpadAnswer,
    PaidAnswer,
    present,
)
from unit.domain.builders import (
    ABSENT,
    LIQUID,
    MARKET,
    NO_MONEY,
    NODE,
    OWNER,
    PAID_RAW,
    TOKEN_FACTS,
    WETH,
    buys,
    cells,
    evidence,
    no_trade,
    refused_buys,
    sold,
    venue,
)
from unit.domain.launches import (
    CURVE,
    CURVE_ADDRESS,
    IDLE,
    LAUNCHPAD_POOL,
    POOL_ID,
    POOL_LAUNCH,
    SWAPPING,
    THRESHOLD_RAW,
    at,
    gone,
    launch,
    launched,
    state,
    v4,
)

ODD = OWNER
RATE = QuoteRate(ODD, 5 * 10**8, (), 8)
"""Five of that quote for one eth."""


def answer(document: Evidence) -> Check:
    return present(document, judge(document, POLICY), POLICY, 1_700_000_000.5)


def launchpad(known: LaunchRecord, *venues: VenueEvidence) -> LaunchpadAnswer:
    part = answer(launched(known, *(venues or (at(CURVE),)))).launchpad
    assert part is not None
    return part


# --- the launchpad's part -------------------------------------------------------------------------


def test_a_token_on_its_curve_has_a_launchpads_part() -> None:
    half = state(real_quote_raw=THRESHOLD_RAW // 2, creator_tax_bps=250)
    assert launchpad(launch(half, creator_tax_bps=250)) == LaunchpadAnswer("curve", 5000, 350, 350, 250, None)


def test_the_first_seconds_tax_is_of_buys_only() -> None:
    part = launchpad(launch(state(snipe_bps=618)))
    assert (part.buy_tax_bps, part.sell_tax_bps) == (718, 100)
    assert launchpad(launch(state(snipe_bps=9950))).buy_tax_bps == 9900
    assert launchpad(launch(state(snipe_bps=618, closed=True))).buy_tax_bps == 100


def test_a_graduated_token_is_taxed_by_its_pools_hook() -> None:
    known = launch(None, phase="pooled", creator_tax_bps=500, hook_fee_bps=100)
    part = launchpad(known, at(LAUNCHPAD_POOL))
    assert part == LaunchpadAnswer("graduated", None, 600, 600, 500, None)


@pytest.mark.parametrize(("phase", "fill"), [("swept", BPS), ("rescued", None)])
def test_a_closed_launch_has_not_graduated_yet(phase: str, fill: int | None) -> None:
    shown = answer(launched(gone(phase), at(CURVE, no_trade(ABSENT))))
    assert shown.launchpad == LaunchpadAnswer("curve", fill, 100, 100, 0, None)
    assert (shown.venue, shown.trade, shown.price) == (None, None, None)
    assert shown.verdict.code == "no_pool"
    assert "curve_closed" in shown.flags


def test_a_full_curve_that_still_waits_is_a_curve() -> None:
    full = state(closed=True, real_quote_raw=THRESHOLD_RAW)
    part = launchpad(launch(full), at(CURVE, no_trade(ABSENT)))
    assert (part.phase, part.curve_fill_bps) == ("curve", BPS)


def test_a_curve_whose_state_is_lost_tells_no_fill() -> None:
    part = launchpad(launch(NODE))
    assert (part.phase, part.curve_fill_bps) == ("curve", None)


HALF_TOLD = (
    launch(NODE, creator_tax_bps=500),
    launch(None, phase="pooled", creator_tax_bps=500, hook_fee_bps=None),
)


@pytest.mark.parametrize("known", HALF_TOLD)
def test_a_tax_is_never_told_as_less_than_what_is_known_of_it(known: LaunchRecord) -> None:
    assert launchpad(known).sell_tax_bps >= 500


@pytest.mark.parametrize(
    ("changes", "phase", "fill"),
    [
        ({}, "curve", 2500), ({"principal_raw": THRESHOLD_RAW - 1}, "curve", 9999),
        ({"principal_raw": THRESHOLD_RAW}, "graduated", None), ({"graduated": True}, "graduated", None),
        ({"principal_raw": None, "threshold_raw": None}, "curve", None),
    ],
)  # fmt: skip
def test_a_launch_into_a_pool_takes_nothing_and_tells_how_full_it_is(
    changes: dict[str, object], phase: Any, fill: int | None
) -> None:
    known = replace(POOL_LAUNCH, **changes)  # type: ignore[arg-type]
    shown = answer(launched(known, venue()))
    assert shown.launchpad == LaunchpadAnswer(phase, fill, 0, 0, 0, None)
    assert (shown.venue, shown.trade) == (answer(evidence(venue())).venue, answer(evidence(venue())).trade)


@pytest.mark.parametrize("known", [None, NODE])
def test_without_a_launch_there_is_no_launchpads_part(known: Missing | None) -> None:
    assert answer(launched(known, venue())).launchpad is None


def test_a_deployers_record_is_told_where_it_is_known() -> None:
    document = replace(launched(launch(), at(CURVE)), deployer=DeployerRecord(7, 2, 1, 0, 0))
    part = answer(document).launchpad
    assert part is not None
    assert part.deployer == DeployerAnswer(OWNER, 7, 2, 1)
    assert answer(replace(document, launch=None)).launchpad is None


# --- the venue's part -----------------------------------------------------------------------------


def fee(where: Venue, known: LaunchRecord | Missing | None = None) -> tuple[float | None, bool]:
    shown_venue = answer(launched(known, at(where))).venue
    assert shown_venue is not None
    return shown_venue.pool_fee_bps, shown_venue.dynamic_fee


POOLED = launch(None, phase="pooled", creator_tax_bps=250, hook_fee_bps=100)
DYNAMIC = v4(IDLE, 0x800000)
FEES: tuple[tuple[str, Venue, LaunchRecord | Missing | None, float | None, bool], ...] = (
    ("a curve's fee and tax", CURVE, launch(state(creator_tax_bps=250)), 350, False),
    ("not its first seconds' tax", CURVE, launch(state(snipe_bps=9900)), 100, False),
    ("a lost curve's", CURVE, launch(NODE), None, False),
    ("a lost launch's", CURVE, NODE, None, False),
    ("a launchpad pool's hook and tax", LAUNCHPAD_POOL, POOLED, 350, False),
    ("and not dynamic", replace(LAUNCHPAD_POOL, fee_pips=0x800000), POOLED, 350, False),
    ("a hook's that was not told", LAUNCHPAD_POOL, replace(POOLED, hook_fee_bps=None), None, False),
    ("a launchpad pool's without its launch", LAUNCHPAD_POOL, None, None, False),
    ("set swap by swap", DYNAMIC, None, None, True),
    ("a hooked pool's own", v4(), None, 30, False),
    ("half a hundredth", v4(None, 50), None, 0.5, False),
    ("a v3 pool's", venue().venue, None, 30, False),
)


@pytest.mark.parametrize("row", FEES, ids=[row[0] for row in FEES])
def test_what_the_pool_keeps_of_every_swap(
    row: tuple[str, Venue, LaunchRecord | Missing | None, float | None, bool],
) -> None:
    _, where, known, bps, dynamic = row
    assert fee(where, known) == (bps, dynamic)


def test_a_whole_fee_is_written_without_a_point() -> None:
    shown = answer(evidence(venue()))
    assert b'"poolFeeBps":30,' in msgspec.json.encode(shown)


def test_a_curve_is_named_by_its_address_and_a_v4_pool_by_its_id() -> None:
    curve, pool = (
        answer(launched(launch(), at(CURVE))).venue, answer(launched(POOLED, at(LAUNCHPAD_POOL))).venue
    )  # fmt: skip
    assert curve is not None
    assert pool is not None
    assert (curve.kind, curve.pool, curve.pool_id, curve.hook) == (
        "launchpad_curve",
        CURVE_ADDRESS,
        None,
        None,
    )
    assert (pool.kind, pool.pool, pool.pool_id, pool.hook) == ("launchpad_pool", None, POOL_ID, SWAPPING)


def test_every_pool_that_was_found_is_counted() -> None:
    shown_venue = answer(replace(evidence(venue()), pools_found=7)).venue
    assert shown_venue is not None
    assert shown_venue.pools_found == 7


# --- the trade's part -----------------------------------------------------------------------------


def paid(where: Venue, trial: VenueEvidence | None = None, rates: tuple[QuoteRate, ...] = ()) -> object:
    whole = replace(evidence(at(where, trial)), market=replace(MARKET, rates=rates))
    trade = answer(whole).trade
    return trade and trade.paid


def test_what_was_paid_is_told_in_the_pools_money() -> None:
    odd = replace(venue().venue, quote=ODD, quote_address=ODD)
    refused = no_trade(LIQUID, refused_buys())
    assert paid(odd, rates=(RATE,)) == PaidAnswer("1000000000", ODD)  # 10**17 of 8 decimals
    assert paid(odd, refused, (RATE,)) == PaidAnswer("0.5", ODD)
    assert paid(replace(odd, quote="usdg"), refused) == PaidAnswer("300", "usdg")
    assert paid(replace(odd, quote="weth", quote_address=WETH)) == PaidAnswer("0.1", "eth")
    assert paid(CURVE) == PaidAnswer("0.1", "eth")


def test_without_a_rate_nothing_is_told_of_the_trade() -> None:
    odd = replace(venue().venue, quote=ODD, quote_address=ODD)
    assert paid(odd) is None
    assert answer(evidence(at(odd))).venue is not None


def of_curve(full: object) -> VenueEvidence:
    """A curve that was bought from as its formula has it."""
    result = buy(state(), PAID_RAW, 0)
    exact = CompletedBuy(result.spent_raw, result.tokens_raw, PAID_RAW, 1)
    every = cells(full=full, full_again=full)  # type: ignore[arg-type]
    return at(CURVE, venue(every, all_buys=buys(exact)))


def test_the_curves_formula_speaks_only_where_a_sell_could_not_be_run() -> None:
    lost = answer(launched(launch(), of_curve(NODE))).trade
    assert lost is not None
    assert (lost.method, lost.round_trip_loss_bps) == ("curve_math", 199)
    refused = answer(launched(launch(), of_curve(NO_MONEY))).trade
    assert refused is not None
    assert (refused.method, refused.round_trip_loss_bps) == ("simulated_trade", None)
    assert refused.sell_reverts == "no reason given"


@pytest.mark.parametrize(("snipe", "fees"), [(0, 200), (199, 200), (201, 201), (9900, 9900)])
def test_the_snipe_tax_is_told_as_the_fees_where_it_is_more(snipe: int, fees: int) -> None:
    measured = at(CURVE, venue(cells(fees=sold(200))))
    trade = answer(launched(launch(state(snipe_bps=snipe)), measured)).trade
    assert trade is not None
    assert trade.fees_bps == fees


@pytest.mark.parametrize("known", [None, launch(NODE), launch(state(snipe_bps=1)), launch(state(fee_bps=99))])
def test_the_formula_is_silent_where_it_did_not_give_the_buy(known: LaunchRecord | None) -> None:
    trade = answer(launched(known, of_curve(NODE))).trade
    assert trade is not None
    assert (trade.method, trade.round_trip_loss_bps) == ("simulated_trade", None)


def test_the_verdict_takes_no_notice_of_the_formula() -> None:
    assert answer(launched(launch(), of_curve(NODE))).verdict.code == "unproven"


# --- the rest -------------------------------------------------------------------------------------


def test_strangers_names_are_cleaned_and_amounts_are_whole() -> None:
    name = "0x" + ("Bob\u202e\n" + "x" * 100).encode().hex().ljust(512, "0")
    data = f"0x{32:064x}{104 + 3:064x}" + name[2:]
    facts = replace(TOKEN_FACTS, name_data=data, symbol_data=data, owner=OWNER)
    token = answer(evidence(venue(), facts=facts)).token
    assert token.name is not None
    assert token.name.isprintable()
    assert (len(token.name), len(token.symbol or "")) == (64, 32)
    assert (token.total_supply, token.owner_renounced) == ("1000000000", False)


@pytest.mark.parametrize("admin", [OWNER, BURN_ADDRESS])
def test_who_can_replace_the_code_is_not_said_to_be_the_owner(admin: Address) -> None:
    facts = replace(TOKEN_FACTS, owner=None, proxy_admin=admin)
    token = answer(evidence(venue(), facts=facts)).token
    assert (token.owner, token.owner_renounced) == (None, None)


def test_an_answer_bears_the_time_it_was_made() -> None:
    assert answer(evidence()).checked_at == datetime(2023, 11, 14, 22, 13, 20, 500_000, UTC)
