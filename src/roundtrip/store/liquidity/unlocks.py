"""Unlock times of liquidity, as they were read last. Each function uses the caller's connection and does not
end the transaction."""

from collections.abc import Collection, Sequence

from roundtrip.domain.base.types import Address
from roundtrip.domain.liquidity.unlocks import ComingUnlock, Unlock
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection, fetch, fetch_optional, fetch_values

_LAST_S = 2**31 - 1
"""Later unlocks are kept as of this moment, in 2038: alerts have times of four bytes."""


async def put_unlocks(
    connection: Connection, token: Address, unlocks: Sequence[Unlock], read_number: int
) -> None:
    """Replaces the token's unlocks by these, which were read at block ``read_number``; does nothing where
    those that are kept were read at a later block."""
    # One reading at a time, so that an older one finds what a newer one wrote.
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"unlocks {token}")
    own = as_bytes(token)
    newest = "SELECT max(read_number) FROM facts.unlock WHERE token = $1"
    if (await fetch_optional(connection, int, newest, own) or 0) > read_number:
        return
    await connection.execute("DELETE FROM facts.unlock WHERE token = $1", own)
    await connection.executemany(
        "INSERT INTO facts.unlock (token, manager, number, holder, at_s, share_bps, read_number)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
        [
            (own, as_bytes(unlock.manager), unlock.number, as_bytes(unlock.holder),
             min(unlock.at_s, _LAST_S), unlock.share_bps, read_number)
            for unlock in unlocks
        ],
    )  # fmt: skip


_COMING = """
SELECT unlock.token, unlock.holder, unlock.at_s,
    CASE WHEN NOT bool_or(unlock.share_bps IS NULL) THEN least(sum(unlock.share_bps), 10000)::int END
        AS share_bps,
    count(*)::int AS positions
FROM facts.unlock AS unlock WHERE unlock.at_s > $1 AND unlock.at_s <= $2 {of}
GROUP BY unlock.token, unlock.holder, unlock.at_s
ORDER BY unlock.at_s, unlock.token, unlock.holder LIMIT $3
"""
_WATCHED = """
    SELECT rule.account_id, rule.token FROM accounts.rule AS rule
    WHERE rule.ended_at IS NULL AND NOT rule.paused AND rule.token IS NOT NULL
    UNION SELECT rule.account_id, rule.who_address FROM accounts.rule AS rule
    WHERE rule.ended_at IS NULL AND NOT rule.paused AND rule.who IN ('deployer', 'creator')
    UNION SELECT follow.account_id, token.address FROM accounts.follow AS follow
    JOIN facts.address AS deployer ON deployer.address = follow.wallet
    JOIN facts.launch AS launch ON launch.deployer_id = deployer.id
    JOIN facts.address AS token ON token.id = launch.token_id
    WHERE follow.ended_at IS NULL
"""
"""What accounts watch: tokens that their rules name, and launches of wallets that they follow."""
_OF_AN_ACCOUNT = f"""
    AND unlock.token IN (SELECT address FROM facts.address WHERE id = ANY($5::int[])
        UNION SELECT token FROM ({_WATCHED}) AS watched WHERE watched.account_id = $4)
"""  # noqa: S608


async def read_coming(connection: Connection, after_s: int, to_s: int, limit: int) -> list[ComingUnlock]:
    """The next ``limit`` unlocks after ``after_s`` up to ``to_s``, seconds since 1970, the earliest first."""
    return await fetch(connection, ComingUnlock, _COMING.format(of=""), after_s, to_s, limit)


async def read_coming_of(
    connection: Connection, account_id: int, held: Collection[int], after_s: int, to_s: int, limit: int
) -> list[ComingUnlock]:
    """Those of ``read_coming`` of the tokens that an account watches: those of ``held``, by their numbers,
    those that its rules name, and launches of wallets that it follows."""
    statement = _COMING.format(of=_OF_AN_ACCOUNT)
    return await fetch(connection, ComingUnlock, statement, after_s, to_s, limit, account_id, list(held))


async def read_watchers(connection: Connection, tokens: Collection[Address]) -> dict[Address, set[int]]:
    """The accounts whose rules name each of these tokens, or that follow its deployer; a token without any is
    missing."""
    rows = await fetch(
        connection,
        tuple[Address, int],
        f"SELECT token, account_id FROM ({_WATCHED}) AS watched WHERE token = ANY($1::bytea[])",  # noqa: S608
        [as_bytes(token) for token in tokens],
    )
    watchers: dict[Address, set[int]] = {}
    for token, account_id in rows:
        watchers.setdefault(token, set()).add(account_id)
    return watchers


async def read_watched(connection: Connection, limit: int) -> list[Address]:
    """At most ``limit`` tokens that rules name or that followed wallets launched."""
    return await fetch_values(
        connection,
        Address,
        f"SELECT DISTINCT token FROM ({_WATCHED}) AS watched ORDER BY token LIMIT $1",  # noqa: S608
        limit,
    )


async def read_first_unlock(connection: Connection, token: Address, after_s: int) -> int | None:
    """The time of the token's first unlock after ``after_s``, seconds since 1970; None: there is none."""
    statement = "SELECT min(at_s) FROM facts.unlock WHERE token = $1 AND at_s > $2"
    return await fetch_optional(connection, int, statement, as_bytes(token), after_s)


async def read_alerted(connection: Connection, after_s: int) -> set[tuple[int, Address, Address, int]]:
    """The accounts that were alerted of unlocks after ``after_s``: account, token, holder and time."""
    rows = await fetch(
        connection,
        tuple[int, Address, Address, int],
        "SELECT account_id, token, wallet, at_s FROM accounts.alert WHERE kind = 'unlock' AND at_s > $1",
        after_s,
    )
    return set(rows)
