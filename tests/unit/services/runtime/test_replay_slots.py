"""How many rules are replayed at once."""

import contextlib

import pytest

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.services.runtime.context import ReplaySlots


def test_an_account_tries_one_rule_at_once() -> None:
    replays = ReplaySlots(most=5)
    with replays.hold_slot(1):
        with pytest.raises(ServiceFull, match="Another rule of yours"), replays.hold_slot(1):
            pytest.fail("it went on")
        with replays.hold_slot(2):
            pass
    with replays.hold_slot(1):
        pass


def test_of_a_process_some_and_no_more() -> None:
    replays = ReplaySlots(most=2)
    with replays.hold_slot(1):
        with replays.hold_slot(2), pytest.raises(ServiceFull, match="Too many rules"), replays.hold_slot(3):
            pytest.fail("it went on")
        with replays.hold_slot(3):
            pass


def test_one_that_failed_has_left() -> None:
    replays = ReplaySlots(most=1)
    with contextlib.suppress(ZeroDivisionError), replays.hold_slot(1):
        raise ZeroDivisionError
    with replays.hold_slot(1):
        pass
