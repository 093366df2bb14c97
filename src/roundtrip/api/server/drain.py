"""The HTTP server's end: whoever is connected is answered before it closes."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType
from typing import cast

import uvicorn

from .accept import PacedAccept
from .protocol import BoundedProtocol, ConnectionPlaces

DRAIN_S = 5.0
"""So long requests are still taken on connections that are open. A client that keeps one open and asks
nothing meanwhile finds it closed."""
ANSWERS_S = 35.0
"""For what is under way then: a run ends after 30 seconds."""
_LOOK_S = 0.02
ENDING = "ending"
"""By which a request finds the server's ``Ending`` in its ``state``."""


class EndlessAnswers:
    """Answers that never end by themselves are told when the server ends: else it would wait for them."""

    def __init__(self) -> None:
        self._begun = False
        self._told: set[Callable[[], None]] = set()

    @contextlib.contextmanager
    def telling(self, end: Callable[[], None]) -> Iterator[None]:
        """``end`` is called when it begins, which may be now; no more once the block is left."""
        self._told.add(end)
        try:
            if self._begun:
                end()
            yield
        finally:
            self._told.discard(end)

    def begin(self) -> None:
        """The server ends."""
        self._begun = True
        for end in tuple(self._told):
            end()


class DrainingServer(uvicorn.Server):
    """On SIGTERM it takes no more connections, gives every answer with ``connection: close``, and ends when
    nobody is connected any more, at the latest when what came within ``DRAIN_S`` is answered. SIGINT is for
    people: idle connections are closed at once. A second one of either ends it at once. ``ready`` is called
    when it serves. ``takes_turns``: others accept from the same sockets."""

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
        """Says so once it serves."""
        self._loop = asyncio.get_running_loop()
        self.lifespan.state[ENDING] = self._ending
        await super().startup([] if self._takes_turns else sockets)
        if self._takes_turns:
            taking = [PacedAccept(listening, self._protocol) for listening in sockets or ()]
            # All that the library asks of them is to close, and to be waited for.
            self.servers = cast(list[asyncio.Server], taking)
        self._ready()

    def _protocol(self) -> BoundedProtocol:
        make = cast(Callable[..., BoundedProtocol], self.config.http_protocol_class)
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal to end."""
        if self.should_exit:
            self.force_exit = True
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._cut)
        else:
            self._drains = sig == signal.SIGTERM
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Whoever waits to be accepted is left to the other processes that listen on the same socket."""
        for server in self.servers:
            server.close()
        for listening in sockets or ():
            listening.close()
        self._places.closing = True
        self._ending.begin()
        if self._drains:
            await self._drain()
        await super().shutdown(sockets)

    async def _drain(self) -> None:
        for connection in self._connections():
            connection.close_after()
        loop = asyncio.get_running_loop()
        until_s = loop.time() + DRAIN_S
        # Whoever was accepted a moment ago enters with the loop's next turns.
        await asyncio.sleep(_LOOK_S)
        # The library tells of a connection's end by its absence only.
        while self._connections() and loop.time() < until_s and not self.force_exit:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)

    def _cut(self) -> None:
        """Nothing is answered any more. The library would tell of each request that it is cut."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        for connection in self._connections():
            connection.transport.abort()
        for task in self.server_state.tasks:
            task.cancel()

    def _connections(self) -> list[BoundedProtocol]:
        return cast(list[BoundedProtocol], list(self.server_state.connections))
