"""The whole service as it is run: processes that serve, two syncs, a worker, PostgreSQL and Valkey, two nodes
that are one chain behind proxies, and somebody's webhook."""

import asyncio
import contextlib
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import asyncpg
import structlog

from roundtrip.app import http_server
from roundtrip.app import supervisor as processes
from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet.world import Built, DevnetFolders, write_description
from sim import arena
from sim.arena import Database, WentWrong
from sim.play import Play
from sim.proxy import Proxy
from support.receiver import Receiver, answer, receiver
from support.valkeys import Store, store

A = TypeVar("A")
START_S = 60.0
TURN_S = 0.5
"""Between two turns of the chain."""
SERVING = 2


class Disk(EmbeddedPostgres):
    """A server whose disk can be full, and that can be kept from starting. ``most_bytes``: of any file; None:
    as many as one likes."""

    most_bytes: int | None = None
    away = False

    async def start(self) -> None:
        """As ever; while it is away it cannot be started."""
        if self.away:
            raise CannotRun("it is kept away")
        await super().start()

    def bound(self, most_bytes: int | None) -> None:
        """From now on, whoever starts it again."""
        self.most_bytes = most_bytes
        for pid in self.pids() if self.running else []:
            bound(pid, most_bytes)

    def pids(self) -> list[int]:
        """All its processes, the first one last."""
        assert self._process is not None
        first = self._process.pid
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
            return [*map(int, children), first]
        return []

    def _spawn(self, *command: str) -> "subprocess.Popen[bytes]":
        if command[0].endswith("/initdb"):
            # So that a table can be too large where the log is not.
            return super()._spawn(*command, "--wal-segsize=1")
        process = super()._spawn(*command)
        if self.most_bytes is not None:
            bound(process.pid, self.most_bytes)
        return process


def bound(pid: int, most_bytes: int | None) -> None:
    """No file of that process grows beyond it, as on a full disk. It may be another user's: only that user,
    or who may do everything, sets limits for it."""
    most = "unlimited" if most_bytes is None else most_bytes
    with contextlib.suppress(FileNotFoundError):
        owner = Path(f"/proc/{pid}").stat()
        theirs = {} if owner.st_uid == os.geteuid() else {"user": owner.st_uid, "group": owner.st_gid}
        command = ["/usr/bin/prlimit", "--pid", str(pid), f"--fsize={most}:"]
        if subprocess.run(command, check=False, **theirs).returncode and Path(f"/proc/{pid}").exists():  # type: ignore[call-overload]
            raise WentWrong(f"a process's files cannot be bound: {pid}")


_FILLING = (
    "INSERT INTO facts.evidence"
    " (checked_at, token, block_number, policy_version, verdict_code, verdict_level, document)"
    " SELECT now(), decode(repeat('00', 20), 'hex'), 0, '', '', 'unknown', random.bytes"
    " FROM generate_series(1, $1::int) AS row, LATERAL (SELECT"
    " convert_to(string_agg(md5(row || ' ' || part), ''), 'UTF8') AS bytes"
    " FROM generate_series(1, 250) AS part) AS random"
)


async def fill(url: str) -> None:
    """Makes the table of what checks saw as large as it may be, with rows that are never there, whose room is
    not given back so soon; or ends the server with it, where there is no room for its log."""
    with contextlib.suppress(*DATABASE_FAULTS):
        connection = await asyncpg.connect(url)
        try:
            # A row at a time in the end, so that no room is left.
            for count in (*(100,) * 10, *(1,) * 100):
                transaction = connection.transaction()
                await transaction.start()
                with contextlib.suppress(*(DATABASE_FAULTS if count > 1 else ())):
                    await connection.execute(_FILLING, count)
                await transaction.rollback()
        finally:
            connection.terminate()
        raise WentWrong("a table has room without end")


@dataclass
class Hook:
    """Somebody's webhook, as docs/receivers has it. ``rows``: each once, by its id and verb, with the ids of
    the messages that it came in."""

    at: Receiver
    verified: Any
    secret: str = ""
    rows: dict[tuple[int, str], set[str]] = field(default_factory=dict)
    refused: int = 0

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The newest request. By this process's clock, which is never wrong."""
        got = self.at.got.pop()
        if self.secret and not self.verified(self.secret, got.headers, got.body, time.time()):
            self.refused += 1
            await answer(401)(reader, writer)
            return
        if self.secret:
            for row in json.loads(got.body)["rows"]:
                self.rows.setdefault((row["id"], row["verb"]), set()).add(got.headers["webhook-id"])
        await answer(204)(reader, writer)


