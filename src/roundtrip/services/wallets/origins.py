"""Where a wallet comes from: as the index and an archive told, and as an archive is asked."""

from roundtrip.chain.blocks.heads import newest, read_header
from roundtrip.chain.holders.origins import FoundOrigin, NothingReached, find_origin
from roundtrip.chain.rpc.client import RpcCall, RpcNode, quantity
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.services.runtime.context import Context
from roundtrip.store.index import origins
from roundtrip.store.index.cursor import cursor
from roundtrip.store.index.origins import OlderOrigin, StoredOrigin
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection

JOB = "origin"
DATABASE_S = 5.0


async def origin_of(ctx: Context, wallet: Address) -> StoredOrigin | None:
    """What is known for sure; None: not known, or not yet. Where an archive may tell, the search is wished
    for, once: not again while it waits, nor in the week after it was given up."""
    async with ctx.pool.acquire(timeout=DATABASE_S) as connection:
        known = await origins.origin(connection, wallet)
        if known is None and await _may_be_older(connection, wallet):
            async with connection.transaction():
                if not await jobs.is_there(connection, JOB, wallet):
                    await jobs.enqueue(connection, JOB, wallet)
    return known


async def find_out(
    connection: Connection, node: RpcNode, chain_id: int, wallet: Address
) -> StoredOrigin | NothingReached | None:
    """What is known for sure, else what an archive tells right now, which is remembered. Never: the wallet
    was not met up to that block. None: could not be found out. Where the chain was never followed all of it
    is searched, and nothing remembered: its end may not stay. Raises NodeFault, ServiceFull."""
    known = await origins.origin(connection, wallet)
    if known is not None:
        return known
    stands = await cursor(connection)
    if stands is not None and not await _may_be_older(connection, wallet):
        return NothingReached(stands.block.number)
    # What is remembered for ever is not to be another chain's.
    await _is_on(node, chain_id)
    if stands is None:
        high, _ = await newest(node)
        told = await find_origin(node, wallet, 0, high)
        return StoredOrigin(*told) if isinstance(told, FoundOrigin) else told
    older = await search(node, wallet, stands.start_number)
    if older is None:
        return None
    await origins.keep_older(connection, wallet, older)
    return await origins.origin(connection, wallet) or NothingReached(stands.block.number)


async def search(node: RpcNode, wallet: Address, start_number: int) -> OlderOrigin | None:
    """What an archive tells of the blocks before ``start_number``, which is above 0; None: could not be found
    out. Raises NodeFault, ServiceFull."""
    found = await find_origin(node, wallet, 0, await _block(node, start_number - 1))
    if isinstance(found, FoundOrigin):
        return OlderOrigin(StoredOrigin(*found), found.first_number)
    return None if found is None else OlderOrigin(None, found.searched_number)


async def _may_be_older(connection: Connection, wallet: Address) -> bool:
    """Whether there are blocks before the index that were not searched for the wallet."""
    stands = await cursor(connection)
    if stands is None or stands.start_number == 0:
        return False
    older = await origins.older(connection, wallet)
    return older is None or (older.found is None and older.searched_number < stands.start_number - 1)


async def _is_on(node: RpcNode, chain_id: int) -> None:
    (answer,) = await node.batch([RpcCall("eth_chainId", [])])
    if quantity(answer) != chain_id:
        raise NodeFault("it is of another chain")


async def _block(node: RpcNode, number: int) -> BlockRef:
    """Raises NodeFault when the node does not give that block."""
    (answer,) = await node.batch([RpcCall("eth_getBlockByNumber", [hex(number), False])])
    found = read_header(answer).block()
    if found.number != number:
        raise NodeFault("it gave another block than was asked for")
    return found
