"""Alerts as a process of its own, killed as one pleases: ``python -m sim.teller <database> <contracts>``."""

import asyncio
import pickle
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import asyncpg

from roundtrip.jobs.alerts.loop import AlertLoop, AlertParts
from roundtrip.store.server import connections
from roundtrip.venues.base import Contracts

PARTS = AlertParts()
POLL_S = 0.1


@dataclass
class TellerContext:
    """What it needs of a context."""

    pool: asyncpg.Pool
    contracts: Contracts
    now_s: Callable[[], float] = time.time


async def main(url: str, contracts: Contracts) -> None:
    """Until it is killed."""
    async with connections.create_pool(url, min_size=0, max_size=3, command_timeout=5) as pool:
        # Small steps: a kill comes between them, and in the middle of one.
        await AlertLoop(
            TellerContext(pool, contracts), PARTS, poll_s=POLL_S, most_blocks=3, most_matches=40
        ).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], pickle.loads(bytes.fromhex(sys.argv[2]))))  # noqa: S301
