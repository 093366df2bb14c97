"""One request that several nodes are asked: its nodes, its answers, its faults. Nothing here waits."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from roundtrip.domain.base.errors import NodeFault

from .client import NO_ANSWER, Answer, Meter, NodeAnswerTooLarge, NodeRefused, RpcCall, RpcError, runs_code
from .endpoints import SIMULATES, Moment, NodeEndpoint
from .errors import Concern, concern

LIMITED = "the node limits our calls"
_OK, _TOO_LARGE, _UNAVAILABLE = 200, 413, 503
_LIMITING = (403, 429)
"""HTTP statuses that are taken for a rate limit."""
_HEAVY = frozenset({SIMULATES, "eth_getLogs"})


@dataclass(slots=True)
class Runner:
    """One node that is being asked some of a request's calls. ``indexes``: of these calls. ``late_s``: when
    waiting for this node alone ends. ``overlaps``: another node was already being asked. ``guards``: calls
    sent along that show whether the node can be trusted."""

    number: int
    indexes: list[int]
    started_s: float
    late_s: float
    overlaps: bool
    calls: list[RpcCall]
    guards: list[RpcCall]
    chain_due: bool
    meter: Meter = field(default_factory=Meter)
    took_s: float = 0.0
    is_probing: bool = False
    """Whether its dialect is being probed, before the calls are sent."""

    def blames_node(self) -> bool:
        """Whether a timeout is the node's fault: not where contracts' code ran, which anyone can write."""
        return self.is_probing or not runs_code(self.calls)

    def is_heavy(self) -> bool:
        """Whether the calls take longer than plain reads."""
        return any(call.method in _HEAVY for call in self.calls)


@dataclass(slots=True)
class RequestRace:
    """A request under way. ``settled``: final answers, by the index of their call. ``node_errors``: errors
    that concern a node and not the call. ``asked``: numbers of the nodes."""

    calls: Sequence[RpcCall]
    deadline_s: float
    budgeted: bool
    settled: dict[int, Answer] = field(default_factory=dict)
    node_errors: dict[int, RpcError] = field(default_factory=dict)
    fault: NodeFault | None = None
    asked: set[int] = field(default_factory=set)
    running: dict[asyncio.Task[list[Answer]], Runner] = field(default_factory=dict)
    finished: list[Runner] = field(default_factory=list)
    next_s: float = -math.inf
    """When the next node may be asked."""
    early: bool = False
    """Whether asking it would be a hedge."""

    def unsettled_calls(self) -> list[int]:
        """Indexes of the calls that are not settled."""
        return [index for index in range(len(self.calls)) if index not in self.settled]

    def methods(self, indexes: list[int]) -> frozenset[str]:
        """The methods of these calls."""
        return frozenset(self.calls[index].method for index in indexes)

    def most_sent(self, indexes: list[int]) -> int:
        """How many calls are sent at most for these, guards included."""
        return len(indexes) + len(guards([self.calls[index] for index in indexes], True))

    def simulates(self, indexes: list[int]) -> bool:
        """Whether one of these calls is a simulation."""
        return any(self.calls[index].method == SIMULATES for index in indexes)

    def note_fault(self, fault: NodeFault) -> None:
        """Keeps the first fault, but prefers one about the answer's size."""
        if self.fault is None or isinstance(fault, NodeAnswerTooLarge):
            self.fault = fault

    def answers(self) -> list[Answer]:
        """The answer to every call. Raises the fault when no node answered anything."""
        if self.fault is not None and not self.settled and not self.node_errors:
            raise self.fault
        if isinstance(self.fault, NodeAnswerTooLarge) and self.unsettled_calls():
            raise self.fault
        return [
            self.settled.get(index, self.node_errors.get(index, NO_ANSWER))
            for index in range(len(self.calls))
        ]

    def count(self, meter: Meter) -> None:
        """Adds the trips that followed one another, without hedges, and every call that was sent."""
        runners = [*self.finished, *self.running.values()]
        meter.trips += sum(runner.meter.trips for runner in runners if not runner.overlaps)
        meter.calls += sum(runner.meter.calls for runner in runners)


BLIND = RpcError(message="header not found: the last block of the range")
OLD = RpcError(message="header not found: its newest block is old")


class _BlockTime(msgspec.Struct):
    timestamp: str


def is_old(call: RpcCall, answer: Answer, least_s: float) -> bool:
    """Whether the answer is a newest block from before ``least_s``, in seconds since 1970."""
    if call.method != "eth_getBlockByNumber" or not call.params or call.params[0] != "latest":
        return False
    if isinstance(answer, RpcError):
        return False
    try:
        return int(msgspec.json.decode(answer, type=_BlockTime).timestamp, 16) < least_s
    except (msgspec.DecodeError, ValueError):
        return False


def guards(calls: Sequence[RpcCall], chain_due: bool) -> list[RpcCall]:
    """Calls to send in the same request: the chain id where it is due, and the last block of every range of
    logs, because a node that is behind returns the logs it has without an error."""
    asks_chain = any(call.method == "eth_chainId" for call in calls)
    chain_calls = [RpcCall("eth_chainId", [])] if chain_due and not asks_chain else []
    last_blocks = {block for call in calls if (block := _last_block(call)) is not None}
    return chain_calls + [RpcCall("eth_getBlockByNumber", [block, False]) for block in sorted(last_blocks)]


def _last_block(call: RpcCall) -> str | None:
    if call.method != "eth_getLogs" or not call.params or not isinstance(call.params[0], dict):
        return None
    block = call.params[0].get("toBlock")
    return block if isinstance(block, str) and block.startswith("0x") else None


def is_blind(runner: Runner, answers: list[Answer]) -> bool:
    """Whether the node does not know the last block of a range of logs."""
    guard_answers = zip(runner.guards, answers[len(runner.calls) :], strict=True)
    return any(
        guard.method == "eth_getBlockByNumber" and isinstance(answer, RpcError)
        for guard, answer in guard_answers
    )


def is_too_large(refused: NodeRefused) -> bool:
    """Whether a request was refused for its size."""
    error = refused.error
    return refused.http_status == _TOO_LARGE or (error is not None and concern(error) == "batch")


def is_rate_limit(refused: NodeRefused) -> bool:
    """Whether the node limits its calls."""
    if refused.http_status in _LIMITING:
        return True
    if refused.http_status == _UNAVAILABLE and refused.node_retry_after_s is not None:
        return True
    return refused.error is not None and concern(refused.error) == "limited"


def describe_refusal(refused: NodeRefused) -> str:
    """A refusal in our words: the node's own message may hold anything."""
    if refused.http_status != _OK:
        return f"the node answered with HTTP status {refused.http_status}"
    if refused.error is None:
        return refused.why
    return LIMITED if is_rate_limit(refused) else "the node answered a whole request with one error"


def concern_of(call: RpcCall, answer: Answer) -> Concern:
    """What an answer concerns. An error for eth_chainId is the node's: that call cannot fail by itself."""
    if not isinstance(answer, RpcError):
        return "call"
    subject = concern(answer)
    return "node" if call.method == "eth_chainId" and subject == "call" else subject


def note_concerns(endpoint: NodeEndpoint, concerns: set[tuple[Concern, str]], now: Moment) -> None:
    """Notes what answers show of the node. ``concerns``: what each concerns, and its method."""
    subjects = {subject for subject, _ in concerns}
    if "limited" in subjects:
        endpoint.note_rate_limit(LIMITED, now)
    if "behind" in subjects:
        endpoint.note_behind(now)
    for subject, method in concerns:
        if subject == "method":
            endpoint.note_unserved(method, now)
