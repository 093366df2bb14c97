"""The second batch of a trade: the check's sells, a rehearsal of the trade on every venue, and the choice.
Also finds the reason that a token gives for refusing a transfer, where a router or pool withholds it."""

from dataclasses import dataclass, replace

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate import outcomes, probe_plans
from roundtrip.chain.simulate.request import Results
from roundtrip.chain.wallet import calls
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.figures import format_shortfall
from roundtrip.domain.base.types import BPS, Address, plain_decimal
from roundtrip.domain.base.venue import PoolFacts, Venue
from roundtrip.domain.check.evidence import Evidence, LaunchRecord, Missing, RefusedCall
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.domain.check.refusals import PULL_REASONS, REASON_WITHHELD, ROUTER_REASONS, first_reason
from roundtrip.domain.check.sales import loss_bps
from roundtrip.domain.check.venue_code import takes_sells
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.domain.check.verdict_text import NO_POOL, NO_STANDARD_POOL, RESCUED, other_pools_text
from roundtrip.domain.trade.judge import FEW_UNITS, SALE_PARTS_BPS
from roundtrip.domain.trade.text import is_withheld
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.check_run import try_sells
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.money import ETH_DECIMALS, Pays, pays
from roundtrip.venues import abi
from roundtrip.venues.base import TradeTerms

from . import trade_builder
from .trade_builder import NotEnough, RehearsedTrade, Side, TradeBuilder, WrittenTrade, write


def tradable(token: BuyRoundResult) -> list[Venue]:
    """The venues that a trade may be written for: existing ones that are paid in eth, weth or usdg."""
    venues = []
    for trial in token.venues_to_sell_on():
        absent = isinstance(trial.facts, PoolFacts) and not trial.facts.exists
        if not absent and pays(trial.place.venue) is not None:
            venues.append(trial.place.venue)
    return venues


def check_tradable(side: Side, token: BuyRoundResult) -> None:
    """Raises CallerFault where there is no token, or no venue that trades are written for."""
    facts, launch = token.data.facts, token.data.launch
    no_token = facts.code_bytes == 0 or facts.balance_answers is False or facts.total_supply_raw is None
    if no_token:
        code = "not_a_token" if side == "buy" else "no_route"
        raise CallerFault(code, "There is no token at this address.")
    if token.role != "token":
        raise CallerFault("no_route", f"This is {token.role}, the money that tokens trade against.")
    if tradable(token):
        return
    existing = [trial.place.venue for trial in token.data.venues if trial.exists()]
    if existing and all(pays(venue) is None for venue in existing):
        raise CallerFault("no_route", "It trades only against other money than eth, weth and usdg.")
    if isinstance(launch, LaunchRecord) and launch.phase == "rescued":
        raise CallerFault("no_route", RESCUED)
    if isinstance(launch, LaunchRecord) and launch.is_between_venues():
        why = "Its curve is closed and its pool has not opened: you cannot trade it until it opens."
        raise CallerFault("no_route", why)
    others = token.candidates
    if others.other_pools and not existing:
        raise CallerFault("no_route", other_pools_text(others.other_pools, others.others))
    raise CallerFault("no_route", NO_POOL if others.complete else NO_STANDARD_POOL)


def decimals_of(token: BuyRoundResult) -> int:
    """The token's decimals; 0 where it has none. Raises NodeFault where they are Missing."""
    decimals = token.data.facts.decimals
    if isinstance(decimals, Missing):
        raise NodeFault(decimals.why)
    return decimals or 0


NO_LIQUIDITY = "None of its pools has liquidity to trade with."


def all_dry(token: BuyRoundResult) -> bool:
    """True where no tradable venue holds liquidity at its price or fills a buy."""
    venues = [venue for venue in token.venues_to_sell_on() if venue.place.venue in tradable(token)]
    return all(
        isinstance(venue.facts, PoolFacts) and not venue.facts.liquidity and venue.main_size() is None
        for venue in venues
    )


def paid_with(venue: Venue) -> Pays:
    """The asset that a tradable venue is paid in."""
    asset = pays(venue)
    assert asset is not None
    return asset


