"""What begins as somebody types: symbols, names and addresses."""

import pytest

from roundtrip.domain.base.events import LaunchedToken, LaunchEvent, Spot
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, TxHash
from roundtrip.store.index import facts, tokens
from roundtrip.store.index.cursor import Ids
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets.look_up import find_by_address, find_by_text
from unit.venues.network import address

AT_S = 1_760_000_000
DEPLOYER = address(0xDE)
MADE = (
    ("JOFAL", "Jolly Falcon", 10),
    ("jo", "Joker", None),
    ("JOHAM", "Jovial Hamster", 20),
    ("Other", "jolly roger", None),
    ("J%", "100% fair", None),
    (None, None, None),
    ("jofal", "Golly", 30),
)
"""A symbol, a name, and the block of the launch; None: it was not launched on a launchpad."""


def bearer(number: int) -> Address:
    return address(0xAB00 + number)


async def make(connection: Connection) -> None:
    ids, launches = Ids(), []
    await facts.intern(connection, [bearer(n) for n in range(len(MADE))] + [DEPLOYER, ZERO_ADDRESS], ids)
    for number, (symbol, name, block) in enumerate(MADE):
        if block is not None:
            spot = Spot(block, 0, AT_S + block, TxHash("0x" + "11" * 32))
            launched = LaunchedToken(bearer(number), DEPLOYER, ZERO_ADDRESS, address(block), 2, 10)
            launches.append(LaunchEvent(spot, launched, DEPLOYER))
        await tokens.keep(connection, bearer(number), symbol, name, 18, 10**27, 1)
    await facts.put_launches(connection, launches, [], ids)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # The very symbol first, then the newest launch.
        ("jo", ["jo", "jofal", "JOHAM", "JOFAL", "Other"]),
        ("jof", ["jofal", "JOFAL"]),
        # A copy stands behind what it copies.
        ("jofal", ["JOFAL", "jofal"]),
        ("Jolly Falcon", ["JOFAL"]),
        ("jolly", ["JOFAL", "Other"]),
        # No character is a pattern.
        ("%", []),
        ("j%", ["J%"]),
        ("j_", []),
        ("\U0010ffff", []),
    ],
)
async def test_a_beginning_finds_symbols_and_names(
    connection: Connection, query: str, expected: list[str]
) -> None:
    await make(connection)
    found = await find_by_text(connection, query.casefold(), query, 8)
    by_token = {bearer(n): symbol for n, (symbol, _, _) in enumerate(MADE)}
    assert [by_token[token] for token, _ in found] == expected
    assert len(await find_by_text(connection, query.casefold(), query, 1)) == min(1, len(expected))


async def test_the_first_digits_of_an_address_find_it(connection: Connection) -> None:
    await make(connection)
    every = [bearer(n) for n in range(len(MADE))]
    digits = bearer(0).removeprefix("0x")
    assert [token for token, _ in await find_by_address(connection, digits[:38], 8)] == every
    assert [token for token, _ in await find_by_address(connection, digits.upper(), 8)] == every[:1]
    assert await find_by_address(connection, "f" * 39, 8) == []
