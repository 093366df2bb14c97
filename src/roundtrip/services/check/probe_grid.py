"""The grid of a check's probes and their outcomes."""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from roundtrip.chain.simulate.probe_plans import main_wallet, measured_wallet
from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_amount, format_count, format_eth
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, plain_decimal
from roundtrip.domain.base.venue import LAUNCHPAD_KINDS
from roundtrip.domain.check.crowd_reading import taken_bps
from roundtrip.domain.check.evidence import (
    CompletedBuy,
    Crowd,
    CrowdSale,
    CrowdTrade,
    Evidence,
    Missing,
    NotTried,
    ProbeCell,
    RefusedCall,
    Size,
    Sold,
    VenueEvidence,
)
from roundtrip.domain.check.owner_calls import lost_bps
from roundtrip.domain.check.price import quote_decimals, size_wei
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.check.verdict import Judgement, shown_index
from roundtrip.domain.verdicts.risks import MARKED_LOSS_BPS
from roundtrip.services.support.answer_fields import says

Came = Literal["sells", "refused", "unknown"]


def format_size(size: Size, policy: Policy) -> str:
    """A size with all its digits, such as ``0.123456 eth``: it names what was asked for."""
    return f"{plain_decimal(size_wei(size, policy), 18)} eth"


class GridTrade(msgspec.Struct, frozen=True, rename="camel"):
    """What a cell's trade moved, with units. null: not measured, or it did not come to that."""

    sender: str | None
    put_in: str | None = None
    bought: str | None = None
    sold: str | None = None
    got_back: str | None = None
    buy_gas: int | None = None
    sell_gas: int | None = None
    failed_at: Annotated[str | None, says("The refused step.")] = None


