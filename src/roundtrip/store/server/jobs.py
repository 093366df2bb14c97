"""Background jobs, stored in PostgreSQL. A job is enqueued on the caller's connection, so it is lost only if
the caller's transaction rolls back.

A job may run more than once: a worker may die, and after its lease another worker claims the job again. Its
effects happen once: they and ``finish`` are one transaction, and ``finish`` checks that the worker still owns
the job.

There is one job per kind and key. If it is enqueued again while it waits, it runs at the earlier of the two
times, with the newer payload. If it is enqueued while it runs, it runs once more, because the running one may
have started too early to see the reason. If it is enqueued after it was given up, it starts over.

The caller passes all times; the server's clock is not used. Payloads never contain text by strangers.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from roundtrip.domain.base.clock_age import AHEAD_S
from roundtrip.store.server.rows import Connection, JsonObject, fetch, fetch_row, fetch_value, fetch_values

CHANNEL = "jobs"
"""Notified when a transaction that enqueued jobs commits."""

AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of jobs enqueued without one: they run before all others, in the order they were enqueued."""

Payload = JsonObject


@dataclass(frozen=True, slots=True)
class Job:
    """A job that the caller owns until ``claimed_until``, and after that until another worker claims it.
    ``tries``: how often it was claimed, this time included. ``lane``: the lane it waited in, for kinds whose
    owners take turns."""

    id: int
    kind: str
    key: str
    payload: Payload
    run_at: datetime
    claim: UUID
    claimed_until: datetime
    tries: int
    lane: str | None = None


_ENQUEUE = """
WITH requested AS (
    INSERT INTO jobs.job AS job (kind, key, payload, run_at)
    SELECT $1, key, $3::jsonb, $4
    FROM unnest($2::text[]) WITH ORDINALITY AS given (key, place) ORDER BY place
    ON CONFLICT (kind, key) DO UPDATE SET
        payload = excluded.payload,
        -- Also for a running job: a worker whose clock was ahead may have claimed it long before it is due.
        run_at = CASE WHEN job.failed_at IS NOT NULL THEN excluded.run_at
                      ELSE least(job.run_at, excluded.run_at) END,
        again_at = CASE WHEN job.claim IS NOT NULL THEN least(job.again_at, excluded.run_at) END,
        tries = CASE WHEN job.failed_at IS NULL THEN job.tries ELSE 0 END,
        failed_at = NULL,
        -- For kinds whose owners take turns: it is assigned a lane again, by the new payload.
        lane = CASE WHEN job.claim IS NOT NULL THEN job.lane END
)
SELECT pg_notify($5, '')
"""


async def enqueue(
    connection: Connection,
    kind: str,
    key: str,
    payload: Payload | None = None,
    run_at: datetime | None = None,
) -> None:
    """Enqueues one job, in the caller's transaction. ``run_at`` None: at once."""
    await enqueue_many(connection, kind, (key,), payload, run_at)


async def enqueue_many(
    connection: Connection,
    kind: str,
    keys: Sequence[str],
    payload: Payload | None = None,
    run_at: datetime | None = None,
) -> None:
    """Enqueues a job of one kind for each key, in one statement. Duplicate keys are allowed."""
    if not keys:
        return
    # Sorted, so that two transactions with the same keys cannot deadlock. Without duplicates, because one
    # statement cannot update a row twice.
    ordered = sorted(set(keys))
    encoded = msgspec.json.encode(payload or {}).decode()
    await connection.execute(_ENQUEUE, kind, ordered, encoded, run_at or AT_ONCE, CHANNEL)


async def is_there(connection: Connection, kind: str, key: str) -> bool:
    """Whether a job with this key waits, runs, or was given up recently."""
    return await fetch_value(
        connection, bool, "SELECT EXISTS (SELECT FROM jobs.job WHERE kind = $1 AND key = $2)", kind, key
    )


