"""The table of jobs against a real database. Clocks are passed in; nothing here waits for time to pass."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from roundtrip.domain.base.clock_age import AHEAD_S
from roundtrip.store.server import connections, jobs
from roundtrip.store.server.jobs import AT_ONCE, Job
from roundtrip.store.server.rows import Connection

NOW = datetime(2025, 10, 9, 12, tzinfo=UTC)
LEASE_S = 60.0
WAIT_S = 10


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


async def take(connection: Connection, count: int = 10, now: datetime = NOW, kind: str = "walk") -> list[Job]:
    return await jobs.claim(connection, [kind], count, LEASE_S, now)


async def take_one(connection: Connection, now: datetime = NOW) -> Job:
    (job,) = await take(connection, 10, now)
    return job


async def rows(connection: Connection) -> int:
    count: int = await connection.fetchval("SELECT count(*) FROM jobs.job")
    return count


@pytest.fixture
async def two(database_url: str) -> AsyncIterator[tuple[Connection, Connection]]:
    """Two connections that are in no transaction, over an empty table."""
    one, other = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    await one.execute("TRUNCATE jobs.job")
    yield one, other
    await other.close()
    await one.execute("TRUNCATE jobs.job")
    await one.close()


async def test_a_job_is_taken_once_and_gone_when_finished(connection: Connection) -> None:
    await jobs.enqueue(connection, "walk", "dog", {"leash": 2})
    job = await take_one(connection)
    assert (job.kind, job.key, job.payload, job.tries) == ("walk", "dog", {"leash": 2}, 1)
    assert job.claimed_until == later(LEASE_S)
    assert await take(connection) == []
    assert await jobs.finish(connection, job)
    assert await rows(connection) == 0


async def test_what_was_due_longest_is_taken_first(connection: Connection) -> None:
    for key, run_at in (("c", later(-1)), ("b", later(-3)), ("d", later(1)), ("a", None), ("e", later(-2))):
        await jobs.enqueue(connection, "walk", key, run_at=run_at)
    await jobs.enqueue(connection, "feed", "cat")
    assert [job.key for job in await take(connection, 2)] == ["a", "b"]
    assert [job.key for job in await take(connection)] == ["e", "c"]
    assert await take(connection) == []
    assert [job.key for job in await take(connection, now=later(1))] == ["d"]
    assert [job.key for job in await take(connection, kind="feed")] == ["cat"]


async def test_of_those_without_a_time_the_first_wish_comes_first(connection: Connection) -> None:
    for key in ("b", "c", "a", "b"):
        await jobs.enqueue(connection, "walk", key)
    assert [job.key for job in await take(connection)] == ["b", "c", "a"]


async def test_a_second_wish_is_the_same_job(connection: Connection) -> None:
    """The earlier time, the newer payload."""
    await jobs.enqueue(connection, "walk", "dog", {"n": 1}, later(10))
    await jobs.enqueue(connection, "walk", "dog", {"n": 2}, later(5))
    await jobs.enqueue(connection, "walk", "dog", {"n": 3}, later(20))
    assert await rows(connection) == 1
    assert await take(connection, now=later(4)) == []
    job = await take_one(connection, later(5))
    assert (job.payload, job.run_at) == ({"n": 3}, later(5))


async def test_hundreds_are_wished_for_at_once(connection: Connection) -> None:
    keys = [str(n % 400) for n in range(500)]
    await jobs.enqueue(connection, "walk", "7")
    await jobs.enqueue_many(connection, "walk", keys, {"n": 1})
    await jobs.enqueue_many(connection, "walk", [])
    assert await rows(connection) == 400
    assert {job.key for job in await take(connection, 1000)} == set(keys)


# --- whose it is -----------------------------------------------------------------------------------


async def test_two_that_take_at_the_same_time_never_get_the_same(two: tuple[Connection, Connection]) -> None:
    one, other = two
    await jobs.enqueue_many(one, "walk", [str(n) for n in range(5)])
    async with asyncio.timeout(WAIT_S), one.transaction():
        mine = await take(one, 2)
        # While that transaction is open the other waits for nothing.
        theirs = await take(other, 2)
    assert [job.key for job in (*mine, *theirs, *await take(other, 2))] == ["0", "1", "2", "3", "4"]


async def test_many_that_take_share_all_of_them(database_url: str) -> None:
    async with connections.create_pool(database_url, min_size=6, max_size=6) as pool:
        async with pool.acquire() as connection:
            await jobs.enqueue_many(connection, "walk", [f"{n:03}" for n in range(300)])

        async def taker() -> list[str]:
            taken: list[str] = []
            async with pool.acquire() as connection:
                while found := await take(connection, 7):
                    taken += [job.key for job in found]
            return taken

        async with asyncio.timeout(WAIT_S):
            shares = await asyncio.gather(*(taker() for _ in range(6)))
        keys = [key for share in shares for key in share]
        assert sorted(keys) == [f"{n:03}" for n in range(300)]
        await pool.execute("TRUNCATE jobs.job")


async def test_whose_lease_is_over_may_lose_it(connection: Connection) -> None:
    await jobs.enqueue(connection, "walk", "dog")
    dead = await take_one(connection)
    assert await take(connection, now=later(LEASE_S - 0.001)) == []
    job = await take_one(connection, later(LEASE_S))
    assert (job.id, job.tries) == (dead.id, 2)
    assert job.claim != dead.claim
    assert not await jobs.renew(connection, dead, later(1000))
    assert not await jobs.postpone(connection, dead, later(1000), "it died")
    assert not await jobs.give_up(connection, dead, later(1000), "it died")
    assert not await jobs.finish(connection, dead)
    assert await jobs.finish(connection, job)


async def test_it_is_still_ours_after_the_lease_while_nobody_took_it(connection: Connection) -> None:
    await jobs.enqueue(connection, "walk", "dog")
    job = await take_one(connection)
    assert await jobs.finish(connection, job)
    assert not await jobs.finish(connection, job)


async def test_effects_of_a_job_that_was_lost_are_rolled_back(two: tuple[Connection, Connection]) -> None:
    one, other = two
    await jobs.enqueue(one, "walk", "dog")
    dead = await take_one(one)
    job = await take_one(other, later(LEASE_S))
    for connection, found in ((one, dead), (other, job)):
        transaction = connection.transaction()
        await transaction.start()
        await jobs.enqueue(connection, "walked", str(found.tries))
        if await jobs.finish(connection, found):
            await transaction.commit()
        else:
            await transaction.rollback()
    assert [job.key for job in await take(one, kind="walked")] == ["2"]


async def test_taking_waits_for_who_is_just_finishing_and_gets_nothing(
    two: tuple[Connection, Connection],
) -> None:
    one, other = two
    await jobs.enqueue(one, "walk", "dog")
    job = await take_one(one)
    async with asyncio.timeout(WAIT_S), one.transaction():
        assert await jobs.finish(one, job)
        assert await take(other, now=later(LEASE_S)) == []
    assert await take(other, now=later(LEASE_S)) == []


async def test_a_lease_is_made_longer(connection: Connection) -> None:
    await jobs.enqueue(connection, "walk", "dog")
    job = await take_one(connection)
    assert await jobs.renew(connection, job, later(100))
    assert await take(connection, now=later(99)) == []
    assert await take(connection, now=later(100)) != []


async def test_what_a_clock_that_was_ahead_took_is_taken_at_once(connection: Connection) -> None:
    """What another's clock, a little ahead, has taken just now is not."""
    await jobs.enqueue(connection, "walk", "dog")
    job = await take_one(connection, later(AHEAD_S))
    assert await take(connection) == []
    assert await jobs.renew(connection, job, later(AHEAD_S + LEASE_S + 0.001))
    again = await take_one(connection)
    assert (again.id, again.claimed_until) == (job.id, later(LEASE_S))
    assert not await jobs.finish(connection, job)


