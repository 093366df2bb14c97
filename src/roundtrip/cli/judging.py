"""The commands that work over a node alone, and whose exit code is a verdict."""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from roundtrip.domain.base.errors import CannotRun, RoundtripError

from .arguments import READERS, USAGE

if TYPE_CHECKING:
    from roundtrip.config.networks import Network

MODULES = MappingProxyType({"check": "check", "simulate": "trade", "prepare": "trade", "holders": "holders"})
"""By name of the command: its module, with ``run_<name>``."""
EXIT_CODES = MappingProxyType({"ok": 0, "warn": 1, "danger": 2, "unknown": 3})
"""By level of a verdict."""
_BY_BADNESS = ("ok", "warn", "unknown", "danger")


def node_of(given: argparse.Namespace) -> tuple[str, "Network"]:
    """The node's URL and its network, by the arguments, or by default."""
    network: Network = given.network or import_module("roundtrip.config.networks").ROBINHOOD
    return given.rpc or network.rpc_url, network


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
        given = READERS[name]().parse_args(arguments)
        module = import_module(f"roundtrip.cli.{MODULES[name]}")
        command: Callable[[argparse.Namespace], int] = getattr(module, f"run_{name}")
        return command(given)
    except KeyboardInterrupt:
        return EXIT_CODES["unknown"]
    except RoundtripError as error:
        print(f"roundtrip: {error.message}", file=sys.stderr)
        return USAGE if error.code.startswith("bad_") else EXIT_CODES["unknown"]
    except BrokenPipeError:
        # Who read the output, such as head, has enough. What is left is not written at the exit, either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (CannotRun, OSError) as error:
        print(f"roundtrip: {error}", file=sys.stderr)
    except Exception:
        traceback.print_exc()
    return EXIT_CODES["unknown"]


def _raise_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
