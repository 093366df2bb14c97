"""What a page or a terminal shows of a check beside its answer."""

from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.base.figures import format_eth
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import WEI_PER_ETH
from roundtrip.domain.check.cost import Cost, cost_of
from roundtrip.domain.check.evidence import Evidence, Sold
from roundtrip.domain.check.outlook import Prospect, describe_deep_round, prospects
from roundtrip.domain.check.price import usd_per_eth
from roundtrip.domain.check.verdict import Judgement, shown_index
from roundtrip.domain.verdicts.deciding import DecidingFigure, deciding_figure
from roundtrip.domain.verdicts.risks import Risk, list_risks
from roundtrip.services.support.answer_fields import at, says
from roundtrip.services.support.check_answer import read_sold_bps

from .probe_grid import CheckGrid, format_size, grid_of

Share = Annotated[int | None, says("Hundredths of a percent; null: not known.")]

Gas = Annotated[str | None, says("At the block's base fee, in eth and dollars. null: not measured.")]


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
    buy_gas: Gas
    sell_gas: Gas


class CheckCard(msgspec.Struct, frozen=True, rename="camel"):
    """``cost`` null: nothing was bought. ``sold_bps``: how much of what was meant to be sold the round trip
    sold; null: no sell, or not known. ``outlook``: what could change it, the worst first. ``risks``: those of
    ``list_risks``, as far as a check reads them.
    ``deep_round``: what a deep check tried, or why it can try nothing. ``figure``: the one that decided;
    null: none did."""

    block: int
    block_at: datetime
    deep: Annotated[bool, says("It tried what owner and other accounts may call, and sells by real holders.")]
    cost: CostAnswer | None
    sold_bps: Share
    grid: CheckGrid
    outlook: list[Prospect]
    risks: list[Risk]
    deep_round: str
    figure: DecidingFigure | None = None


def read_card(evidence: Evidence, judgement: Judgement, deep: bool, policy: Policy) -> CheckCard:
    """The card, read from the evidence and its judgement. ``deep``: of a deep check."""
    index = shown_index(judgement)
    cost = None if index is None else cost_of(evidence, index, judgement.readings[index])
    return CheckCard(
        block=evidence.block.number,
        block_at=at(evidence.block.timestamp_s),
        deep=deep,
        cost=None if index is None or cost is None else _cost(evidence, index, cost, policy),
        sold_bps=read_sold_bps(judgement),
        grid=grid_of(evidence, judgement, policy),
        outlook=list(prospects(evidence, judgement, policy)),
        risks=list(list_risks(evidence, judgement, policy)),
        deep_round=describe_deep_round(evidence, judgement, deep, policy),
        figure=deciding_figure(judgement, policy),
    )


def _cost(evidence: Evidence, index: int, cost: Cost, policy: Policy) -> CostAnswer:
    venue = evidence.venues[index]
    # The gas of the first buy whose sell went through.
    sold = next((cell.outcome for cell in venue.cells if isinstance(cell.outcome, Sold)), None)
    return CostAnswer(
        size=None if cost.size is None else format_size(cost.size, policy),
        round_trip_bps=cost.round_trip_bps,
        taken_bps=cost.taken_bps,
        pool_bps=cost.pool_bps,
        tax_bps=cost.tax_bps,
        buy_tax_bps=cost.buy_tax_bps,
        sell_tax_bps=cost.sell_tax_bps,
        impact_bps=cost.impact_bps,
        buy_gas=None if sold is None else _gas_text(sold.buy_gas, evidence, policy),
        sell_gas=None if sold is None else _gas_text(sold.sell_gas, evidence, policy),
    )


def _gas_text(gas: int, evidence: Evidence, policy: Policy) -> str:
    wei, usd_each = gas * evidence.block_base_fee_wei, usd_per_eth(evidence.market, policy)
    if usd_each is None:
        return format_eth(wei)
    cents = round(wei * usd_each * 100 / WEI_PER_ETH)
    return f"{format_eth(wei)} ({f'${cents / 100:,.2f}' if cents else 'under $0.01'})"
