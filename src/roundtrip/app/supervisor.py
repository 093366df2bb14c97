"""Runs several processes of one service under a parent, which starts, replaces and ends them.

The parent does no work of the service. It holds the listening socket, which its children inherit: when one of
them ends, another accepts the waiting connections.
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
"""Time limit for a process to become ready."""
END_S = 45.0
"""Time limit for a process to end: longer than its running requests take."""
_END_AT_ONCE_S = 5.0
"""The same after a second signal, and for a process that did not become ready."""
_FIRST_WAIT_S, _MAX_WAIT_S = 0.1, 10.0
_STABLE_S = 10.0
"""A process that ends sooner is restarted with an increasing delay."""
log = structlog.get_logger(__name__)


SERVES = "roundtrip is at "
FOLLOWS = "roundtrip follows chain "
WORKS = "roundtrip works on chain "
"""The beginning of the line by which a process of each kind reports that it is ready."""


@dataclass(frozen=True, slots=True)
class Role:
    """What ``count`` processes do: the program with these ``arguments``. ``ready_prefix``: the beginning of
    the line by which a process reports that it is ready. ``descriptors``: open files that it inherits."""

    name: str
    arguments: tuple[str, ...]
    ready_prefix: str
    count: int = 1
    descriptors: tuple[int, ...] = ()


def serve_role(listening: socket.socket, count: int, *options: str) -> Role:
    """The role of processes that serve on one socket."""
    descriptor = listening.fileno()
    arguments = ("serve", "--listening", str(descriptor), *options)
    return Role("serve", arguments, SERVES, count, (descriptor,))


@dataclass(eq=False, slots=True)
class Child:
    """A child process. ``index``: in the order of the roles."""

    role: Role
    index: int
    process: asyncio.subprocess.Process
    started_s: float
    reported_ready: bool = False
    ready_or_gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has reported ready, or is gone."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def send_signal(self, number: signal.Signals) -> None:
        """Sends it a signal, if it is still running."""
        if not self.gone.is_set():
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    async def is_ready(self) -> bool:
        """Waits until it is ready (True), or is gone or takes too long (False)."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                await self.ready_or_gone.wait()
        return self.reported_ready and not self.gone.is_set()

    async def end(self, within_s: float) -> None:
        """Waits for its end; kills it after ``within_s``."""
        try:
            async with asyncio.timeout(within_s):
                await self.gone.wait()
        except TimeoutError:
            self.send_signal(signal.SIGKILL)
            await self.gone.wait()

    async def abandon(self) -> None:
        """Ends a process that did not become ready."""
        self.send_signal(signal.SIGTERM)
        await self.end(_END_AT_ONCE_S)


@dataclass(eq=False, slots=True)
class _ChildSlot:
    """The slot of one child and its successors. ``replacing``: held while the child is replaced."""

    child: Child
    replacing: asyncio.Lock = field(default_factory=asyncio.Lock)


def _print(line: str) -> None:
    # Without a terminal, output is buffered.
    print(line, flush=True)


