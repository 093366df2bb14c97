"""Work to be done later. It is wished for on the caller's own connection: it is lost with the caller's
transaction, and only with it.

A job may be run more than once: who took it may die, and after the lease it is taken again. What it does
happens once: its effects and ``finish`` are one transaction, and ``finish`` knows whose the job is.

Of one kind and key there is one job. Wished for again while it waits: it runs at the earlier of both times,
with the newer payload. Wished for while it is being run, which may have begun too early to see why: it is run
once more. Wished for after it was given up: it begins anew.

Times are handed in, never the server's own. Payloads are ours: no text by strangers.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from roundtrip.domain.base.clock_age import AHEAD_S
from roundtrip.store.server.rows import Connection

CHANNEL = "jobs"
"""Notified of every wish, with its transaction."""

AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)
"""When to run what is wished for without a time: before all that has one, in the order of the wishes."""

Payload = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """A job that is ours until ``claimed_until``, or for as long after as nobody else takes it. ``tries``:
    how often it was taken, this time included. ``lane``: in which it waited, of kinds that go in turn."""

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
WITH wish AS (
    INSERT INTO jobs.job AS job (kind, key, payload, run_at)
    SELECT $1, key, $3::jsonb, $4
    FROM unnest($2::text[]) WITH ORDINALITY AS wished (key, place) ORDER BY place
    ON CONFLICT (kind, key) DO UPDATE SET
        payload = excluded.payload,
        -- Of one that is being run, too: a clock that was ahead may have taken it long before it is due.
        run_at = CASE WHEN job.failed_at IS NOT NULL THEN excluded.run_at
                      ELSE least(job.run_at, excluded.run_at) END,
        again_at = CASE WHEN job.claim IS NOT NULL THEN least(job.again_at, excluded.run_at) END,
        tries = CASE WHEN job.failed_at IS NULL THEN job.tries ELSE 0 END,
        failed_at = NULL,
        -- Of kinds that go in turn: it is sorted anew, by what is wished for now.
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
    """Wishes for one job, in the transaction that ``connection`` is in. ``run_at`` None: at once."""
    await enqueue_many(connection, kind, (key,), payload, run_at)


async def enqueue_many(
    connection: Connection,
    kind: str,
    keys: Sequence[str],
    payload: Payload | None = None,
    run_at: datetime | None = None,
) -> None:
    """Wishes for a job of one kind for each key, in one statement. A key may stand there twice."""
    if not keys:
        return
    # In order: two that wish for the same keys never wait for each other. Without a key twice: one statement
    # cannot change a row twice.
    ordered = sorted(set(keys))
    encoded = msgspec.json.encode(payload or {}).decode()
    await connection.execute(_ENQUEUE, kind, ordered, encoded, run_at or AT_ONCE, CHANNEL)


async def is_there(connection: Connection, kind: str, key: str) -> bool:
    """Whether such a job waits, is being run, or was given up not long ago."""
    found: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM jobs.job WHERE kind = $1 AND key = $2)", kind, key
    )
    return found


async def is_to_come(connection: Connection, kind: str, key: str) -> bool:
    """Whether such a job waits or is being run: not where it was given up."""
    found: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM jobs.job WHERE kind = $1 AND key = $2 AND failed_at IS NULL)", kind, key
    )
    return found


@dataclass(frozen=True, slots=True)
class PendingJob:
    """A job that waits or is being run. ``last_error``: why it failed the last time, if it did."""

    run_at: datetime
    last_error: str | None


async def to_come(connection: Connection, kind: str, key: str) -> PendingJob | None:
    """None: there is none, or it was given up."""
    row = await connection.fetchrow(
        "SELECT run_at, last_error FROM jobs.job WHERE kind = $1 AND key = $2 AND failed_at IS NULL",
        kind,
        key,
    )
    return None if row is None else PendingJob(row["run_at"], row["last_error"])


async def among(
    connection: Connection, kind: str, keys: Collection[str], given_up_since: datetime
) -> set[str]:
    """Those of the keys of which such a job waits, is being run, or was given up since then."""
    rows = await connection.fetch(
        "SELECT key FROM jobs.job WHERE kind = $1 AND key = ANY($2::text[])"
        " AND (failed_at IS NULL OR failed_at >= $3)",
        kind,
        list(keys),
        given_up_since,
    )
    return {row["key"] for row in rows}


async def waiting(connection: Connection, kind: str, payload: Payload) -> int:
    """How many of a kind with that in their payload are being run or are to come."""
    count: int = await connection.fetchval(
        "SELECT count(*) FROM jobs.job WHERE kind = $1 AND failed_at IS NULL AND payload @> $2::jsonb",
        kind,
        msgspec.json.encode(payload).decode(),
    )
    return count


async def due(connection: Connection, kind: str, now: datetime) -> int:
    """How many of a kind are being run, or could be by now; what failed and is run again later is not."""
    count: int = await connection.fetchval(
        "SELECT count(*) FROM jobs.job WHERE kind = $1 AND run_at <= $2 AND failed_at IS NULL", kind, now
    )
    return count


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
    -- This run begins after that wish, and is what was wished for.
    again_at = CASE WHEN job.again_at > $4 THEN job.again_at END
FROM due WHERE job.id = due.id
RETURNING job.id, kind, key, payload, run_at, claim, claimed_until, tries
"""


