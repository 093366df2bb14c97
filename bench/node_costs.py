"""What a check costs a node, by kind of node: requests, bytes and time. Medians of all sample tokens.

    python -m bench.node_costs

Over a node alone, as ``roundtrip check``, and of the service, which knows head and dialect before. The real
geth is measured where ``var/geth`` is there. A scripted node's time is mostly that of its script.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.dialects import DialectNode
from support.fixtures import PROJECT
from support.real_geth import BINARY, MISSING, GethNode, running_geth
from truth.node_checks import median_costs, run_check, run_service_check


async def measure(urls: dict[str, str], built: world.Built) -> None:
    """Prints the medians. ``urls``: of nodes of the same state, by kind."""
    for kind, url in urls.items():
        await run_check(url, built, built.tokens["plain"])
        alone = [(await run_check(url, built, token)).costs for token in built.tokens.values()]
        print(f"{kind:15} node alone  {median_costs(alone).text()}", flush=True)
        served = [await run_service_check(url, built, token) for token in built.tokens.values()]
        print(f"{kind:15} service     {median_costs(served).text()}", flush=True)


@contextlib.asynccontextmanager
async def open_nodes(rpc: SyncRpc) -> AsyncIterator[dict[str, str]]:
    """Nodes in front of the local chain, and a real geth where there is one; their URLs by kind."""
    async with contextlib.AsyncExitStack() as stack:
        urls = {"anvil": rpc.url}
        for kind in ("geth", "nitro"):
            node = await stack.enter_async_context(DialectNode(rpc.url, kind).running())
            urls[f"scripted {kind}"] = node.url
        if BINARY.exists():
            geth = stack.enter_context(running_geth(rpc))
            urls["real geth"] = (await stack.enter_async_context(GethNode(geth, rpc.url).running())).url
        else:
            print(MISSING)
        yield urls


async def measure_all(rpc: SyncRpc, built: world.Built) -> None:
    """Opens the nodes and measures each."""
    async with open_nodes(rpc) as urls:
        await measure(urls, built)


def main() -> None:
    """Builds or finds the local chain, starts it, measures."""
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    with world.start_world(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as rpc:
        asyncio.run(measure_all(rpc, built))


if __name__ == "__main__":
    main()
