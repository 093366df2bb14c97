"""The channels that messages are sent to. Each function uses the caller's connection and does not end the
transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

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
from roundtrip.store.server.rows import Connection, fetch, fetch_one, fetch_optional, fetch_row, fetch_value

ChannelKind = Literal["webhook", "telegram", "discord"]


class Channel(NamedTuple):
    """A channel as stored. ``target``, ``secret``: sealed, but for Telegram's target. ``shown``: what the
    owner is shown of the target. ``target_hash``: by which the channel is found again; None: by its target.
    ``failures``: consecutive. ``rests_until``: nothing is sent before that. ``dropped_to``: waiting messages
    up to this id are not sent. ``host``: the remote host, or chat, whose limits it counts against.
    ``proven_at``: since when the receiver is known to want the messages; None: not yet. ``answers_ms``: how
    long answers take."""

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
    """A channel to add. ``proven``: the receiver has shown that it wants the messages. ``took_ms``: how long
    the answer to the test took."""

    kind: ChannelKind
    target: bytes
    shown: str
    secret: bytes | None
    target_hash: bytes | None = None
    proven: bool = False
    took_ms: int = 0

    @property
    def host(self) -> str:
        """The host that the channel's messages count against."""
        return f"telegram:{self.target.decode()}" if self.kind == "telegram" else host_of(self.shown)

    @property
    def is_proven(self) -> bool:
        """Chats always are: they were linked from within, or their url is a secret of the chat."""
        return self.proven or self.kind != "webhook"


_CHANNEL = (
    "id, account_id, kind, target, shown, secret, state, made_at, failing_since, failures, delivered_at,"
    " last_error, rests_until, dropped_to, target_hash, host, proven_at, answers_ms"
)


async def of_account(connection: Connection, account_id: int) -> list[Channel]:
    """An account's channels that are not removed, the oldest first."""
    return await fetch(
        connection,
        Channel,
        f"SELECT {_CHANNEL} FROM accounts.channel WHERE account_id = $1 AND state <> 'removed' ORDER BY id",  # noqa: S608
        account_id,
    )


async def channel(connection: Connection, channel_id: int, *, lock: bool = False) -> Channel | None:
    """A channel, also a removed one; None: there is none of this id. ``lock``: locks it until the transaction
    ends; rows that refer to it may still be inserted."""
    locking = " FOR NO KEY UPDATE" if lock else ""
    return await fetch_row(
        connection,
        Channel,
        f"SELECT {_CHANNEL} FROM accounts.channel WHERE id = $1{locking}",  # noqa: S608
        channel_id,
    )


async def lock_account(connection: Connection, account_id: int) -> str | None:
    """Locks the set of the account's channels until the transaction ends. Returns the account's designation;
    None: there is no such account."""
    return await fetch_optional(
        connection,
        str,
        "SELECT designation FROM accounts.account WHERE id = $1 FOR NO KEY UPDATE",
        account_id,
    )


async def add(connection: Connection, account_id: int, new: NewChannel, now: datetime) -> int:
    """Inserts a channel that a message has just reached, and returns its id; the caller has locked the
    account."""
    return await fetch_value(
        connection, int,
        "INSERT INTO accounts.channel (account_id, kind, target, shown, secret, state, made_at, delivered_at,"
        " target_hash, host, proven_at, answers_ms)"
        " VALUES ($1, $2, $3, $4, $5, 'live', $6, $6, $7, $8, $9, $10) RETURNING id",
        account_id, new.kind, new.target, new.shown, new.secret, now, new.target_hash, new.host,
        now if new.is_proven else None, new.took_ms,
    )  # fmt: skip


async def set_again(connection: Connection, channel_id: int, new: NewChannel, now: datetime) -> None:
    """Gives the channel a new target and secret, which a message has just reached. Where the channel was off,
    messages that wait for it are not sent any more. Raises IllegalMove."""
    stored = await channel(connection, channel_id, lock=True)
    if stored is not None and stored.state == "off":
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
    """Records that a message arrived. Raises IllegalMove."""
    await _move(connection, channel_id, "delivered")
    await connection.execute(
        "UPDATE accounts.channel SET failing_since = NULL, failures = 0, rests_until = NULL,"
        " last_error = NULL, delivered_at = $2 WHERE id = $1",
        channel_id, now,
    )  # fmt: skip


async def record_answer_time(
    connection: Connection, channel_id: int, answers_ms: int, proven_at: datetime | None
) -> None:
    """Sets how long answers take, and ``proven_at`` where it is not set yet."""
    await connection.execute(
        "UPDATE accounts.channel SET answers_ms = $2, proven_at = coalesce(proven_at, $3) WHERE id = $1",
        channel_id, answers_ms, proven_at,
    )  # fmt: skip


