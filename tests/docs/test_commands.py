"""Commands, make's targets, settings and addresses, wherever a page writes one: they are there, take what
they are given, and something runs them."""

import re
import shlex
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import pytest
from typer.core import TyperGroup, TyperOption

from roundtrip.api.http.app import documents
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.server.drain import READY
from roundtrip.cli import arguments
from roundtrip.cli.commands import COMMANDS
from roundtrip.cli.judging import MODULES
from roundtrip.cli.main import command
from roundtrip.config.networks import ROBINHOOD
from roundtrip.config.settings import Settings
from roundtrip.console import routes
from support.documents import PAGES, PROJECT, WRITTEN, Part, lines, prose, spans

RUN_BY: Mapping[str, str] = {
    "check": "chain/check/test_over_a_node.py",
    "simulate": "chain/check/test_over_a_node.py",
    "prepare": "chain/check/test_over_a_node.py",
    "holders": "chain/check/test_over_a_node.py",
    "demo": "chain/devnet/test_demo.py",
    "devnet": "chain/devnet/test_devnet.py",
    "tour": "docs/test_tour_page.py",
    "serve": "doors/server/test_processes.py",
    "sync": "docs/test_operations_page.py",
    "rebuild": "docs/test_operations_page.py",
    "forget": "docs/test_operations_page.py",
    "origin": "docs/test_operations_page.py",
    "keys list": "docs/test_operations_page.py",
    "keys revoke": "db/accounts/test_key_commands.py",
    "deliveries list": "docs/test_operations_page.py",
    "deliveries resend": "db/delivery/test_delivery_commands.py",
    "backup": "db/maintenance/test_backup.py",
    "restore": "db/maintenance/test_backup.py",
    "work": "doors/server/test_processes.py",
    "migrate": "docs/test_operations_page.py",
    "drain": "doors/server/test_ready.py",
    "doctor": "docs/test_operations_page.py",
    "verify": "docs/test_examples.py",
    "verify-trade": "docs/test_examples.py",
    "publish": "unit/api/documents/test_tool_schemas.py",
}
"""Every command: the test, below tests/, that has it do what it does."""
FILLED: Mapping[str, str] = {
    "N": "2",
    "CHANNEL": "7",
    "ID": "4711",
    "START_OR_ID": "rt_4fG7a",
    "WALLET": "0x" + "1" * 40,
    "ADDRESS": "0x" + "1" * 40,
    "FILE": "proof.json",
    "URL": "http://127.0.0.1:8545",
}
"""What stands for somebody's own: an example of it."""
UNTRIED = frozenset({"help"})
"""Targets that say by their name what they do."""
OF_THE_MACHINE = frozenset({"etc", "opt", "usr", "dev", "run", "tmp", "proc"})
"""Where a path of somebody's machine begins, and no address of ours."""
CONSOLE = (*routes.PAGES, *routes.PICTURES)
_CONSOLE_PATHS = {page.path for page in CONSOLE}
_PATHS = {operation.path for operation in OPERATIONS if operation.path} | documents().keys() | _CONSOLE_PATHS
PATHS = {*_PATHS, "/mcp", "/metrics", READY}
METHODS = {
    *((operation.method, operation.path) for operation in OPERATIONS),
    *((page.method, page.path) for page in CONSOLE),
    *(("GET", path) for path in documents()),
    ("POST", "/mcp"),
    ("GET", "/metrics"),
    ("GET", READY),
}

WRITTEN_BY_HAND = [page for page in PAGES if page not in WRITTEN]
IN_LINE = [span for page in WRITTEN_BY_HAND for span in spans(page)]
FENCED = [line for page in PAGES for line in lines(page, "bash") + lines(page, "text")]


def words(part: Part) -> list[str]:
    """A command's words, without what is set before it and where its output goes."""
    try:
        found = shlex.split(part.text)
    except ValueError:
        return []
    while found and re.match(r"[A-Z_]+=", found[0]):
        found = found[1:]
    cut = next((n for n, word in enumerate(found) if re.match(r"\d?[<>|;&]", word)), len(found))
    return [found[0].removeprefix(".venv/bin/"), *found[1:cut]] if found else []


def ours(part: Part) -> list[str] | None:
    """What of ``roundtrip`` a page writes, without that word; None: it is another's. ``sync --from`` is short
    for it."""
    found = words(part)
    if found[:1] == ["roundtrip"]:
        return found[1:]
    is_short = len(found) > 1 and found[0] in COMMANDS and found[1].startswith("--")
    return found if is_short and not part.language else None


ROUNDTRIP = [part for part in (*IN_LINE, *FENCED) if ours(part)]
MAKE = [part for part in (*IN_LINE, *FENCED) if words(part)[:1] == ["make"]]
TARGETS = re.findall(r"(?m)^([\w-]+):(?!=)", (PROJECT / "Makefile").read_text())


def commands() -> dict[str, Any]:
    """Every one by its name, those of a group by two words."""
    found: dict[str, Any] = {}
    for name in COMMANDS:
        made = command(name)
        of_a_group = made.commands if isinstance(made, TyperGroup) else {}
        found |= {f"{name} {one}": each for one, each in of_a_group.items()} or {name: made}
    return found


