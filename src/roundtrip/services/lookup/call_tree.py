"""Who calls whom in a transaction, or in calls that are simulated, with names: as the node's tracer tells it,
and without one the steps that the calldata itself names. For pages."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.wallet.call_traces import CallTrace, TracedCall, Untold, trace_call, trace_transaction
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.events import Transferred
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, parse_address, plain_decimal
from roundtrip.domain.base.venue import TRAITS
from roundtrip.services.lookup.entities import (
    MAX_TOKENS,
    KnownEntities,
    build_token_question,
    find_role,
    load_named,
)
from roundtrip.services.lookup.explain import ExplainParams, find_transaction
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import present_token
from roundtrip.services.support.money import ETH_DECIMALS, USDG_DECIMALS
from roundtrip.venues.base import Call, Contracts
from roundtrip.venues.known_calls import FUNCTION_NAMES, list_steps

_MAX_CALLS = 6


class NamedPlace(msgspec.Struct, frozen=True):
    """An address. ``role``: what it is, in our words; None: not known. ``token``: the token that it is, or
    that trades there; None: none is known. ``symbol``: of that token, written by a stranger, cleaned; None:
    not known."""

    address: str
    role: str | None = None
    token: str | None = None
    symbol: str | None = None


class MovedToken(msgspec.Struct, frozen=True):
    """A token's movement as the token tells it. ``amount`` None: its decimals are not known."""

    token: NamedPlace
    amount: str | None
    sender: NamedPlace
    recipient: NamedPlace


class NamedCall(msgspec.Struct, frozen=True):
    """``does``: the function's name where it is known, else its selector; None: it has no calldata. ``eth``:
    what goes with it; None: nothing. ``reason``: why it failed; None: it did not. ``is_undone``: it ran
    inside one that failed: nothing moved by it, and no eth went with it. ``steps``: what its calldata names,
    where no calls inside are known."""

    to: NamedPlace | None
    does: str | None
    is_known: bool
    runs_code_of_other: bool
    eth: str | None
    reason: str | None
    is_undone: bool
    moved: list[MovedToken]
    steps: list[str]
    calls: list["NamedCall"]


class CallTree(msgspec.Struct, frozen=True):
    """``inside``: whether the calls inside are known, of the first call at least; else why not. ``left_out``:
    how many of them are not here; ``moves_left_out``: how many movements of tokens."""

    sender: NamedPlace
    calls: list[NamedCall]
    inside: Literal["told"] | Untold
    left_out: int
    moves_left_out: int


class VisitorsCall(msgspec.Struct, frozen=True):
    """A call of a wallet, as it was simulated."""

    to: str
    data: str = "0x"
    value_wei: str = "0"


class SimulatedCallsParams(msgspec.Struct, frozen=True):
    """A wallet's calls on the state after ``block``."""

    sender: str
    calls: list[VisitorsCall]
    block: int
    fund: bool = False


async def transaction_calls(ctx: Context, params: ExplainParams) -> UseCaseAnswer[CallTree]:
    """The calls of a transaction. Raises CallerFault (not_found) and NodeFault."""
    meter = Meter()
    sent, mined = await find_transaction(ctx, params, meter)
    trace = "not_told" if mined is None else await trace_transaction(ctx.node, sent.hash, meter)
    call = None if sent.to is None else Call(sent.to, "0x" + sent.data.hex(), sent.value_wei)
    tree = await _name(ctx, sent.sender, [(call, trace)], meter)
    ttl_ms = ctx.policy.node_fault_ttl_ms if mined is None else ctx.policy.answer_ttl_ms
    return UseCaseAnswer(tree, ttl_ms=ttl_ms, meter=meter)


