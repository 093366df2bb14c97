"""Tracing to an OpenTelemetry collector, switched on by ``ROUNDTRIP_OTLP_URL``.

While it is off, the OpenTelemetry library is not imported: only ``otlp`` imports it.
"""

import contextlib
import importlib
from collections.abc import AsyncIterator

from roundtrip.config.settings import Settings
from roundtrip.domain.base.metrics import Measures

_OTLP_MODULE = "roundtrip.observability.otlp"


@contextlib.asynccontextmanager
async def trace_to_collector(settings: Settings, measures: Measures, role: str) -> AsyncIterator[None]:
    """Traces measured work while the block runs, if a collector is set. ``role``: the command's name."""
    if settings.otlp_url is None:
        yield
        return
    collector = importlib.import_module(_OTLP_MODULE).Collector(settings.otlp_url, role, measures)
    measures.traces = collector.span
    try:
        yield
    finally:
        measures.traces = None
        await collector.end()
