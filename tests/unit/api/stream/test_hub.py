"""The hub of the event stream and its readers, over events made up for the purpose."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from roundtrip.api.server.drain import EndlessAnswers
from roundtrip.api.stream.hub import (
    MAX_WAITING,
    MAX_WAITING_BYTES,
    StreamHub,
    StreamListener,
    encode_event,
    send_stream,
    shown_last_event_id,
)
from roundtrip.domain.base.errors import LimitReached, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.verdicts.stream_position import IdTracker, StreamPosition
from roundtrip.services.verdicts.news import KINDS, NewsCursor, NewsEvent, StreamPlan

PATIENT_S = 5.0
START = StreamPosition(0, 0, 0, 0, 0, 0, 1_000)
TOKEN, OTHER = Address("0x" + "1" * 40), Address("0x" + "2" * 40)
PLAN = StreamPlan(1, None, list(KINDS), None)


def event(number: int, token: Address | None = TOKEN, account_id: int | None = None) -> NewsEvent:
    kind: Any = "verdict" if account_id is None else "alert"
    return NewsEvent(replace(START, evidence=number), kind, token, account_id, b'{"n":%d}' % number)


@dataclass
class Source:
    """Hands out what a test puts in. ``accounts``: those that were asked for last."""

    turns: "asyncio.Queue[list[NewsEvent] | Exception]" = field(default_factory=asyncio.Queue)
    missed: list[NewsEvent] = field(default_factory=list)
    begun: int = 0
    accounts: Collection[int] = ()
    dead: set[bytes] = field(default_factory=set)
    fails: bool = False

    async def dead_keys(self, hashes: Collection[bytes]) -> set[bytes]:
        return self.dead & set(hashes)

    async def begin(self) -> NewsCursor:
        if self.fails:
            raise ServiceFull("busy", "The index is unavailable.", 5)
        self.begun += 1
        return NewsCursor(START, IdTracker(0), IdTracker(0))

    async def read(self, cursor: NewsCursor, accounts: Collection[int]) -> tuple[list[NewsEvent], bool]:
        self.accounts = set(accounts)
        turn = await self.turns.get()
        if isinstance(turn, Exception):
            raise turn
        if turn:
            cursor.position = turn[-1].position
        return turn, True

    async def resume(self, plan: StreamPlan, after: StreamPosition, to: StreamPosition) -> list[NewsEvent]:
        return self.missed


async def no_pause() -> None:
    await asyncio.sleep(0)


@dataclass
class StreamClient:
    """Reads a stream. ``gate``: cleared, it does not read."""

    hub: StreamHub
    plan: StreamPlan = PLAN
    body: bytes = b""
    ended: bool = False
    key_hash: bytes | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    grown: asyncio.Event = field(default_factory=asyncio.Event)
    ending: EndlessAnswers = field(default_factory=EndlessAnswers)

    def __post_init__(self) -> None:
        self.gate.set()

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.gate.wait()
        self.body += message.get("body", b"")
        if message["type"] == "http.response.body":
            self.ended = not message.get("more_body", False)
        self.grown.set()

    async def until(self, part: bytes) -> None:
        async with asyncio.timeout(PATIENT_S):
            while part not in self.body:
                self.grown.clear()
                await self.grown.wait()

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        task = asyncio.create_task(
            send_stream(
                self.hub, self.plan, {}, 1_000, self.receive, self.send, self.ending, key_hash=self.key_hash
            )
        )
        try:
            if self.gate.is_set():
                await self.until(b"retry: 1000\n")
            yield
        finally:
            self.gone.set()
            self.gate.set()
            async with asyncio.timeout(PATIENT_S):
                await task


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def hub(source: Source) -> StreamHub:
    return StreamHub(source, no_pause, most=3, most_per_account=2)


async def test_readers_get_what_they_want_and_the_source_is_read_once(hub: StreamHub, source: Source) -> None:
    all_, one = StreamClient(hub), StreamClient(hub, StreamPlan(2, [OTHER], ["verdict"], None))
    async with all_.reading(), one.reading():
        source.turns.put_nowait([event(1), event(2, OTHER), event(3, None, 1), event(4, None, 2)])
        source.turns.put_nowait([event(5, OTHER)])
        await all_.until(b'{"n":5}')
        await one.until(b'{"n":5}')
        assert source.begun == 1
        # Only who wants alerts is asked for.
        assert source.accounts == {1}
    assert [b'{"n":%d}' % n in all_.body for n in range(1, 6)] == [True, True, True, False, True]
    assert [b'{"n":%d}' % n in one.body for n in range(1, 6)] == [False, True, False, False, True]
    assert b"id: 2.0.0.0.0.0.1000\nevent: verdict\ndata: " in one.body


async def test_the_streams_of_a_revoked_key_end_at_once(hub: StreamHub, source: Source) -> None:
    """Before anything that came after it; those of the account's other keys stay."""
    stolen, own = StreamClient(hub, key_hash=b"stolen"), StreamClient(hub, key_hash=b"own")
    async with stolen.reading(), own.reading():
        source.turns.put_nowait([event(1)])
        await stolen.until(b'{"n":1}')
        source.dead = {b"stolen"}
        source.turns.put_nowait([event(2)])
        source.turns.put_nowait([event(3)])
        await own.until(b'{"n":3}')
        async with asyncio.timeout(PATIENT_S):
            while not stolen.ended:
                stolen.grown.clear()
                await stolen.grown.wait()
        assert b'{"n":3}' not in stolen.body
        assert not own.ended


