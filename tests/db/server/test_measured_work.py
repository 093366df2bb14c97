"""What the database and the worker tell of themselves: connections that are waited for, jobs by their ids."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.metrics import Measures
from roundtrip.jobs.engine.worker import Effect, JobKind, Worker
from roundtrip.store.server import connections, jobs
from roundtrip.store.server.jobs import Job

NOW_S = 1_760_011_200.0


async def test_connections_that_are_lent_are_measured(database_url: str) -> None:
    measures = Measures()

    def lent() -> dict[str, int]:
        return {what: count for what, _, count in measures.read_gauges()}

    async with connections.create_pool(database_url, measures, "own", max_size=1) as pool:
        async with pool.acquire() as connection:
            assert await connection.fetchval("SELECT 1") == 1
            assert lent() == {"connections_lent": 1, "connections_most": 1}
            with pytest.raises(asyncio.TimeoutError):
                await pool.acquire(timeout=0.01)
        held = await pool.acquire()
        await pool.release(held)
        assert await pool.fetchval("SELECT 2") == 2
        assert lent()["connections_lent"] == 0
    assert measures.of("database", "own", "lent").count() == 3
    assert measures.of("database", "own", "failed").count() == 1


async def test_lines_that_are_written_for_a_job_have_its_number(pool: asyncpg.Pool) -> None:
    async def failing(ctx: Any, job: Job) -> Effect:
        raise NodeFault("it took too long")

    ctx = SimpleNamespace(pool=pool, now_s=lambda: NOW_S)
    kinds = {"walk": JobKind(failing, lease_s=30, max_running=2, timeout_s=5)}
    async with pool.acquire() as connection:
        await connection.execute("DELETE FROM jobs.job")
        await jobs.enqueue_many(connection, "walk", ["a", "b"])
        ids = await connection.fetch("SELECT key, id FROM jobs.job")
    measures = Measures()
    with capture_logs(processors=[merge_contextvars]) as logged:
        await asyncio.gather(*await Worker(ctx, kinds, lambda: 0.5, measures=measures).take())
    assert {event["key"]: event["job"] for event in logged} == {row["key"]: row["id"] for row in ids}
    assert measures.of("job", "walk", "failed").count() == 2
    assert datetime.fromtimestamp(NOW_S, UTC).year == 2025
    async with pool.acquire() as connection:
        await connection.execute("DELETE FROM jobs.job")
