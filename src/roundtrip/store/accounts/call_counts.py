"""Counts calls by minute and by day, and looks up their keys: one statement for a batch of calls.

Day counts are exact with any number of writers: exactly as many calls of an account are admitted as its
day has left. A key that was revoked before the statement began is not live.

Moves calls between an account's day and the leases of processes: one statement for a batch.

A lease is a number of calls of one day that a process took ahead. ``accounts.day.calls`` contains them:
calls made are ``calls - leased``. ``calls`` never exceeds the day's limit, so a process may spend what
it leased without asking, and an older release, which knows no leases, takes them for calls that were made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.store.server.rows import Connection, fetch, read

KEPT_MS = 120_000
"""Twice the counted minute: clocks of processes differ."""
_FORGOTTEN_AT_ONCE = 5_000


class CountedCall(msgspec.Struct, frozen=True):
    """One call to count. ``caller``: the caller whose minute it counts in; None: only the key's account is
    looked up. ``taken_ms``: since 1970. ``key_hash``: the call counts only if this key is live. ``day``: the
    day of UTC whose limit of ``per_day`` calls it also counts against; None: no daily limit."""

    caller: str | None
    taken_ms: int
    key_hash: bytes | None = None
    day: date | None = None
    per_day: int = 0


@dataclass(frozen=True, slots=True)
class RefundedCall:
    """A counted call to uncount. ``caller`` None: its minute is over."""

    caller: str | None
    taken_ms: int
    account_id: int | None = None
    day: date | None = None


@dataclass(frozen=True, slots=True)
class LiveKey:
    """The key's account. ``has_room``: the day had room for the call, which was counted. ``may_pay``: it had
    none, and the account has paid for calls before; ``credits.hold`` finds out whether a credit is left."""

    account: Account
    has_room: bool
    may_pay: bool = False


# live: calls whose key is live. turn: the call's number among its account's calls. counted: the days, in one
# order for all writers, which prevents deadlocks. A day's calls contain leased ones, which no refund takes.
_WRITE = """
WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::date[], $5::int[])
        WITH ORDINALITY AS asked (caller, taken_ms, hash, day, per_day, place)
), live AS MATERIALIZED (
    SELECT asked.place, asked.day, asked.per_day, key.account_id,
        row_number() OVER (PARTITION BY key.account_id, asked.day ORDER BY asked.place) AS turn
    FROM asked JOIN accounts.key AS key ON key.hash = asked.hash AND key.revoked_at IS NULL
        AND (key.expires_at IS NULL OR key.expires_at > to_timestamp(asked.taken_ms / 1000.0))
), back AS MATERIALIZED (
    SELECT * FROM unnest($6::text[], $7::bigint[], $8::bigint[], $9::date[])
        AS back (caller, taken_ms, account_id, day)
), change AS MATERIALIZED (
    SELECT account_id, day, sum(wanted)::int AS wanted, sum(back)::int AS back, max(per_day) AS per_day
    FROM (
        SELECT account_id, day, 1 AS wanted, 0 AS back, per_day FROM live WHERE day IS NOT NULL
        UNION ALL
        SELECT account_id, day, 0, 1, 0 FROM back WHERE day IS NOT NULL
    ) AS each GROUP BY account_id, day
), counted AS (
    INSERT INTO accounts.day AS had (account_id, day, calls, granted)
    SELECT account_id, day, least(wanted, per_day), least(wanted, per_day)
    FROM change ORDER BY account_id, day
    ON CONFLICT (account_id, day) DO UPDATE SET (calls, granted) = (
        SELECT left_of.calls + left_of.granted, left_of.granted FROM (
            SELECT kept.calls,
                greatest(0, least(change.wanted, change.per_day - kept.calls)) AS granted
            FROM change, LATERAL (SELECT greatest(had.leased, had.calls - change.back) AS calls) AS kept
            WHERE change.account_id = had.account_id AND change.day = had.day
        ) AS left_of
    )
    RETURNING account_id, day, granted
), told AS MATERIALIZED (
    SELECT live.place, live.account_id, live.day IS NULL OR live.turn <= counted.granted AS has_room
    FROM live LEFT JOIN counted ON counted.account_id = live.account_id AND counted.day = live.day
), kept AS (
    INSERT INTO accounts.call (caller, taken_ms, calls)
    SELECT asked.caller, asked.taken_ms, 1 FROM asked LEFT JOIN told ON told.place = asked.place
    WHERE asked.caller IS NOT NULL AND (asked.hash IS NULL OR told.has_room)
    UNION ALL
    SELECT back.caller, back.taken_ms, -1 FROM back WHERE back.caller IS NOT NULL
)
SELECT told.place, account.id, account.designation, account.wallet, account.is_agent, account.agent_name,
    told.has_room,
    CASE WHEN told.has_room THEN false
        ELSE EXISTS (SELECT FROM accounts.balance AS balance WHERE balance.account_id = told.account_id)
    END AS may_pay
