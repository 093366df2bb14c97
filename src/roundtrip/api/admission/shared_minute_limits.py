"""Calls counted by the minute for several processes together, in Valkey."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from roundtrip.api.request.callers import start_detached_task
from roundtrip.api.sharing.valkey import NAMESPACE, Script, StoreUnavailable
from roundtrip.api.sharing.valkey_cluster import SharedStore

from .minute_limits import WINDOW_MS, MinuteLimits, Ticket, over

_MAX_AT_ONCE = 500
"""Calls, and refunds, in one script."""
_MAX_WAITING = 5_000
_MAX_KEPT = 50_000
"""Refunds that wait; beyond it the oldest are dropped."""
SETTLE_S = 0.5
"""How long the last scripts may take when the process ends."""
_LAST_MS = 253_402_300_800_000
"""The end of the year 9999: no clock says more."""

_COUNT = Script(
    f"""\
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local came = {{}}
for i, key in ipairs(KEYS) do
  local limit = tonumber(ARGV[2 * i + 1])
  if limit == 0 then
    redis.pcall('LREM', key, 1, ARGV[2 * i])
  else
    local found = redis.pcall('LINDEX', key, -1)
    local last = tonumber(found)
    if found and not (last and last <= now + {WINDOW_MS}) then
      redis.call('DEL', key)
      last = nil
    end
    local first = tonumber(redis.call('LINDEX', key, 0))
    while first and first <= now - {WINDOW_MS} do
      redis.call('LPOP', key)
      first = tonumber(redis.call('LINDEX', key, 0))
    end
    local count = redis.call('LLEN', key)
    if count >= limit then
      came[#came + 1] = -1
      came[#came + 1] = redis.call('LINDEX', key, count - limit) + {WINDOW_MS} - now
    else
      local taken = now
      if count > 0 then taken = math.max(now, last) end
      redis.call('RPUSH', key, string.format('%.0f', taken))
      redis.call('PEXPIRE', key, string.format('%.0f', taken - now + {WINDOW_MS + 1000}))
      came[#came + 1] = taken
      came[#came + 1] = limit - count - 1
    end
  end
end
return came
"""
)
"""As ``MinuteLimits.take`` and ``refund``. Keys: for each caller, a list of the times of its calls.
Arguments: now in ms since 1970 (empty: the store's clock), then for each key a time and a limit. Limit 0
refunds the call of that time; any other takes a call, and the time is ignored. A value that is no list of
times is deleted before a call is taken. Returns for each call taken when it was (ms since 1970) and how many
are left; or -1 and how many ms to wait."""


class _SharedTicket(Ticket, frozen=True):
    """A call that all processes count. ``own``: the same call as this process counts it, by its own clock."""

    own: Ticket


@dataclass(slots=True)
class _WaitingLimit:
    """A call that waits for its script. ``came``: what ``_COUNT`` returns for it; None: the store is
    unavailable."""

    key: bytes
    limit: int
    came: asyncio.Future[tuple[int, int] | None]


@dataclass(slots=True)
class _CountQueue:
    """Calls and refunds (``backs``) whose keys may be in one script; ``flushing`` sends one script after the
    other."""

    flushing: asyncio.Task[None] | None = None
    waiting: deque[_WaitingLimit] = field(default_factory=deque)
    backs: deque[tuple[bytes, int]] = field(default_factory=lambda: deque(maxlen=_MAX_KEPT))


@dataclass(slots=True)
class SharedMinutes:
    """At most ``limit`` calls in any sixty seconds over all processes that share the store, by the store's
    clock. ``limits`` counts the calls of this process besides, by its own clock, and decides alone while the
    store is unavailable.

    One script is under way at a time; calls that arrive meanwhile are in the next one. In a cluster that
    holds for each caller. ``now_ms``: since 1970, instead of the store's clock. ``service``: the id of this
    service; other services may use the same store.
    """

    limits: MinuteLimits
    valkey: SharedStore
    now_ms: Callable[[], int] | None = None
    service: str = ""
    is_lasting: bool = True
    _queues: dict[bytes, _CountQueue] = field(default_factory=dict)

    async def take(self, caller: str, limit: int) -> Ticket:
        """Counts one call. Raises LimitReached (rate_limited) with the seconds to wait; what this process
        alone has counted is refused without asking."""
        local = self.limits.take(caller, limit)
        key = self._key(local.caller)
        if self.valkey.is_gone(key):
            return local
        queue = self._open_queue(key)
        if len(queue.waiting) >= _MAX_WAITING:
            return local
        waiting = _WaitingLimit(key, limit, asyncio.get_running_loop().create_future())
        queue.waiting.append(waiting)
        try:
            counted = await asyncio.shield(waiting.came)
        except asyncio.CancelledError:
            self._forget_caller(local, waiting)
            raise
        if counted is None:
            return local
        taken_ms, left = counted
        if taken_ms < 0:
            self.limits.refund(local)
            raise over(limit, left)
        return _SharedTicket(local.caller, taken_ms, limit, min(left, local.remaining), local)

    def refund(self, ticket: Ticket) -> Ticket:
        """Uncounts a call: here at once, in the store with the next script, if that ever runs."""
        if not isinstance(ticket, _SharedTicket):
            return self.limits.refund(ticket)
        local = self.limits.refund(ticket.own)
        self._refund_later(self._key(ticket.caller), ticket.taken_ms)
        return msgspec.structs.replace(
            ticket, remaining=ticket.remaining + local.remaining - ticket.own.remaining
        )

    async def settle(self, within_s: float = SETTLE_S) -> None:
        """Waits for scripts that are under way or queued, refunds too, for ``within_s`` at most."""
        flushing = [queue.flushing for queue in self._queues.values() if queue.flushing is not None]
        if flushing:
            await asyncio.wait(flushing, timeout=within_s)

    def _refund_later(self, key: bytes, taken_ms: int) -> None:
        if not self.valkey.is_gone(key):
            self._open_queue(key).backs.append((key, taken_ms))

    def _forget_caller(self, local: Ticket, waiting: _WaitingLimit) -> None:
        """Refunds the call of a caller that disconnected before it was admitted."""

        def return_place(future: asyncio.Future[tuple[int, int] | None]) -> None:
            counted = None if future.cancelled() else future.result()
            if counted is not None and counted[0] >= 0:
                self._refund_later(waiting.key, counted[0])

        self.limits.refund(local)
        waiting.came.add_done_callback(return_place)

    def _open_queue(self, key: bytes) -> _CountQueue:
        """The queue of a key, which is sent in the next turn of the loop if it is not under way."""
        batch = self.valkey.batch_of(key)
        queue = self._queues.get(batch)
        if queue is None:
            queue = self._queues[batch] = _CountQueue()
            queue.flushing = start_detached_task(self._flush(batch, queue), "minutes")
        return queue

    async def _flush(self, batch: bytes, queue: _CountQueue) -> None:
        waiting: list[_WaitingLimit] = []
        try:
            while queue.waiting or queue.backs:
                backs = [queue.backs.popleft() for _ in range(min(_MAX_AT_ONCE, len(queue.backs)))]
                waiting = [queue.waiting.popleft() for _ in range(min(_MAX_AT_ONCE, len(queue.waiting)))]
                _resolve(waiting, await self._run_script(backs, waiting))
        finally:
            del self._queues[batch]
            _resolve([*waiting, *queue.waiting], None)

    async def _run_script(
        self, backs: list[tuple[bytes, int]], waiting: list[_WaitingLimit]
    ) -> list[tuple[int, int]] | None:
        keys = [key for key, _ in backs] + [call.key for call in waiting]
        args: list[str | int] = ["" if self.now_ms is None else self.now_ms()]
        for _, taken_ms in backs:
            args += [taken_ms, 0]
        for call in waiting:
            args += [0, call.limit]
        try:
            answer = await self.valkey.run(_COUNT, keys, args)
        except StoreUnavailable:
            return None
        numbers = answer if isinstance(answer, list) else [answer]
        if len(numbers) != 2 * len(waiting) or not all(_is_plausible(number) for number in numbers):
            self.valkey.mark_unavailable("counts that are none", keys[0])
            return None
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def _key(self, caller: str) -> bytes:
        return f"{NAMESPACE}:{self.service}:minute:{caller}".encode("utf-8", "surrogatepass")


def _resolve(waiting: list[_WaitingLimit], counts: list[tuple[int, int]] | None) -> None:
    for at, call in enumerate(waiting):
        if not call.came.done():
            call.came.set_result(None if counts is None else counts[at])


def _is_plausible(number: object) -> bool:
    return isinstance(number, int) and -1 <= number < _LAST_MS
