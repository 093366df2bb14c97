"""``recheck``, of a token's address: checks it as a caller would, because something changed that its last
verdict stood on, or a board shows it; deep where the payload says so. It counts against nobody."""

from roundtrip.domain.base.errors import NodeFault
from roundtrip.jobs.engine.head_barrier import abreast
from roundtrip.jobs.engine.worker import Effect, nothing
from roundtrip.services.check.handler import run_check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.jobs import Job


async def recheck(ctx: Context, job: Job) -> Effect:
    """The check keeps its evidence itself; run twice, it keeps it twice, which is what happened. Raises
    NotYet, and NodeFault also when the node left the verdict open: it is made again later."""
    await abreast(ctx)
    deep = "1" if job.payload.get("deep") is True else "0"
    answered = await run_check(
        ctx.for_caller("jobs", "checks", job.key), CheckParams(job.key, deep), requested=False
    )
    if not answered.counted:
        raise NodeFault("the verdict was left open")
    return nothing