@dataclass(frozen=True, slots=True)
class Rehearsals:
    """The check, and the rehearsed trade on each venue; ``small``: of sells, a thousandth of the trade."""

    evidence: Evidence
    judgement: Judgement
    rehearsed: dict[Venue, RehearsedTrade | CallerFault | Missing]
    small: dict[Venue, RehearsedTrade | CallerFault | Missing]

    def impact_bps(self, rehearsed: RehearsedTrade) -> int | None:
        """How much less it brings per token than a small sell; None where that is not known."""
        small = self.small.get(rehearsed.written.place.venue)
        if not isinstance(small, RehearsedTrade):
            return None
        return max(0, loss_bps(small.came_raw * rehearsed.spent_raw, rehearsed.came_raw * small.spent_raw))


Amounts = dict[Venue, int | CallerFault]
"""The amount to trade on each venue, in base units of the asset given; a fault where there is none."""


async def rehearse(builder: TradeBuilder, amounts: Amounts, meter: Meter) -> Rehearsals:
    """Rehearses the trade on every venue for which there is an amount."""
    (rehearsals,) = await rehearse_each(builder, [amounts], meter)
    return rehearsals


async def rehearse_each(builder: TradeBuilder, trades: list[Amounts], meter: Meter) -> list[Rehearsals]:
    """Rehearses several trades, each alone on the same block, beside one check."""
    checking, trading = Meter(), Meter()
    written = [_write_trades(builder, amounts) for amounts in trades]
    every_trade = [trade for whole, small in written for trade in (*whole, *small)]
    evidence, results = await at_once(
        try_sells(builder.buy_round, checking), _run_trades(builder, every_trade, trading)
    )
    meter.add(checking, trading)
    joined = iter(results)
    judgement = judge(evidence, builder.ctx.policy)
    return [
        Rehearsals(
            evidence,
            judgement,
            _by_venue(builder, whole, [next(joined) for _ in whole]),
            _by_venue(builder, small, [next(joined) for _ in small]),
        )
        for whole, small in written
    ]


async def rehearse_second_route(
    builder: TradeBuilder, rehearsals: Rehearsals, amount_raw: int, meter: Meter
) -> tuple[TradeBuilder, Rehearsals] | None:
    """A sell that fails on every venue, once more through the other usual router of v3 pools; the check is
    not asked again. None: no pool of the token has one."""
    venues = [venue for venue in tradable(builder.buy_round) if venue.traits.by_router]
    if not venues:
        return None
    second = replace(builder, second_route=True)
    whole, small = _write_trades(second, dict.fromkeys(venues, amount_raw))
    results = await _run_trades(second, [*whole, *small], meter)
    return second, replace(
        rehearsals,
        rehearsed=_by_venue(second, whole, results[: len(whole)]),
        small=_by_venue(second, small, results[len(whole) :]),
    )


async def _run_trades(
    builder: TradeBuilder, trades: list[WrittenTrade], meter: Meter
) -> list[Results | Missing]:
    """Runs each trade alone on the pinned block."""
    plans = {
        (number, part): (trade.place, plan)
        for number, trade in enumerate(trades)
        for part, plan in zip(("before", "run"), trade_builder.rehearsal_plans(builder, trade), strict=True)
    }
    _, results = await replace(builder.buy_round.run, meter=meter).ask({}, plans)
    return [_join_results(results[number, "before"], results[number, "run"]) for number in range(len(trades))]


