"""THE TABLE of what is fenced on the pages, and what runs it: a block that nothing runs fails here."""

from collections.abc import Mapping
from pathlib import PurePath

import pytest

from support.documents import PAGES, PROJECT, blocks

RUN_BY: Mapping[tuple[str, str], str] = {
    ("README.md", "bash"): "docs/test_examples.py",
    ("README.md", "json"): "docs/test_examples.py",
    ("docs/agents.md", "bash"): "docs/test_agents_page.py",
    ("docs/agents.md", "json"): "docs/test_agents_page.py",
    ("docs/agents.md", "markdown"): "docs/test_agents_page.py",
    ("docs/agents.md", "python"): "docs/test_agents_page.py",
    ("docs/agents.md", "toml"): "docs/test_agents_page.py",
    ("docs/alerts.md", "bash"): "channels/test_receivers.py",
    ("docs/alerts.md", "http"): "channels/test_receivers.py",
    ("docs/architecture.md", "text"): "docs/test_house.py",
    ("docs/bag.md", "bash"): "docs/test_examples.py",
    ("docs/boards.md", "bash"): "docs/test_examples.py",
    ("docs/clients.md", "javascript"): "clients/test_page.py",
    ("docs/clients.md", "python"): "clients/test_page.py",
    ("docs/clients.md", "typescript"): "clients/test_page.py",
    ("docs/checks.md", "bash"): "docs/test_examples.py",
    ("docs/holders.md", "bash"): "docs/test_examples.py",
    ("docs/holders.md", "json"): "docs/test_examples.py",
    ("docs/liquidity.md", "bash"): "docs/test_examples.py",
    ("docs/keys.md", "bash"): "docs/test_keys_page.py",
    ("docs/limits.md", "bash"): "docs/test_credits_page.py",
    ("docs/marks.md", "bash"): "docs/test_examples.py",
    ("docs/operations.md", "json"): "docs/test_operations_page.py",
    ("docs/operations.md", "bash"): "docs/test_operations_page.py",
    ("docs/operations.md", "ini"): "db/maintenance/test_point_in_time.py",
    ("docs/operations.md", "sh"): "db/maintenance/test_point_in_time.py",
    ("docs/operations.md", "sql"): "docs/test_operations_page.py",
    ("docs/operations.md", "nginx"): "docs/test_operations_page.py",
    ("docs/operations.md", "caddyfile"): "docs/test_operations_page.py",
    ("docs/operations.md", "haproxy"): "docs/test_operations_page.py",
    ("docs/practice.md", "bash"): "docs/test_examples.py",
    ("docs/practice.md", "json"): "docs/test_examples.py",
    ("docs/rules.md", "bash"): "docs/test_examples.py",
    ("docs/rules.md", "json"): "docs/test_examples.py",
    ("docs/rules.md", "text"): "docs/test_rules_page.py",
    ("docs/rules.md", "rules"): "docs/test_rules_page.py",
    ("docs/rules.md", "refused"): "docs/test_rules_page.py",
    ("docs/terminal.md", "bash"): "docs/test_terminal_page.py",
    ("docs/terminal.md", "python"): "docs/test_terminal_page.py",
    ("docs/terminal.md", "text"): "docs/test_terminal_page.py",
    ("docs/tour.md", "bash"): "docs/test_tour_page.py",
    ("docs/tour.md", "json"): "docs/test_tour_page.py",
    ("docs/tour.md", "text"): "docs/test_tour_page.py",
    ("docs/trade.md", "bash"): "docs/test_trade_page.py",
    ("docs/trade.md", "python"): "docs/test_trade_page.py",
    ("docs/verify.md", "bash"): "docs/test_examples.py",
    ("docs/verify.md", "python"): "docs/test_examples.py",
    ("docs/verdicts.md", "text"): "docs/test_verdicts_page.py",
    ("docs/verify.md", "text"): "docs/test_examples.py",
}
"""A page, and the language of its fences: the test, below tests/, that takes all of them."""
FENCED = sorted({(block.page, block.language) for page in PAGES for block in blocks(page)})


@pytest.mark.parametrize(("page", "language"), FENCED)
def test_every_fenced_block_has_a_test_that_names_its_page_and_language(page: str, language: str) -> None:
    where = [str(block) for block in blocks(page, language)]
    test = RUN_BY.get((page, language))
    assert test, f"nothing runs {', '.join(where)}: let a test take it, and say which in {__name__}.RUN_BY"
    written = (PROJECT / "tests" / test).read_text()
    assert PurePath(page).name in written
    assert language in written


def test_the_table_has_nothing_that_is_gone() -> None:
    assert sorted(RUN_BY) == FENCED


def test_every_fence_is_closed_and_says_its_language() -> None:
    for page in PAGES:
        fences = [line for line in (PROJECT / page).read_text().splitlines() if line.startswith("```")]
        assert len(fences) == 2 * len(blocks(page)), page
        assert all(block.language for block in blocks(page)), page
