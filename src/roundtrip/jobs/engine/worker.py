"""Takes jobs from the database and runs them. A handler reads with no transaction open and returns its
effect; the worker applies the effect and finishes the job in one transaction. A worker that dies leaves
nothing half done: its jobs are taken again after the lease.
"""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import asyncpg
import structlog
from structlog.contextvars import bind_contextvars

from roundtrip.chain.rpc.background import run_in_background
from roundtrip.domain.base.clock_age import age_s
from roundtrip.domain.base.job_turns import Lane
from roundtrip.domain.base.metrics import Measures
from roundtrip.store.server import job_turns as turns
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

from .loop import JobLoop, describe_error

WAITS_S = (5.0, 30.0, 120.0, 600.0, 3600.0)
"""Waits after the first failure, the second and so on; the last one repeats."""
MAX_TRIES = 28
"""About a day with these waits: jobs outlast a node that is unavailable that long."""
POLL_S = 2.0
"""How often the worker looks for jobs that have become due, and for those whose notification was lost."""
END_S = 5.0
"""How long a stopping worker waits for its cancelled jobs."""
_DATABASE_S = 5.0
log = structlog.get_logger(__name__)


class WorkerContext(Protocol):
    """What a worker needs of the context that it passes to its handlers."""

    @property
    def pool(self) -> asyncpg.Pool: ...

    @property
    def now_s(self) -> Callable[[], float]: ...


C = TypeVar("C", bound=WorkerContext)
Effect = Callable[[Connection], Awaitable[None]]
"""What a job writes to the database, in the worker's transaction."""


async def do_nothing(connection: Connection) -> None:
    """The effect of a job that writes nothing."""