# --- wishes and the transactions they are made in --------------------------------------------------


async def test_a_wish_is_lost_with_its_transaction_and_only_with_it(
    two: tuple[Connection, Connection],
) -> None:
    one, other = two
    transaction = one.transaction()
    await transaction.start()
    await jobs.enqueue(one, "walk", "dog")
    assert await take(other) == []
    await transaction.rollback()
    assert await take(other) == []
    async with one.transaction():
        await jobs.enqueue(one, "walk", "dog")
    assert [job.key for job in await take(other)] == ["dog"]


async def test_a_wish_is_told_of_when_it_is_committed(two: tuple[Connection, Connection]) -> None:
    one, other = two
    result: asyncio.Queue[str] = asyncio.Queue()

    def listener(_: object, pid: int, channel: str, payload: object) -> None:
        result.put_nowait(channel)

    await other.add_listener(jobs.CHANNEL, listener)
    async with asyncio.timeout(WAIT_S):
        async with one.transaction():
            await jobs.enqueue(one, "walk", "dog")
            await other.fetchval("SELECT 1")
            assert result.empty()
        assert await result.get() == jobs.CHANNEL
    await other.remove_listener(jobs.CHANNEL, listener)


async def test_a_wish_while_it_is_being_run_is_not_swallowed(connection: Connection) -> None:
    await jobs.enqueue(connection, "walk", "dog", {"n": 1})
    job = await take_one(connection)
    await jobs.enqueue(connection, "walk", "dog", {"n": 2}, later(30))
    await jobs.enqueue(connection, "walk", "dog", {"n": 3}, later(40))
    assert await take(connection, now=later(40)) == []
    assert await jobs.finish(connection, job)
    assert await take(connection, now=later(29)) == []
    again = await take_one(connection, later(30))
    assert (again.payload, again.tries, job.payload) == ({"n": 3}, 1, {"n": 1})
    assert await jobs.finish(connection, again)
    assert await rows(connection) == 0


