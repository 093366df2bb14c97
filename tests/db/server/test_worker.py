"""The worker over a real database, with kinds of its own. Time is moved by hand; waits are bounded."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from roundtrip.chain.rpc.background import run_in_background
from roundtrip.domain.base.errors import NodeFault
from roundtrip.jobs.engine.worker import Effect, JobKind, Worker, do_nothing
from roundtrip.store.server import connections, jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.server.rows import Connection

NOW_S = 1_760_011_200.0
WAIT_S = 20
HOUR_S = 3600.0
UNFAIR = "it said \u202e'no'\n<b>" + "x" * 1000


@dataclass
class ClaimingContext:
    """What the handlers below work on."""

    pool: asyncpg.Pool
    at_s: float = NOW_S
    begun: list[str] = field(default_factory=list)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    ended: list[str] = field(default_factory=list)
    has_begun: asyncio.Event = field(default_factory=asyncio.Event)

    def now_s(self) -> float:
        return self.at_s

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at_s, UTC)

    async def wish(self, *keys: str, kind: str = "walk") -> None:
        async with self.pool.acquire() as connection:
            await jobs.enqueue_many(connection, kind, keys)

    async def claims(self, kind: str = "walk", after_s: float = 0.0) -> list[Job]:
        """Takes as another worker would."""
        async with self.pool.acquire() as connection:
            return await jobs.claim(connection, [kind], 10, 60, self.now() + timedelta(seconds=after_s))

    async def marks(self) -> list[str]:
        rows = await self.pool.fetch("SELECT key FROM jobs.job WHERE kind = 'mark' ORDER BY id")
        return [row["key"] for row in rows]

    async def left(self) -> list[str]:
        rows = await self.pool.fetch("SELECT key FROM jobs.job WHERE kind <> 'mark' ORDER BY id")
        return [row["key"] for row in rows]


def mark(job: Job) -> Effect:
    """An effect that can be seen: another job."""

    async def effect(connection: Connection) -> None:
        await jobs.enqueue(connection, "mark", f"{job.key}-{job.tries}")

    return effect


async def does(ground: ClaimingContext, job: Job) -> Effect:
    ground.begun.append(job.key)
    return mark(job)


async def quiet(ground: ClaimingContext, job: Job) -> Effect:
    """No wish of its own tells of its end."""
    ground.begun.append(job.key)
    return do_nothing


async def waits(ground: ClaimingContext, job: Job) -> Effect:
    ground.begun.append(job.key)
    ground.has_begun.set()
    try:
        await ground.go.wait()
    finally:
        ground.ended.append(job.key)
    return mark(job)


async def fails(ground: ClaimingContext, job: Job) -> Effect:
    ground.begun.append(job.key)
    raise NodeFault(UNFAIR)


async def half_done(ground: ClaimingContext, job: Job) -> Effect:
    async def effect(connection: Connection) -> None:
        await mark(job)(connection)
        raise KeyError(UNFAIR)

    return effect


async def loses(ground: ClaimingContext, job: Job) -> Effect:
    """While it is run its lease ends, and another takes it."""
    ground.begun.append(job.key)
    assert [taken.id for taken in await ground.claims(after_s=HOUR_S)] == [job.id]
    return mark(job)


def kind(
    handler: Callable[[ClaimingContext, Job], Awaitable[Effect]],
    lease_s: float = 60,
    at_once: int = 4,
    limit_s: float = 60,
    most_tries: int = 28,
) -> JobKind[ClaimingContext]:
    return JobKind(handler, lease_s, at_once, limit_s, most_tries=most_tries)


def worker(
    ground: ClaimingContext, poll_s: float = 60.0, **kinds: JobKind[ClaimingContext]
) -> Worker[ClaimingContext]:
    return Worker(ground, kinds, lambda: 0.5, poll_s)


async def round_of(worker: Worker[ClaimingContext]) -> None:
    """One round and its runs."""
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*await worker.take())


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WAIT_S):
        while True:
            with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                if await condition():
                    return
            await asyncio.sleep(0.005)


@pytest.fixture
async def ground(database_url: str) -> AsyncIterator[ClaimingContext]:
    async with connections.create_pool(database_url, min_size=1, max_size=8, command_timeout=5) as pool:
        await pool.execute("TRUNCATE jobs.job")
        yield ClaimingContext(pool)
        await pool.execute("TRUNCATE jobs.job")


async def test_the_effect_and_the_end_of_a_job_come_together(ground: ClaimingContext) -> None:
    await ground.wish("a", "b")
    await round_of(worker(ground, walk=kind(does)))
    assert sorted(await ground.marks()) == ["a-1", "b-1"]
    assert await ground.left() == []


async def test_no_transaction_is_open_while_a_handler_reads(ground: ClaimingContext) -> None:
    seen: list[int] = []

    async def looks(ground: ClaimingContext, job: Job) -> Effect:
        seen.append(
            await ground.pool.fetchval(
                # A vacuum that the server began by itself has a transaction, too.
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND backend_type = 'client backend' AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
            )
        )
        return do_nothing

    await ground.wish("a")
    await round_of(worker(ground, walk=kind(looks)))
    assert seen == [0]
    assert await ground.left() == []


async def test_what_was_lost_has_no_effect(ground: ClaimingContext) -> None:
    await ground.wish("a")
    await round_of(worker(ground, walk=kind(loses)))
    assert ground.begun == ["a"]
    assert await ground.marks() == []
    (job,) = await ground.claims(after_s=3 * HOUR_S)
    assert job.tries == 3


async def test_an_effect_that_fails_is_undone_and_made_again_later(ground: ClaimingContext) -> None:
    await ground.wish("a")
    await round_of(worker(ground, walk=kind(half_done)))
    assert await ground.marks() == []
    await round_of(worker(ground, walk=kind(does)))
    assert await ground.marks() == []
    ground.at_s += 5
    await round_of(worker(ground, walk=kind(does)))
    assert await ground.marks() == ["a-2"]


async def test_waits_grow_and_then_it_is_given_up(ground: ClaimingContext) -> None:
    await ground.wish("a")
    failing = worker(ground, walk=kind(fails, most_tries=7))
    waited = []
    for _ in range(6):
        await round_of(failing)
        run_at = await ground.pool.fetchval("SELECT run_at FROM jobs.job")
        waited.append(run_at.timestamp() - ground.at_s)
        ground.at_s = run_at.timestamp() - 0.01
        await round_of(failing)
        ground.at_s = run_at.timestamp()
    assert waited == [5, 30, 120, 600, 3600, 3600]
    assert len(ground.begun) == 6
    await round_of(failing)
    assert len(ground.begun) == 7
    assert await ground.pool.fetchval("SELECT failed_at FROM jobs.job") == ground.now()
    ground.at_s += 1000 * HOUR_S
    await round_of(failing)
    assert len(ground.begun) == 7


async def test_strangers_words_are_cleaned_and_said_once(ground: ClaimingContext) -> None:
    await ground.wish("a")
    with capture_logs() as logged:
        await round_of(worker(ground, walk=kind(fails)))
    (entry,) = logged
    assert (entry["event"], entry["kind"], entry["key"], entry["tries"]) == ("a job failed", "walk", "a", 1)
    kept = await ground.pool.fetchval("SELECT last_error FROM jobs.job")
    assert kept == entry["error"]
    assert kept.startswith("NodeFault: The chain did not answer: it said 'no' <b>xx")
    assert len(kept) <= 200
    assert "test_worker.py:" in entry["where"]
    assert not any("\u202e" in str(value) or "\n" in str(value) for value in entry.values())


async def test_what_takes_too_long_has_failed(ground: ClaimingContext) -> None:
    await ground.wish("a")
    await round_of(worker(ground, walk=kind(waits, limit_s=0.01)))
    assert await ground.pool.fetchval("SELECT last_error FROM jobs.job") == "TimeoutError:"
    assert await ground.claims() == []
    assert len(await ground.claims(after_s=5)) == 1


async def test_what_kills_its_workers_is_given_up_without_another_run(ground: ClaimingContext) -> None:
    await ground.wish("a")
    for n in range(3):
        assert len(await ground.claims(after_s=n * HOUR_S)) == 1
    ground.at_s += 10 * HOUR_S
    await round_of(worker(ground, walk=kind(does, most_tries=3)))
    assert ground.begun == []
    assert await ground.pool.fetchval("SELECT last_error FROM jobs.job") == "NeverFinished: taken 3 times"
    assert await ground.claims(after_s=HOUR_S) == []


async def test_of_a_kind_so_many_are_run_at_once(ground: ClaimingContext) -> None:
    await ground.wish("a", "b", "c")
    await ground.wish("d", kind="feed")
    both = worker(ground, walk=kind(waits, at_once=2), feed=kind(does))
    async with asyncio.timeout(WAIT_S):
        first = await both.take()
        assert await both.take() == []
        assert len(first) == 3
        # Many of one kind do not keep another from being done.
        await until(lambda: _is(ground.marks(), ["d-1"]))
        assert await ground.left() == ["a", "b", "c"]
        assert ground.begun == ["a", "b", "d"]
        ground.go.set()
        await asyncio.gather(*first)
        await asyncio.gather(*await both.take())
    assert ground.begun == ["a", "b", "d", "c"]
    assert await ground.left() == []


async def _is(found: Awaitable[list[str]], expected: list[str]) -> bool:
    return await found == expected


async def test_a_lease_is_renewed_while_a_job_is_run(ground: ClaimingContext) -> None:
    await ground.wish("a")
    (run,) = await worker(ground, walk=kind(waits, lease_s=0.03)).take()
    first = await ground.pool.fetchval("SELECT claimed_until FROM jobs.job")
    ground.at_s += HOUR_S

    async def renewed() -> bool:
        return bool(await ground.pool.fetchval("SELECT claimed_until > $1 FROM jobs.job", first))

    await until(renewed)
    assert await ground.claims() == []
    ground.go.set()
    await run
    assert await ground.marks() == ["a-1"]


async def _writes_until(ground: ClaimingContext, connection: Connection) -> None:
    ground.has_begun.set()
    async with asyncio.timeout(WAIT_S):
        await ground.go.wait()
    await connection.execute("SELECT 1")


async def test_a_lease_is_renewed_while_an_effect_is_written(ground: ClaimingContext) -> None:
    async def slow(ground: ClaimingContext, job: Job) -> Effect:
        async def effect(connection: Connection) -> None:
            await _writes_until(ground, connection)
            await mark(job)(connection)

        return effect

    await ground.wish("a")
    (run,) = await worker(ground, walk=kind(slow, lease_s=0.03)).take()
    async with asyncio.timeout(WAIT_S):
        await ground.has_begun.wait()
    first = await ground.pool.fetchval("SELECT claimed_until FROM jobs.job")
    ground.at_s += HOUR_S

    async def renewed() -> bool:
        return bool(await ground.pool.fetchval("SELECT claimed_until > $1 FROM jobs.job", first))

    try:
        await until(renewed)
        assert await ground.claims() == []
    finally:
        ground.go.set()
        await run
    assert await ground.marks() == ["a-1"]
    assert await ground.left() == []


async def test_an_effect_that_wishes_for_its_own_job_is_not_waited_for_by_who_renews(
    ground: ClaimingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's row is locked from then on."""
    messages: list[bool] = []
    renew = jobs.renew

    async def heard(connection: Connection, job: Job, until: datetime) -> bool:
        messages.append(await renew(connection, job, until))
        return messages[-1]

    async def itself(ground: ClaimingContext, job: Job) -> Effect:
        async def effect(connection: Connection) -> None:
            await jobs.enqueue(connection, job.kind, job.key, run_at=ground.now() + timedelta(hours=2))
            messages.clear()
            await _writes_until(ground, connection)

        return effect

    async def tried() -> bool:
        return len(messages) > 2

    monkeypatch.setattr(jobs, "renew", heard)
    await ground.wish("a")
    (run,) = await worker(ground, walk=kind(itself, lease_s=0.03)).take()
    try:
        async with asyncio.timeout(WAIT_S):
            await ground.has_begun.wait()
        await until(tried)
        ground.at_s += HOUR_S
        assert await ground.claims() == []
    finally:
        ground.go.set()
        await run
    assert messages[1:3] == [False, False]
    assert [job.key for job in await ground.claims(after_s=HOUR_S)] == ["a"]


