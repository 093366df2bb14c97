"""One caller's own calls: what they are run with, and how much gas they may use."""

from dataclasses import dataclass

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.legs import Setting
from roundtrip.chain.wallet.calls import GAS_SLACK, PLENTY_WEI, WalletCalls
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.check.evidence import Environment, Missing
from roundtrip.domain.trade.judge import RunResult
from roundtrip.services.runtime.context import Context
from roundtrip.venues.base import Call

_FIRST_GAS, _FIRST_GAS_OF_ALL = 3_000_000, 9_000_000
"""What one call, and all of them, may use at first: as much as any ordinary trade. Only where one fails are
they run with all the gas that there is."""
ESTIMATE_GAS = 600_000
"""Nodes run a call many times to estimate it."""
TOO_DEAR = Missing("token", "the calls use more gas than one request may")


@dataclass(slots=True)
class GasBudget:
    """The gas that the caller's calls may still use, in all simulations of one request together."""

    left: int

    def take(self, gas: int) -> bool:
        """Takes it, where there is as much."""
        if gas > self.left:
            return False
        self.left -= gas
        return True

    def plan(self, variants: list[WalletCalls], exit_gas: int) -> tuple[list[WalletCalls], int] | None:
        """As many of the ways to send the calls as fit beside ``exit_gas``, what selling on one venue takes,
        and the gas for selling. None: there is too little for one of each."""
        left, chosen = self.left - exit_gas, []
        for variant in variants:
            if (limit := sum(variant.gas_limits)) <= left:
                left -= limit
                chosen.append(variant)
        if not chosen or chosen[0] is not variants[0]:
            return None
        # A quarter stays for running them again, where they touch what was not looked at.
        return chosen, exit_gas + left * 3 // 4 if exit_gas else 0


@dataclass(frozen=True, slots=True)
class WalletCase:
    """One wallet's calls. ``environment`` is a block like the next one, with the wallet in it."""

    ctx: Context
    head: ChainHead
    environment: Environment
    setting: Setting
    wallet: Address
    calls: tuple[Call, ...]
    fund: bool
    meter: Meter
    gas: GasBudget

    def first_gas(self) -> int:
        """The gas limit of one call when the calls are first run."""
        return min(_FIRST_GAS, _FIRST_GAS_OF_ALL // len(self.calls))

    def most_gas(self) -> int:
        """The highest gas limit that one call is given."""
        policy = self.ctx.policy
        return min(policy.buy_gas_limit, policy.trade_gas_budget // len(self.calls))


def gas_of(result: RunResult | Missing) -> int:
    """What all of the calls used."""
    return sum(call.gas_used for call in result.calls) if isinstance(result, RunResult) else 0


def is_cut_short(result: RunResult, case: WalletCase) -> bool:
    """Whether a call failed for gas that a wallet could give it."""
    most = case.most_gas()
    failed = [call for call in result.calls if not call.ok and call.gas_used * 10 >= most * 9]
    starved = any(call.reason == "out of gas" for call in failed)
    return starved and most < case.ctx.policy.buy_gas_limit


def plenty(case: WalletCase, gas_limit: int) -> WalletCalls:
    """The calls with all the eth there is, and ``gas_limit`` each: what they take is seen so. What they come
    to is seen when they are run with what the wallet has, and would set."""
    limits = (gas_limit,) * len(case.calls)
    return WalletCalls(case.wallet, case.calls, limits, 2 * PLENTY_WEI)


def enough(case: WalletCase, result: RunResult) -> WalletCalls:
    """The calls with all the eth there is, and three times the gas that they used."""
    return WalletCalls(case.wallet, case.calls, _limits(case, result, 30_000, GAS_SLACK), 2 * PLENTY_WEI)


def with_gas_limits(
    case: WalletCase, estimated_gas: int, result: RunResult, balance_wei: int
) -> list[WalletCalls]:
    """The calls with the gas that a wallet would set, and with what it holds: half as much again as they
    took; the other shares that wallets add; what the node says of the first; then more, up to all there may
    be."""
    policy, usual_gas = case.ctx.policy, usual_limits(case, result)
    drawn_bps = 10_200 + int(case.environment.prev_randao, 16) % 25_000
    ladder = [usual_gas, *(_limits(case, result, bps) for bps in (*_USUAL_GAS_BPS, drawn_bps))]
    if 0 < estimated_gas <= case.most_gas():
        ladder.append((estimated_gas, *usual_gas[1:]))
    higher = [min(limit, case.most_gas()) for limit in policy.sell_gas_ladder if limit > max(usual_gas)]
    ladder += [tuple(max(limit, gas) for gas in usual_gas) for limit in higher]
    variants = [WalletCalls(case.wallet, case.calls, limits, None) for limits in dict.fromkeys(ladder)]
    if case.fund:
        return [variant.with_plenty() for variant in variants]
    return [variant.as_sent(result, balance_wei, case.environment, policy) for variant in variants]


_USUAL_GAS_BPS = (10_160, 11_000, 12_000, 12_500, 13_000, 20_000, 30_000)
"""Of what a call uses; beside these a share that nobody can foresee is drawn."""


def usual_limits(case: WalletCase, result: RunResult) -> tuple[int, ...]:
    """The gas limits that most wallets would set: half as much again as the calls used."""
    return _limits(case, result, 15_000, GAS_SLACK)


def _limits(case: WalletCase, result: RunResult, bps: int, slack: int = 1) -> tuple[int, ...]:
    most = case.most_gas()
    return tuple(min(most, call.gas_used * bps // BPS + slack) for call in result.calls)