async def simulated_calls(ctx: Context, params: SimulatedCallsParams) -> UseCaseAnswer[CallTree]:
    """The calls inside a wallet's first call: what runs inside a later one may depend on those before it,
    which no tracer runs."""
    meter, sender = Meter(), parse_address(params.sender)
    calls = [Call(parse_address(one.to), one.data, int(one.value_wei)) for one in params.calls[:_MAX_CALLS]]
    traces: list[CallTrace | Untold] = ["not_told"] * len(calls)
    if calls:
        # As much as the simulation gives a call at most.
        gas = min(ctx.policy.buy_gas_limit, ctx.policy.trade_gas_budget // len(params.calls))
        traces[0] = await trace_call(ctx.node, sender, calls[0], gas, params.block, params.fund, meter)
    return UseCaseAnswer(await _name(ctx, sender, list(zip(calls, traces, strict=True)), meter), meter=meter)


async def _name(
    ctx: Context, sender: Address, traced: list[tuple[Call | None, CallTrace | Untold]], meter: Meter
) -> CallTree:
    traces = [trace for _, trace in traced if isinstance(trace, CallTrace)]
    addresses = dict.fromkeys((sender, *(call.to for call, _ in traced if call is not None)))
    addresses |= {at: None for trace in traces for at in _addresses(trace.root)}
    known = await load_named(ctx, list(addresses), list(addresses))
    await _ask_tokens(ctx, {token for trace in traces for token in _tokens(trace.root)}, known, meter)
    named = Names(ctx.contracts, known)
    calls = [
        named.call(trace.root) if isinstance(trace, CallTrace) else named.outline(call)
        for call, trace in traced
    ]
    why = next((trace for _, trace in traced if not isinstance(trace, CallTrace)), None)
    return CallTree(
        sender=named.place(sender),
        calls=calls,
        inside="told" if traces or why is None else why,
        left_out=sum(trace.left_out for trace in traces),
        moves_left_out=sum(trace.moves_left_out for trace in traces),
    )


async def _ask_tokens(ctx: Context, tokens: set[Address], known: KnownEntities, meter: Meter) -> None:
    """Asks those of these tokens that the index has no name of, ``MAX_TOKENS`` at most. Without an answer
    they stay unnamed."""
    head, limit = ctx.heads.current().block, ctx.policy.read_gas_limit
    unknown = sorted(tokens - known.labels.keys() - {ctx.contracts.weth, ctx.contracts.usdg})[:MAX_TOKENS]
    questions = [build_token_question(token, known, head, limit) for token in unknown]
    if not questions:
        return
    try:
        answers = await ctx.node.batch([call for question in questions for call in question.calls], meter)
    except (NodeFault, ServiceFull):
        return
    for question in questions:
        question.read(answers[: len(question.calls)])
        answers = answers[len(question.calls) :]


def _tokens(call: TracedCall) -> Iterator[Address]:
    yield from (moved.token for moved in call.moves)
    for inner in call.calls:
        yield from _tokens(inner)


def _addresses(call: TracedCall) -> Iterator[Address]:
    if call.to is not None:
        yield call.to
    for moved in call.moves:
        yield from (moved.token, moved.sender, moved.recipient)
    for inner in call.calls:
        yield from _addresses(inner)


@dataclass(frozen=True, slots=True)
class Names:
    """Names places and calls with what is known."""

    contracts: Contracts
    known: KnownEntities

    def place(self, at: Address) -> NamedPlace:
        """The address with what is known of it. What a stranger wrote names none of the network's own."""
        market = self.known.markets.get(at)
        if market is not None:
            token = present_token(self.known.label(market.token))
            return NamedPlace(at, f"the {TRAITS[market.kind].label} of", token.address, token.symbol)
        role = "nobody" if at == ZERO_ADDRESS else find_role(at, self.contracts)
        if role is not None or at not in self.known.labels:
            return NamedPlace(at, role)
        return NamedPlace(at, None, at, present_token(self.known.labels[at]).symbol)

    def call(self, traced: TracedCall) -> NamedCall:
        """A call of a trace, with those inside it."""
        to = None if traced.to is None else self.place(traced.to)
        does, is_known = _function(traced.head) if not traced.kind.startswith("CREATE") else ("deploys", True)
        borrows = traced.kind in ("DELEGATECALL", "CALLCODE")
        return NamedCall(
            to=to,
            does=does,
            is_known=is_known,
            runs_code_of_other=borrows,
            # Borrowed code runs with the eth that came before: tracers name it again.
            eth=_eth(0 if traced.is_undone or borrows else traced.value_wei),
            reason=traced.reason,
            is_undone=traced.is_undone,
            moved=[self._move(moved) for moved in traced.moves],
            steps=[],
            calls=[self.call(inner) for inner in traced.calls],
        )

    def outline(self, call: Call | None) -> NamedCall:
        """A call by its calldata alone; None: it creates a contract."""
        if call is None:
            return NamedCall(None, "deploys", True, False, None, None, False, [], [], [])
        data = bytes.fromhex(call.data[2:])
        does, is_known = _function(data[:4])
        return NamedCall(
            self.place(call.to), does, is_known, False, _eth(call.value_wei), None, False,
            [], list_steps(data), [],
        )  # fmt: skip

    def _move(self, moved: Transferred) -> MovedToken:
        decimals = self._decimals(moved.token)
        return MovedToken(
            token=self.place(moved.token),
            amount=None if decimals is None else plain_decimal(moved.amount_raw, decimals),
            sender=self.place(moved.sender),
            recipient=self.place(moved.recipient),
        )

    def _decimals(self, token: Address) -> int | None:
        money = {self.contracts.weth: ETH_DECIMALS, self.contracts.usdg: USDG_DECIMALS}
        return money.get(token, self.known.label(token).decimals)


def _eth(wei: int) -> str | None:
    return plain_decimal(wei, ETH_DECIMALS) if wei else None


def _function(head: bytes) -> tuple[str | None, bool]:
    """The function's name and True; of an unknown one its selector and False; None: there is none."""
    selector = "0x" + head.hex()
    known = FUNCTION_NAMES.get(selector)
    return known or (selector if head else None), known is not None
