"""Work for later that new facts ask for, wished for in their own transaction."""

from datetime import UTC, datetime, timedelta

import asyncpg

from roundtrip.domain.types import Address
from roundtrip.store import jobs, tokens
from roundtrip.store.evidence import checked_since

from .ledger import Batch

RECHECKED = timedelta(days=1)
"""Who was checked longer ago is checked again when somebody asks."""
_MOST_NAMED = 200_000


class Wishes:
    """Of recent blocks only: what happened long ago asks for nothing. Remembers whose names are known or
    asked for."""

    def __init__(self) -> None:
        self._named: set[Address] = set()

    async def of(self, connection: asyncpg.Connection, batch: Batch) -> None:
        """What tokens say of themselves, where nobody has read it yet; a new check of what was checked within
        a day (by the chain's clock) and whose launch took a step, or whose pool lost liquidity."""
        spoken = {launch.launched.token for launch in batch.launches}
        spoken |= {pool.token for pool in batch.pools if pool.in_money_from is not None}
        spoken |= {trade.token for trade in batch.trades}
        new = spoken - self._named
        if new:
            unread = new - await tokens.read_among(connection, new)
            await jobs.enqueue_many(connection, "token", sorted(unread))
            self._named = self._named | new if len(self._named) < _MOST_NAMED else new
        changed = {step.moved.token for step in batch.steps}
        changed |= {change.token for change in batch.liquidity if change.liquidity_delta < 0}
        if changed:
            since = datetime.fromtimestamp(batch.blocks[-1].timestamp_s, UTC) - RECHECKED
            await jobs.enqueue_many(
                connection, "recheck", sorted(await checked_since(connection, changed, since))
            )
