"""How the service says it is: what it measured, what was undone, what waits, and what cannot be told."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import msgspec
import pytest

from roundtrip.chain.blocks.heads import Heads
from roundtrip.console.support.page_request import BriefCache
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.types import BlockRef
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.system.status import service_status
from roundtrip.store.index import rewind
from roundtrip.store.index.cursor import cursor
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection
from roundtrip_development.devnet.world import Built
from support.fixtures import closed_database
from support.holding_asked import Holding
from support.keys import NOW_S, Clock, random_context
from support.serving import service
from support.watching import SETTINGS

BROWSER = {"accept": "text/html"}


async def read_status(ctx: Context) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins((await service_status(ctx, Nothing())).answer)
    return found


async def page(url: str) -> str:
    async with aiohttp.ClientSession() as browser, browser.get(f"{url}/status", headers=BROWSER) as response:
        assert response.status == 200
        return " ".join(re.sub("<[^>]*>", " ", await response.text()).split())


@dataclass
class Changed:
    """An index of its own, to write into."""

    ctx: Context
    connection: Connection


@pytest.fixture
async def own(holding: Holding) -> AsyncIterator[Changed]:
    ctx = random_context(holding.ctx, Clock())
    async with ctx.pool.acquire() as connection:
        yield Changed(ctx, connection)


async def test_what_was_undone_is_told_with_its_depth(own: Changed) -> None:
    assert (await read_status(own.ctx))["followed"]["reorgs"]["count"] == 0
    stands = await cursor(own.connection)
    assert stands is not None
    newest = stands.block
    for back, depth in ((5, 3), (4, 7), (3, None), (86_401, 50)):
        to = BlockRef(newest.number, "0x", newest.timestamp_s - back)
        until = None if depth is None else newest.number + depth
        await rewind.take_away(own.connection, to, until)
    reorgs = (await read_status(own.ctx))["followed"]["reorgs"]
    # The last one is of more than a day ago.
    assert (reorgs["count"], reorgs["deepest"], reorgs["unmeasured"]) == (3, 7, 1)
    assert reorgs["deepestAt"] < reorgs["newestAt"]
    async with service(own.ctx, SETTINGS) as url:
        text = await page(url)
    assert "3 times in the last day of the chain" in text
    assert "The deepest replaced 7 blocks" in text
    assert "We do not know the depth of 1." in text


def with_head(ctx: Context, block: BlockRef) -> Context:
    """The same where the node's last poll brought this block."""
    return replace(ctx, heads=cast(Heads, SimpleNamespace(current=lambda: SimpleNamespace(block=block))))


async def test_the_node_has_each_block_that_the_index_read_from_it(own: Changed) -> None:
    stands = await cursor(own.connection)
    assert stands is not None
    newest = stands.block
    polled = replace(newest, number=newest.number - 4, timestamp_s=newest.timestamp_s - 4)
    found = await read_status(with_head(own.ctx, polled))
    assert found["node"]["head"] == found["followed"]["block"] == newest.number
    assert found["followed"]["blocksBehind"] == 0
    # A node that lags far does not have them any more.
    lagging = replace(newest, number=newest.number - 400, timestamp_s=newest.timestamp_s - 400)
    found = await read_status(with_head(own.ctx, lagging))
    assert (found["node"]["head"], found["followed"]["blocksBehind"]) == (newest.number - 400, None)


async def test_what_waits_is_counted_by_what_can_be_done_about_it(own: Changed) -> None:
    await own.connection.execute("TRUNCATE jobs.job")
    for key, due_s in (("late", NOW_S - 400), ("soon", NOW_S + 60)):
        await jobs.enqueue(own.connection, "token", key, None, datetime.fromtimestamp(due_s, UTC))
    await jobs.enqueue(own.connection, "recheck", "at once")
    await jobs.enqueue(own.connection, "recheck", "given up")
    await own.connection.execute("UPDATE jobs.job SET failed_at = run_at WHERE key = 'given up'")
    waits = (await read_status(own.ctx))["backlog"]
    assert (waits["due"], waits["givenUp"], waits["oldestS"]) == (2, 1, 400)
    assert [(one["kind"], one["due"], one["later"], one["givenUp"]) for one in waits["jobs"]] == [
        ("recheck", 1, 0, 1),
        ("token", 1, 1, 0),
    ]
    async with service(own.ctx, SETTINGS) as url:
        text = await page(url)
    assert "Jobs are late" in text
    assert "come later than they should. No process makes alerts yet." in text


