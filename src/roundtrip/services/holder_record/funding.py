"""Where a token's wallets come from: when each was first reached, and who sent it its first eth."""

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from roundtrip.chain.blocks.state_witness import NoArchive
from roundtrip.chain.holders.origins import seek_origin
from roundtrip.chain.holders.views import had_before
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, quantity
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.holders.book import HolderBook
from roundtrip.domain.holders.findings import MAX_FUNDED, KnownWallet
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.index_reader import looking
from roundtrip.store.index import origins
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.origins import ORIGIN_JOB, ArchiveSearch
from roundtrip.store.server import jobs
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.wallets import linked
from roundtrip.store.wallets.linked import FirstEth

from .sources import history_node

Origins = Mapping[Address, FirstSeen | None]
"""The origins of wallets that are known; None: no eth of this chain ever reached the wallet."""

MAX_SEARCHED = 24
"""How many wallets of unknown origin are searched in the archive during the request, nine trips each. Where
the index does not cover the whole chain, jobs search up to ``MAX_ENQUEUED`` more that it never met."""
MAX_ENQUEUED = 50
"""The jobs of so many wallets take a minute together; more for one token would delay all others."""
_AT_ONCE = 8
_SEARCH_S = 6.0
_MAX_NO_ARCHIVE = 4
"""After this many wallets without old states, and none with an answer, the node has no archive: each such
answer costs it at least 33 calls. It is asked again after ``NO_ARCHIVE_S``."""
NO_ARCHIVE_S = 3600.0
_DATABASE_S = 5.0
_GIVEN_UP = timedelta(days=7)
"""How long after a job for a wallet was given up no other one is enqueued for it."""
BUSY_NONCE = 10_000
"""A sender of this many transactions may fund anyone, however few of its first payments the index has
seen."""


@dataclass(frozen=True, slots=True)
class FunderFamilies:
    """``wallets``: what is known of each wallet asked for. ``families``: how many wallets each funder sent a
    first eth, at least; ``MAX_FUNDED`` + 1 for a funder with so many transactions that it may be an exchange.
    ``funded``: when each wallet was sent its first eth."""

    wallets: Mapping[Address, KnownWallet]
    families: Mapping[Address, int] = field(default_factory=dict)
    funded: Mapping[Address, FirstEth] = field(default_factory=dict)


async def trace_wallets(
    ctx: Context,
    book: HolderBook,
    head: BlockRef,
    first: Sequence[Address],
    others: Sequence[Address],
    contracts: Mapping[Address, bool | None],
    meter: Meter,
) -> FunderFamilies:
    """Traces ``first``, then ``others``, up to the block ``head``, as far as ``MAX_SEARCHED`` and the time
    for searches allow. Only of ``first`` it is checked whether a wallet had something before the index first
    met it. What cannot be found out is reported as not known. Raises ServiceFull (busy), NodeFault."""
    wallets_to_trace = list(dict.fromkeys((*first, *others)))
    index = await _read_index(ctx, book, wallets_to_trace)
    had_before_index = await _had_before(ctx, index.origins, first, head, meter)
    origins_by_wallet = {
        wallet: origin for wallet, origin in index.origins.items() if not had_before_index.get(wallet)
    }
    # The index alone does not show a wallet's age: it does not see eth that contracts send.
    age_known = {wallet for wallet, had in had_before_index.items() if had is False}
    unknown = [wallet for wallet in wallets_to_trace if wallet not in origins_by_wallet]
    if unknown:
        searched = await _search_archive(ctx, unknown[:MAX_SEARCHED], head)
        origins_by_wallet |= searched
        age_known |= searched.keys()
        await _remember(
            ctx,
            index.cursor,
            origins_by_wallet,
            [wallet for wallet in unknown if wallet not in index.origins],
        )
    funded = _list_fundings(index, origins_by_wallet)
    wallets = {
        wallet: _known_wallet(
            book, wallet, origins_by_wallet, age_known, contracts.get(wallet), funded.get(wallet)
        )
        for wallet in wallets_to_trace
    }
    funders = {known.funder for known in wallets.values() if known.funder is not None}
    families = await _read_families(ctx, index.cursor, funders, head, meter)
    return FunderFamilies(wallets, families, funded)


