"""The table of kinds, and what a failure looks like to people."""

import re
from pathlib import Path

import pytest

from roundtrip.domain.base.errors import CallerFault
from roundtrip.jobs.engine.loop import describe_error
from roundtrip.jobs.engine.worker import error_location
from roundtrip.jobs.registry import KINDS

PROJECT = Path(__file__).resolve().parents[3]


def test_the_documentation_has_a_row_for_every_kind() -> None:
    page = (PROJECT / "docs" / "operations.md").read_text()
    section = page.partition("## Jobs")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(KINDS)


def test_every_kind_has_a_test_on_the_local_chain() -> None:
    files = (
        *("jobs/test_jobs", "holders/test_origin_job", "boards/test_moving", "boards/test_winners"),
        *("holders/test_holders_job", "portfolio/test_bag"),
    )
    tests = "".join((PROJECT / "tests" / "chain" / f"{name}.py").read_text() for name in files)
    without_chain = {"calls", "deliver", "failed_sell", "names", "scorecard", "unlocks"}
    # In tests/db: test_flags, test_deliver, test_marks, test_unlocks; both of the scorecard by
    # tests/support/scoring.py.
    assert {name for name in KINDS if f'"{name}"' not in tests} == without_chain


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_bounded(name: str) -> None:
    kind = KINDS[name]
    assert kind.lease_s > 0
    assert kind.timeout_s >= kind.lease_s
    assert kind.max_running >= 1
    assert kind.most_tries >= 1
    assert all(wait_s > 0 for wait_s in kind.retry_waits_s)
    assert kind.handler.__module__.startswith("roundtrip.jobs.kinds.")


def test_waits_grow_and_are_spread() -> None:
    kind = KINDS["token"]
    assert [kind.wait_s(tries, 0.5) for tries in (1, 2, 3, 4, 5, 6, 28)] == [
        5,
        30,
        120,
        600,
        3600,
        3600,
        3600,
    ]
    assert [kind.wait_s(1, drawn) for drawn in (0.0, 1.0)] == [3.75, 6.25]


def test_a_failure_is_told_without_strangers_tricks() -> None:
    assert (
        describe_error(CallerFault("bad_input", "no\u202e \u0007such\nthing")) == "CallerFault: no such thing"
    )
    assert len(describe_error(ValueError("x" * 1000))) == 200
    assert describe_error(KeyError()) == "KeyError:"


def test_a_failure_is_told_with_its_place() -> None:
    with pytest.raises(ValueError, match="no") as raised:
        raise ValueError("no")
    assert re.fullmatch(r"test_registry\.py:\d+", error_location(raised.value))
    assert error_location(ValueError()) == "nowhere"
