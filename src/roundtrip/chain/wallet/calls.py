"""A wallet's own calls, simulated: what they move, what they allow, and what may be done with it after. Pure.

Balances and allowances decide, read before and after by a wallet of its own.
"""

from dataclasses import dataclass, replace
from typing import Literal

from roundtrip.chain.simulate.legs import (
    GET_ETH_BALANCE,
    Setting,
    VenuePlace,
    exit_blocks,
    gas_float,
    token_read,
)
from roundtrip.chain.simulate.request import Plan, PlannedBlock, Results, SimulatedStep, StepResult
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import WEI_PER_ETH, ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.check.evidence import Environment, Missing, Probe
from roundtrip.domain.trade.judge import Allowance, BalanceChange, CallResult, RunResult
from roundtrip.venues import abi, erc20, permit2
from roundtrip.venues.base import Call

PLENTY_WEI = 10**6 * WEI_PER_ETH
"""What a funded wallet holds: more than anybody trades with."""
GAS_SLACK = 5000
"""What one write more costs; a call may meet another state in a later trip."""
MOST_TIP_WEI = 10**8
"""What a simulated wallet may tip."""
_NEXT_BLOCK_S = 1


@dataclass(frozen=True, slots=True)
class WalletCalls:
    """Calls of one wallet, in order, each with its gas limit. ``wallet_wei`` is what it is given to hold;
    None: what it has. ``first``: what is done before to have the money. ``later_wei``: what it is given
    after the calls, to pay for the gas of what comes then; None: nothing."""

    wallet: Address
    calls: tuple[Call, ...]
    gas_limits: tuple[int, ...]
    wallet_wei: int | None
    first: tuple[Call, ...] = ()
    later_wei: int | None = None

    def most_wei(self, environment: Environment) -> int:
        """What a wallet has to hold so that a node takes all of them: values and gas at its dearest."""
        gas_wei = sum(self.gas_limits) * environment.max_fee_wei
        return gas_wei + sum(call.value_wei for call in self.calls)

    def as_sent(
        self, ran: RunResult, balance_wei: int, environment: Environment, policy: Policy
    ) -> "WalletCalls":
        """With what the wallet holds, or as much as a node asks for where that is less; after the calls,
        which came to ``ran``, with what it needs to pay for a sell."""
        dearest_wei = self.most_wei(replace(environment, max_fee_wei=environment.max_fee_wei + MOST_TIP_WEI))
        left_wei = balance_wei + sum(ran.eth_changes_wei)
        left_wei -= sum(call.gas_used for call in ran.calls) * ran.gas_price_wei
        return replace(
            self,
            wallet_wei=None if balance_wei >= dearest_wei else dearest_wei,
            later_wei=max(0, left_wei) + gas_float(policy, environment),
        )

    def with_plenty(self) -> "WalletCalls":
        """With plenty of eth."""
        return replace(self, wallet_wei=2 * PLENTY_WEI, later_wei=2 * PLENTY_WEI)


Via = Literal["erc20", "permit2", "all", "operator", "item", "claim"]


@dataclass(frozen=True, slots=True)
class Pair:
    """An allowance to look at: of a token, to a spender; by the token itself, by Permit2, for a whole
    collection or vault, or for one item of a collection."""

    token: Address
    spender: Address
    via: Via = "erc20"
    item: int = 0

    def call(self, owner: Address, permit2_address: Address) -> Call:
        """Asks how much is allowed."""
        if self.via == "permit2":
            return Call(permit2_address, abi.call(permit2.ALLOWANCE, owner, self.token, self.spender))
        if self.via == "item":
            return Call(self.token, abi.call(erc20.GET_APPROVED, self.item))
        if self.via == "claim":
            return Call(self.token, abi.call(erc20.CLAIM_ALLOWANCE, owner, self.spender, self.item))
        heads = {"erc20": erc20.ALLOWANCE, "all": erc20.IS_APPROVED_FOR_ALL, "operator": erc20.IS_OPERATOR}
        return Call(self.token, abi.call(heads[self.via], owner, self.spender))


@dataclass(frozen=True, slots=True)
class WatchedAssets:
    """What is read before and after."""

    tokens: tuple[Address, ...]
    pairs: tuple[Pair, ...]


# --- the run ---------------------------------------------------------------------------------------


