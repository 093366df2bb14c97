"""``origin``, of a wallet's address: searches the archive for when it was first reached, where the index
begins too late to know."""

import asyncpg

from roundtrip.chain.heads import read_header
from roundtrip.chain.origins import Found, find_origin
from roundtrip.chain.rpc import RpcCall
from roundtrip.domain.errors import NodeFault
from roundtrip.domain.types import BlockRef, parse_address
from roundtrip.services.context import Context
from roundtrip.store import origins
from roundtrip.store.chain import cursor
from roundtrip.store.jobs import Job
from roundtrip.store.origins import OlderOrigin, Origin

from .worker import Effect, NotYet, nothing


async def origin(ctx: Context, job: Job) -> Effect:
    """Searches up to where the index begins; where it is whole there is nothing to search. Raises NotYet when
    it could not be found out, and NodeFault."""
    wallet = parse_address(job.key)
    async with ctx.pool.acquire() as connection:
        known = await cursor(connection)
    if known is None:
        raise NotYet("the index has not begun")
    if known.start_number == 0:
        return nothing
    found = await find_origin(ctx.node, wallet, 0, await _block(ctx, known.start_number - 1))
    if found is None:
        raise NotYet("it could not be found out")
    first = Origin(found.first_number, found.first_s, found.funder) if isinstance(found, Found) else None
    searched = found.first_number if isinstance(found, Found) else found.searched_number

    async def keep(connection: asyncpg.Connection) -> None:
        await origins.keep_older(connection, wallet, OlderOrigin(first, searched))

    return keep


async def _block(ctx: Context, number: int) -> BlockRef:
    """Raises NodeFault when the node does not give that block."""
    (answer,) = await ctx.node.batch([RpcCall("eth_getBlockByNumber", [hex(number), False])])
    found = read_header(answer).block()
    if found.number != number:
        raise NodeFault("it gave another block than was asked for")
    return found
