"""Plans of the crowd: drawn wallets that buy on one venue, one block after the other, and sell among others.
Pure; ``crowd_outcomes`` reads the results.

What each wallet's buys bring is known before, by the venue's formula or because the same buys were measured
in the same blocks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec
from msgspec import structs

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
_BLOCK_S = 1
"""Seconds before a block that comes as soon as it can."""
_DELEGATION = "0xef0100" + "5a5a" * 10
"""The code of a wallet with an EIP-7702 delegation, to an address without code: the wallet takes eth as any
other does."""
_DEPOSIT = "0xd0e30db0"
"""WETH9.deposit()."""


class Member(msgspec.Struct, frozen=True):
    """A wallet of the crowd that sells. ``number``: its place in the crowd; -1: it trades alone.
    ``held_raw``: what it can sell. ``buy_gas`` and ``sell_gas``: the gas limits of its trades.
    ``tries_part``: where all of it does not sell, it tries nearly all."""

    number: int
    wallet: CrowdWallet
    held_raw: int
    buy_gas: int
    sell_gas: int
    tries_part: bool = False

    def label(self) -> str:
        """What opens the labels of its steps."""
        return "alone" if self.number < 0 else f"m{self.number}"


class CrowdTrader(msgspec.Struct, frozen=True):
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
        # A swap to other money may cost twice the size (``_buy_steps``).
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
    balances, nonces, storage, codes = [], [], [], []
    size = block_size(setting.policy)
    slot = slot_of(place.venue, setting)
    for member in members:
        trader = CrowdTrader(place, setting, environment, member.wallet, member.label())
        at, wallet = max(0, member.number) // size, member.wallet
        first[at] += [*_hold_steps(trader), *_buy_steps(trader, "buy", wallet.size_wei, member.buy_gas)]
        if wallet.again_wei:
            again[at + 1] += _buy_steps(trader, "again", wallet.again_wei, member.buy_gas)
        balances.append((wallet.wallet, trader.funds_wei(_most_gas(member, setting.policy))))
        nonces.append((wallet.wallet, wallet.nonce))
        if wallet.delegates:
            codes.append((wallet.wallet, _DELEGATION))
        if slot is not None:
            spent = trader.spent_raw(wallet.size_wei) + trader.spent_raw(wallet.again_wei)
            storage.append((slot.asset, slot.of(wallet.wallet), spent))
    steps = [tuple(late + early) for late, early in zip(again, first, strict=True)]
    first_s, *gaps_s = setting.crowd_gaps_s
    overrides = PlannedBlock(first_s, steps[0], tuple(balances), tuple(nonces), tuple(storage), tuple(codes))
    return [overrides, *(PlannedBlock(gap_s, block) for gap_s, block in zip(gaps_s, steps[1:], strict=True))]


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
        token_read(f"{member.label()}-token", setting, environment, member.wallet.wallet)
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
    last_s = sum(setting.crowd_gaps_s)
    moments = tuple(last_s + wait_s for wait_s in _waits(members, setting.policy))
    sells: dict[int, list[SimulatedStep]] = {moment: [] for moment in moments}
    approvals: dict[int, list[SimulatedStep]] = {moment: [] for moment in (0, *moments)}
    earlier = dict(zip(moments, (0, *moments), strict=False))
    for member in members:
        trader = CrowdTrader(place, setting, environment, member.wallet, member.label())
        at = [last_s + wait_s for wait_s in sell_waits(member, members, setting.policy)]
        raws = sell_amounts(member, members, setting.policy)
        *approving, whole_sell = sell_calls(trader, sum(raws))
        limit = max(setting.policy.approve_gas_limit, bought.approve_gas * 3 // 2)
        approvals[earlier[at[0]]] += [
            trader.step(f"approve-{n}", call, limit) for n, call in enumerate(approving)
        ]
        for number, (moment, raw) in enumerate(zip(at, raws, strict=False)):
            name = f"sell-{number}"
            reads = [] if number else [_quote_read(trader, "before")]
            last = [_quote_read(trader, "after"), _token_read(trader)] if number == len(raws) - 1 else []
            call = whole_sell if len(raws) == 1 else sell_calls(trader, raw)[-1]
            sell = trader.step(name, call, member.sell_gas)
            sells[moment] += [*reads, sell, *last]
    tail = blocks[-1]
    blocks[-1] = PlannedBlock(tail.delay_s, (*tail.steps, *approvals[0]))
    for before, after in pairwise((last_s, *moments)):
        blocks.append(PlannedBlock(max(1, after - before), (*sells[after], *approvals[after])))
    return Plan(environment, tuple(blocks))


def late_s(member: Member, setting: Setting) -> int:
    """How many seconds after its planned time a wallet of the crowd sells: its wait begins at the crowd's
    last buy, not at its own."""
    bought_in = member.number // block_size(setting.policy) + (2 if member.wallet.again_wei else 1)
    return sum(setting.crowd_gaps_s[bought_in:])


def _waits(members: tuple[Member, ...], policy: Policy) -> tuple[int, ...]:
    """How long after the last buys the wallets sell, each time once. Some tokens refuse every sell for a
    while after a buy, so each wait begins at the last block of buys."""
    return tuple(sorted({member.wallet.after_s for member in members} | {policy.later_s, policy.day_s}))


def sell_waits(member: Member, members: tuple[Member, ...], policy: Policy) -> tuple[int, ...]:
    """How long after the last buys a wallet sells: for pieces some of the moments of others, from the first
    to the one after a day, evenly among them."""
    if member.wallet.way != "pieces":
        return (member.wallet.after_s,)
    waits = [wait_s for wait_s in _waits(members, policy) if wait_s <= policy.day_s]
    count, last = min(policy.pieces, len(waits)), len(waits) - 1
    return tuple(waits[number * last // max(1, count - 1)] for number in range(count))


def sell_amounts(member: Member, members: tuple[Member, ...], policy: Policy) -> list[int]:
    """What a wallet sells, one amount for each of its sells."""
    planned_raw = max(1, member.held_raw * member.wallet.share_bps // BPS)
    if member.wallet.way != "pieces":
        return [planned_raw]
    return piece_amounts(planned_raw, policy.pieces)[: len(sell_waits(member, members, policy))]


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
    """A sell that is tried ``after_s`` seconds after the wallet's first buy (``isolated_plan``), or after the
    last block of buys (``company_plan``): the first that succeeds counts. ``gas``: its limit; 0: that of the
    wallet's other sells. ``others_buy``: before it another wallet buys for a little."""

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
    seller: Member,
    attempts: tuple[Attempt, ...],
    others: tuple[Member, ...] = (),
    others_sell: bool = False,
) -> Plan:
    """Isolation round: one wallet buys and tries to sell; ``others`` buy after it, and also sell where
    ``others_sell``. Blocks and seconds are those of the crowd, with or without others, so that two such plans
    differ only where their arguments do. An attempt comes as long after the wallet's first buy as it says,
    like a sell of the main wallet; one that would come before the crowd's last buy comes after it. No balance
    of the token is read before the last attempt: a read is a transaction, and a token may react to it."""
    reader, policy = environment.reader, setting.policy
    sweep = place.file.plan_sweep(setting.contracts, reader)
    steps = () if sweep is None else (SimulatedStep("sweep", reader, sweep, policy.transfer_gas_limit),)
    trader = CrowdTrader(place, setting, environment, seller.wallet, seller.label())
    funded = structs.replace(seller, sell_gas=len(attempts) * seller.sell_gas)
    own, again, *_ = crowd_buy_blocks(place, setting, environment, [funded])
    first = structs.replace(own, delay_s=_BLOCK_S, steps=(*steps, *own.steps))
    first = structs.replace(first, balances=(*first.balances, (reader, WEI_PER_ETH)))
    second, *between, last = crowd_buy_blocks(place, setting, environment, others)
    second = structs.replace(second, steps=(*again.steps, *second.steps))
    last = structs.replace(last, steps=(*last.steps, *_approvals(trader, attempts, 0)))
    sells = _sell_blocks(place, setting, environment, others if others_sell else ())
    bought_s = sum(setting.crowd_gaps_s)
    plan, passed_s = [first, second, *between, last, *sells], bought_s + _BLOCK_S * len(sells)
    for number, attempt in enumerate(attempts):
        due_s = max(attempt.after_s, bought_s + min(attempt.after_s, policy.later_s))
        delay_s = max(1, due_s - passed_s)
        plan.append(_attempt_block(trader, attempts, number, seller.sell_gas, delay_s))
        passed_s += delay_s
    return Plan(environment, (*plan, _left_block([trader])))


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
    """A sell, between reads of the seller's money, and the approvals for the next one."""
    attempt, setting, env = attempts[number], trader.setting, trader.environment
    first: list[SimulatedStep] = []
    if attempt.others_buy:
        name, wei = f"{trader.label}-between-{number}", setting.policy.probe_wei
        first = little_buy(trader.place, setting, env, env.receiver, name, wei)
    steps = (
        *first,
        _quote_read(trader, f"before-{number}"),
        trader.step(f"sell-{number}", sell_calls(trader, attempt.raw)[-1], attempt.gas or sell_gas),
        _quote_read(trader, f"after-{number}"),
        *_approvals(trader, attempts, number + 1),
    )
    return PlannedBlock(delay_s, steps, ((env.receiver, WEI_PER_ETH),) if first else ())


