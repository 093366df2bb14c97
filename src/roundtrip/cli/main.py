"""The command line. A command's module is imported when the command runs: most need few imports, and
importing everything takes seconds."""

import signal
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import typer
from typer._click.exceptions import NoArgsIsHelpError, UsageError
from typer.core import TyperCommand, TyperGroup

from roundtrip import __version__
from roundtrip.app.recursion_limit import bound_recursion
from roundtrip.domain.base.errors import CannotRun


class CommandEntry(NamedTuple):
    """Where a command is: its module, and its name there (a function, or a Typer application of several
    commands); both empty: another package brings it, as an entry point of ``GROUP``. ``install``: what it
    needs beside the package; empty: nothing. ``line``: what help says of it, so that help imports nothing."""

    module: str
    attribute: str
    install: str
    line: str


GROUP = "roundtrip.commands"
# The index has another project of this name: what is installed is a file.
_SERVER = (
    "install the file or checkout that this came from with its extra, as in "
    f"pipx install --force 'roundtrip_check-{__version__}-py3-none-any.whl[server]'"
)
_VERIFIER = "install the folder verify of a checkout, or its wheel"
_DEVELOPMENT = f"{_SERVER}, and the folder development of the checkout"
_OPTIONAL = frozenset({"roundtrip_development", "roundtrip_verify"})
"""Packages of ours that are installed apart. Any other module of ours that is missing is an error of ours."""

COMMANDS = MappingProxyType(
    {
        "check": CommandEntry(
            "judging", "check", "",
            "Buys tokens and sells them straight back in a simulation, over a node alone; exit 0: ok, 1: "
            "warn, 2: danger, 3: unknown.",
        ),
        "simulate": CommandEntry(
            "judging", "simulate", "",
            "Runs calls of your own in a simulation and sells straight back what they bring, over a node "
            "alone; exit codes as of check.",
        ),
        "prepare": CommandEntry(
            "judging", "prepare", "",
            "Writes a buy or a sell for your wallet to sign, simulated before, over a node alone; exit codes "
            "as of check.",
        ),
        "holders": CommandEntry("judging", "holders", "", "Says what it takes to see who holds a token."),
        "demo": CommandEntry(
            "", "", _DEVELOPMENT,
            "A local chain, a database and the service, with sample tokens to try it on.",
        ),
        "devnet": CommandEntry(
            "", "", _DEVELOPMENT,
            "Only the local chain; var/devnet.json describes it.",
        ),
        "tour": CommandEntry(
            "", "", _DEVELOPMENT,
            "Writes docs/tour.md: every tool once, called on a demo. With --examples also an answer of each.",
        ),
        "serve": CommandEntry(
            "serve", "serve", _SERVER,
            "Serves the API, the tools and the console, on the configured network.",
        ),
        "sync": CommandEntry(
            "index", "sync", _SERVER,
            "Follows the chain into the database: launches, pools, trades, wallets. Of several one leads, "
            "and the others wait.",
        ),
        "rebuild": CommandEntry(
            "index", "rebuild", _SERVER,
            "Makes positions and profits again from the trades, while everything goes on.",
        ),
        "forget": CommandEntry(
            "index", "forget", _SERVER,
            "Deletes what sync stored, and the holder books, so that the next sync starts over; exit 1: "
            "nothing was done.",
        ),
        "origin": CommandEntry(
            "index", "origin", _SERVER,
            "When a wallet was first met and who funded it, from the index or an archive; exit 2: not "
            "found out.",
        ),
        "keys": CommandEntry(
            "keys", "app", _SERVER,
            "API keys: list them, revoke one.",
        ),
        "deliveries": CommandEntry(
            "deliveries", "app", _SERVER,
            "Messages to channels: list those of a channel, send one again.",
        ),
        "work": CommandEntry(
            "operate", "work", _SERVER,
            "Runs only the background jobs and the alerts, on the configured network.",
        ),
        "migrate": CommandEntry(
            "operate", "migrate", _SERVER,
            "Brings the database's schema up to date.",
        ),
        "drain": CommandEntry(
            "drain", "drain", _SERVER,
            "Has a balancer send no more callers to the service on this machine, before it ends.",
        ),
        "backup": CommandEntry(
            "backup", "backup", _SERVER,
            "Writes the database into a file, as it is at one moment, while everything goes on.",
        ),
        "restore": CommandEntry(
            "backup", "restore", _SERVER,
            "Makes an empty database what it was when the file was written, or leaves it empty.",
        ),
        "doctor": CommandEntry(
            "operate", "doctor", _SERVER,
            "Shows what each node lacks, and what a check and the service lose by it; exit 1: with no node "
            "can the service follow the chain.",
        ),
        "verify": CommandEntry(
            "verify", "verify_proof", _SERVER,
            "Repeats a check from its proof; exit 0: all of it holds, 1: something does not, 2: not found "
            "out.",
        ),
        "verify-trade": CommandEntry(
            "verify_trade", "verify_trade", _VERIFIER,
            "Verifies a prepared trade from its own bytes, without the service; exit 0: all of it holds, "
            "also a refusal of the trade, 1: do not sign, 2: not read or not verified.",
        ),
        "publish": CommandEntry(
            "", "", _DEVELOPMENT,
            "Writes the interface's documentation from the table of operations.",
        ),
    }
)  # fmt: skip
"""By command name."""
JUDGING = frozenset({"check", "simulate", "prepare", "holders"})
"""Commands whose exit code is a verdict, so that 0 and 1 must not stand for anything else."""