async def claim(
    connection: Connection,
    kinds: Sequence[str],
    count: int,
    lease_s: float,
    now: datetime,
    running: Collection[int] = (),
) -> list[Job]:
    """Takes up to ``count`` jobs that are due, the longest due first; those that another one is just taking
    are passed over. Once ``lease_s``, which is that of all these kinds, is over anybody may take them again;
    and at once what is claimed for longer than that from now: whoever did that had a wrong clock, or has.
    ``running``: jobs that the caller runs, whatever a clock says of their leases."""
    until = now + timedelta(seconds=lease_s)
    by_no_right_clock = until + timedelta(seconds=AHEAD_S)
    rows = await connection.fetch(_CLAIM, list(kinds), count, until, now, by_no_right_clock, list(running))
    found = [Job(**{**dict(row), "payload": msgspec.json.decode(row["payload"])}) for row in rows]
    return sorted(found, key=lambda job: (job.run_at, job.id))


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
    """Takes those of these jobs that are still free, in the order of ``ids``."""
    if not ids:
        return []
    until = now + timedelta(seconds=lease_s)
    rows = await connection.fetch(_CLAIM_THESE, list(ids), until, now, until + timedelta(seconds=AHEAD_S))
    places = {job_id: place for place, job_id in enumerate(ids)}
    found = [Job(**{**dict(row), "payload": msgspec.json.decode(row["payload"])}) for row in rows]
    return sorted(found, key=lambda job: places[job.id])


async def finish(connection: Connection, job: Job) -> bool:
    """The job is done; in the transaction of its effects. False: somebody else took it, and the caller rolls
    its effects back. It is put back where it was wished for again while it was run."""
    row = await connection.fetchrow(
        "SELECT again_at FROM jobs.job WHERE id = $1 AND claim = $2 FOR UPDATE", job.id, job.claim
    )
    if row is None:
        return False
    if row["again_at"] is None:
        await connection.execute("DELETE FROM jobs.job WHERE id = $1", job.id)
        return True
    await connection.execute(
        "UPDATE jobs.job SET claim = NULL, claimed_until = NULL, run_at = again_at, again_at = NULL,"
        " tries = 0, last_error = NULL, lane = NULL WHERE id = $1",
        job.id,
    )
    return True


async def postpone(connection: Connection, job: Job, run_at: datetime, error: str) -> bool:
    """The job failed and is run again at ``run_at``, also where it was wished for meanwhile: what failed just
    now would fail again. False: it is no longer ours. ``error`` is kept for people: cleaned by the caller."""
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
    """The job failed for the last time and is kept for people; where it was wished for meanwhile it begins
    anew instead. False: it is no longer ours."""
    return await _changes_row(
        connection,
        "UPDATE jobs.job SET claim = NULL, claimed_until = NULL, run_at = coalesce(again_at, run_at),"
        " tries = CASE WHEN again_at IS NULL THEN tries ELSE 0 END,"
        " failed_at = CASE WHEN again_at IS NULL THEN $3::timestamptz END, again_at = NULL, last_error = $4,"
        " lane = NULL WHERE id = $1 AND claim = $2",
        job.id,
        job.claim,
        now,
        error,
    )


async def renew(connection: Connection, job: Job, until: datetime) -> bool:
    """It is ours until then. False: it no longer is, or it is being written just now, which is not waited
    for: as long as that lasts nobody else can take it."""
    return await _changes_row(
        connection,
        "UPDATE jobs.job SET claimed_until = $3 WHERE id ="
        " (SELECT id FROM jobs.job WHERE id = $1 AND claim = $2 FOR UPDATE SKIP LOCKED)",
        job.id,
        job.claim,
        until,
    )


async def forget_failed(connection: Connection, before: datetime) -> None:
    """Takes away what was given up before then."""
    await connection.execute("DELETE FROM jobs.job WHERE failed_at < $1", before)


async def _changes_row(connection: Connection, statement: str, *given: object) -> bool:
    """Whether it changed a row."""
    done: str = await connection.execute(statement, *given)
    return done != "UPDATE 0"
