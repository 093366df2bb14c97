"""Sells the tokens that a wallet's calls brought straight back, with the probes of a check, in one batch; in
pieces in one more, where no venue takes a single sale."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate import outcomes
from roundtrip.chain.simulate.legs import VenuePlace, cast
from roundtrip.chain.simulate.outcomes import SellStart
from roundtrip.chain.simulate.request import Plan
from roundtrip.chain.wallet import calls
from roundtrip.chain.wallet.calls import WalletCalls
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.evidence import (
    OVER_A_DAY,
    CellOutcome,
    CompletedBuy,
    Crowd,
    Curve,
    Environment,
    EnvironmentBuy,
    Evidence,
    LaunchRecord,
    Missing,
    Probe,
    ProbeCell,
    RefusedCall,
    Size,
    VenueEvidence,
)
from roundtrip.domain.check.price import pool_price, quote_in_wei, quote_raw
from roundtrip.domain.check.venue_code import enough, needs_pieces, takes_sells
from roundtrip.domain.check.venue_reading import MAIN_SIZES, read_venue
from roundtrip.domain.trade.judge import BalanceChange, Exit
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.main_trips import nearly_all_probes, other_way_probes, standard_probes
from roundtrip.services.engine.session import CheckSession, PlanResult, VenueTrial, bought_raw
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.venues import BY_KIND, launchpad, launchpad_pool
from roundtrip.venues.base import Call

_MIN_APPROVE_GAS = 300_000


@dataclass(frozen=True, slots=True)
class BroughtToken:
    """A token that the calls brought, with the buy round of its check. ``closes``: the amount sells its curve
    out."""

    buy_round: BuyRoundResult
    moved: BalanceChange
    closes: bool


def brought_token(
    buy_round: BuyRoundResult, moved: BalanceChange, certain: BalanceChange | None = None
) -> BroughtToken:
    """The token that the calls brought. ``certain``: the amount to sell, where it is less than ``moved``."""
    launch = buy_round.data.launch
    state = launch.curve_state if isinstance(launch, LaunchRecord) else None
    closes = isinstance(state, Curve) and moved.raw >= state.token_raw - state.reserved_raw
    return BroughtToken(buy_round, certain or moved, closes)


@dataclass(frozen=True, slots=True)
class SellWay:
    """A venue to sell on. ``opening``: public calls that open its pool, where the calls sold a curve out."""

    tried: VenueTrial
    place: VenuePlace
    opening: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class SellBackResult:
    """The sells of one token on each way, without the price paid for it. ``gas``: what the wallet's calls
    used. ``left_out``: some ways were not tried; ``parts_left_out``: some sells of nearly all were not."""

    brought: BroughtToken
    ways: tuple[tuple[SellWay, tuple[ProbeCell, ...]], ...]
    gas: int
    left_out: bool = False
    parts_left_out: bool = False

    def exit(self, paid_wei: int | None, checked: Evidence | None = None, sent_wei: int = 0) -> Exit:
        """The evidence of the sells. ``paid_wei``: the price paid; None: unknown. From ``checked`` it takes
        the token's own refusals of sells, which routers swallow, and the crowd of a trap. ``sent_wei``: the
        part of the price that went to other addresses beside the swap, and moved no pool's price."""
        policy = _policy(self.brought)
        known = {entry.venue: entry for entry in checked.venues} if checked is not None else {}
        market = self.brought.buy_round.run.setting.market
        priced = [
            (way, cells, None if paid_wei is None else quote_raw(paid_wei, way.place.venue.quote, market))
            for way, cells in self.ways
        ]
        with_price = [entry for entry in priced if entry[2] is not None]
        return Exit(
            token=self.brought.buy_round.run.token,
            received_raw=self.brought.moved.raw,
            venues=tuple(
                _with_check(
                    self._venue(
                        way, cells, paid or 0, quote_raw(sent_wei, way.place.venue.quote, market) or 0
                    ),
                    known.get(way.place.venue),
                    policy,
                )
                for way, cells, paid in with_price or priced
            ),
            paid_known=bool(with_price),
            free=paid_wei == 0,
            through_opening=any(way.opening for way, _ in self.ways),
            left_out=self.left_out or (self.parts_left_out and not _is_refused_by(checked, policy)),
        )

    def _venue(
        self, way: SellWay, cells: tuple[ProbeCell, ...], paid_raw: int, sent_raw: int = 0
    ) -> VenueEvidence:
        received, swapped_raw = self.brought.moved.raw, max(0, paid_raw - sent_raw)
        buy = CompletedBuy(swapped_raw, received, swapped_raw, self.gas)
        buys = [EnvironmentBuy("probe", 0, buy)]
        # A small buy shows the price impact of this size. In another pool than the buy's, the sell's own
        # result shows it.
        small = buy if way.opening else _small_buy(way.tried)
        if small is not None and swapped_raw:
            buys.append(EnvironmentBuy("thousandth", 0, small))
        return VenueEvidence(
            way.place.venue,
            way.tried.facts,
            tuple(buys),
            tuple(ProbeCell(cell.probe, _with_paid(cell.outcome, paid_raw)) for cell in cells),
        )

    def more_probes(self) -> list[tuple[SellWay, Probe]]:
        """What a second batch sells: nearly all where all was refused, unless some way took a sale of all;
        and in the other ways, unless some way took a single sale."""
        policy, probes = _policy(self.brought), list[tuple[SellWay, Probe]]()
        venues = [(way, self._venue(way, cells, 0)) for way, cells in self.ways]
        readings = [(way, venue, read_venue(venue, policy)) for way, venue in venues]
        taking = [reading for _, _, reading in readings if takes_sells(reading, policy)]
        if any(enough(reading.full, policy) for reading in taking):
            return []
        for way, venue, reading in readings:
            probes += [(way, probe) for probe in nearly_all_probes(policy, "probe", venue, reading)]
            if not taking and needs_pieces(reading, policy):
                run = self.brought.buy_round.run
                probes += [(way, probe) for probe in other_way_probes(run, "probe", way.place.venue)]
        return probes

    def with_cells(self, more: Mapping[SellWay, tuple[ProbeCell, ...]]) -> "SellBackResult":
        """The result with more sells of some ways."""
        ways = [(way, (*cells, *more.get(way, ()))) for way, cells in self.ways]
        return replace(self, ways=tuple(ways))

    def has_closed_curve(self) -> bool:
        """True where the sells show that the calls closed a curve, which was not known before."""
        return any(_is_closed(way, cells) for way, cells in self.ways)


