"""Reads the events of the stream once for all readers of this process, and hands them out."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

import structlog

from roundtrip.api.request.request_ids import start_detached_task
from roundtrip.domain.base.errors import LimitReached, RoundtripError, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.verdicts.stream_position import StreamPosition
from roundtrip.services.verdicts.news import NewsCursor, NewsEvent, NewsSource, StreamPlan, notice

MAX_STREAMS = 1_500
"""Streams of one process, below its connections."""
MAX_PER_ACCOUNT = 5
MAX_WAITING, MAX_WAITING_BYTES = 256, 256 * 1024
"""Events of one stream that wait for its reader; one more cuts it."""
PAUSE_S = 0.2
HEARTBEAT_S = 15.0
_FULL_S, _ACCOUNT_FULL_S = 30, 15
log = structlog.get_logger(__name__)


def encode_event(event: NewsEvent) -> bytes:
    """One server-sent event. JSON has no line ends."""
    position, kind = str(event.position).encode(), event.kind.encode()
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (position, kind, event.data)


class StreamListener:
    """One reader's events, bounded. ``tokens``, ``kinds``: what it wants. ``key_hash``: of the key that
    opened it; the stream ends when that is revoked."""

    def __init__(self, plan: StreamPlan, key_hash: bytes | None = None) -> None:
        self.account_id = plan.account_id
        self.key_hash = key_hash
        self.tokens = None if plan.tokens is None else frozenset(map(Address, plan.tokens))
        self.kinds = frozenset(plan.kinds)
        self.is_cut = False
        self.has_ended = False
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._wake = asyncio.Event()

    def wants(self, event: NewsEvent) -> bool:
        """Whether the event is for this reader."""
        if event.kind in ("reorg", "gap", "cut"):
            return True
        if event.kind not in self.kinds:
            return False
        if event.account_id is not None:
            return event.account_id == self.account_id
        return self.tokens is None or event.token in self.tokens

    def put(self, encoded: bytes) -> None:
        """Queues an event; a full queue is dropped, and the stream is cut."""
        if not self.is_open():
            return
        if len(self._waiting) >= MAX_WAITING or self._bytes + len(encoded) > MAX_WAITING_BYTES:
            self.is_cut = True
            self._waiting.clear()
        else:
            self._waiting.append(encoded)
            self._bytes += len(encoded)
        self._wake.set()

    def is_open(self) -> bool:
        """Whether more is to be sent."""
        return not self.is_cut and not self.has_ended

    def end(self) -> None:
        """Ends the stream."""
        self.has_ended = True
        self._wake.set()

    def beat(self) -> None:
        """Wakes a reader without events, so that it shows that the stream is alive."""
        self._wake.set()

    async def take(self) -> bytes:
        """The queued events, once there are any; empty: a heartbeat is due, or the stream was cut or has
        ended."""
        await self._wake.wait()
        self._wake.clear()
        taken = b"".join(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        return taken


class StreamHub:
    """Reads events while there are readers. ``most``: limit of this process's streams; ``most_per_account``:
    of one account's."""

    def __init__(
        self,
        source: NewsSource,
        pause: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(PAUSE_S),
        until_beat: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(HEARTBEAT_S),
        most: int = MAX_STREAMS,
        most_per_account: int = MAX_PER_ACCOUNT,
    ) -> None:
        self.source = source
        self._pause, self._until_beat = pause, until_beat
        self._most, self._most_per_account = most, most_per_account
        self._listeners: set[StreamListener] = set()
        self._by_account: Counter[int] = Counter()
        self._cursor: NewsCursor | None = None
        self._beginning = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_failing = False

    def count_streams(self) -> int:
        """The number of open streams."""
        return self._by_account.total()

    @contextlib.contextmanager
    def reserve_stream(self, account_id: int) -> Iterator[None]:
        """Reserves a stream of an account while the block runs. Raises LimitReached (rate_limited),
        ServiceFull (busy)."""
        if self._by_account[account_id] >= self._most_per_account:
            text = f"Your account has {self._most_per_account} streams open, the most allowed. Close one."
            raise LimitReached("rate_limited", text, _ACCOUNT_FULL_S, self._most_per_account)
        if self.count_streams() >= self._most:
            raise ServiceFull("busy", "Too many streams are open at this service. Retry in 30 s.", _FULL_S)
        self._by_account[account_id] += 1
        try:
            yield
        finally:
            self._by_account[account_id] -= 1
            if not self._by_account[account_id]:
                del self._by_account[account_id]

    @contextlib.asynccontextmanager
    async def listen(self, listener: StreamListener) -> AsyncIterator[StreamPosition]:
        """Hands events to the listener while the block runs; yields the position from which on it does.
        Raises ServiceFull (busy)."""
        async with self._beginning:
            if self._cursor is None:
                self._cursor = await self.source.begin()
        cursor = self._cursor
        self._listeners.add(listener)
        if not self._tasks:
            self._tasks = [
                start_detached_task(self._follow(cursor), "event stream"),
                start_detached_task(self._beat(), "event stream's heartbeat"),
            ]
        try:
            yield cursor.position
        finally:
            self._listeners.discard(listener)
            if not self._listeners:
                # The next reader begins at the newest events.
                for task in self._tasks:
                    task.cancel()
                self._tasks, self._cursor = [], None

    def position(self) -> StreamPosition | None:
        """How far events were handed out; None: there is no reader."""
        return None if self._cursor is None else self._cursor.position

    def publish(self, events: Iterable[NewsEvent]) -> None:
        """Queues events for the readers that want them; each is encoded once."""
        for event in events:
            encoded = encode_event(event)
            for listener in self._listeners:
                if listener.wants(event):
                    listener.put(encoded)

    async def _beat(self) -> None:
        # One timer for all: a timer of each reader would double the time that an event takes to reach them.
        while True:
            await self._until_beat()
            for listener in self._listeners:
                listener.beat()

    async def _end_revoked(self) -> None:
        """Ends the streams of keys that were revoked, in this process or in another one."""
        hashes = {one.key_hash for one in self._listeners if one.key_hash is not None}
        dead = await self.source.dead_keys(hashes) if hashes else set()
        for listener in self._listeners:
            if listener.key_hash in dead:
                listener.end()

    async def _follow(self, cursor: NewsCursor) -> None:
        while True:
            is_whole = True
            try:
                await self._end_revoked()
                accounts = {one.account_id for one in self._listeners if "alert" in one.kinds}
                turn = await self.source.read(cursor, accounts)
                self.publish(turn.events)
                is_whole = turn.is_whole
                self._is_failing = False
            except RoundtripError as error:
                # Nothing is lost: the next turn reads from the same position.
                if not self._is_failing:
                    log.warning("reading events failed", error=error.message)
                self._is_failing = True
            except Exception:
                if not self._is_failing:
                    log.exception("reading events failed")
                self._is_failing = True
            if is_whole:
                await self._pause()


def cut_notice(position: StreamPosition) -> bytes:
    """The last event of a stream that is cut because its reader is slow."""
    text = (
        f"The stream is cut: you read too slowly, and more than {MAX_WAITING} events or "
        f"{MAX_WAITING_BYTES // 1024} KiB waited for you. Connect again with Last-Event-ID to resume."
    )
    return encode_event(notice("cut", text, position))
