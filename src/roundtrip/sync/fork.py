"""Where the chain that was followed and the one that the node has part."""

from collections.abc import Sequence
from dataclasses import dataclass

from roundtrip.chain.blocks.spans import NodeLied, read_refs
from roundtrip.chain.rpc.client import RpcCall, RpcNode, quantity
from roundtrip.domain.base.errors import CannotRun, NodeFault
from roundtrip.domain.base.types import BlockRef

_AT_ONCE = 128


class NodeBehind(NodeFault):
    """It has no other block, it has not yet got as far as what was followed."""

    def __init__(self) -> None:
        super().__init__("it is behind what was followed")


class ForkTooDeep(Exception):
    """More blocks were replaced than is believed of this chain: the node is asked again, not believed."""

    def __init__(self, deepest: int) -> None:
        super().__init__(
            f"the node has another chain for more than {deepest} blocks, which is not believed: where it is"
            " right, begin with roundtrip sync --any-fork"
        )


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """``last``: the newest block that both have; None: not one of those that are kept. ``replaced``: the node
    has another block after it; else it has none, which a node that fell behind has not either."""

    last: BlockRef | None
    replaced: bool


class OtherChain(CannotRun):
    """The database follows another chain than the node tells of."""

    def __init__(self) -> None:
        super().__init__(
            "this database follows another chain than the node's: give it another one, or empty it with"
            " roundtrip forget"
        )


async def first_hash_of(node: RpcNode, chain_id: int) -> str:
    """The hash of the node's block 0, on which its block 1 has to stand: what is written down by it decides
    later whose the database is. Raises NodeFault, also when it is of another chain."""
    (told,) = await node.batch([RpcCall("eth_chainId", [])], budgeted=False)
    if quantity(told) != chain_id:
        raise NodeFault(f"it is of chain {quantity(told)}, not {chain_id}")
    first, second = await read_refs(node, [0, 1])
    if first is None:
        raise NodeFault("it has no block 0")
    if second is not None and second[1] != first[0].hash:
        raise NodeLied("its block 1 does not stand on its block 0")
    return first[0].hash


async def parting(node: RpcNode, kept: Sequence[BlockRef], first: int) -> ForkPoint:
    """``kept``: blocks that were followed, oldest first; ``first``: the first one that ever was. Raises
    NodeFault."""
    last = await _last_of_both(node, kept)
    number = first - 1 if last is None else last.number
    # Asked once more, together: a node that lied about one of them does not undo what is right.
    before, after = await read_refs(node, [max(number, 0), number + 1])
    if last is not None and (before is None or before[0].hash != last.hash):
        raise NodeLied(f"it has its block {number}, and has it not")
    if after is not None and last is not None and after[1] != last.hash:
        raise NodeLied(f"its block {number + 1} does not follow its block {number}")
    if after is not None and any(block.hash == after[0].hash for block in kept[-_AT_ONCE:]):
        raise NodeLied(f"it has not its block {number + 1}, and has it")
    return ForkPoint(last, after is not None)


async def _last_of_both(node: RpcNode, kept: Sequence[BlockRef]) -> BlockRef | None:
    for end in range(len(kept), 0, -_AT_ONCE):
        some = kept[max(0, end - _AT_ONCE) : end]
        # Who has none of them is no fault: his chain may be that much shorter. A first block everybody has.
        _, *found = await read_refs(node, [0, *(block.number for block in some)])
        for block, ref in zip(reversed(some), reversed(found), strict=True):
            if ref is not None and ref[0].hash == block.hash:
                return block
    return None
