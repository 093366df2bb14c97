"""roundtrip keys list and revoke, against a real database."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest
from typer.testing import CliRunner, Result

from roundtrip.cli.main import app
from roundtrip.domain.accounts import keys
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address
from roundtrip.store.accounts import accounts
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.server.rows import Connection
from support.keys import account_of_key
from support.tables import own_database

NOW = datetime(2025, 10, 9, 12, 34, 56, tzinfo=UTC)
ONE, OTHER = Address("0x" + "1a" * 20), Address("0x" + "2b" * 20)


@pytest.fixture
async def url(database_url: str) -> AsyncIterator[str]:
    """A database of the test's own, so that a list has only the test's keys."""
    async with own_database(database_url, "key_commands") as own_url:
        yield own_url


@pytest.fixture
async def shop(url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


async def run_command(monkeypatch: pytest.MonkeyPatch, url: str, *arguments: str) -> Result:
    monkeypatch.setenv("ROUNDTRIP_DATABASE_URL", url)
    return await asyncio.to_thread(CliRunner().invoke, app, ["keys", *arguments])


async def account_for(connection: Connection, wallet: Address) -> Account:
    return (await accounts.lock_account(connection, wallet, [f"mite-{wallet[2:6]}"], NOW)).account


async def key_for(connection: Connection, wallet: Address, label: str = "", start: str | None = None) -> str:
    """A key of this wallet; ``start``: stored in place of the key's own first characters."""
    account, key = await account_for(connection, wallet), keys.format_key(secrets.token_bytes(32))
    await accounts.add_key(connection, account.id, keys.hash_of(key), start or key[:8], label, NOW)
    return key


async def test_the_list_has_what_is_kept_and_no_more(
    shop: Connection, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await key_for(shop, ONE, "my [red]bot[/red]"), await key_for(shop, OTHER)
    await run_command(monkeypatch, url, "revoke", second[:8])
    listed = await run_command(monkeypatch, url, "list")
    assert listed.exit_code == 0
    for answer in (
        "mite-1a1a",
        ONE,
        first[:8],
        "my [red]bot[/red]",
        "2025-10-09 12:34:56",
        OTHER,
        second[:8],
    ):
        assert answer in listed.output
    for key in (first, second):
        assert key[:9] not in listed.output
        assert keys.hash_of(key).hex() not in listed.output
    of_one = await run_command(monkeypatch, url, "list", "--wallet", ONE.upper().replace("X", "x"))
    assert first[:8] in of_one.output
    assert second[:8] not in of_one.output
    assert (await run_command(monkeypatch, url, "list", "--wallet", "0x12")).exit_code == 2


async def test_the_list_tells_sessions_from_keys(
    shop: Connection, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, session = await account_for(shop, ONE), keys.format_key(secrets.token_bytes(32))
    await accounts.add_key(
        shop, account.id, keys.hash_of(session), session[:8], "", NOW, datetime(2025, 10, 23, tzinfo=UTC)
    )
    key = await key_for(shop, ONE)
    listed = (await run_command(monkeypatch, url, "list")).output.splitlines()
    (of_session,) = [line for line in listed if session[:8] in line]
    (of_key,) = [line for line in listed if key[:8] in line]
    assert "session to 2025-10-23 00:00:00" in of_session
    assert "session" not in of_key
    assert " key " in of_key


@pytest.mark.parametrize("way", ["start", "id", "key"])
async def test_a_revoked_key_is_nobodys(
    shop: Connection, url: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    key, kept = await key_for(shop, ONE), await key_for(shop, ONE)
    (row, _) = await accounts.every_key(shop, ONE)
    which = {"start": key[:8], "id": str(row.id), "key": key}[way]
    done = await run_command(monkeypatch, url, "revoke", which)
    assert (done.exit_code, done.output) == (0, f"revoked: key {row.id} ({key[:8]}) of mite-1a1a, {ONE}\n")
    assert await account_of_key(shop, keys.hash_of(key)) is None
    assert await account_of_key(shop, keys.hash_of(kept)) is not None
    again = await run_command(monkeypatch, url, "revoke", which)
    assert (again.exit_code, again.output.split(":")[0]) == (0, "nothing to do")
    assert await account_of_key(shop, keys.hash_of(kept)) is not None


async def test_of_two_that_begin_alike_none_is_revoked_before_it_is_said_which(
    shop: Connection, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await key_for(shop, ONE, start="rt_aaaaa"), await key_for(shop, OTHER, start="rt_aaaaa")
    result = await run_command(monkeypatch, url, "revoke", "rt_aaaaa")
    ids = [key.id for key in await accounts.every_key(shop, None)]
    assert result.exit_code == 1
    assert f"{ids[0]} of mite-1a1a, {ONE}; {ids[1]} of mite-2b2b, {OTHER}" in result.output
    for key in (first, second):
        assert await account_of_key(shop, keys.hash_of(key)) is not None
    assert (await run_command(monkeypatch, url, "revoke", str(ids[0]))).exit_code == 0
    # Of the two only one is live now: no doubt is left.
    assert (await run_command(monkeypatch, url, "revoke", "rt_aaaaa")).exit_code == 0
    assert await account_of_key(shop, keys.hash_of(second)) is None


@pytest.mark.parametrize("which", ["rt_zzzzz", "99", "9" * 40, "", "rt_", "%", "rt_" + "0" * 43 + "1yFFu3"])
async def test_what_means_no_key_is_told_and_not_repeated(
    shop: Connection, url: str, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    key = await key_for(shop, ONE)
    result = await run_command(monkeypatch, url, "revoke", which)
    assert (result.exit_code, result.output) == (1, "roundtrip: no key matches\n")
    assert await account_of_key(shop, keys.hash_of(key)) is not None


async def test_a_key_is_revoked_while_the_service_runs_its_own_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROUNDTRIP_DATABASE_URL", raising=False)
    monkeypatch.setenv("ROUNDTRIP_VAR", str(tmp_path))
    async with EmbeddedPostgres(tmp_path / "postgres", durable=False) as server:
        connection = await asyncpg.connect(server.dsn)
        await migrate(connection)
        key = await key_for(connection, ONE)
        result = await asyncio.to_thread(CliRunner().invoke, app, ["keys", "revoke", key])
        assert (result.exit_code, result.output[:8]) == (0, "revoked:")
        assert await account_of_key(connection, keys.hash_of(key)) is None
        await connection.close()
        assert server.running
    # And where nothing runs, by a server of its own.
    result = await asyncio.to_thread(CliRunner().invoke, app, ["keys", "list"])
    assert (result.exit_code, key[:8] in result.output, key in result.output) == (0, True, False)