# --- going on --------------------------------------------------------------------------------------


async def test_a_wish_wakes_it(ground: ClaimingContext) -> None:
    """It looks by itself once a minute: bounded waits would not reach that."""
    async with run_in_background(worker(ground, walk=kind(does)).run(), "worker"):
        for n in range(3):
            await ground.wish(str(n))
            await until(lambda: _is(ground.left(), []))
    assert await ground.marks() == ["0-1", "1-1", "2-1"]


async def test_more_than_is_run_at_once_is_gone_through(ground: ClaimingContext) -> None:
    await ground.wish(*(f"{n:02}" for n in range(50)))
    async with run_in_background(worker(ground, walk=kind(quiet, at_once=3)).run(), "worker"):
        await until(lambda: _is(ground.left(), []))
    assert len(ground.begun) == 50


async def test_what_becomes_due_is_found_without_a_word(ground: ClaimingContext) -> None:
    async with run_in_background(worker(ground, poll_s=0.01, walk=kind(does)).run(), "worker"):
        async with ground.pool.acquire() as connection:
            await jobs.enqueue(connection, "walk", "a", run_at=ground.now() + timedelta(hours=1))
        await ground.wish("b")
        await until(lambda: _is(ground.marks(), ["b-1"]))
        assert await ground.left() == ["a"]
        ground.at_s += HOUR_S
        await until(lambda: _is(ground.left(), []))


