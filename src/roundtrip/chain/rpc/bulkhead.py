"""Limits the requests that run contracts' code on the node, and shares their places fairly between callers.

Following the head and the sync never wait here. Callers' own simulations have a separate lane, so that they
cannot take the places of checks.
"""

import asyncio
import contextlib
import math
import re
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from roundtrip.domain.base.errors import NodeFault, ServiceFull

from .client import Answer, Meter, NodeTimeout, RpcCall, RpcError, RpcNode, SimulationTooLong, runs_code

Lane = Literal["checks", "dear", "calls"]
"""``checks``: simulations of tokens. ``dear``: those of tokens that use very much gas, one at a time.
``calls``: simulations of calls that the caller wrote."""


class HeldPlace(Protocol):
    """The place of a run among the service's runs (``api/sharing/places``). Another run may have it while
    this one waits for a lane."""

    def step_out(self) -> None: ...

    def step_in(self) -> None: ...


HELD: ContextVar[HeldPlace | None] = ContextVar("the place of this run", default=None)

_LONG_S, _LONGEST_REST_S = 0.25, 2.0
_HALF_LIFE_S = 60.0
_MAX_CALLERS = 10_000
_PROBE_S = 2.0
_DEAR_GAS = 6_000_000
"""No ordinary trade uses half as much."""
_DEAR_S, _MAX_DEAR = 3600.0, 10_000
"""How long a token counts as dear, and how many dear and plain tokens are remembered."""
_GAS_USED = re.compile(rb'"gasUsed":\s*"0x([0-9a-f]{6,16})"')
_PROBE = (RpcCall("eth_chainId", []), RpcCall("eth_simulateV1", [{"blockStateCalls": [{}]}, "latest"]))


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """The limits of one lane. ``places``: requests at the node at once. ``of_caller``: those of one caller.
    ``of_token``: those about one token, once its gas use is known; before, it has one. ``waiting``: how many
    requests of one caller may wait, for ``wait_s`` each. ``request_s``: the node time of all requests of one
    call of this service. ``rests``: whether a place that was held for long stays empty for as long again."""

    places: int
    of_caller: int
    of_token: int
    waiting: int
    wait_s: float
    request_s: float
    rests: bool = False


