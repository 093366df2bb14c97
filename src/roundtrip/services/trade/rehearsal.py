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
    found = []
    for tried in token.venues_to_sell_on():
        absent = isinstance(tried.facts, PoolFacts) and not tried.facts.exists
        if not absent and pays(tried.place.venue) is not None:
            found.append(tried.place.venue)
    return found


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
    there = [tried.place.venue for tried in token.data.venues if tried.exists()]
    if there and all(pays(venue) is None for venue in there):
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
    venues = [tried for tried in token.venues_to_sell_on() if tried.place.venue in tradable(token)]
    return all(
        isinstance(one.facts, PoolFacts) and not one.facts.liquidity and one.main_size() is None
        for one in venues
    )


def paid_with(venue: Venue) -> Pays:
    """What a venue that may be traded on is paid in."""
    found = pays(venue)
    assert found is not None
    return found


@dataclass(frozen=True, slots=True)
class Rehearsals:
    """The check, and what the trade came to on each venue; of sells also what a thousandth of it came to."""

    evidence: Evidence
    judgement: Judgement
    rehearsed: dict[Venue, RehearsedTrade | CallerFault | Missing]
    small: dict[Venue, RehearsedTrade | CallerFault | Missing]

    def impact_bps(self, one: RehearsedTrade) -> int | None:
        """How much less than a small sell it brings for each token; None where that is not known."""
        small = self.small.get(one.written.place.venue)
        if not isinstance(small, RehearsedTrade):
            return None
        return max(0, loss_bps(small.came_raw * one.spent_raw, one.came_raw * small.spent_raw))


Amounts = dict[Venue, int | CallerFault]
"""What to trade on each venue, in base units of what is given there; a fault where there is none."""


