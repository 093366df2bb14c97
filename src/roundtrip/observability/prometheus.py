"""What a process measured, and how the service is, as Prometheus reads it: one page on a port of its own."""

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

_TRY_AGAIN_S = 1.0
_TRIES_OF_A_HANDOVER = 60
"""So long the process that this one replaces may drain. Who has the port after that will not give it up, as
where two units were set the same: this process is measured by nobody."""
_LOOP_S = 0.5
"""How often it is looked how late the event loop is."""
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
async def serve_metrics(
    settings: Settings, measures: Measures, tells: Tells | None = None
) -> AsyncIterator[None]:
    """``GET /metrics`` while the block runs; without a port nobody is told anything. Where the port is taken,
    as by the process that this one replaces, it is tried again until it is free."""
    host, port = settings.metrics_host, settings.metrics_port
    if port == 0:
        yield
        return
    app = web.Application()

    async def page(request: web.Request) -> web.Response:
        told = [] if tells is None else await tells()
        return web.Response(
            body=format_metrics(measures, told), headers={"content-type": CONTENT_TYPE_LATEST}
        )

    app.router.add_get("/metrics", page)
    runner = web.AppRunner(app, handle_signals=False, access_log=None)
    await runner.setup()
    try:
        async with (
            run_in_background(_listening(runner, host, port), "metrics"),
            run_in_background(_lateness(measures), "lateness"),
        ):
            yield
    finally:
        await runner.cleanup()


async def _listening(runner: web.AppRunner, host: str, port: int) -> None:
    for tries in itertools.count():
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            if tries in (0, _TRIES_OF_A_HANDOVER):
                tell = log.warning if tries else log.info
                tell("the port of metrics is taken, it is tried again", port=port, error=str(error))
            await asyncio.sleep(_TRY_AGAIN_S)
        else:
            return


async def _lateness(measures: Measures) -> None:
    """How late the event loop comes back to who has slept: everything else waits as long."""
    while True:
        began_s = time.perf_counter()
        await asyncio.sleep(_LOOP_S)
        measures.observe("loop_late", "sleep", "woken", max(0.0, time.perf_counter() - began_s - _LOOP_S))


