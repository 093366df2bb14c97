"""What the commands share that work over a node alone, and whose exit code is a verdict."""

from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from roundtrip.config.networks import ROBINHOOD, Network, network_from
from roundtrip.domain.base.errors import CallerFault, RoundtripError

EXIT_CODES = MappingProxyType({"ok": 0, "warn": 1, "danger": 2, "unknown": 3})
"""By level of a verdict."""
_BY_BADNESS = ("ok", "warn", "unknown", "danger")
USAGE = 64
_USUAL_USAGE = 2

Rpc = Annotated[
    str | None,
    typer.Option(
        "--rpc", envvar="ROUNDTRIP_RPC_URL", metavar="URL",
        help="The URL of a node that answers eth_simulateV1. Default: the network's own.",
    ),
]  # fmt: skip
NetworkFile = Annotated[
    Path | None,
    typer.Option(
        help="A file with the contracts to trust, such as var/devnet.json of a local chain. Default: "
        "Robinhood Chain."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's answer, a line of JSON each.")]


class JudgingCommand(TyperCommand):
    """A command whose exit codes are verdicts: what is wrong with its arguments exits with 64, not with 2."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "exit_code", None) == _USUAL_USAGE:
                error.exit_code = USAGE  # type: ignore[attr-defined]
            raise


def worst_exit(levels: list[str]) -> int:
    """The exit code of several verdicts: danger before unknown before warn before ok. None at all is
    unknown."""
    return EXIT_CODES[max(levels, key=_BY_BADNESS.index, default="unknown")]


def read_network(file: Path | None) -> Network:
    """The network of a file; None: Robinhood Chain. Exits with 64: the file cannot be read."""
    try:
        return ROBINHOOD if file is None else network_from(file)
    except (OSError, ValueError) as error:
        exit_usage(str(error))


def exit_usage(message: str) -> NoReturn:
    """Prints what is wrong with the arguments; exits with 64."""
    typer.echo(f"roundtrip: {message}", err=True)
    raise SystemExit(USAGE)


def exit_error(error: RoundtripError) -> NoReturn:
    """Prints why there is no verdict; exits with 64 where the arguments are wrong, else with 3."""
    typer.echo(f"roundtrip: {error.message}", err=True)
    raise SystemExit(USAGE if isinstance(error, CallerFault) else EXIT_CODES["unknown"])
