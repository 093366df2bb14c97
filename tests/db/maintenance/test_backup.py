"""A database goes into a file and comes back the same, with or without what the chain tells again."""

import asyncio
import base64
import contextlib
import gzip
import os
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from roundtrip.cli.main import app
from roundtrip.domain.accounts import keys
from roundtrip.domain.base.errors import CannotRun
from roundtrip.domain.base.types import Address
from roundtrip.store.accounts import accounts
from roundtrip.store.check import evidence
from roundtrip.store.check.evidence import KeptEvidence
from roundtrip.store.index import cursor
from roundtrip.store.maintenance.backup import FORGOTTEN, _split_password, back_up
from roundtrip.store.server import connections, jobs
from roundtrip.store.server.migrate import migrate, migrations
from roundtrip.sync.apply import Writer
from support.alert_ground import AlertGround, buys
from support.alerting import accounts as new_accounts
from support.databases import connected, database, named, needs_one_server
from support.servers import STRANGE, ServerPostgres
from support.tables import append_blocks, begin_index, everything, own_database, tables
from support.told_blocks import Chain, MadeUp, launched, sent
from unit.sync.telling import ALICE, BOB, CAROL, CURVE, DEV, HIGH
from unit.venues.logs import NETWORK

KEY = b"k" * 32
NOW = datetime(2026, 1, 1, tzinfo=UTC)
WALLET = Address("0x" + "1a" * 20)
TOKEN = Address("0x" + "ab" * 20)


@pytest.fixture(scope="session")
async def full_url(database_url: str) -> AsyncIterator[str]:
    """A database with an index, an account, evidence and work that waits."""
    async with own_database(database_url, "backed_up") as url:
        async with connected(url) as connection:
            made = Chain()
            MadeUp(7).grow(made, 60)
            await append_blocks(connection, await begin_index(connection, made.parent), made.blocks)
            account = (await accounts.lock_account(connection, WALLET, ["mite-1"], NOW)).account
            key = keys.format_key(secrets.token_bytes(32))
            await accounts.add_key(
                connection, account.id, keys.hash_of(key), key[:8], 'of "a" \\ \n bot', NOW
            )
            await evidence.keep(connection, TOKEN, KeptEvidence(NOW, 1, "1", "ok", "ok", b"\x00\\x00"))
            # Rows that were deleted again have moved the sequence of their ids, which a backup keeps.
            await connection.execute("INSERT INTO facts.rewound (to_number, to_s) VALUES (1, 1), (2, 2)")
            await connection.execute("DELETE FROM facts.rewound")
            await jobs.enqueue(connection, "token", TOKEN)
        yield url


async def run_command(monkeypatch: pytest.MonkeyPatch, url: str, *arguments: object) -> Result:
    monkeypatch.setenv("ROUNDTRIP_DATABASE_URL", url)
    if "ROUNDTRIP_SECRET_KEY" not in os.environ:
        monkeypatch.setenv("ROUNDTRIP_SECRET_KEY", base64.b64encode(KEY).decode())
    return await asyncio.to_thread(CliRunner().invoke, app, list(map(str, arguments)))


@pytest.fixture
async def empty_url(database_url: str) -> AsyncIterator[str]:
    async with database(database_url, "restored") as url:
        yield url


