"""A wallet's own calls on the pinned block: run, and run again where the run itself told where to look."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from roundtrip.chain import wallet_calls
from roundtrip.chain.heads import Head
from roundtrip.chain.hints import Hints, read_hints
from roundtrip.chain.legs import Setting, gas_float
from roundtrip.chain.rpc import Meter, RpcCall, RpcError, quantity
from roundtrip.chain.simulate import Results, build, read
from roundtrip.chain.wallet_calls import Pair, WalletCalls
from roundtrip.domain.errors import NodeFault
from roundtrip.domain.evidence import Environment, Missing
from roundtrip.domain.trade import Moved, Ran
from roundtrip.domain.types import WEI_PER_ETH, Address, parse_address
from roundtrip.venues.base import Call

from . import watched
from .at_once import at_once
from .context import Context
from .gather import Opened, opened
from .money import is_money
from .watched import Look

PLENTY_WEI = 10**6 * WEI_PER_ETH
"""What a funded wallet holds: more than anybody trades with."""

_MOST_GUESSED = 2


@dataclass(frozen=True, slots=True)
class Case:
    """One wallet's calls. ``environment`` is a block like the next one, with the wallet in it."""

    ctx: Context
    head: Head
    environment: Environment
    setting: Setting
    wallet: Address
    calls: tuple[Call, ...]
    fund: bool
    meter: Meter


@dataclass(frozen=True, slots=True)
class Whole:
    """The run with all the gas and eth there is. ``balance_wei``: what the wallet really holds. ``look``:
    what was looked at in the end. ``opened``: trip 1 of the checks of tokens that come in or go, or why
    there is none."""

    ran: Ran | Missing
    look: Look
    balance_wei: int | Missing
    opened: dict[Address, Opened | Missing]


def received(case: Case, ran: Ran) -> list[Moved]:
    """The tokens that the wallet comes out with more of, money apart."""
    if ran.reverted():
        return []
    return [one for one in ran.moved if one.raw > 0 and not is_money(one.asset, case.ctx.contracts)]


def priced(case: Case, ran: Ran) -> list[Moved]:
    """The tokens whose price is asked for: that come, and that go while something comes."""
    come = any(one.raw > 0 for one in ran.moved)
    gone = [one for one in ran.moved if one.raw < 0 and not is_money(one.asset, case.ctx.contracts)]
    return received(case, ran) + (gone if come and not ran.reverted() else [])


async def whole_run(case: Case) -> Whole:
    """One trip where everything that moves is named in the calls, or known to trade where they lead; else
    more. Raises NodeFault when the first gave nothing usable."""
    book, contracts, most = case.ctx.heads.book, case.ctx.contracts, case.ctx.policy.most_received
    look = watched.look(case.calls, contracts, book)
    named = dict.fromkeys(token for call in case.calls for token in watched.indexed(call, book))
    # Calls of a token's own alone trade nothing.
    own_only = {call.to for call in case.calls} if len({call.to for call in case.calls}) == 1 else set()
    guessed = [token for token in named if token not in own_only][:_MOST_GUESSED]
    first, found = await _together(case, lambda meter: _first(case, look, meter), guessed)
    once, wider = first.once, first.wider(case, look)
    if wider is not look:
        hinted = [t for t in once.hints.incoming if t not in found and not is_money(t, contracts)]
        (once, wider), more = await _together(
            case, lambda meter: known_run(case, [plenty(case)], wider, meter), hinted[:most]
        )
        found |= more
    ran = once.proven(wider)
    late = [] if isinstance(ran, Missing) else [m.asset for m in priced(case, ran) if m.asset not in found]
    if late:
        _, more = await _together(case, _nothing, late[:most])
        found |= more
    return Whole(ran, wider, first.balance_wei, found)


R = TypeVar("R")


