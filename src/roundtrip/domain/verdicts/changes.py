"""What changed between the checks of one token."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Change = Literal["code", "level", "loss"]
MIN_LOSS_CHANGE_BPS = 100
"""A smaller difference of the loss is the market's: one trade in the pool moves it."""


@dataclass(frozen=True, slots=True)
class PastVerdict:
    """What one check found. ``loss_bps``: of the round trip; None: not measured. ``is_deep``: the check also
    tried what the owner may call. ``ends_at``: from when on it no longer counts, since its snipe tax has
    ended; None: no end is known."""

    checked_at: datetime
    block: int
    policy_version: str
    code: str
    level: str
    is_deep: bool
    loss_bps: int | None
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class VerdictSpan:
    """Consecutive checks that found the same. ``changed``: how the first of them differs from the span
    before; empty: there is none. ``loss_bps``: the first that was measured. ``loss_before_bps``: the span's
    before; None: not measured."""

    first: PastVerdict
    last: PastVerdict
    checks: int
    loss_bps: int | None
    changed: tuple[Change, ...] = ()
    before: PastVerdict | None = None
    loss_before_bps: int | None = None


def fold_spans(verdicts: Iterable[PastVerdict]) -> list[VerdictSpan]:
    """The spans of verdicts given from the oldest on, the oldest first. A loss that was not measured is no
    change."""
    spans: list[VerdictSpan] = []
    for verdict in verdicts:
        if not spans:
            spans.append(VerdictSpan(verdict, verdict, 1, verdict.loss_bps))
            continue
        span = spans[-1]
        changed = _find_changes(span, verdict)
        if changed:
            spans.append(
                VerdictSpan(verdict, verdict, 1, verdict.loss_bps, changed, span.last, span.loss_bps)
            )
            continue
        loss_bps = verdict.loss_bps if span.loss_bps is None else span.loss_bps
        spans[-1] = VerdictSpan(
            span.first, verdict, span.checks + 1, loss_bps, span.changed, span.before, span.loss_before_bps
        )
    return spans


def _find_changes(span: VerdictSpan, verdict: PastVerdict) -> tuple[Change, ...]:
    changed: list[Change] = []
    if verdict.code != span.first.code:
        changed.append("code")
    if verdict.level != span.first.level:
        changed.append("level")
    loss_bps, loss_before_bps = verdict.loss_bps, span.loss_bps
    if loss_bps is None or loss_before_bps is None:
        return tuple(changed)
    if abs(loss_bps - loss_before_bps) >= MIN_LOSS_CHANGE_BPS:
        changed.append("loss")
    return tuple(changed)
