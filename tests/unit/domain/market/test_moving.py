"""Which tokens the board of what moves shows, holds back, and has checked."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from roundtrip.domain.base.types import AHEAD_S, Address
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check.verdict import CODES
from roundtrip.domain.market.fairness import WalletOrigin, WalletOrigins
from roundtrip.domain.market.moving import (
    CAUGHT_FOR_S,
    CHECKED_EVERY_S,
    CROWD,
    MAX_OF_A_GROUP,
    MAX_OF_A_SORT,
    PROVEN_FOR_S,
    ROWS,
    SELLS,
    SHARED_PURSE,
    CheckedLevel,
    MoneyFlow,
    TokenChecks,
    board,
    crowd,
    flows_to_check,
    flows_to_count,
    flows_with_crowd,
    group,
    group_flows,
    standing,
)

NOW_S = 1_000_000.0
DAY_S = 86_400
FROM_S = 1_760_000_000
"""When the window began, by the chain's clock."""


def flow(
    number: int, net_wei: int = 100, checked: CheckedLevel | None = None, launchpad: bool = False
) -> MoneyFlow:
    """A token that so much stayed in."""
    venue: VenueKind = "launchpad_curve" if launchpad else "amm_v3"
    launched_s = 5 if launchpad else None
    address = Address(f"0x{number:040x}")
    buyers = tuple(range(CROWD))
    sums = net_wei + 7, 7, None, 4, 1
    return MoneyFlow(number, address, launched_s, 5, venue, *sums, buyers, 1, checked, checked)


def checked(code: str = "ok", age_s: float = 60, level: str = "ok") -> CheckedLevel:
    return CheckedLevel(code, level, NOW_S - age_s)


@pytest.mark.parametrize("launchpad", [False, True])
@pytest.mark.parametrize(("left_s", "counts"), [(1, True), (0, False), (-400, False)])
def test_a_verdict_counts_until_its_snipe_tax_ends_and_is_then_due(
    launchpad: bool, left_s: int, counts: bool
) -> None:
    """Also where it was deep and worse than what a plain check says now."""
    taxed = replace(checked("heavy_fees", level="danger"), ends_s=NOW_S + left_s)
    launched = replace(flow(1, checked=taxed, launchpad=launchpad), decided=taxed)
    assert launched.checks.to_show(NOW_S) == (taxed if counts else None)
    assert group(launched, NOW_S) == ("danger" if counts else "checking")
    assert flows_to_check([launched], NOW_S) == ([] if counts else [launched])
    after = replace(launched, checked=checked("ok", age_s=1), deep=checked("ok", age_s=1))
    assert group(after, NOW_S) == ("danger" if counts else "listed")
    assert flows_to_check([after], NOW_S) == []


def wallets(
    funders: dict[int, int] | None = None, young: Iterable[int] = (), exchanges: Iterable[int] = ()
) -> WalletOrigins[int]:
    """Old ones up to number 1,000, but for these."""
    given, new = funders or {}, set(young)
    origins = {
        one: WalletOrigin(FROM_S - DAY_S + (one in new), given.get(one))
        for one in {*range(1000), *given, *new}
    }
    return WalletOrigins(origins, dict.fromkeys(exchanges, 501))


def rank_board(*flows: MoneyFlow, funders: dict[int, int] | None = None) -> tuple[list[int], int, int]:
    found = board(flows, wallets(funders), FROM_S, NOW_S)
    return [row.token_id for row in found.rows], found.unproven, found.traps


def test_codes_that_a_sell_went_through_for_are_codes() -> None:
    assert set(CODES) > SELLS
    assert SELLS.isdisjoint(
        {"cannot_sell", "cannot_buy", "unproven", "no_pool", "empty_pool", "not_a_token", "no_contract"}
    )


@pytest.mark.parametrize("code", CODES)
def test_a_pools_token_is_shown_by_a_proven_sell_only(code: str) -> None:
    expected = "shown" if code in SELLS else "trap" if code == "cannot_sell" else "unproven"
    assert standing(flow(1, checked=checked(code)), NOW_S) == expected


@pytest.mark.parametrize("code", CODES)
def test_the_launchpads_token_is_shown_unless_it_cannot_be_sold(code: str) -> None:
    assert standing(flow(1, launchpad=True), NOW_S) == "shown"
    expected = "trap" if code == "cannot_sell" else "shown"
    assert standing(flow(1, checked=checked(code), launchpad=True), NOW_S) == expected


def test_a_proof_counts_an_hour_and_a_trap_stays_one() -> None:
    for age_s, code, expected in (
        (PROVEN_FOR_S, "ok", "shown"),
        (PROVEN_FOR_S + 1, "ok", "unproven"),
        (-5, "ok", "shown"),
        (10**6, "cannot_sell", "trap"),
    ):
        assert standing(flow(1, checked=checked(code, age_s)), NOW_S) == expected
    assert standing(flow(1), NOW_S) == "unproven"


