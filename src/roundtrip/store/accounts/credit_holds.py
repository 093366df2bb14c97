"""Credits of calls that are not answered yet, for everybody who came meanwhile at once.

A hold ends once: whoever deletes its row says what becomes of its credit, and whoever comes second changes
nothing. Every statement locks the balances it is about in the order of their accounts before it touches a
hold: writers do not wait for each other in a circle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from roundtrip.store.server.rows import Connection

HOLD_MS = 120_000
"""How long a hold lives: longer than any call is under way."""


@dataclass(frozen=True, slots=True)
class CreditHold:
    """A credit of one call. ``until_ms``: since 1970; from then on it goes back. ``caller``, ``taken_ms``:
    under whose minute the call is written down, as in ``counting.Call``; None: under nobody's."""

    id: UUID
    account_id: int
    until_ms: int
    caller: str | None = None
    taken_ms: int = 0


# had: with what somebody else did until the lock was there. over: of calls that nobody has any more.
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
# The answer goes out next: from here on the disk has it, and all that was done before it.
_SETTLE = _END.format(column="spent") + "RETURNING set_config('synchronous_commit', 'on', true)"
_RELEASE = _END.format(column="credits")


async def hold(connection: Connection, wanted: Sequence[CreditHold], now_ms: int) -> set[UUID]:
    """Holds a credit for each call, of an account for as many as it has credits, in the order asked; which.
    What is held for calls that nobody has any more goes back first. Their minutes are written with it."""
    rows = await connection.fetch(
        _HOLD,
        [one.id for one in wanted],
        [one.account_id for one in wanted],
        [one.until_ms for one in wanted],
        [one.caller for one in wanted],
        [one.taken_ms for one in wanted],
        now_ms,
    )
    return {row["id"] for row in rows}


async def settle(connection: Connection, ids: Sequence[UUID]) -> None:
    """Spends what was held, and waits for the disk. Of holds that are not there nothing is done."""
    await connection.fetch(_SETTLE, ids)


async def release(connection: Connection, ids: Sequence[UUID]) -> None:
    """Gives back what was held. Of holds that are not there nothing is done."""
    await connection.fetch(_RELEASE, ids)
