"""The crowd in the sell round: which wallets trade, and what they met among others. The isolation round tries
those alone that met something else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from roundtrip.chain.simulate import crowd_outcomes, crowd_plans
from roundtrip.chain.simulate.crowd_outcomes import CrowdBuys, MemberBuys
from roundtrip.chain.simulate.crowd_plans import Attempt, CrowdTrader, Member, part_attempts
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.probe_plans import main_wallet
from roundtrip.chain.simulate.request import Plan, Results
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.crowd_reading import CHOICES, MainSells, differing
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    CellOutcome,
    CompletedBuy,
    Crowd,
    CrowdSale,
    CrowdTrade,
    CrowdWallet,
    Difference,
    IsolatedTrade,
    Missing,
    NotTried,
    RefusedCall,
    Size,
    TradeOutcome,
)
from roundtrip.domain.check.price import size_wei
from roundtrip.domain.check.refusals import POOL_GOT_LESS
from roundtrip.domain.check.sales import Sale

from .crowd import can_trade, data_gas, member_trader, quote_crowd_buys
from .main_trips import amount_of_size
from .session import CheckSession, PlanResult, VenueTrial

_MIN_BUY_GAS, _MIN_SELL_GAS = 300_000, 400_000
_DRIFT_DIVISOR = 1000
"""Each sells this part less of what it was seen to hold, where balances change while others trade."""
_GENEROUS, _GENEROUS_GAS = 3, 1_000_000
"""Every third wallet sells with so much gas at least: some tokens sell only where little is left."""


@dataclass(frozen=True, slots=True)
class CrowdSells:
    """The part of the crowd that trades. ``others``: wallets that could not buy, and those for which a
    simulation has too little gas, or the venue is too thin. ``measured``: the members sell what their buys
    brought in an earlier simulation of the same trades."""

    members: tuple[Member, ...]
    buys: tuple[MemberBuys, ...]
    others: tuple[CrowdTrade, ...]
    measured: bool = False


def choose_sellers(
    run: CheckSession, trial: VenueTrial, launch: AnyLaunch | Missing | None, main: CompletedBuy
) -> CrowdSells | Missing:
    """The wallets that could buy. A token that shrinks while it is held leaves each a smaller part to sell.
    Missing where the crowd's buys are not known."""
    if isinstance(trial.facts, Missing):
        return trial.facts
    wallets = trial.crowd_wallets
    if not can_trade(run, trial):
        return CrowdSells((), (), tuple(CrowdTrade(wallet, NotTried("pool")) for wallet in wallets))
    crowd = trial.crowd or quote_crowd_buys(run, trial, launch, wallets) or _guess_buys(run, trial, main)
    if isinstance(crowd, Missing):
        return crowd
    policy = run.means.policy
    members, bought, refused = [], [], []
    for number, (wallet, buys) in enumerate(zip(wallets, crowd.buys, strict=True)):
        trader = member_trader(run, trial.place, number, wallet)
        if not isinstance(buys, MemberBuys):
            refused.append(CrowdTrade(wallet, _name_starved(run, trader, buys)))
            continue
        buy_gas = min(trader.gas_limit(), max(_MIN_BUY_GAS, buys.gas * 3 // 2))
        sell_gas = min(trader.gas_limit(), max(_MIN_SELL_GAS, buys.gas * 3))
        if wallet.nonce % _GENEROUS == 0:
            sell_gas = max(sell_gas, min(trader.gas_limit(), _GENEROUS_GAS))
        kept_bps = _kept_bps(main, _last_s(wallet, policy), policy)
        held_raw = buys.received_raw * kept_bps // BPS
        members.append(Member(number, wallet, held_raw, buy_gas, sell_gas))
        bought.append(buys)
    return give_gas(run, CrowdSells(tuple(members), tuple(bought), tuple(refused)), 0)


def _guess_buys(run: CheckSession, trial: VenueTrial, main: CompletedBuy) -> CrowdBuys:
    """Where no formula says what the buys bring: nine tenths of what the main wallet got for its money. Where
    a wallet gets less, so that its sell fails, ``measure_sellers`` measures all."""
    buys = []
    for number, wallet in enumerate(trial.crowd_wallets):
        trader = member_trader(run, trial.place, number, wallet)
        spent_raw = trader.spent_raw(wallet.size_wei) + trader.spent_raw(wallet.again_wei)
        raw = main.received_raw * spent_raw * 9 // (10 * max(1, main.offered_raw))
        # No venue gives that much, so a wallet that got too little is always measured (``read_trade``).
        buys.append(MemberBuys(2 * trial.main_given_raw + 2 * main.received_raw + raw, raw, main.gas))
    return CrowdBuys(trial.crowd_wallets, tuple(buys))


def limits_gas(run: CheckSession, sells: CrowdSells, main: CompletedBuy) -> int:
    """The gas limits of all its buys, approvals and sells together, and what their data costs."""
    policy, more_gas = run.means.policy, data_gas(run)
    approve_gas = max(policy.approve_gas_limit, main.approve_gas * 3 // 2) + more_gas
    with_data = [structs.replace(member, buy_gas=member.buy_gas + more_gas) for member in sells.members]
    return sum(_limits_gas(policy, member, member.sell_gas + more_gas) + approve_gas for member in with_data)


def _limits_gas(policy: Policy, member: Member, sell_gas: int) -> int:
    buys_count = 2 if member.wallet.again_wei else 1
    return member.buy_gas * buys_count + sell_gas * (policy.pieces if member.wallet.way == "pieces" else 1)


def give_gas(run: CheckSession, sells: CrowdSells, least_gas: int) -> CrowdSells:
    """The same wallets, each sell with at least ``least_gas``. In their order, it leaves out each with whom
    the simulation would use too much gas."""
    policy, members, bought, gas = run.means.policy, list[Member](), list[MemberBuys](), 0
    for member, buys in zip(sells.members, sells.buys, strict=True):
        sell_gas = max(member.sell_gas, least_gas)
        more_gas = _limits_gas(policy, member, sell_gas)
        if gas + more_gas <= policy.crowd_gas:
            gas += more_gas
            members.append(
                member if sell_gas == member.sell_gas else structs.replace(member, sell_gas=sell_gas)
            )
            bought.append(buys)
    chosen = {member.number for member in members}
    starved = (member.wallet for member in sells.members if member.number not in chosen)
    others = (*sells.others, *(CrowdTrade(wallet, NotTried("gas")) for wallet in starved))
    return replace(sells, members=tuple(members), buys=tuple(bought), others=others)


def _kept_bps(main: CompletedBuy, until_s: int, policy: Policy) -> int:
    """The smallest share of a balance that the main wallet was seen to have left, without a trade, up to the
    first read at or after ``until_s`` since its buy."""
    held = list(main.held_later_raw)
    for number, at_s in enumerate((policy.later_s, policy.hour_s)):
        if until_s <= at_s:
            held = held[: number + 1]
            break
    return min(BPS, min((main.received_raw, *held)) * BPS // max(1, main.received_raw))


def _main_amounts(main: CompletedBuy, sells: MainSells, policy: Policy) -> dict[int, tuple[int, ...]]:
    """What the main wallet asked to sell at each of its moments, by the seconds after its buy: all that it
    held then, growth included; after that the part that went, where not all did; only a piece of both sizes,
    where it could sell only in pieces: the small ones may be too small for the token."""
    moments = (policy.later_s, policy.hour_s, policy.day_s)
    held = main.held_later_raw if len(main.held_later_raw) == len(moments) else (main.received_raw,) * 3
    sold = (sells.soon, sells.hour, sells.day)
    if sells.only_pieces:
        pieces = (policy.small_pieces, policy.pieces)
        return {
            at_s: tuple(raw // count for count in pieces) for at_s, raw in zip(moments, held, strict=True)
        }
    return {
        at_s: (raw, sell.sold_raw) if isinstance(sell, Sale) and sell.share_bps < BPS else (raw,)
        for at_s, raw, sell in zip(moments, held, sold, strict=True)
    }


def _last_s(wallet: CrowdWallet, policy: Policy) -> int:
    """How long after its buy a wallet sells last."""
    return policy.day_s if wallet.way == "pieces" else wallet.after_s


def crowd_plan(run: CheckSession, trial: VenueTrial, sells: CrowdSells) -> Plan:
    """The simulation of the crowd's buys and sells."""
    size, amount_raw, main = _main_buy(run, trial)
    env = run.environments[0]
    return crowd_plans.crowd_sell_plan(trial.place, run.setting, env, size, amount_raw, main, sells.members)


def _main_buy(run: CheckSession, trial: VenueTrial) -> tuple[Size, int, CompletedBuy]:
    """The judged size, what it pays, and its outcome."""
    size = trial.main_size()
    assert size is not None
    main = trial.completed_buy(size)
    assert main is not None
    return size, amount_of_size(run, trial, size, run.environments[0]), main


def read_crowd_sells(
    run: CheckSession, place: VenuePlace, sells: CrowdSells, result: PlanResult
) -> Crowd | Missing:
    """What the crowd met. Missing where the simulation did not run."""
    if isinstance(result, Missing):
        return result
    if isinstance(result, RefusedCall):
        return Missing("token", result.reason or "")
    trades = []
    for member, buys in _pairs(sells):
        trader = member_trader(run, place, member.number, member.wallet)
        amounts = crowd_plans.sell_amounts(member, sells.members, run.means.policy)
        read = crowd_outcomes.read_trade(result, trader, buys, amounts, sells.measured)
        late_s = crowd_plans.late_s(member, run.setting)
        outcome = _name_starved(run, trader, read or _GAVE_LESS)
        trades.append(CrowdTrade(member.wallet, outcome, late_s))
    short = sum(trade.outcome is _GAVE_LESS for trade in trades)
    # Where most got less they stay Missing: the token may move the price to hide its refusals.
    if 2 * short <= len(trades):
        pool = NotTried("pool")
        trades = [replace(trade, outcome=pool) if trade.outcome is _GAVE_LESS else trade for trade in trades]
    return Crowd((*trades, *sells.others))


def _name_starved(run: CheckSession, trader: CrowdTrader, outcome: TradeOutcome) -> TradeOutcome:
    """NotTried where a refused buy used up the gas that a crowd's wallet may use: a pool may give a reason of
    its own then, and keep a part of the gas. What the call's data costs is no use of the token's."""
    if not isinstance(outcome, RefusedCall) or outcome.step not in ("fund", "buy", "arrive"):
        return outcome
    used = outcome.gas - data_gas(run)
    return NotTried("gas") if 4 * used >= 3 * trader.gas_limit() else outcome


_GAVE_LESS = Missing("token", "the venue gave less than its formula says")


def measure_sellers(
    run: CheckSession, trial: VenueTrial, sells: CrowdSells, main: CompletedBuy, result: Results
) -> CrowdSells | None:
    """The same wallets, with what their buys brought in this simulation. None where each sell was of what the
    wallet held. The formula holds within one range of liquidity only, and a token may take more of some buys
    than of the main wallet's."""
    short = [
        member.number for member, buys in _pairs(sells) if _is_short(run, trial, member, buys, sells, result)
    ]
    if not short:
        return None
    members, bought, drifts = [], [], False
    for member, buys in _pairs(sells):
        trader = member_trader(run, trial.place, member.number, member.wallet)
        amounts = crowd_plans.sell_amounts(member, sells.members, run.means.policy)
        known = crowd_outcomes.read_measured_buys(result, trader, amounts)
        measured = buys if known is None else known
        # The venue gave what its formula says, so the token takes or gives while others trade.
        drifts |= member.number in short and measured.given_raw >= buys.given_raw
        kept_bps = _kept_bps(main, _last_s(member.wallet, run.means.policy), run.means.policy)
        members.append(structs.replace(member, held_raw=measured.received_raw * kept_bps // BPS))
        bought.append(measured)
    if drifts:
        members = [
            structs.replace(member, held_raw=member.held_raw - member.held_raw // _DRIFT_DIVISOR)
            for member in members
        ]
    return replace(sells, members=tuple(members), buys=tuple(bought), measured=True)


def _pairs(sells: CrowdSells) -> Iterator[tuple[Member, MemberBuys]]:
    return zip(sells.members, sells.buys, strict=True)


def _is_short(
    run: CheckSession, trial: VenueTrial, member: Member, buys: MemberBuys, sells: CrowdSells, result: Results
) -> bool:
    """Whether a sell failed because the wallet held less than was planned."""
    trader = member_trader(run, trial.place, member.number, member.wallet)
    amounts = crowd_plans.sell_amounts(member, sells.members, run.means.policy)
    if all(result[f"{trader.label}-sell-{number}"].ok for number in range(len(amounts))):
        return False
    return crowd_outcomes.read_trade(result, trader, buys, amounts) is None


# --- isolation round -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Isolation:
    """One trade of the isolation round: of trade ``of``, with one difference. Without attempts it is the main
    wallet's probe in pieces."""

    of: int
    difference: Difference
    seller: Member
    attempts: tuple[Attempt, ...]
    others: tuple[Member, ...] = ()


def isolations(
    run: CheckSession,
    crowd: Crowd,
    parts: Sequence[CrowdSells],
    main_sells: MainSells,
    main: tuple[Size, CompletedBuy],
    recalled: Sequence[CrowdSells] = (),
    least_gas: int = 0,
) -> list[Isolation]:
    """The trades that find out why some wallets met something else than the main one; empty: none did.
    ``parts``: of the crowd; a wallet's company is its part, of a recalled one the first. ``least_gas``: what
    the main wallet's sells needed."""
    policy = run.means.policy
    numbers = differing(crowd, main_sells, policy)
    members = [member for sells in parts for member in sells.members]
    most_gas = max((crowd_plans.ALONE_GAS, least_gas, *(member.sell_gas for member in members)))
    buy_gas = max((_MIN_BUY_GAS, main[1].gas * 3 // 2, *(member.buy_gas for member in members)))
    others = tuple(member for sells in recalled for member in sells.members)
    asked = list[Isolation]()
    for number in _most_different(crowd, numbers, policy)[: policy.most_isolated]:
        wallet = crowd.trades[number].wallet
        own = next((sells for sells in parts if any(m.wallet == wallet for m in sells.members)), parts[0])
        kept_bps = _kept_of_most_bps(crowd, number)
        asked += _isolations_of(run, number, crowd.trades[number], own, (*main, main_sells), others, kept_bps)
    return [
        replace(isolation, seller=structs.replace(isolation.seller, buy_gas=buy_gas, sell_gas=most_gas))
        for isolation in asked
    ]


def _kept_of_most_bps(crowd: Crowd, number: int) -> int:
    """The share of its buys that arrived at this wallet, relative to the largest such share of any wallet;
    BPS where the two are within 1 %, or it is not known."""

    def arrived_bps(outcome: TradeOutcome) -> int:
        if not isinstance(outcome, CrowdSale) or outcome.given_raw <= 0:
            return 0
        return outcome.received_raw * BPS // outcome.given_raw

    own_bps = arrived_bps(crowd.trades[number].outcome)
    most_bps = max(arrived_bps(trade.outcome) for trade in crowd.trades)
    kept_bps = own_bps * BPS // most_bps if own_bps else BPS
    return kept_bps if kept_bps < BPS - _NEAR_BPS else BPS


_NEAR_BPS = 100
_CAREFUL_BPS = 9990
"""The share that a careful attempt sells: others' trades may take a little, and two smaller buys bring some
units less than one."""


def _most_different(crowd: Crowd, numbers: list[int], policy: Policy) -> list[int]:
    """Refused sells first, and then those that differ by choice in the fewest things: their cause is the
    plainest."""

    def order(number: int) -> tuple[bool, int]:
        trade = crowd.trades[number]
        return not isinstance(trade.outcome, RefusedCall), len(_choices(trade, policy))

    return sorted(numbers, key=order)


def _choices(trade: CrowdTrade, policy: Policy) -> tuple[Difference, ...]:
    """In what a wallet chose to differ from the main one."""
    wallet, after_s = trade.wallet, trade.wallet.after_s + trade.late_s
    is_other: dict[Difference, bool] = {
        "size": True,
        "time": after_s not in (policy.later_s, policy.hour_s, policy.day_s),
        "share": wallet.share_bps != BPS,
        "pieces": wallet.way == "pieces",
        "route": wallet.way == "second route",
        "approval": wallet.approves_all,
        "tip": wallet.tip_wei > 0,
        "code": wallet.delegates,
    }
    return tuple(choice for choice in CHOICES if is_other[choice])


def _isolations_of(
    run: CheckSession,
    of: int,
    trade: CrowdTrade,
    sells: CrowdSells,
    main_trade: tuple[Size, CompletedBuy, MainSells],
    recalled: tuple[Member, ...],
    kept_bps: int,
) -> Iterator[Isolation]:
    """The trades of ``isolations`` for one wallet. ``kept_bps``: see ``_kept_of_most_bps``."""
    policy, wallet, (size, main, main_sells) = run.means.policy, trade.wallet, main_trade
    main_wei = size_wei(size, policy)
    member = next((m for m in (*sells.members, *recalled) if m.wallet == wallet), None)

    def left_raw(at_s: int, raw: int = main.received_raw) -> int:
        return max(1, raw * _kept_bps(main, at_s, policy) // BPS)

    def tries(part_bps: int) -> tuple[Attempt, ...]:
        amounts = _main_amounts(main, main_sells, policy)
        last_raw = max(1, amounts[policy.day_s][-1] * part_bps // BPS)
        rest = part_attempts(policy.day_s, last_raw, run.setting.policy) if _arrives_short(trade) else ()
        return _attempts(amounts, part_bps, kept_bps) + rest

    held_raw = left_raw(_last_s(wallet, policy)) if member is None else member.held_raw
    bought_raw = held_raw * BPS // max(1, _kept_bps(main, _last_s(wallet, policy), policy))

    def isolate(
        difference: Difference,
        by: CrowdWallet,
        attempts: tuple[Attempt, ...],
        others: tuple[Member, ...] = (),
    ) -> Isolation:
        raw = bought_raw if difference in ("as drawn", "size") else main.received_raw
        return Isolation(of, difference, Member(-1, by, raw, 0, 0), attempts, others)

    careful = tries(_CAREFUL_BPS)
    plain, share_raw = _plain(run, main_wei), max(1, held_raw * wallet.share_bps // BPS)
    again_s = run.setting.crowd_gaps_s[0] if wallet.again_wei else 0
    if wallet.way != "pieces":
        yield isolate("as drawn", wallet, (Attempt(again_s + wallet.after_s + trade.late_s, share_raw),))
    # In the wallet's own proportion: a token may take more of a second buy.
    again_wei = main_wei * wallet.again_wei // (wallet.size_wei + wallet.again_wei)
    usual = replace(
        wallet, size_wei=main_wei - again_wei, again_wei=again_wei, tip_wei=0,
        approves_all=False, share_bps=BPS, way="usual", delegates=False,
    )  # fmt: skip
    yield isolate("blocks", plain, tries(BPS))
    yield isolate("wallet", usual, _add_later_try(careful, again_s) if again_s else tries(BPS))
    yield isolate("nearly all", plain, careful)
    others = tuple(m for m in sells.members if m.wallet != wallet)
    yield isolate("others", plain, careful, others)
    yield isolate("others sold", plain, careful, others)
    main_raw = main.received_raw // (policy.small_pieces if main_sells.only_pieces else 1)
    # ``bought_raw`` is what it got among others: a little less than alone.
    sold_s, late_s = main_sells.first_sold_s(policy), wallet.after_s + trade.late_s
    moments = ((sold_s, main_raw), (sold_s, bought_raw), (late_s, main_raw))
    changed = _change_each(wallet, plain, *(Attempt(at_s, left_raw(at_s, raw)) for at_s, raw in moments))
    for choice in _choices(trade, policy):
        other, *attempts = changed.get(choice, (plain,))
        yield isolate(choice, other, _add_later_try(attempts, again_s if choice == "size" else 0))


def _add_later_try(attempts: Sequence[Attempt], again_s: int) -> tuple[Attempt, ...]:
    """These attempts, and the last one once more, as long after a second buy as it comes after the first: a
    token may count from either. ``again_s``: how long after the first that comes; 0: there is none."""
    later = [replace(attempt, after_s=attempt.after_s + again_s) for attempt in attempts[-1:] if again_s]
    return (*attempts, *later)


def _attempts(amounts: dict[int, tuple[int, ...]], part_bps: int, kept_bps: int) -> tuple[Attempt, ...]:
    """Sells of a part of these amounts, by their moments; where less than all arrived, also of so much
    less."""
    less_bps = kept_bps * part_bps // BPS * _CAREFUL_BPS // BPS
    shares_bps = (part_bps,) if kept_bps == BPS else (part_bps, less_bps)
    return tuple(
        Attempt(at_s, max(1, raw * share_bps // BPS))
        for at_s, raws in amounts.items()
        for raw in raws
        for share_bps in shares_bps
    )


def _change_each(
    wallet: CrowdWallet, plain: CrowdWallet, usual: Attempt, sized: Attempt, timed: Attempt
) -> dict[Difference, tuple[CrowdWallet, Attempt]]:
    """The plain wallet with one choice of the other, and its attempt. ``usual``: what the main wallet sells
    at the first moment at which it sold; ``sized``: what this size sells then; ``timed``: what the main
    wallet sells at the other's time."""
    part = replace(usual, raw=max(1, usual.raw * wallet.share_bps // BPS))
    more = replace(plain, size_wei=wallet.size_wei, again_wei=wallet.again_wei)
    return {
        "size": (more, sized),
        "time": (plain, timed),
        "share": (replace(plain, share_bps=wallet.share_bps), part),
        "route": (replace(plain, way="second route"), usual),
        "approval": (replace(plain, approves_all=True), usual),
        "tip": (replace(plain, tip_wei=wallet.tip_wei), usual),
        "code": (replace(plain, delegates=True), usual),
    }


def _arrives_short(trade: CrowdTrade) -> bool:
    """True where the pool refused a sell because less arrived than was sent: that may be a unit, and only at
    this amount."""
    return isinstance(trade.outcome, RefusedCall) and trade.outcome.reason in POOL_GOT_LESS


def company_sellers(
    run: CheckSession, crowd: Crowd, sells: CrowdSells, main_sells: MainSells, least_gas: int = 0
) -> dict[int, Member]:
    """The members that are tried again after the whole crowd's buys, by the number of their trade."""
    policy = run.means.policy
    by_wallet = {member.wallet.wallet: member for member in sells.members}
    most_gas = max((crowd_plans.ALONE_GAS, least_gas, *(member.sell_gas for member in sells.members)))
    numbers = _most_different(crowd, differing(crowd, main_sells, policy), policy)[: policy.most_isolated]
    wallets = {number: crowd.trades[number].wallet.wallet for number in numbers}
    return {
        number: structs.replace(
            by_wallet[wallet], sell_gas=most_gas, tries_part=_arrives_short(crowd.trades[number])
        )
        for number, wallet in wallets.items()
        if wallet in by_wallet
    }


def company_plan(run: CheckSession, trial: VenueTrial, sells: CrowdSells, sellers: dict[int, Member]) -> Plan:
    """The simulation of the crowd's buys, and of these wallets' sells."""
    size, amount_raw, main = _main_buy(run, trial)
    members, env = tuple(sellers.values()), run.environments[0]
    return crowd_plans.company_plan(
        trial.place, run.setting, env, size, amount_raw, main, sells.members, members
    )


def read_company(
    run: CheckSession, trial: VenueTrial, sellers: dict[int, Member], result: PlanResult
) -> list[IsolatedTrade]:
    """The outcomes of ``company_plan``."""
    trades = []
    for number, member in sellers.items():
        trader = crowd_plans.company_trader(trial.place, run.setting, run.environments[0], member)
        attempts = crowd_plans.company_attempts(member, run.means.policy)
        outcome = _read_attempts(run, trial, trader, attempts, member.held_raw, result)
        trades.append(IsolatedTrade(number, "in company", outcome))
    return trades


def _plain(run: CheckSession, wei: int) -> CrowdWallet:
    """The main wallet, as one of the crowd that buys for ``wei``."""
    env = main_wallet(run.environments[0])
    wallet = crowd_plans.plain_wallet(env.buyer, env.nonce, wei, run.means.policy.later_s)
    return replace(wallet, purse_wei=env.gas_float_wei)


def isolation_plan(run: CheckSession, place: VenuePlace, isolation: Isolation) -> Plan:
    """The simulation of one trade of the isolation round."""
    others_sell, env = isolation.difference == "others sold", run.environments[0]
    seller = _under_hook(run, place, isolation.seller)
    return crowd_plans.isolated_plan(
        place, run.setting, env, seller, isolation.attempts, isolation.others, others_sell
    )


def _under_hook(run: CheckSession, place: VenuePlace, seller: Member) -> Member:
    """The seller, with no more gas for a buy than a stranger's hook may use."""
    if not place.venue.rival_hook():
        return seller
    return structs.replace(seller, buy_gas=min(seller.buy_gas, run.means.policy.hook_gas_limit))


def read_isolation(
    run: CheckSession, trial: VenueTrial, isolation: Isolation, result: PlanResult
) -> IsolatedTrade:
    """The outcome of one trade of the isolation round."""
    seller = isolation.seller
    trader = CrowdTrader(trial.place, run.setting, run.environments[0], seller.wallet, seller.label())
    outcome = _read_attempts(run, trial, trader, isolation.attempts, seller.held_raw, result)
    return IsolatedTrade(isolation.of, isolation.difference, outcome)


def _read_attempts(
    run: CheckSession,
    trial: VenueTrial,
    trader: CrowdTrader,
    attempts: tuple[Attempt, ...],
    held_raw: int,
    result: PlanResult,
) -> CellOutcome:
    if isinstance(result, RefusedCall):
        return replace(result, step="sell")
    if isinstance(result, Missing):
        return result
    _, _, main = _main_buy(run, trial)
    given_raw = trial.main_given_raw if trial.main_size() == "probe" else 0
    bought = MemberBuys(given_raw, main.received_raw, main.gas)
    return crowd_outcomes.read_attempts(result, trader, attempts, bought, held_raw)
