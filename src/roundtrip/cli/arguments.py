"""The arguments of the commands whose exit code is a verdict, read with the standard library: their help
needs nothing that takes long to import."""

import argparse
import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from roundtrip.config.networks import Network

USAGE = 64
"""The exit code for wrong arguments."""
_EPILOG = "Exit code: 0 ok, 1 warn, 2 danger, 3 unknown, 64 wrong arguments."


class ArgumentReader(argparse.ArgumentParser):
    """Reads arguments; wrong ones exit with 64, as 2 is a verdict."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.format_usage()}roundtrip: {message}\n")

    def add_node(self) -> None:
        """Adds the options of the node, of its network, and of the answer's form."""
        self.add_argument(
            "--rpc", metavar="URL", default=os.environ.get("ROUNDTRIP_RPC_URL"),
            help="the URL of a node that answers eth_simulateV1; left out: ROUNDTRIP_RPC_URL, or else the "
            "network's own",
        )  # fmt: skip
        self.add_argument(
            "--network", type=_read_network, metavar="FILE",
            help="a file with the contracts to trust, such as var/devnet.json of a local chain; left out: "
            "Robinhood Chain",
        )  # fmt: skip
        self.add_argument("--json", action="store_true", help="print the API's answer")


def _read_network(path: str) -> "Network":
    networks = import_module("roundtrip.config.networks")
    try:
        network: Network = networks.network_from(Path(path))
        return network
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def read_check() -> ArgumentReader:
    """The command's arguments."""
    reader = ArgumentReader(
        "roundtrip check",
        description="Buys tokens and sells them straight back in a simulation, over a node alone.",
        epilog="Exit code: 0 ok, 1 warn, 2 danger, 3 unknown, 64 wrong arguments. Of several tokens each "
        "gets a line, and the code is that of the worst: danger, unknown, warn, ok.",
    )
    reader.add_argument(
        "addresses", nargs="+", metavar="ADDRESS", help="a token's address; - reads them from standard input"
    )
    reader.add_node()
    reader.add_argument("--amount", metavar="ETH", help="what the buy spends, 0.001 to 10; left out: 0.1")
    reader.add_argument(
        "--deep", action="store_true", help="also try what the owner may call, with a sell after each"
    )
    reader.add_argument(
        "--watch", action="store_true", help="check again every five seconds; print what changes"
    )
    return reader


def read_simulate() -> ArgumentReader:
    """The arguments of ``simulate``."""
    reader = ArgumentReader(
        "roundtrip simulate",
        description="Runs a wallet's calls in a simulation and sells straight back what they bring.",
        epilog=_EPILOG,
    )
    reader.add_argument(
        "--from", dest="sender", required=True, metavar="WALLET", help="the wallet that sends"
    )
    reader.add_argument("--to", metavar="ADDRESS", help="the address to call")
    reader.add_argument("--data", metavar="HEX", help="the calldata; left out: none")
    reader.add_argument("--value", metavar="WEI", help="the eth to send along, in wei; left out: none")
    reader.add_argument(
        "--calls", metavar="JSON", type=json.loads,
        help='several calls in place of these, such as \'[{"to": "0x…", "data": "0x…", "value": "0"}]\'',
    )  # fmt: skip
    reader.add_argument("--fund", action="store_true", help="run as if the wallet held plenty of eth")
    reader.add_node()
    return reader


def read_prepare() -> ArgumentReader:
    """The arguments of ``prepare``."""
    reader = ArgumentReader(
        "roundtrip prepare",
        description="Writes a trade for your wallet to sign, simulated before. Nothing is signed or sent.",
        epilog=_EPILOG + " A refused trade: 2 or 3. roundtrip verify-trade proves the answer of --json.",
    )
    reader.add_argument("side", choices=("buy", "sell"))
    reader.add_argument("token", metavar="TOKEN", help="the token's address")
    reader.add_argument(
        "--from", dest="sender", required=True, metavar="WALLET", help="the wallet that signs"
    )
    reader.add_argument(
        "--amount", required=True, help="of a buy: eth or usdg to spend; of a sell: tokens to sell, or all"
    )
    reader.add_argument(
        "--slippage-bps",
        type=int,
        default=100,
        help="how much less is accepted; left out: 100, which is 1 %%",
    )
    reader.add_argument("--fund", action="store_true", help="rehearse a buy as if there were plenty of eth")
    reader.add_node()
    return reader


def read_holders() -> ArgumentReader:
    """The command's arguments."""
    reader = ArgumentReader("roundtrip holders", description="Says what it takes to see who holds a token.")
    reader.add_argument("address", metavar="ADDRESS", help="the token's address")
    return reader


READERS: MappingProxyType[str, Callable[[], ArgumentReader]] = MappingProxyType(
    {"check": read_check, "simulate": read_simulate, "prepare": read_prepare, "holders": read_holders}
)
"""By name of the command."""
