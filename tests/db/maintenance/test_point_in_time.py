"""A server comes back as it was at a moment, by the commands of docs/operations.md (blocks ini and sh)."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from roundtrip.domain.accounts import keys
from roundtrip.domain.base.types import Address
from roundtrip.store.accounts import accounts
from roundtrip.store.server.migrate import migrate
from support.databases import connected
from support.documents import blocks
from support.standbys import ReplicatedPostgres, until
from support.tables import append_blocks, begin_index, everything
from support.told_blocks import Chain, MadeUp

PAGE = "docs/operations.md"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
# A server is made and started twice.
pytestmark = pytest.mark.timeout(300)


async def put_key(url: str, number: int) -> None:
    async with connected(url) as connection:
        wallet = Address(f"0x{number:040x}")
        account = (await accounts.lock_account(connection, wallet, [f"mite-{number}"], NOW)).account
        key = keys.format_key(bytes([number] * 32))
        await accounts.add_key(connection, account.id, keys.hash_of(key), key[:8], "bot", NOW)


def rows_of(contents: dict[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
    """Without sequences: a recovery may skip some of their numbers."""
    return {name: found for name, found in contents.items() if found[1] != "sequence"}


async def test_a_server_comes_back_as_it_was_at_a_moment(open_folder: Path) -> None:
    server = ReplicatedPostgres(open_folder / "server")
    here = {
        "/srv/roundtrip": f"{open_folder}/archive",
        "/var/lib/postgresql/18/main": f"{open_folder}/server/data",
    }

    def as_here(text: str) -> str:
        return re.sub("|".join(here), lambda found: here[found[0]], text)

    (ini,) = blocks(PAGE, "ini")
    base_backup, restoring = (as_here(block.text) for block in blocks(PAGE, "sh"))
    server.settings += [as_here(line).replace(" = ", "=").replace("'", "") for line in ini.text.splitlines()]
    async with server:
        for folder in ("archive", "archive/wal", "archive/base", "server"):
            server.hand_over(open_folder / folder)
        await server.stop()
        await server.start()
        made = Chain()
        MadeUp(7).grow(made, 40)
        async with connected(server.dsn) as connection:
            await migrate(connection)
            writer = await begin_index(connection, made.parent)
            await append_blocks(connection, writer, made.blocks[:10])
            await put_key(server.dsn, 1)
            await server.run_script(base_backup)
            await append_blocks(connection, writer, made.blocks[10:25])
            await put_key(server.dsn, 2)
            moment = await connection.fetchval("SELECT clock_timestamp()::text")
        expected = rows_of(await everything(server.dsn))

        await put_key(server.dsn, 3)
        async with connected(server.dsn) as connection:
            await append_blocks(connection, writer, made.blocks[25:30])
            await connection.execute("DELETE FROM accounts.key; TRUNCATE facts.trade")
            await connection.execute("SELECT pg_switch_wal()")
        await server.stop()
        restoring, count = re.subn("2026-11-30 12:34:56[+]00", moment, restoring)
        assert count == 1
        # Restoring needs nothing from before the base backup.
        await server.run_script(as_here("cd /srv/roundtrip/wal; pg_archivecleanup . *.backup"))
        await server.run_script(restoring)

        await server.start()
        async with connected(server.dsn) as connection:
            await until(connection, "SELECT NOT pg_is_in_recovery()")
            assert rows_of(await everything(server.dsn)) == expected
            assert [key.wallet[-1] for key in await accounts.every_key(connection, None)] == ["1", "2"]
            assert await migrate(connection) == []
            await append_blocks(connection, writer, made.blocks[25:])
        await put_key(server.dsn, 4)
