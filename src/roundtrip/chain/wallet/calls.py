"""Plans the simulation of a wallet's own calls, and reads what they move, what they approve, and whether the
wallet can sell the result. Pure.

Balances and allowances decide; a separate wallet reads them before and after.
"""

from dataclasses import dataclass, replace
from typing import Literal

from msgspec import structs

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
from roundtrip.domain.base.types import WEI_PER_ETH, ZERO_ADDRESS, Address, BlockRef, is_precompile
from roundtrip.domain.check.evidence import Environment, Missing, Probe
from roundtrip.domain.trade.judge import Allowance, BalanceChange, CallResult, RunResult
from roundtrip.venues import abi, erc20, permit2
from roundtrip.venues.base import Call

PLENTY_WEI = 10**6 * WEI_PER_ETH
"""The balance of a funded wallet: more than any trade needs."""
GAS_SLACK = 5000
"""The cost of one more storage write: a call may meet another state in a later trip."""
MAX_TIP_WEI = 10**8
"""The highest tip of a simulated wallet."""
_NEXT_BLOCK_S = 1
_SIZE_READER = "0x3d353b3d5260203df3"
"""Returns the size of the code of the account that it is called with: CALLDATALOAD(0), EXTCODESIZE,
MSTORE(0), RETURN(0, 32), with RETURNDATASIZE for 0."""


@dataclass(frozen=True, slots=True)
class WalletCalls:
    """Calls of one wallet, in order, each with its gas limit. ``wallet_wei``: the overridden eth balance;
    None: the real one. ``first``: calls before them that fund the wallet. ``later_wei``: the eth balance
    after the calls, for the gas of later ones; None: not overridden."""

    wallet: Address
    calls: tuple[Call, ...]
    gas_limits: tuple[int, ...]
    wallet_wei: int | None
    first: tuple[Call, ...] = ()
    later_wei: int | None = None

    def most_wei(self, environment: Environment) -> int:
        """The balance with which a node accepts all calls: their values, and gas at the highest price."""
        gas_wei = sum(self.gas_limits) * environment.max_fee_wei
        return gas_wei + sum(call.value_wei for call in self.calls)

    def as_sent(
        self, ran: RunResult, balance_wei: int, environment: Environment, policy: Policy
    ) -> "WalletCalls":
        """The calls with the wallet's real balance, or the least that a node accepts where that is more.
        After the calls, with the result ``ran``, the wallet also has the gas for a sell."""
        required_wei = self.most_wei(replace(environment, max_fee_wei=environment.max_fee_wei + MAX_TIP_WEI))
        rest_wei = balance_wei + sum(ran.eth_changes_wei)
        rest_wei -= sum(call.gas_used for call in ran.calls) * ran.gas_price_wei
        return replace(
            self,
            wallet_wei=None if balance_wei >= required_wei else required_wei,
            later_wei=max(0, rest_wei) + gas_float(policy, environment),
        )

    def with_plenty(self) -> "WalletCalls":
        """The calls of a wallet with plenty of eth."""
        return replace(self, wallet_wei=2 * PLENTY_WEI, later_wei=2 * PLENTY_WEI)


