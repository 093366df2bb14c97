"""The commands that verify without trusting the service: a check from its proof, a trade from its bytes."""

import asyncio
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from roundtrip import verify
from roundtrip.app import build
from roundtrip.config.networks import network_from
from roundtrip.config.settings import Settings
from roundtrip.services.check.proof_file import MOST_FILE_BYTES, read_claim

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
    """Repeats a check from its proof; exit 0: all of it holds, 1: something does not, 2: not found out."""
    try:
        trusted = network_from(network) if network else build.select_network(Settings())
        with file.open("rb") as stream:
            claim = read_claim(stream.read(MOST_FILE_BYTES + 1))
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


def verify_trade(
    file: Annotated[Path, typer.Argument(help="The answer of POST /v1/prepare/buy or /v1/prepare/sell.")],
    network: Annotated[
        Path | None, typer.Option(help="A file with the contracts to trust. Default: var/devnet.json.")
    ] = None,
    wallet: Annotated[str | None, typer.Option("--from", help="The wallet that you asked for.")] = None,
    token: Annotated[str | None, typer.Option(help="The token that you asked for.")] = None,
    side: Annotated[str | None, typer.Option(help="buy or sell.")] = None,
    amount: Annotated[str | None, typer.Option(help="The amount that you asked for.")] = None,
    asset: Annotated[str | None, typer.Option(help="The asset of that amount: eth or usdg.")] = None,
    slippage_bps: Annotated[int | None, typer.Option(help="The slippage that you asked for.")] = None,
) -> None:
    """Verifies a prepared trade from its own bytes, without the service; exit 0: proven, 1: not
    proven, 2: not read."""
    request = verify.Request(wallet, token, side, amount, None, slippage_bps, asset)
    try:
        trusted = verify.Network.read(verify.parse((network or Settings().var / "devnet.json").read_text()))
        report = verify.verify(verify.parse(file.read_text()), trusted, request, int(time.time()))
    except (verify.Unreadable, UnicodeDecodeError, OSError) as error:
        console.print(f"roundtrip: {error}", markup=False)
        raise SystemExit(2) from None
    print("\n".join(verify.lines(report)))
    raise SystemExit(0 if report.ok else 1)