async def test_two_workers_do_everything_once(ground: ClaimingContext) -> None:
    one, other = worker(ground, walk=kind(does, at_once=2)), worker(ground, walk=kind(does, at_once=2))
    async with run_in_background(one.run(), "one"), run_in_background(other.run(), "other"):
        await ground.wish(*(f"{n:02}" for n in range(40)))
        await until(lambda: _is(ground.left(), []))
    assert sorted(ground.begun) == [f"{n:02}" for n in range(40)]
    assert len(await ground.marks()) == 40


async def test_it_wishes_for_what_it_begins_with(ground: ClaimingContext) -> None:
    daily = JobKind(does, 60, 1, 60, start_key="all")
    async with run_in_background(worker(ground, walk=daily).run(), "worker"):
        await until(lambda: _is(ground.marks(), ["all-1"]))


async def test_when_it_ends_what_is_under_way_is_left_to_others(ground: ClaimingContext) -> None:
    await ground.wish("a")
    running = asyncio.create_task(worker(ground, walk=kind(waits)).run())
    async with asyncio.timeout(WAIT_S):
        await ground.has_begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert ground.ended == ["a"]
    assert await ground.marks() == []
    assert await ground.claims() == []
    ground.at_s += 60
    await round_of(worker(ground, walk=kind(does)))
    assert await ground.marks() == ["a-2"]


