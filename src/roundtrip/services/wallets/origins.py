"""When a wallet was first seen and which wallet funded it: from the index, else from an archive node."""

from roundtrip.chain.blocks.heads import newest, read_header
from roundtrip.chain.holders.origins import NothingReached, find_origin
from roundtrip.chain.rpc.client import RpcCall, RpcNode, quantity
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.services.runtime.context import Context
from roundtrip.store.index import origins
from roundtrip.store.index.cursor import cursor
from roundtrip.store.index.origins import ORIGIN_JOB, OlderOrigin
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection

DATABASE_S = 5.0


async def origin_of(ctx: Context, wallet: Address) -> FirstSeen | None:
    """The origin that is known for sure; None: not known, or not yet. If an archive node may know it, this
    enqueues a search, but not while one is queued, nor in the week after one was given up."""
    async with ctx.pool.acquire(timeout=DATABASE_S) as connection:
        stored = await origins.origin(connection, wallet)
        if stored is None and await _may_be_older(connection, wallet):
            async with connection.transaction():
                if not await jobs.is_there(connection, ORIGIN_JOB, wallet):
                    await jobs.enqueue(connection, ORIGIN_JOB, wallet)
    return stored


async def resolve_origin(
    connection: Connection, node: RpcNode, chain_id: int, wallet: Address
) -> FirstSeen | NothingReached | None:
    """The origin that is known for sure, else what an archive node answers now, which is stored.
    NothingReached: nothing reached the wallet up to that block. None: not found out. Without an index the
    whole chain is searched and nothing is stored, because a reorg may undo the newest blocks. Raises
    NodeFault, ServiceFull."""
    stored = await origins.origin(connection, wallet)
    if stored is not None:
        return stored
    index_cursor = await cursor(connection)
    if index_cursor is not None and not await _may_be_older(connection, wallet):
        return NothingReached(index_cursor.block.number)
    # The result is stored permanently, so it must not be of another chain.
    await _check_chain(node, chain_id)
    if index_cursor is None:
        newest_block, _ = await newest(node)
        return await find_origin(node, wallet, 0, newest_block)
    older = await search_archive(node, wallet, index_cursor.start_number)
    if older is None:
        return None
    await origins.keep_older(connection, wallet, older)
    return await origins.origin(connection, wallet) or NothingReached(index_cursor.block.number)


async def search_archive(node: RpcNode, wallet: Address, start_number: int) -> OlderOrigin | None:
    """Searches an archive node's blocks before ``start_number``, which is above 0. None: not found out.
    Raises NodeFault, ServiceFull."""
    origin = await find_origin(node, wallet, 0, await _read_block(node, start_number - 1))
    if isinstance(origin, FirstSeen):
        return OlderOrigin(origin, origin.first_number)
    return None if origin is None else OlderOrigin(None, origin.searched_number)


async def _may_be_older(connection: Connection, wallet: Address) -> bool:
    """Whether blocks before the index have not been searched for the wallet."""
    index_cursor = await cursor(connection)
    if index_cursor is None or index_cursor.start_number == 0:
        return False
    older = await origins.older(connection, wallet)
    return older is None or (older.found is None and older.searched_number < index_cursor.start_number - 1)


async def _check_chain(node: RpcNode, chain_id: int) -> None:
    (answer,) = await node.batch([RpcCall("eth_chainId", [])])
    if quantity(answer) != chain_id:
        raise NodeFault("it serves another chain")


async def _read_block(node: RpcNode, number: int) -> BlockRef:
    """Raises NodeFault when the node does not give that block."""
    (answer,) = await node.batch([RpcCall("eth_getBlockByNumber", [hex(number), False])])
    block = read_header(answer).block()
    if block.number != number:
        raise NodeFault("it returned another block than requested")
    return block
