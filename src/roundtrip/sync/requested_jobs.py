"""Enqueues the jobs that new facts require, in the transaction of these facts."""

from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.types import Address
from roundtrip.store.check.evidence import checked_since
from roundtrip.store.index import tokens
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection

from .batch import Batch

RECHECKED = timedelta(days=1)
"""Tokens whose last check is older are only checked again on request."""
RECHECK_EVERY_S = 60
"""Minimum time between rechecks of one token: anybody can remove liquidity bit by bit."""
_MAX_REMEMBERED = 50_000


class RequestedJobs:
    """For recent blocks only. Remembers the tokens whose names are known or requested."""

    def __init__(self) -> None:
        self._known_tokens: set[Address] = set()
        self._recheck_from_s: dict[Address, int] = {}

    async def enqueue(self, connection: Connection, batch: Batch) -> None:
        """Enqueues a "token" job for each token whose own data (its name) was not read yet, and a "recheck"
        job for each token that was checked within a day (by the chain's clock) and whose launch took a step,
        or whose pool lost liquidity."""
        mentioned = {launch.launched.token for launch in batch.launches}
        mentioned |= {pool.token for pool in batch.pools if pool.in_money_from is not None}
        mentioned |= {trade.token for trade in batch.trades}
        new = mentioned - self._known_tokens
        if new:
            unread = new - await tokens.read_among(connection, new)
            await jobs.enqueue_many(connection, "token", sorted(unread))
            if len(self._known_tokens) > _MAX_REMEMBERED:
                self._known_tokens.clear()
            self._known_tokens |= new
        now_s = batch.blocks[-1].timestamp_s
        changed = {step.moved.token for step in batch.steps}
        changed |= {change.token for change in batch.liquidity if change.liquidity_delta < 0}
        changed = {token for token in changed if now_s >= self._recheck_from_s.get(token, 0)}
        if changed:
            since = datetime.fromtimestamp(now_s, UTC) - RECHECKED
            checked = await checked_since(connection, changed, since)
            await jobs.enqueue_many(connection, "recheck", sorted(checked))
            if len(self._recheck_from_s) > _MAX_REMEMBERED:
                self._recheck_from_s.clear()
            self._recheck_from_s.update((token, now_s + RECHECK_EVERY_S) for token in checked)
