"""Spans over OTLP/HTTP. They wait for a thread of their own that sends them, a bounded number of them: while
the collector is away they are lost, and nobody waits.
"""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Iterator, Sequence

import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import roundtrip
from roundtrip.domain.base.metrics import UNTRACED, Measures, TraceSpan

MOST_WAITING = 8_192
"""Spans."""
EVERY_MS = 1_000
SENDING_S = 3.0
"""For a batch, with all tries to send it."""
LAST_S = 2.0
"""For what is left when the process ends."""

_KINDS = {"request": trace.SpanKind.SERVER, "node": trace.SpanKind.CLIENT, "database": trace.SpanKind.CLIENT}
_NOTHING = Context()
"""What a root is inside of: whatever a library may have read from a stranger's headers is left out."""


log = structlog.get_logger(__name__)


class Collector:
    """Who is told. ``url``: where it listens, without ``/v1/traces``. ``role``: of this process.
    ``measures``: where it is counted what was sent, and what was not."""

    def __init__(self, url: str, role: str, measures: Measures) -> None:
        told = {
            "service.name": "roundtrip",
            "service.version": roundtrip.__version__,
            "service.instance.id": str(os.getpid()),
            "roundtrip.role": role,
        }
        self._provider = TracerProvider(resource=Resource.create(told), shutdown_on_exit=False)
        self._provider.add_span_processor(
            _BoundedSpans(_CountingExporter(url.rstrip("/") + "/v1/traces", measures))
        )
        # Not the process's own tracer: what libraries would tell is theirs to choose, and may be anything.
        self._tracer = self._provider.get_tracer("roundtrip", roundtrip.__version__)

    def span(self, what: str, name: str, is_root: bool) -> contextlib.AbstractContextManager[TraceSpan]:
        """As ``Traces``: of what goes on by itself, as the newest block is asked for, nothing is told."""
        if not is_root and not trace.get_current_span().is_recording():
            return UNTRACED
        return self._follow(what, name, _NOTHING if is_root else None)

    @contextlib.contextmanager
    def _follow(self, what: str, name: str, inside: Context | None) -> Iterator["_FollowedSpan"]:
        kind = _KINDS.get(what, trace.SpanKind.INTERNAL)
        # The text of an exception may hold a stranger's, or a secret: it is not told.
        with self._tracer.start_as_current_span(
            f"{what} {name}", inside, kind, record_exception=False, set_status_on_exception=False
        ) as span:
            followed = _FollowedSpan(span)
            try:
                yield followed
            except BaseException as error:
                followed.note("ended", "left" if isinstance(error, asyncio.CancelledError) else "failed")
                raise

    async def end(self) -> None:
        """Sends what is left, for a moment: the library would try for half a minute."""
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def set_over() -> None:
            if not over.done():
                over.set_result(None)

        def end() -> None:
            self._provider.shutdown()
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(set_over)

        # No thread of the loop's: those are waited for when the process ends.
        threading.Thread(target=end, name="last spans", daemon=True).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                await over


class _CountingExporter(SpanExporter):
    """Counts what is sent and what is lost, and says once that the collector is away. It runs in a thread:
    what it counts has to be there before, and is counted by nobody else and under its lock."""

    def __init__(self, url: str, measures: Measures) -> None:
        # It would say so twice a second.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._sends = OTLPSpanExporter(url, timeout=SENDING_S)
        self._measures = measures
        self._is_away = False
        self._counting = threading.Lock()
        self._waiting = 0
        for ended in ("sent", "lost"):
            measures.count("spans", ended, by=0)

    def takes(self) -> bool:
        """Whether one more may wait; if not, it is lost. Called by whose span it is."""
        with self._counting:
            if self._waiting >= MOST_WAITING:
                self._measures.count("spans", "lost")
                return False
            self._waiting += 1
            return True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends a batch."""
        with self._counting:
            self._waiting -= len(spans)
        result = self._sends.export(spans)
        is_away = result is not SpanExportResult.SUCCESS
        with self._counting:
            self._measures.count("spans", "lost" if is_away else "sent", by=len(spans))
        if is_away != self._is_away:
            self._is_away = is_away
            log.warning("spans cannot be sent, they are lost" if is_away else "spans are sent again")
        return result

    def shutdown(self) -> None:
        """Nothing more is sent, and nothing tried again."""
        self._sends.shutdown()  # type: ignore[no-untyped-call]


class _BoundedSpans(BatchSpanProcessor):
    """Spans that are to be sent. The library's queue would drop them and count it nowhere; so it never is
    full."""

    def __init__(self, sender: _CountingExporter) -> None:
        super().__init__(sender, MOST_WAITING, EVERY_MS)
        self._sender = sender

    def on_end(self, span: ReadableSpan) -> None:
        """One more, where there is room."""
        if span.context is not None and span.context.trace_flags.sampled and self._sender.takes():
            super().on_end(span)


class _FollowedSpan:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def note(self, name: str, value: str | int) -> None:
        """As ``Span``."""
        self._span.set_attribute(f"roundtrip.{name}", value)
        if name == "ended" and value == "failed":
            self._span.set_status(trace.StatusCode.ERROR)
