"""Jobs that are taken in turn, over a real database: in the order of a model, within bounds that hold for all
workers."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from roundtrip.domain.base.job_turns import Lane
from roundtrip.store.server import connections, job_turns, jobs
from roundtrip.store.server.jobs import Job

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
LEASE_S = 30
LANE = Lane("some", places=8, max_per_owner=2, max_per_host=3)


@pytest.fixture
async def pool(url: str) -> AsyncIterator[asyncpg.Pool]:
    async with connections.create_pool(url, min_size=1, max_size=4, command_timeout=20) as found:
        await found.execute("TRUNCATE jobs.job, jobs.turn")
        yield found


async def waits(
    pool: asyncpg.Pool, key: str, owner: int, host: str, at: datetime = NOW, lane: str = LANE.name
) -> None:
    await pool.execute(
        "INSERT INTO jobs.job (kind, key, run_at, lane, owner, host) VALUES ('deliver', $1, $2, $3, $4, $5)",
        key, at, lane, owner, host,
    )  # fmt: skip


async def take(pool: asyncpg.Pool, room: int, now: datetime = NOW, lane: Lane = LANE) -> list[Job]:
    async with pool.acquire() as connection, connection.transaction():
        return await job_turns.take(
            connection, job_turns.WorkerRoom("deliver", [(lane, room)], room, LEASE_S), now
        )


class TurnsModel:
    """Round and round, one job a turn, with nothing clever."""

    def __init__(self) -> None:
        self.waiting: list[tuple[datetime, int, str, int, str]] = []
        self.running: dict[str, tuple[int, str]] = {}
        self.last = -1

    def take(self, room: int) -> list[str]:
        taken: list[str] = []
        passed = 0
        owners = sorted({one[3] for one in self.waiting})
        place = next((n for n, owner in enumerate(owners) if owner > self.last), 0)
        while owners and len(taken) < room and passed < len(owners):
            owner = owners[place % len(owners)]
            place += 1
            free = sorted(one for one in self.waiting if one[3] == owner and self._may(one[3], one[4]))
            if not free:
                passed += 1
                continue
            passed = 0
            self.waiting.remove(free[0])
            self.running[free[0][2]] = free[0][3:]
            self.last = owner
            taken.append(free[0][2])
        return taken

    def _may(self, owner: int, host: str) -> bool:
        running = list(self.running.values())
        return (
            sum(one[0] == owner for one in running) < LANE.max_per_owner
            and sum(one[1] == host for one in running) < LANE.max_per_host
        )


@pytest.mark.parametrize("seed", range(12))
async def test_the_order_is_that_of_a_plain_model(pool: asyncpg.Pool, seed: int) -> None:
    drawn, model, held = random.Random(seed), TurnsModel(), dict[str, Job]()
    number = 0
    for _ in range(25):
        for _ in range(drawn.randrange(5)):
            number += 1
            at = NOW - timedelta(seconds=drawn.randrange(100))
            owner, host = drawn.randrange(8), f"h{drawn.randrange(4)}"
            await waits(pool, str(number), owner, host, at)
            model.waiting.append((at, number, str(number), owner, host))
        room = drawn.randrange(1, 6)
        taken = await take(pool, room)
        assert [job.key for job in taken] == model.take(room)
        held |= {job.key: job for job in taken}
        for key in [key for key in held if drawn.random() < 0.5]:
            async with pool.acquire() as connection:
                assert await jobs.finish(connection, held.pop(key))
            del model.running[key]


async def test_what_is_not_due_or_taken_is_passed_over_and_a_lease_that_is_over_is_not(
    pool: asyncpg.Pool,
) -> None:
    await waits(pool, "later", 1, "a", NOW + timedelta(seconds=1))
    await waits(pool, "dead", 2, "b")
    assert [job.key for job in await take(pool, 8)] == ["dead"]
    assert await take(pool, 8) == []
    after = NOW + timedelta(seconds=LEASE_S)
    # Not even then what the worker itself still runs.
    dead = await pool.fetchval("SELECT id FROM jobs.job WHERE key = 'dead'")
    async with pool.acquire() as connection, connection.transaction():
        own = job_turns.WorkerRoom("deliver", [(LANE, 8)], 8, LEASE_S, [dead])
        (later,) = await job_turns.take(connection, own, after)
    assert later.key == "later"
    assert [job.key for job in await take(pool, 8, after)] == ["dead"]


async def test_the_next_worker_goes_on_where_the_last_one_stopped(pool: asyncpg.Pool) -> None:
    for owner in range(6):
        await waits(pool, f"{owner}", owner, f"h{owner}")
        await waits(pool, f"{owner} again", owner, f"h{owner}")
    taken = [job.key for _ in range(7) for job in await take(pool, 1)]
    assert taken == ["0", "1", "2", "3", "4", "5", "0 again"]


async def test_workers_that_take_at_once_share_the_bounds(pool: asyncpg.Pool) -> None:
    for number in range(20):
        await waits(pool, f"{number}", number, "one host")
        await waits(pool, f"own {number}", 99, f"h{number}")
    taken = [job for found in await asyncio.gather(*(take(pool, 8) for _ in range(4))) for job in found]
    rows = await pool.fetch("SELECT owner, host FROM jobs.job WHERE claim IS NOT NULL")
    assert len({job.id for job in taken}) == len(taken) == len(rows)
    assert sum(row["host"] == "one host" for row in rows) == LANE.max_per_host
    assert sum(row["owner"] == 99 for row in rows) == LANE.max_per_owner


async def test_more_owners_than_one_look_has_all_have_their_turn(
    pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_turns, "MAX_OWNERS", 3)
    monkeypatch.setattr(job_turns, "MAX_LOOKS", 2)
    for owner in range(10):
        await waits(pool, f"{owner}", owner, "full" if owner < 7 else f"h{owner}")
    # Three of a host are all that it may have; those behind it are not looked for for ever.
    found = [[job.key for job in await take(pool, 8)] for _ in range(3)]
    assert found == [["0", "1", "2"], ["7", "8", "9"], []]


async def test_a_lane_keeps_to_itself(pool: asyncpg.Pool) -> None:
    await waits(pool, "slow", 1, "a", lane="slow")
    await waits(pool, "some", 1, "a")
    other = Lane("slow", places=1, max_per_owner=1, max_per_host=1)
    async with pool.acquire() as connection, connection.transaction():
        rooms = [(LANE, 8), (other, 0)]
        found = await job_turns.take(connection, job_turns.WorkerRoom("deliver", rooms, 8, LEASE_S), NOW)
    assert [(job.key, job.lane) for job in found] == [("some", "some")]
    assert [job.key for job in await take(pool, 8, lane=other)] == ["slow"]


async def test_however_many_wait_few_are_looked_at(pool: asyncpg.Pool) -> None:
    await pool.execute(
        "INSERT INTO jobs.job (kind, key, run_at, lane, owner, host)"
        " SELECT 'deliver', n::text, $1, 'some', n / 5, 'h' || n FROM generate_series(1, 20000) AS n",
        NOW,
    )
    await pool.execute("ANALYZE jobs.job")
    read = "SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_xact_user_tables WHERE relname = 'job'"
    async with pool.acquire() as connection, connection.transaction():
        taken = await job_turns.take(
            connection, job_turns.WorkerRoom("deliver", [(LANE, 8)], 8, LEASE_S), NOW
        )
        assert len(taken) == 8
        assert await connection.fetchval(read) == 0
        touched = "SELECT sum(idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname = 'job'"
        assert await connection.fetchval(touched) < 5_000
