"""Spans as a collector gets them: what was inside of what, nothing of strangers, and nobody waits for it."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import aiohttp
import pytest
from opentelemetry.sdk.trace.export import SpanExportResult
from structlog.testing import capture_logs

from roundtrip.chain.rpc.client import Node
from roundtrip.config.settings import Settings
from roundtrip.domain.base.metrics import UNTRACED, Measures
from roundtrip.observability import otlp, tracing
from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip_development.devnet.node import free_port
from roundtrip_development.devnet.world import Built
from support.collector import Collector, Span, collector
from support.serving import service

STRANGERS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SERVER, CLIENT = 2, 3


@dataclass
class TracedService:
    """A service whose node and pool are measured by what is traced."""

    ctx: Context
    heard: Collector

    def settings(self) -> Settings:
        return Settings(otlp_url=self.heard.url)


@pytest.fixture
async def house(ctx: Context, database_url: str) -> AsyncIterator[TracedService]:
    measures = Measures()
    assert isinstance(ctx.node, Node)
    node = replace(ctx.node, measures=measures)
    async with connections.create_pool(database_url, measures, max_size=4) as pool, collector() as heard:
        yield TracedService(replace(ctx, measures=measures, node=node, pool=pool), heard)


def above(one: Span, among: list[Span]) -> list[str]:
    """The names of what it is inside of, from the root on."""
    by_id = {span.id: span for span in among}
    found: list[str] = []
    while one.inside:
        one = by_id[one.inside]
        found.insert(0, one.name)
    return found


async def test_a_request_is_followed_down_to_the_node_and_the_database(
    house: TracedService, built: Built
) -> None:
    token = built.tokens["plain"]
    async with (
        tracing.trace_to_collector(house.settings(), house.ctx.measures, "serve"),
        service(house.ctx) as url,
        aiohttp.ClientSession() as session,
        session.get(f"{url}/v1/check/{token}", headers={"traceparent": STRANGERS}) as response,
    ):
        assert response.status == 200
        request_id = response.headers["x-request-id"]
    answer = house.heard.spans
    (root,) = house.heard.named("request check_token")
    assert (root.inside, root.kind, root.is_error) == ("", SERVER, False)
    assert root.attributes == {
        "roundtrip.request": request_id, "roundtrip.door": "http", "roundtrip.ended": "made",
    }  # fmt: skip
    assert root.of["service.name"] == "roundtrip"
    assert root.of["roundtrip.role"] == "serve"
    simulated, lent = house.heard.named("node simulations"), house.heard.named("database requests")
    assert simulated
    assert lent
    for one in (*simulated, *lent):
        assert one.kind == CLIENT
        assert one.trace == root.trace
        assert above(one, answer) == ["request check_token", "use_case check_token"]
    assert all(int(one.attributes["roundtrip.calls"]) >= 1 for one in simulated)
    # Nobody's words, addresses or traces.
    assert root.trace != STRANGERS.split("-")[1]
    assert token[2:].lower() not in str(answer).lower()


async def test_tools_are_followed_and_what_failed_says_so(house: TracedService) -> None:
    node = replace(house.ctx.node, url="http://127.0.0.1:1/none")  # type: ignore[type-var]
    call = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "explain_transaction", "arguments": {"hash": "0x" + "5c" * 32},
            "_meta": {"traceparent": STRANGERS},
        },
    }  # fmt: skip
    ctx = replace(house.ctx, node=node)
    async with (
        tracing.trace_to_collector(house.settings(), ctx.measures, "serve"),
        service(ctx) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/mcp", json=call) as response,
    ):
        text = json.dumps(await response.json())
        request_id = response.headers["x-request-id"]
    assert "upstream" in text
    assert f"Request {request_id}." in text
    (root,) = house.heard.named("request explain_transaction")
    assert root.attributes == {
        "roundtrip.request": request_id, "roundtrip.door": "mcp", "roundtrip.ended": "failed",
        "roundtrip.code": "upstream",
    }  # fmt: skip
    assert root.is_error
    assert root.trace != STRANGERS.split("-")[1]
    (read,) = house.heard.named("node reads")
    assert (read.is_error, read.attributes["roundtrip.ended"]) == (True, "failed")


async def test_what_nobody_asked_for_is_not_followed(house: TracedService) -> None:
    async with tracing.trace_to_collector(house.settings(), house.ctx.measures, "serve"):
        await house.ctx.heads.refresh()
        async with house.ctx.pool.acquire():
            pass
        with house.ctx.measures.span("job", "names", is_root=True):
            async with house.ctx.pool.acquire():
                pass
    assert [span.name for span in house.heard.spans] == ["database requests", "job names"]


async def test_a_span_that_is_left_or_fails_says_so_and_not_why(house: TracedService) -> None:
    measures = house.ctx.measures
    async with tracing.trace_to_collector(house.settings(), measures, "work"):
        for error in (asyncio.CancelledError("secret words"), RuntimeError("secret words")):
            with pytest.raises(type(error)), measures.span("job", "names", is_root=True):
                raise error
    ended = [(one.attributes["roundtrip.ended"], one.is_error) for one in house.heard.named("job names")]
    assert ended == [("left", False), ("failed", True)]
    assert "secret" not in str(house.heard.spans)
    assert not any(span.events for span in house.heard.spans)


async def test_a_root_is_inside_of_nothing_whatever_goes_on(house: TracedService) -> None:
    """A library may have taken a stranger's trace for the one that goes on."""
    measures = house.ctx.measures
    async with tracing.trace_to_collector(house.settings(), measures, "serve"):
        with measures.span("job", "names", is_root=True), measures.span("request", "health", is_root=True):
            pass
    (job,), (request,) = house.heard.named("job names"), house.heard.named("request health")
    assert (job.inside, request.inside) == ("", "")
    assert job.trace != request.trace


