"""Moves calls between an account's day and the leases of processes: one statement for a batch.

A lease is a number of calls of one day that a process took ahead. ``accounts.day.calls`` contains them: calls
made are ``calls - leased``. ``calls`` never exceeds the day's limit, so a process may spend what it leased
without asking, and a release that knows no leases takes them for calls that were made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from roundtrip.store.server.rows import Connection, fetch

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
        """Which lease it is of."""
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
    """Writes changes, at most one of each account and day, and calls of the minute by caller and time (ms
    since 1970). Returns how many calls each change got."""
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
