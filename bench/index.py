"""Measures how fast the chain is read into the database, beside Ponder and beside plain reading.

    make bench NAME=index, or: PYTHONPATH=src python -m bench.index [--blocks 3000] [--runs 3] [--only sync]

One busy chain on one local node, one PostgreSQL server for all, each run into an empty database:

plain    eth_getLogs of the same events, the next range asked for while one is read; parsed and decoded into
         records, and thrown away. No blocks, no database. Once more with all blocks and transactions: without
         them the traders are unknown.
sync     roundtrip sync as it is: every block in full, every log, checked against the headers.
ponder   Ponder, which asks for blocks one at a time, with its limit of requests a second out of the way; once
         more with the limit as it comes, where --limited says so.

Seconds are from the process's start, and of the backfill alone; beside them processor time of the reader, the
node and the database, which says more where others use the machine. Compare the ratios: machines are noisy.
"""

import argparse
import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions, RunningNode
from roundtrip_development.devnet.sync_rpc import SyncRpc

from . import busy_chain, figures
from .indexers import PROJECT, TABLES, Place, Run, plain, ponder, sync
from .timing import Times

SPARE_BLOCKS = 100
"""Empty ones after the last trade: Ponder holds the newest for unsettled, and reads them in another way."""
KEPT_S = 7 * 86_400
"""Transfers before it are not kept by the sync."""
NAMES = {
    "plain": "plain eth_getLogs, nothing kept",
    "plain, blocks": "plain logs and blocks, nothing kept",
    "ponder": "Ponder, its limit of requests out of the way",
    "ponder, limited": "Ponder as it comes",
}
WHY = {"transfer": ", which knows a launched token from the launch's block on, not from its log on"}


# --- what a trade takes ----------------------------------------------------------------------------


