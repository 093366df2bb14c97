"""Where accounts are told. Each function takes the caller's connection and ends no transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from roundtrip.domain.watch.channels import (
    HOST_ROWS,
    HOST_WINDOW,
    Event,
    State,
    host_of,
    next_state,
    rows_that_fit,
)
from roundtrip.store.accounts import accounts
from roundtrip.store.server.rows import Connection

ChannelKind = Literal["webhook", "telegram", "discord"]


@dataclass(frozen=True, slots=True)
class Channel:
    """``target``, ``secret``: sealed, but for what Telegram is sent to. ``target_hash``: by which it is found
    again; None: by its target. ``failures``: on end.
    ``rests_until``: before that nothing is sent there. ``dropped_to``: messages up to this number that wait
    are not sent. ``host``: whose limits it counts against. ``proven_at``: since when it is known that it is
    wanted there; None: not yet. ``answers_ms``: how long answers take."""

    id: int
    account_id: int
    kind: ChannelKind
    target: bytes
    shown: str
    secret: bytes | None
    state: State
    made_at: datetime
    failing_since: datetime | None
    failures: int
    delivered_at: datetime | None
    last_error: str | None
    rests_until: datetime | None
    dropped_to: int
    target_hash: bytes | None
    host: str
    proven_at: datetime | None
    answers_ms: int


@dataclass(frozen=True, slots=True)
class NewChannel:
    """A channel before it has a number. ``proven``: who answers there wants this. ``took_ms``: the answer to
    the test."""

    kind: ChannelKind
    target: bytes
    shown: str
    secret: bytes | None
    target_hash: bytes | None = None
    proven: bool = False
    took_ms: int = 0

    @property
    def host(self) -> str:
        """Whose limits it counts against."""
        return f"telegram:{self.target.decode()}" if self.kind == "telegram" else host_of(self.shown)

    @property
    def is_proven(self) -> bool:
        """Chats always are: they were linked from there, or their url is a secret of it."""
        return self.proven or self.kind != "webhook"


_CHANNEL = (
    "id, account_id, kind, target, shown, secret, state, made_at, failing_since, failures, delivered_at,"
    " last_error, rests_until, dropped_to, target_hash, host, proven_at, answers_ms"
)


async def of_account(connection: Connection, account_id: int) -> list[Channel]:
    """Those that are not removed, the oldest first."""
    rows = await connection.fetch(
        f"SELECT {_CHANNEL} FROM accounts.channel WHERE account_id = $1 AND state <> 'removed' ORDER BY id",  # noqa: S608
        account_id,
    )
    return [Channel(**dict(row)) for row in rows]


async def channel(connection: Connection, channel_id: int, *, lock: bool = False) -> Channel | None:
    """Removed ones, too. ``lock``: nobody else's to change until the transaction ends; what refers to it may
    be written meanwhile."""
    locking = " FOR NO KEY UPDATE" if lock else ""
    row = await connection.fetchrow(
        f"SELECT {_CHANNEL} FROM accounts.channel WHERE id = $1{locking}",  # noqa: S608
        channel_id,
    )
    return None if row is None else Channel(**dict(row))


async def lock_account(connection: Connection, account_id: int) -> str | None:
    """Nobody else changes which channels the account has until the transaction ends; what it is called. None:
    there is no such account."""
    found: str | None = await connection.fetchval(
        "SELECT designation FROM accounts.account WHERE id = $1 FOR NO KEY UPDATE", account_id
    )
    return found


async def add(connection: Connection, account_id: int, new: NewChannel, now: datetime) -> int:
    """Its number; the account is locked, and something arrived there just now."""
    found: int = await connection.fetchval(
        "INSERT INTO accounts.channel (account_id, kind, target, shown, secret, state, made_at, delivered_at,"
        " target_hash, host, proven_at, answers_ms)"
        " VALUES ($1, $2, $3, $4, $5, 'live', $6, $6, $7, $8, $9, $10) RETURNING id",
        account_id, new.kind, new.target, new.shown, new.secret, now, new.target_hash, new.host,
        now if new.is_proven else None, new.took_ms,
    )  # fmt: skip
    return found


async def set_again(connection: Connection, channel_id: int, new: NewChannel, now: datetime) -> None:
    """It has that target and secret from now on, and something arrived there just now. Where it was off, what
    waited for it is not sent any more. Raises Illegal."""
    found = await channel(connection, channel_id, lock=True)
    if found is not None and found.state == "off":
        await connection.execute(
            "UPDATE accounts.channel SET dropped_to = (SELECT coalesce(max(id), 0) FROM accounts.delivery"
            "  WHERE channel_id = $1 AND state = 'waiting') WHERE id = $1",
            channel_id,
        )
    await mark_delivered(connection, channel_id, now)
    await connection.execute(
        "UPDATE accounts.channel SET target = $2, secret = $3, proven_at = coalesce(proven_at, $4),"
        " answers_ms = $5 WHERE id = $1",
        channel_id, new.target, new.secret, now if new.is_proven else None, new.took_ms,
    )  # fmt: skip


async def mark_delivered(connection: Connection, channel_id: int, now: datetime) -> None:
    """Something arrived there. Raises Illegal."""
    await _move(connection, channel_id, "delivered")
    await connection.execute(
        "UPDATE accounts.channel SET failing_since = NULL, failures = 0, rests_until = NULL,"
        " last_error = NULL, delivered_at = $2 WHERE id = $1",
        channel_id, now,
    )  # fmt: skip


async def record_answer_time(
    connection: Connection, channel_id: int, answers_ms: int, proven_at: datetime | None
) -> None:
    """How long its answers take by now; and where it was proven then, it stays so."""
    await connection.execute(
        "UPDATE accounts.channel SET answers_ms = $2, proven_at = coalesce(proven_at, $3) WHERE id = $1",
        channel_id, answers_ms, proven_at,
    )  # fmt: skip


async def reserve_rows(
    connection: Connection, host: str, sizes: Sequence[int], now: datetime
) -> tuple[int, datetime]:
    """How many of messages with so many rows may go to the host now, from the first on; they are counted. And
    when there is room again."""
    row = await connection.fetchrow(
        "INSERT INTO accounts.host_minute AS minute (host, began_at, rows) VALUES ($1, $2, 0)"
        " ON CONFLICT (host) DO UPDATE SET"
        " began_at = CASE WHEN minute.began_at > $2 - $3::interval AND minute.began_at <= $2"
        "  THEN minute.began_at ELSE $2 END,"
        " rows = CASE WHEN minute.began_at > $2 - $3::interval AND minute.began_at <= $2"
        "  THEN minute.rows ELSE 0 END RETURNING began_at, rows",
        host, now, HOST_WINDOW,
    )  # fmt: skip
    fit = rows_that_fit(sizes, HOST_ROWS - row["rows"])
    if fit:
        await connection.execute(
            "UPDATE accounts.host_minute SET rows = rows + $2 WHERE host = $1", host, sum(sizes[:fit])
        )
    again_at: datetime = row["began_at"] + HOST_WINDOW
    return fit, again_at


async def mark_failed(
    connection: Connection,
    channel_id: int,
    event: Event,
    since: datetime,
    failures: int,
    rests_until: datetime,
    error: str,
) -> State:
    """A try failed, the last of so many on end; what the channel is now. Raises Illegal."""
    state = await _move(connection, channel_id, event)
    await connection.execute(
        "UPDATE accounts.channel SET failing_since = $2, failures = $3, rests_until = $4, last_error = $5"
        " WHERE id = $1",
        channel_id, since, failures, rests_until, error,
    )  # fmt: skip
    return state


async def remove(connection: Connection, channel_id: int) -> None:
    """By its owner. Raises Illegal."""
    await _move(connection, channel_id, "removed")


async def set_dropped_to(connection: Connection, channel_id: int, dropped_to: int) -> None:
    """0: of those that were not to be sent none is left."""
    await connection.execute(
        "UPDATE accounts.channel SET dropped_to = $2 WHERE id = $1", channel_id, dropped_to
    )


async def _move(connection: Connection, channel_id: int, event: Event) -> State:
    found = await channel(connection, channel_id, lock=True)
    assert found is not None
    state = next_state(found.state, event)
    await connection.execute("UPDATE accounts.channel SET state = $2 WHERE id = $1", channel_id, state)
    return state


async def chats_linked(connection: Connection, account_id: int) -> int:
    """How often a chat was linked to an account, the same one again counted; 0 also where there is none
    such."""
    found: int | None = await connection.fetchval(
        "SELECT chats_linked FROM accounts.account WHERE id = $1", account_id
    )
    return found or 0


async def count_chat(connection: Connection, account_id: int) -> None:
    """A chat was linked; the account is locked."""
    await connection.execute(
        "UPDATE accounts.account SET chats_linked = chats_linked + 1 WHERE id = $1", account_id
    )


async def has_sealed(connection: Connection) -> bool:
    """Whether something is kept that only the sealing key opens."""
    found: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM accounts.channel WHERE kind <> 'telegram' AND state <> 'removed')"
    )
    return found


async def is_key(connection: Connection, fingerprint: bytes) -> bool:
    """Whether what is kept was sealed with the key of this ``fingerprint``; where nothing is kept, it is from
    now on."""
    if await accounts.secret(connection, _KEY, fingerprint) == fingerprint:
        return True
    if await has_sealed(connection):
        return False
    await connection.execute("UPDATE accounts.secret SET value = $2 WHERE name = $1", _KEY, fingerprint)
    return True


_KEY = "seal"
_HOST_LOCK = 4663_0012


async def attempt(
    connection: Connection,
    account_id: int,
    host: str,
    most: tuple[int, int | None],
    window: timedelta,
    now: datetime,
) -> datetime | None:
    """Counts one more target that is tried to be set; the account is locked. ``most``: so many of an account,
    and so many that failed of a host (None: of that any number), in any ``window``; one fails until
    ``clear_attempt``. None: there was room; else when there is, and it is not counted."""
    await connection.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", _HOST_LOCK, host)
    # The newest of those that leave no room: when it is over, there is room.
    blocking = await connection.fetchval(
        "SELECT max(made_at) FROM ("
        " (SELECT made_at FROM accounts.channel_attempt WHERE account_id = $1 AND made_at > $3"
        "  ORDER BY made_at DESC OFFSET $4 LIMIT 1)"
        " UNION ALL"
        " (SELECT made_at FROM accounts.channel_attempt WHERE host = $2 AND made_at > $3"
        "  AND failed AND $6"
        "  ORDER BY made_at DESC OFFSET $5 LIMIT 1)) AS full_by",
        account_id, host, now - window, most[0] - 1, (most[1] or 1) - 1, most[1] is not None,
    )  # fmt: skip
    if blocking is not None:
        until: datetime = blocking + window
        return until
    await connection.execute(
        "INSERT INTO accounts.channel_attempt (account_id, host, made_at) VALUES ($1, $2, $3)",
        account_id,
        host,
        now,
    )
    return None


async def clear_attempt(connection: Connection, account_id: int, host: str, made_at: datetime) -> None:
    """The attempt of then did not fail."""
    await connection.execute(
        "UPDATE accounts.channel_attempt SET failed = false"
        " WHERE account_id = $1 AND host = $2 AND made_at = $3",
        account_id, host, made_at,
    )  # fmt: skip


async def forget_attempts(connection: Connection, before: datetime) -> None:
    """Those that count no longer, and minutes of hosts that are over."""
    await connection.execute("DELETE FROM accounts.channel_attempt WHERE made_at <= $1", before)
    await connection.execute("DELETE FROM accounts.host_minute WHERE began_at <= $1", before)
