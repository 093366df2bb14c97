"""Stored checks of a token, in short. Nothing here makes a check. A node is asked only whether a token that
looks like another one is its issuer's."""

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import datetime

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.market.exposure import TokenExposure
from roundtrip.domain.verdicts.risks import Risk, list_risks
from roundtrip.services.check.card import read_sold_bps
from roundtrip.services.check.schema import present
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import at
from roundtrip.services.support.index_reader import looking
from roundtrip.services.support.look_alikes import find_look_alike
from roundtrip.services.support.strangers_text import AnswerText, Symbol
from roundtrip.services.support.wallet_params import TokenParams
from roundtrip.store.boards.exposures import read_exposures
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.check.evidence import KeptEvidence
from roundtrip.store.index import tokens
from roundtrip.store.index.tokens import Label
from roundtrip.store.server.errors import DATABASE_FAULTS

OLD_S = 86_400
"""Age from which a check that went well proves nothing any more."""
FRESH_S = 3_600
"""Age up to which a badge shows that a check went well: sites show it long after it was drawn."""
_LEVELS = ("ok", "warn", "unknown", "danger")
"""Each worse than those before it."""
_READ_S = 5.0
_ABSENT_TTL_MS = 2_000


class CheckSummary(msgspec.Struct, frozen=True, rename="camel"):
    """A check in short. ``is_old``: it was made more than a day ago. ``is_fresh``: within the last
    hour. ``holders``: real holders whose simulated sale gave a result. ``risks``: those of ``list_risks``.
    ``sold_bps``: as in ``CheckCard``."""

    level: str
    code: str
    text: AnswerText
    symbol: Symbol
    round_trip_loss_bps: int | None
    block: int
    block_at: datetime
    is_old: bool
    is_fresh: bool
    holders: int
    risks: list[Risk]
    sold_bps: int | None = None


class TokenCard(msgspec.Struct, frozen=True):
    """``check`` None: no check of the token is stored, or it is of another release. ``look_alike``: the
    sentence about the token that it looks like; empty: none was found, or it could not be read."""

    address: str
    check: CheckSummary | None
    look_alike: str = ""


@dataclass(frozen=True, slots=True)
class StoredChecks:
    """``made``: one check. ``of_holders``: the newest of the last day that tried real holders' sells. Each is
    None where it is not stored, or is of another release."""

    made: CheckSummary | None
    of_holders: CheckSummary | None

    def worse(self) -> CheckSummary | None:
        """``of_holders`` where it is worse, else ``made``: a check that tried no holder does not refute one
        that did."""
        if self.of_holders is None:
            return self.made
        level = "unknown" if self.made is None else self.made.level
        is_worse = _LEVELS.index(self.of_holders.level) > _LEVELS.index(level)
        return self.of_holders if is_worse else self.made


async def newest_check(ctx: Context, params: TokenParams) -> UseCaseAnswer[TokenCard]:
    """The token's card, of its newest check, or of a worse one of the last day that tried real holders'
    sells. Raises CallerFault (bad_address), ServiceFull (busy)."""
    token, meter = params.token(), Meter()
    check = (await read_checks(ctx, token)).worse()
    if check is None:
        return UseCaseAnswer(TokenCard(token, None), ttl_ms=_ABSENT_TTL_MS)
    looks_like = await describe_look_alike(ctx, await _read_label(ctx, token, check), meter)
    return UseCaseAnswer(TokenCard(token, check, looks_like), ttl_ms=ctx.policy.answer_ttl_ms, meter=meter)


async def describe_look_alike(ctx: Context, label: Label, meter: Meter) -> str:
    """The sentence about the token that this one looks like; empty: none was found, or it cannot be read."""
    with contextlib.suppress(ServiceFull, NodeFault):
        found = await find_look_alike(ctx, label, meter)
        return "" if found is None else found.text
    return ""


async def _read_label(ctx: Context, token: Address, check: CheckSummary) -> Label:
    """The symbol of the check, and the name that the index knows."""
    name = None
    with contextlib.suppress(ServiceFull):
        async with looking(ctx) as (connection, _):
            name = (await tokens.labels_of(connection, {token}))[token].name
    return Label(token, check.symbol, name, None, None)


async def read_checks(ctx: Context, token: Address, checked_at: datetime | None = None) -> StoredChecks:
    """The check that was made at ``checked_at``, None: the newest one; and the newest that tried holders.
    Raises ServiceFull (busy)."""
    now_s = ctx.now_s()
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            if checked_at is None:
                made = await evidence_store.latest(connection, token)
            else:
                made = await evidence_store.made_at(connection, token, checked_at)
            of_holders = await evidence_store.latest_of_holders(connection, token, at(now_s - OLD_S))
            exposed = (await read_exposures(connection, [token]))[token]
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Stored checks are unavailable; retry in 5 s.", 5) from error
    if made == of_holders:
        of_holders = None
    # Decoding is slow for a token with many pools, and must not block the event loop.
    return await asyncio.to_thread(_summarize_both, made, of_holders, exposed, ctx.policy, now_s)


def _summarize_both(
    made: KeptEvidence | None,
    of_holders: KeptEvidence | None,
    exposed: TokenExposure,
    policy: Policy,
    now_s: float,
) -> StoredChecks:
    if of_holders is not None and _has_ended(of_holders, now_s):
        of_holders = None
    return StoredChecks(*(_summarize(stored, exposed, policy, now_s) for stored in (made, of_holders)))


def _has_ended(stored: KeptEvidence, now_s: float) -> bool:
    return stored.ends_at is not None and stored.ends_at.timestamp() <= now_s


def _summarize(
    stored: KeptEvidence | None, exposed: TokenExposure, policy: Policy, now_s: float
) -> CheckSummary | None:
    """The check in short; None where the evidence has the shape of another release."""
    if stored is None:
        return None
    with contextlib.suppress(ValueError):
        evidence = canonical_json.load(Evidence, stored.document)
        judgement = judge(evidence, policy)
        answer = present(evidence, judgement, policy, stored.checked_at.timestamp())
        age_s = now_s - stored.checked_at.timestamp()
        return CheckSummary(
            level=answer.verdict.level,
            code=answer.verdict.code,
            text=answer.verdict.text,
            symbol=answer.token.symbol,
            round_trip_loss_bps=None if answer.trade is None else answer.trade.round_trip_loss_bps,
            block=evidence.block.number,
            block_at=at(evidence.block.timestamp_s),
            is_old=age_s > OLD_S,
            is_fresh=age_s <= FRESH_S and not _has_ended(stored, now_s),
            holders=stored.holders,
            risks=list(
                list_risks(evidence, judgement, policy, exposed.insiders(now_s), exposed.liquidity(now_s))
            ),
            sold_bps=read_sold_bps(judgement),
        )
    return None
