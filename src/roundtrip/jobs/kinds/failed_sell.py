"""``failed_sell``, key: a transaction's hash, payload: the token. Finds out whether it was a plain wallet's
sell that failed, and whether the token or its pool refused it."""

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.jobs.engine.head_barrier import wait_for_index_head
from roundtrip.jobs.engine.worker import Effect, do_nothing
from roundtrip.services.runtime.context import Context
from roundtrip.services.scorecard.failed_sells import find_failed_sell
from roundtrip.store.scorecard import failed_sells as store
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

TRIES = 3
"""Tries to find out why it failed. After the last one the sell is stored as not refused."""


async def failed_sell(ctx: Context, job: Job) -> Effect:
    """Raises NotYet, NodeFault and ServiceFull, so that the job is tried again."""
    await wait_for_index_head(ctx)
    token = Address(str(job.payload["token"]))
    own = ctx.for_caller("jobs", "checks", token)
    sell = await find_failed_sell(own, token, TxHash(job.key), is_last=job.tries >= TRIES)
    if sell is None:
        return do_nothing

    async def write(connection: Connection) -> None:
        await store.put_sell(connection, token, sell)

    return write
