"""Graceful shutdown of the HTTP server: connected clients are answered before it closes.

``PacedAccept`` accepts connections from a listening socket that several processes share, so that each gets
its share. The event loop's own server accepts all that are waiting: of 32 simultaneous connections, one
process of two got all 32, and the other had nothing to do while they stayed open."""

import asyncio
import contextlib
import errno
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import cast

import uvicorn

from roundtrip.api.server.protocol import BoundedProtocol, ConnectionPlaces

PAUSE_S = 0.001
"""Pause after accepting, in which the other processes accept. The event loop's shortest timer."""
_MAX_BATCH = 64
_NO_ROOM_S = 1.0
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class PacedAccept:
    """Accepts one connection and pauses, so that processes take turns. While connections are left waiting,
    each batch is one larger than the last, so that bursts are accepted quickly. Starts at once."""

    def __init__(self, listening: socket.socket, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        self._listening = listening
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._connecting: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._batch_size = 1
        listening.setblocking(False)
        self._resume()

    def close(self) -> None:
        """Stops accepting and closes the socket; waiting connections are left to the other processes."""
        if self._pause is not None:
            self._pause.cancel()
        elif self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening)
        self._listening.close()

    async def wait_closed(self) -> None:
        """Waits until accepted connections are set up."""
        await asyncio.gather(*self._connecting)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening, self._accept_batch)

    def _suspend(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._pause = self._loop.call_later(seconds, self._resume)

    def _accept_batch(self) -> None:
        accepted, batch = 0, self._batch_size
        try:
            while accepted < batch:
                connection, _ = self._listening.accept()
                self._start_connecting(connection)
                accepted += 1
        except OSError as error:
            # No connection waits, or its client went away. Without free files, accept would fail in a loop.
            if error.errno in _NO_ROOM:
                self._suspend(_NO_ROOM_S)
                return
        self._batch_size = min(batch + 1, _MAX_BATCH) if accepted == batch else 1
        if accepted:
            self._suspend(PAUSE_S)

    def _start_connecting(self, connection: socket.socket) -> None:
        task = self._loop.create_task(self._connect(connection), name="accepting")
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:
            connection.close()


DRAIN_S = 5.0
"""How long open connections may still send requests. A connection that is idle for that long is closed."""
ANSWERS_S = 35.0
"""How long running requests may take after that: a run ends after 30 seconds."""
_LOOK_S = 0.02
_MARK_LOOK_S = 0.25
READY = "/ready"
"""The path where a balancer asks whether it may send callers to this process."""
DRAINS = "This process takes no new callers now. Send the request to another one, or retry in 5 seconds."
ENDING = "ending"
"""The name of the server's ``EndlessAnswers`` in a request's ``state``."""


def drain_mark(var: Path, port: int) -> Path:
    """The file by which an operator asks all processes on a port to drain. The file outlives
    the processes: one that replaces another drains, too."""
    return var / "drain" / str(port)


class DrainRequest:
    """Whether an operator asked this process to drain: whether the file ``mark`` exists. ``clock``: monotonic
    seconds; the file is looked up four times a second at most."""

    def __init__(self, mark: Path, clock: Callable[[], float]) -> None:
        self._mark = mark
        self._clock = clock
        self._is_made = False
        self._look_s = clock()

    def is_made(self) -> bool:
        """Whether the mark exists: then GET /ready answers 503, and every answer closes its connection."""
        now_s = self._clock()
        if now_s >= self._look_s:
            # A folder that this user may not read says nothing new.
            with contextlib.suppress(OSError):
                self._is_made = self._mark.exists()
            self._look_s = now_s + _MARK_LOOK_S
        return self._is_made


class EndlessAnswers:
    """When the server shuts down, ends the answers that never end by themselves: it would wait for them."""

    def __init__(self) -> None:
        self.is_ending = False
        self._callbacks: set[Callable[[], None]] = set()

    @contextlib.contextmanager
    def on_shutdown(self, end: Callable[[], None]) -> Iterator[None]:
        """Calls ``end`` when the server shuts down, at once if it already does. Leaving the block cancels
        it."""
        self._callbacks.add(end)
        try:
            if self.is_ending:
                end()
            yield
        finally:
            self._callbacks.discard(end)

    def end_all(self) -> None:
        """The server shuts down: ends every registered answer."""
        self.is_ending = True
        for end in tuple(self._callbacks):
            end()


class DrainingServer(uvicorn.Server):
    """On SIGTERM it accepts no more connections, answers with ``connection: close``, and ends when no client
    is connected, at the latest when all requests that arrived within ``DRAIN_S`` are answered. On SIGINT (a
    person at a terminal) it closes idle connections at once. A second signal ends it at once. ``ready`` is
    called when it serves. ``takes_turns``: other processes accept from the same sockets."""

    def __init__(
        self,
        config: uvicorn.Config,
        places: ConnectionPlaces,
        ready: Callable[[], None],
        takes_turns: bool = False,
    ) -> None:
        super().__init__(config)
        self._places = places
        self._ready = ready
        self._takes_turns = takes_turns
        self._drains = False
        self._ending = EndlessAnswers()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts serving, then calls ``ready``."""
        self._loop = asyncio.get_running_loop()
        self.lifespan.state[ENDING] = self._ending
        await super().startup([] if self._takes_turns else sockets)
        if self._takes_turns:
            taking = [PacedAccept(listening, self._make_protocol) for listening in sockets or ()]
            # The library only calls close() and wait_closed() on them.
            self.servers = cast(list[asyncio.Server], taking)
        self._ready()

    def _make_protocol(self) -> BoundedProtocol:
        make = cast(Callable[..., BoundedProtocol], self.config.http_protocol_class)
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handles SIGTERM and SIGINT."""
        if self.should_exit:
            self.force_exit = True
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._abort_all)
        else:
            self._drains = sig == signal.SIGTERM
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops accepting; waiting connections are left to other processes on the same socket. Drains after
        SIGTERM, then shuts down."""
        for server in self.servers:
            server.close()
        for listening in sockets or ():
            listening.close()
        self._places.closing = True
        self._ending.end_all()
        if self._drains:
            await self._drain()
        await super().shutdown(sockets)

    async def _drain(self) -> None:
        for connection in self._connections():
            connection.close_after()
        loop = asyncio.get_running_loop()
        until_s = loop.time() + DRAIN_S
        # A connection accepted a moment ago is set up in the loop's next turns.
        await asyncio.sleep(_LOOK_S)
        # The library signals a connection's end only by removing it from the set.
        while self._connections() and loop.time() < until_s and not self.force_exit:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)

    def _abort_all(self) -> None:
        """Aborts all connections and requests. Silences the library, which would log each of them."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        for connection in self._connections():
            connection.transport.abort()
        for task in self.server_state.tasks:
            task.cancel()

    def _connections(self) -> list[BoundedProtocol]:
        return cast(list[BoundedProtocol], list(self.server_state.connections))
