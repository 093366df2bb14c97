"""Fair order of jobs. Owners take turns in a circle, one job a turn, within limits of jobs at once per owner
and per host. Pure."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lane:
    """Slots for jobs of one kind. ``places``: the slots of one worker. ``max_per_owner``, ``max_per_host``:
    jobs at once, over all workers. ``hold_s``: a longer run gives up its slot and continues without one;
    None: it keeps its slot."""

    name: str
    places: int
    max_per_owner: int
    max_per_host: int
    hold_s: float | None = None


@dataclass(frozen=True, slots=True)
class ReadyJob:
    """A job that could run now. ``host``: the remote server that it calls."""

    id: int
    owner: int
    host: str


def choose(
    lane: Lane,
    circle: Mapping[int, Sequence[ReadyJob]],
    room: int,
    busy_owners: Mapping[int, int],
    busy_hosts: Mapping[str, int],
    *,
    is_whole: bool,
) -> tuple[list[ReadyJob], int | None]:
    """Up to ``room`` jobs, and the owner after whom the next choice starts; None: where this one started.
    ``circle``: the jobs that each owner has waiting, in its order; owners in the order of their turns.
    ``is_whole``: ``circle`` has all owners, so an owner may get a second turn. ``busy_owners``,
    ``busy_hosts``: how many jobs of the lane run already for each owner, and to each host."""
    owners, hosts = Counter(busy_owners), Counter(busy_hosts)
    waiting = {owner: list(jobs) for owner, jobs in circle.items()}
    chosen: list[ReadyJob] = []
    last: int | None = None
    turns = deque(waiting)
    while turns and len(chosen) < room:
        owner = turns.popleft()
        job = next((ready for ready in waiting[owner] if hosts[ready.host] < lane.max_per_host), None)
        if owners[owner] >= lane.max_per_owner or job is None:
            # In a part of the circle an owner has had its turn even if none of its jobs was chosen.
            last = last if is_whole else owner
            continue
        waiting[owner].remove(job)
        chosen.append(job)
        owners[owner] += 1
        hosts[job.host] += 1
        last = owner
        if is_whole:
            turns.append(owner)
    return chosen, last