def format_metrics(measures: Measures, told: Iterable[Metric]) -> bytes:
    """The page: durations by what was done, what is told beside them, and this process's memory and files."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    own = [*durations(measures), *counters(measures), *gauges(measures), _build()]
    registry.register(_GivenMetrics([*own, *told]))
    return generate_latest(registry)


class _GivenMetrics(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


DURATIONS = {
    "operation": "Requests, by operation and how they ended.",
    "node": "Trips to a node, by sort and how they ended.",
    "database": "Waiting for a connection to the database, by pool and how it ended.",
    "job": "Work that was done later, by kind and how it ended.",
    "delivery": "Messages to channels, by kind of channel and how they ended.",
    "sync": "Batches of blocks that were written down.",
    "loop_late": "How late the event loop comes back to who has slept half a second.",
}
"""What is told as ``roundtrip_<name>_seconds``, by ``name`` and ``ended``."""

COUNTERS: dict[str, tuple[tuple[str, ...], str]] = {
    "requests": (("door", "ended"), "Requests of operations, by the door they came in by."),
    "errors": (("name", "code"), "Requests that were answered with an error, by operation and its code."),
    "answers": (("status",), "Everything that was answered over HTTP, by the hundred of its status."),
    "refused_connections": (("why",), "Connections that were ended before their request was read."),
    "node_calls": (("method",), "Calls to nodes, by method; a trip has many."),
    "sync_blocks": ((), "Blocks that were written down."),
    "sync_facts": ((), "Facts that were written down."),
    "spans": (("ended",), "Spans for the collector, where there is one."),
}
"""What is told as ``roundtrip_<name>_total``, by these labels."""

GAUGES = {
    "runs": "Runs of use cases: under way, and the most there may be.",
    "answers_kept": "Answers that are kept to be shared.",
    "writes_waiting": "What is to be written down for the limits and credits, and is not yet.",
    "store_answers": "Whether the store that processes share answers.",
    "streams": "Boards that are looked at live: open, and the most there may be.",
    "connections": "Connections of callers: open, idle among them, and the most there may be.",
    "connections_lent": "Connections to the database that somebody has, by pool.",
    "connections_most": "Connections to the database that there may be, by pool.",
    "sync": "Of the sync in this process: whether it leads, and the newest block that it wrote down.",
}
"""What is told as ``roundtrip_<name>``, by ``of``."""


def durations(measures: Measures) -> list[Metric]:
    """A histogram for each kind of thing that is done, also where it was not done yet."""
    found = {
        what: HistogramMetricFamily(f"roundtrip_{what}_seconds", means, labels=("name", "ended"))
        for what, means in DURATIONS.items()
    }
    for (what, name, ended), took in measures.all():
        counts = itertools.accumulate(took.counts)
        found[what].add_metric((name, ended), list(zip(_BOUNDS, counts, strict=True)), took.total_s)
    return list(found.values())


def counters(measures: Measures) -> list[Metric]:
    """How often things happened since the process began."""
    found = {
        what: CounterMetricFamily(f"roundtrip_{what}", means, labels=labels)
        for what, (labels, means) in COUNTERS.items()
    }
    for what, labels, count in measures.counts():
        found[what].add_metric(labels, count)
    return list(found.values())


def gauges(measures: Measures) -> list[Metric]:
    """What waits in this process, and how full it is."""
    found = {
        what: GaugeMetricFamily(f"roundtrip_{what}", means, labels=("of",)) for what, means in GAUGES.items()
    }
    for what, of, value in measures.read_gauges():
        found[what].add_metric((of,), value)
    return list(found.values())


def _build() -> Metric:
    family = GaugeMetricFamily("roundtrip_build_info", "What runs.", labels=("version",))
    family.add_metric((roundtrip.__version__,), 1)
    return family


def of_service(ctx: Context) -> Tells:
    """How the service is, as the status page says it. What is not known has no sample."""

    async def tells() -> list[Metric]:
        return [*stands((await service_status(ctx, Nothing())).answer), *_chain(ctx)]

    return tells


def _chain(ctx: Context) -> list[Metric]:
    """Of the node beside what the status page says."""
    lacks = GaugeMetricFamily(
        "roundtrip_lacks", "What of node, contracts or database does not work.", labels=("state",)
    )
    found = [one.state for one in ctx.lacks()]
    lacks.add_metric(("missing",), found.count("missing"))
    lacks.add_metric(("in_part",), found.count("in part"))
    budget = GaugeMetricFamily(
        "roundtrip_node_budget_calls", "Calls of the day's budget, where there is one.", labels=("of",)
    )
    if isinstance(ctx.node, Node | NodePool) and ctx.node.budget.calls_per_day:
        budget.add_metric(("spent",), ctx.node.budget.spent)
        budget.add_metric(("day",), ctx.node.budget.calls_per_day)
    age_s = ctx.heads.age_s()
    return [lacks, budget, _gauge("head_age_seconds", "Since when there is no newer block.", age_s)]


def stands(status: ServiceStatus) -> list[Metric]:
    """Gauges of what is known."""
    followed, waits = status.followed, status.backlog
    well = GaugeMetricFamily("roundtrip_node_well", "Of several nodes, by place.", labels=("node",))
    for node in status.node.nodes:
        well.add_metric((str(node.number),), int(node.condition == "ok"))
    found = [
        well,
        _gauge("node_answers", "Whether a node tells its newest block.", int(status.node.answers)),
        _gauge("head_block", "The newest block that a node told of.", status.node.head or None),
    ]
    if followed is not None:
        found += [
            _gauge("index_block", "The newest block of the index.", followed.block),
            _gauge("index_behind_blocks", "Blocks that the index lacks.", followed.blocks_behind),
            _gauge("index_behind_seconds", "How far the index is behind.", followed.seconds_behind),
            _gauge("index_older_blocks", "Blocks from before it began, to be read.", followed.older_left),
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


def _gauge(name: str, means: str, value: float | None) -> Metric:
    return GaugeMetricFamily(f"roundtrip_{name}", means, value=value)
