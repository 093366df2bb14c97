"""Places at the node for requests that run strangers' code, shared out fairly between callers.

Following the head and the sync never wait here. Callers' own simulations have a lane of their own, so that
they cannot take the places of checks.
"""

import asyncio
import contextlib
import math
import re
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from roundtrip.domain.base.errors import CallerOverload, NodeFault, ServiceFull

from .client import Meter, NodeTimeout, RpcCall, RpcError, RpcNode, SimulationTooLong, runs_code

Lane = Literal["checks", "dear", "calls"]
"""``checks``: simulations of tokens. ``dear``: of tokens that use very much gas, one simulation at a time.
``calls``: simulations of calls that the caller wrote."""

_LONG_S, _LONGEST_REST_S = 0.25, 2.0
_HALF_LIFE_S = 60.0
_MOST_CALLERS = 10_000
_PROBE_S = 2.0
_DEAR_GAS = 6_000_000
"""No ordinary trade uses half as much."""
_DEAR_S, _MOST_DEAR = 3600.0, 10_000
_GAS_USED = re.compile(rb'"gasUsed":\s*"0x([0-9a-f]{6,16})"')
_PROBE = (RpcCall("eth_chainId", []), RpcCall("eth_simulateV1", [{"blockStateCalls": [{}]}, "latest"]))


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """``places``: requests at the node at once. ``of_caller``: those of one caller. ``of_token``: those about
    one token, of which it may not be known yet how much gas it uses. ``waiting``: requests of one caller that
    may wait, for ``wait_s`` each. ``request_s``: the node's time that one request of a caller may take in
    all. ``rests``: whether a place that was held for long rests for as long again."""

    places: int
    of_caller: int
    of_token: int
    waiting: int
    wait_s: float
    request_s: float
    rests: bool = False


def limits(check_places: int = 16, call_places: int = 2) -> Mapping[Lane, LaneLimits]:
    """Of each lane: one caller has half of the places at most."""
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
    """One request that waits, and what is set when it gets its place."""

    caller: str
    token: str | None
    given: asyncio.Future[None]


@dataclass(slots=True)
class _Queue:
    """A lane: who holds its places, for which tokens, and who waits, by caller."""

    limits: LaneLimits
    is_plain: Callable[[str], bool]
    """Whether a token was simulated before, and used no very much gas."""
    held: int = 0
    of_callers: Counter[str] = field(default_factory=Counter)
    of_tokens: Counter[str | None] = field(default_factory=Counter)
    waiting: OrderedDict[str, deque[_WaitingTurn]] = field(default_factory=OrderedDict)

    def has_room(self, caller: str, token: str | None) -> bool:
        """Whether a request may begin."""
        limits = self.limits
        if self.held >= limits.places or self.of_callers[caller] >= limits.of_caller:
            return False
        if token is None:
            return True
        # One request finds out about a token before others follow.
        return self.of_tokens[token] < (limits.of_token if self.is_plain(token) else 1)

    def hold(self, caller: str, token: str | None) -> None:
        """It begins."""
        self.held += 1
        self.of_callers[caller] += 1
        self.of_tokens[token] += 1

    def let_go(self, caller: str, token: str | None) -> None:
        """It has ended."""
        self.held -= 1
        held: tuple[tuple[Counter[Any], str | None], ...] = (
            (self.of_callers, caller),
            (self.of_tokens, token),
        )
        for counter, name in held:
            counter[name] -= 1
            if not counter[name]:
                del counter[name]

    def next_of(self, caller: str) -> _WaitingTurn | None:
        """The caller's first request that may begin."""
        return next((turn for turn in self.waiting[caller] if self.has_room(caller, turn.token)), None)

    def forget(self, turn: _WaitingTurn) -> None:
        """It waits no longer."""
        line = self.waiting.get(turn.caller)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self.waiting[turn.caller]


