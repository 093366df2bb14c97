"""Reads the events of the stream once for all readers of this process, and hands them out. Sends one reader
its events (server-sent events)."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping

import structlog
from starlette.types import Receive, Send

from roundtrip.api.operations.operation import EVENTS
from roundtrip.api.request.callers import start_detached_task
from roundtrip.api.server.drain import EndlessAnswers
from roundtrip.api.server.responses import NO_STORE
from roundtrip.domain.base.errors import LimitReached, RoundtripError, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.verdicts.stream_position import StreamPosition, parse_position
from roundtrip.services.verdicts.news import NewsCursor, NewsEvent, NewsSource, StreamPlan, notice

MAX_STREAMS = 1_500
"""Streams of one process, below its connections."""
MAX_PER_ACCOUNT = 5
MAX_WAITING, MAX_WAITING_BYTES = 256, 256 * 1024
"""Events of one stream that wait for its reader; one more cuts it."""
PAUSE_S = 0.2
HEARTBEAT_S = 15.0
_FULL_S, _ACCOUNT_FULL_S = 30, 15
"""When a refused reader shall retry: the process, or its account, has no room."""
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
        hashes = {reader.key_hash for reader in self._listeners if reader.key_hash is not None}
        dead = await self.source.dead_keys(hashes) if hashes else set()
        for listener in self._listeners:
            if listener.key_hash in dead:
                listener.end()

    async def _follow(self, cursor: NewsCursor) -> None:
        while True:
            is_whole = True
            try:
                await self._end_revoked()
                accounts = {reader.account_id for reader in self._listeners if "alert" in reader.kinds}
                events, is_whole = await self.source.read(cursor, accounts)
                self.publish(events)
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


MAX_OPEN_S = 900.0
"""A stream ends after this, and its client connects again."""
_HEARTBEAT = b": still there\n"


def shown_last_event_id(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The request's Last-Event-ID as the stream's parameter; empty where it has none."""
    shown = {value.decode("latin-1") for name, value in headers if name == b"last-event-id"}
    return {"lastEventId": ",".join(sorted(shown))} if shown else {}


async def send_stream(
    hub: StreamHub,
    plan: StreamPlan,
    headers: Mapping[str, str],
    retry_ms: int,
    receive: Receive,
    send: Send,
    ending: EndlessAnswers,
    most_open_s: float = MAX_OPEN_S,
    key_hash: bytes | None = None,
) -> None:
    """Sends events until the client disconnects or reads too slowly, the server shuts down, the stream was
    open for ``most_open_s``, or the key of ``key_hash`` is revoked. The caller has reserved the stream.
    ``retry_ms``: when a disconnected browser reconnects. Raises ServiceFull (busy) before anything is
    sent."""
    listener = StreamListener(plan, key_hash)
    with ending.on_shutdown(listener.end):
        async with hub.listen(listener) as start:
            position = start if plan.after is None else parse_position(plan.after)
            missed = [] if plan.after is None else await hub.source.resume(plan, position, start)
            encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
            encoded += [(b"content-type", EVENTS.encode()), NO_STORE]
            # The connection closes with the stream, so that the client reconnects to a process that serves.
            encoded += [(b"connection", b"close"), (b"x-accel-buffering", b"no")]
            await send({"type": "http.response.start", "status": 200, "headers": encoded})
            await send(_body(b"retry: %d\n%s" % (retry_ms, _id_line(position))))
            disconnect = asyncio.create_task(_end_on_disconnect(receive, listener))
            closing = asyncio.get_running_loop().call_later(most_open_s, listener.end)
            try:
                for event in missed:
                    if listener.wants(event):
                        await send(_body(encode_event(event)))
                await send(_body(_id_line(start)))
                await _send_events(hub, listener, start, send)
            finally:
                disconnect.cancel()
                closing.cancel()


async def _send_events(hub: StreamHub, listener: StreamListener, start: StreamPosition, send: Send) -> None:
    while listener.is_open():
        # Read before the queue is taken: every event up to this position is in it, or was sent.
        position = hub.position() or start
        taken = await listener.take()
        if not taken and listener.is_open():
            taken = _HEARTBEAT + _id_line(position)
        if taken and not listener.is_cut:
            await send(_body(taken))
            start = position
    last = cut_notice(start) if listener.is_cut else b""
    await send({"type": "http.response.body", "body": last, "more_body": False})


def _id_line(position: StreamPosition) -> bytes:
    """Sets the client's last event id, without an event."""
    return b"id: %s\n\n" % str(position).encode()


def _body(body: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": body, "more_body": True}


async def _end_on_disconnect(receive: Receive, listener: StreamListener) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    listener.end()
