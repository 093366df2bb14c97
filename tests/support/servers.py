"""A PostgreSQL server as others run one: over TCP, with passwords, durable, with a collation of its own, for
a role that may only make databases. To run a command with its address in TEST_DATABASE_URL:

    python -m support.servers [--strange] [--programs DIRECTORY] COMMAND...

Where that names a server already, the command is run on it."""

import argparse
import asyncio
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import asyncpg

from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet.node import free_port
from support.databases import SERVER_VARIABLE

ROLE = "somebody"
# What a server may be set to by its owner, and no client is asked about.
STRANGE = (
    "timezone=Asia/Kathmandu",
    "log_timezone=America/St_Johns",
    "datestyle=SQL, DMY",
    "intervalstyle=postgres_verbose",
    "default_transaction_isolation=repeatable read",
    "statement_timeout=60s",
    "idle_in_transaction_session_timeout=60s",
    "jit=on",
    "jit_above_cost=0",
    "bytea_output=escape",
    "extra_float_digits=0",
    "search_path=nowhere",
)
_PLACE = ("--locale-provider=builtin", "--builtin-locale=PG_UNICODE_FAST")


class ServerPostgres(EmbeddedPostgres):
    """Of the embedded one's programs, or of those in ``programs``. ``url``: for ``ROLE``, once it is started.
    The port stays the same over stops and starts."""

    def __init__(
        self, directory: Path, *, settings: Sequence[str] = (), programs: Path | None = None
    ) -> None:
        super().__init__(directory)
        self._port, self._password = free_port(), secrets.token_urlsafe(12)
        self._more = [f"--{one}" for one in ("listen_addresses=127.0.0.1", f"port={self._port}", *settings)]
        self._own_programs = programs

    @property
    def dsn(self) -> str:
        """The superuser's, over the socket, for whoever starts it."""
        return super().dsn.replace("port=5432", f"port={self._port}")

    @property
    def url(self) -> str:
        return f"postgresql://{ROLE}:{self._password}@127.0.0.1:{self._port}/{ROLE}"

    async def open(self) -> None:
        """Starts it for the first time, and lets the role in."""
        await self.start()
        hba = self.home / "data" / "pg_hba.conf"
        hba.write_text("local all roundtrip trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.execute("SET password_encryption = 'scram-sha-256'")
            await connection.execute(f"CREATE ROLE {ROLE} LOGIN CREATEDB PASSWORD '{self._password}'")
            # Since PostgreSQL 15 only a database's owner may make anything in it.
            await connection.execute(f"CREATE DATABASE {ROLE} OWNER {ROLE}")
            await connection.execute("SELECT pg_reload_conf()")
        finally:
            await connection.close()

    def _programs(self) -> Path:
        return self._own_programs or super()._programs()

    def _spawn(self, *command: str) -> subprocess.Popen[bytes]:
        if command[0].endswith("/initdb"):
            return super()._spawn(*command, *(() if self._own_programs else _PLACE))
        return super()._spawn(*command, *self._more)


async def _run(asked: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o711)  # noqa: S103
        settings = STRANGE if asked.strange else ()
        server = ServerPostgres(Path(name) / "server", settings=settings, programs=asked.programs)
        await server.open()
        try:
            return await _command(asked.command, {**os.environ, SERVER_VARIABLE: server.url})
        finally:
            await server.stop()


async def _command(command: Sequence[str], environment: dict[str, str]) -> int:
    process = await asyncio.create_subprocess_exec(*command, env=environment)
    return await process.wait()


def main() -> int:
    """Runs the command; its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, help="where postgres and initdb of another release are")
    parser.add_argument("--strange", action="store_true", help="with settings that no one would expect")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    if os.environ.get(SERVER_VARIABLE):
        return asyncio.run(_command(asked.command, dict(os.environ)))
    return asyncio.run(_run(asked))


if __name__ == "__main__":
    sys.exit(main())
