"""Live boards: each board is read once for all its viewers, and sent by server-sent events."""

import asyncio
import contextlib
import functools
import re
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from roundtrip.api.request.callers import start_detached_task
from roundtrip.api.server.drain import EndlessAnswers
from roundtrip.api.server.responses import accepts_gzip
from roundtrip.domain.base.errors import LimitReached, ServiceFull

MAX_PER_ADDRESS = 8
"""Streams of one address: a browser opens six connections to a host, and pages need some of them."""
MOST = 500
"""Streams of one process."""
PAUSE_S = 1.0
"""Pause between two reads of a board."""
HEARTBEAT_S = 15.0
_FULL_S, _ADDRESS_FULL_S = 30, 15
"""When a refused viewer shall retry: the process, or its address, has no room."""
_HEARTBEAT = b": still there\n\n"
_LINE_END = re.compile("\r\n|\r|\n")

ReadBoard = Callable[[str], Awaitable[Mapping[str, str]]]
"""Reads a board; returns texts by event name. Never raises; events that it leaves out stay unchanged."""


def encode_event(name: str, text: str) -> bytes:
    """Encodes one event. Line ends in the text cannot end the event."""
    lines = "".join(f"data: {line}\n" for line in _LINE_END.split(text))
    return f"event: {name}\n{lines}\n".encode()


class Listener:
    """One viewer's queue: of events with the same name, only the newest is kept."""

    def __init__(self) -> None:
        self._news: dict[str, bytes] = {}
        self._has_ended = False
        self._wake = asyncio.Event()

    def put(self, name: str, encoded: bytes) -> None:
        """Queues an event."""
        self._news[name] = encoded
        self._wake.set()

    def end(self) -> None:
        """Ends the stream."""
        self._has_ended = True
        self._wake.set()

    async def take(self, within_s: float = HEARTBEAT_S) -> bytes | None:
        """The queued events; a heartbeat comment after ``within_s`` without any; None: the stream has
        ended."""
        try:
            async with asyncio.timeout(within_s):
                await self._wake.wait()
        except TimeoutError:
            return _HEARTBEAT
        if self._has_ended:
            return None
        sent = b"".join(self._news.values())
        self._news.clear()
        self._wake.clear()
        return sent


class _WatchedBoard:
    """A board with viewers: its last events, its listeners, and the task that reads it."""

    def __init__(self) -> None:
        self.events: dict[str, bytes] = {}
        self.listeners: set[Listener] = set()
        self.reading: asyncio.Task[None] | None = None

    def publish_changes(self, texts: Mapping[str, str]) -> None:
        """Queues the events that have changed for every listener."""
        for name, text in texts.items():
            encoded = encode_event(name, text)
            if self.events.get(name) != encoded:
                self.events[name] = encoded
                for listener in self.listeners:
                    listener.put(name, encoded)


class LiveBoards:
    """Reads each board while it has viewers, once for all of them, with a pause between two reads. ``most``:
    limit of this process's streams; ``most_per_address``: of one address's."""

    def __init__(
        self,
        read: ReadBoard,
        pause: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(PAUSE_S),
        most: int = MOST,
        most_per_address: int = MAX_PER_ADDRESS,
    ) -> None:
        self._read = read
        self._pause = pause
        self._most, self._most_per_address = most, most_per_address
        self._boards: dict[str, _WatchedBoard] = {}
        self._by_address: Counter[str] = Counter()

    def count_streams(self) -> int:
        """The number of open streams."""
        return self._by_address.total()

    @contextlib.contextmanager
    def reserve_stream(self, name: str) -> Iterator[None]:
        """Reserves a stream of the caller ``name`` while the block runs. Raises LimitReached (rate_limited),
        ServiceFull (busy)."""
        if self._by_address[name] >= self._most_per_address:
            most = self._most_per_address
            message = (
                f"Your address has {most} live boards and running deep checks, the most allowed. End one."
            )
            raise LimitReached("rate_limited", message, _ADDRESS_FULL_S, most)
        if self.count_streams() >= self._most:
            raise ServiceFull(
                "busy", "Too many live boards are open at this service. Try again in half a minute.", _FULL_S
            )
        self._by_address[name] += 1
        try:
            yield
        finally:
            self._by_address[name] -= 1
            if not self._by_address[name]:
                del self._by_address[name]

    @contextlib.contextmanager
    def listen(self, board: str) -> Iterator[Listener]:
        """A listener to a board while the block runs; it starts with the board's last events."""
        watched = self._boards.setdefault(board, _WatchedBoard())
        listener = Listener()
        for name, encoded in watched.events.items():
            listener.put(name, encoded)
        watched.listeners.add(listener)
        if watched.reading is None:
            watched.reading = start_detached_task(self._follow(board, watched), f"live {board}")
        try:
            yield listener
        finally:
            watched.listeners.discard(listener)
            if not watched.listeners:
                # The last events would be outdated for the next viewer.
                watched.reading.cancel()
                del self._boards[board]

    async def _follow(self, name: str, board: _WatchedBoard) -> None:
        while True:
            board.publish_changes(await self._read(name))
            await self._pause()


_GZIP_HEAD = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
_LAST_BLOCK = b"\x03\x00"


class GzipStream:
    """A stream in gzip. Each part is packed by itself, once for all viewers whom the same one is sent to."""

    def __init__(self) -> None:
        self._begun, self._checksum, self._size = False, 0, 0

    def pack(self, part: bytes) -> bytes:
        """The next part; an empty one ends the stream."""
        begin, self._begun = b"" if self._begun else _GZIP_HEAD, True
        self._checksum, self._size = zlib.crc32(part, self._checksum), self._size + len(part)
        if part:
            return begin + _pack_alone(part)
        end = self._checksum.to_bytes(4, "little") + (self._size % 2**32).to_bytes(4, "little")
        return begin + _LAST_BLOCK + end


@functools.lru_cache(maxsize=32)
def _pack_alone(part: bytes) -> bytes:
    """A part that can follow any other."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)


class LiveResponse(Response):
    """A board as a stream, which releases its reservation at its end. ``retry_ms``: when a disconnected
    browser reconnects. The connection closes with the stream, so that the browser reconnects to a process
    that serves."""

    media_type = "text/event-stream"

    def __init__(
        self,
        live: LiveBoards,
        board: str,
        reserved: contextlib.ExitStack,
        ending: EndlessAnswers,
        retry_ms: int,
    ) -> None:
        # Skips Response.__init__, which would set a content-length.
        self.status_code, self.background = 200, None
        self.init_headers({"connection": "close", "x-accel-buffering": "no"})
        self._live, self._board, self._reserved = live, board, reserved
        self._ending, self._retry_ms = ending, retry_ms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends events until the client disconnects or the server shuts down."""
        with (
            self._reserved,
            self._live.listen(self._board) as listener,
            self._ending.on_shutdown(listener.end),
        ):
            is_packed, headers = accepts_gzip(scope["headers"]), [*self.raw_headers]
            headers += [(b"content-encoding", b"gzip")] if is_packed else []
            pack: Callable[[bytes], bytes] = GzipStream().pack if is_packed else bytes
            await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
            await send(_body(pack(b"retry: %d\n\n" % self._retry_ms), True))
            disconnect = asyncio.create_task(_await_disconnect(receive, listener))
            try:
                while (chunk := await listener.take()) is not None:
                    await send(_body(pack(chunk), True))
                await send(_body(pack(b""), False))
            finally:
                disconnect.cancel()


def _body(body: bytes, more: bool) -> dict[str, object]:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _await_disconnect(receive: Receive, listener: Listener) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    listener.end()
