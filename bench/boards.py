"""Measures answers from the index, with few trades in it and with many.

    make bench NAME=boards, or: PYTHONPATH=src python -m bench.boards [--trades 2400000 24000000] [--reuse]
        [--only winners ...] [--runs 200] [--explain winners] [--citus COORDINATOR_URL WORKER_URL ...]

A generator (``index_filler``) fills one database for each number of trades: a day is as busy in each, the
history is ten times as long. Every question of ``board_questions`` is asked of each, as the service asks it
but not through the shared answers, one after the other, of arguments drawn by seed; the node answers at once.
Printed: median, 95th percentile and worst, and what the longer history costs; what misses the aim first.
Compare the ratios, also to the reference: machines are noisy.

--reuse   keeps what an earlier run filled (24 million trades: some ten minutes and twelve gigabytes)
--explain shows the plans of every statement of a question, for the argument that was slowest
--citus   on these servers (``deploy/citus/local.sh`` starts some): each database once as it is, and once with
          its tables placed on the workers, and the bytes of each node
"""

import argparse
import asyncio
import contextlib
import gc
import json
import random
import shutil
import time
import urllib.parse
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
from deploy.citus.join import join

from roundtrip.chain.blocks.heads import ChainHead, Heads
from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError
from roundtrip.chain.rpc.dialect import ANVIL
from roundtrip.chain.simulate.rates import Rates
from roundtrip.config.networks import CHAIN_ID, ROBINHOOD
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import ZERO_ADDRESS, BlockRef
from roundtrip.domain.check.evidence import MarketRates
from roundtrip.services.runtime.context import Context
from roundtrip.store.index import cursor
from roundtrip.store.server.migrate import place
from roundtrip.store.server.postgres import EmbeddedPostgres

from . import figures, index_filler, timing
from .board_questions import PREPARED, QUESTIONS, REFERENCE, Question, Sample, sample
from .made_cast import Scale
from .made_up import ETH_USD
from .schema_adopter import brought_up
from .serving import connected
from .shards import named

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "var/bench-boards"
TRADES = (2_400_000, 24_000_000)
BYTES_A_TRADE = 600
AIM_MS, AIM_RATIO = 50.0, 1.3
WARM_UPS, RUNS = 5, 200
_SAID = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = $1"
MAX_S = 60.0
"""A question is asked for no longer in one database, however few times that is."""


ANSWERS = {"eth_chainId": hex(CHAIN_ID), "eth_getBalance": "0x0", "eth_getCode": "0x", "eth_call": "0x"}


class QuietNode:
    """Answers at once: no address has code or money, and no transaction is known."""

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        """As ``rpc.Node.batch``."""
        if meter is not None:
            meter.trips += 1
            meter.calls += len(calls)
        return [msgspec.Raw(msgspec.json.encode(ANSWERS.get(call.method))) for call in calls]

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        """As ``rpc.Node.batches``."""
        return [await self.batch(group, meter) for group in groups]


class StillHeads(Heads):
    """The newest block is the index's."""

    def stand(self, block: BlockRef) -> None:
        """Here, and nowhere else."""
        market = MarketRates(block.number, ETH_USD * 10**6, 500, ETH_USD * 10**8)
        self._head = ChainHead(block, 10**7, ZERO_ADDRESS, "0x" + "00" * 32, market, 0.0, ANVIL)

    def current(self) -> ChainHead:
        """As ``Heads.current``, however late it is."""
        assert self._head is not None
        return self._head


@dataclass(slots=True)
class Filled:
    """A database and what is asked of it."""

    trades: int
    ctx: Context
    found: Sample


@dataclass(frozen=True, slots=True)
class Times(timing.Times):
    """Of one question in one database; ``worst``: the argument that took longest."""

    worst: Any


# --- databases -------------------------------------------------------------------------------------


async def filled(server_dsn: str, scale: Scale, reuse: bool) -> str:
    """The address of a database that is filled."""
    name, said = f"boards_{scale.trades}", json.dumps([scale.trades, scale.last_s, scale.seed])
    dsn = named(server_dsn, name)
    admin = await asyncpg.connect(server_dsn)
    try:
        there = await admin.fetchval(_SAID, name)
        if reuse and there == said:
            await brought_up(admin, server_dsn, dsn)
            return dsn
        free, needed = shutil.disk_usage(FOLDER).free, scale.trades * BYTES_A_TRADE
        if free < needed:
            raise SystemExit(f"{needed / 1e9:.0f} GB are needed in {FOLDER}, {free / 1e9:.0f} are free")
        await admin.execute(f"DROP DATABASE IF EXISTS {name}")
        await admin.execute(f"CREATE DATABASE {name}")
        print(f"filling {name}")
        began = time.perf_counter()
        await index_filler.fill(dsn, scale)
        await admin.execute(f"COMMENT ON DATABASE {name} IS '{said}'")
        size = await admin.fetchval("SELECT pg_database_size($1::text)", name)
        print(f"  {time.perf_counter() - began:.0f} s, {size / 2**30:.1f} GiB")
    finally:
        await admin.close()
    return dsn