def before_plan(
    own: WalletCalls,
    watched: WatchedAssets,
    setting: Setting,
    environment: Environment,
    swept: tuple[Call, ...] = (),
) -> Plan:
    """What is held and allowed before the calls, asked in a simulation of its own: a read is told to a
    transaction too, and a contract that is asked before it is called knows what will come."""
    steps = _swept(swept, setting, environment) + _first_steps(own, setting.policy)
    steps += _reads("before", own, watched, setting, environment)
    block = PlannedBlock(_NEXT_BLOCK_S, tuple(steps), _overridden_balances(own, setting.policy, environment))
    return Plan(environment, (block,))


def run_plan(
    own: WalletCalls,
    watched: WatchedAssets,
    setting: Setting,
    environment: Environment,
    asked: tuple[Call, ...] = (),
    swept: tuple[Call, ...] = (),
) -> Plan:
    """The calls in the next block, with the reads after them, and what is held of each token later.
    ``asked``: views to call just before, as ``ask-0`` and so on; ``swept``: what takes strangers' dust out
    of the way first. ``read_run`` takes these results and those of ``before_plan`` together."""
    policy, reader = setting.policy, environment.reader
    steps = _swept(swept, setting, environment) + _first_steps(own, policy)
    # By the wallet itself: a pool's hook may price each wallet's swaps otherwise.
    steps += [
        SimulatedStep(f"ask-{n}", own.wallet, call, policy.hook_gas_limit) for n, call in enumerate(asked)
    ]
    steps += [_eth_read("eth-0", own, setting, environment)]
    for n, step in enumerate(_calls(own)):
        steps += [step, _eth_read(f"eth-{n + 1}", own, setting, environment)]
    steps += _reads("after", own, watched, setting, environment)
    steps += _names(watched, setting, environment)
    blocks = [PlannedBlock(_NEXT_BLOCK_S, tuple(steps), _overridden_balances(own, policy, environment))]
    passed_s = 0
    for delay_s in held_delays_s(policy):
        later = (
            SimulatedStep(f"held-{delay_s}-{n}", reader, _balance(token, own.wallet), _limit(setting))
            for n, token in enumerate(watched.tokens)
        )
        blocks.append(PlannedBlock(delay_s - passed_s, tuple(later)))
        passed_s = delay_s
    return Plan(environment, tuple(blocks))


def together(before: Results | Missing, run: Results | Missing) -> Results | Missing:
    """The results of a run with those of its reads before; Missing where one of them is."""
    for one in (run, before):
        if isinstance(one, Missing):
            return one
    assert not isinstance(before, Missing)
    assert not isinstance(run, Missing)
    return {**before, **run}


def _swept(swept: tuple[Call, ...], setting: Setting, environment: Environment) -> list[SimulatedStep]:
    limit = setting.policy.transfer_gas_limit
    return [SimulatedStep(f"sweep-{n}", environment.reader, call, limit) for n, call in enumerate(swept)]


def held_delays_s(policy: Policy) -> tuple[int, int, int]:
    """When it is looked at what is still held."""
    return policy.later_s, policy.hour_s, policy.day_s


def read_run(
    results: Results | Missing,
    own: WalletCalls,
    watched: WatchedAssets,
    setting: Setting,
    env: Environment,
    block: BlockRef,
) -> RunResult | Missing:
    """What the run came to. Of what does not tell a balance or an allowance nobody knows that it moved;
    ``unread`` names it."""
    if isinstance(results, Missing):
        return results
    eth = [_uint(results, f"eth-{n}") for n in range(len(own.calls) + 1)]
    known = [wei for wei in eth if wei is not None]
    if len(known) < len(eth):
        return Missing("node", "the wallet's eth could not be read")
    if any(label.startswith("first-") and not found.ok for label, found in results.items()):
        return Missing("node", "the money for it could not be had")
    calls = tuple(
        CallResult(found.ok, found.gas_used, None if found.ok else found.reason() or "")
        for found in (results[f"call-{n}"] for n in range(len(own.calls)))
    )
    price_wei = min(env.max_fee_wei, env.base_fee_wei + env.tip_wei)
    # What each call left the wallet with, its own gas given back.
    eth_changes = tuple(known[n + 1] - known[n] + call.gas_used * price_wei for n, call in enumerate(calls))
    moved = [BalanceChange(ZERO_ADDRESS, sum(eth_changes), known[0], ())]
    unread: list[Address] = []
    for n, token in enumerate(watched.tokens):
        before, after = _uint(results, f"before-token-{n}"), _uint(results, f"after-token-{n}")
        if before is None or after is None:
            unread.append(token)
            continue
        later = (_uint(results, f"held-{delay_s}-{n}") for delay_s in held_delays_s(setting.policy))
        moved.append(
            BalanceChange(token, after - before, before, tuple(after if h is None else h for h in later))
        )
    return RunResult(
        calls=calls,
        moved=tuple(one for one in moved if one.raw),
        allowances=tuple(_allowances(results, own.wallet, watched, block.timestamp_s + _NEXT_BLOCK_S)),
        eth_changes_wei=eth_changes,
        gas_price_wei=price_wei,
        metadata={token: _read_token(results, n) for n, token in enumerate(watched.tokens)},
        unread=frozenset(unread),
    )


