"""Whose turn it is. Owners go round in a circle with one job a turn, within bounds on what one owner and one
host have at once. Pure."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lane:
    """Places for jobs of one sort. ``places``: of one worker. ``of_owner``, ``of_host``: at most so many at
    once, of all workers. ``keeps_s``: a run that takes longer gives its place to another and goes on without
    one; None: it keeps it."""

    name: str
    places: int
    of_owner: int
    of_host: int
    keeps_s: float | None = None


@dataclass(frozen=True, slots=True)
class ReadyJob:
    """A job that could be run now."""

    id: int
    owner: int
    host: str


@dataclass(frozen=True, slots=True)
class TurnChoice:
    """``last``: the owner behind whom the next choice begins; None: where this one began."""

    jobs: list[ReadyJob]
    last: int | None


def choose(
    lane: Lane,
    circle: Mapping[int, Sequence[ReadyJob]],
    room: int,
    busy_owners: Mapping[int, int],
    busy_hosts: Mapping[str, int],
    *,
    is_whole: bool,
) -> TurnChoice:
    """Up to ``room`` jobs. ``circle``: what each owner has waiting, in its order; the owners in the order of
    their turns. ``is_whole``: these are all owners, so that one may have a second turn. ``busy_owners``,
    ``busy_hosts``: how many jobs of the lane each has at once already."""
    owners, hosts = Counter(busy_owners), Counter(busy_hosts)
    waiting = {owner: list(jobs) for owner, jobs in circle.items()}
    chosen: list[ReadyJob] = []
    last: int | None = None
    turns = deque(waiting)
    while turns and len(chosen) < room:
        owner = turns.popleft()
        found = next((job for job in waiting[owner] if hosts[job.host] < lane.of_host), None)
        if owners[owner] >= lane.of_owner or found is None:
            # In a part of the circle also those have had their turn that nothing was chosen of.
            last = last if is_whole else owner
            continue
        waiting[owner].remove(found)
        chosen.append(found)
        owners[owner] += 1
        hosts[found.host] += 1
        last = owner
        if is_whole:
            turns.append(owner)
    return TurnChoice(chosen, last)
