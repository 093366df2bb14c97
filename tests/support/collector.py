"""A collector of spans on loopback: it reads what OpenTelemetry's exporter really sends."""

import asyncio
import contextlib
import gzip
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """One span. ``events``: what happened in it. ``inside``: the id of the one around it; empty: a root."""

    name: str
    id: str
    trace: str
    inside: str
    kind: int
    is_error: bool
    attributes: dict[str, str | int]
    of: dict[str, str | int]
    events: list[str]


@dataclass
class Collector:
    """``url``: where it listens. ``spans``: all that came."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        sent = ExportTraceServiceRequest.FromString(body)
        self.spans += [span for resource in sent.resource_spans for span in _spans(resource)]
        self.came.set()
        return web.Response(body=b"", content_type="application/x-protobuf")

    async def until(self, *names: str) -> None:
        """Waits, bounded, until each of these came."""
        async with asyncio.timeout(20):
            while not all(self.named(name) for name in names):
                self.came.clear()
                await self.came.wait()


def _spans(resource: object) -> list[Span]:
    of = _read(resource.resource.attributes)  # type: ignore[attr-defined]
    return [
        Span(
            name=span.name,
            id=span.span_id.hex(),
            trace=span.trace_id.hex(),
            inside=span.parent_span_id.hex(),
            kind=span.kind,
            is_error=span.status.code == 2,
            attributes=_read(span.attributes),
            of=of,
            events=[str(event) for event in span.events],
        )
        for scope in resource.scope_spans  # type: ignore[attr-defined]
        for span in scope.spans
    ]


def _read(attributes: object) -> dict[str, str | int]:
    return {
        one.key: getattr(one.value, str(one.value.WhichOneof("value")))
        for one in attributes  # type: ignore[attr-defined]
    }


@contextlib.asynccontextmanager
async def collector(port: int = 0) -> AsyncIterator[Collector]:
    """Listens while the block runs."""
    found = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", found.take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield found
    finally:
        await runner.cleanup()
