"""The grid of a check's probes and their outcomes."""

from typing import Annotated, Literal

import msgspec

from roundtrip.chain.simulate.legs import size_wei
from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_count, format_eth
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.crowd_reading import taken_bps
from roundtrip.domain.check.evidence import (
    Crowd,
    CrowdSale,
    CrowdTrade,
    Evidence,
    Missing,
    ProbeCell,
    RefusedCall,
    Size,
)
from roundtrip.domain.check.owner_calls import lost_bps
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.check.verdict import Judgement, shown_index
from roundtrip.domain.verdicts.catch import MARKED_LOSS_BPS

Came = Literal["sells", "refused", "unknown"]


def format_size(size: Size, policy: Policy) -> str:
    """A size as people say it, such as ``0.1 eth``."""
    return format_eth(size_wei(size, policy))


class GridCell(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one probe. ``loss_bps``: what the sell lost; null where it did not sell. ``level``: the
    level of this result alone."""

    delay_s: int
    came: Came
    level: Level
    loss_bps: int | None
    why: Annotated[str | None, msgspec.Meta(description="Of what did not sell; a stranger's words.")]


class GridRow(msgspec.Struct, frozen=True, rename="camel"):
    """One way to buy and sell, after each delay."""

    label: str
    cells: Annotated[list[GridCell | None], msgspec.Meta(description="By delaysS; null: not tried.")]


class CheckGrid(msgspec.Struct, frozen=True, rename="camel"):
    """The probes of the venue that decided, by size and time. Empty: nothing was sold."""

    delays_s: list[int]
    rows: list[GridRow]


def grid_of(evidence: Evidence, judgement: Judgement, policy: Policy) -> CheckGrid:
    """The grid of the deciding venue."""
    index = shown_index(judgement)
    if index is None:
        return CheckGrid([], [])
    venue = evidence.venues[index]
    delays = sorted({cell.probe.delay_s for cell in venue.cells})
    crowd = venue.crowd.trades if isinstance(venue.crowd, Crowd) else ()
    company = [_crowd_row(crowd, delays, policy)] if crowd else []
    return CheckGrid(delays, _rows(venue.cells, delays, policy) + company)


def _crowd_row(crowd: tuple[CrowdTrade, ...], delays: list[int], policy: Policy) -> GridRow:
    """The worst that a wallet of the crowd met at each delay. The losses are what was taken of both trades:
    the pool's own fee and the moves of the price do not count."""
    cells = [_crowd_cell(crowd, delay_s, policy) for delay_s in delays]
    return GridRow(f"by {format_count(len(crowd), 'test wallet')}, in company", cells)


def _crowd_cell(crowd: tuple[CrowdTrade, ...], delay_s: int, policy: Policy) -> GridCell | None:
    found = None
    for trade in crowd:
        if trade.wallet.after_s != delay_s or trade.wallet.way != "usual":
            continue
        outcome = trade.outcome
        if isinstance(outcome, CrowdSale):
            lost_bps = taken_bps(outcome)
            cell = GridCell(delay_s, "sells", _level(lost_bps, policy), lost_bps, None)
        elif isinstance(outcome, RefusedCall):
            cell = GridCell(delay_s, "refused", "danger", None, names.reason(outcome.reason or "") or None)
        else:
            cell = GridCell(delay_s, "unknown", "unknown", None, outcome.why)
        found = cell if found is None or _badness(cell) > _badness(found) else found
    return found


def _rows(cells: tuple[ProbeCell, ...], delays: list[int], policy: Policy) -> list[GridRow]:
    """The rows; of two wallets with the same probe the worse outcome."""
    by_label: dict[str, dict[int, GridCell]] = {}
    for cell in cells:
        row = by_label.setdefault(_label(cell, policy), {})
        shown, before = _grid_cell(cell, policy), row.get(cell.probe.delay_s)
        if before is None or _badness(shown) > _badness(before):
            row[cell.probe.delay_s] = shown
    return [GridRow(label, [row.get(delay_s) for delay_s in delays]) for label, row in by_label.items()]


def _label(cell: ProbeCell, policy: Policy) -> str:
    probe = cell.probe
    share = "all of it" if probe.share_bps == BPS else f"{probe.share_bps / 100:g} % of it"
    return f"{format_size(probe.size, policy)}, {share}{_SELLERS[probe.seller]}"


_SELLERS = {
    "buyer": "",
    "receiver": ", by a wallet that it was sent to",
    "pieces": ", in ten sales over a day",
    "second route": ", by the venue's second route",
}


def _grid_cell(cell: ProbeCell, policy: Policy) -> GridCell:
    outcome, delay_s = cell.outcome, cell.probe.delay_s
    if isinstance(outcome, Missing):
        return GridCell(delay_s, "unknown", "unknown", None, outcome.why)
    lost = lost_bps(outcome)
    if isinstance(lost, int):
        return GridCell(delay_s, "sells", _level(lost, policy), lost, None)
    reason = names.reason(outcome.reason or "") if isinstance(outcome, RefusedCall) else "nothing came back"
    if lost is None:
        return GridCell(delay_s, "refused", "danger", None, reason or None)
    return GridCell(delay_s, "unknown", "unknown", None, reason or None)


def _level(loss_bps: int, policy: Policy) -> Level:
    if loss_bps >= policy.danger_loss_bps:
        return "danger"
    return "warn" if loss_bps >= MARKED_LOSS_BPS else "ok"


def _badness(cell: GridCell) -> tuple[int, int]:
    return ("sells", "unknown", "refused").index(cell.came), cell.loss_bps or 0
