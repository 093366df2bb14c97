"""Where two chains part, by what a node says of its blocks: behind, shorter, forked, begun anew, or lying."""

from collections.abc import Sequence

import msgspec
import pytest

from roundtrip.chain.blocks.spans import NodeLied
from roundtrip.chain.rpc.client import NO_ANSWER, Meter, RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BlockRef
from roundtrip.sync.run import ForkPoint, find_fork_point, read_genesis_hash
from support.told_blocks import Chain


class Headers:
    """A node that knows the headers of a chain, from block 0 on."""

    def __init__(self, *chains: Chain) -> None:
        self._chains = chains
        self.asked = 0

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        """As ``rpc.Node``: it raises when it knows none. Of several chains each answers a batch in turn."""
        chain = self._chains[self.asked % len(self._chains)]
        self.asked += 1
        found = [self._header(chain, int(str(call.params[0]), 16)) for call in calls]
        if all(one is NO_ANSWER for one in found):
            raise NodeFault("the node answered none of the calls")
        return found

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        """Nobody asks so here."""
        raise NotImplementedError

    def _header(self, chain: Chain, number: int) -> msgspec.Raw | RpcError:
        if number >= len(chain.blocks):
            return NO_ANSWER
        block = chain.blocks[number]
        return msgspec.Raw(
            msgspec.json.encode(
                {
                    "number": hex(number), "hash": block.ref.hash, "parentHash": block.parent_hash,
                    "timestamp": hex(block.ref.timestamp_s),
                }
            )
        )  # fmt: skip


def chain(blocks: int) -> Chain:
    """From block 0 on."""
    found = Chain(parent=BlockRef(-1, "0x" + "0" * 64, 0))
    for _ in range(blocks):
        found.block()
    return found


def forked(at: Chain, number: int, blocks: int) -> Chain:
    """``number``: the last block that both have."""
    found = at.fork(number, "other")
    for _ in range(blocks):
        found.block()
    return found


def refs(of: Chain) -> list[BlockRef]:
    return [block.ref for block in of.blocks]


OURS = chain(400)


@pytest.mark.parametrize("number", [0, 200, 398])
@pytest.mark.parametrize("more", [1, 150, 500])
async def test_a_fork_is_found_where_it_began(number: int, more: int) -> None:
    node = Headers(forked(OURS, number, more))
    assert await find_fork_point(node, refs(OURS), 0) == ForkPoint(OURS.blocks[number].ref, replaced=True)


@pytest.mark.parametrize("behind", [1, 127, 128, 129, 300])
async def test_a_node_that_is_behind_has_replaced_nothing(behind: int) -> None:
    """Or its chain became shorter: nobody can tell."""
    node = Headers(forked(OURS, 399 - behind, 0))
    assert await find_fork_point(node, refs(OURS), 0) == ForkPoint(
        OURS.blocks[399 - behind].ref, replaced=False
    )


async def test_a_node_that_is_ahead_is_of_the_same_chain() -> None:
    found = await find_fork_point(Headers(forked(OURS, 399, 5)), refs(OURS), 0)
    assert found.last == OURS.blocks[399].ref


async def test_a_chain_begun_anew_has_no_block_in_common() -> None:
    node = Headers(forked(chain(1), -1, 30))
    assert await find_fork_point(node, refs(OURS), 0) == ForkPoint(None, replaced=True)


@pytest.mark.parametrize("kept", [1, 5])
async def test_only_kept_blocks_count(kept: int) -> None:
    """The node's chain left ours before the oldest of them."""
    node = Headers(forked(OURS, 100, 400))
    assert await find_fork_point(node, refs(OURS)[-kept:], 300) == ForkPoint(None, replaced=True)


async def test_without_a_block_there_is_nothing_in_common() -> None:
    assert await find_fork_point(Headers(OURS), [], 7) == ForkPoint(None, replaced=True)


async def test_two_nodes_that_answer_in_turn_are_not_believed() -> None:
    """One has our chain, the other a fork: whichever is asked first, the second look is another's."""
    other = forked(OURS, 390, 30)
    with pytest.raises(NodeLied):
        await find_fork_point(Headers(other, OURS), refs(OURS), 0)


class ForkHeaders(Headers):
    """Headers of a node of that chain; ``lies``: one block's hash is another in its answers."""

    lies: int | None = None

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        """As ``Headers``, and its chain's number."""
        if calls[0].method == "eth_chainId":
            return [msgspec.Raw(b'"0x1237"')]
        found = await super().batch(calls, meter, timeout_s, budgeted)
        return [self._told(call, answer) for call, answer in zip(calls, found, strict=True)]

    def _told(self, call: RpcCall, answer: msgspec.Raw | RpcError) -> msgspec.Raw | RpcError:
        if self.lies is None or int(str(call.params[0]), 16) != self.lies or isinstance(answer, RpcError):
            return answer
        return msgspec.Raw(msgspec.json.encode(msgspec.json.decode(answer) | {"hash": "0x" + "ab" * 32}))


async def test_whose_a_database_is_is_not_decided_by_one_answer() -> None:
    """A node that lied of block 0 once would make the true chain another one for good."""
    result = chain(3)
    node = ForkHeaders(result)
    assert await read_genesis_hash(node, 4663) == result.blocks[0].ref.hash
    node.lies = 0
    with pytest.raises(NodeLied, match="does not follow its block 0"):
        await read_genesis_hash(node, 4663)
    alone = ForkHeaders(chain(1))
    assert await read_genesis_hash(alone, 4663) == chain(1).blocks[0].ref.hash
