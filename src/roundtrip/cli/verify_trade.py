"""The command that verifies a prepared trade from its bytes, without trusting the service. The verification
itself (``roundtrip_verify``) imports no package of the service."""

import time
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import roundtrip_verify as verify
from roundtrip.domain.base.errors import CannotRun


def verify_trade(
    file: Annotated[Path, typer.Argument(help="The answer of POST /v1/prepare/buy or /v1/prepare/sell.")],
    network: Annotated[
        Path | None,
        typer.Option(help="A file with the contracts to trust. Default: devnet.json in ROUNDTRIP_VAR (var)."),
    ] = None,
    wallet: Annotated[str | None, typer.Option("--from", help="The wallet that you asked for.")] = None,
    token: Annotated[str | None, typer.Option(help="The token that you asked for.")] = None,
    side: Annotated[str | None, typer.Option(help="buy or sell.")] = None,
    amount: Annotated[str | None, typer.Option(help="The amount that you asked for.")] = None,
    asset: Annotated[str | None, typer.Option(help="The asset of that amount: eth or usdg.")] = None,
    slippage_bps: Annotated[int | None, typer.Option(help="The slippage that you asked for.")] = None,
) -> None:
    """Verifies a prepared trade from its own bytes, without the service; exit 0: all of it holds, also a
    refusal of the trade, 1: do not sign, 2: not read or not verified."""
    request = verify.Request(wallet, token, side, amount, slippage_bps=slippage_bps, asset=asset)
    try:
        trusted = verify.Network.read(verify.parse_file(network or _local_network()))
        report = verify.verify(verify.parse_file(file), trusted, request, int(time.time()))
    except (verify.Unreadable, UnicodeDecodeError, OSError, CannotRun) as error:
        print(f"roundtrip: {error}")
        raise SystemExit(2) from None
    print("\n".join(verify.lines(report)))
    raise SystemExit(0 if report.ok else 1)


def _local_network() -> Path:
    """Where a local chain is described. Raises CannotRun: the settings need packages that are missing."""
    try:
        settings = import_module("roundtrip.config.settings").Settings()
    except ModuleNotFoundError:
        raise CannotRun("say with --network FILE which contracts you trust") from None
    return Path(settings.var) / "devnet.json"
