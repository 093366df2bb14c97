"""Results of a wallet's own calls, and how they are judged; shared by simulate, prepare and practice.

Losses are in bps of what was spent, valued at the pinned block.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from types import MappingProxyType
from typing import Literal

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.check.evidence import (
    OVER_A_DAY,
    CellOutcome,
    Missing,
    Probe,
    ProbeCell,
    RefusedCall,
    Sold,
    VenueEvidence,
)
from roundtrip.domain.check.sales import Sale, SellResult
from roundtrip.domain.check.venue_code import (
    Level,
    enough,
    sells_at_some_hours_only,
    sells_by_second_route_only,
    sells_in_pieces_only,
    takes_sells,
)
from roundtrip.domain.check.venue_reading import VenueReading, read_venue
from roundtrip.domain.check.verdict import Judgement

LEVELS: Mapping[str, Level] = MappingProxyType(
    {
        "ok": "ok",
        "tx_reverts": "warn",
        "cannot_sell": "danger",
        "heavy_loss": "danger",
        "high_loss": "warn",
        "nothing_received": "warn",
        "no_route": "unknown",
        "unproven": "unknown",
    }
)
"""Every code a simulation or a trade can have, as the specification lists them, and its level; ``level_of``
has the exception."""

SALE_PARTS_BPS = (9800, 7500, 5000, 2500, 1000, 100)
"""The parts that are tried where a sale of all is refused and a smaller one is not."""
FEW_UNITS = 10
"""All but so many base units are tried, too, for tokens whose balances are rounded."""
WORST_FIRST = ("cannot_sell", "heavy_loss", "no_route", "high_loss", "ok")
"""The order in which the results of several received tokens decide."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """One call. ``reason``: why it failed, as decoded, empty where the call gave none; None: it did not
    fail. ``token_reason``: that of the token, cleaned, where ``reason`` withholds it."""

    ok: bool
    gas_used: int
    reason: str | None
    token_reason: str | None = None


@dataclass(frozen=True, slots=True)
class BalanceChange:
    """The change of a balance over all calls, without gas; the zero address is eth. ``before_raw``: the
    balance before; ``later_raw``: the balance in a later block, an hour and a day later with no further
    action."""

    asset: Address
    raw: int
    before_raw: int
    later_raw: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the calls newly allow a spender to take. ``raw`` None: all there is of a collection or a vault.
    ``via``: at the token, at Permit2, for a whole collection or vault, or for one item (or claim) of it.
    ``covers_held``: it is no less than what the wallet holds after the calls."""

    token: Address
    spender: Address
    raw: int | None
    via: Literal["erc20", "permit2", "all", "operator", "item", "claim"]
    covers_held: bool = field(default=False, compare=False)

    def is_unlimited(self) -> bool:
        """True for amounts that mean no limit: wallets and tokens use 2^96 - 1, 2^160 - 1 and 2^256 - 1, or
        what is left of them."""
        return self.raw is None or self.raw >= 2**128 or self.raw == 2**96 - 1

    def takes_all(self) -> bool:
        """True for an amount that means no limit, or that covers what the wallet holds."""
        return self.covers_held or self.is_unlimited() or self.raw == 2**128 - 1