async def test_a_run_that_begins_after_the_wish_is_what_was_wished_for(connection: Connection) -> None:
    await jobs.enqueue(connection, "walk", "dog")
    await take_one(connection)
    await jobs.enqueue(connection, "walk", "dog")
    after_the_crash = await take_one(connection, later(LEASE_S))
    assert await jobs.finish(connection, after_the_crash)
    assert await rows(connection) == 0


async def test_a_wish_for_later_outlives_a_crash(connection: Connection) -> None:
    await jobs.enqueue(connection, "walk", "dog")
    await take_one(connection)
    await jobs.enqueue(connection, "walk", "dog", run_at=later(1000))
    assert await jobs.finish(connection, await take_one(connection, later(LEASE_S)))
    assert await take(connection, now=later(999)) == []
    assert (await take_one(connection, later(1000))).key == "dog"


async def test_a_job_may_wish_for_itself(connection: Connection) -> None:
    """As what is done every day does, in the transaction of its effects."""
    await jobs.enqueue(connection, "walk", "dog")
    job = await take_one(connection)
    await jobs.enqueue(connection, "walk", "dog", run_at=later(86_400))
    assert await jobs.finish(connection, job)
    assert await take(connection, now=later(86_399)) == []
    assert (await take_one(connection, later(86_400))).tries == 1


async def test_a_wish_waits_for_who_is_just_finishing(two: tuple[Connection, Connection]) -> None:
    one, other = two
    await jobs.enqueue(one, "walk", "dog")
    job = await take_one(one)
    async with asyncio.timeout(WAIT_S):
        async with one.transaction():
            assert await jobs.finish(one, job)
            wish = asyncio.create_task(jobs.enqueue(other, "walk", "dog"))
            while not await one.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"):  # noqa: ASYNC110
                await asyncio.sleep(0)
        await wish
    assert [(job.key, job.tries) for job in await take(one)] == [("dog", 1)]


async def test_two_that_wish_for_the_same_in_another_order_do_not_block_each_other(
    two: tuple[Connection, Connection],
) -> None:
    keys = [str(n) for n in range(200)]

    async def wish(connection: Connection, order: list[str]) -> None:
        for _ in range(10):
            async with connection.transaction():
                await jobs.enqueue_many(connection, "walk", order)

    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(wish(two[0], keys), wish(two[1], keys[::-1]))
    assert await rows(two[0]) == 200


# --- failures --------------------------------------------------------------------------------------


async def test_a_failed_job_is_run_again_later(connection: Connection) -> None:
    await jobs.enqueue(connection, "walk", "dog", {"n": 1})
    job = await take_one(connection)
    assert await jobs.postpone(connection, job, later(5), "it rains")
    assert await connection.fetchval("SELECT last_error FROM jobs.job") == "it rains"
    assert not await jobs.finish(connection, job)
    assert await take(connection, now=later(4)) == []
    again = await take_one(connection, later(5))
    assert (again.tries, again.payload) == (2, {"n": 1})


async def test_a_wish_meanwhile_does_not_hurry_what_failed_just_now(connection: Connection) -> None:
    await jobs.enqueue(connection, "walk", "dog", {"n": 1})
    job = await take_one(connection)
    await jobs.enqueue(connection, "walk", "dog", {"n": 2})
    await jobs.postpone(connection, job, later(5), "it rains")
    assert await take(connection, now=later(4)) == []
    again = await take_one(connection, later(5))
    assert again.payload == {"n": 2}
    assert await jobs.finish(connection, again)
    assert await rows(connection) == 0


async def test_what_was_given_up_is_kept_for_people_and_later_forgotten(connection: Connection) -> None:
    await jobs.enqueue(connection, "walk", "dog")
    assert await jobs.give_up(connection, await take_one(connection), NOW, "it bites")
    assert await take(connection, now=later(10**6)) == []
    assert await connection.fetchval("SELECT last_error FROM jobs.job") == "it bites"
    await jobs.forget_failed(connection, NOW)
    assert await rows(connection) == 1
    await jobs.forget_failed(connection, later(1))
    assert await rows(connection) == 0


async def test_what_was_given_up_begins_anew_when_it_is_wished_for(connection: Connection) -> None:
    await jobs.enqueue(connection, "walk", "dog", {"n": 1})
    await jobs.give_up(connection, await take_one(connection), NOW, "it bites")
    await jobs.enqueue(connection, "walk", "dog", {"n": 2}, later(5))
    assert await take(connection, now=later(4)) == []
    job = await take_one(connection, later(5))
    assert (job.tries, job.payload) == (1, {"n": 2})


async def test_a_wish_in_the_last_run_is_not_given_up_with_it(connection: Connection) -> None:
    await jobs.enqueue(connection, "walk", "dog")
    job = await take_one(connection)
    await jobs.enqueue(connection, "walk", "dog")
    assert await jobs.give_up(connection, job, NOW, "it bites")
    again = await take_one(connection)
    assert (again.tries, again.run_at) == (1, AT_ONCE)
