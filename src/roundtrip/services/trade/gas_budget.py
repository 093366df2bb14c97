"""Gas limits for a caller's own calls, and the gas that all their simulations may use."""

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

from .known_places import KnownPlaces

_FIRST_GAS, _FIRST_GAS_OF_ALL = 3_000_000, 9_000_000
"""The first gas limit of one call, and of all together: enough for any ordinary trade. Only if a call fails
are they run with the full limit."""
ESTIMATE_GAS = 600_000
"""Gas limit of an estimate: nodes run a call many times to estimate it."""
TOO_DEAR = Missing("token", "the calls use more gas than one request may use")


@dataclass(slots=True)
class GasBudget:
    """The gas that the caller's calls may still use, in all simulations of one request together."""

    remaining: int

    def take(self, gas: int) -> bool:
        """Takes gas from the budget; False where there is not enough."""
        if gas > self.remaining:
            return False
        self.remaining -= gas
        return True

    def plan(
        self, variants: list[WalletCalls], exit_gas: int, other_gas: int = 0
    ) -> tuple[list[WalletCalls], int] | None:
        """The variants of the calls that fit beside ``exit_gas``, the gas of a sell on one venue, and the gas
        for sells. ``other_gas``: that of the sells on the other venues, which goes before all variants but
        the first, as far as there is so much. None: the budget does not allow one of each."""
        remaining, chosen = self.remaining - exit_gas, list[WalletCalls]()
        if not variants or sum(variants[0].gas_limits) > remaining:
            return None
        other_gas = min(other_gas, remaining - sum(variants[0].gas_limits))
        remaining -= other_gas
        for variant in variants:
            if (limit := sum(variant.gas_limits)) <= remaining:
                remaining -= limit
                chosen.append(variant)
        # A quarter is reserved for a rerun, where the calls touch assets that were not read.
        return chosen, exit_gas + other_gas + remaining * 3 // 4 if exit_gas else 0


@dataclass(frozen=True, slots=True)
class WalletCase:
    """One wallet's calls. ``environment`` is a block like the next one, with the wallet in it."""

    ctx: Context
    head: ChainHead
    environment: Environment
    setting: Setting
    wallet: Address
    calls: tuple[Call, ...]
    places: KnownPlaces
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
    """The gas that all calls used."""
    return sum(call.gas_used for call in result.calls) if isinstance(result, RunResult) else 0


def is_cut_short(result: RunResult, case: WalletCase) -> bool:
    """Whether a call ran out of gas below the limit that a wallet could set."""
    max_gas = case.most_gas()
    failed = [call for call in result.calls if not call.ok and call.gas_used * 10 >= max_gas * 9]
    starved = any(call.reason == "out of gas" for call in failed)
    return starved and max_gas < case.ctx.policy.buy_gas_limit


def plenty(case: WalletCase, gas_limit: int) -> WalletCalls:
    """The calls with plenty of eth and ``gas_limit`` each, to measure what they need. A later run with the
    wallet's own eth and gas limits gives the result."""
    limits = (gas_limit,) * len(case.calls)
    return WalletCalls(case.wallet, case.calls, limits, 2 * PLENTY_WEI)


def enough(case: WalletCase, result: RunResult) -> WalletCalls:
    """The calls with plenty of eth and three times the gas that they used."""
    return WalletCalls(case.wallet, case.calls, _limits(case, result, 30_000, GAS_SLACK), 2 * PLENTY_WEI)


def with_gas_limits(
    case: WalletCase, estimated_gas: int, result: RunResult, balance_wei: int
) -> list[WalletCalls]:
    """Variants of the calls with the wallet's eth and gas limits that wallets set: 1.5 times the gas used,
    the other usual shares, the node's estimate of the first call, then more, up to the maximum."""
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
"""Shares of the gas that a call uses; one more share is drawn at random, so it cannot be predicted."""


def usual_limits(case: WalletCase, result: RunResult) -> tuple[int, ...]:
    """The gas limits that most wallets would set: 1.5 times the gas used."""
    return _limits(case, result, 15_000, GAS_SLACK)


def _limits(case: WalletCase, result: RunResult, bps: int, slack: int = 1) -> tuple[int, ...]:
    max_gas = case.most_gas()
    return tuple(min(max_gas, call.gas_used * bps // BPS + slack) for call in result.calls)