@dataclass(frozen=True, slots=True)
class RunResult:
    """A whole run. ``eth_changes_wei``: the change of the wallet's eth by each call, without its gas.
    ``metadata``: decimals and symbol as each token returned them; ``unread``: tokens that returned no
    balance."""

    calls: tuple[CallResult, ...]
    moved: tuple[BalanceChange, ...]
    allowances: tuple[Allowance, ...]
    eth_changes_wei: tuple[int, ...]
    gas_price_wei: int
    metadata: Mapping[Address, tuple[int | None, bytes | None]] = field(default_factory=dict)
    unread: frozenset[Address] = frozenset()
    items: tuple[Address, ...] = ()
    """Collections of which items leave the wallet, according to their events: items have no amounts here."""
    collections: tuple[Address, ...] = ()
    """Collections of numbered items (ERC-721) that moved, according to their events."""
    without_code: tuple[Address, ...] = ()
    """Addresses that a call with data went to and that had no code then: their calls do nothing."""
    code_unread: tuple[Address, ...] = ()
    """The same, where it could not be read whether there was code."""
    lowered: tuple[Allowance, ...] = ()
    """Allowances that the calls reduced, with the remaining amount."""
    standing: tuple[Allowance, ...] = ()
    """Allowances that the calls did not change."""

    def with_given_again(self, given: Collection[tuple[Address, Address, str]]) -> "RunResult":
        """Adds the unlimited allowances that the calls set again without changing them. ``given``: token,
        spender and via of each allowance that the calls set."""
        again = [
            allowance
            for allowance in self.standing
            if allowance.is_unlimited() and (allowance.token, allowance.spender, allowance.via) in given
        ]
        return replace(self, allowances=(*self.allowances, *again))

    def has_reverted(self) -> bool:
        """True when some call failed."""
        return not all(call.ok for call in self.calls)

    def needs_warning(self, known_spenders: Collection[Address]) -> bool:
        """True when the calls allow a spender who is not known to take something, whatever the amount, or
        when a call with data reaches no code, or may reach none."""
        strangers = (allowance.spender not in known_spenders for allowance in self.allowances)
        return any(strangers) or bool(self.without_code or self.code_unread)


@dataclass(frozen=True, slots=True)
class Exit:
    """A received token and the attempts to sell it. ``paid_known``: what was spent for it has a price in what
    came back; ``free``: nothing was spent. ``through_opening``: the calls sold its curve out, and it was sold
    in the pool that anyone may open then. ``left_out``: there are places where it was not tried."""

    token: Address
    received_raw: int
    venues: tuple[VenueEvidence, ...]
    paid_known: bool
    free: bool = False
    through_opening: bool = False
    left_out: bool = False
    gap: Missing | None = None
    """Why the search for a place to sell it failed."""


@dataclass(frozen=True, slots=True)
class ExitFinding:
    """The code of one received token, with the venue that decided and its reading. ``loss_bps``: the worst
    loss of the sells that count; None: unknown, or nothing was paid."""

    exit: Exit
    code: str
    venue: VenueEvidence | None = None
    reading: VenueReading | None = None
    loss_bps: int | None = None
    missing: Missing | None = None

    def shown_sell(self, policy: Policy) -> tuple[Probe, Sold] | None:
        """The sell that an answer shows: all of it straight back, the worse of its environments. Where too
        little of it sold, the worst of the other sells of the same wallet that count; where none counts, the
        one that sold most. None too where the same sell worked and failed, or is a trap for other wallets."""
        if self.venue is None or (self.reading is not None and self.reading.inconsistent is True):
            return None
        sold = _buyer_sells(self.venue)
        straight_back = [sell for sell in sold if _straight_back(sell[0])]
        if self.reading is not None and not enough(self.reading.full, policy):
            straight_back = [sell for sell in sold if _counts_later(sell[0], self.reading, policy)]
        return max(straight_back, key=_lost_bps) if straight_back else _largest(sold)

    def sells_all(self) -> bool:
        """True where all of it sold at once, after an hour and after a day, on a venue that was open
        already."""
        if self.reading is None or self.exit.through_opening:
            return False
        sales = (self.reading.full, self.reading.hour, self.reading.day)
        return all(isinstance(sale, Sale) and sale.whole for sale in sales)

    def later_loss_bps(self, policy: Policy) -> int | None:
        """The worst loss of the sells an hour and a day later that sold enough; what did not sell counts as
        lost. None: neither sold enough, or what was paid is not known."""
        if self.loss_bps is None or self.reading is None:
            return None
        laters = (self.reading.hour, self.reading.day)
        return max((_of_all(sale) for sale in laters if enough(sale, policy)), default=None)

    def price_impact_bps(self) -> int | None:
        """``impact_bps``; None where it is not known, or no loss is."""
        impact = self.reading.impact_bps if self.reading is not None and self.loss_bps is not None else None
        return impact if isinstance(impact, int) else None

    def impact_bps(self) -> int:
        """How much less this size gets than a small buy on the same venue; 0 where unknown."""
        impact = self.reading.impact_bps if self.reading is not None else None
        return impact if isinstance(impact, int) else 0


