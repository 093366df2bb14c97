"""Reads a wallet's history: age and funder, launches and their ends, trading record, holdings, and trades.
The answer of a wallet's page: its history, and what the page shows beside it. When a wallet was first seen
and which wallet funded it: from the index, else from an archive node."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, NamedTuple, TypeVar

import msgspec

from roundtrip.chain.blocks.heads import ChainHead, newest, read_header
from roundtrip.chain.holders.origins import NothingReached, find_origin
from roundtrip.chain.holders.wallet_views import UNREAD, WalletViews, read_views, view_calls
from roundtrip.chain.rpc.client import RpcCall, RpcNode, quantity
from roundtrip.domain.base.errors import NodeFault, ParamFault, ServiceFull
from roundtrip.domain.base.types import Address, BlockRef, plain_decimal
from roundtrip.domain.holders.launch_window import WINDOW_BLOCKS
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import WalletParams
from roundtrip.services.support.index_reader import IndexAnswer, TokenNamed, eth, present_token, reading, when
from roundtrip.services.support.money import ETH_DECIMALS, USDG_DECIMALS
from roundtrip.services.wallets.history_answer import WalletBeginning, WalletHistory, WalletRecord, present
from roundtrip.store.community import public_names
from roundtrip.store.index import deployers, origins, tokens
from roundtrip.store.index.cursor import Cursor, cursor
from roundtrip.store.index.origins import ORIGIN_JOB, ArchiveSearch
from roundtrip.store.index.tokens import Label
from roundtrip.store.server import jobs
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.partitions import LAST_S
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets import linked, wallets
from roundtrip.store.wallets.wallets import MAX_LAUNCHES_LOOKED_AT, ProfitDay, TradePlace, WalletTrade

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
    search = await search_archive(node, wallet, index_cursor.start_number)
    if search is None:
        return None
    await origins.keep_archive_search(connection, wallet, search)
    return await origins.origin(connection, wallet) or NothingReached(index_cursor.block.number)


async def search_archive(node: RpcNode, wallet: Address, start_number: int) -> ArchiveSearch | None:
    """Searches an archive node's blocks before ``start_number``, which is above 0. None: not found out.
    Raises NodeFault, ServiceFull."""
    origin = await find_origin(node, wallet, 0, await _read_block(node, start_number - 1))
    if isinstance(origin, FirstSeen):
        return ArchiveSearch(origin, origin.first_number)
    return None if origin is None else ArchiveSearch(None, origin.searched_number)


async def _may_be_older(connection: Connection, wallet: Address) -> bool:
    """Whether blocks before the index have not been searched for the wallet."""
    index_cursor = await cursor(connection)
    if index_cursor is None or index_cursor.start_number == 0:
        return False
    search = await origins.read_archive_search(connection, wallet)
    return search is None or (search.found is None and search.searched_number < index_cursor.start_number - 1)


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
        wallet_id = await tokens.id_of(connection, wallet) or 0
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
        funder_id = await tokens.id_of(connection, origin.funder) or 0
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


class RealisedDay(msgspec.Struct, frozen=True, rename="camel"):
    """The positions that were closed on one day (UTC)."""

    day: datetime
    closed: int
    profit_eth: float


class BoardRank(msgspec.Struct, frozen=True):
    """The wallet's place on a winners board."""

    span: str
    rank: int


class WalletPage(msgspec.Struct, frozen=True, rename="camel"):
    """``days``: those with closings, the oldest first. ``board``: the nearest winners board; null: on none.
    ``sniped``: launches of others that it bought in their first three seconds, of its ``sniped_of`` newest
    tokens. ``funder_scam_marks``: people who mark its funder as a scam."""

    history: WalletHistory
    days: list[RealisedDay]
    board: BoardRank | None
    sniped: int
    sniped_of: int
    funder_scam_marks: int


class _Beside(NamedTuple):
    """What the page shows beside the history, from the same state of the index."""

    days: list[ProfitDay]
    board: BoardRank | None
    sniped: int