@pytest.mark.parametrize("ahead_s", [AHEAD_S + 1, 3600, 86_400])
def test_a_clock_that_was_put_back_keeps_no_proof_young(ahead_s: int) -> None:
    """It was ahead when the check was made: how long ago that is nobody knows."""
    proven = replace(flow(1, checked=checked(age_s=-ahead_s)), deep=checked(age_s=-ahead_s))
    assert standing(proven, NOW_S) == "unproven"
    assert flows_to_check([proven], NOW_S) == [proven]
    caught = replace(flow(1, checked=checked(age_s=1)), decided=checked("cannot_sell", -ahead_s))
    assert standing(caught, NOW_S) == "trap"
    lately = replace(proven, checked=checked(age_s=-AHEAD_S), deep=checked(age_s=-AHEAD_S))
    assert (standing(lately, NOW_S), flows_to_check([lately], NOW_S)) == ("shown", [])


@pytest.mark.parametrize("launchpad", [True, False])
def test_what_a_deep_check_caught_is_a_trap_whatever_plain_ones_say(launchpad: bool) -> None:
    """Anybody can ask for a plain check, which asks no holder."""
    plain, shown = checked(age_s=1), "shown"
    for age_s, expected in ((60, "trap"), (CAUGHT_FOR_S, "trap"), (CAUGHT_FOR_S + 1, shown)):
        caught = replace(flow(1, checked=plain, launchpad=launchpad), decided=checked("cannot_sell", age_s))
        assert standing(caught, NOW_S) == expected
    assert standing(replace(flow(1, checked=plain), decided=checked()), NOW_S) == shown


def test_plain_checks_keep_nothing_from_being_checked_deeply() -> None:
    asked = replace(flow(1, checked=checked(age_s=1)), deep=None)
    late = replace(asked, deep=checked(age_s=CHECKED_EVERY_S))
    lately = replace(asked, deep=checked("unproven", CHECKED_EVERY_S - 1))
    assert [flows_to_check([one], NOW_S) for one in (asked, late, lately)] == [[asked], [late], []]


def test_the_launchpads_token_in_a_strangers_pool_needs_a_proof() -> None:
    moved = replace(flow(1, launchpad=True), venue="amm_v4")
    assert not moved.is_launchpads()
    assert standing(moved, NOW_S) == "unproven"
    assert standing(replace(moved, checked=checked()), NOW_S) == "shown"


def test_most_money_comes_first_and_what_is_held_back_is_counted() -> None:
    flows = [
        flow(1, 10, checked()),
        flow(2, 30, launchpad=True),
        flow(3, 20),
        flow(4, 40, checked("cannot_sell", level="danger")),
        flow(5, 30, checked()),
        flow(6, 25, checked("unproven", level="unknown")),
    ]
    assert rank_board(*flows) == ([2, 5, 1], 2, 1)


def test_one_actor_is_no_crowd() -> None:
    assert rank_board(flow(1, launchpad=True), flow(2), funders={1: 9, 2: 9}) == ([], 0, 0)
    assert rank_board(flow(1, launchpad=True), flow(2), funders={1: 9}) == ([1], 1, 0)


MANY = tuple(range(2 * SHARED_PURSE))


def test_old_wallets_are_told_apart_by_who_funded_them() -> None:
    for buyers, funders, expected in (
        ((), {}, 0),
        ((1, 2, 3), {}, 3),
        ((1, 2, 3), {1: 9, 2: 9, 3: 9}, 1),
        ((1, 2, 3), {1: 9, 2: 8, 3: 7}, 3),
        ((1, 2, 9), {1: 9, 2: 9}, 1),
        (MANY, dict.fromkeys(MANY, 900), 1),
    ):
        assert crowd(buyers, wallets(funders), FROM_S) == expected, buyers


def test_customers_of_one_exchange_are_no_single_buyer() -> None:
    """An exchange has thousands, and a board without them would be empty."""
    funders = dict.fromkeys(MANY, 900)
    assert crowd(MANY, wallets(funders, exchanges=[900]), FROM_S) == len(MANY)
    for count, expected in ((1, 1), (2, 1), (19, 1), (20, 2)):
        young = wallets(funders, young=MANY, exchanges=[900])
        assert crowd(MANY[:count], young, FROM_S) == expected


def test_of_new_wallets_that_nobody_old_paid_ten_are_one() -> None:
    """Bridged ones, and twenty fresh ones whom twenty fresh ones paid: both cost nothing."""
    each = {one: 2000 + one for one in MANY}
    unmet: WalletOrigins[int] = WalletOrigins({}, {})
    for given in (
        wallets(young=MANY),
        wallets(each, young=[*MANY, *each.values()]),
        wallets(dict.fromkeys(MANY, 2000), young=[*MANY, 2000], exchanges=[2000]),
        unmet,
    ):
        assert [crowd(MANY[:count], given, FROM_S) for count in (1, 19, 20)] == [1, 1, 2]
    assert crowd((*MANY, 500, 501), wallets(young=MANY), FROM_S) == 4


