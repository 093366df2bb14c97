"""The table of jobs against a model of it, in any order of wishes, runs, crashes and failures."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import AT_ONCE, Job
from roundtrip.store.server.rows import Connection

START = datetime(2025, 10, 9, tzinfo=UTC)
LEASE_S = 10
A = TypeVar("A")


@dataclass
class JobRow:
    """What the table should hold of a job, times in seconds from ``START``; None: at once."""

    payload: int
    run_at: float
    place: int
    claim: object | None = None
    until: float = 0
    again_at: float | None = None
    tries: int = 0
    failed: bool = False


AT_ONCE_S = -1e9


class Jobs(RuleBasedStateMachine):
    """``held``: everything ever taken, with the claim that the model gave it; most are lost by now."""

    connection: Connection
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.model: dict[str, JobRow] = {}
        self.held: list[tuple[Job, str, object]] = []
        self.places = 0
        self._run(self.connection.execute("TRUNCATE jobs.job"))

    def _run(self, doing: Awaitable[A]) -> A:
        async def done() -> A:
            return await doing

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(20)

    def _at(self, at_s: float) -> datetime:
        return AT_ONCE if at_s == AT_ONCE_S else START + timedelta(seconds=at_s)

    @rule(keys=st.lists(st.sampled_from("abcd"), max_size=4), in_s=st.none() | st.integers(-5, 15))
    def wish(self, keys: list[str], in_s: int | None) -> None:
        at_s = AT_ONCE_S if in_s is None else self.now + in_s
        number = self.places
        run_at = None if in_s is None else self._at(at_s)
        self._run(jobs.enqueue_many(self.connection, "walk", keys, {"n": number}, run_at))
        for key in sorted(set(keys)):
            self.places += 1
            row = self.model.get(key)
            if row is None:
                self.model[key] = JobRow(number, at_s, self.places)
                continue
            row.payload = number
            if row.claim is not None:
                row.run_at = min(row.run_at, at_s)
                row.again_at = at_s if row.again_at is None else min(row.again_at, at_s)
            elif row.failed:
                row.run_at, row.tries, row.failed = at_s, 0, False
            else:
                row.run_at = min(row.run_at, at_s)

    @rule(count=st.integers(1, 3))
    def take(self, count: int) -> None:
        found = self._run(jobs.claim(self.connection, ["walk"], count, LEASE_S, self._at(self.now)))
        due = [
            (row.run_at, row.place, key)
            for key, row in self.model.items()
            if not row.failed and row.run_at <= self.now and (row.claim is None or row.until <= self.now)
        ]
        expected = [key for _, _, key in sorted(due)[:count]]
        assert [job.key for job in found] == expected
        for job in found:
            row = self.model[job.key]
            row.claim, row.until, row.tries = object(), self.now + LEASE_S, row.tries + 1
            row.again_at = row.again_at if row.again_at is not None and row.again_at > self.now else None
            assert (job.payload, job.tries) == ({"n": row.payload}, row.tries)
            self.held.append((job, job.key, row.claim))

    @rule(seconds=st.integers(1, 12))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    def _ours(self, index: int) -> tuple[Job, str, JobRow | None]:
        job, key, claim = self.held[index % len(self.held)]
        row = self.model.get(key)
        return job, key, row if row is not None and row.claim is claim else None

    @precondition(lambda self: self.held)
    @rule(index=st.integers(0, 1000))
    def finish(self, index: int) -> None:
        job, key, row = self._ours(index)
        assert self._run(self._finished(job)) == (row is not None)
        if row is None:
            return
        if row.again_at is None:
            del self.model[key]
        else:
            row.run_at, row.again_at, row.claim, row.tries = row.again_at, None, None, 0

    async def _finished(self, job: Job) -> bool:
        async with self.connection.transaction():
            return await jobs.finish(self.connection, job)

    @precondition(lambda self: self.held)
    @rule(index=st.integers(0, 1000), in_s=st.integers(0, 15))
    def postpone(self, index: int, in_s: int) -> None:
        job, _, row = self._ours(index)
        at = self.now + in_s
        assert self._run(jobs.postpone(self.connection, job, self._at(at), "no")) == (row is not None)
        if row is not None:
            row.run_at, row.claim, row.again_at = at, None, None

    @precondition(lambda self: self.held)
    @rule(index=st.integers(0, 1000))
    def give_up(self, index: int) -> None:
        job, _, row = self._ours(index)
        assert self._run(jobs.give_up(self.connection, job, self._at(self.now), "no")) == (row is not None)
        if row is not None:
            row.failed, row.claim = row.again_at is None, None
            if row.again_at is not None:
                row.run_at, row.again_at, row.tries = row.again_at, None, 0

    @precondition(lambda self: self.held)
    @rule(index=st.integers(0, 1000), in_s=st.integers(1, 15))
    def renew(self, index: int, in_s: int) -> None:
        job, _, row = self._ours(index)
        until = self.now + in_s
        assert self._run(jobs.renew(self.connection, job, self._at(until))) == (row is not None)
        if row is not None:
            row.until = until

    @invariant()
    def nothing_is_lost(self) -> None:
        rows = self._run(self.connection.fetch("SELECT key, run_at, failed_at FROM jobs.job"))
        found = {row["key"]: (row["run_at"], row["failed_at"] is not None) for row in rows}
        assert found == {key: (self._at(row.run_at), row.failed) for key, row in self.model.items()}


@pytest.mark.timeout(300)
async def test_the_table_is_as_its_model(database_url: str) -> None:
    """The machine is not asynchronous: it runs in a thread and asks this loop."""
    connection = await asyncpg.connect(database_url)
    here: dict[str, Any] = {"connection": connection, "loop": asyncio.get_running_loop()}
    machine = type("Machine", (Jobs,), here)
    limits = settings(
        max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
    await asyncio.to_thread(run_state_machine_as_test, machine, settings=limits)
    await connection.execute("TRUNCATE jobs.job")
    await connection.close()