@dataclass
class BadDaysService:
    """All of it. ``chain``: held by whoever makes blocks."""

    places: DevnetFolders
    built: Built
    folder: Path
    node_url: str
    play: Play
    proxies: tuple[Proxy, Proxy]
    database: Disk
    valkey: Store
    hook: Hook
    base_url: str = ""
    supervisor: processes.Supervisor | None = None
    chain: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def index(self) -> Database:
        """Where everything is kept."""
        return Database(self.database, "roundtrip")

    def pids(self, role: str) -> list[int]:
        """Of the processes that do that now."""
        assert self.supervisor is not None
        return [child.pid for child in self.supervisor.children() if child.role.name == role]

    def set_clock(self, ahead_s: float) -> None:
        """Of all processes of the service."""
        with (self.folder / "clock").open("r+b") as file:
            file.write(struct.pack("<d", ahead_s))

    async def on_chain(self, work: Callable[..., A], *given: Any) -> A:
        """The chain goes on. Who is cancelled waits for it: nobody else may be on it meanwhile."""
        async with self.chain:
            doing = asyncio.create_task(asyncio.to_thread(work, *given))
            try:
                return await asyncio.shield(doing)
            finally:
                await asyncio.wait({doing})

    async def playing(self) -> None:
        """The chain goes on and on."""
        while True:
            await self.on_chain(self.play.turns, 1)
            await asyncio.sleep(TURN_S)

    def environment(self) -> dict[str, str]:
        """Of every process of the service."""
        theirs = {name: value for name, value in os.environ.items() if not name.startswith("ROUNDTRIP_")}
        shifted = str(Path(__file__).with_name("shifted"))
        return theirs | {
            "PYTHONPATH": os.pathsep.join([shifted, *(path for path in sys.path if path)]),
            "SIM_CLOCK": str(self.folder / "clock"),
            "ROUNDTRIP_NETWORK": "devnet",
            "ROUNDTRIP_RPC_URLS": json.dumps([proxy.url for proxy in self.proxies]),
            "ROUNDTRIP_DATABASE_URL": self.index.url,
            "ROUNDTRIP_REDIS_URL": self.valkey.url,
            "ROUNDTRIP_VAR": str(self.folder),
            "ROUNDTRIP_ANON_PER_MINUTE": "100000",
            "ROUNDTRIP_VIEWS_PER_MINUTE": "100000",
            "ROUNDTRIP_KEY_PER_MINUTE": "100000",
            "ROUNDTRIP_KEY_PER_DAY": "100000",
            "ROUNDTRIP_WEBHOOK_LOOPBACK": json.dumps([self.hook.at.at]),
        }

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["BadDaysService"]:
        """Started, and ended at the end. What it says is in ``folder``/log."""
        write_description(DevnetFolders(self.places.project, self.folder), self.built, self.proxies[0].url)
        (self.folder / "clock").write_bytes(struct.pack("<d", 0.0))
        log = self.folder / "log"
        text = 'log="$0"; exec "$@" 2>>"$log"'
        with http_server.listen("127.0.0.1", 0, "port") as listening:
            self.base_url = "http://{}:{}".format(*listening.getsockname()[:2])
            roles = [
                processes.serve_role(listening, SERVING),
                processes.Role("sync", ("sync",), processes.FOLLOWS, 2),
                processes.Role("work", ("work",), processes.WORKS),
            ]
            program = ("/bin/sh", "-c", text, str(log), sys.executable, "-m", "roundtrip")
            self.supervisor = processes.Supervisor(roles, self.environment(), lambda _: None, program)
            ready = asyncio.Event()
            running = asyncio.create_task(self.supervisor.run(lambda _: ready.set()))
            is_ready = asyncio.create_task(ready.wait())
            try:
                await asyncio.wait({running, is_ready}, timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
                if not ready.is_set():
                    raise WentWrong(f"the service did not start: {log.read_text()[-2000:]}")
                yield self
            finally:
                is_ready.cancel()
                running.cancel()
                await asyncio.wait({running})


@contextlib.asynccontextmanager
async def service(
    places: DevnetFolders, built: Built, folder: Path, seed: int, verified: Any
) -> AsyncIterator[BadDaysService]:
    """All of it, started. ``folder``: for its files, which the database's user can reach."""
    with (folder / "parent.log").open("w") as log, arena.chain(places, built) as (node, rpc):
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(log))
        async with contextlib.AsyncExitStack() as stack:
            proxies = [
                await stack.enter_async_context(Proxy(node.url, Random(f"{seed} {number}")).running())
                for number in range(2)
            ]
            hook = Hook(await stack.enter_async_context(receiver()), verified)
            hook.at.behave = hook.take
            database = Disk(folder / "postgres")
            await database.start()
            await stack.enter_async_context(database.keep_running())
            valkey = stack.enter_context(store(folder / "v"))
            play = Play(rpc, built, Random(f"{seed} chain"))
            own = folder / "var"
            own.mkdir()
            made = BadDaysService(
                places, built, own, node.url, play, (proxies[0], proxies[1]), database, valkey, hook
            )
            yield await stack.enter_async_context(made.running())
