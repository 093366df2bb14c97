"""Names and marks that accounts give wallets. Each function uses the caller's connection and does not end the
transaction."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from roundtrip.domain.base.types import Address
from roundtrip.domain.community.marks import MAX_MARKS, Mark, name_key
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_one, fetch_value


class TooManyMarks(Exception):
    """The account has marked as many wallets as it may."""


class OwnWalletMark(NamedTuple):
    """An account's name and mark for a wallet."""

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
    """Sets the name, the mark or both; one that is None stays as it is. Raises TooManyMarks."""
    await connection.execute("SELECT FROM accounts.account WHERE id = $1 FOR NO KEY UPDATE", account_id)
    is_full = await fetch_value(
        connection,
        bool,
        "SELECT count(*) >= $3 AND NOT bool_or(wallet = $2) FROM accounts.mark WHERE account_id = $1",
        account_id,
        as_bytes(wallet),
        MAX_MARKS,
    )
    if is_full:
        raise TooManyMarks
    return await fetch_one(
        connection,
        OwnWalletMark,
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


async def delete_mark(connection: Connection, account_id: int, wallet: Address) -> bool:
    """Deletes the account's name and mark of a wallet. False: there was none."""
    status = await connection.execute(
        "DELETE FROM accounts.mark WHERE account_id = $1 AND wallet = $2", account_id, as_bytes(wallet)
    )
    return status != "DELETE 0"


async def count(connection: Connection, account_id: int) -> int:
    """How many wallets an account has marked."""
    return await fetch_value(
        connection, int, "SELECT count(*) FROM accounts.mark WHERE account_id = $1", account_id
    )


@dataclass(frozen=True, slots=True)
class StoredMark:
    """An account's name and mark for a wallet, and when it last changed them."""

    wallet: Address
    own: OwnWalletMark
    made_at: datetime


async def of_account(
    connection: Connection, account_id: int, wallet: Address | None, limit: int
) -> list[StoredMark]:
    """The account's marks of one wallet, or (None) of all, the latest first."""
    return await fetch(
        connection,
        StoredMark,
        "SELECT wallet, name, mark, made_at FROM accounts.mark WHERE account_id = $1 AND ($2::bytea IS NULL "
        "OR wallet = $2) ORDER BY made_at DESC, wallet LIMIT $3",
        account_id,
        None if wallet is None else as_bytes(wallet),
        limit,
    )
