"""Payments for calls, credit balances, and holds: credits set aside for calls that are not answered yet. Each
function uses the caller's connection and does not end the transaction. Statements about holds handle a batch
of calls.

A hold ends once: the statement that deletes its row charges or releases its credit, and a second one
changes nothing. Every statement locks its balances in the order of their accounts before it touches a
hold, which prevents deadlocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from roundtrip.domain.accounts.account import CreditPayment
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_optional, fetch_value, fetch_values

GRACE_BLOCKS = 36_000
"""For this many blocks, an hour of a real chain, payments to a replaced address still count: payers may have
got the address just before."""


@dataclass(frozen=True, slots=True)
class PayToSpan:
    """An address for payments, from the block after ``from_block`` on. ``to_block``: the newest block when
    another address replaced it; None: it is in use."""

    address: Address
    from_block: int
    to_block: int | None

    def was_open_at(self, block_number: int) -> bool:
        """Whether a payment of this block counts."""
        last = self.last_block()
        return self.from_block < block_number and (last is None or block_number <= last)

    def last_block(self) -> int | None:
        """The last block whose payments count; None: the address is in use."""
        return None if self.to_block is None else self.to_block + GRACE_BLOCKS


async def open_pay_to(connection: Connection, pay_to: Address, head_number: int) -> None:
    """Makes ``pay_to`` the only address for payments from the next block on. An address that is open keeps
    its first block; one that was closed is open again, without a gap. Needs a transaction."""
    # If two services start at once with different addresses, the second sees the first one's.
    await connection.execute("LOCK TABLE accounts.pay_to IN SHARE ROW EXCLUSIVE MODE")
    await connection.execute(
        # The lower block: a local chain may have been restarted.
        "INSERT INTO accounts.pay_to AS known (address, from_block) VALUES ($1, $2) ON CONFLICT (address) DO "
        "UPDATE SET from_block = least(known.from_block, excluded.from_block), to_block = NULL",
        as_bytes(pay_to),
        head_number,
    )
    await connection.execute(
        "UPDATE accounts.pay_to SET to_block = $2 WHERE address <> $1 AND to_block IS NULL",
        as_bytes(pay_to),
        head_number,
    )


async def paid_to(connection: Connection) -> list[PayToSpan]:
    """Every address that was ever used for payments, sorted by address."""
    return await fetch(
        connection, PayToSpan, "SELECT address, from_block, to_block FROM accounts.pay_to ORDER BY address"
    )


async def is_counted(connection: Connection, tx_hash: TxHash, account_id: int | None) -> bool:
    """Whether a payment was counted for this account; ``account_id`` None: for any account."""
    return await fetch_value(
        connection,
        bool,
        "SELECT EXISTS (SELECT FROM accounts.payment WHERE tx_hash = $1 AND account_id = coalesce($2, "
        "account_id))",
        as_bytes(tx_hash),
        account_id,
    )


async def redeem(
    connection: Connection, account_id: int, payment: CreditPayment, credited: int, now: datetime
) -> int | None:
    """Credits a payment, once, and returns the account's balance, as ``balance``. None: the payment was
    counted before, or by a concurrent transaction. Needs a transaction."""
    # Calls of the account wait for its balance: a stalled process holds its lock for two seconds at most.
    await connection.execute("SELECT set_config('idle_in_transaction_session_timeout', '2000', true)")
    # Waits for a transaction that is counting the same payment, and is NULL if that one commits.
    is_first = await fetch_optional(
        connection,
        bool,
        "INSERT INTO accounts.payment (tx_hash, account_id, amount_raw, credited, block_number, block_hash, "
        "redeemed_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING true",
        as_bytes(payment.tx_hash),
        account_id,
        payment.amount_raw,
        credited,
        payment.block_number,
        as_bytes(payment.block_hash),
        now,
    )
    if not is_first:
        return None
    await connection.execute(
        "INSERT INTO accounts.balance AS had (account_id, credits) VALUES ($1, $2)"
        " ON CONFLICT (account_id) DO UPDATE SET credits = had.credits + excluded.credits",
        account_id,
        credited,
    )
    return await balance(connection, account_id, int(now.timestamp() * 1000))


async def balance(connection: Connection, account_id: int, now_ms: int) -> int:
    """An account's credits, those of expired holds included. ``now_ms``: since 1970."""
    credits_left = await fetch_optional(
        connection,
        int,
        "SELECT credits + (SELECT count(*) FROM accounts.hold AS held WHERE held.account_id = had.account_id "
        "AND held.until_ms <= $2) FROM accounts.balance AS had WHERE account_id = $1",
        account_id,
        now_ms,
    )
    return credits_left or 0