class Bulkhead:
    """Gives a place to the waiting caller who used least of the node's time, by a half-life of a minute.
    ``clock``: seconds that never go back."""

    def __init__(
        self, given: Mapping[Lane, LaneLimits] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = given or limits()
        self._plain: OrderedDict[str, None] = OrderedDict()
        self._lanes = {lane: _Queue(one, self._plain.__contains__) for lane, one in self.limits.items()}
        self._clock = clock
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._dear: OrderedDict[str, float] = OrderedDict()

    def is_dear(self, token: str | None) -> bool:
        """Whether its simulations lately used very much gas, or took too long."""
        return token is not None and self._clock() < self._dear.get(token, -math.inf)

    def is_found_plain(self, token: str | None) -> None:
        """Lets several requests about a token run at once, after one that used no very much gas."""
        if token is None or token in self._plain:
            return
        self._plain[token] = None
        if len(self._plain) > _MOST_DEAR:
            self._plain.popitem(last=False)

    def is_found_dear(self, token: str | None) -> None:
        """Remembers a token whose simulations are to wait for each other."""
        if token is None:
            return
        self._plain.pop(token, None)
        self._dear[token] = self._clock() + _DEAR_S
        self._dear.move_to_end(token)
        if len(self._dear) > _MOST_DEAR:
            self._dear.popitem(last=False)

    @contextlib.asynccontextmanager
    async def place(self, lane: Lane, caller: str, token: str | None = None) -> AsyncIterator[None]:
        """Holds a place. Raises OwnLoad where the caller's own requests are in the way, and ServiceFull
        (busy) where those of others are."""
        queue = self._lanes[lane]
        await self._enter(queue, caller, token)
        started_s = self._clock()
        try:
            yield
        finally:
            took_s = self._clock() - started_s
            self._use(caller, took_s)
            if queue.limits.rests and took_s > _LONG_S:
                # The node is left alone for as long: these callers use half of it at most.
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
            raise CallerOverload
        turn = _WaitingTurn(caller, token, asyncio.get_running_loop().create_future())
        queue.waiting.setdefault(caller, deque()).append(turn)
        self._admit(queue)
        try:
            async with asyncio.timeout(queue.limits.wait_s):
                await turn.given
        except BaseException as error:
            if turn.given.done() and not turn.given.cancelled():
                self._leave(queue, caller, token)
            queue.forget(turn)
            if isinstance(error, TimeoutError):
                is_own = queue.of_callers[caller] or caller in queue.waiting
                raise (CallerOverload() if is_own else _full()) from None
            raise

    def _admit(self, queue: _Queue) -> None:
        """Gives what places there are to those who wait."""
        while ready := [turn for caller in queue.waiting if (turn := queue.next_of(caller))]:
            turn = min(ready, key=lambda one: self._used_s(one.caller))
            queue.forget(turn)
            if not turn.given.done():
                queue.hold(turn.caller, turn.token)
                turn.given.set_result(None)

    def _leave(self, queue: _Queue, caller: str, token: str | None) -> None:
        queue.let_go(caller, token)
        self._admit(queue)

    def _used_s(self, caller: str) -> float:
        used_s, at_s = self._used.get(caller, (0.0, 0.0))
        return used_s * math.exp2((at_s - self._clock()) / _HALF_LIFE_S)

    def _use(self, caller: str, took_s: float) -> None:
        self._used[caller] = (self._used_s(caller) + took_s, self._clock())
        self._used.move_to_end(caller)
        if len(self._used) > _MOST_CALLERS:
            self._used.popitem(last=False)


def _full() -> ServiceFull:
    return ServiceFull("busy", "Too many simulations are waiting; retry in a second.", 1)


@dataclass(slots=True)
class BoundedNode:
    """The node as one request of ``caller`` may use it: what runs contracts' code takes a place of its lane,
    and all of it together takes ``left_s`` at most.

    A simulation that gets no answer in time raises SimulationTooLong where the node answers a plain question
    meanwhile, NodeTimeout where it does not.
    """

    node: RpcNode
    bulkhead: Bulkhead
    lane: Lane
    caller: str
    left_s: float
    token: str | None = None

    @staticmethod
    def of(node: RpcNode, bulkhead: Bulkhead, lane: Lane, caller: str, token: str | None) -> "BoundedNode":
        """For a request about ``token``, where it is about one."""
        if lane == "checks" and bulkhead.is_dear(token):
            lane = "dear"
        return BoundedNode(node, bulkhead, lane, caller, bulkhead.limits[lane].request_s, token)

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        """As ``Node.batch``. Raises also OwnLoad, ServiceFull (busy) and SimulationTooLong."""
        if not runs_code(calls):
            return await self.node.batch(calls, meter, timeout_s, budgeted)
        if self.lane == "dear" and len(pieces := _pieces(calls)) > 1:
            found = [await self.batch(piece, meter, timeout_s, budgeted) for piece in pieces]
            return [answer for answers in found for answer in answers]
        try:
            async with self._turn():
                answers = await self.node.batch(calls, meter, timeout_s, budgeted)
        except NodeTimeout as fault:
            raise await self._blame(fault) from None
        self._look_at(answers)
        return answers

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        """As ``Node.batches``: one place for all of them."""
        if not any(runs_code(calls) for calls in groups):
            return await self.node.batches(groups, meter)
        if self.lane == "dear":
            return [await self._alone(calls, meter) for calls in groups]
        try:
            async with self._turn():
                answers = await self.node.batches(groups, meter)
        except NodeTimeout as fault:
            return [await self._blame(fault)] * len(groups)
        for one in answers:
            if not isinstance(one, NodeFault):
                self._look_at(one)
        late = next((one for one in answers if isinstance(one, NodeTimeout)), None)
        if late is None:
            return answers
        blamed = await self._blame(late)
        return [blamed if isinstance(one, NodeTimeout) else one for one in answers]

    async def _alone(
        self, calls: Sequence[RpcCall], meter: Meter
    ) -> list[msgspec.Raw | RpcError] | NodeFault:
        try:
            return await self.batch(calls, meter)
        except NodeFault as fault:
            return fault

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """A place, for as long as there is time left. Raises NodeTimeout at its end."""
        if self.left_s <= 0:
            raise NodeTimeout
        async with self.bulkhead.place(self.lane, self.caller, self.token):
            started_s = time.monotonic()
            try:
                async with asyncio.timeout(self.left_s):
                    yield
            except TimeoutError:
                raise NodeTimeout from None
            finally:
                self.left_s -= time.monotonic() - started_s

    def _look_at(self, answers: Sequence[msgspec.Raw | RpcError]) -> None:
        """What used very much gas goes on in the lane of its like."""
        if self.lane != "checks":
            return
        if any(_most_gas(one) > _DEAR_GAS for one in answers):
            self._is_dear()
        elif any(not isinstance(one, RpcError) for one in answers):
            self.bulkhead.is_found_plain(self.token)

    def _is_dear(self) -> None:
        if self.lane == "checks":
            self.lane = "dear"
            self.left_s = min(self.left_s, self.bulkhead.limits["dear"].request_s)
            self.bulkhead.is_found_dear(self.token)

    async def _blame(self, fault: NodeTimeout) -> NodeFault:
        """Whose fault a timeout is: the node's, where it simulates nothing at all in two seconds."""
        try:
            answers = await self.node.batch(_PROBE, timeout_s=_PROBE_S, budgeted=False)
        except (NodeFault, ServiceFull):
            return fault
        if any(isinstance(one, RpcError) for one in answers):
            return fault
        self._is_dear()
        return SimulationTooLong()


def _pieces(calls: Sequence[RpcCall]) -> list[list[RpcCall]]:
    """The calls in order, each simulation by itself: nodes run those of one request at the same time."""
    found: list[list[RpcCall]] = []
    for call in calls:
        if call.method == "eth_simulateV1" or not found or found[-1][-1].method == "eth_simulateV1":
            found.append([])
        found[-1].append(call)
    return found


def _most_gas(answer: msgspec.Raw | RpcError) -> int:
    """The most gas that a block, or a call, of a simulation used."""
    if isinstance(answer, RpcError):
        return 0
    return max((int(used, 16) for used in _GAS_USED.findall(bytes(answer))), default=0)