@pytest.mark.parametrize("part", ROUNDTRIP, ids=lambda part: f"{part}-{part.text[:40]}")
def test_a_command_takes_what_a_page_gives_it(part: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    # The file is there once a demo has run.
    monkeypatch.setattr(arguments, "_read_network", lambda path: ROBINHOOD)
    written, there = ours(part) or [], commands()
    size = 2 if " ".join(written[:2]) in there else 1
    name, given = " ".join(written[:size]), [FILLED.get(word, word) for word in written[size:]]
    assert name in there, part
    options = {name: one for one in there[name].params for name in one.opts if isinstance(one, TyperOption)}
    last = options.get(given[-1]) if given else None
    if last is not None and not last.is_flag:
        given.append("2")
    if given and name in MODULES:
        arguments.READERS[name]().parse_args(given)
    elif given:  # Else it is named, and no more.
        there[name].make_context(name, given, resilient_parsing=False)


def test_every_command_has_its_row_and_a_test_that_runs_it() -> None:
    there = commands().keys()
    assert RUN_BY.keys() == there, f"a command: say in {__name__}.RUN_BY which test runs it"
    rows = re.findall(r"(?m)^\| `roundtrip ([^`]+)`", prose("docs/operations.md"))
    answer = {next((name for name in there if f"{row} ".startswith(f"{name} ")), row) for row in rows}
    assert answer == there
    for name, test in RUN_BY.items():
        written = (PROJECT / "tests" / test).read_text()
        assert all(word in written for word in re.split("[ -]", name)), f"{test} does not run {name}"


@pytest.mark.parametrize("part", MAKE, ids=lambda part: f"{part}-{part.text[:40]}")
def test_a_target_is_there_and_knows_its_settings(part: Part) -> None:
    _, *given = words(part)
    targets = [word for word in given if "=" not in word]
    assert set(targets) <= set(TARGETS)
    made = (PROJECT / "Makefile").read_text()
    for word in given:
        name = word.partition("=")[0]
        assert word in targets or f"$({name})" in made or f"({name})," in made, word


@pytest.mark.parametrize("command", sorted({shlex.join(words(part)[1:]) for part in MAKE}))
def test_make_itself_takes_every_target(command: str) -> None:
    if command != "long" and command != "write":  # Named alone: these need NAME.
        asked = ["/usr/bin/env", "make", "-n", *shlex.split(command)]
        done = subprocess.run(asked, cwd=PROJECT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_every_target_is_told_of_somewhere() -> None:
    answer = {word for part in MAKE for word in words(part)}
    untold = set(TARGETS) - answer - UNTRIED
    assert not untold, f"no page tells of make {', '.join(untold)}"


@pytest.mark.parametrize("module", sorted(set(re.findall(r"python -m ([\w.]+)", "".join(map(prose, PAGES))))))
def test_a_module_that_a_page_runs_is_there(module: str) -> None:
    assert find_spec(module) or (PROJECT / f"{module.replace('.', '/')}.py").exists()


def test_settings_are_those_that_are_read() -> None:
    read = {f"ROUNDTRIP_{name.upper()}" for name in Settings.model_fields}
    named = {name for page in WRITTEN_BY_HAND for name in re.findall(r"ROUNDTRIP_[A-Z_]+", prose(page))}
    assert named - {"ROUNDTRIP_URL"} == read  # That one is the bots' own.


def test_a_tool_in_a_table_of_tools_is_there() -> None:
    tables = [
        (page, rows)
        for page in WRITTEN_BY_HAND
        for rows in re.findall(r"(?m)^\| tool \|.*\n\|[-|]+\n((?:\|.*\n)+)", prose(page))
    ]
    assert tables
    names = {operation.name for operation in OPERATIONS if operation.on_mcp}
    for page, rows in tables:
        assert set(re.findall(r"(?m)^\| `(\w+)`", rows)) <= names, page


def test_an_address_of_ours_is_served() -> None:
    found = []
    for span in IN_LINE:
        asked = re.fullmatch(r"(?:(GET|POST|HEAD|DELETE) )?(/[a-z][^ ]*)", span.text)
        if asked is None or asked[2].split("/")[1] in OF_THE_MACHINE:
            continue
        path = re.sub(r"<(\w+)>", r"{\1}", asked[2].partition("?")[0])
        path = re.sub("^/mcp/KEY$", "/mcp", path)
        rooms = path.startswith("/account/") and "/account/{room}" in PATHS
        is_there = path in PATHS or rooms
        if not is_there or (asked[1] and not rooms and (asked[1], path) not in METHODS):
            found.append(f"{span}: {span.text}")
    assert found == []


def test_every_address_of_a_page_stands_on_the_page_of_pages() -> None:
    text = prose("docs/console.md")
    shown = {path for path in _CONSOLE_PATHS if re.fullmatch(r"/[a-z]*(/\{\w+\})?", path)}
    gone = {path for path in shown if f"`{path}" not in text}
    assert gone <= {"/sign-in", "/sign-out", "/boards", "/account", "/account/{room}"}
