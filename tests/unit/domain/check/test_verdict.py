"""Every code has evidence that gives it, and a near miss that does not."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import (
    CellOutcome,
    Evidence,
    Probe,
    ProbeCell,
    ProbeSeller,
    RefusedCall,
    Size,
    VenueEvidence,
)
from roundtrip.domain.check.verdict import CODES, Judgement, judge
from unit.domain.builders import (
    ABSENT,
    DRY,
    LIQUID,
    NO_MONEY,
    NODE,
    TOKEN_FACTS,
    buys,
    cells,
    evidence,
    fee_that_keeps,
    keeping_buys,
    no_trade,
    partial_buys,
    refused_buys,
    refused_cells,
    sold,
    venue,
)

SPECIFIED = (
    "ok, cannot_sell, cannot_buy, toll_pool, thin_pool, high_fees, heavy_fees, no_pool, empty_pool, "
    "no_contract, not_a_token, quote_asset, unproven"
)


def judged(found: Evidence) -> Judgement:
    return judge(found, POLICY)


def seen(found: Evidence) -> tuple[str, str]:
    verdict = judged(found).verdict
    return verdict.code, verdict.level


def costing(loss_bps: int) -> Evidence:
    """Sells everywhere, always at this loss."""
    return evidence(venue(cells(loss_bps)))


def thin(impact_bps: int) -> Evidence:
    return evidence(venue(impact_bps=impact_bps))


def toll(keep_bps: int, loss_bps: int = 60) -> Evidence:
    return evidence(venue(cells(loss_bps), fee_pips=fee_that_keeps(keep_bps)))


def selling_only(share_bps: int) -> Evidence:
    return evidence(venue(refused_cells(hour=sold(60, share_bps, BPS))))


def token(**changes: object) -> Evidence:
    return evidence(venue(), facts=replace(TOKEN_FACTS, **changes))  # type: ignore[arg-type]


@dataclass(frozen=True)
class CodeRow:
    code: str
    level: str
    gives: Evidence
    near_miss: Evidence
    instead: str


ROWS = (
    CodeRow("no_contract", "warn", token(code_bytes=0), token(code_bytes=1), "ok"),
    CodeRow("not_a_token", "warn", token(balance_answers=False), token(), "ok"),
    CodeRow("not_a_token", "warn", token(total_supply_raw=None), token(total_supply_raw=0), "ok"),
    CodeRow("quote_asset", "ok", replace(evidence(), role="weth"), evidence(), "no_pool"),
    CodeRow("quote_asset", "ok", replace(evidence(), role="usdg"), evidence(), "no_pool"),
    CodeRow("no_pool", "warn", evidence(), evidence(venue()), "ok"),
    CodeRow("no_pool", "warn", evidence(no_trade(ABSENT)),
        evidence(no_trade(DRY, refused_buys())), "empty_pool"),
    CodeRow("empty_pool", "warn", evidence(no_trade(DRY, refused_buys())),
        evidence(no_trade(LIQUID, refused_buys())), "cannot_buy"),
    CodeRow("empty_pool", "warn", evidence(no_trade(LIQUID, partial_buys())),
        evidence(no_trade(LIQUID, partial_buys()), no_trade(LIQUID, refused_buys())), "cannot_buy"),
    CodeRow("cannot_buy", "warn", evidence(no_trade(LIQUID, refused_buys())),
        evidence(no_trade(LIQUID, refused_buys()), venue()), "ok"),
    CodeRow("cannot_sell", "danger", evidence(venue(refused_cells())),
        evidence(venue(refused_cells()), venue()), "ok"),
    CodeRow("cannot_sell", "danger", selling_only(4999), selling_only(5000), "ok"),
    CodeRow("toll_pool", "warn", toll(1000), toll(999), "ok"),
    CodeRow("toll_pool", "warn", toll(1001), toll(999), "ok"),
    CodeRow("toll_pool", "warn", toll(800, 1500), toll(749, 1500), "high_fees"),
    CodeRow("toll_pool", "danger", toll(3000, 5000), toll(2499, 5000), "heavy_fees"),
    CodeRow("thin_pool", "warn", thin(1500), thin(1499), "ok"),
    CodeRow("thin_pool", "warn", thin(4999), thin(1499), "ok"),
    CodeRow("thin_pool", "danger", thin(5000), thin(1499), "ok"),
    CodeRow("high_fees", "warn", costing(1500), costing(1499), "ok"),
    CodeRow("high_fees", "warn", costing(1501), costing(1499), "ok"),
    CodeRow("high_fees", "warn", costing(4999), costing(5000), "heavy_fees"),
    CodeRow("heavy_fees", "danger", costing(5000), costing(4999), "high_fees"),
    CodeRow("heavy_fees", "danger", costing(5001), costing(4999), "high_fees"),
    CodeRow("ok", "ok", costing(1499), costing(1500), "high_fees"),
    CodeRow("ok", "ok", evidence(venue()), evidence(venue(refused_cells())), "cannot_sell"),
    CodeRow("unproven", "unknown", evidence(venue(cells(day=NODE))),
        evidence(venue(cells(sliver=NODE))), "ok"),
)  # fmt: skip


def name_of(value: object) -> str:
    return value.code if isinstance(value, CodeRow) else str(value)


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_the_evidence_gives_the_code(row: CodeRow) -> None:
    assert seen(row.gives) == (row.code, row.level)


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_the_near_miss_gives_another(row: CodeRow) -> None:
    assert row.instead != row.code
    assert seen(row.near_miss)[0] == row.instead


def test_every_code_is_in_the_table_and_in_the_specification() -> None:
    assert {row.code for row in ROWS} == set(CODES)
    assert ", ".join(CODES) == SPECIFIED


# --- the lines are the policy's -------------------------------------------------------------------

Line = tuple[str, Callable[[int], Evidence], int, tuple[str, str], tuple[str, str]]
LINES: tuple[Line, ...] = (
    ("fees, warn", costing, POLICY.warn_loss_bps, ("ok", "ok"), ("high_fees", "warn")),
    ("fees, danger", costing, POLICY.danger_loss_bps, ("high_fees", "warn"), ("heavy_fees", "danger")),
    ("impact, warn", thin, POLICY.warn_loss_bps, ("ok", "ok"), ("thin_pool", "warn")),
    ("impact, danger", thin, POLICY.danger_loss_bps, ("thin_pool", "warn"), ("thin_pool", "danger")),
    ("keep, warn", toll, POLICY.toll_warn_bps, ("ok", "ok"), ("toll_pool", "warn")),
    ("part sold", selling_only, POLICY.sellable_share_bps, ("cannot_sell", "danger"), ("ok", "warn")),
)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0])
def test_a_line_is_crossed_at_its_value_and_not_below(line: Line) -> None:
    _, build, value, below, from_here = line
    assert seen(build(value - 1)) == below
    assert seen(build(value)) == from_here
    assert seen(build(value + 1)) == from_here


@pytest.mark.parametrize("name", ["full", "full_again", "hour", "day", "fees"])
@pytest.mark.parametrize(("loss", "code"), [(1499, "ok"), (1500, "high_fees"), (5000, "heavy_fees")])
def test_the_worst_of_every_sell_of_all_counts(name: str, loss: int, code: str) -> None:
    outcomes: dict[str, CellOutcome | None] = {name: sold(loss)}
    assert seen(evidence(venue(cells(**outcomes))))[0] == code


def test_other_policies_draw_other_lines() -> None:
    assert judge(costing(1200), replace(POLICY, warn_loss_bps=1200)).verdict.code == "high_fees"
    assert judge(costing(1500), replace(POLICY, warn_loss_bps=1501)).verdict.code == "ok"


# --- level ok only if all of it sells, now and later ----------------------------------------------


@pytest.mark.parametrize(
    ("name", "outcome"),
    [("hour", NO_MONEY), ("day", NO_MONEY)]
    + [(name, sold(60, 9998, BPS)) for name in ("full", "full_again", "hour", "day")],
)
def test_a_sell_that_does_not_take_all_leaves_ok_with_a_warning(name: str, outcome: CellOutcome) -> None:
    assert seen(evidence(venue(cells(**{name: outcome})))) == ("ok", "warn")


def test_a_full_sell_that_both_blocks_refuse_leaves_ok_with_a_warning() -> None:
    assert seen(evidence(venue(cells(full=NO_MONEY, full_again=NO_MONEY)))) == ("ok", "warn")


def test_a_full_sell_that_the_second_block_refuses_is_a_trap() -> None:
    assert seen(evidence(venue(cells(full_again=NO_MONEY)))) == ("cannot_sell", "danger")


def test_a_full_sell_that_only_the_first_block_refuses_leaves_ok_with_a_warning() -> None:
    assert seen(evidence(venue(cells(full=NO_MONEY)))) == ("ok", "warn")


@pytest.mark.parametrize("name", ["half", "sliver"])
def test_a_refused_part_lowers_the_level(name: str) -> None:
    for outcome in (NO_MONEY, NODE):
        assert seen(evidence(venue(cells(**{name: outcome})))) == ("ok", "warn")


@pytest.mark.parametrize("step", ["probe", "tenth"])
def test_a_smaller_buy_than_usual_lowers_the_level(step: str) -> None:
    no = RefusedCall("buy", "max wallet", 50_000)
    refused = buys(no) if step == "probe" else buys(no, no)
    size: Size = "tenth" if step == "probe" else "hundredth"
    assert seen(evidence(venue(cells(60, size), all_buys=refused))) == ("ok", "warn")


@pytest.mark.parametrize(
    ("large", "level"), [(NO_MONEY, "warn"), (NODE, "warn"), (sold(60), "ok"), (sold(2000), "ok")]
)
def test_ten_times_the_size_that_does_not_sell_lowers_the_level(large: CellOutcome, level: str) -> None:
    found = (*cells(), ProbeCell(Probe("large", POLICY.later_s, POLICY.most_bps, 0), large))
    assert seen(evidence(venue(found))) == ("ok", level)


def test_what_only_another_wallet_can_sell_cannot_be_sold() -> None:
    found = judged(evidence(venue(refused_cells(handed_on=sold(60)))))
    assert (found.verdict.code, found.verdict.level) == ("cannot_sell", "danger")
    assert "; a wallet that you send it to can sell it." in found.verdict.text


def test_who_pays_and_gets_nothing_is_told_so() -> None:
    found = judged(evidence(no_trade(LIQUID, refused_buys()), no_trade(LIQUID, keeping_buys())))
    assert (found.verdict.code, found.verdict.level) == ("heavy_fees", "danger")
    assert found.verdict.text.startswith("You pay and get nothing: the token keeps what you buy.")
    assert seen(evidence(venue(), no_trade(LIQUID, keeping_buys()))) == ("ok", "ok")


def test_a_sell_that_only_the_buyer_can_make_lowers_the_level() -> None:
    assert seen(evidence(venue(cells(handed_on=NO_MONEY)))) == ("ok", "warn")


MUCH, LITTLE, OTHER, TRADER = (
    "a sell with a gas limit of 16,777,216",
    "a sell with little gas",
    "a wallet that you send it to",
    "a wallet that traded it before",
)


@pytest.mark.parametrize(
    ("seller", "outcome", "says"),
    [
        ("much gas", sold(560), ""),
        ("much gas", sold(561), f"; {MUCH} loses 5.61 %"),
        ("much gas", NO_MONEY, f"; {MUCH} is refused"),
        ("much gas", NODE, f"; we could not find out what {MUCH} meets"),
        ("little gas", sold(9000), f"; {LITTLE} loses 90.00 %"),
        ("little gas", NO_MONEY, ""),
        ("little gas", NODE, f"; we could not find out what {LITTLE} meets"),
        ("traded before", sold(9000), f"; {TRADER} loses 90.00 %"),
        ("traded before", NO_MONEY, f"; {TRADER} cannot sell it, not even after an hour"),
        ("traded before", RefusedCall("buy", "one trip a wallet", 1), ""),
        ("receiver", sold(2000), f"; {OTHER} loses 20.00 %"),
        ("receiver", NO_MONEY, f"; {OTHER} cannot sell it at once"),
        ("receiver", RefusedCall("transfer", "no", 1), ""),
    ],
)
def test_what_a_sale_beside_meets_is_said_and_lowers_the_level(
    seller: ProbeSeller, outcome: CellOutcome, says: str
) -> None:
    probe = Probe("probe", POLICY.later_s, BPS, 0, seller)
    if seller == "traded before":
        probe = replace(probe, delay_s=POLICY.hour_s, share_bps=POLICY.half_bps)
    beside = (*cells(handed_on=None), ProbeCell(probe, outcome))
    verdict = judged(evidence(venue(beside))).verdict
    assert (verdict.code, verdict.level) == ("ok", "warn" if says else "ok")
    assert verdict.text == f"It was bought and sold straight back for a loss of 0.60 %{says}."


def test_where_nobody_sells_after_a_day_having_traded_before_is_not_blamed() -> None:
    probe = Probe("probe", POLICY.hour_s, POLICY.half_bps, 0, "traded before")
    verdict = judged(evidence(venue((*cells(day=NO_MONEY), ProbeCell(probe, NO_MONEY))))).verdict
    assert (verdict.code, verdict.level) == ("ok", "warn")
    assert "not at all after a day" in verdict.text
    assert TRADER not in verdict.text


def test_beside_a_loss_it_is_said_that_it_does_not_sell_now() -> None:
    later = cells(2000, full=NO_MONEY, half=NO_MONEY)
    verdict = judged(evidence(venue(later))).verdict
    assert verdict.code == "high_fees"
    assert verdict.text.startswith("Fees and taxes take 20.00 % of a round trip. You cannot sell it at once")


# --- which venue decides --------------------------------------------------------------------------


def losing(loss_bps: int, impact_bps: int = 0) -> VenueEvidence:
    return venue(cells(loss_bps), impact_bps=impact_bps)


@pytest.mark.parametrize(
    ("losses", "best"), [((300, 60, 100), 1), ((60, 60), 0), ((61, 60), 1), ((-10, 0), 0)]
)
def test_the_smallest_loss_decides(losses: tuple[int, ...], best: int) -> None:
    assert judged(evidence(*map(losing, losses))).best == best


def test_a_venue_that_takes_no_sell_is_passed_over_however_cheap() -> None:
    trap = venue(refused_cells(full=sold(0, 4000, BPS), full_again=sold(0, 4000, BPS)))
    assert judged(evidence(trap, losing(400))).best == 1


def test_a_venue_that_sells_all_at_once_goes_before_one_that_sells_a_part() -> None:
    part = venue(cells(0, full=sold(0, 9000, BPS)))
    later = venue(refused_cells(hour=sold(0)))
    assert judged(evidence(later, part, losing(400))).best == 2
    assert judged(evidence(later, part)).best == 1


def test_the_venue_that_decides_names_the_code_though_another_is_worse() -> None:
    assert seen(evidence(losing(2000), losing(60))) == ("ok", "warn")
    assert seen(evidence(losing(60, impact_bps=2000), losing(5000))) == ("thin_pool", "warn")
    assert seen(evidence(losing(60, impact_bps=2000), losing(100))) == ("ok", "ok")


def test_cannot_sell_shows_the_first_venue_that_bought() -> None:
    found = judged(evidence(no_trade(ABSENT), no_trade(LIQUID, refused_buys()), venue(refused_cells())))
    assert found.verdict.code == "cannot_sell"
    assert found.best == 2


# --- the order of the codes -----------------------------------------------------------------------

BARE = replace(TOKEN_FACTS, code_bytes=0, balance_answers=False)
ORDER = (
    ("no_contract", replace(evidence(venue(refused_cells()), facts=BARE), role="weth")),
    ("not_a_token", replace(token(balance_answers=False), role="weth")),
    ("quote_asset", replace(evidence(venue(refused_cells())), role="weth")),
    (
        "cannot_buy",
        evidence(no_trade(ABSENT), no_trade(DRY, refused_buys()), no_trade(LIQUID, refused_buys())),
    ),
    (
        "heavy_fees",
        evidence(no_trade(ABSENT), no_trade(LIQUID, refused_buys()), no_trade(LIQUID, keeping_buys())),
    ),
    ("empty_pool", evidence(no_trade(ABSENT), no_trade(DRY, refused_buys()))),
    ("cannot_sell", evidence(no_trade(LIQUID, refused_buys()), venue(refused_cells(), impact_bps=9000))),
)


@pytest.mark.parametrize(("code", "found"), ORDER, ids=[code for code, _ in ORDER])
def test_the_first_code_that_holds_is_given(code: str, found: Evidence) -> None:
    assert seen(found)[0] == code


# --- traps that must not pass ---------------------------------------------------------------------


def test_a_token_that_sells_a_hundredth_and_takes_the_rest_is_not_ok() -> None:
    robbed = sold(9900, BPS, POLICY.sliver_bps)
    assert seen(evidence(venue(refused_cells(sliver=robbed))))[0] in ("cannot_sell", "heavy_fees")


def test_a_tiny_cheap_sell_does_not_hide_a_ruinous_one() -> None:
    bait = refused_cells(half=sold(0, 100, 5000), hour=sold(9000))
    assert seen(evidence(venue(bait)))[0] == "heavy_fees"


def test_a_tiny_part_of_the_full_sell_does_not_hide_a_ruinous_half() -> None:
    tiny = sold(0, 100, BPS)
    bait = refused_cells(full=tiny, full_again=tiny, half=sold(9000, 5000))
    assert seen(evidence(venue(bait)))[0] == "heavy_fees"


def test_a_buy_refused_in_the_second_environment_is_not_a_sell_refused() -> None:
    no = RefusedCall("buy", "max wallet", 50_000)
    found = judged(evidence(venue(refused_cells(full=sold(), full_again=no))))
    assert "not sell" not in found.verdict.text


def test_a_venue_that_was_not_asked_to_sell_is_not_called_a_trap() -> None:
    assert seen(evidence(venue(())))[0] == "unproven"
