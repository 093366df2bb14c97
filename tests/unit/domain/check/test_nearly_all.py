"""Where a sale of all is refused, the largest part that sells decides: a token that wants a rest kept, or
that rounds, is no trap, and one that stops selling is."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import OtherPool
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import (
    CellOutcome,
    CompletedBuy,
    EnvironmentBuy,
    Evidence,
    Missing,
    Probe,
    ProbeCell,
    RefusedCall,
    VenueEvidence,
)
from roundtrip.domain.check.refusals import NOTHING_ARRIVED, POOL_GAVE_NOTHING
from roundtrip.domain.check.venue_reading import read_venue
from roundtrip.domain.check.verdict import judge
from roundtrip.services.engine.main_trips import nearly_all_probes
from unit.domain.builders import (
    BOUGHT_RAW,
    LIQUID,
    NODE,
    OWNER,
    PAID_RAW,
    POOL,
    TOKEN,
    evidence,
    no_trade,
    pieces_cell,
    refused_buys,
    refused_cells,
    sold,
    venue,
)

KEPT = RefusedCall("sell", "keep a rest", 90_000)
CLOSED = RefusedCall("sell", "closed", 90_000)
SHORT = RefusedCall("sell", "IIA", 90_000)
MOMENTS = {"soon": POLICY.later_s, "hour": POLICY.hour_s, "day": POLICY.day_s}
ALL_BUT_TEN = replace(sold(60), planned_raw=BOUGHT_RAW - 10, sold_raw=BOUGHT_RAW - 10)


def nearly_cell(moment: str, outcome: CellOutcome) -> ProbeCell:
    return ProbeCell(Probe("probe", MOMENTS[moment], BPS, 0, "nearly all"), outcome)


def keeping(refused: RefusedCall = KEPT, /, **nearly: CellOutcome) -> VenueEvidence:
    """A venue that refuses all of it at every moment, and what it does with nearly all."""
    names = ("full", "full_again", "hour", "day", "handed_on")
    cells = refused_cells(
        **dict.fromkeys(names, refused), half=sold(60, 5000), sliver=sold(60, 100), fees=sold()
    )
    return venue((*cells, *(nearly_cell(name, outcome) for name, outcome in nearly.items())))


def verdict(*venues: VenueEvidence) -> tuple[str, str, str]:
    result = judge(evidence(*venues), POLICY).verdict
    return result.code, result.level, result.text


def always(outcome: CellOutcome) -> dict[str, CellOutcome]:
    return dict.fromkeys(MOMENTS, outcome)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (ALL_BUT_TEN, "All but a few base units of it sells at once for a loss of 0.60 %"),
        (sold(158, 9900), "99 % of it sells at once for a loss of 1.58 %"),
        (sold(531, 9500), "95 % of it sells at once for a loss of 5.31 %"),
    ],
)
def test_the_text_has_what_sold_and_its_loss(outcome: CellOutcome, text: str) -> None:
    code, level, message = verdict(keeping(**always(outcome)))
    assert (code, level) == ("ok", "warn")
    assert message == f'{text}, but not all of it (the sell fails with "keep a rest").'


def test_a_loss_after_a_day_is_no_fee_of_a_round_trip() -> None:
    """Also where nearly all of it is what sells."""
    code, _, message = verdict(keeping(**always(sold(60, 9900)) | {"day": sold(3000, 9900)}))
    assert code == "high_fees"
    assert message.startswith("It loses value while you hold it: after a day you get 70.00 % of your money")


def test_a_gain_is_no_loss_below_zero() -> None:
    code, _, message = verdict(keeping(**always(sold(-137, 9900))))
    assert (code, message[:52]) == ("ok", "99 % of it sells at once for a gain of 1.37 %, but n")


def test_half_of_it_stays_half_of_it() -> None:
    rows = verdict(keeping(**always(sold(60, 5000))))
    assert rows[:2] == ("ok", "warn")
    assert rows[2].startswith("Half of it")


@pytest.mark.parametrize("share_bps", [5000, 9000, 9900])
def test_what_sells_now_and_no_part_of_it_later_is_a_trap(share_bps: int) -> None:
    part = sold(60, share_bps)
    code, level, text = verdict(keeping(soon=part, hour=CLOSED, day=CLOSED))
    assert (code, level) == ("cannot_sell", "danger")
    assert text == (
        f"You can sell {share_bps // 100} % of it now for a loss of 0.60 %, but not after an hour or a day. "
        'The sell fails with "closed".'
    )


@pytest.mark.parametrize("moment", ["hour", "day"])
def test_what_sells_at_one_later_moment_is_none(moment: str) -> None:
    later: dict[str, CellOutcome] = {"hour": CLOSED, "day": CLOSED, moment: sold(60, 9900)}
    assert verdict(keeping(soon=sold(60, 9900), **later))[:2] == ("ok", "warn")


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_missing_part_that_could_change_the_code_is_unproven(moment: str) -> None:
    known: dict[str, CellOutcome] = {"soon": sold(60, 9900), "hour": CLOSED, "day": CLOSED}
    assert verdict(keeping(**{**known, moment: NODE}))[0] == "unproven"


def test_a_part_that_loses_too_much_is_not_ok() -> None:
    assert verdict(keeping(**{**always(sold(60, 9900)), "day": sold(6000, 9900)}))[:2] == (
        "heavy_fees",
        "danger",
    )


def test_what_rounds_by_a_unit_takes_no_cut() -> None:
    short = replace(keeping(SHORT, **always(ALL_BUT_TEN)), short_raw=1)
    assert verdict(short)[2].endswith("(it arrives 1 base unit short, which the pool rejects).")
    every = dict.fromkeys(("full", "full_again", "hour", "day", "half", "sliver", "handed_on"), SHORT)
    trap = venue((*refused_cells(**every), pieces_cell(SHORT)))
    assert "the token takes a cut of every sell" in verdict(replace(trap, short_raw=BOUGHT_RAW // 20))[2]
    rows = verdict(replace(trap, short_raw=4))
    assert rows[:2] == ("cannot_sell", "danger")
    assert "it arrives 4 base units short, and its pool rejects a sell that arrives short" in rows[2]


def test_evidence_without_these_probes_is_judged_as_before() -> None:
    old = evidence(keeping())
    assert canonical_json.load(Evidence, canonical_json.dump(old)) == old
    assert b"nearly" not in canonical_json.dump(old)
    assert judge(old, POLICY).verdict.text.startswith("Half of it")


# --- which probes are sent --------------------------------------------------------------------------


def asked(found: VenueEvidence) -> list[int]:
    probes = nearly_all_probes(POLICY, "probe", found, read_venue(found, POLICY))
    assert {probe.seller for probe in probes} <= {"nearly all"}
    return [probe.delay_s for probe in probes]


def test_nearly_all_is_tried_at_each_moment_that_refused_all() -> None:
    assert asked(venue()) == []
    names = ("full", "full_again", "hour", "day")
    assert asked(venue(refused_cells(**dict.fromkeys(names, sold())))) == []
    assert sorted(set(asked(keeping()))) == [POLICY.later_s, POLICY.hour_s, POLICY.day_s]
    closing = refused_cells(full=sold(), full_again=sold(), half=sold(60, 5000))
    assert asked(venue(closing)) == [POLICY.hour_s, POLICY.day_s]
    one_hour = refused_cells(full=sold(), full_again=sold(), day=sold())
    assert asked(venue(one_hour)) == [], "its code is known"


# --- pools that give nothing, and pools that are not tried ------------------------------------------


def giving_nothing(reason: str, large: RefusedCall | CompletedBuy) -> VenueEvidence:
    nothing = RefusedCall("arrive", reason, 50_000)
    buys = tuple(EnvironmentBuy(size, 0, nothing) for size in ("probe", "tenth", "hundredth", "thousandth"))
    return no_trade(LIQUID, (*buys, EnvironmentBuy("large", 0, large)))


def test_a_pool_that_rounds_to_zero_is_no_token_that_keeps() -> None:
    rounded = RefusedCall("arrive", POOL_GAVE_NOTHING, 50_000)
    dear = giving_nothing(POOL_GAVE_NOTHING, CompletedBuy(10 * PAID_RAW, 2, 10 * PAID_RAW, 90_000))
    assert verdict(dear) == (
        "unproven",
        "unknown",
        "0.1 eth buys less than one unit of this token: the pool rounds it to zero, and you get nothing. "
        "So no sell could be tested: this is not a pass.",
    )
    assert verdict(giving_nothing(POOL_GAVE_NOTHING, rounded))[2].startswith("1 eth buys less than one unit")
    kept = RefusedCall("arrive", NOTHING_ARRIVED, 50_000)
    assert verdict(giving_nothing(NOTHING_ARRIVED, kept))[:2] == ("heavy_fees", "danger")
    assert verdict(dear, giving_nothing(NOTHING_ARRIVED, kept))[:2] == ("heavy_fees", "danger")
    assert verdict(dear, no_trade(LIQUID, refused_buys("paused")))[0] == "unproven"
    assert verdict(dear, venue())[:2] == ("ok", "ok")


def test_pools_that_no_check_trades_in_are_named() -> None:
    one = replace(evidence(), other_pools=(OtherPool(POOL, OWNER),), pools_found=1)
    result = judge(one, POLICY).verdict
    assert (result.code, result.level) == ("unproven", "unknown")
    assert result.text == (
        f"Its only pool is against a token that we do not trade through: {POOL} against {OWNER}. "
        "So no sell could be tested: this is not a pass."
    )
    three = replace(one, other_pools=(OtherPool(POOL, OWNER), OtherPool(TOKEN, OWNER)), pools_found=7)
    assert judge(three, POLICY).verdict.text.startswith(
        "Its 7 pools are against tokens that we do not trade through: such as "
        f"{POOL} against {OWNER} and {TOKEN} against {OWNER}."
    )
    beside = replace(evidence(venue()), other_pools=one.other_pools, pools_found=2)
    assert judge(beside, POLICY).verdict.level == "ok"
    unread = replace(one, venues=(no_trade(Missing("node", "no answer")),))
    assert judge(unread, POLICY).verdict.code == "unproven"
