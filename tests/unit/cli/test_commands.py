"""The list of commands, as help prints it."""

import subprocess
import sys

import pytest

from roundtrip.cli.commands import COMMANDS, JUDGING, format_help, read_help


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_help_lists_every_command_once(columns: int) -> None:
    lines = format_help(columns).splitlines()
    assert [line.split()[0] for line in lines if line[:2] == "  " and line[2] != " "] == list(COMMANDS)
    assert max(map(len, lines)) <= max(columns, 60)


def test_help_of_an_installation_without_the_extras_lists_what_it_can_run() -> None:
    program = (
        "import importlib.util, sys; find = importlib.util.find_spec; "
        "importlib.util.find_spec = lambda name: None if name == 'uvicorn' else find(name); "
        "from roundtrip.cli.commands import format_help; print(format_help(100))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "\n  check " in done.stdout
    assert "\n  serve " not in done.stdout
    assert "The service and its database (not installed): serve, sync," in done.stdout
    assert "-py3-none-any.whl[server]'." in " ".join(done.stdout.split())


@pytest.mark.parametrize(("arguments", "code"), [([], 64), (["-h"], 0), (["--help"], 0)])
def test_a_call_without_a_command_is_wrong_usage(arguments: list[str], code: int) -> None:
    done = subprocess.run([sys.executable, "-m", "roundtrip", *arguments], capture_output=True, text=True)
    assert (done.returncode, "Over a node alone:" in (done.stdout or done.stderr)) == (code, True)


@pytest.mark.parametrize("columns", [79, 80])
def test_help_is_written_for_every_command_and_for_terminals_that_it_fits(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    written = [name for name, entry in COMMANDS.items() if entry.module != JUDGING]
    assert [name for name in COMMANDS if read_help([name])] == (written if columns == 80 else [])
    assert read_help(["frobnicate"]) is None
    for words in (*([name] for name in written), ["keys", "revoke"]):
        assert max(map(len, (read_help(words) or "").splitlines()), default=0) <= columns
