"""One listening socket, several that accept from it: each gets its share, and nobody is lost."""

import asyncio
import contextlib
import errno
import functools
import socket
from collections.abc import AsyncIterator

import pytest

from roundtrip.api.server.drain import PacedAccept
from roundtrip.app.http_server import listen

WAIT_S = 10


class Counting(asyncio.Protocol):
    """Says who took the connection."""

    def __init__(self, name: bytes, taken: list[bytes]) -> None:
        self.name, self.taken = name, taken

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.taken.append(self.name)
        transport.write(self.name)


@contextlib.asynccontextmanager
async def sharing(
    listening: socket.socket, taken: list[bytes], names: str
) -> AsyncIterator[list[PacedAccept]]:
    found = [
        PacedAccept(listening.dup(), functools.partial(Counting, name.encode(), taken)) for name in names
    ]
    try:
        yield found
    finally:
        for one in found:
            one.close()
            await one.wait_closed()


async def connected(port: int) -> bytes:
    """Who took it; waits for that, bounded."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(WAIT_S):
            return await reader.readexactly(1)
    finally:
        writer.close()


@pytest.mark.parametrize("count", [32, 300])
async def test_each_gets_its_share_of_those_who_come_at_once(count: int) -> None:
    taken: list[bytes] = []
    with listen("127.0.0.1", 0, "a port") as listening:
        async with sharing(listening, taken, "ab"):
            port = listening.getsockname()[1]
            found = await asyncio.gather(*(connected(port) for _ in range(count)))
    assert sorted(found) == sorted(taken)
    assert min(taken.count(b"a"), taken.count(b"b")) >= count // 4


async def test_who_waits_when_one_ends_is_taken_by_the_other() -> None:
    taken: list[bytes] = []
    with listen("127.0.0.1", 0, "a port") as listening:
        async with sharing(listening, taken, "ab") as (first, _):
            port = listening.getsockname()[1]
            waiting = [asyncio.create_task(connected(port)) for _ in range(20)]
            first.close()
            assert await asyncio.gather(*waiting) == [b"b"] * 20


class Full(socket.socket):
    """There is no room for its first connection."""

    tries = 0

    def accept(self) -> tuple[socket.socket, object]:
        self.tries += 1
        if self.tries == 1:
            raise OSError(errno.EMFILE, "no files are left")
        return super().accept()


async def test_without_room_it_is_tried_again_a_little_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundtrip.api.server.drain._NO_ROOM_S", 0.01)
    taken: list[bytes] = []
    with listen("127.0.0.1", 0, "a port") as listening:
        full = Full(fileno=listening.dup().detach())
        one = PacedAccept(full, lambda: Counting(b"a", taken))
        try:
            assert await connected(listening.getsockname()[1]) == b"a"
        finally:
            one.close()
            await one.wait_closed()
    assert full.tries >= 2
    assert taken == [b"a"]


async def test_closing_twice_is_closing_once() -> None:
    with listen("127.0.0.1", 0, "a port") as listening:
        async with sharing(listening, [], "a") as (one,):
            one.close()
            one.close()
