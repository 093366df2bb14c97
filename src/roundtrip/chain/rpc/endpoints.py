"""The state of each of several nodes, and the choice of the node to ask. The time is passed in.

Nothing here waits or sends; ``node_pool`` does.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from roundtrip.domain.base.errors import NodeFault

from .client import Budget

SIMULATES = "eth_simulateV1"
MAX_CALLS_A_REQUEST = 1_000
"""The default: what geth takes."""
BURST_S = 2.0
"""How long the unused part of a limit of calls a second is kept."""
_FIRST_REST_S, _LONGEST_REST_S = 1.0, 60.0
_MAX_RETRY_AFTER_S = 120.0
_OTHER_CHAIN_S = _OTHER_DIALECT_S = 60.0
_CHAIN_CHECKED_S = 30.0
"""How long a checked chain id counts."""
_BEHIND_S = 1.0
_LACK_REMEMBERED_S = 600.0
_BATCH_REMEMBERED_S = 600.0
_MAX_SILENT = 3
"""How often in a row another node answers first before that is a fault."""
_LATENCIES, _FEWEST_LATENCIES = 64, 8
"""How many of the last latencies are kept, and how many a hedge needs."""
_MIN_HEDGE_S = 0.01


class Moment(NamedTuple):
    """The time by two clocks. ``steady_s``: monotonic. ``wall_s``: seconds since 1970, for daily budgets."""

    steady_s: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class NodeUrl:
    """A node's url and limits; 0 is no limit. The path may be an API key, so it is never shown."""

    url: str = field(repr=False)
    calls_per_second: float = 0
    calls_per_day: int = 0
    calls_a_request: int = 0

    def is_limited(self) -> bool:
        """Whether any limit is set."""
        return bool(self.calls_per_second or self.calls_per_day or self.calls_a_request)


