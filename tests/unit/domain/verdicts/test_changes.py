"""What counts as a change between checks of one token."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from roundtrip.domain.verdicts.changes import MIN_LOSS_CHANGE_BPS, PastVerdict, fold_spans

START = datetime(2026, 11, 1, tzinfo=UTC)
OK = PastVerdict(START, 100, "p", "ok", "ok", False, 60)
TRAP = replace(OK, code="cannot_sell", level="danger", loss_bps=None)


def series(*verdicts: PastVerdict) -> list[PastVerdict]:
    """The verdicts, an hour and ten blocks apart."""
    return [
        replace(verdict, checked_at=START + timedelta(hours=number), block=100 + 10 * number)
        for number, verdict in enumerate(verdicts)
    ]


def test_without_a_check_there_is_no_span() -> None:
    assert fold_spans([]) == []


def test_equal_checks_are_one_span() -> None:
    (span,) = fold_spans(series(OK, OK, OK))
    assert (span.checks, span.first.block, span.last.block, span.changed) == (3, 100, 120, ())


def test_each_change_says_what_changed() -> None:
    spans = fold_spans(series(OK, TRAP, TRAP, replace(OK, level="warn"), OK))
    assert [(span.changed, span.checks) for span in spans] == [
        ((), 1), (("code", "level"), 1 + 1), (("code", "level"), 1), (("level",), 1)
    ]  # fmt: skip
    assert spans[1].before == spans[0].last


def test_a_loss_changes_by_its_least_step_even_in_small_ones() -> None:
    losses = [60, 60 + MIN_LOSS_CHANGE_BPS - 1, 60 + MIN_LOSS_CHANGE_BPS, 60 + MIN_LOSS_CHANGE_BPS + 1]
    spans = fold_spans(series(*(replace(OK, loss_bps=loss) for loss in losses)))
    assert [(span.changed, span.checks, span.loss_bps) for span in spans] == [
        ((), 2, 60), (("loss",), 2, 60 + MIN_LOSS_CHANGE_BPS)
    ]  # fmt: skip
    assert spans[1].loss_before_bps == 60


def test_a_loss_that_was_not_measured_is_no_change() -> None:
    unknown = replace(OK, loss_bps=None)
    (span,) = fold_spans(series(unknown, OK, unknown, OK))
    assert (span.loss_bps, span.checks) == (60, 4)
    assert len(fold_spans(series(unknown, OK, replace(OK, loss_bps=5000)))) == 2
