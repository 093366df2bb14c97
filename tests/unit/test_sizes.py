"""No room of the house is too large to be read at once, and each has a name that tells."""

import ast
import os
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
MAX_FILE_LINES, MAX_FUNCTION_LINES = 600, 60
PACKAGES = ("src", "verify", "development")
FOLDERS = (*PACKAGES, "bench", "tests")
VAGUE = re.compile(r"(^|_)(utils?|helpers?|misc|common|stuff)(_|$)")


def files(*folders: str) -> list[Path]:
    """Every module in these, of ours: what a browser's library brings along is not walked through."""
    found = []
    for folder in folders:
        for at, inner, names in os.walk(PROJECT / folder):
            inner[:] = [name for name in inner if name != "node_modules"]
            found += [Path(at, name) for name in names if name.endswith(".py")]
    return sorted(found)


def too_long(source: str) -> list[str]:
    """Functions that are, with their lines."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                found.append(f"{node.name}: {lines}")
    return found


def test_no_file_of_a_package_is_too_long_to_be_read_at_once() -> None:
    lines = {
        path.relative_to(PROJECT).as_posix(): len(path.read_text().splitlines()) for path in files(*PACKAGES)
    }
    assert {name: count for name, count in lines.items() if count > MAX_FILE_LINES} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_function_is_too_long_to_be_read_at_once(folder: str) -> None:
    found = {path: too_long(path.read_text()) for path in files(folder)}
    assert {path: functions for path, functions in found.items() if functions} == {}


def test_a_function_that_is_too_long_is_seen() -> None:
    body = "    x = 1\n" * MAX_FUNCTION_LINES
    assert too_long(f"def short():\n{body}"[: -len("    x = 1\n")]) == []
    assert too_long(f"class A:\n def long():\n{body}".replace("    x", "  x")) == ["long: 61"]


def test_a_module_has_a_name_that_tells() -> None:
    assert [path for path in files(*FOLDERS) if VAGUE.search(path.stem)] == []
    assert all(VAGUE.search(name) for name in ("utils", "http_helpers", "misc", "common"))
