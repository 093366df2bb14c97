"""Who holds what among mites, and what holders were told of its verdict. Each function takes the caller's
connection and ends no transaction."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

import asyncpg

from roundtrip.domain.bag import GUARD, Seen, Standing
from roundtrip.domain.events import Spot
from roundtrip.domain.rules import Happening
from roundtrip.domain.types import ZERO_ADDRESS, Address, TxHash

from .happening_rows import LAUNCHED_RAW, PPM
from .words import as_address, as_bytes

MOST_CHECKS = 50
"""Of one token in one reading; the others in the next one."""


class Holder(NamedTuple):
    """A mite whose wallet holds a token. ``from_number``: what happens in later blocks is told to it."""

    mite_id: int
    wallet: Address
    from_number: int


async def deployers(connection: asyncpg.Connection, tokens: Collection[Address]) -> dict[Address, Address]:
    """Who deployed these, of those that a launchpad launched."""
    rows = await connection.fetch(
        "SELECT token.address AS token, deployer.address AS deployer FROM facts.address AS token"
        " JOIN facts.launch AS launch ON launch.token_id = token.id"
        " JOIN facts.address AS deployer ON deployer.id = launch.deployer_id"
        " WHERE token.address = ANY($1::bytea[])",
        [as_bytes(token) for token in tokens],
    )
    return {as_address(row["token"]): as_address(row["deployer"]) for row in rows}


_GIVEN = (
    "unnest($1::bytea[], $2::bytea[], $3::int[], $4::int[], $5::int[]) WITH ORDINALITY"
    " AS given (token, wallet, block_number, log_index, at_s, nth)"
)
_LATER = """
    SELECT coalesce(sum(trade.token_raw) FILTER (WHERE NOT trade.buys), 0) AS sold_raw,
        coalesce(sum(trade.token_raw) FILTER (WHERE trade.buys), 0) AS bought_raw
    FROM facts.trade AS trade JOIN facts.pool AS pool ON pool.id = trade.pool_id
    WHERE held.last_s >= given.at_s AND trade.trader_id = held.wallet_id AND pool.token_id = held.token_id
        AND trade.at_s >= given.at_s
        AND (trade.block_number, trade.log_index) > (given.block_number, given.log_index)
