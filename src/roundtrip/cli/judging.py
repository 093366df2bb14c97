"""The commands that work over a node alone, and whose exit code is a verdict. They read their arguments
without the library of the other commands, which takes longer to import than a check takes."""

import argparse
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from roundtrip.config.networks import ROBINHOOD, Network, network_from
from roundtrip.domain.base.errors import CannotRun, RoundtripError

MODULES = MappingProxyType({"check": "check", "simulate": "trade", "prepare": "trade", "holders": "holders"})
"""By name of the command: its module, with ``read_<name>`` and ``run_<name>``."""
EXIT_CODES = MappingProxyType({"ok": 0, "warn": 1, "danger": 2, "unknown": 3})
"""By level of a verdict."""
USAGE = 64
"""The exit code for wrong arguments."""
_BY_BADNESS = ("ok", "warn", "unknown", "danger")


class ArgumentReader(argparse.ArgumentParser):
    """Reads arguments; wrong ones exit with 64, as 2 is a verdict."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.format_usage()}roundtrip: {message}\n")

    def add_node(self) -> None:
        """Adds the options of the node, of its network, and of the answer's form."""
        self.add_argument(
            "--rpc", metavar="URL",
            help="the URL of a node that answers eth_simulateV1; left out: the network's own",
        )  # fmt: skip
        self.add_argument(
            "--network", type=_read_network, default=ROBINHOOD, metavar="FILE",
            help="a file with the contracts to trust, such as var/devnet.json of a local chain; left out: "
            "Robinhood Chain",
        )  # fmt: skip
        self.add_argument("--json", action="store_true", help="print the API's answer")


def _read_network(path: str) -> Network:
    try:
        return network_from(Path(path))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def worst_exit(levels: Iterable[str]) -> int:
    """The exit code of several verdicts: danger before unknown before warn before ok. None at all is
    unknown."""
    return EXIT_CODES[max(levels, key=_BY_BADNESS.index, default="unknown")]


def main() -> None:
    """Runs the command that the arguments name. What fails or is interrupted exits with 3, which is no
    pass."""
    signal.signal(signal.SIGTERM, _raise_interrupt)
    raise SystemExit(run(sys.argv[1], sys.argv[2:]))


def run(name: str, arguments: list[str]) -> int:
    """Runs one of ``MODULES``; returns its exit code. Exits with 64: the arguments are wrong."""
    try:
        module = import_module(f"roundtrip.cli.{MODULES[name]}")
        command: Callable[[list[str]], int] = getattr(module, f"run_{name}")
        return command(arguments)
    except KeyboardInterrupt:
        return EXIT_CODES["unknown"]
    except RoundtripError as error:
        print(f"roundtrip: {error.message}", file=sys.stderr)
        return USAGE if error.code.startswith("bad_") else EXIT_CODES["unknown"]
    except (CannotRun, OSError) as error:
        print(f"roundtrip: {error}", file=sys.stderr)
    except Exception:
        traceback.print_exc()
    return EXIT_CODES["unknown"]


def _raise_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
