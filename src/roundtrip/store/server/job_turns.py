"""Claims jobs of a kind in turn: owners go round in a circle, within limits that all workers share. The
caller ends the transaction."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from roundtrip.domain.base.clock_age import AHEAD_S
from roundtrip.domain.base.job_turns import Lane, ReadyJob, choose
from roundtrip.store.server.rows import Connection, fetch

from . import jobs
from .jobs import Job

_LOCK = 4663_0014
"""The advisory lock that is held to claim jobs in turn."""
MAX_OWNERS = 200
"""Owners that one statement reads."""
MAX_LOOKS = 5
"""Statements that one claim runs for a lane; the next claim goes on from there."""
MAX_OF_OWNER = 8
"""Jobs that are read of one owner."""

_LANES = """
SELECT lane.name, turn.owner FROM unnest($2::text[]) AS lane (name)
LEFT JOIN jobs.turn AS turn ON turn.kind = $1 AND turn.lane = lane.name
WHERE (SELECT job.owner FROM jobs.job WHERE kind = $1 AND job.lane = lane.name
       AND (claimed_until IS NULL OR claimed_until <= $3 OR claimed_until > $4)
       -- By the index of turns, and by no other.
       ORDER BY job.owner LIMIT 1) IS NOT NULL
"""

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
      AND (claimed_until IS NULL OR claimed_until <= $6 OR claimed_until > $7) AND id <> ALL ($9::bigint[])
    ORDER BY run_at, id LIMIT $8
) AS found ON true
ORDER BY circle.place, found.run_at, found.id
"""
_MOVE = """
INSERT INTO jobs.turn (kind, lane, owner) VALUES ($1, $2, $3)
ON CONFLICT (kind, lane) DO UPDATE SET owner = excluded.owner
"""
_SPARE_OWNERS = 16
"""Owners that are read beyond the room: some may have no job that can be claimed."""
_MIN_OWNER, _MAX_OWNER = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class WorkerRoom:
    """How many jobs a worker can claim. ``rooms``: of each lane; ``most``: of all lanes. ``running``: jobs
    that it runs already, which are not claimed even if their leases have expired."""

    kind: str
    rooms: Sequence[tuple[Lane, int]]
    most: int
    lease_s: float
    running: Sequence[int] = ()


async def take(connection: Connection, wanted: WorkerRoom, now: datetime) -> list[Job]:
    """Claims as many jobs as there is room for. No other worker claims any until the transaction ends, so the
    limits per owner and host hold across all workers."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
    longest_lease = now + timedelta(seconds=wanted.lease_s + AHEAD_S)
    names = [lane.name for lane, room in wanted.rooms if room > 0]
    turns = await fetch(connection, tuple[str, int | None], _LANES, wanted.kind, names, now, longest_lease)
    if not turns:
        return []
    last_owners = dict(turns)
    busy = await fetch(connection, tuple[str, int, str], _BUSY, wanted.kind, now, longest_lease)
    chosen: list[int] = []
    for lane, room in wanted.rooms:
        if lane.name in last_owners and (free := min(room, wanted.most - len(chosen))) > 0:
            search = _LaneSearch(wanted, lane, now, longest_lease, last_owners[lane.name])
            search.owners.update(owner for name, owner, _ in busy if name == lane.name)
            search.hosts.update(host for name, _, host in busy if name == lane.name)
            chosen += [job.id for job in await search.find_ready(connection, free)]
    return await jobs.claim_these(connection, chosen, wanted.lease_s, now)


@dataclass(slots=True)
class _LaneSearch:
    """A search for jobs of one lane. ``longest_lease``: a lease beyond this was set by a wrong clock, and is
    ignored. ``last``: the owner who had the last turn; None: no owner had one. ``owners``, ``hosts``: how
    many jobs run for each owner, and to each host."""

    wanted: WorkerRoom
    lane: Lane
    now: datetime
    longest_lease: datetime
    last: int | None
    owners: Counter[int] = field(default_factory=Counter)
    hosts: Counter[str] = field(default_factory=Counter)

    async def find_ready(self, connection: Connection, room: int) -> list[ReadyJob]:
        """At most ``room`` jobs that may run now, starting with the owner after ``last``."""
        last_before, ready = self.last, list[ReadyJob]()
        for _ in range(MAX_LOOKS):
            most = min(MAX_OWNERS, 2 * room + _SPARE_OWNERS)
            circle = await self._read_circle(connection, most)
            is_whole = len(circle) < most
            # A search that has gone round the circle finds jobs that it chose already.
            circle = {owner: [job for job in jobs if job not in ready] for owner, jobs in circle.items()}
            free = room - len(ready)
            chosen, last = choose(self.lane, circle, free, self.owners, self.hosts, is_whole=is_whole)
            ready += chosen
            self.owners.update(job.owner for job in chosen)
            self.hosts.update(job.host for job in chosen)
            self.last = self.last if last is None else last
            if is_whole or len(ready) == room:
                break
        if self.last != last_before:
            await connection.execute(_MOVE, self.wanted.kind, self.lane.name, self.last)
        return ready

    async def _read_circle(self, connection: Connection, most: int) -> dict[int, list[ReadyJob]]:
        """At most ``most`` owners, from the one after ``last`` round to it, with the ready jobs of each."""
        circle: dict[int, list[ReadyJob]] = {}
        last = _MIN_OWNER if self.last is None else self.last
        for lower, upper in ((last, _MAX_OWNER), (_MIN_OWNER, last)):
            if (free := most - len(circle)) <= 0 or lower == upper:
                break
            rows = await fetch(
                connection, tuple[int, int | None, str | None], _CIRCLE, self.wanted.kind, self.lane.name,
                lower, upper, free, self.now, self.longest_lease, MAX_OF_OWNER, list(self.wanted.running),
            )  # fmt: skip
            for owner, job_id, host in rows:
                waiting = circle.setdefault(owner, [])
                if job_id is not None and host is not None:
                    waiting.append(ReadyJob(job_id, owner, host))
        return circle
