"""Who bears a symbol is what a slow count over all tokens and launches says, in whatever order they came."""

import random

import pytest

from roundtrip.domain.base import names
from roundtrip.domain.base.events import LaunchedToken, LaunchEvent, LaunchMoved, LaunchStep, Spot
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef, TxHash
from roundtrip.store.index import facts, rewind, tokens
from roundtrip.store.index.cursor import Ids
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets import look_up
from roundtrip.store.wallets.look_up import Bearers
from unit.venues.network import address

AT_S = 1_760_000_000
SYMBOLS = (
    "Pepe",
    "PEPE",
    "p\u200bepe",
    "pep\u0435",
    "DOGE",
    "\u2066doge\u2069",
    "",
    "\u200b",
    None,
    "x" * 300,
)
"""One of them with a letter of another alphabet: it is another symbol."""
HASH = TxHash("0x" + "11" * 32)


def launch(token: Address, number: int) -> LaunchEvent:
    launched = LaunchedToken(token, address(0xDE), ZERO_ADDRESS, "0x" + f"{number:040x}", 2, 10)
    return LaunchEvent(Spot(number, number % 3, AT_S + number, HASH), launched, address(0xDE))


async def slowly(connection: Connection, key: str) -> Bearers:
    """Everybody is looked at, and every symbol cleaned anew."""
    launched: list[tuple[int, int, int]] = []
    strangers = 0
    for row in await connection.fetch("SELECT token, symbol FROM facts.token"):
        if row["symbol"] is None or names.symbol_key(row["symbol"]) != key:
            continue
        own = await connection.fetchrow(
            "SELECT launch.block_number, launch.log_index, launch.token_id FROM facts.launch AS launch"
            " JOIN facts.address AS address ON address.id = launch.token_id WHERE address.address = $1",
            row["token"],
        )
        if own is None:
            strangers += 1
        else:
            launched.append((own["block_number"], own["log_index"], own["token_id"]))
    launched.sort()
    ends = (launched[-1][2], launched[0][2]) if launched else (None, None)
    return Bearers(len(launched), strangers, *ends)


@pytest.mark.parametrize("seed", range(4))
async def test_bearers_are_what_a_slow_count_says(connection: Connection, seed: int) -> None:
    chance, ids = random.Random(seed), Ids()
    everybody = [address(0x7000 + n) for n in range(30)]
    await facts.intern(connection, [*everybody, address(0xDE), ZERO_ADDRESS], ids)
    launched: dict[Address, int] = {}
    keys = {key for symbol in SYMBOLS if symbol is not None and (key := names.symbol_key(symbol))}
    assert len(keys) == 4
    for number in range(1, 120):
        token: Address = chance.choice(everybody)
        what = chance.random()
        if what < 0.45:
            read_number = chance.choice((number, number - 3))
            await tokens.keep(connection, token, chance.choice(SYMBOLS), "a name", 18, 1, read_number)
        elif what < 0.9 and token not in launched:
            launched[token] = number
            await facts.put_launches(connection, [launch(token, number)], [], ids)
        elif what > 0.96:
            to = number - chance.randrange(1, 20)
            await rewind.take_away(connection, BlockRef(to, "0x", AT_S))
            launched = {one: at for one, at in launched.items() if at <= to}
        read = {row["token"] for row in await connection.fetch("SELECT token FROM facts.token")}
        unread = any(bytes.fromhex(one[2:]) not in read for one in launched)
        assert await look_up.has_unread(connection) is unread, number
        if number % 7 == 0:
            for key in keys:
                assert await look_up.bearers(connection, key) == await slowly(connection, key), (number, key)


async def test_a_launch_stands_where_its_last_step_put_it(connection: Connection) -> None:
    ids, token = Ids(), address(0x7000)
    await facts.intern(connection, [token, address(0xDE), ZERO_ADDRESS], ids)
    await facts.put_launches(connection, [launch(token, 5)], [], ids)

    async def stands() -> str:
        found = await look_up.launches_of(connection, [ids.addresses[token], -1])
        (one,) = found.values()
        assert (one.deployer, one.block_number, one.at_s) == (address(0xDE), 5, AT_S + 5)
        return one.stands

    assert await stands() == "curve"
    for number, step in ((7, "swept"), (9, "pooled")):
        spot = Spot(number, 0, AT_S + number, HASH)
        await facts.put_launches(connection, [], [LaunchStep(spot, LaunchMoved(token, step, 1, 1))], ids)  # type: ignore[arg-type]
        assert await stands() == step


async def test_ten_thousand_bearers_are_not_looked_at_one_by_one(connection: Connection) -> None:
    """The first and the last are the ends of an index; nothing is joined but those."""
    await connection.execute(
        "INSERT INTO facts.launch (token_id, generation, deployer_id, sender_id, quote_id, at, block_number,"
        " log_index, at_s, tx_hash, symbol_key) SELECT n, 2, 1, 1, 1, '\\x00', n, 0, n, '\\x00',"
        " CASE WHEN n % 5 = 0 THEN 'pepe' ELSE n::text END FROM generate_series(1, 50000) AS n"
    )
    await connection.execute("ANALYZE facts.launch")
    assert await look_up.bearers(connection, "pepe") == Bearers(10_000, 0, 50_000, 5)
    await connection.execute("UPDATE facts.launch SET symbol_key = NULL WHERE token_id % 5 = 1")
    await connection.execute("ANALYZE facts.launch")
    unread = await connection.fetch("EXPLAIN " + look_up._UNREAD.replace("$1", "200"))
    assert any("launch_by_symbol" in row[0] for row in unread)
    plan = await connection.fetch("EXPLAIN " + look_up._BEARERS.replace("$1", "'pepe'"))
    lines = [row[0] for row in plan]
    assert sum("Index Only Scan" in line and "launch_by_symbol" in line for line in lines) >= 2
    assert not any("Seq Scan on launch" in line or "Join" in line for line in lines)
