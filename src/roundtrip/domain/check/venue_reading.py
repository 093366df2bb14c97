"""Reads one venue's evidence into the figures of a verdict. Losses are in bps."""

import math
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import Venue

from .buy_math import PIPS
from .crowd_reading import CrowdReading, MainSells, read_crowd
from .evidence import (
    AnyLaunch,
    BuyOutcome,
    CompletedBuy,
    Crowd,
    Curve,
    HookCarry,
    Missing,
    PoolLaunch,
    RefusedCall,
    Size,
    Sold,
    VenueEvidence,
)
from .price import pool_price
from .refusals import POOL_GAVE_NOTHING
from .sales import Sale, SellResult, loss_bps, sell_result

MAIN_SIZES: tuple[Size, ...] = ("probe", "tenth", "hundredth")
"""The sizes a venue may be judged at, best first."""


Status = Literal["absent", "dry", "refused", "rounds", "keeps", "bought"]


@dataclass(frozen=True, slots=True)
class VenueReading:
    """The results of one venue. The result of a sell is the worst over the environments."""

    status: Status | Missing
    """absent: no such pool. dry: the pool lacks liquidity to fill a buy. refused: it refuses buys. keeps: it
    takes the payment and gives nothing. rounds: the same, but the pool itself gave nothing, because one base
    unit costs more than was paid. bought: a buy went through. Missing: one of ``may_be``, not known which."""
    pool_fee_bps: int | Missing
    """The share of a round trip that the pool or its hook keeps; the launchpad's fees do not count."""
    rival_hook: bool = False
    """It has a hook that is not the launchpad's."""
    brought_raw: int = 0
    """The amount that a buy of the probe's size brings."""
    cross_venue_loss_bps: int | Missing = 0
    """The loss of selling here what was bought on the venue that sells cheapest and refuses the sell."""
    cross_venue_large_loss_bps: int | None = None
    """The same of what ``large_wei`` buys there; None: not tried, or not known."""
    toll_beside_bps: int = 0
    """What the pool keeps of a round trip on the venue that sells cheapest, where what was bought there loses
    much here, too; at most what it loses here."""
    tax_beside_bps: int = 0
    """The same of what the token takes there. At most one of the two is known."""
    trap_beside: int | None = None
    """The index of the venue that sells cheapest, where it takes no sell; where its buyers lose much, here,
    too; or where the token takes much more there than here; or where one of these may be. None: a sell there
    is as good, or it is not known whether it takes any."""
    closing: bool = False
    """A buy of the usual size would sell the curve out."""
    may_be: frozenset[Status] = frozenset()
    size: Size | None = None
    """The size at which the venue is judged."""
    bought: CompletedBuy | None = None
    buy_refusal: RefusedCall | None = None
    full: SellResult = None
    """All of it, sold soon after the buy."""
    full_at_best: Sale | None = None
    """Where ``full`` is unknown in one environment: its result in the others."""
    inconsistent: bool | Missing = False
    """It sold in one environment and was refused in another, or the crowd shows a trap."""
    refused_elsewhere: RefusedCall | None = None
    """Why an environment could not buy, where another could."""
    hour: SellResult = None
    day: SellResult = None
    """All of it, sold an hour and a day after the buy."""
    half: SellResult = None
    sliver: SellResult = None
    """Half and a hundredth of it, sold soon."""
    nearly: SellResult = None
    nearly_hour: SellResult = None
    nearly_day: SellResult = None
    """The largest part that sold, of those just below all that the policy tries: soon, after an hour and
    after a day. Each is tried only where a sell of all was refused at that moment."""
    pieces: SellResult = None
    """All of it, in equal sales over a day, by as many of them as sold most; tried, like ``any_hour`` and
    ``route``, only where no single sale sold enough."""
    in_fifty: bool = False
    """``pieces`` is of fifty sales; else of ten."""
    any_hour: SellResult = None
    """All of it, at the first of ten moments of a day that took it."""
    route: SellResult = None
    """All of it, by the venue's second route."""
    handed_on: SellResult = None
    """What another wallet sold that the buyer sent it to."""
    much_gas: SellResult = None
    """All of it, sold soon with as much gas as a transaction may have."""
    little_gas: SellResult = None
    """The same with about the gas that it uses, as a wallet estimates it; a refusal says nothing."""
    traded_before: SellResult = None
    """Half of what a wallet bought that had bought it, sold it and sent it on before, sold an hour later."""
    large: SellResult = None
    """What a buy of the policy's ``large_wei`` brought, sold soon."""
    fees_bps: int | Missing | None = None
    """The loss of a round trip so small that it does not move the price; None: not tried, or
    refused."""
    first_tax_bps: int | Missing = 0
    """What a curve takes of a new wallet's buy in a launch's first seconds, at the pinned block: it counts
    where it exceeds the measured fees."""
    impact_bps: int | Missing | None = None
    """How much less one paid unit buys at this size than in a small buy."""
    most_gas: int = 0
    """The most gas that a buy or a sell used."""
    crowd: CrowdReading | None = None
    """What the crowd's wallets met."""

    def sells(self) -> tuple[SellResult, ...]:
        """Every probe that may show that the buyer can sell within a day."""
        return (*self.single_sells(), self.pieces, self.any_hour, self.route)

    def single_sells(self) -> tuple[SellResult, ...]:
        """The sells of ``sells`` that are one sale."""
        return (*self.whole_sells(), *self.nearly_sells(), self.half, self.sliver)

    def whole_sells(self) -> tuple[SellResult, SellResult, SellResult]:
        """The sells of all of it: soon, after an hour and after a day."""
        return self.full, self.hour, self.day

    def nearly_sells(self) -> tuple[SellResult, SellResult, SellResult]:
        """The sells of nearly all of it, at the same moments."""
        return self.nearly, self.nearly_hour, self.nearly_day


