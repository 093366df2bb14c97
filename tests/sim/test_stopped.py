"""The sync as a process of its own is stopped and started again, and health tells."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from roundtrip.domain.market.chain_stats import BEHIND_S
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.system.status import Health, health
from roundtrip.store.server import connections
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.databases import database
from support.fixtures import context_for

WAIT_S = 60.0


@contextlib.contextmanager
def sync(url: str, rpc_url: str, var: Path) -> Iterator[subprocess.Popen[bytes]]:
    """``roundtrip sync``, ended afterwards as an administrator would."""
    ours = {"ROUNDTRIP_DATABASE_URL": url, "ROUNDTRIP_RPC_URL": rpc_url, "ROUNDTRIP_VAR": str(var)}
    process = subprocess.Popen(
        [sys.executable, "-m", "roundtrip", "sync"],
        env={**os.environ, **ours, "ROUNDTRIP_POLL_MS": "20"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait()


async def until(ctx: Context, is_well: bool) -> Health:
    """Health once it says so; bounded."""
    deadline = time.monotonic() + WAIT_S
    while True:
        await ctx.heads.refresh()
        result = (await health(ctx, Nothing())).answer
        if result.ok is is_well:
            return result
        assert time.monotonic() < deadline, result
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def served(url: str, rpc_url: str, built: world.Built) -> AsyncIterator[Context]:
    async with (
        connections.create_pool(url, min_size=1, max_size=2) as pool,
        context_for(rpc_url, built, pool) as ctx,
    ):
        yield ctx


async def test_health_is_bad_while_the_sync_is_stopped_and_the_node_goes_on(
    database_url: str, places: world.DevnetFolders, built: world.Built, tmp_path: Path
) -> None:
    options = NodeOptions(state=built.state)
    with world.start_world(places, built, options) as node, SyncRpc(node.url) as rpc:
        world.write_description(world.DevnetFolders(places.project, tmp_path), built, node.url)
        async with database(database_url, "stopped") as url:
            with sync(url, node.url, tmp_path) as process:
                async with served(url, node.url, built) as ctx:
                    result = await until(ctx, True)
                    assert result.blocks_behind == 0
                    assert process.poll() is None
            async with served(url, node.url, built) as ctx:
                latest_s = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
                rpc.call("evm_mine", hex(latest_s + BEHIND_S))
                assert (await until(ctx, True)).blocks_behind == 1
                rpc.call("evm_mine", hex(latest_s + BEHIND_S + 1))
                assert (await until(ctx, False)).blocks_behind == 2
                with sync(url, node.url, tmp_path):
                    assert (await until(ctx, True)).blocks_behind == 0
