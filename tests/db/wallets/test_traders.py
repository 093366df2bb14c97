"""Which wallets a check sells as, held against a slow look at all positions; and who launched it."""

import hashlib
from dataclasses import dataclass
from random import Random
from typing import cast

import asyncpg
import pytest

from roundtrip.domain.base.types import Address
from roundtrip.store.check.token_index import traders_holding
from roundtrip.store.index import deployers
from roundtrip.store.index.deployers import DeployerTrades
from roundtrip.store.server.rows import Connection, as_bytes
from support.databases import needs_one_server
from unit.venues.network import address

COLUMNS = (
    "wallet_id, token_id, bought_raw, sold_raw, held_raw, cost_wei, spent_wei, got_wei, profit_wei, buys,"
    " sells, unpriced, closed, round_spent_wei, round_got_wei, round_most_raw, round_unpriced, round_number,"
    " first_s, last_s"
)
SEEDS = [bytes([n]) * 32 for n in (0, 90, 255)]
BARRED = address(0xBAD)


@dataclass(frozen=True)
class PositionRow:
    """One position."""

    wallet: Address
    wallet_id: int
    bought_raw: int
    sold_raw: int
    last_s: int


async def put(connection: Connection, token_id: int, rows: list[PositionRow]) -> None:
    await connection.executemany(
        "INSERT INTO facts.address (id, address) OVERRIDING SYSTEM VALUE VALUES ($1, $2)"
        " ON CONFLICT DO NOTHING",
        [(row.wallet_id, as_bytes(row.wallet)) for row in rows],
    )
    await connection.executemany(
        f"INSERT INTO facts.position ({COLUMNS})"  # noqa: S608
        " VALUES ($1, $2, $3, $4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, $5)",
        [(row.wallet_id, token_id, row.bought_raw, row.sold_raw, row.last_s) for row in rows],
    )