def test_old_is_who_was_there_a_day_before_the_window() -> None:
    assert crowd((1, 2, 3), wallets(), FROM_S) == 3
    assert crowd((1, 2, 3), wallets(), FROM_S - 1) == 1


def test_the_board_ends_and_with_it_what_it_counts() -> None:
    shown = [flow(n, 1000 - n, launchpad=True) for n in range(1, ROWS + 2)]
    before, after = flow(100, 990), flow(101, 1)
    assert rank_board(*shown, before, after) == (list(range(1, ROWS + 1)), 1, 0)


def test_a_flood_of_one_sort_pushes_out_no_other() -> None:
    flood = [flow(n, 10**6) for n in range(1, 500)]
    flood += [flow(n, 10**6, checked("cannot_sell")) for n in range(500, 1000)]
    flood += [flow(n, 10**6, launchpad=True) for n in range(1000, 1500)]
    proven = flow(2000, 5, checked())
    found = flows_to_count([*flood, proven], NOW_S)
    assert proven in found
    assert len(found) == 3 * MAX_OF_A_SORT + 1


def test_what_is_shown_by_its_check_or_held_back_is_checked_every_ten_minutes() -> None:
    lately, late = CHECKED_EVERY_S - 1, CHECKED_EVERY_S
    flows = [
        flow(1, 10),
        flow(2, 20, checked(age_s=lately)),
        flow(3, 30, checked(age_s=late)),
        flow(4, 40, checked("cannot_sell", late)),
        flow(5, 50, checked("cannot_sell", lately)),
        flow(6, 60, launchpad=True),
        flow(7, 70, checked("cannot_sell", late), launchpad=True),
        flow(8, 80, checked("unproven", late), launchpad=True),
        flow(9, 15, checked("unproven", late)),
    ]
    # The launchpad's own after the others, and known traps last, however much money they have.
    assert [one.token_id for one in flows_to_check(flows, NOW_S)] == [3, 9, 1, 8, 6, 7, 4]


def test_nobody_alone_has_his_token_checked() -> None:
    flows = [flow(2), replace(flow(1), buyers=(5, 6, 7)), flow(3)]
    assert flows_with_crowd(flows, wallets({5: 6}), FROM_S) == [flows[0], flows[2]]


# --- what people are shown -------------------------------------------------------------------------


@pytest.mark.parametrize("launchpad", [True, False])
def test_people_see_no_token_listed_that_no_young_check_sold(launchpad: bool) -> None:
    for code, level, age_s, expected in (
        ("ok", "ok", 60, "listed"),
        ("ok", "warn", PROVEN_FOR_S, "listed"),
        ("ok", "ok", PROVEN_FOR_S + 1, "checking"),
        ("unproven", "unknown", 60, "checking"),
        ("cannot_buy", "warn", 60, "checking"),
        ("heavy_fees", "danger", 60, "danger"),
        ("ok", "danger", 60, "danger"),
        ("heavy_fees", "danger", PROVEN_FOR_S + 1, "checking"),
        ("cannot_sell", "danger", 10**6, "danger"),
    ):
        one = flow(1, checked=checked(code, age_s, level), launchpad=launchpad)
        assert group(replace(one, decided=None), NOW_S) == expected, (code, level, age_s)
    assert group(flow(1, launchpad=launchpad), NOW_S) == "checking"


def test_what_a_deep_check_found_worse_is_shown_for_a_day() -> None:
    plain = checked(age_s=1)
    for deep, expected in (
        (checked("high_fees", 60, "warn"), "high_fees"),
        (checked("heavy_fees", CAUGHT_FOR_S, "danger"), "heavy_fees"),
        (checked("heavy_fees", CAUGHT_FOR_S + 1, "danger"), "ok"),
        (checked("cannot_sell", 60, "danger"), "cannot_sell"),
        (None, "ok"),
    ):
        shown = TokenChecks(plain, deep).to_show(NOW_S)
        assert shown is not None
        assert shown.code == expected
    better = TokenChecks(checked("heavy_fees", 1, "danger"), checked(age_s=60)).to_show(NOW_S)
    assert better is not None
    assert better.code == "heavy_fees"
    assert (
        TokenChecks(checked(age_s=PROVEN_FOR_S + 1), checked("high_fees", 60, "warn")).to_show(NOW_S) is None
    )


def test_each_group_has_room_of_its_own_and_a_crowd_is_asked_for() -> None:
    many = [flow(number, 1000 - number, checked("cannot_sell")) for number in range(1, 40)]
    sold = flow(99, 1, checked())
    alone = replace(flow(98, 2000, checked()), buyers=(1,))
    rows = group_flows([*many, sold, alone], wallets(), FROM_S, NOW_S)
    assert [one for its_group, one in rows if its_group == "listed"] == [sold]
    assert [one for its_group, one in rows if its_group == "danger"] == many[: MAX_OF_A_GROUP["danger"]]
