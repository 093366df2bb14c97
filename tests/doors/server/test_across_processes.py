"""Several services over one store: limits, shared answers and single flight hold across them, and nothing of
the store's faults reaches a caller."""

import asyncio
import contextlib
import os
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import asyncpg
import pytest
import redis

from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.admission.shared_minute_limits import SharedMinutes
from roundtrip.api.sharing.valkey_cluster import SharedStore, open_shared_store
from roundtrip.app.build import open_context
from roundtrip.app.http_server import answers_version
from roundtrip.config.networks import contracts_from
from roundtrip.config.settings import Settings
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.rows import Connection
from roundtrip_development.devnet.world import Built
from support.counting import Wall
from support.databases import database
from support.faulty_node import FaultyNode
from support.nodes import node_of, over
from support.serving import PATIENT_STORE, service
from support.valkeys import FAULTS, Store, asked, pretending

WAIT_S = 60


@contextlib.asynccontextmanager
async def services(
    ctx: Context,
    url: str,
    count: int,
    anon_per_minute: int = 10_000,
    open_store: Callable[[str], SharedStore] = PATIENT_STORE,
) -> AsyncIterator[list[str]]:
    """As many services as if each were a process of its own."""
    settings = Settings(redis_url=url, anon_per_minute=anon_per_minute)
    async with contextlib.AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(service(replace(ctx), settings, open_store)) for _ in range(count)
        ]


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as found:
        yield found


def without_id(text: str) -> str:
    """What everybody was told: the id of a request is its own."""
    return re.sub("Request [0-9a-f]{12}", "Request", text)


async def test_two_hundred_requests_of_two_services_run_one_check(
    ctx: Context, built: Built, shared_url: str, session: aiohttp.ClientSession
) -> None:
    async with services(ctx, shared_url, 2) as urls:
        path = f"/v1/check/{built.tokens['plain']}"
        came = await asyncio.gather(*(asked(session, url + path) for _ in range(100) for url in urls))
        assert {status for status, *_ in came} == {200}
        assert len({body for _, body, *_ in came}) == 1
        assert Counter(cache for _, _, cache, _ in came) == {"miss": 1, "hit": 199}
        assert [(await asked(session, url + path))[1:3] for url in urls] == [(came[0][1], "hit")] * 2


async def test_ten_a_minute_are_ten_over_three_services(
    ctx: Context, shared_url: str, session: aiohttp.ClientSession
) -> None:
    async with services(ctx, shared_url, 3, anon_per_minute=10) as urls:
        came = await asyncio.gather(
            *(asked(session, f"{url}/v1/check/0x12") for _ in range(20) for url in urls)
        )
        assert Counter(status for status, *_ in came) == {400: 10, 429: 50}
        assert sorted(str(left) for status, _, _, left in came if status == 400) == [
            str(left) for left in range(10)
        ]


async def test_a_node_that_fails_fails_for_both_and_costs_nobody_a_call(
    ctx: Context, built: Built, shared_url: str, session: aiohttp.ClientSession
) -> None:
    async with FaultyNode(node_of(ctx).url).running() as node:
        broken = over(ctx, node.url)
        await broken.heads.refresh()
        node.fault = "status 500"
        async with services(broken, shared_url, 2, anon_per_minute=3) as urls:
            path = f"/v1/check/{built.tokens['plain']}"
            for _ in range(4):
                came = await asyncio.gather(*(asked(session, url + path) for url in urls))
                assert len({without_id(str(body)) for _, body, *_ in came}) == 1
                assert {status for status, *_ in came} <= {200, 502}
            left = [(await asked(session, f"{urls[0]}/v1/check/0x12"))[3] for _ in range(3)]
            assert left == ["2", "1", "0"]


@pytest.mark.parametrize("what", FAULTS)
async def test_no_fault_of_the_store_reaches_a_caller(
    ctx: Context, built: Built, session: aiohttp.ClientSession, what: str
) -> None:
    async with (
        pretending(FAULTS[what]) as pretender,
        services(ctx, pretender.url, 1, 3, open_shared_store) as urls,
    ):
        path = f"{urls[0]}/v1/check/{built.tokens['plain']}"
        came = [await asked(session, path) for _ in range(4)]
        assert [(status, cache, left) for status, _, cache, left in came] == [
            (200, "miss", "2"),
            (200, "hit", "1"),
            (200, "hit", "0"),
            (429, None, "0"),
        ]


async def test_the_store_goes_and_comes_back_and_nobody_is_told(
    ctx: Context, built: Built, own_valkey: Store, session: aiohttp.ClientSession
) -> None:
    async with services(ctx, own_valkey.url, 2, 4, open_shared_store) as urls:
        path = f"/v1/check/{built.tokens['plain']}"

        async def statuses(count: int) -> list[int]:
            return [(await asked(session, url + path))[0] for _ in range(count) for url in urls]

        assert await statuses(1) == [200, 200]
        with own_valkey.hanging():
            assert await statuses(1) == [200, 200]
        own_valkey.kill()
        # Each has counted two calls of its own, and goes on by itself.
        assert await statuses(3) == [200, 200, 200, 200, 429, 429]
        own_valkey.start()
        assert await statuses(1) == [429, 429]


