"""A primary with hot standbys, of the embedded programs, as others run them: streaming replication over
sockets, made by pg_basebackup. To kill, stall and promote."""

import asyncio
import contextlib
import os
import shlex
import subprocess
import urllib.parse
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.server.rows import Connection
from support.databases import connected

WAIT_S = 60
_EVERY_S = 0.02


class ReplicatedPostgres(EmbeddedPostgres):
    """A primary, or a standby of ``primary``. Commits wait as ``settings`` say; nothing waits for the disk,
    since a killed server loses nothing that it gave to the system."""

    def __init__(
        self, directory: Path, primary: "ReplicatedPostgres | None" = None, settings: Sequence[str] = ()
    ) -> None:
        super().__init__(directory, durable=False)
        self.settings = ["synchronous_commit=on", "wal_retrieve_retry_interval=100ms", *settings]
        self._primary = primary

    @property
    def folder(self) -> str:
        """Of its socket."""
        return urllib.parse.parse_qs(urllib.parse.urlsplit(self.dsn).query)["host"][0]

    async def kill(self) -> None:
        """With SIGKILL, and what is left of it ends by itself."""
        assert self._process is not None
        self._process.kill()
        await self.stop()

    async def execute(self, statement: str) -> None:
        async with connected(self.dsn) as connection:
            await connection.execute(statement)

    async def run_script(self, script: str) -> None:
        """In a shell, as the server's user, with its programs."""
        given = f'export PATH="{self._programs()}:$PATH" PGHOST="{self.folder}" PGUSER=roundtrip; {script}'
        process = self._spawn("/bin/bash", "-euc", given)
        async with asyncio.timeout(WAIT_S):
            await asyncio.to_thread(process.wait)
        assert process.returncode == 0, (self.home / "postgres.log").read_text()

    def hand_over(self, folder: Path) -> Path:
        """Makes a folder, or takes one, that belongs to the server's user."""
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chown(folder, self._uid, self._gid)
        return folder

    def _spawn(self, *command: str) -> subprocess.Popen[bytes]:
        if not command[0].endswith("/postgres"):
            return super()._spawn(*command)
        return super()._spawn(*command, *(f"--{setting}" for setting in self.settings))

    async def _create_cluster(self, programs: Path) -> None:
        if self._primary is None:
            await super()._create_cluster(programs)
            return
        data = self.hand_over(self.home / "data")
        source = f"host={self._primary.folder} user=roundtrip application_name={self.directory.name}"
        await self.run_script(
            f"pg_basebackup -D {shlex.quote(str(data))} -d {shlex.quote(source)} --write-recovery-conf"
            " --checkpoint=fast --no-sync"
        )


@dataclass
class Cluster:
    """``standbys`` follow ``primary``. All are started."""

    primary: ReplicatedPostgres
    standbys: list[ReplicatedPostgres] = field(default_factory=list)

    def url_of_all(self) -> str:
        """Of whichever of them takes writes."""
        servers = [self.primary, *self.standbys]
        hosts = ",".join(urllib.parse.quote(server.folder) for server in servers)
        ports = ",".join("5432" for _ in servers)
        return (
            f"postgresql:///roundtrip?host={hosts}&port={ports}&user=roundtrip"
            "&target_session_attrs=read-write"
        )

    async def wait_until_replayed(self) -> None:
        """Until all standbys have what the primary has now."""
        async with connected(self.primary.dsn) as connection:
            end = await connection.fetchval("SELECT pg_current_wal_insert_lsn()::text")
        for standby in self.standbys:
            async with connected(standby.dsn) as connection:
                await until(connection, "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", end)


async def until(connection: Connection, is_so: str, *args: object) -> None:
    """Until the server answers a question with yes."""
    async with asyncio.timeout(WAIT_S):
        while not await connection.fetchval(is_so, *args):  # noqa: ASYNC110
            await asyncio.sleep(_EVERY_S)


@contextlib.asynccontextmanager
async def cluster(
    folder: Path, count: int, primary_settings: Sequence[str] = (), settings: Sequence[str] = ()
) -> AsyncIterator[Cluster]:
    """A primary and ``count`` standbys in ``folder``."""
    folder.chmod(0o711)  # noqa: ASYNC240
    async with contextlib.AsyncExitStack() as stack:
        primary = ReplicatedPostgres(folder / "primary", None, ["wal_keep_size=64MB", *settings])
        found = Cluster(await stack.enter_async_context(primary))
        for number in range(count):
            standby = ReplicatedPostgres(folder / f"standby{number + 1}", primary, settings)
            found.standbys.append(await stack.enter_async_context(standby))
        for setting in primary_settings:
            # Set once there is somebody to wait for.
            name, _, value = setting.partition("=")
            await primary.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        await primary.execute("SELECT pg_reload_conf()")
        yield found
