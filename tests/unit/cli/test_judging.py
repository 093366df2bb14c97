"""Commands whose exit code is a verdict: nothing else may exit with 0, 1 or 2."""

import argparse
import subprocess
import sys

import pytest

import roundtrip.__main__
from roundtrip.cli import arguments, check, judging
from roundtrip.cli.commands import COMMANDS
from roundtrip.cli.judging import MODULES, worst_exit
from roundtrip.cli.main import command
from roundtrip.config.networks import ROBINHOOD
from roundtrip.domain.base.errors import CallerFault

TOKEN = "0x" + "1" * 40
NOWHERE = ("--rpc", "http://127.0.0.1:1")


def test_the_version_is_printed() -> None:
    asked = [sys.executable, "-m", "roundtrip", "--version"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout == f"roundtrip {roundtrip.__version__}\n"


def test_the_entry_knows_every_such_command() -> None:
    assert MODULES.keys() == roundtrip.__main__._JUDGING
    assert {name for name, entry in COMMANDS.items() if entry.module == "judging"} == MODULES.keys()


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in MODULES])
def test_help_says_of_a_command_what_it_says_of_itself(name: str) -> None:
    own = (command(name).help or "").partition("\n\n")[0]
    assert " ".join(own.split()) == COMMANDS[name].line


@pytest.mark.parametrize(
    ("levels", "code"),
    [
        (["ok"], 0), (["ok", "warn"], 1), (["danger", "ok"], 2), (["warn", "unknown"], 3),
        (["unknown", "danger"], 2), ([], 3),
    ],
)  # fmt: skip
def test_the_worst_verdict_decides(levels: list[str], code: int) -> None:
    assert worst_exit(levels) == code


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"], ["check", "0x12"], ["check", TOKEN, "--amount"], ["check", TOKEN, "--nothing"],
        ["check", TOKEN, "--network", "/nowhere"], ["check", TOKEN, "--amount", "11", *NOWHERE],
        ["check", TOKEN, "--rpc", "nowhere"], ["simulate", *NOWHERE],
        ["simulate", "--from", TOKEN, *NOWHERE], ["simulate", "--from", "0x12", "--to", TOKEN, *NOWHERE],
        ["simulate", "--from", TOKEN, "--calls", "[", *NOWHERE],
        ["simulate", "--from", TOKEN, "--calls", "3", *NOWHERE],
        ["simulate", "--from", TOKEN, "--calls", '[{"to": "0x12", "gas": "x"}]', *NOWHERE],
        ["prepare", "hold", TOKEN, "--from", TOKEN, "--amount", "1", *NOWHERE],
        ["prepare", "buy", "0x12", "--from", TOKEN, "--amount", "1", *NOWHERE],
        ["prepare", "buy", TOKEN, "--from", TOKEN, "--amount", "x", *NOWHERE],
        ["prepare", "sell", TOKEN, "--from", TOKEN, "--amount", "1", "--slippage-bps", "9999", *NOWHERE],
        ["holders"],
    ],
)  # fmt: skip
def test_wrong_arguments_are_no_verdict(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    try:
        code = judging.run(arguments[0], arguments[1:])
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else -1
    assert code == 64
    # The library's own words say nothing to a caller.
    assert "Expected `" not in capfd.readouterr().err


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError, RuntimeError, RecursionError])
def test_a_failure_is_no_verdict(failure: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(given: argparse.Namespace) -> int:
        raise failure

    monkeypatch.setattr(check, "run_check", fail)
    assert judging.run("check", [TOKEN]) == 3


def test_a_node_that_is_not_there_is_no_verdict() -> None:
    assert judging.run("check", [TOKEN, *NOWHERE]) == 3


def test_the_node_is_the_given_one_or_else_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUNDTRIP_RPC_URL", "http://127.0.0.1:2")
    asked = [arguments.read_check().parse_args([TOKEN, *more]) for more in ((), NOWHERE)]
    assert [judging.node_of(given) for given in asked] == [
        ("http://127.0.0.1:2", ROBINHOOD), ("http://127.0.0.1:1", ROBINHOOD)
    ]  # fmt: skip


def test_several_wrong_checks_are_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    assert judging.run("check", [TOKEN, TOKEN, TOKEN, "--amount", "11", *NOWHERE]) == 64
    assert capfd.readouterr().err == "roundtrip: amount must be between 0.001 and 10 eth.\n"


def test_addresses_are_read_from_the_input_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", [f" {TOKEN}\n", "\n", "0x" + "A" * 40])
    assert list(check._read_addresses(["-", TOKEN], 4663)) == [TOKEN, "0x" + "a" * 40, TOKEN]


@pytest.mark.parametrize(
    ("given", "code", "lines"), [(f"0x12\n{TOKEN}\n", 3, 2), ("\n", 64, 0)], ids=["a wrong line", "nothing"]
)
def test_a_wrong_line_of_the_input_gets_a_line_of_its_own(given: str, code: int, lines: int) -> None:
    asked = [sys.executable, "-m", "roundtrip", "check", "-", *NOWHERE]
    done = subprocess.run(asked, input=given, capture_output=True, text=True)
    assert (done.returncode, len(done.stdout.splitlines())) == (code, lines)
    if not lines:
        assert done.stderr == "roundtrip: Standard input has no address.\n"
        return
    first, second = done.stdout.splitlines()
    assert first.startswith("unknown 0x12  '0x12': ")
    assert first.endswith(" This is not a pass.")
    assert second.startswith(f"unknown {TOKEN}  ")


def test_an_address_is_taken_out_of_what_is_pasted() -> None:
    pasted = [f"https://scan.example/token/{TOKEN}", f"eip155:4663:{TOKEN}", f'"{TOKEN}"']
    assert list(check._read_addresses(pasted, 4663)) == [TOKEN] * 3
    for text in (f"eip155:1:{TOKEN}", f"{TOKEN} 0x{'2' * 40}", "0x" + "1" * 64):
        with pytest.raises(CallerFault):
            list(check._read_addresses([text], 4663))
