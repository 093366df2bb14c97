"""What make installs, and the one sentence that it ends with where it cannot."""

import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


def make(*arguments: str) -> tuple[int, str, list[str]]:
    """The exit code, the output, and the lines of errors without make's own."""
    done = subprocess.run(["/usr/bin/env", "make", *arguments], cwd=PROJECT, capture_output=True, text=True)
    return (
        done.returncode,
        done.stdout,
        [line for line in done.stderr.splitlines() if not line.startswith("make")],
    )


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("", "roundtrip: there is no {python}; install Python 3.11, 3.12 or 3.13, and name it"),
        ("echo 'roundtrip: Python 3.11' >&2; exit 1", "roundtrip: Python 3.11"),
        ("[ $1 = -c ]", "roundtrip: the Python packages could not be installed; check the network"),
    ],
)
def test_what_cannot_be_installed_is_said_in_one_sentence(tmp_path: Path, script: str, sentence: str) -> None:
    python = tmp_path / "python"
    if script:
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    code, _, errors = make(f"VENV={tmp_path}/venv", f"PYTHON={python}", f"{tmp_path}/venv/.runs")
    assert code != 0
    assert [line.startswith(sentence.format(python=python)) for line in errors] == [True]
    assert not (tmp_path / "venv" / ".runs").exists()


@pytest.mark.parametrize(("name", "needs_tests"), [("wheel", False), ("sbom", True)])
def test_a_wheel_needs_none_of_the_tests_packages(tmp_path: Path, name: str, needs_tests: bool) -> None:
    code, planned, _ = make("-n", f"VENV={tmp_path}/venv", "write", f"NAME={name}")
    assert code == 0
    assert ("requirements-tests.lock" in planned) is needs_tests
