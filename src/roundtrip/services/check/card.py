"""What a page or a terminal shows of a check beside its answer."""

from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.check.cost import Cost, cost_of
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.outlook import Prospect, Standing, prospects
from roundtrip.domain.check.verdict import Judgement, shown_index

from .probe_grid import CheckGrid, format_size, grid_of
from .schema import at

Share = Annotated[int | None, msgspec.Meta(description="Hundredths of a percent; null: not known.")]


class CostAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """What a round trip costs, split. ``size``: of the round trip, as people say it."""

    size: str | None
    round_trip_bps: Share
    taken_bps: Share
    pool_bps: Share
    tax_bps: Share
    buy_tax_bps: Share
    sell_tax_bps: Share
    impact_bps: Share


class ProspectAnswer(msgspec.Struct, frozen=True):
    """One thing that could change what was found."""

    standing: Standing
    text: str


class CheckCard(msgspec.Struct, frozen=True, rename="camel"):
    """``cost`` null: nothing was bought. ``outlook``: what could change it, the worst first."""

    block: int
    block_at: datetime
    deep: Annotated[bool, msgspec.Meta(description="What its owner may call was tried, and real holders.")]
    cost: CostAnswer | None
    grid: CheckGrid
    outlook: list[ProspectAnswer]


def read_card(evidence: Evidence, judgement: Judgement, deep: bool, policy: Policy) -> CheckCard:
    """The card, read from the evidence and its judgement. ``deep``: of a deep check."""
    index = shown_index(judgement)
    cost = None if index is None else cost_of(evidence, index, judgement.readings[index])
    return CheckCard(
        block=evidence.block.number,
        block_at=at(evidence.block.timestamp_s),
        deep=deep,
        cost=None if cost is None else _cost(cost, policy),
        grid=grid_of(evidence, judgement, policy),
        outlook=[_prospect(prospect) for prospect in prospects(evidence, judgement, policy)],
    )


def _cost(cost: Cost, policy: Policy) -> CostAnswer:
    return CostAnswer(
        size=None if cost.size is None else format_size(cost.size, policy),
        round_trip_bps=cost.round_trip_bps,
        taken_bps=cost.taken_bps,
        pool_bps=cost.pool_bps,
        tax_bps=cost.tax_bps,
        buy_tax_bps=cost.buy_tax_bps,
        sell_tax_bps=cost.sell_tax_bps,
        impact_bps=cost.impact_bps,
    )


def _prospect(prospect: Prospect) -> ProspectAnswer:
    return ProspectAnswer(prospect.standing, prospect.text)
