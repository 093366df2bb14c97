"""Clients that send little, take little, or are too many. Times come by shortening them, not by waiting."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path

import aiohttp
import msgspec
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from roundtrip.api.dispatch import error_reply
from roundtrip.api.http import app as http
from roundtrip.api.server import protocol, responses
from roundtrip.app.http_server import build_http_server, listen
from roundtrip.domain.base.errors import CallerFault
from support.slow_clients import SlowClients

WAIT_S = 20
LARGE = b"x" * 20_000_000


@contextlib.asynccontextmanager
async def served(most_connections: int = 100) -> AsyncIterator[tuple[str, int]]:
    """A page, one that is large, one that reads a body, and one that waits until ``go`` is asked for."""
    go = asyncio.Event()

    async def page(request: object) -> Response:
        return Response(b"ok")

    async def large(request: object) -> Response:
        return Response(LARGE)

    async def waits(request: object) -> Response:
        await go.wait()
        return Response(b"ok")

    async def goes(request: object) -> Response:
        go.set()
        return Response(b"ok")

    class BodyReader:
        async def __call__(self, scope: object, receive: object, send: object) -> None:
            try:
                await http.read_body(receive, 0.05)  # type: ignore[arg-type]
            except CallerFault as error:
                await responses.send_reply(error_reply(error), send, cors=False)  # type: ignore[arg-type]

    routes = [Route("/", page), Route("/large", large), Route("/waits", waits), Route("/go", goes)]
    app = Starlette(routes=[*routes, Route("/reads", BodyReader(), methods=["POST"])])
    with listen("127.0.0.1", 0, "a port") as listening:
        server = build_http_server(app, most_connections)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        async with asyncio.timeout(WAIT_S):
            # uvicorn tells of its start by a flag only.
            while not server.started:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        yield listening.getsockname()[:2]
        server.should_exit = True
        async with asyncio.timeout(WAIT_S):
            await task


async def sent(address: tuple[str, int], *parts: bytes) -> bytes:
    """All that comes back until the server ends the connection, which it does without our doing."""
    reader, writer = await asyncio.open_connection(*address)
    for part in parts:
        writer.write(part)
        await writer.drain()
    async with asyncio.timeout(WAIT_S):
        came = await reader.read()
    writer.close()
    return came


def error_in(came: bytes) -> tuple[bytes, str]:
    head, _, body = came.partition(b"\r\n\r\n")
    decoded = msgspec.json.decode(body)
    assert decoded.keys() == {"error"}
    assert b"connection: close" in head
    return head.split(b"\r\n")[0], decoded["error"]["code"]


BAD = b"HTTP/1.1 400 Bad Request"


@pytest.mark.parametrize(
    ("head_s", "part", "expected"),
    [
        (0.05, b"", None),
        (0.05, b"\r\n", (BAD, "bad_input")),
        (0.05, b"GET / HT", (BAD, "bad_input")),
        (0.05, b"GET / HTTP/1.1\r\nhost: x\r\nx-", (BAD, "bad_input")),
        (60, b"no http at all\r\n\r\n", (BAD, "bad_input")),
    ],
    ids=["nothing", "blank lines", "half a line", "half a head", "no HTTP"],
)
async def test_a_head_that_does_not_come_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, head_s: float, part: bytes, expected: tuple[bytes, str] | None
) -> None:
    monkeypatch.setattr(protocol, "HEAD_S", head_s)
    async with served() as address:
        came = await sent(address, part)
    assert came == b"" if expected is None else error_in(came) == expected


async def test_a_second_head_that_does_not_come_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_S", 0.05)
    async with served() as address:
        came = await sent(address, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"GET / HTTP/1.1\r\nho")
    assert came.startswith(b"HTTP/1.1 200")
    assert came.endswith(b'"message":"The request did not arrive within 10 seconds."}}')


async def test_a_body_that_does_not_come_is_told_so() -> None:
    async with served() as address:
        came = await sent(address, b"POST /reads HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{")
    assert error_in(came) == (BAD, "bad_input")


PAGE = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
WAITING = b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n"


async def test_requests_that_wait_behind_each_other_are_so_many_at_most() -> None:
    """Those are answered, in order; the next one is told so, and nothing more is read."""
    async with served() as address, aiohttp.ClientSession() as session:
        flood = asyncio.create_task(sent(address, WAITING + PAGE * 500))
        await turned(address)
        assert await status_of(session, address, "/go") == 200
        came = await flood
    *answers, refusal = came.split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200"] * (1 + protocol.MAX_QUEUED)
    assert error_in(b"HTTP/1.1 " + refusal) == (BAD, "bad_input")


async def turned(address: tuple[str, int]) -> None:
    """Comes back when what was sent before has been read: others came, were answered and left since."""
    for _ in range(3):
        assert (await sent(address, LAST)).startswith(b"HTTP/1.1 200")


async def test_a_few_requests_at_once_are_answered_in_order() -> None:
    async with served() as address:
        came = await sent(address, PAGE * protocol.MAX_QUEUED + LAST)
    assert came.count(b"HTTP/1.1 200") == 1 + protocol.MAX_QUEUED


def test_nothing_is_read_while_requests_wait() -> None:
    """The server resumes reading with every answer."""

    class PausedTransport(asyncio.Transport):
        reading = True

        def pause_reading(self) -> None:
            self.reading = False

        def resume_reading(self) -> None:
            self.reading = True

    transport, queue = PausedTransport(), ["one"]
    flow = protocol._PausedFlow(transport, queue)
    flow.pause_reading()
    flow.resume_reading()
    assert not transport.reading
    queue.clear()
    flow.resume_reading()
    assert transport.reading


async def test_a_body_that_nobody_wants_ends_the_connection_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "BODY_S", 0.05)
    monkeypatch.setattr(protocol, "_BODY_GRACE_S", 0.0)
    async with served() as address:
        try:
            came = await sent(address, b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{")
        except ConnectionResetError:
            return
    assert came.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("last", [b"", b"connection: close\r\n"], ids=["kept alive", "to be closed"])
async def test_a_client_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch, last: bytes) -> None:
    monkeypatch.setattr(protocol, "ANSWER_S", 0.05)
    async with served(most_connections=1) as address:
        stuck = socket.create_connection(address)
        stuck.sendall(b"GET /large HTTP/1.1\r\nhost: x\r\n" + last + b"\r\n")
        async with aiohttp.ClientSession() as session, asyncio.timeout(WAIT_S):
            # Room is made once it is dropped: nothing else ends that connection.
            while await status_of(session, address, "/") != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        stuck.close()


async def test_a_client_that_reads_gets_all_of_a_large_answer() -> None:
    async with (
        served() as address,
        aiohttp.ClientSession() as session,
        session.get("http://{}:{}/large".format(*address)) as response,
    ):
        assert await response.read() == LARGE


async def status_of(session: aiohttp.ClientSession, address: tuple[str, int], path: str) -> int | None:
    """None: the connection was ended without an answer."""
    try:
        async with session.get("http://{}:{}{}".format(*address, path)) as response:
            if response.status == 503:
                assert (await response.json())["error"]["code"] == "busy"
                assert response.headers["retry-after"] == "1"
            return response.status
    except aiohttp.ClientConnectionError:
        return None


async def test_one_connection_too_many_is_told_busy() -> None:
    """As long as all of the others have something to do."""
    async with served(most_connections=2) as address, aiohttp.ClientSession() as session:
        others = [await asyncio.open_connection(*address) for _ in range(2)]
        for _, writer in others:
            writer.write(b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n")
        assert await status_of(session, address, "/") == 503
        others[0][1].close()
        async with asyncio.timeout(WAIT_S):
            while await status_of(session, address, "/go") != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            assert (await others[1][0].readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        others[1][1].close()


async def test_an_idle_connection_makes_room() -> None:
    async with served(most_connections=2) as address, aiohttp.ClientSession() as session:
        idle = [await asyncio.open_connection(*address) for _ in range(2)]
        for reader, writer in idle:
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await reader.readuntil(b"ok")
        assert await status_of(session, address, "/") == 200
        ends = [asyncio.create_task(reader.read()) for reader, _ in idle]
        async with asyncio.timeout(WAIT_S):
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        assert [end.done() for end in ends].count(True) == 1
        for _, writer in idle:
            writer.close()
        await asyncio.gather(*ends)


@dataclass
class Guests:
    """Connections from this machine's many addresses, which leave at the end."""

    address: tuple[str, int]
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def come(self, host: str, part: bytes = b"") -> asyncio.StreamReader:
        """One more, that says ``part``."""
        reader, writer = await asyncio.open_connection(*self.address, local_addr=(host, 0))
        self.writers.append(writer)
        writer.write(part)
        return reader