async def rehearse(desk: TradeBuilder, amounts: Amounts, meter: Meter) -> Rehearsals:
    """The trade on every venue for which there is an amount."""
    (found,) = await rehearse_each(desk, [amounts], meter)
    return found


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
    places = {tried.place.venue: tried.place for tried in desk.opened.venues_to_sell_on()}
    terms = TradeTerms(0, desk.deadline_s)
    raws = {venue: raw for venue, raw in amounts.items() if isinstance(raw, int)}
    # An allowance that is there and too small is raised; some tokens want it taken back first.
    written = [
        write(desk, places[venue], raw, terms, clear)
        for venue, raw in raws.items()
        for clear in (False, True)
    ]
    whole = [one for one in written if not one.clear_first or _clears(one)]
    small = [
        write(desk, places[venue], max(1, raw // _SMALL_DIVISOR), terms, clear_first=True)
        for venue, raw in raws.items()
        if desk.side == "sell"
    ]
    return whole, small


def _join_results(
    before: Results | Missing | RefusedCall, ran: Results | Missing | RefusedCall
) -> Results | Missing:
    """The reads before and the run. What a stranger's hook flooded is its own doing."""
    for one in (before, ran):
        if isinstance(one, RefusedCall):
            return Missing("token", one.reason or "")
    assert not isinstance(before, RefusedCall)
    assert not isinstance(ran, RefusedCall)
    return calls.together(before, ran)


def _clears(one: WrittenTrade) -> bool:
    return any(desks.kind_of(call)[2] for call in one.calls)


def _by_venue(
    desk: TradeBuilder, written: list[WrittenTrade], told: list[Results | Missing]
) -> dict[Venue, RehearsedTrade | CallerFault | Missing]:
    """By venue the first way that went through; where none did, what the last one said."""
    found: dict[Venue, RehearsedTrade | CallerFault | Missing] = {}
    for one, results in zip(written, told, strict=True):
        if not isinstance(found.get(one.place.venue), RehearsedTrade):
            own = desks.wallet_calls_of(desk, one)
            found[one.place.venue] = desks.read_rehearsal(desk, one, own, results)
    return found


_SMALL_DIVISOR = 1000


def best_buy(
    desk: TradeBuilder, tried: Rehearsals, amounts: dict[Pays, int | CallerFault]
) -> RehearsedTrade | CallerFault:
    """On the venue of the check's choice; of those paid in the same, where it brings most. What the check
    could not sell comes last."""
    order = _by_check(desk, tried)
    lead = paid_with(order[0])
    if isinstance(fault := amounts[lead], CallerFault):
        return fault
    same = [venue for venue in order if paid_with(venue) == lead]
    done = [found for venue in same if isinstance(found := tried.rehearsed.get(venue), RehearsedTrade)]
    selling = [one for one in done if sells(desk, tried, one.written.place.venue)]
    if selling:
        # At this size another venue may give more than the check's: by a margin, as with hooks.
        return _affordable(desk, max(selling, key=lambda one: _weight(desk, one, one.came_raw, tried)))
    if done:
        return _affordable(desk, done[0])
    return _fault(desk, tried, same)


def _by_check(desk: TradeBuilder, tried: Rehearsals) -> list[Venue]:
    """The venues that may be traded on, the check's choice first, then those that sold, then the rest."""
    chosen = _decided_venue(tried)
    return sorted(tradable(desk.opened), key=lambda venue: (venue != chosen, not sells(desk, tried, venue)))


def sells(desk: TradeBuilder, tried: Rehearsals, venue: Venue) -> bool:
    """True where the check could sell what it bought."""
    pairs = zip(tried.evidence.venues, tried.judgement.readings, strict=True)
    reading = next((reading for one, reading in pairs if one.venue == venue), None)
    return reading is not None and reading.status == "bought" and takes_sells(reading, desk.ctx.policy)


def best_sell(desk: TradeBuilder, tried: Rehearsals) -> RehearsedTrade | CallerFault:
    """Where it brings most, at the pinned block's prices."""
    done = [one for one in tried.rehearsed.values() if isinstance(one, RehearsedTrade)]
    market = desk.opened.run.setting.market

    def worth(one: RehearsedTrade) -> int:
        wei = quote_in_wei(one.came_raw, one.written.place.venue.quote, market) or 0
        return _weight(desk, one, wei)

    if done:
        return max(done, key=worth)
    return _fault(desk, tried, tradable(desk.opened))


def _weight(desk: TradeBuilder, one: RehearsedTrade, raw: int, tried: Rehearsals | None = None) -> int:
    """What a venue brings, in the order of choice: one with a stranger's hook, or another one than the
    check's, wins only by a margin."""
    venue, margin = one.written.place.venue, desk.ctx.policy.rival_hook_margin_bps
    if tried is not None and venue == _decided_venue(tried):
        return raw * BPS
    return raw * (BPS - margin * venue.rival_hook() - (0 if tried is None else margin))


def _decided_venue(tried: Rehearsals) -> Venue | None:
    """The venue that decided the check."""
    best = tried.judgement.best
    return tried.evidence.venues[best].venue if best is not None else None


def _fault(desk: TradeBuilder, tried: Rehearsals, venues: list[Venue]) -> CallerFault:
    """Why it goes through nowhere. Raises NodeFault where only the node could tell."""
    found = [tried.rehearsed.get(venue) for venue in venues]
    fault = next((one for one in found if isinstance(one, CallerFault)), None)
    gap = next((one for one in found if isinstance(one, Missing)), None)
    if gap is not None and (gap.fault == "node" or fault is None):
        raise NodeFault(gap.why)
    assert fault is not None
    if fault.code == "would_fail" and all_dry(desk.opened):
        return CallerFault("no_route", NO_LIQUIDITY)
    told = next((one.told_on_sell for one in tried.evidence.venues if one.venue in venues), None)
    said = names.reason(told.reason or "") if isinstance(told, RefusedCall) else ""
    if not said or said in fault.message or desk.side == "buy":
        return fault
    return CallerFault(fault.code, f'{fault.message.rstrip(".")}; the token says "{said}".')


def _affordable(desk: TradeBuilder, one: RehearsedTrade) -> RehearsedTrade | CallerFault:
    """A would_fail where the wallet has not the eth for it, gas included."""
    gas_wei = sum(call.gas_used for call in one.ran.calls) * one.ran.gas_price_wei
    value_wei = sum(call.value_wei for call in one.written.calls)
    if desk.fund or desk.holdings.eth_wei >= value_wei + gas_wei:
        return one
    has, needs = (plain_decimal(wei, ETH_DECIMALS) for wei in (desk.holdings.eth_wei, value_wei + gas_wei))
    return CallerFault("would_fail", f"The wallet holds {has} eth, and this needs {needs}, gas included.")