@dataclass(frozen=True, slots=True)
class Turns:
    """How the owners of a kind's jobs take turns. ``sort`` puts due jobs into the lanes and returns whether
    there are more."""

    lanes: tuple[Lane, ...]
    sort: Callable[[Connection, datetime], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class JobKind(Generic[C]):
    """One kind of job. ``lease_s``: after this time another worker may take over from one that died; a live
    worker renews the lease. ``max_running``: the most jobs of this kind in one worker. ``timeout_s``: of the
    handler. ``retry_waits_s``: as ``WAITS_S``. ``most_tries``: after as many failed tries a job is given up.
    ``start_key``: the key of the job that every worker enqueues when it starts; None: none.
    ``on_clock_set_back``: an extra step for when the system clock was set back. ``turns`` None: the job that
    is due longest goes first."""

    handler: Callable[[C, Job], Awaitable[Effect]]
    lease_s: float
    max_running: int
    timeout_s: float
    retry_waits_s: tuple[float, ...] = WAITS_S
    most_tries: int = MAX_TRIES
    start_key: str | None = None
    on_clock_set_back: Callable[[Connection, datetime], Awaitable[None]] | None = None
    turns: Turns | None = None

    def wait_s(self, tries: int, drawn: float) -> float:
        """The wait after ``tries`` failures. ``drawn``, from 0 to 1, varies it by up to 25 % either way."""
        return self.retry_waits_s[min(tries, len(self.retry_waits_s)) - 1] * (0.75 + drawn / 2)


class _JobLost(Exception):
    """Another worker took the job while this one ran it."""


class NotYet(Exception):
    """A handler raises this when the job cannot be done now, though nothing failed."""


class NeverFinished(Exception):
    """The job was taken too often by workers that died while they ran it."""


class Worker(Generic[C]):
    """Runs jobs of ``kinds``. ``chance`` draws from 0 to 1; the context gives the time."""

    def __init__(
        self,
        ctx: C,
        kinds: Mapping[str, JobKind[C]],
        chance: Callable[[], float],
        poll_s: float = POLL_S,
        end_s: float = END_S,
        measures: Measures | None = None,
    ) -> None:
        self._ctx = ctx
        self._kinds = kinds
        self._chance = chance
        self._end_s = end_s
        self._measures = measures or Measures()
        self._running: dict[str, dict[asyncio.Task[None], Job]] = {name: {} for name in kinds}
        self._places: dict[tuple[str, str], set[asyncio.Task[None]]] = {}
        """By kind and lane: the tasks that occupy a place."""
        self._loop = JobLoop(ctx.pool, jobs.CHANNEL, poll_s, "taking jobs failed", "taking jobs works again")
        self._started = False
        self._latest_s = 0.0
        """The latest time of the system clock since it was last set back."""

    async def run(self) -> None:
        """Runs until it is cancelled, and waits for a lost database to return. Another worker takes the jobs
        that were still running, after the lease."""
        try:
            await self._loop.run(self._start_once, self._turn)
        finally:
            await self._stop()

    async def take(self) -> list[asyncio.Task[None]]:
        """One round: starts due jobs as far as there is room, and returns their tasks."""
        tasks = []
        for name, kind in self._kinds.items():
            room = kind.max_running - len(self._running[name])
            if room <= 0:
                continue
            async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                running = [job.id for job in self._running[name].values()]
                if kind.turns is None:
                    taken = await jobs.claim(connection, [name], room, kind.lease_s, self._now(), running)
                else:
                    taken = await self._take_turns(connection, name, kind, room, running)
            tasks += [self._start_job(kind, job) for job in taken]
        return tasks

    async def _take_turns(
        self, connection: Connection, name: str, kind: JobKind[C], room: int, running: Sequence[int]
    ) -> list[Job]:
        """Takes as many jobs as their lanes have free places, ``room`` at most."""
        assert kind.turns is not None
        lanes = kind.turns.lanes
        rooms = [(lane, lane.places - len(self._places.get((name, lane.name), ()))) for lane in lanes]
        async with connection.transaction():
            is_more = await kind.turns.sort(connection, self._now())
            worker_room = turns.WorkerRoom(name, rooms, room, kind.lease_s, running)
            taken = await turns.take(connection, worker_room, self._now())
        if is_more:
            self._loop.wake.set()
        return taken

    async def check_clock(self) -> None:
        """After the system clock was set back, enqueues periodic jobs again, which would otherwise wait for
        the time it was set back by, and renews the leases of running jobs, so that no other worker takes
        them."""
        now_s = self._ctx.now_s()
        if age_s(self._latest_s, now_s) is None:
            log.warning("the clock was set back", by_s=int(self._latest_s - now_s))
            async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                for name, kind in self._kinds.items():
                    for job in [*self._running[name].values()]:
                        await self._renew(connection, kind, job)
            await self.start()
            async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                for kind in self._kinds.values():
                    if kind.on_clock_set_back is not None:
                        async with connection.transaction():
                            await kind.on_clock_set_back(connection, self._now())
            self._latest_s = now_s
        self._latest_s = max(self._latest_s, now_s)

    async def start(self) -> None:
        """Enqueues the jobs that every worker enqueues when it starts."""
        async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection, connection.transaction():
            for name, kind in self._kinds.items():
                if kind.start_key is not None:
                    await jobs.enqueue(connection, name, kind.start_key)

    async def _start_once(self) -> None:
        if not self._started:
            await self.start()
            self._started = True

    async def _turn(self) -> None:
        await self.check_clock()
        await self.take()

    def _start_job(self, kind: JobKind[C], job: Job) -> asyncio.Task[None]:
        task = asyncio.create_task(self._run_measured(kind, job), name=f"{job.kind} {job.key}")
        self._running[job.kind][task] = job

        def forget(done: asyncio.Task[None]) -> None:
            del self._running[job.kind][done]
            self._loop.wake.set()

        task.add_done_callback(forget)
        if kind.turns is not None and job.lane is not None:
            self._occupy_place(next(lane for lane in kind.turns.lanes if lane.name == job.lane), job, task)
        return task

    def _occupy_place(self, lane: Lane, job: Job, task: asyncio.Task[None]) -> None:
        """The task occupies a place of its lane until it is done, or for ``lane.hold_s`` at most."""
        occupants = self._places.setdefault((job.kind, lane.name), set())
        occupants.add(task)

        def free_place(*_: object) -> None:
            if task in occupants:
                occupants.discard(task)
                self._loop.wake.set()

        task.add_done_callback(free_place)
        if lane.hold_s is not None:
            timer = asyncio.get_running_loop().call_later(lane.hold_s, free_place)
            task.add_done_callback(lambda _: timer.cancel())

    async def _run_measured(self, kind: JobKind[C], job: Job) -> None:
        # Puts the job's id into every log line of this task.
        bind_contextvars(job=job.id)
        began_s = time.perf_counter()
        with self._measures.span("job", job.kind, is_root=True) as note:
            note("job", job.id)
            outcome = await self._run_job(kind, job)
            note("ended", outcome)
        self._measures.observe("job", job.kind, outcome, time.perf_counter() - began_s)

    async def _run_job(self, kind: JobKind[C], job: Job) -> str:
        """Runs the handler and applies its effect. Returns the outcome: done, lost or failed."""
        try:
            if job.tries > kind.most_tries:
                raise NeverFinished(f"taken {job.tries - 1} times")
            async with contextlib.AsyncExitStack() as stack:
                # Renewed until the job's row is locked: from then on no other worker can take the job, and a
                # renewal would wait for this transaction.
                async with run_in_background(self._keep_renewing(kind, job), "renewing"):
                    async with asyncio.timeout(kind.timeout_s):
                        effect = await kind.handler(self._ctx, job)
                    acquiring = self._ctx.pool.acquire(timeout=_DATABASE_S)
                    connection = await stack.enter_async_context(acquiring)
                    await stack.enter_async_context(connection.transaction())
                    await effect(connection)
                if not await jobs.finish(connection, job):
                    raise _JobLost
        except _JobLost:
            log.info("another worker took the job", kind=job.kind, key=job.key)
            return "lost"
        except Exception as error:
            await self._record_failure(kind, job, error)
            return "failed"
        return "done"

    async def _record_failure(self, kind: JobKind[C], job: Job, error: Exception) -> None:
        is_last, text = job.tries >= kind.most_tries, describe_error(error)
        event = "gave up a job" if is_last else "a job failed"
        log.warning(
            event, kind=job.kind, key=job.key, tries=job.tries, error=text, where=error_location(error)
        )
        run_at = self._now() + timedelta(seconds=kind.wait_s(job.tries, self._chance()))
        try:
            async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                if is_last:
                    await jobs.give_up(connection, job, self._now(), text)
                else:
                    await jobs.postpone(connection, job, run_at, text)
        except Exception as database_error:
            log.warning(
                "recording a failure failed", kind=job.kind, key=job.key, error=describe_error(database_error)
            )

    async def _keep_renewing(self, kind: JobKind[C], job: Job) -> None:
        """Renews the lease until it is cancelled, however long the job takes."""
        while True:
            await asyncio.sleep(kind.lease_s / 3)
            # A renewal that fails, or a lost lease, is detected when the job is finished.
            with contextlib.suppress(Exception):
                async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                    await self._renew(connection, kind, job)

    async def _renew(self, connection: Connection, kind: JobKind[C], job: Job) -> None:
        await jobs.renew(connection, job, self._now() + timedelta(seconds=kind.lease_s))

    async def _stop(self) -> None:
        tasks = [task for running in self._running.values() for task in running]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._end_s)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._ctx.now_s(), UTC)


def error_location(error: Exception) -> str:
    """The file and line that raised the error."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "nowhere"
