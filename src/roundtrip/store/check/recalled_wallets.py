"""Wallets of checks that met a refusal or a loss, kept for a day by what they were drawn from."""

from collections.abc import Collection
from datetime import datetime

from roundtrip.domain.base.types import Address
from roundtrip.domain.check.proof_input import RecalledWallet
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection, fetch

MAX_RECALLED = 64
"""Rows that a check reads, the newest first."""


async def read(
    connection: Connection, token: Address, since: datetime, limit: int = MAX_RECALLED
) -> list[RecalledWallet]:
    """The token's wallets that were seen at ``since`` or later, the newest first."""
    return await fetch(
        connection,
        RecalledWallet,
        "SELECT at, seed, number::int AS number FROM facts.recalled_wallet WHERE token = $1 AND seen_at >= $2"
        " ORDER BY seen_at DESC, at, seed, number LIMIT $3",
        as_bytes(token),
        since,
        limit,
    )


async def keep(
    connection: Connection,
    token: Address,
    wallets: Collection[RecalledWallet],
    now: datetime,
    since: datetime,
    pruned_at_once: int = 64,
) -> None:
    """Inserts wallets, or renews them. Deletes at most ``pruned_at_once`` that were seen before ``since``."""
    if not wallets:
        return
    await connection.executemany(
        "INSERT INTO facts.recalled_wallet (token, at, seed, number, seen_at) VALUES ($1, $2, $3, $4, $5)"
        " ON CONFLICT (token, at, seed, number)"
        " DO UPDATE SET seen_at = greatest(recalled_wallet.seen_at, excluded.seen_at)",
        # In one order, so that two checks of one token do not wait for each other.
        sorted((as_bytes(token), kept.at, as_bytes(kept.seed), kept.number, now) for kept in wallets),
    )
    await connection.execute(
        "DELETE FROM facts.recalled_wallet WHERE (token, at, seed, number) IN (SELECT token, at, seed, number"
        " FROM facts.recalled_wallet WHERE seen_at < $1 ORDER BY seen_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
        since,
        pruned_at_once,
    )