"""
_SOLD = f"""
SELECT given.nth, (held.sold_raw - later.sold_raw)::text AS sold_raw
FROM {_GIVEN}
JOIN facts.address AS token ON token.address = given.token
JOIN facts.address AS wallet ON wallet.address = given.wallet
JOIN facts.position AS held ON held.wallet_id = wallet.id AND held.token_id = token.id
CROSS JOIN LATERAL ({_LATER}) AS later
"""  # noqa: S608


async def sold_up_to(connection: asyncpg.Connection, sales: Sequence[Happening]) -> list[int | None]:
    """How much of the token whoever sold had ever sold when each of these was done, itself in it; None: not
    known."""
    found: list[int | None] = [None] * len(sales)
    for row in await connection.fetch(_SOLD, *_given(sales)):
        found[row["nth"] - 1] = int(row["sold_raw"])
    return found


_HOLDERS = f"""
WITH given AS MATERIALIZED (
    SELECT given.*, token.id AS token_id, launch.token_id IS NOT NULL AS is_launch FROM {_GIVEN}
    JOIN facts.address AS token ON token.address = given.token
    LEFT JOIN facts.launch AS launch ON launch.token_id = token.id
), traded AS (
    SELECT given.nth, mite.id, held.held_raw + later.sold_raw - later.bought_raw AS held_raw
    FROM given JOIN facts.position AS held ON held.token_id = given.token_id
    JOIN facts.address AS wallet ON wallet.id = held.wallet_id
    JOIN accounts.mite AS mite ON mite.wallet = wallet.address
    CROSS JOIN LATERAL ({_LATER}) AS later
    WHERE held.held_raw > 0 OR held.last_s >= given.at_s
), moved AS (
    SELECT given.nth, mite.id, sum(transfer.amount_raw) - (
        SELECT coalesce(sum(gone.amount_raw), 0) FROM facts.transfer AS gone
        WHERE gone.from_id = transfer.to_id AND gone.token_id = given.token_id AND gone.at_s <= given.at_s
            AND (gone.block_number, gone.log_index) < (given.block_number, given.log_index)
    ) AS held_raw
    FROM given JOIN facts.transfer AS transfer ON transfer.token_id = given.token_id
    JOIN facts.address AS wallet ON wallet.id = transfer.to_id
    JOIN accounts.mite AS mite ON mite.wallet = wallet.address
    WHERE given.is_launch AND transfer.at_s <= given.at_s
        AND (transfer.block_number, transfer.log_index) < (given.block_number, given.log_index)
    GROUP BY given.nth, mite.id, transfer.to_id, given.token_id, given.at_s, given.block_number,
        given.log_index
), holds AS (
    SELECT nth, id FROM traded WHERE held_raw > 0
    UNION SELECT nth, id FROM moved WHERE held_raw >= $6::numeric
)
SELECT holds.nth, mite.id, mite.wallet, mite.guarded_from
FROM holds JOIN accounts.mite AS mite ON mite.id = holds.id ORDER BY holds.nth, mite.id
"""  # noqa: S608


async def holders(connection: asyncpg.Connection, of: Sequence[Happening]) -> list[list[Holder]]:
    """Which mites held the token of each of these just then, by mite: what they had bought and not sold, or
    enough that they had been given of a launchpad's token within the days of which transfers are kept. Told
    by what they have now and what they traded since: who later sells more than he bought had been given it
    elsewhere, and held it then, though nobody could know."""
    found: list[list[Holder]] = [[] for _ in of]
    if of:
        for row in await connection.fetch(_HOLDERS, *_given(of), _given_raw()):
            found[row["nth"] - 1].append(_holder(row))
    return found


def _given(
    happenings: Sequence[Happening],
) -> tuple[list[bytes], list[bytes], list[int], list[int], list[int]]:
    return (
        [as_bytes(one.token) for one in happenings],
        [as_bytes(one.wallet) for one in happenings],
        [one.spot.block_number for one in happenings],
        [one.spot.log_index for one in happenings],
        [one.spot.at_s for one in happenings],
    )


def _given_raw() -> int:
    return LAUNCHED_RAW * GUARD.given_ppm // PPM


def _holder(row: asyncpg.Record) -> Holder:
    return Holder(row["id"], as_address(row["wallet"]), row["guarded_from"])


async def turn_back(connection: asyncpg.Connection, number: int) -> None:
    """A reorganisation went back to that block: what comes instead of the later ones is news to everybody."""
    await connection.execute("UPDATE accounts.mite SET guarded_from = $1 WHERE guarded_from > $1", number)


async def holders_now(
    connection: asyncpg.Connection, tokens: Sequence[Address]
) -> dict[Address, list[Holder]]:
    """The same of these tokens, as they are held now; those that no mite holds are left out."""
    spot = Spot(_LAST, _LAST, _LAST, TxHash("0x"))
    ends = [Happening("draining", spot, ZERO_ADDRESS, token, None, None, None, None) for token in tokens]
    found = await holders(connection, ends)
    return {token: holding for token, holding in zip(tokens, found, strict=True) if holding}


_LAST = 2**31 - 1
"""After all blocks."""


# --- all that is held ------------------------------------------------------------------------------

_HELD = """
WITH wallet AS MATERIALIZED (
    SELECT address.id FROM accounts.mite AS mite
    JOIN facts.address AS address ON address.address = mite.wallet
), held AS (
    SELECT traded.token_id FROM wallet CROSS JOIN LATERAL (
        SELECT token_id FROM facts.position WHERE wallet_id = wallet.id AND held_raw > 0
        ORDER BY token_id DESC LIMIT $1
    ) AS traded
    UNION SELECT token_id FROM (
        SELECT wallet.id, transfer.token_id, sum(transfer.amount_raw) AS got_raw
        FROM wallet JOIN facts.transfer AS transfer ON transfer.to_id = wallet.id
        GROUP BY wallet.id, transfer.token_id HAVING sum(transfer.amount_raw) >= $2::numeric
    ) AS given WHERE got_raw - (
        SELECT coalesce(sum(gone.amount_raw), 0) FROM facts.transfer AS gone
        WHERE gone.from_id = given.id AND gone.token_id = given.token_id) >= $2::numeric
)
SELECT address FROM held JOIN facts.address AS address ON address.id = held.token_id ORDER BY address
"""


async def held_by_mites(connection: asyncpg.Connection) -> list[Address]:
    """Every token that a mite's wallet holds, of each wallet the newest ones. With many mites it takes
    seconds."""
    rows = await connection.fetch(_HELD, GUARD.most_held, _given_raw())
    return [as_address(row["address"]) for row in rows]


# --- verdicts --------------------------------------------------------------------------------------


async def standings(connection: asyncpg.Connection, tokens: Collection[Address]) -> dict[Address, Standing]:
    """What holders know of these, of those that were looked at."""
    rows = await connection.fetch(
        "SELECT token, level, code, policy_version, seen_id, next_level, next_at, told_at"
        " FROM accounts.bag_verdict WHERE token = ANY($1::bytea[])",
        [as_bytes(one) for one in tokens],
    )
    return {as_address(token): Standing(*known) for token, *known in rows}


async def put_standings(connection: asyncpg.Connection, found: dict[Address, Standing]) -> None:
    """Keeps them as they are now."""
    await connection.executemany(
        "INSERT INTO accounts.bag_verdict (token, level, code, policy_version, seen_id, next_level, next_at,"
        " told_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (token) DO UPDATE SET"
        " level = excluded.level, code = excluded.code, policy_version = excluded.policy_version,"
        " seen_id = excluded.seen_id, next_level = excluded.next_level, next_at = excluded.next_at,"
        " told_at = excluded.told_at",
        [
            (as_bytes(token), one.level, one.code, one.policy_version, one.seen_id, one.next_level,
             one.next_at, one.told_at)
            for token, one in sorted(found.items())
        ],
    )  # fmt: skip


async def forget_but(connection: asyncpg.Connection, tokens: Collection[Address]) -> None:
    """Takes away what is known of others: nobody holds them any more."""
    await connection.execute(
        "DELETE FROM accounts.bag_verdict WHERE token <> ALL($1::bytea[])", [as_bytes(one) for one in tokens]
    )


_CHECKS = """
SELECT given.token, one.* FROM unnest($1::bytea[], $2::bigint[]) AS given (token, seen_id)
CROSS JOIN LATERAL (
    (SELECT id, checked_at, verdict_level, verdict_code, policy_version, deep FROM facts.evidence
    WHERE token = given.token AND id > given.seen_id AND given.seen_id > 0 ORDER BY id LIMIT $3)
    UNION ALL
    (SELECT id, checked_at, verdict_level, verdict_code, policy_version, deep FROM facts.evidence
    WHERE token = given.token AND given.seen_id = 0 AND verdict_level <> 'unknown' ORDER BY id DESC LIMIT 1)
) AS one ORDER BY one.id
"""


async def checks_after(
    connection: asyncpg.Connection, seen_ids: dict[Address, int]
) -> dict[Address, list[Seen]]:
    """The checks of each token after the one of that id, the oldest first; 0: the newest that found something
    out."""
    rows = await connection.fetch(
        _CHECKS, [as_bytes(token) for token in seen_ids], list(seen_ids.values()), MOST_CHECKS
    )
    found: dict[Address, list[Seen]] = {}
    for row in rows:
        seen = Seen(
            row["id"], row["checked_at"], row["verdict_level"], row["verdict_code"], row["policy_version"],
            row["deep"],
        )  # fmt: skip
        found.setdefault(as_address(row["token"]), []).append(seen)
    return found


async def checked_at(connection: asyncpg.Connection, tokens: Collection[Address]) -> dict[Address, datetime]:
    """When each was checked last, of those that were, whoever wanted to know and whatever came of it."""
    rows = await connection.fetch(
        "SELECT given.token, newest.checked_at FROM unnest($1::bytea[]) AS given (token) CROSS JOIN LATERAL"
        " (SELECT checked_at FROM facts.evidence WHERE evidence.token = given.token"
        " ORDER BY id DESC LIMIT 1) AS newest",
        [as_bytes(token) for token in tokens],
    )
    return {as_address(row["token"]): row["checked_at"] for row in rows}


async def document(connection: asyncpg.Connection, evidence_id: int) -> bytes | None:
    """What a check kept."""
    found: bytes | None = await connection.fetchval(
        "SELECT document FROM facts.evidence WHERE id = $1", evidence_id
    )
    return found
