"""The newest verdicts of tokens, traps among them, and an example of each kind to look at."""

from typing import Literal

import msgspec

from roundtrip.domain.market.exposure import INSIDERS_HIGH_BPS
from roundtrip.domain.market.moving import SELLS, TRAP, TokenChecks
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import Nothing, TokenNamed, present_token, reading, when
from roundtrip.services.support.shown_verdict import SHARED_MS, PageOfRows, ShownVerdict, present_stored
from roundtrip.store.boards import moving
from roundtrip.store.index.tokens import labels_of

MAX_SHOWN = 12
_LOOKED_AT = 400
"""Newest checks that are read: so many that a token that is checked again and again hides no other one."""
_MAX_TOKENS = 60
"""Tokens whose verdicts are read: the rows are the first of them, the examples may be any."""

ExampleKind = Literal["ok", "trap", "warn"]
_KINDS: tuple[ExampleKind, ...] = ("ok", "trap", "warn")


class NewestVerdict(msgspec.Struct, frozen=True, rename="camel"):
    """A token's verdict."""

    token: TokenNamed
    verdict: ShownVerdict


class NewestVerdicts(PageOfRows[NewestVerdict], frozen=True, rename="camel"):
    """The tokens that were checked last: chosen with those that people asked for before others, listed the
    newest check first. ``examples``: the first that sells and whose insiders hold little, the first trap, and
    the first that sells with a warning, as far as there are."""

    examples: list[NewestVerdict]


async def newest_verdicts(ctx: Context, params: Nothing) -> UseCaseAnswer[NewestVerdicts]:
    """The answer. Raises ServiceFull."""
    async with reading(ctx) as (connection, cursor):
        newest = await moving.read_newest(connection, _LOOKED_AT)
        # Each token once, at its newest check: a dict keeps the place of a key that comes again.
        asked = dict.fromkeys(check.token for check in newest if check.asked)
        tokens = list(asked | dict.fromkeys(check.token for check in newest))[:_MAX_TOKENS]
        checks = await moving.read_shown_checks(connection, tokens)
        names = await labels_of(connection, tokens)
    now_s = ctx.now_s()
    rows: list[NewestVerdict] = []
    examples: dict[ExampleKind, NewestVerdict] = {}
    for token in tokens:
        verdict = present_stored(checks[token], now_s)
        if verdict is not None:
            row = NewestVerdict(present_token(names[token]), verdict)
            rows.append(row)
            kind = _kind(verdict)
            # A good example is one whose insiders are known to hold little.
            if kind is not None and (kind != "ok" or _has_low_insiders(checks[token], now_s)):
                examples.setdefault(kind, row)
    shown = sorted(rows[:MAX_SHOWN], key=lambda row: row.verdict.checked_at, reverse=True)
    at = when(cursor.block.timestamp_s)
    answer = NewestVerdicts(
        "", cursor.block.number, at, shown, [examples[kind] for kind in _KINDS if kind in examples]
    )
    return UseCaseAnswer(answer, ttl_ms=SHARED_MS)


def _has_low_insiders(checks: TokenChecks, now_s: float) -> bool:
    insiders_bps = checks.exposure.insiders(now_s)
    return insiders_bps is not None and insiders_bps < INSIDERS_HIGH_BPS


def _kind(verdict: ShownVerdict) -> ExampleKind | None:
    if verdict.code == TRAP:
        return "trap"
    if verdict.code not in SELLS:
        return None
    if verdict.level == "ok":
        return "ok"
    return "warn" if verdict.level == "warn" else None
