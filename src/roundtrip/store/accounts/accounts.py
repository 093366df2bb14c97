"""Accounts and their keys. Each function uses the caller's connection and does not end the transaction."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Literal

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address
from roundtrip.store.server.rows import (
    Connection,
    as_bytes,
    fetch,
    fetch_one,
    fetch_optional,
    fetch_row,
    fetch_value,
    fetch_values,
)

KeyKind = Literal["key", "session"]


@dataclass(frozen=True, slots=True)
class AccountRecord:
    """An account. ``keys_made``: how many keys and sessions it has ever created. ``is_new``: the account was
    created in this transaction."""

    account: Account
    keys_made: int
    made_at: datetime
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """A stored key, without its secret. ``revoked_at`` None: it is live, a session's until ``expires_at``."""

    id: int
    kind: KeyKind
    start: str
    label: str
    made_at: datetime
    revoked_at: datetime | None
    expires_at: datetime | None
    designation: str
    wallet: Address


async def secret(connection: Connection, name: str, drawn: bytes) -> bytes:
    """The secret of this name, set to ``drawn`` (32 random bytes) if there is none. Processes that draw at
    the same time all get the same secret."""
    query = "SELECT value FROM accounts.secret WHERE name = $1"
    value = await fetch_optional(connection, bytes, query, name)
    if value is not None:
        return value
    await connection.execute(
        "INSERT INTO accounts.secret (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", name, drawn
    )
    # A statement of its own: it also sees what another transaction inserted first.
    return await fetch_value(connection, bytes, query, name)


async def keys_made(connection: Connection, wallet: Address) -> int:
    """How many keys and sessions a wallet has ever created; 0 also where it has no account."""
    count = await fetch_optional(
        connection, int, "SELECT keys_made FROM accounts.account WHERE wallet = $1", as_bytes(wallet)
    )
    return count or 0


_ACCOUNT = "account.id, account.designation, account.wallet, account.is_agent, account.agent_name"
_RECORD = f"SELECT {_ACCOUNT}, account.keys_made, account.made_at, false AS is_new"


async def lock_account(
    connection: Connection, wallet: Address, designations: Iterable[str], now: datetime, head: int = -1
) -> AccountRecord:
    """The wallet's account, created if it has none, locked until the transaction ends. ``designations``:
    candidate names of a new account, in order. ``head``: the newest known block, -1 if none is; a new account
    is not alerted of earlier events of tokens that it holds. Raises RuntimeError where all designations are
    taken."""
    record = await _lock(connection, wallet)
    if record is not None:
        return record
    for designation in designations:
        # Waits for a transaction that is inserting the same account, or another one of this name.
        status = await connection.execute(
            "INSERT INTO accounts.account (wallet, designation, made_at, guarded_from)"
            " VALUES ($1, $2, $3, greatest($4, (SELECT number FROM facts.cursor))) ON CONFLICT DO NOTHING",
            as_bytes(wallet),
            designation,
            now,
            head,
        )
        record = await _lock(connection, wallet)
        if record is not None:
            return replace(record, is_new=status == "INSERT 0 1")
    raise RuntimeError("every designation drawn is already in use")


async def made_from(connection: Connection, address_hash: bytes, day: date) -> int:
    """Counts a new account from a network address, given by its hash. Returns how many were created from it
    on this day (UTC), this one included. Deletes the counts of earlier days."""
    await connection.execute("DELETE FROM accounts.made_from WHERE day < $1", day)
    return await fetch_value(
        connection,
        int,
        "INSERT INTO accounts.made_from AS known (day, address_hash, made) VALUES ($1, $2, 1)"
        " ON CONFLICT (day, address_hash) DO UPDATE SET made = known.made + 1 RETURNING made",
        day,
        address_hash,
    )


async def _lock(connection: Connection, wallet: Address) -> AccountRecord | None:
    return await fetch_row(
        connection,
        AccountRecord,
        f"{_RECORD} FROM accounts.account AS account WHERE wallet = $1 FOR UPDATE",
        as_bytes(wallet),
    )


async def read_account(connection: Connection, account_id: int) -> AccountRecord:
    """An account. Raises LookupError: there is none of this id."""
    query = f"{_RECORD} FROM accounts.account AS account WHERE id = $1"
    return await fetch_one(connection, AccountRecord, query, account_id)


async def add_key(
    connection: Connection,
    account_id: int,
    hashed: bytes,
    start: str,
    label: str,
    now: datetime,
    session_ends: datetime | None = None,
) -> None:
    """Inserts and counts a live key; the caller has locked the account. ``session_ends``: it is a session,
    live until then; None: it is a key."""
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
    """Marks the account as an agent's; a ``name`` of None keeps the name it has."""
    return await fetch_one(
        connection,
        Account,
        "UPDATE accounts.account AS account SET is_agent = true, agent_name = coalesce($2, agent_name)"  # noqa: S608
        f" WHERE id = $1 RETURNING {_ACCOUNT}",
        account_id,
        name,
    )


async def untag_agent(connection: Connection, account_id: int) -> Account:
    """Removes the agent mark and the agent's name."""
    return await fetch_one(
        connection,
        Account,
        "UPDATE accounts.account AS account SET is_agent = false, agent_name = NULL"  # noqa: S608
        f" WHERE id = $1 RETURNING {_ACCOUNT}",
        account_id,
    )


