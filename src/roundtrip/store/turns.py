"""Taking jobs of a kind in turn: owners go round in a circle, within bounds that all workers share. The
caller ends the transaction."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import asyncpg

from roundtrip.domain.our_clock import AHEAD_S
from roundtrip.domain.turns import Lane, Ready, choose

from . import jobs
from .jobs import Job

_LOCK = 4663_0014
MOST_OWNERS = 200
"""Looked at in one statement."""
MOST_LOOKS = 5
"""Of one lane; whoever comes next goes on from there."""
MOST_OF_OWNER = 8
"""Jobs of one owner that are looked at."""

_BUSY = """
SELECT lane, owner, host FROM jobs.job
WHERE kind = $1 AND claim IS NOT NULL AND lane IS NOT NULL AND claimed_until > $2 AND claimed_until <= $3
"""

_CIRCLE = """
WITH RECURSIVE circle AS (
    (SELECT owner, 1 AS place FROM jobs.job WHERE kind = $1 AND lane = $2 AND owner > $3 AND owner <= $4
     ORDER BY owner LIMIT 1)
    UNION ALL
    (SELECT following.owner, circle.place + 1 FROM circle CROSS JOIN LATERAL
        (SELECT owner FROM jobs.job WHERE kind = $1 AND lane = $2 AND owner > circle.owner AND owner <= $4
         ORDER BY owner LIMIT 1) AS following
     WHERE circle.place < $5)
)
SELECT circle.owner, found.id, found.host FROM circle LEFT JOIN LATERAL (
    SELECT id, host, run_at FROM jobs.job
    WHERE kind = $1 AND lane = $2 AND owner = circle.owner AND run_at <= $6
      AND (claimed_until IS NULL OR claimed_until <= $6 OR claimed_until > $7)
    ORDER BY run_at, id LIMIT $8
) AS found ON true
ORDER BY circle.place, found.run_at, found.id
"""
_LEAST, _MOST = -(2**63), 2**63 - 1


async def take(
    connection: asyncpg.Connection,
    kind: str,
    rooms: Sequence[tuple[Lane, int]],
    most: int,
    lease_s: float,
    now: datetime,
) -> list[Job]:
    """Takes up to so many jobs of each lane, and ``most`` of all. No other worker takes any until the
    transaction ends: so the bounds on owners and hosts hold for all of them together."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
    right_until = now + timedelta(seconds=lease_s + AHEAD_S)
    busy = await connection.fetch(_BUSY, kind, now, right_until)
    chosen: list[int] = []
    for lane, room in rooms:
        owners = Counter(row["owner"] for row in busy if row["lane"] == lane.name)
        hosts = Counter(row["host"] for row in busy if row["lane"] == lane.name)
        if (free := min(room, most - len(chosen))) > 0:
            found = await _of_lane(connection, kind, lane, free, owners, hosts, now, right_until)
            chosen += [job.id for job in found]
    return await jobs.claim_these(connection, chosen, lease_s, now)


async def _of_lane(
    connection: asyncpg.Connection,
    kind: str,
    lane: Lane,
    room: int,
    owners: Counter[int],
    hosts: Counter[str],
    now: datetime,
    right_until: datetime,
) -> list[Ready]:
    """Jobs of one lane, from behind the owner whose turn was the last; counts them in ``owners`` and
    ``hosts``."""
    began = await connection.fetchval(
        "SELECT owner FROM jobs.turn WHERE kind = $1 AND lane = $2", kind, lane.name
    )
    last = before = _LEAST if began is None else began
    found: list[Ready] = []
    for _ in range(MOST_LOOKS):
        circle = await _circle(connection, kind, lane, last, now, right_until)
        is_whole = len(circle) < MOST_OWNERS
        # Where the looks came round they are chosen already.
        circle = {owner: [job for job in of if job not in found] for owner, of in circle.items()}
        choice = choose(lane, circle, room - len(found), owners, hosts, is_whole=is_whole)
        found += choice.jobs
        owners.update(job.owner for job in choice.jobs)
        hosts.update(job.host for job in choice.jobs)
        last = last if choice.last is None else choice.last
        if is_whole or len(found) == room:
            break
    if last != before:
        await connection.execute(
            "INSERT INTO jobs.turn (kind, lane, owner) VALUES ($1, $2, $3)"
            " ON CONFLICT (kind, lane) DO UPDATE SET owner = excluded.owner",
            kind, lane.name, last,
        )  # fmt: skip
    return found


async def _circle(
    connection: asyncpg.Connection, kind: str, lane: Lane, after: int, now: datetime, right_until: datetime
) -> dict[int, list[Ready]]:
    """The owners behind ``after``, round to it, and what each has that could be run; as many as one look
    has."""
    circle: dict[int, list[Ready]] = {}
    for lower, upper in ((after, _MOST), (_LEAST, after)):
        most = MOST_OWNERS - len(circle)
        if most <= 0:
            break
        rows = await connection.fetch(
            _CIRCLE, kind, lane.name, lower, upper, most, now, right_until, MOST_OF_OWNER
        )
        for row in rows:
            waiting = circle.setdefault(row["owner"], [])
            if row["id"] is not None:
                waiting.append(Ready(row["id"], row["owner"], row["host"]))
    return circle
