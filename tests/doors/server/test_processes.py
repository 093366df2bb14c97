"""The parent of several processes, over small programs in place of the service."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from roundtrip.app import supervisor as processes
from roundtrip.app.supervisor import Child, Role, Supervisor
from roundtrip.cli.terminal import environment
from roundtrip.domain.base.errors import CannotRun

PROJECT = Path(__file__).resolve().parents[3]
WAIT_S = 30
PROGRAM = """
import os, signal, sys, time
folder, how = sys.argv[1:3]
def tell(what):
    with open(folder + "/told", "a") as told:
        told.write(f"{what} {os.getpid()}\\n")
def end(number, frame):
    tell(signal.Signals(number).name)
    if how != "stubborn":
        os._exit(0)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
if os.path.exists(folder + "/hangs"):
    tell("hangs")
    while True:
        signal.pause()
if os.path.exists(folder + "/waits"):
    tell("waits")
    while os.path.exists(folder + "/waits"):
        time.sleep(0.005)
if os.path.exists(folder + "/fails"):
    sys.exit(3)
print("a line of its own", flush=True)
tell("ready")
print("ready now", flush=True)
while True:
    signal.pause()
"""


@dataclass
class ProcessParent:
    """A parent at work, and what was heard of it."""

    folder: Path
    supervisor: Supervisor
    said: list[str]
    waited: list[float]
    task: asyncio.Task[None] = field(init=False)
    is_started: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self) -> list[str]:
        """What the children wrote down, in turn."""
        path = self.folder / "told"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def pids(self) -> list[int]:
        return [child.pid for child in self.supervisor.children()]

    async def started(self) -> list[Child]:
        async with asyncio.timeout(WAIT_S):
            await self.is_started.wait()
        return self.supervisor.children()

    async def until_told(self, *lines: str) -> None:
        async with asyncio.timeout(WAIT_S):
            while not set(lines) <= set(self.ask()):  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def until_new(self, before: int) -> int:
        """Waits until a place has another process, which is ready; its id."""
        async with asyncio.timeout(WAIT_S):
            while before in self.pids() or not all(one.reported_ready for one in self.supervisor.children()):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        return self.pids()[-1]

    async def over(self, how: signal.Signals = signal.SIGTERM) -> None:
        os.kill(os.getpid(), how)
        async with asyncio.timeout(WAIT_S):
            await self.task


@contextlib.asynccontextmanager
async def ground(
    folder: Path,
    *roles: Role,
    say: Callable[[str], None] | None = None,
    on_terminal: bool = False,
    started: Callable[[Supervisor], None] = lambda _: None,
    end_s: float = processes.END_S,
    end_at_once_s: float = 5.0,
) -> AsyncIterator[ProcessParent]:
    messages: list[str] = []
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    program = (sys.executable, "-c", PROGRAM, str(folder))
    supervisor = Supervisor(
        roles, environment(), say or messages.append, program, wait, on_terminal,
        end_s=end_s, end_at_once_s=end_at_once_s,
    )  # fmt: skip
    found = ProcessParent(folder, supervisor, messages, waited)

    def is_started(running: Supervisor) -> None:
        found.is_started.set()
        started(running)

    found.task = asyncio.create_task(supervisor.run(is_started))
    try:
        yield found
    finally:
        found.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, CannotRun, OSError):
            await found.task
        assert not any(_is_there(int(line.split()[1])) for line in found.ask())


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
PLAIN = Role("serve", ("plain",), "ready", 2)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_all_are_started_heard_and_ended(tmp_path: Path, how: signal.Signals) -> None:
    async with ground(tmp_path, PLAIN, Role("work", ("plain",), "ready")) as at_work:
        children = await at_work.started()
        assert [child.role.name for child in children] == ["serve", "serve", "work"]
        await at_work.over(how)
        assert at_work.said == ["a line of its own"] * 3
        assert {f"{how.name} {child.pid}" for child in children} == set(at_work.ask()[3:])


@pytest.mark.parametrize(
    ("how", "on_terminal"), [(signal.SIGUSR1, False), (signal.SIGUSR1, True), (signal.SIGHUP, False)]
)
async def test_each_is_replaced_in_turn_when_the_next_is_ready(
    tmp_path: Path, how: signal.Signals, on_terminal: bool
) -> None:
    async with ground(tmp_path, PLAIN, on_terminal=on_terminal) as at_work:
        first, second = [child.pid for child in await at_work.started()]
        os.kill(os.getpid(), how)
        await at_work.until_told(f"SIGTERM {second}")
        third, fourth = (int(line.split()[1]) for line in at_work.ask()[2:] if line.startswith("ready"))
        turns = [f"ready {third}", f"SIGTERM {first}", f"ready {fourth}", f"SIGTERM {second}"]
        assert at_work.ask()[2:] == turns
        await at_work.until_new(second)
        assert at_work.pids() == [third, fourth]
        await at_work.over()
        assert at_work.waited == []


@pytest.mark.parametrize("how", [signal.SIGUSR1, signal.SIGHUP])
async def test_nobody_is_replaced_before_all_are_ready(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "waits").touch()
    async with ground(tmp_path, PLAIN) as at_work:
        async with asyncio.timeout(WAIT_S):
            while len(at_work.ask()) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        with capture_logs() as logs:
            os.kill(os.getpid(), how)
            async with asyncio.timeout(WAIT_S):
                while not logs:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
        assert [entry["event"] for entry in logs] == [
            "ignored the signal to replace processes: they are still starting"
        ]
        (tmp_path / "waits").unlink()
        before = [child.pid for child in await at_work.started()]
        assert {f"waits {pid}" for pid in before} == set(at_work.ask()[:2])
        os.kill(os.getpid(), how)
        await at_work.until_told(*(f"SIGTERM {pid}" for pid in before))
        await at_work.over()


_EARLY = """
import os, runpy, signal, sys
how, script = sys.argv[1:]
class Told:
    def find_spec(self, name, path=None, target=None):
        if name == "roundtrip.cli.main":
            os.kill(os.getpid(), signal.SIGUSR1)
            print("told", flush=True)