class Supervisor:
    """Starts, replaces and ends the processes of ``roles``. ``environment``: of every process.
    ``print_line``: takes the lines that they write, except ready lines. ``program``: what runs, followed by a
    role's arguments. ``on_terminal``: SIGHUP means that the terminal was closed. ``environment_of``: further
    environment by the process's index in the order of the roles, which a successor keeps."""

    def __init__(
        self,
        roles: Sequence[Role],
        environment: Mapping[str, str],
        print_line: Callable[[str], None] = _print,
        program: Sequence[str] = (sys.executable, "-m", "roundtrip"),
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
        on_terminal: bool = False,
        environment_of: Callable[[int], Mapping[str, str]] = lambda _: {},
        end_s: float = END_S,
        end_at_once_s: float = _END_AT_ONCE_S,
    ) -> None:
        self._end_s, self._end_at_once_s = end_s, end_at_once_s
        self._environment_of = environment_of
        self._roles = tuple(roles)
        self._environment = dict(environment)
        self._print_line = print_line
        self._program = tuple(program)
        self._wait = wait
        self._replace_signals = {signal.SIGUSR1} if on_terminal else {signal.SIGUSR1, signal.SIGHUP}
        self._slots: list[_ChildSlot] = []
        self._is_started = False
        self._alive: set[Child] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def children(self) -> list[Child]:
        """The current children, in the order of the roles."""
        return [slot.child for slot in self._slots]

    async def run(self, on_started: Callable[["Supervisor"], None]) -> None:
        """Runs until SIGTERM or SIGINT, which it passes to every process; a second one ends them at once.
        SIGUSR1 replaces them one after the other, each when its successor is ready; so does SIGHUP, unless it
        means that the terminal was closed, which ends them. Until all are ready, requests to replace them are
        only logged. ``on_started`` is called when all are ready. Processes that end later are restarted.
        Raises CannotRun: one did not become ready."""
        signals: asyncio.Queue[signal.Signals] = asyncio.Queue()
        with _catch_signals(signals, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            work = asyncio.create_task(self._run_children(on_started))
            number = signal.SIGTERM
            try:
                number = await self._await_end_or_failure(work, signals)
            finally:
                work.cancel()
                # Its exception has been raised already.
                await asyncio.wait([work])
                await self._end(number, signals)

    async def _await_end_or_failure(
        self, work: asyncio.Task[None], signals: "asyncio.Queue[signal.Signals]"
    ) -> signal.Signals:
        replacing: asyncio.Task[None] | None = None
        try:
            while True:
                receiving = asyncio.create_task(signals.get())
                try:
                    await asyncio.wait({work, receiving}, return_when=asyncio.FIRST_COMPLETED)
                    if work.done():
                        work.result()
                    number = receiving.result()
                finally:
                    receiving.cancel()
                if number not in self._replace_signals:
                    return signal.SIGTERM if number == signal.SIGHUP else number
                if not self._is_started:
                    log.warning("ignored the signal to replace processes: they are still starting")
                elif replacing is None or replacing.done():
                    replacing = asyncio.create_task(self._replace_all())
                else:
                    log.warning("ignored the signal to replace processes: a replacement is running")
        finally:
            if replacing is not None:
                replacing.cancel()
                with contextlib.suppress(asyncio.CancelledError, OSError):
                    await replacing

    async def _run_children(self, on_started: Callable[["Supervisor"], None]) -> None:
        roles = [role for role in self._roles for _ in range(role.count)]
        children = [await self._start(role, index) for index, role in enumerate(roles)]
        self._slots = [_ChildSlot(child) for child in children]
        for child, is_ready in zip(
            children, await asyncio.gather(*(child.is_ready() for child in children)), strict=True
        ):
            if not is_ready:
                raise CannotRun(f"the {child.role.name} process did not become ready")
        # Before on_started announces it: a signal sent in response must find it set.
        self._is_started = True
        on_started(self)
        await asyncio.gather(*(self._restart_when_ended(slot) for slot in self._slots))

    async def _restart_when_ended(self, slot: _ChildSlot) -> None:
        """Restarts a child that ends by itself."""
        failures = 0
        while True:
            child = slot.child
            await child.gone.wait()
            async with slot.replacing:
                if slot.child is not child:
                    failures = 0
                    continue
                failures = failures if _now_s() - child.started_s < _STABLE_S else 0
                wait_s = min(_MAX_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(failures, 10))
                failures += 1
                log.warning(
                    "a process ended and will be restarted",
                    role=child.role.name, pid=child.pid, code=child.process.returncode, wait_s=wait_s,
                )  # fmt: skip
                await self._wait(wait_s)
                try:
                    slot.child = await self._start(child.role, child.index)
                except OSError as error:
                    log.error("starting a process failed", role=child.role.name, error=str(error))
                else:
                    if not await slot.child.is_ready():
                        log.error(
                            "a restarted process did not become ready",
                            role=child.role.name, pid=slot.child.pid,
                        )  # fmt: skip
                        await slot.child.abandon()

    async def _replace_all(self) -> None:
        """Replaces each child in turn. Stops at the first successor that does not become ready; the rest
        stays."""
        for slot in self._slots:
            async with slot.replacing:
                old, new = slot.child, await self._start(slot.child.role, slot.child.index)
                if not await new.is_ready():
                    log.error("a new process did not become ready; the old ones stay", role=old.role.name)
                    await new.abandon()
                    return
                slot.child = new
                old.send_signal(signal.SIGTERM)
                await old.end(self._end_s)
                log.info("replaced a process", role=old.role.name, old=old.pid, pid=new.pid)
        log.info("replaced every process")

    async def _end(self, number: signal.Signals, signals: "asyncio.Queue[signal.Signals]") -> None:
        """Ends all children. One that is not ready does not handle SIGINT yet, and gets SIGTERM."""
        for child in self._alive:
            child.send_signal(number if child.reported_ready else signal.SIGTERM)
        all_ended = asyncio.gather(*(child.end(self._end_s) for child in self._alive))
        end_signal = asyncio.create_task(_await_end_signal(signals))
        waiting: set[asyncio.Future[Any]] = {all_ended, end_signal}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not all_ended.done():
            for child in self._alive:
                child.send_signal(signal.SIGTERM)
            await asyncio.gather(*(child.end(self._end_at_once_s) for child in set(self._alive)))
        end_signal.cancel()
        await all_ended
        await asyncio.gather(*self._tasks)

    async def _start(self, role: Role, index: int) -> Child:
        process = await asyncio.create_subprocess_exec(
            *self._program,
            *role.arguments,
            env=self._environment | dict(self._environment_of(index)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=role.descriptors,
            # Ctrl-C reaches only the parent, which passes it on.
            start_new_session=True,
            preexec_fn=functools.partial(end_with_parent, os.getpid(), signal.SIGTERM),
        )
        child = Child(role, index, process, _now_s())
        self._alive.add(child)
        task = asyncio.create_task(self._watch(child))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return child

    async def _watch(self, child: Child) -> None:
        try:
            await self._read_output(child)
        finally:
            await child.process.wait()
            self._alive.discard(child)
            child.gone.set()
            child.ready_or_gone.set()

    async def _read_output(self, child: Child) -> None:
        assert child.process.stdout is not None
        while True:
            try:
                line = await child.process.stdout.readline()
            except ValueError:  # longer than any line of ours
                continue
            if not line:
                return
            text = line.decode(errors="replace").rstrip("\n")
            if text.startswith(child.role.ready_prefix):
                child.reported_ready = True
                child.ready_or_gone.set()
            else:
                # Standard output may be closed.
                with contextlib.suppress(OSError, ValueError):
                    self._print_line(text)


async def _await_end_signal(signals: "asyncio.Queue[signal.Signals]") -> None:
    """Waits for SIGTERM or SIGINT. Ignores SIGHUP: the kernel and a shell may both send it for a closed
    terminal."""
    while await signals.get() not in (signal.SIGTERM, signal.SIGINT):
        pass


def _now_s() -> float:
    return asyncio.get_running_loop().time()


@contextlib.contextmanager
def _catch_signals(queue: "asyncio.Queue[signal.Signals]", *signals: signal.Signals) -> Iterator[None]:
    """Puts these signals into the queue, and nowhere else; except SIGHUP where it is ignored (nohup)."""
    loop = asyncio.get_running_loop()

    def catch(number: int, frame: object) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, signal.Signals(number))

    ignores_hangup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    caught = [number for number in signals if not (ignores_hangup and number == signal.SIGHUP)]
    before = {number: signal.signal(number, catch) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
