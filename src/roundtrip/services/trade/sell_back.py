"""What a wallet's calls brought is sold straight back, through the same cells as a check: one trip."""

from dataclasses import dataclass, replace

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate import outcomes
from roundtrip.chain.simulate.legs import VenuePlace, cast
from roundtrip.chain.simulate.outcomes import SellStart
from roundtrip.chain.simulate.request import Plan, Results
from roundtrip.chain.wallet import calls
from roundtrip.chain.wallet.calls import WalletCalls
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.evidence import (
    CellOutcome,
    CompletedBuy,
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
from roundtrip.domain.check.price import quote_in_wei, quote_raw
from roundtrip.domain.check.venue_reading import MAIN_SIZES
from roundtrip.domain.trade.judge import BalanceChange, Exit
from roundtrip.services.check.pipeline import BuyRoundResult
from roundtrip.services.check.sell_round import buy_brought, standard_probes
from roundtrip.services.check.session import CheckSession, VenueTrial
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.venues import BY_KIND, launchpad, launchpad_pool
from roundtrip.venues.base import Call

_LEAST_APPROVE_GAS = 300_000


@dataclass(frozen=True, slots=True)
class BroughtToken:
    """One token that the calls brought, with trip 1 of its check. ``closes``: that much sells its curve
    out."""

    opened: BuyRoundResult
    moved: BalanceChange
    closes: bool


def brought(
    opened: BuyRoundResult, moved: BalanceChange, certain: BalanceChange | None = None
) -> BroughtToken:
    """What the calls brought; of ``certain`` only that much is sold."""
    launch = opened.data.launch
    state = launch.curve_state if isinstance(launch, LaunchRecord) else None
    closes = isinstance(state, Curve) and moved.raw >= state.token_raw - state.reserved_raw
    return BroughtToken(opened, certain or moved, closes)


@dataclass(frozen=True, slots=True)
class SellWay:
    """One place to sell it on. ``opening``: what anybody may call first, where the calls sold a curve out."""

    tried: VenueTrial
    place: VenuePlace
    opening: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class SellBackResult:
    """What came of selling one token, on each way; nothing is said yet of what was paid for it. ``left_out``:
    there are ways that were not tried."""

    brought: BroughtToken
    ways: tuple[tuple[SellWay, tuple[ProbeCell, ...]], ...]
    gas: int
    left_out: bool = False

    def exit(self, paid_wei: int | None, checked: Evidence | None = None) -> Exit:
        """As evidence, with what was paid for it; None where that has no price. Of ``checked`` it takes what
        the token itself says of being sold, which routers swallow."""
        told = {one.venue: one.told_on_sell for one in checked.venues} if checked is not None else {}
        market = self.brought.opened.run.setting.market
        priced = [
            (way, cells, None if paid_wei is None else quote_raw(paid_wei, way.place.venue.quote, market))
            for way, cells in self.ways
        ]
        known = [one for one in priced if one[2] is not None]
        return Exit(
            token=self.brought.opened.run.token,
            received_raw=self.brought.moved.raw,
            venues=tuple(
                replace(self._venue(way, cells, paid or 0), told_on_sell=told.get(way.place.venue))
                for way, cells, paid in known or priced
            ),
            paid_known=bool(known),
            free=paid_wei == 0,
            through_opening=any(way.opening for way, _ in self.ways),
            left_out=self.left_out,
        )

    def _venue(self, way: SellWay, cells: tuple[ProbeCell, ...], paid_raw: int) -> VenueEvidence:
        received = self.brought.moved.raw
        own = CompletedBuy(paid_raw, received, paid_raw, self.gas)
        buys = [EnvironmentBuy("probe", 0, own)]
        # A small buy tells what this size does to the price. What is sold in another pool than it came from
        # shows that by what it brings.
        small = own if way.opening else _small_buy(way.tried)
        if small is not None and paid_raw:
            buys.append(EnvironmentBuy("thousandth", 0, small))
        return VenueEvidence(
            way.place.venue,
            way.tried.facts,
            tuple(buys),
            tuple(ProbeCell(cell.probe, _with_paid(cell.outcome, paid_raw)) for cell in cells),
        )

    def has_closed_curve(self) -> bool:
        """True where the calls turned out to have closed a curve that nothing told of before."""
        return any(_is_closed(way, cells) for way, cells in self.ways)


_SMALL_SIZES: tuple[Size, ...] = ("thousandth", "hundredth", "tenth", "probe")


def _small_buy(tried: VenueTrial) -> CompletedBuy | Missing | None:
    """The smallest buy of the check's trip 1 that went through; Missing where one is not known."""
    outcomes_by = {buy.size: buy.outcome for buy in tried.buys if buy.environment == 0}
    for size in _SMALL_SIZES:
        outcome = outcomes_by.get(size)
        if isinstance(outcome, Missing):
            return outcome
        if isinstance(outcome, CompletedBuy) and outcome.received_raw > 0 and outcome.paid_raw > 0:
            return outcome
    return None


def worth_wei(opened: BuyRoundResult, raw: int) -> int | None:
    """What so much of a token costs on the pinned block, where it is cheapest of the venues that fill the
    largest of the check's sizes: to sell much below the price costs whoever offers it that much. None where
    nobody sells any, or what it is paid in has no price."""
    market = opened.run.setting.market
    for size in MAIN_SIZES:
        found = []
        for tried in opened.data.venues:
            bought = tried.completed_buy(size)
            if tried.main_size() == size and bought is not None:
                quote = tried.place.venue.quote
                wei = quote_in_wei(bought.paid_raw * raw // bought.received_raw, quote, market)
                found += [] if wei is None else [wei]
        if found:
            return min(found)
    return None


def _is_closed(way: SellWay, cells: tuple[ProbeCell, ...]) -> bool:
    if not way.place.venue.is_curve or way.opening:
        return False
    refused = [cell.outcome for cell in cells if isinstance(cell.outcome, RefusedCall)]
    return any(one.reason == _CURVE_GRADUATED for one in refused)


_CURVE_GRADUATED = "CurveGraduated"


def _with_paid(outcome: CellOutcome, paid_raw: int) -> CellOutcome:
    return outcome if isinstance(outcome, Missing | RefusedCall) else replace(outcome, paid_raw=paid_raw)


@dataclass(frozen=True, slots=True)
class _SellBackRun:
    """One simulation: which token's, which way's; without a probe it is what reaches another wallet."""

    brought: BroughtToken
    way: SellWay
    environment: Environment
    probe: Probe | None
    plan: Plan


async def sold_back(
    own: WalletCalls, tokens: list[BroughtToken], meter: Meter, gas: int
) -> list[SellBackResult]:
    """Every token on every way at once, on as many ways as ``gas`` for the calls allows. What the node does
    not answer is Missing. Where it turns out that the calls closed a curve, it is sold once more, in the pool
    that opens."""
    if not tokens:
        return []
    first = await _sell_back(own, tokens, (), meter, gas)
    closed = tuple(one.brought for one in first if one.has_closed_curve())
    return await _sell_back(own, tokens, closed, meter, gas) if closed else first


async def _sell_back(
    own: WalletCalls, tokens: list[BroughtToken], closed: tuple[BroughtToken, ...], meter: Meter, gas: int
) -> list[SellBackResult]:
    ways = [_ways(own, token, token in closed, gas // len(tokens)) for token in tokens]
    asked = [
        one
        for token, (own_ways, _) in zip(tokens, ways, strict=True)
        for way in own_ways
        for one in _plan_runs(own, token, way)
    ]
    meters = [Meter() for _ in tokens]
    waits = (_run_plans(token, asked, own_meter) for token, own_meter in zip(tokens, meters, strict=True))
    told = [one for found in await at_once(*waits) for one in found]
    meter.add(*meters)
    return [
        _read(token, own_ways, left_out, asked, told)
        for token, (own_ways, left_out) in zip(tokens, ways, strict=True)
    ]


async def _run_plans(
    token: BroughtToken, asked: list[_SellBackRun], meter: Meter
) -> list[Results | Missing | RefusedCall]:
    """By the token's own run: another token's knows nothing of what this one's code may do."""
    plans = [(one.way.place, one.plan) for one in asked if one.brought is token]
    try:
        return await replace(token.opened.run, meter=meter).ask_later(plans)
    except NodeFault as fault:
        return [Missing("node", fault.message)] * len(plans)


def _ways(own: WalletCalls, token: BroughtToken, closed: bool, gas: int) -> tuple[list[SellWay], bool]:
    """Where it may be sold: what takes part in a check, where a buy brings most first, and pools without
    liquidity at their price last and as far as there is room. Where the calls burn so much gas that not all
    can be tried, True."""
    there = sorted(token.opened.venues_to_sell_on(), key=buy_brought, reverse=True)
    there = [one for one in there if not _is_absent(one)]
    dry = [one for one in there if isinstance(one.facts, PoolFacts) and not one.facts.liquidity]
    wet = [one for one in there if one not in dry]
    room = max(0, token.opened.run.means.policy.most_venues - len(wet))
    ways = [_way(token, tried, closed) for tried in (*wet, *dry[:room])]
    most = max(1, gas // max(1, exit_gas(own.gas_limits, 1, token.opened.run.means.policy)))
    return ways[:most], len(ways) > most


def exit_gas(gas_limits: tuple[int, ...], tokens: int, policy: Policy) -> int:
    """What calls with these limits may use while so many tokens are sold, each on one venue: they are run
    before each sell, and before the token is handed on."""
    return sum(gas_limits) * (len(standard_probes(policy, "probe")) + 1) * tokens


def _is_absent(tried: VenueTrial) -> bool:
    return isinstance(tried.facts, PoolFacts) and not tried.facts.exists


def _way(token: BroughtToken, tried: VenueTrial, closed: bool) -> SellWay:
    """A curve that the calls sold out is sold on no more: then it is the pool that it becomes."""
    run, launch = token.opened.run, token.opened.data.launch
    state = launch.curve_state if isinstance(launch, LaunchRecord) else None
    factory = run.means.contracts.launchpad_factory
    if not tried.place.venue.is_curve or not isinstance(launch, LaunchRecord) or factory is None:
        return SellWay(tried, tried.place)
    if not isinstance(state, Curve) or not (closed or token.closes):
        return SellWay(tried, tried.place)
    pool = launchpad_pool.pool(
        run.token, launch.quote_address, launch.pool_fee_pips, launch.tick_spacing, run.means.contracts
    )
    if pool is None:
        return SellWay(tried, tried.place)
    place = VenuePlace(pool, BY_KIND[pool.kind])
    return SellWay(tried, place, launchpad.graduation_calls(run.token, factory))


def _plan_runs(own: WalletCalls, token: BroughtToken, way: SellWay) -> list[_SellBackRun]:
    run = token.opened.run
    policy, setting = run.means.policy, run.setting
    # Of what shrinks with time it is known what is held at the round delays.
    rebases = any(later != token.moved.before_raw + token.moved.raw for later in token.moved.later_raw)
    env = _trader(run, own, way, 0, "handed")
    found = [
        _SellBackRun(
            token,
            way,
            env,
            None,
            calls.passed_on_plan(own, setting, env, token.moved.raw, way.opening),
        )
    ]
    for probe in standard_probes(policy, "probe"):
        env = _trader(run, own, way, probe.environment, f"{probe.delay_s} {probe.share_bps} {probe.seller}")
        env = replace(env, late_s=0) if rebases else env
        held = held_raw(token.moved, probe, policy)
        plan = calls.after_plan(own, way.place, setting, env, probe, held, way.opening)
        found.append(_SellBackRun(token, way, env, probe, plan))
    return found


def _trader(run: CheckSession, own: WalletCalls, way: SellWay, number: int, part: str) -> Environment:
    """The caller's wallet in a block like one of the check's; each probe hands on to a wallet of its own."""
    env = cast(run.environments[number], part)
    bought = next(
        (way.tried.completed_buy(size) for size in ("probe", "thousandth") if way.tried.completed_buy(size)),
        None,
    )
    measured = max(90_000, bought.approve_gas * 3 // 2) if bought else _LEAST_APPROVE_GAS
    return replace(
        env,
        buyer=own.wallet,
        approve_gas_limit=env.approve_gas_limit or measured,
        own_usdg_raw=0,
        size_bps=BPS,
    )


def held_raw(moved: BalanceChange, probe: Probe, policy: Policy) -> int:
    """How much of what was received is there to sell when the probe sells: its part of what is held then."""
    if probe.seller == "receiver" or not moved.later_raw:
        return moved.raw
    later = moved.later_raw[calls.held_delays_s(policy).index(probe.delay_s)]
    return later * moved.raw // max(1, moved.before_raw + moved.raw)


def _read(
    token: BroughtToken,
    ways: list[SellWay],
    left_out: bool,
    asked: list[_SellBackRun],
    told: list[Results | Missing | RefusedCall],
) -> SellBackResult:
    policy = token.opened.run.means.policy
    found: dict[SellWay, list[ProbeCell]] = {way: [] for way in ways}
    reached: dict[SellWay, int | None] = {}
    gas = 0
    for one, results in zip(asked, told, strict=True):
        if one.brought is not token:
            continue
        if one.probe is None:
            reached[one.way] = None if isinstance(results, RefusedCall) else outcomes.read_handed(results)
            continue
        if not isinstance(results, Missing | RefusedCall):
            gas = max(gas, calls.own_gas(results))
        outcome = _outcome(token.moved, one, results, reached.get(one.way), policy)
        found[one.way].append(ProbeCell(one.probe, outcome))
    return SellBackResult(token, tuple((way, tuple(cells)) for way, cells in found.items()), gas, left_out)


def _outcome(
    moved: BalanceChange,
    one: _SellBackRun,
    results: Results | Missing | RefusedCall,
    reached_raw: int | None,
    policy: Policy,
) -> CellOutcome:
    if isinstance(results, Missing):
        return results
    if isinstance(results, RefusedCall):
        return replace(results, step="sell")
    assert one.probe is not None
    if calls.first_failure(results) is not None:
        return Missing("token", "the calls went through in one block and not in another just like it")
    if any(not found.ok for label, found in results.items() if label.startswith("opening-")):
        return Missing("node", "the pool that its curve becomes could not be opened")
    held = held_raw(moved, one.probe, policy)
    later = moved.before_raw + moved.raw
    if moved.later_raw:
        later = moved.later_raw[calls.held_delays_s(policy).index(one.probe.delay_s)]
    had = SellStart(0, held, calls.own_gas(results), reached_raw, max(0, later - held))
    return outcomes.read_exit(results, one.way.place, one.environment, one.probe, had)
