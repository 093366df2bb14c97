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
