"""Received tokens for tests: every probe of the grid, each replaceable by name; and gaps filled at random."""

from dataclasses import replace
from random import Random

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import (
    CellOutcome,
    Missing,
    Probe,
    ProbeCell,
    RefusedCall,
    Sold,
    VenueEvidence,
)
from roundtrip.domain.trade.judge import Allowance, CallResult, Exit, RunResult
from unit.domain.builders import BOUGHT_RAW, NO_MONEY, NODE, TOKEN, buys, pieces_cell, sold, venue

GRID: dict[str, Probe] = {
    "full": Probe("probe", POLICY.later_s, BPS, 0),
    "full_again": Probe("probe", POLICY.later_s, BPS, 1),
    "hour": Probe("probe", POLICY.hour_s, BPS, 0),
    "hour_again": Probe("probe", POLICY.hour_s, BPS, 1),
    "day": Probe("probe", POLICY.day_s, BPS, 0),
    "day_again": Probe("probe", POLICY.day_s, BPS, 1),
    "half": Probe("probe", POLICY.later_s, POLICY.half_bps, 0),
    "sliver": Probe("probe", POLICY.later_s, POLICY.sliver_bps, 0),
    "handed_on": Probe("probe", POLICY.later_s, BPS, 0, "receiver"),
    "half_handed_on": Probe("probe", POLICY.later_s, POLICY.half_bps, 0, "receiver"),
}
"""What is tried of a token that was received."""

_LOSSES = (-300, 0, 60, 400, 1499, 1500, 1501, 2500, 4999, 5000, 5001, 9000, BPS)
_SHARES = (1, 100, 4999, 5000, 7000, 9999)


def grid(loss_bps: int = 60, /, **outcomes: CellOutcome) -> tuple[ProbeCell, ...]:
    """Every probe sold at this loss, but for the named ones."""
    assert outcomes.keys() <= GRID.keys()
    return tuple(
        ProbeCell(probe, outcomes.get(name, sold(loss_bps, probe.share_bps))) for name, probe in GRID.items()
    )


def refused_grid(**outcomes: CellOutcome) -> tuple[ProbeCell, ...]:
    """Every probe refused, but for the named ones."""
    every: dict[str, CellOutcome] = dict.fromkeys(GRID, NO_MONEY)
    return grid(**(every | outcomes))


def way(*, impact_bps: int = 0, cells: tuple[ProbeCell, ...] | None = None) -> VenueEvidence:
    """One place where a received token was sold."""
    return venue(grid() if cells is None else cells, all_buys=buys(impact_bps=impact_bps))


def received(*venues: VenueEvidence, paid_known: bool = True, gap: Missing | None = None) -> Exit:
    """One received token, sold on these."""
    return Exit(TOKEN, BOUGHT_RAW, venues, paid_known, gap=gap)


def ran(*calls: CallResult, allowances: tuple[Allowance, ...] = ()) -> RunResult:
    """A run of these calls that moved nothing."""
    found = calls or (CallResult(True, 50_000, None),)
    return RunResult(found, (), allowances, (0,) * len(found), 10**7)


# --- at random -------------------------------------------------------------------------------------


def a_sale(rng: Random, planned_bps: int) -> CellOutcome:
    """One outcome of a sell: refused, in part, or whole, at some loss."""
    draw = rng.random()
    if draw < 0.3:
        return rng.choice((NO_MONEY, RefusedCall("approve", "no", 1), RefusedCall("transfer", "cooldown", 1)))
    loss = rng.choice(_LOSSES)
    if draw < 0.5:
        return sold(loss, max(1, planned_bps * rng.choice(_SHARES) // BPS), planned_bps)
    return sold(loss, planned_bps)


def some_exit(rng: Random, most_venues: int, most_gaps: int) -> Exit:
    """A received token with up to so many cells of each venue Missing."""
    venues = tuple(_some_way(rng, most_gaps) for _ in range(rng.randint(1, most_venues)))
    return received(*venues, paid_known=rng.random() > 0.1)


def _some_way(rng: Random, most_gaps: int) -> VenueEvidence:
    usual, mood = rng.choice(_LOSSES), rng.random()
    cells = []
    for probe in GRID.values():
        outcome = sold(usual, probe.share_bps)
        if mood < 0.25:
            outcome_or = NO_MONEY if rng.random() < 0.8 else a_sale(rng, probe.share_bps)
        else:
            outcome_or = outcome if rng.random() < 0.6 else a_sale(rng, probe.share_bps)
        cells.append(ProbeCell(probe, outcome_or))
    if not any(_sold_half(cell) for cell in cells):
        cells.append(pieces_cell(a_sale(rng, BPS)))
    for at in rng.sample(range(len(cells)), rng.randint(0, most_gaps)):
        cells[at] = replace(cells[at], outcome=NODE)
    return way(cells=tuple(cells))


def _sold_half(cell: ProbeCell) -> bool:
    one, sale = cell.probe, cell.outcome
    return one.seller == "buyer" and isinstance(sale, Sold) and 2 * sale.sold_raw >= sale.held_raw


def filled(rng: Random, gappy: Exit) -> Exit:
    """The same token with a concrete outcome of every cell that is Missing."""
    return replace(gappy, venues=tuple(_filled(rng, one) for one in gappy.venues))


def _filled(rng: Random, one: VenueEvidence) -> VenueEvidence:
    bias = rng.random()

    def outcome_of(cell: ProbeCell) -> CellOutcome:
        if not isinstance(cell.outcome, Missing):
            return cell.outcome
        planned = cell.probe.share_bps
        if bias < 0.15:
            return NO_MONEY
        if bias < 0.3:
            return sold(-300, planned)
        if bias < 0.45:
            return sold(BPS, planned)
        return a_sale(rng, planned)

    return replace(one, cells=tuple(replace(cell, outcome=outcome_of(cell)) for cell in one.cells))
