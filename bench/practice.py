"""How quick practice answers: the league with many accounts in it, and an account that holds all it may.

    make bench NAME=practice FLAGS="[--accounts 100000] [--runs 200]"

The league: one week of so many accounts, nine in ten of them entered, a third of them agents, many of equal
profit, and the week before; every row was changed some times, and is asked for before and after the database
has cleaned up. Asked as the service asks it, but not through the answers that everyone shares, one after the
other; beside it, in the same run, what an empty question takes over the same pool.

The account: fifty positions of tokens that the local chain's actors trade, on curves and in pools of either
version, over the index of that chain, while it makes ten blocks a second. Beside it, in the same run, a check
of one of them. Compare the ratios: machines are noisy.
"""

import argparse
import asyncio
from pathlib import Path
from typing import get_args

import asyncpg

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.chain.rpc.dialect import ANVIL
from roundtrip.chain.simulate.rates import Rates
from roundtrip.config.networks import CHAIN_ID, ROBINHOOD
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.practice.practice import WEEK_S, Who, monday_s
from roundtrip.services.practice.league import LeagueParams, league
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.server.rows import Connection

from .boards import QuietNode
from .held_positions import ask_the_account
from .serving import connected
from .timing import tell, timed

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "var/bench-practice"
ACCOUNTS, RUNS = 100_000, 200
AIM_MS = 50.0
EMPTY = "an empty question"
NOW_S = 1_790_020_000
CHANGES = 3
"""How often each row is changed after it is made: what is left of a busy week."""


def context(pool: asyncpg.Pool) -> Context:
    """As the service has one; the node is never asked for the league."""
    node, contracts = QuietNode(), ROBINHOOD.contracts
    return Context(
        chain_id=CHAIN_ID,
        contracts=contracts,
        node=node,
        heads=Heads(node, CHAIN_ID, contracts, venue_index=VenueIndex(contracts), dialect=ANVIL),
        policy=POLICY,
        pool=pool,
        rates=Rates(node, contracts),
        now_s=lambda: float(NOW_S),
        entropy=lambda: bytes(32),
    )


# --- the league ------------------------------------------------------------------------------------

_ACCOUNTS = """
INSERT INTO accounts.account (wallet, designation, is_agent, agent_name, made_at)
SELECT decode(lpad(to_hex(n), 40, '0'), 'hex'), 'mite-' || n, n % 3 = 0,
    CASE WHEN n % 3 = 0 THEN 'Bot ' || n END, to_timestamp(0)
FROM generate_series(1, $1) AS n
"""
_WEEK = """
INSERT INTO accounts.league_week
SELECT $1, account.id, account.is_agent, (hashint8(account.id)::bigint % 20000) * 10^14::numeric,
    1 + account.id % 10, 1,
    decode(lpad(to_hex(account.id % 1000), 40, '0'), 'hex'), 10^17::numeric, $1 + (account.id % 1000)::int
FROM accounts.account AS account
"""
_CHANGE = """
UPDATE accounts.league_week SET
    profit_wei = profit_wei + (hashint8(account_id)::bigint % 100) * 10^13::numeric,
    sells = sells + 1
"""

_COUNTS = """
INSERT INTO accounts.league_count
SELECT week_s, is_agent, count(*) FILTER (WHERE sells >= 3), count(*) FILTER (WHERE sells < 3)
FROM accounts.league_week GROUP BY week_s, is_agent
"""


async def fill(connection: Connection, accounts: int) -> None:
    """Two weeks of so many accounts."""
    now_week_s = monday_s(int(NOW_S))
    await connection.execute(_ACCOUNTS, accounts)
    for began_s in (now_week_s - WEEK_S, now_week_s):
        await connection.execute(_WEEK, began_s)
    for _ in range(CHANGES):
        await connection.execute(_CHANGE)
    # As it was: one in ten has too few.
    await connection.execute("UPDATE accounts.league_week SET sells = 2 WHERE account_id % 10 = 0")
    await connection.execute(_COUNTS)


async def ask_the_league(pool: asyncpg.Pool, accounts: int, runs: int) -> None:
    """Each board, right after the changes and after the database has cleaned up."""
    ctx = context(pool)
    async with pool.acquire() as connection:
        await connection.execute("ALTER TABLE accounts.league_week SET (autovacuum_enabled = false)")
        await fill(connection, accounts)
        await connection.execute("ANALYZE")
    for state in ("as it was left", "cleaned up"):
        if state == "cleaned up":
            await pool.execute("VACUUM ANALYZE accounts.league_week")
        empty = await timed(lambda: pool.fetchval("SELECT 1"), runs)
        tell("an empty question", empty, empty, EMPTY)
        for who in get_args(Who):
            found = await timed(lambda who=who: league(ctx, LeagueParams(who)), runs)  # type: ignore[misc]
            tell(f"league, {who}, {accounts:,} accounts, {state}", found, empty, EMPTY, AIM_MS)


# --- every part ------------------------------------------------------------------------------------


async def run(asked: argparse.Namespace) -> None:
    """Each part in turn, over one server that is emptied first."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    async with EmbeddedPostgres(FOLDER, durable=False) as server:
        dsn = server.dsn.replace("///roundtrip?", "///practice?")
        admin = await asyncpg.connect(server.dsn)
        await admin.execute("DROP DATABASE IF EXISTS practice")
        await admin.execute("CREATE DATABASE practice")
        async with connected(dsn, min_size=1, max_size=10, command_timeout=120) as pool:
            async with pool.acquire() as pooled:
                await migrate(pooled)
            await ask_the_league(pool, asked.accounts, asked.runs)
        await admin.execute("DROP DATABASE practice")
        await admin.execute("CREATE DATABASE practice")
        connection = await asyncpg.connect(dsn)
        await migrate(connection)
        await connection.close()
        await ask_the_account(dsn, asked.runs)
        await admin.close()
    print(f"aim of the league: p95 under {AIM_MS:g} ms (else SLOW)")


def main() -> None:
    """Reads what is wanted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accounts", type=int, default=ACCOUNTS)
    parser.add_argument("--runs", type=int, default=RUNS)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
