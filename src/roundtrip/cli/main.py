"""The command line. A command's module is imported when the command runs: most need few imports, and
importing everything takes seconds."""

import signal
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

import typer
from typer._click.exceptions import NoArgsIsHelpError, UsageError
from typer.core import TyperCommand, TyperGroup

from roundtrip.app.recursion_limit import bound_recursion
from roundtrip.domain.base.errors import CannotRun

from .commands import COMMANDS, GROUP, JUDGING, CommandEntry, list_installed

_OPTIONAL = frozenset({"roundtrip_development", "roundtrip_verify"})
"""Packages of ours that are installed apart. Any other module of ours that is missing is an error of ours."""


class _Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list_installed()

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


class _JudgingCommand(TyperCommand):
    """A command that reads its arguments itself."""

    def invoke(self, ctx: Any) -> Any:
        raise SystemExit(import_module(f"roundtrip.cli.{JUDGING}").run(self.name, ctx.args))


# Hands all arguments on, unread.
_AS_GIVEN = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


def command(name: str) -> TyperCommand | TyperGroup:
    """Imports the module of one of ``COMMANDS``; returns the command. Raises CannotRun: its packages are not
    installed."""
    entry = COMMANDS[name]
    if entry.module == JUDGING:
        return _JudgingCommand(name, help=entry.line, context_settings=_AS_GIVEN)
    try:
        target = _load(name, entry)
    except ModuleNotFoundError as error:
        is_ours = error.name is None or (error.name.startswith("roundtrip") and error.name not in _OPTIONAL)
        if not entry.part.install or is_ours:
            raise
        raise CannotRun(
            f"{name} needs {entry.part.package}: {entry.part.install} ({error.name} is missing)"
        ) from None
    bound_recursion()
    if not isinstance(target, typer.Typer):
        wrapper = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
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
    rich_markup_mode=None,
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
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
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
