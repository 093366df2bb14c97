"""Answers that are not older than they may be: than what the index told already, than a block that the caller
has seen, and, where something is said not to be there, than the node's newest block."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.domain.base.errors import CallerFault, NodeFault, ServiceFull
from roundtrip.store.index import cursor
from roundtrip.store.server.errors import DATABASE_FAULTS

from .context import Context

A = TypeVar("A")

REACH_S = 2.0
"""So long a request waits for a block that the node has not got yet."""
MOST_AHEAD = 100
"""No node is further behind another one and there within that time."""
_EVERY_S = 0.05
_PATIENCE_S = 0.5


async def head_of_index(ctx: Context) -> tuple[ChainHead, int]:
    """The head, asked for again where the index has a newer block: whoever was alerted of something that
    happened there is not answered from before; and which block that is, 0 where it is not known. Raises
    NodeFault."""
    head = ctx.heads.current()
    try:
        async with asyncio.timeout(_PATIENCE_S), ctx.pool.acquire() as connection:
            followed = await cursor.newest_number(connection) or 0
    except DATABASE_FAULTS:
        return head, 0
    return (head if followed <= head.block.number else await ctx.heads.refresh()), followed


def not_there_yet(number: int) -> ServiceFull:
    """The node is behind that block."""
    return ServiceFull("busy", f"The chain's node has not got block {number} yet.", 1)


async def reach(ctx: Context, number: int) -> None:
    """The head is of that block or a later one afterwards. Raises ServiceFull (busy) where it is not in time,
    and NodeFault where there is no head at all."""
    head = ctx.heads.current()
    if head.block.number >= number:
        return
    try:
        async with asyncio.timeout(REACH_S):
            head = await ctx.heads.refresh()
            while head.block.number < number <= head.block.number + MOST_AHEAD:
                await asyncio.sleep(_EVERY_S)
                head = await ctx.heads.refresh()
    except (TimeoutError, NodeFault):
        pass
    if head.block.number < number:
        raise not_there_yet(number)


async def refused_at_newest(ctx: Context, run: Callable[[], Awaitable[A]]) -> A:
    """What it comes to. What is refused because of the chain's state, a balance or a pool that is not there,
    is refused at the node's newest block. Raises as ``run``, and NodeFault."""
    head = ctx.heads.current()
    try:
        return await run()
    except CallerFault as fault:
        if fault.code == "bad_input" or (await ctx.heads.refresh()).block == head.block:
            raise
    return await run()


async def is_newest(ctx: Context, number: int) -> bool:
    """Whether the chain has no block after this one, by what its node says now; False where it is silent."""
    try:
        return (await ctx.heads.refresh()).block.number == number
    except NodeFault:
        return False