def company_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    size: Size,
    amount_raw: int,
    bought: CompletedBuy,
    members: tuple[Member, ...],
    sellers: tuple[Member, ...],
) -> Plan:
    """Isolation round: the crowd buys as in the sell round, and then only these of it try to sell all they
    have, each in blocks of its own: a wallet may be marked by the block of its buy."""
    first = buy_block(place, setting, environment, size, amount_raw, bought.gas)
    tries = {member: company_attempts(member, setting.policy) for member in sellers}
    gas = {seller.number: len(tries[seller]) * seller.sell_gas for seller in sellers}
    funded = [structs.replace(member, sell_gas=gas.get(member.number, member.sell_gas)) for member in members]
    *blocks, last = crowd_buy_blocks(place, setting, environment, funded)
    traders = {member: company_trader(place, setting, environment, member) for member in sellers}
    approving = [step for member, trader in traders.items() for step in _approvals(trader, tries[member], 0)]
    plan = [first, *blocks, structs.replace(last, steps=(*last.steps, *approving))]
    passed_s = 0
    for number in range(max(map(len, tries.values()))):
        for member, trader in traders.items():
            if number < len(tries[member]):
                delay_s = max(1, tries[member][number].after_s - passed_s)
                plan.append(_attempt_block(trader, tries[member], number, member.sell_gas, delay_s))
                passed_s += delay_s
    return Plan(environment, (*plan, _left_block(traders.values())))