async def test_what_does_not_let_go_holds_up_no_end(ground: ClaimingContext) -> None:
    async def clings(ground: ClaimingContext, job: Job) -> Effect:
        while not ground.go.is_set():
            ground.has_begun.set()
            with contextlib.suppress(asyncio.CancelledError):
                await ground.go.wait()
        ground.ended.append(job.key)
        return do_nothing

    await ground.wish("a")
    ending = Worker(ground, {"walk": kind(clings)}, lambda: 0.5, 60, end_s=0.01)
    running = asyncio.create_task(ending.run())
    async with asyncio.timeout(WAIT_S):
        await ground.has_begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert ground.ended == []
        ground.go.set()
        await until(lambda: _is(ground.left(), []))


async def test_an_end_is_an_end_whatever_fails_on_the_way_out(ground: ClaimingContext) -> None:
    begun = asyncio.Event()

    class Broken(Worker[ClaimingContext]):
        async def take(self) -> list[asyncio.Task[None]]:
            try:
                begun.set()
                await ground.go.wait()
                return []
            finally:
                raise asyncpg.InterfaceError("the connection is gone")

    running = asyncio.create_task(Broken(ground, {}, lambda: 0.5).run())
    async with asyncio.timeout(WAIT_S):
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_when_the_line_of_wishes_is_cut_it_is_laid_again(ground: ClaimingContext) -> None:
    cut = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid() AND datname = current_database()"
    )

    async def was_cut() -> bool:
        return bool(await ground.pool.fetchval(cut))

    with capture_logs() as logged:
        async with run_in_background(worker(ground, walk=kind(does)).run(), "worker"):
            for n in range(2):
                await ground.wish(str(n))
                await until(lambda: _is(ground.left(), []))
                await until(was_cut)
            await ground.wish("2")
            await until(lambda: _is(ground.left(), []))
    assert logged == []
    assert await ground.marks() == ["0-1", "1-1", "2-1"]


