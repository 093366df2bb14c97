"""The verifier as a command of its own, of the package ``roundtrip-verify``."""

import argparse
import sys
import time
from pathlib import Path

from . import Network, Request, Unreadable, lines, parse_file, verify

_UNREAD = 2


def main() -> None:
    """Verifies one answer. Exits with 0: proven, 1: not proven, 2: not read."""
    reader = argparse.ArgumentParser(
        "roundtrip-verify",
        description="Proves a prepared trade from its own bytes, without the service that wrote it.",
        epilog="Exit code: 0 proven, 1 not proven (do not sign), 2 not read.",
    )
    reader.add_argument("file", type=Path, help="the answer of /v1/prepare/buy or /v1/prepare/sell")
    reader.add_argument("--network", type=Path, required=True, help="a file with the contracts to trust")
    reader.add_argument("--from", dest="wallet", help="the wallet that you asked for")
    reader.add_argument("--token", help="the token that you asked for")
    reader.add_argument("--side", choices=("buy", "sell"), help="the side that you asked for")
    reader.add_argument("--amount", help="the amount that you asked for")
    reader.add_argument("--asset", choices=("eth", "usdg"), help="the asset of that amount")
    reader.add_argument("--slippage-bps", type=int, help="the slippage that you asked for")
    given = reader.parse_args()
    request = Request(
        given.wallet,
        given.token,
        given.side,
        given.amount,
        slippage_bps=given.slippage_bps,
        asset=given.asset,
    )
    try:
        trusted = Network.read(parse_file(given.network))
        report = verify(parse_file(given.file), trusted, request, int(time.time()))
    except (Unreadable, UnicodeDecodeError, OSError) as error:
        print(f"roundtrip-verify: {error}", file=sys.stderr)
        raise SystemExit(_UNREAD) from None
    print("\n".join(lines(report)))
    raise SystemExit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