sys.meta_path.insert(0, Told())
sys.argv = ["roundtrip", "keys", "--help"]
if how == "module":
    runpy.run_module("roundtrip", run_name="__main__")
else:
    from importlib import metadata
    metadata.EntryPoint("roundtrip", script, "console_scripts").load()()
"""


@pytest.mark.parametrize("how", ["module", "command"])
def test_who_is_told_to_replace_while_it_is_read_lives(how: str) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    program = [sys.executable, "-c", _EARLY, how, project["scripts"]["roundtrip"]]
    # On a narrow terminal help is written from the commands themselves, which are read for it.
    narrow = {**os.environ, "COLUMNS": "60"}
    ended = subprocess.run(program, capture_output=True, timeout=WAIT_S, check=False, env=narrow)
    assert (ended.returncode, ended.stdout.split(b"\n")[0]) == (0, b"told")


async def test_a_terminal_that_is_closed_ends_all(tmp_path: Path) -> None:
    async with ground(tmp_path, PLAIN, on_terminal=True) as at_work:
        children = await at_work.started()
        await at_work.over(signal.SIGHUP)
        assert {f"SIGTERM {child.pid}" for child in children} == set(at_work.ask()[2:])


async def test_a_second_hangup_cuts_nothing_short(tmp_path: Path) -> None:
    """Kernel and shell each tell of it."""
    async with ground(tmp_path, Role("serve", ("stubborn",), "ready"), on_terminal=True) as at_work:
        (child,) = await at_work.started()
        os.kill(os.getpid(), signal.SIGHUP)
        await at_work.until_told(f"SIGTERM {child.pid}")
        os.kill(os.getpid(), signal.SIGHUP)
        for _ in range(20):
            await asyncio.sleep(0)
        os.kill(child.pid, signal.SIGKILL)
        async with asyncio.timeout(WAIT_S):
            await at_work.task
        assert at_work.ask().count(f"SIGTERM {child.pid}") == 1


async def test_who_was_started_deaf_for_hangups_stays_so(tmp_path: Path) -> None:
    """By nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        async with ground(tmp_path, PLAIN, on_terminal=True) as at_work:
            await at_work.started()
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            await at_work.over()
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_the_old_one_is_gone_before_the_next_is_replaced(tmp_path: Path) -> None:
    async with ground(tmp_path, Role("serve", ("stubborn",), "ready", 2), end_s=0.2) as at_work:
        first, second = [child.pid for child in await at_work.started()]
        with capture_logs() as logs:
            os.kill(os.getpid(), signal.SIGUSR1)
            async with asyncio.timeout(WAIT_S):
                while not logs:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
        assert (logs[0]["event"], logs[0]["old"]) == ("replaced a process", first)
        assert not _is_there(first)
        assert f"SIGTERM {second}" not in at_work.ask()
        await at_work.over()


