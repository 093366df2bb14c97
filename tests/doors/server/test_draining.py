"""What becomes of connections and requests when the service is told to end."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from roundtrip.api.server import drain
from roundtrip.app.http_server import build_http_server, inherit_socket, listen

WAIT_S = 20
ASK = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
WAITS = b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture(autouse=True)
def hears_nothing() -> Iterator[list[int]]:
    """The server hands signals on: here to nobody."""
    heard: list[int] = []
    before = {
        one: signal.signal(one, lambda number, _: heard.append(number))
        for one in (signal.SIGTERM, signal.SIGINT)
    }
    yield heard
    for one, handler in before.items():
        signal.signal(one, handler)


@dataclass
class KeptConnection:
    """One connection that is kept open."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def head(self) -> bytes:
        """Of the next answer, whose body is read, too."""
        async with asyncio.timeout(WAIT_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            await self.reader.readexactly(2)
        return head

    async def asked(self, request: bytes = ASK) -> bytes:
        self.writer.write(request)
        return await self.head()

    async def hang_up(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()

    async def rest(self) -> bytes:
        """What comes until the server ends the connection."""
        async with asyncio.timeout(WAIT_S):
            return await self.reader.read()


@dataclass
class EndingService:
    """A service that is told to end, while a client and a request of it are still there."""

    address: tuple[str, int]
    task: asyncio.Task[None]
    go: asyncio.Event
    begun: asyncio.Event
    clients: list[KeptConnection] = field(default_factory=list)

    async def client(self) -> KeptConnection:
        self.clients.append(KeptConnection(*await asyncio.open_connection(*self.address)))
        return self.clients[-1]

    async def stop_by(self, how: signal.Signals) -> None:
        """Waits until it listens no more."""
        os.kill(os.getpid(), how)
        async with asyncio.timeout(WAIT_S):
            with contextlib.suppress(ConnectionRefusedError, ConnectionResetError):
                while True:
                    await (await self.client()).hang_up()

    async def over(self) -> None:
        async with asyncio.timeout(WAIT_S):
            await self.task


@pytest.fixture
async def ground() -> AsyncIterator[EndingService]:
    go, begun = asyncio.Event(), asyncio.Event()

    async def page(request: object) -> Response:
        return Response(b"ok")

    async def waits(request: object) -> Response:
        begun.set()
        await go.wait()
        return Response(b"ok")

    app = Starlette(routes=[Route("/", page), Route("/waits", waits)])
    ready = asyncio.Event()
    with listen("127.0.0.1", 0, "a port") as listening:
        task = asyncio.create_task(build_http_server(app, 100, ready=ready.set).serve(sockets=[listening]))
        async with asyncio.timeout(WAIT_S):
            await ready.wait()
        found = EndingService(listening.getsockname(), task, go, begun)
        yield found
        for client in found.clients:
            await client.hang_up()
        go.set()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_request_under_way_is_answered_and_told_to_close(ground: EndingService) -> None:
    client = await ground.client()
    client.writer.write(WAITS)
    await ground.begun.wait()
    await ground.stop_by(signal.SIGTERM)
    ground.go.set()
    head = await client.head()
    assert head.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in head
    assert await client.rest() == b""
    await ground.over()


async def test_connections_that_are_open_are_served_once_more(ground: EndingService) -> None:
    """One that asked before, and one that was accepted and has asked nothing yet."""
    before, silent = await ground.client(), await ground.client()
    assert b"connection: close" not in await before.asked()
    await ground.stop_by(signal.SIGTERM)
    for client in (before, silent):
        head = await client.asked()
        assert head.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in head
        assert await client.rest() == b""
    # Nobody is connected any more: it does not wait for the drain to pass.
    await ground.over()


async def test_one_that_asks_nothing_is_closed_in_the_end(
    ground: EndingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "DRAIN_S", 0.05)
    client = await ground.client()
    await client.asked()
    await ground.stop_by(signal.SIGTERM)
    assert await client.rest() == b""
    await ground.over()


async def test_a_request_that_came_in_part_is_waited_for(
    ground: EndingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "DRAIN_S", 0.05)
    idle, client = await ground.client(), await ground.client()
    await idle.asked()
    await client.asked()
    client.writer.write(ASK[:10])
    await ground.stop_by(signal.SIGTERM)
    # By then the drain has passed.
    assert await idle.rest() == b""
    head = await client.asked(ASK[10:])
    assert head.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in head
    await ground.over()


async def test_an_interrupt_closes_what_is_idle_and_answers_the_rest(ground: EndingService) -> None:
    idle, client = await ground.client(), await ground.client()
    await idle.asked()
    client.writer.write(WAITS)
    await ground.begun.wait()
    await ground.stop_by(signal.SIGINT)
    assert await idle.rest() == b""
    ground.go.set()
    assert b"connection: close" in await client.head()
    await ground.over()


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_it_at_once(
    ground: EndingService, hears_nothing: list[int], first: signal.Signals, second: signal.Signals
) -> None:
    client = await ground.client()
    client.writer.write(WAITS)
    await ground.begun.wait()
    await ground.stop_by(first)
    os.kill(os.getpid(), second)
    await ground.over()
    assert await client.rest() == b""
    assert sorted(hears_nothing) == sorted([first, second])


async def test_only_a_listening_socket_is_taken_over() -> None:
    with listen("127.0.0.1", 0, "a port") as listening:
        taken = inherit_socket(os.dup(listening.fileno()))
        assert taken.getsockname() == listening.getsockname()
        taken.close()
    reading, writing = os.pipe()
    try:
        for descriptor in (reading, 9_999):
            with pytest.raises(OSError):  # noqa: PT011
                inherit_socket(descriptor)
    finally:
        os.close(writing)
        with contextlib.suppress(OSError):
            os.close(reading)