async def test_checks_and_trips_to_the_node_are_measured(indexed: Context, built: Built) -> None:
    measures = Measures()
    node = replace(indexed.node, measures=measures)  # type: ignore[type-var]
    ctx = replace(random_context(indexed, Clock()), measures=measures, node=node)
    async with service(ctx, SETTINGS) as url, aiohttp.ClientSession() as caller:
        assert "check token not yet not yet 0 0" in await page(url)
        for path in (built.tokens["plain"], built.tokens["plain"], "0x12"):
            async with caller.get(f"{url}/v1/check/{path}") as response:
                await response.read()
        found = await read_status(ctx)
    ended = {
        end: measures.of("operation", "check_token", end).count() for end in ("made", "shared", "refused")
    }
    assert ended == {"made": 1, "shared": 1, "refused": 1}
    (check,) = (one for one in found["took"] if one["name"] == "check_token")
    assert (check["count"], check["failed"]) == (1, 0)
    assert 0 < check["p50Ms"] == check["p95Ms"]
    reads, simulations = found["node"]["took"]
    assert (reads["name"], simulations["name"]) == ("reads", "simulations")
    assert simulations["count"] >= 1


async def test_what_cannot_be_told_is_not_told_as_nothing(indexed: Context) -> None:
    away = replace(random_context(indexed, Clock()), pool=closed_database())
    found = await read_status(away)
    assert (found["index"], found["followed"], found["backlog"]) == ("unread", None, None)
    async with service(away, SETTINGS) as url:
        text = await page(url)
    assert "The index cannot be read now" in text
    assert text.count("Not known now.") == 2
    assert "Blocks behind not known" in text
    assert "None in the last day" not in text


async def test_the_node_of_several_is_told_by_its_place_alone(indexed: Context) -> None:
    async with service(random_context(indexed, Clock()), SETTINGS) as url:
        text = await page(url)
    assert "The node answers." in text
    assert str(indexed.node.url).partition("//")[2] not in text  # type: ignore[attr-defined]


async def test_it_is_read_once_for_all_who_look_at_once(
    own: Changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No limit counts it: whoever asks a hundred times a second costs one reading."""
    ctx = replace(own.ctx, measures=Measures())
    monkeypatch.setattr(BriefCache.__init__, "__defaults__", (3600.0, lambda: 0.0))
    async with service(ctx, SETTINGS) as url:
        await asyncio.gather(*(page(url) for _ in range(5)))
        await page(url)
    read = {name: took.count() for (_, name, ended), took in ctx.measures.all() if ended == "made"}
    assert (read["health"], read["service_status"]) == (1, 1)


async def test_what_was_read_holds_for_its_moment_and_a_failure_for_nobody_else() -> None:
    now_s, came = [0.0], iter((1, None, 2, 3))
    shared = BriefCache[int](1.0, lambda: now_s[0])

    async def read() -> int:
        found = next(came)
        if found is None:
            raise LookupError
        return found

    assert [await shared.get(read) for _ in range(2)] == [1, 1]
    now_s[0] = 1.0
    with pytest.raises(LookupError):
        await shared.get(read)
    assert [await shared.get(read) for _ in range(2)] == [2, 2]
    gone = asyncio.create_task(shared.get(read))
    now_s[0] = 2.0
    await asyncio.sleep(0)
    gone.cancel()
    assert await shared.get(read) == 3
