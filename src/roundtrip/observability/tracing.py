"""What is done inside of what, told to a collector of OpenTelemetry's: ``ROUNDTRIP_OTLP_URL`` switches it on.

While it is off nothing of the library that sends is read (``otlp`` is this package's only module that does).
"""

import contextlib
import importlib
from collections.abc import AsyncIterator

from roundtrip.config.settings import Settings
from roundtrip.domain.base.metrics import Measures

_SENDS = "roundtrip.observability.otlp"


@contextlib.asynccontextmanager
async def sent(settings: Settings, measures: Measures, role: str) -> AsyncIterator[None]:
    """Has what is measured traced while the block runs, where a collector is set. ``role``: which command."""
    if settings.otlp_url is None:
        yield
        return
    collector = importlib.import_module(_SENDS).Collector(settings.otlp_url, role, measures)
    measures.traces = collector
    try:
        yield
    finally:
        measures.traces = None
        await collector.end()
