"""Counted calls, and answers that everyone shares for a while. In this process; time comes in."""

import asyncio
import contextlib
import functools
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv6Address, ip_address

from roundtrip.domain.errors import LimitReached, ServiceFull

WINDOW_MS = 60_000
MOST_LOADED = 1_000_000
_MOST_CALLERS = 100_000
_OVERFLOW = "address:overflow"
"""Under which callers without a key are counted together while too many others are."""
_MOST_ANSWERS = 10_000
_MOST_NAME = 64
_MOST_HOSTS = 10_000
_LEAST_OF_ACCOUNT = 2


@dataclass(frozen=True, slots=True)
class Ticket:
    """One counted call: what is left of the minute, and what to hand back if it shall not count.
    ``taken_ms``: since 1970."""

    caller: str
    taken_ms: int
    limit: int
    remaining: int


@dataclass(slots=True)
class MinuteLimits:
    """At most ``limit`` calls in any sixty seconds, for each caller on its own. ``now_ms``: since 1970, since
    counts outlive the process.

    A counted call can be handed back, which the well-kept limiters cannot do for a moving window: an
    answer that the node's fault spoiled costs nobody a call.
    """

    now_ms: Callable[[], int]
    _calls: OrderedDict[str, deque[int]] = field(default_factory=OrderedDict)

    def load(self, calls: Iterable[tuple[str, int, int]]) -> None:
        """Remembers calls of before this process began: caller, when, how many; the oldest first."""
        for caller, taken_ms, count in calls:
            known = self._of(self._counted_as(caller))
            is_late = bool(known) and known[-1] > taken_ms
            known.extend([taken_ms] * count)
            if is_late:
                # Others were counted before these could be read.
                in_order = sorted(known)
                known.clear()
                known.extend(in_order)

    def take(self, caller: str, limit: int) -> Ticket:
        """Counts one call. Raises LimitReached (rate_limited) with the seconds to wait."""
        now = self.now_ms()
        caller = self._counted_as(caller)
        calls = self._of(caller)
        # A clock that was put back: what it says lies in the future would count for as long as that is.
        if calls and calls[-1] > now + WINDOW_MS:
            calls.clear()
        while calls and calls[0] <= now - WINDOW_MS:
            calls.popleft()
        if len(calls) >= limit:
            free_ms = calls[len(calls) - limit] + WINDOW_MS
            wait_s = -((now - free_ms) // 1000)
            said = f"More than {limit} calls in a minute; ask again in {wait_s} s."
            raise LimitReached("rate_limited", said, wait_s, limit)
        taken = max(now, calls[-1]) if calls else now
        calls.append(taken)
        return Ticket(caller, taken, limit, limit - len(calls))

    def hand_back(self, ticket: Ticket) -> Ticket:
        """Uncounts a call."""
        calls = self._calls.get(ticket.caller)
        if calls is None or ticket.taken_ms not in calls:
            return ticket
        calls.remove(ticket.taken_ms)
        return replace(ticket, remaining=ticket.remaining + 1)

    def _of(self, caller: str) -> deque[int]:
        calls = self._calls.setdefault(caller, deque())
        self._calls.move_to_end(caller)
        return calls

    def _counted_as(self, caller: str) -> str:
        """Its own name as long as there is room: nobody's minute is forgotten before it is over. Accounts
        always have their own."""
        if caller in self._calls or len(self._calls) < _MOST_CALLERS:
            return caller
        oldest, calls = next(iter(self._calls.items()))
        if not calls or calls[-1] <= self.now_ms() - WINDOW_MS:
            del self._calls[oldest]
            return caller
        return caller if caller.startswith("mite:") else _OVERFLOW


def parsed(host: str | None) -> IPv4Address | IPv6Address | None:
    """An address as text, with or without a port behind it, a v4-mapped one as the IPv4 it is; None when
    it is none."""
    text = host or ""
    if text.startswith("["):
        text = text[1:].split("]")[0]
    elif text.count(":") == 1:
        text = text.split(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


@functools.lru_cache(maxsize=_MOST_HOSTS)
def anonymous(host: str | None) -> str:
    """Who an address counts as: IPv4 whole, IPv6 by its /64, v4-mapped IPv6 as the IPv4 it is."""
    address = parsed(host)
    if address is None:
        # A proxy's word: of any length, and with NUL, which the database cannot hold.
        return f"address:{(host or 'unknown')[:_MOST_NAME].replace(chr(0), '')}"
    if isinstance(address, IPv4Address):
        return f"address:{address}"
    return f"address:{int(address) >> 64:x}/64"


@dataclass(frozen=True, slots=True)
class Shared:
    """An encoded answer that is handed to everyone who asks within its time. ``forms``: what doors made of
    it, by names of their own, so that each form is made once."""

    body: bytes
    ttl_ms: int
    counted: bool
    forms: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)


@dataclass(slots=True)
class SharedAnswers:
    """One run for everyone who asks the same thing at once, and its answer for all until it is old.

    ``most_running`` runs may be under way; one more raises ServiceFull (busy). The last quarter of the places
    is for callers with a key (``keyed``). ``account``: whose run it is; it has an eighth of the
    places at most, since accounts are free.
    """

    clock: Callable[[], float]
    most_running: int = 128
    _kept: OrderedDict[str, tuple[float, Shared]] = field(default_factory=OrderedDict)
    _running: dict[str, asyncio.Task[Shared]] = field(default_factory=dict)
    _alone: int = 0
    _of_account: Counter[int] = field(default_factory=Counter)

    def fresh(self, key: str) -> Shared | None:
        """The kept answer, if it is not too old."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept[0] <= self.clock():
            del self._kept[key]
            return None
        return kept[1]

    async def get(
        self,
        key: str,
        make: Callable[[], Awaitable[Shared]],
        keyed: bool = False,
        account: int | None = None,
    ) -> tuple[Shared, bool]:
        """The answer, and whether it was there already (a run that was under way counts as there).

        A caller that goes away does not end the run: others may be waiting for it.
        """
        kept = self.fresh(key)
        if kept is not None:
            return kept, True
        task = self._running.get(key)
        if task is not None:
            return await asyncio.shield(task), True
        self._check_room(keyed, account)
        task = asyncio.create_task(self._run(key, make))
        self._running[key] = task
        if account is not None:
            self._of_account[account] += 1
            task.add_done_callback(lambda _: self._ended(account))
        return await asyncio.shield(task), False

    @contextlib.contextmanager
    def alone(self, keyed: bool = False, account: int | None = None) -> Iterator[None]:
        """A run that is nobody else's, among as many as may be under way. Raises ServiceFull (busy)."""
        self._check_room(keyed, account)
        self._alone += 1
        if account is not None:
            self._of_account[account] += 1
        try:
            yield
        finally:
            self._alone -= 1
            if account is not None:
                self._ended(account)

    def _ended(self, account: int) -> None:
        self._of_account[account] -= 1
        if not self._of_account[account]:
            del self._of_account[account]

    def _check_room(self, keyed: bool, account: int | None) -> None:
        most_of_one = max(_LEAST_OF_ACCOUNT, self.most_running // 8)
        if account is not None and self._of_account[account] >= most_of_one:
            said = f"{most_of_one} simulations of this account are under way; ask again in a moment."
            raise ServiceFull("busy", said, 1)
        places = self.most_running if keyed else self.most_running - self.most_running // 4
        if len(self._running) + self._alone >= places:
            raise ServiceFull("busy", "Too many simulations are under way; ask again in a moment.", 1)

    async def _run(self, key: str, make: Callable[[], Awaitable[Shared]]) -> Shared:
        try:
            shared = await make()
            if shared.ttl_ms > 0:
                self._kept[key] = (self.clock() + shared.ttl_ms / 1000, shared)
                self._kept.move_to_end(key)
                if len(self._kept) > _MOST_ANSWERS:
                    self._kept.popitem(last=False)
            return shared
        finally:
            del self._running[key]

    async def settle(self) -> None:
        """Waits for what is under way; its results are no longer wanted."""
        await asyncio.gather(*self._running.values(), return_exceptions=True)
