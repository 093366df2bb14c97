"""Takes jobs and runs them. A run reads first, with no transaction open, and gives its effect; the effect and
the end of the job are one transaction. A worker that dies leaves nothing half done: after the lease its jobs
are taken again.
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
"""After the first failure, the second and so on; after the last of them the same again."""
MOST_TRIES = 28
"""With these waits a day: so long a node may be away."""
POLL_S = 2.0
"""How often it is looked for what is due by now, and for what no word came of."""
END_S = 5.0
"""How long its end waits for what is under way to let go."""
_DATABASE_S = 5.0
log = structlog.get_logger(__name__)


class Works(Protocol):
    """What a worker needs of the context that it hands to its handlers."""

    @property
    def pool(self) -> asyncpg.Pool: ...

    @property
    def now_s(self) -> Callable[[], float]: ...


C = TypeVar("C", bound=Works)
Effect = Callable[[Connection], Awaitable[None]]
"""What a job does to the database, in a transaction that is not its own."""


async def nothing(connection: Connection) -> None:
    """The effect of a job that has none."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Of a kind whose owners take turns. ``sort``: puts what is due into the lanes; whether there is more."""

    lanes: tuple[Lane, ...]
    sort: Callable[[Connection, datetime], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Kind(Generic[C]):
    """``lease_s``: after how long another may take over from a worker that died; one that lives renews it.
    ``at_once``: so many of the kind in one worker. ``limit_s``: a handler that takes longer has failed.
    ``at_start``: the key of the one that every worker wishes for when it starts. ``put_back``: what is to be
    done besides when our clock was put back. ``turns``: None: the longest due goes first."""

    handler: Callable[[C, Job], Awaitable[Effect]]
    lease_s: float
    at_once: int
    limit_s: float
    waits_s: tuple[float, ...] = WAITS_S
    most_tries: int = MOST_TRIES
    at_start: str | None = None
    put_back: Callable[[Connection, datetime], Awaitable[None]] | None = None
    turns: Turns | None = None

    def wait_s(self, tries: int, drawn: float) -> float:
        """How long to wait after ``tries``. ``drawn``, 0 to 1, spreads it by a quarter to both sides."""
        return self.waits_s[min(tries, len(self.waits_s)) - 1] * (0.75 + drawn / 2)


class _Lost(Exception):
    """Somebody else took the job meanwhile."""


class NotYet(Exception):
    """For handlers: it cannot be done now, though nothing failed."""


class NeverFinished(Exception):
    """Taken too often, by workers that died of it or with it."""


class Worker(Generic[C]):
    """``chance``: draws from 0 to 1. The time of day is the context's."""

    def __init__(
        self,
        ctx: C,
        kinds: Mapping[str, Kind[C]],
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
        """Of kinds and lanes: who holds one."""
        self._rounds = JobLoop(ctx.pool, jobs.CHANNEL, poll_s, "no jobs can be taken", "jobs are taken again")
        self._started = False
        self._latest_s = 0.0

    async def run(self) -> None:
        """Until it is cancelled; a database that goes away is waited for. What is under way then is left to
        whoever takes it after the lease."""
        try:
            await self._rounds.run(self._begin_once, self._turn)
        finally:
            await self._end()

    async def take(self) -> list[asyncio.Task[None]]:
        """One round: begins what is due and has room, and gives the runs."""
        begun = []
        for name, kind in self._kinds.items():
            room = kind.at_once - len(self._running[name])
            if room <= 0:
                continue
            async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                running = [job.id for job in self._running[name].values()]
                if kind.turns is None:
                    found = await jobs.claim(connection, [name], room, kind.lease_s, self._now(), running)
                else:
                    found = await self._take_turns(connection, name, kind, room, running)
            begun += [self._begin(kind, job) for job in found]
        return begun

    async def _take_turns(
        self, connection: Connection, name: str, kind: Kind[C], room: int, running: Sequence[int]
    ) -> list[Job]:
        """As many as have a place, each lane's own, and ``room`` at most."""
        assert kind.turns is not None
        lanes = kind.turns.lanes
        rooms = [(lane, lane.places - len(self._places.get((name, lane.name), ()))) for lane in lanes]
        async with connection.transaction():
            is_more = await kind.turns.sort(connection, self._now())
            wanted = turns.WorkerRoom(name, rooms, room, kind.lease_s, running)
            found = await turns.take(connection, wanted, self._now())
        if is_more:
            self._rounds.wake.set()
        return found

    async def mind_the_clock(self) -> None:
        """Where our clock was put back, what is done again and again would wait for as long as that: it is
        wished for anew. What runs just now is claimed anew, so that no other worker takes it."""
        now_s = self._ctx.now_s()
        if age_s(self._latest_s, now_s) is None:
            log.warning("the clock was put back", by_s=int(self._latest_s - now_s))
            async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                for name, kind in self._kinds.items():
                    for job in [*self._running[name].values()]:
                        await self._renew(connection, kind, job)
            await self.start()
            async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                for kind in self._kinds.values():
                    if kind.put_back is not None:
                        async with connection.transaction():
                            await kind.put_back(connection, self._now())
            self._latest_s = now_s
        self._latest_s = max(self._latest_s, now_s)

    async def start(self) -> None:
        """Wishes for what every worker wishes for."""
        async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection, connection.transaction():
            for name, kind in self._kinds.items():
                if kind.at_start is not None:
                    await jobs.enqueue(connection, name, kind.at_start)

    async def _begin_once(self) -> None:
        if not self._started:
            await self.start()
            self._started = True

    async def _turn(self) -> None:
        await self.mind_the_clock()
        await self.take()

    def _begin(self, kind: Kind[C], job: Job) -> asyncio.Task[None]:
        task = asyncio.create_task(self._do(kind, job), name=f"{job.kind} {job.key}")
        self._running[job.kind][task] = job

        def over(done: asyncio.Task[None]) -> None:
            del self._running[job.kind][done]
            self._rounds.wake.set()

        task.add_done_callback(over)
        if kind.turns is not None and job.lane is not None:
            self._hold(next(one for one in kind.turns.lanes if one.name == job.lane), job, task)
        return task

    def _hold(self, lane: Lane, job: Job, task: asyncio.Task[None]) -> None:
        """Has it hold a place of its lane until it is done, or for as long as the lane lets it."""
        held = self._places.setdefault((job.kind, lane.name), set())
        held.add(task)

        def give_back(*_: object) -> None:
            if task in held:
                held.discard(task)
                self._rounds.wake.set()

        task.add_done_callback(give_back)
        if lane.hold_s is not None:
            later = asyncio.get_running_loop().call_later(lane.hold_s, give_back)
            task.add_done_callback(lambda _: later.cancel())

    async def _do(self, kind: Kind[C], job: Job) -> None:
        # In every line of the log that is written for it.
        bind_contextvars(job=job.id)
        began_s = time.perf_counter()
        with self._measures.span("job", job.kind, is_root=True) as span:
            span.note("job", job.id)
            ended = await self._done(kind, job)
            span.note("ended", ended)
        self._measures.observe("job", job.kind, ended, time.perf_counter() - began_s)

    async def _done(self, kind: Kind[C], job: Job) -> str:
        """How it ended."""
        try:
            if job.tries > kind.most_tries:
                raise NeverFinished(f"taken {job.tries - 1} times")
            async with contextlib.AsyncExitStack() as writing:
                # Until its row is to be locked: then nobody else can take it, and renewing would wait for us.
                async with run_in_background(self._renewing(kind, job), "renewing"):
                    async with asyncio.timeout(kind.limit_s):
                        effect = await kind.handler(self._ctx, job)
                    acquiring = self._ctx.pool.acquire(timeout=_DATABASE_S)
                    connection = await writing.enter_async_context(acquiring)
                    await writing.enter_async_context(connection.transaction())
                    await effect(connection)
                if not await jobs.finish(connection, job):
                    raise _Lost
        except _Lost:
            log.info("a job was taken by another", kind=job.kind, key=job.key)
            return "lost"
        except Exception as error:
            await self._record_failure(kind, job, error)
            return "failed"
        return "done"

    async def _record_failure(self, kind: Kind[C], job: Job, error: Exception) -> None:
        last, said = job.tries >= kind.most_tries, describe_error(error)
        what = "a job was given up" if last else "a job failed"
        log.warning(what, kind=job.kind, key=job.key, tries=job.tries, error=said, where=where(error))
        run_at = self._now() + timedelta(seconds=kind.wait_s(job.tries, self._chance()))
        try:
            async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                if last:
                    await jobs.give_up(connection, job, self._now(), said)
                else:
                    await jobs.postpone(connection, job, run_at, said)
        except Exception as again:
            log.warning(
                "a failure could not be put down", kind=job.kind, key=job.key, error=describe_error(again)
            )

    async def _renewing(self, kind: Kind[C], job: Job) -> None:
        """Keeps the job ours while it is read for and written, however long that takes."""
        while True:
            await asyncio.sleep(kind.lease_s / 3)
            # Where it cannot be renewed, or is no longer ours, the end of the job finds that out.
            with contextlib.suppress(Exception):
                async with self._ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                    await self._renew(connection, kind, job)

    async def _renew(self, connection: Connection, kind: Kind[C], job: Job) -> None:
        await jobs.renew(connection, job, self._now() + timedelta(seconds=kind.lease_s))

    async def _end(self) -> None:
        tasks = [task for running in self._running.values() for task in running]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._end_s)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._ctx.now_s(), UTC)


def where(error: Exception) -> str:
    """The line of code that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "nowhere"
