"""Which tests ``make test`` runs and which wait for ``make test-slow``, by measured times.

``tests/slow.txt`` names every test function that is slow, with how many of its cases run in ``make test``
all the same: the first ones. It is written from measured times:

    .venv/bin/python -m pytest -n 2 --junitxml=var/tests.xml
    PYTHONPATH=tests .venv/bin/python -m tiers var/tests.xml
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).resolve().parent
LIST = FOLDER / "slow.txt"
FAST_S = 0.45
"""A function whose cases take less in all runs whole in ``make test``."""
FIRST_CASES_S = 0.35
"""Of another, so much of its first cases."""
ONE_CASE_S = 0.55
"""Or one case, where that takes no longer."""
KEPT: Mapping[str, int] = {
    "chain/check/test_proof.py::test_a_lie_is_found_out_and_where": 2,
    "chain/devnet/test_demo.py::test_a_newcomer_gets_five_tokens_that_match_their_stories": 1,
    "db/watch/test_alerts.py::test_whatever_comes_in_which_order_each_fact_is_told_once": 1,
    "chain/jobs/test_chat_checks.py::test_a_check_is_answered_with_the_cards_text_and_picture": 1,
    "docs/test_agents_page.py::test_the_recipe_leads_to_a_verified_trade_or_to_none": 1,
    "docs/test_examples.py::test_a_proof_holds_at_a_node_of_ones_own": 1,
    "docs/test_examples.py::test_a_trade_is_proven_from_the_shell_and_in_python": 1,
    "docs/test_examples.py::test_the_readmes_calls_answer_what_it_shows": 1,
    "docs/test_examples.py::test_what_needs_a_key_answers_what_the_pages_show": 1,
    "docs/test_tour_page.py::test_a_tool_answers_and_has_something_to_show": 0,
    "docs/test_tour_page.py::test_no_secret_is_on_the_page": 0,
    "docs/test_tour_page.py::test_the_page_has_the_call_and_an_answer_of_its_shape": 0,
    "doors/console/test_console.py::test_nobody_else_sends_a_form": 2,
    "doors/server/test_fair_places.py::test_burners_of_one_caller_take_no_answer_from_others": 1,
    "sim/test_alerts.py::test_every_fact_is_told_of_once_whatever_befell_those_that_tell": 1,
    "sim/test_faults.py::test_an_index_is_whole_whatever_befell_it": 1,
    "truth/check/test_composed.py::test_the_verdict_is_what_wallets_meet": 1,
    "truth/check/test_real_geth.py::test_an_honest_token_with_dear_transfers_is_ok": 0,
    "truth/check/test_real_geth.py::test_every_field_of_the_answer_is_the_local_chains": 0,
    "truth/check/test_real_geth.py::test_logs_are_the_local_chains_and_the_head_is_geths": 0,
    "truth/check/test_zoo.py::test_the_verdict_is_what_a_wallet_meets": 4,
}
"""Slow ones of which this many cases run in ``make test``. The tour takes a minute before its first case;
on a machine without a real geth its tests take no time."""


def read_list() -> dict[str, int]:
    """Slow functions, by ``path::name`` below ``tests``, with the number of cases that run all the same."""
    lines = (line.split() for line in LIST.read_text().splitlines())
    return {name: int(count) for count, name in lines}


def function_of(item: pytest.Item) -> str:
    """``path::name`` of a test, without its class and its case."""
    return f"{item.path.relative_to(FOLDER).as_posix()}::{item.name.partition('[')[0]}"


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Marks the cases that ``make test`` leaves out."""
    left = read_list()
    for item in items:
        name = function_of(item)
        if name in left:
            if left[name] <= 0:
                item.add_marker(pytest.mark.slow)
            left[name] -= 1


def measured(paths: Iterable[Path]) -> dict[str, list[float]]:
    """Seconds of every case, by its function, out of JUnit files; of two times of a case the later file's."""
    seconds: dict[str, dict[str, float]] = defaultdict(dict)
    for path in paths:
        for case in ElementTree.parse(path).getroot().iter("testcase"):  # noqa: S314
            parts = case.get("classname", "").split(".")[1:]
            module = next(n for n, part in enumerate(parts) if part.startswith("test_"))
            name = case.get("name", "")
            function = f"{'/'.join(parts[: module + 1])}.py::{name.partition('[')[0]}"
            seconds[function][name] = float(case.get("time", 0))
    return {function: list(cases.values()) for function, cases in seconds.items()}


def cases_kept(seconds: list[float]) -> int | None:
    """How many cases of a function ``make test`` runs; None: all of them."""
    if sum(seconds) <= FAST_S:
        return None
    each_s = sum(seconds) / len(seconds)
    return max(int(FIRST_CASES_S / each_s), 1 if min(seconds) <= ONE_CASE_S else 0)


def main() -> None:
    """Writes the list."""
    seconds = measured(map(Path, sys.argv[1:]))
    kept = {name: cases_kept(took) for name, took in seconds.items()}
    counts = {name: cases for name, cases in kept.items() if cases is not None} | dict(KEPT)
    LIST.write_text("".join(f"{count} {name}\n" for name, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
