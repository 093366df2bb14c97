"""``winners``, of ``facts``: counts who won, each span as often as is worth it, and wishes for itself."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import structlog

from roundtrip.domain.base.types import BlockRef
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.runtime.context import Context
from roundtrip.store.boards.winners import count_board, counted_to, keep
from roundtrip.store.index import cursor
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

EVERY_S: MappingProxyType[str, float] = MappingProxyType(
    {"24h": 30.0, "7d": 300.0, "30d": 1800.0, "all": 3600.0}
)
"""How often each span is counted: the longer it is, the less a moment changes it and the more it costs."""
_SOON_S = 30.0
"""When it is looked again what is due; and how often a span is tried that was never counted."""
log = structlog.get_logger(__name__)


async def winners(ctx: Context, job: Job) -> Effect:
    """Counts the span that is most overdue, out of one state of the index; the effect keeps it. The payload
    tells when each span was last tried, by our clock: while an old chain is read, its own runs through a day
    in a second."""
    now_s = ctx.now_s()
    async with (
        ctx.pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        stands = await cursor.cursor(connection)
        due = [] if stands is None else _due(job.payload, await counted_to(connection), stands.block, now_s)
        board = None
        if due:
            assert stands is not None
            try:
                board = await count_board(connection, due[0], stands.block)
            except TimeoutError:
                # Not tried again at once: shorter spans are not to wait for it.
                log.warning("winners could not be counted in time", span=due[0])

    async def keeps(connection: Connection) -> None:
        if board is not None and stands is not None:
            await keep(connection, board, stands)
        tried = {**job.payload, **dict.fromkeys(due[:1], now_s)}
        wait_s = 0.0 if due[1:] else _SOON_S
        run_at = datetime.fromtimestamp(now_s, UTC) + timedelta(seconds=wait_s)
        await jobs.enqueue(connection, job.kind, job.key, tried, run_at)

    return keeps


def _due(
    tried: Mapping[str, float], counted_up_to: Mapping[str, int], newest: BlockRef, now_s: float
) -> list[str]:
    """The spans to count, the most overdue first. One that was counted up to the newest block is none of
    them: nothing has happened since."""
    overdue = {}
    for span, every_s in EVERY_S.items():
        if counted_up_to.get(span) == newest.number:
            continue
        waits_s = every_s if span in counted_up_to else _SOON_S
        overdue[span] = (now_s - tried.get(span, 0.0)) / waits_s
    return sorted((span for span, share in overdue.items() if share >= 1), key=lambda span: -overdue[span])
