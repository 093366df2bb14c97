"""The sync on the real local chain, into databases of their own on the tests' server."""

import asyncio
from collections.abc import Callable

from aiohttp import web

from roundtrip.app.build import open_sync
from roundtrip.config.networks import CHAIN_ID, Network, contracts_from
from roundtrip.config.settings import Settings
from roundtrip.devnet.world import Built
from roundtrip.store.index import cursor as chain
from roundtrip.sync.run import Progress
from support.databases import connected
from support.nodes import QuirkyNode

_LIMIT_S = 60.0


async def follow(
    node_url: str, built: Built, url: str, first: int, ends: Callable[[Progress], bool]
) -> list[Progress]:
    """Runs the sync until it tells of what ``ends`` it, then cancels it. What it told."""
    messages: list[Progress] = []
    over = asyncio.Event()

    def tell(step: Progress) -> None:
        messages.append(step)
        if ends(step):
            over.set()

    settings = Settings(rpc_url=node_url, sync_from=first, poll_ms=20)
    network = Network(CHAIN_ID, contracts_from(built.contracts), node_url, None)
    async with open_sync(settings, network, url, tell) as sync:
        running = asyncio.create_task(sync.run())
        try:
            async with asyncio.timeout(_LIMIT_S):
                await over.wait()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    return messages


def at(number: int) -> Callable[[Progress], bool]:
    """Whether block ``number`` was followed."""
    return lambda step: not step.older and step.number >= number


async def cursor(url: str) -> chain.Cursor:
    """Where the sync stands, which has begun."""
    async with connected(url) as connection:
        found = await chain.cursor(connection)
    assert found is not None
    return found


class NarrowNode(QuirkyNode):
    """Gives logs of ``most_blocks`` at most at once. ``ranges``: those of the past that it gave."""

    def __init__(self, upstream: str, most_blocks: int) -> None:
        super().__init__(upstream)
        self.most_blocks = most_blocks
        self.ranges: list[tuple[int, int]] = []

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        for call in await request.json():
            if call["method"] == "eth_getLogs" and "address" in call["params"][0]:
                wanted = call["params"][0]
                first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
                if last - first >= self.most_blocks:
                    error = {"code": -32000, "message": f"block range exceeds {self.most_blocks}"}
                    body = await request.json()
                    return web.json_response(
                        [{"jsonrpc": "2.0", "id": one["id"], "error": error} for one in body]
                    )
                self.ranges.append((first, last))
        return await super()._serve(request)
