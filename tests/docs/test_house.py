"""docs/architecture.md, and what other pages name of the house: folders, modules and what stands in them are
there, and the floors are those that are held."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from support.documents import PAGES, PROJECT, Part, blocks, spans, text_of
from unit.test_floors import MAY_IMPORT

PAGE = "docs/architecture.md"
PACKAGE = PROJECT / "src" / "roundtrip"
FLOORS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
MODULE = re.compile(
    rf"(?P<module>(?:{'|'.join(FLOORS)})/[\w/]+?)(?:\.py|\.(?P<name>[A-Za-z]\w*(?:\.\w+)?)(?:\(.*\))?)?"
)
WAYS = ("one check", "a block", "a practice buy, over MCP")


@cache
def defined(path: Path) -> frozenset[str]:
    """What a module names itself, and what its classes do."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one.name}" for one in ast.walk(node) if isinstance(one, ast.FunctionDef)}
            found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.AsyncFunctionDef)}
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {one.id for one in targets if isinstance(one, ast.Name)}
    return frozenset(found)


NAMED = [span for page in PAGES for span in spans(page) if MODULE.fullmatch(span.text)]


@pytest.mark.parametrize("span", NAMED, ids=lambda span: f"{span}-{span.text}")
def test_a_module_that_a_page_names_is_there(span: Part) -> None:
    found = MODULE.fullmatch(span.text)
    assert found is not None
    path = PACKAGE / f"{found['module']}.py"
    assert path.exists() or (PACKAGE / found["module"]).is_dir(), span
    assert found["name"] is None or found["name"] in defined(path), span


def test_a_file_that_a_page_names_is_there() -> None:
    named = [
        span
        for page in PAGES
        for span in spans(page)
        if re.fullmatch(r"(?:src|tests|docs|bench|contracts|tools|\.ci)/[\w./-]+", span.text)
    ]
    assert len(named) > 20
    assert [str(span) for span in named if not (PROJECT / span.text).exists()] == []


def test_the_tree_has_every_floor_and_nothing_else() -> None:
    (tree,) = blocks(PAGE, "text")
    shown = re.findall(r"^  ([\w.]+)/?  +\S", tree.text, re.MULTILINE)
    commands = {path.name for path in PACKAGE.glob("*_commands.py")}
    there = {*FLOORS, *(path.name for path in PACKAGE.glob("*.py"))} - commands
    assert sorted(shown) == sorted(there - {"__init__.py", "__main__.py"})


def test_the_line_of_floors_is_what_is_held() -> None:
    (line,) = [span.text for span in spans(PAGE) if span.text.startswith("domain <- ")]
    below: set[str] = set()
    for group in line.split(" <- "):
        names = set(re.findall(r"[\w*]+", group))
        for floor in {one for one in MAY_IMPORT for name in names if Path(one).match(name)}:
            of_the_line = MAY_IMPORT[floor] & set(re.findall(r"\w+", line))
            assert of_the_line <= below, f"{floor} imports {of_the_line - below}"
        below |= names


@pytest.mark.parametrize("way", WAYS)
def test_each_step_of_a_way_says_where_it_is_done(way: str) -> None:
    section = text_of(PAGE).partition(f"## The way of {way}\n")[2].partition("\n## ")[0]
    steps = re.findall(r"(?m)^\d\. (?:.*\n)(?:   .*\n)*", section)
    assert len(steps) >= 6
    for step in steps:
        assert any(MODULE.fullmatch(code) for code in re.findall("`([^`]+)`", step)), step


def test_every_folder_of_tests_is_told_of() -> None:
    text = text_of("CONTRIBUTING.md")
    there = {
        path.name for path in (PROJECT / "tests").iterdir() if path.is_dir() and path.name[0] not in "._"
    }
    assert {name for name in there if f"`tests/{name}" not in text} == set()
