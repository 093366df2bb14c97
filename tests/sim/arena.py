"""What a run takes place in: databases on one server, a chain, the sync as a process of its own."""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from roundtrip.app.supervisor import FOLLOWS
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.server.rows import Connection
from roundtrip_development.devnet.deploy import COINBASE
from roundtrip_development.devnet.node import NodeOptions, RunningNode, find_anvil, running
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built, DevnetFolders, write_description
from sim.digest import Digest, digest

POLL_S = 0.01
START_S, STOP_S = 30.0, 10.0
TEMPLATE = "sim_template"
_PR_SET_PDEATHSIG = 1


class WentWrong(Exception):
    """A run came to something else than it should; the text says to what."""


async def until(holds: Callable[[], Awaitable[bool]], limit_s: float) -> bool:
    """Looks again and again; False when it does not hold within the limit."""
    deadline = time.monotonic() + limit_s
    while not await holds():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True


@contextlib.contextmanager
def chain(places: DevnetFolders, built: Built) -> Iterator[tuple[RunningNode, SyncRpc]]:
    """The built chain, running. Its first block's time is given, too: one seed has one chain."""
    options = NodeOptions(state=built.state, timestamp_s=built.head_s + 1)
    with running(find_anvil(places.project), options) as node, SyncRpc(node.url) as rpc:
        rpc.call("anvil_setCoinbase", COINBASE)
        rpc.call("evm_setNextBlockTimestamp", built.head_s + 1)
        rpc.call("evm_mine")
        yield node, rpc


# --- databases -------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def server(folder: Path) -> AsyncIterator[EmbeddedPostgres]:
    """A database server for many runs, with a migrated database to copy."""
    async with EmbeddedPostgres(folder, durable=False) as found:
        async with connected(Database(found, "roundtrip")) as connection:
            await connection.execute(f"DROP DATABASE IF EXISTS {TEMPLATE}")
            await connection.execute(f"CREATE DATABASE {TEMPLATE}")
        async with connected(Database(found, TEMPLATE)) as connection:
            await migrate(connection)
        yield found


@dataclass(frozen=True, slots=True)
class Database:
    """One database of the server."""

    server: EmbeddedPostgres
    name: str

    @property
    def url(self) -> str:
        """For asyncpg."""
        return self.server.dsn.replace("/roundtrip?", f"/{self.name}?", 1)


@contextlib.asynccontextmanager
async def connected(database: Database) -> AsyncIterator[Connection]:
    """A connection of its own."""
    connection = await asyncpg.connect(database.url, timeout=STOP_S)
    try:
        yield connection
    finally:
        await connection.close(timeout=STOP_S)


@contextlib.asynccontextmanager
async def fresh(on: EmbeddedPostgres, name: str, like: str = TEMPLATE) -> AsyncIterator[Database]:
    """A database without a row, or as the one that it is ``like``; dropped at the end."""
    async with connected(Database(on, "roundtrip")) as connection:
        await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {like}")
        # A copied sequence has numbers that were logged for the one it is a copy of: without this the copy
        # gives them without a word in the log, and after a crash once more.
        await connection.execute("CHECKPOINT")
    try:
        yield Database(on, name)
    finally:
        async with connected(Database(on, "roundtrip")) as connection:
            await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def digest_of(database: Database) -> Digest:
    """What the index in it says."""
    async with connected(database) as connection:
        return await digest(connection)


async def cursor(database: Database) -> tuple[int, str] | None:
    """How far its index goes: a block's number and hash."""
    async with connected(database) as connection:
        row = await connection.fetchrow("SELECT number, hash FROM facts.cursor")
    return (row["number"], "0x" + row["hash"].hex()) if row else None


async def restart(on: EmbeddedPostgres, at_once: bool) -> None:
    """Ends the server, as in an orderly way or as in a crash, and starts it again."""
    if at_once:
        pid = int((on.home / "data" / "postmaster.pid").read_text().split("\n")[0])
        os.kill(pid, signal.SIGQUIT)

        async def is_gone() -> bool:
            return not on.running

        if not await until(is_gone, STOP_S):
            raise WentWrong("the database server did not end")
    await on.stop()
    await on.start()