async def is_to_come(connection: Connection, kind: str, key: str) -> bool:
    """Whether a job with this key waits or runs; False if it was given up."""
    return await fetch_value(
        connection,
        bool,
        "SELECT EXISTS (SELECT FROM jobs.job WHERE kind = $1 AND key = $2 AND failed_at IS NULL)",
        kind,
        key,
    )


async def to_come(connection: Connection, kind: str, key: str) -> tuple[datetime, str | None] | None:
    """When the job with this key runs, and why it failed the last time, if it did; None: there is none, or it
    was given up."""
    return await fetch_row(
        connection,
        tuple[datetime, str | None],
        "SELECT run_at, last_error FROM jobs.job WHERE kind = $1 AND key = $2 AND failed_at IS NULL",
        kind,
        key,
    )


async def among(
    connection: Connection, kind: str, keys: Collection[str], given_up_since: datetime
) -> set[str]:
    """The keys among these that have a job waiting, running, or given up at ``given_up_since`` or later."""
    present = await fetch_values(
        connection,
        str,
        "SELECT key FROM jobs.job WHERE kind = $1 AND key = ANY($2::text[])"
        " AND (failed_at IS NULL OR failed_at >= $3)",
        kind,
        list(keys),
        given_up_since,
    )
    return set(present)


async def waiting(connection: Connection, kind: str, payload: Payload, until: datetime | None = None) -> int:
    """How many jobs of a kind with ``payload`` in their payload wait or run; without those postponed beyond
    ``until``."""
    return await fetch_value(
        connection,
        int,
        "SELECT count(*) FROM jobs.job WHERE kind = $1 AND failed_at IS NULL AND payload @> $2::jsonb"
        " AND ($3::timestamptz IS NULL OR run_at <= $3)",
        kind,
        msgspec.json.encode(payload).decode(),
        until,
    )


async def due(connection: Connection, kind: str, now: datetime) -> int:
    """How many jobs of a kind run or are ready to run at ``now``, without those postponed beyond it."""
    return await fetch_value(
        connection,
        int,
        "SELECT count(*) FROM jobs.job WHERE kind = $1 AND run_at <= $2 AND failed_at IS NULL",
        kind,
        now,
    )


_CLAIM = """
WITH due AS MATERIALIZED (
    SELECT id FROM jobs.job
    WHERE kind = ANY ($1::text[]) AND failed_at IS NULL AND run_at <= $4
      AND (claimed_until IS NULL OR claimed_until <= $4 OR claimed_until > $5)
      AND id <> ALL ($6::bigint[])
    ORDER BY run_at, id LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE jobs.job AS job SET
    claim = gen_random_uuid(), claimed_until = $3, tries = job.tries + 1,
    -- This run starts after the job was enqueued again, so it serves that request.
    again_at = CASE WHEN job.again_at > $4 THEN job.again_at END
FROM due WHERE job.id = due.id
RETURNING job.id, kind, key, payload, run_at, claim, claimed_until, tries, NULL::text AS lane
"""


async def claim(
    connection: Connection,
    kinds: Sequence[str],
    count: int,
    lease_s: float,
    now: datetime,
    running: Collection[int] = (),
) -> list[Job]:
    """Claims up to ``count`` due jobs, the longest due first, and skips those that another worker is just
    claiming. After ``lease_s``, the lease of all these kinds, any worker may claim them again. A job claimed
    for longer than that from now is claimed at once, because a wrong clock set its lease. ``running``: jobs
    that the caller runs already, which are not claimed even if their leases have expired."""
    until = now + timedelta(seconds=lease_s)
    longest_lease = until + timedelta(seconds=AHEAD_S)
    rows = await fetch(connection, Job, _CLAIM, list(kinds), count, until, now, longest_lease, list(running))
    return sorted(rows, key=lambda job: (job.run_at, job.id))


