"""Runs a wallet's own calls on the pinned block, and again where the run shows more assets to read."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from roundtrip.chain.rpc.client import CodeFault, Meter, RpcCall, RpcError, quantity
from roundtrip.chain.simulate.request import Plan, Results, build, read
from roundtrip.chain.wallet import calls as wallet_calls
from roundtrip.chain.wallet.calls import Pair, WalletCalls
from roundtrip.chain.wallet.event_hints import Hints, read_hints
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.trade.judge import BalanceChange, RunResult
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.token_check import start_check
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.money import is_money
from roundtrip.services.trade.touched_assets import (
    ESTIMATE_GAS,
    TOO_DEAR,
    AssetsToWatch,
    WalletCase,
    allow_gas,
    allow_used_gas,
    gas_of,
    is_cut_short,
)
from roundtrip.venues.base import Call

from . import touched_assets

R = TypeVar("R")

_MAX_GUESSED = 2
"""The most tokens named by the calls whose checks start before it is known whether they move."""


TOO_MANY_ASSETS = Missing("token", "the calls touch more assets than one simulation reads")


@dataclass(frozen=True, slots=True)
class FullRun:
    """The run with plenty of gas and eth. ``balance_wei``: what the wallet really holds. ``estimated_gas``:
    the node's estimate for the first call; 0: none. ``assets``: the assets that were read in the end.
    ``checks``: the buy rounds of tokens that come in or go, or why there is none."""

    ran: RunResult | Missing
    assets: AssetsToWatch
    balance_wei: int | Missing
    estimated_gas: int
    checks: dict[Address, BuyRoundResult | Missing]


def received_tokens(case: WalletCase, ran: RunResult) -> list[BalanceChange]:
    """The tokens, other than money, of which the wallet holds more now."""
    if ran.has_reverted():
        return []
    return [
        change for change in ran.moved if change.raw > 0 and not is_money(change.asset, case.ctx.contracts)
    ]


def tokens_to_price(case: WalletCase, ran: RunResult) -> list[BalanceChange]:
    """The tokens that need a price: those received, and those spent while something is received."""
    has_gain = any(change.raw > 0 for change in ran.moved)
    spent = [
        change for change in ran.moved if change.raw < 0 and not is_money(change.asset, case.ctx.contracts)
    ]
    return received_tokens(case, ran) + (spent if has_gain and not ran.has_reverted() else [])


async def run_calls(case: WalletCase) -> FullRun:
    """Runs the calls in one batch where they name everything that moves, or the index knows it; else in more.
    Raises NodeFault when the first batch has no usable answer."""
    contracts, max_tokens = case.ctx.contracts, case.ctx.policy.most_received
    watched = touched_assets.list_assets(case.calls, contracts, case.places)
    named = dict.fromkeys(
        token for call in case.calls for token in touched_assets.indexed_tokens(call, case.places)
    )
    # Calls to a token alone do not trade it.
    own_only = {call.to for call in case.calls} if len({call.to for call in case.calls}) == 1 else set()
    guessed = [token for token in named if token not in own_only][:_MAX_GUESSED]
    first, checks = await _run_with_checks(case, lambda meter: _run_first(case, watched, meter), guessed)
    case = replace(case, places=case.places.with_checks(checks.values()))
    # Once in the run, and twice in the access lists.
    case.gas.take(min(case.gas.remaining, 3 * gas_of(first.single.ran)))
    first_result = first.single.ran
    if isinstance(first_result, Missing) or first_result.has_reverted():
        return FullRun(first_result, watched, first.balance_wei, first.estimated_gas, checks)
    touched = await _touched_by_costly_calls(case, first_result)
    if touched is None:
        return FullRun(TOO_DEAR, watched, first.balance_wei, first.estimated_gas, checks)
    single, wider = first.single, _widen(case, watched, first.single, touched=(*first.touched, *touched))
    if wider is not watched:
        hinted = [t for t in single.hints.incoming if t not in checks and not is_money(t, contracts)]
        rerun, more_checks = await _run_with_checks(
            case,
            lambda meter: run_watched(case, [allow_used_gas(case, first_result)], wider, meter),
            hinted[:max_tokens],
        )
        single, wider, checks = rerun.single, rerun.assets, checks | more_checks
    result = single.proven(wider)
    unopened = (
        []
        if isinstance(result, Missing)
        else [change.asset for change in tokens_to_price(case, result) if change.asset not in checks]
    )
    if unopened:
        _, more_checks = await _run_with_checks(case, _run_nothing, unopened[:max_tokens])
        checks |= more_checks
    return FullRun(result, wider, first.balance_wei, first.estimated_gas, checks)


async def _run_with_checks(
    case: WalletCase, main: Callable[[Meter], Coroutine[Any, Any, R]], tokens: list[Address]
) -> tuple[R, dict[Address, BuyRoundResult | Missing]]:
    """Awaits ``main`` and the buy rounds of these tokens' checks at the same time."""
    run_meter, meters = Meter(), [Meter() for _ in tokens]
    checks = (_open_check(case, token, meter) for token, meter in zip(tokens, meters, strict=True))
    result, rounds = await at_once(main(run_meter), at_once(*checks))
    case.meter.add(run_meter, *meters)
    return result, dict(zip(tokens, rounds, strict=True))


