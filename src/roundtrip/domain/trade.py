"""What a wallet's own calls came to, and how that is judged: simulate, prepare and practice share it.

Losses are in bps of what was spent, valued at the pinned block.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from .evidence import Cell, Missing, Refused, Sold, VenueEvidence
from .policy import Policy
from .readings import Sale, SellResult, VenueReading, read_venue
from .types import BPS, Address
from .venue_code import Level, enough, takes_sells
from .verdict import Verdict

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
"""Every code a simulation or a trade can have, as the specification lists them, and its level."""

WORST_FIRST = ("cannot_sell", "heavy_loss", "no_route", "high_loss", "ok")
"""In which order what became of several received tokens decides."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """One call. ``reason``: why it failed, as decoded, empty where it gave none; None when it did not."""

    ok: bool
    gas_used: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Moved:
    """By how much a balance changed over all calls, gas left out; the zero address is eth. ``before_raw`` is
    what was held, ``later_raw`` what is held in a later block, an hour and a day later with nothing done."""

    asset: Address
    raw: int
    before_raw: int
    later_raw: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the calls newly let a spender take. ``raw`` None: all there is of a collection."""

    token: Address
    spender: Address
    raw: int | None
    via: Literal["erc20", "permit2", "all"]

    def unlimited(self) -> bool:
        """True for amounts that stand for no bound: wallets and tokens use 2^96 - 1, 2^160 - 1 and 2^256 - 1,
        or what is left of them."""
        return self.raw is None or self.raw >= 2**128 or self.raw == 2**96 - 1


@dataclass(frozen=True, slots=True)
class Ran:
    """A whole run. ``eth_changes_wei``: what each call changed of the wallet's eth, without its gas.
    ``told``: decimals and symbol as each token answered."""

    calls: tuple[CallResult, ...]
    moved: tuple[Moved, ...]
    allowances: tuple[Allowance, ...]
    eth_changes_wei: tuple[int, ...]
    gas_price_wei: int
    told: Mapping[Address, tuple[int | None, bytes | None]] = field(default_factory=dict)

    def reverted(self) -> bool:
        """True when some call failed."""
        return not all(call.ok for call in self.calls)


@dataclass(frozen=True, slots=True)
class Exit:
    """What became of one received token when it was sold. ``paid_known``: what was spent for it has a price
    in what came back. ``through_opening``: the calls sold its curve out, and it was sold in the pool that
    anybody may open then."""

    token: Address
    received_raw: int
    venues: tuple[VenueEvidence, ...]
    paid_known: bool
    through_opening: bool = False
    gap: Missing | None = None
    """Where it could not even be looked for a place to sell it on."""


@dataclass(frozen=True, slots=True)
class ExitFinding:
    """The code of one received token, with the venue that decided and what it showed. ``loss_bps`` is what
    is lost at worst by the sells that count."""

    exit: Exit
    code: str
    venue: VenueEvidence | None = None
    reading: VenueReading | None = None
    loss_bps: int | None = None
    missing: Missing | None = None

    def shown(self) -> Sold | None:
        """The sell that an answer shows: all of it straight back, the worse of its environments; where that
        did not go through, the first one that did."""
        if self.venue is None:
            return None
        full = [sold for cell, sold in _sold(self.venue) if _straight_back(cell)]
        if full:
            return min(full, key=lambda sold: sold.back_raw * sold.held_raw)
        return next((sold for _, sold in _sold(self.venue)), None)


def _sold(venue: VenueEvidence) -> list[tuple[Cell, Sold]]:
    return [(cell, cell.outcome) for cell in venue.cells if isinstance(cell.outcome, Sold)]


def _straight_back(cell: Cell) -> bool:
    return cell.probe.share_bps == BPS and cell.probe.seller == "buyer" and cell.probe.delay_s < 60


def find_exit(one: Exit, policy: Policy) -> ExitFinding:
    """The code of a received token: by the venue where it sells best.

    A missing piece leaves it unproven only if the best and the worst of its values give different codes;
    between them nothing is worse than the worst, since every sell that is refused or costs more can only
    make a venue worse.
    """
    if one.gap is not None:
        return ExitFinding(one, "unproven", missing=one.gap)
    readings = [(venue, read_venue(venue, policy)) for venue in one.venues]
    if not readings:
        return ExitFinding(one, "no_route")
    worst, best = (
        min((_venue_code(_settled(reading, good), one, policy) for _, reading in readings), key=_badness)
        for good in (False, True)
    )
    codes = [_venue_code(_settled(reading, good=False), one, policy) for _, reading in readings]
    number = min(range(len(readings)), key=lambda n: (_badness(codes[n]), _lost(readings[n][1], policy)))
    venue, reading = readings[number]
    if worst != best:
        gap = next((gap for _, other in readings for gap in _gaps(other)), _NOT_SOLD)
        return ExitFinding(one, "unproven", venue, reading, missing=gap)
    lost = _lost(_settled(reading, good=False), policy) if takes_sells(reading, policy) else None
    return ExitFinding(one, worst, venue, reading, lost if one.paid_known else None)