def _list_fundings(index: "_IndexedOrigins", origins_by_wallet: Origins) -> dict[Address, FirstEth]:
    """When its funder sent each wallet its first eth. The index tells the time of the payment that it has
    seen; of an origin from the archive, only the origin's own time is known."""
    start_number = 0 if index.cursor is None else index.cursor.start_number
    funded = {}
    for wallet, origin in origins_by_wallet.items():
        if origin is None or origin.funder is None:
            continue
        is_older = index.origins.get(wallet) is not origin or origin.first_number < start_number
        first_eth = None if is_older else index.funded.get(wallet)
        funded[wallet] = first_eth or FirstEth(origin.first_number, origin.first_s)
    return funded


async def _had_before(
    ctx: Context, origins_by_wallet: Origins, wallets: Sequence[Address], head: BlockRef, meter: Meter
) -> Mapping[Address, bool | None]:
    """Whether wallets had something before the index first met them, or have something although it never did.
    Only wallets whose origin the index knows, None included. None: could not be found out."""
    first_met = []
    for wallet in wallets:
        if wallet in origins_by_wallet:
            origin = origins_by_wallet[wallet]
            first_met.append((wallet, head.number + 1 if origin is None else origin.first_number))
    return await had_before(ctx.node, first_met, ctx.contracts.weth, meter) if first_met else {}


def _known_wallet(
    book: HolderBook,
    wallet: Address,
    origins_by_wallet: Origins,
    age_known: Collection[Address],
    is_contract: bool | None,
    first_eth: FirstEth | None,
) -> KnownWallet:
    """What is known of a wallet. The token itself may be the first thing that reached it. ``age_known``:
    wallets of known age."""
    if wallet not in origins_by_wallet:
        return KnownWallet(is_contract=is_contract)
    origin, holding = origins_by_wallet[wallet], book.wallets.get(wallet)
    times = [] if origin is None else [origin.first_s]
    if holding is not None and holding.first_s:
        times.append(holding.first_s)
    first_s = min(times, default=None) if wallet in age_known else None
    return KnownWallet(
        first_s=first_s,
        funder=None if origin is None else origin.funder,
        funder_known=True,
        is_contract=is_contract,
        funded_s=None if first_eth is None else first_eth.at_s,
    )


@dataclass(frozen=True, slots=True)
class _IndexedOrigins:
    """The origins that the index knows. ``funded``: when each wallet was sent its first eth, where a wallet
    sent it."""

    cursor: Cursor | None
    origins: Origins
    funded: Mapping[Address, FirstEth]


async def _read_index(ctx: Context, book: HolderBook, wallets: Collection[Address]) -> _IndexedOrigins:
    async with looking(ctx) as (connection, cursor):
        known: dict[Address, FirstSeen | None] = dict(await origins.origins_of(connection, wallets))
        funded = await linked.first_eth(connection, wallets)
    if cursor is not None and cursor.start_number == 0:
        # A wallet that an index of the whole chain never met was empty at its newest block. That is an
        # origin only if the token had reached the wallet by then.
        newest_s = cursor.block.timestamp_s
        for wallet in wallets:
            holding = book.wallets.get(wallet)
            if wallet not in known and holding is not None and 0 < holding.first_s < newest_s:
                known[wallet] = None
    return _IndexedOrigins(cursor, known, funded)


