"""What the history of a token says."""

from dataclasses import replace
from datetime import UTC, datetime

from roundtrip.domain.base.types import Address
from roundtrip.domain.verdicts.changes import PastVerdict
from roundtrip.services.verdicts.history import MAX_CHANGES, CheckHistory, present_history

TOKEN = Address("0x" + "ab" * 20)
OK = PastVerdict(datetime(2026, 11, 1, tzinfo=UTC), 100, "p", "ok", "ok", False, 60)
TRAP = replace(OK, code="cannot_sell", level="danger", loss_bps=None, is_deep=True)
DEAR = replace(OK, code="heavy_fees", level="danger", loss_bps=5060, policy_version="q")


def history(*oldest_first: PastVerdict) -> CheckHistory:
    return present_history(TOKEN, 4663, list(reversed(oldest_first)))


def test_without_a_check_it_says_so() -> None:
    found = history()
    assert (found.text, found.checks, found.changes) == ("No check of this token is stored.", 0, [])


def test_where_nothing_changed_there_is_one_entry() -> None:
    found = history(OK, OK)
    assert found.text == "2 checks were compared: nothing changed."
    assert [(one.changed, one.checks, one.round_trip_loss_bps) for one in found.changes] == [([], 2, 60)]


def test_the_newest_is_first_and_says_what_changed() -> None:
    newest, middle, oldest = history(OK, TRAP, DEAR).changes
    assert oldest.text == "The oldest check that is compared."
    assert middle.text == (
        "The verdict went from ok (ok) to cannot_sell (danger). This check is deep, the one before is not."
    )
    assert newest.text == (
        "The verdict went from cannot_sell (danger) to heavy_fees (danger). The check before is deep, this "
        "one is not. The thresholds changed in between."
    )
    assert (middle.deep, middle.level, middle.round_trip_loss_bps) == (True, "danger", None)
    (dearer, _) = history(OK, replace(OK, loss_bps=560)).changes
    assert dearer.text == "The loss of the round trip went from 0.60 % to 5.60 %."


def test_of_many_changes_the_newest_are_listed() -> None:
    found = history(*([OK, TRAP] * MAX_CHANGES))
    assert len(found.changes) == MAX_CHANGES
    assert found.changes[0].code == "cannot_sell"
    assert found.text == f"{2 * MAX_CHANGES} checks were compared: what they found changed 99 times. " + (
        f"The newest {MAX_CHANGES} are listed."
    )
