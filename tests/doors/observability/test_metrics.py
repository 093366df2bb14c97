"""What Prometheus reads: durations of what was really done, how the service is, and only what is known."""

import asyncio
import socket
from collections.abc import Iterator, Mapping
from dataclasses import replace

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.config.settings import Settings
from roundtrip.domain.base.metrics import BUCKETS_S, Measures
from roundtrip.observability import prometheus
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.node import free_port
from support.fixtures import closed_database
from support.serving import service

Labels = tuple[tuple[str, str], ...]


def samples(page: str) -> Mapping[tuple[str, Labels], float]:
    """Every value of a page, by its name and labels."""
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(page)
        for one in family.samples
    }


async def asked(port: int) -> str:
    """The page, as soon as somebody listens there."""
    async with asyncio.timeout(20), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"http://127.0.0.1:{port}/metrics") as response:
                    assert response.status == 200
                    assert response.headers["content-type"].startswith("text/plain")
                    return await response.text()
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0)


async def test_what_was_done_and_how_it_stands_is_read(indexed: Context) -> None:
    ctx = replace(indexed, measures=Measures())
    settings = Settings(metrics_port=free_port())
    async with (
        service(ctx) as url,
        prometheus.serve_metrics(settings, ctx.measures, prometheus.service_metrics(ctx)),
    ):
        async with aiohttp.ClientSession() as session:
            for path in ("/v1/health", "/v1/check/0x12"):
                await (await session.get(url + path)).read()
        found = samples(await asked(settings.metrics_port))
    made = (("ended", "made"), ("name", "health"))
    assert found["roundtrip_operation_seconds_count", made] == 1
    assert found["roundtrip_operation_seconds_sum", made] > 0
    assert found["roundtrip_operation_seconds_bucket", (*made[:1], ("le", "+Inf"), *made[1:])] == 1
    assert found["roundtrip_operation_seconds_count", (("ended", "refused"), ("name", "check_token"))] == 1
    assert found["roundtrip_node_answers", ()] == 1
    assert found["roundtrip_head_block", ()] == ctx.heads.current().block.number
    assert found["roundtrip_index_block", ()] > 0
    assert found["roundtrip_deliveries", ()] == 0
    assert found["process_resident_memory_bytes", ()] > 10**7
    assert found["process_open_fds", ()] > 3


async def test_the_first_fault_that_nobody_foresaw_is_one_more(indexed: Context) -> None:
    """Of a counter that begins with it Prometheus would see no increase."""
    ctx = replace(indexed, measures=Measures())
    settings = Settings(metrics_port=free_port())
    async with service(ctx) as url, prometheus.serve_metrics(settings, ctx.measures):
        before = samples(await asked(settings.metrics_port))
        async with aiohttp.ClientSession(headers={"accept": "text/html"}) as session:
            for path in (f"/token/0x{'12' * 20}", f"/wallet/0x{'12' * 20}"):
                await (await session.get(url + path)).read()
        after = samples(await asked(settings.metrics_port))
    for operation in OPERATIONS:
        assert before["roundtrip_errors_total", (("code", "internal"), ("name", operation.name))] == 0
    asked_for = {
        dict(labels)["name"] for name, labels in after if name == "roundtrip_operation_seconds_count"
    }
    assert asked_for - {operation.name for operation in OPERATIONS}
    for one in asked_for:
        assert after["roundtrip_errors_total", (("code", "internal"), ("name", one))] == 0


async def test_what_is_not_known_has_no_sample(ctx: Context) -> None:
    async with closed_database() as pool:
        settings = Settings(metrics_port=free_port())
        away = replace(ctx, pool=pool)
        async with prometheus.serve_metrics(settings, Measures(), prometheus.service_metrics(away)):
            found = {name for name, _ in samples(await asked(settings.metrics_port))}
    assert "roundtrip_head_block" in found
    assert not found & {"roundtrip_index_block", "roundtrip_index_behind_seconds", "roundtrip_jobs"}


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening


async def test_a_port_that_is_taken_is_had_when_it_is_free(taken: socket.socket) -> None:
    """As while one process takes the place of another."""
    settings = Settings(metrics_port=taken.getsockname()[1])
    async with prometheus.serve_metrics(settings, Measures(), retry_s=0.01):
        await asyncio.sleep(0)
        taken.close()
        assert "process_open_fds" in await asked(settings.metrics_port)


async def test_a_port_that_stays_taken_is_warned_of_once(taken: socket.socket) -> None:
    """Where two units were set the same, one of them is measured by nobody."""
    settings = Settings(metrics_port=taken.getsockname()[1])
    with capture_logs() as logs:
        async with prometheus.serve_metrics(settings, Measures(), retry_s=0.0):
            for _ in range(2_000):
                await asyncio.sleep(0)
    text = "the metrics port is in use; retrying"
    assert [(line["log_level"], line["event"]) for line in logs] == [("info", text), ("warning", text)]


async def test_without_a_port_nothing_listens() -> None:
    async with prometheus.serve_metrics(Settings(), Measures()):
        names = {task.get_name() for task in asyncio.all_tasks()}
    assert "metrics" not in names
    assert prometheus.metrics_ports(0)(3) == {}
    assert prometheus.metrics_ports(9100)(3) == {"ROUNDTRIP_METRICS_PORT": "9103"}


def test_a_histogram_adds_up() -> None:
    measures = Measures()
    for took_s in (0.004, 0.005, 0.2, 100.0):
        measures.observe("job", "names", "done", took_s)
    found = samples(prometheus.format_metrics(measures, []).decode())
    by_bound = [
        found["roundtrip_job_seconds_bucket", (("ended", "done"), ("le", bound), ("name", "names"))]
        for bound in (*map(str, BUCKETS_S), "+Inf")
    ]
    assert by_bound == sorted(by_bound)
    assert (by_bound[0], by_bound[4], by_bound[5], by_bound[-2], by_bound[-1]) == (2, 2, 3, 3, 4)
    assert found["roundtrip_job_seconds_sum", (("ended", "done"), ("name", "names"))] == pytest.approx(
        100.209
    )
