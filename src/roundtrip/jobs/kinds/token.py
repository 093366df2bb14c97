"""``token``, key: a token's address. Reads the token's symbol, name, decimals and supply."""

from roundtrip.chain.holders.token_views import read_views, view_calls
from roundtrip.domain.base.types import parse_address
from roundtrip.jobs.engine.head_barrier import wait_for_index_head
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.runtime.context import Context
from roundtrip.store.index import tokens
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection


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