def _buyer_sells(venue: VenueEvidence) -> list[tuple[Probe, Sold]]:
    cells = [cell for cell in venue.cells if cell.probe.seller != "receiver"]
    return [(cell.probe, cell.outcome) for cell in cells if isinstance(cell.outcome, Sold)]


def _largest(sold: list[tuple[Probe, Sold]]) -> tuple[Probe, Sold] | None:
    """The sell of the largest part; of two environments the smaller part counts."""
    smallest: dict[tuple[int, int, str], tuple[Probe, Sold]] = {}
    for probe, outcome in sold:
        key = probe.delay_s, probe.share_bps, probe.seller
        if key not in smallest or part_raw(outcome) < part_raw(smallest[key][1]):
            smallest[key] = probe, outcome
    return max(smallest.values(), key=lambda sell: part_raw(sell[1]), default=None)


def part_raw(sold: Sold) -> int:
    """The part that was sold: tokens taken beyond the requested amount were not."""
    return max(0, min(sold.sold_raw, sold.planned_raw))


def _counts_later(probe: Probe, reading: VenueReading, policy: Policy) -> bool:
    """Whether the sells of this probe count where too little of it sells straight back."""
    if probe.seller in OVER_A_DAY:
        return enough(reading.pieces if "pieces" in probe.seller else reading.any_hour, policy)
    if probe.seller == "second route":
        return enough(reading.route, policy)
    if probe.seller == "nearly all":
        parts = zip((policy.later_s, policy.hour_s, policy.day_s), reading.nearly_sells(), strict=True)
        return enough(dict(parts).get(probe.delay_s), policy)
    if probe.share_bps == policy.half_bps:
        return enough(reading.half, policy) and not enough(reading.nearly, policy)
    result = {policy.hour_s: reading.hour, policy.day_s: reading.day}.get(probe.delay_s)
    return probe.share_bps == BPS and enough(result, policy)


