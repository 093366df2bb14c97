"""Where a token's wallets come from, searched in an archive, and which budget pays for the search."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from roundtrip.chain.blocks.state_witness import NoArchive
from roundtrip.chain.rpc.client import Budget, RpcCall, RpcNode
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.services.holder_record import funding
from roundtrip.services.runtime.book_cache import BookCache, reading_budget
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.actors import ETH
from support.holding import Held, HoldersStage
from support.nodes import node_of
from support.reading import ReadingProcess, ReadingService, later, service_over

ENOUGH = 10**9
PROBES = 50
BOUGHT_LATER_S = 3600


@pytest.fixture
async def service(
    ctx: Context, rpc: SyncRpc, built: Built, database_url: str
) -> AsyncIterator[ReadingService]:
    async with service_over(ctx, HoldersStage(rpc, built), database_url) as reading:
        yield reading


async def asked(process: ReadingProcess, main: Budget, held: Held) -> tuple[dict[str, Any], int, int]:
    """The answer, and what it took off the service's budget and off the one for reading."""
    own = process.ctx.books.budget
    before = main.spent, own.spent
    return await process.asked(held.token), main.spent - before[0], own.spent - before[1]


def an_archive(funder: str) -> Callable[[RpcNode, Address, int, BlockRef], Awaitable[FirstSeen]]:
    """An archive by which the funder sent every wallet its first eth an hour ago."""

    async def find_origin(node: RpcNode, wallet: Address, low: int, high: BlockRef) -> FirstSeen:
        await node.batch([RpcCall("eth_getBalance", [wallet, "latest"])] * PROBES)
        return FirstSeen(low + 1, high.timestamp_s - BOUGHT_LATER_S, Address(funder))

    return find_origin


async def test_the_search_for_origins_is_paid_by_the_budget_for_reading(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, process, budget = service.stage, service.process(), Budget(ENOUGH)
    held, buyers = stage.launched(stage.wallet("deployer")), stage.wallets("buyer", 3)
    held.one_by_one(*(held.buy(buyer, ETH // 100) for buyer in buyers))
    monkeypatch.setattr(node_of(service.base), "budget", budget)
    monkeypatch.setattr(funding, "seek_origin", an_archive(stage.wallet("funder")))
    process.ctx = replace(process.ctx, books=BookCache(reading_budget(ENOUGH)))
    await asked(process, budget, held)
    # Everything else has been read: now the budget pays for the search alone.
    answer, main, own = await asked(process, budget, held)
    who = {*buyers, held.deployer}
    assert (answer["holders"]["agedInTop"], own) == (len(buyers), len(who) * PROBES)
    process.ctx.books.budget.calls_per_day = 1
    answer, main_then, own = await asked(process, budget, held)
    assert (own, main_then <= main) == (0, True)
    assert answer["status"] == "complete"
    counted = answer["holders"]
    assert (counted["count"], counted["agedInTop"], counted["freshInTop"]) == (len(buyers), 0, 0)
    assert answer["forensics"]["fundersUnknown"] == len(buyers)
    assert "a bundle may be hidden" in answer["text"]


@pytest.mark.parametrize(
    "error", [NoArchive("it is gone"), NodeFault("the node's states contradict each other")]
)
async def test_a_node_without_old_states_is_not_asked_of_everybody(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch, error: NodeFault
) -> None:
    stage, process, searched = service.stage, service.process(), []
    held, buyers = stage.launched(stage.wallet("deployer")), stage.wallets("buyer", 23)
    held.one_by_one(*(held.buy(buyer, ETH // 1000) for buyer in buyers))

    async def seek_origin(node: RpcNode, wallet: Address, low: int, high: BlockRef) -> None:
        searched.append(wallet)
        await node.batch([RpcCall("eth_getBalance", [wallet, "latest"])])
        raise error

    monkeypatch.setattr(funding, "seek_origin", seek_origin)
    answer = await process.asked(held.token)
    assert answer["holders"]["agedInTop"] == 0
    if type(error) is NodeFault:
        # A contradiction in the states of one wallet says nothing about other wallets.
        assert len(searched) == funding.MAX_SEARCHED
        return
    # Four answers show it; up to eight searches were under way then.
    assert 4 <= len(searched) <= 4 + 8
    # It is not asked at the next question, either.
    searched.clear()
    await process.asked(held.token)
    assert searched == []
    later(process, funding.NO_ARCHIVE_S)
    await process.asked(held.token)
    assert searched != []
