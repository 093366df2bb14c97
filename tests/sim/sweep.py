"""Many seeded runs, a line each: ``python -m sim.sweep [index|alerts] [runs] [first seed]``; ends with 1 if
one is wrong."""

import asyncio
import contextlib
import sys
import tempfile
import time
from pathlib import Path

from roundtrip.devnet import world
from sim import alert_run, arena
from sim import run as index_run
from sim.run import Outcome

PROJECT = Path(__file__).resolve().parents[2]


async def sweep(what: str, runs: int, first: int, folder: Path) -> list[Outcome]:
    """The outcomes; a line is printed for each as it comes, and what went wrong below it."""
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built, outcomes = world.build(places, print), []
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(arena.server(folder / "postgres"))
        if what == "alerts":
            await stack.enter_async_context(alert_run.followed(places, built, server, folder))
        run = alert_run.run if what == "alerts" else index_run.run
        for seed in range(first, first + runs):
            outcomes.append(await run(seed, places, built, server, folder))
            print(outcomes[-1].line(), flush=True)
            for line in outcomes[-1].report():
                print(f"    {line}", flush=True)
    return outcomes


def main() -> int:
    """The exit code."""
    what = "alerts" if "alerts" in sys.argv else "index"
    given = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    runs, first = [*given, *(500, 1)[len(given) :]][:2]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        # The database's own user has to reach what is his.
        Path(name).chmod(0o711)
        outcomes = asyncio.run(sweep(what, runs, first, Path(name)))
    wrong = [outcome.seed for outcome in outcomes if outcome.wrong]
    faults = sum(outcome.faults for outcome in outcomes)
    forks = sum(outcome.forks for outcome in outcomes)
    print(
        f"{len(outcomes)} runs, {forks} forks, {faults} faults: {len(outcomes) - len(wrong)} equal,"
        f" {len(wrong)} wrong {wrong or ''} ({time.monotonic() - began:.0f} s)"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