async def live_count(connection: Connection, account_id: int) -> int:
    """How many live keys an account has; sessions do not count."""
    return await fetch_value(
        connection,
        int,
        "SELECT count(*) FROM accounts.key WHERE account_id = $1 AND revoked_at IS NULL AND kind = 'key'",
        account_id,
    )


_KEYS = """
SELECT key.id, key.kind, key.start, key.label, key.made_at, key.revoked_at, key.expires_at,
    account.designation, account.wallet
FROM accounts.key AS key JOIN accounts.account AS account ON account.id = key.account_id
"""


async def live_keys(connection: Connection, account_id: int) -> list[Key]:
    """Live keys of one account, the oldest first."""
    where = "account.id = $1 AND key.revoked_at IS NULL AND key.kind = 'key' ORDER BY key.id"
    return await _keys(connection, where, account_id)


async def revoked_keys(connection: Connection, account_id: int, limit: int) -> list[Key]:
    """At most ``limit`` revoked keys of one account, the last revoked first; no sessions."""
    where = "account.id = $1 AND key.revoked_at IS NOT NULL AND key.kind = 'key'"
    return await _keys(
        connection, f"{where} ORDER BY key.revoked_at DESC, key.id DESC LIMIT $2", account_id, limit
    )


async def live_sessions(connection: Connection, account_id: int, now: datetime) -> list[Key]:
    """Live sessions of one account, the newest first."""
    where = "account.id = $1 AND key.revoked_at IS NULL AND key.kind = 'session'"
    return await _keys(connection, f"{where} AND key.expires_at > $2 ORDER BY key.id DESC", account_id, now)


async def session_id(connection: Connection, account_id: int, hashed: bytes, now: datetime) -> int | None:
    """The id of an account's live session with this hash; None: it has none."""
    return await fetch_optional(
        connection,
        int,
        "SELECT id FROM accounts.key WHERE account_id = $1 AND hash = $2 AND kind = 'session'"
        " AND revoked_at IS NULL AND expires_at > $3",
        account_id,
        hashed,
        now,
    )


async def key_of(connection: Connection, account_id: int, key_id: int) -> Key | None:
    """An account's key or session of this id; None: the account has none such."""
    keys = await _keys(connection, "account.id = $1 AND key.id = $2", account_id, key_id)
    return keys[0] if keys else None


async def every_key(connection: Connection, wallet: Address | None) -> list[Key]:
    """Keys of one wallet, or of all (None), revoked ones included, the oldest first."""
    of_wallet = None if wallet is None else as_bytes(wallet)
    return await _keys(connection, "$1::bytea IS NULL OR account.wallet = $1 ORDER BY key.id", of_wallet)


async def keys_like(
    connection: Connection, start: str | None, hashed: bytes | None, key_id: int | None
) -> list[Key]:
    """Keys with this start, this hash or this id, revoked ones included, the oldest first."""
    where = "key.start = $1 OR key.hash = $2 OR key.id = $3 ORDER BY key.id"
    return await _keys(connection, where, start, hashed, key_id)


async def _keys(connection: Connection, where: str, *arguments: object) -> list[Key]:
    return await fetch(connection, Key, f"{_KEYS} WHERE {where}", *arguments)


async def revoke(connection: Connection, key_id: int, now: datetime) -> bool:
    """Revokes a key from the end of the transaction on. False: it was not live."""
    status = await connection.execute(
        "UPDATE accounts.key SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL", key_id, now
    )
    return status != "UPDATE 0"


async def dead_hashes(connection: Connection, hashes: Collection[bytes]) -> set[bytes]:
    """Those of these hashes that belong to no key, or to a revoked one."""
    query = "SELECT hash FROM accounts.key WHERE hash = ANY($1) AND revoked_at IS NULL"
    return set(hashes).difference(await fetch_values(connection, bytes, query, list(hashes)))


async def end_sessions(
    connection: Connection, account_id: int, now: datetime, keep: int = 0, hashed: bytes | None = None
) -> int:
    """Ends an account's sessions but the ``keep`` newest, or only the one with this hash. Returns how many it
    ended."""
    status = await connection.execute(
        "UPDATE accounts.key SET revoked_at = $2 WHERE id IN ("
        "SELECT id FROM accounts.key WHERE account_id = $1 AND kind = 'session' AND revoked_at IS NULL"
        " AND ($4::bytea IS NULL OR hash = $4) ORDER BY id DESC OFFSET $3)",
        account_id,
        now,
        keep,
        hashed,
    )
    return int(status.removeprefix("UPDATE "))


async def calls_on(connection: Connection, account_id: int, day: date) -> int:
    """Calls that an account made and that counted against its limit of one day of UTC."""
    calls = await fetch_optional(
        connection,
        int,
        "SELECT greatest(0, calls - leased) FROM accounts.day WHERE account_id = $1 AND day = $2",
        account_id,
        day,
    )
    return calls or 0


async def calls_by_day(
    connection: Connection, account_id: int, last: date, days: int
) -> list[tuple[date, int]]:
    """``calls_on`` for each of the ``days`` days up to ``last``, oldest first; 0 on a day without calls."""
    rows = await fetch(
        connection,
        tuple[date, int],
        """
        SELECT day, greatest(0, calls - leased) AS calls FROM accounts.day
        WHERE account_id = $1 AND day > $2 AND day <= $3
        """,
        account_id,
        last - timedelta(days=days),
        last,
    )
    calls = dict(rows)
    shown = [last - timedelta(days=ago) for ago in reversed(range(days))]
    return [(day, calls.get(day, 0)) for day in shown]