async def test_a_collector_that_is_away_hurts_nobody(house: TracedService) -> None:
    """Nothing listens there: answers go out, the log says it once, what was lost is counted, and the end
    does not wait for it."""
    settings = Settings(otlp_url=f"http://127.0.0.1:{free_port()}")
    measures = house.ctx.measures
    with capture_logs() as logged:
        async with (
            asyncio.timeout(20),
            tracing.trace_to_collector(settings, measures, "serve"),
            service(house.ctx) as url,
            aiohttp.ClientSession() as session,
        ):
            for _ in range(3):
                async with session.get(f"{url}/v1/health") as response:
                    assert response.status == 200
            # The library's thread tells nobody.
            while not logged:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    counts = {(what, labels): count for what, labels, count in measures.counts()}
    assert counts["spans", ("lost",)] >= 3
    assert counts["spans", ("sent",)] == 0
    assert len([event for event in logged if event["event"].startswith("sending spans")]) == 1


async def test_what_there_is_no_room_for_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    class SlowExporter:
        def __init__(self, url: str, timeout: float) -> None: ...

        def export(self, batch: object) -> SpanExportResult:
            answers.wait(20)
            return SpanExportResult.SUCCESS

        def shutdown(self) -> None: ...

    # Their batches have as many.
    room, several = 512, 2_000
    monkeypatch.setattr(otlp, "MAX_QUEUED", room)
    monkeypatch.setattr(otlp, "OTLPSpanExporter", SlowExporter)
    measures = Measures()
    async with tracing.trace_to_collector(Settings(otlp_url="http://127.0.0.1:4318"), measures, "serve"):
        for _ in range(several):
            with measures.span("request", "health", is_root=True):
                pass
        answers.set()
    counts = {labels: count for what, labels, count in measures.counts() if what == "spans"}
    # One batch may be on its way meanwhile.
    assert counts["lost",] >= several - 2 * room
    assert counts["lost",] + counts["sent",] == several


async def test_off_nothing_is_followed() -> None:
    measures = Measures()
    async with tracing.trace_to_collector(Settings(), measures, "serve"):
        assert measures.traces is None
        assert measures.span("request", "health", is_root=True) is UNTRACED
