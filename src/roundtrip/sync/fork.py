"""Finds where the followed chain and the node's chain fork."""

from collections.abc import Sequence
from dataclasses import dataclass

from roundtrip.chain.blocks.spans import NodeLied, read_refs
from roundtrip.chain.rpc.client import RpcCall, RpcNode, quantity
from roundtrip.domain.base.errors import CannotRun, NodeFault
from roundtrip.domain.base.types import BlockRef

_BATCH_SIZE = 128


class NodeBehind(NodeFault):
    """The node has not reached the followed head yet; it has no other block there."""

    def __init__(self) -> None:
        super().__init__("the node is behind the index")


class ForkTooDeep(Exception):
    """More blocks were replaced than the limit allows: the sync asks again and does not rewind."""

    def __init__(self, deepest: int) -> None:
        super().__init__(
            f"the node's chain differs for more than {deepest} blocks, which is more than a reorg "
            f"may replace; if"
            " the node is right, run roundtrip sync --any-fork"
        )


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """``last``: the newest block that both chains have; None: none of the kept ones. ``replaced``: the node
    has another block after it; False: it has none, so it may only be behind."""

    last: BlockRef | None
    replaced: bool


class OtherChain(CannotRun):
    """The database follows another chain than the node."""

    def __init__(self) -> None:
        super().__init__(
            "this database holds a different chain than the node's; use another database, or empty "
            "this one with"
            " roundtrip forget"
        )


async def read_first_hash(node: RpcNode, chain_id: int) -> str:
    """The hash of the node's block 0, which must be the parent of its block 1. The database stores it to
    recognise its chain later. Raises NodeFault, also for another chain id."""
    (chain,) = await node.batch([RpcCall("eth_chainId", [])], budgeted=False)
    if quantity(chain) != chain_id:
        raise NodeFault(f"the node is on chain {quantity(chain)}, not {chain_id}")
    first, second = await read_refs(node, [0, 1])
    if first is None:
        raise NodeFault("the node does not have block 0")
    if second is not None and second[1] != first[0].hash:
        raise NodeLied("the node's block 1 does not follow its block 0")
    return first[0].hash


async def find_fork_point(node: RpcNode, kept: Sequence[BlockRef], first: int) -> ForkPoint:
    """``kept``: followed blocks, oldest first; ``first``: the number of the first block that was ever
    followed. Raises NodeFault."""
    last = await _find_last_common(node, kept)
    number = first - 1 if last is None else last.number
    # Read both again in one batch: one wrong answer must not cause a rewind.
    before, after = await read_refs(node, [max(number, 0), number + 1])
    if last is not None and (before is None or before[0].hash != last.hash):
        raise NodeLied(f"the node contradicts itself about block {number}")
    if after is not None and last is not None and after[1] != last.hash:
        raise NodeLied(f"the node's block {number + 1} does not follow its block {number}")
    if after is not None and any(block.hash == after[0].hash for block in kept[-_BATCH_SIZE:]):
        raise NodeLied(f"the node contradicts itself about block {number + 1}")
    return ForkPoint(last, after is not None)


async def _find_last_common(node: RpcNode, kept: Sequence[BlockRef]) -> BlockRef | None:
    for end in range(len(kept), 0, -_BATCH_SIZE):
        chunk = kept[max(0, end - _BATCH_SIZE) : end]
        # Having none of them is no error: the node's chain may be shorter. Every node has block 0.
        _, *refs = await read_refs(node, [0, *(block.number for block in chunk)])
        for block, ref in zip(reversed(chunk), reversed(refs), strict=True):
            if ref is not None and ref[0].hash == block.hash:
                return block
    return None
