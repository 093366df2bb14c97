"""Asks who holds a token, over an index of the local chain that has caught up."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from roundtrip.domain.base.types import Address
from roundtrip.services.holders.handlers import token_holders
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip.store.server import connections
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.databases import connected, database
from support.holding import Held, HoldersStage
from support.holding_expected import differences
from support.indexing import at, cursor, follow


@dataclass(frozen=True, slots=True)
class Holding:
    """A stage, and the index at ``url`` that follows it. ``ctx``: over both."""

    stage: HoldersStage
    ctx: Context
    url: str

    async def follow(self) -> None:
        """The index catches up with the chain."""
        stands, number = (await cursor(self.url)).block, self.stage.number()
        head = self.stage.rpc.call("eth_getBlockByNumber", hex(number), False)
        if (stands.number, stands.hash) == (number, head["hash"]):
            return
        await follow(self.stage.rpc.url, self.stage.built, self.url, 0, at(number))

    async def asked(self, token: str, follows: bool = True) -> dict[str, Any]:
        """The tool's whole answer, as it goes out."""
        if follows:
            await self.follow()
        await self.ctx.heads.refresh()
        answered = await token_holders(self.ctx, TokenParams(token))
        found: dict[str, Any] = msgspec.to_builtins(answered.answer)
        return found

    async def forget(self) -> None:
        """Nothing that was read of any token is kept."""
        async with connected(self.url) as connection:
            await connection.execute("DELETE FROM facts.holder_read")

    async def says(self, held: Held, expected: dict[str, Any], follows: bool = True) -> dict[str, Any]:
        """The answer, which says of the token what is expected, and as it was found."""
        found = await self.asked(held.token, follows)
        answer = {"address": held.token, "chainId": 4663, "block": self.stage.number()} | expected
        wrong = differences(found, answer)
        assert not wrong, "\n".join(wrong) + f"\n\n{found['text']}"
        return found


@contextlib.asynccontextmanager
async def copied(server_url: str, url: str) -> AsyncIterator[str]:
    """A copy of a database that nobody is connected to; its url."""
    async with database(server_url, "holding", like=url) as found:
        yield found


@contextlib.asynccontextmanager
async def holding_over(ctx: Context, rpc: SyncRpc, built: Built, url: str) -> AsyncIterator[Holding]:
    """The stage of ``rpc``, its index at ``url``, and a context that knows what stands beside the markets."""
    named = built.contracts
    beside = tuple(Address(named[f"launchpad{part}"]) for part in ("Locker", "Escrow", "V1Locker"))
    contracts = replace(ctx.contracts, beside=ctx.contracts.beside or beside)
    async with connections.create_pool(url, min_size=1, max_size=4) as pool:
        yield Holding(HoldersStage(rpc, built), replace(ctx, pool=pool, contracts=contracts), url)
