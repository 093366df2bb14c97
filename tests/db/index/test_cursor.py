"""The cursor's row: who writes what is older has to find it as he left it."""

import asyncpg
import pytest

from roundtrip.domain.base.types import BlockRef
from roundtrip.store.index import cursor
from roundtrip.store.server.rows import Connection

PARENT = BlockRef(99, "0x" + "ab" * 32, 1_760_000_000)


@pytest.fixture
async def begun(connection: Connection) -> cursor.Cursor:
    """At block 100, with nothing older."""
    await connection.execute("DELETE FROM facts.cursor")
    await cursor.begin(connection, 100, PARENT)
    return await there(connection)


async def there(connection: Connection) -> cursor.Cursor:
    found = await cursor.cursor(connection)
    assert found is not None
    return found


async def test_at_first_nothing_older_is_known(begun: cursor.Cursor) -> None:
    assert begun == cursor.Cursor(100, PARENT)
    assert not begun.is_whole()


async def test_what_begins_with_the_chain_is_whole(connection: Connection) -> None:
    await connection.execute("DELETE FROM facts.cursor")
    await cursor.begin(connection, 0, BlockRef(-1, "0x" + "00" * 32, 0))
    assert (await there(connection)).is_whole()


async def test_it_moves_up_to_the_first_block_and_is_whole_there(
    connection: Connection, begun: cursor.Cursor
) -> None:
    assert await cursor.advance_older(connection, begun, 60) == 0
    middle = await there(connection)
    assert middle == cursor.Cursor(100, PARENT, 60)
    assert not middle.is_whole()
    assert await cursor.advance_older(connection, middle, 100) == 0
    assert (await there(connection)).is_whole()


async def test_of_two_who_write_the_same_the_second_is_refused(
    connection: Connection, begun: cursor.Cursor
) -> None:
    assert await cursor.advance_older(connection, begun, 60) is not None
    assert await cursor.advance_older(connection, begun, 60) is None
    assert await cursor.advance_older(connection, begun, 70) is None
    assert (await there(connection)).older_number == 60


async def test_what_was_read_under_another_chain_is_refused(
    connection: Connection, begun: cursor.Cursor
) -> None:
    other = BlockRef(99, "0x" + "cd" * 32, 1_760_000_001)
    assert await cursor.advance(connection, PARENT.hash, other) is not None
    assert await cursor.advance_older(connection, begun, 60) is None


@pytest.mark.parametrize("number", [98, 99, 100, 150])
async def test_what_is_older_is_read_again_only_where_the_first_block_is_gone(
    connection: Connection, begun: cursor.Cursor, number: int
) -> None:
    await cursor.advance_older(connection, begun, 100)
    gone = number < 100
    assert await cursor.forget_older(connection, number) is gone
    assert (await there(connection)).older_number == (0 if gone else 100)


async def test_it_cannot_be_beyond_the_first_block(connection: Connection, begun: cursor.Cursor) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await cursor.advance_older(connection, begun, 101)
