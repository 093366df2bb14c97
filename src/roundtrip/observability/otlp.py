"""Sends spans over OTLP/HTTP. A thread sends a bounded queue of them; while the collector is unavailable,
spans are lost, and requests do not wait.
"""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from functools import partial

import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import roundtrip
from roundtrip.domain.base.metrics import UNTRACED, Measures, NoteOnSpan

MAX_QUEUED = 8_192
"""Limit of queued spans."""
EXPORT_EVERY_MS = 1_000
EXPORT_TIMEOUT_S = 3.0
"""Time limit of one batch, including retries."""
SHUTDOWN_S = 2.0
"""How long the rest may take when the process ends."""

_KINDS = {"request": trace.SpanKind.SERVER, "node": trace.SpanKind.CLIENT, "database": trace.SpanKind.CLIENT}
_NO_PARENT = Context()
"""The parent of root spans: ignores a context that a library may have read from a stranger's headers."""


log = structlog.get_logger(__name__)


class Collector:
    """Sends this process's spans to a collector. ``url``: the collector's, without ``/v1/traces``. ``role``:
    the process's. ``measures``: counts sent and lost spans."""

    def __init__(self, url: str, role: str, measures: Measures) -> None:
        attributes = {
            "service.name": "roundtrip",
            "service.version": roundtrip.__version__,
            "service.instance.id": str(os.getpid()),
            "roundtrip.role": role,
        }
        self._provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
        self._provider.add_span_processor(
            _BoundedSpans(_CountingExporter(url.rstrip("/") + "/v1/traces", measures))
        )
        # Not the global tracer provider: libraries' own spans could contain anything.
        self._tracer = self._provider.get_tracer("roundtrip", roundtrip.__version__)

    def span(self, group: str, name: str, is_root: bool) -> contextlib.AbstractContextManager[NoteOnSpan]:
        """Is a ``metrics.Tracer``. Background work, such as polling for the newest block, is not traced."""
        if not is_root and not trace.get_current_span().is_recording():
            return UNTRACED
        return self._start_span(group, name, _NO_PARENT if is_root else None)

    @contextlib.contextmanager
    def _start_span(self, group: str, name: str, parent: Context | None) -> Iterator[NoteOnSpan]:
        kind = _KINDS.get(group, trace.SpanKind.INTERNAL)
        # Exception texts are not recorded: they may contain a stranger's text, or a secret.
        with self._tracer.start_as_current_span(
            f"{group} {name}", parent, kind, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield partial(_note_on, span)
            except BaseException as error:
                _note_on(span, "ended", "left" if isinstance(error, asyncio.CancelledError) else "failed")
                raise

    async def end(self) -> None:
        """Sends the rest for up to ``SHUTDOWN_S``: the library would try for half a minute."""
        loop = asyncio.get_running_loop()
        is_shut_down = loop.create_future()

        def set_shut_down() -> None:
            if not is_shut_down.done():
                is_shut_down.set_result(None)

        def shut_down() -> None:
            self._provider.shutdown()
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(set_shut_down)

        # Not a thread of the loop's executor: the process would wait for it.
        threading.Thread(target=shut_down, name="last spans", daemon=True).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SHUTDOWN_S):
                await is_shut_down


class _CountingExporter(SpanExporter):
    """Exports batches, counts sent and lost spans, and logs when sending begins to fail and when it works
    again. It runs in a thread, so its counters exist from the start and change only here, under its lock."""

    def __init__(self, url: str, measures: Measures) -> None:
        # The library would log every batch that fails.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._exporter = OTLPSpanExporter(url, timeout=EXPORT_TIMEOUT_S)
        self._measures = measures
        self._is_away = False
        self._lock = threading.Lock()
        self._queued = 0
        for ended in ("sent", "lost"):
            measures.count("spans", ended, by=0)

    def reserve(self) -> bool:
        """Reserves a place in the queue. Returns False: it is full, and the span is lost. Called by the
        thread that ends the span."""
        with self._lock:
            if self._queued >= MAX_QUEUED:
                self._measures.count("spans", "lost")
                return False
            self._queued += 1
            return True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends a batch of spans."""
        with self._lock:
            self._queued -= len(spans)
        result = self._exporter.export(spans)
        is_away = result is not SpanExportResult.SUCCESS
        with self._lock:
            self._measures.count("spans", "lost" if is_away else "sent", by=len(spans))
        if is_away != self._is_away:
            self._is_away = is_away
            log.warning("sending spans failed; they are lost" if is_away else "sending spans works again")
        return result

    def shutdown(self) -> None:
        """Stops sending and retrying."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


class _BoundedSpans(BatchSpanProcessor):
    """The queue of spans. The library would drop spans of a full queue without counting them, so ``_sender``
    keeps it from becoming full."""

    def __init__(self, sender: _CountingExporter) -> None:
        super().__init__(sender, MAX_QUEUED, EXPORT_EVERY_MS)
        self._sender = sender

    def on_end(self, span: ReadableSpan) -> None:
        """Queues a span, if there is room."""
        if span.context is not None and span.context.trace_flags.sampled and self._sender.reserve():
            super().on_end(span)


def _note_on(span: trace.Span, name: str, value: str | int) -> None:
    span.set_attribute(f"roundtrip.{name}", value)
    if name == "ended" and value == "failed":
        span.set_status(trace.StatusCode.ERROR)
