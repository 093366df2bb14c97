"""Hints that the chain moved: from a real node, and from a websocket with bad days."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator

import aiohttp
import pytest
from structlog.testing import capture_logs

from roundtrip.chain.blocks.head_feed import MAX_FRAME_BYTES, Feed, FeedTimeouts, HeadHint
from roundtrip.chain.rpc.client import Node
from roundtrip_development.devnet.node import NodeOptions, RunningNode, find_anvil, running
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.clocks import Clock
from support.fixtures import PROJECT
from support.scripted_ws import PATH, ScriptedWs, ToldNode, head_frame, header, log_frame, scripted

WAIT_S = 10.0
TOPIC = "0x" + "ab" * 32
NEVER = 3_600.0
DEAD = "ws://127.0.0.1:1/s3cr3t"
CALM = FeedTimeouts(guard_s=NEVER, first_wait_s=0.01, longest_wait_s=0.05)
"""Polls once, and then only while the websocket is not well."""


async def taken(feed: Feed, after: int) -> HeadHint:
    async with asyncio.timeout(WAIT_S):
        return await feed.next(after)


async def until(feed: Feed, is_so: Callable[[], bool]) -> None:
    """Waits, turn by turn of the loop, until something about a feed is so."""
    async with asyncio.timeout(WAIT_S):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0)


# --- a real node -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def anvil() -> Iterator[RunningNode]:
    with running(find_anvil(PROJECT), NodeOptions()) as node:
        yield node


def mine(url: str) -> int:
    with SyncRpc(url) as chain:
        chain.call("evm_mine")
        return int(chain.call("eth_blockNumber"), 16)


async def hear_of_one(feed: Feed, url: str) -> int:
    """Mines a block, and waits until the feed reports it."""
    mined = await asyncio.to_thread(mine, url)
    while (await taken(feed, mined - 1)).number < mined:
        pass
    return mined


@pytest.mark.parametrize("over", ["websocket", "polling"])
async def test_every_mined_block_is_heard_of(anvil: RunningNode, over: str) -> None:
    ws_url = anvil.url.replace("http", "ws") if over == "websocket" else None
    async with aiohttp.ClientSession() as session:
        feed = Feed(Node(anvil.url, session), ws_url, session, 20, timeouts=CALM, topics=[TOPIC])
        async with feed.open():
            number = (await taken(feed, -1)).number
            for _ in range(5):
                mined = await asyncio.to_thread(mine, anvil.url)
                while number < mined:
                    hint = await taken(feed, number)
                    assert not hint.removed
                    number = hint.number
                assert number == mined == feed.newest()
            assert feed.is_listening() == (over == "websocket")
            assert feed.malformed == 0


async def test_it_is_closed_and_opened_again(anvil: RunningNode) -> None:
    """As by a sync that leads, stands by and leads again."""
    async with aiohttp.ClientSession() as session:
        feed = Feed(Node(anvil.url, session), anvil.url.replace("http", "ws"), session, 20, timeouts=CALM)
        for _ in range(2):
            assert not feed.is_listening()
            async with feed.open():
                number = (await taken(feed, -1)).number
                while not feed.is_listening():
                    mined = await asyncio.to_thread(mine, anvil.url)
                    while number < mined:
                        number = (await taken(feed, number)).number


@pytest.mark.parametrize("over", ["websocket", "polling"])
async def test_a_rolled_back_chain_is_told_of(anvil: RunningNode, over: str) -> None:
    """The websocket says nothing of it: the guarding poll does."""
    listens = over == "websocket"
    ws_url = anvil.url.replace("http", "ws") if listens else None
    patience = FeedTimeouts(guard_s=0.05)
    async with aiohttp.ClientSession() as session:
        feed = Feed(Node(anvil.url, session), ws_url, session, 20, timeouts=patience)
        async with feed.open():
            mined = (await taken(feed, -1)).number
            while feed.is_listening() != listens:
                mined = await hear_of_one(feed, anvil.url)
            for _ in range(2):
                mined = await hear_of_one(feed, anvil.url)
                # A head that the websocket reports after the rollback would count as a new one.
                await until(feed, lambda: feed.is_listening() == listens)
            with SyncRpc(anvil.url) as chain:
                await asyncio.to_thread(chain.call, "anvil_rollback", 2)
            hint = await taken(feed, mined)
            assert (hint.number, hint.removed) == (mined - 2, True)
            assert feed.newest() == mined - 2


# --- a websocket with a script ---------------------------------------------------------------------


@contextlib.asynccontextmanager
async def fed(
    node: ToldNode, patience: FeedTimeouts = CALM, clock: Clock | None = None, poll_ms: int = 10
) -> AsyncIterator[tuple[Feed, ScriptedWs]]:
    async with scripted() as (server, session):
        feed = Feed(node, server.url, session, poll_ms, clock or Clock(100.0), [TOPIC], timeouts=patience)
        async with feed.open():
            yield feed, server


async def test_it_subscribes_to_heads_and_to_logs_of_its_topics() -> None:
    async with fed(ToldNode(header(1))) as (feed, server):
        server.put(head_frame(2))
        await until(feed, feed.is_listening)
        assert server.asked == [["newHeads"], ["logs", {"topics": [[TOPIC]]}]]


async def test_heads_come_over_the_websocket_and_polling_rests() -> None:
    clock = Clock(100.0)
    node = ToldNode(header(1))
    async with fed(node, clock=clock) as (feed, server):
        server.put(head_frame(2))
        await until(feed, feed.is_listening)
        # One or two were under way when the websocket became well.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await node.until_polled(4)
        clock.now_s = 200.0
        for number in range(3, 50):
            server.put(head_frame(number))
            assert await taken(feed, number - 1) == HeadHint(number, 200.0)


async def test_removed_logs_are_told_and_never_lost() -> None:
    async with fed(ToldNode(header(1))) as (feed, server):
        server.put(head_frame(7), log_frame(4, False), log_frame(6, True), log_frame(5, True))
        server.put(log_frame(6, True), head_frame(8), head_frame(9))
        await until(feed, lambda: feed.newest() == 9)
        assert await taken(feed, 100) == HeadHint(5, 100.0, removed=True)
        assert await taken(feed, 8) == HeadHint(9, 100.0)
        server.put(log_frame(3, True))
        assert await taken(feed, 100) == HeadHint(3, 100.0, removed=True)


async def test_forks_are_told_where_no_removed_logs_are() -> None:
    async with scripted() as (server, session):
        server.refuses = frozenset({"logs"})
        feed = Feed(ToldNode(header(1)), server.url, session, 10, Clock(100.0), [TOPIC], timeouts=CALM)
        async with feed.open():
            server.put(head_frame(7), head_frame(8), head_frame(8, "b", "a"))
            assert await taken(feed, 100) == HeadHint(8, 100.0, removed=True)
            server.put(head_frame(6))
            assert await taken(feed, 100) == HeadHint(6, 100.0, removed=True)
            assert feed.newest() == 6
            assert server.connected == 1


GARBAGE: tuple[str | bytes, ...] = (
    "",
    "{",
    "null",
    "7",
    "[]",
    "[" * 100_000,
    b"\xff\x00",
    '{"jsonrpc":"2.0"}',
    '{"id":9,"result":"0x1"}',
    '{"id":"0","result":"0x1"}',
    '{"params":7}',
    '{"params":{"subscription":"0xcccc","result":{}}}',
    '{"params":{"subscription":7,"result":{}}}',
    '{"params":{"subscription":"0xaaaa","result":null}}',
    '{"params":{"subscription":"0xaaaa","result":{"number":"0x5"}}}',
    '{"params":{"subscription":"0xbbbb","result":{"removed":true}}}',
    '{"params":{"subscription":"0xbbbb","result":{"removed":"yes","blockNumber":"0x1"}}}',
    head_frame(2**40),
)


async def test_garbage_is_counted_and_outlived() -> None:
    async with fed(ToldNode(header(1))) as (feed, server):
        server.put(head_frame(7), *GARBAGE, head_frame(8))
        await until(feed, lambda: feed.newest() == 8)
        assert feed.malformed == len(GARBAGE)
        assert server.connected == 1
        assert await taken(feed, 7) == HeadHint(8, 100.0)


BREAKS: dict[str, tuple[str, ...]] = {
    "closed": ("close",),
    "cut off": ("abort",),
    "a frame too large": ("x" * (MAX_FRAME_BYTES + 1),),
}


@pytest.mark.parametrize("broken", BREAKS)
async def test_after_a_break_it_listens_again(broken: str) -> None:
    """After the same short wait every time: waits grow only while nothing is told."""
    patience = FeedTimeouts(guard_s=NEVER, first_wait_s=0.01, longest_wait_s=NEVER)
    async with fed(ToldNode(), patience) as (feed, server):
        for times in range(1, 13):
            server.put(head_frame(10 * times))
            await until(feed, lambda: feed.newest() == 10 * times)  # noqa: B023
            server.put(*BREAKS[broken])
            await server.until_connected(times + 1)
        assert not feed.is_listening()
        server.put(head_frame(500))
        assert await taken(feed, 499) == HeadHint(500, 100.0)


async def test_while_the_websocket_is_away_it_polls() -> None:
    node = ToldNode(header(1))
    patience = FeedTimeouts(guard_s=NEVER, first_wait_s=NEVER, longest_wait_s=NEVER)
    async with fed(node, patience) as (feed, server):
        server.put(head_frame(7))
        assert await taken(feed, 6) == HeadHint(7, 100.0)
        server.put("close")
        node.head = header(8)
        assert await taken(feed, 7) == HeadHint(8, 100.0)
        assert not feed.is_listening()
        await node.until_polled(3)


async def test_a_websocket_that_tells_nothing_for_long_is_let_go_of() -> None:
    """What is no head is silence, too."""
    patience = FeedTimeouts(guard_s=NEVER, silence_s=0.02, first_wait_s=0.01, longest_wait_s=0.01)
    async with fed(ToldNode(header(1)), patience) as (_, server):
        server.put(*["{}"] * 3)
        await server.until_connected(3)


async def test_a_deaf_websocket_is_noticed() -> None:
    """By its silence about a head that polls see; ``silence_s`` is far."""
    clock, node = Clock(100.0), ToldNode(header(1))
    patience = FeedTimeouts(guard_s=0.02, silence_s=NEVER, first_wait_s=0.01, longest_wait_s=0.01)
    async with fed(node, patience, clock) as (feed, server):
        server.put(head_frame(1))
        await until(feed, feed.is_listening)
        await node.until_polled(3)
        assert feed.is_listening()
        node.head = header(2)
        assert await taken(feed, 1) == HeadHint(2, 100.0)
        await until(feed, lambda: not feed.is_listening())
        await node.until_polled(5)
        assert server.connected == 1
        clock.now_s += patience.lag_s
        await server.until_connected(2)
        server.put(head_frame(3))
        await until(feed, feed.is_listening)


async def test_one_that_acknowledges_and_is_deaf_from_the_start_is_noticed() -> None:
    clock, node = Clock(100.0), ToldNode(header(1))
    patience = FeedTimeouts(guard_s=NEVER, silence_s=NEVER, first_wait_s=0.01, longest_wait_s=0.01)
    async with fed(node, patience, clock) as (feed, server):
        await server.until_connected(1)
        await until(feed, lambda: len(server.asked) == 2)
        await node.until_polled(5)
        for number in range(2, 5):
            node.head = header(number)
            await node.until_polled(2)
            clock.now_s += patience.lag_s
            await server.until_connected(number)
            await node.until_polled(5)


async def test_a_subscription_that_is_never_acknowledged_is_given_up() -> None:
    node = ToldNode(header(1))
    patience = FeedTimeouts(guard_s=NEVER, answer_s=0.05, first_wait_s=0.01, longest_wait_s=0.01)
    async with scripted() as (server, session):
        server.acks = False
        feed = Feed(node, server.url, session, 10, Clock(100.0), timeouts=patience)
        async with feed.open():
            await server.until_connected(3)
            node.head = header(5)
            assert await taken(feed, 4) == HeadHint(5, 100.0)
            server.acks = True
            server.put(head_frame(6))
            assert await taken(feed, 5) == HeadHint(6, 100.0)
            assert feed.is_listening()


async def test_where_heads_are_refused_it_polls_and_tries_again() -> None:
    node = ToldNode(header(1))
    async with scripted() as (server, session):
        server.refuses = frozenset({"newHeads"})
        feed = Feed(node, server.url, session, 10, Clock(100.0), timeouts=CALM)
        async with feed.open():
            await server.until_connected(3)
            node.head = header(5)
            assert await taken(feed, 4) == HeadHint(5, 100.0)


async def test_a_dead_websocket_and_a_dead_node_are_outlived_and_no_url_is_logged() -> None:
    node = ToldNode()
    async with aiohttp.ClientSession() as session:
        feed = Feed(node, DEAD, session, 10, Clock(100.0), timeouts=CALM)
        with capture_logs() as logs:
            async with feed.open():
                await node.until_polled(3)
                assert feed.newest() == -1
                node.head = header(5)
                assert await taken(feed, -1) == HeadHint(5, 100.0)
    assert any(line.get("node") == "127.0.0.1:1" for line in logs)
    assert "s3cr3t" not in str(logs)


async def test_a_refused_handshake_is_no_reason_to_log_a_url() -> None:
    """The error's own words hold the url."""
    node = ToldNode(header(1))
    async with scripted() as (server, session):
        feed = Feed(node, server.url + PATH, session, 10, Clock(100.0), timeouts=CALM)
        with capture_logs() as logs:
            async with feed.open():
                await until(feed, lambda: len([line for line in logs if "node" in line]) >= 2)
    assert {line.get("why") for line in logs if "node" in line} == {"WSServerHandshakeError"}
    assert "s3cr3t" not in str(logs)


@pytest.mark.parametrize("odd", [{"number": "0x"}, {"hash": None}, {}])
async def test_an_odd_answer_to_a_poll_is_outlived(odd: dict[str, str]) -> None:
    node = ToldNode(header(3) | odd if odd else {})
    async with aiohttp.ClientSession() as session:
        feed = Feed(node, None, session, 10, Clock(100.0), timeouts=CALM)
        async with feed.open():
            await node.until_polled(3)
            assert feed.newest() == -1
            node.head = header(3)
            assert await taken(feed, 2) == HeadHint(3, 100.0)


async def test_polls_tell_of_a_lower_and_of_another_block() -> None:
    node = ToldNode(header(7))
    async with aiohttp.ClientSession() as session:
        feed = Feed(node, None, session, 10, Clock(100.0), timeouts=CALM)
        async with feed.open():
            assert await taken(feed, 6) == HeadHint(7, 100.0)
            node.head = header(7, "b")
            assert await taken(feed, 7) == HeadHint(7, 100.0, removed=True)
            node.head = header(5)
            assert await taken(feed, 7) == HeadHint(5, 100.0, removed=True)
            assert await taken(feed, 4) == HeadHint(5, 100.0)