def pool_keep_bps(fee_pips: int) -> int:
    """The share of a round trip that the pool's fee takes, rounded up: 1 - (1 - fee)^2."""
    kept = PIPS * PIPS - (PIPS - fee_pips) ** 2
    return -(-kept * BPS // (PIPS * PIPS))


def read_venue(
    venue: VenueEvidence, policy: Policy, launch: AnyLaunch | Missing | None = None
) -> VenueReading:
    """Reads the figures of one venue. A result that is unknown or was not tried stays Missing."""
    status, may_be, size = _status(venue)
    if status != "bought" or size is None:
        return _read_without_buy(venue, status, may_be)

    def results(delay_s: int, share_bps: int, seller: str = "buyer", at: Size = size) -> list[SellResult]:
        return [
            sell_result(cell.outcome, policy)
            for cell in venue.cells
            if (cell.probe.size, cell.probe.delay_s, cell.probe.share_bps, cell.probe.seller)
            == (at, delay_s, share_bps, seller)
        ]

    bought = _find_completed(venue, size)
    moments = (policy.later_s, policy.hour_s, policy.day_s)
    hour, day = (_where_bought(results(s, BPS) or results(s, policy.most_bps))[0] for s in moments[1:])
    full, elsewhere = _where_bought(results(policy.later_s, BPS))
    nearly = [_worst(results(delay_s, BPS, "nearly all")) for delay_s in moments]
    pieces, in_fifty = _most_pieces(*(_worst(results(policy.day_s, BPS, way)) for way in _PIECES))
    fees = _fees(results(moments[0], policy.most_bps, at=_LEAST), _buy(venue, _LEAST), _worst(full))
    whole = (_worst(full), _worst(hour), _worst(day))
    main = MainSells(*whole, _held_later_bps(bought), _sells_no_whole(size, whole) and _sold_all(pieces))
    crowd = read_crowd(venue.crowd, main, policy) if isinstance(venue.crowd, Crowd) else venue.crowd
    return VenueReading(
        status="bought",
        pool_fee_bps=_pool_fee(venue, fees, _worst(full)),
        rival_hook=venue.venue.rival_hook(),
        brought_raw=brought_raw(venue),
        closing=_is_closing(venue),
        size=size,
        bought=bought,
        full=_worst(full) or _NOT_TRIED,
        full_at_best=_best_case(full),
        inconsistent=_is_trap(_is_any_inconsistent([full, hour, day], nearly), crowd),
        refused_elsewhere=elsewhere,
        hour=_worst(hour) or _NOT_TRIED,
        day=_worst(day) or _NOT_TRIED,
        half=_worst(results(policy.later_s, policy.half_bps)),
        sliver=_worst(results(policy.later_s, policy.sliver_bps)),
        nearly=nearly[0],
        nearly_hour=nearly[1],
        nearly_day=nearly[2],
        pieces=pieces,
        in_fifty=in_fifty,
        any_hour=_worst(results(policy.day_s, BPS, "any hour")),
        route=_worst(results(policy.later_s, BPS, "second route")),
        handed_on=_handed_on([results(policy.later_s, s, "receiver") for s in (BPS, policy.half_bps)]),
        much_gas=_worst(results(policy.later_s, BPS, "much gas")),
        little_gas=_worst(results(policy.later_s, BPS, "little gas")),
        traded_before=_worst(results(policy.hour_s, policy.half_bps, "traded before")),
        large=_worst(results(policy.later_s, policy.most_bps, at="large")),
        fees_bps=fees,
        first_tax_bps=_first_tax(venue.venue, launch),
        impact_bps=_impact(venue, bought, size),
        most_gas=_most_gas(venue, size),
        crowd=crowd if isinstance(crowd, CrowdReading) else None,
    )


_PIECES = ("pieces", "small pieces")
_LEAST: Size = "thousandth"


def _is_closing(venue: VenueEvidence) -> bool:
    buys = (buy.outcome for buy in venue.buys if buy.size in MAIN_SIZES)
    return any(isinstance(buy, CompletedBuy) and buy.closes for buy in buys)


def _read_without_buy(
    venue: VenueEvidence, status: Status | Missing, may_be: frozenset[Status]
) -> VenueReading:
    refusals = (b.outcome for b in venue.buys if isinstance(b.outcome, RefusedCall))
    return VenueReading(
        status=status,
        may_be=may_be,
        pool_fee_bps=0 if venue.venue.keeps_by_hook() else _plain_pool_fee(venue.venue),
        rival_hook=venue.venue.rival_hook(),
        buy_refusal=None if status in ("keeps", "rounds") else next(refusals, None),
    )


def main_sells(reading: VenueReading) -> MainSells:
    """The main wallet's sells, with which those of the crowd are compared before its sales in pieces are
    tried."""
    held_later_bps = (
        _held_later_bps(reading.bought) if isinstance(reading.bought, CompletedBuy) else (BPS, BPS, BPS)
    )
    may_sell_pieces = _sells_no_whole(reading.size, reading.whole_sells())
    return MainSells(*reading.whole_sells(), held_later_bps, may_sell_pieces)


def _sells_no_whole(size: Size | None, whole_sells: tuple[SellResult, ...]) -> bool:
    """True where every sale of all of a usual buy is refused."""
    return size == "probe" and all(isinstance(sell, RefusedCall) for sell in whole_sells)


def _sold_all(pieces: SellResult) -> bool:
    """True where each of the pieces sold. Refused ones are no part of what is planned: the share tells."""
    return isinstance(pieces, Sale) and pieces.share_bps == BPS


def _held_later_bps(bought: CompletedBuy) -> tuple[int, int, int]:
    """The balance soon, after an hour and after a day, as a share of what arrived: it changes in a token that
    rebases."""
    if len(bought.held_later_raw) != len(("soon", "hour", "day")) or bought.received_raw <= 0:
        return BPS, BPS, BPS
    soon, hour, day = (raw * BPS // bought.received_raw for raw in bought.held_later_raw)
    return soon, hour, day


def _plain_pool_fee(venue: Venue) -> int:
    """The share that the pool's fee takes; 0 for the launchpad: its fees are no toll."""
    return 0 if venue.traits.is_launchpad else pool_keep_bps(venue.fee_pips)


def _pool_fee(venue: VenueEvidence, fees: int | Missing | None, full: SellResult) -> int | Missing:
    """The pool's share of a round trip. With a hook it is the loss beyond the token's tax on its own
    transfers; the whole loss where the token refused the direct transfer."""
    if not venue.venue.keeps_by_hook():
        return _plain_pool_fee(venue.venue)
    if isinstance(full, Missing):
        return full
    if isinstance(fees, Missing):
        return fees
    losses = [fees, full.loss_bps if isinstance(full, Sale) else None]
    known = [loss for loss in losses if loss is not None]
    if not known:
        return 0
    lost = max(known)
    carried = venue.carried
    if isinstance(carried, Missing) and carried.fault == "node":
        return carried
    lost = min(BPS, max(0, lost))
    if not isinstance(carried, HookCarry):
        return lost
    moved, min_arrived = carried.moved_raw, min(carried.arrived_raw, carried.received_raw)
    if min_arrived <= 0:
        return 0
    through = min(carried.arrived_raw, moved) * min(carried.received_raw, moved)
    return max(0, BPS - (BPS - lost) * moved * moved // through)


def _first_tax(venue: Venue, launch: AnyLaunch | Missing | None) -> int | Missing:
    if not venue.is_curve or launch is None or isinstance(launch, PoolLaunch):
        return 0
    if isinstance(launch, Missing):
        return launch
    state = launch.curve_state
    return state.snipe_bps if isinstance(state, Curve) else state or 0


_NOT_TRIED = Missing("node", "a sell was not tried")


def _buy(venue: VenueEvidence, size: Size, environment: int = 0) -> BuyOutcome | None:
    outcomes = (b.outcome for b in venue.buys if b.size == size and b.environment == environment)
    return next(outcomes, None)


def _find_completed(venue: VenueEvidence, size: Size) -> CompletedBuy:
    bought = _buy(venue, size)
    assert isinstance(bought, CompletedBuy)
    return bought


_DIVISORS: dict[Size, int] = {"probe": 1, "tenth": 10, "hundredth": 100}


def brought_raw(venue: VenueEvidence) -> int:
    """The amount of the judged buy, scaled up to the probe's size; 0 where nothing was bought."""
    size = main_size(venue)
    bought = _buy(venue, size) if isinstance(size, str) else None
    return (
        bought.received_raw * _DIVISORS[size]
        if isinstance(bought, CompletedBuy) and isinstance(size, str)
        else 0
    )


def main_size(venue: VenueEvidence) -> Size | Missing | None:
    """The largest size, from the probe down, that the venue filled; Missing when a larger one is unknown."""
    for size in MAIN_SIZES:
        outcome = _buy(venue, size)
        if isinstance(outcome, Missing):
            return outcome
        if isinstance(outcome, CompletedBuy) and is_filled(outcome):
            return size
    return None


def is_filled(buy: CompletedBuy) -> bool:
    """True when the pool took the whole offer, gave tokens for it, and goes on selling."""
    return not buy.closes and buy.received_raw > 0 and buy.paid_raw * 100 >= buy.offered_raw * 99


def _status(venue: VenueEvidence) -> tuple[Status | Missing, frozenset[Status], Size | None]:
    """The status, its possible values where it is Missing, and the size that was bought."""
    size = main_size(venue)
    if isinstance(size, str):
        return "bought", frozenset(), size
    facts, outcomes = venue.facts, [_buy(venue, size) for size in MAIN_SIZES]
    if (
        size is None
        and not any(isinstance(buy, CompletedBuy) for buy in outcomes)
        and any(map(_brought_nothing, outcomes))
    ):
        is_rounded = all(_is_rounded(buy) for buy in outcomes if _brought_nothing(buy))
        return ("rounds" if is_rounded else "keeps"), frozenset(), None
    if not isinstance(facts, Missing) and not facts.exists:
        return "absent", frozenset(), None
    if size is not None:
        return size, frozenset({"absent", "dry", "refused", "rounds", "keeps", "bought"}), None
    if any(isinstance(buy, CompletedBuy) for buy in outcomes):
        return "dry", frozenset(), None
    if isinstance(facts, Missing):
        return facts, frozenset({"absent", "dry", "refused"}), None
    dry = facts.sqrt_price_x96 == 0 or facts.liquidity == 0
    return ("dry" if dry else "refused"), frozenset(), None


def _brought_nothing(buy: BuyOutcome | None) -> bool:
    """True for a buy that was paid for and brought nothing."""
    return isinstance(buy, RefusedCall) and buy.step == "arrive"


def _is_rounded(buy: BuyOutcome | None) -> bool:
    """True where the pool gave nothing for a buy."""
    return isinstance(buy, RefusedCall) and buy.reason == POOL_GAVE_NOTHING


def largest_rounded(venue: VenueEvidence) -> Size | None:
    """The largest buy for which the pool gave nothing."""
    sizes: tuple[Size, ...] = ("large", *MAIN_SIZES)
    return next((size for size in sizes if _is_rounded(_buy(venue, size))), None)


def _worst(results: list[SellResult]) -> SellResult:
    """The worst of several environments: refused, then unknown, then the worst of each figure."""
    for kind in (RefusedCall, Missing):
        for result in results:
            if isinstance(result, kind):
                return result
    sales = [result for result in results if isinstance(result, Sale)]
    if not sales:
        return None
    return Sale(
        loss_bps=max(sale.loss_bps for sale in sales),
        share_bps=min(sale.share_bps for sale in sales),
        whole=all(sale.whole for sale in sales),
        sold_raw=min(sale.sold_raw for sale in sales),
    )


def _most_pieces(tenths: SellResult, fiftieths: SellResult) -> tuple[SellResult, bool]:
    """The sales in pieces of which more was sold, and whether they were fifty. Where one of both is unknown,
    that is the result, unless the other sold half."""
    sales = [sale for sale in (tenths, fiftieths) if isinstance(sale, Sale)]
    best = max(sales, key=lambda sale: sale.share_bps, default=None)
    unknown = next((sale for sale in (tenths, fiftieths) if isinstance(sale, Missing)), None)
    if unknown is not None and (best is None or 2 * best.share_bps < BPS):
        return unknown, False
    if best is None:
        return tenths or fiftieths, False
    return best, best is not tenths


def _where_bought(results: list[SellResult]) -> tuple[list[SellResult], RefusedCall | None]:
    """The results of the environments that bought, and the refusal of one that did not.

    A refused buy says nothing about selling, as long as another environment bought.
    """
    elsewhere = [r for r in results if isinstance(r, RefusedCall) and r.step in ("fund", "buy", "arrive")]
    rest = [r for r in results if r not in elsewhere]
    return (rest, elsewhere[0]) if elsewhere and rest else (results, None)


def _handed_on(shares: list[list[SellResult]]) -> SellResult:
    """What a receiver could sell, the larger of all and half: with taxed transfers only half can sell."""
    worst = [_worst(results) for results in shares]
    sales = [result for result in worst if isinstance(result, Sale)]
    if sales:
        return max(sales, key=lambda sale: sale.share_bps)
    known_results = [result for result in worst if result is not None]
    return next(
        (result for result in known_results if isinstance(result, Missing)),
        known_results[0] if known_results else None,
    )


def _best_case(results: list[SellResult]) -> Sale | None:
    """Where the result of an environment is unknown: the worst of the others. The true result is no better.
    None where all are known."""
    worst = _worst([result for result in results if isinstance(result, Sale)])
    unknown = any(isinstance(result, Missing) for result in results)
    return worst if unknown and isinstance(worst, Sale) else None


def _is_inconsistent(results: list[SellResult]) -> bool | Missing:
    """True when the first environment sold and another was refused: the sale works for some wallets and
    blocks only. Where the first was refused, that is a plain refusal, since the others sell less."""
    first, others = results[0], results[1:]
    if isinstance(first, RefusedCall):
        return False
    refused = any(isinstance(result, RefusedCall) and result.step == "sell" for result in others)
    unknown = next((result for result in others if isinstance(result, Missing)), None)
    if refused:
        return first if isinstance(first, Missing) else True
    return unknown if unknown is not None else False


def _is_any_inconsistent(groups: list[list[SellResult]], nearly: list[SellResult]) -> bool | Missing:
    """Inconsistent at any delay; Missing when an unknown result could make it so. Where all was refused and
    nearly all sells, the amount decided, and not the wallet."""
    verdicts = [
        _is_inconsistent(group)
        for group, part in zip(groups, nearly, strict=True)
        if len(group) > 1 and not isinstance(part, Sale)
    ]
    if True in verdicts:
        return True
    return next((verdict for verdict in verdicts if isinstance(verdict, Missing)), False)


def _is_trap(inconsistent: bool | Missing, crowd: CrowdReading | Missing | None) -> bool | Missing:
    """True when equal blocks gave unequal results, or the crowd shows a trap."""
    trapped = crowd.trapped if isinstance(crowd, CrowdReading) else crowd or False
    if inconsistent is True or trapped is True:
        return True
    return inconsistent if isinstance(inconsistent, Missing) else trapped


_FINE_UNITS = 10_000
"""With fewer base units than these, rounding to whole ones changes a figure by more than 0.01 %."""


def _has_fine_units(small: BuyOutcome | None) -> bool:
    return not isinstance(small, CompletedBuy) or small.received_raw >= _FINE_UNITS


def _fees(results: list[SellResult], small: BuyOutcome | None, full: SellResult) -> int | Missing | None:
    """The loss of the small round trip. Of a few base units it is mostly rounding, and fees that take a share
    take it of all, too: the loss of that one is the most that counts."""
    worst = small if isinstance(small, Missing) else _worst(results)
    if isinstance(worst, Sale) and isinstance(full, Sale) and not _has_fine_units(small):
        return min(worst.loss_bps, max(0, full.loss_bps))
    return worst.loss_bps if isinstance(worst, Sale) else worst if isinstance(worst, Missing) else None


def _impact(venue: VenueEvidence, main: CompletedBuy, size: Size) -> int | Missing:
    """How much less one paid unit buys at the judged size than at the smallest buy below it that succeeded.
    Missing counts as the token's fault where it refuses every smaller buy.

    Where that buy is so small that it is rounded, or brings nothing for that reason, the pool's own price
    says more.
    """
    for smaller in ("thousandth", "hundredth", "tenth"):
        small = _buy(venue, smaller)
        if smaller == size:
            break
        if isinstance(small, Missing):
            return small
        if isinstance(small, CompletedBuy) and small.received_raw > 0 and small.paid_raw > 0:
            seen_bps = _impact_against(small.received_raw, small.paid_raw, main)
            if _has_fine_units(small):
                return seen_bps
            # The buy and a tax on it each round down by less than one unit.
            most_bps = _impact_against(small.received_raw + 2, small.paid_raw, main)
            by_price_bps = _impact_by_price(venue, main)
            return most_bps if by_price_bps is None else min(most_bps, max(seen_bps, by_price_bps))
    by_price_bps = _impact_by_price(venue, main) if _is_rounded(_buy(venue, _LEAST)) else None
    if by_price_bps is not None:
        return by_price_bps
    return Missing("token", "it refuses smaller buys, so its price impact is unknown")


def _impact_against(received_raw: int, paid_raw: int, main: CompletedBuy) -> int:
    return max(0, loss_bps(received_raw * main.paid_raw, main.received_raw * paid_raw))


def _impact_by_price(venue: VenueEvidence, main: CompletedBuy) -> int | None:
    """The impact against the price that a pool without a stranger's hook shows, less its fee; None: there is
    none. Only for a token with far fewer base units than its money: then the price is the larger of the two
    that the pool's square root may mean."""
    facts, place = venue.facts, venue.venue
    if place.rival_hook() or place.fee_pips >= PIPS or isinstance(facts, Missing):
        return None
    price = pool_price(facts.sqrt_price_x96, True)
    if price is None or main.received_raw * 100 > main.paid_raw:
        return None
    expected_raw = main.paid_raw * (PIPS - place.fee_pips) / (max(price, 1 / price) * PIPS)
    return max(0, BPS - math.ceil(main.received_raw * BPS / expected_raw))


def _most_gas(venue: VenueEvidence, size: Size) -> int:
    gas_used = [0]
    for cell in venue.cells:
        if cell.probe.size == size and isinstance(cell.outcome, Sold):
            gas_used += [cell.outcome.buy_gas, cell.outcome.sell_gas]
    return max(gas_used)
