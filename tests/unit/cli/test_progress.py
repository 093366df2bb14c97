"""What is told of the sync's way where there is no terminal."""

import io

from rich.console import Console
from structlog.testing import capture_logs

from roundtrip.cli.progress import Lines, TimeLeft, show_progress
from roundtrip.sync.run import Progress as Step
from support.clocks import Clock


def test_a_line_every_ten_seconds_tells_how_far_how_fast_and_how_long() -> None:
    clock = Clock(100.0)
    with capture_logs() as answer:
        lines = Lines(clock)
        for passed_s in range(21):
            clock.now_s = 100.0 + passed_s
            lines(Step(number=10 * passed_s, head=500, rows=1000 * passed_s))
    line = {"event": "followed", "log_level": "info", "head": 500}
    assert answer == [
        {**line, "block": 0, "rows": 0, "rows_per_s": 0, "eta_s": None},
        {**line, "block": 100, "rows": 10_000, "rows_per_s": 1000, "eta_s": 40},
        {**line, "block": 200, "rows": 20_000, "rows_per_s": 1000, "eta_s": 30},
    ]


def test_how_long_is_by_the_pace_of_late_and_rounded_up() -> None:
    clock = Clock(100.0)
    left = TimeLeft(clock)
    assert left.update(Step(0, 1000, 0)) is None
    clock.now_s += 10
    assert left.update(Step(900, 1000, 0)) == 2
    clock.now_s += 10
    # Slower now, and the chain goes on.
    assert left.update(Step(910, 1010, 0)) == 100


def test_at_the_newest_block_nothing_is_left_however_it_came_there() -> None:
    left = TimeLeft(Clock(100.0))
    assert left.update(Step(1000, 1000, 0)) == 0
    assert left.update(Step(1001, 1000, 0)) == 0


def test_back_after_a_fork_or_on_from_what_is_older_it_is_measured_anew() -> None:
    clock = Clock(100.0)
    left = TimeLeft(clock)
    left.update(Step(100, 1000, 0, older=True))
    for step in (Step(200, 1000, 0), Step(150, 1000, 0), Step(150, 1000, 0)):
        clock.now_s += 1
        assert left.update(step) is None
    clock.now_s += 1
    assert left.update(Step(160, 1000, 0)) == 84


def test_without_a_terminal_it_is_lines() -> None:
    with capture_logs() as rows, show_progress(Console(file=io.StringIO())) as tell:
        tell(Step(1, 2, 3, older=True))
    assert [line["event"] for line in rows] == ["read older blocks"]
