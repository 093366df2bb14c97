"""``winners``, key ``facts``: counts the winners' board of each span; longer spans are counted less often."""

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
"""How often each span is counted. A longer span changes more slowly and costs more."""
_SOON_S = 30.0
"""The wait until the next run when no span is due; also the interval of a span that was never counted."""
log = structlog.get_logger(__name__)


async def winners(ctx: Context, job: Job) -> Effect:
    """Counts the most overdue span from one snapshot of the index; the effect stores the board. The payload
    holds when each span was last tried, by the system clock: while old blocks are read, the chain's clock
    advances a day in a second."""
    now_s = ctx.now_s()
    async with (
        ctx.pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        indexed = await cursor.cursor(connection)
        due = [] if indexed is None else _due(job.payload, await counted_to(connection), indexed.block, now_s)
        board = None
        if due:
            assert indexed is not None
            try:
                board = await count_board(connection, due[0], indexed.block)
            except TimeoutError:
                # Not retried at once: shorter spans must not wait for it.
                log.warning("counting winners took too long", span=due[0])

    async def write(connection: Connection) -> None:
        if board is not None and indexed is not None:
            await keep(connection, board, indexed)
        tried_at_s = {**job.payload, **dict.fromkeys(due[:1], now_s)}
        wait_s = 0.0 if due[1:] else _SOON_S
        run_at = datetime.fromtimestamp(now_s, UTC) + timedelta(seconds=wait_s)
        await jobs.enqueue(connection, job.kind, job.key, tried_at_s, run_at)

    return write


def _due(
    tried_at_s: Mapping[str, float], counted_up_to: Mapping[str, int], newest: BlockRef, now_s: float
) -> list[str]:
    """The spans to count, the most overdue first. Leaves out a span that was counted up to the newest block:
    nothing has happened since."""
    overdue = {}
    for span, every_s in EVERY_S.items():
        if counted_up_to.get(span) == newest.number:
            continue
        waits_s = every_s if span in counted_up_to else _SOON_S
        overdue[span] = (now_s - tried_at_s.get(span, 0.0)) / waits_s
    return sorted((span for span, share in overdue.items() if share >= 1), key=lambda span: -overdue[span])