def unread_pairs(results: Results, watched: WatchedAssets) -> frozenset[Pair]:
    """Allowances that were asked and not told."""
    return frozenset(
        pair for n, pair in enumerate(watched.pairs) if _uint(results, f"after-pair-{n}") is None
    )


def _read_token(results: Results, n: int) -> tuple[int | None, bytes | None]:
    """Decimals and symbol as the token answers."""
    decimals, symbol = _uint(results, f"decimals-{n}"), results[f"symbol-{n}"]
    return decimals if decimals is not None and decimals < 256 else None, symbol.data if symbol.ok else None


def _allowances(results: Results, wallet: Address, watched: WatchedAssets, now_s: int) -> list[Allowance]:
    """Those that are more after than before, or last longer. What the wallet allows itself is none."""
    found = []
    for n, pair in enumerate(watched.pairs):
        before, after = (
            _read_allowance(results[f"{moment}-pair-{n}"], pair, now_s) for moment in ("before", "after")
        )
        if pair.spender in (wallet, ZERO_ADDRESS) or before is None or after is None or after[0] == 0:
            continue
        if after > before and (after[0] > before[0] or pair.via == "permit2"):
            raw = None if pair.via in ("all", "operator") else after[0]
            found.append(Allowance(pair.token, pair.spender, raw, pair.via))
    return found


def _read_allowance(found: StepResult, pair: Pair, now_s: int) -> tuple[int, int] | None:
    """How much, and until when. What Permit2 let somebody take until now is none any more."""
    raw = abi.uint_at(found.data, 0) if found.ok else None
    if raw is None:
        return None
    if pair.via == "item":
        return (1, 0) if raw == int(pair.spender, 16) else (0, 0)
    if pair.via != "permit2":
        return raw, 0
    until_s = abi.uint_at(found.data, 1) or 0
    return (raw, until_s) if until_s >= now_s else (0, 0)


def _reads(
    moment: str, own: WalletCalls, watched: WatchedAssets, setting: Setting, environment: Environment
) -> list[SimulatedStep]:
    reader, limit, permit2_at = environment.reader, _limit(setting), setting.contracts.permit2
    steps = [
        SimulatedStep(f"{moment}-token-{n}", reader, _balance(token, own.wallet), limit)
        for n, token in enumerate(watched.tokens)
    ]
    return steps + [
        SimulatedStep(f"{moment}-pair-{n}", reader, pair.call(own.wallet, permit2_at), limit)
        for n, pair in enumerate(watched.pairs)
    ]


def _names(watched: WatchedAssets, setting: Setting, environment: Environment) -> list[SimulatedStep]:
    return [
        SimulatedStep(f"{name}-{n}", environment.reader, Call(token, head), _limit(setting))
        for n, token in enumerate(watched.tokens)
        for name, head in (("decimals", erc20.DECIMALS), ("symbol", erc20.SYMBOL))
    ]


def _calls(own: WalletCalls) -> list[SimulatedStep]:
    return [
        SimulatedStep(f"call-{n}", own.wallet, call, limit)
        for n, (call, limit) in enumerate(zip(own.calls, own.gas_limits, strict=True))
    ]


