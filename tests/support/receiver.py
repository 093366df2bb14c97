"""A stranger's server on loopback: it stores each request, and answers as a test says, also with no HTTP."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from support.loopback import OnLoopback

PATIENCE_S = 30.0
Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Got:
    """One request. ``headers``: their names in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes


def answer(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> Behaviour:
    """Sends a whole answer, and hangs up."""
    reply = {"content-length": str(len(body)), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in reply.items())
    return raw(f"HTTP/1.1 {status} Told\r\n{head}\r\n".encode() + body)


def raw(said: bytes) -> Behaviour:
    """Sends these bytes, and hangs up."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()

    return behave


def then_silent(said: bytes) -> Behaviour:
    """Sends these bytes, and then nothing, for as long as the other side stays."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await reader.read()

    return behave


def endless(first: bytes, again: bytes) -> Behaviour:
    """Sends ``again`` for ever, as fast as it is read."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while True:
            writer.write(again)
            await writer.drain()

    return behave


def dripping(first: bytes, again: bytes) -> Behaviour:
    """Sends ``again`` for ever, a hundredth of a second apart."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        left = asyncio.ensure_future(reader.read())
        while not left.done():
            writer.write(again)
            await asyncio.wait({left}, timeout=0.01)

    return behave


@dataclass
class Receiver(OnLoopback):
    """``behave``: what it does with the next connections. ``open``: how many are open; ``connections``: how
    many there were."""

    tls: ssl.SSLContext | None = None
    behave: Behaviour = field(default_factory=lambda: answer(200))
    got: list[Got] = field(default_factory=list)
    open: int = 0
    connections: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.at}/hook"

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits until ``holds`` returns True; it reads this receiver."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(holds)

    async def left(self) -> None:
        """Waits until nobody is connected."""
        await self.until(lambda: self.open == 0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._count(1)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            async with self._changed:
                self.got.append(Got(head[0], headers, body))
                self._changed.notify_all()
            await self.behave(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked has left
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            await self._count(-1)

    async def _count(self, by: int) -> None:
        async with self._changed:
            self.open += by
            self.connections += max(0, by)
            self._changed.notify_all()


@contextlib.asynccontextmanager
async def receiver(tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    made = Receiver(tls=tls)
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await made.serve(reader, writer)
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            serving.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await server.wait_closed()