async def test_the_next_reader_begins_anew(hub: StreamHub, source: Source) -> None:
    for _ in range(2):
        async with StreamClient(hub).reading():
            pass
    assert source.begun == 2
    assert hub.position() is None


async def test_what_was_missed_comes_first(hub: StreamHub, source: Source) -> None:
    source.missed = [event(1), event(2, OTHER)]
    client = StreamClient(hub, StreamPlan(1, [TOKEN], list(KINDS), str(START)))
    async with client.reading():
        source.turns.put_nowait([event(3)])
        await client.until(b'{"n":3}')
    assert client.body.index(b'{"n":1}') < client.body.index(b'{"n":3}')
    assert b'{"n":2}' not in client.body


async def test_a_source_that_fails_loses_nothing(hub: StreamHub, source: Source) -> None:
    client = StreamClient(hub)
    async with client.reading():
        for failure in (ServiceFull("busy", "away", 5), ValueError("odd")):
            source.turns.put_nowait(failure)
        source.turns.put_nowait([event(1)])
        await client.until(b'{"n":1}')


async def test_a_stream_that_cannot_begin_is_refused_before_anything_is_sent(
    hub: StreamHub, source: Source
) -> None:
    source.fails, client = True, StreamClient(hub)
    with pytest.raises(ServiceFull):
        await send_stream(hub, PLAN, {}, 1_000, client.receive, client.send, client.ending)
    assert client.body == b""


async def test_who_does_not_read_is_cut_with_a_reason_and_others_are_not(
    hub: StreamHub, source: Source
) -> None:
    slow, fast = StreamClient(hub), StreamClient(hub)
    async with slow.reading(), fast.reading():
        slow.gate.clear()
        for number in range(1, MAX_WAITING + 3):
            source.turns.put_nowait([event(number)])
            await fast.until(b'{"n":%d}\n' % number)
        slow.gate.set()
        await slow.until(b"event: cut\n")
        assert slow.ended
        assert b"you read too slowly" in slow.body
        # It resumes after what it got.
        last = slow.body.rindex(b"id: ")
        assert int(slow.body[last + 4 :].split(b".")[0]) <= 1
        assert not fast.ended


def test_a_queue_is_bounded_in_events_and_in_bytes() -> None:
    for size, most in ((10, MAX_WAITING), (MAX_WAITING_BYTES // 4, 4)):
        listener = StreamListener(PLAN)
        for _ in range(most):
            listener.put(b"x" * size)
        assert not listener.is_cut
        listener.put(b"x")
        assert listener.is_cut


async def test_a_quiet_stream_shows_signs_of_life_and_moves_the_last_id(source: Source) -> None:
    beats = asyncio.Queue[None]()
    client = StreamClient(StreamHub(source, no_pause, beats.get))
    async with client.reading():
        source.turns.put_nowait([event(1, OTHER)])
        await client.until(b'{"n":1}')
        beats.put_nowait(None)
        await client.until(b": still there\nid: 1.0.0.0.0.0.1000\n\n")


async def test_the_shutdown_ends_streams(hub: StreamHub) -> None:
    client = StreamClient(hub)
    async with client.reading():
        client.ending.end_all()
        async with asyncio.timeout(PATIENT_S):
            while not client.ended:
                client.grown.clear()
                await client.grown.wait()


async def test_a_stream_ends_after_a_while_so_that_its_key_is_looked_at_again(hub: StreamHub) -> None:
    client = StreamClient(hub)
    async with asyncio.timeout(PATIENT_S):
        await send_stream(hub, PLAN, {}, 1_000, client.receive, client.send, client.ending, most_open_s=0.0)
    assert client.ended
    assert b"event: cut" not in client.body


def test_places_are_limited_by_account_and_in_all(hub: StreamHub) -> None:
    with hub.reserve_stream(1), hub.reserve_stream(1):
        with pytest.raises(LimitReached, match="2 streams open"), hub.reserve_stream(1):
            pass
        with hub.reserve_stream(2), pytest.raises(ServiceFull), hub.reserve_stream(3):
            pass
    assert hub.count_streams() == 0


def test_the_last_event_id_is_read_from_the_header() -> None:
    assert shown_last_event_id([(b"last-event-id", b"1.2")]) == {"lastEventId": "1.2"}
    assert shown_last_event_id([(b"accept", b"*/*")]) == {}
    assert encode_event(event(1)).endswith(b'data: {"n":1}\n\n')
