"""Who calls whom in a transaction, or in calls that are simulated, with names: as the node's tracer tells it,
and without one the steps that the calldata itself names. For pages."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.wallet.call_traces import CallTrace, TracedCall, trace_call, trace_transaction
from roundtrip.domain.base.errors import NodeFault
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
from roundtrip.services.support.money import ETH_DECIMALS, USDG_DECIMALS
from roundtrip.venues import erc20
from roundtrip.venues.base import Call, Contracts, Log
from roundtrip.venues.known_calls import FUNCTION_NAMES, list_steps

_ROLES = {
    "swap_router02": "the swap router",
    "universal_router": "the Universal Router",
    "permit2": "Permit2",
}
_MAX_CALLS = 6


class NamedPlace(msgspec.Struct, frozen=True):
    """An address. ``role``: what it is, in our words; ``symbol``: of the token that it is, or that trades
    there, written by a stranger. Both None: not known."""

    address: str
    role: str | None
    symbol: str | None


class MovedToken(msgspec.Struct, frozen=True):
    """A token's movement as the token tells it. ``amount`` None: its decimals are not known."""

    token: NamedPlace
    amount: str | None
    sender: NamedPlace
    recipient: NamedPlace


class NamedCall(msgspec.Struct, frozen=True):
    """``does``: the function's name where it is known, else its selector; None: it has no calldata. ``eth``:
    what goes with it; None: nothing. ``reason``: why it failed; None: it did not. ``steps``: what its
    calldata names, where no calls inside are known."""

    to: NamedPlace | None
    does: str | None
    is_known: bool
    runs_code_of_other: bool
    eth: str | None
    reason: str | None
    moved: list[MovedToken]
    steps: list[str]
    calls: list["NamedCall"]


class CallTree(msgspec.Struct, frozen=True):
    """``is_traced``: whether the calls inside are known, of the first call at least. ``left_out``: how many
    of them are not here."""

    sender: NamedPlace
    calls: list[NamedCall]
    is_traced: bool
    left_out: int


class SimulatedCall(msgspec.Struct, frozen=True):
    """A call of a wallet, as it was simulated."""

    to: str
    data: str = "0x"
    value_wei: str = "0"


class SimulatedCallsParams(msgspec.Struct, frozen=True):
    """A wallet's calls on the state after ``block``."""

    sender: str
    calls: list[SimulatedCall]
    block: int
    fund: bool = False


async def transaction_calls(ctx: Context, params: ExplainParams) -> UseCaseAnswer[CallTree]:
    """The calls of a transaction. Raises CallerFault (not_found) and NodeFault."""
    meter = Meter()
    sent, mined = await find_transaction(ctx, params, meter)
    trace = None if mined is None else await trace_transaction(ctx.node, sent.hash, meter)
    call = None if sent.to is None else Call(sent.to, "0x" + sent.data.hex(), sent.value_wei)
    tree = await _name(ctx, sent.sender, [(call, trace)], meter)
    ttl_ms = ctx.policy.node_fault_ttl_ms if mined is None else ctx.policy.answer_ttl_ms
    return UseCaseAnswer(tree, ttl_ms=ttl_ms, meter=meter)


async def simulated_calls(ctx: Context, params: SimulatedCallsParams) -> UseCaseAnswer[CallTree]:
    """The calls inside a wallet's first call: what runs inside a later one may depend on those before it,
    which no tracer runs."""
    meter, sender = Meter(), parse_address(params.sender)
    calls = [Call(parse_address(one.to), one.data, int(one.value_wei)) for one in params.calls[:_MAX_CALLS]]
    traces: list[CallTrace | None] = [None] * len(calls)
    if calls:
        traces[0] = await trace_call(ctx.node, sender, calls[0], params.block, params.fund, meter)
    return UseCaseAnswer(await _name(ctx, sender, list(zip(calls, traces, strict=True)), meter), meter=meter)


async def _name(
    ctx: Context, sender: Address, traced: list[tuple[Call | None, CallTrace | None]], meter: Meter
) -> CallTree:
    roots = [trace.root for _, trace in traced if trace is not None]
    addresses = {at: None for root in roots for at in _addresses(root)}
    addresses |= dict.fromkeys((sender, *(call.to for call, _ in traced if call is not None)))
    known = await load_named(ctx, list(addresses), list(addresses))
    await _ask_tokens(ctx, {log.address for root in roots for log in _transfers(root)}, known, meter)
    named = _Names(ctx.contracts, known)
    calls = [
        named.outline(call) if trace is None else named.call(trace.root)
        for call, trace in traced
        if call is not None or trace is not None
    ]
    left_out = sum(trace.left_out for _, trace in traced if trace is not None)
    return CallTree(named.place(sender), calls, bool(roots), left_out)


