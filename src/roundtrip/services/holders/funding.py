"""Where a token's wallets come from: when each was first reached, and who sent it its first eth."""

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from roundtrip.chain.blocks.state_witness import NoArchive
from roundtrip.chain.holders.origins import FoundOrigin, seek_origin
from roundtrip.chain.holders.views import had_before
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, quantity
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.holders.book import HolderBook
from roundtrip.domain.holders.findings import MOST_FUNDED, KnownWallet
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.index_reader import looking
from roundtrip.services.wallets.origins import JOB
from roundtrip.store.index import origins
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.origins import OlderOrigin, StoredOrigin
from roundtrip.store.server import jobs
from roundtrip.store.server.errors import DATABASE_FAULTS
from roundtrip.store.wallets import linked

from .sources import reading_node

Came = Mapping[Address, StoredOrigin | None]
"""Where wallets come from, of those of whom it is known; None: nothing of this chain's money ever reached
it."""

MOST_SEARCHED = 24
"""So many wallets that the index does not know are searched in the archive while somebody waits: nine trips
each. Jobs find out about the others."""
MOST_WISHED = 50
"""A job takes a minute of them: more for one token keep all others' waiting."""
_AT_ONCE = 8
_SEARCH_S = 6.0
_MOST_UNTOLD = 4
"""After so many of whom it has no old states, and none of whom it told anything, the node has none: each such
answer costs it 33 calls. It is asked again after ``NO_ARCHIVE_S``."""
NO_ARCHIVE_S = 3600.0
_DATABASE_S = 5.0
_GIVEN_UP = timedelta(days=7)
BUSY_NONCE = 10_000
"""Who sent so many transactions funds anybody, however few first payments of his the index has seen."""


@dataclass(frozen=True, slots=True)
class FunderFamilies:
    """``wallets``: of all that were asked for. ``families``: how many wallets each funder sent a first eth,
    at least; more than ``MOST_FUNDED`` also where he may have. ``funded``: in which block."""

    wallets: Mapping[Address, KnownWallet]
    families: Mapping[Address, int] = field(default_factory=dict)
    funded: Mapping[Address, int] = field(default_factory=dict)


async def kin(
    ctx: Context,
    book: HolderBook,
    head: BlockRef,
    first: Sequence[Address],
    others: Sequence[Address],
    contracts: Mapping[Address, bool | None],
    meter: Meter,
) -> FunderFamilies:
    """Of ``first``, and of ``others`` as far as there is time, as of the block ``head``: of an older one many
    nodes tell nothing. What cannot be found out stands as not known. Raises ServiceFull (busy), NodeFault."""
    wanted = list(dict.fromkeys((*first, *others)))
    index = await _from_index(ctx, book, wanted)
    before = await _before(ctx, index.came, first, head, meter)
    came = {wallet: origin for wallet, origin in index.came.items() if not before.get(wallet)}
    # How old a wallet is the index alone does not tell: of money out of contracts it sees nothing.
    aged = {wallet for wallet, had in before.items() if had is False}
    unknown = [wallet for wallet in wanted if wallet not in came]
    if unknown:
        searched = await _search_archive(ctx, unknown[:MOST_SEARCHED], head)
        came |= searched
        aged |= searched.keys()
        await _remember(ctx, index.stands, came, [one for one in unknown if one not in index.came])
    wallets = {wallet: _wallet(book, wallet, came, aged, contracts.get(wallet)) for wallet in wanted}
    funders = {one.funder for one in wallets.values() if one.funder is not None}
    families = await _families(ctx, index.stands, funders, head, meter)
    return FunderFamilies(wallets, families, _funding_blocks(index, came))


def _funding_blocks(index: "_Index", came: Came) -> dict[Address, int]:
    """In which block each was sent its first eth, by whoever is its funder: what an archive told is older
    than what the index saw of it."""
    start_number = 0 if index.stands is None else index.stands.start_number
    found = {}
    for wallet, origin in came.items():
        if origin is None or origin.funder is None:
            continue
        is_older = index.came.get(wallet) is not origin or origin.first_number < start_number
        number = None if is_older else index.funded.get(wallet)
        found[wallet] = origin.first_number if number is None else number
    return found


async def _before(
    ctx: Context, came: Came, wallets: Sequence[Address], head: BlockRef, meter: Meter
) -> Mapping[Address, bool | None]:
    """Whether they had something before the index first met them, or have something though it never did; of
    those of whom it tells. None: could not be found out."""
    met = []
    for wallet in wallets:
        if wallet in came:
            origin = came[wallet]
            met.append((wallet, head.number + 1 if origin is None else origin.first_number))
    return await had_before(ctx.node, met, ctx.contracts.weth, meter) if met else {}


