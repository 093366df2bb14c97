"""Scores verdicts after their period, by the index, by failed sells that were found, and by the receipts of
the few trades that decide."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.scorecard.scorecard import (
    CODES,
    HOUR_S,
    SELLABLE,
    SETTLED_S,
    Cause,
    FailedSell,
    LaterCheck,
    RealTrade,
    VerdictClaim,
    VerdictScore,
    derive_claim,
    score_claim,
)
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import reading
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.scorecard import failed_sells
from roundtrip.store.scorecard import scorecard as store
from roundtrip.store.scorecard.scorecard import MissingReceipt, ScoredVerdict, StoredVerdict
from roundtrip.store.server.rows import Connection

from .real_trades import PlainTrade, confirm_by_receipt, find_trades, token_of

MAX_VERDICTS = 20
"""The most new verdicts that one run scores."""
MAX_AGAIN = 5
"""The most verdicts waiting for a receipt that one run tries again."""
WAITS_S = (5, 30, 120, 600, 600, 600)
"""A verdict's waits for a receipt that the node does not return. After the last one it stays undecided."""
STUCK = "cannot_sell"
"""The code of a check that found that the token cannot be sold."""

ConfirmTrade = Callable[[Context, Address, PlainTrade, Meter], Awaitable[RealTrade | None]]
"""The signature of ``confirm_by_receipt``."""


@dataclass(frozen=True, slots=True)
class SettlementRun:
    """The result of one run: scores of the verdicts after evidence ``from_id`` up to ``to_id``, and of some
    that waited. The verdicts in ``waiting`` wait for a receipt. ``is_more``: more verdicts may be due."""

    scored: tuple[ScoredVerdict, ...]
    from_id: int
    to_id: int
    is_more: bool
    waiting: tuple[MissingReceipt, ...] = ()


@dataclass(frozen=True, slots=True)
class ScorecardCase:
    """A verdict with what the index holds about it. ``undecided``: why it cannot be decided, if so."""

    verdict: StoredVerdict
    from_s: int
    claim: VerdictClaim | None = None
    trades: tuple[PlainTrade, ...] = ()
    later_checks: tuple[LaterCheck, ...] = ()
    undecided: Cause | None = None
    tries: int = 0
    failed_sells: tuple[FailedSell, ...] = ()


async def score_verdicts(ctx: Context, confirm: ConfirmTrade = confirm_by_receipt) -> SettlementRun:
    """Scores the next verdicts with a completed period, in the order in which they were made, and tries again
    some that wait for a receipt. Writes nothing. When a single receipt is missing, only its verdict waits.
    Raises NodeFault when the node is unavailable, and ServiceFull."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with reading(ctx) as (connection, indexed):
        from_id = await store.scored_to(connection)
        verdicts = await store.waiting(connection, from_id, MAX_VERDICTS)
        cases, to_id = await _read_cases(ctx, connection, indexed, verdicts, from_id)
        due = await store.due(connection, now, MAX_AGAIN)
        cases += [await _read_due_case(ctx, connection, indexed, verdict, tries) for verdict, tries in due]
    meter = Meter()
    results = [await _score_case(ctx, case, now, confirm, meter) for case in cases]
    is_more = len(due) == MAX_AGAIN or (len(verdicts) == MAX_VERDICTS and to_id == verdicts[-1].id)
    scored = tuple(result for result in results if isinstance(result, ScoredVerdict))
    waiting = tuple(result for result in results if isinstance(result, MissingReceipt))
    return SettlementRun(scored, from_id, to_id, is_more, waiting)


async def _read_cases(
    ctx: Context, connection: Connection, indexed: Cursor, verdicts: Sequence[StoredVerdict], from_id: int
) -> tuple[list[ScorecardCase], int]:
    """The new verdicts with a completed period, and the id of the last verdict that was looked at."""
    cases: list[ScorecardCase] = []
    to_id, seen_keys = from_id, set()
    newest_s = indexed.block.timestamp_s - SETTLED_S
    for verdict in verdicts:
        evidence, claim = await asyncio.to_thread(read_verdict, verdict, ctx.policy)
        from_s = _from_s(verdict, evidence)
        # All wait for the longest period, so that they are scored in order.
        if from_s + ctx.policy.day_s > newest_s:
            break
        to_id = verdict.id
        # Equal verdicts of one token within an hour are scored once.
        key = (verdict.token, from_s // HOUR_S, verdict.code)
        if verdict.code not in CODES or key in seen_keys:
            continue
        seen_keys.add(key)
        if not await store.is_scored(connection, verdict, from_s):
            cases.append(await _read_case(ctx, connection, indexed, verdict, evidence, claim, from_s))
    return cases, to_id


async def _read_due_case(
    ctx: Context, connection: Connection, indexed: Cursor, verdict: StoredVerdict, tries: int
) -> ScorecardCase:
    evidence, claim = await asyncio.to_thread(read_verdict, verdict, ctx.policy)
    from_s = _from_s(verdict, evidence)
    case = await _read_case(ctx, connection, indexed, verdict, evidence, claim, from_s)
    return replace(case, tries=tries)


def _from_s(verdict: StoredVerdict, evidence: Evidence | None) -> int:
    return int(verdict.checked_at.timestamp()) if evidence is None else evidence.block.timestamp_s


def read_verdict(verdict: StoredVerdict, policy: Policy) -> tuple[Evidence | None, VerdictClaim | None]:
    """A stored verdict's evidence and claim; None if they cannot be read any more."""
    try:
        evidence = canonical_json.load(Evidence, verdict.document)
    except (ValueError, RecursionError):
        return None, None
    return evidence, derive_claim(evidence, verdict.code, verdict.level, policy)