_CLAIM_THESE = """
WITH due AS MATERIALIZED (
    SELECT id FROM jobs.job
    WHERE id = ANY ($1::bigint[]) AND failed_at IS NULL
      AND (claimed_until IS NULL OR claimed_until <= $3 OR claimed_until > $4)
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs.job AS job SET
    claim = gen_random_uuid(), claimed_until = $2, tries = job.tries + 1,
    again_at = CASE WHEN job.again_at > $3 THEN job.again_at END
FROM due WHERE job.id = due.id
RETURNING job.id, kind, key, payload, run_at, claim, claimed_until, tries, lane
"""


async def claim_these(connection: Connection, ids: Sequence[int], lease_s: float, now: datetime) -> list[Job]:
    """Claims those of these jobs that are still free, in the order of ``ids``."""
    if not ids:
        return []
    until = now + timedelta(seconds=lease_s)
    longest_lease = until + timedelta(seconds=AHEAD_S)
    rows = await fetch(connection, Job, _CLAIM_THESE, list(ids), until, now, longest_lease)
    places = {job_id: place for place, job_id in enumerate(ids)}
    return sorted(rows, key=lambda job: places[job.id])


async def finish(connection: Connection, job: Job) -> bool:
    """Ends the job, in the transaction of its effects. False: another worker claimed it, and the caller must
    roll its effects back. A job that was enqueued again while it ran waits again."""
    row = await fetch_row(
        connection,
        tuple[datetime | None],
        "SELECT again_at FROM jobs.job WHERE id = $1 AND claim = $2 FOR UPDATE",
        job.id,
        job.claim,
    )
    if row is None:
        return False
    if row == (None,):
        await connection.execute("DELETE FROM jobs.job WHERE id = $1", job.id)
        return True
    await connection.execute(
        "UPDATE jobs.job SET claim = NULL, claimed_until = NULL, run_at = again_at, again_at = NULL,"
        " tries = 0, last_error = NULL, lane = NULL WHERE id = $1",
        job.id,
    )
    return True


async def postpone(connection: Connection, job: Job, run_at: datetime, error: str) -> bool:
    """Schedules a failed job again at ``run_at``, even if it was enqueued again in between, because it would
    fail again at once. False: the caller no longer owns it. ``error``, which the caller has redacted, is
    stored for operators."""
    return await _changes_row(
        connection,
        "UPDATE jobs.job SET claim = NULL, claimed_until = NULL, run_at = $3, last_error = $4,"
        " again_at = NULL, lane = NULL WHERE id = $1 AND claim = $2",
        job.id,
        job.claim,
        run_at,
        error,
    )


async def give_up(connection: Connection, job: Job, now: datetime, error: str) -> bool:
    """Gives up a job that failed for the last time, and keeps it for operators. If it was enqueued again
    in between it starts over instead. False: the caller no longer owns it."""
    return await _changes_row(
        connection,
        "UPDATE jobs.job SET claim = NULL, claimed_until = NULL, run_at = coalesce(again_at, run_at), tries "
        "= CASE WHEN again_at IS NULL THEN tries ELSE 0 END, failed_at = CASE WHEN again_at IS NULL THEN "
        "$3::timestamptz END, again_at = NULL, last_error = $4, lane = NULL WHERE id = $1 AND claim = $2",
        job.id,
        job.claim,
        now,
        error,
    )


async def renew(connection: Connection, job: Job, until: datetime) -> bool:
    """Extends the lease to ``until``. False: the caller no longer owns the job, or another transaction has
    its row locked; this does not wait for it, since no other worker can claim the job in between."""
    return await _changes_row(
        connection,
        "UPDATE jobs.job SET claimed_until = $3 WHERE id ="
        " (SELECT id FROM jobs.job WHERE id = $1 AND claim = $2 FOR UPDATE SKIP LOCKED)",
        job.id,
        job.claim,
        until,
    )


async def forget_failed(connection: Connection, before: datetime) -> None:
    """Deletes jobs that were given up before ``before``."""
    await connection.execute("DELETE FROM jobs.job WHERE failed_at < $1", before)


async def _changes_row(connection: Connection, statement: str, *args: object) -> bool:
    """Runs an UPDATE. Returns whether it changed a row."""
    return await connection.execute(statement, *args) != "UPDATE 0"
