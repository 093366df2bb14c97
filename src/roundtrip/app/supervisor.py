"""Several processes of one service under one parent: started, replaced one after the other, ended with it.

The parent does no work of the service. It holds the listening socket, which its children inherit: whoever
waits to be accepted when one of them ends is accepted by another.
"""

import asyncio
import contextlib
import functools
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.server.postgres import end_with_parent

START_S = 60.0
"""For a process to be ready."""
END_S = 45.0
"""For a process to end: longer than it takes to answer what is under way."""
_END_AT_ONCE_S = 5.0
_FIRST_WAIT_S, _MOST_WAIT_S = 0.1, 10.0
_LIVED_S = 10.0
"""Who ends sooner is started again later and later."""
log = structlog.get_logger(__name__)


SERVES = "roundtrip is at "
FOLLOWS = "roundtrip follows chain "
WORKS = "roundtrip works on chain "
"""How the line begins by which a process of each kind says that it is ready."""


class ProcessEnded(CannotRun):
    """A process did not become ready; the text says which."""


@dataclass(frozen=True, slots=True)
class Role:
    """What ``count`` processes do: the program with these ``arguments``. ``says``: how the line
    begins by which one says that it is ready. ``descriptors``: open files that it inherits."""

    name: str
    arguments: tuple[str, ...]
    says: str
    count: int = 1
    descriptors: tuple[int, ...] = ()


def serving(listening: socket.socket, count: int, *more: str) -> Role:
    """Processes that serve on one socket."""
    descriptor = listening.fileno()
    arguments = ("serve", "--listening", str(descriptor), *more)
    return Role("serve", arguments, SERVES, count, (descriptor,))


@dataclass(eq=False, slots=True)
class Child:
    """A process of ours."""

    role: Role
    place: int
    process: asyncio.subprocess.Process
    began_s: float
    said_ready: bool = False
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """It said that it is ready, or is gone."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def tell(self, how: signal.Signals) -> None:
        """Sends it a signal, where it is still there."""
        if not self.gone.is_set():
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(how)

    async def is_ready(self) -> bool:
        """Waits until it is, or is gone, or took too long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                await self.settled.wait()
        return self.said_ready and not self.gone.is_set()

    async def end(self, within_s: float) -> None:
        """Waits for its end, and brings it about when that takes longer."""
        try:
            async with asyncio.timeout(within_s):
                await self.gone.wait()
        except TimeoutError:
            self.tell(signal.SIGKILL)
            await self.gone.wait()

    async def given_up(self) -> None:
        """Ends one that did not become ready."""
        self.tell(signal.SIGTERM)
        await self.end(_END_AT_ONCE_S)


@dataclass(eq=False, slots=True)
class _ChildPlace:
    """Where one child is replaced by the next; ``changing``: held by whoever replaces it."""

    child: Child
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)


def _print(line: str) -> None:
    # What writes to no terminal would keep it back.
    print(line, flush=True)


