"""Several nodes used as one: rate limits, failover, and hedging (a second node is asked when one is late).

Reads of state are pinned by block hash, so every node gives the same answer. Ranges of logs and the newest
block are not pinned: ``guards`` and ``is_old`` find a node that is behind. Each answer comes from one node,
whose chain id was checked lately. An error that concerns the node and not the call (``errors``) is retried on
the next node; a revert is not.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import aiohttp
import structlog

from roundtrip.domain.base.errors import TOOK_TOO_LONG, NodeFault, ServiceFull

from .client import (
    NULL,
    Answer,
    Budget,
    Meter,
    Node,
    NodeAnswerTooLarge,
    NodeRefused,
    NodeTimeout,
    RpcCall,
    RpcError,
    quantity,
    send_each,
)
from .data_fee import DataFee
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
from .refusals import explain_no_simulation, explain_other_chain
from .request_race import (  # fmt: skip
    BLIND,
    OLD,
    RequestRace,
    Runner,
    concern_of,
    describe_refusal,
    guards,
    is_blind,
    is_old,
    is_rate_limit,
    is_too_large,
    note_concerns,
)

_ODD = "the node's answer could not be read"
_PROBE_TRIPS, _PROBE_CALLS = 2, 3
"""What ``speaks`` sends: a read of the newest block, and then a simulation with a plain call."""
log = structlog.get_logger(__name__)
_MIN_TIMEOUT_S = 0.001


class NodePool:
    """An RpcNode over several nodes. ``speaks``: called before a node's first simulation, and again after a
    fault: whether the node simulates in the dialect that answers are read in, its error, or why its dialect
    is not known. A node that does not is sent no simulations. ``chance``: from 0 to 1, spreads rests.
    ``budget``: of all nodes together. ``oldest_s``: a node whose newest block is older by the clock ``wall``
    counts as behind. ``of_each``: arguments of each ``Node``."""

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
        self._nodes = [Node(node.url, session, timeout_s, **of_each) for node in urls]
        self.endpoints = [NodeEndpoint.of(node) for node in urls]
        self.chain_id = chain_id
        self.timeout_s = timeout_s
        self.budget = budget or Budget()
        self.hedging = Hedging()
        self.speaks: Callable[[Node], Awaitable[bool | NodeFault | RpcError]] | None = None
        self._clock, self._wall, self._chance = clock, wall, chance
        self._oldest_s = oldest_s

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Answer]:
        """As ``Node.batch``. Raises NodeFault when no node gave a usable answer, ServiceFull (budget_spent)
        when every daily budget is spent, and (busy) when every rate limit is reached."""
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
        return await send_each(self, groups, meter)

    def note_data_fee(self, fee: DataFee) -> None:
        """Takes the fee that the chain charges now."""
        for node in self._nodes:
            node.note_data_fee(fee)

    def state(self) -> tuple[EndpointState, ...]:
        """The state of each node, for display."""
        return tuple(endpoint.state(self._now()) for endpoint in self.endpoints)

    def _now(self) -> Moment:
        return Moment(self._clock(), self._wall())

    # --- one request: nodes one after another, or at the same time -------------------------------------

    async def _race(self, asking: RequestRace) -> None:
        """Runs until every call is settled, or no node is left to ask."""
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
        """Asks the next node, or notes when one may be asked. Raises ServiceFull when it would be the first
        and there is no room for it."""
        now, unsettled = self._now(), asking.unsettled_calls()
        choice = self._choose(asking, unsettled, now)
        asking.next_s = math.inf
        if choice is None:
            if not asking.running and asking.fault is None and not asking.asked:
                self._raise_no_node(asking.most_sent(unsettled), now, asking.simulates(unsettled))
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
                self.budget.spend(len(unsettled), now.wall_s)
            except ServiceFull:
                if asking.asked:
                    return
                raise
        self._start(asking, choice.number, unsettled, now)

    def _may_hedge(self, asking: RequestRace, choice: EndpointChoice) -> bool:
        """Whether to hedge: only with a node that is well, and always while a node on trial is asked."""
        on_trial = any(self.endpoints[runner.number].on_trial() for runner in asking.running.values())
        return choice.well and (on_trial or self.hedging.take())

    def _choose(self, asking: RequestRace, indexes: list[int], now: Moment) -> EndpointChoice | None:
        within_s, calls = asking.deadline_s - now.steady_s, asking.most_sent(indexes)
        return choose(self.endpoints, asking.methods(indexes), calls, now, within_s, frozenset(asking.asked))

    def _start(self, asking: RequestRace, number: int, indexes: list[int], now: Moment) -> None:
        endpoint = self.endpoints[number]
        # This node has half of the time that is left; the next one has the other half.
        late_s = now.steady_s + (asking.deadline_s - now.steady_s) / 2
        calls, due = [asking.calls[index] for index in indexes], endpoint.chain_is_due(now)
        overlaps = bool(asking.running)
        runner = Runner(number, indexes, now.steady_s, late_s, overlaps, calls, guards(calls, due), due)
        after_s = endpoint.hedge_after_s(runner.is_heavy())
        asking.early = after_s is not None and now.steady_s + after_s < late_s
        asking.next_s = now.steady_s + after_s if asking.early and after_s is not None else late_s
        asking.asked.add(number)
        # Counted before any other request chooses a node.
        endpoint.take(len(calls) + len(runner.guards), now)
        endpoint.under_way += 1
        asking.running[asyncio.create_task(self._run(asking, runner))] = runner

    def _raise_no_node(self, calls: int, now: Moment, simulates: bool) -> None:
        """Raises the reason why no node may be asked: ServiceFull or NodeFault. ``simulates``: a call is
        a simulation."""
        if not any(endpoint.affords(calls, now) for endpoint in self.endpoints):
            roomiest = max(self.endpoints, key=lambda e: e.budget.calls_per_day - e.budget.spent)
            # Spends nothing: it has no room, and raises ServiceFull with the time to wait.
            roomiest.budget.spend(calls, now.wall_s)
        able = [endpoint for endpoint in self.endpoints if endpoint.affords(calls, now)]
        waiting = [endpoint for endpoint in able if now.steady_s < endpoint.waits_until_s]
        if len(waiting) == len(able):
            raise waiting[0].wait_fault or NodeFault(waiting[0].why)
        ready = [endpoint for endpoint in able if endpoint not in waiting]
        if simulates and all(endpoint.has_other_dialect(now) for endpoint in ready):
            if ready[0].dialect_fault is not None:
                raise ready[0].dialect_fault
            raise NodeFault("no available node simulates in the format of the first one")
        raise ServiceFull("busy", "All nodes are at their rate limits. Retry in 1 second.", 1)

    async def _stop(self, asking: RequestRace) -> None:
        """Cancels the requests under way. A node that was asked before the one that answered is late."""
        now = self._now()
        won_s = max((runner.started_s for runner in asking.finished), default=-math.inf)
        for task, runner in asking.running.items():
            task.cancel()
            endpoint = self.endpoints[runner.number]
            endpoint.under_way -= 1
            if asking.unsettled_calls() or runner.started_s >= won_s:
                continue
            if not runner.blames_node():
                endpoint.note_slow_code()
            elif now.steady_s >= runner.late_s:
                endpoint.note_failure(TOOK_TOO_LONG, now, self._chance(), runner.is_heavy())
            else:
                endpoint.note_late(TOOK_TOO_LONG, now, self._chance(), runner.is_heavy())
        await asyncio.gather(*asking.running, return_exceptions=True)

    # --- one node -------------------------------------------------------------------------------------

    async def _run(self, asking: RequestRace, runner: Runner) -> list[Answer]:
        """The node's answers to the runner's calls, followed by those to its guards."""
        endpoint, node = self.endpoints[runner.number], self._nodes[runner.number]
        try:
            async with asyncio.timeout(max(_MIN_TIMEOUT_S, asking.deadline_s - self._clock())):
                simulates = any(call.method == SIMULATES for call in runner.calls)
                if simulates and not endpoint.speaks and self.speaks is not None:
                    runner.meter.trips += _PROBE_TRIPS
                    runner.meter.calls += _PROBE_CALLS
                    endpoint.take(_PROBE_CALLS, self._now())
                    runner.is_probing = True
                    speaks = await self.speaks(node)
                    runner.is_probing = False
                    if isinstance(speaks, RpcError):
                        raise _CannotSimulate(speaks)
                    fault = _explain_other_dialect(speaks)
                    endpoint.note_dialect(fault is None, self._now(), fault)
                    if fault is not None:
                        raise _NotedFault(fault)
                started_s = self._clock()
                calls = [*runner.calls, *runner.guards]
                answers = await self._send(runner.number, calls, asking.deadline_s, runner.meter)
                runner.took_s = self._clock() - started_s
                return answers
        except TimeoutError as error:
            raise NodeTimeout from error

    async def _send(
        self, number: int, calls: Sequence[RpcCall], deadline_s: float, meter: Meter
    ) -> list[Answer]:
        """Sends the calls, in several requests at once where the node takes smaller batches."""
        size = self.endpoints[number].calls_a_request(self._now())
        chunks = [calls[start : start + size] for start in range(0, len(calls), size)]
        meters = [Meter() for _ in chunks]
        posts = (
            self._post(number, chunk, deadline_s, own) for chunk, own in zip(chunks, meters, strict=True)
        )
        try:
            outcomes = await asyncio.gather(*posts, return_exceptions=True)
        finally:
            meter.add(*meters)
        answers: list[Answer] = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            answers += outcome
        return answers

    async def _post(
        self, number: int, calls: Sequence[RpcCall], deadline_s: float, meter: Meter
    ) -> list[Answer]:
        """Sends one request; again in halves where the node refuses it as too large."""
        timeout_s = max(_MIN_TIMEOUT_S, deadline_s - self._clock())
        try:
            answers = await self._nodes[number].batch(calls, meter, timeout_s, budgeted=False)
        except NodeRefused as refused:
            if len(calls) == 1 or not is_too_large(refused):
                raise
        else:
            errors = (answer for answer in answers if isinstance(answer, RpcError))
            if len(calls) == 1 or not any(concern(error) == "batch" for error in errors):
                return answers
        self.endpoints[number].note_batch_refusal(len(calls), self._now())
        self.endpoints[number].take(len(calls), self._now())
        return await self._send(number, calls, deadline_s, meter)

    # --- outcomes -------------------------------------------------------------------------------------

    def _take_in(self, asking: RequestRace, task: asyncio.Task[list[Answer]]) -> None:
        """Settles the calls that a node answered, and notes its state. The next node is asked at once."""
        runner = asking.running.pop(task)
        asking.finished.append(runner)
        asking.next_s, asking.early = -math.inf, False
        endpoint, now = self.endpoints[runner.number], self._now()
        endpoint.under_way -= 1
        try:
            self._settle(asking, runner, task.result(), now)
        except _NotedFault as noted:
            asking.note_fault(noted.fault)
        except _CannotSimulate as cannot:
            note_concerns(endpoint, {(concern(cannot.error), SIMULATES)}, now)
            asking.note_fault(explain_no_simulation(cannot.error).fault())
        except NodeAnswerTooLarge as fault:
            # Most likely the token's fault: the next node's answer shows it.
            endpoint.note_late("the node's answers are too large", now, self._chance(), runner.is_heavy())
            asking.note_fault(fault)
        except NodeRefused as fault:
            if is_rate_limit(fault):
                endpoint.note_rate_limit(describe_refusal(fault), now, fault.node_retry_after_s, fault)
            else:
                endpoint.note_failure(describe_refusal(fault), now, self._chance(), runner.is_heavy())
            asking.note_fault(fault)
        except NodeTimeout as fault:
            if runner.blames_node():
                endpoint.note_failure(fault.why, now, self._chance(), runner.is_heavy())
            else:
                endpoint.note_slow_code()
            asking.note_fault(fault)
        except NodeFault as fault:
            endpoint.note_failure(fault.why, now, self._chance(), runner.is_heavy())
            asking.note_fault(fault)
        except ServiceFull:
            # Its budget ran out between the choice and the probe.
            asking.note_fault(NodeFault("the node's budget of calls is used up"))
        except Exception:
            # Whatever this node answered, the next one is asked.
            log.exception("reading an answer failed", node=endpoint.host)
            endpoint.note_failure(_ODD, now, self._chance(), runner.is_heavy())
            asking.note_fault(NodeFault(_ODD))

    def _settle(self, asking: RequestRace, runner: Runner, answers: list[Answer], now: Moment) -> None:
        """Settles the calls by a node's answers. Notes a failure where none is usable; a null is usable.
        Raises _NotedFault when the node is of another chain, NodeFault when its chain id was due and is
        missing, other than for a rate limit."""
        endpoint = self.endpoints[runner.number]
        is_trusted = self._check_chain(endpoint, runner, answers, now)
        blind = is_blind(runner, answers)
        concerns: set[tuple[Concern, str]] = set()
        for index, call, received in zip(runner.indexes, runner.calls, answers, strict=False):
            answer = BLIND if blind and call.method == "eth_getLogs" else received
            if is_old(call, received, now.wall_s - self._oldest_s):
                answer = OLD
            subject = concern_of(call, answer)
            concerns.add((subject, call.method))
            if subject == "call" and is_trusted:
                asking.settled.setdefault(index, answer)
            elif subject != "call" and isinstance(answer, RpcError):
                asking.node_errors.setdefault(index, answer)
        subjects = {subject for subject, _ in concerns}
        if not is_trusted and "limited" not in subjects:
            raise NodeFault("the node did not say which chain it is on")
        if subjects == {"node"} and NULL not in answers:
            endpoint.note_failure(
                "the node answers none of the calls", now, self._chance(), runner.is_heavy()
            )
        elif not subjects <= {"node", "limited"}:
            endpoint.note_answer(runner.took_s, runner.is_heavy())
        note_concerns(endpoint, concerns, now)

    def _check_chain(
        self, endpoint: NodeEndpoint, runner: Runner, answers: list[Answer], now: Moment
    ) -> bool:
        """Whether the node gave this chain's id, now or lately. Raises _NotedFault when it gave
        another."""
        is_this_chain = False
        for call, answer in zip([*runner.calls, *runner.guards], answers, strict=True):
            if call.method == "eth_chainId" and not isinstance(answer, RpcError):
                chain_id = quantity(answer)
                if chain_id != self.chain_id:
                    refusal = explain_other_chain(chain_id, self.chain_id)
                    fault = NodeFault(refusal.why, refusal.remedy)
                    endpoint.note_other_chain(fault.why, now, fault)
                    raise _NotedFault(fault)
                is_this_chain = True
        if is_this_chain:
            endpoint.note_chain(now)
        return is_this_chain or not runner.chain_due


class _CannotSimulate(Exception):
    """The node answered the dialect probe with ``error``."""

    def __init__(self, error: RpcError) -> None:
        super().__init__(error.message)
        self.error = error


class _NotedFault(Exception):
    """A fault of the node that its state has: it is of another chain, or simulates in another dialect than
    answers are read in."""

    def __init__(self, fault: NodeFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def _explain_other_dialect(speaks: bool | NodeFault) -> NodeFault | None:
    """Why a node must not be asked to simulate; None: it may be."""
    if isinstance(speaks, NodeFault):
        return speaks
    return None if speaks else NodeFault("the node simulates in a different format than the first one")