async def _read_case(
    ctx: Context,
    connection: Connection,
    indexed: Cursor,
    verdict: StoredVerdict,
    evidence: Evidence | None,
    claim: VerdictClaim | None,
    from_s: int,
) -> ScorecardCase:
    case = ScorecardCase(verdict, from_s, claim)
    if evidence is None or claim is None:
        return replace(case, undecided="unreadable")
    if claim.claim == "nothing":
        return replace(case, undecided="silent")
    if indexed.start_number > verdict.block_number + 1 or indexed.trades_from_s > from_s:
        return replace(case, undecided="not_followed")
    rows = await store.later_checks(connection, verdict, claim.until_s)
    later_checks = tuple(LaterCheck(number, at_s, code, code == STUCK) for number, at_s, code in rows)
    token = await token_of(connection, evidence)
    trades = [] if token is None else await find_trades(ctx, connection, token, verdict, claim)
    failed: list[FailedSell] = []
    if claim.claim in SELLABLE:
        failed = await failed_sells.sells_between(
            connection, verdict.token, verdict.block_number, claim.from_s, claim.until_s
        )
    return replace(case, trades=tuple(trades), later_checks=later_checks, failed_sells=tuple(failed))


async def _score_case(
    ctx: Context, case: ScorecardCase, now: datetime, confirm: ConfirmTrade, meter: Meter
) -> ScoredVerdict | MissingReceipt:
    """The verdict's score, or a MissingReceipt while it waits for a receipt."""
    if case.undecided is not None or case.claim is None:
        return _as_scored(case, VerdictScore("undecided", case.undecided or "unreadable"))
    verdict = case.verdict
    trades: list[RealTrade] = []
    is_missing = False
    for plain in case.trades:
        try:
            trade = await confirm(ctx, verdict.token, plain, meter)
        except NodeFault:
            # Raises NodeFault when the node is unavailable: then no verdict uses up a wait.
            ctx.heads.current()
            is_missing = True
            continue
        if trade is not None:
            trades.append(trade)
    score = score_claim(case.claim, trades, case.later_checks, case.failed_sells)
    # A missing receipt could prove the verdict wrong.
    if is_missing and score.outcome != "wrong":
        if case.tries < len(WAITS_S):
            retry_at = now + timedelta(seconds=WAITS_S[case.tries])
            return MissingReceipt(
                verdict.id, verdict.token, verdict.code, case.from_s, case.tries + 1, retry_at
            )
        score = VerdictScore("undecided", "not_told")
    return _as_scored(case, score)


def _as_scored(case: ScorecardCase, score: VerdictScore) -> ScoredVerdict:
    verdict = case.verdict
    return ScoredVerdict(
        verdict.id, verdict.token, verdict.code, verdict.level, verdict.block_number, case.from_s, score
    )