async def _ask_tokens(ctx: Context, tokens: set[Address], known: KnownEntities, meter: Meter) -> None:
    """Asks those of these tokens that the index has no name of, ``MAX_TOKENS`` at most."""
    head, limit = ctx.heads.current().block, ctx.policy.read_gas_limit
    unknown = sorted(tokens - known.labels.keys() - {ctx.contracts.weth, ctx.contracts.usdg})[:MAX_TOKENS]
    questions = [build_token_question(token, known, head, limit) for token in unknown]
    if not questions:
        return
    try:
        answers = await ctx.node.batch([call for question in questions for call in question.calls], meter)
    except NodeFault:
        return
    for question in questions:
        question.read(answers[: len(question.calls)])
        answers = answers[len(question.calls) :]


def _transfers(call: TracedCall) -> Iterator[Log]:
    yield from (log for log in call.logs if erc20.decode_transfer(log) is not None)
    for inner in call.calls:
        yield from _transfers(inner)


def _addresses(call: TracedCall) -> Iterator[Address]:
    if call.to is not None:
        yield call.to
    for log in call.logs:
        moved = erc20.decode_transfer(log)
        if moved is not None:
            yield from (moved.token, moved.sender, moved.recipient)
    for inner in call.calls:
        yield from _addresses(inner)


@dataclass(frozen=True, slots=True)
class _Names:
    contracts: Contracts
    known: KnownEntities

    def place(self, at: Address) -> NamedPlace:
        """The address with what is known of it."""
        market = self.known.markets.get(at)
        if market is not None:
            return NamedPlace(
                at, f"the {TRAITS[market.kind].label} of", self.known.label(market.token).symbol
            )
        if at in self.known.labels and at not in (self.contracts.weth, self.contracts.usdg):
            return NamedPlace(at, None, self.known.labels[at].symbol)
        if at == ZERO_ADDRESS:
            return NamedPlace(at, "nobody", None)
        return NamedPlace(at, find_role(at, self.contracts), None)

    def call(self, traced: TracedCall) -> NamedCall:
        """A call of a trace, with those inside it."""
        to = None if traced.to is None else self.place(traced.to)
        does, is_known = _function(traced.head) if not traced.kind.startswith("CREATE") else ("deploys", True)
        return NamedCall(
            to=to,
            does=does,
            is_known=is_known,
            runs_code_of_other=traced.kind in ("DELEGATECALL", "CALLCODE"),
            eth=plain_decimal(traced.value_wei, ETH_DECIMALS) if traced.value_wei else None,
            reason=traced.reason,
            moved=[] if traced.reason is not None else list(self._moves(traced.logs)),
            steps=[],
            calls=[self.call(inner) for inner in traced.calls],
        )

    def outline(self, call: Call | None) -> NamedCall:
        """A call by its calldata alone; None: it creates a contract."""
        if call is None:
            return NamedCall(None, "deploys", True, False, None, None, [], [], [])
        data = bytes.fromhex(call.data[2:])
        does, is_known = _function(data[:4])
        eth = plain_decimal(call.value_wei, ETH_DECIMALS) if call.value_wei else None
        return NamedCall(self.place(call.to), does, is_known, False, eth, None, [], list_steps(data), [])

    def _moves(self, logs: Iterable[Log]) -> Iterator[MovedToken]:
        for log in logs:
            moved = erc20.decode_transfer(log)
            if moved is None:
                continue
            decimals = self._decimals(moved.token)
            yield MovedToken(
                token=self.place(moved.token),
                amount=None if decimals is None else plain_decimal(moved.amount_raw, decimals),
                sender=self.place(moved.sender),
                recipient=self.place(moved.recipient),
            )

    def _decimals(self, token: Address) -> int | None:
        money = {self.contracts.weth: ETH_DECIMALS, self.contracts.usdg: USDG_DECIMALS}
        return money.get(token, self.known.label(token).decimals)


def _function(head: bytes) -> tuple[str | None, bool]:
    """The function's name and True; of an unknown one its selector and False; None: there is none."""
    selector = "0x" + head.hex()
    known = FUNCTION_NAMES.get(selector)
    return known or (selector if head else None), known is not None
