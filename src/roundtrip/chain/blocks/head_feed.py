"""Hints that the chain moved: over a websocket, and by polling while there is none that is well.

What is told here is only a hint. Truth is read by whoever takes it, over HTTP, with hash links.
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
from roundtrip.domain.base.errors import NodeFault, RoundtripError

MOST_FRAME_BYTES = 2**20
"""A header is about 2 kB; a log is as large as its contract made it."""
_REMEMBERED = 128
_LATEST = (RpcCall("eth_getBlockByNumber", ["latest", False]),)
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HeadHint:
    """``number``: the newest block heard of. With ``removed``: blocks from ``number`` on may be gone, or
    replaced. ``heard_s``: when that was heard first, by the feed's clock."""

    number: int
    heard_s: float
    removed: bool = False


_Number = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{1,8}$")]
_Word = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{64}$")]


class FeedHeader(msgspec.Struct, frozen=True, rename="camel"):
    """As much of a header as is read here. Larger numbers than any chain has are malformed: they would
    stand above all right ones."""

    number: _Number
    hash: _Word
    parent_hash: _Word

    def at(self) -> int:
        """Its number."""
        return int(self.number, 16)


class HeadHints:
    """Many hints made one: the newest number, and the lowest that was taken back until somebody takes it.
    Plain state, with the time handed in."""

    def __init__(self) -> None:
        self.newest = -1
        self._newest_s = 0.0
        self._removed: HeadHint | None = None
        self._hashes: dict[int, str] = {}
        self._at_last_poll = -1
        self._fell_to = ""

    def hear_poll(self, head: FeedHeader, now_s: float) -> None:
        """The newest block by HTTP. It is lower when it is below what was the newest one poll earlier, from
        whomever: a websocket may be a moment ahead. A node that stays where it fell to is told of once."""
        if head.hash == self._fell_to:
            fell = False
        else:
            fell = head.at() < self._at_last_poll
            self._fell_to = head.hash if fell else ""
        self.hear_head(head, now_s, fell)
        self._at_last_poll = self.newest

    def hear_head(self, head: FeedHeader, now_s: float, fell: bool = False) -> None:
        """A head. ``fell``: whoever told it had told a higher one. That is a reorganisation to a shorter
        chain, or a node that fell behind: a removed hint of the head's own number. A hash that contradicts
        what was heard is one, too, of the first block that it contradicts."""
        number = head.at()
        if self._hashes.get(number - 1, head.parent_hash) != head.parent_hash:
            self.hear_removal(number - 1, now_s)
        elif fell or self._hashes.get(number, head.hash) != head.hash:
            self.hear_removal(number, now_s)
        self._remember(number, head.hash)
        if fell or number > self.newest:
            self.newest, self._newest_s = number, now_s

    def hear_removal(self, number: int, now_s: float) -> None:
        """Something of block ``number`` was taken back."""
        if self._removed is None or number < self._removed.number:
            heard_s = now_s if self._removed is None else self._removed.heard_s
            self._removed = HeadHint(number, heard_s, removed=True)

    def take(self, after: int) -> HeadHint | None:
        """What was taken back, once, else the newest number where it is above ``after``, else None."""
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
    """One websocket subscription, and whether it tells what polls see. ``deaf_s``: so late it may be."""

    def __init__(self, deaf_s: float) -> None:
        self._deaf_s = deaf_s
        self._told: int | None = None
        self._known = -1
        self._owed: tuple[int, float] | None = None

    def note_head(self, number: int) -> bool:
        """It told a head. True when that is lower than the one before."""
        fell = self._told is not None and number < self._told
        self._told = number
        if self._owed is not None and (fell or number >= self._owed[0]):
            self._owed = None
        self._known = number if fell else max(self._known, number)
        return fell

    def note_poll(self, number: int, now_s: float) -> None:
        """A poll that began after the subscription saw this head. It owes none that is older than itself."""
        if self._known < 0:
            self._known = number
        elif number > self._known and self._owed is None:
            self._owed = number, now_s

    def is_well(self) -> bool:
        """It has told of a block, and of all that polls have seen since."""
        return self._told is not None and self._owed is None

    def is_deaf(self, now_s: float) -> bool:
        """It was silent about a head for too long."""
        return self._owed is not None and now_s - self._owed[1] >= self._deaf_s


