"""Functions are verbs, and a class has a name of its own."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
TESTS = PROJECT / "tests"
CLASS = re.compile(r"^ *class (\w+)[(:]", re.MULTILINE)
FOLDERS = tuple(PROJECT / folder for folder in ("src", "verify/src", "development/src"))
IRREGULAR = frozenset(
    [
        "begun",
        "bought",
        "chosen",
        "come",
        "drawn",
        "found",
        "given",
        "gone",
        "grown",
        "held",
        "kept",
        "known",
        "left",
        "lost",
        "made",
        "met",
        "paid",
        "said",
        "seen",
        "shown",
        "sold",
        "spoken",
        "taken",
        "told",
        "written",
    ]
)
NO_PARTICIPLES = frozenset({"feed", "need", "seed", "speed"})


@cache
def _definitions() -> tuple[tuple[str, ast.AST], ...]:
    """Every function and class of the packages, with its file."""
    return tuple(
        (path.relative_to(PROJECT).as_posix(), node)
        for folder in FOLDERS
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    )


def is_participle(name: str) -> bool:
    word = name.strip("_")
    regular = word.endswith("ed") and len(word) > 4 and word not in NO_PARTICIPLES
    return "_" not in word and (word in IRREGULAR or regular)


def _functions() -> Iterator[tuple[str, str]]:
    for path, node in _definitions():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield path, node.name


def test_no_function_is_named_by_a_bare_participle() -> None:
    assert [(path, name) for path, name in _functions() if is_participle(name)] == []


def _find_shared_names(names: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for path, name in names:
        places[name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_no_two_classes_share_a_name() -> None:
    classes = ((path, node.name) for path, node in _definitions() if isinstance(node, ast.ClassDef))
    assert _find_shared_names(classes) == {}


def test_no_two_classes_of_tests_share_a_name() -> None:
    files = (path for path in TESTS.rglob("*.py") if "node_modules" not in path.parts)
    # To parse all tests takes seconds.
    classes = ((path.name, name) for path in files for name in CLASS.findall(path.read_text()))
    assert _find_shared_names(classes) == {}