def _lost_bps(sell: tuple[Probe, Sold]) -> int:
    """The loss of a sell: where it asked for all, what did not sell is lost, too."""
    probe, sold = sell
    is_all = probe.share_bps >= BPS and probe.seller != "nearly all"
    asked_raw = sold.held_raw if is_all else sold.sold_raw
    cost_raw = max(1, sold.paid_raw * asked_raw // max(1, sold.held_raw))
    return BPS - sold.back_raw * BPS // cost_raw


def _straight_back(probe: Probe) -> bool:
    """Whether the buyer sells all of it within a minute: the next such sell comes after an hour."""
    return probe.seller == "buyer" and probe.share_bps == BPS and probe.delay_s < 60


def judge_exit(exit_: Exit, policy: Policy) -> ExitFinding:
    """The code of a received token: by the venue where it sells best.

    A missing piece makes it unproven only if two fillings of it give different codes.
    """
    if exit_.gap is not None:
        return ExitFinding(exit_, "unproven", missing=exit_.gap)
    if not exit_.venues:
        return ExitFinding(exit_, "no_route", missing=None)
    possible = [_codes(venue, exit_, policy) for venue in exit_.venues]
    worst = min((max(codes, key=_badness) for codes in possible), key=_badness)
    best = min((min(codes, key=_badness) for codes in possible), key=_badness)
    readings = [read_venue(venue, policy) for venue in exit_.venues]
    decisive = min(
        range(len(readings)),
        key=lambda n: (_badness(max(possible[n], key=_badness)), _worst_loss_bps(readings[n], policy)),
    )
    venue, reading = exit_.venues[decisive], readings[decisive]
    if worst != best:
        gap = next((gap for other in readings for gap in _gaps(other)), _NOT_SOLD)
        return ExitFinding(exit_, "unproven", venue, reading, missing=gap)
    if exit_.left_out and worst != "ok":
        return ExitFinding(exit_, "unproven", venue, reading, missing=NOT_EVERYWHERE)
    has_loss = exit_.paid_known and not exit_.free and takes_sells(reading, policy)
    return ExitFinding(exit_, worst, venue, reading, _worst_loss_bps(reading, policy) if has_loss else None)


_NOT_SOLD = Missing("node", "one of the sells was not run")
NOT_EVERYWHERE = Missing(
    "token", "the gas of one request does not suffice to try the sell in every pool of the token"
)
"""The gas may also be used up by other people's pools of the token."""


def split_cost(
    cost_wei: int, usual_wei: Sequence[int | None], sent_wei: int = 0
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Each token's share of what several tokens cost together: in proportion to their usual cost, and the
    most that it may be, where all that was paid above the usual was paid for this one. ``usual_wei``: what as
    many of each cost in a buy of its own; None: not known, and then these tokens cost what the others leave.
    ``sent_wei``: the part of the cost that went elsewhere. A split in proportion alone would hide a heavy
    loss behind a large good buy."""
    known_wei = [usual for usual in usual_wei if usual is not None]
    total_wei, unknown = sum(known_wei), len(usual_wei) - len(known_wei)
    rest_wei = cost_wei - sent_wei - total_wei
    if unknown:
        left_wei = max(0, cost_wei - total_wei)
        most = tuple(left_wei if usual is None else min(usual, cost_wei) for usual in usual_wei)
        even = tuple(left_wei // unknown if usual is None else min(usual, cost_wei) for usual in usual_wei)
        return even, most
    if not total_wei:
        return (cost_wei,) * len(usual_wei), (cost_wei,) * len(usual_wei)
    even = tuple(cost_wei * usual // total_wei for usual in known_wei)
    if rest_wei <= 0:
        return even, even
    return even, tuple(usual + sent_wei * usual // total_wei + rest_wei for usual in known_wei)


COST_UNKNOWN = Missing(
    "token",
    "together the tokens cost more than usual, and which of them did is not known: simulate each buy alone",
)


def judge_share(exits: tuple[Exit, Exit], policy: Policy) -> ExitFinding:
    """The code of a token whose cost is known between two bounds: unproven where the upper one is worse."""
    least, most = (judge_exit(exit_, policy) for exit_ in exits)
    if least.code not in WORST_FIRST or most.code in WORST_FIRST[WORST_FIRST.index(least.code) :]:
        return least
    return replace(least, code="unproven", loss_bps=None, missing=most.missing or COST_UNKNOWN)


def _badness(code: str) -> int:
    return -WORST_FIRST.index(code)


def _codes(venue: VenueEvidence, exit_: Exit, policy: Policy) -> set[str]:
    """The codes of all fillings of the venue's missing pieces; stops once it has the best and the worst
    code."""
    codes: set[str] = set()
    for filled in _fillings(venue):
        reading = read_venue(filled, policy)
        impact = reading.impact_bps
        for lost_bps in (impact,) if isinstance(impact, int) else (0, BPS):
            codes.add(_venue_code(reading, lost_bps, exit_, policy))
        if {"ok", "cannot_sell"} <= codes:
            break
    return codes


def _venue_code(reading: VenueReading, impact_bps: int, exit_: Exit, policy: Policy) -> str:
    if not takes_sells(reading, policy):
        return "cannot_sell"
    if exit_.free:
        return "ok"
    if not exit_.paid_known:
        return "no_route"
    return code_of_loss(max(_worst_loss_bps(reading, policy), impact_bps), policy)


def code_of_loss(lost_bps: int, policy: Policy) -> str:
    """The code for what selling straight back loses, or for the drop of the price."""
    if lost_bps >= policy.danger_loss_bps:
        return "heavy_loss"
    return "high_loss" if lost_bps >= policy.warn_loss_bps else "ok"


# --- missing pieces --------------------------------------------------------------------------------


def _fillings(venue: VenueEvidence) -> Iterator[VenueEvidence]:
    """The venue with the buyer's missing sells filled in: sold at a gain, refused, sold for nothing, sold in
    the least part; of two environments also sold in the first and refused in the second."""
    groups: dict[tuple[int, int, str], list[int]] = {}
    for number, cell in enumerate(venue.cells):
        probe = cell.probe
        if isinstance(cell.outcome, Missing) and probe.seller != "receiver":
            groups.setdefault((probe.delay_s, probe.share_bps, probe.seller), []).append(number)
    ways = [_sold_once, _as_refused, _best, _worst, _least]
    extremes = ((way,) * len(groups) for way in ways)
    for choice in chain(extremes, product(ways, repeat=len(groups))):
        cells = list(venue.cells)
        for fill, numbers in zip(choice, groups.values(), strict=True):
            for number in numbers:
                cells[number] = ProbeCell(cells[number].probe, fill(cells[number].probe))
        yield replace(venue, cells=tuple(cells))
        if not groups:
            return


def _filling(probe: Probe, sold_raw: int, back_raw: int) -> Sold:
    return Sold(BPS, BPS, probe.share_bps, sold_raw, back_raw, 0, 0)


def _best(probe: Probe) -> CellOutcome:
    return _filling(probe, probe.share_bps, BPS * BPS)


def _worst(probe: Probe) -> CellOutcome:
    return _filling(probe, probe.share_bps, 0)


def _least(probe: Probe) -> CellOutcome:
    return _filling(probe, 1, 0)


def _as_refused(probe: Probe) -> CellOutcome:
    return RefusedCall("sell", None, 0)


def _sold_once(probe: Probe) -> CellOutcome:
    return _as_refused(probe) if probe.environment else _best(probe)


_SELLS = (
    "full", "hour", "day", "half", "pieces", "any_hour", "route", "nearly", "nearly_hour", "nearly_day",
)  # fmt: skip


def _gaps(reading: VenueReading) -> list[Missing]:
    pieces = [getattr(reading, name) for name in (*_SELLS, "inconsistent", "impact_bps")]
    return [gap for gap in pieces if isinstance(gap, Missing)]


# --- what is lost ----------------------------------------------------------------------------------


def _worst_loss_bps(reading: VenueReading, policy: Policy) -> int:
    """The worst loss of the sells that count: all of it straight back, an hour and a day later; what did not
    sell counts as lost. Where not enough of it sells at once, nearly all or half of it; where no single sale
    sells enough, the pieces."""
    sales = (reading.full, reading.hour, reading.day)
    losses = [_of_all(sale) for sale in sales if enough(sale, policy)]
    if not enough(reading.full, policy):
        half = None if enough(reading.nearly, policy) else reading.half
        parts = (*reading.nearly_sells(), half)
        losses += [part.loss_bps for part in parts if isinstance(part, Sale) and enough(part, policy)]
        losses += [_of_all(sale) for sale in _other_ways(reading, policy)]
    return max(losses, default=BPS)


def _other_ways(reading: VenueReading, policy: Policy) -> list[SellResult]:
    """The one of the other ways that sold it, where no single sale sold enough."""
    if sells_in_pieces_only(reading, policy):
        return [reading.pieces]
    if sells_at_some_hours_only(reading, policy):
        return [reading.any_hour]
    return [reading.route] if sells_by_second_route_only(reading, policy) else []


def _of_all(sale: SellResult) -> int:
    """The loss on the cost of all of it: what did not sell is lost, too."""
    assert isinstance(sale, Sale)
    if sale.share_bps >= BPS:
        return sale.loss_bps
    return BPS - sale.share_bps * (BPS - sale.loss_bps) // BPS


# --- the whole trade -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WalletChanges:
    """How the wallet changed. ``short``: it could not have paid for all of the calls. ``lost_bps``: where
    only money came back, its loss at the pinned block's prices; None: unknown."""

    spent: bool
    received: bool
    short: bool = False
    lost_bps: int | None = None


@dataclass(frozen=True, slots=True)
class TradeOutcome:
    """The judgement of a whole trade. ``decided``: the received token that decided; None: there is none.
    ``lost_bps``: where no token came back, the loss at the pinned block's prices; ``unpriced``: that loss is
    unknown. ``warned``: the calls themselves need a warning, whatever they bring."""

    code: str
    decided: ExitFinding | None = None
    missing: Missing | None = None
    lost_bps: int | None = None
    unpriced: bool = False
    warned: bool = False

    def level(self) -> Level:
        """The level of the code, of the token that decided, and of the calls themselves. A loss that is not
        known is no pass."""
        return level_of(self.code, self.decided, self.warned or self.unpriced)


def level_of(code: str, finding: ExitFinding | None, warned: bool = False) -> Level:
    """The level of the code. Code ok has level warn where the purchase sells only now, only later, in part,
    or in a pool that has to be opened first; and where the calls are ``warned`` of. ``finding``: the received
    token that decided; None: there is none."""
    level = LEVELS[code]
    sells_all = finding is None or finding.sells_all()
    return "warn" if level == "ok" and (warned or not sells_all) else level


def judge_trade(
    ran: RunResult,
    exits: tuple[ExitFinding, ...],
    changed: WalletChanges,
    policy: Policy,
    known_spenders: Collection[Address] = (),
) -> TradeOutcome:
    """In this order: tx_reverts, unproven, then the worst received token, nothing_received, ok."""
    outcome = _judge_changes(ran, exits, changed, policy)
    return replace(outcome, warned=ran.needs_warning(known_spenders))


def _judge_changes(
    ran: RunResult, exits: tuple[ExitFinding, ...], changed: WalletChanges, policy: Policy
) -> TradeOutcome:
    """The outcome of the order in ``judge_trade``, without the warnings about the calls themselves."""
    if ran.has_reverted() or changed.short:
        return TradeOutcome("tx_reverts")
    unproven = next((finding for finding in exits if finding.code == "unproven"), None)
    if unproven is not None:
        return TradeOutcome("unproven", unproven, unproven.missing)
    if exits:
        worst = min(exits, key=lambda finding: (WORST_FIRST.index(finding.code), -(finding.loss_bps or 0)))
        return TradeOutcome(worst.code, worst)
    if changed.lost_bps is not None and code_of_loss(changed.lost_bps, policy) != "ok":
        return TradeOutcome(code_of_loss(changed.lost_bps, policy), lost_bps=changed.lost_bps)
    if changed.spent and not changed.received:
        return TradeOutcome("nothing_received")
    return TradeOutcome("ok", unpriced=changed.spent and changed.lost_bps is None)


def refusal_code(code: str, checked: Judgement) -> str | None:
    """The code that a buy is refused with; None: it may be prepared. Refused are tokens that cannot be sold,
    lose half, are a danger according to a check, or have no proven sell. A pool that is thin for the check's
    size may not be thin for the buy's."""
    check = checked.verdict
    if code in ("cannot_sell", "heavy_loss"):
        return code
    if check.level == "danger" and not checked.depends_on_size():
        return "cannot_sell" if check.code == "cannot_sell" else "heavy_loss"
    if code in ("unproven", "no_route") or check.level == "unknown":
        return "unproven"
    return None
