"""How the verdict of a token changed from check to check. Many checks in one request: which tokens, and one
line of the answer."""

from datetime import datetime
from typing import Annotated, get_args

import msgspec

from roundtrip.domain.base.errors import STATUS_BY_CODE, ServiceFull
from roundtrip.domain.base.figures import format_count, format_percent
from roundtrip.domain.base.types import Address
from roundtrip.domain.verdicts.changes import Change, PastVerdict, VerdictSpan, fold_spans
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import (
    QUOTED,
    ChainId,
    CodeText,
    LevelText,
    TokenAddress,
    TokenParams,
    says,
)
from roundtrip.services.support.check_answer import Check
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.check.evidence import MAX_COMPARED
from roundtrip.store.server.connections import DATABASE_FAULTS

MAX_CHANGES = 50
_READ_S = 5.0
_TTL_MS = 2_000


class VerdictChange(msgspec.Struct, frozen=True, rename="camel"):
    """Consecutive checks that found the same, and how they differ from those before."""

    changed: Annotated[
        list[Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(get_args(Change))})]],
        says("What differs from the checks before. Empty: the oldest that are compared."),
    ]
    text: Annotated[str, says("The same in plain sentences.")]
    code: Annotated[CodeText, says("The verdict's code, as the checks answered.")]
    level: Annotated[LevelText, says("The verdict's level, as the checks answered.")]
    round_trip_loss_bps: Annotated[
        int | None,
        says(
            "Loss of the round trip at the first check that measured it, in hundredths of a "
            "percent. null: no check of these measured it."
        ),
    ]
    block: Annotated[int, says("Block of the first of these checks.")]
    checked_at: Annotated[datetime, says("When the first of these checks was made.")]
    last_block: Annotated[int, says("Block of the last of these checks.")]
    last_checked_at: Annotated[datetime, says("When the last of these checks was made.")]
    checks: Annotated[int, says("How many checks these are.")]
    deep: Annotated[bool, says("Whether the first of these was a deep check.")]
    policy_version: Annotated[str, says("Version of the thresholds by which the first of these was judged.")]


class CheckHistory(msgspec.Struct, frozen=True, rename="camel"):
    """How the verdict of a token changed."""

    text: Annotated[str, says("The answer in plain sentences.")]
    address: TokenAddress
    chain_id: ChainId
    checks: Annotated[int, says(f"Stored checks that were compared: the newest {MAX_COMPARED} at most.")]
    changes: Annotated[
        list[VerdictChange], says(f"The newest first, {MAX_CHANGES} at most. Empty: no check is stored.")
    ]


async def check_history(ctx: Context, params: TokenParams) -> UseCaseAnswer[CheckHistory]:
    """The changes of the token's verdict. Asks no node and makes no check. Raises CallerFault (bad_address),
    ServiceFull (busy)."""
    token = params.token()
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            verdicts = await evidence_store.past_verdicts(connection, token, MAX_COMPARED)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Stored checks are unavailable; retry in 5 s.", 5) from error
    return UseCaseAnswer(present_history(token, ctx.chain_id, verdicts), ttl_ms=_TTL_MS)


def present_history(token: Address, chain_id: int, newest_first: list[PastVerdict]) -> CheckHistory:
    """The answer for what the checks found, the newest first."""
    spans = fold_spans(reversed(newest_first))
    return CheckHistory(
        text=_history_text(len(newest_first), len(spans)),
        address=token,
        chain_id=chain_id,
        checks=len(newest_first),
        changes=[_present_span(span) for span in reversed(spans[-MAX_CHANGES:])],
    )


def _present_span(span: VerdictSpan) -> VerdictChange:
    return VerdictChange(
        changed=list(span.changed),
        text=_change_text(span),
        code=span.first.code,
        level=span.first.level,
        round_trip_loss_bps=span.loss_bps,
        block=span.first.block,
        checked_at=span.first.checked_at,
        last_block=span.last.block,
        last_checked_at=span.last.checked_at,
        checks=span.checks,
        deep=span.first.is_deep,
        policy_version=span.first.policy_version,
    )


def _change_text(span: VerdictSpan) -> str:
    before, after = span.before, span.first
    if before is None:
        return "The oldest check that is compared."
    sentences = []
    if "code" in span.changed or "level" in span.changed:
        sentences.append(
            f"The verdict went from {before.code} ({before.level}) to {after.code} ({after.level})."
        )
    if "loss" in span.changed and span.loss_before_bps is not None and after.loss_bps is not None:
        sentences.append(
            f"The loss of the round trip went from {format_percent(span.loss_before_bps)} to "
            f"{format_percent(after.loss_bps)}."
        )
    if before.is_deep != after.is_deep:
        sentences.append(
            "This check is deep, the one before is not."
            if after.is_deep
            else "The check before is deep, this one is not."
        )
    if before.policy_version != after.policy_version:
        sentences.append("The thresholds changed in between.")
    return " ".join(sentences)


def _history_text(checks: int, spans: int) -> str:
    if not checks:
        return "No check of this token is stored."
    compared = f"{format_count(checks, 'check')} {'was' if checks == 1 else 'were'} compared"
    changes = spans - 1
    if not changes:
        return f"{compared}: nothing changed."
    shown = "" if spans <= MAX_CHANGES else f" The newest {MAX_CHANGES} are listed."
    return f"{compared}: what they found changed {format_count(changes, 'time')}.{shown}"


MAX_CHECKS = 50
_MAX_TEXT = 100


class ManyChecksParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which tokens."""

    addresses: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=_MAX_TEXT)]],
        msgspec.Meta(
            min_length=1,
            max_length=MAX_CHECKS,
            description=f"The tokens' addresses, 1 to {MAX_CHECKS}. A repeated address is answered once and "
            "counts once.",
        ),
    ]


class TokensToCheck(msgspec.Struct, frozen=True):
    """The tokens that a request names, without repeats."""

    addresses: Annotated[list[str], says("Addresses as the caller wrote them.")]


class LineError(msgspec.Struct, frozen=True, rename="camel"):
    """Why one token was not checked."""

    code: Annotated[
        str,
        msgspec.Meta(
            description="The error code that GET /v1/check/{address} would answer with.",
            extra_json_schema={"enum": list(STATUS_BY_CODE)},
        ),
    ]
    message: Annotated[str, says(f"What is wrong, for people. {QUOTED}")]
    retry_after_s: Annotated[int | None, says("Seconds to wait before asking again. null: no time is known.")]


class CheckLine(msgspec.Struct, frozen=True):
    """One token of the request: its check, or why there is none."""

    address: Annotated[str, says("The address as the request has it.")]
    check: Annotated[Check | None, says("The answer of GET /v1/check/{address}. null: see error.")]
    error: Annotated[LineError | None, says("null: the token was checked.")]


async def list_tokens(ctx: Context, params: ManyChecksParams) -> UseCaseAnswer[TokensToCheck]:
    """The tokens to check, each once, in the request's order. Counts as no call: each check counts."""
    by_address = {address.lower(): address for address in reversed(params.addresses)}
    addresses = [by_address[address] for address in dict.fromkeys(map(str.lower, params.addresses))]
    return UseCaseAnswer(TokensToCheck(addresses), counted=False)
