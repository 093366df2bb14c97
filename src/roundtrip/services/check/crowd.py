"""The crowd of a venue: drawn wallets that differ as real ones do. They buy in the buy round and sell among
others in the sell round; the isolation round tries those alone that met something else."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.simulate import crowd_outcomes, crowd_plans
from roundtrip.chain.simulate.crowd_outcomes import CrowdBuys, MemberBuys
from roundtrip.chain.simulate.crowd_plans import Attempt, CrowdTrader, Member
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.probe_plans import main_wallet
from roundtrip.chain.simulate.request import Plan, PlannedBlock, Results
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.buy_math import outputs_of_buys
from roundtrip.domain.check.crowd_reading import CHOICES, MainSells, differing
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    CompletedBuy,
    Crowd,
    CrowdTrade,
    CrowdWallet,
    CrowdWay,
    Curve,
    Difference,
    IsolatedTrade,
    LaunchRecord,
    Missing,
    RefusedCall,
)
from roundtrip.venues.abi import keccak

from .session import CheckSession, PlanResult, VenueTrial

_PLAIN_AT = 12
"""The number of the wallet that differs from the main one only in that it sells last, after all others."""
_LEAST_BUY_GAS, _LEAST_SELL_GAS = 300_000, 400_000
_GENEROUS = 3
"""Every third wallet sells with all the gas that it may: some tokens sell only where little is left."""


# --- drawing ---------------------------------------------------------------------------------------


class _Draw:
    """Numbers and addresses from a seed, each by its label."""

    def __init__(self, seed: bytes, name: str) -> None:
        self._seed, self._name = seed, name

    def bytes_of(self, label: str) -> bytes:
        return keccak(self._seed + f"crowd {self._name} {label}".encode())

    def address(self, label: str) -> Address:
        return Address("0x" + self.bytes_of(label)[12:].hex())

    def between(self, label: str, lowest: int, highest: int) -> int:
        return lowest + int.from_bytes(self.bytes_of(label)[:8], "big") % (highest - lowest + 1)

    def spread(self, label: str, lowest: int, highest: int) -> int:
        """As often between 0.01 and 0.02 as between 0.1 and 0.2: a power of two is drawn first, and then a
        number between it and the next."""
        octaves = (highest // lowest).bit_length()
        low = lowest << self.between(f"{label} octave", 0, octaves - 1)
        return min(highest, self.between(label, low, 2 * low))

    def is_true(self, label: str, one_in: int) -> bool:
        return self.between(label, 1, one_in) == 1

    def shuffle(self, label: str, items: list[int]) -> list[int]:
        keys = {number: self.bytes_of(f"{label} {number}") for number in range(len(items))}
        return [items[number] for number in sorted(keys, key=lambda number: keys[number])]


def draw_crowd(seed: bytes, place: VenuePlace, head: ChainHead, policy: Policy) -> tuple[CrowdWallet, ...]:
    """The wallets, smallest first. Each sells in one of nine blocks; one in four buys twice."""
    draw = _Draw(seed, place.venue.at() or "")
    sizes = sorted(
        draw.spread(f"size {lowest} {n}", lowest, highest)
        for (lowest, highest), count in zip(policy.crowd_sizes_wei, policy.crowd_counts, strict=True)
        for n in range(count)
    )
    numbers = range(len(sizes))
    times = draw.shuffle("times", _times(draw, len(sizes) - 1, policy))
    last_s = policy.day_s + policy.later_s
    times.insert(_PLAIN_AT, last_s)
    takes_tips = head.dialect is None or not head.dialect.drops_tips
    ways = _ways(draw, len(sizes), bool(place.venue.traits.second_route))
    twice = set(draw.shuffle("twice", list(numbers))[: len(sizes) // 4])
    wallets = []
    for number, size_wei in zip(numbers, sizes, strict=True):
        way, share_bps = ways[number]
        label = f"wallet {number}"
        again_bps = draw.between(f"{label} again", 1000, BPS) if number in twice else 0
        lowest, highest = policy.crowd_purse_wei
        has_tip = takes_tips and not draw.is_true(f"{label} no tip", 3)
        wallets.append(
            CrowdWallet(
                wallet=draw.address(label),
                nonce=draw.between(f"{label} nonce", 1, 300),
                size_wei=size_wei,
                again_wei=size_wei * again_bps // BPS,
                purse_wei=draw.spread(f"{label} purse", lowest, highest),
                weth_wei=_some(draw, f"{label} weth", 10**16, 10**18),
                usdg_raw=_some(draw, f"{label} usdg", 10**6, 40 * 10**6),
                tip_wei=draw.spread(f"{label} tip", 10**6, policy.crowd_most_tip_wei) if has_tip else 0,
                approves_all=draw.is_true(f"{label} approves", 2),
                after_s=times[number],
                share_bps=share_bps,
                way=way,
            )
        )
    plain = wallets[_PLAIN_AT]
    wallets[_PLAIN_AT] = crowd_plans.plain_wallet(plain.wallet, plain.nonce, plain.size_wei, last_s)
    return tuple(wallets)


def _some(draw: _Draw, label: str, lowest: int, highest: int) -> int:
    return draw.spread(label, lowest, highest) if draw.is_true(f"{label} has", 4) else 0


def _times(draw: _Draw, count: int, policy: Policy) -> list[int]:
    """When each sells, in seconds after its last buy: at the main wallet's times, and drawn ones."""
    bounds = (policy.later_s + 30, policy.hour_s - 60), (4000, 20_000), (20_001, 40_000), (40_001, 62_000)
    drawn = [draw.between(f"time {low}", low, high) for low, high in (*bounds, (62_001, 84_000))]
    times = [policy.later_s] * 6 + [policy.hour_s] * 5 + [policy.day_s] * 5 + drawn * 2
    return (times * 2)[:count]