def _left_block(traders: Iterable[CrowdTrader]) -> PlannedBlock:
    """Reads what each still holds, after all attempts."""
    return PlannedBlock(_BLOCK_S, tuple(_token_read(trader) for trader in traders))


def company_trader(
    place: VenuePlace, setting: Setting, environment: Environment, member: Member
) -> CrowdTrader:
    """A wallet of the crowd that sells all it has by the usual route."""
    wallet = replace(member.wallet, way="usual", share_bps=BPS)
    return CrowdTrader(place, setting, environment, wallet, member.label())


def company_attempts(member: Member, policy: Policy) -> tuple[Attempt, ...]:
    """Sells soon, after an hour and after a day. After the hour only half: others' buys may bring an honest
    cap below the whole."""
    whole_raw, half_raw = max(1, member.held_raw), max(1, member.held_raw // 2)
    return (
        Attempt(policy.later_s, whole_raw),
        Attempt(policy.hour_s, half_raw),
        Attempt(policy.day_s, whole_raw),
        *(part_attempts(policy.day_s, whole_raw, policy) if member.tries_part else ()),
    )


_SELL_BLOCKS = 8
"""Blocks for the sells of others, which end before the first attempt ``later_s`` after the buys."""


def _sell_blocks(
    place: VenuePlace, setting: Setting, environment: Environment, others: tuple[Member, ...]
) -> list[PlannedBlock]:
    """All the others sell: each of the first in a block of its own, since some tokens allow one trade a
    block, the rest in the last one. Where nobody sells, as many empty blocks."""
    blocks: list[list[SimulatedStep]] = [[] for _ in range(_SELL_BLOCKS)]
    for number, member in enumerate(others):
        plain = replace(member.wallet, way="usual", approves_all=False, share_bps=BPS)
        trader = CrowdTrader(place, setting, environment, plain, member.label())
        *approvals, sell = sell_calls(trader, max(1, member.held_raw))
        limit = setting.policy.approve_gas_limit
        block = blocks[min(number, _SELL_BLOCKS - 1)]
        block += [trader.step(f"approve-{n}", call, limit) for n, call in enumerate(approvals)]
        block.append(trader.step("sell-0", sell, member.sell_gas))
    return [PlannedBlock(_BLOCK_S, tuple(block)) for block in blocks]


def plain_wallet(wallet: Address, nonce: int, size_wei: int, after_s: int) -> CrowdWallet:
    """A wallet without the crowd's differences: it buys once, holds 0.05 eth beyond that and no other money,
    pays no tip, and sells all by the usual route."""
    return CrowdWallet(wallet, nonce, size_wei, 0, 5 * 10**16, 0, 0, 0, False, after_s, BPS, "usual")