async def _open_check(case: WalletCase, token: Address, meter: Meter) -> BuyRoundResult | Missing:
    try:
        return await start_check(case.ctx, case.head, token, meter, crowd=True)
    except NodeFault as fault:
        return Missing("node", fault.message)


async def _run_nothing(meter: Meter) -> None:
    """No run."""


@dataclass(frozen=True, slots=True)
class SingleRun:
    """The results of one run. ``unread``: allowances that the token did not answer."""

    ran: RunResult | Missing
    hints: Hints
    unread: frozenset[Pair]

    def through(self) -> bool:
        """True where all calls succeeded."""
        return isinstance(self.ran, RunResult) and not self.ran.has_reverted()

    def proven(self, assets: AssetsToWatch) -> RunResult | Missing:
        """The run with the items that it moved; Missing where an asset or allowance that it touches was not
        read. A run that failed moves nothing, and is returned as it is."""
        result, hints = self.ran, self.hints
        if isinstance(result, Missing) or result.has_reverted():
            return result
        if assets.overlooked or hints.unread:
            return TOO_MANY_ASSETS
        if not result.unread.isdisjoint((*hints.incoming, *hints.outgoing)):
            return Missing("token", "a token that the calls move returns no balances")
        if not self.unread.isdisjoint(hints.pairs):
            return Missing("token", "a token does not return the allowances that the calls set")
        return replace(result, items=hints.items, collections=hints.collections)


@dataclass(frozen=True, slots=True)
class _FirstRun:
    single: SingleRun
    balance_wei: int | Missing
    touched: tuple[Address, ...]
    estimated_gas: int


def _widen(
    case: WalletCase, assets: AssetsToWatch, *runs: SingleRun, touched: tuple[Address, ...] = ()
) -> AssetsToWatch:
    hints = [run.hints for run in runs]
    addresses = [address for hint in hints for address in (*hint.outgoing, *hint.incoming, *hint.emitters)]
    tokens = touched_assets.drop_known((*addresses, *touched), case.ctx.contracts, case.places)
    return touched_assets.widen_assets(assets, tokens, tuple(pair for hint in hints for pair in hint.pairs))


async def _run_first(case: WalletCase, assets: AssetsToWatch, meter: Meter) -> _FirstRun:
    calls = allow_gas(case, case.first_gas())
    pinned = {"blockHash": case.head.block.hash}
    read_plan, run_plan = _plans(case, calls, assets)
    requests = [
        RpcCall("eth_chainId", []),
        RpcCall("eth_getBalance", [case.wallet, pinned]),
        _estimate(case),
        *(build(plan, case.head.block, case.head.known_dialect()) for plan in (read_plan, run_plan)),
        *(_access_list(case, call, pinned, case.first_gas()) for call in case.calls),
    ]
    chain, balance, estimate, *answers = await case.ctx.node.batch(requests, meter)
    if isinstance(chain, RpcError) or quantity(chain) != case.ctx.chain_id:
        raise NodeFault(f"the node does not answer for chain {case.ctx.chain_id}")
    reads = _results(case, read_plan, answers[0])
    run = _read(case, calls, assets, wallet_calls.together(reads, _results(case, run_plan, answers[1])))
    touched = tuple(address for answer in answers[2:] for address in _touched_contracts(answer))
    if isinstance(run.ran, RunResult) and run.ran.has_reverted():
        run = await _with_more_gas(case, assets, reads, meter)
    gas = _number(estimate)
    return _FirstRun(run, _number(balance), touched, gas if isinstance(gas, int) else 0)


