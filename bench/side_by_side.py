"""Runs every benchmark that has a baseline, one after another, and writes one page of tables.

    make bench, or: PYTHONPATH=src:tests python -m bench.side_by_side [--only techniques doors]

Each bench is a process of its own, at a size that fits into a quarter of an hour in all; each alone measures
more (make bench NAME=index, doors, boards, holders). The page goes to var/bench.md: docs/benchmarks.md
has a copy. Who holds a token is asked at a million transfers where an earlier run of
``make bench NAME=holders`` has made them (half an hour), else at a hundred thousand.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from . import crowd_token
from .figures import SIDE_BY_SIDE, Table, kept

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "var/bench.md"
BENCHES = {
    "techniques": ["--misses"],
    "check": ["--cold", "200", "--warm", "12000"],
    "doors": ["--requests", "3000", "--rounds", "3"],
    "index": ["--runs", "2"],
    "boards": [
        "--reuse",
        "--trades",
        "2400000",
        "--only",
        "moving_now",
        "winners",
        "signals",
        "wallet_history",
    ],
    "holders": ["--reuse", "--transfers"],
}
MANY, FEWER = 1_000_000, 100_000
MAX_S = 1200.0
"""A bench that takes longer hangs."""


def machine() -> str:
    """Cores, memory and processor, and what runs on them."""
    memory = re.search(r"MemTotal: +(\d+)", Path("/proc/meminfo").read_text())
    model = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    cores = len(os.sched_getaffinity(0))
    memory_gib = int(memory[1]) / 2**20 if memory else 0
    return (
        f"{cores} cores of {model[1].strip() if model else platform.machine()}, {memory_gib:.0f} GiB,"
        f" Linux, Python {platform.python_version()}"
    )


def run(name: str, folder: Path) -> list[Table]:
    """What one bench came to; it prints as it goes. Raises SubprocessError."""
    arguments, path = list(BENCHES[name]), folder / f"{name}.json"
    if name == "holders":
        arguments.append(str(MANY if (crowd_token.kept(MANY) / "crowd.json").exists() else FEWER))
    print(f"\n=== {name} {' '.join(arguments)}", flush=True)
    began = time.monotonic()
    command = [sys.executable, "-m", f"bench.{name}", *arguments, "--keep", str(path)]
    subprocess.run(command, cwd=PROJECT, env=os.environ, check=True, timeout=MAX_S)
    print(f"=== {name}: {time.monotonic() - began:.0f} s", flush=True)
    return kept(path)


def page(tables: list[Table], today: datetime, where: str) -> str:
    """As Markdown: what has the columns of ``SIDE_BY_SIDE`` in one table, and others by themselves."""
    others = [table for table in tables if tuple(table.heads) != SIDE_BY_SIDE]
    same = [table for table in tables if tuple(table.heads) == SIDE_BY_SIDE]
    parts = [f"{today:%Y-%m-%d}, {where}."]
    parts += [f"{table.title}:\n\n{table.markdown()}" for table in others]
    if same:
        told = "; ".join(table.title for table in same)
        rows = [row for table in same for row in table.rows]
        parts.append(f"{told}:\n\n{Table('', SIDE_BY_SIDE, rows).markdown()}")
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Runs what is asked for; 1 where one of them failed, which the page then lacks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=tuple(BENCHES), default=list(BENCHES))
    asked = parser.parse_args()
    tables, failed, began = [], [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.only:
            try:
                tables += run(name, Path(folder))
            except subprocess.SubprocessError as error:
                failed.append(name)
                print(f"=== {error}", flush=True)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(tables, datetime.now(UTC), machine()))
    print(f"\n{PAGE.read_text()}\n{time.monotonic() - began:.0f} s; the page is {PAGE}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
