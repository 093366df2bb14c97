"""A wallet's first transaction and its funder: as the sync saw them, and as an archive node returned them."""

from collections.abc import Collection
from dataclasses import dataclass

from roundtrip.domain.base.types import Address
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_row

ORIGIN_JOB = "origin"
"""The job that searches a wallet's origin in an archive node."""


@dataclass(frozen=True, slots=True)
class ArchiveSearch:
    """The result of a search in an archive node. ``found`` None: the wallet does not appear up to block
    ``searched_number``."""

    found: FirstSeen | None
    searched_number: int


async def keep_archive_search(connection: Connection, wallet: Address, search: ArchiveSearch) -> None:
    """Stores the result permanently. An origin that is stored is not replaced. Of two searches without one,
    the search over more blocks is kept."""
    origin = search.found
    await connection.execute(
        "INSERT INTO facts.older_origin AS kept (wallet, first_number, first_s, funder, searched_number)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (wallet) DO UPDATE SET"
        " first_number = excluded.first_number, first_s = excluded.first_s, funder = excluded.funder,"
        " searched_number = excluded.searched_number WHERE kept.first_number IS NULL"
        " AND (excluded.first_number IS NOT NULL OR excluded.searched_number > kept.searched_number)",
        as_bytes(wallet),
        None if origin is None else origin.first_number,
        None if origin is None else origin.first_s,
        None if origin is None or origin.funder is None else as_bytes(origin.funder),
        search.searched_number,
    )


async def read_archive_search(connection: Connection, wallet: Address) -> ArchiveSearch | None:
    """The stored search of this wallet; None: it was not searched."""
    return await fetch_row(
        connection,
        ArchiveSearch,
        "SELECT first_number, first_s, funder, searched_number FROM facts.older_origin WHERE wallet = $1",
        as_bytes(wallet),
    )


async def origin(connection: Connection, wallet: Address) -> FirstSeen | None:
    """The wallet's origin, if it is certain; None: not known. The index's origin counts only where nothing
    can precede it: the index starts at block 0, or a search found nothing up to its first block. The archive
    node also sees eth that contracts send, which the sync does not: the older of the two origins is the right
    one."""
    return (await origins_of(connection, (wallet,))).get(wallet)


# $1 wallets
_ORIGINS = """
SELECT given.wallet, cursor.start_number, older.first_number, older.first_s, older.funder,
    older.searched_number, met.first_number, met.first_s, funder.address AS funder
FROM unnest($1::bytea[]) AS given (wallet)
LEFT JOIN facts.cursor AS cursor ON true
LEFT JOIN facts.older_origin AS older ON older.wallet = given.wallet
LEFT JOIN facts.address AS own ON own.address = given.wallet
LEFT JOIN facts.origin AS met ON met.wallet_id = own.id
LEFT JOIN facts.address AS funder ON funder.id = met.funder_id
"""


async def origins_of(connection: Connection, wallets: Collection[Address]) -> dict[Address, FirstSeen]:
    """The certain origin of each wallet, as ``origin`` defines it; without those that have none. A result
    without a funder: no plain transfer in the index sent the wallet its first eth. For some hundreds of
    wallets."""
    rows = await fetch(
        connection,
        tuple[Address, int | None, ArchiveSearch | None, FirstSeen | None],
        _ORIGINS,
        [as_bytes(wallet) for wallet in set(wallets)],
    )
    origins = {}
    for wallet, start_number, search, synced in rows:
        certain = _choose_certain(search, synced, start_number)
        if certain is not None:
            origins[wallet] = certain
    return origins


_BEFORE_ALL = -1
"""The number before block 0: no block is known to be without the wallet."""


def _choose_certain(
    search: ArchiveSearch | None, synced: FirstSeen | None, start_number: int | None
) -> FirstSeen | None:
    archived = None if search is None else search.found
    empty_to = _BEFORE_ALL if search is None or archived is not None else search.searched_number
    candidates = [] if archived is None else [archived]
    if synced is not None and start_number is not None and start_number <= empty_to + 1:
        candidates.append(synced)
    return min(candidates, key=lambda candidate: candidate.first_number, default=None)
