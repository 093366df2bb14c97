"""Tokens that accounts watch without holding them. Each function uses the caller's connection and does not
end the transaction."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import MOST_WATCHED
from roundtrip.domain.watch.bag_guard import BagHolding, initial_standing
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection, fetch

from .bags import checks_after, put_standings, standings
from .watches import TooManyWatches


class WatchedToken(NamedTuple):
    """A token that an account watches, and since when."""

    token: Address
    made_at: datetime


async def add_token(connection: Connection, account_id: int, token: Address, now: datetime) -> None:
    """The account watches the token; does nothing where it does. Changes from the newest check on are
    reported, however soon they come. Raises TooManyWatches."""
    await connection.execute("SELECT FROM accounts.account WHERE id = $1 FOR NO KEY UPDATE", account_id)
    watched = {row.token for row in await list_tokens(connection, account_id)}
    if token in watched:
        return
    if len(watched) >= MOST_WATCHED:
        raise TooManyWatches(MOST_WATCHED)
    await connection.execute(
        "INSERT INTO accounts.token_watch (account_id, token, made_at) VALUES ($1, $2, $3)",
        account_id,
        as_bytes(token),
        now,
    )
    if not await standings(connection, [token]):
        newest = (await checks_after(connection, {token: 0})).get(token, [])
        first = initial_standing(newest[-1]) if newest else None
        if first is not None:
            await put_standings(connection, {token: first})


async def remove_token(connection: Connection, account_id: int, token: Address) -> None:
    """The account no longer watches the token; does nothing where it does not."""
    await connection.execute(
        "DELETE FROM accounts.token_watch WHERE account_id = $1 AND token = $2", account_id, as_bytes(token)
    )


async def list_tokens(connection: Connection, account_id: int) -> list[WatchedToken]:
    """The tokens that an account watches, the newest first."""
    return await fetch(
        connection,
        WatchedToken,
        "SELECT token, made_at FROM accounts.token_watch WHERE account_id = $1 ORDER BY made_at DESC, token",
        account_id,
    )


async def watched_by_accounts(connection: Connection) -> list[BagHolding]:
    """All that accounts watch, by token. It counts like what they only received: watching costs nothing."""
    return await fetch(
        connection,
        BagHolding,
        "SELECT account_id, token, true AS is_given FROM accounts.token_watch ORDER BY token, account_id",
    )


async def watchers(connection: Connection, tokens: Collection[Address]) -> dict[Address, set[int]]:
    """The accounts that watch each of these tokens; a token that nobody watches is missing."""
    rows = await fetch(
        connection,
        tuple[Address, int],
        "SELECT token, account_id FROM accounts.token_watch WHERE token = ANY($1::bytea[])",
        [as_bytes(token) for token in tokens],
    )
    found: dict[Address, set[int]] = {}
    for token, account_id in rows:
        found.setdefault(token, set()).add(account_id)
    return found
