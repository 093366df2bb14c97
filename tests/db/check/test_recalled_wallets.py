"""Wallets that checks recall: kept for a day, the newest first, and deleted a few at a time."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.check.proof_input import RecalledWallet
from roundtrip.store.check import token_index as store
from roundtrip.store.server.rows import Connection

TOKEN, OTHER = Address("0x" + "11" * 20), Address("0x" + "22" * 20)
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
POOL = "0x" + "aa" * 20


def wallet(number: int, seed: int = 1) -> RecalledWallet:
    return RecalledWallet(POOL, "0x" + f"{seed:02x}" * 32, number)


@pytest.fixture(autouse=True)
async def _unseen_by_others(connection: Connection) -> AsyncIterator[None]:
    """Other tests share the database."""
    transaction = connection.transaction()
    await transaction.start()
    yield
    await transaction.rollback()


async def keep(
    connection: Connection, at: datetime, *wallets: RecalledWallet, token: Address = TOKEN
) -> None:
    """Four old ones at most are deleted."""
    await store.keep_recalled_wallets(connection, token, wallets, at, at - DAY, pruned_at_once=4)


async def test_a_tokens_own_are_read_the_newest_first(connection: Connection) -> None:
    await keep(connection, NOW - 2 * SECOND, wallet(3))
    await keep(connection, NOW - SECOND, wallet(-1), wallet(7))
    await keep(connection, NOW, wallet(9), token=OTHER)
    assert await store.read_recalled_wallets(connection, TOKEN, NOW - DAY) == [
        wallet(-1),
        wallet(7),
        wallet(3),
    ]


async def test_a_wallet_that_was_met_again_is_kept_for_another_day(connection: Connection) -> None:
    await keep(connection, NOW - DAY, wallet(3), wallet(4))
    await keep(connection, NOW, wallet(3))
    await keep(connection, NOW - 2 * SECOND, wallet(3))
    assert await store.read_recalled_wallets(connection, TOKEN, NOW) == [wallet(3)]


async def test_old_ones_are_deleted_a_few_at_a_time(connection: Connection) -> None:
    await connection.execute("DELETE FROM facts.recalled_wallet")
    await keep(connection, NOW - 2 * DAY, *(wallet(number) for number in range(10)))
    await keep(connection, NOW, wallet(20), token=OTHER)
    assert await connection.fetchval("SELECT count(*) FROM facts.recalled_wallet") == 7
    await keep(connection, NOW, token=OTHER)
    assert await connection.fetchval("SELECT count(*) FROM facts.recalled_wallet") == 7


async def test_so_many_are_read_and_no_more(connection: Connection) -> None:
    await keep(connection, NOW, *(wallet(number) for number in range(10)))
    assert len(await store.read_recalled_wallets(connection, TOKEN, NOW - DAY, 3)) == 3
