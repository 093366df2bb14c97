"""Following the head fills the book of pools, and no trouble with the book costs the head."""

import contextlib
from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from roundtrip.chain.blocks.heads import ChainHead, Heads
from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.chain.rpc.client import Node, RpcCall, RpcError
from roundtrip.chain.rpc.dialect import ANVIL
from roundtrip.domain.base.errors import NodeFault
from unit.chain.samples import raw
from unit.venues.network import ABOVE, CONTRACTS

CHAIN_ID = 4663
CREATED = "0x" + keccak(text="PoolCreated(address,address,uint24,int24,address)").hex()
Answer = msgspec.Raw | RpcError


def created(fee: int, **changes: Any) -> dict[str, Any]:
    words = (CONTRACTS.weth, ABOVE, f"{fee:#x}")
    topics = [CREATED, *(f"0x{int(one, 16):064x}" for one in words)]
    data = "0x" + encode(["int24", "address"], [10, ABOVE]).hex()
    return {"address": CONTRACTS.v3_factory, "topics": topics, "data": data} | changes


class LogNode:
    """Tells of a head, and of the logs that the test puts there; a fault is raised where logs are asked."""

    def __init__(self) -> None:
        self.number = 1_000
        self.logs: Answer | NodeFault = raw([])
        self.ranges: list[tuple[int, int]] = []

    async def batch(self, calls: Sequence[RpcCall], budgeted: bool = True) -> list[Answer]:
        assert not budgeted, "following the head spends nobody's budget"
        if calls[0].method == "eth_getLogs":
            wanted = cast(dict[str, str], calls[0].params[0])
            self.ranges.append((int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)))
            if isinstance(self.logs, NodeFault):
                raise self.logs
            return [self.logs]
        if calls[0].method == "eth_chainId":
            return [raw(hex(CHAIN_ID)), raw(self.header())]
        return [raw("0x")] * len(calls)

    def header(self) -> dict[str, str]:
        return {
            "number": hex(self.number),
            "hash": f"0x{self.number:064x}",
            "timestamp": hex(1_760_000_000 + self.number),
            "miner": "0x" + "ab" * 20,
            "mixHash": "0x" + "cd" * 32,
            "baseFeePerGas": "0x64",
        }


class IndexedHeads:
    """Heads with a book over a node, by a clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.node, self.now, self.book = LogNode(), 1_000.0, VenueIndex(CONTRACTS)
        self.heads = Heads(
            cast(Node, self.node),
            CHAIN_ID,
            CONTRACTS,
            clock=lambda: self.now,
            venue_index=self.book,
            dialect=ANVIL,
        )

    async def see(self, number: int, logs: Answer | NodeFault | None = None) -> ChainHead:
        self.node.number = number
        self.node.logs = raw([]) if logs is None else logs
        return await self.heads.refresh()


@pytest.fixture
def followed() -> IndexedHeads:
    return IndexedHeads()


async def test_the_first_head_reads_the_whole_chain_and_the_next_what_is_new(followed: IndexedHeads) -> None:
    await followed.see(12_000, raw([created(500)]))
    assert followed.node.ranges == [(0, 9_935), (9_872, 12_000)]
    assert [venue.fee_pips for venue in followed.book.venues_of(ABOVE)] == [500]
    assert followed.book.complete(ABOVE)
    followed.node.ranges.clear()
    await followed.see(12_000)
    assert followed.node.ranges == []
    await followed.see(12_003, raw([created(100)]))
    assert followed.node.ranges == [(11_937, 12_003)]
    assert [venue.fee_pips for venue in followed.book.venues_of(ABOVE)] == [500, 100]


@pytest.mark.parametrize(
    "trouble",
    [NodeFault("it took too long"), RpcError(-32005, "too many"), raw({}), raw([{"address": "0x"}])],
)
async def test_a_book_that_cannot_be_read_costs_no_head(
    followed: IndexedHeads, trouble: Answer | NodeFault
) -> None:
    assert (await followed.see(500, trouble)).block.number == 500
    assert not followed.book.complete(ABOVE)
    assert (await followed.see(501, raw([created(500)]))).block.number == 501
    assert followed.node.ranges == [(0, 500), (0, 501)]
    assert followed.book.complete(ABOVE)


async def test_a_log_of_another_shape_costs_no_head(followed: IndexedHeads) -> None:
    await followed.see(500)
    odd = raw([created(500, topics=[CREATED, "0x", "0x", "0x"])])
    for number in range(501, 600):
        followed.now += 1
        with contextlib.suppress(Exception):
            await followed.see(number, odd)
    assert followed.heads.current().block.number == 599


async def test_heads_without_a_book_ask_for_no_logs(followed: IndexedHeads) -> None:
    followed.heads.venue_index = None
    await followed.see(500)
    assert followed.node.ranges == []
