"""``unlocks``, key ``coming``, every five minutes: alerts accounts a day before locked liquidity of a
token that they watch can be withdrawn, and enqueues the first reading of such a token."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from roundtrip.domain.liquidity.unlocks import ALERTED_BEFORE_S, ComingUnlock, describe_unlock
from roundtrip.domain.watch.alerts import Draft
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.runtime.context import Context
from roundtrip.store.delivery import deliveries
from roundtrip.store.liquidity.positions import read_alerted, read_coming, read_watched, read_watchers
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alerts, bags

EVERY_S = 300
MAX_UNLOCKS = 1_000
"""Of the next day; later ones get their turn as these pass."""
MAX_READ = 2_000
"""Tokens whose liquidity is read once a day: one every 43 seconds."""
_GIVEN_UP_S = 86_400
"""How long a token whose reading was given up is left alone."""


async def unlocks(ctx: Context, job: Job) -> Effect:
    """Reads nothing before its effect, which writes the alerts in the transaction that ends the job: each
    account is alerted of an unlock once, and of none that the newest reading of the token no longer shows."""
    now_s = int(ctx.now_s())
    now = datetime.fromtimestamp(now_s, UTC)

    async def effect(connection: Connection) -> None:
        await _enqueue_readings(connection, now)
        coming = await read_coming(connection, now_s, now_s + ALERTED_BEFORE_S, MAX_UNLOCKS)
        if coming:
            written = await alerts.put(connection, await _drafts(connection, coming, now_s), now)
            await deliveries.enqueue(connection, written, now)
        # Last: from here on the job's row is locked.
        await jobs.enqueue(connection, job.kind, job.key, run_at=now + timedelta(seconds=EVERY_S))

    return effect


async def _enqueue_readings(connection: Connection, now: datetime) -> None:
    """Enqueues a first reading of tokens that accounts watch or hold; each reading enqueues its next one."""
    watched = await read_watched(connection, MAX_READ)
    held = [holding.token for holding in await bags.held_by_accounts(connection)]
    tokens = list(dict.fromkeys((*watched, *held)))[:MAX_READ]
    queued = await jobs.among(connection, "liquidity", tokens, now - timedelta(seconds=_GIVEN_UP_S))
    await jobs.enqueue_many(
        connection, "liquidity", [token for token in tokens if token not in queued], run_at=now
    )


async def _drafts(connection: Connection, coming: Sequence[ComingUnlock], now_s: int) -> list[Draft]:
    """One row for each unlock and each account that watches or holds its token and was not alerted of it."""
    tokens = sorted({unlock.token for unlock in coming})
    watchers = await read_watchers(connection, tokens)
    for token, holders in (await bags.holders_now(connection, tokens)).items():
        watchers.setdefault(token, set()).update(holder.account_id for holder in holders)
    alerted = await read_alerted(connection, now_s)
    return [
        Draft(
            account_id=account_id,
            kind="unlock",
            source_id=None,
            at_s=unlock.at_s,
            said=describe_unlock(unlock, now_s),
            wallet=unlock.holder,
            token=unlock.token,
        )
        for unlock in coming
        for account_id in sorted(watchers.get(unlock.token, ()))
        if (account_id, unlock.token, unlock.holder, unlock.at_s) not in alerted
    ]
