"""Origins of wallets: what the sync met, what an archive told, and what of both is known for sure."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import Address
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.store.index.origins import (
    ArchiveSearch,
    keep_archive_search,
    origin,
    origins_of,
    read_archive_search,
)
from roundtrip.store.server.rows import Connection, as_bytes, fetch_row
from unit.venues.network import address

WALLET, FUNDER, OTHER = (Address("0x" + f"{number:02x}" * 20) for number in (0xAA, 0xBB, 0xCC))
MET = FirstSeen(500, 5000, FUNDER)
FOUND = ArchiveSearch(FirstSeen(40, 400, OTHER), 900)
HASH = bytes(32)
NOBODY = address(0x404)


async def address_id(connection: Connection, address: Address) -> int:
    found: int = await connection.fetchval(
        "INSERT INTO facts.address (address) VALUES ($1) RETURNING id", bytes.fromhex(address[2:])
    )
    return found


async def meet(connection: Connection, funded: bool = True) -> None:
    """The sync met the wallet in block 500; its funder came ten blocks later."""
    # Other rows first: the ids of wallet and funder are not each other's by chance.
    await address_id(connection, OTHER)
    wallet, funder = await address_id(connection, WALLET), await address_id(connection, FUNDER)
    funding = (funder, 510, 5001) if funded else (None, None, None)
    await connection.execute(
        "INSERT INTO facts.origin (wallet_id, first_number, first_s, funder_id, funded_number, funded_s)"
        " VALUES ($1, 500, 5000, $2, $3, $4), ($5, 7, 70, NULL, NULL, NULL)",
        wallet,
        *funding,
        funder,
    )


async def read_origin(connection: Connection, wallet: Address) -> FirstSeen | None:
    """What the sync stored of the wallet."""
    return await fetch_row(
        connection,
        FirstSeen,
        "SELECT origin.first_number, origin.first_s, funder.address AS funder FROM facts.origin AS origin"
        " JOIN facts.address AS wallet ON wallet.id = origin.wallet_id"
        " LEFT JOIN facts.address AS funder ON funder.id = origin.funder_id WHERE wallet.address = $1",
        as_bytes(wallet),
    )


async def follow_from(connection: Connection, start_number: int) -> None:
    await connection.execute(
        "INSERT INTO facts.cursor (start_number, number, hash, at_s, rewinds) VALUES ($1, 1000, $2, 9, 1)",
        start_number,
        HASH,
    )


async def test_what_the_sync_met(connection: Connection) -> None:
    assert await read_origin(connection, WALLET) is None
    await meet(connection)
    assert await read_origin(connection, WALLET) == MET
    assert await read_origin(connection, FUNDER) == FirstSeen(7, 70, None)
    assert await read_origin(connection, OTHER) is None


async def test_a_wallet_that_nobody_funded(connection: Connection) -> None:
    await meet(connection, funded=False)
    assert await read_origin(connection, WALLET) == FirstSeen(500, 5000, None)


@pytest.mark.parametrize(
    "told",
    [
        FOUND,
        ArchiveSearch(None, 900),
        ArchiveSearch(FirstSeen(40, 400, None), 900),
        ArchiveSearch(FirstSeen(0, 0, None), 0),
    ],
)
async def test_what_the_archive_told_is_kept(connection: Connection, told: ArchiveSearch) -> None:
    assert await read_archive_search(connection, WALLET) is None
    await keep_archive_search(connection, WALLET, told)
    assert await read_archive_search(connection, WALLET) == told
    assert await read_archive_search(connection, OTHER) is None


@pytest.mark.parametrize(
    ("before", "then", "kept"),
    [
        (FOUND, ArchiveSearch(FirstSeen(39, 390, None), 950), "before"),
        (FOUND, ArchiveSearch(None, 950), "before"),
        (ArchiveSearch(None, 900), FOUND, "then"),
        (ArchiveSearch(None, 900), ArchiveSearch(None, 901), "then"),
        (ArchiveSearch(None, 900), ArchiveSearch(None, 899), "before"),
        (ArchiveSearch(None, 1900), FOUND, "then"),
        (FOUND, FOUND, "then"),
    ],
)
async def test_what_was_found_stays(
    connection: Connection, before: ArchiveSearch, then: ArchiveSearch, kept: str
) -> None:
    await keep_archive_search(connection, WALLET, before)
    await keep_archive_search(connection, WALLET, then)
    assert await read_archive_search(connection, WALLET) == (before if kept == "before" else then)


@pytest.mark.parametrize(
    ("start", "told", "known"),
    [
        # A whole index knows; the archive may know of money that came out of a contract before.
        (0, None, MET),
        (0, FOUND, FOUND.found),
        (0, ArchiveSearch(FirstSeen(500, 5000, None), 900), FirstSeen(500, 5000, None)),
        (0, ArchiveSearch(FirstSeen(600, 6000, OTHER), 900), MET),
        (0, ArchiveSearch(None, 100), MET),
        # One that begins late does not, unless nothing was before it.
        (300, None, None),
        (300, FOUND, FOUND.found),
        (300, ArchiveSearch(FirstSeen(600, 6000, OTHER), 900), FirstSeen(600, 6000, OTHER)),
        (300, ArchiveSearch(None, 298), None),
        (300, ArchiveSearch(None, 299), MET),
        (300, ArchiveSearch(None, 400), MET),
        (1, None, None),
        (1, ArchiveSearch(None, 0), MET),
        # No index at all.
        (None, None, None),
        (None, FOUND, FOUND.found),
        (None, ArchiveSearch(None, 900), None),
    ],
)
async def test_what_is_known_for_sure(
    connection: Connection, start: int | None, told: ArchiveSearch | None, known: FirstSeen | None
) -> None:
    await meet(connection)
    if start is not None:
        await follow_from(connection, start)
    if told is not None:
        await keep_archive_search(connection, WALLET, told)
    assert await origin(connection, WALLET) == known


async def test_a_wallet_that_was_never_met_has_no_origin(connection: Connection) -> None:
    await follow_from(connection, 0)
    assert await origin(connection, WALLET) is None
    await keep_archive_search(connection, WALLET, ArchiveSearch(None, 900))
    assert await origin(connection, WALLET) is None


# --- of many at once -------------------------------------------------------------------------------

FEW = [address(n) for n in range(1, 7)]
numbers = st.integers(0, 9)
origins_met = st.builds(FirstSeen, numbers, numbers, st.none() | st.sampled_from(FEW))
searches = st.builds(ArchiveSearch, st.none(), numbers) | st.builds(
    lambda found: ArchiveSearch(found, found.first_number), origins_met
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.none() | numbers,
    seen=st.dictionaries(st.sampled_from(FEW), origins_met),
    told=st.dictionaries(st.sampled_from(FEW), searches),
)
async def test_of_many_at_once_each_has_its_own(
    connection: Connection,
    start: int | None,
    seen: dict[Address, FirstSeen],
    told: dict[Address, ArchiveSearch],
) -> None:
    """What is said of one is what the rule says of it, whoever else is asked for."""
    await connection.execute("TRUNCATE facts.cursor, facts.address, facts.origin, facts.older_origin")
    ids = {wallet: await address_id(connection, wallet) for wallet in reversed(FEW)}
    if start is not None:
        await follow_from(connection, start)
    for wallet, one in seen.items():
        funder = None if one.funder is None else ids[one.funder]
        await connection.execute(
            "INSERT INTO facts.origin VALUES ($1, $2, $3, $4, $5, $5)",
            ids[wallet], one.first_number, one.first_s, funder, funder and 9,
        )  # fmt: skip
    for wallet, searched in told.items():
        await keep_archive_search(connection, wallet, searched)

    def sure(wallet: Address) -> FirstSeen | None:
        search, known = told.get(wallet), []
        if search is not None and search.found is not None:
            known = [search.found]
        nothing_before = start == 0 or (
            start is not None and search is not None and not known and search.searched_number >= start - 1
        )
        if nothing_before and wallet in seen:
            known.append(seen[wallet])
        return min(known, key=lambda one: one.first_number, default=None)

    expected = {wallet: sure(wallet) for wallet in FEW}
    asked = [*FEW, FEW[0], NOBODY]
    assert await origins_of(connection, asked) == {w: one for w, one in expected.items() if one is not None}
    assert {wallet: await origin(connection, wallet) for wallet in FEW} == expected
    assert await origins_of(connection, []) == {}
