"""``boards``, key ``moving``, every fifteen seconds: enqueues checks of the tokens that the moving board
shows or holds back depending on a check, and of the fullest curves, which another board lists; and readings
of what buyers of the shown tokens are exposed to."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.exposure import READ_EVERY_S
from roundtrip.domain.market.moving import (
    CHECKED_EVERY_S,
    CROWD,
    MOST_CHECKED,
    WINDOW_S,
    flows_to_check,
    flows_to_count,
    flows_with_crowd,
    group_flows,
)
from roundtrip.jobs.engine.head_barrier import node_answers
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.boards.graduating_soon import MOST_SHOWN, TRADED_WITHIN_S
from roundtrip.services.runtime.context import Context
from roundtrip.store.boards import moving
from roundtrip.store.boards.exposures import read_exposures
from roundtrip.store.boards.newest_checks import read_checks
from roundtrip.store.index import cursor, curves
from roundtrip.store.index.addresses import addresses_of
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

EVERY_S = 15
MOST_READINGS = 2
"""Readings are enqueued while fewer than this many wait or run."""
MOST_WAITING = 4
"""Checks are enqueued while fewer than this many wait or run: twice what one worker runs at once. So checks
for other reasons do not wait behind them."""


async def boards(ctx: Context, job: Job) -> Effect:
    """Enqueues the checks and the next run. A token is checked every ten minutes at most: a check that
    succeeds leaves evidence; one that fails leaves its job, which is retried with growing waits or was given
    up."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    to_check = await _tokens_to_check(ctx, now) if node_answers(ctx) else []
    to_read = await _tokens_to_read(ctx, now) if node_answers(ctx) else []

    async def enqueue(connection: Connection) -> None:
        # With a run time: checks that an event enqueued have none, and run before these.
        await jobs.enqueue_many(connection, "recheck", to_check, {"deep": True}, run_at=now)
        await jobs.enqueue_many(connection, "exposure", to_read, run_at=now)
        # Last: from here on the job's row is locked.
        await jobs.enqueue(connection, job.kind, job.key, run_at=now + timedelta(seconds=EVERY_S))

    return enqueue


async def _tokens_to_check(ctx: Context, now: datetime) -> Sequence[Address]:
    """The tokens to check now, as far as the queue has room."""
    since = now - timedelta(seconds=CHECKED_EVERY_S)
    async with ctx.pool.acquire() as connection:
        indexed = await cursor.cursor(connection)
        room = MOST_WAITING - await jobs.due(connection, "recheck", now)
        if indexed is None or room <= 0:
            return []
        window = indexed.block.timestamp_s - WINDOW_S, indexed.block.timestamp_s
        flows = flows_to_check(await moving.flows(connection, window, ctx.contracts, CROWD), now.timestamp())
        queued = await jobs.among(connection, "recheck", [flow.token for flow in flows], since)
        flows = [flow for flow in flows if flow.token not in queued][:MOST_CHECKED]
        wallets = await moving.read_origins(connection, {buyer for flow in flows for buyer in flow.buyers})
        wanted = [flow.token for flow in flows_with_crowd(flows, wallets, window[0])]
        if len(wanted) < room:
            filling = await _unchecked_curves(connection, indexed.block.timestamp_s, now)
            queued = await jobs.among(connection, "recheck", filling, since)
            wanted += [token for token in filling if token not in queued and token not in wanted]
    return wanted[:room]


async def _tokens_to_read(ctx: Context, now: datetime) -> Sequence[Address]:
    """The tokens that the page shows and whose exposure is due, those with most money first, as far as the
    queue has room."""
    now_s = now.timestamp()
    async with ctx.pool.acquire() as connection:
        indexed = await cursor.cursor(connection)
        room = MOST_READINGS - await jobs.due(connection, "exposure", now)
        if indexed is None or room <= 0:
            return []
        window = indexed.block.timestamp_s - WINDOW_S, indexed.block.timestamp_s
        counted = flows_to_count(await moving.flows(connection, window, ctx.contracts, CROWD), now_s)
        wallets = await moving.read_origins(connection, {buyer for flow in counted for buyer in flow.buyers})
        tokens = [flow.token for _, flow in group_flows(counted, wallets, window[0], now_s)]
        exposed = await read_exposures(connection, tokens)
        since = now - timedelta(seconds=READ_EVERY_S)
        queued = await jobs.among(connection, "exposure", tokens, since)
    return [token for token in tokens if exposed[token].is_due(now_s) and token not in queued][:room]


async def _unchecked_curves(connection: Connection, newest_s: int, now: datetime) -> list[Address]:
    """The tokens on the fullest curves that had no check within an hour, the fullest first."""
    filling = await curves.fullest(connection, newest_s - TRADED_WITHIN_S, MOST_SHOWN)
    addresses = await addresses_of(connection, [curve.token_id for curve in filling])
    checks = await read_checks(connection, addresses.values())
    tokens = [addresses[curve.token_id] for curve in filling]
    return [token for token in tokens if checks[token].fresh(now.timestamp()) is None]