_NOT_SOLD = Missing("node", "a sell was not tried")


def _badness(code: str) -> int:
    return -WORST_FIRST.index(code)


def _venue_code(reading: VenueReading, one: Exit, policy: Policy) -> str:
    if not takes_sells(reading, policy):
        return "cannot_sell"
    if not one.paid_known:
        return "no_route"
    return code_of_loss(_lost(reading, policy), policy)


def code_of_loss(lost_bps: int, policy: Policy) -> str:
    """The code for what selling straight back loses."""
    if lost_bps >= policy.danger_loss_bps:
        return "heavy_loss"
    return "high_loss" if lost_bps >= policy.warn_loss_bps else "ok"


def _lost(reading: VenueReading, policy: Policy) -> int:
    """What is lost at worst by the sells that count: all of it straight back, an hour and a day later, what
    did not sell counted as lost. Where not enough of it sells at once, half of it, and where that does not
    either, all of it from another wallet. What sells now and no longer within a day is a high loss at least.
    """
    laters = (reading.hour, reading.day)
    losses = [_of_all(sale) for sale in (reading.full, *laters) if _enough(sale, policy)]
    if not _enough(reading.full, policy):
        part = next((s for s in (reading.half, reading.handed_on) if _enough(s, policy)), None)
        losses += [part.loss_bps] if isinstance(part, Sale) else []
    elif not all(_enough(later, policy) for later in laters):
        losses.append(policy.warn_loss_bps)
    return max(losses, default=BPS)


def _enough(result: SellResult, policy: Policy) -> bool:
    return enough(result, policy)


def _of_all(sale: SellResult) -> int:
    """Of what all of it cost: what did not sell is lost too."""
    assert isinstance(sale, Sale)
    if sale.share_bps >= BPS:
        return sale.loss_bps
    return BPS - sale.share_bps * (BPS - sale.loss_bps) // BPS


_SELLS = ("full", "hour", "day", "half", "sliver", "handed_on")
_LEAST_LOSS = -BPS * BPS


def _gaps(reading: VenueReading) -> list[Missing]:
    found = [getattr(reading, name) for name in (*_SELLS, "fickle")]
    return [gap for gap in found if isinstance(gap, Missing)]


def _settled(reading: VenueReading, good: bool) -> VenueReading:
    """Every missing piece at its best, or at its worst."""
    sell: SellResult = Sale(_LEAST_LOSS, BPS, True) if good else Refused("sell", None, 0)
    changes: dict[str, object] = {
        name: sell for name in _SELLS if isinstance(getattr(reading, name), Missing)
    }
    if isinstance(reading.fickle, Missing):
        changes["fickle"] = not good
    return replace(reading, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Changed:
    """What the wallet comes out with. ``short``: it could not have paid for all of the calls. ``lost_bps``:
    where money was changed into money only, what that lost at the pinned block's prices."""

    spent: bool
    received: bool
    short: bool = False
    lost_bps: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A whole trade, judged. ``decided``: the received token that decided; None: none did."""

    code: str
    decided: ExitFinding | None = None
    missing: Missing | None = None

    def level(self) -> Level:
        """The level that goes with the code."""
        return LEVELS[self.code]


def judge_trade(ran: Ran, exits: tuple[ExitFinding, ...], changed: Changed, policy: Policy) -> Outcome:
    """The decided order: tx_reverts, unproven, then the worst received token, nothing_received, ok."""
    if ran.reverted() or changed.short:
        return Outcome("tx_reverts")
    open_ = next((one for one in exits if one.code == "unproven"), None)
    if open_ is not None:
        return Outcome("unproven", open_, open_.missing)
    if exits:
        worst = min(exits, key=lambda one: (WORST_FIRST.index(one.code), -(one.loss_bps or 0)))
        return Outcome(worst.code, worst)
    if changed.lost_bps is not None and code_of_loss(changed.lost_bps, policy) != "ok":
        return Outcome(code_of_loss(changed.lost_bps, policy))
    return Outcome("nothing_received" if changed.spent and not changed.received else "ok")


def refusal(code: str, check: Verdict) -> str | None:
    """The code that a buy is refused with; None: it is written. What cannot be sold, what loses half and
    what a check calls a trap is not written, nor what no sell was proven for."""
    if code in ("cannot_sell", "heavy_loss"):
        return code
    if check.level == "danger":
        return "cannot_sell" if check.code == "cannot_sell" else "heavy_loss"
    if code in ("unproven", "no_route") or check.level == "unknown":
        return "unproven"
    return None
