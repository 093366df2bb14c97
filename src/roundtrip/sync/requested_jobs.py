"""Enqueues the jobs that new facts require, in the transaction of these facts."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.types import Address
from roundtrip.store.check.evidence import checked_since
from roundtrip.store.index import tokens
from roundtrip.store.scorecard.failed_sells import checked_among
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection

from .batch import Batch
from .failed_sells import FailedCall

RECHECKED = timedelta(days=1)
"""Tokens whose last check is older are only checked again on request."""
RECHECK_EVERY_S = 60
"""Minimum time between rechecks of one token: anybody can remove liquidity bit by bit."""
FAILED_EVERY_S = 600
"""Minimum time between looks at the failed sells of one wallet and token."""
MAX_FAILED_A_TOKEN = 16
"""Failed sells of one token that are looked at in ``FAILED_EVERY_S``: who fails on purpose from many wallets
must not fill the queue."""
_MAX_REMEMBERED = 50_000


class RequestedJobs:
    """For recent blocks only. Remembers the tokens whose names are known or requested."""

    def __init__(self) -> None:
        self._known_tokens: set[Address] = set()
        self._recheck_from_s: dict[Address, int] = {}
        self._failed_from_s: dict[tuple[Address, Address], int] = {}
        self._failed_counts: dict[tuple[Address, int], int] = {}

    async def enqueue(self, connection: Connection, batch: Batch, failed: Sequence[FailedCall] = ()) -> None:
        """Enqueues a "token" job for each token whose own data (its name) was not read yet, a "recheck" job
        for each token that was checked within a day (by the chain's clock) and whose launch took a step, or
        whose pool lost liquidity, and "failed_sell" jobs for sells of tokens checked within a day."""
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
        await self._enqueue_failed_sells(connection, failed, now_s)

    async def _enqueue_failed_sells(
        self, connection: Connection, failed: Sequence[FailedCall], now_s: int
    ) -> None:
        from_s = self._failed_from_s
        calls = {
            (call.sold, call.sender): call
            for call in reversed(failed)
            if now_s >= from_s.get((call.sold, call.sender), 0)
        }
        if not calls:
            return
        since = datetime.fromtimestamp(now_s, UTC) - RECHECKED
        checked = await checked_among(connection, {sold for sold, _ in calls}, since)
        counts, window = self._failed_counts, now_s // FAILED_EVERY_S
        if len(from_s) > _MAX_REMEMBERED:
            from_s.clear()
        if len(counts) > _MAX_REMEMBERED:
            counts.clear()
        for key, call in calls.items():
            count = counts.get((call.sold, window), 0)
            if call.sold in checked and count < MAX_FAILED_A_TOKEN:
                counts[call.sold, window] = count + 1
                from_s[key] = now_s + FAILED_EVERY_S
                await jobs.enqueue(connection, "failed_sell", call.tx_hash, {"token": checked[call.sold]})