async def _with_more_gas(
    case: WalletCase, assets: AssetsToWatch, reads: Results | Missing, meter: Meter
) -> SingleRun:
    """Repeats the run with the full gas limit. ``reads``: the reads before the calls."""
    calls = allow_gas(case, case.most_gas())
    _, run_plan = _plans(case, calls, assets)
    (answer,) = await case.ctx.node.batch(
        [build(run_plan, case.head.block, case.head.known_dialect())], meter
    )
    run = _read(case, calls, assets, wallet_calls.together(reads, _results(case, run_plan, answer)))
    cut_short = isinstance(run.ran, RunResult) and is_cut_short(run.ran, case)
    return replace(run, ran=TOO_DEAR) if cut_short else run


async def _touched_by_costly_calls(case: WalletCase, ran: RunResult) -> tuple[Address, ...] | None:
    """The contracts that calls touch which use more than two thirds of the gas that their access lists had.
    None: the gas budget is spent."""
    min_gas = case.first_gas() * 2 // 3
    pairs = zip(case.calls, ran.calls, strict=True)
    costly = [(call, outcome.gas_used) for call, outcome in pairs if outcome.gas_used > min_gas]
    if not costly:
        return ()
    if not case.gas.take(3 * sum(used for _, used in costly)):
        return None
    pinned = {"blockHash": case.head.block.hash}
    requests = [_access_list(case, call, pinned, used * 3 // 2) for call, used in costly]
    return tuple(
        address
        for answer in await case.ctx.node.batch(requests, case.meter)
        for address in _touched_contracts(answer)
    )


def _plans(case: WalletCase, calls: WalletCalls, assets: AssetsToWatch) -> tuple[Plan, Plan]:
    """The plans of the reads before the calls and of the calls."""
    inputs = (calls, assets.watched, case.setting, case.environment)
    return wallet_calls.before_plan(*inputs), wallet_calls.run_plan(*inputs)


def _results(case: WalletCase, plan: Plan, answer: msgspec.Raw | RpcError) -> Results | Missing:
    return read(plan, answer, case.head.block, case.head.known_dialect())


_MAX_RUNS = 3
"""The most runs, where each one touches assets that were not read."""


@dataclass(frozen=True, slots=True)
class WalletRun:
    """A run with all its assets read, or Missing, and the calls as they were sent."""

    single: SingleRun
    calls: WalletCalls
    assets: AssetsToWatch


async def run_watched(
    case: WalletCase, variants: list[WalletCalls], assets: AssetsToWatch, meter: Meter
) -> WalletRun:
    """Runs the calls, again with more assets where the run touched unwatched ones. Of several variants the
    first that succeeds counts, as a wallet that estimates gas would send it. The result is Missing where
    another successful variant has other effects."""
    chosen, calls = SingleRun(Missing("node", "the calls were not run"), Hints(), frozenset()), variants[0]
    for _ in range(_MAX_RUNS):
        if not case.gas.take(sum(sum(variant.gas_limits) for variant in variants)):
            return WalletRun(SingleRun(TOO_DEAR, Hints(), frozenset()), calls, assets)
        before, _ = _plans(case, variants[0], assets)
        plans = [before, *(_plans(case, variant, assets)[1] for variant in variants)]
        requests = [build(plan, case.head.block, case.head.known_dialect()) for plan in plans]
        batch: list[msgspec.Raw | RpcError] = []
        for answers in await case.ctx.node.batches(_requests(requests, assets), meter):
            if isinstance(answers, NodeFault):
                return WalletRun(SingleRun(_missing_of(answers), Hints(), frozenset()), calls, assets)
            batch += answers
        reads, *results = (_results(case, plan, answer) for plan, answer in zip(plans, batch, strict=True))
        runs = [
            _read(case, variant, assets, wallet_calls.together(reads, result))
            for variant, result in zip(variants, results, strict=True)
        ]
        chosen, calls = _first_through(runs, variants)
        wider = _widen(case, assets, *(run for run in runs if run.through()))
        if wider is assets:
            return WalletRun(chosen, calls, assets)
        assets = wider
    # Each run touched something that it did not read, the last one, too.
    return WalletRun(replace(chosen, ran=TOO_MANY_ASSETS), calls, assets)


_MAX_READS_TOGETHER = 24


def _requests(calls: list[RpcCall], assets: AssetsToWatch) -> list[list[RpcCall]]:
    """The calls by requests: one each for runs with many reads, which together exceed a megabyte."""
    reads_much = len(assets.watched.tokens) + len(assets.watched.pairs) > _MAX_READS_TOGETHER
    return [[call] for call in calls] if reads_much else [calls]


def _missing_of(fault: NodeFault) -> Missing:
    """The fault as Missing. The calls are the cause of an answer that is too large to read."""
    return Missing("token" if isinstance(fault, CodeFault) else "node", fault.message)


def _first_through(runs: list[SingleRun], variants: list[WalletCalls]) -> tuple[SingleRun, WalletCalls]:
    successful = [(run, calls) for run, calls in zip(runs, variants, strict=True) if run.through()]
    if not successful:
        return runs[0], variants[0]
    first, calls = successful[0]
    if all(
        isinstance(run.ran, RunResult)
        and isinstance(first.ran, RunResult)
        and same_effects(first.ran, run.ran)
        for run, _ in successful
    ):
        return first, calls
    return replace(first, ran=Missing("token", "with another gas limit the calls do something else")), calls


def _read(
    case: WalletCase, calls: WalletCalls, assets: AssetsToWatch, results: Results | Missing
) -> SingleRun:
    result = wallet_calls.read_run(
        results, calls, assets.watched, case.setting, case.environment, case.head.block
    )
    if isinstance(results, Missing):
        return SingleRun(result, Hints(), frozenset())
    hints = read_hints(results, calls, case.ctx.contracts.permit2)
    if isinstance(result, RunResult):
        result = result.with_given_again({(pair.token, pair.spender, pair.via) for pair in hints.pairs})
    return SingleRun(result, hints, wallet_calls.unread_pairs(results, assets.watched))


def sent_elsewhere_wei(calls: tuple[Call, ...], result: RunResult) -> int:
    """The eth that calls without data send, where other calls pay for what is bought: no part of a swap.
    0 where every call is of one kind."""
    pairs = list(zip(calls, result.eth_changes_wei, strict=True))
    sent_wei = sum(max(0, -change) for call, change in pairs if call.data == "0x")
    return sent_wei if any(call.data != "0x" for call, _ in pairs) else 0


def same_effects(first: RunResult, second: RunResult) -> bool:
    """True when in both runs the same calls succeeded, moved and allowed the same."""

    def effects(ran: RunResult) -> object:
        oks = tuple(call.ok for call in ran.calls)
        return oks, {(moved.asset, moved.raw) for moved in ran.moved}, set(ran.allowances), ran.items

    return effects(first) == effects(second)


def _estimate(case: WalletCase) -> RpcCall:
    """Asks for the node's gas estimate of the first call, at the gas price that the wallet would pay."""
    call, fee_wei = case.calls[0], case.environment.max_fee_wei
    sent = {"maxFeePerGas": hex(fee_wei), **_sent(case, call, ESTIMATE_GAS)}
    return RpcCall("eth_estimateGas", [sent, hex(case.head.block.number)])


def _sent(case: WalletCase, call: Call, gas: int) -> dict[str, str]:
    return {
        "from": case.wallet,
        "to": call.to,
        "data": call.data,
        "value": hex(call.value_wei),
        "gas": hex(gas),
    }


def _access_list(case: WalletCase, call: Call, pinned: dict[str, str], gas: int) -> RpcCall:
    sent = _sent(case, call, gas)
    if case.head.known_dialect().drops_tips:
        # Nitro lists nothing for a wallet that could not pay for the call.
        sent["maxFeePerGas"] = "0x0"
    return RpcCall("eth_createAccessList", [sent, pinned])


class _AccessListEntry(msgspec.Struct):
    address: str


class _AccessList(msgspec.Struct, rename="camel"):
    access_list: list[_AccessListEntry] = []


def _touched_contracts(answer: msgspec.Raw | RpcError) -> tuple[Address, ...]:
    """The contracts that a call touches, alone on the pinned state; empty where the node
    answers no access list, or none that can be read."""
    if isinstance(answer, RpcError):
        return ()
    try:
        entries = msgspec.json.decode(answer, type=_AccessList).access_list
        return tuple(parse_address(entry.address) for entry in entries)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return ()


def _number(answer: msgspec.Raw | RpcError) -> int | Missing:
    try:
        return quantity(answer)
    except NodeFault as fault:
        return Missing("node", fault.message)
