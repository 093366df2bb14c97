"""Accounts in the database: what several processes that begin at once agree on."""

import asyncio
import secrets
from dataclasses import replace
from datetime import UTC, datetime

import asyncpg
import pytest

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address
from roundtrip.store.accounts import accounts
from roundtrip.store.server.rows import Connection
from support.keys import account_of_key
from support.tables import own_database

NOW = datetime(2025, 10, 9, 12, tzinfo=UTC)
WAIT_S = 20


def some_wallet() -> Address:
    return Address("0x" + secrets.token_hex(20))


def name() -> str:
    return f"mite-{secrets.token_hex(8)}"


async def test_a_secret_is_made_once_for_everybody(database_url: str) -> None:
    async with own_database(database_url, "secrets") as url:
        processes = [await asyncpg.connect(url) for _ in range(5)]
        async with asyncio.timeout(WAIT_S):
            stored = await asyncio.gather(
                *(accounts.secret(process, "nonce", bytes([n]) * 32) for n, process in enumerate(processes))
            )
        assert len(set(stored)) == 1
        assert stored[0] in {bytes([n]) * 32 for n in range(5)}
        assert await accounts.secret(processes[0], "nonce", bytes(32)) == stored[0]
        assert await accounts.secret(processes[0], "other", b"\x09" * 32) == b"\x09" * 32
        for process in processes:
            await process.close()


async def test_who_comes_while_a_secret_is_being_made_has_the_same(database_url: str) -> None:
    async with own_database(database_url, "secrets_waited") as url:
        first, second = await asyncpg.connect(url), await asyncpg.connect(url)
        making = first.transaction()
        await making.start()
        made = await accounts.secret(first, "nonce", b"\x01" * 32)
        async with second.transaction():
            waits = asyncio.create_task(accounts.secret(second, "nonce", b"\x02" * 32))
            await making.commit()
            async with asyncio.timeout(WAIT_S):
                assert await waits == made == b"\x01" * 32
        await first.close()
        await second.close()


async def test_a_new_account_takes_the_first_name_that_is_free(connection: Connection) -> None:
    taken, also, free = name(), name(), name()
    await accounts.lock_account(connection, some_wallet(), [taken], NOW)
    await accounts.lock_account(connection, some_wallet(), [also], NOW)
    wallet = some_wallet()
    made = await accounts.lock_account(connection, wallet, [taken, also, free, name()], NOW)
    assert (made.account.designation, made.account.wallet, made.keys_made, made.made_at) == (
        free,
        wallet,
        0,
        NOW,
    )
    assert (made.account.is_agent, made.account.agent_name) == (False, None)
    assert made.is_new
    # Whoever has a name keeps it, and nothing is drawn.
    known = replace(made, is_new=False)
    assert await accounts.lock_account(connection, wallet, iter(()), NOW) == known
    assert await accounts.read_account(connection, made.account.id) == known


async def test_without_a_free_name_there_is_no_account(connection: Connection) -> None:
    taken, wallet = name(), some_wallet()
    await accounts.lock_account(connection, some_wallet(), [taken], NOW)
    with pytest.raises(RuntimeError):
        await accounts.lock_account(connection, wallet, [taken, taken], NOW)
    assert await accounts.keys_made(connection, wallet) == 0


async def test_two_that_draw_the_same_name_at_once_have_different_ones(database_url: str) -> None:
    async with own_database(database_url, "names") as url:
        first, second = await asyncpg.connect(url), await asyncpg.connect(url)
        drawn = [name(), name()]
        making = first.transaction()
        await making.start()
        first_made = await accounts.lock_account(first, some_wallet(), drawn, NOW)
        async with second.transaction():
            waits = asyncio.create_task(accounts.lock_account(second, some_wallet(), drawn, NOW))
            await making.commit()
            async with asyncio.timeout(WAIT_S):
                second_made = await waits
        assert [first_made.account.designation, second_made.account.designation] == drawn
        await first.close()
        await second.close()


async def test_a_key_is_live_until_it_is_revoked(connection: Connection) -> None:
    account = (await accounts.lock_account(connection, some_wallet(), [name()], NOW)).account
    hashes = [secrets.token_bytes(32) for _ in range(3)]
    for number, hashed in enumerate(hashes):
        await accounts.add_key(connection, account.id, hashed, f"rt_{number}abcd", f"label {number}", NOW)
    assert await accounts.keys_made(connection, account.wallet) == 3
    assert await accounts.live_count(connection, account.id) == 3
    (key, *_) = await accounts.live_keys(connection, account.id)
    assert (key.start, key.label, key.designation, key.wallet) == (
        "rt_0abcd", "label 0", account.designation, account.wallet,
    )  # fmt: skip
    assert await account_of_key(connection, hashes[0]) == account
    assert await accounts.revoke(connection, key.id, NOW)
    assert not await accounts.revoke(connection, key.id, NOW)
    assert await account_of_key(connection, hashes[0]) is None
    assert await account_of_key(connection, hashes[1]) == account
    assert await account_of_key(connection, bytes(32)) is None
    assert await accounts.live_count(connection, account.id) == 2
    assert [key.start for key in await accounts.live_keys(connection, account.id)] == ["rt_1abcd", "rt_2abcd"]
    every = await accounts.every_key(connection, account.wallet)
    assert [key.revoked_at for key in every] == [NOW, None, None]
    assert await accounts.keys_made(connection, account.wallet) == 3


async def test_a_tag_keeps_the_name_that_there_is(connection: Connection) -> None:
    account = (await accounts.lock_account(connection, some_wallet(), [name()], NOW)).account
    for given, kept in ((None, None), ("Bot", "Bot"), (None, "Bot"), ("Other", "Other")):
        tagged = await accounts.tag_agent(connection, account.id, given)
        assert tagged == Account(account.id, account.designation, account.wallet, True, kept)


async def test_calls_are_those_of_the_day(connection: Connection) -> None:
    account = (await accounts.lock_account(connection, some_wallet(), [name()], NOW)).account
    assert await accounts.calls_on(connection, account.id, NOW.date()) == 0
    await connection.execute("INSERT INTO accounts.day VALUES ($1, $2, 7, 1)", account.id, NOW.date())
    assert await accounts.calls_on(connection, account.id, NOW.date()) == 7
    assert await accounts.calls_on(connection, account.id, NOW.date().replace(day=10)) == 0
