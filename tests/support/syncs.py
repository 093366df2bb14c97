"""Syncs over a real database, a chain made up from a seed, and hints given by hand."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import cast

import asyncpg

from roundtrip.chain.blocks.head_feed import Feed, HeadHint
from roundtrip.store.index import cursor
from roundtrip.store.server.rows import Connection
from roundtrip.sync.run import Following, Sync
from support.scripted_chain import ScriptedChain
from support.tables import emptied
from unit.venues.logs import NETWORK

WAIT_S = 20


class Hints:
    """A feed that says what it is told to."""

    def __init__(self) -> None:
        self._newest = -1
        self._removed: HeadHint | None = None
        self._news = asyncio.Event()

    def newest(self) -> int:
        return self._newest

    async def next(self, after: int) -> HeadHint:
        while self._removed is None and self._newest <= after:
            self._news.clear()
            await self._news.wait()
        hint, self._removed = self._removed or HeadHint(self._newest, 0.0), None
        return hint

    def say(self, number: int, removed: bool = False) -> None:
        self._newest = number
        self._removed = HeadHint(number, 0.0, removed=True) if removed else self._removed
        self._news.set()


@dataclass
class SyncGround:
    """A chain, its feed, a database, and what was heard of its cursor and its waits."""

    url: str
    node: ScriptedChain
    index: Connection
    feed: Hints = field(default_factory=Hints)
    heard: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    waited: asyncio.Queue[float] = field(default_factory=asyncio.Queue)
    meanwhile: Callable[[], None] = lambda: None
    every_s: float = 0.0
    now_s: float = 0.0

    def sync(self, first: int | None = 0, deepest_fork: int | None = None) -> Sync:
        async def wait(seconds: float) -> None:
            self.waited.put_nowait(seconds)
            self.meanwhile()
            await asyncio.sleep(0)

        local = deepest_fork is None
        feed = cast(Feed, self.feed)
        following = Following(
            self.node, feed, 4663, NETWORK, first, 5, deepest_fork, local, wait=wait, every_s=self.every_s,
            clock=lambda: self.now_s,
        )  # fmt: skip
        return Sync(following, self.connect)

    async def connect(self) -> Connection:
        return await asyncpg.connect(self.url, server_settings={"application_name": "the sync"})

    @contextlib.asynccontextmanager
    async def following(
        self, first: int | None = 0, deepest_fork: int | None = None
    ) -> AsyncIterator["asyncio.Task[None]"]:
        """While the sync runs, from a chain and a feed as they are."""
        task = asyncio.create_task(self.sync(first, deepest_fork).run())
        try:
            async with asyncio.timeout(WAIT_S):
                yield task
            assert not task.done() or task.cancelled()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def until(self, number: int) -> list[int]:
        """Waits for the cursor to be told of at this block; every one before it."""
        passed = []
        while (answer := await self.heard.get()) != number:
            passed.append(answer)
        return passed

    async def is_at_the_end(self) -> bool:
        """Whether the index stands at the newest block of the chain, and knows all its blocks."""
        at = await cursor.cursor(self.index)
        kept = await cursor.stored_blocks(self.index)
        assert at is not None
        known = [(block.number, block.hash) for block in kept]
        first = at.start_number
        return at.block.hash == self.node.hash_of(self.node.last) and known == [
            (number, self.node.hash_of(number)) for number in range(first, self.node.last + 1)
        ]

    async def is_held(self) -> bool:
        """Whether a sync's connection is still there."""
        found: bool = await self.index.fetchval(
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            " WHERE application_name = 'the sync' AND datname = current_database())"
        )
        return found


@contextlib.asynccontextmanager
async def ground_in(url: str) -> AsyncIterator[SyncGround]:
    """An empty index of a chain of 31 blocks."""
    index = await asyncpg.connect(url)
    await emptied(index)
    found = SyncGround(url, ScriptedChain(seed=4, blocks=31), index)
    await index.add_listener("facts", lambda *told: found.heard.put_nowait(int(str(told[-1]))))
    found.feed.say(30)
    yield found
    await index.close()
