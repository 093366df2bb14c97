"""Boards that change while they are looked at: who is let in, what is read, what comes, how it ends."""

import asyncio
import contextlib
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import aiohttp
import asyncpg
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from roundtrip.api.server import protocol
from roundtrip.api.server.drain import EndlessAnswers
from roundtrip.console.support.live_stream import Listener, LiveBoards, LiveResponse, encode_event
from roundtrip.domain.base.errors import LimitReached, ServiceFull
from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.deploy import ContractDeployer
from roundtrip_development.devnet.launchpad import LaunchRequest, launch
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.fixtures import closed_database
from support.holding_asked import Holding
from support.keys import random_context
from support.serving import served, service
from support.trader import Market, MarketTrader
from support.wallet import Wallet
from support.watching import SETTINGS

WAIT_S = 20
BOARD = "graduating_soon"
MILLI = 10**15


@dataclass
class Stream:
    """What came of one, event by event."""

    response: aiohttp.ClientResponse
    pieces: dict[str, str] = field(default_factory=dict)
    retry_ms: int = 0

    async def next(self) -> str:
        """The name of the next event; "" for a comment."""
        name, data = "", list[str]()
        async with asyncio.timeout(WAIT_S):
            while line := (await self.response.content.readline()).decode():
                if line == "\n":
                    if name:
                        self.pieces[name] = "\n".join(data)
                    return name
                kind, _, value = line.rstrip("\n").partition(": ")
                if kind == "event":
                    name = value
                elif kind == "data":
                    data.append(value)
                elif kind == "retry":
                    self.retry_ms = int(value)
        raise EOFError

    async def until(self, holds: Callable[[Mapping[str, str]], bool]) -> None:
        """Bounded by that of each event, and in number."""
        for _ in range(200):
            if holds(self.pieces):
                return
            await self.next()
        raise AssertionError(self.pieces)


@contextlib.asynccontextmanager
async def stream(
    browser: aiohttp.ClientSession, url: str, board: str = BOARD, **headers: str
) -> AsyncIterator[Stream]:
    async with browser.get(f"{url}/boards/{board}/live", headers=headers) as response:
        assert response.status == 200, await response.text()
        yield Stream(response)


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, skip_auto_headers=["accept-encoding"]) as found:
        yield found


@pytest.fixture
async def url(indexed: Context) -> AsyncIterator[str]:
    async with service(random_context(indexed, Clock()), SETTINGS) as found:
        yield found


class Paced:
    """A board whose readings a test makes happen, and counts."""

    def __init__(self, most: int = 500, most_of_one: int = 4) -> None:
        self.says: dict[str, str] = {"rows": "first"}
        self.read = 0
        self._next = asyncio.Semaphore(0)
        self._was_read = asyncio.Condition()
        self.live = LiveBoards(self._reads, self._paused, most, most_of_one)

    async def _reads(self, board: str) -> Mapping[str, str]:
        return dict(self.says)

    async def _paused(self) -> None:
        async with self._was_read:
            self.read += 1
            self._was_read.notify_all()
        await self._next.acquire()

    async def reads(self, count: int) -> None:
        """Until so many readings were taken in."""
        async with asyncio.timeout(WAIT_S), self._was_read:
            await self._was_read.wait_for(lambda: self.read >= count)

    def nudge(self) -> None:
        self._next.release()

    async def again(self) -> None:
        count = self.read + 1
        self.nudge()
        await self.reads(count)


async def taken(listener: Listener) -> bytes | None:
    async with asyncio.timeout(WAIT_S):
        return await listener.take()


# --- one reading for all ---------------------------------------------------------------------------


