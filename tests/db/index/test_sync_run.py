"""What the sync decides: over a real database, a chain made up from a seed, and hints given by hand."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from roundtrip.chain.rpc.client import RpcCall
from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.index import cursor as chain
from roundtrip.store.maintenance.backup import forget
from roundtrip.sync.run import ForkTooDeep, NodeBehind, OtherChain
from support.scripted_chain import CHAIN_SENDER, Answers, ScriptedChain
from support.syncs import WAIT_S, SyncGround, ground_in
from support.tables import tables


@pytest.fixture
async def ground(url: str) -> AsyncIterator[SyncGround]:
    async with ground_in(url) as found:
        yield found


async def test_it_follows_to_the_end_and_on(ground: SyncGround) -> None:
    async with ground.following():
        await ground.until(30)
        for _ in range(3):
            ground.node.grow(2)
            ground.feed.say(ground.node.last)
            await ground.until(ground.node.last)
        assert await ground.is_at_the_end()


async def test_it_lets_blocks_gather_between_two_reads_where_it_is_told_to(ground: SyncGround) -> None:
    ground.every_s, ground.now_s = 2.0, 100.0
    async with ground.following():
        await ground.until(30)
        ground.now_s += 0.5
        ground.node.grow(2)
        ground.feed.say(ground.node.last)
        await ground.until(ground.node.last)
        ground.now_s += 2.0
        ground.node.grow(1)
        ground.feed.say(ground.node.last)
        await ground.until(ground.node.last)
        assert await ground.is_at_the_end()
    assert [ground.waited.get_nowait() for _ in range(ground.waited.qsize())] == [1.5]


@pytest.mark.parametrize(("first", "start"), [(12, 12), (None, 25)])
async def test_it_begins_where_it_is_told_or_some_blocks_back(
    ground: SyncGround, first: int | None, start: int
) -> None:
    async with ground.following(first):
        await ground.until(30)
        assert await ground.is_at_the_end()
        cursor = await chain.cursor(ground.index)
        assert cursor is not None
        assert cursor.start_number == start


async def test_what_it_follows_is_forgotten_only_after_it_ended(ground: SyncGround) -> None:
    async with ground.following():
        await ground.until(30)
        with pytest.raises(CannotRun):
            await forget(ground.index)
        assert await ground.is_at_the_end()
    async with asyncio.timeout(WAIT_S):
        while await ground.is_held():  # noqa: ASYNC110
            await asyncio.sleep(0)
    await forget(ground.index)
    async with ground.following(12):
        await ground.until(30)
        assert await ground.is_at_the_end()


async def test_it_goes_on_where_it_stood(ground: SyncGround) -> None:
    async with ground.following(12):
        await ground.until(30)
    ground.node.grow(3)
    ground.feed.say(33)
    async with ground.following(0):
        await ground.until(33)
        assert await ground.is_at_the_end()


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("depth", [1, 9, 30])
async def test_a_fork_is_gone_back_over(ground: SyncGround, removed: bool, depth: int) -> None:
    """Told by the feed, or found out with the next block."""
    async with ground.following(deepest_fork=64):
        await ground.until(30)
        ground.node.fork(31 - depth, depth + 1)
        ground.feed.say(31, removed)
        assert 30 - depth in await ground.until(31)
        assert await ground.is_at_the_end()


async def test_a_fork_of_everything_is_gone_back_over(ground: SyncGround) -> None:
    async with ground.following(first=12):
        await ground.until(30)
        ground.node.fork(5, 40)
        ground.feed.say(ground.node.last, removed=True)
        assert 11 in await ground.until(ground.node.last)
        assert await ground.is_at_the_end()


async def test_a_fork_while_it_was_away_is_found(ground: SyncGround) -> None:
    async with ground.following():
        await ground.until(30)
    ground.node.fork(20)
    async with ground.following():
        assert 19 in await ground.until(30)
        assert await ground.is_at_the_end()


async def test_a_node_that_is_behind_is_no_fork(ground: SyncGround) -> None:
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


async def test_a_nitro_chain_is_followed(ground: SyncGround) -> None:
    """Blocks of the same second, and transactions of the chain's own. Nobody signed those, so a deposit names
    no funder."""
    ground.node = ScriptedChain(seed=4, blocks=31, nitro=True)
    async with ground.following(deepest_fork=64):
        await ground.until(30)
        ground.node.fork(28, 6)
        ground.feed.say(33)
        await ground.until(33)
        assert await ground.is_at_the_end()
        blocks = ground.node.blocks
        assert {block["transactions"][0]["from"] for block in blocks} == {CHAIN_SENDER}
        assert len({block["timestamp"] for block in blocks}) < len(blocks)
        brought = {block["transactions"][-1]["to"]: int(block["number"], 16) for block in blocks}
        known = await ground.index.fetch(
            "SELECT '0x' || encode(address, 'hex'), funded_number FROM facts.origin"
            " JOIN facts.address ON id = wallet_id WHERE funder_id IS NULL"
        )
        assert brought.items() <= {(wallet, number) for wallet, number in known}


async def test_a_node_that_refuses_logs_past_its_head_is_waited_for(ground: SyncGround) -> None:
    """The feed is of another node, which is ahead."""
    ground.node = ScriptedChain(seed=4, blocks=31, nitro=True)
    refused = 0

    async def catch_up(calls: Sequence[RpcCall]) -> None:
        nonlocal refused
        if any(call.method == "eth_getLogs" for call in calls):
            refused += 1
            if refused == 2:
                ground.node.grow(8)

    async with ground.following(deepest_fork=64):
        await ground.until(30)
        ground.node.before = catch_up
        ground.feed.say(38)
        await ground.until(38)
        assert refused >= 2
        assert await ground.is_at_the_end()


async def test_a_local_chain_that_became_shorter_is_gone_back_to(ground: SyncGround) -> None:
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
    ground: SyncGround,
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


async def test_a_local_node_that_catches_up_while_it_is_waited_for_is_no_fork(ground: SyncGround) -> None:
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


async def test_a_local_chain_that_was_begun_anew_is_followed(ground: SyncGround) -> None:
    ground.node.grow(200)
    ground.feed.say(230)
    async with ground.following():
        await ground.until(230)
        ground.node.fork(1, 4)
        ground.feed.say(4, removed=True)
        await ground.until(4)
        assert await ground.is_at_the_end()


async def test_a_fork_that_is_too_deep_is_not_believed(ground: SyncGround) -> None:
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


async def test_a_lost_connection_is_made_again(ground: SyncGround) -> None:
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


async def test_tables_that_are_away_do_not_end_it(ground: SyncGround) -> None:
    """Whatever goes wrong, it begins again."""
    await ground.index.execute("ALTER TABLE facts.block RENAME TO elsewhere")
    async with ground.following():
        for _ in range(3):
            await ground.waited.get()
        await ground.index.execute("ALTER TABLE facts.elsewhere RENAME TO block")
        await ground.until(30)
        assert await ground.is_at_the_end()


# --- whose chain it is -----------------------------------------------------------------------------


async def test_a_database_of_another_chain_is_left_as_it_is(ground: SyncGround) -> None:
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


async def test_a_local_chain_that_was_made_anew_is_followed_from_its_beginning(ground: SyncGround) -> None:
    async with ground.following():
        await ground.until(30)
    anew = replace(ground, node=ScriptedChain(seed=5, blocks=31))
    async with anew.following():
        await anew.until(30)
        assert await anew.is_at_the_end()


async def test_a_node_of_another_chain_id_is_not_followed(ground: SyncGround) -> None:
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


async def test_a_fork_that_is_too_deep_is_not_searched_for_to_the_beginning(ground: SyncGround) -> None:
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
    ground: SyncGround, fork: bool, fault: type[Exception]
) -> None:
    async with ground.following(deepest_fork=4):
        await ground.until(30)
    if fork:
        ground.node.fork(5, 40)
    else:
        del ground.node.blocks[11:], ground.node.logs[11:]
    ground.feed.say(ground.node.last)
    with pytest.raises(fault):
        await ground.sync(deepest_fork=4)._rewind_fork(ground.index)
    stands = await chain.cursor(ground.index)
    assert stands is not None
    assert stands.block.number == 30


async def test_what_was_folded_of_trades_that_are_gone_goes_with_a_fork_below_them(
    ground: SyncGround,
) -> None:
    """Nothing tells what of it lies above: all of it is read anew."""
    async with ground.following():
        await ground.until(30)
    stands = await chain.cursor(ground.index)
    assert stands is not None
    await chain.record_deleted_trades(ground.index, stands.block.timestamp_s)
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


async def test_a_block_that_is_older_than_the_one_before_it_is_not_believed(ground: SyncGround) -> None:
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
