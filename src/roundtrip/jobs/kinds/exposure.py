"""``exposure``, key: a token's address. Reads who holds a token that a board shows, and who can withdraw its
liquidity, for the board's columns."""

import structlog

from roundtrip.domain.base.errors import CallerFault, ReadFailed, ServiceFull
from roundtrip.jobs.engine.head_barrier import wait_for_index_head
from roundtrip.jobs.engine.worker import Effect, do_nothing
from roundtrip.services.holders.handlers import token_holders
from roundtrip.services.holders.schema import HoldersParams
from roundtrip.services.liquidity.handler import LiquidityParams, read_liquidity
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.jobs import Job

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
