"""Every request has an id of ours: in its answer, in the log, and nowhere anything that a stranger sent."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
import structlog
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from roundtrip.api.admission.gate import gate_over
from roundtrip.api.admission.leases import BatchWriter
from roundtrip.api.admission.shared_minute_limits import SharedMinutes
from roundtrip.api.dispatch import Dispatch
from roundtrip.api.http.app import create_app
from roundtrip.api.request.callers import Callers
from roundtrip.api.sharing.single_flight import SharedAnswers
from roundtrip.api.sharing.valkey import Valkey
from roundtrip.cli.terminal import log_to_stderr
from roundtrip.console.support.live_stream import LiveBoards
from roundtrip.domain.base.metrics import Measures
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.keys import Clock, Person, key_for, random_context
from support.serving import served, service

ID = "x-request-id"
WAIT_S = 20
STRANGERS = "stranger's own id\tand more"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "chain_vitals"}}


def _count_minute(begun: Any) -> None:
    begun.valkey, begun._queues = SimpleNamespace(batch_of=lambda key: key), {}
    begun._flushing = SharedMinutes._open_queue(begun, b"a caller").flushing


def _put_to_valkey(begun: Any) -> None:
    Valkey._enqueue(begun, ("PING",))


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """As they were before, afterwards."""
    root = logging.getLogger()
    before = root.handlers
    yield
    root.handlers = before
    structlog.reset_defaults()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as found:
        yield found


def lines(captured: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in captured.splitlines()]


async def test_every_answer_says_its_own(
    indexed: Context, session: aiohttp.ClientSession, capfd: pytest.CaptureFixture[str]
) -> None:
    log_to_stderr()
    measures = Measures()
    seen: list[str] = []
    async with service(replace(indexed, measures=measures)) as url:
        for method, path, body in (
            ("GET", "/v1/health", None), ("GET", "/v1/check/0x12", None), ("GET", "/nothing", None),
            ("PUT", "/v1/health", None), ("OPTIONS", "/v1/health", None), ("HEAD", "/v1/health", None),
            ("GET", "/v1/tools.json", None), ("GET", "/", None), ("GET", "/boards", None),
            ("POST", "/mcp", CALL), ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
            ("POST", "/mcp", {"jsonrpc": "1.0"}), ("POST", "/v1/simulate", {}),
        ):  # fmt: skip
            async with session.request(method, url + path, json=body, headers={ID: STRANGERS}) as response:
                (text,) = response.headers.getall(ID)
                seen.append(text)
        async with session.get(f"{url}/v1/health") as response:
            assert ID in response.headers["access-control-expose-headers"]
    assert all(re.fullmatch("[0-9a-f]{12}", one) for one in seen)
    assert len(set(seen)) == len(seen)
    assert "stranger" not in capfd.readouterr().err
    answers = {labels[0]: count for what, labels, count in measures.counts() if what == "answers"}
    assert (sum(answers.values()), answers["4xx"]) == (len(seen) + 1, 5)


async def test_what_was_not_the_callers_doing_is_found_in_the_log(
    ctx: Context, session: aiohttp.ClientSession, capfd: pytest.CaptureFixture[str]
) -> None:
    """Over both doors; and the secrets that came with it are in no line."""
    log_to_stderr()
    shop = random_context(ctx, Clock())
    key = (await key_for(shop, Person()))["key"]
    secret = f"whsec_{'s3cr3t' * 5} https://node.example/{key} 0x{'ab' * 65}"

    def now_s() -> float:
        if broken:
            raise RuntimeError(f"said {secret}")
        return 1_760_000_000.0

    broken = False
    headers = {"authorization": f"Bearer {key}", "cookie": f"session={key}", ID: key, "x-sig": secret}
    call = {**CALL, "params": {"name": "my_mite", "arguments": {"note": secret}}}
    async with service(replace(shop, now_s=now_s)) as url:
        broken = True
        messages = []
        for path, body in (("/mcp", call), (f"/mcp/{key}", call), ("/v1/keys/nonce", {"address": secret})):
            async with session.post(url + path, json=body, headers=headers) as response:
                text = await response.text()
                messages.append((response.headers[ID], text))
        broken = False
    written = capfd.readouterr().err
    for request, text in messages:
        assert f"Request {request}." in text
        (line,) = [one for one in lines(written) if one.get("request") == request]
        assert (line["event"], line["level"]) == ("request failed", "error")
        assert "RuntimeError: said whsec_..." in line["exception"]
    for trace in ("s3cr3t", key[9:], "abab"):
        assert trace not in written
        assert not any(trace in text for _, text in messages)


async def test_without_its_database_what_is_told_is_in_the_log(
    ctx: Context, built: Built, session: aiohttp.ClientSession, capfd: pytest.CaptureFixture[str]
) -> None:
    log_to_stderr()
    await ctx.pool.close()
    async with service(ctx) as url, session.get(f"{url}/v1/check/{built.tokens['plain']}") as response:
        request, error = response.headers[ID], (await response.json())["error"]
        assert response.status == 503
    written = [one for one in lines(capfd.readouterr().err) if one.get("request") == request]
    (line,) = [one for one in written if one["event"] == "a request failed"]
    assert error == {"code": line["code"], "message": f"{line['said']} Request {request}."}
    assert (line["operation"], line["door"]) == ("check_token", "http")


@pytest.mark.parametrize("begin", [BatchWriter._start_flush, _count_minute, _put_to_valkey])
async def test_what_goes_on_after_a_request_is_no_part_of_it(begin: Callable[[Any], Any]) -> None:
    seen: list[dict[str, Any]] = []

    async def flush(*_: object) -> None:
        seen.append(structlog.contextvars.get_contextvars())

    begun = SimpleNamespace(_flushing=None, _is_away=lambda: False, is_gone=lambda: False, _flush=flush)
    begun._waiting = []
    with structlog.contextvars.bound_contextvars(request="5bf5b80fb0e5"):
        begin(begun)
        await begun._flushing
    assert seen == [{}]


async def test_a_board_is_read_for_all_who_look() -> None:
    seen: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def read(board: str) -> Mapping[str, str]:
        seen.put_nowait(structlog.contextvars.get_contextvars())
        return {}

    live = LiveBoards(read)
    with structlog.contextvars.bound_contextvars(request="5bf5b80fb0e5"), live.listen("winners"):
        async with asyncio.timeout(WAIT_S):
            assert await seen.get() == {}


async def test_what_breaks_outside_of_every_use_case_is_told_the_same(
    ctx: Context, session: aiohttp.ClientSession, capfd: pytest.CaptureFixture[str]
) -> None:
    log_to_stderr()

    async def broken(request: Request) -> None:
        raise RuntimeError("here")

    dispatch = Dispatch(ctx, gate_over(ctx), SharedAnswers(lambda: 0.0))
    app = create_app(dispatch, Callers(), extra_routes=[Route("/broken", broken)])
    async with served(app) as url, session.get(f"{url}/broken") as response:
        assert response.status == 500
        request, error = response.headers[ID], (await response.json())["error"]
    assert error == {"code": "internal", "message": f"An error occurred in this service. Request {request}."}
    (line,) = [one for one in lines(capfd.readouterr().err) if one.get("request") == request]
    assert "RuntimeError: here" in line["exception"]
    assert ("errors", ("outside", "internal"), 1) in list(ctx.measures.counts())


async def test_an_answer_that_breaks_off_is_not_taken_for_whole(
    ctx: Context, session: aiohttp.ClientSession
) -> None:
    async def half() -> AsyncIterator[bytes]:
        yield b"half of it"
        raise RuntimeError("here")

    async def broken(request: Request) -> StreamingResponse:
        return StreamingResponse(half())

    dispatch = Dispatch(ctx, gate_over(ctx), SharedAnswers(lambda: 0.0))
    app = create_app(dispatch, Callers(), extra_routes=[Route("/broken", broken)])
    async with served(app) as url, session.get(f"{url}/broken") as response:
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()