Condition = Literal[
    "ok", "resting", "told to wait", "another chain", "simulates otherwise", "budget spent"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class EndpointState:
    """A node's state for display. ``host``: without path or user. ``why``: the reason for the condition, in
    our words. ``lacks``: methods that it does not serve. ``calls_a_request``: the largest batch it takes, as
    far as known."""

    host: str
    condition: Condition
    why: str
    lacks: tuple[str, ...]
    calls_a_request: int


@dataclass(slots=True)
class NodeEndpoint:
    """One node. After a fault it rests, longer after each, and is then tried with one request at a time. A
    resting node is asked only where no better one is left; a node that asked to wait is not asked at all."""

    host: str
    calls_per_second: float = 0
    budget: Budget = field(default_factory=Budget)
    most_calls: int = MAX_CALLS_A_REQUEST

    faults: int = 0
    rests_until_s: float = -math.inf
    waits_until_s: float = -math.inf
    why: str = ""
    other_chain: bool = False
    under_way: int = 0
    speaks: bool | None = None
    """Whether it simulates in the dialect that answers are read in; None: not known."""
    dialect_fault: NodeFault | None = None
    """Why its dialect does not serve; None: it does, or is not known."""
    wait_fault: NodeFault | None = None
    """How it refused, where it is not asked for a while."""
    _dialect_probed_s: float = -math.inf
    _calls_a_request: int = 0
    _batch_refused_s: float = -math.inf
    _waits: int = 0
    _silent: int = 0
    _fails_heavy: bool = False
    _chain_checked_s: float = -math.inf
    _lacks: dict[str, float] = field(default_factory=dict)
    _latencies: dict[bool, deque[float]] = field(default_factory=dict)
    _unused: float = math.inf
    _unused_at_s: float = -math.inf

    @staticmethod
    def of(node: NodeUrl) -> "NodeEndpoint":
        """The initial state of the node behind a url."""
        parts = urlsplit(node.url)
        host = (parts.hostname or "?") + (f":{parts.port}" if parts.port else "")
        most = node.calls_a_request or MAX_CALLS_A_REQUEST
        return NodeEndpoint(host, node.calls_per_second, Budget(node.calls_per_day), most)

    # --- may it be asked? -----------------------------------------------------------------------------

    def rests(self, now: Moment) -> bool:
        """Whether it rests after a fault: for a time, and then while one request tries it."""
        return now.steady_s < self.rests_until_s or (self.faults > 0 and self.under_way > 0)

    def on_trial(self) -> bool:
        """Whether its last answer was a fault."""
        return self.faults > 0

    def lacks(self, methods: Iterable[str], now: Moment) -> bool:
        """Whether it lately refused one of these methods as not served."""
        return any(now.steady_s < self._lacks.get(method, -math.inf) for method in methods)

    def affords(self, calls: int, now: Moment) -> bool:
        """Whether its daily budget has room for this many calls."""
        return self.budget.affords(calls, now.wall_s)

    def wait_s(self, calls: int, now: Moment) -> float:
        """The time until this many calls may be sent; 0: now."""
        wait_s = max(0.0, self.waits_until_s - now.steady_s)
        if self.calls_per_second:
            short = min(calls, self._burst()) - self._unused_calls(now)
            # A nanosecond more: a wait that is too short by rounding would repeat.
            wait_s = max(wait_s, short / self.calls_per_second + 1e-9 if short > 0 else 0.0)
        return wait_s

    def chain_is_due(self, now: Moment) -> bool:
        """Whether its chain id has to be checked again."""
        return now.steady_s - self._chain_checked_s >= _CHAIN_CHECKED_S

    def calls_a_request(self, now: Moment) -> int:
        """The largest batch to send. Some time after a refusal, twice the size that it takes is tried."""
        if self._calls_a_request and now.steady_s - self._batch_refused_s >= _BATCH_REMEMBERED_S:
            self._calls_a_request = min(self.most_calls, 2 * self._calls_a_request)
            self._batch_refused_s = now.steady_s
        return min(self.most_calls, self._calls_a_request or self.most_calls)

    def hedge_after_s(self, heavy: bool) -> float | None:
        """When an answer is late enough to ask a second node: after twice the 90th percentile of latencies,
        as one request in ten may be hedged. None: too few latencies are known. ``heavy``: of simulations."""
        latencies = self._latencies.get(heavy, ())
        if len(latencies) < _FEWEST_LATENCIES:
            return None
        return max(_MIN_HEDGE_S, 2 * sorted(latencies)[len(latencies) * 9 // 10])

    # --- what happened --------------------------------------------------------------------------------

    def take(self, calls: int, now: Moment) -> None:
        """Counts calls that are sent. Raises ServiceFull when its daily budget has no room for them."""
        self.budget.spend(calls, now.wall_s)
        if self.calls_per_second:
            self._unused = self._unused_calls(now) - calls
            self._unused_at_s = now.steady_s

    def note_answer(self, took_s: float, heavy: bool) -> None:
        """Notes usable answers. Plain reads do not end a rest that a simulation caused."""
        self._latencies.setdefault(heavy, deque(maxlen=_LATENCIES)).append(took_s)
        self._waits = 0
        if heavy or not self._fails_heavy:
            self.faults = self._silent = 0
            self.rests_until_s = -math.inf
            self.why = ""
            self._fails_heavy = False

    def note_failure(self, why: str, now: Moment, chance: float, heavy: bool = False) -> None:
        """Notes a fault. ``chance``, from 0 to 1, spreads the rests of many services."""
        self._fails_heavy = self._fails_heavy or heavy
        rest_s = min(_LONGEST_REST_S, _FIRST_REST_S * 2.0 ** min(self.faults, 10))
        self.faults += 1
        self._silent = 0
        self.rests_until_s = now.steady_s + rest_s * (1 - chance / 2)
        self.why = why
        # Another node may answer at this url afterwards.
        self._chain_checked_s, self.speaks = -math.inf, None

    def note_late(self, why: str, now: Moment, chance: float, heavy: bool = False) -> None:
        """Notes that another node answered first. Once is chance; repeatedly is a fault."""
        self._silent += 1
        self._fails_heavy = self._fails_heavy or heavy
        if self.on_trial() or self._silent >= _MAX_SILENT:
            self.note_failure(why, now, chance, heavy)

    def note_slow_code(self) -> None:
        """Notes that it ran contracts' code for too long. It does not rest, but its dialect and its chain are
        checked again before its next simulation; it rests if it does not answer that."""
        self._chain_checked_s, self.speaks = -math.inf, None

    def note_rate_limit(
        self, why: str, now: Moment, retry_after_s: int | None = None, fault: NodeFault | None = None
    ) -> None:
        """Notes that the node limits its calls."""
        self.wait_fault = fault
        doubled = min(_LONGEST_REST_S, _FIRST_REST_S * 2.0 ** min(self._waits, 10))
        wait_s = doubled if retry_after_s is None else min(_MAX_RETRY_AFTER_S, max(doubled, retry_after_s))
        self._waits += 1
        self.waits_until_s = max(self.waits_until_s, now.steady_s + wait_s)
        self.why = why

    def note_behind(self, now: Moment) -> None:
        """Notes that it does not know a block that others know: no fault, only a short rest."""
        self.rests_until_s = max(self.rests_until_s, now.steady_s + _BEHIND_S)
        self.why = "the node is behind the others"

    def note_unserved(self, method: str, now: Moment) -> None:
        """Notes that the node refused a method as not served."""
        self._lacks[method] = now.steady_s + _LACK_REMEMBERED_S

    def note_batch_refusal(self, calls: int, now: Moment) -> None:
        """Notes that a request of this many calls was too large: half as many are sent from now on."""
        half = max(1, calls // 2)
        self._calls_a_request = min(self._calls_a_request or half, half)
        self._batch_refused_s = now.steady_s

    def note_dialect(self, speaks: bool, now: Moment, fault: NodeFault | None = None) -> None:
        """Notes whether it simulates in the expected dialect. If not, it is probed again after a while, as
        one odd answer proves nothing."""
        self.speaks, self._dialect_probed_s, self.dialect_fault = speaks, now.steady_s, fault
        self.why = self.why if speaks else "the node simulates in a different format"

    def has_other_dialect(self, now: Moment) -> bool:
        """Whether its last probe was recent and showed another dialect than answers are read in."""
        return self.speaks is False and now.steady_s - self._dialect_probed_s < _OTHER_DIALECT_S

    def note_chain(self, now: Moment) -> None:
        """Notes that the node is of the right chain."""
        self.other_chain, self._chain_checked_s = False, now.steady_s

    def note_other_chain(self, why: str, now: Moment, fault: NodeFault | None = None) -> None:
        """Notes that the node is of another chain: it is asked again after a while, after all others."""
        self.other_chain, self._chain_checked_s, self.speaks = True, -math.inf, None
        self.waits_until_s = now.steady_s + _OTHER_CHAIN_S
        self.wait_fault, self.why = fault, why

    def state(self, now: Moment) -> EndpointState:
        """Its state for display."""
        condition: Condition = "ok"
        if not self.affords(1, now):
            condition = "budget spent"
        elif self.other_chain:
            condition = "another chain"
        elif self.has_other_dialect(now):
            condition = "simulates otherwise"
        elif now.steady_s < self.waits_until_s:
            condition = "told to wait"
        elif self.faults or now.steady_s < self.rests_until_s:
            condition = "resting"
        lacks = tuple(sorted(method for method in self._lacks if self.lacks((method,), now)))
        why = "" if condition in ("ok", "budget spent") else self.why
        return EndpointState(self.host, condition, why, lacks, self.calls_a_request(now))

    def _burst(self) -> float:
        return max(1.0, self.calls_per_second * BURST_S)

    def _unused_calls(self, now: Moment) -> float:
        since_s = now.steady_s - self._unused_at_s
        return min(self._burst(), self._unused + since_s * self.calls_per_second)


@dataclass(slots=True)
class Hedging:
    """One request in ten may be sent to a second node; up to ten unused hedges are kept."""

    tenths: int = 10

    def earn(self) -> None:
        """Counts a request."""
        self.tenths = min(100, self.tenths + 1)

    def take(self) -> bool:
        """Takes one hedge; False where there is none."""
        if self.tenths < 10:
            return False
        self.tenths -= 10
        return True


# --- the choice ------------------------------------------------------------------------------------


class EndpointChoice(NamedTuple):
    """The node to ask, by its number, in ``wait_s``. ``well``: it does not rest and serves every method."""

    number: int
    wait_s: float
    well: bool


def choose(
    endpoints: Sequence[NodeEndpoint],
    methods: frozenset[str],
    calls: int,
    now: Moment,
    within_s: float,
    asked: frozenset[int] = frozenset(),
) -> EndpointChoice | None:
    """The next node to ask, of those not yet ``asked``; None where none may be asked within ``within_s``.

    First come nodes that serve every method and are well, in configured order, so that one check stays with
    one node; then resting nodes, the one whose rest ends first; then nodes that do not serve a method; last
    those that asked to wait. A node that is well is waited for before a resting one is asked.
    """
    ranked: list[tuple[int, float, float, int]] = []
    for number, endpoint in enumerate(endpoints):
        wait_s = endpoint.wait_s(calls, now)
        unfit = endpoint.has_other_dialect(now) and SIMULATES in methods
        if number in asked or unfit or wait_s > within_s or not endpoint.affords(calls, now):
            continue
        ranked.append((_rank(endpoint, methods, now), wait_s, _preference(endpoint, now), number))
    if not ranked:
        return None
    rank, wait_s, _, number = min(ranked)
    return EndpointChoice(number, wait_s, rank == 0)


def _rank(endpoint: NodeEndpoint, methods: frozenset[str], now: Moment) -> int:
    if now.steady_s < endpoint.waits_until_s:
        return 3
    if endpoint.lacks(methods, now):
        return 2
    return 1 if endpoint.rests(now) else 0


def _preference(endpoint: NodeEndpoint, now: Moment) -> float:
    """The lowest is preferred among equal ranks and waits: nodes of this chain, and the rest that ends
    first."""
    if endpoint.rests(now):
        return endpoint.rests_until_s
    return float(endpoint.other_chain)
