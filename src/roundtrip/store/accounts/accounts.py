"""Accounts and their keys. Each function takes the caller's connection and ends no transaction."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Literal

import asyncpg

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection


@dataclass(frozen=True, slots=True)
class AccountRecord:
    """An account, how many keys it ever made, and when it was made. ``is_new``: in this transaction."""

    account: Account
    keys_made: int
    made_at: datetime
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """A key as far as it is kept. ``revoked_at`` None: it is live, a session's until ``expires_at``."""

    id: int
    kind: Literal["key", "session"]
    start: str
    label: str
    made_at: datetime
    revoked_at: datetime | None
    expires_at: datetime | None
    designation: str
    wallet: Address


async def secret(connection: Connection, name: str, drawn: bytes) -> bytes:
    """The secret of this name, made of ``drawn`` (32 random bytes) where there was none: of several processes
    that draw at once all have the same."""
    found: bytes | None = await connection.fetchval("SELECT value FROM accounts.secret WHERE name = $1", name)
    if found is None:
        await connection.execute(
            "INSERT INTO accounts.secret (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", name, drawn
        )
        # Another statement: it sees what was there before ours, too.
        found = await connection.fetchval("SELECT value FROM accounts.secret WHERE name = $1", name)
    assert found is not None
    return found


async def keys_made(connection: Connection, wallet: Address) -> int:
    """How many keys a wallet ever made; 0 also where it is no account."""
    found: int | None = await connection.fetchval(
        "SELECT keys_made FROM accounts.account WHERE wallet = $1", as_bytes(wallet)
    )
    return found or 0


_ACCOUNT = "account.id, account.designation, account.wallet, account.is_agent, account.agent_name"


async def lock_account(
    connection: Connection,
    wallet: Address,
    designations: Iterable[str],
    now: datetime,
    head: int = -1,
) -> AccountRecord:
    """The wallet's account, made where it had none, and nobody else's to change until the transaction ends.
    ``designations``: what a new one may be called, in order. ``head``: the newest block that is known: what
    happened before does not concern its bag. Raises RuntimeError where all are taken."""
    found = await _lock(connection, wallet)
    if found is not None:
        return found
    for designation in designations:
        # Waits for whoever is just making the same account, or another one of this name.
        made = await connection.execute(
            "INSERT INTO accounts.account (wallet, designation, made_at, guarded_from)"
            " VALUES ($1, $2, $3, greatest($4, (SELECT number FROM facts.cursor))) ON CONFLICT DO NOTHING",
            as_bytes(wallet),
            designation,
            now,
            head,
        )
        found = await _lock(connection, wallet)
        if found is not None:
            return replace(found, is_new=made == "INSERT 0 1")
    raise RuntimeError("every designation that was drawn is taken")


async def made_from(connection: Connection, address_hash: bytes, day: date) -> int:
    """Counts a new account of an address; how many it has made this day (UTC), this one included."""
    await connection.execute("DELETE FROM accounts.made_from WHERE day < $1", day)
    found: int = await connection.fetchval(
        "INSERT INTO accounts.made_from AS known (day, address_hash, made) VALUES ($1, $2, 1)"
        " ON CONFLICT (day, address_hash) DO UPDATE SET made = known.made + 1 RETURNING made",
        day,
        address_hash,
    )
    return found


async def _lock(connection: Connection, wallet: Address) -> AccountRecord | None:
    row = await connection.fetchrow(
        f"SELECT {_ACCOUNT}, account.keys_made, account.made_at FROM accounts.account AS account"  # noqa: S608
        " WHERE wallet = $1 FOR UPDATE",
        as_bytes(wallet),
    )
    return None if row is None else AccountRecord(_account(row), row["keys_made"], row["made_at"])


async def read_account(connection: Connection, account_id: int) -> AccountRecord:
    """An account that there is."""
    row = await connection.fetchrow(
        f"SELECT {_ACCOUNT}, account.keys_made, account.made_at"  # noqa: S608
        " FROM accounts.account AS account WHERE id = $1",
        account_id,
    )
    return AccountRecord(_account(row), row["keys_made"], row["made_at"])


async def add_key(
    connection: Connection,
    account_id: int,
    hashed: bytes,
    start: str,
    label: str,
    now: datetime,
    session_ends: datetime | None = None,
) -> None:
    """One more key, which is live and counted; the account is locked. ``session_ends``: it is a session's,
    until then."""
    await connection.execute(
        "INSERT INTO accounts.key (account_id, hash, start, label, made_at, kind, expires_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7)",
        account_id,
        hashed,
        start,
        label,
        now,
        "key" if session_ends is None else "session",
        session_ends,
    )
    await connection.execute(
        "UPDATE accounts.account SET keys_made = keys_made + 1 WHERE id = $1", account_id
    )


async def tag_agent(connection: Connection, account_id: int, name: str | None) -> Account:
    """The account is an agent from now on; a name that is None leaves the one it has."""
    row = await connection.fetchrow(
        "UPDATE accounts.account AS account SET is_agent = true, agent_name = coalesce($2, agent_name)"  # noqa: S608
        f" WHERE id = $1 RETURNING {_ACCOUNT}",
        account_id,
        name,
    )
    return _account(row)


async def untag_agent(connection: Connection, account_id: int) -> Account:
    """The account is no agent any more, and an agent's name goes with the tag."""
    row = await connection.fetchrow(
        "UPDATE accounts.account AS account SET is_agent = false, agent_name = NULL"  # noqa: S608
        f" WHERE id = $1 RETURNING {_ACCOUNT}",
        account_id,
    )
    return _account(row)


