"""Metrics for Prometheus, of this process and of the service: one page on a port of its own."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

import roundtrip
from roundtrip.chain.rpc.background import run_in_background
from roundtrip.chain.rpc.client import Node
from roundtrip.chain.rpc.node_pool import NodePool
from roundtrip.config.settings import Settings
from roundtrip.domain.base.metrics import BUCKETS_S, Measures
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.system.status import ServiceStatus, service_status

_RETRY_S = 1.0
_HANDOVER_TRIES = 60
"""For so many tries, the process that this one replaces may still hold the port while it drains. After that
a warning is logged: the port may be misconfigured (two units with the same one). The tries go on."""
_LOOP_S = 0.5
"""How often the event loop's lateness is measured."""
_BOUNDS = (*(str(bound) for bound in BUCKETS_S), "+Inf")
ReadMetrics = Callable[[], Awaitable[Iterable[Metric]]]
"""Reads further metrics with each request of the page."""
log = structlog.get_logger(__name__)


def metrics_ports(first: int) -> Callable[[int], dict[str, str]]:
    """The environment of each of several processes, by index: consecutive ports from ``first``; 0: no
    port."""

    def environment_of(index: int) -> dict[str, str]:
        return {"ROUNDTRIP_METRICS_PORT": str(first + index)} if first else {}

    return environment_of


@contextlib.asynccontextmanager
async def serve_metrics(
    settings: Settings, measures: Measures, read_metrics: ReadMetrics | None = None, retry_s: float = _RETRY_S
) -> AsyncIterator[None]:
    """Serves ``GET /metrics`` while the block runs, if a port is set. If the port is taken (by the process
    that this one replaces), retries every ``retry_s`` until it is free."""
    host, port = settings.metrics_host, settings.metrics_port
    if port == 0:
        yield
        return
    app = web.Application()

    async def send_page(request: web.Request) -> web.Response:
        extra = [] if read_metrics is None else await read_metrics()
        return web.Response(
            body=format_metrics(measures, extra), headers={"content-type": CONTENT_TYPE_LATEST}
        )

    app.router.add_get("/metrics", send_page)
    runner = web.AppRunner(app, handle_signals=False, access_log=None)
    await runner.setup()
    try:
        async with (
            run_in_background(_listen_with_retries(runner, host, port, retry_s), "metrics"),
            run_in_background(_measure_lateness(measures), "lateness"),
        ):
            yield
    finally:
        await runner.cleanup()


async def _listen_with_retries(runner: web.AppRunner, host: str, port: int, retry_s: float) -> None:
    for tries in itertools.count():
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            if tries in (0, _HANDOVER_TRIES):
                log_taken = log.warning if tries else log.info
                log_taken("the metrics port is in use; retrying", port=port, error=str(error))
            await asyncio.sleep(retry_s)
        else:
            return


async def _measure_lateness(measures: Measures) -> None:
    """Measures how late the event loop resumes a sleeping task: every other task waits as long."""
    while True:
        started_s = time.perf_counter()
        await asyncio.sleep(_LOOP_S)
        measures.observe("loop_late", "sleep", "woken", max(0.0, time.perf_counter() - started_s - _LOOP_S))


def format_metrics(measures: Measures, extra: Iterable[Metric]) -> bytes:
    """The page: this process's durations, counters, gauges, memory and files, and ``extra``."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    own = [
        *collect_durations(measures),
        *collect_counters(measures),
        *collect_gauges(measures),
        _build_info(),
    ]
    registry.register(_GivenMetrics([*own, *extra]))
    return generate_latest(registry)


class _GivenMetrics(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


DURATIONS = {
    "operation": "Duration of requests, by operation and outcome.",
    "node": "Duration of requests to nodes, by sort and outcome.",
    "database": "Wait for a database connection, by pool and outcome.",
    "job": "Duration of background jobs, by kind and outcome.",
    "delivery": "Duration of messages to channels, by kind of channel and outcome.",
    "sync": "Duration of storing batches of blocks.",
    "loop_late": "How late the event loop resumes a task that slept half a second.",
}
"""Histograms ``roundtrip_<name>_seconds``, by ``name`` and ``ended``."""

COUNTERS: dict[str, tuple[tuple[str, ...], str]] = {
    "requests": (("door", "ended"), "Requests of operations, by door (http, mcp, pages)."),
    "errors": (("name", "code"), "Requests answered with an error, by operation and error code."),
    "answers": (("status",), "HTTP answers, by status class."),
    "refused_connections": (("why",), "Connections closed before their request was read."),
    "node_calls": (("method",), "Calls to nodes, by method; one request carries many calls."),
    "sync_blocks": ((), "Blocks stored by the sync."),
    "sync_facts": ((), "Facts stored by the sync."),
    "spans": (("ended",), "Spans for the collector, if one is configured."),
}
"""Counters ``roundtrip_<name>_total``, by these labels."""

GAUGES = {
    "runs": "Runs of use cases: places in use, runs that wait, and all places.",
    "answers_kept": "Answers kept for sharing.",
    "writes_waiting": "Counts of limits and credits that are not stored yet.",
    "store_answers": "Whether the store shared by processes answers.",
    "streams": "Streams: of live boards (open, and the limit), and of events.",
    "connections": "Connections of callers: open, idle, and the limit.",
    "connections_lent": "Database connections in use, by pool.",
    "connections_most": "Limit of database connections, by pool.",
    "replica_answers": "Whether this replica answers, and is not left for the primary.",
    "sync": "The sync in this process: whether it leads, and the newest block it stored.",
}
"""Gauges ``roundtrip_<name>``, by ``of``."""


def collect_durations(measures: Measures) -> list[Metric]:
    """A histogram for each of ``DURATIONS``, even without observations."""
    families = {
        group: HistogramMetricFamily(f"roundtrip_{group}_seconds", means, labels=("name", "ended"))
        for group, means in DURATIONS.items()
    }
    for (group, name, ended), histogram in measures.all():
        counts = itertools.accumulate(histogram.counts)
        families[group].add_metric((name, ended), list(zip(_BOUNDS, counts, strict=True)), histogram.total_s)
    return list(families.values())


def collect_counters(measures: Measures) -> list[Metric]:
    """How often each of ``COUNTERS`` happened since the process started."""
    families = {
        group: CounterMetricFamily(f"roundtrip_{group}", means, labels=labels)
        for group, (labels, means) in COUNTERS.items()
    }
    for group, labels, count in measures.counts():
        families[group].add_metric(labels, count)
    return list(families.values())


def collect_gauges(measures: Measures) -> list[Metric]:
    """The current values of ``GAUGES``: queues and limits of this process."""
    families = {
        group: GaugeMetricFamily(f"roundtrip_{group}", means, labels=("of",))
        for group, means in GAUGES.items()
    }
    for group, label, value in measures.read_gauges():
        families[group].add_metric((label,), value)
    return list(families.values())


def _build_info() -> Metric:
    family = GaugeMetricFamily("roundtrip_build_info", "What runs.", labels=("version",))
    family.add_metric((roundtrip.__version__,), 1)
    return family


def service_metrics(ctx: Context) -> ReadMetrics:
    """The service's status, as on the status page. Unknown values have no sample."""

    async def read_metrics() -> list[Metric]:
        return [*status_gauges((await service_status(ctx, Nothing())).answer), *_chain_gauges(ctx)]

    return read_metrics


