"""What later trades make of a verdict: nothing that is doubtful counts for us."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.check.evidence import Evidence, HolderSell, HolderSells, Probe, ProbeCell, RefusedCall
from roundtrip.domain.check.verdict import CODES as VERDICT_CODES
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.scorecard.scorecard import (
    CODES,
    WHY,
    FailedSell,
    LaterCheck,
    RealTrade,
    VerdictClaim,
    VerdictScore,
    cost_bps,
    derive_claim,
    score_claim,
    sentence,
    tax_bps,
)
from unit.domain import builders as made

START_S = made.EMPTY.block.timestamp_s
DAY_S = POLICY.day_s
TX, WALLET = TxHash("0x" + "a" * 64), Address("0x" + "b" * 40)
BOUGHT = made.bought().received_raw
FAILS = made.NO_MONEY


def of(evidence: Evidence) -> VerdictClaim:
    verdict = judge(evidence, POLICY).verdict
    found = derive_claim(evidence, verdict.code, verdict.level, POLICY)
    assert found is not None
    return found


def sell(raw: int = BOUGHT, after_s: int = 60, cost: int | None = 60, **more: object) -> RealTrade:
    real = RealTrade(False, made.POOL, 100 + after_s, START_S + after_s, TX, WALLET, raw, 10**17, cost)
    return replace(real, **more)  # type: ignore[arg-type]


def came(
    spoken: VerdictClaim,
    *reals: RealTrade,
    turned: tuple[LaterCheck, ...] = (),
    failed: tuple[FailedSell, ...] = (),
) -> str:
    score = score_claim(spoken, reals, turned, failed)
    assert sentence(score)
    return f"{score.outcome} {score.cause}"


OK = of(made.evidence(made.venue()))
TRAP = of(made.evidence(made.venue(made.refused_cells())))
HIGH = of(made.evidence(made.venue(made.cells(2000))))
HEAVY = of(made.evidence(made.venue(made.cells(6000))))
PAUSED = of(made.evidence(made.no_trade(made.LIQUID, made.refused_buys())))
NO_POOL = of(made.evidence(made.no_trade(made.ABSENT)))


# --- what a verdict said ---------------------------------------------------------------------------


def test_an_ok_speaks_of_a_day_and_of_what_was_sold() -> None:
    assert (OK.claim, OK.until_s, OK.line_bps) == ("sells", START_S + DAY_S, POLICY.warn_loss_bps)
    assert made.BOUGHT_RAW in OK.sizes_raw
    assert made.BOUGHT_RAW // 2 in OK.sizes_raw


@pytest.mark.parametrize(("refused", "seconds"), [("day", 3600), ("hour", DAY_S)])
def test_an_ok_speaks_of_no_later_time_than_it_sold(refused: str, seconds: int) -> None:
    found = of(made.evidence(made.venue(made.cells(**dict.fromkeys(refused.split(), FAILS)))))
    assert (found.claim, found.until_s) == ("sells", START_S + seconds)


def test_a_trap_that_sells_for_less_than_an_hour_speaks_of_later_sells() -> None:
    bomb = of(made.evidence(made.venue(made.cells(hour=FAILS, day=FAILS))))
    assert (bomb.code, bomb.claim) == ("cannot_sell", "stuck")
    assert (bomb.from_s, bomb.until_s) == (START_S + 3600, START_S + DAY_S)


def test_a_trap_speaks_of_a_day_and_of_what_was_bought() -> None:
    assert (TRAP.claim, TRAP.sizes_raw, TRAP.until_s) == ("stuck", (BOUGHT,), START_S + DAY_S)


def test_a_trap_for_those_who_hold_it_says_nothing_of_fresh_wallets() -> None:
    control = made.sold()
    caught = tuple(
        HolderSell(Address(f"0x{n:040x}"), BOUGHT, RefusedCall("sell", "no", 1), RefusedCall("sell", "no", 1))
        for n in range(1, 4)
    )
    found = of(
        replace(made.evidence(made.venue()), holder_sells=HolderSells(0, control, len(caught), caught))
    )
    assert (found.code, found.claim) == ("cannot_sell", "held")
    assert came(found, sell(held_before=False)) == "undecided no_sell"
    assert came(found, sell(held_before=True)) == "wrong sold"


def test_what_sells_only_sometimes_is_not_decided_by_one_sell() -> None:
    found = of(made.evidence(made.venue(made.cells(full_again=FAILS))))
    assert (found.code, found.sometimes) == ("cannot_sell", True)
    assert came(found, sell()) == "undecided sometimes"


def test_codes_that_say_nowhere_speak_of_what_was_offered() -> None:
    for one in (PAUSED, NO_POOL):
        assert one.sizes_wei == (10**17, 10**16, 10**15)
        assert one.until_s == START_S + DAY_S
    assert (PAUSED.claim, NO_POOL.claim) == ("no_buy", "no_market")


def test_every_code_but_money_itself_is_scored_and_every_cause_has_its_sentence() -> None:
    assert set(CODES) == set(VERDICT_CODES) - {"quote_asset"}
    for outcome, cause in WHY:
        assert sentence(VerdictScore(outcome, cause)).endswith(".")
    assert sentence(VerdictScore("wrong", "sold")) == (
        "A plain wallet really sold it, although the verdict said that it cannot be sold. Either the verdict "
        "was wrong at its block, or something changed within the day; both count."
    )
    assert sentence(VerdictScore("undecided", "no_sell")) == (
        "We saw no plain wallet trade such an amount in that time."
    )


def test_what_was_said_stands_where_a_newer_policy_judges_otherwise() -> None:
    found = derive_claim(made.evidence(made.venue()), "cannot_sell", "danger", POLICY)
    assert found is not None
    assert (found.code, found.claim) == ("cannot_sell", "stuck")
    assert came(found, sell()) == "wrong sold"
    high = derive_claim(made.evidence(made.venue(made.cells(2000))), "ok", "ok", POLICY)
    assert high is not None
    assert came(high, sell(max(high.sizes_raw), cost=2000)) == "wrong cost"


def test_evidence_that_tells_nothing_of_what_was_tried_says_nothing() -> None:
    assert derive_claim(made.evidence(made.no_trade(made.ABSENT)), "ok", "ok", POLICY) is None


def test_the_large_round_trip_is_no_part_of_an_ok() -> None:
    whole = made.sold()
    large = replace(whole, planned_raw=10 * whole.planned_raw, held_raw=10 * whole.held_raw)
    cell = ProbeCell(Probe("large", POLICY.later_s, POLICY.most_bps, 0), large)
    found = of(made.evidence(made.venue((*made.cells(), cell))))
    assert max(found.sizes_raw) == whole.planned_raw


# --- ok --------------------------------------------------------------------------------------------


def test_an_ok_is_right_by_a_real_sell_of_that_size_in_that_time_at_that_cost() -> None:
    assert came(OK, sell()) == "right sold"
    assert came(OK) == "undecided no_sell"
    assert came(OK, sell(cost=None)) == "undecided not_told"
    assert came(OK, sell(after_s=DAY_S)) == "right sold"
    assert came(OK, sell(after_s=DAY_S + 1)) == "undecided no_sell"
    assert came(OK, sell(after_s=-1)) == "undecided no_sell"
    most, least = max(OK.sizes_raw), min(OK.sizes_raw)
    assert came(OK, sell(2 * most)) == "right sold"
    assert came(OK, sell(2 * most + 1)) == "undecided no_sell"
    assert came(OK, sell(-(-least // 2))) == "right sold"
    assert came(OK, sell(least // 2 - 1)) == "undecided no_sell"
    assert came(OK, sell(buys=True)) == "undecided no_sell"


def test_an_ok_is_wrong_where_a_sell_cost_more_than_the_code_allows() -> None:
    line = POLICY.warn_loss_bps
    most = max(OK.sizes_raw)
    assert came(OK, sell(most, cost=line - 1)) == "right sold"
    assert came(OK, sell(most, cost=line)) == "wrong cost"
    assert came(OK, sell(most, cost=line), sell(most, after_s=90)) == "wrong cost"
    # Who sells more than was tried moves the price himself.
    assert came(OK, sell(most + 1, cost=line)) == "undecided not_told"


@pytest.mark.parametrize("early", ["full full_again half sliver handed_on", "hour", "full full_again hour"])
def test_what_was_said_to_sell_later_is_not_wrong_where_a_sell_fails(early: str) -> None:
    found = of(made.evidence(made.venue(made.cells(**dict.fromkeys(early.split(), FAILS)))))
    failed = FailedSell(200, START_S + 99, TX, WALLET, BOUGHT)
    assert (found.code, found.claim, found.until_s) == ("ok", "sells", START_S + DAY_S)
    assert came(found, failed=(failed,)) == "undecided no_sell"
    assert came(found, sell(), failed=(failed,)) == "right sold"


def test_what_was_said_to_sell_at_once_and_in_part_is_wrong_where_a_part_fails() -> None:
    found = of(
        made.evidence(made.venue(made.cells(**dict.fromkeys(["full", "full_again", "hour", "day"], FAILS))))
    )
    half = FailedSell(200, START_S + 10, TX, WALLET, BOUGHT // 2)
    assert came(found, failed=(half,)) == "wrong failed"


def test_an_ok_is_wrong_where_a_sell_is_known_to_have_failed() -> None:
    failed = FailedSell(200, START_S + 99, TX, WALLET, BOUGHT)
    assert came(OK, sell(), failed=(failed,)) == "wrong failed"
    assert came(OK, sell(), failed=(replace(failed, at_s=START_S + DAY_S + 1),)) == "right sold"
    assert came(OK, sell(), failed=(replace(failed, token_raw=1),)) == "right sold"


def test_a_failed_sell_of_which_nobody_knows_why_leaves_no_ok_right() -> None:
    unknown = FailedSell(200, START_S + 99, TX, WALLET, BOUGHT, refused=False)
    assert came(OK, failed=(unknown,)) == "undecided not_told"
    assert came(OK, sell(), failed=(unknown,)) == "undecided not_told"
    assert came(OK, sell(), failed=(replace(unknown, token_raw=1),)) == "right sold"
    assert came(OK, failed=(unknown, replace(unknown, refused=True))) == "wrong failed"
    assert came(HIGH, sell(), failed=(unknown,)) == "undecided one_leg"
    assert came(TRAP, sell(), failed=(unknown,)) == "wrong sold"


def test_an_ok_that_a_later_check_contradicts_is_wrong_unless_somebody_sold_after_that() -> None:
    turned = (LaterCheck(300, START_S + 200, "cannot_sell", True),)
    assert came(OK, sell(after_s=100), turned=turned) == "wrong turned"
    assert came(OK, turned=turned) == "wrong turned"
    assert came(OK, sell(after_s=100), sell(after_s=400), turned=turned) == "right sold"
    assert (
        came(OK, turned=(LaterCheck(300, START_S + DAY_S + 1, "cannot_sell", True),)) == "undecided no_sell"
    )
    assert came(OK, turned=(LaterCheck(300, START_S + 200, "high_fees", False),)) == "undecided no_sell"


# --- the others ------------------------------------------------------------------------------------


def test_a_trap_is_wrong_by_a_real_sell_whatever_it_cost() -> None:
    assert came(TRAP, sell()) == "wrong sold"
    assert came(TRAP, sell(cost=None)) == "wrong sold"
    assert came(TRAP, sell(BOUGHT // 2 - 1)) == "undecided no_sell"
    assert came(TRAP) == "undecided no_sell"


def test_a_trap_that_let_go_changed_where_that_is_known() -> None:
    turned = LaterCheck(120, START_S + 30, "ok", False)
    assert came(TRAP, sell(after_s=60), turned=(turned,)) == "wrong changed"
    assert came(TRAP, sell(after_s=10), turned=(turned,)) == "wrong sold"
    assert came(TRAP, sell(new_place=True)) == "wrong changed"


ELSEWHERE = "0x" + "99" * 20


def test_what_it_costs_elsewhere_is_no_word_against_an_ok_nor_for_it() -> None:
    most = max(OK.sizes_raw)
    assert came(OK, sell(most, cost=9000, at=ELSEWHERE)) == "undecided not_told"
    assert came(OK, sell(at=ELSEWHERE)) == "undecided not_told"
    assert came(OK, sell(at=ELSEWHERE), sell()) == "right sold"


def test_a_pool_that_takes_it_back_for_next_to_nothing_is_no_way_out() -> None:
    cost_wei = POLICY.probe_wei
    assert TRAP.paid == (cost_wei, BOUGHT)
    assert came(TRAP, sell(at=ELSEWHERE, worth_wei=cost_wei // 2 - 1)) == "undecided no_sell"
    assert came(TRAP, sell(at=ELSEWHERE, worth_wei=None)) == "undecided no_sell"
    assert came(TRAP, sell(at=ELSEWHERE, worth_wei=cost_wei // 2)) == "wrong sold"
    assert came(TRAP, sell(worth_wei=1)) == "wrong sold"


def test_one_sell_does_not_decide_what_a_round_trip_costs() -> None:
    assert (HIGH.code, HEAVY.code) == ("high_fees", "heavy_fees")
    assert came(HIGH, sell()) == "undecided one_leg"
    assert came(HIGH, sell(max(HIGH.sizes_raw), cost=POLICY.danger_loss_bps)) == "wrong cost"
    assert came(HEAVY, sell(max(HEAVY.sizes_raw), cost=9000)) == "undecided one_leg"
    assert came(HEAVY) == "undecided no_sell"


def test_what_cannot_be_bought_is_contradicted_by_buys_and_by_them_alone() -> None:
    assert came(PAUSED, sell()) == "undecided no_sell"
    assert came(PAUSED, sell(buys=True)) == "wrong bought"
    assert came(PAUSED, sell(buys=True, worth_wei=None)) == "undecided no_sell"
    assert came(PAUSED, sell(buys=True, worth_wei=2 * 10**17 + 1)) == "undecided no_sell"
    assert came(PAUSED, sell(buys=True, new_place=True)) == "undecided no_sell"


def test_a_place_that_was_opened_later_does_not_contradict_that_there_was_none() -> None:
    assert came(NO_POOL, sell()) == "wrong traded"
    assert came(NO_POOL, sell(buys=True)) == "wrong traded"
    assert came(NO_POOL, sell(new_place=True)) == "undecided no_sell"


def test_who_said_nothing_is_never_right_nor_wrong() -> None:
    silent = derive_claim(made.evidence(made.venue()), "unproven", "unknown", POLICY)
    assert silent is not None
    assert came(silent, sell(), sell(buys=True)) == "undecided silent"


# --- of all ----------------------------------------------------------------------------------------

SAIDS = st.sampled_from((OK, TRAP, HIGH, HEAVY, PAUSED, NO_POOL))
REALS = st.builds(
    lambda buys, after_s, raw, worth, cost, held, new: RealTrade(
        buys, made.POOL, 100 + after_s, START_S + after_s, TX, WALLET, raw, worth, cost, held, new
    ),
    st.booleans(),
    st.integers(-10, DAY_S + 10),
    st.sampled_from((1, BOUGHT // 3, BOUGHT // 2, BOUGHT, 2 * BOUGHT, 5 * BOUGHT)),
    st.sampled_from((None, 1, 10**15, 10**17, 10**18)),
    st.sampled_from((None, -100, 60, 1499, 1500, 4999, 5000, 10_000)),
    st.booleans(),
    st.booleans(),
)
ANY = st.lists(REALS, max_size=6).map(lambda found: sorted(found, key=lambda one: one.at_s))


@given(SAIDS, ANY)
def test_what_does_not_fit_changes_nothing(spoken: VerdictClaim, reals: list[RealTrade]) -> None:
    fits = [
        one
        for one in reals
        if spoken.from_s <= one.at_s <= spoken.until_s
        and (
            spoken.fits(one.token_raw)
            if spoken.sizes_raw
            else one.worth_wei is not None and spoken.fits(one.worth_wei)
        )
    ]
    assert score_claim(spoken, reals) == score_claim(spoken, fits)


@given(SAIDS, ANY)
def test_nothing_is_right_without_a_cheap_sell_and_every_score_has_a_sentence(
    spoken: VerdictClaim, reals: list[RealTrade]
) -> None:
    score = score_claim(spoken, reals)
    assert (score.outcome, score.cause) in WHY
    if score.outcome == "right":
        assert spoken.claim == "sells"
        (by,) = {one.cost_bps for one in reals if one.block_number == score.block_number} & {score.cost_bps}
        assert by is not None
        assert by < POLICY.warn_loss_bps


@given(SAIDS, ANY, ANY)
def test_more_trades_never_make_a_mistake_good(
    spoken: VerdictClaim, reals: list[RealTrade], more: list[RealTrade]
) -> None:
    if score_claim(spoken, reals).outcome == "wrong":
        both = sorted([*reals, *more], key=lambda one: one.at_s)
        assert score_claim(spoken, both).outcome == "wrong"


@given(ANY)
def test_nobody_s_trades_make_a_trap_right(reals: list[RealTrade]) -> None:
    assert score_claim(TRAP, reals).outcome != "right"


# --- figures ---------------------------------------------------------------------------------------


def test_a_cost_is_against_the_price_before_and_rounded_up() -> None:
    assert cost_bps(1000, 994, Fraction(1)) == 60
    assert cost_bps(1000, 1000, Fraction(1)) == 0
    assert cost_bps(10**6, 10**6 - 1, Fraction(1)) == 1
    assert cost_bps(1000, 1010, Fraction(1)) == -100
    assert cost_bps(1000, 0, Fraction(1, 3)) == 10_000
    # A price that ran through an empty pool: no column holds what the sell "gained".
    assert cost_bps(1000, 10**30, Fraction(1, 10**30)) == -10_000
    assert cost_bps(1000, 1, None) is None
    assert cost_bps(0, 1, Fraction(1)) is None


@given(st.integers(1, 10**30), st.integers(0, 10**30), st.integers(1, 10**20), st.integers(1, 10**20))
def test_a_cost_is_never_less_than_the_truth(sold: int, got: int, over: int, under: int) -> None:
    price = Fraction(over, under)
    cost = cost_bps(sold, got, price)
    assert cost is not None
    truth = (1 - got / (sold * price)) * 10_000
    truth = max(truth, Fraction(-10_000))
    assert truth <= cost < truth + 1


def test_a_tax_is_what_did_not_arrive() -> None:
    assert tax_bps(1000, 1000) == 0
    assert tax_bps(1000, 900) == 1000
    assert tax_bps(10**6, 10**6 - 1) == 1


def test_a_sentence_names_the_cost_that_decided() -> None:
    score = score_claim(OK, [sell(cost=1234)])
    assert sentence(score).endswith("That sell lost 12.34 % against the price before it.")
    # What brought more lost nothing, and is not said to have lost less than nothing.
    gained = score_claim(TRAP, [sell(cost=-300)])
    assert sentence(gained).endswith("That sell paid more than the price before it.")
