"""Holds of credits for calls that are not answered yet; each statement handles a batch of calls.

A hold ends once: the statement that deletes its row charges or releases its credit, and a second one changes
nothing. Every statement locks its balances in the order of their accounts before it touches a hold, which
prevents deadlocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from roundtrip.store.server.rows import Connection, fetch_values

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
