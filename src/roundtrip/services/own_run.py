"""A wallet's own calls on the pinned block: run, and run again where the run itself told where to look."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from roundtrip.chain import wallet_calls
from roundtrip.chain.heads import Head
from roundtrip.chain.legs import Setting, gas_float
from roundtrip.chain.rpc import Meter, RpcCall, RpcError, quantity
from roundtrip.chain.simulate import Results, build, read
from roundtrip.chain.wallet_calls import Hints, WalletCalls, Watched
from roundtrip.domain.errors import NodeFault
from roundtrip.domain.evidence import Environment, Missing
from roundtrip.domain.trade import Moved, Ran
from roundtrip.domain.types import WEI_PER_ETH, Address, parse_address
from roundtrip.venues.base import Call

from . import watched
from .context import Context
from .gather import Opened, opened
from .money import is_money

PLENTY_WEI = 10**6 * WEI_PER_ETH
"""What a funded wallet holds: more than anybody trades with."""

_MOST_GUESSED = 2
_MOST_ACCESS_BYTES = 100_000


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
    """The run. ``balance_wei``: what the wallet really holds. ``opened``: trip 1 of the checks of tokens
    that come in, or why there is none."""

    ran: Ran | Missing
    balance_wei: int | Missing
    opened: dict[Address, Opened | Missing]

    def received(self, case: Case) -> list[Moved]:
        """The tokens that the wallet comes out with more of, money apart."""
        if isinstance(self.ran, Missing) or self.ran.reverted():
            return []
        contracts = case.ctx.contracts
        return [one for one in self.ran.moved if one.raw > 0 and not is_money(one.asset, contracts)]


async def whole_run(case: Case) -> Whole:
    """One trip where everything that moves is named in the calls, or known to trade where they lead; else
    more. Raises NodeFault when the first gave nothing usable."""
    book, contracts, most = case.ctx.heads.book, case.ctx.contracts, case.ctx.policy.most_received
    look = watched.look(case.calls, contracts, book)
    targets = {call.to for call in case.calls}
    named = dict.fromkeys(token for call in case.calls for token in watched.indexed(call, book))
    guessed = [token for token in named if token not in targets][:_MOST_GUESSED]
    first, found = await _together(case, lambda meter: _first(case, look.watched, meter), guessed)
    ran = first.ran
    more_tokens = watched.strange((*first.hints.emitters, *first.touched), contracts, book)
    wider = watched.widened(look, more_tokens, first.hints.pairs)
    if wider is not look:
        incoming = [t for t in first.hints.incoming if t not in found and not is_money(t, contracts)]
        ran, more = await _together(case, lambda meter: _again(case, wider.watched, meter), incoming[:most])
        found |= more
    if wider.overlooked and not isinstance(ran, Missing) and not ran.reverted():
        ran = Missing("token", "the calls touch more contracts than are looked at")
    whole = Whole(ran, first.balance_wei, found)
    late = [one.asset for one in whole.received(case) if one.asset not in found]
    if late:
        _, more = await _together(case, _nothing, late[:most])
        found |= more
    return whole


R = TypeVar("R")


async def _together(
    case: Case, main: Callable[[Meter], Awaitable[R]], tokens: list[Address]
) -> tuple[R, dict[Address, Opened | Missing]]:
    """The run, and trip 1 of these tokens' checks, at once."""
    own, meters = Meter(), [Meter() for _ in tokens]
    opening = (_opened(case, token, meter) for token, meter in zip(tokens, meters, strict=True))
    ran, found = await asyncio.gather(main(own), asyncio.gather(*opening))
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
class _First:
    ran: Ran | Missing
    hints: Hints
    balance_wei: int | Missing
    touched: tuple[Address, ...]


async def _first(case: Case, look: Watched, meter: Meter) -> _First:
    own = plenty(case)
    pinned = {"blockHash": case.head.block.hash}
    plan = wallet_calls.run_plan(own, look, case.setting, case.environment)
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
    hints = Hints((), (), ())
    if not isinstance(results, Missing):
        hints = wallet_calls.read_hints(results, own, case.ctx.contracts.permit2)
    touched = tuple(address for one in lists for address in _touched(one))
    return _First(_read(case, own, look, results), hints, _wei(balance), touched)


async def _again(case: Case, look: Watched, meter: Meter) -> Ran | Missing:
    own = plenty(case)
    plan = wallet_calls.run_plan(own, look, case.setting, case.environment)
    try:
        (simulated,) = await case.ctx.node.batch([build(plan, case.head.block, case.ctx.dialect)], meter)
    except NodeFault as fault:
        return Missing("node", fault.message)
    return _read(case, own, look, read(plan, simulated, case.head.block, case.ctx.dialect))


def _read(case: Case, own: WalletCalls, look: Watched, results: Results | Missing) -> Ran | Missing:
    return wallet_calls.read_run(results, own, look, case.setting, case.environment, case.head.block)


def plenty(case: Case) -> WalletCalls:
    """The calls with all the eth and gas there is. Whether the wallet could have paid is seen from what each
    call took: a limit set too high would refuse calls that a wallet can well send."""
    limits = (case.ctx.policy.buy_gas_limit,) * len(case.calls)
    return WalletCalls(case.wallet, case.calls, limits, 2 * PLENTY_WEI)


def measured(case: Case, ran: Ran, balance_wei: int) -> WalletCalls:
    """The calls with the gas a wallet would set, half as much again as they took, and what it holds."""
    limits = tuple(
        min(case.ctx.policy.buy_gas_limit, call.gas_used * 3 // 2 + GAS_SLACK) for call in ran.calls
    )
    own = WalletCalls(case.wallet, case.calls, limits, 0)
    gas_wei = gas_float(case.ctx.policy, case.environment) + own.most_gas_wei(case.environment)
    held_wei = 2 * PLENTY_WEI if case.fund else balance_wei
    return replace(own, wallet_wei=held_wei + gas_wei)


GAS_SLACK = 5000
"""What one write more costs; a call may meet another state in a later trip."""


def _access_list(case: Case, call: Call, pinned: dict[str, str]) -> RpcCall:
    sent = {"from": case.wallet, "to": call.to, "data": call.data, "value": hex(call.value_wei)}
    return RpcCall("eth_createAccessList", [sent, pinned])


class _Entry(msgspec.Struct):
    address: str


class _AccessList(msgspec.Struct, rename="camel"):
    access_list: list[_Entry] = []


def _touched(answer: msgspec.Raw | RpcError) -> tuple[Address, ...]:
    """Every contract that a call touches, from nodes that tell; each call alone, on the pinned state."""
    if isinstance(answer, RpcError) or len(bytes(answer)) > _MOST_ACCESS_BYTES:
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
