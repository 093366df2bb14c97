"""The word of a simulation: what is allowed comes before what is moved."""

from typing import Any

import pytest

from roundtrip.console.pages.trade import simulation_word


@pytest.mark.parametrize(
    ("level", "unlimited", "sells", "said"),
    [
        ("ok", None, False, ("unknown", "Goes through")),
        ("warn", None, False, ("warn", "Goes through")),
        ("ok", False, False, ("warn", "Allows a spender")),
        ("ok", True, False, ("danger", "Allows everything")),
        ("ok", True, True, ("danger", "Allows everything")),
        ("danger", True, True, ("danger", "Very high fees")),
        ("unknown", None, False, ("unknown", "Not known")),
    ],
)
def test_what_is_allowed_is_said_before_what_is_moved(
    level: str, unlimited: bool | None, sells: bool, said: tuple[str, str]
) -> None:
    answer: dict[str, Any] = {
        "verdict": {"level": level, "code": "heavy_fees"},
        "approvals": [] if unlimited is None else [{"unlimited": unlimited}],
        "sellBack": {} if sells else None,
    }
    assert simulation_word(answer) == said


def test_what_sells_back_has_the_verdicts_word() -> None:
    verdict = {"level": "warn", "code": "high_fees"}
    level, word = simulation_word({"verdict": verdict, "approvals": [], "sellBack": {}})
    assert level == "warn"
    assert word != "Goes through"
