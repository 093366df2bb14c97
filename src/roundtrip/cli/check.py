"""The command that checks tokens over a node alone: no database, no server, no local chain."""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.domain.base.types import parse_address
from roundtrip.library.checker import Checker

from . import check_card
from .judging import AsJson, EXIT_CODES, NetworkFile, Rpc, exit_error, exit_usage, read_network, worst_exit

if TYPE_CHECKING:
    from roundtrip.library.node_checks import CheckWithCard

_AT_ONCE = 4
"""Checks of several tokens that run at the same time."""
_AGAIN_S = 5.0
"""How often a watched token is checked. A token's owner can change it without a trace in the logs."""
_WIDTH = 100
"""Of a card without a terminal."""


def check(
    addresses: Annotated[
        list[str],
        typer.Argument(metavar="ADDRESS...", help="Addresses of tokens; - reads them from standard input."),
    ],
    rpc: Rpc = None,
    amount: Annotated[
        str | None, typer.Option(help="How much eth the buy spends, 0.001 to 10. Default: 0.1.")
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also try what the owner may call, with a sell after each.")
    ] = False,
    as_json: AsJson = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Check again every five seconds; print what changes.")
    ] = False,
    network: NetworkFile = None,
) -> None:
    """Buys tokens and sells them straight back in a simulation, over a node alone; exit 0: ok, 1: warn, 2:
    danger, 3: unknown.

    Of several tokens each gets a line, and the exit code is that of the worst: danger, unknown, warn, ok.
    Exit 64: the arguments are wrong."""
    tokens = list(_read_addresses(addresses))
    trusted = read_network(network)
    is_single = len(addresses) == 1 and addresses[0] != "-"
    output = _Output(is_single, as_json, show_amount=amount)
    run = _CheckRun(
        Checker(rpc or trusted.rpc_url, network=trusted), tokens, amount, deep, output
    )
    raise SystemExit(asyncio.run(run.watch() if watch else run.once()))


def _read_addresses(given: list[str]) -> Iterator[str]:
    """The addresses, in order; those of standard input line by line. Exits with 64: one is none."""
    for word in given:
        for line in sys.stdin if word == "-" else (word,):
            address = line.strip()
            if not address:
                continue
            try:
                yield parse_address(address)
            except ValueError as error:
                exit_usage(f"{address[:80]!r}: {error}")
