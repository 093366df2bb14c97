"""Measures the test of a rule on seven days with 24 million trades, and the cost of a block's events.

    PYTHONPATH=src python -m bench.replay [--trades 24000000] [--reuse] [--only buying]

``index_filler`` fills a database with all the trades within seven days; some thousand moves between wallets a
day come on top. Every kind of rule is asked three times and the worst is shown, beside a plain count of the
seven days' trades in the same run: machines are noisy. Last what the indexes that rules need cost the
sync: one day's trades and transfers written again, with them and without.

--reuse   keeps what an earlier run filled (24 million trades: some fifteen minutes and fifteen gigabytes)
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from roundtrip.config.networks import ROBINHOOD
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.rules import Over, Rule, Unit, Verb, Watch, Who
from roundtrip.store.index.tokens import addresses_of
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch.happenings import IndexedBlock, ReplayResult, read_happenings, replay_rule
from support.hex_columns import as_address

from . import index_filler
from .made_cast import DAY_S, Cast, Scale
from .schema_adopter import brought_up

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "var/bench-replay"
DAYS = 7
AIM_S = 2.0
TIMES = 3
MOVES = 1_000_000
BLOCKS_ASKED = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """A rule, and what kind of it that is."""

    kind: str
    watch: Watch


def rule(
    kind: str, verb: Verb, over: str = "", token: Address | None = None, wallets: set[Address] | None = None
) -> Asked:
    """``over``: a raw amount and its unit."""
    raw, _, unit = over.partition(" ")
    units: dict[str, Unit] = {"eth": "eth", "usd": "usd", "%": "%"}
    one = Rule(Who("any"), verb, Over(units[unit], int(raw)) if over else None, token)
    said = f"{kind} {verb} {one.over.text() if one.over else ''}"
    return Asked(said, Watch(one, wallets))


async def filled(server: EmbeddedPostgres, scale: Scale, reuse: bool) -> str:
    """The address of a database that is filled."""
    name = f"replay_{scale.trades}"
    dsn = server.dsn.replace("///roundtrip?", f"///{name}?")
    admin = await asyncpg.connect(server.dsn)
    said = json.dumps([scale.trades, scale.last_s, scale.seed])
    try:
        there = await admin.fetchval(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = $1", name
        )
        if reuse and there == said:
            await brought_up(admin, server.dsn, dsn)
            return dsn
        await admin.execute(f"DROP DATABASE IF EXISTS {name}")
        await admin.execute(f"CREATE DATABASE {name}")
        await index_filler.fill(dsn, scale)
        await put_moves(dsn, scale)
        await admin.execute(f"COMMENT ON DATABASE {name} IS '{said}'")
    finally:
        await admin.close()
    return dsn


async def put_moves(dsn: str, scale: Scale) -> None:
    """Launched tokens go from wallet to wallet."""
    connection = await asyncpg.connect(dsn, command_timeout=1800)
    try:
        await connection.execute(
            "WITH token AS ("
            " SELECT token_id, row_number() OVER (ORDER BY token_id) AS n FROM facts.launch)"
            " INSERT INTO facts.transfer"
            " (at_s, block_number, log_index, token_id, from_id, to_id, amount_raw, tx_hash)"
            " SELECT $1 + one * $2::bigint / $3::bigint, 1000000 + one * $2::bigint * 10 / $3::bigint,"
            " 1000 + one % 500,"
            " token_id, $4 + (one * 7919) % 1000000, $4 + (one * 104729) % 1000000,"
            " (10::numeric ^ 27) / (1 + (one * 31) % 100000),"
            " decode(md5('m' || one) || md5('n' || one), 'hex')"
            " FROM generate_series(1::bigint, $3::bigint - 1) AS one"
            " JOIN token ON token.n = 1 + (one * 611953) % (SELECT count(*) FROM token)",
            scale.first_s,
            scale.last_s - scale.first_s,
            MOVES,
            Cast.FIRST_WALLET,
        )
        await connection.execute("ANALYZE facts.transfer")
    finally:
        await connection.close()


async def rules(connection: Connection) -> list[Asked]:
    """One of each kind, about those who are busy and those who are not."""

    async def wallets(ids: list[int]) -> set[Address]:
        return set((await addresses_of(connection, ids)).values())

    async def token(place: str) -> Address:
        return as_address(
            await connection.fetchval(f"SELECT address FROM facts.address WHERE id = ({place})")  # noqa: S608
        )

    bot, trader = await wallets([Cast.BOTS[0]]), await wallets([Cast.TRADERS[500]])
    deployer = await wallets([Cast.DEPLOYERS[0]])
    people = await wallets([*Cast.TRADERS[::50]])
    bots = await wallets([*Cast.BOTS[:200]])
    hot = await token(f"SELECT {Cast.EVERGREENS[0]}")
    launched = await token("SELECT token_id FROM facts.launch ORDER BY token_id LIMIT 1 OFFSET 5000")
    e = 10**18
    return [
        rule("any", "buying"),
        *(rule("any", "buying", f"{over} eth") for over in (e // 100, e // 4, e, 2 * e, 5 * e, 100 * e)),
        *(rule("any", "selling", f"{over * 10**6} usd") for over in (30, 300, 1000, 10_000, 10**6)),
        *(rule("any", "buying", f"{over} %") for over in (100, 1_000, 10_000, 50_000, 200_000)),
        rule("trader", "buying", wallets=trader),
        rule("bot", "buying", wallets=bot),
        rule("bot", "buying", f"{e} eth", wallets=bot),
        rule("bot", "selling", "10000 %", wallets=bot),
        rule("200 people", "buying", wallets=people),
        rule("200 people", "buying", f"{e} eth", wallets=people),
        rule("200 bots", "buying", wallets=bots),
        rule("200 bots", "buying", f"{2 * e} eth", wallets=bots),
        rule("200 bots", "selling", "50000 %", wallets=bots),
        rule("hot token", "buying", token=hot),
        rule("hot token", "buying", f"{e} eth", token=hot),
        rule("hot token", "buying", f"{e // 20} eth", token=hot, wallets=people),
        rule("launch", "selling", token=launched),
        rule("launch", "selling", f"{e // 10} eth", token=launched),
        rule("deployer", "selling", wallets=deployer),
        rule("deployer", "launching", wallets=deployer),
        rule("any", "launching"),
        rule("any", "launching", f"{e} eth"),
        rule("any", "graduating"),
        rule("any", "graduating", f"{5 * e} eth"),
        rule("trader", "moving", wallets=trader),
        rule("launch", "moving", token=launched),
        rule("any", "moving"),
        rule("any", "moving", "50000 %"),
        rule("any", "moving", "100 %"),
        rule("any", "moving", f"{e // 100} eth"),
        rule("any", "moving", f"{e // 4} eth"),
        rule("any", "moving", f"{e} eth"),
        rule("any", "moving", f"{100 * e} eth"),
        rule("any", "moving", f"{1000 * 10**6} usd"),
        rule("any", "draining"),
        rule("any", "draining", "500000 %"),
        rule("any", "draining", f"{10 * e} eth"),
        rule("any", "draining", f"{10**11} usd"),
        rule("deployer", "draining", wallets=deployer),
    ]  # fmt: skip


async def worst_s(
    doing: Callable[[], Awaitable[ReplayResult]], times: int = TIMES
) -> tuple[float, ReplayResult | None]:
    """The longest of so many times, and what came out; None: it took longer than a minute."""
    found, worst = None, 0.0
    for _ in range(times):
        began = time.perf_counter()
        try:
            async with asyncio.timeout(60):
                found = await doing()
        except TimeoutError:
            return 60.0, None
        worst = max(worst, time.perf_counter() - began)
    return worst, found


async def ask(dsn: str, scale: Scale, only: list[str]) -> None:
    """Asks every rule and prints."""
    connection = await asyncpg.connect(dsn, command_timeout=600)
    contracts = ROBINHOOD.contracts
    try:
        [row] = await connection.fetch("SELECT number, at_s FROM facts.cursor")
        to, after_s = IndexedBlock(row["number"], row["at_s"]), scale.last_s - DAYS * DAY_S
        count, counted_s = 0, 0.0
        for _ in range(2):
            began = time.perf_counter()
            count = await connection.fetchval("SELECT count(*) FROM facts.trade WHERE at_s > $1", after_s)
            counted_s = time.perf_counter() - began
        print(f"{count:,} trades in {DAYS} days; a plain count of them: {counted_s:.2f} s\n")
        print(f"{'':6}{'rule':44}{'hits':>9}{'seconds':>9}{'of a count':>12}")
        for asked in await rules(connection):
            if only and not any(word in asked.kind for word in only):
                continue

            async def once(watch: Watch = asked.watch) -> ReplayResult:
                async with connection.transaction():
                    return await replay_rule(connection, contracts, watch, after_s, to)

            took, found = await worst_s(once)
            hits = "?" if found is None else f"{found.hits:,}{'+' if found.at_least else ''}"
            slow = "SLOW" if took >= AIM_S else ""
            print(f"{slow:6}{asked.kind:44}{hits:>9}{took:9.2f}{took / counted_s:12.2f}", flush=True)
        print(f"aim: under {AIM_S:g} s (else SLOW)\n")
        await ask_blocks(connection, to)
    finally:
        await connection.close()


async def ask_blocks(connection: Connection, to: IndexedBlock) -> None:
    """What happened in each of the newest blocks, and in ten at once."""
    for step in (1, 10):
        times, found = [], 0
        for number in range(to.number - BLOCKS_ASKED, to.number, step):
            at_s = to.at_s - (to.number - number) // 10
            began = time.perf_counter()
            async with connection.transaction():
                found += len(
                    await read_happenings(
                        connection,
                        ROBINHOOD.contracts,
                        IndexedBlock(number, at_s - 1),
                        IndexedBlock(number + step, at_s + 2),
                    )
                )
            times.append((time.perf_counter() - began) * 1000)
        times.sort()
        print(
            f"{step} block(s) at once: {found} happenings in {BLOCKS_ASKED} blocks, median"
            f" {statistics.median(times):.1f} ms, p95 {times[int(len(times) * 0.95)]:.1f} ms"
        )


ADDED = {
    "trade": ("trade_large_eth", "trade_large_usd", "trade_large_share", "trade_dear"),
    "transfer": ("transfer_by_sender", "transfer_large"),
    "liquidity": ("liquidity_by_sender",),
}


async def ask_sync(dsn: str) -> None:
    """A day's rows written again, a thousand at a time, with and without what rules need."""
    connection = await asyncpg.connect(dsn, command_timeout=600)
    try:
        for table, added in ADDED.items():
            day = await connection.fetchval(
                "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = $1::text::regclass"
                " ORDER BY 1 DESC OFFSET 1 LIMIT 1",
                f"facts.{table}",
            )
            took, rows = {"with": 0.0, "without": 0.0}, ""
            for which in ("with", "without", "without", "with"):
                await connection.execute(
                    f"DROP TABLE IF EXISTS again; CREATE TABLE again (LIKE {day} INCLUDING ALL)"
                )
                if which == "without":
                    names = await connection.fetch(
                        "SELECT ours.relname FROM pg_index AS ours_index"
                        " JOIN pg_class AS ours ON ours.oid = indexrelid WHERE indrelid = 'again'::regclass"
                        " AND EXISTS (SELECT FROM pg_index AS theirs JOIN pg_class AS name"
                        " ON name.oid = theirs.indexrelid WHERE name.relname = ANY($1::text[])"
                        " AND theirs.indkey::text = ours_index.indkey::text"
                        " AND coalesce(pg_get_expr(theirs.indpred, theirs.indrelid), '')"
                        " = coalesce(pg_get_expr(ours_index.indpred, ours_index.indrelid), ''))",
                        list(added),
                    )
                    assert len(names) == len(added), (table, names)
                    for row in names:
                        await connection.execute(f"DROP INDEX {row['relname']}")
                began = time.perf_counter()
                rows = await connection.execute(
                    f"INSERT INTO again SELECT * FROM {day} LIMIT 300000"  # noqa: S608
                )
                took[which] += time.perf_counter() - began
            await connection.execute("DROP TABLE again")
            count = int(rows.split()[-1])
            each = {which: seconds / 2 / count * 1e6 for which, seconds in took.items()}
            print(f"{table}: {each['with']:.2f} µs a row with, {each['without']:.2f} without")
    finally:
        await connection.close()


async def run(asked: argparse.Namespace) -> None:
    """With a server of its own around it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    scale = Scale(
        asked.trades, asked.last_s, asked.seed, trades_a_day=asked.trades // DAYS, transfers_s=DAYS * DAY_S
    )
    async with EmbeddedPostgres(FOLDER, durable=False) as server:
        dsn = await filled(server, scale, asked.reuse)
        await ask(dsn, scale, asked.only)
        if not asked.only:
            await ask_sync(dsn)


def main() -> None:
    """Reads what is wanted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trades", type=int, default=24_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--last-s", type=int, default=index_filler.LAST_S, help="the newest block's time")
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--only", nargs="+", default=[], help="rules with one of these words in their kind")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
