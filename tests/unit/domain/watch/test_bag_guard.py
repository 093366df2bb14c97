"""What holders are told: how much sold or drained is enough, and when a verdict has changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.market.signals import Turnover
from roundtrip.domain.watch.bag_guard import (
    GUARD,
    UNCHECKED,
    BagHolding,
    BagStanding,
    KnownVerdict,
    PoolMoney,
    StoredLevel,
    VerdictTurn,
    apply_checks,
    choose_checks,
    drains_much,
    find_bought,
    find_newcomers,
    fold_drained,
    guard_source_id,
    initial_standing,
    judge_newcomer,
    known_until,
    order_checks,
    pool_matters,
    sells_much,
)
from roundtrip.domain.watch.rules import Happening

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR_S = GUARD.recovery_wait_s
SUPPLY = 10**27
PART = SUPPLY // 1000


def seen(level: str, at_s: float, **more: object) -> StoredLevel:
    found = StoredLevel(
        int(at_s * 10) + 10, START + timedelta(seconds=at_s), level, f"{level}_code", "v1", True
    )
    return replace(found, **more)  # type: ignore[arg-type]


def known(level: str = "ok") -> BagStanding:
    found = initial_standing(seen(level, 0))
    assert found is not None
    return found


def turned_levels(*checks: StoredLevel, level: str = "ok") -> list[tuple[str, str]]:
    _, turned = apply_checks(known(level), checks)
    return [(one.then_level, one.now.level) for one in turned]


@pytest.mark.parametrize(
    ("before", "sold", "is_told"),
    [(0, PART - 1, False), (0, PART, True), (PART - 1, 1, True), (PART, 1, False), (PART, 5 * PART, True),
     (PART // 2, PART // 2, True), (0, 0, False)],
)  # fmt: skip
def test_a_deployers_sale_is_told_whenever_all_he_sold_passes_a_thousandth(
    before: int, sold: int, is_told: bool
) -> None:
    assert sells_much(before, sold, SUPPLY) is is_told


@given(st.lists(st.integers(1, PART * 3), max_size=40))
def test_however_he_parts_his_sale_every_thousandth_is_told(parts: list[int]) -> None:
    sold, times = 0, 0
    for part in parts:
        times += sells_much(sold, part, SUPPLY)
        sold += part
    assert times <= sold // PART <= sum(part // PART + 1 for part in parts)
    assert times == len({total // PART for total in (sum(parts[:n]) for n in range(len(parts) + 1))}) - 1


def test_where_the_supply_is_not_known_every_sale_is_told() -> None:
    assert sells_much(10, 1, None)
    assert not sells_much(10, 0, 0)


def removal(part_raw: int | None, whole_raw: int | None, wei: int | None) -> Happening:
    spot = Spot(1, 1, 1, TxHash("0x" + "dd" * 32))
    who, token = (Address(f"0x{number:040x}") for number in (1, 2))
    return Happening("draining", spot, who, token, wei, None, part_raw, whole_raw)


@pytest.mark.parametrize(("slice_bps", "alerts"), [(490, 19), (100, 19), (1000, 29), (9900, 1)])
def test_many_small_removals_alert_as_often_as_they_pass_a_twentieth(slice_bps: int, alerts: int) -> None:
    """A pool of ten eth, of which 99 % leave; each slice is a share of what is left."""
    left_raw, before_raw, told = 10**19, 0, 0
    while left_raw > 10**17:
        part_raw = left_raw * slice_bps // 10_000
        told += drains_much(removal(part_raw, left_raw, part_raw), before_raw)
        left_raw, before_raw = left_raw - part_raw, before_raw + part_raw
    assert told == alerts


def test_what_is_large_by_itself_alerts_whatever_went_before() -> None:
    eth = 10**18
    for before_raw in (0, 1000, 10**30):
        assert drains_much(removal(40, 100, eth), before_raw)
        assert drains_much(removal(5, 100, eth), before_raw)


def test_where_the_share_is_not_known_another_eth_alerts() -> None:
    half = removal(500, None, GUARD.drained_wei // 2)
    assert [drains_much(half, before_raw) for before_raw in (0, 500, 1000, 1500)] == [
        False,
        True,
        False,
        True,
    ]
    assert not drains_much(removal(None, None, None), 10**30)


def test_little_money_alerts_nobody_however_it_is_parted() -> None:
    least_wei = GUARD.least_drained_wei
    assert not drains_much(removal(60, 100, least_wei // 2 - 1), 60)
    assert drains_much(removal(60, 100, least_wei // 2), 60)


def test_dust_out_of_range_hides_no_removal_of_money() -> None:
    """The share of the liquidity is made small by what costs nothing; that of the money is not."""
    eth = 10**18
    assert not drains_much(removal(1, 10**6, eth))
    assert drains_much(removal(1, 10**6, eth), 0, 20 * eth)
    assert not drains_much(removal(1, 10**6, eth), 0, 20 * eth + 1)
    assert not drains_much(removal(1, 10**6, GUARD.least_drained_wei - 1), 0, 1)


def test_slices_of_a_pools_money_alert_as_they_pass_a_twentieth() -> None:
    eth = 10**18
    told = [
        drains_much(removal(1, 10**6, eth // 10), before_raw, 10 * eth - before_raw * eth // 10)
        for before_raw in range(50)
    ]
    assert sum(told) == 10


CHANGES = st.lists(
    st.tuples(st.integers(0, 4), st.booleans(), st.integers(-(10**30), 10**30)), min_size=1, max_size=30
)


@given(CHANGES, st.integers(0, 20))
def test_how_far_a_part_had_fallen_is_what_a_walk_through_each_window_finds(
    moves: list[tuple[int, bool, int]], within_s: int
) -> None:
    changes = list[tuple[int, bool, int]]()
    at_s = 0
    for waited_s, begins, raw in moves:
        at_s += waited_s if begins else 0
        changes.append((at_s, begins or not changes, raw))
    expected = list[int]()
    for nth, (now_s, _, _) in enumerate(changes):
        own = max(i for i in range(nth + 1) if changes[i][1])
        starts = [i for i in range(own + 1) if changes[i][1] and changes[i][0] >= now_s - within_s]
        parts = [sum(raw for _, _, raw in changes[:i]) for i in starts]
        expected.append(max(parts) - parts[-1])
    assert list(fold_drained(changes, within_s)) == expected


def test_one_check_is_not_believed_and_a_second_one_after_ten_seconds_is() -> None:
    assert turned_levels(seen("danger", 1)) == []
    assert turned_levels(seen("danger", 1), seen("danger", 10.9)) == []
    assert turned_levels(seen("danger", 1), seen("danger", 11)) == [("ok", "danger")]
    assert turned_levels(seen("danger", 1), seen("danger", 5), seen("danger", 11)) == [("ok", "danger")]


def test_what_comes_and_goes_before_a_second_check_is_not_told() -> None:
    assert turned_levels(seen("danger", 1), seen("ok", 20), seen("danger", 40)) == []


def test_two_checks_that_differ_both_say_at_least_the_milder() -> None:
    assert turned_levels(seen("danger", 1), seen("warn", 20)) == [("ok", "warn")]
    assert turned_levels(seen("warn", 1), seen("danger", 20)) == [("ok", "warn")]
    assert turned_levels(seen("ok", 1), seen("warn", 20), level="danger") == [("danger", "warn")]


def test_what_could_not_be_found_out_changes_nothing() -> None:
    unknown = seen("unknown", 20)
    assert turned_levels(unknown, seen("unknown", 40)) == []
    assert turned_levels(unknown, seen("unknown", 40), level="danger") == []
    assert turned_levels(seen("danger", 1), unknown) == []
    assert turned_levels(seen("danger", 1), unknown, seen("danger", 40)) == [("ok", "danger")]
    assert initial_standing(unknown) is None


def test_that_it_is_better_is_told_an_hour_after_the_last_word_and_worse_at_once() -> None:
    worse = [seen("danger", 1), seen("danger", 11)]
    better = [seen("ok", 100), seen("ok", 200), seen("ok", HOUR_S)]
    assert turned_levels(*worse, *better) == [("ok", "danger")]
    at_last = [*worse, *better, seen("ok", HOUR_S + 11)]
    assert turned_levels(*at_last) == [("ok", "danger"), ("danger", "ok")]
    again = [seen("danger", HOUR_S + 30), seen("danger", HOUR_S + 45)]
    assert turned_levels(*at_last, *again) == [("ok", "danger"), ("danger", "ok"), ("ok", "danger")]
    step = [seen("warn", 1), seen("warn", 11), seen("danger", 20), seen("danger", 30)]
    assert turned_levels(*step) == [("ok", "warn"), ("warn", "danger")]


def test_a_token_that_flaps_is_told_of_three_times_an_hour_at_most() -> None:
    checks = [seen(("ok", "danger", "warn")[n // 3 % 3], 15 * n) for n in range(4 * 240)]
    _, turned = apply_checks(known(), checks)
    for one in turned:
        within = [o for o in turned if timedelta(0) <= o.now.at - one.now.at < timedelta(seconds=HOUR_S)]
        assert len(within) <= 3
    assert len(turned) > 3


def test_another_policy_is_no_change_of_the_token() -> None:
    other = [seen("danger", at_s, policy_version="v2") for at_s in (1, 20, 40)]
    standing, turned = apply_checks(known(), other)
    assert turned == []
    assert (standing.level, standing.policy_version) == ("danger", "v2")


def test_a_check_that_asks_less_takes_nothing_back_but_may_find_worse() -> None:
    shallow = [seen("ok", at_s, deep=False) for at_s in (1, 20)]
    assert turned_levels(*shallow, level="danger") == []
    bad = [seen("danger", at_s, deep=False) for at_s in (1, 20)]
    assert turned_levels(*bad) == [("ok", "danger")]
    # Nor does one cancel a finding that waits; a deep one does.
    between = [seen("ok", at_s, deep=False) for at_s in (5, 15)]
    assert turned_levels(seen("danger", 1), *between, seen("danger", 20)) == [("ok", "danger")]
    assert turned_levels(seen("danger", 1), seen("ok", 15), seen("danger", 20)) == []
    assert turned_levels(seen("danger", 1), *between, level="warn") == []


@pytest.mark.parametrize("ahead_s", [3600, 86_400])
def test_a_clock_that_was_put_back_keeps_nobody_from_being_told(ahead_s: int) -> None:
    """The first of the two was made while it was ahead."""
    first = replace(seen("danger", 1), at=START + timedelta(seconds=ahead_s))
    assert turned_levels(first, seen("danger", 2), seen("danger", 5)) == []
    assert turned_levels(first, seen("danger", 2), seen("danger", 2 + GUARD.confirmed_s)) == [
        ("ok", "danger")
    ]


def test_what_was_told_names_both_codes() -> None:
    standing, turned = apply_checks(known(), [seen("danger", 1), last := seen("danger", 20)])
    assert turned == [VerdictTurn("ok", "ok_code", last)]
    assert (standing.level, standing.code, standing.seen_id) == ("danger", "danger_code", last.id)
    assert (standing.next_level, standing.next_at, standing.told_at) == (None, None, last.at)


LEVELS = st.sampled_from(["ok", "warn", "danger", "unknown"])


@given(st.lists(st.tuples(LEVELS, st.integers(1, 2000), st.booleans()), max_size=60), st.integers(0, 60))
def test_it_does_not_matter_in_how_many_runs_checks_are_looked_at(
    given_checks: list[tuple[str, int, bool]], cut: int
) -> None:
    at_s, checks = 0, []
    for level, wait_s, deep in given_checks:
        at_s += wait_s
        checks.append(seen(level, at_s, deep=deep))
    at_once = apply_checks(known(), checks)
    standing, first = apply_checks(known(), checks[:cut])
    end, second = apply_checks(standing, checks[cut:])
    assert (end, first + second) == at_once
    for one in at_once[1]:
        assert one.then_level != one.now.level
        assert one.now.level != "unknown"


# --- which pools matter, and what is checked first --------------------------------------------------

ETH = 10**18


def place(wei: int | None, trades: int = 0, traded_wei: int = 0) -> PoolMoney:
    return PoolMoney(Turnover(trades, traded_wei), wei)


@pytest.mark.parametrize(
    ("own", "others", "it_does"),
    [
        (place(2 * ETH), [place(8 * ETH)], True),
        (place(2 * ETH - 1), [place(8 * ETH)], False),
        (place(10**9), [], True),
        # A tenth of the trade: it is where the token is sold, whatever lies in it.
        (place(None, 3, ETH), [place(50 * ETH, 9, 9 * ETH)], True),
        (place(None, 3, ETH - 1), [place(50 * ETH, 9, 9 * ETH)], False),
        # Of the pool that is traded in nobody knows the money: a stranger's, which is known, is not all.
        (place(ETH), [place(None, 5, ETH)], False),
        (place(ETH), [place(None)], True),
        (place(None), [], True),
        (place(None), [place(ETH)], True),
    ],
)
def test_a_pool_matters_by_its_trade_or_by_its_money(
    own: PoolMoney, others: list[PoolMoney], it_does: bool
) -> None:
    assert pool_matters(own, [own, *others]) is it_does


def test_sales_and_drains_of_a_token_count_apart() -> None:
    assert len({guard_source_id(number, verb) for number in (1, 2) for verb in ("selling", "draining")}) == 4


def a_token(number: int) -> Address:
    return Address(f"0x{number:040x}")


def test_accounts_take_turns_and_what_was_given_comes_last() -> None:
    many, few, bare = ([a_token(100 * account + n) for n in range(20)] for account in (1, 2, 3))
    held = [BagHolding(1, token, False) for token in many]
    held += [BagHolding(2, few[0], False), BagHolding(2, few[1], True), BagHolding(3, bare[0], True)]
    checked = {token: START + timedelta(seconds=place) for place, token in enumerate([*many[1:], *few])}
    found = order_checks(held, [*many, few[0], few[1], bare[0]], checked, [many[19]])
    # The one that waits for another check; of each the one that was never checked, or longest ago.
    assert found[:3] == [many[19], few[0], many[0]]
    assert found[3:-2] == many[1:19]
    assert set(found[-2:]) == {bare[0], few[1]}


def test_what_somebody_bought_is_no_gift() -> None:
    one, other = a_token(1), a_token(2)
    held = [BagHolding(1, one, True), BagHolding(2, one, False), BagHolding(3, other, True)]
    assert order_checks(held, [other, one], {}, []) == [one, other]


def test_a_danger_of_a_first_check_after_a_buy_is_news() -> None:
    (then_level, then_code, danger), *rest = change_levels("danger", is_news=True)
    assert (then_level, then_code, danger, rest) == ("ok", UNCHECKED, "danger", [])
    assert change_levels("warn", is_news=True) == change_levels("danger", is_news=False) == []


def change_levels(level: str, is_news: bool) -> list[tuple[str, str, str]]:
    """The changes after two checks of a level that are the first of a token."""
    checks = [seen(level, 0), seen(level, 20)]
    standing = initial_standing(checks[0], is_news)
    assert standing is not None
    _, changes = apply_checks(standing, checks)
    return [(change.then_level, change.then_code, change.now.level) for change in changes]


def test_what_was_traded_within_five_minutes_was_bought_lately() -> None:
    now = START + timedelta(seconds=1000)
    lately, before = now - timedelta(seconds=300), now - timedelta(seconds=301)
    a, b, c = (Address(f"0x{n:040x}") for n in range(3))
    holdings = [BagHolding(1, a, False, before), BagHolding(2, b, False, lately), BagHolding(1, c, True)]
    assert find_bought(holdings, now) == {b}


def test_holders_know_the_checks_until_the_first_of_them_traded_but_not_for_long() -> None:
    fresh, old, given, watched = (Address("0x" + f"{number:040x}") for number in range(4))
    held = [
        BagHolding(1, fresh, False, START - timedelta(seconds=10)),
        BagHolding(2, fresh, False, START - timedelta(seconds=20)),
        BagHolding(1, old, False, START - timedelta(seconds=86_400)),
        BagHolding(1, given, True),
        BagHolding(2, given, False, START - timedelta(seconds=5)),
        BagHolding(1, watched, True),
    ]
    ages_s = {token: (START - until).total_seconds() for token, until in known_until(held, START).items()}
    assert ages_s == {fresh: 20, old: GUARD.newcomer_s, given: 5, watched: 0}


def test_tokens_that_wait_for_confirmation_take_half_of_the_room_where_others_are_due() -> None:
    waiting, others = ([Address("0x" + f"{n:040x}") for n in range(start, start + 12)] for start in (1, 100))
    assert choose_checks([*waiting, *others], waiting, 8) == [*waiting[:4], *others[:4]]
    assert choose_checks([*waiting, *others[:2]], waiting, 8) == [*waiting[:6], *others[:2]]
    assert choose_checks(waiting, waiting, 8) == waiting[:8]
    assert choose_checks(others, (), 8) == others[:8]
    assert choose_checks([*waiting[:1], *others], waiting, 1) == waiting[:1]


@pytest.mark.parametrize(("level", "waits", "is_worse"), [("ok", "warn", True), ("danger", "ok", False)])
def test_only_a_worse_finding_is_confirmed_in_haste(level: str, waits: str, is_worse: bool) -> None:
    assert replace(known(level), next_level=waits).awaits_worse() is is_worse
    assert not known(level).awaits_worse()


def test_newcomers_traded_or_began_to_watch_lately_a_token_whose_standing_is_bad() -> None:
    good, bad, other = (Address("0x" + f"{number:040x}") for number in range(3))
    bought = BagHolding(1, bad, False, START - timedelta(seconds=30))
    held = [
        bought,
        BagHolding(1, bad, True, START - timedelta(seconds=60)),
        BagHolding(2, bad, True, START - timedelta(seconds=HOUR_S)),
        BagHolding(3, bad, False, START - timedelta(seconds=HOUR_S + 1)),
        BagHolding(4, bad, True),
        BagHolding(1, good, False, START),
        BagHolding(1, other, False, START),
    ]
    standings = {good: known("ok"), bad: known("danger")}
    assert find_newcomers(held, standings, START) == [bought, held[2]]
    # Whoever came since the others were told knows none of it, however long ago that is.
    told_at = START - timedelta(seconds=HOUR_S + 1)
    standings[bad] = replace(known("danger"), told_at=told_at)
    assert find_newcomers(held, standings, START) == [bought, held[2], held[3]]


@pytest.mark.parametrize(
    ("checks", "levels"),
    [
        ([seen("danger", 0), seen("ok", 20), seen("danger", 40), seen("danger", 51)], ("ok", "danger")),
        ([seen("danger", 0), seen("ok", 20), seen("danger", 40), seen("danger", 45)], None),
        ([seen("ok", 0), seen("danger", 20), seen("danger", 40)], None),
        ([seen("danger", 40), seen("ok", 60), seen("ok", 80)], None),
        ([seen("danger", 40), seen("danger", 60)], ("ok", "danger")),
        ([seen("danger", 40), seen("danger", 45)], None),
        ([seen("warn", 40), seen("warn", 60)], None),
        ([seen("ok", 40), seen("unknown", 45), seen("warn", 50), seen("warn", 60)], ("ok", "warn")),
        ([seen("unknown", 0)], None),
        ([], None),
    ],
)
def test_a_newcomer_is_told_what_turned_since_the_check_that_it_knows(
    checks: list[StoredLevel], levels: tuple[str, str] | None
) -> None:
    turn = judge_newcomer(KnownVerdict(START + timedelta(seconds=30)), checks)
    assert (None if turn is None else (turn.then_level, turn.now.level)) == levels


@pytest.mark.parametrize(
    ("told", "checks", "turned"),
    [
        ("warn", [seen("danger", 31), seen("danger", 50)], True),
        ("warn", [seen("danger", 20), seen("danger", 50)], False),
        ("warn", [seen("warn", 40), seen("warn", 60), seen("danger", 70)], False),
        ("danger", [seen("danger", 40), seen("ok", 60), seen("danger", 70), seen("danger", 90)], False),
        ("ok", [seen("danger", 40), seen("danger", 60)], True),
        ("warn", [], False),
    ],
)
def test_a_newcomer_who_was_told_a_level_is_told_of_a_worse_one(
    told: str, checks: list[StoredLevel], turned: bool
) -> None:
    """The checks since: how many went before does not count, so that it is told once."""
    known_verdict = KnownVerdict(START + timedelta(seconds=30), told)
    for more in ([], [seen("danger", at_s) for at_s in (100, 120)]):
        turn = judge_newcomer(known_verdict, [seen("ok", 0), *checks, *more])
        worse = turned or (bool(more) and told != "danger")
        expected = (told, "danger") if worse else None
        assert (None if turn is None else (turn.then_level, turn.now.level)) == expected
