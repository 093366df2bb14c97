"""Pages that change while they are looked at: read once for all who look, and sent by server-sent events."""

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from roundtrip.api.request.request_ids import start_detached_task
from roundtrip.api.server.drain import EndlessAnswers
from roundtrip.domain.base.errors import LimitReached, ServiceFull

MOST_OF_ONE = 4
"""Streams an address: a browser opens six connections to a place, and its pages need some."""
MOST = 500
PAUSE_S = 1.0
"""Between two readings of a board."""
HEARTBEAT_S = 15.0
_FULL_S, _OF_ONE_S = 30, 15
_HEARTBEAT = b": still there\n\n"
_LINE_END = re.compile("\r\n|\r|\n")

Reads = Callable[[str], Awaitable[Mapping[str, str]]]
"""What a board says now, by the name of the event that carries it. Never raises: what it leaves out stays as
it was."""


def event(name: str, text: str) -> bytes:
    """One event. Whatever ends a line in it ends a line of the text alone."""
    lines = "".join(f"data: {line}\n" for line in _LINE_END.split(text))
    return f"event: {name}\n{lines}\n".encode()


class Listener:
    """Who looks. What was not taken yet is not kept beside what is newer: of each name the newest event."""

    def __init__(self) -> None:
        self._news: dict[str, bytes] = {}
        self._is_over = False
        self._woken = asyncio.Event()

    def put(self, name: str, encoded: bytes) -> None:
        """Something is new."""
        self._news[name] = encoded
        self._woken.set()

    def end(self) -> None:
        """Nothing more is wanted."""
        self._is_over = True
        self._woken.set()

    async def take(self, within_s: float = HEARTBEAT_S) -> bytes | None:
        """What is new; a comment where nothing came within the time; None: it is over."""
        try:
            async with asyncio.timeout(within_s):
                await self._woken.wait()
        except TimeoutError:
            return _HEARTBEAT
        if self._is_over:
            return None
        found = b"".join(self._news.values())
        self._news.clear()
        self._woken.clear()
        return found


class _WatchedBoard:
    """What one board says, and who looks at it."""

    def __init__(self) -> None:
        self.said: dict[str, bytes] = {}
        self.listeners: set[Listener] = set()
        self.reading: asyncio.Task[None] | None = None

    def take_in(self, told: Mapping[str, str]) -> None:
        """Tells those who look what has changed."""
        for name, text in told.items():
            encoded = event(name, text)
            if self.said.get(name) != encoded:
                self.said[name] = encoded
                for listener in self.listeners:
                    listener.put(name, encoded)


class LiveBoards:
    """Boards are read as long as somebody looks: each once for all, with a pause between two readings.
    ``most``: streams of this process; ``most_of_one``: of one address."""

    def __init__(
        self,
        read: Reads,
        pause: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(PAUSE_S),
        most: int = MOST,
        most_of_one: int = MOST_OF_ONE,
    ) -> None:
        self._read = read
        self._pause = pause
        self._most, self._most_of_one = most, most_of_one
        self._boards: dict[str, _WatchedBoard] = {}
        self._of_one: Counter[str] = Counter()

    def open(self) -> int:
        """How many streams there are."""
        return self._of_one.total()

    @contextlib.contextmanager
    def place(self, name: str) -> Iterator[None]:
        """A place for one more stream of whoever is counted by this name. Raises LimitReached (rate_limited),
        ServiceFull (busy)."""
        if self._of_one[name] >= self._most_of_one:
            said = f"Your address looks at {self._most_of_one} live boards; close one of them."
            raise LimitReached("rate_limited", said, _OF_ONE_S, self._most_of_one)
        if self.open() >= self._most:
            raise ServiceFull("busy", "Too many boards are looked at live; try again in a moment.", _FULL_S)
        self._of_one[name] += 1
        try:
            yield
        finally:
            self._of_one[name] -= 1
            if not self._of_one[name]:
                del self._of_one[name]

    @contextlib.contextmanager
    def listening(self, board: str) -> Iterator[Listener]:
        """Who looks at a board while the block runs; told first what it says."""
        found = self._boards.setdefault(board, _WatchedBoard())
        listener = Listener()
        for name, encoded in found.said.items():
            listener.put(name, encoded)
        found.listeners.add(listener)
        if found.reading is None:
            found.reading = start_detached_task(self._follow(board, found), f"live {board}")
        try:
            yield listener
        finally:
            found.listeners.discard(listener)
            if not found.listeners:
                # What it said then is old when somebody looks again.
                found.reading.cancel()
                del self._boards[board]

    async def _follow(self, name: str, board: _WatchedBoard) -> None:
        while True:
            board.take_in(await self._read(name))
            await self._pause()


class LiveResponse(Response):
    """A board as a stream, in a place that it gives back. ``retry_ms``: when a browser that was cut off comes
    again. The connection ends with it, so that who comes again finds a process that serves."""

    media_type = "text/event-stream"

    def __init__(
        self, live: LiveBoards, board: str, place: contextlib.ExitStack, ending: EndlessAnswers, retry_ms: int
    ) -> None:
        # Without a body, whose length would be told.
        self.status_code, self.background = 200, None
        self.init_headers({"connection": "close", "x-accel-buffering": "no"})
        self._live, self._board, self._place = live, board, place
        self._ending, self._retry_ms = ending, retry_ms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends what is new until the client goes or the server ends."""
        with (
            self._place,
            self._live.listening(self._board) as listener,
            self._ending.on_shutdown(listener.end),
        ):
            head = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            await send(head)
            await send(_body(b"retry: %d\n\n" % self._retry_ms, True))
            gone = asyncio.create_task(_await_disconnect(receive, listener))
            try:
                while (news := await listener.take()) is not None:
                    await send(_body(news, True))
                await send(_body(b"", False))
            finally:
                gone.cancel()


def _body(body: bytes, more: bool) -> dict[str, object]:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _await_disconnect(receive: Receive, listener: Listener) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    listener.end()