async def _search_archive(ctx: Context, wallets: Iterable[Address], head: BlockRef) -> Origins:
    """Searches the origins in the archive; missing ones could not be found out in time, for want of an
    archive, or within the day's budget for reading holders: a search takes thousands of calls, which must
    not be taken from checks."""
    origins_found: dict[Address, FirstSeen | None] = {}
    books, now_s = ctx.books, ctx.now_s()
    if books.no_archive_s is not None and now_s - books.no_archive_s < NO_ARCHIVE_S:
        return origins_found
    slots = asyncio.Semaphore(_AT_ONCE)
    node, no_archive_count = history_node(ctx), 0

    async def search(wallet: Address) -> None:
        nonlocal no_archive_count
        async with slots:
            if not origins_found and no_archive_count >= _MAX_NO_ARCHIVE:
                return
            try:
                origin = await seek_origin(node, wallet, 0, head)
            except NoArchive:
                no_archive_count += 1
                return
            except NodeFault:
                # The node failed, or contradicts itself about this address; others may be fine.
                return
        origins_found[wallet] = origin if isinstance(origin, FirstSeen) else None

    with contextlib.suppress(TimeoutError, NodeFault, ServiceFull):
        async with asyncio.timeout(_SEARCH_S):
            await at_once(*(search(wallet) for wallet in wallets))
    if not origins_found and no_archive_count >= _MAX_NO_ARCHIVE:
        books.no_archive_s = now_s
    return origins_found


async def _remember(
    ctx: Context, cursor: Cursor | None, origins_by_wallet: Origins, unknown: Sequence[Address]
) -> None:
    """Saves what the archive reported of blocks before the index, and enqueues jobs for the rest. If that
    cannot be written, it is found out again."""
    if cursor is None or cursor.start_number == 0:
        # There is nothing before the index for a job to search.
        return
    with contextlib.suppress(*DATABASE_FAULTS):
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection, connection.transaction():
            for wallet in unknown:
                if wallet in origins_by_wallet:
                    search = _cut_search(origins_by_wallet[wallet], cursor.start_number)
                    await origins.keep_archive_search(connection, wallet, search)
            missing = [wallet for wallet in unknown if wallet not in origins_by_wallet][:MAX_ENQUEUED]
            now = datetime.fromtimestamp(ctx.now_s(), UTC)
            have_jobs = await jobs.among(connection, ORIGIN_JOB, missing, now - _GIVEN_UP)
            await jobs.enqueue_many(
                connection, ORIGIN_JOB, [wallet for wallet in missing if wallet not in have_jobs]
            )


def _cut_search(origin: FirstSeen | None, start_number: int) -> ArchiveSearch:
    """What a search of the blocks before the index finds: later events the sync has seen itself."""
    if origin is None or origin.first_number >= start_number:
        return ArchiveSearch(None, start_number - 1)
    return ArchiveSearch(origin, origin.first_number)


async def _read_families(
    ctx: Context, cursor: Cursor | None, funders: set[Address], head: BlockRef, meter: Meter
) -> dict[Address, int]:
    """How many wallets each funder sent their first eth. If the index covers the whole chain, its counts are
    right up to ``EXCHANGE_WALLETS`` + 1; else a funder whose transaction count shows that it is too busy
    to tie wallets gets more than ``MAX_FUNDED``. Left out: it is not known. Raises NodeFault."""
    if not funders:
        return {}
    async with looking(ctx) as (connection, _):
        families = await linked.count_funded_by_address(connection, funders)
    if cursor is not None and cursor.start_number == 0:
        return families
    sorted_funders = sorted(funders)
    calls = [
        RpcCall("eth_getTransactionCount", [funder, {"blockHash": head.hash}]) for funder in sorted_funders
    ]
    for funder, answer in zip(sorted_funders, await ctx.node.batch(calls, meter), strict=True):
        if isinstance(answer, RpcError):
            # The funder may be an exchange, so its ties stay unknown.
            del families[funder]
        elif quantity(answer) >= BUSY_NONCE:
            families[funder] = MAX_FUNDED + 1
    return families