HOLD_MS = 120_000
"""How long a hold lives: longer than any call takes."""


@dataclass(frozen=True, slots=True)
class CreditHold:
    """A credit held for one call. ``until_ms``: since 1970; from then on the credit is returned. ``caller``,
    ``taken_ms``: as in ``call_counts.CountedCall``; ``caller`` None: the call counts in no minute."""

    id: UUID
    account_id: int
    until_ms: int
    caller: str | None = None
    taken_ms: int = 0


# had: balances as of the lock, with concurrent changes. over: expired holds.
_HOLD = """
WITH asked AS MATERIALIZED (
    SELECT *, row_number() OVER (PARTITION BY account_id ORDER BY place) AS turn
    FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[])
        WITH ORDINALITY AS asked (id, account_id, until_ms, caller, taken_ms, place)
), had AS MATERIALIZED (
    SELECT account_id, credits FROM accounts.balance
    WHERE account_id IN (SELECT account_id FROM asked) ORDER BY account_id FOR UPDATE
), over AS (
    DELETE FROM accounts.hold
    WHERE until_ms <= $6 AND account_id IN (SELECT account_id FROM had) RETURNING account_id
), has AS MATERIALIZED (
    SELECT account_id, credits + (SELECT count(*) FROM over
        WHERE over.account_id = had.account_id) AS credits FROM had
), given AS MATERIALIZED (
    SELECT asked.* FROM asked JOIN has ON has.account_id = asked.account_id AND asked.turn <= has.credits
), held AS (
    INSERT INTO accounts.hold (id, account_id, until_ms) SELECT id, account_id, until_ms FROM given
), kept AS (
    INSERT INTO accounts.call (caller, taken_ms, calls)
    SELECT caller, taken_ms, 1 FROM given WHERE caller IS NOT NULL
), changed AS (
    UPDATE accounts.balance AS balance
    SET credits = has.credits - (SELECT count(*) FROM given WHERE given.account_id = has.account_id)
    FROM has WHERE has.account_id = balance.account_id
        AND (EXISTS (SELECT FROM given WHERE given.account_id = has.account_id)
            OR EXISTS (SELECT FROM over WHERE over.account_id = has.account_id))
)
SELECT id FROM given
"""

_END = """
WITH had AS MATERIALIZED (
    SELECT account_id FROM accounts.balance
    WHERE account_id IN (SELECT account_id FROM accounts.hold WHERE id = ANY ($1::uuid[]))
    ORDER BY account_id FOR UPDATE
), over AS (
    DELETE FROM accounts.hold
    WHERE id = ANY ($1) AND account_id IN (SELECT account_id FROM had) RETURNING account_id
), ended AS MATERIALIZED (
    SELECT account_id, count(*) AS calls FROM over GROUP BY account_id
)
UPDATE accounts.balance AS balance SET {column} = balance.{column} + ended.calls
FROM ended WHERE ended.account_id = balance.account_id
"""
# The answer is sent next: waits until this and every earlier commit of the connection is on disk.
_CHARGE = _END.format(column="spent") + "RETURNING set_config('synchronous_commit', 'on', true)"
_RELEASE = _END.format(column="credits")


async def hold(connection: Connection, wanted: Sequence[CreditHold], now_ms: int) -> set[UUID]:
    """Holds a credit for each call, in their order, as far as its account has credits, and counts the calls
    that got one in their minutes. Returns the ids of the holds made. Returns expired holds' credits first."""
    return set(
        await fetch_values(
            connection,
            UUID,
            _HOLD,
            [call_hold.id for call_hold in wanted],
            [call_hold.account_id for call_hold in wanted],
            [call_hold.until_ms for call_hold in wanted],
            [call_hold.caller for call_hold in wanted],
            [call_hold.taken_ms for call_hold in wanted],
            now_ms,
        )
    )


async def charge(connection: Connection, ids: Sequence[UUID]) -> None:
    """Spends held credits and waits for the disk. Ignores holds that have ended."""
    await connection.fetch(_CHARGE, ids)


async def release(connection: Connection, ids: Sequence[UUID]) -> None:
    """Returns held credits to their balances. Ignores holds that have ended."""
    await connection.fetch(_RELEASE, ids)
