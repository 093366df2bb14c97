"""Functions are verbs, and a class has a name of its own."""

import ast
from collections import defaultdict
from collections.abc import Iterator
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


def test_no_two_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path, node in _definitions():
        if isinstance(node, ast.ClassDef):
            places[node.name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
