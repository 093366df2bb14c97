"""Plans of the crowd: drawn wallets that buy on one venue, one block after the other, and sell among others.
Pure; ``crowd_outcomes`` reads the results.

What each wallet's buys bring is known before, by the venue's formula or because the same buys were measured
in the same blocks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, Address
from roundtrip.domain.check.evidence import CompletedBuy, CrowdWallet, Environment, Size
from roundtrip.domain.check.price import quote_raw
from roundtrip.venues import abi, amm_v3
from roundtrip.venues.base import Call

from .legs import (
    Setting,
    VenuePlace,
    little_buy,
    nearly_all_amounts,
    piece_amounts,
    quote_read,
    route_to,
    slot_of,
    token_read,
)
from .probe_plans import buy_block
from .request import Plan, PlannedBlock, SimulatedStep

ALONE_GAS = 3_000_000
"""The least gas of a sell alone."""
BUY_GAP_S = 1
"""Seconds between two blocks of the crowd's buys: together they fit before the first sells."""
_DEPOSIT = "0xd0e30db0"
"""WETH9.deposit()."""


@dataclass(frozen=True, slots=True)
class Member:
    """A wallet of the crowd that sells. ``number``: its place in the crowd. ``held_raw``: what it can sell.
    ``buy_gas`` and ``sell_gas``: the gas limits of its trades. ``tries_part``: where all of it does not sell,
    it tries nearly all."""

    number: int
    wallet: CrowdWallet
    held_raw: int
    buy_gas: int
    sell_gas: int
    tries_part: bool = False


@dataclass(frozen=True, slots=True)
class CrowdTrader:
    """Where and how a wallet trades; ``label`` opens the labels of its steps."""

    place: VenuePlace
    setting: Setting
    environment: Environment
    wallet: CrowdWallet
    label: str

    def step(self, name: str, call: Call, gas_limit: int) -> SimulatedStep:
        """A step that the wallet signs."""
        return SimulatedStep(f"{self.label}-{name}", self.wallet.wallet, call, gas_limit, self.wallet.tip_wei)

    def spent_raw(self, size_wei: int) -> int:
        """A size in the venue's quote; 0 where its price is not known."""
        return quote_raw(size_wei, self.place.venue.quote, self.setting.market) or 0

    def gas_limit(self) -> int:
        """The most gas of one of its trades."""
        policy = self.setting.policy
        limit = policy.crowd_gas_limit
        return min(limit, policy.hook_gas_limit) if self.place.venue.rival_hook() else limit

    def funds_wei(self, gas: int) -> int:
        """The eth that it starts with: its buys, what it holds of other money, and its purse, or what ``gas``
        may cost where that is more. A node refuses a simulation in which one wallet cannot pay for gas."""
        wallet, environment = self.wallet, self.environment
        margin = 2 if not self.place.pays_eth() else 1
        buys_wei = (wallet.size_wei + wallet.again_wei) * margin
        usdg_wei = wallet.purse_wei if wallet.usdg_raw else 0
        price_wei = environment.max_fee_wei - environment.tip_wei + wallet.tip_wei
        gas_wei = (gas + _OTHER_GAS) * price_wei
        return buys_wei + wallet.weth_wei + usdg_wei + max(wallet.purse_wei + _GAS_MONEY_WEI, gas_wei)


_GAS_MONEY_WEI = 5 * 10**15
"""Beyond the purse, to pay for gas."""
_OTHER_GAS = 1_000_000
"""More than its approvals, and the trades that bring it other money, use together."""


