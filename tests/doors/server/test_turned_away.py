"""What is answered while the service can do no more: at every door, before a body is read."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from roundtrip.api.admission.gate import gate_over
from roundtrip.api.dispatch import Dispatch
from roundtrip.api.http.app import create_app
from roundtrip.api.http.turned_away import CallerSorter, RefusalEncoder
from roundtrip.api.request.callers import Callers
from roundtrip.api.server.arrivals import Arrival, ArrivalQueue, CallerSort
from roundtrip.api.server.reception import Reception
from roundtrip.api.sharing.single_flight import SharedAnswers
from roundtrip.services.runtime.context import Context
from support.serving import served


class RefusingQueue(ArrivalQueue):
    """It has refused all for long; who has a key is started. ``sorts``: who came."""

    def __init__(self) -> None:
        super().__init__()
        self.sorts: list[CallerSort] = []

    def starts_now(self) -> bool:
        return False

    def add(self, sort: CallerSort, arrival: Arrival) -> None:
        self.sorts.append(sort)
        if sort == "keyed":
            arrival.start()
        else:
            arrival.refuse(0.02)


@pytest.fixture
def queue() -> RefusingQueue:
    return RefusingQueue()


@pytest.fixture
async def url(ctx: Context, queue: RefusingQueue) -> AsyncIterator[str]:
    """A service that is overloaded."""
    gate = gate_over(ctx, None)
    app = create_app(Dispatch(ctx, gate, SharedAnswers(lambda: 0.0)), Callers())
    app.reception = Reception(CallerSorter(Callers(), gate), RefusalEncoder(ctx.measures), queue)
    async with gate.open(), served(app) as at:
        yield at


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/check/0x" + "1" * 40), ("POST", "/v1/simulate"), ("POST", "/mcp"), ("GET", "/nowhere")],
)
async def test_programs_are_told_busy(url: str, ctx: Context, method: str, path: str) -> None:
    """Also where a body comes that nobody reads; and the connection can be used again."""
    connector = aiohttp.TCPConnector(limit=1)
    async with aiohttp.ClientSession(connector=connector) as session:
        for _ in range(2):
            async with session.request(method, url + path, data=b"x" * 30_000) as answer:
                assert answer.status == 503
                assert (await answer.json())["error"]["code"] == "busy"
                assert answer.headers["retry-after"] == "1"
                assert answer.headers["cache-control"] == "no-store"
                assert len(answer.headers["x-request-id"]) == 12
                assert answer.connection is None or not answer.headers.get("connection")
    told = {(name, ended): one.count() for (_, name, ended), one in ctx.measures.all()}
    assert told["turned_away", "failed"] == 2


async def test_requests_in_one_piece_are_answered_in_turn(url: str) -> None:
    """Refused ones, bodies in between, and one that never waits."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    posted = b"POST /v1/simulate HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n{..}"
    writer.write(posted + b"HEAD / HTTP/1.1\r\nhost: a\r\n\r\n" + posted)
    writer.write(b"GET /v1/health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    async with asyncio.timeout(10):
        said = await reader.read()
    writer.close()
    heads = [line for line in said.split(b"\r\n") if line.endswith((b"200 OK", b"503 Service Unavailable"))]
    assert [head.split()[-1] for head in heads] == [b"Unavailable"] * 3 + [b"OK"]


async def test_who_waits_to_send_a_body_is_told_that_the_connection_ends(url: str) -> None:
    """It may send the body or not, so what comes next could not be read."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n")
    async with asyncio.timeout(10):
        said = await reader.read()
    writer.close()
    assert said.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nconnection: close\r\n" in said


async def test_a_connection_is_closed_where_its_request_says_so(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        headers = {"connection": "close"}
        async with session.get(url + "/llms.txt", headers=headers) as answer:
            assert (answer.status, answer.headers["connection"]) == (503, "close")


async def test_people_are_told_in_words(url: str, queue: RefusingQueue) -> None:
    headers = {"accept": "text/html,application/xhtml+xml"}
    async with aiohttp.ClientSession() as session, session.get(url + "/", headers=headers) as answer:
        assert answer.status == 503
        assert answer.content_type == "text/plain"
        assert answer.headers["retry-after"] == "1"
        assert "Reload this page in a few seconds" in await answer.text()
    assert queue.sorts == ["page"]


async def test_a_browser_may_read_that_it_was_turned_away(url: str) -> None:
    headers = {"origin": "https://page.example", "access-control-request-method": "GET"}
    async with aiohttp.ClientSession(headers=headers) as session:
        path = f"{url}/v1/check/0x{'1' * 40}"
        async with session.options(path) as asked, session.get(path) as answer:
            assert (asked.status, answer.status) == (200, 503)
            for one in (asked, answer):
                assert one.headers["access-control-allow-origin"] == "*"
            assert "GET" in asked.headers["access-control-allow-methods"]


async def test_the_health_is_told_however_much_is_asked(url: str) -> None:
    """A balancer that took this process out would send all of it to the others."""
    async with aiohttp.ClientSession() as session, session.get(url + "/v1/health") as answer:
        assert answer.status == 200
