"""What the newest check of a token tried, probe by probe, as far as its evidence is kept."""

import contextlib
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain import canonical, names
from roundtrip.domain.errors import ServiceFull
from roundtrip.domain.evidence import Cell, Evidence, Missing, Refused
from roundtrip.domain.owner_calls import lost_bps
from roundtrip.domain.types import BPS, Address
from roundtrip.domain.verdict import judge, shown
from roundtrip.store import evidence as evidence_store
from roundtrip.store.faults import DATABASE_FAULTS

from .check_answer import CheckParams
from .context import Answered, Context

_READ_S = 5.0
_SIZES = {"large": "1 eth", "probe": "0.1 eth", "tenth": "0.01 eth", "hundredth": "0.001 eth",
          "thousandth": "0.0001 eth"}  # fmt: skip
Came = Literal["sells", "refused", "unknown"]


class GridCell(msgspec.Struct, frozen=True, rename="camel"):
    """What came of one probe. ``loss_bps``: what the sell lost; null where there was none."""

    delay_s: int
    came: Came
    loss_bps: int | None
    why: Annotated[str | None, msgspec.Meta(description="Of what did not sell; a stranger's words.")]


class GridRow(msgspec.Struct, frozen=True, rename="camel"):
    """One way to buy and sell, after each delay."""

    label: str
    cells: Annotated[list[GridCell | None], msgspec.Meta(description="By delaysS; null: not tried.")]


class CheckGrid(msgspec.Struct, frozen=True, rename="camel"):
    """The probes of the venue that decided, by size and time. Empty: nothing was sold, or none is kept."""

    checked_at: datetime | None
    block: int | None
    delays_s: list[int]
    rows: list[GridRow]


async def check_grid(ctx: Context, params: CheckParams) -> Answered[CheckGrid]:
    """Of the newest check that is kept. Raises CallerFault (bad_address), ServiceFull."""
    kept = await _latest(ctx, params.token())
    evidence = None
    if kept is not None:
        # Of an earlier release it had another shape.
        with contextlib.suppress(ValueError):
            evidence = canonical.load(Evidence, kept.document)
    if kept is None or evidence is None:
        return Answered(CheckGrid(None, None, [], []))
    index = shown(judge(evidence, ctx.policy))
    cells = () if index is None else evidence.venues[index].cells
    delays = sorted({cell.probe.delay_s for cell in cells})
    return Answered(CheckGrid(kept.checked_at, kept.block_number, delays, _rows(cells, delays)))


async def _latest(ctx: Context, token: Address) -> evidence_store.KeptEvidence | None:
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            return await evidence_store.latest(connection, token)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Checks that were made cannot be read just now.", 5) from error


def _rows(cells: tuple[Cell, ...], delays: list[int]) -> list[GridRow]:
    """Of the two wallets that tried the same, the one that fared worse."""
    by_label: dict[str, dict[int, GridCell]] = {}
    for cell in cells:
        own = by_label.setdefault(_label(cell), {})
        came, there = _came(cell), own.get(cell.probe.delay_s)
        if there is None or _badness(came) > _badness(there):
            own[cell.probe.delay_s] = came
    return [GridRow(label, [own.get(one) for one in delays]) for label, own in by_label.items()]


def _label(cell: Cell) -> str:
    probe = cell.probe
    share = "all of it" if probe.share_bps == BPS else f"{probe.share_bps / 100:g} % of it"
    by = "" if probe.seller == "buyer" else ", by whom it was handed to"
    return f"{_SIZES[probe.size]}, {share}{by}"


def _came(cell: Cell) -> GridCell:
    outcome, delay_s = cell.outcome, cell.probe.delay_s
    if isinstance(outcome, Missing):
        return GridCell(delay_s, "unknown", None, outcome.why)
    lost = lost_bps(outcome)
    if isinstance(lost, int):
        return GridCell(delay_s, "sells", lost, None)
    said = names.reason(outcome.reason or "") if isinstance(outcome, Refused) else "nothing came back"
    return GridCell(delay_s, "refused" if lost is None else "unknown", None, said or None)


def _badness(cell: GridCell) -> tuple[int, int]:
    return ("sells", "unknown", "refused").index(cell.came), cell.loss_bps or 0
