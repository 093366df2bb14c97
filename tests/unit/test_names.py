"""Functions are verbs, and a class has a name of its own."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
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


def _read_definitions(folder: Path) -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(folder.rglob("*.py")):
        if "node_modules" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    yield path.relative_to(PROJECT).as_posix(), node


@cache
def _definitions() -> tuple[tuple[str, ast.AST], ...]:
    """Every function and class of the packages, with its file."""
    return tuple(found for folder in FOLDERS for found in _read_definitions(folder))


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


def _find_shared_names(definitions: Iterable[tuple[str, ast.AST]]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for path, node in definitions:
        if isinstance(node, ast.ClassDef):
            places[node.name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_no_two_classes_share_a_name() -> None:
    assert _find_shared_names(_definitions()) == {}


def test_no_two_classes_of_tests_share_a_name() -> None:
    assert _find_shared_names(_read_definitions(PROJECT / "tests")) == {}