# --- the sync --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Program:
    """``python -m roundtrip`` over one database and one node. ``log``: what it says is added there."""

    places: DevnetFolders
    built: Built
    database: Database
    node_url: str
    var: Path
    log: Path
    process: asyncio.subprocess.Process | None = field(default=None)
    said: int = 0
    """Bytes of the log before the last start."""

    def environment(self) -> dict[str, str]:
        """Ours, with its settings and nobody else's."""
        theirs = {name: value for name, value in os.environ.items() if not name.startswith("ROUNDTRIP_")}
        return theirs | {
            # A process that does not end says where it is, before it is made to.
            "PYTHONFAULTHANDLER": "1",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "ROUNDTRIP_NETWORK": "devnet",
            "ROUNDTRIP_RPC_URL": self.node_url,
            "ROUNDTRIP_DATABASE_URL": self.database.url,
            "ROUNDTRIP_VAR": str(self.var),
            "ROUNDTRIP_POLL_MS": "20",
            "ROUNDTRIP_NODE_TIMEOUT_MS": "1500",
        }

    async def launched(self, command: str) -> asyncio.subprocess.Process:
        """A process at work; it ends with this one."""
        write_description(DevnetFolders(self.places.project, self.var), self.built, self.node_url)
        with self.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "roundtrip", command),
                env=self.environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent,
            )

    @property
    def runs(self) -> bool:
        """Whether the sync is at work."""
        return self.process is not None and self.process.returncode is None

    async def start(self) -> None:
        """Starts the sync."""
        assert not self.runs
        self.said = self.log.stat().st_size
        self.process = await self.launched("sync")

    async def begin_index(self) -> None:
        """Waits until a sync that was started follows: before that, it ends where the database is away."""

        async def follows() -> bool:
            return not self.runs or FOLLOWS.encode() in self.log.read_bytes()[self.said :]

        if not await until(follows, START_S):
            raise WentWrong(f"the sync does not begin: {self.tail()}")

    async def kill(self) -> None:
        """As by the kernel, in the middle of whatever it does."""
        await self._end(signal.SIGKILL, (-signal.SIGKILL,))

    async def stop(self) -> None:
        """As by whoever runs it; it may have been started a moment ago, and hear nothing yet."""
        await self._end(signal.SIGTERM, (0, -signal.SIGTERM))

    async def end(self) -> None:
        """As by whoever runs it, when it is at work."""
        await self._end(signal.SIGTERM, (0,))

    async def _end(self, how: signal.Signals, expected: tuple[int, ...]) -> None:
        self.must_run()
        assert self.process is not None
        self.process.send_signal(how)
        try:
            code = await ended(self.process, STOP_S)
        except WentWrong as wrong:
            raise WentWrong(f"{how.name} to the sync: {wrong}: {self.tail()}") from wrong
        if code not in expected:
            raise WentWrong(f"the sync ended with {code} after {how.name}: {self.tail()}")

    def must_run(self) -> None:
        """Raises WentWrong when the sync ended by itself."""
        if not self.runs:
            code = self.process.returncode if self.process else None
            raise WentWrong(f"the sync ended by itself with {code}: {self.tail()}")

    def tail(self) -> str:
        """The last that it said."""
        return self.log.read_text(errors="replace")[-2000:]

    async def reach(self, number: int, block_hash: str, limit_s: float) -> bool:
        """Waits until its index ends with this block."""

        async def is_there() -> bool:
            self.must_run()
            return await cursor(self.database) == (number, block_hash)

        return await until(is_there, limit_s)


def program(
    places: DevnetFolders, built: Built, database: Database, node_url: str, folder: Path
) -> contextlib.AbstractAsyncContextManager[Program]:
    """A program that is not started yet, and is ended at the end."""
    folder.mkdir(exist_ok=True)
    log = folder / f"{database.name}.log"
    log.write_bytes(b"")
    return _ended_after(Program(places, built, database, node_url, folder, log))


@contextlib.asynccontextmanager
async def _ended_after(found: Program) -> AsyncIterator[Program]:
    try:
        yield found
    finally:
        if found.runs:
            assert found.process is not None
            found.process.kill()
            await found.process.wait()


async def ended(process: asyncio.subprocess.Process, limit_s: float) -> int:
    """A process's exit code. Ends it, and raises WentWrong, when it goes on past the limit."""
    try:
        return await asyncio.wait_for(process.wait(), limit_s)
    except TimeoutError:
        process.send_signal(signal.SIGABRT)
        await process.wait()
        raise WentWrong(f"a process did not end within {limit_s:.0f} s") from None


def end_with_parent() -> None:
    """For a child: the kernel ends it when this process is gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
