"""Lists that exist in two places agree: settings, commands, venues, boards."""

import re
from importlib import import_module
from pathlib import Path
from typing import get_args

from roundtrip import venues
from roundtrip.api.operations import boards
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.cli.commands import COMMANDS
from roundtrip.config.settings import Settings
from roundtrip.console.pages.boards import BOARDS as SHOWN
from roundtrip.domain.base.venue import VenueKind

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "src" / "roundtrip"
OPERATIONS_PAGE = (PROJECT / "docs" / "operations.md").read_text()
TABLE_OF = {
    "plan_buy": venues.VENUES,
    "listings": venues.LISTINGS,
    "decoders": venues.DECODERS,
    "launch_calls": venues.LAUNCHPADS,
}
"""By a function that a venue's file may have: the table that must list the file."""


def test_every_setting_is_documented_and_every_documented_one_is_read() -> None:
    named = set(re.findall(r"`ROUNDTRIP_([A-Z0-9_]+)", OPERATIONS_PAGE))
    assert named == {name.upper() for name in Settings.model_fields}


def test_every_command_is_documented() -> None:
    pages = [path.read_text() for path in (*(PROJECT / "docs").glob("*.md"), PROJECT / "README.md")]
    assert [name for name in COMMANDS if not any(f"roundtrip {name}" in page for page in pages)] == []


def test_every_kind_of_venue_has_its_file() -> None:
    assert venues.BY_KIND.keys() == set(get_args(VenueKind))
    assert [file.KIND for file in venues.VENUES] == [
        file.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
        for file in venues.VENUES
    ]


def test_a_file_of_a_venue_is_in_the_table_of_what_it_offers() -> None:
    names = {path.stem for path in (PACKAGE / "venues").glob("*.py")} - {"__init__", "base"}
    files = [import_module(f"roundtrip.venues.{name}") for name in names]
    for offered, table in TABLE_OF.items():
        assert {file.__name__ for file in files if hasattr(file, offered)} == {
            file.__name__  # type: ignore[attr-defined]
            for file in table
        }, offered


def test_every_board_has_its_tool_its_page_and_its_template() -> None:
    of_tokens_and_wallets = {operation.name for operation in boards.BOARDS} - {"chain_vitals"}
    assert of_tokens_and_wallets <= {board.tool for board in SHOWN}
    # The newest verdicts are a page only: programs follow the stream of verdicts.
    assert {board.tool for board in SHOWN} - {"newest_verdicts"} <= {row.name for row in OPERATIONS}
    templates = PACKAGE / "console" / "templates"
    assert [board.tool for board in SHOWN if not (templates / board.template).is_file()] == []