class _Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """The command as help lists it; ``resolve_command`` returns the one that runs."""
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name].line) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not (args[0].startswith("-") or ctx.resilient_parsing):
            near = get_close_matches(args[0], COMMANDS, 1)
            hint = f"Did you mean {near[0]}?" if near else "roundtrip --help lists them."
            raise UsageError(f"There is no command {args[0]!r}. {hint}", ctx)
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else command(name), rest


_JUDGING = "judging"


class _JudgingCommand(TyperCommand):
    """A command that reads its arguments itself."""

    def invoke(self, ctx: Any) -> Any:
        raise SystemExit(import_module(f"roundtrip.cli.{_JUDGING}").run(self.name, ctx.args))


# Hands all arguments on, unread.
_AS_GIVEN = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


def command(name: str) -> TyperCommand | TyperGroup:
    """Imports the module of one of ``COMMANDS``; returns the command. Raises CannotRun: its packages are not
    installed."""
    entry = COMMANDS[name]
    if entry.module == _JUDGING:
        return _JudgingCommand(name, help=entry.line, context_settings=_AS_GIVEN)
    try:
        target = _load(name, entry)
    except ModuleNotFoundError as error:
        is_ours = error.name is None or (error.name.startswith("roundtrip") and error.name not in _OPTIONAL)
        if not entry.install or is_ours:
            raise
        raise CannotRun(f"{name} needs {error.name}, which is not installed: {entry.install}") from None
    bound_recursion()
    if not isinstance(target, typer.Typer):
        wrapper = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        wrapper.command(name)(target)
        target = wrapper
    typer_command = cast(TyperCommand | TyperGroup, typer.main.get_command(target))
    typer_command.name = name
    return typer_command


def _load(name: str, entry: CommandEntry) -> typer.Typer | Callable[..., None]:
    """The function or application of a command. Raises ModuleNotFoundError: a package is not installed."""
    target: typer.Typer | Callable[..., None]
    if entry.module:
        target = getattr(import_module(f"roundtrip.cli.{entry.module}"), entry.attribute)
        return target
    for point in entry_points(group=GROUP, name=name):
        target = point.load()
        return target
    raise ModuleNotFoundError(name="roundtrip_development")


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_INTERRUPTED, _BAD_USAGE = 130, 64
"""Exit codes: the command line library's of an interrupt, and ours of wrong arguments. The library's own, 2,
is the verdict danger."""


@app.callback()
def _require_command() -> None:
    pass


def main() -> None:
    """The entry point. Expected errors print one line; Ctrl-C and SIGTERM exit with 0 and without a
    message."""
    signal.signal(signal.SIGTERM, _raise_interrupt)
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    except Exception as error:
        line = describe_error(error)
        if line is None:
            raise
        print(f"roundtrip: {line}")
        raise SystemExit(1) from None
    raise SystemExit(code)


def run(arguments: list[str]) -> int:
    """Runs a command; returns the exit code. Wrong arguments print one line. Raises what the command does."""
    try:
        code = app(args=arguments, prog_name="roundtrip", standalone_mode=False)
    except NoArgsIsHelpError as error:
        error.show()
        return _BAD_USAGE
    except UsageError as error:
        print(f"roundtrip: {error.format_message()}", file=sys.stderr)
        return _BAD_USAGE
    # An interrupt is not a failure here. What a command returns is no exit code.
    return code if isinstance(code, int) and code != _INTERRUPTED else 0


def describe_error(error: Exception) -> str | None:
    """An expected error as one line; None: it is not expected."""
    if isinstance(error, CannotRun | OSError):
        return str(error)
    if type(error).__module__.startswith("pydantic"):
        describe: Callable[[Exception], str | None] = import_module(
            "roundtrip.cli.setting_errors"
        ).describe_setting_error
        return describe(error)
    return None


def _raise_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
