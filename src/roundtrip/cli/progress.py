"""The sync's progress: a bar at a terminal, else a log line every ten seconds."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator

import structlog
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from roundtrip.sync.run import Progress as Step

_LINE_EVERY_S = 10.0
log = structlog.get_logger(__name__)


@contextlib.contextmanager
def show_progress(console: Console) -> Iterator[Callable[[Step], None]]:
    """Yields a function that takes the sync's steps and shows them."""
    if not console.is_terminal:
        yield Lines(time.monotonic)
        return
    bar = Progress(
        TextColumn("blocks"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} rows/s"),
        TimeRemainingColumn(),
        console=console,
    )
    with bar:
        yield Bar(bar, time.monotonic)


class Rate:
    """Rows a second, measured anew after at least a second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since_s, self._rows = clock(), 0
        self.per_s = 0

    def update(self, rows: int) -> int:
        """The rate, after ``rows`` rows since the start."""
        passed_s = self._clock() - self._since_s
        if passed_s >= 1.0:
            self.per_s = int((rows - self._rows) / passed_s)
            self._since_s, self._rows = self._clock(), rows
        return self.per_s


class Bar:
    """Shows blocks done of all, rows a second, and the time left."""

    def __init__(self, bar: Progress, clock: Callable[[], float]) -> None:
        self._bar, self._rate = bar, Rate(clock)
        self._task = bar.add_task("", total=None, rate=0)

    def __call__(self, step: Step) -> None:
        self._bar.update(
            self._task,
            completed=step.number,
            total=max(step.head, step.number),
            rate=self._rate.update(step.rows),
        )


class TimeLeft:
    """The time left, at the pace since the last update."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: tuple[float, Step] | None = None

    def update(self, step: Step) -> int | None:
        """Whole seconds, rounded up; None: not known yet, as after a rewind or the end of the history
        backfill."""
        now_s, since = self._clock(), self._since
        self._since = now_s, step
        if step.number >= step.head:
            return 0
        if since is None or since[1].older != step.older or step.number <= since[1].number:
            return None
        pace = (now_s - since[0]) / (step.number - since[1].number)
        return math.ceil((step.head - step.number) * pace)


class Lines:
    """Logs a line every ten seconds; ``eta_s`` None: not known."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._rate, self._left = clock, Rate(clock), TimeLeft(clock)
        self._next_s = clock()

    def __call__(self, step: Step) -> None:
        rate = self._rate.update(step.rows)
        if self._clock() >= self._next_s:
            self._next_s = self._clock() + _LINE_EVERY_S
            done = "read older blocks" if step.older else "followed"
            eta_s = self._left.update(step)
            log.info(done, block=step.number, head=step.head, rows=step.rows, rows_per_s=rate, eta_s=eta_s)