Via = Literal["erc20", "permit2", "all", "operator", "item", "claim"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A token and a spender with the allowance to read. ``via``: at the token, at Permit2, for a whole
    collection or vault, for one item of a collection, or for a claim (an ERC-6909 token). ``item``: its
    number."""

    token: Address
    spender: Address
    via: Via = "erc20"
    item: int = 0

    def call(self, owner: Address, permit2_address: Address) -> Call:
        """Asks for the allowance."""
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
    """The assets to read the balances and allowances of, before and after the calls."""

    tokens: tuple[Address, ...]
    pairs: tuple[Pair, ...]


# --- the run ---------------------------------------------------------------------------------------


def before_plan(
    wallet_calls: WalletCalls,
    watched: WatchedAssets,
    setting: Setting,
    environment: Environment,
    swept: tuple[Call, ...] = (),
) -> Plan:
    """Reads balances and allowances before the calls, in a separate simulation: a contract that is read and
    then called in the same one could detect the simulation."""
    steps = _sweep_steps(swept, setting, environment) + _first_steps(wallet_calls, setting.policy)
    steps += _reads("before", wallet_calls, watched, setting, environment)
    block = PlannedBlock(
        _NEXT_BLOCK_S, tuple(steps), _overridden_balances(wallet_calls, setting.policy, environment)
    )
    return Plan(environment, (block,))


def run_plan(
    wallet_calls: WalletCalls,
    watched: WatchedAssets,
    setting: Setting,
    environment: Environment,
    asked: tuple[Call, ...] = (),
    swept: tuple[Call, ...] = (),
) -> Plan:
    """The calls in the next block with the reads after them, and the later balances of each token. ``asked``:
    views called just before, as ``ask-0`` and so on. ``swept``: calls that first clear strangers' dust.
    ``read_run`` takes these results merged with those of ``before_plan``."""
    policy, reader = setting.policy, environment.reader
    steps = _sweep_steps(swept, setting, environment) + _first_steps(wallet_calls, policy)
    # Called by the wallet itself: a pool's hook may price the swaps of each wallet differently.
    steps += [
        SimulatedStep(f"ask-{n}", wallet_calls.wallet, call, policy.hook_gas_limit)
        for n, call in enumerate(asked)
    ]
    steps += [_eth_read("eth-0", wallet_calls, setting, environment)]
    sizes = _size_reads(wallet_calls, setting, environment)
    for n, step in enumerate(_call_steps(wallet_calls)):
        steps += [step, _eth_read(f"eth-{n + 1}", wallet_calls, setting, environment)]
        steps += [sizes[n]] if n in sizes else []
    steps += _reads("after", wallet_calls, watched, setting, environment)
    steps += _metadata_reads(watched, setting, environment)
    balances = _overridden_balances(wallet_calls, policy, environment)
    codes = ((_size_reader_at(environment), _SIZE_READER),) if sizes else ()
    blocks = [PlannedBlock(_NEXT_BLOCK_S, tuple(steps), balances, codes=codes)]
    passed_s = 0
    for delay_s in held_delays_s(policy):
        later = (
            SimulatedStep(
                f"held-{delay_s}-{n}", reader, _balance(token, wallet_calls.wallet), _limit(setting)
            )
            for n, token in enumerate(watched.tokens)
        )
        blocks.append(PlannedBlock(delay_s - passed_s, tuple(later)))
        passed_s = delay_s
    return Plan(environment, tuple(blocks))


def together(before: Results | Missing, run: Results | Missing) -> Results | Missing:
    """Merges the results of a run with those of its reads before; Missing where either is."""
    for results in (run, before):
        if isinstance(results, Missing):
            return results
    assert not isinstance(before, Missing)
    assert not isinstance(run, Missing)
    return {**before, **run}


def _sweep_steps(swept: tuple[Call, ...], setting: Setting, environment: Environment) -> list[SimulatedStep]:
    limit = setting.policy.transfer_gas_limit
    return [SimulatedStep(f"sweep-{n}", environment.reader, call, limit) for n, call in enumerate(swept)]


def held_delays_s(policy: Policy) -> tuple[int, int, int]:
    """The delays after which the balances are read again."""
    return policy.later_s, policy.hour_s, policy.day_s


def read_run(
    results: Results | Missing,
    wallet_calls: WalletCalls,
    watched: WatchedAssets,
    setting: Setting,
    env: Environment,
    block: BlockRef,
) -> RunResult | Missing:
    """The result of the run. ``unread``: the tokens with an unreadable balance, which may have moved."""
    if isinstance(results, Missing):
        return results
    eth = [_uint(results, f"eth-{n}") for n in range(len(wallet_calls.calls) + 1)]
    known = [wei for wei in eth if wei is not None]
    if len(known) < len(eth):
        return Missing("node", "reading the wallet's eth failed")
    if funding_failed(results):
        return Missing("node", "the simulation could not provide the money for it")
    calls = tuple(
        CallResult(step.ok, step.gas_used, None if step.ok else step.reason() or "")
        for step in (results[f"call-{n}"] for n in range(len(wallet_calls.calls)))
    )
    price_wei = min(env.max_fee_wei, env.base_fee_wei + env.tip_wei)
    # The change of the wallet's eth by each call, without its gas.
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
    sizes = [
        (wallet_calls.calls[n].to, _uint(results, read.label))
        for n, read in _size_reads(wallet_calls, setting, env).items()
    ]
    allowances = _allowances(results, wallet_calls.wallet, watched, block.timestamp_s + _NEXT_BLOCK_S)
    return RunResult(
        calls=calls,
        moved=tuple(change for change in moved if change.raw),
        allowances=tuple(allowances["raised"]),
        lowered=tuple(allowances["lowered"]),
        standing=tuple(allowances["standing"]),
        eth_changes_wei=eth_changes,
        gas_price_wei=price_wei,
        metadata={token: _read_token(results, n) for n, token in enumerate(watched.tokens)},
        unread=frozenset(unread),
        without_code=tuple(dict.fromkeys(target for target, size in sizes if size == 0)),
        code_unread=tuple(dict.fromkeys(target for target, size in sizes if size is None)),
    )


def unread_pairs(results: Results, watched: WatchedAssets) -> frozenset[Pair]:
    """The allowances that could not be read."""
    return frozenset(
        pair for n, pair in enumerate(watched.pairs) if _uint(results, f"after-pair-{n}") is None
    )


def _read_token(results: Results, n: int) -> tuple[int | None, bytes | None]:
    """The token's decimals and its undecoded symbol."""
    decimals, symbol = _uint(results, f"decimals-{n}"), results[f"symbol-{n}"]
    return decimals if decimals is not None and decimals < 256 else None, symbol.data if symbol.ok else None


def _allowances(
    results: Results, wallet: Address, watched: WatchedAssets, now_s: int
) -> dict[Literal["raised", "lowered", "standing"], list[Allowance]]:
    """The allowances that rose or last longer, that fell, and that stayed, without those of the wallet to
    itself and those that are and were zero."""
    by_change: dict[Literal["raised", "lowered", "standing"], list[Allowance]] = {
        "raised": [],
        "lowered": [],
        "standing": [],
    }
    for n, pair in enumerate(watched.pairs):
        before, after = (
            _read_allowance(results[f"{moment}-pair-{n}"], pair, now_s) for moment in ("before", "after")
        )
        if pair.spender in (wallet, ZERO_ADDRESS) or before is None or after is None:
            continue
        raw = None if pair.via in ("all", "operator") and after[0] else after[0]
        allowance = Allowance(
            pair.token, pair.spender, raw, pair.via, _covers_held(results, watched, pair, raw)
        )
        if after[0] and after > before and (after[0] > before[0] or pair.via == "permit2"):
            by_change["raised"].append(allowance)
        elif after[0] < before[0]:
            by_change["lowered"].append(allowance)
        elif after[0]:
            by_change["standing"].append(allowance)
    return by_change


def _covers_held(results: Results, watched: WatchedAssets, pair: Pair, raw: int | None) -> bool:
    """Whether an amount is no less than what the wallet holds of the token after the calls; False where it
    holds none, or that was not read."""
    if raw is None or pair.token not in watched.tokens or pair.via not in ("erc20", "permit2"):
        return False
    held_raw = _uint(results, f"after-token-{watched.tokens.index(pair.token)}")
    return bool(held_raw) and held_raw is not None and raw >= held_raw


def _read_allowance(step: StepResult, pair: Pair, now_s: int) -> tuple[int, int] | None:
    """The amount, and its expiry in seconds since 1970 (0: none). An expired allowance at Permit2 is zero."""
    raw = abi.uint_at(step.data, 0) if step.ok else None
    if raw is None:
        return None
    if pair.via == "item":
        return (1, 0) if raw == int(pair.spender, 16) else (0, 0)
    if pair.via != "permit2":
        return raw, 0
    until_s = abi.uint_at(step.data, 1) or 0
    return (raw, until_s) if until_s >= now_s else (0, 0)


def _reads(
    moment: str, wallet_calls: WalletCalls, watched: WatchedAssets, setting: Setting, environment: Environment
) -> list[SimulatedStep]:
    reader, limit, permit2_at = environment.reader, _limit(setting), setting.contracts.permit2
    steps = [
        SimulatedStep(f"{moment}-token-{n}", reader, _balance(token, wallet_calls.wallet), limit)
        for n, token in enumerate(watched.tokens)
    ]
    return steps + [
        SimulatedStep(f"{moment}-pair-{n}", reader, pair.call(wallet_calls.wallet, permit2_at), limit)
        for n, pair in enumerate(watched.pairs)
    ]


def _metadata_reads(
    watched: WatchedAssets, setting: Setting, environment: Environment
) -> list[SimulatedStep]:
    return [
        SimulatedStep(f"{name}-{n}", environment.reader, Call(token, head), _limit(setting))
        for n, token in enumerate(watched.tokens)
        for name, head in (("decimals", erc20.DECIMALS), ("symbol", erc20.SYMBOL))
    ]


def _call_steps(wallet_calls: WalletCalls) -> list[SimulatedStep]:
    return [
        SimulatedStep(f"call-{n}", wallet_calls.wallet, call, limit, includes_data_fee=True)
        for n, (call, limit) in enumerate(zip(wallet_calls.calls, wallet_calls.gas_limits, strict=True))
    ]


def _size_reads(
    wallet_calls: WalletCalls, setting: Setting, environment: Environment
) -> dict[int, SimulatedStep]:
    """By the number of each call with data: a read of the size of its target's code, without those of the
    network's own contracts and precompiles. It comes after the call, so that what an earlier call deploys
    counts: no call to an address without code gives it any."""
    known = {*setting.contracts.all_addresses(), setting.token}
    reader, reader_at = environment.reader, _size_reader_at(environment)
    return {
        n: SimulatedStep(f"code-{n}", reader, Call(reader_at, "0x" + call.to[2:].zfill(64)), _limit(setting))
        for n, call in enumerate(wallet_calls.calls)
        if call.data != "0x" and call.to not in known and not is_precompile(call.to)
    }


def _size_reader_at(environment: Environment) -> Address:
    """Where the code that reads sizes stands: an address that nothing else calls."""
    return Address("0x" + abi.keccak(bytes.fromhex(environment.reader[2:]) + b"size")[12:].hex())


def _overridden_balances(
    wallet_calls: WalletCalls, policy: Policy, environment: Environment
) -> tuple[tuple[Address, int], ...]:
    # The receiver of a transfer is no poorer than the wallet: a token may treat near-empty wallets
    # differently.
    others = (
        (environment.receiver, max(gas_float(policy, environment), wallet_calls.later_wei or 0)),
        (environment.reader, WEI_PER_ETH),
    )
    return (
        others
        if wallet_calls.wallet_wei is None
        else ((wallet_calls.wallet, wallet_calls.wallet_wei), *others)
    )


def _eth_read(
    label: str, wallet_calls: WalletCalls, setting: Setting, environment: Environment
) -> SimulatedStep:
    call = Call(setting.contracts.multicall3, abi.call(GET_ETH_BALANCE, wallet_calls.wallet))
    return SimulatedStep(label, environment.reader, call, _limit(setting))


def _balance(token: Address, holder: Address) -> Call:
    return Call(token, abi.call(erc20.BALANCE_OF, holder))


def _limit(setting: Setting) -> int:
    return setting.policy.read_gas_limit


def _uint(results: Results, label: str) -> int | None:
    step = results[label]
    return abi.uint_at(step.data, 0) if step.ok else None


# --- after the calls -------------------------------------------------------------------------------


def after_plan(
    wallet_calls: WalletCalls,
    out: VenuePlace,
    setting: Setting,
    environment: Environment,
    probe: Probe,
    held_raw: int,
    opening: tuple[Call, ...] = (),
) -> Plan:
    """The calls, and later the sell on ``out`` of a share of what they brought. ``opening``: calls that
    anyone may make in between to open that venue, each in its own block. Dust in the routers is cleared
    before the sell, which would otherwise count it as its output."""
    first = _first_block(wallet_calls, setting.policy, environment)
    opened = _opening_blocks(opening, setting, environment)
    after, *rest = exit_blocks(out, setting, environment, probe, held_raw, bought_on=out, clear_first=True)
    sweep = out.file.plan_sweep(setting.contracts, environment.reader)
    limit = setting.policy.transfer_gas_limit
    sweep_steps = (
        ()
        if sweep is None or sweep.to == wallet_calls.wallet
        else (SimulatedStep("sweep", environment.reader, sweep, limit),)
    )
    after = structs.replace(
        after, steps=(*sweep_steps, *after.steps), balances=(*after.balances, *_later_balance(wallet_calls))
    )
    return Plan(environment, (first, *opened, after, *rest))


def passed_on_plan(
    wallet_calls: WalletCalls,
    setting: Setting,
    environment: Environment,
    held_raw: int,
    opening: tuple[Call, ...] = (),
) -> Plan:
    """The calls, and later a transfer of what they brought to another wallet."""
    transfer = erc20.plan_transfer(setting.token, environment.receiver, max(1, held_raw))
    steps = (
        SimulatedStep("transfer", wallet_calls.wallet, transfer, setting.policy.hand_on_gas_limit),
        token_read("handed-token", setting, environment, environment.receiver),
    )
    first = _first_block(wallet_calls, setting.policy, environment)
    opened = _opening_blocks(opening, setting, environment)
    last = PlannedBlock(setting.policy.later_s, steps, _later_balance(wallet_calls))
    return Plan(environment, (first, *opened, last))


def _later_balance(wallet_calls: WalletCalls) -> tuple[tuple[Address, int], ...]:
    return () if wallet_calls.later_wei is None else ((wallet_calls.wallet, wallet_calls.later_wei),)


def funding_failed(results: Results) -> bool:
    """True where a call failed that buys what the wallet pays with."""
    return any(label.startswith("first-") and not step.ok for label, step in results.items())


def first_failure(results: Results) -> tuple[str | None, int] | None:
    """Reason and gas of the first of the wallet's calls that failed; None when all succeeded."""
    for label, step in results.items():
        if label.startswith(("first-", "call-")) and not step.ok:
            return step.reason(), step.gas_used
    return None


def own_gas(results: Results) -> int:
    """The gas that the wallet's calls used in all."""
    return sum(step.gas_used for label, step in results.items() if label.startswith("call-"))


def _first_block(wallet_calls: WalletCalls, policy: Policy, environment: Environment) -> PlannedBlock:
    steps = (*_first_steps(wallet_calls, policy), *_call_steps(wallet_calls))
    return PlannedBlock(_NEXT_BLOCK_S, steps, _overridden_balances(wallet_calls, policy, environment))


def _first_steps(wallet_calls: WalletCalls, policy: Policy) -> list[SimulatedStep]:
    return [
        SimulatedStep(f"first-{n}", wallet_calls.wallet, call, policy.buy_gas_limit)
        for n, call in enumerate(wallet_calls.first)
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
