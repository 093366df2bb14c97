"""``token``, key: a token's address. Reads the token's symbol, name, decimals and supply. ``exposure``,
key: a token's address. Reads who holds a token that a board shows, and who can withdraw its liquidity,
for the board's columns. ``recheck``, key: a token's address. Checks the token as a caller would, because
something its last verdict was based on changed, or because a board shows it; a deep check when the
payload says so. It counts against no caller's limits. ``liquidity``, key: a token's address. Reads who
can withdraw the liquidity of a token that accounts watch or hold, which stores its unlocks; again a day
later, or just before an account would be alerted. ``holders``, key: a token's address. Reads the holders
of a token that is too busy to be read within a request. ``origin``, key: a wallet's address. Searches
the archive for the wallet's first transaction when that is before the index begins."""

from datetime import UTC, datetime, timedelta

import structlog

from roundtrip.chain.holders.token_views import read_views, view_calls
from roundtrip.domain.base.errors import CallerFault, NodeFault, ReadFailed, ServiceFull
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.liquidity.unlocks import ALERTED_BEFORE_S
from roundtrip.jobs.engine.worker import Effect, NotYet, do_nothing, wait_for_index_head
from roundtrip.services.check.handler import check_and_store
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.holders import book_reader
from roundtrip.services.holders.handlers import token_holders
from roundtrip.services.holders.schema import HoldersParams
from roundtrip.services.liquidity.handler import LiquidityParams, read_liquidity
from roundtrip.services.runtime.context import Context
from roundtrip.services.wallets.history import search_archive
from roundtrip.store.holders import books
from roundtrip.store.index import origins, tokens
from roundtrip.store.index.cursor import cursor
from roundtrip.store.liquidity.positions import read_first_unlock, read_watchers
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import bags


async def token(ctx: Context, job: Job) -> Effect:
    """Reads at the newest block. Raises NotYet and NodeFault; the job is then retried, and nothing is
    written."""
    await wait_for_index_head(ctx)
    address, head = parse_address(job.key), ctx.heads.current().block
    views = read_views(await ctx.node.batch(view_calls(address, head, ctx.policy.read_gas_limit)))

    async def keep(connection: Connection) -> None:
        await tokens.keep(
            connection, address, views.symbol, views.name, views.decimals, views.supply_raw, head.number
        )

    return keep


log = structlog.get_logger(__name__)


async def exposure(ctx: Context, job: Job) -> Effect:
    """Reads a token's liquidity and holders; both use cases store their results. The liquidity is read even
    if the holders cannot be. Raises NotYet and NodeFault; the job is then retried."""
    await wait_for_index_head(ctx)
    own = ctx.for_caller("jobs", "checks", job.key)
    await read_liquidity(own, LiquidityParams(job.key))
    try:
        await token_holders(own, HoldersParams(job.key))
    except (CallerFault, ReadFailed, ServiceFull) as error:
        log.info("holders could not be read for a board", error=repr(error))
    return do_nothing


async def recheck(ctx: Context, job: Job) -> Effect:
    """The check stores its own evidence; a job that runs twice stores it twice. Raises NotYet, and NodeFault
    also when the node left the verdict open, so that the job is retried."""
    await wait_for_index_head(ctx)
    deep = "1" if job.payload.get("deep") is True else "0"
    answer = await check_and_store(
        ctx.for_caller("jobs", "checks", job.key), CheckParams(job.key, deep), requested=False
    )
    if not answer.counted:
        raise NodeFault("the check could not decide")
    return do_nothing


LIQUIDITY_EVERY_S = 86_400
_EARLY_S = 900
"""How long before accounts are alerted of an unlock it is read again: three runs of ``unlocks``."""


async def liquidity(ctx: Context, job: Job) -> Effect:
    """The reading stores its unlocks itself. Raises NotYet and NodeFault; the job is then retried."""
    await wait_for_index_head(ctx)
    token = parse_address(job.key)
    await read_liquidity(ctx.for_caller("jobs", "checks", job.key), LiquidityParams(job.key))
    now_s = int(ctx.now_s())

    async def enqueue_next(connection: Connection) -> None:
        if await _is_watched(connection, token):
            alerted_s = await read_first_unlock(connection, token, now_s + ALERTED_BEFORE_S + _EARLY_S)
            next_s = now_s + LIQUIDITY_EVERY_S
            if alerted_s is not None:
                next_s = min(next_s, alerted_s - ALERTED_BEFORE_S - _EARLY_S)
            next_at = datetime.fromtimestamp(now_s, UTC) + timedelta(seconds=next_s - now_s)
            await jobs.enqueue(connection, job.kind, job.key, run_at=next_at)

    return enqueue_next


async def _is_watched(connection: Connection, token: Address) -> bool:
    """Whether any account watches or holds the token."""
    return bool(await read_watchers(connection, [token]) or await bags.holders_now(connection, [token]))


_SPENT = ("holders_budget", "budget_spent")
"""Error codes that mean the day's budget is spent."""
_DAY_S = 86_400


async def holders(ctx: Context, job: Job) -> Effect:
    """Reads one piece. The effect stores it and enqueues the next one until none is left, so a worker that
    dies loses one piece. Tokens take turns: the next piece is due now, behind the jobs that already wait; or,
    when the day's budget is spent, when there is a new one. Raises NotYet when it made no progress,
    NodeFault, ReadFailed, ServiceFull."""
    token = parse_address(job.key)
    try:
        piece = await book_reader.read_piece(ctx, token)
    except ServiceFull as full:
        if full.code not in _SPENT:
            raise
        return _tomorrow(ctx, job, full)
    if piece.book is None and piece.forget is None and not piece.done:
        raise NotYet("the read stopped before the end")
    now = datetime.fromtimestamp(ctx.now_s(), UTC)

    async def keep(connection: Connection) -> None:
        if piece.forget is not None:
            await books.delete_book(connection, token, piece.forget)
        if piece.book is not None:
            await books.save_book(connection, token, piece.book)
            # The large books are made here: they do not wait for the day to be over.
            await books.prune_to(connection)
        # Last: from here on the job's row is locked.
        if not piece.done:
            await jobs.enqueue(connection, job.kind, job.key, job.payload, run_at=now)

    return keep


def _tomorrow(ctx: Context, job: Job, full: ServiceFull) -> Effect:
    """Enqueues the job for when there is a new budget. Nothing failed, so no try is used up."""
    now_s = ctx.now_s()
    wait_s = full.retry_after_s or _DAY_S - now_s % _DAY_S
    run_at = datetime.fromtimestamp(now_s, UTC) + timedelta(seconds=wait_s)

    async def postpone(connection: Connection) -> None:
        await jobs.enqueue(connection, job.kind, job.key, job.payload, run_at=run_at)

    return postpone


async def origin(ctx: Context, job: Job) -> Effect:
    """Searches the blocks before the index; an index that begins at block 0 leaves nothing to search. Raises
    NotYet when the search found no answer, and NodeFault."""
    wallet = parse_address(job.key)
    async with ctx.pool.acquire() as connection:
        indexed = await cursor(connection)
    if indexed is None:
        raise NotYet("the index is empty")
    if indexed.start_number == 0:
        return do_nothing
    wallet_origin = await search_archive(ctx.node, wallet, indexed.start_number)
    if wallet_origin is None:
        raise NotYet("the search found no answer")

    async def keep(connection: Connection) -> None:
        await origins.keep_older(connection, wallet, wallet_origin)

    return keep