class GridCell(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one probe. ``loss_bps``: what the sell lost; null where it did not sell. ``impact_bps``:
    how many fewer tokens its buy got for its money than a small one, which a sell straight back undoes; null:
    not known, or less than ``MARKED_LOSS_BPS``. ``level``: the level of this result alone. ``among``: how
    many wallets sold, where the cell shows the worst of several.
    """

    delay_s: int
    came: Came
    level: Level
    loss_bps: int | None
    why: Annotated[str | None, says("Of what did not sell; a stranger's words.")]
    trade: GridTrade
    among: str | None = None
    impact_bps: int | None = None


class GridRow(msgspec.Struct, frozen=True, rename="camel"):
    """One way to buy and sell, after each delay."""

    label: str
    cells: Annotated[list[GridCell | None], says("By delaysS; null: not tried.")]


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
    writer = _CellWriter(evidence, venue, policy)
    delays = sorted({cell.probe.delay_s for cell in venue.cells})
    trades = venue.crowd.trades if isinstance(venue.crowd, Crowd) else ()
    crowd = tuple(trade for trade in trades if not isinstance(trade.outcome, NotTried))
    company = [_crowd_row(writer, crowd, delays)] if crowd else []
    return CheckGrid(delays, _rows(writer, venue.cells, delays) + company)


class _CellWriter:
    """Writes the cells of one venue."""

    def __init__(self, evidence: Evidence, venue: VenueEvidence, policy: Policy) -> None:
        self._evidence, self._venue, self._policy = evidence, venue, policy

    def write_probe(self, cell: ProbeCell) -> GridCell:
        """The cell of a probe."""
        outcome, delay_s = cell.outcome, cell.probe.delay_s
        if isinstance(outcome, Missing):
            return GridCell(delay_s, "unknown", "unknown", None, outcome.why, self._trade(cell))
        lost = lost_bps(outcome)
        if isinstance(lost, int):
            impact = self._impact_bps(cell.probe.size)
            worst = _level(max(lost, impact or 0), self._policy)
            return GridCell(delay_s, "sells", worst, lost, None, self._trade(cell), impact_bps=impact)
        reason = (
            names.reason(outcome.reason or "") if isinstance(outcome, RefusedCall) else "nothing came back"
        )
        came: Came = "refused" if lost is None else "unknown"
        level: Level = "danger" if lost is None else "unknown"
        return GridCell(delay_s, came, level, None, reason or None, self._trade(cell))

    def write_crowd(self, trade: CrowdTrade) -> GridCell:
        """The cell of a wallet of the crowd. The loss is what was taken of both trades: the pool's own fee
        and the moves of the price do not count."""
        wallet, outcome = trade.wallet, trade.outcome
        put_in, delay_s = format_eth(wallet.size_wei + wallet.again_wei), wallet.after_s
        if isinstance(outcome, CrowdSale):
            lost_bps = taken_bps(outcome)
            moved = GridTrade(
                wallet.wallet,
                f"{put_in}’s worth",
                self._tokens(outcome.received_raw),
                self._tokens(outcome.planned_raw),
                self._money(outcome.back_raw),
            )
            return GridCell(delay_s, "sells", _level(lost_bps, self._policy), lost_bps, None, moved)
        if isinstance(outcome, RefusedCall):
            moved = GridTrade(wallet.wallet, f"{put_in}’s worth", failed_at=outcome.step)
            why = names.reason(outcome.reason or "") or None
            return GridCell(delay_s, "refused", "danger", None, why, moved)
        assert isinstance(outcome, Missing)
        return GridCell(delay_s, "unknown", "unknown", None, outcome.why, GridTrade(wallet.wallet))

    def uncounted_fee(self) -> str:
        """What to add where the crowd's losses leave the fee out: a launchpad takes its own beside it."""
        return "" if self._venue.venue.kind in LAUNCHPAD_KINDS else " (pool’s fee not counted)"

    def label(self, cell: ProbeCell) -> str:
        """The probe in words."""
        probe = cell.probe
        share = {BPS: "all", self._policy.half_bps: "half"}.get(probe.share_bps)
        share = share or f"{probe.share_bps / 100:g} %"
        return f"Buy for {format_size(probe.size, self._policy)}" + _SELLERS[probe.seller].format(share)

    def _impact_bps(self, size: Size) -> int | None:
        bought, small = _buy_of(self._venue, size), _buy_of(self._venue, "thousandth")
        if bought is None or small is None or not small.received_raw:
            return None
        impact_bps = BPS - kept_bps(bought, small)
        return impact_bps if impact_bps >= MARKED_LOSS_BPS else None

    def _trade(self, cell: ProbeCell) -> GridTrade:
        outcome, sender = cell.outcome, self._sender(cell)
        if isinstance(outcome, Sold):
            return GridTrade(
                sender,
                self._money(outcome.paid_raw) if outcome.paid_raw else None,
                self._tokens(outcome.held_raw),
                self._tokens(outcome.sold_raw),
                self._money(outcome.back_raw),
                outcome.buy_gas,
                outcome.sell_gas,
            )
        bought = self._buy_before(cell)
        step, gas = (outcome.step, outcome.gas) if isinstance(outcome, RefusedCall) else (None, None)
        sell_gas = gas if step in ("approve", "transfer", "sell") else None
        if bought is None:
            return GridTrade(sender, sell_gas=sell_gas, failed_at=step)
        money, tokens = self._money(bought.paid_raw), self._tokens(bought.received_raw)
        return GridTrade(sender, money, tokens, buy_gas=bought.gas, sell_gas=sell_gas, failed_at=step)

    def _buy_before(self, cell: ProbeCell) -> CompletedBuy | None:
        """The buy before a sell that did not come about, where it is the same as that of the buy round."""
        probe = cell.probe
        if probe.share_bps == self._policy.most_bps:
            return None
        for buy in self._venue.buys:
            if (buy.size, buy.environment) == (probe.size, probe.environment):
                return buy.outcome if isinstance(buy.outcome, CompletedBuy) else None
        return None

    def _sender(self, cell: ProbeCell) -> str | None:
        """The wallet that sells."""
        probe, environments = cell.probe, self._evidence.environments
        if probe.environment >= len(environments):
            return None
        drawn = environments[probe.environment]
        is_measured = probe.share_bps == self._policy.most_bps
        wallets = measured_wallet(drawn, probe) if is_measured else main_wallet(drawn)
        return wallets.receiver if probe.seller == "receiver" else wallets.buyer

    def _money(self, raw: int) -> str | None:
        quote = self._venue.venue.quote
        decimals = quote_decimals(quote, self._evidence.market)
        if decimals is None:
            return None
        unit = {"eth": "eth", "weth": "eth", "usdg": "USDG"}.get(quote, f"of {quote}")
        return format_eth(raw) if unit == "eth" else f"{format_amount(raw, decimals)} {unit}"

    def _tokens(self, raw: int) -> str | None:
        decimals = self._evidence.facts.decimals
        return f"{format_amount(raw, decimals)} tokens" if isinstance(decimals, int) else None


def _crowd_row(writer: _CellWriter, crowd: tuple[CrowdTrade, ...], delays: list[int]) -> GridRow:
    """The worst that a wallet of the crowd met at each delay."""
    by_delay: dict[int, list[GridCell]] = {}
    for trade in crowd:
        if trade.wallet.way == "usual":
            by_delay.setdefault(trade.wallet.after_s, []).append(writer.write_crowd(trade))
    label = f"{format_count(len(crowd), 'test wallet')} buy and sell in company{writer.uncounted_fee()}"
    return GridRow(label, [_worst(by_delay.get(delay_s, [])) for delay_s in delays])


def _rows(writer: _CellWriter, cells: Iterable[ProbeCell], delays: list[int]) -> list[GridRow]:
    """The rows; of two wallets with the same probe the worse outcome."""
    by_label: dict[str, dict[int, list[GridCell]]] = {}
    for cell in cells:
        row = by_label.setdefault(writer.label(cell), {})
        row.setdefault(cell.probe.delay_s, []).append(writer.write_probe(cell))
    return [
        GridRow(label, [_worst(row.get(delay_s, [])) for delay_s in delays])
        for label, row in by_label.items()
    ]


def _worst(tried: list[GridCell]) -> GridCell | None:
    if len(tried) < 2:
        return tried[0] if tried else None
    sold = sum(1 for cell in tried if cell.came == "sells")
    among = f"{sold:,} of {len(tried):,} wallets sold"
    return replace(max(tried, key=_badness), among=among)


_SELLERS = {
    "buyer": ", sell {}",
    "receiver": ", send it to a second wallet, which sells {}",
    "pieces": ", sell {} in ten sales over a day",
    "small pieces": ", sell {} in fifty sales over a day",
    "any hour": ", sell {} at one of ten moments of a day",
    "much gas": ", sell {} with all the gas that a transaction may have",
    "little gas": ", sell {} with about the gas that it uses",
    "second route": ", sell {} by the venue’s second route",
    "nearly all": ", sell nearly {}",
    "traded before": ", after earlier trades, sell {}",
}


def _level(loss_bps: int, policy: Policy) -> Level:
    if loss_bps >= policy.danger_loss_bps:
        return "danger"
    return "warn" if loss_bps >= MARKED_LOSS_BPS else "ok"


def _badness(cell: GridCell) -> tuple[int, int]:
    return ("sells", "unknown", "refused").index(cell.came), cell.loss_bps or 0


def kept_bps(bought: CompletedBuy, small: CompletedBuy) -> int:
    """How many tokens a buy got for its money, as a share of what a small one got for the same."""
    return bought.received_raw * small.paid_raw * BPS // max(1, bought.paid_raw * small.received_raw)


def _buy_of(venue: VenueEvidence, size: Size) -> CompletedBuy | None:
    outcomes = (buy.outcome for buy in venue.buys if (buy.size, buy.environment) == (size, 0))
    return next((outcome for outcome in outcomes if isinstance(outcome, CompletedBuy)), None)
