"""Where a token's wallets come from, looked for in an archive: and who pays for the search."""

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
    async with service_over(ctx, HoldersStage(rpc, built), database_url) as found:
        yield found


async def asked(process: ReadingProcess, main: Budget, held: Held) -> tuple[dict[str, Any], int, int]:
    """The answer, and what it took off the service's budget and off the one for reading."""
    own = process.ctx.books.budget
    before = main.spent, own.spent
    return await process.asked(held.token), main.spent - before[0], own.spent - before[1]


def an_archive(funder: str) -> Callable[[RpcNode, Address, int, BlockRef], Awaitable[FirstSeen]]:
    """One that tells of everybody that the funder paid him an hour ago."""

    async def find_origin(node: RpcNode, wallet: Address, low: int, high: BlockRef) -> FirstSeen:
        await node.batch([RpcCall("eth_getBalance", [wallet, "latest"])] * PROBES)
        return FirstSeen(low + 1, high.timestamp_s - BOUGHT_LATER_S, Address(funder))

    return find_origin


async def test_the_search_for_origins_is_paid_by_the_budget_for_reading(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, one, budget = service.stage, service.process(), Budget(ENOUGH)
    held, buyers = stage.launched(stage.wallet("deployer")), stage.wallets("buyer", 3)
    held.one_by_one(*(held.buy(buyer, ETH // 100) for buyer in buyers))
    monkeypatch.setattr(node_of(service.base), "budget", budget)
    monkeypatch.setattr(funding, "seek_origin", an_archive(stage.wallet("funder")))
    one.ctx = replace(one.ctx, books=BookCache(reading_budget(ENOUGH)))
    await asked(one, budget, held)
    # Nothing is left to be read: all that is still paid for is the search.
    found, main, own = await asked(one, budget, held)
    who = {*buyers, held.deployer}
    assert (found["holders"]["agedInTop"], own) == (len(buyers), len(who) * PROBES)
    one.ctx.books.budget.calls_per_day = 1
    found, main_then, own = await asked(one, budget, held)
    assert (own, main_then <= main) == (0, True)
    assert found["status"] == "complete"
    counted = found["holders"]
    assert (counted["count"], counted["agedInTop"], counted["freshInTop"]) == (len(buyers), 0, 0)
    assert found["forensics"]["fundersUnknown"] == len(buyers)
    assert "a bundle may be hidden" in found["text"]


@pytest.mark.parametrize(
    "error", [NoArchive("it is gone"), NodeFault("the node's states contradict each other")]
)
async def test_a_node_without_old_states_is_not_asked_of_everybody(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch, error: NodeFault
) -> None:
    stage, one, searched = service.stage, service.process(), []
    held, buyers = stage.launched(stage.wallet("deployer")), stage.wallets("buyer", 23)
    held.one_by_one(*(held.buy(buyer, ETH // 1000) for buyer in buyers))

    async def seek_origin(node: RpcNode, wallet: Address, low: int, high: BlockRef) -> None:
        searched.append(wallet)
        await node.batch([RpcCall("eth_getBalance", [wallet, "latest"])])
        raise error

    monkeypatch.setattr(funding, "seek_origin", seek_origin)
    found = await one.asked(held.token)
    assert found["holders"]["agedInTop"] == 0
    if type(error) is NodeFault:
        # What one wallet's states say of themselves says nothing of the others'.
        assert len(searched) == funding.MAX_SEARCHED
        return
    # Those that were under way when it showed.
    assert 4 <= len(searched) <= 4 + 8
    # Nor is it asked at each question.
    searched.clear()
    await one.asked(held.token)
    assert searched == []
    later(one, funding.NO_ARCHIVE_S)
    await one.asked(held.token)
    assert searched != []