async def test_a_board_is_read_once_for_all_who_look_and_not_when_nobody_does() -> None:
    paced = Paced()
    with contextlib.ExitStack() as looking:
        listeners = [looking.enter_context(paced.live.listen("one")) for _ in range(300)]
        await paced.reads(1)
        assert {await taken(listener) for listener in listeners} == {encode_event("rows", "first")}
        late = looking.enter_context(paced.live.listen("one"))
        assert await taken(late) == encode_event("rows", "first")
        await paced.again()
        # It said nothing new: nothing was sent.
        assert {await listener.take(within_s=0) for listener in listeners} == {b": still there\n\n"}
        paced.says["rows"] = "second"
        await paced.again()
        assert {await taken(listener) for listener in (*listeners, late)} == {encode_event("rows", "second")}
        assert paced.read == 3
    tasks = [task for task in asyncio.all_tasks() if task.get_name() == "live one"]
    assert all(task.cancelling() for task in tasks)
    paced.says["rows"] = "third"
    with paced.live.listen("one") as listener:
        assert await taken(listener) == encode_event("rows", "third")


async def test_of_what_was_not_taken_the_newest_is_left() -> None:
    paced = Paced()
    with paced.live.listen("one") as slow:
        await paced.reads(1)
        for number in range(50):
            paced.says = {"rows": f"{number}", "as-of": f"block {number}"}
            await paced.again()
        assert await taken(slow) == encode_event("rows", "49") + encode_event("as-of", "block 49")


async def test_what_a_reading_leaves_out_stays_as_it_was() -> None:
    paced = Paced()
    paced.says = {"rows": "all", "state": "live"}
    with paced.live.listen("one") as listener:
        await paced.reads(1)
        await taken(listener)
        paced.says = {"state": "away"}
        await paced.again()
        assert await taken(listener) == encode_event("state", "away")
        with paced.live.listen("one") as late:
            assert await taken(late) == encode_event("rows", "all") + encode_event("state", "away")


async def test_where_nothing_is_new_a_comment_says_that_it_is_there() -> None:
    assert await Listener().take(within_s=0) == b": still there\n\n"


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_a_text_ends_no_event(end: str) -> None:
    encoded = encode_event("rows", f"a{end}{end}event: state{end}data: x")
    assert encoded == b"event: rows\ndata: a\ndata: \ndata: event: state\ndata: data: x\n\n"


# --- bounds ----------------------------------------------------------------------------------------


def test_places_are_bounded_and_given_back() -> None:
    live = Paced(most=6, most_of_one=4).live
    with contextlib.ExitStack() as held:
        for _ in range(4):
            held.enter_context(live.reserve_stream("a"))
        with pytest.raises(LimitReached) as refused, live.reserve_stream("a"):
            pass
        assert (refused.value.code, refused.value.status) == ("rate_limited", 429)
        for _ in range(2):
            held.enter_context(live.reserve_stream("b"))
        with pytest.raises(ServiceFull) as full, live.reserve_stream("c"):
            pass
        assert (full.value.code, full.value.status) == ("busy", 503)
        assert full.value.retry_after_s
        assert live.count_streams() == 6
    assert live.count_streams() == 0


async def test_an_address_has_eight_streams(url: str, browser: aiohttp.ClientSession) -> None:
    async with contextlib.AsyncExitStack() as open_ones:
        for _ in range(8):
            await open_ones.enter_async_context(stream(browser, url))
        async with browser.get(f"{url}/boards/winners/live") as refused:
            assert refused.status == 429
            assert int(refused.headers["retry-after"]) >= 1
            assert (await refused.json())["error"].keys() == {"code", "message"}
    # Their places are given back once the server has seen that they are gone.
    async with asyncio.timeout(WAIT_S):
        while True:
            async with browser.get(f"{url}/boards/winners/live") as response:
                if response.status == 200:
                    break


async def test_to_look_counts_as_one_view(indexed: Context, browser: aiohttp.ClientSession) -> None:
    settings = SETTINGS.model_copy(update={"views_per_minute": 1})
    gzip = {"accept-encoding": "gzip"}
    async with (
        service(random_context(indexed, Clock()), settings) as url,
        stream(browser, url, **gzip) as found,
    ):
        assert found.response.headers["content-encoding"] == "gzip"
        await found.until(lambda pieces: pieces.keys() == {"rows", "said", "as-of", "state"})
        async with browser.get(f"{url}/boards/{BOARD}/rows") as shared:
            assert shared.status == 200
        async with browser.get(f"{url}/boards/signals/live") as third:
            assert (third.status, (await third.json())["error"]["code"]) == (429, "rate_limited")