async def reserve_rows(
    connection: Connection, host: str, sizes: Sequence[int], now: datetime
) -> tuple[int, datetime]:
    """Reserves room at the host for messages with ``sizes`` rows, from the first on. Returns how many fit
    now, and when there is room again."""
    began_at, rows = await fetch_one(
        connection, tuple[datetime, int],
        "INSERT INTO accounts.host_minute AS minute (host, began_at, rows) VALUES ($1, $2, 0) ON CONFLICT "
        "(host) DO UPDATE SET began_at = CASE WHEN minute.began_at > $2 - $3::interval AND minute.began_at "
        "<= $2  THEN minute.began_at ELSE $2 END, rows = CASE WHEN minute.began_at > $2 - $3::interval AND "
        "minute.began_at <= $2  THEN minute.rows ELSE 0 END RETURNING began_at, rows",
        host, now, HOST_WINDOW,
    )  # fmt: skip
    fit = rows_that_fit(sizes, HOST_ROWS - rows)
    if fit:
        await connection.execute(
            "UPDATE accounts.host_minute SET rows = rows + $2 WHERE host = $1", host, sum(sizes[:fit])
        )
    return fit, began_at + HOST_WINDOW


async def mark_failed(
    connection: Connection,
    channel_id: int,
    event: Event,
    since: datetime,
    failures: int,
    rests_until: datetime,
    error: str,
) -> State:
    """Records a failed try, the last of ``failures`` consecutive ones since ``since``. Returns the channel's
    new state. Raises IllegalMove."""
    state = await _move(connection, channel_id, event)
    await connection.execute(
        "UPDATE accounts.channel SET failing_since = $2, failures = $3, rests_until = $4, last_error = $5"
        " WHERE id = $1",
        channel_id, since, failures, rests_until, error,
    )  # fmt: skip
    return state


async def remove(connection: Connection, channel_id: int) -> None:
    """Removes a channel, for its owner. Raises IllegalMove."""
    await _move(connection, channel_id, "removed")


async def set_dropped_to(connection: Connection, channel_id: int, dropped_to: int) -> None:
    """Waiting messages up to the id ``dropped_to`` are not sent; 0: none is left to drop."""
    await connection.execute(
        "UPDATE accounts.channel SET dropped_to = $2 WHERE id = $1", channel_id, dropped_to
    )


async def _move(connection: Connection, channel_id: int, event: Event) -> State:
    stored = await channel(connection, channel_id, lock=True)
    assert stored is not None
    state = next_state(stored.state, event)
    await connection.execute("UPDATE accounts.channel SET state = $2 WHERE id = $1", channel_id, state)
    return state


async def chats_linked(connection: Connection, account_id: int) -> int:
    """How often a chat was linked to an account, repeats counted; 0 also where there is no such account."""
    count = await fetch_optional(
        connection, int, "SELECT chats_linked FROM accounts.account WHERE id = $1", account_id
    )
    return count or 0


async def count_chat(connection: Connection, account_id: int) -> None:
    """Counts a linked chat; the caller has locked the account."""
    await connection.execute(
        "UPDATE accounts.account SET chats_linked = chats_linked + 1 WHERE id = $1", account_id
    )


async def has_sealed(connection: Connection) -> bool:
    """Whether a target or secret is stored that only the sealing key opens."""
    return await fetch_value(
        connection,
        bool,
        "SELECT EXISTS (SELECT FROM accounts.channel WHERE kind <> 'telegram' AND state <> 'removed')",
    )


async def is_key(connection: Connection, fingerprint: bytes) -> bool:
    """Whether stored channels are sealed with the key of this ``fingerprint``. Where none is stored, it
    becomes the sealing key."""
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
    limits: tuple[int, int | None],
    window: timedelta,
    now: datetime,
) -> datetime | None:
    """Counts an attempt to set a target; the caller has locked the account. ``limits``: how many attempts of
    the account, and how many failed attempts at the host (None: any number), fit into a ``window``; an
    attempt counts as failed until ``clear_attempt``. Returns None where there was room, else when there is
    room; then nothing is counted."""
    account_limit, host_limit = limits
    await connection.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", _HOST_LOCK, host)
    # The newest attempt that leaves no room: once it is out of the window, there is room.
    blocking = await fetch_optional(
        connection, datetime,
        "SELECT max(made_at) FROM ( (SELECT made_at FROM accounts.channel_attempt WHERE account_id = $1 AND "
        "made_at > $3  ORDER BY made_at DESC OFFSET $4 LIMIT 1) UNION ALL (SELECT made_at FROM "
        "accounts.channel_attempt WHERE host = $2 AND made_at > $3  AND failed AND $6  ORDER BY made_at DESC "
        "OFFSET $5 LIMIT 1)) AS full_by",
        account_id, host, now - window, account_limit - 1, (host_limit or 1) - 1, host_limit is not None,
    )  # fmt: skip
    if blocking is not None:
        return blocking + window
    await connection.execute(
        "INSERT INTO accounts.channel_attempt (account_id, host, made_at) VALUES ($1, $2, $3)",
        account_id,
        host,
        now,
    )
    return None


async def clear_attempt(connection: Connection, account_id: int, host: str, made_at: datetime) -> None:
    """Marks the attempt made at ``made_at`` as not failed."""
    await connection.execute(
        "UPDATE accounts.channel_attempt SET failed = false"
        " WHERE account_id = $1 AND host = $2 AND made_at = $3",
        account_id, host, made_at,
    )  # fmt: skip


async def forget_attempts(connection: Connection, before: datetime) -> None:
    """Deletes attempts and host minutes that no longer count."""
    await connection.execute("DELETE FROM accounts.channel_attempt WHERE made_at <= $1", before)
    await connection.execute("DELETE FROM accounts.host_minute WHERE began_at <= $1", before)
