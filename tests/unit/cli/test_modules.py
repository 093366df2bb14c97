"""A command reads what it needs. All there is takes three seconds to read, and every process would."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import roundtrip

PROJECT = Path(__file__).resolve().parents[3]
HEAVY = ("eth_account", "vyper", "mcp", "redis")
SWITCHED = ("opentelemetry.sdk.trace", "opentelemetry.exporter", "google.protobuf", "requests")
"""What only a collector of spans takes; what else there is of it, libraries read for themselves."""


def read_by(name: str) -> set[str]:
    """What of the heavy packages is read for a command, in a process of its own."""
    asked = f"import sys; from roundtrip.cli import main; main.command({name!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return {*HEAVY, *SWITCHED} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("name", "heavy"),
    [
        ("sync", set()),
        ("work", set()),
        ("keys", set()),
        ("backup", set()),
        ("serve", {"mcp", "redis"}),
        ("demo", set(HEAVY)),
    ],
)
def test_a_command_reads_only_what_it_needs(name: str, heavy: set[str]) -> None:
    assert read_by(name) == heavy


def read_for(program: str) -> set[str]:
    """Every module that is read for a program, in a process of its own."""
    asked = f"import sys; sys.argv[0] = 'roundtrip'\ntry:\n    {program}\nexcept SystemExit:\n    pass\n"
    asked += "print('read:', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("read: ")[2].split())


LATE = frozenset({"aiohttp", "asyncpg", "msgspec", "pydantic", "pydantic_settings", "structlog", "uvloop"})
"""What takes a tenth of a second to read, and more."""


@pytest.mark.parametrize(
    ("program", "unread"),
    [
        ("sys.argv[1:] = ['--help']; import roundtrip.__main__; roundtrip.__main__.main()", LATE),
        ("sys.argv[1:] = ['--version']; import roundtrip.__main__; roundtrip.__main__.main()",
         LATE | {"typer", "rich"}),
        *((f"sys.argv[1:] = {[*words, '--help']}; import roundtrip.__main__; roundtrip.__main__.main()",
           LATE | {"typer"}) for words in (["check"], ["serve"], ["keys", "list"], ["demo"])),
        ("from roundtrip import Checker", LATE | {"typer", "rich"}),
        ("from roundtrip.library import node_checks", {"asyncpg", "pydantic", "typer", "uvloop"}),
        ("import roundtrip_verify as verify", LATE | {"typer", "rich"}),
    ],
)  # fmt: skip
def test_what_answers_at_once_reads_little(program: str, unread: set[str]) -> None:
    assert read_for(program) & unread == set()


_NO_COMMANDS = "import importlib.metadata; importlib.metadata.entry_points = lambda **_: ()"
_VERIFIER = "install the folder verify of a checkout, or its wheel"
_SERVER = (
    "install the file or checkout that this came from with its extra, as in "
    f"pipx install --force 'roundtrip_check-{roundtrip.__version__}-py3-none-any.whl[server]'"
)
_TO_DEVELOP = f"{_SERVER}, and the folder development of the checkout (roundtrip_development is missing)"


def beside_a_node() -> set[str]:
    """The import names of what only the package's extra and the development package install."""
    product, development = (
        tomllib.loads((PROJECT / folder / "pyproject.toml").read_text())["project"]
        for folder in (".", "development")
    )
    asked = [*product["optional-dependencies"]["server"], *development["dependencies"]]
    names = {one.partition("==")[0].replace("-", "_") for one in asked}
    imported = {
        "opentelemetry_sdk": "opentelemetry",
        "opentelemetry_exporter_otlp_proto_http": "opentelemetry",
    }
    return {imported.get(one, one) for one in names}


@pytest.mark.parametrize("module", ["check", "trade", "holders", "main", "verify_trade"])
def test_what_needs_a_node_alone_reads_nothing_of_the_extras(module: str) -> None:
    read = {name.partition(".")[0] for name in read_for(f"import roundtrip.cli.{module}")}
    assert read & {*beside_a_node(), "roundtrip_development"} == set()


@pytest.mark.parametrize(
    ("name", "without", "line"),
    [
        ("demo", _NO_COMMANDS, f"demo needs the package roundtrip-development: {_TO_DEVELOP}"),
        ("publish", _NO_COMMANDS, f"publish needs the package roundtrip-development: {_TO_DEVELOP}"),
        (
            "verify-trade",
            "sys.modules['roundtrip_verify'] = None",
            f"verify-trade needs the package roundtrip-verify: {_VERIFIER} (roundtrip_verify is missing)",
        ),
        (
            "serve",
            "sys.modules['uvicorn'] = None",
            f"serve needs the extra 'server' of roundtrip-check: {_SERVER} (uvicorn is missing)",
        ),
    ],
)
def test_what_is_not_installed_is_named_with_what_to_install(name: str, without: str, line: str) -> None:
    program = f"import sys; {without}; sys.argv[1:] = [{name!r}, '--help']; "
    program += "from roundtrip.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, f"roundtrip: {line}\n", "")