async def test_what_is_no_board_is_told_as_programs_are(url: str, browser: aiohttp.ClientSession) -> None:
    async with browser.get(f"{url}/boards/none/live") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (404, "not_found")
    async with browser.head(f"{url}/boards/{BOARD}/live") as response:
        assert (response.status, response.content_type) == (200, "text/event-stream")
        assert await response.read() == b""


# --- what comes ------------------------------------------------------------------------------------


async def test_a_stream_guards_itself_and_says_when_to_come_again(
    url: str, browser: aiohttp.ClientSession
) -> None:
    async with stream(browser, url) as found:
        headers = found.response.headers
        assert found.response.content_type == "text/event-stream"
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "content-length" not in headers
        assert "access-control-allow-origin" not in headers
        await found.until(lambda pieces: "state" in pieces)
        assert 1_000 <= found.retry_ms < 5_000
        assert "Live" in found.pieces["state"]


async def test_a_page_looks_live_and_can_be_read_without(url: str, browser: aiohttp.ClientSession) -> None:
    headers = {"accept": "text/html", "accept-encoding": "identity"}
    async with browser.get(f"{url}/boards/{BOARD}", headers=headers) as response:
        page = await response.text()
    assert f'sse-connect="/boards/{BOARD}/live"' in page
    assert f'<a id="reload" href="/boards/{BOARD}">' in page
    assert "<tr data-row=" in page
    # Only that it turned is said aloud.
    assert re.findall('aria-live|role="(?:status|alert|log)"', page) == ['role="status"']


async def test_what_is_traded_comes_to_who_looks(
    holding: Holding, built: Built, rpc: SyncRpc, browser: aiohttp.ClientSession
) -> None:
    """A launch that is bought, and then bought again: each time as rows, of the block that it was in."""
    launcher = ContractDeployer(rpc, built.accounts[6], 6_000_000)
    await holding.follow()
    async with service(random_context(holding.ctx, Clock()), SETTINGS) as url, stream(browser, url) as found:
        await found.until(lambda pieces: pieces.keys() == {"rows", "said", "as-of", "state"})
        made = launch(launcher, built.contracts, LaunchRequest("Looked at", "LOOK", creator_tax_bps=0))
        token = made.token.lower()
        assert token not in found.pieces["rows"]
        trader = MarketTrader(
            Wallet(rpc, built.contracts, "looked at"),
            built.contracts,
            Market(made.token, ZERO_ADDRESS, curve=made.curve),
        )
        # Past the tax on who buys with the launch.
        launched_s = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
        rpc.call("evm_setNextBlockTimestamp", launched_s + 100)
        assert trader.buy(1000 * MILLI)
        await holding.follow()
        await found.until(lambda pieces: token in pieces["rows"])
        before = found.pieces["rows"]
        assert trader.buy(200 * MILLI)
        await holding.follow()
        block = f"{int(rpc.call('eth_blockNumber'), 16):,}"
        await found.until(lambda pieces: pieces["rows"] != before and f"Block {block}" in pieces["as-of"])
        assert found.pieces["rows"].count("<tr data-row=") == before.count("<tr data-row=")


@dataclass
class SwitchedPool:
    """A pool, and whether its server can be reached."""

    pool: asyncpg.Pool
    is_away: bool = False

    def acquire(self, **how: float) -> object:
        if self.is_away:
            raise OSError("nobody is there")
        return self.pool.acquire(**how)

    def __getattr__(self, name: str) -> object:
        return getattr(self.pool, name)


