"""Reads a wallet's history: age and funder, launches and their ends, trading record, and holdings."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.holders.wallet_views import UNREAD, WalletViews, read_views, view_calls
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import reading
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.store.community import public_names
from roundtrip.store.index import addresses, deployers, tokens
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.origins import ORIGIN_JOB
from roundtrip.store.server import jobs
from roundtrip.store.server.errors import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets import linked, wallets

from .history_answer import WalletBeginning, WalletHistory, WalletRecord, present
from .origins import DATABASE_S, origin_of

RECENT_S = 30 * 86_400
T = TypeVar("T")


async def wallet_history(ctx: Context, params: WalletParams) -> UseCaseAnswer[WalletHistory]:
    """The history of one wallet. Fields that the node does not answer are null, and the text says so. Raises
    CallerFault (bad_address), ServiceFull (busy)."""
    answered, _ = await read_history(ctx, params, _read_nothing)
    return answered


async def _read_nothing(connection: Connection, wallet_id: int) -> None:
    return None


async def read_history(
    ctx: Context, params: WalletParams, read_beside: Callable[[Connection, int], Awaitable[T]]
) -> tuple[UseCaseAnswer[WalletHistory], T]:
    """The history, and what ``read_beside`` finds of the wallet's id in the same state of the index. Raises
    as ``wallet_history``."""
    wallet = params.wallet()
    beginning = await _read_origin(ctx, wallet)
    async with reading(ctx) as (connection, index_cursor):
        # 0 is the id of no address: a wallet in no indexed fact gets empty results.
        wallet_id = await addresses.id_of(connection, wallet) or 0
        record = await _read_record(connection, ctx, wallet, wallet_id, index_cursor, beginning.origin)
        beside = await read_beside(connection, wallet_id)
    head, views = await _read_views(ctx, wallet, record)
    answer = present(
        ctx.chain_id, wallet, beginning, record, None if head is None else head.block.number, views
    )
    policy = ctx.policy
    ttl_ms = policy.node_fault_ttl_ms if head is None else policy.answer_ttl_ms
    return UseCaseAnswer(answer, ttl_ms), beside


async def _read_origin(ctx: Context, wallet: Address) -> WalletBeginning:
    try:
        origin = await origin_of(ctx, wallet)
        if origin is not None:
            return WalletBeginning(origin, "known")
        async with ctx.pool.acquire(timeout=DATABASE_S) as connection:
            is_searching = await jobs.is_to_come(connection, ORIGIN_JOB, wallet)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "The index is unavailable; retry in 5 seconds.", 5) from error
    return WalletBeginning(None, "searching" if is_searching else "unknown")


async def _read_record(
    connection: Connection,
    ctx: Context,
    wallet: Address,
    wallet_id: int,
    index_cursor: Cursor,
    origin: FirstSeen | None,
) -> WalletRecord:
    now_s = index_cursor.block.timestamp_s
    since_s = now_s - RECENT_S
    family = 0
    if origin is not None and origin.funder is not None:
        funder_id = await addresses.id_of(connection, origin.funder) or 0
        family = (await linked.count_funded(connection, [funder_id]))[funder_id]
    launches = await wallets.launches(connection, wallet_id)
    closings = await wallets.closings(connection, wallet_id, since_s)
    held = await wallets.list_held(connection, wallet_id)
    held_ids = [row.token_id for row in held]
    named = {row.token_id for row in (*launches, *held, closings.best, closings.worst) if row is not None}
    funder = None if origin is None else origin.funder
    return WalletRecord(
        index_cursor=index_cursor,
        scams=await public_names.scams(connection, {wallet, *([] if funder is None else [funder])}),
        family=family,
        record=(await deployers.records(connection, [wallet_id]))[wallet_id],
        into_pools=await wallets.pool_launches(connection, wallet_id),
        launches=launches,
        traded=await wallets.sum_trades(connection, wallet_id, since_s),
        ended=closings,
        held=held,
        last_trades=await wallets.last_trades(connection, held_ids, ctx.contracts, now_s),
        labels=await tokens.labels(connection, named),
    )


async def _read_views(
    ctx: Context, wallet: Address, record: WalletRecord
) -> tuple[ChainHead | None, WalletViews]:
    """What the wallet holds at the head, in one batch; (None, UNREAD) if the node does not answer."""
    labels = [record.labels[position.token_id] for position in record.held]
    addresses_held = [label.address for label in labels]
    unread = {label.address for label in labels if label.decimals is None or label.supply_raw is None}
    try:
        head = ctx.heads.current()
        limit = ctx.policy.read_gas_limit
        calls = view_calls(wallet, addresses_held, unread, ctx.contracts, head.block, limit)
        return head, read_views(await ctx.node.batch(calls), addresses_held, unread, ctx.chain_id)
    except (NodeFault, ServiceFull):
        return None, UNREAD
