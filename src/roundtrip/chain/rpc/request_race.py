"""One request while several nodes are asked: what is sent, what is settled, and by whom. Nothing waits."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from roundtrip.domain.base.errors import NodeFault

from .client import NO_ANSWER, Meter, NodeAnswerTooLarge, NodeRefused, RpcCall, RpcError, runs_code
from .endpoints import SIMULATES, Moment, NodeEndpoint
from .errors import Concern, concern

Answer = msgspec.Raw | RpcError
LIMITED = "it limits its calls"
_OK, _TOO_LARGE, _UNAVAILABLE = 200, 413, 503
_LIMITING = (403, 429)
_HEAVY = frozenset({SIMULATES, "eth_getLogs"})


@dataclass(slots=True)
class Runner:
    """One node being asked for some of a request's calls, by their numbers. ``late_s``: when waiting for this
    one alone ends. ``beside``: another was being asked already. ``guards``: what is asked with them to know
    whether the node may be believed."""

    number: int
    indexes: list[int]
    started_s: float
    late_s: float
    beside: bool
    calls: list[RpcCall]
    guards: list[RpcCall]
    chain_due: bool
    meter: Meter = field(default_factory=Meter)
    took_s: float = 0.0
    is_probing: bool = False
    """Whether its dialect is being asked for, before the calls are sent."""

    def blames_node(self) -> bool:
        """Whether a timeout is the node's fault: not where contracts' code ran, which anybody may write."""
        return self.is_probing or not runs_code(self.calls)

    def heavy(self) -> bool:
        """Whether it takes longer than plain reads do."""
        return any(call.method in _HEAVY for call in self.calls)


@dataclass(slots=True)
class RequestRace:
    """A request under way: what is settled, what was said by nodes that could not, and who was asked."""

    calls: Sequence[RpcCall]
    deadline_s: float
    budgeted: bool
    settled: dict[int, Answer] = field(default_factory=dict)
    said: dict[int, RpcError] = field(default_factory=dict)
    fault: NodeFault | None = None
    asked: set[int] = field(default_factory=set)
    running: dict[asyncio.Task[list[Answer]], Runner] = field(default_factory=dict)
    over: list[Runner] = field(default_factory=list)
    next_s: float = -math.inf
    """When the next node may be asked."""
    early: bool = False
    """Whether that would be a hedge."""

    def unsettled_calls(self) -> list[int]:
        """Numbers of the calls that are not settled."""
        return [index for index in range(len(self.calls)) if index not in self.settled]

    def methods(self, indexes: list[int]) -> frozenset[str]:
        """Of these calls."""
        return frozenset(self.calls[index].method for index in indexes)

    def most_sent(self, left: list[int]) -> int:
        """How many calls it takes at most to ask for these."""
        return len(left) + len(guards([self.calls[index] for index in left], True))

    def note_fault(self, fault: NodeFault) -> None:
        """The first fault is told, but one that is about the answer's size before others."""
        if self.fault is None or isinstance(fault, NodeAnswerTooLarge):
            self.fault = fault

    def answers(self) -> list[Answer]:
        """Of every call. Raises the fault when nobody said anything."""
        if self.fault is not None and not self.settled and not self.said:
            raise self.fault
        if isinstance(self.fault, NodeAnswerTooLarge) and self.unsettled_calls():
            raise self.fault
        return [self.settled.get(index, self.said.get(index, NO_ANSWER)) for index in range(len(self.calls))]

    def count(self, meter: Meter) -> None:
        """Of trips those one after another, not those beside another; of calls all that were sent."""
        every = [*self.over, *self.running.values()]
        meter.trips += sum(runner.meter.trips for runner in every if not runner.beside)
        meter.calls += sum(runner.meter.calls for runner in every)


BLIND = RpcError(message="header not found: the last block of the range")


OLD = RpcError(message="header not found: its newest block is old")


class _BlockTime(msgspec.Struct):
    timestamp: str


def is_old(call: RpcCall, answer: Answer, least_s: float) -> bool:
    """Whether it tells of a newest block from before ``least_s``, in seconds since 1970."""
    if call.method != "eth_getBlockByNumber" or not call.params or call.params[0] != "latest":
        return False
    if isinstance(answer, RpcError):
        return False
    try:
        return int(msgspec.json.decode(answer, type=_BlockTime).timestamp, 16) < least_s
    except (msgspec.DecodeError, ValueError):
        return False


def guards(calls: Sequence[RpcCall], chain_due: bool) -> list[RpcCall]:
    """What is asked in the same request: the chain id where that is due, and the last block of every range of
    logs. A node that is behind answers with the logs it has, and does not say that there are more."""
    asked = any(call.method == "eth_chainId" for call in calls)
    found = [RpcCall("eth_chainId", [])] if chain_due and not asked else []
    last = {block for call in calls if (block := _last_block(call)) is not None}
    return found + [RpcCall("eth_getBlockByNumber", [block, False]) for block in sorted(last)]


def _last_block(call: RpcCall) -> str | None:
    if call.method != "eth_getLogs" or not call.params or not isinstance(call.params[0], dict):
        return None
    block = call.params[0].get("toBlock")
    return block if isinstance(block, str) and block.startswith("0x") else None


def is_blind(runner: Runner, answers: list[Answer]) -> bool:
    """Whether it does not know the last block of a range of logs."""
    guarding = zip(runner.guards, answers[len(runner.calls) :], strict=True)
    return any(
        guard.method == "eth_getBlockByNumber" and isinstance(answer, RpcError) for guard, answer in guarding
    )


def too_many(refused: NodeRefused) -> bool:
    """Whether a request was refused for its size."""
    error = refused.error
    return refused.http_status == _TOO_LARGE or (error is not None and concern(error) == "batch")


def limits(refused: NodeRefused) -> bool:
    """Whether it asks to be left alone."""
    if refused.http_status in _LIMITING:
        return True
    if refused.http_status == _UNAVAILABLE and refused.node_retry_after_s is not None:
        return True
    return refused.error is not None and concern(refused.error) == "limited"


def said_in_our_words(refused: NodeRefused) -> str:
    """In our words: what a node writes may hold anything."""
    if refused.http_status != _OK:
        return f"it answered with HTTP status {refused.http_status}"
    return LIMITED if limits(refused) else "it answered with an error for all of a request"


def about(call: RpcCall, said: Answer) -> Concern:
    """What an answer speaks of; a chain id that is not told is no fault of the call's, which says nothing."""
    spoken = concern(said) if isinstance(said, RpcError) else "call"
    return (
        "node" if isinstance(said, RpcError) and call.method == "eth_chainId" and spoken == "call" else spoken
    )


def note(endpoint: NodeEndpoint, told: set[tuple[Concern, str]], now: Moment) -> None:
    """Puts down what errors say of the node: what they are about, and the method."""
    abouts = {spoken for spoken, _ in told}
    if "limited" in abouts:
        endpoint.told_to_wait(LIMITED, now)
    if "behind" in abouts:
        endpoint.is_behind(now)
    for spoken, method in told:
        if spoken == "method":
            endpoint.does_not_serve(method, now)
