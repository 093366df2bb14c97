"""``bag``, key ``held``: enqueues checks of the tokens that accounts hold or watch, every few minutes, and
alerts them when a verdict has changed."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.watch.alerts import Draft, verdict_change_text
from roundtrip.domain.watch.bag_guard import (
    GUARD,
    UNCHECKED,
    BagHolding,
    BagStanding,
    KnownVerdict,
    VerdictTurn,
    apply_checks,
    choose_checks,
    find_bought,
    find_newcomers,
    guard_source_id,
    initial_standing,
    judge_newcomer,
    known_until,
    order_checks,
)
from roundtrip.jobs.alerts.drafts import DEEP, EVENT
from roundtrip.jobs.engine.head_barrier import node_answers
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.runtime.context import Context
from roundtrip.store.delivery import deliveries
from roundtrip.store.index import cursor
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alerts, bags, watches
from roundtrip.sync.apply import CHAIN

EVERY_S, SOON_S = 30, 15
"""The interval between runs; the shorter one while a change waits for the check that confirms it."""
IDLE = 20
"""The wait is at least this many times a run's duration: reading the holdings of very many accounts takes
seconds."""
VERB = "verdict"
"""The verb of this job's alert rows."""


async def bag(ctx: Context, job: Job, clock: Callable[[], float] = time.perf_counter) -> Effect:
    """Reads the newest checks of held and watched tokens, whatever enqueued them, and chooses the tokens to
    check. The effect writes the alerts and the new standings in the transaction that ends the job, so that
    each change is alerted once. ``clock``: a monotonic clock, in seconds."""
    began_s = clock()
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with (
        ctx.pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        holdings = [*await bags.held_by_accounts(connection), *await watches.watched_by_accounts(connection)]
        tokens = sorted({holding.token for holding in holdings})
        before = await bags.read_standings(connection, tokens)
        until, bought = known_until(holdings, now), find_bought(holdings, now)
        standings, turns = await _apply_checks(connection, until, bought, before)
        late = await _judge_newcomers(connection, find_newcomers(holdings, standings, now), turns)
        shown = [*turns.values(), *late.values()]
        reasons = {turn.now.id: await _reason(connection, turn, ctx.policy) for turn in shown}
        unconfirmed = {token for token, standing in standings.items() if standing.awaits_worse()}
        to_check = await _tokens_to_check(ctx, connection, holdings, unconfirmed, now)
    took_s = clock() - began_s

    async def effect(connection: Connection) -> None:
        await jobs.enqueue_many(connection, "recheck", to_check, DEEP, run_at=now)
        if shown:
            drafts = await _drafts(connection, turns, late, reasons)
            written = await alerts.put(connection, drafts, now)
            await deliveries.enqueue(connection, written, now)
        changed = {token: standing for token, standing in standings.items() if before.get(token) != standing}
        await bags.put_standings(connection, changed)
        await bags.delete_other_standings(connection, tokens)
        # Last: from here on the job's row is locked.
        wait_s = max(SOON_S if unconfirmed else EVERY_S, took_s * IDLE)
        await jobs.enqueue(connection, job.kind, job.key, run_at=now + timedelta(seconds=wait_s))

    return effect


async def _apply_checks(
    connection: Connection,
    until: Mapping[Address, datetime],
    bought: Collection[Address],
    before: Mapping[Address, BagStanding],
) -> tuple[dict[Address, BagStanding], dict[Address, VerdictTurn]]:
    """The standing of each token after its newest checks, and the verdicts that changed. ``until``: the
    time until which the holders of tokens without a standing know their checks. ``bought``: tokens that
    an account traded lately; a first check after that is news."""
    seen_ids = {token: before[token].seen_id if token in before else 0 for token in until}
    new_checks = await bags.checks_after(connection, seen_ids, until)
    standings: dict[Address, BagStanding] = dict(before)
    turns: dict[Address, VerdictTurn] = {}
    for token, checks in new_checks.items():
        is_news = token in bought and checks[0].at > until[token]
        standing = before.get(token) or initial_standing(checks[0], is_news)
        if standing is None:
            continue
        standings[token], changes = apply_checks(standing, checks)
        if changes:
            # Several changes at once, after some time without this job, become one: from first to last.
            turns[token] = VerdictTurn(changes[0].then_level, changes[0].then_code, changes[-1].now)
    return standings, {token: turn for token, turn in turns.items() if turn.then_level != turn.now.level}


async def _judge_newcomers(
    connection: Connection, newcomers: Sequence[BagHolding], turns: Collection[Address]
) -> dict[tuple[int, Address], VerdictTurn]:
    """The verdicts to report to newcomers alone, by account and token. Who got an alert since they came knows
    that. Left out are the tokens of ``turns``: those alert every holder."""
    told = await bags.read_told(connection, newcomers) if newcomers else {}
    known = {
        (one.account_id, one.token): told.get((one.account_id, one.token), KnownVerdict(one.since))
        for one in newcomers
        if one.token not in turns and one.since is not None
    }
    first: dict[Address, datetime] = {}
    for (_, token), verdict in known.items():
        first[token] = min(verdict.at, first.get(token, verdict.at))
    checks = await bags.read_newest_checks(connection, first) if first else {}
    judged = {key: judge_newcomer(verdict, checks.get(key[1], ())) for key, verdict in known.items()}
    return {key: turn for key, turn in judged.items() if turn is not None}


async def _reason(connection: Connection, turn: VerdictTurn, policy: Policy) -> str:
    """The verdict sentence of the check that shows the change; empty when it cannot be read any more."""
    document = await bags.document(connection, turn.now.id)
    if document is None or turn.now.policy_version != policy.version:
        return ""
    try:
        return judge(canonical_json.load(Evidence, document), policy).verdict.text
    except ValueError:
        return ""


async def _drafts(
    connection: Connection,
    turns: Mapping[Address, VerdictTurn],
    late: Mapping[tuple[int, Address], VerdictTurn],
    reasons: Mapping[int, str],
) -> list[Draft]:
    """One row for each changed token and each account that holds it now or watches it, and for each account
    and token of ``late``."""
    tokens = sorted({*turns, *(token for _, token in late)})
    holders = await bags.holders_now(connection, tokens)
    watchers = await watches.watchers(connection, tokens)
    drafts = []
    for token in tokens:
        numbers = {holder.account_id: holder.token_number for holder in holders.get(token, ())}
        for account_id in sorted({*numbers, *watchers.get(token, ())}):
            turn = turns.get(token) or late.get((account_id, token))
            if turn is not None:
                number = numbers.get(account_id)
                drafts.append(_draft(account_id, number, token, turn, reasons[turn.now.id]))
    return drafts


def _draft(account_id: int, held: int | None, token: Address, turn: VerdictTurn, reason: str) -> Draft:
    """``held``: the token's number in facts.address; None: the account only watches it."""
    newest = turn.now
    return Draft(
        account_id=account_id,
        kind="bag_guard",
        source_id=None if held is None else guard_source_id(held, VERB),
        # A check's result is not a fact of a block: no reorg retracts it.
        at_s=int(newest.at.timestamp()),
        said=verdict_change_text(
            token,
            "" if turn.then_code == UNCHECKED else _level(turn.then_level, turn.then_code),
            _level(newest.level, newest.code),
            reason,
            held is not None,
        ),
        verb=VERB,
        token=token,
        level=newest.level,
    )


def _level(level: str, code: str) -> str:
    return f"{level} ({code})" if code else level


# --- tokens to check -------------------------------------------------------------------------------


async def _tokens_to_check(
    ctx: Context,
    connection: Connection,
    holdings: Sequence[BagHolding],
    unconfirmed: Collection[Address],
    now: datetime,
) -> list[Address]:
    """The tokens to check now, as far as the queue has room. Checks that a happening or the sync enqueued
    have room of their own: anybody can bring them about."""
    if not holdings or not node_answers(ctx) or await cursor.cursor(connection) is None:
        return []
    events = await jobs.waiting(connection, "recheck", EVENT, now)
    others = events + await jobs.waiting(connection, "recheck", CHAIN, now)
    room = GUARD.most_waiting - max(0, await jobs.due(connection, "recheck", now) - others)
    if room <= 0:
        return []
    tokens = {holding.token for holding in holdings}
    checked = await bags.checked_at(connection, tokens, now)
    never = datetime.fromtimestamp(0, UTC)
    due = []
    for token in tokens:
        age_s = (now - checked.get(token, never)).total_seconds()
        if age_s >= (GUARD.confirmed_s if token in unconfirmed else GUARD.checked_every_s):
            due.append(token)
    since = now - timedelta(seconds=GUARD.checked_every_s)
    queued = await jobs.among(connection, "recheck", due, since)
    due = [token for token in due if token not in queued]
    return choose_checks(order_checks(holdings, due, checked, unconfirmed), unconfirmed, room)
