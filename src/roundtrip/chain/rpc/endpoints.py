"""How one of several nodes stands, and which of them is asked: plain state, with the time handed in.

Nothing here waits or sends; ``nodes`` does.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from .client import Budget

SIMULATES = "eth_simulateV1"
MOST_CALLS_A_REQUEST = 1_000
"""Where nothing else is set: what geth takes."""
BURST_S = 2.0
"""What a limit of calls a second leaves unused is kept for so long."""
_FIRST_REST_S, _LONGEST_REST_S = 1.0, 60.0
_MOST_RETRY_AFTER_S = 120.0
_OTHER_CHAIN_S = _UNLIKE_S = 60.0
_CHAIN_CHECKED_S = 30.0
_BEHIND_S = 1.0
_LACK_REMEMBERED_S = 600.0
_BATCH_REMEMBERED_S = 600.0
_MOST_SILENT = 3
_LATENCIES, _FEWEST_LATENCIES = 64, 8
_LEAST_HEDGE_S = 0.01


class Moment(NamedTuple):
    """``steady_s`` never goes back; ``wall_s`` counts from 1970, for budgets of a day."""

    steady_s: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class NodeUrl:
    """A node and what may be asked of it; 0 is no limit. Its path may be a key: it is never shown."""

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
    """For people: the host without path or user. ``why``: what put it there, in our words. ``lacks``: methods
    it has shown not to serve. ``calls_a_request``: what it takes, as far as it is known."""

    host: str
    condition: Condition
    why: str
    lacks: tuple[str, ...]
    calls_a_request: int


@dataclass(slots=True)
class NodeEndpoint:
    """One node. It rests after a fault, longer after each, and is then tried with one request at a time; a
    resting one is asked only where no better is left. While it is told to wait it is not asked at all."""

    host: str
    calls_per_second: float = 0
    budget: Budget = field(default_factory=Budget)
    most_calls: int = MOST_CALLS_A_REQUEST

    faults: int = 0
    rests_until_s: float = -math.inf
    waits_until_s: float = -math.inf
    why: str = ""
    other_chain: bool = False
    under_way: int = 0
    speaks: bool | None = None
    """Whether it simulates in the dialect that answers are read in; None: not found out."""
    _spoke_s: float = -math.inf
    _calls_a_request: int = 0
    _batch_refused_s: float = -math.inf
    _waits: int = 0
    _silent: int = 0
    _fails_heavy: bool = False
    _chain_told_s: float = -math.inf
    _lacks: dict[str, float] = field(default_factory=dict)
    _latencies: dict[bool, deque[float]] = field(default_factory=dict)
    _left: float = math.inf
    _left_at_s: float = -math.inf

    @staticmethod
    def of(node: NodeUrl) -> "NodeEndpoint":
        """The one behind a url, about which nothing is known yet."""
        parts = urlsplit(node.url)
        host = (parts.hostname or "?") + (f":{parts.port}" if parts.port else "")
        most = node.calls_a_request or MOST_CALLS_A_REQUEST
        return NodeEndpoint(host, node.calls_per_second, Budget(node.calls_per_day), most)

    # --- what it may be asked -------------------------------------------------------------------------

    def rests(self, now: Moment) -> bool:
        """True after a fault: until it is over, and while one request finds out whether it is."""
        return now.steady_s < self.rests_until_s or (self.faults > 0 and self.under_way > 0)

    def on_trial(self) -> bool:
        """True when its last answer was a fault."""
        return self.faults > 0

    def lacks(self, methods: Iterable[str], now: Moment) -> bool:
        """Whether it has shown, not long ago, not to serve one of them."""
        return any(now.steady_s < self._lacks.get(method, -math.inf) for method in methods)

    def affords(self, calls: int, now: Moment) -> bool:
        """Whether its day has room for so many calls."""
        return self.budget.affords(calls, now.wall_s)

    def wait_s(self, calls: int, now: Moment) -> float:
        """How long until so many calls may be sent; 0: at once."""
        waits = max(0.0, self.waits_until_s - now.steady_s)
        if self.calls_per_second:
            short = min(calls, self._burst()) - self._unused_calls(now)
            # A nanosecond more: what is too little by a rounding would be waited for again and again.
            waits = max(waits, short / self.calls_per_second + 1e-9 if short > 0 else 0.0)
        return waits

    def chain_is_due(self, now: Moment) -> bool:
        """Whether it has to say again which chain it is of."""
        return now.steady_s - self._chain_told_s >= _CHAIN_CHECKED_S

    def calls_a_request(self, now: Moment) -> int:
        """The largest batch it is given. One that was refused is tried again after a while, twice as large
        as what it took."""
        if self._calls_a_request and now.steady_s - self._batch_refused_s >= _BATCH_REMEMBERED_S:
            self._calls_a_request = min(self.most_calls, 2 * self._calls_a_request)
            self._batch_refused_s = now.steady_s
        return min(self.most_calls, self._calls_a_request or self.most_calls)

    def hedge_after_s(self, heavy: bool) -> float | None:
        """When an answer is late: twice what nine in ten take. One in ten may be hedged, so what is slower
        than that is what a hedge is for. None: too little is known. ``heavy``: simulations."""
        found = self._latencies.get(heavy, ())
        if len(found) < _FEWEST_LATENCIES:
            return None
        return max(_LEAST_HEDGE_S, 2 * sorted(found)[len(found) * 9 // 10])

    # --- what happened --------------------------------------------------------------------------------

    def take(self, calls: int, now: Moment) -> None:
        """So many calls are sent. Raises ServiceFull when its day has no room for them."""
        self.budget.spend(calls, now.wall_s)
        if self.calls_per_second:
            self._left = self._unused_calls(now) - calls
            self._left_at_s = now.steady_s

    def note_answer(self, took_s: float, heavy: bool) -> None:
        """It gave answers. Plain reads do not show that it simulates again."""
        self._latencies.setdefault(heavy, deque(maxlen=_LATENCIES)).append(took_s)
        self._waits = 0
        if heavy or not self._fails_heavy:
            self.faults = self._silent = 0
            self.rests_until_s = -math.inf
            self.why = ""
            self._fails_heavy = False

    def note_failure(self, why: str, now: Moment, chance: float, heavy: bool = False) -> None:
        """It gave none. ``chance``, from 0 to 1, spreads the rests of many services."""
        self._fails_heavy = self._fails_heavy or heavy
        rest_s = min(_LONGEST_REST_S, _FIRST_REST_S * 2.0 ** min(self.faults, 10))
        self.faults += 1
        self._silent = 0
        self.rests_until_s = now.steady_s + rest_s * (1 - chance / 2)
        self.why = why
        # Who answers after this may be somebody else.
        self._chain_told_s, self.speaks = -math.inf, None

    def was_late(self, why: str, now: Moment, chance: float, heavy: bool = False) -> None:
        """Another answered before it. Once is chance; again and again is a fault."""
        self._silent += 1
        self._fails_heavy = self._fails_heavy or heavy
        if self.on_trial() or self._silent >= _MOST_SILENT:
            self.note_failure(why, now, chance, heavy)

    def is_in_doubt(self) -> None:
        """It ran contracts' code for too long. It does not rest: before its next simulation it answers the
        cheap questions about its dialect and its chain, and rests if it does not."""
        self._chain_told_s, self.speaks = -math.inf, None

    def told_to_wait(self, why: str, now: Moment, retry_after_s: int | None = None) -> None:
        """It will not be asked so much."""
        doubled = min(_LONGEST_REST_S, _FIRST_REST_S * 2.0 ** min(self._waits, 10))
        wait_s = doubled if retry_after_s is None else min(_MOST_RETRY_AFTER_S, max(doubled, retry_after_s))
        self._waits += 1
        self.waits_until_s = max(self.waits_until_s, now.steady_s + wait_s)
        self.why = why

    def is_behind(self, now: Moment) -> None:
        """It does not know a block that others know: it is no fault, and passes."""
        self.rests_until_s = max(self.rests_until_s, now.steady_s + _BEHIND_S)
        self.why = "it is behind the others"

    def does_not_serve(self, method: str, now: Moment) -> None:
        """It said so."""
        self._lacks[method] = now.steady_s + _LACK_REMEMBERED_S

    def refused_batch(self, calls: int, now: Moment) -> None:
        """A request of so many calls was too large for it: half as many are sent from now on."""
        half = max(1, calls // 2)
        self._calls_a_request = min(self._calls_a_request or half, half)
        self._batch_refused_s = now.steady_s

    def told_speech(self, speaks: bool, now: Moment) -> None:
        """How it simulates. Who does otherwise is asked again after a while: one odd answer is no dialect."""
        self.speaks, self._spoke_s = speaks, now.steady_s
        self.why = self.why if speaks else "it simulates otherwise"

    def is_unlike(self, now: Moment) -> bool:
        """Whether it has lately shown to simulate in another way than answers are read in."""
        return self.speaks is False and now.steady_s - self._spoke_s < _UNLIKE_S

    def told_chain(self, now: Moment) -> None:
        """It is of the right chain."""
        self.other_chain, self._chain_told_s = False, now.steady_s

    def told_other_chain(self, why: str, now: Moment) -> None:
        """It is of another chain: asked again after a while, and then behind all others."""
        self.other_chain, self._chain_told_s, self.speaks = True, -math.inf, None
        self.waits_until_s = now.steady_s + _OTHER_CHAIN_S
        self.why = why

    def state(self, now: Moment) -> EndpointState:
        """For people."""
        condition: Condition = "ok"
        if not self.affords(1, now):
            condition = "budget spent"
        elif self.other_chain:
            condition = "another chain"
        elif self.is_unlike(now):
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
        since_s = now.steady_s - self._left_at_s
        return min(self._burst(), self._left + since_s * self.calls_per_second)


@dataclass(slots=True)
class Hedging:
    """One request in ten may be asked a second time, and what is not used is kept for ten of them."""

    tenths: int = 10

    def earn(self) -> None:
        """A request was made."""
        self.tenths = min(100, self.tenths + 1)

    def take(self) -> bool:
        """Whether one more may be asked twice, which is then counted."""
        if self.tenths < 10:
            return False
        self.tenths -= 10
        return True


# --- whom to ask -----------------------------------------------------------------------------------


class EndpointChoice(NamedTuple):
    """The one to ask, by its number, in ``wait_s``. ``well``: it does not rest and lacks nothing."""

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
    """Whom to ask next, of those not ``asked`` yet; None where nobody may be asked within ``within_s``.

    First those that serve every method and are well, in the order they were configured: so that one check
    stays with one node. Then those that rest, the one whose rest ends first; then those that have
    shown not to serve a method. One that is well is waited for rather than a resting one asked.
    """
    ranked: list[tuple[int, float, float, int]] = []
    for number, endpoint in enumerate(endpoints):
        wait_s = endpoint.wait_s(calls, now)
        unfit = endpoint.is_unlike(now) and SIMULATES in methods
        if number in asked or unfit or wait_s > within_s or not endpoint.affords(calls, now):
            continue
        ranked.append((_kind(endpoint, methods, now), wait_s, _preference(endpoint, now), number))
    if not ranked:
        return None
    kind, wait_s, _, number = min(ranked)
    return EndpointChoice(number, wait_s, kind == 0)


def _kind(endpoint: NodeEndpoint, methods: frozenset[str], now: Moment) -> int:
    if now.steady_s < endpoint.waits_until_s:
        return 3
    if endpoint.lacks(methods, now):
        return 2
    return 1 if endpoint.rests(now) else 0


def _preference(endpoint: NodeEndpoint, now: Moment) -> float:
    """Of equals the one that is known to be of this chain, and of those at rest the one nearest its end."""
    if endpoint.rests(now):
        return endpoint.rests_until_s
    return float(endpoint.other_chain)
