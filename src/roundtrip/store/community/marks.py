"""Names and marks that accounts give wallets. Each function takes the caller's connection and ends no
transaction."""

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from roundtrip.domain.base.types import Address
from roundtrip.domain.community.marks import MOST_MARKS, Mark, name_key
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection


class TooManyMarks(Exception):
    """The account has marked as many wallets as it may."""


@dataclass(frozen=True, slots=True)
class OwnWalletMark:
    """How an account calls and marks a wallet."""

    name: str | None
    mark: Mark | None


async def put(
    connection: Connection,
    account_id: int,
    wallet: Address,
    name: str | None,
    mark: Mark | None,
    now: datetime,
) -> OwnWalletMark:
    """What is given takes the place of what was; None leaves it. One of both is given. Raises TooMany."""
    await connection.execute("SELECT FROM accounts.account WHERE id = $1 FOR NO KEY UPDATE", account_id)
    many: bool = await connection.fetchval(
        "SELECT count(*) >= $3 AND NOT bool_or(wallet = $2) FROM accounts.mark WHERE account_id = $1",
        account_id,
        as_bytes(wallet),
        MOST_MARKS,
    )
    if many:
        raise TooManyMarks
    row = await connection.fetchrow(
        "INSERT INTO accounts.mark AS mark (account_id, wallet, name, name_key, mark, made_at)"
        " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (account_id, wallet) DO UPDATE SET"
        " name = coalesce(excluded.name, mark.name), name_key = coalesce(excluded.name_key, mark.name_key),"
        " mark = coalesce(excluded.mark, mark.mark), made_at = excluded.made_at RETURNING name, mark.mark",
        account_id,
        as_bytes(wallet),
        name,
        None if name is None else name_key(name),
        mark,
        now,
    )
    return OwnWalletMark(row["name"], cast(Mark | None, row["mark"]))


async def take_back(connection: Connection, account_id: int, wallet: Address) -> bool:
    """Whether there was one."""
    done: str = await connection.execute(
        "DELETE FROM accounts.mark WHERE account_id = $1 AND wallet = $2", account_id, as_bytes(wallet)
    )
    return done != "DELETE 0"


async def count(connection: Connection, account_id: int) -> int:
    """How many wallets an account has marked."""
    found: int = await connection.fetchval(
        "SELECT count(*) FROM accounts.mark WHERE account_id = $1", account_id
    )
    return found


@dataclass(frozen=True, slots=True)
class StoredMark:
    """What an account said of a wallet, and when it said so last."""

    wallet: Address
    own: OwnWalletMark
    made_at: datetime


async def of_account(
    connection: Connection, account_id: int, wallet: Address | None, most: int
) -> list[StoredMark]:
    """Of one wallet, or (None) of all, what was said last first."""
    rows = await connection.fetch(
        "SELECT wallet, name, mark, made_at FROM accounts.mark"
        " WHERE account_id = $1 AND ($2::bytea IS NULL OR wallet = $2)"
        " ORDER BY made_at DESC, wallet LIMIT $3",
        account_id,
        None if wallet is None else as_bytes(wallet),
        most,
    )
    return [
        StoredMark(
            as_address(row["wallet"]),
            OwnWalletMark(row["name"], cast(Mark | None, row["mark"])),
            row["made_at"],
        )
        for row in rows
    ]
