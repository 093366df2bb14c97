"""What a service that nobody asks reads from its node: calls and requests a second.

    PYTHONPATH=src:tests python -m bench.rest [--seconds 40]

``roundtrip serve --all`` over a local chain that makes ten blocks a second, at the sync's pace on the real
network, with a websocket and without. A relay counts what it asks over HTTP. Blocks are empty, or each has a
transaction: the sync reads a block that has any by itself.
"""

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp

from roundtrip.config.networks import ROBINHOOD
from roundtrip.devnet import world
from roundtrip.devnet.node import NodeOptions, free_port
from roundtrip.store.server.postgres import EmbeddedPostgres
from support.nodes import QuirkyNode

PROJECT = Path(__file__).resolve().parents[1]
_START_S, _SETTLE_S, _END_S = 60.0, 40.0, 30.0
PACE = {"ROUNDTRIP_SYNC_EVERY_MS": str(ROBINHOOD.sync_every_ms)}


@contextlib.asynccontextmanager
async def serving(environment: dict[str, str]) -> AsyncIterator[None]:
    """``roundtrip serve --all``, once its index is at the head; ended at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "roundtrip", "serve", "--all"),
        env={**os.environ, **PACE, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        said = await asyncio.wait_for(process.stdout.readline(), _START_S)
        assert said.startswith(b"roundtrip is at "), said
        await asyncio.sleep(_SETTLE_S)
        yield
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), _END_S)


async def pay(url: str) -> None:
    """A payment for every block, until it is cancelled."""
    async with aiohttp.ClientSession() as session:

        async def ask(method: str, *params: object) -> object:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            async with session.post(url, json=body) as answer:
                return (await answer.json())["result"]

        whale = "0x" + "77" * 20
        await ask("anvil_setBalance", whale, hex(10**24))
        await ask("anvil_impersonateAccount", whale)
        while True:
            await ask("eth_sendTransaction", {"from": whale, "to": whale, "value": "0x1"})
            await asyncio.sleep(0.09)


async def measure(name: str, relay: QuirkyNode, environment: dict[str, str], seconds: float) -> None:
    """Starts the service, counts, and prints."""
    async with serving(environment):
        before = len(relay.sent)
        await asyncio.sleep(seconds)
        sent = relay.sent[before:]
    methods = Counter(method for request in sent for method in request)
    calls = ", ".join(f"{method} {count / seconds:.1f}" for method, count in methods.most_common())
    print(f"{name}: {methods.total() / seconds:.1f} calls and {len(sent) / seconds:.1f} requests a second")
    print(f"  {calls}", flush=True)


async def main(seconds: float, url: str, folder: Path) -> None:
    """Each row, with an index of its own."""
    async with EmbeddedPostgres(folder / "postgres") as server, QuirkyNode(url).running() as relay:
        assert isinstance(relay, QuirkyNode)
        environment = {
            "ROUNDTRIP_VAR": str(folder),
            "ROUNDTRIP_DATABASE_URL": server.dsn,
            "ROUNDTRIP_RPC_URL": relay.url,
            "ROUNDTRIP_PORT": str(free_port()),
        }
        heard = {**environment, "ROUNDTRIP_WS_URL": url.replace("http", "ws", 1)}
        await measure("empty blocks, with a websocket", relay, heard, seconds)
        await measure("empty blocks, without", relay, environment, seconds)
        paying = asyncio.create_task(pay(url))
        await measure("a transaction in each block, with a websocket", relay, heard, seconds)
        paying.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=40.0)
    options = parser.parse_args()
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    state = world.build(places, print)
    with (
        tempfile.TemporaryDirectory() as scratch,
        world.start_world(places, state, NodeOptions(block_time_s=0.1, state=state.state)) as node,
    ):
        world.write_description(world.DevnetFolders(PROJECT, Path(scratch)), state, node.url)
        asyncio.run(main(options.seconds, node.url, Path(scratch)))
