"""Trip 2 of a trade: the check's sells beside a rehearsal of the trade on every venue, and the choice."""

from dataclasses import dataclass, replace

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.request import Results
from roundtrip.chain.wallet import calls
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.types import BPS, plain_decimal
from roundtrip.domain.base.venue import PoolFacts, Venue
from roundtrip.domain.check.evidence import Evidence, LaunchRecord, Missing, RefusedCall
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.domain.check.venue_code import takes_sells
from roundtrip.domain.check.venue_reading import loss_bps
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.domain.check.verdict_text import RESCUED
from roundtrip.services.check.buy_round import BuyRoundResult
from roundtrip.services.check.sell_round import run_sell_round
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.money import ETH_DECIMALS
from roundtrip.venues.base import TradeTerms

from . import trade_builder as desks
from .trade_builder import Pays, RehearsedTrade, Side, TradeBuilder, WrittenTrade, pays, write


def tradable(token: BuyRoundResult) -> list[Venue]:
    """The venues that a trade may be written for: those that are there, paid in eth, weth or usdg."""
    venues = []
    for trial in token.venues_to_sell_on():
        absent = isinstance(trial.facts, PoolFacts) and not trial.facts.exists
        if not absent and pays(trial.place.venue) is not None:
            venues.append(trial.place.venue)
    return venues


def check_tradable(side: Side, token: BuyRoundResult) -> None:
    """Raises CallerFault where there is no token, or no money that trades are written in."""
    facts, launch = token.data.facts, token.data.launch
    no_token = facts.code_bytes == 0 or facts.balance_answers is False or facts.total_supply_raw is None
    if no_token:
        code = "not_a_token" if side == "buy" else "no_route"
        raise CallerFault(code, "There is no token at this address.")
    if token.role != "token":
        raise CallerFault("no_route", f"This is {token.role}, the money side of a trade.")
    if tradable(token):
        return
    existing = [trial.place.venue for trial in token.data.venues if trial.exists()]
    if existing and all(pays(venue) is None for venue in existing):
        raise CallerFault("no_route", "It trades only against money that trades are not written in here.")
    if isinstance(launch, LaunchRecord) and launch.phase == "rescued":
        raise CallerFault("no_route", RESCUED)
    if isinstance(launch, LaunchRecord) and launch.is_between_venues():
        raise CallerFault("no_route", "Its curve is closed and its pool has not opened: nobody can trade it.")
    raise CallerFault("no_route", "No pool trades this token.")


def decimals_of(token: BuyRoundResult) -> int:
    """As the token tells; 0 where it tells none. Raises NodeFault where it was not asked."""
    decimals = token.data.facts.decimals
    if isinstance(decimals, Missing):
        raise NodeFault(decimals.why)
    return decimals or 0


NO_LIQUIDITY = "None of its pools holds liquidity to trade with."


def all_dry(token: BuyRoundResult) -> bool:
    """True where no venue that a trade may be written for holds liquidity at its price, nor sells any."""
    venues = [venue for venue in token.venues_to_sell_on() if venue.place.venue in tradable(token)]
    return all(
        isinstance(venue.facts, PoolFacts) and not venue.facts.liquidity and venue.main_size() is None
        for venue in venues
    )


def paid_with(venue: Venue) -> Pays:
    """What a venue that may be traded on is paid in."""
    asset = pays(venue)
    assert asset is not None
    return asset


@dataclass(frozen=True, slots=True)
class Rehearsals:
    """The check, and what the trade came to on each venue; of sells also what a thousandth of it came to."""

    evidence: Evidence
    judgement: Judgement
    rehearsed: dict[Venue, RehearsedTrade | CallerFault | Missing]
    small: dict[Venue, RehearsedTrade | CallerFault | Missing]

    def impact_bps(self, rehearsed: RehearsedTrade) -> int | None:
        """How much less than a small sell it brings for each token; None where that is not known."""
        small = self.small.get(rehearsed.written.place.venue)
        if not isinstance(small, RehearsedTrade):
            return None
        return max(0, loss_bps(small.came_raw * rehearsed.spent_raw, rehearsed.came_raw * small.spent_raw))


Amounts = dict[Venue, int | CallerFault]
"""What to trade on each venue, in base units of what is given there; a fault where there is none."""


