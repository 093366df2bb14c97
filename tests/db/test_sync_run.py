"""What the sync decides: over a real database, a chain made up from a seed, and hints given by hand."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import asyncpg
import pytest

from roundtrip.chain.feed import Feed, Hint
from roundtrip.chain.rpc import RpcCall
from roundtrip.store import chain
from roundtrip.store.forget import StillFollowed, forget
from roundtrip.sync.fork import ForkTooDeep, NodeBehind, OtherChain
from roundtrip.sync.run import AlreadyFollowed, Following, Sync
from support.scripted_chain import Answers, ScriptedChain
from support.tables import emptied, own_database, tables
from unit.venues.logs import NETWORK

WAIT_S = 20


class Hints:
    """A feed that says what it is told to."""

    def __init__(self) -> None:
        self._newest = -1
        self._removed: Hint | None = None
        self._news = asyncio.Event()

    def newest(self) -> int:
        return self._newest

    async def next(self, after: int) -> Hint:
        while self._removed is None and self._newest <= after:
            self._news.clear()
            await self._news.wait()
        hint, self._removed = self._removed or Hint(self._newest, 0.0), None
        return hint

    def say(self, number: int, removed: bool = False) -> None:
        self._newest = number
        self._removed = Hint(number, 0.0, removed=True) if removed else self._removed
        self._news.set()


@dataclass
class Ground:
    """A chain, its feed, a database, and what was heard of its cursor and its waits."""

    url: str
    node: ScriptedChain
    index: asyncpg.Connection
    feed: Hints = field(default_factory=Hints)
    heard: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    waited: asyncio.Queue[float] = field(default_factory=asyncio.Queue)
    meanwhile: Callable[[], None] = lambda: None

    def sync(self, first: int | None = 0, deepest_fork: int | None = None) -> Sync:
        async def wait(seconds: float) -> None:
            self.waited.put_nowait(seconds)
            self.meanwhile()
            await asyncio.sleep(0)

        local = deepest_fork is None
        feed = cast(Feed, self.feed)
        following = Following(self.node, feed, 4663, NETWORK, first, 5, deepest_fork, local, wait=wait)
        return Sync(following, self.connect)

    async def connect(self) -> asyncpg.Connection:
        return await asyncpg.connect(self.url, server_settings={"application_name": "the sync"})

    @contextlib.asynccontextmanager
    async def following(self, first: int | None = 0, deepest_fork: int | None = None) -> AsyncIterator[None]:
        """While the sync runs, from a chain and a feed as they are."""
        task = asyncio.create_task(self.sync(first, deepest_fork).run())
        try:
            async with asyncio.timeout(WAIT_S):
                yield
            assert not task.done()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def until(self, number: int) -> list[int]:
        """Waits for the cursor to be told of at this block; every one before it."""
        passed = []
        while (told := await self.heard.get()) != number:
            passed.append(told)
        return passed

    async def is_at_the_end(self) -> bool:
        """Whether the index stands at the newest block of the chain, and knows all its blocks."""
        at = await chain.cursor(self.index)
        kept = await chain.blocks_kept(self.index)
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


@pytest.fixture(scope="session")
async def url(database_url: str) -> AsyncIterator[str]:
    async with own_database(database_url, "sync_run_tests") as found:
        yield found


@pytest.fixture
async def ground(url: str) -> AsyncIterator[Ground]:
    index = await asyncpg.connect(url)
    await emptied(index)
    found = Ground(url, ScriptedChain(seed=4, blocks=31), index)
    await index.add_listener("facts", lambda *told: found.heard.put_nowait(int(str(told[-1]))))
    found.feed.say(30)
    yield found
    await index.close()


async def test_it_follows_to_the_end_and_on(ground: Ground) -> None:
    async with ground.following():
        await ground.until(30)
        for _ in range(3):
            ground.node.grow(2)
            ground.feed.say(ground.node.last)
            await ground.until(ground.node.last)
        assert await ground.is_at_the_end()


@pytest.mark.parametrize(("first", "start"), [(12, 12), (None, 25)])
async def test_it_begins_where_it_is_told_or_some_blocks_back(
    ground: Ground, first: int | None, start: int
) -> None:
    async with ground.following(first):
        await ground.until(30)
        assert await ground.is_at_the_end()
        cursor = await chain.cursor(ground.index)
        assert cursor is not None
        assert cursor.start_number == start


async def test_what_it_follows_is_forgotten_only_after_it_ended(ground: Ground) -> None:
    async with ground.following():
        await ground.until(30)
        with pytest.raises(StillFollowed):
            await forget(ground.index)
        assert await ground.is_at_the_end()
    async with asyncio.timeout(WAIT_S):
        while await ground.is_held():  # noqa: ASYNC110
            await asyncio.sleep(0)
    await forget(ground.index)
    async with ground.following(12):
        await ground.until(30)
        assert await ground.is_at_the_end()


async def test_it_goes_on_where_it_stood(ground: Ground) -> None:
    async with ground.following(12):
        await ground.until(30)
    ground.node.grow(3)
    ground.feed.say(33)
    async with ground.following(0):
        await ground.until(33)
        assert await ground.is_at_the_end()


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("depth", [1, 9, 30])
async def test_a_fork_is_gone_back_over(ground: Ground, removed: bool, depth: int) -> None:
    """Told by the feed, or found out with the next block."""
    async with ground.following(deepest_fork=64):
        await ground.until(30)
        ground.node.fork(31 - depth, depth + 1)
        ground.feed.say(31, removed)
        assert 30 - depth in await ground.until(31)
        assert await ground.is_at_the_end()


async def test_a_fork_of_everything_is_gone_back_over(ground: Ground) -> None:
    async with ground.following(first=12):
        await ground.until(30)
        ground.node.fork(5, 40)
        ground.feed.say(ground.node.last, removed=True)
        assert 11 in await ground.until(ground.node.last)
        assert await ground.is_at_the_end()


async def test_a_fork_while_it_was_away_is_found(ground: Ground) -> None:
    async with ground.following():
        await ground.until(30)
    ground.node.fork(20)
    async with ground.following():
        assert 19 in await ground.until(30)
        assert await ground.is_at_the_end()


async def test_a_node_that_is_behind_is_no_fork(ground: Ground) -> None:
    async with ground.following(deepest_fork=64):
        await ground.until(30)
        blocks, logs = ground.node.blocks[:], ground.node.logs[:]
        del ground.node.blocks[25:], ground.node.logs[25:]
        ground.feed.say(24, removed=True)
        await ground.waited.get()
        ground.node.blocks, ground.node.logs = blocks, logs
        ground.node.grow(1)
        ground.feed.say(31)
        assert await ground.until(31) == []
        assert await ground.is_at_the_end()


async def test_a_local_chain_that_became_shorter_is_gone_back_to(ground: Ground) -> None:
    async with ground.following():
        await ground.until(30)
        ground.node.fork(25, 0)
        ground.feed.say(24, removed=True)
        await ground.until(24)
        assert await ground.is_at_the_end()
        ground.node.grow(3)
        ground.feed.say(27)
        await ground.until(27)
        assert await ground.is_at_the_end()


async def test_a_local_chain_that_was_taken_back_and_grows_by_the_same_blocks_is_gone_back_to(
    ground: Ground,
) -> None:
    """Started anew from where it was kept it makes the same empty blocks again: one while the sync waits."""
    async with ground.following():
        await ground.until(30)
    blocks, logs = ground.node.blocks[:], ground.node.logs[:]
    del ground.node.blocks[11:], ground.node.logs[11:]
    ground.feed.say(10, removed=True)

    def grow() -> None:
        if ground.node.last < 13:
            ground.node.blocks.append(blocks[ground.node.last + 1])
            ground.node.logs.append(logs[ground.node.last])

    ground.meanwhile = grow
    async with ground.following():
        assert await ground.heard.get() == 11
        ground.node.grow(2)
        ground.feed.say(ground.node.last)
        await ground.until(ground.node.last)
        assert await ground.is_at_the_end()


async def test_a_local_node_that_catches_up_while_it_is_waited_for_is_no_fork(ground: Ground) -> None:
    async with ground.following():
        await ground.until(30)
        blocks, logs = ground.node.blocks[:], ground.node.logs[:]
        del ground.node.blocks[25:], ground.node.logs[25:]

        def catch_up() -> None:
            ground.node.blocks, ground.node.logs = blocks, logs

        ground.meanwhile = catch_up
        ground.feed.say(24, removed=True)
        await ground.waited.get()
        ground.node.grow(1)
        ground.feed.say(31)
        assert await ground.until(31) == []
        assert await ground.is_at_the_end()


async def test_a_local_chain_that_was_begun_anew_is_followed(ground: Ground) -> None:
    ground.node.grow(200)
    ground.feed.say(230)
    async with ground.following():
        await ground.until(230)
        ground.node.fork(1, 4)
        ground.feed.say(4, removed=True)
        await ground.until(4)
        assert await ground.is_at_the_end()


async def test_a_fork_that_is_too_deep_is_not_believed(ground: Ground) -> None:
    async with ground.following(deepest_fork=4):
        await ground.until(30)
        blocks, logs = ground.node.blocks[:], ground.node.logs[:]
        ground.node.fork(25)
        ground.feed.say(30, removed=True)
        for _ in range(3):
            await ground.waited.get()
            ground.feed.say(30, removed=True)
        # The node comes to its senses.
        ground.node.blocks, ground.node.logs = blocks, logs
        ground.node.grow(1)
        ground.feed.say(31)
        assert await ground.until(31) == []
        assert await ground.is_at_the_end()


async def test_there_is_one_sync_at_a_time(ground: Ground) -> None:
    async with ground.following():
        await ground.until(30)
        with pytest.raises(AlreadyFollowed):
            await asyncio.wait_for(ground.sync().run(), WAIT_S)
        ground.node.grow(1)
        ground.feed.say(31)
        await ground.until(31)


async def test_a_lost_connection_is_made_again(ground: Ground) -> None:
    async with ground.following():
        await ground.until(30)
        for turn in range(31, 34):
            assert await ground.index.fetchval(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE application_name = 'the sync' AND datname = current_database()"
            )
            ground.node.grow(1)
            ground.feed.say(turn)
            await ground.until(turn)
        assert await ground.is_at_the_end()


async def test_tables_that_are_away_do_not_end_it(ground: Ground) -> None:
    """Whatever goes wrong, it begins again."""
    await ground.index.execute("ALTER TABLE facts.block RENAME TO elsewhere")
    async with ground.following():
        for _ in range(3):
            await ground.waited.get()
        await ground.index.execute("ALTER TABLE facts.elsewhere RENAME TO block")
        await ground.until(30)
        assert await ground.is_at_the_end()


# --- whose chain it is -----------------------------------------------------------------------------


async def test_a_database_of_another_chain_is_left_as_it_is(ground: Ground) -> None:
    """Whatever the fork that is believed: nobody empties an index by setting another node."""
    async with ground.following(deepest_fork=64):
        await ground.until(30)
    before = await tables(ground.index)
    other = replace(ground, node=ScriptedChain(seed=5, blocks=31))
    for deepest_fork in (64, None):
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(OtherChain):
                await other.sync(deepest_fork=deepest_fork).run()
    assert await tables(ground.index) == before


async def test_a_local_chain_that_was_made_anew_is_followed_from_its_beginning(ground: Ground) -> None:
    async with ground.following():
        await ground.until(30)
    anew = replace(ground, node=ScriptedChain(seed=5, blocks=31))
    async with anew.following():
        await anew.until(30)
        assert await anew.is_at_the_end()


async def test_a_node_of_another_chain_id_is_not_followed(ground: Ground) -> None:
    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        for number, call in enumerate(calls):
            if call.method == "eth_chainId":
                answers[number] = "0x1"

    ground.node.twist = twist
    async with ground.following():
        await ground.waited.get()
        assert await chain.cursor(ground.index) is None
        ground.node.twist = None
        await ground.until(30)


async def test_a_fork_that_is_too_deep_is_not_searched_for_to_the_beginning(ground: Ground) -> None:
    async with ground.following(deepest_fork=4):
        await ground.until(30)
        ground.node.fork(5, 40)
        ground.node.asked.clear()
        ground.feed.say(44, removed=True)
        await ground.waited.get()
        asked = {str(call.params[0]) for calls in ground.node.asked for call in calls if call.params}
        assert hex(20) not in asked
        stands = await chain.cursor(ground.index)
        assert stands is not None
        assert stands.block.number == 30


@pytest.mark.parametrize(("fork", "fault"), [(False, NodeBehind), (True, ForkTooDeep)])
async def test_a_node_that_is_far_behind_is_told_from_a_fork_that_is_too_deep(
    ground: Ground, fork: bool, fault: type[Exception]
) -> None:
    async with ground.following(deepest_fork=4):
        await ground.until(30)
    if fork:
        ground.node.fork(5, 40)
    else:
        del ground.node.blocks[11:], ground.node.logs[11:]
    ground.feed.say(ground.node.last)
    with pytest.raises(fault):
        await ground.sync(deepest_fork=4)._look_for_a_fork(ground.index)
    stands = await chain.cursor(ground.index)
    assert stands is not None
    assert stands.block.number == 30


async def test_what_was_folded_of_trades_that_are_gone_goes_with_a_fork_below_them(ground: Ground) -> None:
    """Nothing tells what of it lies above: all of it is read anew."""
    async with ground.following():
        await ground.until(30)
    stands = await chain.cursor(ground.index)
    assert stands is not None
    await chain.trades_gone(ground.index, stands.block.timestamp_s)
    await ground.index.execute(
        "INSERT INTO facts.position_base SELECT 1, 1, 5, 5, 0, 0, 5, 5, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2"
    )
    ground.node.fork(20)
    async with ground.following():
        assert -1 in await ground.until(30)
        assert await ground.is_at_the_end()
    assert await ground.index.fetchval("SELECT count(*) FROM facts.position_base") == 0
    again = await chain.cursor(ground.index)
    assert again is not None
    assert again.trades_from_s == 0


async def test_a_block_that_is_older_than_the_one_before_it_is_not_believed(ground: Ground) -> None:
    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        for number, call in enumerate(calls):
            if call.method == "eth_getBlockByNumber" and call.params[0] == hex(31):
                answers[number] = answers[number] and {**answers[number], "timestamp": "0x5"}

    async with ground.following(deepest_fork=64):
        await ground.until(30)
        ground.node.twist = twist
        ground.node.grow(1)
        ground.feed.say(31)
        await ground.waited.get()
        stands = await chain.cursor(ground.index)
        assert stands is not None
        assert stands.block.number == 30
        ground.node.twist = None
        await ground.until(31)
