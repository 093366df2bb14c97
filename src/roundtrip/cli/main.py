"""The command line: which command is in which module. A module is read when its command runs: most of them
need little of what there is, and all of it together takes seconds to read."""

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
"""By its name, the module that a command is in, and what it is called there: a function, or an application of
several."""


class _Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:
        return command(cmd_name) if cmd_name in COMMANDS else None


def command(name: str) -> TyperCommand | TyperGroup:
    """One of ``COMMANDS``, its module read."""
    module, called = COMMANDS[name]
    found: typer.Typer | Callable[..., None] = getattr(import_module(f"roundtrip.cli.{module}"), called)
    bound_recursion()
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name)(found)
        found = alone
    made = cast(TyperCommand | TyperGroup, typer.main.get_command(found))
    made.name = name
    return made


app = typer.Typer(cls=_Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
_INTERRUPTED = 130
_EXPECTED = (CannotRun, OSError, ValidationError, SettingsError)


@app.callback()
def _all_of_them() -> None:
    pass


def main() -> None:
    """The entry point: expected failures are one line, Ctrl-C and a termination end quietly."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        app()
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    except SystemExit as ended:
        # The command line library turns an interrupt into 130; ending us is no failure.
        raise SystemExit(0 if ended.code == _INTERRUPTED else ended.code) from None
    except _EXPECTED as error:
        console.print(f"roundtrip: {_in_a_line(error)}", markup=False)
        raise SystemExit(1) from None


def _in_a_line(error: Exception) -> str:
    """An expected failure for who runs this. What a setting was set to is not repeated: it may be a key."""
    if isinstance(error, ValidationError):
        found = [
            (".".join(map(str, one["loc"][:1])), one["msg"].removeprefix("Value error, "))
            for one in error.errors(include_input=False)
        ]
        return "; ".join(
            f"{name} (ROUNDTRIP_{name.upper()}): {said}" if name else said for name, said in found
        )
    if isinstance(error, SettingsError) and (named := re.search(r'field "(\w+)"', str(error))):
        return f"ROUNDTRIP_{named[1].upper()} is not the JSON that it has to be"
    return str(error)


def _as_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