async def test_without_the_database_old_rows_stay_and_are_called_old(
    indexed: Context, browser: aiohttp.ClientSession
) -> None:
    database = SwitchedPool(indexed.pool)
    ctx = replace(random_context(indexed, Clock()), pool=cast(asyncpg.Pool, database))
    async with service(ctx, SETTINGS) as url, stream(browser, url) as found:
        await found.until(lambda pieces: pieces.keys() == {"rows", "said", "as-of", "state"})
        rows, as_of = found.pieces["rows"], found.pieces["as-of"]
        assert "data-row=" in rows
        database.is_away = True
        await found.until(lambda pieces: 'data-live="no"' in pieces["state"])
        assert "Not live now" in found.pieces["state"]
        assert "Request" not in found.pieces["state"]
        assert (found.pieces["rows"], found.pieces["as-of"]) == (rows, as_of)
        database.is_away = False
        await found.until(lambda pieces: 'data-live="yes"' in pieces["state"])


async def test_without_the_database_nobody_is_shown_an_empty_board(
    ctx: Context, browser: aiohttp.ClientSession
) -> None:
    away = replace(ctx, pool=closed_database())
    async with service(away, SETTINGS) as url, browser.get(f"{url}/boards/{BOARD}/live") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (503, "busy")
        assert int(response.headers["retry-after"]) >= 1


# --- how it ends -----------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def streaming(paced: Paced) -> AsyncIterator[str]:
    """A service that has one board, by the real server."""

    async def look(request: object) -> Response:
        place = contextlib.ExitStack()
        place.enter_context(paced.live.reserve_stream("x"))
        ending = request.scope["state"]["ending"]  # type: ignore[attr-defined]
        return LiveResponse(paced.live, "one", place, ending, 1_000)

    async with served(Starlette(routes=[Route("/boards/one/live", look)])) as url:
        yield url


async def test_the_server_ends_and_does_not_wait_for_who_looks(browser: aiohttp.ClientSession) -> None:
    paced = Paced()
    async with contextlib.AsyncExitStack() as looking:
        # Its own end is bounded, and shorter than any heartbeat.
        async with streaming(paced) as url:
            found = [await looking.enter_async_context(stream(browser, url, "one")) for _ in range(3)]
            for one in found:
                await one.until(lambda pieces: pieces == {"rows": "first"})
        for one in found:
            with pytest.raises(EOFError):
                await one.next()
    assert paced.live.count_streams() == 0


@pytest.fixture
def hears_nothing() -> Iterator[None]:
    """The server hands signals on: here to nobody."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("hears_nothing")
async def test_a_termination_ends_streams_before_the_drain(
    browser: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundtrip.api.server.drain.DRAIN_S", 3600.0)
    paced = Paced()
    async with streaming(paced) as url, stream(browser, url, "one") as found:
        await found.until(lambda pieces: pieces == {"rows": "first"})
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(EOFError):
            await found.next()


async def test_whoever_begins_to_look_while_the_server_ends_is_told_at_once() -> None:
    ending, listener = EndlessAnswers(), Listener()
    ending.end_all()
    with ending.on_shutdown(listener.end):
        assert await taken(listener) is None


async def test_who_goes_away_gives_his_place_back(browser: aiohttp.ClientSession) -> None:
    paced = Paced(most_of_one=1)
    async with streaming(paced) as url:
        async with stream(browser, url, "one") as found:
            await found.until(lambda pieces: pieces == {"rows": "first"})
            assert paced.live.count_streams() == 1
        async with asyncio.timeout(WAIT_S):
            while paced.live.count_streams():  # noqa: ASYNC110
                await asyncio.sleep(0)


async def test_who_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for him in this process stays bounded meanwhile."""
    monkeypatch.setattr(protocol, "ANSWER_S", 0.2)
    paced = Paced()
    async with streaming(paced) as url:
        port = int(url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(b"GET /boards/one/live HTTP/1.1\r\nhost: x\r\n\r\n")
        await reader.readuntil(b"first")
        async with asyncio.timeout(WAIT_S):
            while paced.live.count_streams():
                paced.says["rows"] = f"{paced.read} ".ljust(500_000, "x")
                # With the last who looks the reading ends: it is not waited for.
                paced.nudge()
                await asyncio.sleep(0.01)
        assert paced.live.count_streams() == 0
        writer.close()
