"""The newest stored check of a token, in short. It asks no node and makes no check."""

import asyncio
import contextlib
from datetime import datetime

import msgspec

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip.services.check.schema import Check, at, present
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.strangers_text import AnswerText, Symbol
from roundtrip.services.verdicts.history import HistoryParams
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.check.evidence import KeptEvidence
from roundtrip.store.server.errors import DATABASE_FAULTS

OLD_S = 86_400
"""Age from which a check that went well proves nothing any more."""
_READ_S = 5.0
_ABSENT_TTL_MS = 2_000


class CheckSummary(msgspec.Struct, frozen=True, rename="camel"):
    """A check in short. ``is_old``: it was made more than a day ago."""

    level: str
    code: str
    text: AnswerText
    symbol: Symbol
    round_trip_loss_bps: int | None
    block: int
    block_at: datetime
    is_old: bool


class TokenCard(msgspec.Struct, frozen=True):
    """``check`` None: no check of the token is stored, or it is of an earlier release."""

    address: str
    check: CheckSummary | None


async def newest_check(ctx: Context, params: HistoryParams) -> UseCaseAnswer[TokenCard]:
    """The token's card. Raises CallerFault (bad_address), ServiceFull (busy)."""
    token = params.token()
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            stored = await evidence_store.latest(connection, token)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Stored checks are unavailable; retry in 5 s.", 5) from error
    if stored is None:
        return UseCaseAnswer(TokenCard(token, None), ttl_ms=_ABSENT_TTL_MS)
    # Decoding is slow for a token with many pools, and must not block the event loop.
    card = await asyncio.to_thread(_read_card, token, stored, ctx.policy, ctx.now_s())
    return UseCaseAnswer(card, ttl_ms=ctx.policy.answer_ttl_ms)


def _read_card(token: Address, stored: KeptEvidence, policy: Policy, now_s: float) -> TokenCard:
    """The card; without a check where the evidence has the shape of an earlier release."""
    with contextlib.suppress(ValueError):
        evidence = canonical_json.load(Evidence, stored.document)
        answer = present(evidence, judge(evidence, policy), policy, stored.checked_at.timestamp())
        return TokenCard(token, summarize(answer, evidence.block.number, evidence.block.timestamp_s, now_s))
    return TokenCard(token, None)


def summarize(answer: Check, block: int, block_at_s: int, now_s: float) -> CheckSummary:
    """The check in short. ``block_at_s``: its block's timestamp; ``now_s``: both in seconds since 1970."""
    return CheckSummary(
        level=answer.verdict.level,
        code=answer.verdict.code,
        text=answer.verdict.text,
        symbol=answer.token.symbol,
        round_trip_loss_bps=None if answer.trade is None else answer.trade.round_trip_loss_bps,
        block=block,
        block_at=at(block_at_s),
        is_old=now_s - answer.checked_at.timestamp() > OLD_S,
    )
