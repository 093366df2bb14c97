"""The command that verifies a check from its proof, without trusting the service."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from roundtrip.app import build
from roundtrip.config.networks import network_from
from roundtrip.config.settings import Settings
from roundtrip.services.check.proof_file import MAX_FILE_BYTES, read_claim

from .terminal import console


def verify_proof(
    file: Annotated[Path, typer.Argument(help="The answer of GET /v1/check/{address}/proof.")],
    rpc: Annotated[
        str | None, typer.Option(help="The url of your own node, which gets the requests.")
    ] = None,
    network: Annotated[
        Path | None,
        typer.Option(
            help="A file with the contracts to trust, such as devnet.json. Default: the configured network."
        ),
    ] = None,
) -> None:
    """Repeats a check from its proof; exit 0: all of it holds, 1: something does not, 2: unknown."""
    try:
        trusted = network_from(network) if network else build.select_network(Settings())
        with file.open("rb") as stream:
            claim = read_claim(stream.read(MAX_FILE_BYTES + 1))
    except (ValueError, OSError) as error:
        console.print(f"roundtrip: {error}", markup=False)
        raise SystemExit(2) from None
    findings = asyncio.run(build.verify_proof(claim, trusted, rpc))
    table = Table("", "holds", "seen")
    for finding in findings:
        table.add_row(
            finding.what, {True: "yes", False: "NO", None: "unknown"}[finding.holds], Text(finding.seen)
        )
    console.print(table)
    holds = [finding.holds for finding in findings]
    raise SystemExit(1 if False in holds else 2 if None in holds else 0)