async def wallet_page(ctx: Context, params: WalletParams) -> UseCaseAnswer[WalletPage]:
    """The answer of the wallet's page. Raises as ``wallet_history``."""
    answered, beside = await read_history(ctx, params, _read_beside)
    history = answered.answer
    funders = [] if history.funder is None else [Address(history.funder.address)]
    async with reading(ctx) as (connection, _):
        scams = await public_names.scams(connection, funders)
    page = WalletPage(
        history=history,
        days=[RealisedDay(when(day.at_s), day.closed, eth(day.profit_wei)) for day in beside.days],
        board=beside.board,
        sniped=beside.sniped,
        sniped_of=min(history.record.tokens, MAX_LAUNCHES_LOOKED_AT),
        funder_scam_marks=sum(scams.values()),
    )
    return UseCaseAnswer(page, answered.ttl_ms)


async def _read_beside(connection: Connection, wallet_id: int) -> _Beside:
    board = await wallets.nearest_board(connection, wallet_id)
    return _Beside(
        await wallets.profit_days(connection, wallet_id),
        None if board is None else BoardRank(*board),
        await wallets.count_sniped(connection, wallet_id, WINDOW_BLOCKS),
    )


SHOWN, TRADES_TTL_MS = 20, 2_000


class WalletTradesParams(WalletParams, frozen=True, forbid_unknown_fields=True):
    """``before``: the trade before which the page begins, as ``WalletTrades.before``; empty: it begins with
    the newest."""

    before: Annotated[str, msgspec.Meta(pattern="^([0-9]{1,10}-[0-9]{1,9}-[0-9]{1,9})?$")] = ""

    def place(self) -> TradePlace | None:
        """The place that ``before`` names. Raises ParamFault (bad_input)."""
        if not self.before:
            return None
        place = TradePlace(*map(int, self.before.split("-")))
        if place.at_s > LAST_S:
            raise ParamFault("bad_input", f"before must begin with at most {LAST_S}, a time in seconds.")
        return place


class WalletTradeRow(msgspec.Struct, frozen=True, rename="camel"):
    """A trade. ``price``: eth for one token. ``tokens``, ``eth``, ``usd``, ``price``: null: not known."""

    id: str
    is_buy: bool
    token: TokenNamed
    tokens: str | None
    eth: float | None
    usd: str | None
    price: str | None
    at: datetime
    tx: str


class WalletTrades(IndexAnswer, frozen=True, rename="camel"):
    """The newest trades that are stored, or those before one. ``before``: where the next page begins; null:
    there is none."""

    address: str
    trades: list[WalletTradeRow]
    before: str | None


async def wallet_trades(ctx: Context, params: WalletTradesParams) -> UseCaseAnswer[WalletTrades]:
    """The wallet's trades, the newest first, a page at a time. Asks no node. Raises ParamFault (bad_address,
    bad_input), ServiceFull (busy)."""
    wallet, place = params.wallet(), params.place()
    async with reading(ctx) as (connection, index_cursor):
        wallet_id = await tokens.id_of(connection, wallet) or 0
        found = await wallets.list_trades(connection, wallet_id, place, SHOWN + 1, ctx.contracts)
        labels = await tokens.labels(connection, {trade.token_id for trade in found})
    rows = [_present_trade(trade, labels[trade.token_id]) for trade in found[:SHOWN]]
    last = found[SHOWN - 1] if len(found) > SHOWN else None
    answer = WalletTrades(
        text=f"The newest trades of {wallet}." if rows else f"No trade of {wallet} is stored.",
        chain_id=ctx.chain_id,
        block=index_cursor.block.number,
        block_time=when(index_cursor.block.timestamp_s),
        address=wallet,
        trades=rows,
        before=None if last is None else f"{last.at_s}-{last.block_number}-{last.log_index}",
    )
    return UseCaseAnswer(answer, TRADES_TTL_MS)


def _present_trade(trade: WalletTrade, label: Label) -> WalletTradeRow:
    price_raw = None
    if trade.eth_wei is not None and label.decimals is not None and trade.token_raw:
        price_raw = trade.eth_wei * 10 ** (label.decimals + ETH_DECIMALS) // trade.token_raw
    return WalletTradeRow(
        id=f"{trade.block_number}-{trade.log_index}",
        is_buy=trade.buys,
        token=present_token(label),
        tokens=None if label.decimals is None else plain_decimal(trade.token_raw, label.decimals),
        eth=None if trade.eth_wei is None else eth(trade.eth_wei),
        usd=None if trade.micro_usd is None else plain_decimal(trade.micro_usd, USDG_DECIMALS),
        price=None if price_raw is None else plain_decimal(price_raw, 2 * ETH_DECIMALS),
        at=when(trade.at_s),
        tx=trade.tx_hash,
    )
