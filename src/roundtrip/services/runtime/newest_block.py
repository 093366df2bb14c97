"""Keeps answers from being too old: older than the index, older than a block that the caller has seen, or,
for an answer that something does not exist, older than the node's newest block. Runs a use case that
only reads, on a replica where one is fit."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.domain.base.errors import CallerFault, NodeFault, ServiceFull
from roundtrip.services.runtime.context import Context
from roundtrip.store.index import cursor
from roundtrip.store.server.connections import DATABASE_FAULTS

A = TypeVar("A")

REACH_S = 2.0
"""How long a request waits for a block that the node does not have yet."""
MAX_AHEAD = 100
"""A node that is further behind does not catch up within that time."""
_EVERY_S = 0.05
"""Wait between two looks at the newest block."""


async def head_of_index(ctx: Context) -> tuple[ChainHead, int]:
    """The head, refreshed if the index has a newer block, so that a user who was alerted of an event gets no
    answer from before it; and the newest indexed block, 0 if not known. Raises NodeFault."""
    head = ctx.heads.current()
    try:
        async with asyncio.timeout(ctx.index_patience_s):
            indexed = await _newest_indexed(ctx)
    except DATABASE_FAULTS:
        return head, 0
    return (head if indexed <= head.block.number else await ctx.heads.refresh()), indexed


def block_missing_error(number: int) -> ServiceFull:
    """The error for a node that is behind that block."""
    return ServiceFull("busy", f"The chain's node does not have block {number:,} yet. Retry in a second.", 1)


async def wait_for_block(ctx: Context, number: int) -> None:
    """Waits until the head is that block or a later one. Raises ServiceFull (busy) on timeout, or at once
    if the node is more than MAX_AHEAD behind or fails, and NodeFault when there is no head at all."""
    head = ctx.heads.current()
    if head.block.number >= number:
        return
    try:
        async with asyncio.timeout(REACH_S):
            head = await ctx.heads.refresh()
            while head.block.number < number <= head.block.number + MAX_AHEAD:
                await asyncio.sleep(_EVERY_S)
                head = await ctx.heads.refresh()
    except (TimeoutError, NodeFault):
        pass
    if head.block.number < number:
        raise block_missing_error(number)


async def wait_for_index(ctx: Context, number: int) -> None:
    """Waits until the index has that block, for as long as ``wait_for_block`` waits: the caller says what it
    does not know where the index is still behind. Returns at once if it is far behind or cannot be asked."""
    try:
        async with asyncio.timeout(REACH_S):
            indexed = await _newest_indexed(ctx)
            while indexed < number <= indexed + MAX_AHEAD:
                await asyncio.sleep(_EVERY_S)
                indexed = await _newest_indexed(ctx)
    except DATABASE_FAULTS:
        pass


async def _newest_indexed(ctx: Context) -> int:
    async with ctx.pool.acquire() as connection:
        return await cursor.newest_number(connection) or 0


async def retry_at_newest(ctx: Context, run: Callable[[], Awaitable[A]]) -> A:
    """Returns the result of ``run``. If it fails because of the chain's state, such as a missing balance or
    pool, it runs again at the node's newest block. Raises as ``run``, and NodeFault."""
    head = ctx.heads.current()
    try:
        return await run()
    except CallerFault as fault:
        if fault.code == "bad_input" or (await ctx.heads.refresh()).block == head.block:
            raise
    return await run()


async def is_newest(ctx: Context, number: int) -> bool:
    """Whether the node has no block after this one; False if the node does not answer."""
    try:
        return (await ctx.heads.refresh()).block.number == number
    except NodeFault:
        return False


async def read_from_replica(ctx: Context, run: Callable[[Context], Awaitable[A]]) -> A:
    """Returns what ``run`` returns, and raises as it does. All its reads of the index are of one replica. It
    runs again on the primary if the replica failed meanwhile, also where ``run`` caught the replica's error
    and answered with less."""
    loan = ctx.replicas.lend()
    if loan is None:
        return await run(ctx)
    try:
        answer = await run(replace(ctx, loan=loan))
    except Exception:
        if not loan.has_failed:
            raise
    else:
        if not loan.has_failed:
            return answer
    return await run(ctx)
