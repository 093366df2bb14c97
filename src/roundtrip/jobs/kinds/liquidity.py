"""``liquidity``, key: a token's address. Reads who can withdraw the liquidity of a token that accounts watch
or hold, which stores its unlocks; again a day later, or just before an account would be alerted."""

from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.liquidity.unlocks import ALERTED_BEFORE_S
from roundtrip.jobs.engine.head_barrier import wait_for_index_head
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.liquidity.handler import LiquidityParams, read_liquidity
from roundtrip.services.runtime.context import Context
from roundtrip.store.liquidity.unlocks import read_first_unlock, read_watchers
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import bags

EVERY_S = 86_400
_EARLY_S = 900
"""How long before accounts are alerted of an unlock it is read again: three runs of ``unlocks``."""


async def liquidity(ctx: Context, job: Job) -> Effect:
    """The reading stores its unlocks itself. Raises NotYet and NodeFault; the job is then retried."""
    await wait_for_index_head(ctx)
    token = parse_address(job.key)
    await read_liquidity(ctx.for_caller("jobs", "checks", job.key), LiquidityParams(job.key))
    now_s = int(ctx.now_s())

    async def enqueue_next(connection: Connection) -> None:
        if await _is_watched(connection, token):
            alerted_s = await read_first_unlock(connection, token, now_s + ALERTED_BEFORE_S + _EARLY_S)
            next_s = now_s + EVERY_S
            if alerted_s is not None:
                next_s = min(next_s, alerted_s - ALERTED_BEFORE_S - _EARLY_S)
            next_at = datetime.fromtimestamp(now_s, UTC) + timedelta(seconds=next_s - now_s)
            await jobs.enqueue(connection, job.kind, job.key, run_at=next_at)

    return enqueue_next


async def _is_watched(connection: Connection, token: Address) -> bool:
    """Whether any account watches or holds the token."""
    return bool(await read_watchers(connection, [token]) or await bags.holders_now(connection, [token]))
