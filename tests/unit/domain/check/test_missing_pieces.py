"""A missing piece makes a verdict unproven exactly when some value of it would change the code.

Held against filling the gaps: many times at random, without knowing how the judge tries values.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from types import FrameType

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.evidence import Evidence, ProbeCell, RefusedCall, VenueEvidence
from roundtrip.domain.check.sales import Sale
from roundtrip.domain.check.venue_reading import read_venue
from roundtrip.domain.check.verdict import judge
from unit.domain.builders import (
    ITS_OWN,
    LIQUID,
    MAIN_CELLS,
    NO_MONEY,
    NODE,
    TOKEN_FACTS,
    bought,
    buys,
    cells,
    evidence,
    keep_of,
    no_trade,
    partial_buys,
    refused_buys,
    refused_cells,
    small_buy,
    sold,
    venue,
)
from unit.domain.completions import World, filled, losses_seen, some_evidence

Seeds = st.integers(0, 10**9)
_FILLINGS = 40
_WITNESSES = 4000


def code(found: Evidence) -> str:
    return judge(found, POLICY).verdict.code


# --- a proven code survives every filling ---------------------------------------------------------


def counterexample(seed: int, venues: int, world: World) -> Evidence | None:
    """A filling of random gaps that changes a code which the judge calls proven."""
    rng = Random(seed)
    gappy = some_evidence(rng, venues, 3, world)
    proven = code(gappy)
    assume(proven != "unproven")
    wide = World(world.hostile, losses_seen(gappy))
    fillings = (filled(rng, gappy, wide) for _ in range(_FILLINGS))
    return next((full for full in fillings if code(full) != proven), None)


@pytest.mark.parametrize("hostile", [False, True], ids=["honest", "hostile"])
@pytest.mark.parametrize("venues", [1, 3])
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(seed=Seeds)
def test_a_proven_code_survives_every_filling(hostile: bool, venues: int, seed: int) -> None:
    assert counterexample(seed, venues, World(hostile)) is None


# --- an unproven code has two fillings that differ ------------------------------------------------


def told_in_part(gappy: Evidence) -> bool:
    """True where one figure hangs on another that is lost, and the judge varies the two apart, so that it
    tries values which no filling gives. It is then too careful, never too bold.

    A hook's keep is part of what a small round trip loses: that is lost or was refused.
    """
    for one in gappy.venues:
        reading = read_venue(one, POLICY, gappy.launch)
        hooked = reading.status == "bought" and one.venue.keeps_by_hook()
        if hooked and not isinstance(reading.fees_bps, int):
            return True
    return False


def only_code(seed: int, venues: int) -> str | None:
    """The one code that every filling gives though the judge calls the evidence unproven."""
    rng = Random(seed)
    gappy = some_evidence(rng, venues, 3, World())
    assume(code(gappy) == "unproven" and not told_in_part(gappy))
    wide = World(True, losses_seen(gappy))
    seen: set[str] = set()
    for _ in range(_WITNESSES):
        seen.add(code(filled(rng, gappy, wide)))
        # Unproven though nothing is missing any more: the token itself keeps a figure from being told.
        if len(seen) > 1 or "unproven" in seen:
            return None
    return seen.pop()


@pytest.mark.parametrize("venues", [1, 3])
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(seed=Seeds)
def test_an_unproven_code_has_two_fillings_that_differ(venues: int, seed: int) -> None:
    assert only_code(seed, venues) is None


# --- the smallest cases of what the searches found ------------------------------------------------


def test_a_lost_half_sell_beside_a_ruinous_sell_handed_on_is_unproven() -> None:
    gappy = evidence(venue(refused_cells(hour=sold(60), half=NODE, handed_on=sold(7000))))
    whole = evidence(venue(refused_cells(hour=sold(60), half=sold(60, 5000), handed_on=sold(7000))))
    assert code(gappy) in ("unproven", code(whole))


def test_a_lost_smallest_buy_does_not_decide_between_cannot_buy_and_empty_pool() -> None:
    no = RefusedCall("buy", "max buy", 50_000)
    gappy = evidence(no_trade(LIQUID, buys(no, no, no, NODE)))
    whole = evidence(no_trade(LIQUID, buys(no, no, no, small_buy())))
    assert code(gappy) in ("unproven", code(whole))


def test_one_lost_environment_cannot_make_a_venue_better_than_the_other_showed() -> None:
    # The second venue lost 1.00 % in the environment that is known, so it never beats the first one's
    # 0.60 %: whatever the other environment shows, the first decides.
    assert code(evidence(venue(), venue(cells(100, full_again=NODE), impact_bps=2000))) == "ok"


def test_a_venue_that_refused_every_buy_cannot_win_though_its_state_is_lost() -> None:
    assert code(evidence(no_trade(NODE, refused_buys()), venue())) == "ok"


def test_a_venue_that_filled_only_parts_is_empty_though_its_state_is_lost() -> None:
    assert code(evidence(no_trade(NODE, partial_buys()), venue())) == "ok"


def test_a_lost_sell_handed_on_does_not_matter_where_half_of_it_sold() -> None:
    assert code(evidence(venue(refused_cells(half=sold(60, 5000), handed_on=NODE)))) == "ok"


def test_one_lost_sell_is_not_both_the_best_and_the_worst_of_a_venue() -> None:
    known = venue(refused_cells(half=sold(400, 5000)))
    other = venue(refused_cells(day=NODE, fees=sold(60)))
    # The other venue wins only where its sell in a day loses less than 4 %, and is ok there too.
    assert code(evidence(known, other)) == "ok"


@contextmanager
def processor_seconds(most: float) -> Iterator[None]:
    """Raises once the process has computed for this long."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {most} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def a_venue_with_many_figures(number: int) -> VenueEvidence:
    loss = 200 + number * 170
    outcomes = {n: sold(loss + 3 * at, share) for at, (n, (_, share, _, _)) in enumerate(MAIN_CELLS.items())}
    return venue(cells(**outcomes, fees=sold(loss + 21)), impact_bps=loss + 24)