def _write_trades(builder: TradeBuilder, amounts: Amounts) -> tuple[list[WrittenTrade], list[WrittenTrade]]:
    """Writes the trade for every venue that has an amount; of a sell also a thousandth of it."""
    places = {trial.place.venue: trial.place for trial in builder.buy_round.venues_to_sell_on()}
    terms = TradeTerms(0, builder.deadline_s)
    amounts_raw = {venue: raw for venue, raw in amounts.items() if isinstance(raw, int)}
    # An existing allowance that is too small is raised; some tokens require it to be reset first.
    written = [
        write(builder, places[venue], raw, terms, clear)
        for venue, raw in amounts_raw.items()
        for clear in (False, True)
    ]
    whole = [trade for trade in written if not trade.clear_first or _clears(trade)]
    small = [
        write(builder, places[venue], max(1, raw // _SMALL_DIVISOR), terms, clear_first=True)
        for venue, raw in amounts_raw.items()
        if builder.side == "sell"
    ]
    return whole, small


def _join_results(
    before: Results | Missing | RefusedCall, after: Results | Missing | RefusedCall
) -> Results | Missing:
    """Joins the reads before with the run. A refusal by a hook's oversized answer is the token's fault."""
    for result in (before, after):
        if isinstance(result, RefusedCall):
            return Missing("token", result.reason or "")
    assert not isinstance(before, RefusedCall)
    assert not isinstance(after, RefusedCall)
    return calls.together(before, after)


def _clears(trade: WrittenTrade) -> bool:
    return any(trade_builder.kind_of(call)[2] for call in trade.calls)


def _by_venue(
    builder: TradeBuilder, written: list[WrittenTrade], results: list[Results | Missing]
) -> dict[Venue, RehearsedTrade | CallerFault | Missing]:
    """By venue the first trade that succeeded; where none did, the result of the last."""
    by_venue: dict[Venue, RehearsedTrade | CallerFault | Missing] = {}
    for trade, result in zip(written, results, strict=True):
        if not isinstance(by_venue.get(trade.place.venue), RehearsedTrade):
            calls = trade_builder.wallet_calls_of(builder, trade)
            by_venue[trade.place.venue] = trade_builder.read_rehearsal(builder, trade, calls, result)
    return by_venue


_SMALL_DIVISOR = 1000


def best_buy(
    builder: TradeBuilder, rehearsals: Rehearsals, amounts: dict[Pays, int | CallerFault]
) -> RehearsedTrade | CallerFault:
    """The buy on the check's venue, or on another one paid in the same asset that brings more. Venues where
    the check could not sell come last."""
    order = _by_check(builder, rehearsals)
    lead = paid_with(order[0])
    if isinstance(fault := amounts[lead], CallerFault):
        return fault
    same = [venue for venue in order if paid_with(venue) == lead]
    completed = [
        rehearsed
        for venue in same
        if isinstance(rehearsed := rehearsals.rehearsed.get(venue), RehearsedTrade)
    ]
    selling = [trade for trade in completed if sells(builder, rehearsals, trade.written.place.venue)]
    if selling:
        # At this size another venue may give more than the check's; it must win by a margin, as with hooks.
        return _affordable(
            builder, max(selling, key=lambda trade: _weight(builder, trade, trade.came_raw, rehearsals))
        )
    if completed:
        return _affordable(builder, completed[0])
    return _fault(builder, rehearsals, same)


def _by_check(builder: TradeBuilder, rehearsals: Rehearsals) -> list[Venue]:
    """The tradable venues: the check's choice, then those that sold, then the rest."""
    chosen = _decided_venue(rehearsals)
    return sorted(
        tradable(builder.buy_round),
        key=lambda venue: (venue != chosen, not sells(builder, rehearsals, venue)),
    )


def sells(builder: TradeBuilder, rehearsals: Rehearsals, venue: Venue) -> bool:
    """True where the check could sell on the venue."""
    pairs = zip(rehearsals.evidence.venues, rehearsals.judgement.readings, strict=True)
    reading = next((reading for venue_evidence, reading in pairs if venue_evidence.venue == venue), None)
    return reading is not None and reading.status == "bought" and takes_sells(reading, builder.ctx.policy)


def completed_sells(rehearsed: dict[Venue, RehearsedTrade | CallerFault | Missing]) -> list[RehearsedTrade]:
    """The sells that went through."""
    return [trade for trade in rehearsed.values() if isinstance(trade, RehearsedTrade)]


def best_sell(builder: TradeBuilder, rehearsals: Rehearsals) -> RehearsedTrade | CallerFault:
    """The sell that brings most, at the pinned block's prices."""
    completed = completed_sells(rehearsals.rehearsed)
    market = builder.buy_round.run.setting.market

    def worth(trade: RehearsedTrade) -> int:
        wei = quote_in_wei(trade.came_raw, trade.written.place.venue.quote, market) or 0
        return _weight(builder, trade, wei)

    if completed:
        return max(completed, key=worth)
    return _fault(builder, rehearsals, tradable(builder.buy_round))


def _weight(
    builder: TradeBuilder, trade: RehearsedTrade, raw: int, rehearsals: Rehearsals | None = None
) -> int:
    """The amount of a venue, weighted for the choice: a venue with a rival hook, or another than the check's,
    must win by a margin."""
    venue, margin = trade.written.place.venue, builder.ctx.policy.rival_hook_margin_bps
    if rehearsals is not None and venue == _decided_venue(rehearsals):
        return raw * BPS
    return raw * (BPS - margin * venue.rival_hook() - (0 if rehearsals is None else margin))


def _decided_venue(rehearsals: Rehearsals) -> Venue | None:
    best = rehearsals.judgement.best
    return rehearsals.evidence.venues[best].venue if best is not None else None


def _fault(builder: TradeBuilder, rehearsals: Rehearsals, venues: list[Venue]) -> CallerFault:
    """Why the trade succeeds on no venue. Raises NodeFault where the node's answers are missing."""
    results = [rehearsals.rehearsed.get(venue) for venue in venues]
    fault = next((result for result in results if isinstance(result, CallerFault)), None)
    gap = next((result for result in results if isinstance(result, Missing)), None)
    if gap is not None and (gap.fault == "node" or fault is None):
        raise NodeFault(gap.why)
    assert fault is not None
    if fault.code == "would_fail" and all_dry(builder.buy_round):
        return CallerFault("no_route", NO_LIQUIDITY)
    return _with_token_reason(builder.side, fault, rehearsals.evidence, venues)


def _with_token_reason(
    side: Side, fault: CallerFault, evidence: Evidence, venues: list[Venue]
) -> CallerFault:
    """The fault, with the reason that the token gave to the check, which routers swallow."""
    results = [result for result in evidence.venues if result.venue in venues]
    refusals = [result.told_on_buy if side == "buy" else result.told_on_sell for result in results]
    refusal = next((told for told in refusals if isinstance(told, RefusedCall) and told.reason), None)
    reason = names.reason(refusal.reason or "") if refusal is not None else ""
    if not reason or reason in ROUTER_REASONS or reason in fault.message:
        return fault
    told = _quote_token(fault, reason)
    if told is not fault or side == "buy":
        return told
    return CallerFault(fault.code, f'{fault.message} The token says "{reason}".')


async def with_own_reason(builder: TradeBuilder, fault: CallerFault, meter: Meter) -> CallerFault:
    """The fault of a sell. Where a router still withholds the token's reason, such as where the check could
    not buy it, the token is asked in one more batch."""
    if _quote_token(fault, "") is fault:
        return fault
    reason = await find_pull_reason(builder.buy_round, builder.wallet, meter)
    return fault if reason is None else _quote_token(fault, reason)


def _quote_token(fault: CallerFault, reason: str) -> CallerFault:
    """The fault with the token's reason in place of the words for a withheld one; the same where it has no
    such words."""
    before, withheld, after = fault.message.rpartition(f": {REASON_WITHHELD}")
    if not withheld or after != ".":
        return fault
    return CallerFault(fault.code, f'{before}: the token says "{reason}".')


def with_smaller_buy(builder: TradeBuilder, fault: CallerFault, amounts: Amounts) -> CallerFault:
    """The fault of a buy, with the largest buy of less money that went through in the check."""
    if fault.code != "would_fail" or isinstance(fault, NotEnough):
        return fault
    smaller_raw: dict[Pays, int] = {}
    for trial in builder.buy_round.data.venues:
        most_raw, size = amounts.get(trial.place.venue), trial.main_size()
        buy = None if size is None else trial.completed_buy(size)
        if isinstance(most_raw, int) and buy is not None and 0 < buy.paid_raw < most_raw:
            asset = paid_with(trial.place.venue)
            smaller_raw[asset] = max(buy.paid_raw, smaller_raw.get(asset, 0))
    if not smaller_raw:
        return fault
    asset, paid_raw = next(iter(smaller_raw.items()))
    amount = f"{plain_decimal(paid_raw, trade_builder.DECIMALS[asset])} {asset}"
    return CallerFault(fault.code, f"{fault.message} A smaller buy, for {amount}, went through in the check.")


async def with_smaller_sell(
    builder: TradeBuilder, rehearsals: Rehearsals, fault: CallerFault, amount_raw: int, meter: Meter
) -> CallerFault:
    """The fault of a sell, with the largest part that sells, where a thousandth of it did."""
    selling = {venue: trade for venue, trade in rehearsals.small.items() if isinstance(trade, RehearsedTrade)}
    if fault.code != "would_fail" or builder.holdings.asset_raw < amount_raw or not selling:
        return fault
    parts_raw = [amount_raw - FEW_UNITS, *(amount_raw * share_bps // BPS for share_bps in SALE_PARTS_BPS)]
    trades = [
        _of_amount(builder, small, raw)
        for raw in parts_raw
        for small in selling.values()
        if raw > small.written.amount_raw
    ]
    sold_raw = [small.written.amount_raw for small in selling.values()]
    try:
        results = await _run_trades(builder, trades, meter)
    except NodeFault:
        results = []
    for trade, result in zip(trades, results, strict=False):
        own_calls = trade_builder.wallet_calls_of(builder, trade)
        if isinstance(trade_builder.read_rehearsal(builder, trade, own_calls, result), RehearsedTrade):
            sold_raw.append(trade.amount_raw)
    part = plain_decimal(max(sold_raw), builder.decimals)
    return CallerFault(fault.code, f"{fault.message} A smaller part sells: {part} tokens went through.")


def _of_amount(builder: TradeBuilder, small: RehearsedTrade, amount_raw: int) -> WrittenTrade:
    """The same sell of another amount."""
    terms = TradeTerms(0, builder.deadline_s)
    return write(builder, small.written.place, amount_raw, terms, small.written.clear_first)


def _affordable(builder: TradeBuilder, trade: RehearsedTrade) -> RehearsedTrade | CallerFault:
    """The trade, or would_fail where the wallet lacks the eth for it, gas included."""
    gas_wei = sum(call.gas_used for call in trade.ran.calls) * trade.ran.gas_price_wei
    value_wei = sum(call.value_wei for call in trade.written.calls)
    if builder.fund or builder.holdings.eth_wei >= value_wei + gas_wei:
        return trade
    has, needs = format_shortfall(builder.holdings.eth_wei, value_wei + gas_wei, ETH_DECIMALS)
    return NotEnough(f"The wallet holds {has} eth, and this trade needs {needs}, gas included.")


# --- the token's own reason ------------------------------------------------------------------------


async def find_token_reason(
    given: str | None, checks: list[BuyRoundResult], wallet: Address, meter: Meter
) -> str | None:
    """The cleaned reason of a token that refuses what failed with ``given``. A transfer to a wallet was tried
    in the buy rounds; one from it is tried now. None: ``given`` withholds nothing, or no token refuses with a
    reason."""
    if not is_withheld(given):
        return None
    for check in checks:
        if given in PULL_REASONS:
            reason = await find_pull_reason(check, wallet, meter)
        else:
            reason = first_reason(trial.transfer_refusal for trial in check.data.venues)
        if reason is not None:
            return reason
    return None


async def find_pull_reason(check: BuyRoundResult, wallet: Address, meter: Meter) -> str | None:
    """The cleaned reason with which the token refuses a transfer of one unit from the wallet into a venue.
    One batch. None also where the wallet holds nothing or the node does not answer."""
    run = replace(check.run, meter=meter)
    env = replace(run.environments[0], buyer=wallet)
    plans = {
        number: (trial.place, probe_plans.holder_pull_plan(trial.place, run.setting, env))
        for number, trial in enumerate(check.venues_to_sell_on())
    }
    if not plans:
        return None
    try:
        _, results = await run.ask({}, plans)
    except NodeFault:
        return None
    return first_reason(
        outcomes.read_holder_pull(result)
        for result in results.values()
        if not isinstance(result, RefusedCall)
    )


async def read_later_raw(check: BuyRoundResult, wallet: Address, delay_s: int, meter: Meter) -> int | None:
    """What the wallet holds of the token so much later, if it does nothing: some balances shrink. None: the
    token or the node does not say."""
    places = [trial.place for trial in check.venues_to_sell_on()]
    if not places:
        return None
    run = replace(check.run, meter=meter)
    plan = probe_plans.later_balance_plan(run.setting, replace(run.environments[0], buyer=wallet), delay_s)
    try:
        _, results = await run.ask({}, {"later": (places[0], plan)})
    except NodeFault:
        return None
    result = results["later"]
    read = result.get("held-token") if isinstance(result, dict) else None
    return None if read is None or not read.ok else abi.uint_at(read.data, 0)
