"""Which token the front page and the documentation take for an example."""

import pytest

from roundtrip.console.pages.boards import find_good
from roundtrip.services.boards.newest_verdicts import NewestVerdicts
from support.answers import build_answer
from unit.venues.network import address


@pytest.mark.parametrize(
    ("levels", "place"),
    [(["danger", "ok", "ok"], 1), (["ok", "warn"], 0), (["danger", "warn"], None), ([], None)],
)
def test_the_good_example_is_the_first_that_is_ok(levels: list[str], place: int | None) -> None:
    examples = [
        {"token": {"address": address(number)}, "verdict": {"level": level}}
        for number, level in enumerate(levels)
    ]
    newest = build_answer(NewestVerdicts, {"examples": examples})
    assert find_good(newest) == (None if place is None else address(place))


def test_without_verdicts_there_is_no_good_example() -> None:
    assert find_good(None) is None
