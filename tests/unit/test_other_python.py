"""Which Python the gate takes beside its own: stand-ins for interpreters, and for make."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
INACTIVE = 'echo "pyenv: $0: command not found" >&2; exit 127'


def stub(path: Path, does: str) -> Path:
    """A program of the shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return path


def interpreter(path: Path, version: str) -> Path:
    """Answers what the script asks an interpreter, as one of that version does."""
    minor = version.rpartition(".")[0]
    return stub(
        path,
        f'case "$*" in --version) echo Python {version};; *"!= \'{minor}\'"*) exit 0;;'
        f" *print*) echo {minor};; *) exit 1;; esac",
    )


class Checkout:
    """One whose own Python is a 3.11, with nothing on its path but the shell's tools."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path, self.pyenv = folder / "path", folder / "pyenv"
        (folder / ".ci").mkdir()
        shutil.copy(PROJECT / ".ci/test-python", folder / ".ci/test-python")
        interpreter(folder / ".venv/bin/python", "3.11.7")
        stub(self.path / "make", 'for given in "$@"; do echo "make: $given"; done')
        for tool in ("bash", "sh", "env", "dirname", "sort"):
            (self.path / tool).symlink_to(str(shutil.which(tool)))

    def run(self, *version: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.path), "HOME": str(self.folder), "PYENV_ROOT": str(self.pyenv)}
        return subprocess.run(
            [self.folder / ".ci/test-python", *version],
            env=environment,
            capture_output=True,
            text=True,
            timeout=20,
        )


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_where_there_is_no_other_python_that_is_said_and_no_failure(checkout: Checkout) -> None:
    interpreter(checkout.path / "python3.11", "3.11.7")
    stub(checkout.path / "python3.13", INACTIVE)
    done = checkout.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "no other supported Python (3.13 3.12 3.11) is found beside 3.11: its tests are all there is\n"
    )


def test_one_that_is_asked_for_has_to_be_there(checkout: Checkout) -> None:
    done = checkout.run("3.12")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no Python 3.12 is found here\n")


def test_a_shim_that_does_not_run_is_passed_by_for_what_it_stands_for(checkout: Checkout) -> None:
    stub(checkout.path / "python3.13", INACTIVE)
    interpreter(checkout.pyenv / "versions/3.13.0/bin/python3.13", "3.13.0")
    newest = interpreter(checkout.pyenv / "versions/3.13.11/bin/python3.13", "3.13.11")
    interpreter(checkout.path / "python3.12", "3.12.1")
    done = checkout.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "unit and store tests on Python 3.13.11",
        "make: --no-print-directory",
        "make: VENV=.venv-3.13",
        f"make: PYTHON={newest}",
        "make: TEST=tests/unit tests/db --ignore-glob=*_model.py --ignore-glob=*_properties.py",
        "make: test",
        "unit and store tests passed on Python 3.13.11",
    ]


def test_the_named_version_is_taken_and_an_impostor_is_not(checkout: Checkout) -> None:
    interpreter(checkout.path / "python3.13", "3.13.0")
    interpreter(checkout.path / "python3.12", "3.10.2")
    right = interpreter(checkout.pyenv / "versions/3.12.1/bin/python3.12", "3.12.1")
    assert f"make: PYTHON={right}" in checkout.run("3.12").stdout


def test_tests_that_fail_there_fail_it(checkout: Checkout) -> None:
    interpreter(checkout.path / "python3.13", "3.13.0")
    stub(checkout.path / "make", "exit 2")
    done = checkout.run()
    assert (done.returncode, done.stdout) == (2, "unit and store tests on Python 3.13.0\n")


def test_the_gate_runs_it() -> None:
    assert ".ci/test-python\n" in (PROJECT / ".ci/run").read_text()
    assert os.access(PROJECT / ".ci/test-python", os.X_OK)
