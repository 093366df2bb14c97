"""Credits in the database: what was paid counts once for ever, whoever counts it."""

import asyncio
import secrets
import uuid
from dataclasses import replace
from datetime import UTC, datetime

import asyncpg

from roundtrip.domain.accounts.account import CreditPayment
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.store.accounts import accounts, credits
from roundtrip.store.accounts.credits import PayToSpan
from roundtrip.store.server import connections
from roundtrip.store.server.rows import Connection
from support.tables import own_database

NOW = datetime(2025, 10, 9, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
WAIT_S = 20
ONE, OTHER, THIRD = (Address("0x" + digit * 40) for digit in "123")


async def some_account(connection: Connection) -> int:
    wallet = Address("0x" + secrets.token_hex(20))
    return (await accounts.lock_account(connection, wallet, [f"mite-{secrets.token_hex(8)}"], NOW)).account.id


def some_payment() -> CreditPayment:
    return CreditPayment(TxHash("0x" + secrets.token_hex(32)), 5_000_000, 70, "0x" + "ab" * 32)


async def test_a_payment_counts_once_and_adds_up_with_others(connection: Connection) -> None:
    account, other, paid = await some_account(connection), await some_account(connection), some_payment()
    assert await credits.balance(connection, account, NOW_MS) == 0
    assert not await credits.is_counted(connection, paid.tx_hash, None)
    assert await credits.redeem(connection, account, paid, 5_000, NOW) == 5_000
    assert await credits.redeem(connection, account, paid, 5_000, NOW) is None
    assert await credits.redeem(connection, account, replace(paid, amount_raw=1), 1, NOW) is None
    assert await credits.redeem(connection, account, some_payment(), 7, NOW) == 5_007
    assert await credits.balance(connection, account, NOW_MS) == 5_007
    # What another wallet paid in the same transaction is that wallet's.
    assert await credits.is_counted(connection, paid.tx_hash, account)
    assert not await credits.is_counted(connection, paid.tx_hash, other)
    assert await credits.is_counted(connection, paid.tx_hash, None)
    assert await credits.redeem(connection, other, paid, 3, NOW) == 3
    row = await connection.fetchrow(
        "SELECT * FROM accounts.payment WHERE account_id = $1 AND tx_hash = $2",
        account,
        bytes.fromhex(paid.tx_hash[2:]),
    )
    assert row is not None
    assert (row["amount_raw"], row["credited"], row["block_number"]) == (5_000_000, 5_000, 70)
    assert (row["block_hash"], row["redeemed_at"]) == (b"\xab" * 32, NOW)


async def test_a_credit_held_by_nobody_any_more_is_part_of_the_balance(connection: Connection) -> None:
    account, other = await some_account(connection), await some_account(connection)
    for payer in (account, other):
        await credits.redeem(connection, payer, some_payment(), 10, NOW)
    for owner, until_ms in (
        (account, NOW_MS - 1),
        (account, NOW_MS),
        (account, NOW_MS + 1),
        (other, NOW_MS - 1),
    ):
        await connection.execute(
            "INSERT INTO accounts.hold (id, account_id, until_ms) VALUES ($1, $2, $3)",
            uuid.uuid4(),
            owner,
            until_ms,
        )
    assert await credits.balance(connection, account, NOW_MS) == 12
    assert await credits.redeem(connection, account, some_payment(), 5, NOW) == 17


async def test_who_stands_still_while_it_counts_keeps_the_balance_for_two_seconds_only(
    connection: Connection,
) -> None:
    """A paid call's own time is two seconds, and all of them share statements."""
    await credits.redeem(connection, await some_account(connection), some_payment(), 10, NOW)
    assert await connection.fetchval("SHOW idle_in_transaction_session_timeout") == "2s"


async def test_of_many_at_once_one_is_counted(database_url: str) -> None:
    async with own_database(database_url, "redeemed") as url:
        first = await asyncpg.connect(url)
        account, paid = await some_account(first), some_payment()
        pools = [await connections.create_pool(url, min_size=5, max_size=5) for _ in range(3)]

        async def redeemed(turn: int) -> int | None:
            async with pools[turn % 3].acquire() as connection, connection.transaction():
                return await credits.redeem(connection, account, paid, 5_000, NOW)

        async with asyncio.timeout(WAIT_S):
            balances = await asyncio.gather(*(redeemed(turn) for turn in range(50)))
        assert [balance for balance in balances if balance is not None] == [5_000]
        assert await credits.balance(first, account, NOW_MS) == 5_000
        for pool in pools:
            await pool.close()
        await first.close()


async def test_what_is_rolled_back_was_not_counted(database_url: str) -> None:
    async with own_database(database_url, "rolled_back") as url:
        first, second = await asyncpg.connect(url), await asyncpg.connect(url)
        account, paid = await some_account(first), some_payment()
        failing = first.transaction()
        await failing.start()
        assert await credits.redeem(first, account, paid, 5, NOW) == 5
        async with second.transaction():
            waits = asyncio.create_task(credits.redeem(second, account, paid, 5, NOW))
            await failing.rollback()
            async with asyncio.timeout(WAIT_S):
                assert await waits == 5
        assert await credits.balance(first, account, NOW_MS) == 5
        await first.close()
        await second.close()


async def test_where_payments_go(database_url: str) -> None:
    async with own_database(database_url, "paid_to") as url:
        connection = await asyncpg.connect(url)
        turn = connection.transaction()
        await turn.start()
        assert await credits.paid_to(connection) == []
        await credits.open_pay_to(connection, ONE, 100)
        await credits.open_pay_to(connection, ONE, 150)
        assert await credits.paid_to(connection) == [PayToSpan(ONE, 100, None)]
        await credits.open_pay_to(connection, OTHER, 200)
        await credits.open_pay_to(connection, THIRD, 300)
        assert await credits.paid_to(connection) == [
            PayToSpan(ONE, 100, 200),
            PayToSpan(OTHER, 200, 300),
            PayToSpan(THIRD, 300, None),
        ]
        await credits.open_pay_to(connection, ONE, 400)
        assert await credits.paid_to(connection) == [
            PayToSpan(ONE, 100, None),
            PayToSpan(OTHER, 200, 300),
            PayToSpan(THIRD, 300, 400),
        ]
        # A local chain that began anew.
        await credits.open_pay_to(connection, ONE, 7)
        assert (await credits.paid_to(connection))[0] == PayToSpan(ONE, 7, None)
        await turn.commit()
        await connection.close()


async def test_of_two_addresses_opened_at_once_one_is_open(database_url: str) -> None:
    async with own_database(database_url, "opened_at_once") as url:
        first, second, third = [await asyncpg.connect(url) for _ in range(3)]
        opening = first.transaction()
        await opening.start()
        await credits.open_pay_to(first, ONE, 100)
        async with second.transaction(), asyncio.timeout(WAIT_S):
            waits = asyncio.create_task(credits.open_pay_to(second, OTHER, 100))
            while not await third.fetchval(
                "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted"
                " AND relation = 'accounts.pay_to'::regclass)"
            ):
                pass
            await opening.commit()
            await waits
        assert [connection.to_block for connection in await credits.paid_to(third)] == [100, None]
        for connection in (first, second, third):
            await connection.close()


def test_a_payment_counts_after_the_block_of_opening_and_up_to_an_hour_after_closing() -> None:
    still, closed = PayToSpan(ONE, 100, None), PayToSpan(ONE, 100, 200)
    assert [still.was_open_at(number) for number in (99, 100, 101, 10**9)] == [False, False, True, True]
    assert [closed.was_open_at(number) for number in (100, 101, 36_200, 36_201)] == [False, True, True, False]