def crowd_buy_blocks(
    place: VenuePlace, setting: Setting, environment: Environment, members: Iterable[Member]
) -> list[PlannedBlock]:
    """The blocks of the crowd's buys. A wallet that buys twice does so in the block after its first buy."""
    blocks = setting.policy.crowd_buy_blocks
    first: list[list[SimulatedStep]] = [[] for _ in range(blocks + 1)]
    again: list[list[SimulatedStep]] = [[] for _ in range(blocks + 1)]
    balances, nonces, storage = [], [], []
    size = block_size(setting.policy)
    slot = slot_of(place.venue, setting)
    for member in members:
        trader = CrowdTrader(place, setting, environment, member.wallet, f"m{member.number}")
        at, wallet = member.number // size, member.wallet
        first[at] += [*_hold_steps(trader), *_buy_steps(trader, "buy", wallet.size_wei, member.buy_gas)]
        if wallet.again_wei:
            again[at + 1] += _buy_steps(trader, "again", wallet.again_wei, member.buy_gas)
        balances.append((wallet.wallet, trader.funds_wei(_most_gas(member, setting.policy))))
        nonces.append((wallet.wallet, wallet.nonce))
        if slot is not None:
            spent = trader.spent_raw(wallet.size_wei) + trader.spent_raw(wallet.again_wei)
            storage.append((slot.asset, slot.of(wallet.wallet), spent))
    steps = [tuple(late + early) for late, early in zip(again, first, strict=True)]
    overrides = PlannedBlock(BUY_GAP_S, steps[0], tuple(balances), tuple(nonces), tuple(storage))
    return [overrides, *(PlannedBlock(BUY_GAP_S, block) for block in steps[1:])]


def _most_gas(member: Member, policy: Policy) -> int:
    """The gas limits of its buys and sells together."""
    buys_count, sells_count = 2 if member.wallet.again_wei else 1, 1
    if member.wallet.way == "pieces":
        sells_count = policy.pieces
    return buys_count * member.buy_gas + sells_count * member.sell_gas