async def test_who_does_not_become_ready_replaces_nobody(tmp_path: Path) -> None:
    async with ground(tmp_path, PLAIN) as at_work:
        before = [child.pid for child in await at_work.started()]
        (tmp_path / "fails").touch()
        with capture_logs() as logs:
            os.kill(os.getpid(), signal.SIGUSR1)
            async with asyncio.timeout(WAIT_S):
                while not logs:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
        assert [entry["event"] for entry in logs] == ["a new process did not become ready; the old ones stay"]
        assert at_work.pids() == before
        assert len(at_work.ask()) == 2
        # What was wrong is put right, and it is tried again.
        (tmp_path / "fails").unlink()
        os.kill(os.getpid(), signal.SIGUSR1)
        await at_work.until_told(*(f"SIGTERM {pid}" for pid in before))
        await at_work.over()


async def test_who_is_killed_is_started_again_later_and_later(tmp_path: Path) -> None:
    async with ground(tmp_path, Role("serve", ("plain",), "ready")) as at_work:
        (child,) = await at_work.started()
        pid = child.pid
        for _ in range(4):
            os.kill(pid, signal.SIGKILL)
            pid = await at_work.until_new(pid)
        assert at_work.waited == [0.1, 0.2, 0.4, 0.8]
        await at_work.over()


async def test_who_is_started_again_and_does_not_become_ready_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ground(tmp_path, Role("serve", ("plain",), "ready")) as at_work:
        (child,) = await at_work.started()
        (tmp_path / "hangs").touch()
        with monkeypatch.context() as patched, capture_logs() as logs:
            patched.setattr(processes, "START_S", 0.5)
            os.kill(child.pid, signal.SIGKILL)
            async with asyncio.timeout(WAIT_S):
                while len({entry["pid"] for entry in logs}) < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
        assert [entry["event"] for entry in logs[:2]] == [
            "a process ended and will be restarted",
            "a restarted process did not become ready",
        ]
        (tmp_path / "hangs").unlink()
        await at_work.until_new(logs[1]["pid"])
        assert not _is_there(logs[1]["pid"])
        await at_work.over()


async def test_others_stay_while_one_is_started_again(tmp_path: Path) -> None:
    async with ground(tmp_path, PLAIN) as at_work:
        first, second = [child.pid for child in await at_work.started()]
        os.kill(first, signal.SIGKILL)
        await at_work.until_new(first)
        assert at_work.pids()[1] == second
        await at_work.over()


async def test_a_first_one_that_does_not_become_ready_ends_all(tmp_path: Path) -> None:
    (tmp_path / "fails").touch()
    async with ground(tmp_path, PLAIN) as at_work:
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(CannotRun, match="the serve process did not become ready"):
                await at_work.task
        assert not at_work.is_started.is_set()


async def test_whatever_fails_all_are_ended(tmp_path: Path) -> None:
    """Whoever asked for the welcome went away, say."""

    def gone(running: Supervisor) -> None:
        raise BrokenPipeError

    async with ground(tmp_path, PLAIN, started=gone) as at_work:
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(BrokenPipeError):
                await at_work.task
        ready, ended = at_work.ask()[:2], at_work.ask()[2:]
        assert {line.replace("ready", "SIGTERM") for line in ready} == set(ended)


@pytest.mark.parametrize("fault", [BrokenPipeError(), ValueError("I/O operation on closed file.")])
async def test_nobody_to_tell_a_childs_lines_changes_nothing(tmp_path: Path, fault: Exception) -> None:
    def say(line: str) -> None:
        raise fault

    async with ground(tmp_path, Role("serve", ("plain",), "ready"), say=say) as at_work:
        (child,) = await at_work.started()
        os.kill(child.pid, signal.SIGKILL)
        await at_work.until_new(child.pid)
        await at_work.over()


async def test_a_second_signal_does_not_wait_for_who_does_not_end(tmp_path: Path) -> None:
    async with ground(tmp_path, Role("serve", ("stubborn",), "ready"), end_at_once_s=0.05) as at_work:
        (child,) = await at_work.started()
        os.kill(os.getpid(), signal.SIGTERM)
        await at_work.until_told(f"SIGTERM {child.pid}")
        assert not at_work.task.done()
        await at_work.over()
        assert at_work.ask().count(f"SIGTERM {child.pid}") == 2


async def test_who_does_not_end_in_time_is_made_to(tmp_path: Path) -> None:
    async with ground(tmp_path, Role("serve", ("stubborn",), "ready"), end_s=0.05) as at_work:
        await at_work.started()
        await at_work.over()


async def test_signals_are_given_back(tmp_path: Path) -> None:
    before = [signal.getsignal(one) for one in HEARD]
    async with ground(tmp_path, PLAIN) as at_work:
        await at_work.started()
        await at_work.over()
    assert [signal.getsignal(one) for one in HEARD] == before
