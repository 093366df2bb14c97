"""Measures how long it takes to read who holds a token's liquidity, out of an index with a million positions.

    make bench NAME=positions, or: PYTHONPATH=src python -m bench.positions [--trades 24000000] [--runs 200]

``index_filler`` fills a database with trades, and positions with their NFTs are added by the database itself:
one pool has 10,000 of them, one 200, the rest spread over all others. Printed: median and 95th percentile.
"""

import argparse
import asyncio

from roundtrip.config.networks import ROBINHOOD
from roundtrip.domain.base.types import Address
from roundtrip.domain.liquidity.depth import TokenPositions
from roundtrip.store.liquidity.positions import read_positions
from roundtrip.store.server import connections
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.server.rows import Connection, as_bytes
from support.hex_columns import as_address

from . import boards, index_filler, timing
from .made_cast import Scale

POSITIONS = 1_000_000
SIZES = {"10,000 positions in a pool": 10_000, "200 positions": 200}
MAX_POOLS, MAX_POSITIONS = 8, 200

# $1 the position manager's number, $2 how many, $3 the pools' numbers, $4 the first NFT
_POSITIONS = """
INSERT INTO facts.lp_position
SELECT ($3::int[])[1 + n % cardinality($3::int[])], $1::int, $4::int + n, -600 * (1 + n % 9),
    600 * (1 + n % 7), 1000 + n % 9973
FROM generate_series(0, $2::int - 1) AS n ORDER BY hashint4(n)
"""
# $1 the position manager's number, $2 how many NFTs, $3 the first wallet's number, $4 the wallets
_TRANSFERS = """
INSERT INTO facts.lp_transfer
SELECT $1::int, n, block, 0, 0, $3::int + n % $4::int, $3 + (n + block) % $4,
    decode(md5(n::text) || md5('h'), 'hex')
FROM generate_series(0, $2::int - 1) AS n CROSS JOIN (VALUES (10), (20)) AS moved (block)
"""


async def fill(connection: Connection) -> dict[str, Address]:
    """Adds positions; returns the tokens to ask for."""
    await connection.execute("TRUNCATE facts.lp_position, facts.lp_transfer, facts.pool_state")
    manager = await connection.fetchval(
        "INSERT INTO facts.address (address) VALUES ($1)"
        " ON CONFLICT (address) DO UPDATE SET address = excluded.address RETURNING id",
        as_bytes(ROBINHOOD.contracts.v4_position_manager),
    )
    pools = [
        row["id"]
        for row in await connection.fetch(
            "SELECT id FROM facts.pool AS pool WHERE kind <> 'launchpad_curve' AND in_money_from IS NOT NULL"
            # Last, and so with a known number of positions: tokens with one pool.
            " ORDER BY (SELECT count(*) FROM facts.pool AS other WHERE other.token_id = pool.token_id) DESC"
        )
    ]
    asked, first = {}, 0
    for name, count in SIZES.items():
        pool = pools.pop()
        await connection.execute(_POSITIONS, manager, count, [pool], first)
        asked[name], first = await _token_of(connection, "pool.id = $1", pool), first + count
    await connection.execute(_POSITIONS, manager, POSITIONS - first, pools, first)
    wallets = await connection.fetchval("SELECT max(id) / 2 FROM facts.address")
    await connection.execute(_TRANSFERS, manager, POSITIONS, wallets, wallets)
    await connection.execute(
        "INSERT INTO facts.pool_state SELECT id, block_number, 0, 10::numeric ^ 21 FROM facts.pool"
        " WHERE kind <> 'launchpad_curve'"
    )
    asked["none, on its curve"] = await _token_of(
        connection,
        "pool.kind = 'launchpad_curve' AND NOT EXISTS"
        " (SELECT FROM facts.launch_step AS step WHERE step.token_id = pool.token_id)",
    )
    await connection.execute("VACUUM (ANALYZE)")
    return asked


async def _token_of(connection: Connection, which: str, *arguments: object) -> Address:
    query = (
        "SELECT address.address FROM facts.pool AS pool"
        " JOIN facts.address AS address ON address.id = pool.token_id WHERE "
    )
    return as_address(await connection.fetchval(f"{query} {which} LIMIT 1", *arguments))


async def _measure(connection: Connection, name: str, token: Address, runs: int) -> None:
    async def ask() -> TokenPositions | None:
        return await read_positions(connection, ROBINHOOD.contracts, token, MAX_POOLS, MAX_POSITIONS)

    found = await ask()
    assert found is not None
    count = sum(len(pool.positions) + pool.left_out for pool in found.pools)
    times = await timing.timed(ask, runs)
    slow = "SLOW " if times.p95 >= boards.AIM_MS else ""
    print(f"{slow}{name:28} {count:7,} positions  median {times.median:6.1f} ms  p95 {times.p95:6.1f} ms")


async def run(trades: int, runs: int) -> None:
    """Fills, asks and prints, with a server of its own around it."""
    boards.FOLDER.mkdir(parents=True, exist_ok=True)
    async with EmbeddedPostgres(boards.FOLDER, durable=False) as server:
        dsn = await boards.filled(server.dsn, Scale(trades, index_filler.LAST_S, 1), reuse=True)
        connection = await connections.connect(dsn)
        asked = await fill(connection)
        for name, token in asked.items():
            await _measure(connection, name, token, runs)
        await connection.close()


def main() -> None:
    """Reads what is wanted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trades", type=int, default=24_000_000)
    parser.add_argument("--runs", type=int, default=200)
    asked = parser.parse_args()
    asyncio.run(run(asked.trades, asked.runs))


if __name__ == "__main__":
    main()
