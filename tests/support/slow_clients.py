"""Clients that hold a connection and do next to nothing with it: one byte of a head now and then, half a
body, an answer read a byte at a time, a stream that is never read. Whoever is dropped comes again."""

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

_RECEIVES_BYTES = 4096
"""Of the socket: what is not read stays with the service, and not with the kernel."""


@dataclass(slots=True)
class SlowClients:
    """Slow clients of one service. ``path``: a large answer of its; ``posts``: what takes a body; ``stream``:
    what never ends. ``pause_s``: between two bytes. ``came``: connections by sort; ``ended``: how many of
    them the service ended; ``refused``: how many could not even be made."""

    port: int
    path: str
    posts: str
    stream: str
    pause_s: float = 3.0
    came: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    refused: int = 0

    async def head(self, line: "_Line") -> None:
        """A byte of a head that never ends."""
        await line.send(f"GET {self.path} HTTP/1.1\r\nx-".encode())
        await self._trickle(line, b"a")

    async def body(self, line: "_Line") -> None:
        """Half a body, and no more."""
        await line.send(f"POST {self.posts} HTTP/1.1\r\nhost: x\r\ncontent-length: 200\r\n\r\n{{".encode())
        await line.end()

    async def blanks(self, line: "_Line") -> None:
        """A body, a blank at a time."""
        await line.send(f"POST {self.posts} HTTP/1.1\r\nhost: x\r\ncontent-length: 60000\r\n\r\n".encode())
        await self._trickle(line, b" ")

    async def reads(self, line: "_Line") -> None:
        """The same page again and again, of which a byte is taken now and then."""
        await line.send(f"GET {self.path} HTTP/1.1\r\nhost: x\r\n\r\n".encode() * 8)
        while True:
            await line.read(1)
            await asyncio.sleep(self.pause_s)

    async def never_reads(self, line: "_Line") -> None:
        """A stream, of which nothing is taken."""
        await line.send(f"GET {self.stream} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        await asyncio.sleep(20 * self.pause_s)

    async def _trickle(self, line: "_Line", byte: bytes) -> None:
        while True:
            await asyncio.sleep(self.pause_s)
            await line.send(byte)

    def sorts(self) -> list[tuple[str, Callable[["_Line"], Awaitable[None]]]]:
        """Each with its name."""
        return [
            ("a head that trickles", self.head),
            ("half a body", self.body),
            ("a body that trickles", self.blanks),
            ("reads a byte at a time", self.reads),
            ("never reads a stream", self.never_reads),
        ]

    async def again(self, number: int) -> None:
        """The client of this number, for ever: of a sort by its turn, four to an address."""
        name, does = self.sorts()[number % 5]
        group = number // 4
        address = f"127.9.{group // 250}.{group % 250 + 1}"
        while True:
            try:
                async with _connected(self.port, address) as line:
                    self.came[name] += 1
                    await does(line)
            except ConnectionError:
                self.ended[name] += 1
            except OSError:
                self.refused += 1
                await asyncio.sleep(self.pause_s)

    @contextlib.asynccontextmanager
    async def many(self, count: int) -> AsyncIterator[None]:
        """So many while the block runs; then all of them are gone."""
        tasks = [asyncio.create_task(self.again(number)) for number in range(count)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Line:
    """A connection, byte by byte: nothing is read that was not asked for."""

    socket: socket.socket

    async def send(self, part: bytes) -> None:
        """Raises ConnectionError where the service has ended it."""
        await asyncio.get_running_loop().sock_sendall(self.socket, part)
        with contextlib.suppress(BlockingIOError):
            # Only a look: what came stays where it is.
            if self.socket.recv(1, socket.MSG_PEEK) == b"":
                raise ConnectionResetError

    async def read(self, size: int) -> bytes:
        """Raises ConnectionError where nothing more comes."""
        came = await asyncio.get_running_loop().sock_recv(self.socket, size)
        if not came:
            raise ConnectionResetError
        return came

    async def end(self) -> None:
        """Waits until the service ends it, which raises ConnectionError."""
        while True:
            await self.read(4096)


@contextlib.asynccontextmanager
async def _connected(port: int, address: str) -> AsyncIterator[_Line]:
    opened = socket.socket()
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVES_BYTES)
        opened.bind((address, 0))
        await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", port))
        yield _Line(opened)
    finally:
        opened.close()