async def sizes(dsn: str) -> None:
    """Bytes a trade in the fullest day's partition: the table and each index."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("VACUUM (ANALYZE) facts.trade")
        [(fullest, total)] = await connection.fetch(
            "SELECT inhrelid::regclass::text, pg_total_relation_size(inhrelid) FROM pg_inherits"
            " WHERE inhparent = 'facts.trade'::regclass ORDER BY 2 DESC LIMIT 1"
        )
        trades = await connection.fetchval(f"SELECT count(*) FROM {fullest}")  # noqa: S608
        parts = {"rows": await connection.fetchval("SELECT pg_relation_size($1::regclass)", fullest)}
        for name, columns, size in await connection.fetch(
            "SELECT relname, pg_get_indexdef(indexrelid), pg_relation_size(indexrelid) FROM pg_index"
            " JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = $1::regclass ORDER BY relname",
            fullest,
        ):
            parts[f"{name} {columns.partition(' btree ')[2]}"] = size
    finally:
        await connection.close()
    print(f"\nbytes a trade    {total / trades:.0f} in {fullest}, {trades:,} trades")
    for part, size in parts.items():
        print(f"  {part:60} {size / trades:6.1f}")


# --- the table -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Table:
    """The runs by who made them."""

    runs: dict[str, list[Run]] = field(default_factory=dict)

    def add(self, name: str, run: Run) -> None:
        """Another run."""
        self.runs.setdefault(name, []).append(run)
        print(f"  {name:16} {run.whole_s:7.2f} s, backfill {run.backfill_s:7.2f} s   {run.rows}", flush=True)

    def middle(self, name: str) -> Run:
        """The run of the median backfill."""
        ordered = sorted(self.runs[name], key=lambda run: run.backfill_s)
        return ordered[len(ordered) // 2]

    def show(self, blocks: int, logs: int) -> None:
        """Prints it. Events are all logs of the chain, of plain those it reads."""
        heads = ("whole s", "backfill s", "events/s", "rows/s", "cpu s", "node", "server", "MB")
        print("\n{:16} {:>8} {:>10} {:>9} {:>8} {:>7} {:>7} {:>7} {:>6}".format("", *heads))
        for name in self.runs:
            run = self.middle(name)
            events, rows = run.rows.get("logs", logs), sum(run.rows.get(table, 0) for table in TABLES)
            print(
                f"{name:16} {run.whole_s:8.2f} {run.backfill_s:10.2f} {events / run.backfill_s:9,.0f}"
                f" {rows / run.backfill_s:8,.0f} {run.cpu_s[0]:7.2f} {run.cpu_s[1]:7.2f} {run.cpu_s[2]:7.2f}"
                f" {run.memory_mb:6.0f}"
            )
        counts = ", ".join(f"{name} {len(runs)}" for name, runs in self.runs.items())
        print(f"{blocks:,} blocks, {logs:,} logs. Medians of runs: {counts}")
        for name in self.runs if "sync" in self.runs else ():
            if name != "sync":
                self._ratio(name)

    def _ratio(self, name: str) -> None:
        ours, other = self.middle("sync"), self.middle(name)
        whole, backfill = other.whole_s / ours.whole_s, other.backfill_s / ours.backfill_s
        cpu = sum(other.cpu_s) / sum(ours.cpu_s)
        print(f"sync is {backfill:5.2f}x of {name:16} whole {whole:5.2f}x, all processor time {cpu:5.2f}x")

    def beside(self) -> list[list[str]]:
        """The sync's backfill beside everybody else's, in rows of ``figures.SIDE_BY_SIDE``."""

        def times(name: str) -> Times:
            return Times([run.backfill_s * 1000 for run in self.runs[name]])

        return [
            figures.beside("index: the sync's backfill", times("sync"), NAMES[name], times(name))
            for name in self.runs
            if name != "sync"
        ]

    def compare(self) -> None:
        """Says where the sync and Ponder have other rows; trades must be the same."""
        ours = self.middle("sync").rows
        for name in (name for name in self.runs if name.startswith("ponder")):
            theirs = self.middle(name).rows
            for table in TABLES:
                if ours[table] != theirs[table]:
                    why = WHY.get(table, "")
                    print(f"{table}: {ours[table]} rows of the sync, {theirs[table]} of {name}{why}")
            assert ours["trade"] == theirs["trade"], "not the same trades"


async def measure(place: Place, asked: argparse.Namespace, logs: int) -> None:
    """Every run, in turns."""
    table = Table()
    admin = await asyncpg.connect(place.dsn)
    for number in range(asked.runs):
        if "plain" in asked.only:
            table.add("plain", plain(place, blocks=False))
            table.add("plain, blocks", plain(place, blocks=True))
        if "sync" in asked.only:
            await admin.execute(f"CREATE DATABASE sync{number}")
            table.add("sync", await sync(place, f"sync{number}"))
    for limited in (False, True)[: "ponder" in asked.only and 1 + asked.limited]:
        database = "ponder_limited" if limited else "ponder"
        await admin.execute(f"CREATE DATABASE {database}")
        table.add(database.replace("_", ", "), await ponder(place, database, limited))
    await admin.close()
    table.show(place.newest, logs)
    if "sync" in asked.only:
        table.compare()
        await sizes(place.database("sync0"))
        title = f"{place.newest:,} blocks, {logs:,} logs, backfills"
        figures.keep(asked.keep, [figures.Table(title, figures.SIDE_BY_SIDE, table.beside())])


async def measured(node: RunningNode, built: world.Built, asked: argparse.Namespace) -> None:
    """With a server of its own around it."""
    with SyncRpc(node.url, timeout_s=120) as chain:
        last = int(chain.call("eth_blockNumber"), 16)
        logs = len(chain.call("eth_getLogs", {"fromBlock": "0x0", "toBlock": hex(last)}))
        chain.call("anvil_mine", hex(SPARE_BLOCKS))
        newest_s = int(chain.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    with tempfile.TemporaryDirectory() as folder:
        async with EmbeddedPostgres(Path(folder)) as server:
            newest, kept_from_s = last + SPARE_BLOCKS, newest_s - KEPT_S
            pids = (node.pid, int((server.home / "data/postmaster.pid").read_text().split()[0]))
            place = Place(node.url, pids, built, last, newest, kept_from_s, server.dsn, Path(folder))
            await measure(place, asked, logs)


def main() -> None:
    """Builds or finds the busy chain, starts it, measures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", type=int, default=busy_chain.BLOCKS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--only", nargs="+", choices=("plain", "sync", "ponder"), default=["plain", "sync", "ponder"]
    )
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--limited", action="store_true", help="Ponder as it comes, too (minutes)")
    asked = parser.parse_args()
    built = busy_chain.build(asked.blocks, print)
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    with world.start_world(places, built, NodeOptions(state=built.state)) as node:
        asyncio.run(measured(node, built, asked))


if __name__ == "__main__":
    main()