def _wallet(
    book: HolderBook, wallet: Address, came: Came, aged: Collection[Address], is_contract: bool | None
) -> KnownWallet:
    """The token itself may be the first thing that ever reached it. ``aged``: of whom it is known since when
    they are there."""
    if wallet not in came:
        return KnownWallet(is_contract=is_contract)
    origin, holding = came[wallet], book.wallets.get(wallet)
    times = [] if origin is None else [origin.first_s]
    if holding is not None and holding.first_s:
        times.append(holding.first_s)
    first_s = min(times, default=None) if wallet in aged else None
    return KnownWallet(first_s, None if origin is None else origin.funder, True, is_contract)


@dataclass(frozen=True, slots=True)
class _Index:
    """What the index knows of wallets. ``funded``: in which block each had its first eth, of those that
    somebody sent it."""

    stands: Cursor | None
    came: Came
    funded: Mapping[Address, int]


async def _from_index(ctx: Context, book: HolderBook, wanted: Collection[Address]) -> _Index:
    async with looking(ctx) as (connection, stands):
        found: dict[Address, StoredOrigin | None] = dict(await origins.origins_of(connection, wanted))
        funded = await linked.funded_numbers(connection, wanted)
    if stands is not None and stands.start_number == 0:
        # Whom a whole index never met nothing had reached by its newest block: which says where a wallet
        # comes from only if the token had reached it by then.
        newest_s = stands.block.timestamp_s
        for wallet in wanted:
            holding = book.wallets.get(wallet)
            if wallet not in found and holding is not None and 0 < holding.first_s < newest_s:
                found[wallet] = None
    return _Index(stands, found, funded)


async def _search_archive(ctx: Context, wallets: Iterable[Address], head: BlockRef) -> Came:
    """What an archive tells of them; who is not there could not be found out in time, or for what the day has
    for reading holders: it is thousands of calls, and no check is to go without them."""
    found: dict[Address, StoredOrigin | None] = {}
    books, now_s = ctx.books, ctx.now_s()
    if books.no_archive_s is not None and now_s - books.no_archive_s < NO_ARCHIVE_S:
        return found
    room = asyncio.Semaphore(_AT_ONCE)
    node, untold = reading_node(ctx), 0

    async def search(wallet: Address) -> None:
        nonlocal untold
        async with room:
            if not found and untold >= _MOST_UNTOLD:
                return
            try:
                told = await seek_origin(node, wallet, 0, head)
            except NoArchive:
                untold += 1
                return
            except NodeFault:
                # What an address tells of itself may contradict itself: that says nothing of the others.
                return
        found[wallet] = StoredOrigin(*told) if isinstance(told, FoundOrigin) else None

    with contextlib.suppress(TimeoutError, NodeFault, ServiceFull):
        async with asyncio.timeout(_SEARCH_S):
            await at_once(*(search(wallet) for wallet in wallets))
    if not found and untold >= _MOST_UNTOLD:
        books.no_archive_s = now_s
    return found


async def _remember(ctx: Context, stands: Cursor | None, came: Came, unknown: Sequence[Address]) -> None:
    """Keeps what an archive told of blocks before the index, and has jobs find out about the rest. Where that
    cannot be written it is found out again."""
    if stands is None or stands.start_number == 0:
        # There is nothing before the index for a job to search.
        return
    with contextlib.suppress(*DATABASE_FAULTS):
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection, connection.transaction():
            for wallet in unknown:
                if wallet in came:
                    older = _older(came[wallet], stands.start_number)
                    await origins.keep_older(connection, wallet, older)
            left = [wallet for wallet in unknown if wallet not in came][:MOST_WISHED]
            now = datetime.fromtimestamp(ctx.now_s(), UTC)
            known = await jobs.among(connection, JOB, left, now - _GIVEN_UP)
            await jobs.enqueue_many(connection, JOB, [wallet for wallet in left if wallet not in known])


def _older(origin: StoredOrigin | None, start_number: int) -> OlderOrigin:
    """As far as it is from before the index: what came later the sync has seen itself."""
    if origin is None or origin.first_number >= start_number:
        return OlderOrigin(None, start_number - 1)
    return OlderOrigin(origin, origin.first_number)


async def _families(
    ctx: Context, stands: Cursor | None, funders: set[Address], head: BlockRef, meter: Meter
) -> dict[Address, int]:
    """Where the index has seen every payment its count is right. Else a funder's own count of transactions
    tells who is too busy to be anybody's purse."""
    if not funders:
        return {}
    async with looking(ctx) as (connection, _):
        counted = await linked.families_of(connection, funders)
    if stands is not None and stands.start_number == 0:
        return counted
    asked = sorted(funders)
    calls = [RpcCall("eth_getTransactionCount", [one, {"blockHash": head.hash}]) for one in asked]
    for funder, answer in zip(asked, await ctx.node.batch(calls, meter), strict=True):
        if isinstance(answer, RpcError):
            # He may be an exchange: whom he funded is left open.
            del counted[funder]
        elif quantity(answer) >= BUSY_NONCE:
            counted[funder] = MOST_FUNDED + 1
    return counted
