"""Work for later that new facts ask for, wished for in their own transaction."""

from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.types import Address
from roundtrip.store.check.evidence import checked_since
from roundtrip.store.index import tokens
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection

from .batch import Batch

RECHECKED = timedelta(days=1)
"""Who was checked longer ago is checked again when somebody asks."""
RECHECK_EVERY_S = 60
"""Of one token at most: anybody can take liquidity away bit by bit."""
_MOST_NAMED = 50_000


class RequestedJobs:
    """Of recent blocks only: what happened long ago asks for nothing. Remembers whose names are known or
    asked for."""

    def __init__(self) -> None:
        self._named: set[Address] = set()
        self._again_s: dict[Address, int] = {}

    async def of(self, connection: Connection, batch: Batch) -> None:
        """What tokens say of themselves, where nobody has read it yet; a new check of what was checked within
        a day (by the chain's clock) and whose launch took a step, or whose pool lost liquidity."""
        spoken = {launch.launched.token for launch in batch.launches}
        spoken |= {pool.token for pool in batch.pools if pool.in_money_from is not None}
        spoken |= {trade.token for trade in batch.trades}
        new = spoken - self._named
        if new:
            unread = new - await tokens.read_among(connection, new)
            await jobs.enqueue_many(connection, "token", sorted(unread))
            if len(self._named) > _MOST_NAMED:
                self._named.clear()
            self._named |= new
        now_s = batch.blocks[-1].timestamp_s
        changed = {step.moved.token for step in batch.steps}
        changed |= {change.token for change in batch.liquidity if change.liquidity_delta < 0}
        changed = {token for token in changed if now_s >= self._again_s.get(token, 0)}
        if changed:
            since = datetime.fromtimestamp(now_s, UTC) - RECHECKED
            checked = await checked_since(connection, changed, since)
            await jobs.enqueue_many(connection, "recheck", sorted(checked))
            if len(self._again_s) > _MOST_NAMED:
                self._again_s.clear()
            self._again_s.update((token, now_s + RECHECK_EVERY_S) for token in checked)