def block_size(policy: Policy) -> int:
    """How many wallets buy in one block."""
    return -(-sum(policy.crowd_counts) // policy.crowd_buy_blocks)


def _hold_steps(trader: CrowdTrader) -> list[SimulatedStep]:
    """Gets the other money that the wallet holds."""
    wallet, setting, steps = trader.wallet, trader.setting, []
    limit = setting.policy.transfer_gas_limit
    if wallet.weth_wei:
        deposit = Call(setting.contracts.weth, _DEPOSIT, wallet.weth_wei)
        steps.append(trader.step("weth", deposit, limit))
    route = route_to("usdg", setting)
    if wallet.usdg_raw and route:
        swap = amm_v3.plan_eth_to(setting.contracts, route, wallet.usdg_raw, wallet.purse_wei)
        steps.append(trader.step("usdg", swap, limit))
    return steps


def _buy_steps(trader: CrowdTrader, name: str, size_wei: int, gas_limit: int) -> list[SimulatedStep]:
    """Gets the quote, approves it, and buys."""
    place, setting, wallet = trader.place, trader.setting, trader.wallet
    policy, amount_raw, steps = setting.policy, trader.spent_raw(size_wei), []
    if not place.pays_eth() and slot_of(place.venue, setting) is None:
        route = route_to(place.venue.quote, setting)
        fund = amm_v3.plan_eth_to(setting.contracts, route, amount_raw, 2 * size_wei)
        steps.append(trader.step(f"{name}-fund", fund, policy.transfer_gas_limit))
    *approvals, buy = place.file.plan_buy(
        place.venue, setting.token, setting.contracts, amount_raw, wallet.wallet
    )
    limit = policy.approve_gas_limit
    steps += [trader.step(f"{name}-allow-{n}", call, limit) for n, call in enumerate(approvals)]
    steps.append(trader.step(name, buy, gas_limit))
    return steps


def held_reads(
    setting: Setting, environment: Environment, members: Iterable[Member]
) -> tuple[SimulatedStep, ...]:
    """Reads what each wallet holds of the token."""
    return tuple(
        token_read(f"m{member.number}-token", setting, environment, member.wallet.wallet)
        for member in members
    )


# --- sells -----------------------------------------------------------------------------------------


def crowd_sell_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    size: Size,
    amount_raw: int,
    bought: CompletedBuy,
    members: tuple[Member, ...],
) -> Plan:
    """Sell round: the crowd buys as in the buy round, and sells in company. Each approval is in an earlier
    block than its sell."""
    first = buy_block(place, setting, environment, size, amount_raw, bought.gas)
    blocks = [first, *crowd_buy_blocks(place, setting, environment, members)]
    moments = _moments(members, setting.policy)
    sells: dict[int, list[SimulatedStep]] = {moment: [] for moment in moments}
    approvals: dict[int, list[SimulatedStep]] = {moment: [] for moment in (0, *moments)}
    earlier = dict(zip(moments, (0, *moments), strict=False))
    for member in members:
        trader = CrowdTrader(place, setting, environment, member.wallet, f"m{member.number}")
        at = _sell_moments(member, members, setting.policy)
        raws = sell_amounts(member, members, setting.policy)
        *approving, _ = sell_calls(trader, sum(raws))
        limit = max(setting.policy.approve_gas_limit, bought.approve_gas * 3 // 2)
        approvals[earlier[at[0]]] += [
            trader.step(f"approve-{n}", call, limit) for n, call in enumerate(approving)
        ]
        for number, (moment, raw) in enumerate(zip(at, raws, strict=False)):
            name = f"sell-{number}"
            reads = [] if number else [_quote_read(trader, "before")]
            last = [_quote_read(trader, "after"), _token_read(trader)] if number == len(raws) - 1 else []
            sell = trader.step(name, sell_calls(trader, raw)[-1], member.sell_gas)
            sells[moment] += [*reads, sell, *last]
    tail = blocks[-1]
    blocks[-1] = PlannedBlock(tail.delay_s, (*tail.steps, *approvals[0]))
    began_s = BUY_GAP_S * (len(blocks) - 1)
    for before, after in pairwise((began_s, *moments)):
        blocks.append(PlannedBlock(max(1, after - before), (*sells[after], *approvals[after])))
    return Plan(environment, tuple(blocks))


def _moments(members: tuple[Member, ...], policy: Policy) -> tuple[int, ...]:
    """The moments at which somebody sells, in seconds after the main wallet's buy. Some tokens
    refuse every sell for a while after a buy, so each wait begins at the last block of buys."""
    last_s = BUY_GAP_S * (policy.crowd_buy_blocks + 1)
    return tuple(last_s + wait_s for wait_s in _waits(members, policy))


def late_s(member: Member, policy: Policy) -> int:
    """How many seconds after its planned time a wallet of the crowd sells: its wait begins at the crowd's
    last buy, not at its own."""
    bought_in = member.number // block_size(policy) + (2 if member.wallet.again_wei else 1)
    return BUY_GAP_S * (policy.crowd_buy_blocks + 1 - bought_in)


def _waits(members: tuple[Member, ...], policy: Policy) -> tuple[int, ...]:
    """How long after the last buys the wallets sell, each time once."""
    return tuple(sorted({member.wallet.after_s for member in members} | {policy.later_s, policy.day_s}))


def _sell_moments(member: Member, members: tuple[Member, ...], policy: Policy) -> tuple[int, ...]:
    """The moments at which a wallet sells: all of them for pieces."""
    moments = _moments(members, policy)
    if member.wallet.way == "pieces":
        return moments
    return (moments[_waits(members, policy).index(member.wallet.after_s)],)


def sell_amounts(member: Member, members: tuple[Member, ...], policy: Policy) -> list[int]:
    """What a wallet sells, one amount for each of its sells; a piece after each wait of the others."""
    planned_raw = max(1, member.held_raw * member.wallet.share_bps // BPS)
    if member.wallet.way != "pieces":
        return [planned_raw]
    return piece_amounts(planned_raw, policy)[: len(_waits(members, policy))]


def sell_calls(trader: CrowdTrader, amount_raw: int) -> tuple[Call, ...]:
    """The approvals and the sell."""
    place, setting, wallet = trader.place, trader.setting, trader.wallet
    file = place.file
    approve_raw = abi.MAX_UINT256 if wallet.approves_all else None
    plan = file.plan_second_sell if wallet.way == "second route" else file.plan_sell
    return plan(place.venue, setting.token, setting.contracts, amount_raw, wallet.wallet, approve_raw)


def _quote_read(trader: CrowdTrader, moment: str) -> SimulatedStep:
    return quote_read(
        f"{trader.label}-{moment}", trader.place, trader.setting, trader.environment, trader.wallet.wallet
    )


def _token_read(trader: CrowdTrader) -> SimulatedStep:
    return token_read(f"{trader.label}-token", trader.setting, trader.environment, trader.wallet.wallet)


# --- alone -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attempt:
    """A sell that is tried ``after_s`` the buy: the first that succeeds counts. ``gas``: its limit; 0: that
    of the wallet's other sells. ``others_buy``: another wallet buys a little before it."""

    after_s: int
    raw: int
    gas: int = 0
    others_buy: bool = False


def part_attempts(after_s: int, raw: int, policy: Policy) -> tuple[Attempt, ...]:
    """Attempts to sell nearly all of an amount, as a probe of nearly all makes them."""
    return tuple(
        Attempt(after_s, part_raw, policy.nearly_gas_limit, bool(number) and not nth)
        for number, amounts in enumerate(nearly_all_amounts(raw, policy))
        for nth, part_raw in enumerate(amounts)
    )


def isolated_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    wallet: CrowdWallet,
    attempts: tuple[Attempt, ...],
    others: tuple[Member, ...] = (),
    others_sell: bool = False,
    sell_gas: int = ALONE_GAS,
    buy_gas: int = ALONE_GAS,
) -> Plan:
    """Isolation round: one wallet buys and tries to sell; ``others`` buy between, and also sell where
    ``others_sell``. What it holds is read right after its buys."""
    trader = CrowdTrader(place, setting, environment, wallet, "alone")
    reader = environment.reader
    limit = min(buy_gas, setting.policy.hook_gas_limit) if place.venue.rival_hook() else buy_gas
    gas = (2 if wallet.again_wei else 1) * limit + len(attempts) * sell_gas
    sweep = place.file.plan_sweep(setting.contracts, reader)
    steps = (
        [] if sweep is None else [SimulatedStep("sweep", reader, sweep, setting.policy.transfer_gas_limit)]
    )
    hold = _hold_steps(trader)
    start = [_quote_read(trader, "start")]
    slot, spent = slot_of(place.venue, setting), trader.spent_raw(wallet.size_wei + wallet.again_wei)
    first = PlannedBlock(
        BUY_GAP_S,
        (*steps, *hold, *start, *_buy_steps(trader, "buy", wallet.size_wei, limit)),
        ((wallet.wallet, trader.funds_wei(gas)), (reader, WEI_PER_ETH)),
        ((wallet.wallet, wallet.nonce),),
        () if slot is None else ((slot.asset, slot.of(wallet.wallet), spent),),
    )
    again = _buy_steps(trader, "again", wallet.again_wei, limit) if wallet.again_wei else []
    approving = _approvals(trader, attempts, 0)
    held = [_quote_read(trader, "bought"), _token_read(trader)]
    # In the blocks of the others' buys, so that the first attempt is not late.
    empty = [PlannedBlock(BUY_GAP_S, ()), PlannedBlock(BUY_GAP_S, ())]
    second, *between, last = crowd_buy_blocks(place, setting, environment, others) if others else empty
    second = replace(second, steps=(*again, *held, *second.steps))
    last = replace(last, steps=(*last.steps, *approving))
    blocks = [first, second, *between, last]
    if others_sell:
        blocks += _sell_blocks(place, setting, environment, others)
    passed_s = sum(block.delay_s for block in blocks) - BUY_GAP_S
    if wallet.again_wei:
        # The wait counts from the last buy on.
        passed_s -= BUY_GAP_S
    for number, attempt in enumerate(attempts):
        delay_s = max(1, attempt.after_s - passed_s)
        blocks.append(_attempt_block(trader, attempts, number, sell_gas, delay_s))
        passed_s += delay_s
    return Plan(environment, tuple(blocks))


def _approvals(trader: CrowdTrader, attempts: tuple[Attempt, ...], number: int) -> list[SimulatedStep]:
    """The approvals before an attempt; none where those of the last one still hold. Some tokens sell only
    what was approved exactly."""
    if number == len(attempts) or (number and attempts[number].raw == attempts[number - 1].raw):
        return []
    *approvals, _ = sell_calls(trader, attempts[number].raw)
    prefix = f"approve-{number}" if number else "approve"
    limit = trader.setting.policy.transfer_gas_limit
    return [trader.step(f"{prefix}-{n}", call, limit) for n, call in enumerate(approvals)]


def _attempt_block(
    trader: CrowdTrader, attempts: tuple[Attempt, ...], number: int, sell_gas: int, delay_s: int
) -> PlannedBlock:
    """A sell, between reads of the seller's balances, and the approvals for the next one."""
    attempt, setting, env = attempts[number], trader.setting, trader.environment
    first: list[SimulatedStep] = []
    if attempt.others_buy:
        name, wei = f"{trader.label}-between-{number}", setting.policy.probe_wei
        first = little_buy(trader.place, setting, env, env.receiver, name, wei)
    steps = (
        *first,
        _quote_read(trader, f"before-{number}"),
        _held_read(trader, f"had-{number}"),
        trader.step(f"sell-{number}", sell_calls(trader, attempt.raw)[-1], attempt.gas or sell_gas),
        _quote_read(trader, f"after-{number}"),
        _held_read(trader, f"left-{number}"),
        *_approvals(trader, attempts, number + 1),
    )
    return PlannedBlock(delay_s, steps, ((env.receiver, WEI_PER_ETH),) if first else ())


def company_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    amount_raw: int,
    bought: CompletedBuy,
    members: tuple[Member, ...],
    sellers: tuple[Member, ...],
) -> Plan:
    """Isolation round: the crowd buys as in the sell round, and then only these of it try to sell all they
    have, each in blocks of its own: a wallet may be marked by the block of its buy."""
    first = buy_block(place, setting, environment, "probe", amount_raw, bought.gas)
    tries = {member: company_attempts(member, setting.policy) for member in sellers}
    gas = {seller.number: len(tries[seller]) * seller.sell_gas for seller in sellers}
    funded = [replace(member, sell_gas=gas.get(member.number, member.sell_gas)) for member in members]
    *blocks, last = crowd_buy_blocks(place, setting, environment, funded)
    traders = {member: company_trader(place, setting, environment, member) for member in sellers}
    approving = [step for member, trader in traders.items() for step in _approvals(trader, tries[member], 0)]
    held = [replace(_token_read(trader), label=f"{trader.label}-held") for trader in traders.values()]
    plan = [first, *blocks, replace(last, steps=(*last.steps, *approving, *held))]
    passed_s = 0
    for number in range(max(map(len, tries.values()))):
        for member, trader in traders.items():
            if number < len(tries[member]):
                delay_s = max(1, tries[member][number].after_s - passed_s)
                plan.append(_attempt_block(trader, tries[member], number, member.sell_gas, delay_s))
                passed_s += delay_s
    return Plan(environment, tuple(plan))


