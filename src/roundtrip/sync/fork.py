"""Where the chain that was followed and the one that the node has part."""

from collections.abc import Sequence

from roundtrip.chain.rpc import Asks
from roundtrip.chain.spans import read_refs
from roundtrip.domain.types import BlockRef

_AT_ONCE = 128


class ForkTooDeep(Exception):
    """More blocks were replaced than is believed of this chain: the node is asked again, not believed."""

    def __init__(self, depth: int, deepest: int) -> None:
        super().__init__(
            f"the node has another chain for {depth} blocks, and more than {deepest} is not believed"
        )


async def ancestor(node: Asks, kept: Sequence[BlockRef]) -> BlockRef | None:
    """The newest of ``kept`` (oldest first) that the node has, too; None: not one. Raises NodeFault."""
    for end in range(len(kept), 0, -_AT_ONCE):
        some = kept[max(0, end - _AT_ONCE) : end]
        found = await read_refs(node, [block.number for block in some])
        for block, ref in zip(reversed(some), reversed(found), strict=True):
            if ref is not None and ref[0].hash == block.hash:
                return block
    return None
