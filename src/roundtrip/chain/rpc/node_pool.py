"""Several nodes asked as one: limits, failover, and a second node asked where the first is late.

Requests are pinned by block hash, so an answer is the same from whichever node gives it. Every answer to a
call comes from one node, which has lately told the right chain id. What speaks of a node and not of the call
(``node_errors``) is asked of the next; a revert is asked of nobody else.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import aiohttp
import structlog

from roundtrip.domain.base.errors import NodeFault, ServiceFull

from .client import (
    NULL,
    Budget,
    Meter,
    Node,
    NodeAnswerTooLarge,
    NodeRefused,
    NodeTimeout,
    RpcCall,
    RpcError,
    quantity,
)
from .endpoints import (
    SIMULATES,
    EndpointChoice,
    EndpointState,
    Hedging,
    Moment,
    NodeEndpoint,
    NodeUrl,
    choose,
)
from .errors import Concern, concern
from .request_race import (  # fmt: skip
    BLIND,
    OLD,
    Answer,
    RequestRace,
    Runner,
    about,
    guards,
    is_blind,
    is_old,
    limits,
    note,
    said_in_our_words,
    too_many,
)

_TOO_LATE, _ODD = "it took too long", "its answer could not be read"
_PROBE_CALLS = 3
log = structlog.get_logger(__name__)
_LEAST_TIMEOUT_S = 0.001


class Nodes:
    """What ``rpc.Node`` is, over several. ``speaks``: asked of a node before its first simulation, and again
    after a fault: whether it simulates in the dialect that answers are read in, or its error. Where it does
    not, it is not asked to. ``chance``: from 0 to 1, spreads rests. ``budget``: of all together.
    ``oldest_s``: a node whose newest block is older by ``wall`` follows no more. ``of_each``: a node's."""

    def __init__(
        self,
        urls: Sequence[NodeUrl],
        session: aiohttp.ClientSession,
        chain_id: int,
        timeout_s: float = 5.0,
        budget: Budget | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        chance: Callable[[], float] = lambda: 0.0,
        oldest_s: float = math.inf,
        **of_each: Any,
    ) -> None:
        self._nodes = [Node(one.url, session, timeout_s, **of_each) for one in urls]
        self.endpoints = [NodeEndpoint.of(one) for one in urls]
        self.chain_id = chain_id
        self.timeout_s = timeout_s
        self.budget = budget or Budget()
        self.hedging = Hedging()
        self.speaks: Callable[[Node], Awaitable[bool | RpcError]] | None = None
        self._clock, self._wall, self._chance = clock, wall, chance
        self._oldest_s = oldest_s

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Answer]:
        """As ``Node.batch``. Raises NodeFault when no node gave anything usable, ServiceFull (budget_spent)
        when the day has no more calls anywhere, and (busy) when no limit of calls a second has room."""
        asking = RequestRace(calls, self._clock() + (timeout_s or self.timeout_s), budgeted)
        started_s = self._clock()
        self.hedging.earn()
        try:
            await self._race(asking)
        finally:
            await self._stop(asking)
            if meter is not None:
                asking.count(meter)
                meter.node_ms += (self._clock() - started_s) * 1000
        return asking.answers()

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[Answer] | NodeFault]:
        """As ``Node.batches``."""
        own = [Meter() for _ in groups]
        asked = (self.batch(group, one) for group, one in zip(groups, own, strict=True))
        found = await asyncio.gather(*asked, return_exceptions=True)
        meter.add(*own)
        answers: list[list[Answer] | NodeFault] = []
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, NodeFault):
                raise one
            answers.append(one)
        return answers

    async def one(self, method: str, *params: object) -> Answer:
        """A single call."""
        return (await self.batch([RpcCall(method, params)]))[0]

    def state(self) -> tuple[EndpointState, ...]:
        """How each stands, for people."""
        return tuple(endpoint.state(self._now()) for endpoint in self.endpoints)

    def _now(self) -> Moment:
        return Moment(self._clock(), self._wall())

    # --- one request, of one node after another, or beside --------------------------------------------

    async def _race(self, asking: RequestRace) -> None:
        """Until every call is settled, or nobody is left to be asked."""
        while asking.unsettled_calls():
            if self._clock() >= asking.next_s:
                self._ask_next(asking)
            if not asking.running and asking.next_s == math.inf:
                return
            wait_s = max(0.0, asking.next_s - self._clock())
            if not asking.running:
                await asyncio.sleep(wait_s)
                continue
            done, _ = await asyncio.wait(
                asking.running,
                timeout=None if wait_s == math.inf else wait_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in done:
                self._take_in(asking, task)

    def _ask_next(self, asking: RequestRace) -> None:
        """Asks the next node, or puts down when one may be asked. Raises ServiceFull when it is the first and
        there is no room for it."""
        now, left = self._now(), asking.unsettled_calls()
        choice = self._choice(asking, left, now)
        asking.next_s = math.inf
        if choice is None:
            if not asking.running and asking.fault is None and not asking.asked:
                self._nobody(asking.most_sent(left), now)
            return
        if choice.wait_s > 0:
            asking.next_s = now.steady_s + choice.wait_s
            return
        late_s = max((runner.late_s for runner in asking.running.values()), default=-math.inf)
        if asking.early and now.steady_s < late_s and not self._may_hedge(asking, choice):
            asking.next_s, asking.early = late_s, False
            return
        if asking.budgeted:
            try:
                self.budget.spend(len(left), now.wall_s)
            except ServiceFull:
                if asking.asked:
                    return
                raise
        self._start(asking, choice.number, left, now)

    def _may_hedge(self, asking: RequestRace, choice: EndpointChoice) -> bool:
        """Only with a node that is well. Beside one whose last answer was a fault it is always allowed."""
        on_trial = any(self.endpoints[runner.number].on_trial() for runner in asking.running.values())
        return choice.well and (on_trial or self.hedging.take())

    def _choice(self, asking: RequestRace, left: list[int], now: Moment) -> EndpointChoice | None:
        within_s, calls = asking.deadline_s - now.steady_s, asking.most_sent(left)
        return choose(self.endpoints, asking.methods(left), calls, now, within_s, frozenset(asking.asked))

    def _start(self, asking: RequestRace, number: int, left: list[int], now: Moment) -> None:
        endpoint = self.endpoints[number]
        # Half of what time there is; the next one gets the other half.
        late_s = now.steady_s + (asking.deadline_s - now.steady_s) / 2
        calls, due = [asking.calls[index] for index in left], endpoint.chain_is_due(now)
        beside = bool(asking.running)
        runner = Runner(number, left, now.steady_s, late_s, beside, calls, guards(calls, due), due)
        after_s = endpoint.hedge_after_s(runner.heavy())
        asking.early = after_s is not None and now.steady_s + after_s < late_s
        asking.next_s = now.steady_s + after_s if asking.early and after_s is not None else late_s
        asking.asked.add(number)
        # Counted before anybody else chooses.
        endpoint.take(len(calls) + len(runner.guards), now)
        endpoint.under_way += 1
        asking.running[asyncio.create_task(self._run(asking, runner))] = runner

    def _nobody(self, calls: int, now: Moment) -> None:
        """Says why nobody may be asked."""
        if not any(endpoint.affords(calls, now) for endpoint in self.endpoints):
            fullest = max(self.endpoints, key=lambda e: e.budget.calls_per_day - e.budget.spent)
            fullest.budget.spend(calls, now.wall_s)
        able = [endpoint for endpoint in self.endpoints if endpoint.affords(calls, now)]
        waiting = [endpoint for endpoint in able if now.steady_s < endpoint.waits_until_s]
        if len(waiting) == len(able):
            raise NodeFault(waiting[0].why)
        if all(endpoint.is_unlike(now) for endpoint in able if endpoint not in waiting):
            raise NodeFault("no node that is left simulates as the first one did")
        raise ServiceFull("busy", "The nodes may not be asked more often just now.", 1)

    async def _stop(self, asking: RequestRace) -> None:
        """Lets go of what is still under way. Who was asked before the one that answered was late."""
        now = self._now()
        won_s = max((runner.started_s for runner in asking.over), default=-math.inf)
        for task, runner in asking.running.items():
            task.cancel()
            endpoint = self.endpoints[runner.number]
            endpoint.under_way -= 1
            if asking.unsettled_calls() or runner.started_s >= won_s:
                continue
            if not runner.blames_node():
                endpoint.is_in_doubt()
            elif now.steady_s >= runner.late_s:
                endpoint.note_failure(_TOO_LATE, now, self._chance(), runner.heavy())
            else:
                endpoint.was_late(_TOO_LATE, now, self._chance(), runner.heavy())
        await asyncio.gather(*asking.running, return_exceptions=True)

    # --- one node -------------------------------------------------------------------------------------

    async def _run(self, asking: RequestRace, runner: Runner) -> list[Answer]:
        """Its answers to the runner's calls, and behind them those to what is asked for their sake."""
        endpoint, node = self.endpoints[runner.number], self._nodes[runner.number]
        try:
            async with asyncio.timeout(max(_LEAST_TIMEOUT_S, asking.deadline_s - self._clock())):
                simulates = any(call.method == SIMULATES for call in runner.calls)
                if simulates and not endpoint.speaks and self.speaks is not None:
                    runner.meter.trips += 1
                    runner.meter.calls += _PROBE_CALLS
                    endpoint.take(_PROBE_CALLS, self._now())
                    runner.is_probing = True
                    told = await self.speaks(node)
                    runner.is_probing = False
                    if isinstance(told, RpcError):
                        raise _CannotSimulate(told)
                    endpoint.told_speech(told, self._now())
                    if not told:
                        raise _OtherDialect
                started_s = self._clock()
                sent = [*runner.calls, *runner.guards]
                answers = await self._send(runner.number, sent, asking.deadline_s, runner.meter)
                runner.took_s = self._clock() - started_s
                return answers
        except TimeoutError as error:
            raise NodeTimeout from error

    async def _send(
        self, number: int, calls: Sequence[RpcCall], deadline_s: float, meter: Meter
    ) -> list[Answer]:
        """The calls, in as many requests at once as the node needs them cut into."""
        size = self.endpoints[number].calls_a_request(self._now())
        cuts = [calls[at : at + size] for at in range(0, len(calls), size)]
        own = [Meter() for _ in cuts]
        asked = (self._post(number, cut, deadline_s, one) for cut, one in zip(cuts, own, strict=True))
        try:
            found = await asyncio.gather(*asked, return_exceptions=True)
        finally:
            meter.add(*own)
        answers: list[Answer] = []
        for one in found:
            if isinstance(one, BaseException):
                raise one
            answers += one
        return answers

    async def _post(
        self, number: int, calls: Sequence[RpcCall], deadline_s: float, meter: Meter
    ) -> list[Answer]:
        """One request; cut in two where the node says that it is too large."""
        timeout_s = max(_LEAST_TIMEOUT_S, deadline_s - self._clock())
        try:
            answers = await self._nodes[number].batch(calls, meter, timeout_s, budgeted=False)
        except NodeRefused as refused:
            if len(calls) == 1 or not too_many(refused):
                raise
        else:
            errors = (answer for answer in answers if isinstance(answer, RpcError))
            if len(calls) == 1 or not any(concern(error) == "batch" for error in errors):
                return answers
        self.endpoints[number].refused_batch(len(calls), self._now())
        self.endpoints[number].take(len(calls), self._now())
        return await self._send(number, calls, deadline_s, meter)

    # --- what came of it ------------------------------------------------------------------------------

    def _take_in(self, asking: RequestRace, task: asyncio.Task[list[Answer]]) -> None:
        """Settles what it answered, and puts down how the node stands. The next one is asked at once."""
        runner = asking.running.pop(task)
        asking.over.append(runner)
        asking.next_s, asking.early = -math.inf, False
        endpoint, now = self.endpoints[runner.number], self._now()
        endpoint.under_way -= 1
        try:
            self._settle(asking, runner, task.result(), now)
        except _OtherDialect:
            asking.note_fault(NodeFault("it simulates in another way than the first one did"))
        except _CannotSimulate as cannot:
            note(endpoint, {(concern(cannot.error), SIMULATES)}, now)
            asking.note_fault(NodeFault("it does not simulate"))
        except NodeAnswerTooLarge as fault:
            # Most likely the token's doing: the next node says whether it is.
            endpoint.was_late("its answers are too large", now, self._chance(), runner.heavy())
            asking.note_fault(fault)
        except NodeRefused as fault:
            if limits(fault):
                endpoint.told_to_wait(said_in_our_words(fault), now, fault.node_retry_after_s)
            else:
                endpoint.note_failure(said_in_our_words(fault), now, self._chance(), runner.heavy())
            asking.note_fault(fault)
        except _OtherChain as fault:
            asking.note_fault(fault)
        except NodeTimeout as fault:
            if runner.blames_node():
                endpoint.note_failure(fault.message, now, self._chance(), runner.heavy())
            else:
                endpoint.is_in_doubt()
            asking.note_fault(fault)
        except NodeFault as fault:
            endpoint.note_failure(fault.message, now, self._chance(), runner.heavy())
            asking.note_fault(fault)
        except ServiceFull:
            # Its day ended between the choice and the sending.
            asking.note_fault(NodeFault("its budget of calls is used up"))
        except Exception:
            # Whatever a node answers, the next one is asked.
            log.exception("an answer could not be read", node=endpoint.host)
            endpoint.note_failure(_ODD, now, self._chance(), runner.heavy())
            asking.note_fault(NodeFault(_ODD))

    def _settle(self, asking: RequestRace, runner: Runner, answers: list[Answer], now: Moment) -> None:
        """Raises NodeFault when the node is of another chain or says nothing usable. A null is no fault."""
        endpoint = self.endpoints[runner.number]
        believed = self._check_chain(endpoint, runner, answers, now)
        blind = is_blind(runner, answers)
        told: set[tuple[Concern, str]] = set()
        for index, call, answer in zip(runner.indexes, runner.calls, answers, strict=False):
            said = BLIND if blind and call.method == "eth_getLogs" else answer
            if is_old(call, answer, now.wall_s - self._oldest_s):
                said = OLD
            spoken = about(call, said)
            told.add((spoken, call.method))
            if spoken == "call" and believed:
                asking.settled.setdefault(index, said)
            elif spoken != "call" and isinstance(said, RpcError):
                asking.said.setdefault(index, said)
        abouts = {spoken for spoken, _ in told}
        if not believed and "limited" not in abouts:
            raise NodeFault("it does not tell of which chain it is")
        if abouts == {"node"} and NULL not in answers:
            endpoint.note_failure("it answers none of its calls", now, self._chance(), runner.heavy())
        elif not abouts <= {"node", "limited"}:
            endpoint.note_answer(runner.took_s, runner.heavy())
        note(endpoint, told, now)

    def _check_chain(
        self, endpoint: NodeEndpoint, runner: Runner, answers: list[Answer], now: Moment
    ) -> bool:
        """Whether it has told, now or lately, that it is of this chain. Raises NodeFault when of another."""
        told = False
        for call, answer in zip([*runner.calls, *runner.guards], answers, strict=True):
            if call.method == "eth_chainId" and not isinstance(answer, RpcError):
                chain_id = quantity(answer)
                if chain_id != self.chain_id:
                    why = f"it is of chain {chain_id}, not {self.chain_id}"
                    endpoint.told_other_chain(why, now)
                    raise _OtherChain(why)
                told = True
        if told:
            endpoint.told_chain(now)
        return told or not runner.chain_due


class _OtherChain(NodeFault):
    """It is of another chain."""


class _CannotSimulate(Exception):
    """Asked to simulate it answered with ``error``."""

    def __init__(self, error: RpcError) -> None:
        super().__init__(error.message)
        self.error = error


class _OtherDialect(Exception):
    """It simulates in another dialect than answers are read in."""