def limits(check_places: int = 16, call_places: int = 2) -> Mapping[Lane, LaneLimits]:
    """The limits of each lane. One caller holds at most half of the places; ``dear`` has only one."""
    of_token = max(1, check_places // 4)
    return {
        "checks": LaneLimits(check_places, check_places // 2, of_token, 64, wait_s=15.0, request_s=20.0),
        "dear": LaneLimits(1, 1, 1, 16, wait_s=15.0, request_s=8.0, rests=True),
        "calls": LaneLimits(
            call_places, call_places // 2, call_places, 16, wait_s=10.0, request_s=5.0, rests=True
        ),
    }


@dataclass(slots=True, eq=False)
class _WaitingTurn:
    """One request that waits. ``admitted``: set when it gets its place."""

    caller: str
    token: str | None
    admitted: asyncio.Future[None]


@dataclass(slots=True)
class _Queue:
    """A lane: its places in use, in all and by caller and token, and the requests that wait, by caller."""

    limits: LaneLimits
    is_plain: Callable[[str], bool]
    """Whether a token was simulated before without using very much gas."""
    held: int = 0
    of_callers: Counter[str] = field(default_factory=Counter)
    of_tokens: Counter[str | None] = field(default_factory=Counter)
    waiting: OrderedDict[str, deque[_WaitingTurn]] = field(default_factory=OrderedDict)

    def has_room(self, caller: str, token: str | None) -> bool:
        """Whether a request may start."""
        limits = self.limits
        if self.held >= limits.places or self.of_callers[caller] >= limits.of_caller:
            return False
        if token is None:
            return True
        # The first request about a token runs alone: it shows how much gas the token uses.
        return self.of_tokens[token] < (limits.of_token if self.is_plain(token) else 1)

    def hold(self, caller: str, token: str | None) -> None:
        """Takes a place."""
        self.held += 1
        self.of_callers[caller] += 1
        self.of_tokens[token] += 1

    def release(self, caller: str, token: str | None) -> None:
        """Frees a place."""
        self.held -= 1
        counters: tuple[tuple[Counter[Any], str | None], ...] = (
            (self.of_callers, caller),
            (self.of_tokens, token),
        )
        for counter, name in counters:
            counter[name] -= 1
            if not counter[name]:
                del counter[name]

    def next_of(self, caller: str) -> _WaitingTurn | None:
        """The caller's first waiting request that may start."""
        return next((turn for turn in self.waiting[caller] if self.has_room(caller, turn.token)), None)

    def forget(self, turn: _WaitingTurn) -> None:
        """Removes a request from the queue."""
        line = self.waiting.get(turn.caller)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self.waiting[turn.caller]


class Bulkhead:
    """Gives free places to the waiting caller that used the least node time, which decays with a half-life of
    a minute. ``clock``: monotonic seconds."""

    def __init__(
        self,
        lane_limits: Mapping[Lane, LaneLimits] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = lane_limits or limits()
        self._plain: OrderedDict[str, None] = OrderedDict()
        self._lanes = {
            lane: _Queue(lane_limit, self._plain.__contains__) for lane, lane_limit in self.limits.items()
        }
        self._clock = clock
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._dear: OrderedDict[str, float] = OrderedDict()

    def is_dear(self, token: str | None) -> bool:
        """Whether the token's recent simulations used very much gas, or took too long."""
        return token is not None and self._clock() < self._dear.get(token, -math.inf)

    def mark_plain(self, token: str | None) -> None:
        """Lets several requests about a token run at once: one ran and did not use very much gas."""
        if token is None or token in self._plain:
            return
        self._plain[token] = None
        if len(self._plain) > _MAX_DEAR:
            self._plain.popitem(last=False)

    def mark_dear(self, token: str | None) -> None:
        """Remembers that the token's simulations must run one at a time."""
        if token is None:
            return
        self._plain.pop(token, None)
        self._dear[token] = self._clock() + _DEAR_S
        self._dear.move_to_end(token)
        if len(self._dear) > _MAX_DEAR:
            self._dear.popitem(last=False)

    @contextlib.asynccontextmanager
    async def place(self, lane: Lane, caller: str, token: str | None = None) -> AsyncIterator[None]:
        """Holds a place while the block of ``async with`` runs. Raises ServiceFull (busy), which counts as a
        call of the caller where the caller's own requests hold the places or wait."""
        queue = self._lanes[lane]
        await self._enter(queue, caller, token)
        started_s = self._clock()
        try:
            yield
        finally:
            took_s = self._clock() - started_s
            self._note_use(caller, took_s)
            if queue.limits.rests and took_s > _LONG_S:
                # The place stays empty for as long, so these callers use at most half of the node's time.
                rest_s = min(took_s, _LONGEST_REST_S)
                asyncio.get_running_loop().call_later(rest_s, self._leave, queue, caller, token)
            else:
                self._leave(queue, caller, token)

    async def _enter(self, queue: _Queue, caller: str, token: str | None) -> None:
        line = queue.waiting.get(caller, ())
        if not queue.waiting and queue.has_room(caller, token):
            queue.hold(caller, token)
            return
        if len(line) >= queue.limits.waiting:
            raise _own_requests()
        turn = _WaitingTurn(caller, token, asyncio.get_running_loop().create_future())
        queue.waiting.setdefault(caller, deque()).append(turn)
        self._admit(queue)
        try:
            async with asyncio.timeout(queue.limits.wait_s):
                with _without_place():
                    await turn.admitted
        except BaseException as error:
            if turn.admitted.done() and not turn.admitted.cancelled():
                self._leave(queue, caller, token)
            queue.forget(turn)
            if isinstance(error, TimeoutError):
                is_own = queue.of_callers[caller] or caller in queue.waiting
                raise (_own_requests() if is_own else _busy()) from None
            raise

    def _admit(self, queue: _Queue) -> None:
        """Gives the free places to waiting requests."""
        while ready := [turn for caller in queue.waiting if (turn := queue.next_of(caller))]:
            turn = min(ready, key=lambda waiting: self._used_s(waiting.caller))
            queue.forget(turn)
            if not turn.admitted.done():
                queue.hold(turn.caller, turn.token)
                turn.admitted.set_result(None)

    def _leave(self, queue: _Queue, caller: str, token: str | None) -> None:
        queue.release(caller, token)
        self._admit(queue)

    def _used_s(self, caller: str) -> float:
        used_s, at_s = self._used.get(caller, (0.0, 0.0))
        return used_s * math.exp2((at_s - self._clock()) / _HALF_LIFE_S)

    def _note_use(self, caller: str, took_s: float) -> None:
        self._used[caller] = (self._used_s(caller) + took_s, self._clock())
        self._used.move_to_end(caller)
        if len(self._used) > _MAX_CALLERS:
            self._used.popitem(last=False)


@contextlib.contextmanager
def _without_place() -> Iterator[None]:
    held = HELD.get()
    if held is None:
        yield
        return
    held.step_out()
    try:
        yield
    finally:
        held.step_in()


def _busy() -> ServiceFull:
    return ServiceFull("busy", "Too many simulations are waiting. Retry in 1 second.", 1)


def _own_requests() -> ServiceFull:
    message = "Your earlier simulations are still running. Wait for their answers, then retry."
    return ServiceFull("busy", message, 1, counts=True)


@dataclass(slots=True)
class BoundedNode:
    """The node as one request of ``caller`` may use it: a batch that runs contracts' code takes a place of
    the lane, and all such batches together take at most ``left_s``. Batches of a check that overlap share a
    place, and their time counts once.

    A simulation that gets no answer in time raises SimulationTooLong where the node still answers a plain
    request, NodeTimeout where it does not.
    """

    node: RpcNode
    bulkhead: Bulkhead
    lane: Lane
    caller: str
    left_s: float
    token: str | None = None
    _entering: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _place: contextlib.AbstractAsyncContextManager[float] | None = field(default=None, init=False)
    _inside: int = field(default=0, init=False)
    _began_s: float = field(default=0.0, init=False)

    @staticmethod
    def of(node: RpcNode, bulkhead: Bulkhead, lane: Lane, caller: str, token: str | None) -> "BoundedNode":
        """The node for one request, about ``token`` where it is about one."""
        if lane == "checks" and bulkhead.is_dear(token):
            lane = "dear"
        return BoundedNode(node, bulkhead, lane, caller, bulkhead.limits[lane].request_s, token)

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Answer]:
        """As ``Node.batch``. Also raises ServiceFull (busy) and SimulationTooLong."""
        if not runs_code(calls):
            return await self.node.batch(calls, meter, timeout_s, budgeted)
        if self.lane == "dear" and len(pieces := _pieces(calls)) > 1:
            parts = [await self.batch(piece, meter, timeout_s, budgeted) for piece in pieces]
            return [answer for answers in parts for answer in answers]
        try:
            async with self._turn():
                answers = await self.node.batch(calls, meter, timeout_s, budgeted)
        except NodeTimeout as fault:
            raise await self._blame(fault) from None
        self._note_gas(answers)
        return answers

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[Answer] | NodeFault]:
        """As ``Node.batches``. All share one place; in the lane ``dear`` they run one after another."""
        if not any(runs_code(calls) for calls in groups):
            return await self.node.batches(groups, meter)
        if self.lane == "dear":
            return [await self._send_alone(calls, meter) for calls in groups]
        try:
            async with self._turn():
                answers = await self.node.batches(groups, meter)
        except NodeTimeout as fault:
            return [await self._blame(fault)] * len(groups)
        for answer in answers:
            if not isinstance(answer, NodeFault):
                self._note_gas(answer)
        timeout = next((answer for answer in answers if isinstance(answer, NodeTimeout)), None)
        if timeout is None:
            return answers
        blamed = await self._blame(timeout)
        return [blamed if isinstance(answer, NodeTimeout) else answer for answer in answers]

    async def _send_alone(self, calls: Sequence[RpcCall], meter: Meter) -> list[Answer] | NodeFault:
        try:
            return await self.batch(calls, meter)
        except NodeFault as fault:
            return fault

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """A place, for as long as the request has time left. Raises NodeTimeout at its end."""
        if self.left_s <= 0:
            raise NodeTimeout
        async with self._share_place() if self.lane == "checks" else self._take_place() as began_s:
            try:
                async with asyncio.timeout(self.left_s - (time.monotonic() - began_s)):
                    yield
            except TimeoutError:
                raise NodeTimeout from None

    @contextlib.asynccontextmanager
    async def _take_place(self) -> AsyncIterator[float]:
        """A place of its own, and since when."""
        async with self.bulkhead.place(self.lane, self.caller, self.token):
            began_s = time.monotonic()
            try:
                yield began_s
            finally:
                self.left_s -= time.monotonic() - began_s

    @contextlib.asynccontextmanager
    async def _share_place(self) -> AsyncIterator[float]:
        """The place that the first of overlapping batches takes, and the last one leaves; and since when."""
        async with self._entering:
            if self._place is None:
                place = self._take_place()
                self._began_s = await place.__aenter__()
                self._place = place
            self._inside += 1
        try:
            yield self._began_s
        finally:
            self._inside -= 1
            if not self._inside and self._place is not None:
                held, self._place = self._place, None
                await held.__aexit__(None, None, None)

    def _note_gas(self, answers: Sequence[Answer]) -> None:
        """Moves the request to the lane ``dear`` where a simulation used very much gas."""
        if self.lane != "checks":
            return
        if any(_most_gas(answer) > _DEAR_GAS for answer in answers):
            self._move_to_dear()
        elif any(not isinstance(answer, RpcError) for answer in answers):
            self.bulkhead.mark_plain(self.token)

    def _move_to_dear(self) -> None:
        if self.lane == "checks":
            self.lane = "dear"
            self.left_s = min(self.left_s, self.bulkhead.limits["dear"].request_s)
            self.bulkhead.mark_dear(self.token)

    async def _blame(self, fault: NodeTimeout) -> NodeFault:
        """The fault to raise for a timeout: the node's, where it cannot run an empty simulation in two
        seconds; else SimulationTooLong."""
        try:
            answers = await self.node.batch(_PROBE, timeout_s=_PROBE_S, budgeted=False)
        except (NodeFault, ServiceFull):
            return fault
        if any(isinstance(answer, RpcError) for answer in answers):
            return fault
        self._move_to_dear()
        return SimulationTooLong()


def _pieces(calls: Sequence[RpcCall]) -> list[list[RpcCall]]:
    """The calls in order, each simulation by itself: nodes run those of one request at the same time."""
    pieces: list[list[RpcCall]] = []
    for call in calls:
        if call.method == "eth_simulateV1" or not pieces or pieces[-1][-1].method == "eth_simulateV1":
            pieces.append([])
        pieces[-1].append(call)
    return pieces


def _most_gas(answer: Answer) -> int:
    """The most gas that any block or call of a simulation used."""
    if isinstance(answer, RpcError):
        return 0
    return max((int(used, 16) for used in _GAS_USED.findall(bytes(answer))), default=0)