def company_trader(
    place: VenuePlace, setting: Setting, environment: Environment, member: Member
) -> CrowdTrader:
    """A wallet of the crowd that sells all it has by the usual route."""
    wallet = replace(member.wallet, way="usual", share_bps=BPS)
    return CrowdTrader(place, setting, environment, wallet, f"m{member.number}")


def company_attempts(member: Member, policy: Policy) -> tuple[Attempt, ...]:
    """Soon, after an hour and after a day. Half of it once: others' buys may bring an honest cap below the
    whole."""
    whole_raw, half_raw = max(1, member.held_raw), max(1, member.held_raw // 2)
    return (
        Attempt(policy.later_s, whole_raw),
        Attempt(policy.hour_s, half_raw),
        Attempt(policy.day_s, whole_raw),
        *(part_attempts(policy.day_s, whole_raw, policy) if member.tries_part else ()),
    )


_MAX_SELLING = 7
"""With the blocks of buys before them these take twelve seconds: the first attempt comes a second later."""


def _sell_blocks(
    place: VenuePlace, setting: Setting, environment: Environment, others: tuple[Member, ...]
) -> list[PlannedBlock]:
    """Sells of a few of the others, each in a block of its own: some tokens allow one trade a block."""
    blocks = []
    for member in others[:_MAX_SELLING]:
        plain = replace(member.wallet, way="usual", approves_all=False, share_bps=BPS)
        trader = CrowdTrader(place, setting, environment, plain, f"m{member.number}")
        *approvals, sell = sell_calls(trader, max(1, member.held_raw))
        limit = setting.policy.approve_gas_limit
        steps = [trader.step(f"approve-{n}", call, limit) for n, call in enumerate(approvals)]
        steps.append(trader.step("sell-0", sell, member.sell_gas))
        blocks.append(PlannedBlock(BUY_GAP_S, tuple(steps)))
    return blocks


def _held_read(trader: CrowdTrader, name: str) -> SimulatedStep:
    return token_read(f"{trader.label}-{name}", trader.setting, trader.environment, trader.wallet.wallet)


def plain_wallet(wallet: Address, nonce: int, size_wei: int, after_s: int) -> CrowdWallet:
    """A wallet without any difference from the main one."""
    return CrowdWallet(wallet, nonce, size_wei, 0, 5 * 10**16, 0, 0, 0, False, after_s, BPS, "usual")
