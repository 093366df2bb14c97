"""What happens on the real local chain because a test wants it, and the index of that."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip_development.devnet import launchpad
from roundtrip_development.devnet.deploy import ContractDeployer
from roundtrip_development.devnet.launchpad import CurveToken, LaunchRequest
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.indexing import at, follow
from support.nodes import node_of
from support.wallet import calldata

LAUNCHER, BUYER, SECOND = 5, 6, 7
"""Which of the node's accounts."""


def view(rpc: SyncRpc, to: str, signature: str, *values: object) -> int:
    """The first word that a view answers."""
    return int(rpc.call("eth_call", {"to": to, "data": calldata(signature, *values)}, "latest"), 16)


class Ground:
    """Sends what a test wants on the real local chain, and follows it into the database at ``url``. ``me``
    launches; it and the two others are the node's own accounts."""

    def __init__(self, ctx: Context, rpc: SyncRpc, built: Built, url: str) -> None:
        self.ctx, self.rpc, self.built, self.url = ctx, rpc, built, url
        self.me, self.buyer, self.second = (
            ContractDeployer(rpc, built.accounts[number]) for number in (LAUNCHER, BUYER, SECOND)
        )

    def launch(self, salt: int, **more: Any) -> CurveToken:
        """By ``me``; its buys pay no tax of the first seconds."""
        made = launchpad.launch(
            self.me, self.built.contracts, LaunchRequest("Fresh", "FRSH", salt=salt, **more)
        )
        # Past the tax on buying early.
        self.rpc.call("evm_increaseTime", 10)
        return CurveToken(made.token.lower(), made.curve.lower(), made.quote)

    async def follow(self) -> None:
        """The index catches up."""
        number = int(self.rpc.call("eth_blockNumber"), 16)
        await follow(node_of(self.ctx).url, self.built, self.url, 0, at(number))

    @contextlib.asynccontextmanager
    async def followed(self) -> AsyncIterator[Context]:
        """The context over the index, which has caught up."""
        await self.follow()
        async with connections.create_pool(self.url, min_size=1, max_size=2) as pool:
            yield replace(self.ctx, pool=pool)

    def pass_s(self, seconds: int) -> None:
        """So much time passes on the chain."""
        self.rpc.call("evm_increaseTime", seconds)
        self.rpc.call("evm_mine")