async def rehearse(desk: TradeBuilder, amounts: Amounts, meter: Meter) -> Rehearsals:
    """The trade on every venue for which there is an amount."""
    (rehearsals,) = await rehearse_each(desk, [amounts], meter)
    return rehearsals


async def rehearse_each(desk: TradeBuilder, trades: list[Amounts], meter: Meter) -> list[Rehearsals]:
    """Several trades, each alone on the same block, beside one check."""
    run, checking, trading = desk.opened.run, Meter(), Meter()
    written = [_write_trades(desk, amounts) for amounts in trades]
    every_trade = [trade for whole, small in written for trade in (*whole, *small)]
    plans = {
        (number, part): (trade.place, plan)
        for number, trade in enumerate(every_trade)
        for part, plan in zip(("before", "run"), desks.rehearsal_plans(desk, trade), strict=True)
    }
    evidence, (_, results) = await at_once(
        run_sell_round(desk.opened, checking), replace(run, meter=trading).ask({}, plans)
    )
    meter.add(checking, trading)
    joined = iter(
        _join_results(results[number, "before"], results[number, "run"]) for number in range(len(every_trade))
    )
    judgement = judge(evidence, desk.ctx.policy)
    return [
        Rehearsals(
            evidence,
            judgement,
            _by_venue(desk, whole, [next(joined) for _ in whole]),
            _by_venue(desk, small, [next(joined) for _ in small]),
        )
        for whole, small in written
    ]