@dataclass(frozen=True, slots=True)
class FeedTimeouts:
    """How long what is waited for. ``guard_s``: between polls beside a websocket that is well; ``deaf_s``: so
    far it may be behind such a poll; ``silence_s``: for a head; ``answer_s``: to connect and subscribe."""

    guard_s: float = 2.0
    deaf_s: float = 1.0
    silence_s: float = 10.0
    answer_s: float = 5.0
    first_wait_s: float = 0.2
    longest_wait_s: float = 10.0

    def wait_s(self, failures: int, chance: float) -> float:
        """Before the websocket is tried again. ``chance``, from 0 to 1, spreads those of many services."""
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


class Feed:
    """Tells one taker when the chain moved. ``topics``: logs of these kinds are subscribed to, for those that
    are taken back; none: they are not. ``chance``: from 0 to 1, spreads waits."""

    def __init__(
        self,
        node: RpcNode,
        ws_url: str | None,
        session: aiohttp.ClientSession,
        poll_ms: int = 200,
        clock: Callable[[], float] = time.monotonic,
        topics: Sequence[str] = (),
        chance: Callable[[], float] = lambda: 0.0,
        patience: FeedTimeouts | None = None,
    ) -> None:
        self._node, self._ws_url, self._session = node, ws_url, session
        self._poll_s = poll_ms / 1000
        self._clock, self._chance = clock, chance
        self._topics = tuple(topics)
        self._patience = patience or FeedTimeouts()
        self._host = NodeEndpoint.of(NodeUrl(ws_url)).host if ws_url else ""
        self._heard = HeadHints()
        self._news = asyncio.Event()
        self._poll_now = asyncio.Event()
        self._ear: Subscription | None = None
        self._quiet: asyncio.Timeout | None = None
        self._failures = 0
        self.malformed = 0
        """Frames that could not be read, since the start."""

    def newest(self) -> int:
        """The newest block heard of; -1 before the first. It falls when the chain does."""
        return self._heard.newest

    def is_listening(self) -> bool:
        """Whether heads come over the websocket now; else they are polled for."""
        return self._ear is not None and self._ear.is_well()

    async def next(self, after: int) -> HeadHint:
        """Waits for a hint: first what was taken back, each of which is told once; then a block above
        ``after``. It comes at once as long as there is one: who cannot read that block yet waits before
        asking again."""
        while (hint := self._heard.take(after)) is None:
            self._news.clear()
            await self._news.wait()
        return hint

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["Feed"]:
        """Listens and polls in the background while the block of ``async with`` runs; again and again."""
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(run_in_background(self._poll(), "feed polls"))
            if self._ws_url is not None:
                await stack.enter_async_context(run_in_background(self._listen(self._ws_url), "feed listens"))
            try:
                yield self
            finally:
                # It may be opened again, and then hears nothing yet.
                self._ear = self._quiet = None

    # --- polling --------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        while True:
            self._poll_now.clear()
            try:
                await self._look()
            except RoundtripError as fault:
                log.debug("the newest block could not be polled", error=fault.message)
            except Exception as error:
                # Whatever a node answers, the polling goes on. The error's own words may hold a url.
                log.error("the newest block could not be read", error=type(error).__name__)
            wait_s = self._patience.guard_s if self.is_listening() else self._poll_s
            # Not wait_for: before Python 3.12 it loses a cancellation that comes with what it waits for.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._poll_now.wait()

    async def _look(self) -> None:
        """Asks once. A websocket that does not tell what is seen here is let go of."""
        ear = self._ear
        (answer,) = await self._node.batch(_LATEST, budgeted=False)
        if isinstance(answer, RpcError):
            raise NodeFault("it gave no newest block")
        try:
            head = msgspec.json.decode(answer, type=FeedHeader)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise NodeFault("its newest block has no header that can be read") from error
        now_s = self._clock()
        self._heard.hear_poll(head, now_s)
        self._news.set()
        if ear is None or ear is not self._ear:
            return
        ear.note_poll(head.at(), now_s)
        if ear.is_deaf(now_s):
            self._wait_for_a_head(0.0)

    # --- the websocket --------------------------------------------------------------------------------

    async def _listen(self, url: str) -> None:
        while True:
            why = "it was closed"
            try:
                await self._hear(url)
            except TimeoutError:
                why = "it told of no block that is there" if self._ear else "it did not answer"
            except _NotSubscribed:
                why = "it takes no subscription"
            except Exception as error:
                # Its own words may hold the url, and that a key.
                why = type(error).__name__
            self._ear = self._quiet = None
            self._poll_now.set()
            wait_s = self._patience.wait_s(self._failures, self._chance())
            level = logging.DEBUG if self._failures else logging.INFO
            log.log(level, "blocks are polled for, not heard of", node=self._host, why=why)
            self._failures += 1
            await asyncio.sleep(wait_s)

    async def _hear(self, url: str) -> None:
        """One connection, until it ends. Raises TimeoutError when it is silent for too long."""
        until = aiohttp.ClientWSTimeout(ws_close=0.2)
        async with asyncio.timeout(self._patience.answer_s) as self._quiet:
            # A frame above the limit ends the connection.
            connecting = self._session.ws_connect(url, timeout=until, max_msg_size=MOST_FRAME_BYTES)
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
        """One frame; ``kinds``: what each subscription's id stands for. What cannot be read is counted."""
        try:
            frame = msgspec.json.decode(_text(message), type=_WebsocketFrame)
            if frame.params is None:
                self._note_subscription(frame, kinds)
            elif kinds.get(frame.params.subscription) == _HEADS:
                self._head(msgspec.json.decode(frame.params.result, type=FeedHeader))
            elif kinds.get(frame.params.subscription) == _LOGS:
                entry = msgspec.json.decode(frame.params.result, type=_RemovedLog)
                if entry.removed:
                    self._heard.hear_removal(int(entry.block_number, 16), self._clock())
                    self._news.set()
            else:
                self.malformed += 1
        except (msgspec.DecodeError, ValueError, RecursionError):
            self.malformed += 1

    def _note_subscription(self, frame: _WebsocketFrame, kinds: dict[str, int]) -> None:
        """Raises _NotSubscribed when it tells no heads. Without removed logs, hashes still tell of forks."""
        if frame.id not in (_HEADS, _LOGS):
            self.malformed += 1
        elif frame.error is not None:
            if frame.id == _HEADS:
                raise _NotSubscribed
            log.info("the websocket does not tell of removed logs", node=self._host)
        else:
            kinds[msgspec.json.decode(frame.result, type=str)] = frame.id
            if frame.id == _HEADS:
                self._ear = Subscription(self._patience.deaf_s)
                self._wait_for_a_head(self._patience.silence_s)
                self._poll_now.set()

    def _head(self, head: FeedHeader) -> None:
        assert self._ear is not None
        self._failures = 0
        self._heard.hear_head(head, self._clock(), self._ear.note_head(head.at()))
        self._news.set()
        self._wait_for_a_head(self._patience.silence_s)

    def _wait_for_a_head(self, wait_s: float) -> None:
        """The connection ends then. Only heads count: who sends anything else is silent."""
        if self._quiet is not None and not self._quiet.expired():
            self._quiet.reschedule(asyncio.get_running_loop().time() + wait_s)


def _text(message: aiohttp.WSMessage) -> Any:
    if message.type is not aiohttp.WSMsgType.TEXT:
        raise ValueError("a frame that is no text")
    return message.data


class _NotSubscribed(Exception):
    """It refused to tell of heads."""
