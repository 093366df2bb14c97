"""What a process measured, and how the service is, as Prometheus reads it: one page on a port of its own."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from roundtrip.chain.background import beside
from roundtrip.domain.measured import BUCKETS_S, Measures
from roundtrip.services.context import Context
from roundtrip.services.index_answer import Nothing
from roundtrip.services.service_status import ServiceStatus, service_status
from roundtrip.settings import Settings

_TRY_AGAIN_S = 1.0
_BOUNDS = (*(str(bound) for bound in BUCKETS_S), "+Inf")
Tells = Callable[[], Awaitable[Iterable[Metric]]]
"""What is told beside durations, when somebody asks."""
log = structlog.get_logger(__name__)


def ports(first: int) -> Callable[[int], dict[str, str]]:
    """Of several processes each has the next port; none where there is no first."""

    def of_place(place: int) -> dict[str, str]:
        return {"ROUNDTRIP_METRICS_PORT": str(first + place)} if first else {}

    return of_place


@contextlib.asynccontextmanager
async def exported(settings: Settings, measures: Measures, tells: Tells | None = None) -> AsyncIterator[None]:
    """``GET /metrics`` while the block runs; without a port nobody is told anything. Where the port is taken,
    as by the process that this one replaces, it is tried again until it is free."""
    host, port = settings.metrics_host, settings.metrics_port
    if port == 0:
        yield
        return
    app = web.Application()

    async def page(request: web.Request) -> web.Response:
        told = [] if tells is None else await tells()
        return web.Response(body=written(measures, told), headers={"content-type": CONTENT_TYPE_LATEST})

    app.router.add_get("/metrics", page)
    runner = web.AppRunner(app, handle_signals=False, access_log=None)
    await runner.setup()
    try:
        async with beside(_listening(runner, host, port), "metrics"):
            yield
    finally:
        await runner.cleanup()


async def _listening(runner: web.AppRunner, host: str, port: int) -> None:
    for tries in itertools.count():
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            if tries == 0:
                log.info("the port of metrics is taken, it is tried again", port=port, error=str(error))
            await asyncio.sleep(_TRY_AGAIN_S)
        else:
            return


def written(measures: Measures, told: Iterable[Metric]) -> bytes:
    """The page: durations by what was done, what is told beside them, and this process's memory and files."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Given([*durations(measures), *told]))
    return generate_latest(registry)


class _Given(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


def durations(measures: Measures) -> list[Metric]:
    """A histogram for each kind of thing that was done."""
    found: list[Metric] = []
    for what, rows in itertools.groupby(measures.all(), key=lambda row: row[0][0]):
        family = HistogramMetricFamily(
            f"roundtrip_{what}_seconds", _MEANS.get(what, what), labels=("name", "ended")
        )
        for (_, name, ended), took in rows:
            counts = itertools.accumulate(took.counts)
            family.add_metric((name, ended), list(zip(_BOUNDS, counts, strict=True)), took.total_s)
        found.append(family)
    return found


_MEANS = {
    "operation": "Requests, by operation and how they ended.",
    "node": "Trips to a node, by sort and how they ended.",
    "job": "Work that was done later, by kind and how it ended.",
    "sync": "Batches of blocks that were read and written down.",
}


def of_service(ctx: Context) -> Tells:
    """How the service is, as the status page says it. What is not known has no sample."""

    async def tells() -> list[Metric]:
        return stands((await service_status(ctx, Nothing())).answer)

    return tells


def stands(status: ServiceStatus) -> list[Metric]:
    """Gauges of what is known."""
    followed, waits = status.followed, status.backlog
    found = [
        _gauge("node_answers", "Whether a node tells its newest block.", int(status.node.answers)),
        _gauge("head_block", "The newest block that a node told of.", status.node.head or None),
    ]
    if followed is not None:
        found += [
            _gauge("index_block", "The newest block of the index.", followed.block),
            _gauge("index_behind_blocks", "Blocks that the index lacks.", followed.blocks_behind),
            _gauge("index_behind_seconds", "How far the index is behind.", followed.seconds_behind),
            _gauge("reorgs_day", "Forks followed in the chain's last day.", followed.reorgs.count),
        ]
    if waits is not None:
        jobs = GaugeMetricFamily("roundtrip_jobs", "Work that waits.", labels=("kind", "state"))
        oldest = GaugeMetricFamily(
            "roundtrip_job_oldest_seconds", "Since when work is due.", labels=("kind",)
        )
        for one in waits.jobs:
            for state, count in (("due", one.due), ("later", one.later), ("given_up", one.given_up)):
                jobs.add_metric((one.kind, state), count)
            oldest.add_metric((one.kind,), one.oldest_s or 0)
        found += [
            jobs,
            oldest,
            _gauge("deliveries", "Messages to channels that wait.", waits.deliveries),
            _gauge("delivery_oldest_seconds", "Since when the oldest waits.", waits.oldest_delivery_s or 0),
            _gauge("alerts_behind_blocks", "Blocks that alerts were not made of yet.", waits.alerts_behind),
        ]
    return found


def _gauge(name: str, means: str, value: int | None) -> Metric:
    return GaugeMetricFamily(f"roundtrip_{name}", means, value=value)