def _overridden_balances(
    own: WalletCalls, policy: Policy, environment: Environment
) -> tuple[tuple[Address, int], ...]:
    # Whom it is handed on to is no poorer: a token may spare those who hold next to nothing.
    others = (
        (environment.receiver, max(gas_float(policy, environment), own.later_wei or 0)),
        (environment.reader, WEI_PER_ETH),
    )
    return others if own.wallet_wei is None else ((own.wallet, own.wallet_wei), *others)


def _eth_read(label: str, own: WalletCalls, setting: Setting, environment: Environment) -> SimulatedStep:
    call = Call(setting.contracts.multicall3, abi.call(GET_ETH_BALANCE, own.wallet))
    return SimulatedStep(label, environment.reader, call, _limit(setting))


def _balance(token: Address, of: Address) -> Call:
    return Call(token, abi.call(erc20.BALANCE_OF, of))


def _limit(setting: Setting) -> int:
    return setting.policy.read_gas_limit


def _uint(results: Results, label: str) -> int | None:
    found = results[label]
    return abi.uint_at(found.data, 0) if found.ok else None


# --- what comes after ------------------------------------------------------------------------------


def after_plan(
    own: WalletCalls,
    out: VenuePlace,
    setting: Setting,
    environment: Environment,
    probe: Probe,
    held_raw: int,
    opening: tuple[Call, ...] = (),
) -> Plan:
    """The calls, and later the sell on ``out`` of a share of what they brought. ``opening``: what anybody
    may call in between to open that place, each in a block of its own. Dust that lies in the routers is
    taken out of the way before: what a sell takes out of it was not the token's."""
    first = _first_block(own, setting.policy, environment)
    opened = _opening_blocks(opening, setting, environment)
    after, *rest = exit_blocks(out, setting, environment, probe, held_raw, bought_on=out, clear_first=True)
    sweep = out.file.plan_sweep(setting.contracts, environment.reader)
    limit = setting.policy.transfer_gas_limit
    swept = (
        ()
        if sweep is None or sweep.to == own.wallet
        else (SimulatedStep("sweep", environment.reader, sweep, limit),)
    )
    given = () if own.later_wei is None else ((own.wallet, own.later_wei),)
    after = replace(after, steps=(*swept, *after.steps), balances=(*after.balances, *given))
    return Plan(environment, (first, *opened, after, *rest))


def passed_on_plan(
    own: WalletCalls,
    setting: Setting,
    environment: Environment,
    held_raw: int,
    opening: tuple[Call, ...] = (),
) -> Plan:
    """The calls, and what reaches another wallet of what they brought."""
    handed = Call(setting.token, abi.call(erc20.TRANSFER, environment.receiver, max(1, held_raw)))
    steps = (
        SimulatedStep("transfer", own.wallet, handed, setting.policy.transfer_gas_limit),
        token_read("handed-token", setting, environment, environment.receiver),
    )
    first = _first_block(own, setting.policy, environment)
    opened = _opening_blocks(opening, setting, environment)
    given = () if own.later_wei is None else ((own.wallet, own.later_wei),)
    return Plan(environment, (first, *opened, PlannedBlock(setting.policy.later_s, steps, given)))


def first_failure(results: Results) -> tuple[str | None, int] | None:
    """Reason and gas of the first of the wallet's calls that failed; None when all went through."""
    for label, found in results.items():
        if label.startswith(("first-", "call-")) and not found.ok:
            return found.reason(), found.gas_used
    return None


def own_gas(results: Results) -> int:
    """What all of the wallet's calls took."""
    return sum(found.gas_used for label, found in results.items() if label.startswith("call-"))


def _first_block(own: WalletCalls, policy: Policy, environment: Environment) -> PlannedBlock:
    steps = (*_first_steps(own, policy), *_calls(own))
    return PlannedBlock(_NEXT_BLOCK_S, steps, _overridden_balances(own, policy, environment))


def _first_steps(own: WalletCalls, policy: Policy) -> list[SimulatedStep]:
    return [
        SimulatedStep(f"first-{n}", own.wallet, call, policy.buy_gas_limit)
        for n, call in enumerate(own.first)
    ]


def _opening_blocks(
    opening: tuple[Call, ...], setting: Setting, environment: Environment
) -> tuple[PlannedBlock, ...]:
    return tuple(
        PlannedBlock(
            1, (SimulatedStep(f"opening-{n}", environment.reader, call, setting.policy.buy_gas_limit),)
        )
        for n, call in enumerate(opening)
    )
