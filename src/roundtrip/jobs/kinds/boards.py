"""``boards``, of ``moving``, every fifteen seconds: has those tokens checked which the board of what moves
shows by a check, or holds back."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.types import Address
from roundtrip.domain.market.moving import (
    CHECKED_EVERY_S,
    CROWD,
    MOST_CHECKED,
    WINDOW_S,
    flows_to_check,
    flows_with_crowd,
)
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.runtime.context import Context
from roundtrip.store.boards import moving
from roundtrip.store.index import cursor
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

EVERY_S = 15
MOST_WAITING = 4
"""So many checks at most wait or run when some are wished for: twice what one worker runs at once. The others
are wished for later, and whatever else asks for a check does not wait behind them."""


async def boards(ctx: Context, job: Job) -> Effect:
    """Looks what is to be checked, and wishes for it and for itself. Of one token a check is wished for every
    ten minutes at most: a check that succeeds leaves evidence, one that fails its job, which is run again by
    itself, ever more seldom, or was given up."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    wanted = await _tokens_to_check(ctx, now) if _hears(ctx) else []

    async def wish(connection: Connection) -> None:
        # With a time: those that are wished for without one, because something happened, are run before them.
        await jobs.enqueue_many(connection, "recheck", wanted, {"deep": True}, run_at=now)
        # Last: from here on the job's row is locked.
        await jobs.enqueue(connection, job.kind, job.key, run_at=now + timedelta(seconds=EVERY_S))

    return wish


def _hears(ctx: Context) -> bool:
    """Whether the node answers: without it every check would fail, and none is wished for."""
    try:
        ctx.heads.current()
    except RoundtripError:
        return False
    return True


async def _tokens_to_check(ctx: Context, now: datetime) -> Sequence[Address]:
    """The tokens to check now, as far as there is room."""
    since = now - timedelta(seconds=CHECKED_EVERY_S)
    async with ctx.pool.acquire() as connection:
        stands = await cursor.cursor(connection)
        room = MOST_WAITING - await jobs.due(connection, "recheck", now)
        if stands is None or room <= 0:
            return []
        window = stands.block.timestamp_s - WINDOW_S, stands.block.timestamp_s
        found = flows_to_check(await moving.flows(connection, window, ctx.contracts, CROWD), now.timestamp())
        at_work = await jobs.among(connection, "recheck", [flow.token for flow in found], since)
        most = [flow for flow in found if flow.token not in at_work][:MOST_CHECKED]
        wallets = await moving.purses_of(connection, {buyer for flow in most for buyer in flow.buyers})
    return [flow.token for flow in flows_with_crowd(most, wallets, window[0])][:room]