async def placed(urls: Sequence[str], dsn: str, reuse: bool) -> str:
    """The address of a copy of a filled database whose tables are placed on the workers."""
    like = urllib.parse.urlsplit(dsn).path[1:]
    name = f"{like}_placed"
    nodes = [named(url, name) for url in urls]
    admins = [await asyncpg.connect(url) for url in urls]
    try:
        said = await admins[0].fetchval(_SAID, like)
        if not reuse or await admins[0].fetchval(_SAID, name) != said:
            began = time.perf_counter()
            for admin, of in [(admins[0], f" TEMPLATE {like}"), *((admin, "") for admin in admins[1:])]:
                await admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
                await admin.execute(f"CREATE DATABASE {name}{of}")
            await join(nodes)
            coordinator = await asyncpg.connect(nodes[0], command_timeout=3600)
            await place(coordinator)
            await coordinator.execute("VACUUM (ANALYZE)")
            await coordinator.close()
            await admins[0].execute(f"COMMENT ON DATABASE {name} IS '{said}'")
            print(f"  placed in {time.perf_counter() - began:.0f} s")
        sizes = [await admin.fetchval("SELECT pg_database_size($1::text)", name) for admin in admins]
        print("  bytes of each node: " + ", ".join(f"{size:,}" for size in sizes))
    finally:
        for admin in admins:
            await admin.close()
    return nodes[0]


@contextlib.asynccontextmanager
async def opened(dsn: str, scale: Scale, found: Sample | None = None) -> AsyncIterator[Filled]:
    """A context over a filled database, as the service has one. ``found``: None: the subjects are drawn from
    it."""
    connection = await asyncpg.connect(dsn, command_timeout=600)
    try:
        for prepare in PREPARED:
            await prepare(connection)
        if found is None:
            found = await sample(connection, random.Random(scale.seed))
        stands = await cursor.cursor(connection)
        [row_counts] = await connection.fetch(
            "SELECT (SELECT reltuples FROM pg_class WHERE oid = 'facts.pool'::regclass) AS pools,"
            " (SELECT reltuples FROM pg_class WHERE oid = 'facts.origin'::regclass) AS wallets,"
            " (SELECT reltuples FROM pg_class WHERE oid = 'facts.position'::regclass) AS positions,"
            " (SELECT sum(reltuples) FROM pg_class JOIN pg_inherits ON inhrelid = oid"
            "  WHERE inhparent = 'facts.trade'::regclass) AS trades"
        )
    finally:
        await connection.close()
    assert stands is not None
    print(", ".join(f"{count:,.0f} {what}" for what, count in row_counts.items()))
    async with connected(dsn, min_size=1, max_size=10, command_timeout=30) as pool:
        node, contracts = QuietNode(), ROBINHOOD.contracts
        heads = StillHeads(node, CHAIN_ID, contracts, venue_index=VenueIndex(contracts), dialect=ANVIL)
        heads.stand(stands.block)
        yield Filled(
            scale.trades,
            Context(
                chain_id=CHAIN_ID,
                contracts=contracts,
                node=node,
                heads=heads,
                policy=POLICY,
                pool=pool,
                rates=Rates(node, contracts),
                now_s=lambda: float(scale.last_s),
                entropy=lambda: bytes(32),
            ),
            found,
        )


# --- measuring -------------------------------------------------------------------------------------


async def measured(question: Question, where: Filled, runs: int, seed: int) -> Times:
    """Asked again and again. The first few do not count: they find the statements prepared and read."""
    chance = random.Random(f"{seed} {question.name}")
    times: list[float] = []
    worst, worst_ms = None, -1.0
    until = time.perf_counter() + MAX_S
    for number in range(WARM_UPS + runs):
        argument = question.draw(where.found, chance)
        began = time.perf_counter()
        await question.ask(where.ctx, argument)
        ended = time.perf_counter()
        if number >= WARM_UPS:
            times.append((ended - began) * 1000)
            if times[-1] > worst_ms:
                worst, worst_ms = argument, times[-1]
        if ended > until and times:
            break
    return Times(times, worst)


