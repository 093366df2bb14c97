"""When a wallet was first reached, and by whom: as blocks passed, and as an archive told once."""

from dataclasses import dataclass

import asyncpg

from roundtrip.domain.types import Address

from .words import as_address, as_bytes


@dataclass(frozen=True, slots=True)
class Origin:
    """The first block that is known to have reached the wallet, its time in seconds since 1970, and who sent
    it eth in a plain transfer; None: nobody that is known."""

    first_number: int
    first_s: int
    funder: Address | None


@dataclass(frozen=True, slots=True)
class OlderOrigin:
    """What a search in the archive told. ``found`` None: nothing had reached the wallet when the block
    ``searched_number`` was over."""

    found: Origin | None
    searched_number: int


async def keep_older(connection: asyncpg.Connection, wallet: Address, older: OlderOrigin) -> None:
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


async def older(connection: asyncpg.Connection, wallet: Address) -> OlderOrigin | None:
    """What the archive told of it; None: it was not searched."""
    row = await connection.fetchrow(
        "SELECT first_number, first_s, funder, searched_number FROM facts.older_origin WHERE wallet = $1",
        as_bytes(wallet),
    )
    return None if row is None else OlderOrigin(_origin(row), row["searched_number"])


async def met(connection: asyncpg.Connection, wallet: Address) -> Origin | None:
    """When the sync first met it; None: it did not. Where the index begins late that says only that the
    wallet is no younger."""
    row = await connection.fetchrow(
        "SELECT origin.first_number, origin.first_s, funder.address AS funder FROM facts.origin AS origin"
        " JOIN facts.address AS wallet ON wallet.id = origin.wallet_id"
        " LEFT JOIN facts.address AS funder ON funder.id = origin.funder_id WHERE wallet.address = $1",
        as_bytes(wallet),
    )
    return None if row is None else _origin(row)


async def origin(connection: asyncpg.Connection, wallet: Address) -> Origin | None:
    """What is known for sure; None: not known. What the sync met counts where nothing can have been before:
    the index is whole, or a search found nothing up to where it begins. The archive sees what the sync does
    not, money out of contracts: the older of the two is right."""
    searched = await older(connection, wallet)
    found = None if searched is None else searched.found
    empty_to = -1 if searched is None or found is not None else searched.searched_number
    known = [] if found is None else [found]
    start = await connection.fetchval("SELECT start_number FROM facts.cursor")
    if start is not None and start <= empty_to + 1:
        seen = await met(connection, wallet)
        known += [] if seen is None else [seen]
    return min(known, key=lambda one: one.first_number, default=None)


def _origin(row: asyncpg.Record) -> Origin | None:
    if row["first_number"] is None:
        return None
    funder = row["funder"]
    return Origin(row["first_number"], row["first_s"], None if funder is None else as_address(funder))
