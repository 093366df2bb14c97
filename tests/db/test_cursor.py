"""The cursor's row: who writes what is older has to find it as he left it."""

import asyncpg
import pytest

from roundtrip.domain.base.types import BlockRef
from roundtrip.store import chain

PARENT = BlockRef(99, "0x" + "ab" * 32, 1_760_000_000)


@pytest.fixture
async def begun(connection: asyncpg.Connection) -> chain.Cursor:
    """At block 100, with nothing older."""
    await connection.execute("DELETE FROM facts.cursor")
    await chain.begin(connection, 100, PARENT)
    return await there(connection)


async def there(connection: asyncpg.Connection) -> chain.Cursor:
    found = await chain.cursor(connection)
    assert found is not None
    return found


async def test_at_first_nothing_older_is_known(begun: chain.Cursor) -> None:
    assert begun == chain.Cursor(100, PARENT)
    assert not begun.is_whole()


async def test_what_begins_with_the_chain_is_whole(connection: asyncpg.Connection) -> None:
    await connection.execute("DELETE FROM facts.cursor")
    await chain.begin(connection, 0, BlockRef(-1, "0x" + "00" * 32, 0))
    assert (await there(connection)).is_whole()


async def test_it_moves_up_to_the_first_block_and_is_whole_there(
    connection: asyncpg.Connection, begun: chain.Cursor
) -> None:
    assert await chain.advance_older(connection, begun, 60) == 0
    middle = await there(connection)
    assert middle == chain.Cursor(100, PARENT, 60)
    assert not middle.is_whole()
    assert await chain.advance_older(connection, middle, 100) == 0
    assert (await there(connection)).is_whole()


async def test_of_two_who_write_the_same_the_second_is_refused(
    connection: asyncpg.Connection, begun: chain.Cursor
) -> None:
    assert await chain.advance_older(connection, begun, 60) is not None
    assert await chain.advance_older(connection, begun, 60) is None
    assert await chain.advance_older(connection, begun, 70) is None
    assert (await there(connection)).older_number == 60


async def test_what_was_read_under_another_chain_is_refused(
    connection: asyncpg.Connection, begun: chain.Cursor
) -> None:
    other = BlockRef(99, "0x" + "cd" * 32, 1_760_000_001)
    assert await chain.advance(connection, PARENT.hash, other) is not None
    assert await chain.advance_older(connection, begun, 60) is None


@pytest.mark.parametrize("number", [98, 99, 100, 150])
async def test_what_is_older_is_read_again_only_where_the_first_block_is_gone(
    connection: asyncpg.Connection, begun: chain.Cursor, number: int
) -> None:
    await chain.advance_older(connection, begun, 100)
    gone = number < 100
    assert await chain.forget_older(connection, number) is gone
    assert (await there(connection)).older_number == (0 if gone else 100)


async def test_it_cannot_be_beyond_the_first_block(
    connection: asyncpg.Connection, begun: chain.Cursor
) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await chain.advance_older(connection, begun, 101)
