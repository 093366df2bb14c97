"""Processes of the service that read who holds a token, over one chain and one database."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest

from roundtrip.chain.blocks.spans import read_refs
from roundtrip.chain.rpc.client import RpcCall, RpcError, RpcNode
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.holder_record import sources
from roundtrip.services.holders.handlers import token_holders
from roundtrip.services.runtime.book_cache import BookCache, ReadBounds, ReadLimits
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip.store.holders import books
from roundtrip.store.holders.books import BookHead
from roundtrip.store.server.rows import Connection
from support.actors import ETH
from support.databases import connected
from support.holding import SUPPLY, Held, HoldersStage
from support.recording import Answer, Recording, filter_of
from support.wallet import PoolSpec

WAIT_S = 30
RANGE = 40
"""Blocks that are asked for at once."""
TABLES = "jobs.job, facts.holder_read"
NOT_TODAY = RpcError(-32000, "not today")
GONE = RpcError(4444, "pruned history unavailable")


@dataclass
class ReadingProcess:
    """One process of the service. ``node``: who stands before the chain."""

    ctx: Context
    limits: ReadLimits = field(default_factory=ReadLimits)
    node: Recording = field(init=False)

    def __post_init__(self) -> None:
        self.node = Recording(self.ctx.node)
        self.ctx = replace(self.ctx, node=self.node, books=BookCache(limits=self.limits))

    async def asked(self, token: str) -> dict[str, Any]:
        """The whole answer, but for when it was asked."""
        await self.ctx.heads.refresh()
        found: dict[str, Any] = msgspec.to_builtins(
            (await token_holders(self.ctx, TokenParams(token))).answer
        )
        del found["checkedAt"]
        return found

    async def work(self) -> None:
        """One round of its worker."""
        await self.ctx.heads.refresh()
        async with asyncio.timeout(WAIT_S):
            own = {"holders": KINDS["holders"]}
            await asyncio.gather(*await Worker(self.ctx, own, lambda: 0.5).take())


@dataclass
class ReadingService:
    """Processes over one database, which ``row`` looks into, with the same ``limits``."""

    base: Context
    stage: HoldersStage
    row: Connection
    limits: ReadLimits = field(default_factory=ReadLimits)

    def process(self) -> ReadingProcess:
        return ReadingProcess(self.base, self.limits)

    async def kept(self, token: str) -> BookHead | None:
        return await books.load_head(self.row, Address(token))

    async def jobs(self) -> list[tuple[str, str]]:
        rows = await self.row.fetch("SELECT kind, key FROM jobs.job WHERE failed_at IS NULL")
        return [(row["kind"], row["key"]) for row in rows]

    async def done(self, process: ReadingProcess) -> int:
        """Its worker works until nothing is left; how many rounds that took."""
        rounds = 0
        while await self.jobs():
            await process.work()
            rounds += 1
            assert rounds < 60
        return rounds

    async def fresh(self, token: str) -> dict[str, Any]:
        """What somebody says who reads all of it at once and knows nothing yet."""
        await self.row.execute(f"TRUNCATE {TABLES}")
        whole = replace(self.limits, at_once=ReadBounds(10**9, 60.0))
        found = await ReadingProcess(self.base, whole).asked(token)
        await self.row.execute(f"TRUNCATE {TABLES}")
        assert found["status"] != "reading"
        return found


@contextlib.asynccontextmanager
async def service_over(ctx: Context, stage: HoldersStage, url: str) -> AsyncIterator[ReadingService]:
    """Nothing was read so far; nor is it afterwards."""
    async with connected(url) as connection:
        await connection.execute(f"TRUNCATE {TABLES}")
        yield ReadingService(ctx, stage, connection)
        await connection.execute(f"TRUNCATE {TABLES}")


def later(process: ReadingProcess, seconds: float) -> None:
    """So much time passes for it."""
    now_s = process.ctx.now_s
    process.ctx = replace(process.ctx, now_s=lambda: now_s() + seconds)


def launched(stage: HoldersStage) -> Held:
    """A launch on the curve, in whose window three bought in one transaction; then others trade."""
    deployer, buyer = stage.wallet("deployer"), stage.wallet("buyer of three")
    hands = stage.hands(buyer)
    held = stage.launched(deployer, ETH // 10)
    held.do(held.buy_for(hands, buyer, stage.wallets("bundled", 3), ETH // 100))
    for part in range(5):
        stage.pass_blocks(RANGE)
        trade(held, 6, f"trader {part}")
    return held


def trade(held: Held, times: int, name: str = "trader") -> None:
    """So many wallets buy in one block, then some of them pass a part on."""
    wallets = held.stage.wallets(name, times)
    held.do(*(held.buy(one, ETH // 100 + n) for n, one in enumerate(wallets)))
    for one in wallets[::3]:
        held.do(held.move(one, held.stage.wallet(f"friend of {name}"), held.balance(one) // 3))


def pooled(stage: HoldersStage, place: PoolSpec) -> Held:
    """A token in a pool."""
    deployer = stage.wallet("deployer")
    held = stage.books(deployer)
    held.venue = place
    held.pool(deployer, SUPPLY // 2, 20 * ETH)
    return held


def to_logs(answer: RpcError, below: int = 2**63) -> Callable[[RpcCall], Answer | None]:
    """A node that answers so where logs of a block below that one are among those that are asked for."""

    def instead(call: RpcCall) -> Answer | None:
        if call.method != "eth_getLogs" or "fromBlock" not in filter_of(call):
            return None
        return answer if int(filter_of(call)["fromBlock"], 16) < below else None

    return instead


def know_first(monkeypatch: pytest.MonkeyPatch, held: Held) -> int:
    """The node has all old states: the token's first block is known without its logs."""
    number = held.deeds[0].block_number

    async def first_block(node: RpcNode, token: Address, high: BlockRef) -> BlockRef:
        ((ref, _),) = (one for one in await read_refs(node, [number]) if one is not None)
        return ref

    monkeypatch.setattr(sources, "find_first_block", first_block)
    return number


async def refused(process: ReadingProcess, token: str) -> RoundtripError:
    """Why it is not told."""
    with pytest.raises(RoundtripError) as raised:
        await process.asked(token)
    return raised.value
