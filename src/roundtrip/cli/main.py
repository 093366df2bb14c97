"""The command line. A command's module is imported when the command runs: most need few imports, and
importing everything takes seconds."""

import re
import signal
from collections.abc import Callable
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError
from typer.core import TyperCommand, TyperGroup

from roundtrip.app.recursion_limit import bound_recursion
from roundtrip.domain.base.errors import CannotRun

from .terminal import console

COMMANDS = MappingProxyType(
    {
        "demo": ("demo", "demo"),
        "devnet": ("demo", "devnet"),
        "tour": ("tour", "tour"),
        "serve": ("serve", "serve"),
        "sync": ("index", "sync"),
        "rebuild": ("index", "rebuild"),
        "forget": ("index", "forget"),
        "origin": ("index", "origin"),
        "keys": ("keys", "app"),
        "deliveries": ("deliveries", "app"),
        "work": ("operate", "work"),
        "migrate": ("operate", "migrate"),
        "backup": ("backup", "backup"),
        "restore": ("backup", "restore"),
        "doctor": ("operate", "doctor"),
        "verify": ("verify", "verify_proof"),
        "verify-trade": ("verify", "verify_trade"),
        "publish": ("publish", "publish"),
    }
)
"""By command name: its module, and its name there (a function, or a Typer application of several
commands)."""


class _Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:
        return command(cmd_name) if cmd_name in COMMANDS else None


def command(name: str) -> TyperCommand | TyperGroup:
    """Imports the module of one of ``COMMANDS``; returns the command."""
    module, attribute = COMMANDS[name]
    target: typer.Typer | Callable[..., None] = getattr(import_module(f"roundtrip.cli.{module}"), attribute)
    bound_recursion()
    if not isinstance(target, typer.Typer):
        wrapper = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        wrapper.command(name)(target)
        target = wrapper
    typer_command = cast(TyperCommand | TyperGroup, typer.main.get_command(target))
    typer_command.name = name
    return typer_command


app = typer.Typer(cls=_Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
_INTERRUPTED = 130
_EXPECTED = (CannotRun, OSError, ValidationError, SettingsError)


@app.callback()
def _require_command() -> None:
    pass


def main() -> None:
    """The entry point. Expected errors print one line; Ctrl-C and SIGTERM exit with 0 and without a
    message."""
    signal.signal(signal.SIGTERM, _raise_interrupt)
    try:
        app()
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    except SystemExit as stop:
        # The command line library turns an interrupt into 130, but an interrupt is not a failure here.
        raise SystemExit(0 if stop.code == _INTERRUPTED else stop.code) from None
    except _EXPECTED as error:
        console.print(f"roundtrip: {_describe_error(error)}", markup=False)
        raise SystemExit(1) from None


def _describe_error(error: Exception) -> str:
    """An expected error as one line. A setting's value is not shown: it may be a key."""
    if isinstance(error, ValidationError):
        problems = [
            (".".join(map(str, detail["loc"][:1])), detail["msg"].removeprefix("Value error, "))
            for detail in error.errors(include_input=False)
        ]
        return "; ".join(
            f"{name} (ROUNDTRIP_{name.upper()}): {message}" if name else message for name, message in problems
        )
    if isinstance(error, SettingsError) and (field := re.search(r'field "(\w+)"', str(error))):
        return f"ROUNDTRIP_{field[1].upper()} must be valid JSON"
    return str(error)


def _raise_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