def _write_trades(desk: TradeBuilder, amounts: Amounts) -> tuple[list[WrittenTrade], list[WrittenTrade]]:
    """The trade on every venue for which there is an amount; of a sell also a thousandth of it."""
    places = {trial.place.venue: trial.place for trial in desk.opened.venues_to_sell_on()}
    terms = TradeTerms(0, desk.deadline_s)
    amounts_raw = {venue: raw for venue, raw in amounts.items() if isinstance(raw, int)}
    # An allowance that is there and too small is raised; some tokens want it taken back first.
    written = [
        write(desk, places[venue], raw, terms, clear)
        for venue, raw in amounts_raw.items()
        for clear in (False, True)
    ]
    whole = [trade for trade in written if not trade.clear_first or _clears(trade)]
    small = [
        write(desk, places[venue], max(1, raw // _SMALL_DIVISOR), terms, clear_first=True)
        for venue, raw in amounts_raw.items()
        if desk.side == "sell"
    ]
    return whole, small


def _join_results(
    before: Results | Missing | RefusedCall, after: Results | Missing | RefusedCall
) -> Results | Missing:
    """The reads before and the run. What a stranger's hook flooded is its own doing."""
    for result in (before, after):
        if isinstance(result, RefusedCall):
            return Missing("token", result.reason or "")
    assert not isinstance(before, RefusedCall)
    assert not isinstance(after, RefusedCall)
    return calls.together(before, after)


def _clears(trade: WrittenTrade) -> bool:
    return any(desks.kind_of(call)[2] for call in trade.calls)


def _by_venue(
    desk: TradeBuilder, written: list[WrittenTrade], results: list[Results | Missing]
) -> dict[Venue, RehearsedTrade | CallerFault | Missing]:
    """By venue the first way that went through; where none did, what the last one said."""
    by_venue: dict[Venue, RehearsedTrade | CallerFault | Missing] = {}
    for trade, result in zip(written, results, strict=True):
        if not isinstance(by_venue.get(trade.place.venue), RehearsedTrade):
            calls = desks.wallet_calls_of(desk, trade)
            by_venue[trade.place.venue] = desks.read_rehearsal(desk, trade, calls, result)
    return by_venue


_SMALL_DIVISOR = 1000


def best_buy(
    desk: TradeBuilder, rehearsals: Rehearsals, amounts: dict[Pays, int | CallerFault]
) -> RehearsedTrade | CallerFault:
    """On the venue of the check's choice; of those paid in the same, where it brings most. What the check
    could not sell comes last."""
    order = _by_check(desk, rehearsals)
    lead = paid_with(order[0])
    if isinstance(fault := amounts[lead], CallerFault):
        return fault
    same = [venue for venue in order if paid_with(venue) == lead]
    completed = [
        rehearsed
        for venue in same
        if isinstance(rehearsed := rehearsals.rehearsed.get(venue), RehearsedTrade)
    ]
    selling = [trade for trade in completed if sells(desk, rehearsals, trade.written.place.venue)]
    if selling:
        # At this size another venue may give more than the check's: by a margin, as with hooks.
        return _affordable(
            desk, max(selling, key=lambda trade: _weight(desk, trade, trade.came_raw, rehearsals))
        )
    if completed:
        return _affordable(desk, completed[0])
    return _fault(desk, rehearsals, same)


def _by_check(desk: TradeBuilder, rehearsals: Rehearsals) -> list[Venue]:
    """The venues that may be traded on, the check's choice first, then those that sold, then the rest."""
    chosen = _decided_venue(rehearsals)
    return sorted(
        tradable(desk.opened), key=lambda venue: (venue != chosen, not sells(desk, rehearsals, venue))
    )


def sells(desk: TradeBuilder, rehearsals: Rehearsals, venue: Venue) -> bool:
    """True where the check could sell what it bought."""
    pairs = zip(rehearsals.evidence.venues, rehearsals.judgement.readings, strict=True)
    reading = next((reading for venue_evidence, reading in pairs if venue_evidence.venue == venue), None)
    return reading is not None and reading.status == "bought" and takes_sells(reading, desk.ctx.policy)


def best_sell(desk: TradeBuilder, rehearsals: Rehearsals) -> RehearsedTrade | CallerFault:
    """Where it brings most, at the pinned block's prices."""
    completed = [trade for trade in rehearsals.rehearsed.values() if isinstance(trade, RehearsedTrade)]
    market = desk.opened.run.setting.market

    def worth(trade: RehearsedTrade) -> int:
        wei = quote_in_wei(trade.came_raw, trade.written.place.venue.quote, market) or 0
        return _weight(desk, trade, wei)

    if completed:
        return max(completed, key=worth)
    return _fault(desk, rehearsals, tradable(desk.opened))


def _weight(desk: TradeBuilder, trade: RehearsedTrade, raw: int, rehearsals: Rehearsals | None = None) -> int:
    """What a venue brings, in the order of choice: one with a stranger's hook, or another one than the
    check's, wins only by a margin."""
    venue, margin = trade.written.place.venue, desk.ctx.policy.rival_hook_margin_bps
    if rehearsals is not None and venue == _decided_venue(rehearsals):
        return raw * BPS
    return raw * (BPS - margin * venue.rival_hook() - (0 if rehearsals is None else margin))


def _decided_venue(rehearsals: Rehearsals) -> Venue | None:
    """The venue that decided the check."""
    best = rehearsals.judgement.best
    return rehearsals.evidence.venues[best].venue if best is not None else None


def _fault(desk: TradeBuilder, rehearsals: Rehearsals, venues: list[Venue]) -> CallerFault:
    """Why it goes through nowhere. Raises NodeFault where only the node could tell."""
    results = [rehearsals.rehearsed.get(venue) for venue in venues]
    fault = next((result for result in results if isinstance(result, CallerFault)), None)
    gap = next((result for result in results if isinstance(result, Missing)), None)
    if gap is not None and (gap.fault == "node" or fault is None):
        raise NodeFault(gap.why)
    assert fault is not None
    if fault.code == "would_fail" and all_dry(desk.opened):
        return CallerFault("no_route", NO_LIQUIDITY)
    refusal = next(
        (result.told_on_sell for result in rehearsals.evidence.venues if result.venue in venues), None
    )
    reason = names.reason(refusal.reason or "") if isinstance(refusal, RefusedCall) else ""
    if not reason or reason in fault.message or desk.side == "buy":
        return fault
    return CallerFault(fault.code, f'{fault.message.rstrip(".")}; the token says "{reason}".')


def _affordable(desk: TradeBuilder, trade: RehearsedTrade) -> RehearsedTrade | CallerFault:
    """A would_fail where the wallet has not the eth for it, gas included."""
    gas_wei = sum(call.gas_used for call in trade.ran.calls) * trade.ran.gas_price_wei
    value_wei = sum(call.value_wei for call in trade.written.calls)
    if desk.fund or desk.holdings.eth_wei >= value_wei + gas_wei:
        return trade
    has, needs = (plain_decimal(wei, ETH_DECIMALS) for wei in (desk.holdings.eth_wei, value_wei + gas_wei))
    return CallerFault("would_fail", f"The wallet holds {has} eth, and this needs {needs}, gas included.")