async def _together(
    case: Case, main: Callable[[Meter], Coroutine[Any, Any, R]], tokens: list[Address]
) -> tuple[R, dict[Address, Opened | Missing]]:
    """The run, and trip 1 of these tokens' checks, at once."""
    own, meters = Meter(), [Meter() for _ in tokens]
    opening = (_opened(case, token, meter) for token, meter in zip(tokens, meters, strict=True))
    ran, found = await at_once(main(own), at_once(*opening))
    case.meter.add(own, *meters)
    return ran, dict(zip(tokens, found, strict=True))


async def _opened(case: Case, token: Address, meter: Meter) -> Opened | Missing:
    try:
        return await opened(case.ctx, case.head, token, meter)
    except NodeFault as fault:
        return Missing("node", fault.message)


async def _nothing(meter: Meter) -> None:
    """No run."""


@dataclass(frozen=True, slots=True)
class Once:
    """One run as it was read. ``unread``: allowances that were asked and not told."""

    ran: Ran | Missing
    hints: Hints
    unread: frozenset[Pair]

    def proven(self, look: Look) -> Ran | Missing:
        """The run; Missing where something of it could not be looked at."""
        ran, hints = self.ran, self.hints
        if isinstance(ran, Missing) or ran.reverted():
            return ran
        if look.overlooked or hints.unread:
            return Missing("token", "the calls touch more than can be looked at")
        if not ran.unread.isdisjoint((*hints.incoming, *hints.outgoing)):
            return Missing("token", "a token that the calls move does not tell balances")
        if not self.unread.isdisjoint(hints.pairs):
            return Missing("token", "what the calls allow is not told by the token")
        return replace(ran, items=hints.items)


@dataclass(frozen=True, slots=True)
class _First:
    once: Once
    balance_wei: int | Missing
    touched: tuple[Address, ...]

    def wider(self, case: Case, look: Look) -> Look:
        return _wider(case, look, self.once, self.touched)


def _wider(case: Case, look: Look, once: Once, touched: tuple[Address, ...] = ()) -> Look:
    more = (*once.hints.outgoing, *once.hints.incoming, *once.hints.emitters, *touched)
    tokens = watched.strange(more, case.ctx.contracts, case.ctx.heads.book)
    return watched.widened(look, tokens, once.hints.pairs)


async def _first(case: Case, look: Look, meter: Meter) -> _First:
    own = plenty(case)
    pinned = {"blockHash": case.head.block.hash}
    plan = wallet_calls.run_plan(own, look.watched, case.setting, case.environment)
    asked = [
        RpcCall("eth_chainId", []),
        RpcCall("eth_getBalance", [case.wallet, pinned]),
        build(plan, case.head.block, case.ctx.dialect),
        *(_access_list(case, call, pinned) for call in case.calls),
    ]
    chain, balance, simulated, *lists = await case.ctx.node.batch(asked, meter)
    if isinstance(chain, RpcError) or quantity(chain) != case.ctx.chain_id:
        raise NodeFault(f"it does not answer for chain {case.ctx.chain_id}")
    results = read(plan, simulated, case.head.block, case.ctx.dialect)
    touched = tuple(address for one in lists for address in _touched(one))
    return _First(_read(case, own, look, results), _wei(balance), touched)


_MOST_RUNS = 3


async def known_run(case: Case, owns: list[WalletCalls], look: Look, meter: Meter) -> tuple[Once, Look]:
    """The calls run until nothing is told of that was not looked at. Of several ways to send them the first
    that goes through counts, as a wallet that estimates would send them."""
    once = Once(Missing("node", "it was not run"), Hints(), frozenset())
    for _ in range(_MOST_RUNS):
        plans = [wallet_calls.run_plan(own, look.watched, case.setting, case.environment) for own in owns]
        calls = [build(plan, case.head.block, case.ctx.dialect) for plan in plans]
        try:
            told = await case.ctx.node.batch(calls, meter)
        except NodeFault as fault:
            return Once(Missing("node", fault.message), Hints(), frozenset()), look
        runs = [
            _read(case, own, look, read(plan, one, case.head.block, case.ctx.dialect))
            for own, plan, one in zip(owns, plans, told, strict=True)
        ]
        once = next((run for run in runs if isinstance(run.ran, Ran) and not run.ran.reverted()), runs[0])
        wider = _wider(case, look, once)
        if wider is look:
            break
        look = wider
    return once, look