def _chain_gauges(ctx: Context) -> list[Metric]:
    """Gauges of degraded parts, the node budget and the head's age, which the status page does not have."""
    lacks = GaugeMetricFamily(
        "roundtrip_lacks", "Parts of node, contracts or database that do not work.", labels=("state",)
    )
    states = [finding.state for finding in ctx.lacks()]
    lacks.add_metric(("missing",), states.count("missing"))
    lacks.add_metric(("in_part",), states.count("in part"))
    budget = GaugeMetricFamily(
        "roundtrip_node_budget_calls", "Calls of the daily budget, if one is set.", labels=("of",)
    )
    if isinstance(ctx.node, Node | NodePool) and ctx.node.budget.calls_per_day:
        budget.add_metric(("spent",), ctx.node.budget.spent)
        budget.add_metric(("day",), ctx.node.budget.calls_per_day)
    age_s = ctx.heads.age_s()
    return [lacks, budget, _gauge("head_age_seconds", "Seconds since the newest block arrived.", age_s)]


def status_gauges(status: ServiceStatus) -> list[Metric]:
    """Gauges of the service's status; unknown values are left out."""
    index, backlog = status.followed, status.backlog
    node_health = GaugeMetricFamily(
        "roundtrip_node_well", "State of each of several nodes, by place.", labels=("node",)
    )
    for node in status.node.nodes:
        node_health.add_metric((str(node.number),), int(node.condition == "ok"))
    families = [
        node_health,
        _gauge("node_answers", "Whether a node reports its newest block.", int(status.node.answers)),
        _gauge("head_block", "The newest block that a node reported.", status.node.head or None),
    ]
    if index is not None:
        families += [
            _gauge("index_block", "The newest block of the index.", index.block),
            _gauge("index_behind_blocks", "Blocks that the index is behind the node.", index.blocks_behind),
            _gauge(
                "index_behind_seconds", "Seconds that the index is behind the node.", index.seconds_behind
            ),
            _gauge(
                "index_older_blocks",
                "Blocks before the index's start that are still to be read.",
                index.older_left,
            ),
            _gauge("reorgs_day", "Reorgs in the chain's last day.", index.reorgs.count),
        ]
    if backlog is not None:
        jobs = GaugeMetricFamily("roundtrip_jobs", "Waiting jobs.", labels=("kind", "state"))
        oldest = GaugeMetricFamily(
            "roundtrip_job_oldest_seconds", "Seconds since the oldest job became due.", labels=("kind",)
        )
        for job in backlog.jobs:
            for state, count in (("due", job.due), ("later", job.later), ("given_up", job.given_up)):
                jobs.add_metric((job.kind, state), count)
            oldest.add_metric((job.kind,), job.oldest_s or 0)
        families += [
            jobs,
            oldest,
            _gauge("deliveries", "Waiting messages to channels.", backlog.deliveries),
            _gauge(
                "delivery_oldest_seconds",
                "Seconds that the oldest message has waited.",
                backlog.oldest_delivery_s or 0,
            ),
            _gauge("alerts_behind_blocks", "Blocks without their alerts yet.", backlog.alerts_behind),
        ]
    return families


def _gauge(name: str, means: str, value: float | None) -> Metric:
    return GaugeMetricFamily(f"roundtrip_{name}", means, value=value)
