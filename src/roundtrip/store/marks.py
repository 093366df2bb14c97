"""Names and marks that mites give wallets. Each function takes the caller's connection and ends no
transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

import asyncpg

from roundtrip.domain.crowd import FAIRNESS, Fairness, Origin, Purses
from roundtrip.domain.marks import MOST_MARKS, PEOPLE, Given, Mark, name_key
from roundtrip.domain.types import Address

from .addresses import addresses_of, ids_of
from .moving import purses_of
from .words import as_address, as_bytes


class TooMany(Exception):
    """The mite has marked as many wallets as it may."""


@dataclass(frozen=True, slots=True)
class Own:
    """How a mite calls and marks a wallet."""

    name: str | None
    mark: Mark | None


async def put(
    connection: asyncpg.Connection,
    mite_id: int,
    wallet: Address,
    name: str | None,
    mark: Mark | None,
    now: datetime,
) -> Own:
    """What is given takes the place of what was; None leaves it. One of both is given. Raises TooMany."""
    await connection.execute("SELECT FROM accounts.mite WHERE id = $1 FOR NO KEY UPDATE", mite_id)
    many: bool = await connection.fetchval(
        "SELECT count(*) >= $3 AND NOT bool_or(wallet = $2) FROM accounts.mark WHERE mite_id = $1",
        mite_id,
        as_bytes(wallet),
        MOST_MARKS,
    )
    if many:
        raise TooMany
    row = await connection.fetchrow(
        "INSERT INTO accounts.mark AS mark (mite_id, wallet, name, name_key, mark, made_at)"
        " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (mite_id, wallet) DO UPDATE SET"
        " name = coalesce(excluded.name, mark.name), name_key = coalesce(excluded.name_key, mark.name_key),"
        " mark = coalesce(excluded.mark, mark.mark), made_at = excluded.made_at RETURNING name, mark.mark",
        mite_id,
        as_bytes(wallet),
        name,
        None if name is None else name_key(name),
        mark,
        now,
    )
    return Own(row["name"], cast(Mark | None, row["mark"]))


async def take_back(connection: asyncpg.Connection, mite_id: int, wallet: Address) -> bool:
    """Whether there was one."""
    done: str = await connection.execute(
        "DELETE FROM accounts.mark WHERE mite_id = $1 AND wallet = $2", mite_id, as_bytes(wallet)
    )
    return done != "DELETE 0"


async def count(connection: asyncpg.Connection, mite_id: int) -> int:
    """How many wallets a mite has marked."""
    found: int = await connection.fetchval("SELECT count(*) FROM accounts.mark WHERE mite_id = $1", mite_id)
    return found


# --- what may be public ----------------------------------------------------------------------------

_OF_AGE = """
    accounts.mark AS mark JOIN accounts.mite AS mite ON mite.id = mark.mite_id AND mite.made_at <= $1
    JOIN facts.address AS own ON own.address = mite.wallet
"""
_TRADED = "EXISTS (SELECT FROM facts.position AS position WHERE position.wallet_id = own.id)"
_CANDIDATES = f"""
SELECT wallet, max(given) AS given FROM (
    SELECT mark.wallet, count(*) AS given FROM {_OF_AGE} WHERE mark.name_key IS NOT NULL AND {_TRADED}
    GROUP BY mark.wallet, mark.name_key HAVING count(*) >= $2
    UNION ALL
    SELECT mark.wallet, count(*) AS given FROM {_OF_AGE} WHERE mark.mark IS NOT NULL AND {_TRADED}
    GROUP BY mark.wallet, mark.mark HAVING count(*) >= $2
) AS said GROUP BY wallet ORDER BY given DESC, wallet LIMIT $3 OFFSET $4
"""  # noqa: S608


async def candidates(
    connection: asyncpg.Connection, made_before: datetime, most: int, offset: int
) -> list[Address]:
    """Wallets of which enough mites of age said the same, whoever those are: what most said first."""
    rows = await connection.fetch(_CANDIDATES, made_before, PEOPLE, most, offset)
    return [as_address(row["wallet"]) for row in rows]


async def called(connection: asyncpg.Connection, key: str, made_before: datetime, most: int) -> list[Address]:
    """The same of those that are called so; ``key``: as names are compared."""
    rows = await connection.fetch(
        f"SELECT mark.wallet, count(*) AS given FROM {_OF_AGE} WHERE mark.name_key = $2 AND {_TRADED}"  # noqa: S608
        " GROUP BY mark.wallet HAVING count(*) >= $3 ORDER BY given DESC, mark.wallet LIMIT $4",
        made_before,
        key,
        PEOPLE,
        most,
    )
    return [as_address(row["wallet"]) for row in rows]


async def given(
    connection: asyncpg.Connection, wallets: Collection[Address], made_before: datetime
) -> list[Given]:
    """What mites of age, whose wallets have traded, said of these."""
    rows = await connection.fetch(
        f"SELECT mark.wallet, mite.wallet AS by, mark.name, mark.mark FROM {_OF_AGE}"  # noqa: S608
        f" WHERE mark.wallet = ANY($2::bytea[]) AND {_TRADED}",
        made_before,
        [as_bytes(wallet) for wallet in wallets],
    )
    return [
        Given(as_address(row["wallet"]), as_address(row["by"]), row["name"], cast(Mark | None, row["mark"]))
        for row in rows
    ]


async def purses(
    connection: asyncpg.Connection, said: Sequence[Given], fairness: Fairness = FAIRNESS
) -> Purses[Address]:
    """What is known of those who said it and of whom they said it."""
    known = await ids_of(connection, {wallet for one in said for wallet in (one.wallet, one.by)})
    found = await purses_of(connection, known.values(), fairness)
    funders = {one.funder for one in found.origins.values() if one.funder is not None}
    names = {number: wallet for wallet, number in known.items()}
    names |= await addresses_of(connection, (funders | found.origins.keys()) - names.keys())
    return Purses(
        {
            names[number]: Origin(
                one.first_s, None if one.funder is None else names.get(one.funder), one.funded_s
            )
            for number, one in found.origins.items()
        },
        {names[number]: paid for number, paid in found.funded.items() if number in names},
        fairness,
    )
