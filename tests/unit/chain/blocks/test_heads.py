"""The newest block and what an eth is worth there, from a node that says what the test wants."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from math import isqrt
from typing import Any, cast

import msgspec
import pytest
from eth_abi.abi import decode, encode

from roundtrip.chain.blocks.heads import ChainHead, Heads, market_call, read_market
from roundtrip.chain.rpc.client import Node, RpcCall, RpcError
from roundtrip.chain.rpc.dialect import ANVIL
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.check.evidence import MarketRates, Missing
from roundtrip.venues import amm_v3
from roundtrip.venues.base import Contracts
from support.clocks import Clock
from unit.chain.samples import PINNED, interpreters_recursion_limit, methods, raw
from unit.venues.network import CONTRACTS, SWAPPED

CHAIN_ID = 4663
NO_FEED = replace(CONTRACTS, eth_usd_feed=None)

Answer = msgspec.Raw | RpcError


def header(at: int = 1_000, **changes: Any) -> dict[str, Any]:
    found = {
        "number": hex(at),
        "hash": f"0x{at:064x}",
        "timestamp": hex(1_760_000_000 + at),
        "miner": "0x" + "AB" * 20,
        "mixHash": "0x" + "cd" * 32,
        "baseFeePerGas": "0x64",
        "transactions": [],
    } | changes
    return {name: value for name, value in found.items() if value != "left out"}


def slot0(sqrt_price: int) -> bytes:
    return encode(["uint256"] * 7, [sqrt_price, 0, 0, 0, 0, 0, 1])


def uint(value: int) -> bytes:
    return encode(["uint256"], [value])


def sqrt_of(usdg_per_eth: int, contracts: Contracts) -> int:
    """The sqrtPriceX96 of a pool where an eth costs so many dollars, six decimals against eighteen."""
    dollars = usdg_per_eth * 10**6
    if contracts.weth < contracts.usdg:
        return isqrt((dollars << 192) // 10**18)
    return isqrt((10**18 << 192) // dollars)


def feed(usd_e8: int) -> bytes:
    return encode(["uint80", "int256", "uint256", "uint256", "uint80"], [9, usd_e8, 1, 1, 9])


def together(answers: Sequence[bytes | None]) -> Answer:
    """The answer to the one call; None: that read reverted."""
    items = [(answer is not None, answer or b"") for answer in answers]
    return raw("0x" + encode(["(bool,bytes)[]"], [items]).hex())


NO_POOL, REVERTED = b"", None
MARKET: list[bytes | None] = [
    NO_POOL, NO_POOL,
    slot0(sqrt_of(3500, CONTRACTS)), uint(349 * 10**6),
    slot0(sqrt_of(3000, CONTRACTS)), uint(299 * 10**6),
    NO_POOL, NO_POOL,
    feed(351_000_000_000),
]  # fmt: skip


class HeadNode:
    """Says ``chain`` and ``latest`` to the one batch, ``market`` to the other; a fault is raised."""

    def __init__(self) -> None:
        self.chain: Answer = raw(hex(CHAIN_ID))
        self.latest: Answer = raw(header())
        self.market: Answer | NodeFault = together(MARKET)
        self.fault: NodeFault | None = None
        self.asked: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def batch(self, calls: Sequence[RpcCall], budgeted: bool = True) -> list[Answer]:
        assert not budgeted, "following the head spends nobody's budget"
        self.asked.append(methods(list(calls)))
        answer = [self.chain, self.latest]
        if not self.gate.is_set():
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        if calls[0].method == "eth_chainId":
            return answer
        if isinstance(self.market, NodeFault):
            raise self.market
        return [self.market]


class WatchedHeads:
    """A node, a clock, and the heads that watch them."""

    def __init__(self, **options: Any) -> None:
        self.node, self.clock = HeadNode(), Clock(1_000.0)
        self.heads = Heads(
            cast(Node, self.node), CHAIN_ID, CONTRACTS, clock=self.clock, dialect=ANVIL, **options
        )

    async def see(self, **changes: Any) -> ChainHead:
        self.node.latest = raw(header(**changes))
        return await self.heads.refresh()


@pytest.fixture
def followed() -> WatchedHeads:
    return WatchedHeads()


# --- the head --------------------------------------------------------------------------------------


async def test_a_head_is_read_from_the_header(followed: WatchedHeads) -> None:
    head = await followed.heads.refresh()
    assert head == ChainHead(
        block=BlockRef(1_000, f"0x{1000:064x}", 1_760_001_000),
        base_fee_wei=100,
        coinbase=head.coinbase,
        prev_randao="0x" + "cd" * 32,
        market=head.market,
        heard_s=1_000.0,
        dialect=ANVIL,
    )
    assert head.coinbase == "0x" + "ab" * 20
    assert followed.heads.current() is head
    assert followed.heads.last_number() == 1_000


def test_before_the_first_answer_there_is_no_head(followed: WatchedHeads) -> None:
    with pytest.raises(NodeFault, match="the node has reported no block yet"):
        followed.heads.current()
    assert followed.heads.last_number() == 0


async def test_asking_costs_one_trip_while_the_block_is_the_same(followed: WatchedHeads) -> None:
    first = await followed.heads.refresh()
    assert await followed.heads.refresh() is first
    assert [asked[:2] for asked in followed.node.asked] == [
        ["eth_chainId", "eth_getBlockByNumber"],
        ["eth_call"],
        ["eth_chainId", "eth_getBlockByNumber"],
    ]


async def test_a_block_of_the_same_number_and_another_hash_is_another_head(followed: WatchedHeads) -> None:
    await followed.see(at=5)
    assert (await followed.see(at=5, hash="0x" + "ee" * 32)).block.hash == "0x" + "ee" * 32


@pytest.mark.parametrize(
    "chain", [raw("0x1"), raw(CHAIN_ID), RpcError(-32601, "no such method"), raw("0xzz")]
)
async def test_a_node_of_another_chain_gives_no_head(followed: WatchedHeads, chain: Answer) -> None:
    followed.node.chain = chain
    with pytest.raises(NodeFault):
        await followed.heads.refresh()
    with pytest.raises(NodeFault):
        followed.heads.current()
    assert followed.heads.last_number() == 0


async def test_a_node_that_moves_to_another_chain_loses_its_head_at_once(followed: WatchedHeads) -> None:
    await followed.heads.refresh()
    followed.node.chain = raw("0x1")
    with pytest.raises(NodeFault):
        await followed.heads.refresh()
    with pytest.raises(NodeFault, match="on chain 1, not 4663"):
        followed.heads.current()
    assert followed.heads.last_number() == 1_000


async def test_a_silent_node_keeps_its_head_for_a_while_and_then_says_why(followed: WatchedHeads) -> None:
    head = await followed.heads.refresh()
    followed.node.fault = NodeFault("it took too long")
    with pytest.raises(NodeFault):
        await followed.heads.refresh()
    followed.clock.now_s += 2.0
    assert followed.heads.current() is head
    followed.clock.now_s += 0.001
    with pytest.raises(NodeFault, match="did not answer in time"):
        followed.heads.current()
    assert followed.heads.last_number() == 1_000


async def test_a_node_that_answers_with_the_same_block_is_not_silent(followed: WatchedHeads) -> None:
    head = await followed.heads.refresh()
    for _ in range(5):
        followed.clock.now_s += 10
        assert await followed.heads.refresh() is head
    assert followed.heads.current() is head


async def test_a_node_that_stands_still_is_noticed_by_a_clock_that_is_behind() -> None:
    """Its newest block is never old by that."""
    followed = WatchedHeads(oldest_s=60.0, wall=lambda: 0.0)
    await followed.see(number="0x3e8")
    followed.clock.now_s += 60
    head = await followed.see(number="0x3e8")
    followed.clock.now_s += 1
    with pytest.raises(NodeFault, match="no new block for 61 s"):
        await followed.heads.refresh()
    assert followed.heads.current() is head
    followed.clock.now_s += 15
    with pytest.raises(NodeFault, match="no new block for 61 s"):
        followed.heads.current()
    assert (await followed.see(number="0x3e9", hash="0x" + "77" * 32)).block.number == 1_001
    assert followed.heads.current().block.number == 1_001


async def test_a_node_that_comes_back_is_believed_again(followed: WatchedHeads) -> None:
    followed.node.fault = NodeFault("the connection to the node failed")
    with pytest.raises(NodeFault):
        await followed.heads.refresh()
    followed.node.fault = None
    assert await followed.heads.refresh() is followed.heads.current()


@pytest.mark.parametrize("field", ["number", "hash", "timestamp", "miner", "mixHash", "baseFeePerGas"])
@pytest.mark.parametrize("junk", ["left out", None, 5, ["0x1"]], ids=["left out", "null", "number", "list"])
async def test_a_header_without_a_field_is_the_nodes_fault(
    followed: WatchedHeads, field: str, junk: Any
) -> None:
    with pytest.raises(NodeFault, match="unreadable header"):
        await followed.see(**{field: junk})


@pytest.mark.parametrize("field", ["number", "timestamp", "baseFeePerGas"])
@pytest.mark.parametrize("junk", ["", "0x", "latest", "0xzz", "ten"])
async def test_a_header_whose_numbers_are_none_is_the_nodes_fault(
    followed: WatchedHeads, field: str, junk: str
) -> None:
    first = await followed.heads.refresh()
    changes = {"hash": "0x" + "77" * 32, field: junk}
    with pytest.raises(NodeFault):
        await followed.see(**changes)
    assert followed.heads.current() is first


@pytest.mark.parametrize("latest", [raw("0x1"), raw([]), raw(7), RpcError(-1, "x" * 300), RpcError()])
async def test_an_answer_that_is_no_header_is_the_nodes_fault(followed: WatchedHeads, latest: Answer) -> None:
    followed.node.latest = latest
    with pytest.raises(NodeFault) as caught:
        await followed.heads.refresh()
    assert len(caught.value.message) < 150


async def test_a_header_that_is_nested_without_end_is_the_nodes_fault(followed: WatchedHeads) -> None:
    followed.node.latest = msgspec.Raw(b'{"extraData":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    with pytest.raises(NodeFault), interpreters_recursion_limit():
        await followed.heads.refresh()


async def test_following_polls_until_it_ends_and_outlives_faults() -> None:
    followed = WatchedHeads(poll_ms=0)
    followed.node.fault = NodeFault("not yet")
    async with followed.heads.following() as heads:
        with pytest.raises(NodeFault, match="not yet"):
            heads.current()
        followed.node.fault = None
        for _ in range(100):
            await asyncio.sleep(0)
        assert heads.current().block.number == 1_000
    asked = len(followed.node.asked)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(followed.node.asked) == asked


async def spin() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_service_that_nobody_asks_polls_rarely_and_a_request_wakes_it() -> None:
    followed = WatchedHeads(poll_ms=0, idle_s=60.0)
    async with followed.heads.following() as heads:
        await spin()
        asked = len(followed.node.asked)
        await spin()
        assert len(followed.node.asked) == asked
        followed.node.latest = raw(header(at=1_001))
        assert heads.current().block.number == 1_000
        followed.clock.now_s += 1.0
        await asyncio.gather(heads.wake(), heads.wake())
        assert heads.current().block.number == 1_001
        asked = len(followed.node.asked)
        await spin()
        assert len(followed.node.asked) > asked, "polls are fast after a request"
        followed.clock.now_s += 2.1
        await spin()
        asked = len(followed.node.asked)
        await spin()
        assert len(followed.node.asked) == asked


async def test_who_only_tells_the_head_causes_one_poll_of_an_idle_service() -> None:
    followed = WatchedHeads(poll_ms=0, idle_s=60.0)
    async with followed.heads.following() as heads:
        followed.clock.now_s += 2.1
        await spin()
        followed.node.latest = raw(header(at=1_001))
        asked = len(followed.node.asked)
        await spin()
        assert len(followed.node.asked) == asked
        heads.poll_soon()
        await spin()
        assert heads.current().block.number == 1_001
        asked = len(followed.node.asked)
        await spin()
        assert len(followed.node.asked) == asked


async def test_waking_does_not_fail_and_asks_nothing_while_polls_are_fast() -> None:
    followed = WatchedHeads(poll_ms=60_000, idle_s=60.0)
    async with followed.heads.following() as heads:
        followed.node.fault = NodeFault("gone")
        await heads.wake()
        asked = len(followed.node.asked)
        await heads.wake()
        assert len(followed.node.asked) == asked


async def test_heads_that_are_not_followed_are_not_refreshed_by_waking() -> None:
    followed = WatchedHeads(idle_s=60.0)
    await followed.heads.wake()
    assert followed.node.asked == []


async def test_an_idle_service_reads_the_price_once_a_minute() -> None:
    followed = WatchedHeads(idle_s=5.0)
    for number, passed_s in ((1, 0.0), (2, 5.0), (3, 54.0), (4, 5.0)):
        followed.clock.now_s += passed_s
        await followed.see(at=number)
    assert [asked[0] for asked in followed.node.asked].count("eth_call") == 2


async def test_who_asks_at_once_shares_a_request_that_began_after_he_asked(followed: WatchedHeads) -> None:
    await followed.see(at=5)
    followed.node.asked.clear()
    followed.node.gate.clear()
    first = asyncio.create_task(followed.heads.refresh())
    await asyncio.sleep(0)
    later = [asyncio.create_task(followed.heads.refresh()) for _ in range(50)]
    await asyncio.sleep(0)
    followed.node.latest = raw(header(at=6))
    followed.node.gate.set()
    assert (await first).block.number == 5
    assert {head.block.number for head in await asyncio.gather(*later)} == {6}
    assert [asked[0] for asked in followed.node.asked].count("eth_chainId") == 2


async def test_who_waited_is_told_the_fault_of_the_request_that_he_shares(followed: WatchedHeads) -> None:
    followed.node.fault = NodeFault("it took too long")
    followed.node.gate.clear()
    asking = [asyncio.create_task(followed.heads.refresh()) for _ in range(5)]
    await asyncio.sleep(0)
    followed.node.gate.set()
    came = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(one) for one in came] == [NodeFault] * 5
    assert len(followed.node.asked) == 2


# --- the market ------------------------------------------------------------------------------------


async def test_the_market_is_asked_at_the_block_of_the_head(followed: WatchedHeads) -> None:
    head = await followed.heads.refresh()
    assert head.market.block_number == 1_000
    call = market_call(CONTRACTS, PINNED)
    assert (call.method, call.params[1]) == ("eth_call", {"blockHash": PINNED.hash})
    asked = cast(dict[str, str], call.params[0])
    assert asked["to"] == CONTRACTS.multicall3
    (reads,) = decode(["(address,bool,bytes)[]"], bytes.fromhex(asked["data"][10:]))
    assert all(may_fail for _, may_fail, _ in reads)
    calls = [(to, "0x" + data.hex()) for to, _, data in reads]
    fees = (100, 500, 3000, 10_000)
    pools = [amm_v3.pool_address(CONTRACTS.v3_factory, CONTRACTS.usdg, CONTRACTS.weth, fee) for fee in fees]
    assert calls[0:8:2] == [(pool, "0x3850c7bd") for pool in pools]
    for fee, call_of_quote in zip(fees, calls[1:8:2], strict=True):
        question = (CONTRACTS.weth, CONTRACTS.usdg, 10**17, fee, 0)
        answer = encode(["(address,address,uint256,uint24,uint160)"], [question]).hex()
        assert call_of_quote == (CONTRACTS.quoter_v2, "0xc6a5026a" + answer)
    assert calls[8:] == [(CONTRACTS.eth_usd_feed, "0xfeaf968c")]


def test_without_a_feed_none_is_asked() -> None:
    asked = cast(dict[str, str], market_call(NO_FEED, PINNED).params[0])["data"]
    assert "feaf968c" not in asked
    assert read_market(together(MARKET[:8]), NO_FEED, PINNED).feed_usd_e8 is None


@pytest.mark.parametrize("contracts", [CONTRACTS, SWAPPED], ids=["weth first", "usdg first"])
def test_an_eth_is_worth_what_the_pool_that_gives_most_says(contracts: Contracts) -> None:
    answers = [
        slot0(sqrt_of(9999, contracts)), uint(349 * 10**6 - 1),
        slot0(sqrt_of(3500, contracts)), uint(349 * 10**6),
        slot0(sqrt_of(1, contracts)), uint(1),
        slot0(sqrt_of(2, contracts)), uint(0),
        feed(5),
    ]  # fmt: skip
    market = read_market(together(answers), contracts, PINNED)
    assert isinstance(market.usdg_per_eth_raw, int)
    assert market.usdg_per_eth_raw == pytest.approx(3_500_000_000, abs=1)
    assert (market.block_number, market.pool_fee_pips, market.feed_usd_e8) == (PINNED.number, 500, 5)


def test_a_square_price_gives_the_dollars_to_the_unit() -> None:
    answers = [*[NO_POOL, NO_POOL] * 3, slot0(2**96 // 2**14), uint(1)]
    assert read_market(together(answers), NO_FEED, PINNED) == MarketRates(
        PINNED.number, 10**18 // 2**28, 10_000, None
    )


@pytest.mark.parametrize(
    "answers",
    [
        [NO_POOL, NO_POOL] * 4,
        [NO_POOL, uint(10**9)] * 4,
        [slot0(2**96), uint(0)] * 4,
        [slot0(2**96), REVERTED] * 4,
        [slot0(0), uint(10**9)] * 4,
        [REVERTED, uint(10**9)] * 4,
        [b"5", b"zz"] * 4,
    ],
    ids=["no pool", "no price", "gives nothing", "nothing to give", "not initialised", "reverts", "junk"],
)
def test_without_a_pool_the_market_is_missing(answers: list[bytes | None]) -> None:
    market = read_market(together([*answers, feed(350)]), CONTRACTS, PINNED)
    assert isinstance(market.usdg_per_eth_raw, Missing)
    assert market.usdg_per_eth_raw.fault == "node"
    assert (market.pool_fee_pips, market.feed_usd_e8) == (None, 350)


@pytest.mark.parametrize("answer", [NO_POOL, REVERTED, uint(7)])
def test_a_feed_that_does_not_answer_is_none(answer: bytes | None) -> None:
    assert read_market(together([*MARKET[:8], answer]), CONTRACTS, PINNED).feed_usd_e8 is None


@pytest.mark.parametrize(
    "answer", [RpcError(3, "execution reverted"), raw("0x"), raw("0xzz"), raw(5), together([])]
)
def test_an_answer_without_the_reads_has_no_price(answer: Answer) -> None:
    market = read_market(answer, CONTRACTS, PINNED)
    assert isinstance(market.usdg_per_eth_raw, Missing)
    assert (market.pool_fee_pips, market.feed_usd_e8) == (None, None)


async def test_a_market_that_cannot_be_asked_is_missing_and_the_head_is_there(followed: WatchedHeads) -> None:
    followed.node.market = NodeFault("it took too long")
    head = await followed.heads.refresh()
    assert isinstance(head.market.usdg_per_eth_raw, Missing)
    assert "did not answer in time" in head.market.usdg_per_eth_raw.why
    assert followed.heads.current() is head


async def test_a_market_is_asked_anew_once_it_is_old(followed: WatchedHeads) -> None:
    first = await followed.see(at=1)
    followed.clock.now_s += 1.999
    second = await followed.see(at=2)
    assert second.market is first.market
    followed.clock.now_s += 0.001
    third = await followed.see(at=3)
    assert third.market.block_number == 3
    assert sum(asked[0] == "eth_call" for asked in followed.node.asked) == 2


# --- several nodes at different heights --------------------------------------------------------------


async def test_a_lower_head_is_not_taken_for_a_while_and_then_it_is() -> None:
    followed = WatchedHeads(patience_s=2.0)
    high = await followed.see(at=1_000)
    followed.clock.now_s += 1.9
    assert await followed.see(at=990) is high
    followed.clock.now_s += 0.2
    assert (await followed.see(at=995)).block.number == 995
    assert followed.heads.last_number() == 1_000


async def test_a_head_that_is_heard_of_again_is_kept_for_as_long_again() -> None:
    followed = WatchedHeads(patience_s=2.0)
    high = await followed.see(at=1_000)
    for _ in range(5):
        followed.clock.now_s += 1.5
        assert await followed.see(at=1_000) is high
        followed.clock.now_s += 1.5
        assert await followed.see(at=999) is high


async def test_a_lower_head_does_not_make_the_last_one_fresh() -> None:
    followed = WatchedHeads(patience_s=60.0, stale_s=15.0)
    await followed.see(at=1_000)
    followed.clock.now_s += 15.1
    await followed.see(at=999)
    with pytest.raises(NodeFault):
        followed.heads.current()


async def test_another_block_of_the_same_number_is_taken_at_once() -> None:
    followed = WatchedHeads(patience_s=2.0)
    await followed.see(at=1_000)
    assert (await followed.see(at=1_000, hash="0x" + "ee" * 32)).block.hash == "0x" + "ee" * 32


async def test_with_one_node_a_lower_head_is_taken_at_once(followed: WatchedHeads) -> None:
    await followed.see(at=1_000)
    assert (await followed.see(at=999)).block.number == 999


# --- a node that stops answering ---------------------------------------------------------------------


async def test_a_node_that_hangs_fails_every_request_at_once_until_it_answers(followed: WatchedHeads) -> None:
    await followed.see(at=1_000)
    followed.node.gate.clear()
    poll = asyncio.create_task(followed.heads.refresh())
    await asyncio.sleep(0)
    followed.clock.now_s += 2.0
    assert followed.heads.current().block.number == 1_000
    followed.clock.now_s += 0.5
    with pytest.raises(NodeFault, match="not answered for 2 s"):
        followed.heads.current()
    with pytest.raises(NodeFault, match="not answered"):
        await followed.heads.read_now()
    followed.node.gate.set()
    await poll
    assert followed.heads.current().block.number == 1_000


async def test_one_failed_read_is_no_outage(followed: WatchedHeads) -> None:
    await followed.see(at=1_000)
    followed.node.fault = NodeFault("the connection to the node failed")
    for _ in range(3):
        with pytest.raises(NodeFault):
            await followed.heads.refresh()
        assert followed.heads.current().block.number == 1_000
        followed.clock.now_s += 0.9
    with pytest.raises(NodeFault, match="the connection to the node failed"):
        followed.heads.current()
    followed.node.fault = None
    await followed.see(at=1_001)
    assert followed.heads.current().block.number == 1_001


async def test_blocks_are_counted_on_by_the_clock_while_the_node_is_silent(followed: WatchedHeads) -> None:
    for number in range(1_000, 1_100, 10):
        await followed.see(at=number)
        followed.clock.now_s += 1.0
    assert followed.heads.blocks_missed() == 0
    followed.node.fault = NodeFault("it is gone")
    with pytest.raises(NodeFault):
        await followed.heads.refresh()
    followed.clock.now_s += 15.0
    assert followed.heads.blocks_missed() == 150
