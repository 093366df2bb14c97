"""Scores verdicts whose time has passed: by the index, and by the receipts of the few trades that decide."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.scorecard.scorecard import (
    CODES,
    HOUR_S,
    SETTLED_S,
    Cause,
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
from roundtrip.store.scorecard import scorecard as store
from roundtrip.store.scorecard.scorecard import MissingReceipt, ScoredVerdict, StoredVerdict
from roundtrip.store.server.rows import Connection

from .real_trades import PlainTrade, Token, by_receipt, found_by_index, token_of

MOST_VERDICTS = 20
"""So many are looked at in one run."""
MOST_AGAIN = 5
"""And so many of those that wait for a receipt."""
WAITS_S = (5, 30, 120, 600, 600, 600)
"""How long a verdict waits for a receipt that the node does not give, each time. After that it stays untold:
nothing waits for it for ever."""
STUCK = "cannot_sell"


@dataclass(frozen=True, slots=True)
class SettlementRun:
    """What a run came to: scores of verdicts after the evidence ``from_id`` up to ``to_id``, and of some that
    had waited; ``untold`` wait for a receipt. ``more``: there may be others whose time has passed."""

    scored: tuple[ScoredVerdict, ...]
    from_id: int
    to_id: int
    more: bool
    untold: tuple[MissingReceipt, ...] = ()


@dataclass(frozen=True, slots=True)
class ScorecardCase:
    """A verdict with all that the index says of it. ``known`` is why nothing else is asked."""

    verdict: StoredVerdict
    from_s: int
    said: VerdictClaim | None = None
    found: tuple[PlainTrade, ...] = ()
    turned: tuple[LaterCheck, ...] = ()
    known: Cause | None = None
    token: Token | None = None
    tries: int = 0


class Receipts(Protocol):
    """As ``by_receipt``."""

    def __call__(
        self, ctx: Context, token: Address, found: PlainTrade, meter: Meter
    ) -> Awaitable[RealTrade | None]: ...


async def settle(ctx: Context, receipts: Receipts = by_receipt) -> SettlementRun:
    """Looks at the next verdicts, in the order in which they were made, as far as their time has passed, and
    again at some that wait for a receipt. Nothing is written. Raises NodeFault where the node is away: a
    receipt alone that it does not give is waited for by its verdict, and by no other. Raises ServiceFull."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with reading(ctx) as (connection, stands):
        from_id = await store.scored_to(connection)
        verdicts = await store.waiting(connection, from_id, MOST_VERDICTS)
        cases, to_id = await _cases(ctx, connection, stands, verdicts, from_id)
        waited = await store.due(connection, now, MOST_AGAIN)
        cases += [await _again(ctx, connection, stands, verdict, tries) for verdict, tries in waited]
    meter = Meter()
    found = [await _score_case(ctx, case, now, receipts, meter) for case in cases]
    more = len(waited) == MOST_AGAIN or (len(verdicts) == MOST_VERDICTS and to_id == verdicts[-1].id)
    scored = tuple(one for one in found if isinstance(one, ScoredVerdict))
    untold = tuple(one for one in found if isinstance(one, MissingReceipt))
    return SettlementRun(scored, from_id, to_id, more, untold)


async def _cases(
    ctx: Context,
    connection: Connection,
    stands: Cursor,
    verdicts: Sequence[StoredVerdict],
    from_id: int,
) -> tuple[list[ScorecardCase], int]:
    cases: list[ScorecardCase] = []
    to_id, taken = from_id, set()
    newest_s = stands.block.timestamp_s - SETTLED_S
    for verdict in verdicts:
        evidence, spoken = await asyncio.to_thread(read, verdict, ctx.policy)
        from_s = _from_s(verdict, evidence)
        # All wait as long as the longest: so they are settled in their order.
        if from_s + ctx.policy.day_s > newest_s:
            break
        to_id = verdict.id
        key = (verdict.token, from_s // HOUR_S, verdict.code)
        if verdict.code not in CODES or key in taken:
            continue
        taken.add(key)
        if not await store.is_scored(connection, verdict, from_s):
            cases.append(await case_of(ctx, connection, stands, verdict, evidence, spoken, from_s))
    return cases, to_id


async def _again(
    ctx: Context, connection: Connection, stands: Cursor, verdict: StoredVerdict, tries: int
) -> ScorecardCase:
    evidence, spoken = await asyncio.to_thread(read, verdict, ctx.policy)
    from_s = _from_s(verdict, evidence)
    case = await case_of(ctx, connection, stands, verdict, evidence, spoken, from_s)
    return replace(case, tries=tries)


def _from_s(verdict: StoredVerdict, evidence: Evidence | None) -> int:
    return int(verdict.checked_at.timestamp()) if evidence is None else evidence.block.timestamp_s


def read(verdict: StoredVerdict, policy: Policy) -> tuple[Evidence | None, VerdictClaim | None]:
    """A stored verdict's evidence, and what it said; None: it cannot be read any more."""
    try:
        evidence = canonical_json.load(Evidence, verdict.document)
    except (ValueError, RecursionError):
        return None, None
    return evidence, derive_claim(evidence, verdict.code, verdict.level, policy)


async def case_of(
    ctx: Context,
    connection: Connection,
    stands: Cursor,
    verdict: StoredVerdict,
    evidence: Evidence | None,
    spoken: VerdictClaim | None,
    from_s: int,
    tx_hash: TxHash | None = None,
) -> ScorecardCase:
    """What the index says of a verdict. ``tx_hash``: of the trades of that transaction alone."""
    case = ScorecardCase(verdict, from_s, spoken)
    if evidence is None or spoken is None:
        return replace(case, known="unreadable")
    if spoken.claim == "nothing":
        return replace(case, known="silent")
    if stands.start_number > verdict.block_number + 1 or stands.trades_from_s > from_s:
        return replace(case, known="not_followed")
    later = await store.later_checks(connection, verdict, spoken.until_s)
    turned = tuple(LaterCheck(number, at_s, code, code == STUCK) for number, at_s, code in later)
    token = await token_of(connection, evidence)
    found = [] if token is None else await found_by_index(ctx, connection, token, verdict, spoken, tx_hash)
    return replace(case, found=tuple(found), turned=turned, token=token)


async def _score_case(
    ctx: Context, case: ScorecardCase, now: datetime, receipts: Receipts, meter: Meter
) -> ScoredVerdict | MissingReceipt:
    """``Untold``: a receipt is waited for."""
    if case.known is not None or case.said is None:
        return as_scored(case, VerdictScore("undecided", case.known or "unreadable"))
    reals: list[RealTrade] = []
    untold = False
    for one in case.found:
        try:
            real = await receipts(ctx, case.verdict.token, one, meter)
        except NodeFault:
            # Where the node is away, nobody waits less for it.
            ctx.heads.current()
            untold = True
            continue
        if real is not None:
            reals.append(real)
    score = score_claim(case.said, reals, case.turned)
    # What was not told may speak against it.
    if untold and score.outcome != "wrong":
        if case.tries < len(WAITS_S):
            of, again_at = case.verdict, now + timedelta(seconds=WAITS_S[case.tries])
            return MissingReceipt(of.id, of.token, of.code, case.from_s, case.tries + 1, again_at)
        score = VerdictScore("undecided", "not_told")
    return as_scored(case, score)


def as_scored(case: ScorecardCase, score: VerdictScore, reported: bool = False) -> ScoredVerdict:
    """A verdict with what became of it."""
    one = case.verdict
    return ScoredVerdict(
        one.id, one.token, one.code, one.level, one.block_number, case.from_s, score, reported
    )
