"""Connections taken from a listening socket that several processes have open, so that each gets its share.

The event loop's own server takes all that wait: of 32 connections that came at once one process of two had
all 32, and the other nothing to do for as long as they stayed open.
"""

import asyncio
import errno
import socket
from collections.abc import Callable

PAUSE_S = 0.001
"""Whoever took a connection leaves the next ones to the others for so long. It is the loop's shortest."""
_MOST_AT_ONCE = 64
_NO_ROOM_S = 1.0
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class PacedAccept:
    """Takes one connection and pauses, so that processes take turns; one more after each pause that left some
    waiting, so that nobody waits long where there are many. Begins at once."""

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
        """Takes no more, and closes the socket; who waits is left to the processes that have it open, too."""
        if self._pause is not None:
            self._pause.cancel()
        elif self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening)
        self._listening.close()

    async def wait_closed(self) -> None:
        """Until those that were taken are connected."""
        await asyncio.gather(*self._entering)

    def _begin(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening, self._take)

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._pause = self._loop.call_later(seconds, self._begin)

    def _take(self) -> None:
        taken, wanted = 0, self._at_once
        try:
            while taken < wanted:
                connection, _ = self._listening.accept()
                self._enter_soon(connection)
                taken += 1
        except OSError as error:
            # Nobody waits any more, or went away; but for want of room it would be tried again and again.
            if error.errno in _NO_ROOM:
                self._rest(_NO_ROOM_S)
                return
        self._at_once = min(wanted + 1, _MOST_AT_ONCE) if taken == wanted else 1
        if taken:
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