class Supervisor:
    """``environment``: of every process. ``say``: what becomes of the lines that they write, but for those by
    which they say that they are ready. ``program``: what runs, with a role's arguments behind it.
    ``on_terminal``: SIGHUP tells that our terminal was closed. ``of_place``: more of the environment, by a
    process's place in the order of the roles, which whoever replaces it has, too."""

    def __init__(
        self,
        roles: Sequence[Role],
        environment: Mapping[str, str],
        say: Callable[[str], None] = _print,
        program: Sequence[str] = (sys.executable, "-m", "roundtrip"),
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
        on_terminal: bool = False,
        of_place: Callable[[int], Mapping[str, str]] = lambda _: {},
    ) -> None:
        self._of_place = of_place
        self._roles = tuple(roles)
        self._environment = dict(environment)
        self._say = say
        self._program = tuple(program)
        self._wait = wait
        self._rolls = {signal.SIGUSR1} if on_terminal else {signal.SIGUSR1, signal.SIGHUP}
        self._places: list[_ChildPlace] = []
        self._is_started = False
        self._living: set[Child] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def children(self) -> list[Child]:
        """Who works now, in the order of the roles."""
        return [place.child for place in self._places]

    async def run(self, started: Callable[["Supervisor"], None]) -> None:
        """Until it is told to end: SIGTERM ends every process as it ends one, SIGINT too, and a second one
        ends them at once. SIGUSR1 replaces them one after the other, each when the next is ready; so does
        SIGHUP, but for a terminal that is closed, which ends them. Before all are ready there is nothing to
        replace: that it was told so is put down. ``started`` is called once they are; raises ProcessEnded
        when one does not become so. One that ends later is started again."""
        told: asyncio.Queue[signal.Signals] = asyncio.Queue()
        with _heard(told, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            work = asyncio.create_task(self._work(started))
            how = signal.SIGTERM
            try:
                how = await self._until_told(work, told)
            finally:
                work.cancel()
                # Whatever it failed with is raised already.
                await asyncio.wait([work])
                await self._end(how, told)

    async def _until_told(
        self, work: asyncio.Task[None], told: "asyncio.Queue[signal.Signals]"
    ) -> signal.Signals:
        rolling: asyncio.Task[None] | None = None
        try:
            while True:
                hearing = asyncio.create_task(told.get())
                try:
                    await asyncio.wait({work, hearing}, return_when=asyncio.FIRST_COMPLETED)
                    if work.done():
                        work.result()
                    how = hearing.result()
                finally:
                    hearing.cancel()
                if how not in self._rolls:
                    return signal.SIGTERM if how == signal.SIGHUP else how
                if not self._is_started:
                    log.warning("processes are being started; told to replace them, nothing is done")
                elif rolling is None or rolling.done():
                    rolling = asyncio.create_task(self._roll())
                else:
                    log.warning("processes are being replaced already; told again, nothing more is done")
        finally:
            if rolling is not None:
                rolling.cancel()
                with contextlib.suppress(asyncio.CancelledError, OSError):
                    await rolling

    async def _work(self, started: Callable[["Supervisor"], None]) -> None:
        everybody = [role for role in self._roles for _ in range(role.count)]
        children = [await self._start(role, place) for place, role in enumerate(everybody)]
        self._places = [_ChildPlace(child) for child in children]
        for child, is_ready in zip(
            children, await asyncio.gather(*(child.is_ready() for child in children)), strict=True
        ):
            if not is_ready:
                raise ProcessEnded(f"a process that was to {child.role.name} did not become ready")
        # Before whoever waits for that is told.
        self._is_started = True
        started(self)
        await asyncio.gather(*(self._keep(place) for place in self._places))

    async def _keep(self, place: _ChildPlace) -> None:
        """Replaces what ends by itself."""
        failures = 0
        while True:
            child = place.child
            await child.gone.wait()
            async with place.changing:
                if place.child is not child:
                    failures = 0
                    continue
                failures = failures if _now_s() - child.began_s < _LIVED_S else 0
                wait_s = min(_MOST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(failures, 10))
                failures += 1
                log.warning(
                    "a process ended, and is started again",
                    role=child.role.name, pid=child.pid, code=child.process.returncode, wait_s=wait_s,
                )  # fmt: skip
                await self._wait(wait_s)
                try:
                    place.child = await self._start(child.role, child.place)
                except OSError as fault:
                    log.error("no process could be started", role=child.role.name, error=str(fault))
                else:
                    if not await place.child.is_ready():
                        log.error(
                            "a process that was started again did not become ready",
                            role=child.role.name, pid=place.child.pid,
                        )  # fmt: skip
                        await place.child.given_up()

    async def _roll(self) -> None:
        """Stops at the first that does not become ready: the rest goes on as it is."""
        for place in self._places:
            async with place.changing:
                old, new = place.child, await self._start(place.child.role, place.child.place)
                if not await new.is_ready():
                    log.error("a new process did not become ready, the old ones stay", role=old.role.name)
                    await new.given_up()
                    return
                place.child = new
                old.tell(signal.SIGTERM)
                await old.end(END_S)
                log.info("a process was replaced", role=old.role.name, old=old.pid, pid=new.pid)
        log.info("every process was replaced")

    async def _end(self, how: signal.Signals, told: "asyncio.Queue[signal.Signals]") -> None:
        """All of them. Who is not ready does not know SIGINT yet."""
        for child in self._living:
            child.tell(how if child.said_ready else signal.SIGTERM)
        everybody = asyncio.gather(*(child.end(END_S) for child in self._living))
        hearing = asyncio.create_task(_until_end(told))
        either: set[asyncio.Future[Any]] = {everybody, hearing}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not everybody.done():
            for child in self._living:
                child.tell(signal.SIGTERM)
            await asyncio.gather(*(child.end(_END_AT_ONCE_S) for child in set(self._living)))
        hearing.cancel()
        await everybody
        await asyncio.gather(*self._tasks)

    async def _start(self, role: Role, place: int) -> Child:
        process = await asyncio.create_subprocess_exec(
            *self._program,
            *role.arguments,
            env=self._environment | dict(self._of_place(place)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=role.descriptors,
            # Ctrl-C comes to the parent alone, and from there to all in turn.
            start_new_session=True,
            preexec_fn=functools.partial(end_with_parent, os.getpid(), signal.SIGTERM),
        )
        child = Child(role, place, process, _now_s())
        self._living.add(child)
        task = asyncio.create_task(self._watch(child))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return child

    async def _watch(self, child: Child) -> None:
        try:
            await self._hear(child)
        finally:
            await child.process.wait()
            self._living.discard(child)
            child.gone.set()
            child.settled.set()

    async def _hear(self, child: Child) -> None:
        assert child.process.stdout is not None
        while True:
            try:
                line = await child.process.stdout.readline()
            except ValueError:  # longer than any line of ours
                continue
            if not line:
                return
            said = line.decode(errors="replace").rstrip("\n")
            if said.startswith(child.role.says):
                child.said_ready = True
                child.settled.set()
            else:
                # Nobody may be there any more to be told.
                with contextlib.suppress(OSError, ValueError):
                    self._say(said)


async def _until_end(told: "asyncio.Queue[signal.Signals]") -> None:
    """A terminal that is closed may be told of twice, by the kernel and by a shell."""
    while await told.get() not in (signal.SIGTERM, signal.SIGINT):
        pass


def _now_s() -> float:
    return asyncio.get_running_loop().time()


@contextlib.contextmanager
def _heard(told: "asyncio.Queue[signal.Signals]", *signals: signal.Signals) -> Iterator[None]:
    """These signals come into ``told``, and nowhere else; but for hangups where they were not to be heard
    (nohup)."""
    loop = asyncio.get_running_loop()

    def hear(number: int, frame: object) -> None:
        loop.call_soon_threadsafe(told.put_nowait, signal.Signals(number))

    is_deaf = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    before = {one: signal.signal(one, hear) for one in signals if not (is_deaf and one == signal.SIGHUP)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
