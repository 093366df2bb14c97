"""``boards``, key ``moving``, every fifteen seconds: enqueues checks of the tokens that the moving board
shows or holds back depending on a check, and of the fullest curves, which ``graduating_soon`` lists; and
readings of what buyers of the tokens of both boards are exposed to (``exposure`` jobs)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.exposure import READ_EVERY_S
from roundtrip.domain.market.moving import (
    CHECKED_EVERY_S,
    CROWD,
    MAX_CHECKED,
    WINDOW_S,
    MoneyFlow,
    flows_to_check,
    flows_to_count,
    flows_with_crowd,
    group_flows,
)
from roundtrip.jobs.engine.head_barrier import node_answers
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.boards.graduating_soon import MAX_SHOWN, TRADED_WITHIN_S
from roundtrip.services.runtime.context import Context
from roundtrip.store.boards import moving
from roundtrip.store.boards.moving import read_checks, read_exposures
from roundtrip.store.index import cursor, curves
from roundtrip.store.index.tokens import addresses_of
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection
from roundtrip.sync.apply import CHAIN

EVERY_S = 15
MAX_READINGS = 2
"""Readings are enqueued while fewer than this many wait or run."""
MAX_WAITING = 4
"""Checks are enqueued while fewer than this many wait or run: twice what one worker runs at once. So checks
for other reasons do not wait behind them."""


async def boards(ctx: Context, job: Job) -> Effect:
    """Enqueues the checks and the next run. A token is checked every ten minutes at most: a check that
    succeeds leaves evidence; one that fails leaves its job, which is retried with growing waits or was given
    up."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    to_check, to_read = await _find_tokens(ctx, now) if node_answers(ctx) else ([], [])

    async def enqueue(connection: Connection) -> None:
        # With a run time: checks that the sync enqueued have none, and run before these.
        await jobs.enqueue_many(connection, "recheck", to_check, {"deep": True}, run_at=now)
        await jobs.enqueue_many(connection, "exposure", to_read, run_at=now)
        # Last: from here on the job's row is locked.
        await jobs.enqueue(connection, job.kind, job.key, run_at=now + timedelta(seconds=EVERY_S))

    return enqueue


async def _find_tokens(ctx: Context, now: datetime) -> tuple[Sequence[Address], Sequence[Address]]:
    """The tokens to check now, and those whose exposure is to be read, as far as the queues have room."""
    async with ctx.pool.acquire() as connection:
        indexed = await cursor.cursor(connection)
        others = await jobs.waiting(connection, "recheck", CHAIN, now)
        room = MAX_WAITING - max(0, await jobs.due(connection, "recheck", now) - others)
        reading_room = MAX_READINGS - await jobs.due(connection, "exposure", now)
        if indexed is None or (room <= 0 and reading_room <= 0):
            return [], []
        newest_s = indexed.block.timestamp_s
        window = newest_s - WINDOW_S, newest_s
        flows = await moving.flows(connection, window, ctx.contracts, CROWD)
        to_check = await _tokens_to_check(connection, flows, newest_s, now, room) if room > 0 else []
        to_read = await _tokens_to_read(connection, flows, newest_s, now) if reading_room > 0 else []
    return to_check[: max(0, room)], to_read[: max(0, reading_room)]


async def _tokens_to_check(
    connection: Connection, flows: Sequence[MoneyFlow], newest_s: int, now: datetime, room: int
) -> list[Address]:
    """The moving tokens that need a check; if fewer than ``room``, also those on the fullest curves."""
    since = now - timedelta(seconds=CHECKED_EVERY_S)
    due = flows_to_check(flows, now.timestamp())
    queued = await jobs.among(connection, "recheck", [flow.token for flow in due], since)
    due = [flow for flow in due if flow.token not in queued][:MAX_CHECKED]
    wallets = await moving.read_origins(connection, {buyer for flow in due for buyer in flow.buyers})
    wanted = [flow.token for flow in flows_with_crowd(due, wallets, newest_s - WINDOW_S)]
    if len(wanted) < room:
        filling = await _unchecked_curves(connection, newest_s, now)
        queued = await jobs.among(connection, "recheck", filling, since)
        wanted += [token for token in filling if token not in queued and token not in wanted]
    return wanted


async def _tokens_to_read(
    connection: Connection, flows: Sequence[MoneyFlow], newest_s: int, now: datetime
) -> list[Address]:
    """The tokens whose exposure is due: first those of the moving board, those with most money first, then
    those on the fullest curves."""
    now_s, from_s = now.timestamp(), newest_s - WINDOW_S
    counted = flows_to_count(flows, now_s)
    wallets = await moving.read_origins(connection, {buyer for flow in counted for buyer in flow.buyers})
    moving_tokens = [flow.token for _, flow in group_flows(counted, wallets, from_s, now_s)]
    filling = await _read_filling(connection, newest_s)
    tokens = list(dict.fromkeys([*moving_tokens, *filling]))
    exposed = await read_exposures(connection, tokens)
    queued = await jobs.among(connection, "exposure", tokens, now - timedelta(seconds=READ_EVERY_S))
    return [token for token in tokens if exposed[token].is_due(now_s) and token not in queued]


async def _unchecked_curves(connection: Connection, newest_s: int, now: datetime) -> list[Address]:
    """The tokens on the fullest curves that had no check within an hour, the fullest first."""
    tokens = await _read_filling(connection, newest_s)
    checks = await read_checks(connection, tokens)
    return [token for token in tokens if checks[token].fresh(now.timestamp()) is None]


async def _read_filling(connection: Connection, newest_s: int) -> list[Address]:
    """The tokens on the fullest curves, the fullest first."""
    filling = await curves.fullest(connection, newest_s - TRADED_WITHIN_S, MAX_SHOWN)
    addresses = await addresses_of(connection, [curve.token_id for curve in filling])
    return [addresses[curve.token_id] for curve in filling]
