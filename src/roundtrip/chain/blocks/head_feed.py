"""Hints that the chain moved: from a websocket, and by polling while no websocket works.

A hint proves nothing. The reader of the feed reads the blocks over HTTP and checks their hash links.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import aiohttp
import msgspec
import structlog

from roundtrip.chain.rpc.background import run_in_background
from roundtrip.chain.rpc.client import RpcCall, RpcError, RpcNode, entries
from roundtrip.chain.rpc.endpoints import NodeEndpoint, NodeUrl
from roundtrip.chain.rpc.hex_fields import Word
from roundtrip.domain.base.errors import NodeFault, RoundtripError

MAX_FRAME_BYTES = 2**20
"""A header is about 2 kB; a log may have any size."""
_REMEMBERED = 128
_LATEST = (RpcCall("eth_getBlockByNumber", ["latest", False]),)
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HeadHint:
    """``number``: the newest known block. With ``removed``: blocks from ``number`` on may be gone or
    replaced. ``heard_s``: when that was first reported, by the feed's clock."""

    number: int
    heard_s: float
    removed: bool = False


_Number = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{1,8}$")]


class FeedHeader(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a header that are read here. A number larger than any chain's is malformed: it would
    outrank every correct one."""

    number: _Number
    hash: Word
    parent_hash: Word

    def at(self) -> int:
        """The block's number."""
        return int(self.number, 16)


class HeadHints:
    """Merges hints: keeps the newest number, and the lowest removed number until it is taken. Plain state;
    the time is passed in."""

    def __init__(self) -> None:
        self.newest = -1
        self._newest_s = 0.0
        self._removed: HeadHint | None = None
        self._hashes: dict[int, str] = {}
        self._at_last_poll = -1
        self._fell_to = ""

    def note_poll(self, head: FeedHeader, now_s: float) -> None:
        """Notes the newest block by HTTP. The head fell when it is below the newest one at the last poll, not
        below the newest one of all: a websocket may be a moment ahead. A node that stays at the lower head is
        reported once."""
        if head.hash == self._fell_to:
            fell = False
        else:
            fell = head.at() < self._at_last_poll
            self._fell_to = head.hash if fell else ""
        self.note_head(head, now_s, fell)
        self._at_last_poll = self.newest

    def note_head(self, head: FeedHeader, now_s: float, fell: bool = False) -> None:
        """Notes a head. ``fell``: its source reported a higher one before. That is a reorganisation to a
        shorter chain, or a node that fell behind; it yields a removed hint of the head's own number. A hash
        that contradicts a known one also does, of the first block that it contradicts."""
        number = head.at()
        if self._hashes.get(number - 1, head.parent_hash) != head.parent_hash:
            self.note_removal(number - 1, now_s)
        elif fell or self._hashes.get(number, head.hash) != head.hash:
            self.note_removal(number, now_s)
        self._remember(number, head.hash)
        if fell or number > self.newest:
            self.newest, self._newest_s = number, now_s

    def note_removal(self, number: int, now_s: float) -> None:
        """Notes that something of block ``number`` was removed."""
        if self._removed is None or number < self._removed.number:
            heard_s = now_s if self._removed is None else self._removed.heard_s
            self._removed = HeadHint(number, heard_s, removed=True)

    def take(self, after: int) -> HeadHint | None:
        """The removed hint, once; else the newest number where it is above ``after``; else None."""
        if self._removed is not None:
            taken, self._removed = self._removed, None
            return taken
        return HeadHint(self.newest, self._newest_s) if self.newest > after else None

    def _remember(self, number: int, block_hash: str) -> None:
        self._hashes.pop(number, None)
        self._hashes[number] = block_hash
        if len(self._hashes) > _REMEMBERED:
            del self._hashes[next(iter(self._hashes))]


class Subscription:
    """One websocket subscription, compared with the polls. ``lag_s``: how far it may be behind them."""

    def __init__(self, lag_s: float) -> None:
        self._lag_s = lag_s
        self._reported: int | None = None
        self._known = -1
        self._missing: tuple[int, float] | None = None
        """A head that only a poll has seen, and when."""

    def note_head(self, number: int) -> bool:
        """Notes a head from the websocket. True when it is lower than the one before."""
        fell = self._reported is not None and number < self._reported
        self._reported = number
        if self._missing is not None and (fell or number >= self._missing[0]):
            self._missing = None
        self._known = number if fell else max(self._known, number)
        return fell

    def note_poll(self, number: int, now_s: float) -> None:
        """Notes a head seen by a poll that began after the subscription. The first one is not missing: it may
        be older than the subscription."""
        if self._known < 0:
            self._known = number
        elif number > self._known and self._missing is None:
            self._missing = number, now_s

    def is_well(self) -> bool:
        """Whether it reported a block, and every head that polls have seen since."""
        return self._reported is not None and self._missing is None

    def is_silent(self, now_s: float) -> bool:
        """Whether it failed to report a head for too long."""
        return self._missing is not None and now_s - self._missing[1] >= self._lag_s


@dataclass(frozen=True, slots=True)
class FeedTimeouts:
    """The feed's waits. ``guard_s``: between polls while the websocket works. ``lag_s``: how far the
    websocket may be behind such a poll. ``silence_s``: for its next head. ``answer_s``: to connect and
    subscribe. ``first_wait_s``, ``longest_wait_s``: before it connects again."""

    guard_s: float = 5.0
    lag_s: float = 1.0
    silence_s: float = 10.0
    answer_s: float = 5.0
    first_wait_s: float = 0.2
    longest_wait_s: float = 10.0

    def wait_s(self, failures: int, chance: float) -> float:
        """The wait before the next connection. ``chance``, from 0 to 1, spreads those of many services."""
        doubled = self.first_wait_s * 2.0 ** min(failures, 20)
        return min(self.longest_wait_s, doubled) * (1 - chance / 2)


class _Notification(msgspec.Struct):
    subscription: str
    result: msgspec.Raw


class _WebsocketFrame(msgspec.Struct):
    id: int | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: RpcError | None = None
    params: _Notification | None = None


class _RemovedLog(msgspec.Struct, rename="camel"):
    block_number: _Number
    removed: bool = False


_HEADS, _LOGS = 0, 1
"""The kinds of subscriptions, and the ids of their requests: the places of the calls in ``_connect``."""


class Feed:
    """Reports to one reader when the chain moved. ``topics``: subscribes to logs of these kinds, to learn of
    removed ones; empty: no subscription to logs. ``chance``: from 0 to 1, spreads waits."""

    def __init__(
        self,
        node: RpcNode,
        ws_url: str | None,
        session: aiohttp.ClientSession,
        poll_ms: int = 200,
        clock: Callable[[], float] = time.monotonic,
        topics: Sequence[str] = (),
        chance: Callable[[], float] = lambda: 0.0,
        timeouts: FeedTimeouts | None = None,
    ) -> None:
        self._node, self._ws_url, self._session = node, ws_url, session
        self._poll_s = poll_ms / 1000
        self._clock, self._chance = clock, chance
        self._topics = tuple(topics)
        self._timeouts = timeouts or FeedTimeouts()
        self._host = NodeEndpoint.of(NodeUrl(ws_url)).host if ws_url else ""
        self._hints = HeadHints()
        self._news = asyncio.Event()
        self._poll_now = asyncio.Event()
        self._subscription: Subscription | None = None
        self._socket_timeout: asyncio.Timeout | None = None
        self._failures = 0
        self.malformed = 0
        """Frames that could not be read, since the start."""

    def newest(self) -> int:
        """The newest known block; -1 before the first. It falls when the chain does."""
        return self._hints.newest

    def is_listening(self) -> bool:
        """Whether heads come over the websocket now; otherwise by polling."""
        return self._subscription is not None and self._subscription.is_well()

    async def next(self, after: int) -> HeadHint:
        """Waits for a hint: first removed blocks, each reported once; then a block above ``after``. Returns
        at once while there is such a block: a caller that cannot read it yet has to wait before the next
        call."""
        while (hint := self._hints.take(after)) is None:
            self._news.clear()
            await self._news.wait()
        return hint

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["Feed"]:
        """Listens and polls in the background while the block of ``async with`` runs. May be used again."""
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(run_in_background(self._poll(), "feed polls"))
            if self._ws_url is not None:
                await stack.enter_async_context(run_in_background(self._listen(self._ws_url), "feed listens"))
            try:
                yield self
            finally:
                # The next use starts without a subscription.
                self._subscription = self._socket_timeout = None

    # --- polling --------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        while True:
            self._poll_now.clear()
            try:
                await self._poll_once()
            except RoundtripError as fault:
                log.debug("polling the newest block failed", error=fault.message)
            except Exception as error:
                # Whatever a node answers, polling goes on. The error's own text may hold a url.
                log.error("reading the newest block failed", error=type(error).__name__)
            wait_s = self._timeouts.guard_s if self.is_listening() else self._poll_s
            # Not wait_for: before Python 3.12 it may lose a cancellation that arrives with the result.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._poll_now.wait()

    async def _poll_once(self) -> None:
        """Asks the node once. Closes a websocket that does not report the same head in time."""
        subscription = self._subscription
        (answer,) = await self._node.batch(_LATEST, budgeted=False)
        if isinstance(answer, RpcError):
            raise NodeFault("the node sent no newest block")
        try:
            head = msgspec.json.decode(answer, type=FeedHeader)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise NodeFault("the node's newest block has an unreadable header") from error
        now_s = self._clock()
        self._hints.note_poll(head, now_s)
        self._news.set()
        if subscription is None or subscription is not self._subscription:
            return
        subscription.note_poll(head.at(), now_s)
        if subscription.is_silent(now_s):
            self._set_head_timeout(0.0)

    # --- the websocket --------------------------------------------------------------------------------

    async def _listen(self, url: str) -> None:
        while True:
            why = "the connection was closed"
            try:
                await self._connect(url)
            except TimeoutError:
                why = "it did not report a new block in time" if self._subscription else "it did not answer"
            except _NotSubscribed:
                why = "the node refused the subscription"
            except Exception as error:
                # The error's own text may hold the url, and the url an API key.
                why = type(error).__name__
            self._subscription = self._socket_timeout = None
            self._poll_now.set()
            wait_s = self._timeouts.wait_s(self._failures, self._chance())
            level = logging.DEBUG if self._failures else logging.INFO
            log.log(level, "websocket lost; polling for blocks", node=self._host, why=why)
            self._failures += 1
            await asyncio.sleep(wait_s)

    async def _connect(self, url: str) -> None:
        """Reads one connection until it ends. Raises TimeoutError when it is silent for too long."""
        close_timeout = aiohttp.ClientWSTimeout(ws_close=0.2)
        async with asyncio.timeout(self._timeouts.answer_s) as self._socket_timeout:
            # A larger frame ends the connection.
            connecting = self._session.ws_connect(url, timeout=close_timeout, max_msg_size=MAX_FRAME_BYTES)
            async with connecting as socket:
                calls = [RpcCall("eth_subscribe", ["newHeads"])]
                if self._topics:
                    calls.append(RpcCall("eth_subscribe", ["logs", {"topics": [self._topics]}]))
                for entry in entries(calls):
                    await socket.send_json(entry)
                kinds: dict[str, int] = {}
                async for message in socket:
                    self._take_in(message, kinds)

    def _take_in(self, message: aiohttp.WSMessage, kinds: dict[str, int]) -> None:
        """Reads one frame; counts it where it is malformed. ``kinds``: of each subscription id."""
        try:
            frame = msgspec.json.decode(_text(message), type=_WebsocketFrame)
            if frame.params is None:
                self._note_subscription(frame, kinds)
            elif kinds.get(frame.params.subscription) == _HEADS:
                self._take_head(msgspec.json.decode(frame.params.result, type=FeedHeader))
            elif kinds.get(frame.params.subscription) == _LOGS:
                entry = msgspec.json.decode(frame.params.result, type=_RemovedLog)
                if entry.removed:
                    self._hints.note_removal(int(entry.block_number, 16), self._clock())
                    self._news.set()
            else:
                self.malformed += 1
        except (msgspec.DecodeError, ValueError, RecursionError):
            self.malformed += 1

    def _note_subscription(self, frame: _WebsocketFrame, kinds: dict[str, int]) -> None:
        """Notes the answer to a subscription. Raises _NotSubscribed when heads are refused. Without removed
        logs, hashes still show forks."""
        if frame.id not in (_HEADS, _LOGS):
            self.malformed += 1
        elif frame.error is not None:
            if frame.id == _HEADS:
                raise _NotSubscribed
            log.info("the websocket does not report removed logs", node=self._host)
        else:
            kinds[msgspec.json.decode(frame.result, type=str)] = frame.id
            if frame.id == _HEADS:
                self._subscription = Subscription(self._timeouts.lag_s)
                self._set_head_timeout(self._timeouts.silence_s)
                self._poll_now.set()

    def _take_head(self, head: FeedHeader) -> None:
        assert self._subscription is not None
        self._failures = 0
        self._hints.note_head(head, self._clock(), self._subscription.note_head(head.at()))
        self._news.set()
        self._set_head_timeout(self._timeouts.silence_s)

    def _set_head_timeout(self, wait_s: float) -> None:
        """Ends the connection after ``wait_s``. Only heads extend it: other frames count as silence."""
        if self._socket_timeout is not None and not self._socket_timeout.expired():
            self._socket_timeout.reschedule(asyncio.get_running_loop().time() + wait_s)


def _text(message: aiohttp.WSMessage) -> Any:
    if message.type is not aiohttp.WSMsgType.TEXT:
        raise ValueError("a frame that is not text")
    return message.data


class _NotSubscribed(Exception):
    """The node refused the subscription to heads."""
