"""What counts as something to show, and that every step is written down in full."""

from typing import Any

import pytest

from roundtrip_development.tour.steps import STEPS, TourStep
from roundtrip_development.tour.walk import has_something


@pytest.mark.parametrize(
    ("shows", "answer", "is_shown"),
    [
        ("rows", {"rows": [1]}, True),
        ("rows", {"rows": []}, False),
        ("rows", {"others": [1]}, False),
        ("rows", {"rows": None}, False),
        ("a.b", {"a": {"b": "x"}}, True),
        ("a.b", {"a": {"b": ""}}, False),
        ("a.b", {"a": None}, False),
        ("count", {"count": 0}, True),
    ],
)
def test_a_step_shows_something_or_nothing(shows: str, answer: dict[str, Any], is_shown: bool) -> None:
    assert has_something(TourStep("x", "y", lambda ground: {}, shows), answer) is is_shown


def test_the_tour_has_thirty_six_steps_and_each_says_why() -> None:
    assert len(STEPS) == 36
    assert all(step.why.endswith((".", "?")) and step.shows for step in STEPS)