@contextlib.asynccontextmanager
async def hosting(most_connections: int) -> AsyncIterator[Guests]:
    async with served(most_connections) as address, aiohttp.ClientSession() as session:
        guests = Guests(address)
        yield guests
        for writer in guests.writers:
            writer.close()
        async with asyncio.timeout(WAIT_S):
            while await status_of(session, address, "/go") != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.001)


async def told_busy(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(WAIT_S):
        return error_in(await reader.read()) == (b"HTTP/1.1 503 Service Unavailable", "busy")


async def test_a_silent_connection_makes_room_the_oldest_first() -> None:
    """Where none is idle: whoever says nothing shuts nobody out."""
    async with hosting(3) as guests:
        busy = await guests.come("127.0.0.1", WAITING)
        await turned(guests.address)
        silent, half = await guests.come("127.0.0.1"), await guests.come("127.0.0.1", b"GET / HTTP/1.1\r\n")
        for known in (silent, half):
            newest = await guests.come("127.0.0.1", PAGE)
            assert (await newest.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            guests.writers[-1].write(WAITING)
            assert await told_busy(known)
        assert not busy.at_eof()


async def test_one_address_has_a_part_of_the_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes room among its own only, and is told busy; others find a place."""
    monkeypatch.setattr(protocol, "_MIN_PER_NAME", 1)
    async with hosting(20) as guests:
        other = await guests.come("127.0.0.3")
        silent = await guests.come("127.0.0.2")
        for _ in range(2):
            await guests.come("127.0.0.2", WAITING)
        assert await told_busy(silent)
        await turned(guests.address)
        assert await told_busy(await guests.come("127.0.0.2", PAGE))
        guests.writers[0].write(PAGE)
        assert (await other.readuntil(b"ok")).startswith(b"HTTP/1.1 200")


class StayingConnection:
    """A connection that never leaves by itself."""

    def __init__(self, places: protocol.ConnectionPlaces, host: str) -> None:
        self.closed = 0
        self.came_in = places.enter(self, host)  # type: ignore[arg-type]

    def make_room(self) -> None:
        self.closed += 1


def test_one_that_made_room_does_not_make_it_again() -> None:
    """It is open until the loop's next turn, and a burst comes within one."""
    places = protocol.ConnectionPlaces(2)
    first = StayingConnection(places, "192.0.2.1")
    busy = StayingConnection(places, "192.0.2.2")
    places.update(first, answering=False, idle=True)  # type: ignore[arg-type]
    places.update(busy, answering=True, idle=False)  # type: ignore[arg-type]
    burst = [StayingConnection(places, f"198.51.100.{n}") for n in range(5)]
    assert (first.closed, busy.closed) == (1, 0)
    assert [one.came_in for one in burst] == [True] * 5
    assert [one.closed for one in burst] == [1, 1, 1, 1, 0]


def test_a_proxy_stands_for_many() -> None:
    """Of what it brings, only the whole is bounded."""
    proxies = (ip_network("192.0.2.0/24"),)
    for given, expected in (((), 20), (proxies, 30)):
        places = protocol.ConnectionPlaces(100, given)
        clients = [StayingConnection(places, "::ffff:192.0.2.1") for _ in range(30)]
        assert sum(1 for one in clients if not one.closed) == expected


@contextlib.asynccontextmanager
async def stalls_left_out(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Each turn of the loop counts as 20 ms at most. The honest client shares the loop with hundreds, and
    needs a few turns for its head: on a busy machine these can take longer than a slow client is given."""
    loop = asyncio.get_running_loop()
    real, told_s, is_over = loop.time, loop.time(), False
    seen_s = told_s

    def turn() -> None:
        nonlocal told_s, seen_s
        now_s = real()
        told_s, seen_s = told_s + min(now_s - seen_s, 0.02), now_s
        if not is_over:
            loop.call_soon(turn)

    turn()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", lambda: told_s)
        try:
            yield
        finally:
            is_over = True


async def test_many_slow_clients_are_dropped_and_nobody_else_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five sorts, each again and again; when they are gone nothing of them is left open."""
    for name in ("HEAD_S", "BODY_S", "ANSWER_S", "_BODY_GRACE_S"):
        monkeypatch.setattr(protocol, name, 0.5)
    async with (
        stalls_left_out(monkeypatch),
        served(most_connections=1000) as (host, port),
        aiohttp.ClientSession() as session,
    ):
        assert await status_of(session, (host, port), "/") == 200
        before = descriptors()
        slow = SlowClients(port, path="/large", posts="/reads", stream="/large", pause_s=0.005)
        async with slow.many(75), asyncio.timeout(WAIT_S):
            while not all(slow.ended[sort] > 15 for sort in DROPPED):
                assert await status_of(session, (host, port), "/") == 200
            assert descriptors() > before
        async with asyncio.timeout(WAIT_S):
            while descriptors() > before:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert slow.refused == 0
    assert slow.came.keys() == {name for name, _ in slow.sorts()}


DROPPED = ("a head that trickles", "half a body", "a body that trickles")
"""The others see it only when they have read what came before."""


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
