"""``holders``, key: a token's address. Reads the holders of a token that is too busy to be read within a
request."""

from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import parse_address
from roundtrip.jobs.engine.worker import Effect, NotYet
from roundtrip.services.holder_record import book_reader
from roundtrip.services.runtime.context import Context
from roundtrip.store.holders import books
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

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
            # Books that are read here are large, so this does not wait for the daily ``prune``.
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
