"""A venue is one file: only ``venues`` and ``domain/base/venue.py`` ask for a kind of venue by its name."""

import ast
from pathlib import Path
from typing import get_args

import pytest

from roundtrip.domain.base.venue import FIRST_VENUE, TRAITS, VenueKind
from roundtrip.venues import BY_KIND, SWAPS

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "roundtrip"
KINDS = frozenset(get_args(VenueKind))
ALLOWED = ("venues/", "domain/base/venue.py")


def kinds_in(source: str) -> list[str]:
    """Lines that name a kind, also inside of longer text."""
    texts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    strings = [(node.lineno, node.value) for node in texts if isinstance(node.value, str)]
    return [f"{line}: {kind}" for line, text in strings for kind in sorted(KINDS) if kind in text.split("'")]


def test_only_venues_name_kinds_of_venues() -> None:
    names = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    found = {
        name: lines
        for name, path in names.items()
        if not name.startswith(ALLOWED) and (lines := kinds_in(path.read_text()))
    }
    assert found == {}


@pytest.mark.parametrize("source", ['kind == "amm_v3"', "sql = \"kind = 'launchpad_pool'\""])
def test_a_named_kind_is_found(source: str) -> None:
    assert kinds_in(source) != []


def test_every_kind_has_traits_a_file_and_swaps() -> None:
    assert TRAITS.keys() == BY_KIND.keys() == SWAPS.keys() == KINDS
    assert set(FIRST_VENUE.values()) <= KINDS
