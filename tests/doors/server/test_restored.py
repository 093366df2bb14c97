"""A service that was backed up and restored answers as it did, to the same keys."""

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roundtrip.cli.main import app
from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.databases import database
from support.fixtures import context_for
from support.keys import random_context
from support.serving import service
from support.watching import SETTINGS, Caller, caller


async def ask_some(me: Caller) -> list[dict[str, object]]:
    """Of the account, and out of the index."""
    return [await me.ask(name) for name in ("list_rules", "inbox", "chain_vitals", "moving_now")]


async def test_a_restored_service_answers_as_before(
    indexed: Context, indexed_url: str, database_url: str, rpc: SyncRpc, built: Built, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ctx, file = random_context(indexed, Clock()), str(tmp_path / "kept.sql.gz")
    async with service(ctx, SETTINGS) as url:
        me = await caller(ctx, url)
        await me.ask("create_rule", rule="any buying over 1 eth")
        before = await ask_some(me)
        monkeypatch.setenv("ROUNDTRIP_DATABASE_URL", indexed_url)
        assert (await asyncio.to_thread(CliRunner().invoke, app, ["backup", file])).exit_code == 0
    async with database(database_url, "restored_service") as restored_url:
        monkeypatch.setenv("ROUNDTRIP_DATABASE_URL", restored_url)
        assert (await asyncio.to_thread(CliRunner().invoke, app, ["restore", file])).exit_code == 0
        async with (
            connections.create_pool(restored_url, min_size=1, max_size=4) as pool,
            context_for(rpc.url, built, pool) as found,
        ):
            await found.heads.refresh()
            again = random_context(found, Clock())
            async with service(again, SETTINGS) as url:
                assert await ask_some(Caller(again, url, me.key, me.account_id)) == before