def test_a_lost_second_trip_of_eight_venues_is_judged_at_once() -> None:
    lost = venue(cells(**dict.fromkeys((*MAIN_CELLS, "fees"), NODE)))
    with processor_seconds(1.0):
        assert code(evidence(*[lost] * 8)) == "unproven"


def test_one_lost_venue_beside_seven_known_ones_is_judged_at_once() -> None:
    known = [a_venue_with_many_figures(number) for number in range(7)]
    with processor_seconds(0.5):
        assert code(evidence(*known, no_trade(LIQUID, buys(NODE, NODE, NODE, NODE)))) == "unproven"


# --- plain cases, by hand ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hour", "day", "fees", "full"])
def test_a_lost_sell_that_might_be_ruinous_makes_the_only_venue_unproven(name: str) -> None:
    outcomes = {name: NODE, "full_again": NODE} if name == "full" else {name: NODE}
    assert code(evidence(venue(cells(**outcomes)))) == "unproven"


@pytest.mark.parametrize("name", ["half", "sliver", "handed_on"])
def test_a_lost_sell_that_no_code_reads_leaves_the_verdict_proven(name: str) -> None:
    assert code(evidence(venue(cells(**{name: NODE})))) == "ok"


def test_a_lost_larger_round_trip_leaves_the_verdict_proven() -> None:
    found = venue()
    large = ProbeCell(replace(found.cells[0].probe, size="large"), NODE)
    assert code(evidence(replace(found, cells=(*found.cells, large)))) == "ok"


def test_what_the_token_said_when_asked_directly_is_never_needed_for_a_code() -> None:
    assert code(evidence(venue(told_on_buy=NODE, told_on_sell=NODE))) == "ok"