def _account(row: asyncpg.Record) -> Account:
    wallet = as_address(row["wallet"])
    return Account(row["id"], row["designation"], wallet, row["is_agent"], row["agent_name"])


async def live_count(connection: Connection, account_id: int) -> int:
    """How many live keys an account has."""
    found: int = await connection.fetchval(
        "SELECT count(*) FROM accounts.key WHERE account_id = $1 AND revoked_at IS NULL AND kind = 'key'",
        account_id,
    )
    return found


_KEYS = """
SELECT key.id, key.kind, key.start, key.label, key.made_at, key.revoked_at, key.expires_at,
    account.designation, account.wallet
FROM accounts.key AS key JOIN accounts.account AS account ON account.id = key.account_id
"""


async def live_keys(connection: Connection, account_id: int) -> list[Key]:
    """Of one account, the oldest first."""
    of_it = "account.id = $1 AND key.revoked_at IS NULL AND key.kind = 'key' ORDER BY key.id"
    return await _keys(connection, of_it, account_id)


async def revoked_keys(connection: Connection, account_id: int, most: int) -> list[Key]:
    """Of one account, the last revoked first; no sessions."""
    of_it = "account.id = $1 AND key.revoked_at IS NOT NULL AND key.kind = 'key'"
    return await _keys(
        connection, f"{of_it} ORDER BY key.revoked_at DESC, key.id DESC LIMIT $2", account_id, most
    )


async def live_sessions(connection: Connection, account_id: int, now: datetime) -> list[Key]:
    """Of one account, the newest first."""
    of_it = "account.id = $1 AND key.revoked_at IS NULL AND key.kind = 'session'"
    return await _keys(connection, f"{of_it} AND key.expires_at > $2 ORDER BY key.id DESC", account_id, now)


async def session_id(connection: Connection, account_id: int, hashed: bytes, now: datetime) -> int | None:
    """The number of an account's live session of this hash; None: it has none such."""
    found: int | None = await connection.fetchval(
        "SELECT id FROM accounts.key WHERE account_id = $1 AND hash = $2 AND kind = 'session'"
        " AND revoked_at IS NULL AND expires_at > $3",
        account_id,
        hashed,
        now,
    )
    return found


async def key_of(connection: Connection, account_id: int, key_id: int) -> Key | None:
    """An account's key or session of this number; None: it is another's, or nobody's."""
    found = await _keys(connection, "account.id = $1 AND key.id = $2", account_id, key_id)
    return found[0] if found else None


async def every_key(connection: Connection, wallet: Address | None) -> list[Key]:
    """Of one wallet, or of all (None), the oldest first; revoked ones, too."""
    of_wallet = None if wallet is None else as_bytes(wallet)
    return await _keys(connection, "$1::bytea IS NULL OR account.wallet = $1 ORDER BY key.id", of_wallet)


async def keys_like(
    connection: Connection, start: str | None, hashed: bytes | None, key_id: int | None
) -> list[Key]:
    """Those with this start, this hash or this id, the oldest first; revoked ones, too."""
    where = "key.start = $1 OR key.hash = $2 OR key.id = $3 ORDER BY key.id"
    return await _keys(connection, where, start, hashed, key_id)


async def _keys(connection: Connection, where: str, *arguments: object) -> list[Key]:
    rows = await connection.fetch(f"{_KEYS} WHERE {where}", *arguments)
    return [Key(**{**dict(row), "wallet": as_address(row["wallet"])}) for row in rows]


async def revoke(connection: Connection, key_id: int, now: datetime) -> bool:
    """From the transaction's end on it is live no more. False: it was not live."""
    done: str = await connection.execute(
        "UPDATE accounts.key SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL", key_id, now
    )
    return done != "UPDATE 0"


async def end_sessions(
    connection: Connection, account_id: int, now: datetime, left: int = 0, hashed: bytes | None = None
) -> int:
    """Ends an account's sessions but the ``left`` newest, or only the one of this hash; how many were
    live."""
    done: str = await connection.execute(
        "UPDATE accounts.key SET revoked_at = $2 WHERE id IN ("
        "SELECT id FROM accounts.key WHERE account_id = $1 AND kind = 'session' AND revoked_at IS NULL"
        " AND ($4::bytea IS NULL OR hash = $4) ORDER BY id DESC OFFSET $3)",
        account_id,
        now,
        left,
        hashed,
    )
    return int(done.removeprefix("UPDATE "))


async def calls_on(connection: Connection, account_id: int, day: date) -> int:
    """Calls of an account that counted against its limit of one day of UTC."""
    found: int | None = await connection.fetchval(
        "SELECT calls FROM accounts.day WHERE account_id = $1 AND day = $2", account_id, day
    )
    return found or 0


async def calls_by_day(
    connection: Connection, account_id: int, last: date, days: int
) -> list[tuple[date, int]]:
    """The same of so many days up to ``last``, the oldest first; days without a call, too."""
    rows = await connection.fetch(
        "SELECT day, calls FROM accounts.day WHERE account_id = $1 AND day > $2 AND day <= $3",
        account_id,
        last - timedelta(days=days),
        last,
    )
    found: dict[date, int] = {row["day"]: row["calls"] for row in rows}
    every = [last - timedelta(days=ago) for ago in reversed(range(days))]
    return [(day, found.get(day, 0)) for day in every]