async def explain(question: Question, where: Filled, server: EmbeddedPostgres, argument: Any) -> None:
    """Asks once more and prints the plan of each statement, as the server's log has it."""
    log = server.home / "postgres.log"
    admin = await asyncpg.connect(server.dsn)
    name = f"boards_{where.trades}"
    settings = {
        "log_min_duration": "0",
        "log_analyze": "on",
        "log_buffers": "on",
        "log_nested_statements": "on",
    }
    try:
        for setting, value in settings.items():
            await admin.execute(f"ALTER DATABASE {name} SET auto_explain.{setting} = '{value}'")
        await admin.execute(f"ALTER DATABASE {name} SET session_preload_libraries = 'auto_explain'")
        await where.ctx.pool.expire_connections()
        # Once for what connections ask when they are new.
        await question.ask(where.ctx, argument)
        before = log.stat().st_size
        await question.ask(where.ctx, argument)
    finally:
        await admin.execute(f"ALTER DATABASE {name} RESET ALL")
        await admin.close()
    await where.ctx.pool.expire_connections()
    print(f"\n{question.name} of {argument!r}, {where.trades:,} trades\n")
    print(log.read_bytes()[before:].decode(errors="replace"))


# --- the table -------------------------------------------------------------------------------------


def show(found: list[tuple[Question, list[Times]]], labels: list[str]) -> None:
    """Prints it; what misses the aim stands first."""

    def misses(times: list[Times]) -> str:
        slow = any(one.p95 >= AIM_MS for one in times)
        return "SLOW" if slow else "GROWS" if times[-1].p95 >= AIM_RATIO * times[0].p95 else ""

    heads = "".join(f"{f'{label} median':>14}{'p95':>9}{'worst':>9}" for label in labels)
    print(f"\n{'milliseconds':36}{heads}{'median x':>10}{'p95 x':>8}")
    order = {"SLOW": 0, "GROWS": 1, "": 2}
    for question, times in sorted(found, key=lambda one: order[misses(one[1])]):
        cells = "".join(f"{one.median:14.2f}{one.p95:9.2f}{max(one.times_ms):9.2f}" for one in times)
        more = times[-1].median / times[0].median, times[-1].p95 / times[0].p95
        runs = min(len(one.times_ms) for one in times)
        fewer = f"  only {runs} runs" if runs < RUNS else ""
        print(f"{misses(times):6}{question.name:30}{cells}{more[0]:10.2f}{more[1]:8.2f}{fewer}")
    print(f"aims: p95 under {AIM_MS:g} ms (else SLOW), p95 x under {AIM_RATIO} (else GROWS)")


async def ask(server: EmbeddedPostgres | None, asked: argparse.Namespace) -> None:
    """Fills, asks, prints. ``server``: None: those of --citus."""
    questions = [one for one in QUESTIONS if not asked.only or any(word in one.name for word in asked.only)]
    async with contextlib.AsyncExitStack() as stack:
        places, labels = [], []
        for trades in asked.trades:
            scale = Scale(trades, asked.last_s, asked.seed)
            dsn = await filled(server.dsn if server else asked.citus[0], scale, asked.reuse)
            addresses = [dsn] if server else [dsn, await placed(asked.citus, dsn, asked.reuse)]
            subjects = None
            for address, kind in zip(addresses, ("", " placed"), strict=False):
                places.append(await stack.enter_async_context(opened(address, scale, subjects)))
                subjects = places[-1].found
                labels.append(f"{trades / 1e6:g}M{kind}")
        gc.collect()
        gc.freeze()
        if asked.explain and server:
            for question in (one for one in QUESTIONS if asked.explain in one.name):
                times = await measured(question, places[-1], asked.runs, asked.seed)
                await explain(question, places[-1], server, times.worst)
            return
        found = []
        for question in (REFERENCE, *questions):
            # One right after the other, so that a noisy neighbour meets both.
            both = [await measured(question, place, asked.runs, asked.seed) for place in places]
            found.append((question, both))
            print(f"  {question.name}: " + ", ".join(f"{one.p95:.2f} ms" for one in both), flush=True)
        show(found, labels)
        rows = [
            figures.beside(
                f"boards, {label.replace('M', ' million trades')}: {question.name}",
                times,
                REFERENCE.name,
                reference,
            )
            for number, label in enumerate(labels)
            for (question, each), reference in ((one, found[0][1][number]) for one in found[1:])
            for times in (each[number],)
        ]
        figures.keep(asked.keep, [figures.Table("out of the index", figures.SIDE_BY_SIDE, rows)])


async def run(asked: argparse.Namespace) -> None:
    """With a server of its own around it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if asked.citus:
        await ask(None, asked)
        return
    async with EmbeddedPostgres(FOLDER, durable=False) as server:
        await ask(server, asked)


def main() -> None:
    """Reads what is wanted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trades", type=int, nargs="+", default=list(TRADES))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--last-s", type=int, default=index_filler.LAST_S, help="the newest block's time")
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--only", nargs="+", help="questions with one of these words in their names")
    parser.add_argument("--explain", metavar="QUESTION")
    parser.add_argument("--citus", nargs="+", metavar="URL")
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.citus and (asked.explain or len(asked.trades) > 1):
        parser.error("--citus compares one number of trades, and explains nothing")
    asyncio.run(run(asked))


if __name__ == "__main__":
    main()
