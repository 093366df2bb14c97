"""Accepts connections from a listening socket that several processes share, so that each gets its share.

The event loop's own server accepts all that are waiting: of 32 simultaneous connections, one process of two
got all 32, and the other had nothing to do while they stayed open.
"""

import asyncio
import errno
import socket
from collections.abc import Callable

PAUSE_S = 0.001
"""Pause after accepting, in which the other processes accept. The event loop's shortest timer."""
_MOST_AT_ONCE = 64
_NO_ROOM_S = 1.0
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class PacedAccept:
    """Accepts one connection and pauses, so that processes take turns. While connections are left waiting,
    each batch is one larger than the last, so that bursts are accepted quickly. Starts at once."""

    def __init__(self, listening: socket.socket, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        self._listening = listening
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._entering: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._at_once = 1
        listening.setblocking(False)
        self._begin()

    def close(self) -> None:
        """Stops accepting and closes the socket; waiting connections are left to the other processes."""
        if self._pause is not None:
            self._pause.cancel()
        elif self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening)
        self._listening.close()

    async def wait_closed(self) -> None:
        """Waits until accepted connections are set up."""
        await asyncio.gather(*self._entering)

    def _begin(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening, self._take)

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._pause = self._loop.call_later(seconds, self._begin)

    def _take(self) -> None:
        accepted, batch = 0, self._at_once
        try:
            while accepted < batch:
                connection, _ = self._listening.accept()
                self._enter_soon(connection)
                accepted += 1
        except OSError as error:
            # No connection waits, or its client went away. Without free files, accept would fail in a loop.
            if error.errno in _NO_ROOM:
                self._rest(_NO_ROOM_S)
                return
        self._at_once = min(batch + 1, _MOST_AT_ONCE) if accepted == batch else 1
        if accepted:
            self._rest(PAUSE_S)

    def _enter_soon(self, connection: socket.socket) -> None:
        task = self._loop.create_task(self._enter(connection), name="accepting")
        self._entering.add(task)
        task.add_done_callback(self._entering.discard)

    async def _enter(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:
            connection.close()