SETTINGS = {
    "ROUNDTRIP_NETWORK": "robinhood",
    "ROUNDTRIP_RPC_URL": "http://127.0.0.1:9",
    "ROUNDTRIP_PORT": "0",
    "ROUNDTRIP_ANON_PER_MINUTE": "1000",
}
BOARD: dict[str, Any] = {
    "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "winners", "arguments": {}},
}  # fmt: skip
"""A question that the database answers alone."""
AT_THE_LOCK = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock' AND state = 'active'"
)


@dataclass
class ServingProcess:
    """A service in a process of its own."""

    process: asyncio.subprocess.Process
    url: str

    async def board(self, session: aiohttp.ClientSession) -> dict[str, Any]:
        """What the tool's call came to."""
        async with session.post(f"{self.url}/mcp", json=BOARD) as response:
            return dict((await response.json())["result"])


@contextlib.asynccontextmanager
async def processes(count: int, **environment: str) -> AsyncIterator[list[ServingProcess]]:
    """Killed at the end."""
    found = []
    try:
        for _ in range(count):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "support.patient_service",
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **SETTINGS, **environment},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            found.append(ServingProcess(process, ""))
        for one in found:
            assert one.process.stdout is not None
            async with asyncio.timeout(WAIT_S):
                answer = (await one.process.stdout.readline()).decode()
            assert answer.startswith("roundtrip is at "), answer
            one.url = answer.split()[-1]
        yield found
    finally:
        for one in found:
            with contextlib.suppress(ProcessLookupError):
                one.process.kill()
            async with asyncio.timeout(WAIT_S):
                await one.process.communicate()


async def until(connection: Connection, waiting: int) -> None:
    """Until so many wait for the locked table."""
    async with asyncio.timeout(WAIT_S):
        while await connection.fetchval(AT_THE_LOCK) != waiting:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def looked(url: str, times: int) -> None:
    """Until the store was asked so many times more: somebody looks again and again for what comes."""
    with redis.Redis.from_url(url) as client:

        def scripts() -> int:
            return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])

        before = scripts()
        async with asyncio.timeout(WAIT_S):
            while scripts() < before + times:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_two_processes_run_once_and_if_the_one_that_runs_is_killed_the_other_does(
    database_url: str, valkey_url: str, session: aiohttp.ClientSession
) -> None:
    async with database(database_url, f"across_{os.getpid()}") as url:
        watching = await asyncpg.connect(url)
        locking = await asyncpg.connect(url)
        async with processes(2, ROUNDTRIP_DATABASE_URL=url, ROUNDTRIP_REDIS_URL=valkey_url) as both:
            lock = locking.transaction()
            await lock.start()
            await locking.execute("LOCK TABLE facts.cursor IN ACCESS EXCLUSIVE MODE")
            first, other = both
            asking = [asyncio.create_task(first.board(session)) for _ in range(10)]
            await until(watching, 1)
            waiting = [asyncio.create_task(other.board(session)) for _ in range(3)]
            await looked(valkey_url, 12)
            assert await watching.fetchval(AT_THE_LOCK) == 1
            first.process.kill()
            await asyncio.gather(*asking, return_exceptions=True)
            # The database does not know yet that nobody waits for the first any more.
            await until(watching, 2)
            await lock.rollback()
            came = await asyncio.gather(*waiting)
            assert len({without_id(str(one)) for one in came}) == 1
            assert "has read no block yet" in came[0]["content"][0]["text"]
        await watching.close()
        await locking.close()


async def test_services_over_different_databases_share_nothing(database_url: str, built: Built) -> None:
    """Both may be of chain 4663, and one of them a local one."""

    async def shape(url: str) -> tuple[str, str]:
        contracts = contracts_from(built.contracts)
        async with open_context(Settings(), "http://127.0.0.1:9", contracts, url) as ctx:
            return ctx.service_id, answers_version(ctx)

    async with (
        database(database_url, f"service_one_{os.getpid()}") as one,
        database(database_url, f"service_two_{os.getpid()}") as two,
    ):
        first, again, other = [await shape(url) for url in (one, one, two)]
    assert first == again
    assert first[0] != other[0]
    assert first[1] != other[1]


async def test_minutes_of_two_services_in_one_store_are_apart(valkey_url: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        left = []
        for service in ("one", "two", "one"):
            valkey = PATIENT_STORE(valkey_url)
            stack.push_async_callback(valkey.close)
            minutes = SharedMinutes(MinuteLimits(Wall()), valkey, service=service)
            left.append((await minutes.take("account:1", 10)).remaining)
    assert left == [9, 9, 8]