def test_a_refusal_in_one_environment_is_proven_though_the_other_is_lost() -> None:
    found = judge(evidence(venue(refused_cells(full=NODE))), POLICY)
    assert found.verdict.code == "cannot_sell"
    assert found.missing is None


def test_lost_cells_of_a_venue_that_cannot_win_leave_the_verdict_proven() -> None:
    # No cell of the other venue that is lost can bring its known 10 % below the first one's 0.60 %.
    assert code(evidence(venue(), venue(cells(1000, hour=NODE, day=NODE)))) == "ok"


def test_a_lost_venue_beside_a_good_one_is_unproven() -> None:
    lost = no_trade(LIQUID, buys(NODE, NODE, NODE, NODE))
    assert code(evidence(venue(), lost)) == "unproven"


def test_a_lost_probe_buy_is_not_passed_over_for_a_smaller_one_that_filled() -> None:
    assert code(evidence(no_trade(LIQUID, buys(probe=NODE)))) == "unproven"


@pytest.mark.parametrize("name", ["code_bytes", "balance_answers", "total_supply_raw"])
def test_a_lost_fact_that_makes_it_a_token_makes_the_verdict_unproven(name: str) -> None:
    facts = replace(TOKEN_FACTS, **{name: NODE})
    assert code(evidence(venue(), facts=facts)) == "unproven"


@pytest.mark.parametrize("name", ["name_data", "symbol_data", "decimals", "owner", "proxy_admin"])
def test_a_lost_fact_that_no_code_reads_leaves_the_verdict_proven(name: str) -> None:
    facts = replace(TOKEN_FACTS, **{name: NODE})
    assert code(evidence(venue(), facts=facts)) == "ok"


@pytest.mark.parametrize("supply_raw", [0, 10**24])
def test_a_supply_of_nothing_is_an_answer(supply_raw: int) -> None:
    """Else a gap that decides nothing would hide the trap of a token that reports no supply."""
    facts = replace(TOKEN_FACTS, total_supply_raw=supply_raw)
    assert code(evidence(venue(refused_cells(fees=NODE)), facts=facts)) == "cannot_sell"


def test_nothing_else_matters_where_there_is_no_code() -> None:
    facts = replace(TOKEN_FACTS, code_bytes=0, balance_answers=NODE, total_supply_raw=NODE)
    assert code(evidence(venue(cells(hour=NODE)), facts=facts)) == "no_contract"


def test_a_contract_that_tells_no_balance_is_no_token_whatever_its_supply_is() -> None:
    facts = replace(TOKEN_FACTS, balance_answers=False, total_supply_raw=NODE)
    assert code(evidence(facts=facts)) == "not_a_token"


def test_a_quote_asset_needs_no_venue() -> None:
    found = replace(evidence(venue(cells(hour=NODE))), role="weth")
    assert code(found) == "quote_asset"


def test_the_piece_that_is_named_is_one_that_decides() -> None:
    # The first venue's lost sliver changes nothing: what keeps the verdict open is the node's fault.
    found = judge(evidence(venue(cells(1600, sliver=ITS_OWN)), venue(cells(30, day=NODE))), POLICY)
    assert found.verdict.code == "unproven"
    assert found.missing == NODE


def test_a_proven_verdict_speaks_of_what_was_seen() -> None:
    # The second venue might win, with the same code; what is said must hold of a venue that was seen.
    lost = venue(cells(100, full=NODE, full_again=NODE))
    text = judge(evidence(venue(), replace(lost, cells=lost.cells)), POLICY).verdict.text
    assert "cannot sell" not in text


def test_the_default_venue_of_these_tests_is_whole() -> None:
    found = read_venue(venue(), POLICY)
    assert found.pool_fee_bps == keep_of(3000) == 60
    assert found.full == Sale(60, 10_000, True)
    assert bought().received_raw > 0
    assert NO_MONEY.step == "sell"