FROM told JOIN accounts.account AS account ON account.id = told.account_id
"""


async def write(
    connection: Connection, calls: Sequence[CountedCall], refunds: Sequence[RefundedCall] = ()
) -> list[LiveKey | None]:
    """Counts ``calls`` and uncounts ``refunds``, in one statement. Returns one entry per call, in their
    order; None for a call without a live key."""
    records = await connection.fetch(
        _WRITE,
        [call.caller for call in calls],
        [call.taken_ms for call in calls],
        [call.key_hash for call in calls],
        [call.day for call in calls],
        [call.per_day for call in calls],
        [refund.caller for refund in refunds],
        [refund.taken_ms for refund in refunds],
        [refund.account_id for refund in refunds],
        [refund.day for refund in refunds],
    )
    live_keys: list[LiveKey | None] = [None] * len(calls)
    for place, live_key in read(records, tuple[int, LiveKey]):
        live_keys[place - 1] = live_key
    return live_keys


async def recent(
    connection: Connection, after_ms: int, up_to_ms: int, limit: int
) -> list[tuple[str, int, int]]:
    """Caller, milliseconds since 1970 and number of calls then, after ``after_ms`` and up to ``up_to_ms``,
    the oldest first; of more than ``limit`` entries the newest."""
    rows = await fetch(
        connection,
        tuple[str, int, int],
        """
        SELECT caller, taken_ms, sum(calls)::int AS calls FROM accounts.call
        WHERE taken_ms > $1 AND taken_ms <= $2
        GROUP BY caller, taken_ms HAVING sum(calls) > 0 ORDER BY taken_ms DESC LIMIT $3
        """,
        after_ms,
        up_to_ms,
        limit,
    )
    return rows[::-1]


async def forget(connection: Connection, before_ms: int) -> None:
    """Deletes a batch of calls taken before ``before_ms``; skips those that another transaction locks."""
    await connection.fetch(
        """
        DELETE FROM accounts.call WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM accounts.call WHERE taken_ms < $1
            ORDER BY taken_ms LIMIT $2 FOR UPDATE SKIP LOCKED
        ))
        """,
        before_ms,
        _FORGOTTEN_AT_ONCE,
    )


async def without_waiting_for_the_disk(connection: Connection) -> None:
    """Turns synchronous commit off for a connection that counts: a crash of the database may lose the latest
    counts. Not where commits wait for a standby (``synchronous_standby_names``): what was promised there
    outlives the primary."""
    await connection.fetchval(
        "SELECT set_config('synchronous_commit', 'off', false)"
        " WHERE current_setting('synchronous_standby_names') = ''"
    )


AccountDay = tuple[int, date]
"""An account and a day of UTC."""


@dataclass(frozen=True, slots=True)
class LeaseChange:
    """What happened to a lease. ``spent``: calls made since the last change. ``returned``: calls that the
    process will not make. ``wanted``: calls that it wants, of a day with ``per_day`` calls."""

    account_id: int
    day: date
    spent: int = 0
    returned: int = 0
    wanted: int = 0
    per_day: int = 0

    def key(self) -> AccountDay:
        """The lease that changed."""
        return self.account_id, self.day


# A lease gets at most a 256th of what the day has left: near the limit calls are counted one by one.
# kept: calls made, and what stays leased, before anything is lent.
# moved: in one order for all writers, which prevents deadlocks; a restored database may lack what was leased.
# durable: what is lent is on disk before it is spent, else a crash of the database would lend it twice.
_MOVE = """
WITH change AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::date[], $3::int[], $4::int[], $5::int[], $6::int[])
        AS change (account_id, day, spent, returned, wanted, per_day)
), moved AS (
    INSERT INTO accounts.day AS had (account_id, day, calls, granted, leased, lent)
    SELECT account_id, day, spent + lent, 0, lent, lent
    FROM change, LATERAL (SELECT greatest(0, least(wanted, (per_day - spent) / 256)) AS lent) AS room
    ORDER BY account_id, day
    ON CONFLICT (account_id, day) DO UPDATE SET (calls, leased, lent) = (
        SELECT kept.made + kept.leased + room.lent, kept.leased + room.lent, room.lent
        FROM change,
            LATERAL (SELECT greatest(0, had.calls - had.leased) + change.spent AS made,
                greatest(0, had.leased - change.spent - change.returned) AS leased) AS kept,
            LATERAL (SELECT greatest(0, least(change.wanted,
                (change.per_day - kept.made - kept.leased) / 256)) AS lent) AS room
        WHERE change.account_id = had.account_id AND change.day = had.day
    )
    RETURNING account_id, day, lent
), kept AS (
    INSERT INTO accounts.call (caller, taken_ms, calls)
    SELECT * FROM unnest($7::text[], $8::bigint[], $9::smallint[])
)
SELECT account_id, day, lent,
    CASE WHEN lent > 0 THEN set_config('synchronous_commit', 'on', true) END AS durable
FROM moved
"""


async def move(
    connection: Connection, changes: Sequence[LeaseChange], minutes: Mapping[tuple[str, int], int]
) -> dict[AccountDay, int]:
    """Writes changes of leases, at most one for each account and day, and counts calls against minutes:
    ``minutes`` by caller and time, in ms since 1970. Returns how many calls each changed lease got."""
    rows = await fetch(
        connection,
        tuple[AccountDay, int, str | None],
        _MOVE,
        [change.account_id for change in changes],
        [change.day for change in changes],
        [change.spent for change in changes],
        [change.returned for change in changes],
        [change.wanted for change in changes],
        [change.per_day for change in changes],
        [caller for caller, _ in minutes],
        [taken_ms for _, taken_ms in minutes],
        list(minutes.values()),
    )
    return {key: lent for key, lent, _ in rows}
