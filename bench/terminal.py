"""How soon a command answers: processes from their start to their end, over a local chain.

    PYTHONPATH=src:tests python -m bench.terminal [--runs 20]

Each command is run once before, so that its modules are compiled. Beside each: Python that does nothing.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.check import PROJECT

from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions


class StartTimes(NamedTuple):
    """Of one process, in milliseconds: by the clock, and of the processor."""

    passed_ms: float
    processor_ms: float


def start_times(arguments: list[str], runs: int) -> list[StartTimes]:
    """Of a process of this Python, one after another."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found = []
    for _ in range(runs + 1):
        used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=environment, check=True)
        passed_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        used_s = after.ru_utime - used.ru_utime + after.ru_stime - used.ru_stime
        found.append(StartTimes(passed_s * 1000, used_s * 1000))
    return found[1:]


def measure(runs: int) -> None:
    """Prints a line for each."""
    folders = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(folders, print)
    with (
        tempfile.TemporaryDirectory() as folder,
        world.start_world(folders, built, NodeOptions(state=built.state)) as node,
    ):
        network = Path(folder) / "devnet.json"
        network.write_text(json.dumps(world.describe(built, node.url)))
        check = ["check", built.tokens["plain"], "--rpc", node.url, "--network", str(network)]
        asked = {
            "python that does nothing": ["-c", ""],
            "from roundtrip import Checker": ["-c", "from roundtrip import Checker"],
            "roundtrip --help": ["-m", "roundtrip", "--help"],
            "roundtrip check": ["-m", "roundtrip", *check],
            "roundtrip check --deep": ["-m", "roundtrip", *check, "--deep"],
        }
        for name, arguments in asked.items():
            found = start_times(arguments, runs)
            passed, used = (statistics.median(column) for column in zip(*found, strict=True))
            best = min(one.passed_ms for one in found)
            print(f"{name:30} median {passed:6.0f} ms   best {best:6.0f} ms   processor {used:6.0f} ms")


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    measure(parser.parse_args().runs)


if __name__ == "__main__":
    main()
