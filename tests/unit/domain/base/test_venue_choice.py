"""A pool with a stranger's hook decides only where it is better by more than a margin."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import (
    CellOutcome,
    CompletedBuy,
    EnvironmentBuy,
    HookCarry,
    VenueEvidence,
)
from roundtrip.domain.check.venue_code import rank_of
from roundtrip.domain.check.venue_reading import read_venue
from roundtrip.domain.check.verdict import judge
from unit.domain.builders import cells, evidence, refused_cells, sold, venue
from unit.domain.launches import CURVE, IDLE, LAUNCHPAD_POOL, at, v4

UNTAXED = HookCarry(1, 1, 1)
HOOKED, PLAIN = 0, 1


def losing(loss_bps: int, where: Venue | None = None) -> VenueEvidence:
    return at(where or venue().venue, venue(cells(loss_bps)), carried=UNTAXED)


def best(*venues: VenueEvidence) -> int | None:
    return judge(evidence(*venues), POLICY).best


@pytest.mark.parametrize(
    ("hooked", "plain", "winner"),
    [(60, 60, PLAIN), (61, 160, PLAIN), (60, 160, PLAIN), (59, 160, HOOKED), (60, 161, HOOKED),
     (0, 100, PLAIN), (0, 101, HOOKED), (-1, 100, PLAIN), (200, 100, PLAIN)],
)  # fmt: skip
@pytest.mark.parametrize("hook", [v4(), v4(IDLE), v4(IDLE, 0x800000)], ids=["swaps", "idle", "dynamic"])
def test_a_hooked_pool_wins_only_by_more_than_a_percent(
    hook: Venue, hooked: int, plain: int, winner: int
) -> None:
    assert best(losing(hooked, hook), losing(plain)) == winner
    assert best(losing(plain), losing(hooked, hook)) == 1 - winner


@pytest.mark.parametrize("own", [LAUNCHPAD_POOL, CURVE, v4(None)], ids=["pool", "curve", "no hook"])
def test_the_launchpads_own_hook_needs_no_margin(own: Venue) -> None:
    assert best(losing(60, own), losing(61)) == 0
    assert best(losing(61), losing(60, own)) == 1


def test_of_two_hooked_pools_the_smaller_loss_decides() -> None:
    assert best(losing(61, v4()), losing(60, v4(IDLE))) == 1


def test_the_launchpads_pool_goes_before_a_rival_at_the_margin() -> None:
    assert best(losing(60, v4()), losing(160, LAUNCHPAD_POOL)) == 1


def test_the_margin_is_the_policys() -> None:
    wide = replace(POLICY, rival_hook_margin_bps=300)
    assert judge(evidence(losing(60, v4()), losing(360)), wide).best == PLAIN
    assert judge(evidence(losing(60, v4()), losing(361)), wide).best == HOOKED


def test_the_margin_holds_where_only_later_sells_count() -> None:
    def later(loss_bps: int, where: Venue) -> VenueEvidence:
        hour: dict[str, CellOutcome | None] = {"hour": sold(loss_bps), "fees": sold(0)}
        return at(where, venue(refused_cells(**hour)), carried=UNTAXED)

    plain = venue().venue
    assert best(later(60, v4()), later(160, plain)) == PLAIN
    assert best(later(60, v4()), later(161, plain)) == HOOKED


def test_a_pool_that_sells_all_goes_before_a_hookless_one_that_sells_a_part() -> None:
    part = sold(60, 9000, BPS)
    partly = venue(cells(60, full=part, full_again=part))
    assert best(losing(400, v4()), partly) == HOOKED


def test_a_rank_is_of_its_group_first() -> None:
    hooked, plain = read_venue(losing(60, v4()), POLICY), read_venue(losing(60), POLICY)
    assert rank_of(0, 60, hooked, POLICY) > rank_of(0, 160, plain, POLICY) > rank_of(0, 59, hooked, POLICY)
    assert rank_of(1, 0, plain, POLICY) > rank_of(0, 9000, hooked, POLICY)


def test_what_a_buy_brings_counts_with_what_it_loses() -> None:
    dear = replace(losing(2), buys=tuple(_a_thousandth(buy) for buy in losing(2).buys))
    assert best(losing(60), dear) == 0
    assert best(dear, losing(60)) == 1


def _a_thousandth(buy: EnvironmentBuy) -> EnvironmentBuy:
    assert isinstance(buy.outcome, CompletedBuy)
    return replace(buy, outcome=replace(buy.outcome, received_raw=buy.outcome.received_raw // 1000))


def test_a_pool_that_is_free_now_and_dear_in_an_hour_does_not_win() -> None:
    assert best(losing(200), venue(cells(0, hour=sold(7000)))) == 0


def test_the_code_is_that_of_the_pool_that_won() -> None:
    # The hook keeps 14 %, the other pool's tax is 16 %: the hooked one decides, and is a toll.
    found = judge(evidence(losing(1400, v4()), losing(1600)), POLICY)
    assert (found.verdict.code, found.best) == ("toll_pool", HOOKED)
    # By a margin of exactly one percent the other one decides.
    found = judge(evidence(losing(1500, v4()), losing(1600)), POLICY)
    assert (found.verdict.code, found.best) == ("high_fees", PLAIN)
