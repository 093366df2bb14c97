"""``recheck``, key: a token's address. Checks the token as a caller would, because something its last verdict
was based on changed, or because a board shows it; a deep check when the payload says so. It counts against no
caller's limits."""

from roundtrip.domain.base.errors import NodeFault
from roundtrip.jobs.engine.head_barrier import wait_for_index_head
from roundtrip.jobs.engine.worker import Effect, do_nothing
from roundtrip.services.check.handler import check_and_store
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.jobs import Job


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
