"""The scorecard page of the console: how often verdicts were right, by code, and the list of mistakes."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from roundtrip.domain.base.figures import format_count, format_duration
from roundtrip.domain.scorecard.scorecard import CODES, PROVABLE, SETTLED_S, Outcome, sentence
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import IndexAnswer, TokenNamed, present_token, reading, when
from roundtrip.store.index import tokens
from roundtrip.store.scorecard import scorecard as store
from roundtrip.store.scorecard.scorecard import ScoredVerdict

PAGE = 20
"""Mistakes a page."""
_TTL_MS = 15_000
_SCORED_AFTER = timedelta(days=1, seconds=SETTLED_S)


class ScorecardParams(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Which mistakes: those before one that was shown."""

    before_s: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] | None = None
    before_id: Annotated[int, msgspec.Meta(ge=0, le=2**62)] | None = None

    def before(self) -> tuple[int, int] | None:
        """Time and id of the last mistake that was shown; None: from the newest."""
        if self.before_s is None or self.before_id is None:
            return None
        return self.before_s, self.before_id

    def shared_as(self) -> str:
        """The cache key: requests with the same key share an answer."""
        return str(self.before())


class CodeCount(msgspec.Struct, frozen=True, rename="camel"):
    """What became of verdicts of one code, and of how many tokens those are."""

    code: str
    right: Annotated[int | None, says("null: nothing that is seen could show that.")]
    right_tokens: int | None
    wrong: int
    wrong_tokens: int
    undecided: int
    undecided_tokens: int


class Mistake(msgspec.Struct, frozen=True, rename="camel"):
    """A verdict that was wrong, and what showed it. ``transaction`` null: a later check of our own."""

    token: TokenNamed
    code: str
    level: str
    verdict_block: int
    verdict_time: datetime
    text: Annotated[str, says("What it met, in plain sentences.")]
    transaction: str | None
    wallet: str | None
    block: int | None
    time: datetime | None


class Scorecard(IndexAnswer, frozen=True, rename="camel"):
    """The scorecard. Undecided is never part of what was right."""

    codes: list[CodeCount]
    right: int
    wrong: int
    undecided: int
    mistakes: Annotated[list[Mistake], says("The newest first.")]
    next_s: int | None
    next_id: int | None
    first_due: datetime | None


async def scorecard(ctx: Context, params: ScorecardParams) -> UseCaseAnswer[Scorecard]:
    """Counts by code, and a page of mistakes. Raises ServiceFull."""
    async with reading(ctx) as (connection, indexed):
        counts = await store.counts(connection)
        first_at = None if counts else await store.first_checked_at(connection)
        wrong = await store.mistakes(connection, params.before(), PAGE + 1)
        labels = await tokens.labels_of(connection, [verdict.token for verdict in wrong])
    # Only codes of CODES are scored, and only those of PROVABLE are ever right: the rows add up to the total.
    rows = [_code_count(code, counts) for code in CODES]
    shown, last = wrong[:PAGE], wrong[PAGE - 1] if len(wrong) > PAGE else None
    total = {
        outcome: sum(n for (_, counted), (n, _) in counts.items() if counted == outcome)
        for outcome in _OUTCOMES
    }
    answer = Scorecard(
        text=_text(total),
        chain_id=ctx.chain_id,
        block=indexed.block.number,
        block_time=when(indexed.block.timestamp_s),
        codes=rows,
        right=total["right"],
        wrong=total["wrong"],
        undecided=total["undecided"],
        mistakes=[_mistake(verdict, present_token(labels[verdict.token])) for verdict in shown],
        next_s=None if last is None else last.from_s,
        next_id=None if last is None else last.id,
        first_due=None if first_at is None else first_at + _SCORED_AFTER,
    )
    return UseCaseAnswer(answer, ttl_ms=_TTL_MS)


def _code_count(code: str, counts: Mapping[tuple[str, Outcome], tuple[int, int]]) -> CodeCount:
    right, wrong, undecided = (counts.get((code, outcome), (0, 0)) for outcome in _OUTCOMES)
    provably_right = right if code in PROVABLE else (None, None)
    return CodeCount(
        code=code,
        right=provably_right[0],
        right_tokens=provably_right[1],
        wrong=wrong[0],
        wrong_tokens=wrong[1],
        undecided=undecided[0],
        undecided_tokens=undecided[1],
    )


_OUTCOMES: tuple[Outcome, ...] = ("right", "wrong", "undecided")


def _text(total: dict[Outcome, int]) -> str:
    right, wrong, undecided = (total[outcome] for outcome in _OUTCOMES)
    scored = right + wrong + undecided
    if not scored:
        return (
            "No verdict has been scored yet. We score a verdict once the day that it covers and "
            f"{format_duration(SETTLED_S)} more are over."
        )
    decided = right + wrong
    if not decided:
        count = format_count(scored, "verdict was", "verdicts were")
        return f"{count} scored, and later events decided none of them."
    sentences = [
        f"We scored {format_count(scored, 'verdict')}. Later events showed {wrong:,} to be wrong and "
        f"{right:,} to be right."
    ]
    if undecided:
        sentences.append(f"They decided nothing about {undecided:,}.")
    sentences.append("This is not an error rate: we do not see every failed sell.")
    return " ".join(sentences)


def _mistake(verdict: ScoredVerdict, token: TokenNamed) -> Mistake:
    score = verdict.score
    return Mistake(
        token=token,
        code=verdict.code,
        level=verdict.level,
        verdict_block=verdict.from_number,
        verdict_time=when(verdict.from_s),
        text=sentence(score),
        transaction=score.tx_hash,
        wallet=score.wallet,
        block=score.block_number,
        time=None if score.at_s is None else when(score.at_s),
    )
