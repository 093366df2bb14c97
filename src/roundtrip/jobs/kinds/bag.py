"""``bag``, of ``held``: has what accounts hold checked every few minutes, and tells holders when a verdict
has changed."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.watch.alert_text import verdict_change_text
from roundtrip.domain.watch.alerts import Draft
from roundtrip.domain.watch.bag_guard import (
    GUARD,
    BagHolding,
    BagStanding,
    VerdictTurn,
    apply_checks,
    guard_source_id,
    initial_standing,
    order_checks,
)
from roundtrip.jobs.alerts.guard import DEEP, EVENT
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.runtime.context import Context
from roundtrip.store.delivery import deliveries
from roundtrip.store.index import cursor
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alerts, bags
from roundtrip.store.watch.bags import BagHolder

EVERY_S, SOON_S = 30, 15
"""When it is looked again; and where a change waits for the check that confirms it."""
IDLE = 20
"""So many times as long as a look took it waits at least: who holds what of very many accounts takes
seconds."""
VERB = "verdict"
"""Of its rows."""


async def bag(ctx: Context, job: Job, clock: Callable[[], float] = time.perf_counter) -> Effect:
    """Looks what the checks of what is held say, whoever made them, and which are to be made. What is told
    and what holders know from then on are one transaction, which is the job's end, too: each change is told
    once. ``clock``: seconds since any time; nobody sets it."""
    began_s = clock()
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with (
        ctx.pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        rows = await bags.held_by_accounts(connection)
        held = sorted({row.token for row in rows})
        before = await bags.standings(connection, held)
        standing, turned = await _looked_at(connection, held, before)
        said = {token: await _why(connection, change, ctx.policy) for token, change in turned.items()}
        open_ones = {token for token, one in standing.items() if one.next_level is not None}
        wanted = await _tokens_to_check(ctx, connection, rows, open_ones, now)
    took_s = clock() - began_s

    async def effect(connection: Connection) -> None:
        await jobs.enqueue_many(connection, "recheck", wanted, DEEP, run_at=now)
        if turned:
            drafts = await _drafts(connection, turned, said)
            made = await alerts.put(connection, drafts, now)
            await deliveries.wish(connection, made, now)
        changed = {token: one for token, one in standing.items() if before.get(token) != one}
        await bags.put_standings(connection, changed)
        await bags.forget_but(connection, held)
        # Last: from here on the job's row is locked.
        wait_s = max(SOON_S if open_ones else EVERY_S, took_s * IDLE)
        await jobs.enqueue(connection, job.kind, job.key, run_at=now + timedelta(seconds=wait_s))

    return effect


async def _looked_at(
    connection: Connection, tokens: Sequence[Address], before: Mapping[Address, BagStanding]
) -> tuple[dict[Address, BagStanding], dict[Address, VerdictTurn]]:
    """What holders of each know with the newest checks, and of which the verdict has changed."""
    seen_ids = {token: before[token].seen_id if token in before else 0 for token in tokens}
    checks = await bags.checks_after(connection, seen_ids)
    standing: dict[Address, BagStanding] = dict(before)
    turned: dict[Address, VerdictTurn] = {}
    for token, seen in checks.items():
        if token not in before:
            first = initial_standing(seen[-1])
            if first is not None:
                standing[token] = first
            continue
        standing[token], changes = apply_checks(before[token], seen)
        if changes:
            # Of several at once, after a while without this job, how it came out.
            turned[token] = VerdictTurn(changes[0].then_level, changes[0].then_code, changes[-1].now)
    return standing, {token: one for token, one in turned.items() if one.then_level != one.now.level}


async def _why(connection: Connection, change: VerdictTurn, policy: Policy) -> str:
    """The sentence of the check that shows a change; empty where it cannot be read any more."""
    document = await bags.document(connection, change.now.id)
    if document is None or change.now.policy_version != policy.version:
        return ""
    try:
        return judge(canonical_json.load(Evidence, document), policy).verdict.text
    except ValueError:
        return ""


async def _drafts(
    connection: Connection, turned: Mapping[Address, VerdictTurn], said: Mapping[Address, str]
) -> list[Draft]:
    """A row of each for each who holds it now."""
    holders = await bags.holders_now(connection, list(turned))
    told = [(one, token) for token in sorted(holders) for one in holders[token]]
    return [_draft(one, token, turned[token], said[token]) for one, token in told]


def _draft(holder: BagHolder, token: Address, change: VerdictTurn, why: str) -> Draft:
    now = change.now
    return Draft(
        account_id=holder.account_id,
        kind="bag_guard",
        source_id=guard_source_id(holder.token_number, VERB),
        # It is no fact of a block: no reorganisation takes back what a check said.
        at_s=int(now.at.timestamp()),
        said=verdict_change_text(
            token, _level(change.then_level, change.then_code), _level(now.level, now.code), why
        ),
        verb=VERB,
        token=token,
    )


def _level(level: str, code: str) -> str:
    return f"{level} ({code})" if code else level


# --- what is checked -------------------------------------------------------------------------------


async def _tokens_to_check(
    ctx: Context,
    connection: Connection,
    held: Sequence[BagHolding],
    open_ones: Collection[Address],
    now: datetime,
) -> list[Address]:
    """Which to check now, as far as there is room beside those of others; what is checked for what happened
    has room of its own."""
    if not held or not _hears(ctx) or await cursor.cursor(connection) is None:
        return []
    events = await jobs.waiting(connection, "recheck", EVENT)
    room = GUARD.most_waiting - max(0, await jobs.due(connection, "recheck", now) - events)
    if room <= 0:
        return []
    tokens = {one.token for one in held}
    checked = await bags.checked_at(connection, tokens, now)
    never = datetime.fromtimestamp(0, UTC)
    due = []
    for token in tokens:
        age_s = (now - checked.get(token, never)).total_seconds()
        if age_s >= (GUARD.confirmed_s if token in open_ones else GUARD.checked_every_s):
            due.append(token)
    since = now - timedelta(seconds=GUARD.checked_every_s)
    at_work = await jobs.among(connection, "recheck", due, since)
    due = [token for token in due if token not in at_work]
    return order_checks(held, due, checked, open_ones)[:room]


def _hears(ctx: Context) -> bool:
    """Whether the node answers: without it every check would fail, and none is wished for."""
    try:
        ctx.heads.current()
    except RoundtripError:
        return False
    return True
