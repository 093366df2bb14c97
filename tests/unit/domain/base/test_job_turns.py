"""Whose turn it is, over seeded random crowds: nobody waits longer than a round, and no bound is passed."""

import random
from collections import Counter

import pytest

from roundtrip.domain.base.job_turns import Lane, ReadyJob, choose
from roundtrip.domain.watch.channels import (
    HOST_ROWS,
    LANES,
    MAX_AT_ONCE,
    TURN_ROWS,
    host_of,
    rows_that_fit,
    smooth_answer_ms,
)

LANE = Lane("some", places=8, max_per_owner=2, max_per_host=3)
SEEDS = range(40)


class JobOwners:
    """Owners with jobs that run until they are ended. ``last``: whose turn was the last one."""

    def __init__(self, drawn: random.Random) -> None:
        self.drawn = drawn
        self.waiting: dict[int, list[ReadyJob]] = {}
        self.running: list[ReadyJob] = []
        self.last = -1
        self.number = 0

    def wish(self, owner: int, host: str) -> None:
        self.number += 1
        self.waiting.setdefault(owner, []).append(ReadyJob(self.number, owner, host))

    def circle(self) -> dict[int, list[ReadyJob]]:
        owners = sorted(self.waiting, key=lambda owner: (owner <= self.last, owner))
        return {owner: self.waiting[owner] for owner in owners}

    def take(self, room: int) -> list[ReadyJob]:
        chosen, last = choose(
            LANE,
            self.circle(),
            room,
            Counter(job.owner for job in self.running),
            Counter(job.host for job in self.running),
            is_whole=True,
        )
        self.last = self.last if last is None else last
        for job in chosen:
            self.waiting[job.owner].remove(job)
            if not self.waiting[job.owner]:
                del self.waiting[job.owner]
        self.running += chosen
        return chosen

    def end_some(self) -> None:
        self.running = [job for job in self.running if self.drawn.random() < 0.6]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_bound_is_passed_and_no_place_is_left_empty_while_somebody_may_have_it(seed: int) -> None:
    drawn = random.Random(seed)
    crowd = JobOwners(drawn)
    for _ in range(60):
        for _ in range(drawn.randrange(6)):
            crowd.wish(drawn.randrange(9), f"h{drawn.randrange(4)}")
        room = drawn.randrange(LANE.places + 1)
        taken = crowd.take(room)
        owners = Counter(job.owner for job in crowd.running)
        hosts = Counter(job.host for job in crowd.running)
        assert len(taken) <= room
        assert all(count <= LANE.max_per_owner for count in owners.values())
        assert all(count <= LANE.max_per_host for count in hosts.values())
        if len(taken) < room:
            left = [job for jobs in crowd.waiting.values() for job in jobs]
            assert all(
                owners[job.owner] == LANE.max_per_owner or hosts[job.host] == LANE.max_per_host
                for job in left
            )
        crowd.end_some()


@pytest.mark.parametrize("seed", SEEDS)
def test_of_owners_who_always_have_more_none_gets_two_turns_ahead(seed: int) -> None:
    drawn = random.Random(seed)
    crowd, turns = JobOwners(drawn), Counter[int]()
    owners = drawn.sample(range(1000), drawn.randrange(2, 30))
    for _ in range(80):
        for owner in owners:
            while len(crowd.waiting.get(owner, [])) < drawn.randrange(3, 6):
                crowd.wish(owner, f"h{owner}")
        turns.update(job.owner for job in crowd.take(drawn.randrange(1, 4)))
        crowd.running.clear()
        counts = [turns[owner] for owner in owners]
        assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_one_message_waits_for_one_round_at_most_however_much_others_have(seed: int) -> None:
    drawn = random.Random(seed)
    crowd = JobOwners(drawn)
    others = drawn.sample(range(1000), drawn.randrange(1, 60))
    for owner in others:
        for _ in range(5):
            crowd.wish(owner, f"h{owner}")
    for _ in range(drawn.randrange(40)):
        crowd.take(1)
        crowd.running.clear()
    crowd.wish(1000 if drawn.random() < 0.5 else -1, "late")
    late = crowd.number
    for turn in range(len(others) + 1):
        if any(job.id == late for job in crowd.take(1)):
            return
        crowd.running.clear()
        assert turn < len(others)


def test_where_only_a_part_of_the_circle_is_known_each_has_one_turn_and_it_goes_on_behind_them() -> None:
    circle = {7: [ReadyJob(1, 7, "a"), ReadyJob(2, 7, "a")], 8: [ReadyJob(3, 8, "full")], 9: []}
    busy = {"full": LANE.max_per_host}
    assert choose(LANE, circle, 8, {}, busy, is_whole=False) == ([ReadyJob(1, 7, "a")], 9)
    assert choose(LANE, circle, 1, {}, busy, is_whole=False) == ([ReadyJob(1, 7, "a")], 7)
    assert choose(LANE, {8: circle[8]}, 8, {}, busy, is_whole=True) == ([], None)


def test_the_lanes() -> None:
    assert [(one.name, one.places, one.max_per_owner, one.max_per_host, one.hold_s) for one in LANES] == [
        ("urgent", 16, 2, 4, 0.5),
        ("normal", 64, 1, 16, 0.5),
        ("unproven", 8, 2, 2, 0.5),
        ("slow", 16, 1, 4, None),
    ]
    assert sum(one.places for one in LANES) < MAX_AT_ONCE == 256


def test_a_target_is_slow_after_one_slow_answer_and_quick_again_after_several() -> None:
    assert [smooth_answer_ms(0, 80), smooth_answer_ms(80, 9_500)] == [80, 9_500]
    took_ms, quick = 9_500, 0
    while took_ms > 1000:
        took_ms, quick = smooth_answer_ms(took_ms, 50), quick + 1
    assert quick == 8


def test_whose_host_a_target_counts_against() -> None:
    assert host_of("https://a.example/hooks…") == "a.example"
    assert host_of("http://127.0.0.1:9000/a") == "127.0.0.1:9000"
    assert host_of("discord.com/api/webhooks/12") == "discord.com/api/webhooks/12"


def test_how_many_messages_have_room_in_a_hosts_minute() -> None:
    assert rows_that_fit([1] * 100, HOST_ROWS) == TURN_ROWS
    assert rows_that_fit([1] * 100, 7) == 7
    assert rows_that_fit([50, 1], HOST_ROWS) == 1
    assert rows_that_fit([50, 1], 49) == 0
    assert rows_that_fit([15, 5, 1], HOST_ROWS) == 2
    assert rows_that_fit([], HOST_ROWS) == 0