_SMALL_SIZES: tuple[Size, ...] = ("thousandth", "hundredth", "tenth", "probe")


def _small_buy(trial: VenueTrial) -> CompletedBuy | Missing | None:
    """The smallest successful buy of the check's buy round; Missing where a smaller one is not known."""
    outcomes_by = {buy.size: buy.outcome for buy in trial.buys if buy.environment == 0}
    for size in _SMALL_SIZES:
        outcome = outcomes_by.get(size)
        if isinstance(outcome, Missing):
            return outcome
        if isinstance(outcome, CompletedBuy) and outcome.received_raw > 0 and outcome.paid_raw > 0:
            return outcome
    return None


def worth_wei(check: BuyRoundResult, raw: int) -> int | None:
    """What a venue asks for an amount of a token on the pinned block, without what the token takes of a
    buy: the lowest of the venues that fill the largest size of the check. The lowest is safe: a seller
    far below the price pays for that. Where none fills any, the highest price of its pools: a stranger's
    cheap pool must hide no loss. None where that is not known either."""
    market = check.run.setting.market
    for size in MAIN_SIZES:
        prices_wei = []
        for trial in check.data.venues:
            buy = trial.completed_buy(size)
            if trial.main_size() == size and buy is not None:
                price_wei = quote_in_wei(_asks_raw(trial, buy, raw), trial.place.venue.quote, market)
                prices_wei += [] if price_wei is None else [price_wei]
        if prices_wei:
            return min(prices_wei)
    return _spot_wei(check, raw)


