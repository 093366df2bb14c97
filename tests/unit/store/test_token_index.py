"""A database that hangs keeps nobody waiting longer than the patience."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Never, cast

import asyncpg
import pytest

from roundtrip.domain.base.types import Address
from roundtrip.store.check import token_index
from roundtrip.store.check.token_index import read_places, read_token_index

TOKEN = Address("0x" + "11" * 20)
SINCE = datetime(2026, 11, 27, tzinfo=UTC)


async def hang(*_: object) -> Never:
    await asyncio.Event().wait()
    raise AssertionError


class HangingConnection:
    """Answers no query, and not even the end of a transaction."""

    fetch = fetchrow = fetchval = staticmethod(hang)

    @contextlib.asynccontextmanager
    async def transaction(self, **_: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await hang()


class HangingReads:
    """``lends`` False: it does not even lend a connection."""

    def __init__(self, lends: bool) -> None:
        self.lends, self.asked = lends, 0

    @contextlib.asynccontextmanager
    async def acquire(self) -> AsyncIterator[HangingConnection]:
        self.asked += 1
        if not self.lends:
            await hang()
        yield HangingConnection()


@pytest.mark.parametrize("lends", [False, True])
async def test_a_database_that_hangs_costs_one_patience(lends: bool) -> None:
    hanging = HangingReads(lends)
    pool = cast(asyncpg.Pool, hanging)
    async with asyncio.timeout(5):
        assert await read_token_index(pool, TOKEN, 0.02, SINCE) is None
        assert await read_places(pool, [TOKEN], 0.02) == {}
    assert hanging.asked == 2


async def test_a_reader_that_is_cancelled_leaves_nothing_running() -> None:
    before = set(token_index._abandoned)
    reading = asyncio.create_task(
        read_token_index(cast(asyncpg.Pool, HangingReads(lends=False)), TOKEN, 60.0, SINCE)
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    for _ in range(3):
        await asyncio.sleep(0)
    assert token_index._abandoned == before
