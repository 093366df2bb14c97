"""``holders``, of a token's address: reads on who holds a token that is too busy to be read while somebody
waits."""

from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import parse_address
from roundtrip.jobs.engine.worker import Effect, NotYet
from roundtrip.services.holders import book_reader
from roundtrip.services.runtime.context import Context
from roundtrip.store.holders import books
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

_SPENT = ("holders_budget", "budget_spent")
"""Codes of a day's budget that is used up."""
_DAY_S = 86_400


async def holders(ctx: Context, job: Job) -> Effect:
    """One piece of it. Its effect keeps the piece, and wishes for the next one until there is none: a worker
    that dies loses one piece. Tokens take turns: the next piece is due from now on, behind those that waited;
    or, where the day's budget is spent, from when there is another one. Raises NotYet where it did not get
    on, NodeFault, ReadFailed, ServiceFull."""
    token = parse_address(job.key)
    try:
        piece = await book_reader.read_piece(ctx, token)
    except ServiceFull as full:
        if full.code not in _SPENT:
            raise
        return _tomorrow(ctx, job, full)
    if piece.book is None and piece.forget is None and not piece.done:
        raise NotYet("it could not be read further")
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
    """Wishes for it once there is a budget again: nothing failed, so no try is used up."""
    now_s = ctx.now_s()
    wait_s = full.retry_after_s or _DAY_S - now_s % _DAY_S
    run_at = datetime.fromtimestamp(now_s, UTC) + timedelta(seconds=wait_s)

    async def postpone(connection: Connection) -> None:
        await jobs.enqueue(connection, job.kind, job.key, job.payload, run_at=run_at)

    return postpone