def _ways(draw: _Draw, count: int, two_routes: bool) -> dict[int, tuple[CrowdWay, int]]:
    """How each sells, and which share: most all of it by the usual route."""
    part: CrowdWay = "usual"
    ways: list[tuple[CrowdWay, int]] = [("pieces", BPS)]
    ways += [(part, 5000)] * 3 + [(part, 100)] * 2
    if two_routes:
        route: CrowdWay = "second route"
        ways += [(route, BPS)] * 3
    others = [number for number in range(count) if number != _PLAIN_AT]
    chosen = draw.shuffle("ways", others)
    return dict.fromkeys(range(count), ("usual", BPS)) | dict(zip(chosen, ways, strict=False))


# --- what the buys bring ----------------------------------------------------------------------------


def quote_crowd_buys(
    run: CheckSession,
    trial: VenueTrial,
    launch: AnyLaunch | Missing | None,
    wallets: tuple[CrowdWallet, ...],
) -> CrowdBuys | None:
    """What each wallet's buys bring, by the venue's formula and by what of the main buy arrived. None where
    the formula does not explain the main buy: then the buys are to be measured."""
    main, given_raw, facts = trial.completed_buy("probe"), trial.main_given_raw, trial.facts
    if main is None or not given_raw or not isinstance(facts, PoolFacts):
        return None
    order = _buy_order(run, trial.place, wallets)
    amounts = [main.offered_raw, *(raw for _, raw in order)]
    given = outputs_of_buys(trial.place.venue, facts, launch, run.token, amounts)
    if given is None or given[0] != given_raw:
        return None
    by_wallet = dict.fromkeys(range(len(wallets)), 0)
    for (number, _), raw in zip(order, given[1:], strict=True):
        by_wallet[number] += raw
    buys = []
    for number in range(len(wallets)):
        all_raw = by_wallet[number]
        arrives_raw = all_raw
        if main.received_raw != given_raw:
            # Where a part is taken, rounding differs from wallet to wallet, and with the size.
            arrives_raw = all_raw * main.received_raw // given_raw - all_raw // given_raw - 2
        buys.append(MemberBuys(all_raw, max(0, arrives_raw), main.gas))
    return CrowdBuys(wallets, tuple(buys))


def _buy_order(
    run: CheckSession, place: VenuePlace, wallets: tuple[CrowdWallet, ...]
) -> list[tuple[int, int]]:
    """The buys in the order of ``crowd_plans.crowd_buy_blocks``: number of the wallet, and the amount."""
    size = crowd_plans.block_size(run.means.policy)
    order = []
    for number, wallet in enumerate(wallets):
        trader = _trader(run, place, number, wallet)
        block = number // size
        order.append((block, 1, number, trader.spent_raw(wallet.size_wei)))
        if wallet.again_wei:
            order.append((block + 1, 0, number, trader.spent_raw(wallet.again_wei)))
    return [(number, raw) for _, _, number, raw in sorted(order)]


def crowd_blocks(
    run: CheckSession, place: VenuePlace, wallets: tuple[CrowdWallet, ...]
) -> list[PlannedBlock]:
    """The blocks of the buys, and in the last one reads of what each wallet holds."""
    env, setting = run.environments[0], run.setting
    members = [_buyer(run, place, number, wallet) for number, wallet in enumerate(wallets)]
    *blocks, last = crowd_plans.crowd_buy_blocks(place, setting, env, members)
    return [*blocks, replace(last, steps=last.steps + crowd_plans.held_reads(setting, env, members))]