def _read(case: Case, own: WalletCalls, look: Look, results: Results | Missing) -> Once:
    ran = wallet_calls.read_run(results, own, look.watched, case.setting, case.environment, case.head.block)
    if isinstance(results, Missing):
        return Once(ran, Hints(), frozenset())
    hints = read_hints(results, own, case.ctx.contracts.permit2)
    return Once(ran, hints, wallet_calls.unread_pairs(results, look.watched))


def plenty(case: Case) -> WalletCalls:
    """The calls with all the eth and gas there is: what they take is seen so. What they come to is seen when
    they are run with what the wallet has, and would set."""
    limits = (case.ctx.policy.buy_gas_limit,) * len(case.calls)
    return WalletCalls(case.wallet, case.calls, limits, 2 * PLENTY_WEI)


def measured(case: Case, ran: Ran, balance_wei: int) -> list[WalletCalls]:
    """The calls with the gas a wallet would set, half as much again as they took, and then with more; and
    with what it holds, or as much as a node asks for where that is less. After them it is given what it
    needs to pay for a sell."""
    policy = case.ctx.policy
    took = tuple(min(policy.buy_gas_limit, call.gas_used * 3 // 2 + GAS_SLACK) for call in ran.calls)
    more = [limit for limit in policy.sell_gas_ladder if limit > max(took)]
    ladder = [took, *(tuple(max(limit, one) for one in took) for limit in more)]
    return [_as_sent(case, limits, ran, balance_wei) for limits in ladder]


def _as_sent(case: Case, limits: tuple[int, ...], ran: Ran, balance_wei: int) -> WalletCalls:
    env = case.environment
    own = WalletCalls(case.wallet, case.calls, limits, None)
    if case.fund:
        return replace(own, wallet_wei=2 * PLENTY_WEI, later_wei=2 * PLENTY_WEI)
    dearest_wei = own.most_wei(replace(env, max_fee_wei=env.max_fee_wei + MOST_TIP_WEI))
    left_wei = balance_wei + sum(ran.eth_changes_wei)
    left_wei -= sum(call.gas_used for call in ran.calls) * ran.gas_price_wei
    return replace(
        own,
        wallet_wei=None if balance_wei >= dearest_wei else dearest_wei,
        later_wei=max(0, left_wei) + gas_float(case.ctx.policy, env),
    )


def same(one: Ran, other: Ran) -> bool:
    """True when both moved and allowed the same."""

    def what(ran: Ran) -> object:
        oks = tuple(call.ok for call in ran.calls)
        return oks, {(moved.asset, moved.raw) for moved in ran.moved}, set(ran.allowances), ran.items

    return what(one) == what(other)


GAS_SLACK = 5000
"""What one write more costs; a call may meet another state in a later trip."""
MOST_TIP_WEI = 10**8
"""What a simulated wallet may tip (``environments``)."""


def _access_list(case: Case, call: Call, pinned: dict[str, str]) -> RpcCall:
    sent = {"from": case.wallet, "to": call.to, "data": call.data, "value": hex(call.value_wei)}
    return RpcCall("eth_createAccessList", [sent, pinned])


class _Entry(msgspec.Struct):
    address: str


class _AccessList(msgspec.Struct, rename="camel"):
    access_list: list[_Entry] = []


def _touched(answer: msgspec.Raw | RpcError) -> tuple[Address, ...]:
    """Every contract that a call touches, from nodes that tell; each call alone, on the pinned state."""
    if isinstance(answer, RpcError):
        return ()
    try:
        entries = msgspec.json.decode(answer, type=_AccessList).access_list
        return tuple(parse_address(entry.address) for entry in entries)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return ()


def _wei(answer: msgspec.Raw | RpcError) -> int | Missing:
    try:
        return quantity(answer)
    except NodeFault as fault:
        return Missing("node", fault.message)