def _spot_wei(check: BuyRoundResult, raw: int) -> int | None:
    """What the amount is worth at the highest price of the token's pools."""
    market, prices_wei = check.run.setting.market, list[int]()
    for trial in check.data.venues:
        venue, facts = trial.place.venue, trial.facts
        if isinstance(facts, PoolFacts) and facts.liquidity > 0:
            spot = pool_price(facts.sqrt_price_x96, check.run.token < venue.quote_address)
            price_wei = None if spot is None else quote_in_wei(int(spot * raw), venue.quote, market)
            prices_wei += [] if price_wei is None else [price_wei]
    return max(prices_wei, default=None)


def _asks_raw(trial: VenueTrial, main: CompletedBuy, raw: int) -> int:
    """What the venue asks for ``raw`` tokens, in its quote, without their tax: in the proportion of the buy
    that brings the nearest amount, because a larger one moves the price further."""
    given_raw = max(main.received_raw, trial.main_given_raw if trial.main_size() == "probe" else 0)
    tried = (trial.completed_buy(size) for size in _SMALL_SIZES)
    brought = [buy for buy in tried if buy is not None and buy.received_raw > 0]

    def ratio(buy: CompletedBuy) -> Fraction:
        return Fraction(max(buy.received_raw, raw), max(1, min(buy.received_raw, raw)))

    near = min(brought, key=ratio)
    return near.paid_raw * raw * main.received_raw // (near.received_raw * given_raw)


def _is_closed(way: SellWay, cells: tuple[ProbeCell, ...]) -> bool:
    if not way.place.venue.is_curve or way.opening:
        return False
    refused = [cell.outcome for cell in cells if isinstance(cell.outcome, RefusedCall)]
    return any(call.reason == _CURVE_GRADUATED for call in refused)


_CURVE_GRADUATED = "CurveGraduated"


def _with_paid(outcome: CellOutcome, paid_raw: int) -> CellOutcome:
    return outcome if isinstance(outcome, Missing | RefusedCall) else replace(outcome, paid_raw=paid_raw)


@dataclass(frozen=True, slots=True)
class _SellBackRun:
    """One simulation of a token on one way; without a probe it measures what reaches another wallet."""

    brought: BroughtToken
    way: SellWay
    environment: Environment
    probe: Probe | None
    plan: Plan