@pytest.fixture
async def file(full_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A whole backup."""
    done = await run_command(monkeypatch, full_url, "backup", tmp_path / "kept.sql.gz")
    assert done.exit_code == 0, done.output
    assert "It does not contain the key" in done.output
    return tmp_path / "kept.sql.gz"


def is_alone_and_for_its_owner(file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def damaged(whole: bytes, how: str) -> bytes:
    """A backup that was cut, that was cut before it was compressed, or that never was one."""
    if how == "no archive":
        return b"SELECT 1;"
    plain = gzip.decompress(whole)
    return whole[:-300] if how == "cut" else gzip.compress(plain[: plain.rindex(b"COPY ")])


async def is_empty(url: str) -> bool:
    async with connected(url) as connection:
        return bool(await connection.fetchval("SELECT to_regnamespace('accounts') IS NULL"))


async def test_what_was_backed_up_comes_back_the_same(
    full_url: str, empty_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_alone_and_for_its_owner(file)
    done = await run_command(monkeypatch, empty_url, "restore", file)
    assert done.exit_code == 0, done.output
    before = await everything(full_url)
    assert await everything(empty_url) == before
    for name in ("facts.trade", "accounts.key", "facts.evidence", "jobs.job"):
        assert before[name][0], name
    async with connected(empty_url) as connection:
        assert await migrate(connection) == []


async def test_a_small_backup_has_what_no_sync_makes_again(
    full_url: str, empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "small.sql.gz"
    assert (await run_command(monkeypatch, full_url, "backup", "--small", file)).exit_code == 0
    assert (await run_command(monkeypatch, empty_url, "restore", file)).exit_code == 0
    before, after = await everything(full_url), await everything(empty_url)
    left_out = {name for name in before if name.startswith(FORGOTTEN) and before[name][1] != "sequence"}
    assert {name for name in left_out if after.get(name, (0, ""))[0]} == set()
    # An id that was given once is given to nothing else: bags, reports and alerts name them.
    assert {name: after[name] for name in before if name not in left_out} == {
        name: before[name] for name in before if name not in left_out
    }
    made = Chain()
    MadeUp(7).grow(made, 60)
    async with connected(full_url) as old, connected(empty_url) as new:
        await cursor.begin(new, made.parent.number + 1, made.parent)
        await append_blocks(new, Writer(NETWORK), made.blocks)
        assert await tables(new) == await tables(old)


async def test_after_a_small_restore_alerts_are_of_what_is_new_and_never_twice(
    database_url: str, empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is made again from the chain; how far alerts were read was kept, and goes on from there."""
    made = Chain()
    async with own_database(database_url, "watched") as url, ground(url, made) as old:
        await old.block(sent(launched(HIGH, CURVE, DEV), sender=DEV))
        await old.read()
        await old.rule()
        await old.follow(ALICE)
        first = old.head().number
        await old.block(buys(BOB))
        await old.forked(first, [buys()])
        await old.read()
        assert len(await old.rows()) == 2
        assert (await run_command(monkeypatch, url, "backup", "--small", tmp_path / "file")).exit_code == 0
        made = old.chain
        alerts = [tuple(row) for row in await old.rows()]
    assert (await run_command(monkeypatch, empty_url, "restore", tmp_path / "file")).exit_code == 0
    async with ground(empty_url, made) as new:
        await cursor.begin(new.index, made.parent.number + 1, made.parent)
        for block in made.blocks:
            await new.follows(block)
            await new.read()
        assert [tuple(row) for row in await new.rows()] == alerts
        await new.block(buys(BOB))
        await new.read()
        assert len(await new.rows()) == 3
        await new.forked(first + 1, [buys(CAROL)])
        await new.read()
        assert [row["wallet"] for row in await new.rows()] == [
            bytes.fromhex(who[2:]) for who in (ALICE, ALICE, CAROL)
        ]
        assert [row["wallet"].hex() for row in await new.rows("retracted_at IS NOT NULL")] == [BOB[2:]]


@contextlib.asynccontextmanager
async def ground(url: str, made: Chain) -> AsyncIterator[AlertGround]:
    """An AlertGround on this database, with a new account and index if it has none."""
    async with connected(url) as index, connections.create_pool(url, min_size=1, max_size=6) as pool:
        account: int | None = await index.fetchval("SELECT id FROM accounts.account")
        if account is None:
            (account,) = await new_accounts(index, 1)
            await cursor.begin(index, made.parent.number + 1, made.parent)
        yield AlertGround(pool, index, made, Writer(NETWORK), account)


async def test_nothing_is_restored_into_a_database_that_is_not_empty(
    full_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await everything(full_url)
    done = await run_command(monkeypatch, full_url, "restore", file)
    assert done.exit_code != 0
    assert "not empty" in str(done.exception)
    assert await everything(full_url) == before


@pytest.mark.parametrize("how", ["cut", "plainly cut", "no archive"])
async def test_nothing_is_restored_from_a_damaged_file(
    empty_url: str, file: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(file.write_bytes, damaged(await asyncio.to_thread(file.read_bytes), how))
    done = await run_command(monkeypatch, empty_url, "restore", file)
    assert "not signed with this service's key" in str(done.exception)
    done = await run_command(monkeypatch, empty_url, "restore", "--trust", file)
    assert done.exit_code != 0
    assert "not a complete backup; nothing was restored" in str(done.exception)
    assert await is_empty(empty_url)


ATTACKS = {
    "a command of psql": "\\! touch {mark}\n",
    "a query into a program": "SELECT 1 \\g | touch {mark}\n",
    "a table into a program": "COPY (SELECT 1) TO PROGRAM 'touch {mark}';\n",
    "a table out of a program": "COPY accounts.account FROM PROGRAM 'touch {mark}';\n",
    "a function": "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';\n",
    "a setting of the server": "ALTER SYSTEM SET archive_command = 'touch {mark}';\n",
    "a do": "DO $$ BEGIN COPY (SELECT 1) TO PROGRAM 'touch {mark}'; END $$;\n",
    "behind a setting": "SET x = 1; COPY (SELECT 1) TO PROGRAM 'touch {mark}';\n",
    "behind a sequence": "SELECT pg_catalog.setval('facts.pool_id_seq', 1, true); DROP SCHEMA facts;\n",
    "a table that is none of ours": "COPY public.migration_of_others (a) FROM stdin;\n1\n\\.\n",
    "a catalog": "COPY pg_catalog.pg_authid (rolname) FROM stdin;\nme\n\\.\n",
    "a sequence that is none of ours": "SELECT pg_catalog.setval('pg_catalog.x', 1, true);\n",
    "rows that do not fit": "COPY public.migration (number) FROM stdin;\nmany\n\\.\n",
    "rows without an end": "COPY public.migration (number) FROM stdin;\n900\n",
    "another migration": "COPY public.migration (number) FROM stdin;\n900\n\\.\n",
    "no day": "COPY facts.trade_20261399 (at_s) FROM stdin;\n1\n\\.\n",
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_changed_file_runs_nothing_and_restores_nothing(
    empty_url: str, file: Path, tmp_path: Path, attack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    plain = gzip.decompress(await asyncio.to_thread(file.read_bytes))
    end = plain.index(b"-- PostgreSQL database dump complete")
    put_in = ATTACKS[attack].format(mark=mark).encode()
    changed = gzip.compress(plain[:end] + put_in + plain[end:])
    await asyncio.to_thread(file.write_bytes, changed)
    for words, answer in ((("restore",), "not signed"), (("restore", "--trust"), "nothing was restored")):
        done = await run_command(monkeypatch, empty_url, *words, file)
        assert done.exit_code != 0
        assert answer in str(done.exception)
        assert await is_empty(empty_url)
    assert not mark.exists()


async def test_a_backup_of_another_service_is_restored_only_where_it_is_trusted(
    full_url: str, empty_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUNDTRIP_SECRET_KEY", base64.b64encode(b"x" * 32).decode())
    done = await run_command(monkeypatch, empty_url, "restore", file)
    assert "not signed with this service's key" in str(done.exception)
    assert await is_empty(empty_url)
    done = await run_command(monkeypatch, empty_url, "restore", "--trust", file)
    assert done.exit_code == 0, done.output
    assert await everything(empty_url) == await everything(full_url)


async def test_one_changed_byte_is_noticed(
    empty_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bytearray(await asyncio.to_thread(file.read_bytes))
    for at in (9, len(whole) // 2, len(whole) - 30):
        changed = bytearray(whole)
        changed[at] ^= 1
        await asyncio.to_thread(file.write_bytes, bytes(changed))
        done = await run_command(monkeypatch, empty_url, "restore", file)
        assert "was changed" in str(done.exception)
    assert await is_empty(empty_url)


async def test_nothing_is_restored_from_a_newer_release(
    full_url: str, empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "newer.sql.gz"
    newer = migrations()[-1][0] + 1
    async with connected(full_url) as connection:
        await connection.execute("INSERT INTO public.migration (number) VALUES ($1)", newer)
        assert (await run_command(monkeypatch, full_url, "backup", file)).exit_code == 0
        await connection.execute("DELETE FROM public.migration WHERE number = $1", newer)
    done = await run_command(monkeypatch, empty_url, "restore", file)
    assert "newer version of roundtrip" in str(done.exception)
    assert await is_empty(empty_url)


@needs_one_server
async def test_a_failed_backup_keeps_the_previous_file(
    file: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await asyncio.to_thread(file.read_bytes)
    done = await run_command(monkeypatch, named(database_url, "nowhere"), "backup", file)
    assert "reading the database failed" in str(done.exception)
    assert "nowhere" in str(done.exception)
    assert await asyncio.to_thread(file.read_bytes) == before
    is_alone_and_for_its_owner(file)


async def test_an_empty_database_never_replaces_a_backup(
    file: Path, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backup timer may run while somebody restores."""
    before = await asyncio.to_thread(file.read_bytes)
    done = await run_command(monkeypatch, empty_url, "backup", file)
    assert done.exit_code != 0
    assert "this database has no tables of roundtrip" in str(done.exception)
    assert await asyncio.to_thread(file.read_bytes) == before
    is_alone_and_for_its_owner(file)


async def test_two_backups_at_once_to_one_file_leave_a_whole_one(
    full_url: str, empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kept.sql.gz"

    def environment(password: str | None) -> dict[str, str]:
        assert password is None
        return dict(os.environ)

    await asyncio.gather(*(back_up(full_url, file, environment, KEY) for _ in range(2)))
    is_alone_and_for_its_owner(file)
    assert (await run_command(monkeypatch, empty_url, "restore", file)).exit_code == 0


@pytest.mark.parametrize(
    ("url", "plain", "password"),
    [
        ("postgresql://me:p%40ss@host:1/db?sslmode=x&jit=on", "postgresql://me@host:1/db?sslmode=x", "p@ss"),
        ("postgres://me@host/db", "postgres://me@host/db", None),
        ("postgresql:///db?host=%2Fx&password=a%26b&user=me", "postgresql:///db?host=%2Fx&user=me", "a&b"),
    ],
)  # fmt: skip
def test_a_password_stands_in_no_list_of_processes(url: str, plain: str, password: str | None) -> None:
    """``jit`` is left out, too: it is no option of libpq."""
    assert _split_password(url) == (plain, password)


def test_the_password_of_a_client_key_is_refused() -> None:
    with pytest.raises(CannotRun, match="sslpassword"):
        _split_password("postgresql://me@host/db?sslmode=verify-full&sslkey=%2Fkey&sslpassword=hush")


async def test_a_server_that_asks_for_a_password(
    file: Path,
    open_folder: Path,
    full_url: str,
    empty_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over TCP, with unusual settings of the server, and a role that owns its database and nothing else."""
    server, again = ServerPostgres(open_folder / "asks", settings=STRANGE), file.with_name("again.sql.gz")
    await server.open()
    try:
        assert (await run_command(monkeypatch, server.url, "restore", file)).exit_code == 0
        assert (await run_command(monkeypatch, server.url, "backup", again)).exit_code == 0
    finally:
        await server.stop()
    assert (await run_command(monkeypatch, empty_url, "restore", again)).exit_code == 0
    assert await everything(empty_url) == await everything(full_url)
