"""What is answered while the service can do no more: at every door, before anything is looked at."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from roundtrip.api.admission.gate import gate_over
from roundtrip.api.dispatch import Dispatch
from roundtrip.api.http.app import create_app
from roundtrip.api.request.callers import Callers
from roundtrip.api.server.overload import LATE_S, SHEDS_AFTER_S, RunLimit
from roundtrip.api.sharing.single_flight import SharedAnswers
from roundtrip.services.runtime.context import Context
from support.serving import served


@pytest.fixture
async def url(ctx: Context) -> AsyncIterator[str]:
    """A service whose loop was far behind for long; its next look is overdue."""
    now_s = 0.0
    pressure = RunLimit(8, lambda: now_s)
    for _ in range(20):
        now_s += SHEDS_AFTER_S
        pressure.record_delay(now_s, LATE_S, 0)
    now_s += 1.0
    gate = gate_over(ctx, None)
    dispatch = Dispatch(ctx, gate, SharedAnswers(lambda: 0.0))
    async with gate.open(), served(create_app(dispatch, Callers(), should_shed=pressure.should_shed)) as at:
        yield at


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/check/0x" + "1" * 40), ("POST", "/v1/simulate"), ("POST", "/mcp"), ("GET", "/nowhere")],
)
async def test_programs_are_told_busy(url: str, ctx: Context, method: str, path: str) -> None:
    """Also where a body comes that nobody reads; and the connection can be used again."""
    async with aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.request(method, url + path, data=b"x" * 30_000) as answer:
                assert answer.status == 503
                assert (await answer.json())["error"]["code"] == "busy"
                assert answer.headers["retry-after"] == "1"
                assert answer.headers["cache-control"] == "no-store"
    told = {(name, ended): one.count() for (_, name, ended), one in ctx.measures.all()}
    assert told["turned_away", "failed"] == 2


async def test_people_are_told_in_words(url: str) -> None:
    headers = {"accept": "text/html,application/xhtml+xml"}
    async with aiohttp.ClientSession() as session, session.get(url + "/", headers=headers) as answer:
        assert answer.status == 503
        assert answer.content_type == "text/plain"
        assert answer.headers["retry-after"] == "1"
        assert "Reload this page in a few seconds" in await answer.text()


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
