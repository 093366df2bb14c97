"""Measures reads of boards and wallets a second, over a primary alone, with one read replica and with two.

    make bench NAME=replicas, or: PYTHONPATH=src:tests:. python -m bench.replicas [--trades 400000]
        [--seconds 5] [--rounds 3] [--callers 8]

A generator (``index_filler``) fills the primary; its hot standbys are made by pg_basebackup, and stream. One
process asks, as the service does but not through the shared answers, with so many callers at once, of
arguments drawn by seed. Meanwhile a writer moves the log ten times a second. The three are measured in turn,
round after round, so that a noisy neighbour meets all. Printed: reads a second, and the ratio to the primary
alone.

All servers, the callers and the writer share this machine's processors. Where those are busy already, a
replica adds a copy and no processor: the ratio shows what lending costs, and not what a machine of its own
brings.
"""

import argparse
import asyncio
import contextlib
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import asyncpg

from roundtrip.services.boards.graduating_soon import graduating_soon
from roundtrip.services.boards.moving_now import moving_now
from roundtrip.services.boards.signals import signals
from roundtrip.services.boards.winners import winners
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.newest_block import read_from_replica
from roundtrip.services.wallets.history import wallet_history
from roundtrip.services.wallets.linked import linked_wallets
from roundtrip.store.replicas.pools import NO_REPLICAS, Replicas, open_replicas
from support.standbys import cluster

from . import index_filler
from .board_questions import Question, about, board, wallet
from .boards import Filled, opened
from .made_cast import Scale

KINDS: dict[str, tuple[Question, ...]] = {
    "boards": tuple(
        Question(one.__name__, board(one)) for one in (moving_now, graduating_soon, winners, signals)
    ),
    "wallets": (
        Question("wallet_history", about(wallet_history), wallet),
        Question("linked_wallets", about(linked_wallets), wallet),
    ),
}
BLOCK_S = 0.1


async def ask_for(place: Filled, kind: str, seconds: float, callers: int, seed: int) -> tuple[float, int]:
    """Reads a second, and how many of them a replica could not answer."""
    done, refused = 0, 0
    until = time.perf_counter() + seconds

    async def call(number: int) -> None:
        nonlocal done, refused
        chance = random.Random(f"{seed} {kind} {number}")
        while time.perf_counter() < until:
            question = chance.choice(KINDS[kind])
            argument = question.draw(place.found, chance)

            async def run(ctx: Context, question: Question = question, argument: object = argument) -> None:
                nonlocal refused
                refused += ctx.loan is None
                await question.ask(ctx, argument)

            await read_from_replica(place.ctx, run)
            done += 1

    began = time.perf_counter()
    await asyncio.gather(*(call(number) for number in range(callers)))
    return done / (time.perf_counter() - began), refused


@contextlib.asynccontextmanager
async def written_to(url: str) -> AsyncIterator[None]:
    """The primary, while somebody writes: the log that replicas are judged by moves on."""

    async def write() -> None:
        connection = await asyncpg.connect(url)
        try:
            while True:
                await connection.execute("UPDATE facts.cursor SET number = number")
                await asyncio.sleep(BLOCK_S)
        finally:
            await connection.close()

    writing = asyncio.create_task(write())
    try:
        yield
    finally:
        writing.cancel()
        await asyncio.wait([writing])


async def until_all_fit(replicas: Replicas) -> None:
    """Until every one answers."""
    async with asyncio.timeout(60):
        while not all(map(replicas.fits, replicas.replicas)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def measure(place: Filled, opened_of: Sequence[Replicas], asked: argparse.Namespace) -> None:
    """Asks in turn, and prints."""
    rates: dict[str, list[list[float]]] = {kind: [[] for _ in opened_of] for kind in KINDS}
    primary: Counter[str] = Counter()
    for turn in range(asked.rounds + 1):
        for kind in KINDS:
            for count, replicas in enumerate(opened_of):
                await until_all_fit(replicas)
                own = replace(place, ctx=replace(place.ctx, replicas=replicas))
                rate, refused = await ask_for(own, kind, asked.seconds, asked.callers, turn)
                # The first round finds the statements prepared and the pages read.
                if turn:
                    rates[kind][count].append(rate)
                    primary[f"{kind} {count}"] += refused if count else 0
    print(f"\n{'reads a second, median of ' + str(asked.rounds):32}" + "".join(f"{n:>10}" for n in range(3)))
    for kind, found in rates.items():
        middles = [sorted(each)[len(each) // 2] for each in found]
        ratios = "".join(f"{middle / middles[0]:10.2f}" for middle in middles)
        print(f"{kind:32}" + "".join(f"{middle:10.0f}" for middle in middles))
        print(f"{'  ratio':32}{ratios}")
    print("with replicas, answered by the primary:", sum(primary.values()))
    print(f"{os.cpu_count()} processors for three servers, {asked.callers} callers and a writer")


async def run(asked: argparse.Namespace) -> None:
    """With servers of its own."""
    scale = Scale(asked.trades, asked.last_s, asked.seed)
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = await stack.enter_async_context(cluster(folder, 2, (), ["wal_keep_size=4GB"]))
        await index_filler.fill(servers.primary.dsn, scale)
        place = await stack.enter_async_context(opened(servers.primary.dsn, scale))
        await servers.wait_until_replayed()
        await stack.enter_async_context(written_to(servers.primary.dsn))
        opened_of = [NO_REPLICAS]
        for count in (1, 2):
            urls = [standby.dsn for standby in servers.standbys[:count]]
            opening = open_replicas(
                urls, servers.primary.dsn, time.monotonic, max_size=10, command_timeout=30
            )
            replicas = await stack.enter_async_context(opening)
            watching = asyncio.create_task(replicas.watch())
            stack.push_async_callback(asyncio.wait, [watching])
            stack.callback(watching.cancel)
            opened_of.append(replicas)
        await measure(place, opened_of, asked)


def main() -> None:
    """Reads what is wanted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trades", type=int, default=400_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--last-s", type=int, default=index_filler.LAST_S, help="the newest block's time")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