def _buyer(run: CheckSession, place: VenuePlace, number: int, wallet: CrowdWallet) -> Member:
    limit = _trader(run, place, number, wallet).gas_limit()
    return Member(number, wallet, 0, limit, limit)


def _trader(run: CheckSession, place: VenuePlace, number: int, wallet: CrowdWallet) -> CrowdTrader:
    return CrowdTrader(place, run.setting, run.environments[0], wallet, f"m{number}")


def read_crowd_buys(
    run: CheckSession, place: VenuePlace, wallets: tuple[CrowdWallet, ...], results: Results
) -> CrowdBuys:
    """Each wallet's measured buys."""
    buys = tuple(
        crowd_outcomes.read_buys(results, _trader(run, place, number, wallet))
        for number, wallet in enumerate(wallets)
    )
    return CrowdBuys(wallets, buys)


# --- sell round ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CrowdSells:
    """The part of the crowd that trades. ``refused``: wallets that could not buy; ``left_out``: the number of
    those for whom the venue is too thin, or whose trades use too much gas."""

    members: tuple[Member, ...]
    buys: tuple[MemberBuys, ...]
    refused: tuple[CrowdTrade, ...]
    left_out: int


def choose_sellers(
    run: CheckSession,
    trial: VenueTrial,
    launch: AnyLaunch | Missing | None,
    main: CompletedBuy,
    least_sell_gas: int = 0,
) -> CrowdSells | Missing:
    """The smallest wallets, as many as the venue's depth and a simulation's gas allow. A token that shrinks
    while it is held leaves each a smaller part to sell. ``least_sell_gas``: the least gas of each sell.
    Missing where the crowd's buys are not known."""
    if isinstance(trial.facts, Missing):
        return trial.facts
    wallets = trial.crowd_wallets[: _affordable(run, trial, launch)]
    left_out = len(trial.crowd_wallets) - len(wallets)
    crowd = trial.crowd or quote_crowd_buys(run, trial, launch, wallets)
    if isinstance(crowd, Missing) or crowd is None:
        return crowd or Missing("node", "the crowd's buys were not measured")
    policy = run.means.policy
    members, bought, refused, gas = [], [], [], 0
    for number, (wallet, buys) in enumerate(zip(wallets, crowd.buys[: len(wallets)], strict=True)):
        trader = _trader(run, trial.place, number, wallet)
        if not isinstance(buys, MemberBuys):
            refused.append(CrowdTrade(wallet, buys))
            continue
        buy_gas = min(trader.gas_limit(), max(_LEAST_BUY_GAS, buys.gas * 3 // 2))
        sell_gas = min(trader.gas_limit(), max(_LEAST_SELL_GAS, buys.gas * 3))
        if wallet.nonce % _GENEROUS == 0:
            sell_gas = trader.gas_limit()
        sell_gas = max(sell_gas, least_sell_gas)
        gas += buy_gas * (2 if wallet.again_wei else 1)
        gas += sell_gas * (policy.pieces if wallet.way == "pieces" else 1)
        if gas > policy.crowd_gas:
            left_out += len(wallets) - number
            break
        held_raw = buys.received_raw * _kept_bps(main, _last_s(wallet, policy), policy) // BPS
        members.append(Member(number, wallet, held_raw, buy_gas, sell_gas))
        bought.append(buys)
    return CrowdSells(tuple(members), tuple(bought), tuple(refused), left_out)


def _affordable(run: CheckSession, trial: VenueTrial, launch: AnyLaunch | Missing | None) -> int:
    """How many of the wallets buy for at most the policy's part of the venue's depth, and do not close a
    curve."""
    curve = launch.curve_state if isinstance(launch, LaunchRecord) else None
    facts, divisor = trial.facts, run.means.policy.crowd_depth_divisor
    if trial.place.venue.is_curve and isinstance(curve, Curve):
        room_raw = min(curve.quote_raw // divisor, _until_closed_raw(curve) // 2)
    else:
        room_raw = facts.quote_reserve_raw // divisor if isinstance(facts, PoolFacts) else 0
    spent_raw = 0
    for number, wallet in enumerate(trial.crowd_wallets):
        trader = _trader(run, trial.place, number, wallet)
        spent_raw += trader.spent_raw(wallet.size_wei) + trader.spent_raw(wallet.again_wei)
        if spent_raw > room_raw:
            return number
    return len(trial.crowd_wallets)


def _until_closed_raw(curve: Curve) -> int:
    """The quote that sells the curve out, before fees."""
    sellable = max(0, curve.token_raw - curve.reserved_raw)
    return curve.quote_raw * sellable // max(1, curve.reserved_raw)


def _kept_bps(main: CompletedBuy, until_s: int, policy: Policy) -> int:
    """The least part of a balance that is left until so long after the buy, without a trade."""
    held = list(main.held_later_raw)
    for number, at_s in enumerate((policy.later_s, policy.hour_s)):
        if until_s <= at_s:
            held = held[: number + 1]
            break
    return min(BPS, min((main.received_raw, *held)) * BPS // max(1, main.received_raw))


def _last_s(wallet: CrowdWallet, policy: Policy) -> int:
    """How long after its buy a wallet sells last."""
    return policy.day_s if wallet.way == "pieces" else wallet.after_s


def crowd_plan(
    run: CheckSession, place: VenuePlace, main_raw: int, main: CompletedBuy, sells: CrowdSells
) -> Plan:
    """The simulation of the crowd's buys and sells."""
    return crowd_plans.crowd_sell_plan(
        place, run.setting, run.environments[0], "probe", main_raw, main, sells.members
    )


def read_crowd_sells(
    run: CheckSession, place: VenuePlace, sells: CrowdSells, result: PlanResult
) -> Crowd | Missing:
    """What the crowd met. Missing where the simulation did not run."""
    if isinstance(result, Missing):
        return result
    if isinstance(result, RefusedCall):
        return Missing("token", result.reason or "")
    trades = []
    for member, buys in zip(sells.members, sells.buys, strict=True):
        trader = _trader(run, place, member.number, member.wallet)
        amounts = crowd_plans.sell_amounts(member, sells.members, run.means.policy)
        outcome = crowd_outcomes.read_trade(result, trader, buys, amounts)
        trades.append(CrowdTrade(member.wallet, outcome or _GAVE_LESS))
    short = [trade for trade in trades if trade.outcome is _GAVE_LESS]
    if 2 * len(short) <= len(trades):
        trades = [trade for trade in trades if trade.outcome is not _GAVE_LESS]
        return Crowd((*trades, *sells.refused), sells.left_out + len(short))
    # A token that moves the price while others buy must not hide its refusals so.
    return Crowd((*trades, *sells.refused), sells.left_out)


_GAVE_LESS = Missing("token", "the venue gave less than its formula says")


# --- isolation round -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Isolation:
    """One trade of the isolation round: of trade ``of``, with one difference. Without attempts it is the main
    wallet's probe in pieces. ``sell_gas``: the gas limit of each attempt."""

    of: int
    difference: Difference
    wallet: CrowdWallet
    attempts: tuple[Attempt, ...]
    others: tuple[Member, ...] = ()
    sell_gas: int = crowd_plans.ALONE_GAS


def isolations(
    run: CheckSession, crowd: Crowd, sells: CrowdSells, main_sells: MainSells, main: CompletedBuy
) -> list[Isolation]:
    """The trades that find out why some wallets met something else than the main one; empty: none did."""
    policy = run.means.policy
    numbers = differing(crowd, main_sells, policy)
    most_gas = max((crowd_plans.ALONE_GAS, *(member.sell_gas for member in sells.members)))
    return [
        replace(isolation, sell_gas=most_gas)
        for number in _most_different(crowd, numbers, policy)[: policy.most_isolated]
        for isolation in _isolations_of(run, number, crowd.trades[number], sells, main)
    ]


def _most_different(crowd: Crowd, numbers: list[int], policy: Policy) -> list[int]:
    """Refused sells first, and of equals those that chose to differ least: their cause is the plainest."""

    def order(number: int) -> tuple[bool, int]:
        trade = crowd.trades[number]
        return not isinstance(trade.outcome, RefusedCall), len(_choices(trade.wallet, policy))

    return sorted(numbers, key=order)


def _choices(wallet: CrowdWallet, policy: Policy) -> tuple[Difference, ...]:
    """In what a wallet chose to differ from the main one."""
    is_other: dict[Difference, bool] = {
        "size": True,
        "time": wallet.after_s not in (policy.later_s, policy.hour_s, policy.day_s),
        "share": wallet.share_bps != BPS,
        "pieces": wallet.way == "pieces",
        "route": wallet.way == "second route",
        "approval": wallet.approves_all,
        "tip": wallet.tip_wei > 0,
    }
    return tuple(choice for choice in CHOICES if is_other[choice])


def _isolations_of(
    run: CheckSession, of: int, trade: CrowdTrade, sells: CrowdSells, main: CompletedBuy
) -> Iterator[Isolation]:
    policy, wallet = run.means.policy, trade.wallet
    member = next((m for m in sells.members if m.wallet == wallet), None)

    def left_raw(at_s: int, raw: int = main.received_raw) -> int:
        return max(1, raw * _kept_bps(main, at_s, policy) // BPS)

    def tries(part_bps: int) -> tuple[Attempt, ...]:
        moments = (policy.later_s, policy.hour_s, policy.day_s)
        return tuple(Attempt(at_s, max(1, left_raw(at_s) * part_bps // BPS)) for at_s in moments)

    held_raw = left_raw(_last_s(wallet, policy)) if member is None else member.held_raw
    bought_raw = held_raw * BPS // max(1, _kept_bps(main, _last_s(wallet, policy), policy))
    # Others' trades may take a little, and two buys of half the size bring some units less than one.
    careful = tries(9990)
    main_raw = left_raw(policy.later_s)
    plain = _plain(run)
    shared_raw = max(1, held_raw * wallet.share_bps // BPS)
    if wallet.way != "pieces":
        yield Isolation(of, "as drawn", wallet, (Attempt(wallet.after_s, shared_raw),))
    bought_wei = policy.probe_wei // 2 if wallet.again_wei else policy.probe_wei
    usual = replace(
        wallet,
        size_wei=bought_wei,
        again_wei=bought_wei if wallet.again_wei else 0,
        tip_wei=0,
        approves_all=False,
        share_bps=BPS,
        way="usual",
    )
    yield Isolation(of, "wallet", usual, careful if wallet.again_wei else tries(BPS))
    others = tuple(m for m in sells.members if m.wallet != wallet)
    yield Isolation(of, "others", plain, careful, others)
    yield Isolation(of, "others sold", plain, careful, others)
    soon = Attempt(policy.later_s, main_raw)
    for choice in _choices(wallet, policy):
        if choice == "pieces":
            yield Isolation(of, choice, plain, ())
        elif choice == "size":
            sized = replace(plain, size_wei=wallet.size_wei, again_wei=wallet.again_wei)
            yield Isolation(
                of, choice, sized, (Attempt(policy.later_s, left_raw(policy.later_s, bought_raw)),)
            )
        elif choice == "time":
            yield Isolation(of, choice, plain, (Attempt(wallet.after_s, left_raw(wallet.after_s)),))
        elif choice == "share":
            part = Attempt(policy.later_s, max(1, main_raw * wallet.share_bps // BPS))
            yield Isolation(of, choice, replace(plain, share_bps=wallet.share_bps), (part,))
        elif choice == "route":
            yield Isolation(of, choice, replace(plain, way="second route"), (soon,))
        elif choice == "approval":
            yield Isolation(of, choice, replace(plain, approves_all=True), (soon,))
        elif choice == "tip":
            yield Isolation(of, choice, replace(plain, tip_wei=wallet.tip_wei), (soon,))


def _plain(run: CheckSession) -> CrowdWallet:
    """The main wallet, as one of the crowd."""
    env, policy = main_wallet(run.environments[0]), run.means.policy
    wallet = crowd_plans.plain_wallet(env.buyer, env.nonce, policy.probe_wei, policy.later_s)
    return replace(wallet, purse_wei=env.gas_float_wei)


def isolation_plan(run: CheckSession, place: VenuePlace, isolation: Isolation) -> Plan:
    """The simulation of one trade of the isolation round."""
    return crowd_plans.isolated_plan(
        place,
        run.setting,
        run.environments[0],
        isolation.wallet,
        isolation.attempts,
        isolation.others,
        isolation.difference == "others sold",
        isolation.sell_gas,
    )


def read_isolation(
    run: CheckSession, place: VenuePlace, isolation: Isolation, result: PlanResult
) -> IsolatedTrade:
    """The outcome of one trade of the isolation round."""
    if isinstance(result, RefusedCall):
        return IsolatedTrade(isolation.of, isolation.difference, replace(result, step="sell"))
    if isinstance(result, Missing):
        return IsolatedTrade(isolation.of, isolation.difference, result)
    trader = CrowdTrader(place, run.setting, run.environments[0], isolation.wallet, "alone")
    outcome = crowd_outcomes.read_isolated(result, trader, isolation.attempts)
    return IsolatedTrade(isolation.of, isolation.difference, outcome)
