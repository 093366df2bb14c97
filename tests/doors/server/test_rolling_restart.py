"""``roundtrip serve --processes``: real processes on one port, replaced and killed under load."""

import asyncio
import contextlib
import fcntl
import functools
import json
import os
import pty
import signal
import sys
import termios
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from roundtrip_development.devnet.node import free_port
from roundtrip_development.devnet.world import Built, describe
from support.commands import hears_interrupts
from support.databases import database

WAIT_S = 60
CONNECTIONS = 4
ALONE = "without ROUNDTRIP_REDIS_URL each process has its own limits, shared answers and checks"


@dataclass
class RestartingParent:
    """A parent at work, its port, and what it logged."""

    process: asyncio.subprocess.Process
    port: int
    logs: "asyncio.Queue[dict[str, Any]]" = field(default_factory=asyncio.Queue)
    lines: list[str] = field(default_factory=list)

    async def listen(self) -> None:
        """Takes in what it writes."""
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.lines.append(line.decode())
            with contextlib.suppress(ValueError):
                self.logs.put_nowait(json.loads(line))

    async def until(self, event: str) -> dict[str, Any]:
        """The next log line of this event."""
        async with asyncio.timeout(WAIT_S):
            while (answer := await self.logs.get())["event"] != event:
                pass
        return answer

    def children(self) -> set[int]:
        """Its processes that serve."""
        return _children(self.process.pid)


@contextlib.asynccontextmanager
async def serving(environment: dict[str, str], *more: str) -> AsyncIterator[RestartingParent]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "roundtrip", "serve", "--processes", "2", *more),
        env={**environment, "ROUNDTRIP_PORT": str(port)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=hears_interrupts,
        # Whatever terminal the tests run on is not theirs.
        start_new_session=True,
    )
    served = RestartingParent(process, port)
    listening = asyncio.create_task(served.listen())
    try:
        assert process.stdout is not None
        async with asyncio.timeout(WAIT_S):
            line = await process.stdout.readline()
        assert line.decode() == f"roundtrip is at http://127.0.0.1:{port}\n", served.lines
        yield served
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await listening


@pytest.fixture
async def environment(
    chain_url: str, built: Built, database_url: str, tmp_path: Path
) -> AsyncIterator[dict[str, str]]:
    """A database of its own: in the shared one other tests leave channels that their own keys sealed."""
    (tmp_path / "devnet.json").write_text(json.dumps(describe(built, chain_url)))
    async with database(database_url, "restarted") as url:
        ours = {"ROUNDTRIP_VAR": str(tmp_path), "ROUNDTRIP_DATABASE_URL": url}
        yield {**os.environ, **ours, "ROUNDTRIP_ANON_PER_MINUTE": "1000000"}


@dataclass
class Load:
    """Clients that keep their connections for as long as they are told they may."""

    port: int
    path: str = "/v1/tools.json"
    answered: int = 0
    told_to_close: int = 0
    failed: list[str] = field(default_factory=list)
    _over: bool = False

    @contextlib.asynccontextmanager
    async def going(self) -> AsyncIterator["Load"]:
        tasks = [asyncio.create_task(self._client()) for _ in range(CONNECTIONS)]
        yield self
        self._over = True
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*tasks)

    async def until(self, answered: int) -> None:
        """Waits until so many were answered."""
        async with asyncio.timeout(WAIT_S):
            while self.answered < answered:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def _client(self) -> None:
        while not self._over:
            try:
                await self._connection()
            except (OSError, asyncio.IncompleteReadError) as fault:
                self.failed.append(repr(fault))

    async def _connection(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            while not self._over:
                writer.write(b"GET %s HTTP/1.1\r\nhost: x\r\n\r\n" % self.path.encode())
                async with asyncio.timeout(WAIT_S):
                    head = (await reader.readuntil(b"\r\n\r\n")).lower()
                    await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
                if not head.startswith(b"http/1.1 200"):
                    self.failed.append(head.decode())
                self.answered += 1
                if b"connection: close" in head:
                    self.told_to_close += 1
                    return
                # Else nothing is left of two processors for those that start.
                await asyncio.sleep(0.01)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@pytest.mark.parametrize("how", [signal.SIGUSR1, signal.SIGHUP])
async def test_a_rolling_restart_under_load_drops_no_request(
    environment: dict[str, str], built: Built, how: signal.Signals
) -> None:
    """Of anything, and of checks, which wait for the node in the middle."""
    async with serving(environment) as served:
        before = served.children()
        plain, checks = Load(served.port), Load(served.port, f"/v1/check/{built.tokens['plain']}")
        async with plain.going(), checks.going():
            await plain.until(100)
            await checks.until(100)
            served.process.send_signal(how)
            for _ in range(2):
                await served.until("replaced a process")
            await plain.until(plain.answered + 100)
            await checks.until(checks.answered + 100)
        after = served.children()
        assert (len(before), len(after), before & after) == (2, 2, set())
        assert (plain.failed, checks.failed) == ([], [])
        assert plain.answered + checks.answered >= 300
        assert plain.told_to_close + checks.told_to_close >= CONNECTIONS
        served.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(WAIT_S):
            assert await served.process.wait() == 0
        assert not any(_runs(pid) for pid in before | after)


async def test_a_process_that_is_killed_is_replaced_while_the_other_serves(
    environment: dict[str, str],
) -> None:
    async with serving(environment) as served:
        before = served.children()
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        answer = await served.until("a process ended and will be restarted")
        assert (answer["pid"], answer["code"]) == (killed, -signal.SIGKILL)
        load = Load(served.port)
        async with load.going():
            await load.until(100)
        assert load.failed == []
        async with asyncio.timeout(WAIT_S):
            while len(served.children()) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert before - served.children() == {killed}
        served.process.send_signal(signal.SIGINT)
        async with asyncio.timeout(WAIT_S):
            assert await served.process.wait() == 0


async def test_a_parent_that_is_killed_takes_its_processes_with_it(environment: dict[str, str]) -> None:
    async with serving(environment) as served:
        await served.until(ALONE)
        children = served.children()
        served.process.kill()
        async with asyncio.timeout(WAIT_S):
            while any(_runs(pid) for pid in children):  # noqa: ASYNC110
                await asyncio.sleep(0.005)


async def test_a_terminal_that_is_closed_ends_all(environment: dict[str, str]) -> None:
    """It takes with it whatever they still have to say."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "roundtrip", "serve", "--processes", "2"),
        env={**environment, "ROUNDTRIP_PORT": str(free_port())},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=functools.partial(fcntl.ioctl, 0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    terminal = os.fdopen(ours, "rb", buffering=0)
    try:
        text = b""
        async with asyncio.timeout(WAIT_S):
            while b"roundtrip is at " not in text:
                text += await asyncio.to_thread(terminal.read, 4096)
        children = _children(process.pid)
        assert len(children) == 2
        terminal.close()
        async with asyncio.timeout(WAIT_S):
            await process.wait()
            while any(_runs(pid) for pid in children):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
    finally:
        terminal.close()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_without_a_database_it_says_why_and_ends(environment: dict[str, str]) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "roundtrip", "serve", "--processes", "2"),
        env={**environment, "ROUNDTRIP_PORT": "0", "ROUNDTRIP_DATABASE_URL": "postgresql://127.0.0.1:1/none"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(WAIT_S):
        text, _ = await process.communicate()
    assert process.returncode == 1
    assert text == b"roundtrip: [Errno 111] Connection refused\n"


def _children(pid: int) -> set[int]:
    lines = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(one) for one in lines if "--listening" in Path(f"/proc/{one}/cmdline").read_text()}


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
