"""Consecutive spans of blocks, several requested at once, yielded in order and linked by their hashes."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial

from roundtrip.chain.rpc.client import RpcNode
from roundtrip.domain.base.errors import NodeFault

from .adaptive_width import Width
from .block_ranges import ranges
from .receipts import read_by_receipts
from .spans import BlockRead, asks_too_much, read_span


class ForkSeen(NodeFault):
    """Block ``number`` does not follow the last yielded block, or at first the given parent: the chain was
    reorganised, and yielded blocks may be gone."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the node's block {number} does not follow the block read before it")
        self.number = number


async def spans(
    node: RpcNode,
    first: int,
    last_known: Callable[[], int] | int,
    width: Width,
    in_flight: int = 4,
    parent_hash: str | None = None,
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.perf_counter,
) -> AsyncGenerator[list[BlockRead], None]:
    """Yields blocks ``first`` to ``last_known`` in consecutive spans, requested as ``ranges`` does.
    ``parent_hash``: of the block before ``first``, where it is known. Raises ForkSeen, and as ``ranges``. The
    caller closes it (``contextlib.aclosing``), which cancels every request under way."""
    last_hash = parent_hash
    read = partial(_read, node)
    stream = ranges(read, _count_logs, first, last_known, width, in_flight, wait, clock)
    async with contextlib.aclosing(stream):
        async for blocks in stream:
            if last_hash is not None and blocks[0].parent_hash != last_hash:
                raise ForkSeen(blocks[0].ref.number)
            last_hash = blocks[-1].ref.hash
            yield blocks


async def _read(node: RpcNode, first: int, last: int) -> list[BlockRead]:
    """As ``read_span``; reads a single block by its receipts where its logs exceed one answer."""
    try:
        return await read_span(node, first, last)
    except NodeFault as fault:
        if first != last or not asks_too_much(fault):
            raise
    return [await read_by_receipts(node, first)]


def _count_logs(blocks: Sequence[BlockRead]) -> int:
    return sum(len(block.entries) for block in blocks)