async def sell_all(
    wallet_calls: WalletCalls, tokens: list[BroughtToken], meter: Meter, gas: int
) -> list[SellBackResult]:
    """Sells every token on every way at once, on as many ways as ``gas`` for the calls allows. A missing
    answer of the node is Missing. If the calls turn out to have closed a curve, the token is sold again, in
    the pool that opens. Where no venue takes all of it, nearly all is tried, and where none takes a single
    sale, pieces."""
    if not tokens:
        return []
    first = await _sell_back(wallet_calls, tokens, (), meter, gas)
    closed = tuple(result.brought for result in first if result.has_closed_curve())
    results = await _sell_back(wallet_calls, tokens, closed, meter, gas) if closed else first
    return await _sell_in_part(wallet_calls, results, meter, gas // len(tokens))


async def _sell_back(
    wallet_calls: WalletCalls,
    tokens: list[BroughtToken],
    closed: tuple[BroughtToken, ...],
    meter: Meter,
    gas: int,
) -> list[SellBackResult]:
    ways = [_ways(wallet_calls, token, token in closed, gas // len(tokens)) for token in tokens]
    runs = [
        [run for way in token_ways for run in _plan_runs(wallet_calls, token, way)]
        for token, (token_ways, _) in zip(tokens, ways, strict=True)
    ]
    meters = [Meter() for _ in tokens]
    results = await at_once(*map(_send, tokens, runs, meters))
    meter.add(*meters)
    return [
        _read(token, token_ways, left_out, token_runs, token_results)
        for token, (token_ways, left_out), token_runs, token_results in zip(
            tokens, ways, runs, results, strict=True
        )
    ]


async def _sell_in_part(
    wallet_calls: WalletCalls, results: list[SellBackResult], meter: Meter, gas: int
) -> list[SellBackResult]:
    """The results, with sells of nearly all and in pieces for each token that needs them. The calls run once
    more before each. ``gas``: what they may use for a token; sells of nearly all that do not fit are left
    out."""
    planned = [_choose_probes(wallet_calls, result, gas) for result in results]
    results = [
        replace(result, parts_left_out=not fits) for result, (_, fits) in zip(results, planned, strict=True)
    ]
    runs = [
        [_plan_probe(wallet_calls, result.brought, way, probe) for way, probe in probes]
        for result, (probes, _) in zip(results, planned, strict=True)
    ]
    meters = [Meter() for _ in results]
    tokens = [result.brought for result in results]
    answers = await at_once(*map(_send, tokens, runs, meters))
    meter.add(*meters)
    return [
        result.with_cells(_read_cells(own_runs, own_answers))
        for result, own_runs, own_answers in zip(results, runs, answers, strict=True)
    ]


def _choose_probes(
    wallet_calls: WalletCalls, result: SellBackResult, gas: int
) -> tuple[list[tuple[SellWay, Probe]], bool]:
    """The probes of the second batch, and whether ``gas`` allows all. Ten pieces always fit, and sells
    of nearly all come before the other ways."""
    order = ("pieces", "nearly all")
    probes = sorted(
        result.more_probes(), key=lambda of: order.index(of[1].seller) if of[1].seller in order else 2
    )
    a_run, pieces = sum(wallet_calls.gas_limits), sum(probe.seller == "pieces" for _, probe in probes)
    used = len(result.ways) * _gas_of_sells(wallet_calls.gas_limits, _policy(result.brought))
    fitting = max(pieces, (gas - used) // a_run) if a_run else len(probes)
    return probes[:fitting], fitting >= len(probes)


def _read_cells(runs: list[_SellBackRun], results: list[PlanResult]) -> dict[SellWay, tuple[ProbeCell, ...]]:
    cells: dict[SellWay, tuple[ProbeCell, ...]] = {}
    for run, result in zip(runs, results, strict=True):
        assert run.probe is not None
        outcome = _outcome(run.brought.moved, run, result, None, _policy(run.brought))
        cells[run.way] = (*cells.get(run.way, ()), ProbeCell(run.probe, outcome))
    return cells


def _policy(token: BroughtToken) -> Policy:
    return token.buy_round.run.means.policy


async def _send(token: BroughtToken, runs: list[_SellBackRun], meter: Meter) -> list[PlanResult]:
    """The results in order, through the token's own session, which knows what this token's code may read."""
    plans = {number: (run.way.place, run.plan) for number, run in enumerate(runs)}
    if not plans:
        return []
    try:
        return list((await replace(token.buy_round.run, meter=meter).ask_later(plans)).values())
    except NodeFault as fault:
        return [Missing("node", fault.message)] * len(runs)


def _ways(
    wallet_calls: WalletCalls, token: BroughtToken, closed: bool, gas: int
) -> tuple[list[SellWay], bool]:
    """The ways to sell a token: the venues of its check, where a buy brings most first, and pools without
    liquidity at their price last, as far as there is room. Also True where gas does not allow all of them."""
    trials = sorted(token.buy_round.venues_to_sell_on(), key=bought_raw, reverse=True)
    trials = [trial for trial in trials if not _is_absent(trial)]
    dry = [trial for trial in trials if isinstance(trial.facts, PoolFacts) and not trial.facts.liquidity]
    wet = [trial for trial in trials if trial not in dry]
    room = max(0, token.buy_round.run.means.policy.most_venues - len(wet))
    ways = [_way(token, trial, closed) for trial in (*wet, *dry[:room])]
    max_ways = max(1, gas // max(1, _gas_of_sells(wallet_calls.gas_limits, _policy(token))))
    return ways[:max_ways], len(ways) > max_ways


def _with_check(venue: VenueEvidence, checked: VenueEvidence | None, policy: Policy) -> VenueEvidence:
    """The sells on a venue with what its check knows. A crowd without a trap says nothing about this wallet,
    which sold itself."""
    if checked is None:
        return venue
    is_trap = isinstance(checked.crowd, Crowd) and read_venue(checked, policy).inconsistent is True
    crowd = checked.crowd if is_trap else None
    return replace(venue, told_on_sell=checked.told_on_sell, crowd=crowd, short_raw=checked.short_raw)


def _is_refused_by(checked: Evidence | None, policy: Policy) -> bool:
    """True where the check, which tried all its sells, found no venue that takes one."""
    if checked is None:
        return False
    readings = [read_venue(venue, policy, checked.launch) for venue in checked.venues]
    bought = [reading for reading in readings if reading.status == "bought"]
    return bool(bought) and not any(takes_sells(reading, policy) for reading in bought)


def exit_gas(gas_limits: tuple[int, ...], tokens: int, policy: Policy) -> int:
    """The gas that calls with these limits may use while ``tokens`` are sold, each on one venue: the calls
    also run before the sells in pieces."""
    return (_gas_of_sells(gas_limits, policy) + sum(gas_limits)) * tokens


def other_venues_gas(gas_limits: tuple[int, ...], tokens: list[BroughtToken], policy: Policy) -> int:
    """The gas of calls with these limits for the sells on each token's venues beside its first."""
    venues = sum(min(policy.most_venues, len(token.buy_round.venues_to_sell_on())) - 1 for token in tokens)
    return _gas_of_sells(gas_limits, policy) * max(0, venues)


def _gas_of_sells(gas_limits: tuple[int, ...], policy: Policy) -> int:
    """The gas that the calls may use on one venue without pieces: they run before each sell, and before the
    transfer to another wallet."""
    return sum(gas_limits) * (len(standard_probes(policy, "probe")) + 1)


def _is_absent(trial: VenueTrial) -> bool:
    return isinstance(trial.facts, PoolFacts) and not trial.facts.exists


def _way(token: BroughtToken, trial: VenueTrial, closed: bool) -> SellWay:
    """The way of one venue; for a curve that the calls sold out, the pool that replaces it."""
    run, launch = token.buy_round.run, token.buy_round.data.launch
    state = launch.curve_state if isinstance(launch, LaunchRecord) else None
    factory = run.means.contracts.launchpad_factory
    if not trial.place.venue.is_curve or not isinstance(launch, LaunchRecord) or factory is None:
        return SellWay(trial, trial.place)
    if not isinstance(state, Curve) or not (closed or token.closes):
        return SellWay(trial, trial.place)
    pool = launchpad_pool.pool(
        run.token, launch.quote_address, launch.pool_fee_pips, launch.tick_spacing, run.means.contracts
    )
    if pool is None:
        return SellWay(trial, trial.place)
    return SellWay(
        trial, VenuePlace(pool, BY_KIND[pool.kind]), launchpad.graduation_calls(run.token, factory)
    )


def _plan_runs(wallet_calls: WalletCalls, token: BroughtToken, way: SellWay) -> list[_SellBackRun]:
    run = token.buy_round.run
    env = _trader(run, wallet_calls, way, 0, "handed")
    plan = calls.passed_on_plan(wallet_calls, run.setting, env, token.moved.raw, way.opening)
    probes = standard_probes(run.means.policy, "probe")
    return [
        _SellBackRun(token, way, env, None, plan),
        *(_plan_probe(wallet_calls, token, way, probe) for probe in probes),
    ]


def _plan_probe(wallet_calls: WalletCalls, token: BroughtToken, way: SellWay, probe: Probe) -> _SellBackRun:
    run = token.buy_round.run
    env = _trader(
        run, wallet_calls, way, probe.environment, f"{probe.delay_s} {probe.share_bps} {probe.seller}"
    )
    # The balance of a token that rebases is known at the nominal delays only.
    rebases = any(later != token.moved.before_raw + token.moved.raw for later in token.moved.later_raw)
    env = replace(env, late_s=0) if rebases else env
    held = _plannable_raw(token.moved, probe, run.means.policy)
    plan = calls.after_plan(wallet_calls, way.place, run.setting, env, probe, held, way.opening)
    return _SellBackRun(token, way, env, probe, plan)


def _trader(
    run: CheckSession, wallet_calls: WalletCalls, way: SellWay, number: int, part: str
) -> Environment:
    """The caller's wallet in a block like one of the check's; each probe has a receiver of its own."""
    env = cast(run.environments[number], part)
    buy = next(
        (way.tried.completed_buy(size) for size in ("probe", "thousandth") if way.tried.completed_buy(size)),
        None,
    )
    measured = max(90_000, buy.approve_gas * 3 // 2) if buy else _MIN_APPROVE_GAS
    return replace(
        env,
        buyer=wallet_calls.wallet,
        approve_gas_limit=env.approve_gas_limit or measured,
        own_usdg_raw=0,
        size_bps=BPS,
    )


def held_raw(moved: BalanceChange, probe: Probe, policy: Policy) -> int:
    """The received amount that the wallet still holds when the probe sells: its share of the balance then."""
    if probe.seller == "receiver" or not moved.later_raw:
        return moved.raw
    later = moved.later_raw[calls.held_delays_s(policy).index(probe.delay_s)]
    return later * moved.raw // max(1, moved.before_raw + moved.raw)


def _plannable_raw(moved: BalanceChange, probe: Probe, policy: Policy) -> int:
    """The received amount that the probe's sells may ask for (``legs.plannable``)."""
    if probe.seller not in OVER_A_DAY:
        return held_raw(moved, probe, policy)
    delays = calls.held_delays_s(policy) if moved.later_raw else ()
    balances = [held_raw(moved, replace(probe, delay_s=delay_s), policy) for delay_s in delays]
    return min([moved.raw, *balances])


def _read(
    token: BroughtToken,
    ways: list[SellWay],
    left_out: bool,
    runs: list[_SellBackRun],
    results: list[PlanResult],
) -> SellBackResult:
    policy = token.buy_round.run.means.policy
    cells: dict[SellWay, list[ProbeCell]] = {way: [] for way in ways}
    arrived_raw: dict[SellWay, int | None] = {}
    gas = 0
    for run, result in zip(runs, results, strict=True):
        if run.probe is None:
            arrived_raw[run.way] = None if isinstance(result, RefusedCall) else outcomes.read_handed(result)
            continue
        if not isinstance(result, Missing | RefusedCall):
            gas = max(gas, calls.own_gas(result))
        outcome = _outcome(token.moved, run, result, arrived_raw.get(run.way), policy)
        cells[run.way].append(ProbeCell(run.probe, outcome))
    by_way = tuple((way, tuple(own_cells)) for way, own_cells in cells.items())
    return SellBackResult(token, by_way, gas, left_out)


def _outcome(
    moved: BalanceChange, run: _SellBackRun, result: PlanResult, arrived_raw: int | None, policy: Policy
) -> CellOutcome:
    if isinstance(result, Missing):
        return result
    if isinstance(result, RefusedCall):
        return replace(result, step="sell")
    assert run.probe is not None
    if calls.first_failure(result) is not None:
        return Missing("token", "the calls worked in one simulated block and failed in another")
    if any(not step.ok for label, step in result.items() if label.startswith("opening-")):
        return Missing("node", "the pool that follows its curve could not be opened")
    held = held_raw(moved, run.probe, policy)
    balance_raw = moved.before_raw + moved.raw
    if moved.later_raw:
        balance_raw = moved.later_raw[calls.held_delays_s(policy).index(run.probe.delay_s)]
    start = SellStart(0, held, calls.own_gas(result), arrived_raw, max(0, balance_raw - held))
    start = start.of(run.probe, policy)
    return outcomes.read_exit(result, run.way.place, run.environment, run.probe, start)