@pytest.mark.parametrize("back_s", [HOUR_S, 24 * HOUR_S])
async def test_a_clock_that_is_put_back_makes_nobody_wait(ground: ClaimingContext, back_s: float) -> None:
    """What is done every half minute was to be done by a time that comes in an hour, or a day."""

    async def again(ground: ClaimingContext, job: Job) -> Effect:
        ground.begun.append(job.key)
        run_at = ground.now() + timedelta(seconds=30)

        async def effect(connection: Connection) -> None:
            await jobs.enqueue(connection, job.kind, job.key, run_at=run_at)

        return effect

    one = worker(ground, walk=replace(kind(again), start_key="round"))
    await one.start()
    for moved_s, times in ((0, 1), (back_s, 2), (-back_s, 3), (29, 3), (1, 4)):
        ground.at_s += moved_s
        await one.check_clock()
        await round_of(one)
        assert len(ground.begun) == times


@pytest.mark.parametrize("ahead_s", [HOUR_S, 24 * HOUR_S])
async def test_what_was_taken_while_the_clock_was_ahead_waits_for_no_one(
    ground: ClaimingContext, ahead_s: float
) -> None:
    """It was due by that clock, too; and whoever took it ended before the clock was right."""
    async with ground.pool.acquire() as connection:
        await jobs.enqueue(connection, "walk", "round", run_at=ground.now() + timedelta(seconds=30))
    assert len(await ground.claims(after_s=ahead_s)) == 1
    one = worker(ground, walk=replace(kind(does), start_key="round"))
    await one.start()
    await round_of(one)
    assert ground.begun == ["round"]


async def test_a_database_that_starts_again_is_waited_for(open_folder: Path) -> None:
    server = EmbeddedPostgres(open_folder / "restarted")
    await server.start()
    try:
        connection = await asyncpg.connect(server.dsn)
        await migrate(connection)
        await connection.close()
        async with connections.create_pool(server.dsn, min_size=1, max_size=6, command_timeout=5) as pool:
            ground = ClaimingContext(pool)
            with capture_logs() as logged:
                async with run_in_background(worker(ground, poll_s=0.01, walk=kind(waits)).run(), "worker"):
                    await ground.wish("a")
                    async with asyncio.timeout(WAIT_S):
                        await ground.has_begun.wait()
                    await server.stop()
                    # Its effect cannot be written now, and that it failed cannot be, either.
                    ground.go.set()
                    await until(lambda: _heard(logged, "taking jobs failed"))
                    await until(lambda: _heard(logged, "recording a failure failed"))
                    await server.start()
                    await ground.wish("b")
                    await until(lambda: _is(ground.marks(), ["b-1"]))
                    assert await ground.left() == ["a"]
                    ground.at_s += 60
                    await until(lambda: _is(ground.left(), []))
            assert await ground.marks() == ["b-1", "a-2"]
            events = [entry["event"] for entry in logged]
            assert events.count("taking jobs failed") == events.count("taking jobs works again") == 1
    finally:
        await server.stop()


async def _heard(logged: Sequence[Mapping[str, Any]], event: str) -> bool:
    return any(entry["event"] == event for entry in logged)