def some_rows(rng: Random, count: int) -> list[PositionRow]:
    """Wallets who bought and sold; some have sold out, some but for dust. Ids with gaps."""
    rows = []
    for n in range(count):
        bought = rng.randrange(1, 10**24)
        sold = rng.choice((0, 0, bought // 2, bought, bought - 1, bought + 7, bought - bought // 2000))
        wallet = BARRED if n == 0 else address(rng.getrandbits(150))
        rows.append(PositionRow(wallet, 5_000_000 + n * 7, bought, max(0, sold), rng.randrange(50)))
    return rows


def slowly(rows: list[PositionRow], seed: bytes, most: int) -> list[list[Address]]:
    """Three sorts, each apart; where several stand equal the wallet that was met first."""
    left = [
        row
        for row in rows
        if (row.bought_raw - row.sold_raw) * 1000 > row.bought_raw and row.wallet != BARRED
    ]  # fmt: skip
    found = []
    for key in (
        lambda row: (-(row.bought_raw - row.sold_raw), row.wallet_id),
        lambda row: (-row.last_s, row.wallet_id),
        lambda row: (hashlib.md5(seed + as_bytes(row.wallet)).hexdigest(), row.wallet_id),  # noqa: S324
    ):
        taken = sorted(left, key=key)[: most // 3]
        found.append([row.wallet for row in taken])
        left = [row for row in left if row not in taken]
    return found


@pytest.mark.parametrize("count", [0, 1, 3, 7, 40, 300])
async def test_they_are_those_that_a_slow_look_at_all_of_them_finds(
    connection: Connection, count: int
) -> None:
    rows = some_rows(Random(count), count)
    await put(connection, 77, rows)
    await put(connection, 78, some_rows(Random(9), 20))
    for seed in SEEDS:
        found = await traders_holding(connection, 77, {BARRED}, seed, 12)
        sorts = slowly(rows, seed, 12)
        assert len(found) == len(set(found))
        assert list(found) == [wallet for sort in sorts for wallet in sort]
        assert found == await traders_holding(connection, 77, {BARRED}, seed, 12)


async def test_who_paid_next_to_nothing_is_left_out_unless_the_price_is_unknown(
    connection: Connection,
) -> None:
    await put(connection, 77, [PositionRow(address(n), n, 100, 0, n) for n in range(1, 5)])
    for number, cost_wei, unpriced in ((1, 999, 0), (2, 1000, 0), (3, 0, 1), (4, 0, 0)):
        await connection.execute(
            "UPDATE facts.position SET cost_wei = $2, round_unpriced = $3 WHERE wallet_id = $1",
            number,
            cost_wei,
            unpriced,
        )
    found = await traders_holding(connection, 77, (), SEEDS[0], 12, least_wei=1000)
    assert set(found) == {address(2), address(3)}


async def test_of_a_token_with_very_many_some_are_looked_at_from_anywhere(connection: Connection) -> None:
    """Neither the first nor the last so many can crowd the others out."""
    rows = some_rows(Random(3), 500)
    await put(connection, 77, rows)
    place = {row.wallet: n for n, row in enumerate(rows)}
    met: set[int] = set()
    for n in range(40):
        seed = hashlib.sha256(bytes([n])).digest()
        found = await traders_holding(connection, 77, {BARRED}, seed, 12, max_read=60)
        assert len(found) == 12
        start = (int.from_bytes(seed[:4], "big") / 2**32) * 499
        for wallet in found:
            assert place[wallet] >= 440 or start - 1 <= place[wallet] <= start + 61
        met |= {place[wallet] * 5 // 500 for wallet in found}
    assert met == {0, 1, 2, 3, 4}


@needs_one_server
async def test_a_million_holders_are_not_read_through(connection: Connection) -> None:
    """Every scan of positions follows the index that has a token's traders in order, and stops early, also
    where the database knows nothing of how many there are."""
    await put(connection, 77, some_rows(Random(1), 3000))
    others = "SELECT n, n % 900, 5, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1"
    await connection.execute(
        f"INSERT INTO facts.position ({COLUMNS}) {others} FROM generate_series(1, 30000) n"
    )
    for analyzed in (False, True):
        if analyzed:
            await connection.execute("ANALYZE facts.position")
        spied = Spy(connection)
        assert (
            len(await traders_holding(cast(Connection, spied), 77, {BARRED}, SEEDS[1], 12, max_read=50)) == 12
        )
        lines = [row[0] for row in spied.plan]
        scans = [line for line in lines if ' on "position"' in line]
        assert len(scans) >= 4
        assert all("position_by_token" in line and "Index" in line for line in scans), scans
        assert not any("Bitmap" in line for line in lines)


class Spy:
    """Has what is asked explained, as it is asked."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.plan: list[asyncpg.Record] = []

    async def fetch(self, query: str, *values: object) -> list[asyncpg.Record]:
        self.plan = await self._connection.fetch(f"EXPLAIN {query}", *values)
        found: list[asyncpg.Record] = await self._connection.fetch(query, *values)
        return found


async def launch(connection: Connection, token_id: int, deployer_id: int, generation: int = 2) -> None:
    await connection.execute(
        "INSERT INTO facts.launch (token_id, generation, deployer_id, sender_id, quote_id, at, block_number,"
        " log_index, at_s, tx_hash) VALUES ($1, $3, $2, $2, 1, '\\x00', 5, $1, 5, '\\x00')",
        token_id,
        deployer_id,
        generation,
    )


async def test_who_launched_it_and_what_he_traded_of_it(connection: Connection) -> None:
    deployer = PositionRow(address(0xDE), 9_000_001, 500, 200, 3)
    await put(connection, 77, [deployer])
    assert await deployers.own(connection, 77) is None
    await launch(connection, 77, deployer.wallet_id)
    assert await deployers.own(connection, 77) == DeployerTrades(
        deployer.wallet_id, deployer.wallet, 500, 200
    )
    await launch(connection, 78, deployer.wallet_id)
    assert await deployers.own(connection, 78) == DeployerTrades(deployer.wallet_id, deployer.wallet, 0, 0)
    await launch(connection, 79, deployer.wallet_id, generation=1)
    assert await deployers.own(connection, 79) is None
