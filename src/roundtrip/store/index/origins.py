"""When a wallet was first reached, and by whom: as blocks passed, and as an archive told once."""

from collections.abc import Collection
from dataclasses import dataclass

import asyncpg

from roundtrip.domain.base.types import Address
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection


@dataclass(frozen=True, slots=True)
class StoredOrigin:
    """The first block that is known to have reached the wallet, its time in seconds since 1970, and who sent
    it eth in a plain transfer; None: nobody that is known."""

    first_number: int
    first_s: int
    funder: Address | None


@dataclass(frozen=True, slots=True)
class OlderOrigin:
    """What a search in the archive told. ``found`` None: nothing had reached the wallet when the block
    ``searched_number`` was over."""

    found: StoredOrigin | None
    searched_number: int


async def keep_older(connection: Connection, wallet: Address, older: OlderOrigin) -> None:
    """Writes it for ever. An origin that was found stays; of two searches without one the longer counts."""
    found = older.found
    await connection.execute(
        "INSERT INTO facts.older_origin AS kept (wallet, first_number, first_s, funder, searched_number)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (wallet) DO UPDATE SET"
        " first_number = excluded.first_number, first_s = excluded.first_s, funder = excluded.funder,"
        " searched_number = excluded.searched_number WHERE kept.first_number IS NULL"
        " AND (excluded.first_number IS NOT NULL OR excluded.searched_number > kept.searched_number)",
        as_bytes(wallet),
        None if found is None else found.first_number,
        None if found is None else found.first_s,
        None if found is None or found.funder is None else as_bytes(found.funder),
        older.searched_number,
    )


async def older(connection: Connection, wallet: Address) -> OlderOrigin | None:
    """What the archive told of it; None: it was not searched."""
    row = await connection.fetchrow(
        "SELECT first_number, first_s, funder, searched_number FROM facts.older_origin WHERE wallet = $1",
        as_bytes(wallet),
    )
    return None if row is None else OlderOrigin(_origin(row), row["searched_number"])


async def read_origin(connection: Connection, wallet: Address) -> StoredOrigin | None:
    """When the sync first met it; None: it did not. Where the index begins late that says only that the
    wallet is no younger."""
    row = await connection.fetchrow(
        "SELECT origin.first_number, origin.first_s, funder.address AS funder FROM facts.origin AS origin"
        " JOIN facts.address AS wallet ON wallet.id = origin.wallet_id"
        " LEFT JOIN facts.address AS funder ON funder.id = origin.funder_id WHERE wallet.address = $1",
        as_bytes(wallet),
    )
    return None if row is None else _origin(row)


async def origin(connection: Connection, wallet: Address) -> StoredOrigin | None:
    """What is known for sure; None: not known. What the sync met counts where nothing can have been before:
    the index is whole, or a search found nothing up to where it begins. The archive sees what the sync does
    not, money out of contracts: the older of the two is right."""
    return (await origins_of(connection, (wallet,))).get(wallet)


# $1 wallets
_ORIGINS = """
SELECT given.wallet, cursor.start_number, older.searched_number, older.first_number AS older_number,
    older.first_s AS older_s, older.funder AS older_funder, met.first_number, met.first_s,
    funder.address AS funder
FROM unnest($1::bytea[]) AS given (wallet)
LEFT JOIN facts.cursor AS cursor ON true
LEFT JOIN facts.older_origin AS older ON older.wallet = given.wallet
LEFT JOIN facts.address AS own ON own.address = given.wallet
LEFT JOIN facts.origin AS met ON met.wallet_id = own.id
LEFT JOIN facts.address AS funder ON funder.id = met.funder_id
"""


async def origins_of(connection: Connection, wallets: Collection[Address]) -> dict[Address, StoredOrigin]:
    """What is known for sure of each, as ``origin`` tells; who is not among them is not known. Where one has
    no funder nobody sent it its first eth in a plain transfer, as far as the index goes. For some hundreds
    of wallets."""
    found = {}
    for row in await connection.fetch(_ORIGINS, [as_bytes(wallet) for wallet in set(wallets)]):
        searched = None
        if row["searched_number"] is not None:
            told = _as_origin(row["older_number"], row["older_s"], row["older_funder"])
            searched = OlderOrigin(told, row["searched_number"])
        sure = _sure(searched, _origin(row), row["start_number"])
        if sure is not None:
            found[as_address(row["wallet"])] = sure
    return found


def _sure(
    searched: OlderOrigin | None, seen: StoredOrigin | None, start_number: int | None
) -> StoredOrigin | None:
    found = None if searched is None else searched.found
    empty_to = -1 if searched is None or found is not None else searched.searched_number
    known = [] if found is None else [found]
    if seen is not None and start_number is not None and start_number <= empty_to + 1:
        known.append(seen)
    return min(known, key=lambda one: one.first_number, default=None)


def _origin(row: asyncpg.Record) -> StoredOrigin | None:
    return _as_origin(row["first_number"], row["first_s"], row["funder"])


def _as_origin(first_number: int | None, first_s: int | None, funder: bytes | None) -> StoredOrigin | None:
    if first_number is None or first_s is None:
        return None
    return StoredOrigin(first_number, first_s, None if funder is None else as_address(funder))
