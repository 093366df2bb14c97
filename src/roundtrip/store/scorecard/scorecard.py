"""Verdicts that are to be scored, and their scores. Each function takes the caller's connection and ends no
transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

import asyncpg

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.scorecard.scorecard import CODES, HOUR_S, Cause, Outcome, VerdictScore
from roundtrip.store.server.hex import as_address, as_bytes, as_text
from roundtrip.store.server.rows import Connection


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A stored verdict that is to be scored."""

    id: int
    token: Address
    code: str
    level: str
    block_number: int
    checked_at: datetime
    document: bytes


@dataclass(frozen=True, slots=True)
class ScoredVerdict:
    """A verdict with what became of it. ``from_s``: its block's second."""

    id: int
    token: Address
    code: str
    level: str
    from_number: int
    from_s: int
    score: VerdictScore
    reported: bool = False


@dataclass(frozen=True, slots=True)
class MissingReceipt:
    """A verdict of which the node did not give a receipt: after ``tries`` it is tried again at
    ``again_at``."""

    id: int
    token: Address
    code: str
    from_s: int
    tries: int
    again_at: datetime


# --- verdicts --------------------------------------------------------------------------------------

_COLUMNS = "id, token, verdict_code, verdict_level, block_number, checked_at, document"


async def scored_to(connection: Connection) -> int:
    """Up to which evidence verdicts were scored; 0: none was."""
    found: int | None = await connection.fetchval("SELECT evidence_id FROM facts.score_cursor")
    return found or 0


async def waiting(connection: Connection, after_id: int, most: int) -> list[StoredVerdict]:
    """The next verdicts that were not looked at, in the order in which they were made."""
    rows = await connection.fetch(
        f"SELECT {_COLUMNS} FROM facts.evidence WHERE id > $1 ORDER BY id LIMIT $2",  # noqa: S608
        after_id,
        most,
    )
    return [_verdict(row) for row in rows]


# Code by code, in the order of the index: however often a token was checked, no more rows are read.
SPOKEN_OF = f"""
SELECT {_COLUMNS} FROM unnest($4::text[]) AS asked (code) CROSS JOIN LATERAL (
    SELECT * FROM facts.evidence WHERE token = $1 AND verdict_code = asked.code AND block_number < $2
    ORDER BY block_number DESC, id DESC LIMIT $3
) AS one ORDER BY block_number DESC, id DESC LIMIT $3
"""  # noqa: S608
# Not as json: what a token says may be text that no json of the database can hold, as a zero byte. A
# stranger's quotes are escaped, so none of his words look like this.
LATER = """
SELECT block_number, verdict_code, substring(convert_from(document, 'UTF8')
    from '"block":[{][^{}]*"timestamp_s":([0-9]{1,15})[,}]')::bigint AS at_s
FROM (
    SELECT one.* FROM unnest($3::text[]) AS asked (code) CROSS JOIN LATERAL (
        SELECT * FROM facts.evidence WHERE token = $1 AND verdict_code = asked.code AND block_number > $2
        ORDER BY block_number, id LIMIT $4
    ) AS one ORDER BY block_number, id LIMIT $4
) AS later ORDER BY block_number, id
"""
_TRAPS = ("cannot_sell",)
_NO_TRAPS = tuple(one for one in (*CODES, "quote_asset") if one not in (*_TRAPS, "unproven"))


async def spoken_of(
    connection: Connection, token: Address, before_number: int, most: int
) -> list[StoredVerdict]:
    """The newest verdicts on a token of before that block, those that are scored at all, the newest first."""
    rows = await connection.fetch(SPOKEN_OF, as_bytes(token), before_number, most, list(CODES))
    return [_verdict(row) for row in rows]


def _verdict(row: asyncpg.Record) -> StoredVerdict:
    return StoredVerdict(
        row["id"], as_address(row["token"]), row["verdict_code"], row["verdict_level"], row["block_number"],
        row["checked_at"], row["document"],
    )  # fmt: skip


async def later_checks(
    connection: Connection, verdict: StoredVerdict, until_s: int, most: int = 50
) -> list[tuple[int, int, str]]:
    """Block, second and code of checks of the same token after the verdict's block and up to ``until_s`` of
    the chain, that prove it, in their order: of more than ``most`` the first. Of a verdict that it cannot be
    sold those that say otherwise, of any other those that say that."""
    codes = _NO_TRAPS if verdict.code in _TRAPS else _TRAPS
    rows = await connection.fetch(LATER, as_bytes(verdict.token), verdict.block_number, list(codes), most)
    told = [(row["block_number"], row["at_s"], row["verdict_code"]) for row in rows]
    return [one for one in told if one[1] is not None and one[1] <= until_s]


_BEFORE = (
    "EXISTS (SELECT FROM facts.score WHERE token = $2 AND hour = $3 AND code = $4 AND evidence_id <= $1)"
)


async def is_scored(connection: Connection, verdict: StoredVerdict, from_s: int) -> bool:
    """Whether it, or one before it of its token, hour and code, is scored, or waits for a receipt."""
    found: bool = await connection.fetchval(
        f"SELECT {_BEFORE} OR EXISTS (SELECT FROM facts.score_wait"  # noqa: S608
        " WHERE token = $2 AND hour = $3 AND code = $4)",
        verdict.id,
        as_bytes(verdict.token),
        from_s // HOUR_S,
        verdict.code,
    )
    return found


async def due(connection: Connection, now: datetime, most: int) -> list[tuple[StoredVerdict, int]]:
    """Verdicts that wait for a receipt and are to be tried again, with how often they were."""
    rows = await connection.fetch(
        f"SELECT {_COLUMNS}, tries FROM (SELECT evidence_id, tries, again_at FROM facts.score_wait"  # noqa: S608
        " WHERE again_at <= $1 ORDER BY again_at, evidence_id LIMIT $2) AS due"
        " JOIN facts.evidence AS one ON one.id = due.evidence_id ORDER BY again_at, id",
        now,
        most,
    )
    return [(_verdict(row), row["tries"]) for row in rows]


# --- scores ----------------------------------------------------------------------------------------


class ScoredMeanwhile(Exception):
    """Somebody else scored verdicts meanwhile; nothing was written."""


async def put(
    connection: Connection,
    scored: Sequence[ScoredVerdict],
    from_id: int,
    to_id: int,
    now: datetime,
    untold: Sequence[MissingReceipt] = (),
) -> int:
    """Writes scores and which verdicts wait, and moves the cursor from ``from_id`` to ``to_id``; how many
    scores are new. Where an earlier verdict of the token, hour and code has one nothing is written. Raises
    Moved."""
    moved = await connection.fetchval(
        "INSERT INTO facts.score_cursor AS cursor (evidence_id) SELECT $2::bigint WHERE $1::bigint = 0"
        " OR EXISTS (SELECT FROM facts.score_cursor)"
        " ON CONFLICT (only_one) DO UPDATE SET evidence_id = $2 WHERE cursor.evidence_id = $1 RETURNING true",
        from_id,
        to_id,
    )
    if not moved:
        raise ScoredMeanwhile
    written = 0
    for one in scored:
        key = one.id, as_bytes(one.token), one.from_s // HOUR_S, one.code
        if not await connection.fetchval(f"SELECT {_BEFORE}", *key):
            written += await _insert(connection, one, now)
    await connection.execute(
        "DELETE FROM facts.score_wait WHERE evidence_id = ANY($1::bigint[])", [one.id for one in scored]
    )
    for waits in untold:
        await connection.execute(
            "INSERT INTO facts.score_wait (evidence_id, token, code, hour, tries, again_at)"
            " VALUES ($1, $2, $3, $4, $5, $6)"
            " ON CONFLICT (evidence_id) DO UPDATE SET tries = excluded.tries, again_at = excluded.again_at",
            waits.id, as_bytes(waits.token), waits.code, waits.from_s // HOUR_S, waits.tries, waits.again_at,
        )  # fmt: skip
    return written


async def _insert(connection: Connection, one: ScoredVerdict, now: datetime) -> bool:
    score = one.score
    done: str = await connection.execute(
        "INSERT INTO facts.score (evidence_id, token, code, level, from_number, from_s, hour, outcome, cause,"
        " by_number, by_s, by_tx, by_wallet, cost_bps, reported, scored_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
        " ON CONFLICT DO NOTHING",
        one.id, as_bytes(one.token), one.code, one.level, one.from_number, one.from_s, one.from_s // HOUR_S,
        *_columns(score), one.reported, now,
    )  # fmt: skip
    if done != "INSERT 0 1":
        return False
    await _count(connection, one, score.outcome, 1)
    return True


def _columns(score: VerdictScore) -> tuple[object, ...]:
    return (
        score.outcome, score.cause, score.block_number, score.at_s,
        None if score.tx_hash is None else as_bytes(score.tx_hash),
        None if score.wallet is None else as_bytes(score.wallet), score.cost_bps,
    )  # fmt: skip


async def _count(connection: Connection, one: ScoredVerdict, outcome: str, by: int) -> None:
    """``by``: one more or one less of the verdict's code."""
    of_token: int = await connection.fetchval(
        "INSERT INTO facts.score_token AS had (token, code, outcome, scored)"
        " VALUES ($1, $2, $3, greatest(0, $4)) ON CONFLICT (token, code, outcome)"
        " DO UPDATE SET scored = had.scored + $4 RETURNING scored",
        as_bytes(one.token),
        one.code,
        outcome,
        by,
    )
    # The first of its token, or the last of it that went.
    tokens = by if of_token == max(0, by) else 0
    await connection.execute(
        "INSERT INTO facts.score_count AS had (code, outcome, scored, tokens)"
        " VALUES ($1, $2, greatest(0, $3), greatest(0, $4)) ON CONFLICT (code, outcome)"
        " DO UPDATE SET scored = had.scored + $3, tokens = had.tokens + $4",
        one.code,
        outcome,
        by,
        tokens,
    )


async def settle_by(connection: Connection, one: ScoredVerdict, now: datetime) -> bool:
    """A score that a report proved: in place of what stood of that very verdict, or as a row of its own
    beside that of its hour's first; what was wrong stays as it was found first. One transaction marks one
    verdict of a token, hour and code. Whether it changed anything."""
    told: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM facts.score WHERE token = $2 AND hour = $3 AND code = $4"
        " AND evidence_id <> $1 AND outcome = 'wrong' AND by_tx = $5)",
        one.id,
        as_bytes(one.token),
        one.from_s // HOUR_S,
        one.code,
        None if one.score.tx_hash is None else as_bytes(one.score.tx_hash),
    )
    if told:
        return False
    if await _insert(connection, one, now):
        return True
    before: str = await connection.fetchval(
        "SELECT outcome FROM facts.score WHERE evidence_id = $1 FOR UPDATE", one.id
    )
    if before == "wrong" or before == one.score.outcome:
        return False
    await connection.execute(
        "UPDATE facts.score SET outcome = $2, cause = $3, by_number = $4, by_s = $5, by_tx = $6,"
        " by_wallet = $7, cost_bps = $8, reported = true, scored_at = $9 WHERE evidence_id = $1",
        one.id,
        *_columns(one.score),
        now,
    )
    await _count(connection, one, before, -1)
    await _count(connection, one, one.score.outcome, 1)
    return True


# --- the page --------------------------------------------------------------------------------------


async def counts(connection: Connection) -> dict[tuple[str, Outcome], tuple[int, int]]:
    """How many there are of each code and outcome, and of how many tokens."""
    rows = await connection.fetch("SELECT code, outcome, scored, tokens FROM facts.score_count")
    return {(row["code"], cast(Outcome, row["outcome"])): (row["scored"], row["tokens"]) for row in rows}


async def mistakes(connection: Connection, before: tuple[int, int] | None, most: int) -> list[ScoredVerdict]:
    """Verdicts that were wrong, the newest first; ``before``: second and id of the last one that was
    shown."""
    rows = await connection.fetch(
        "SELECT * FROM facts.score WHERE outcome = 'wrong' AND (from_s, evidence_id) < ($1::int, $2::bigint)"
        " ORDER BY from_s DESC, evidence_id DESC LIMIT $3",
        *(before or (2**31 - 1, 2**62)),
        most,
    )
    return [_read_scored(row) for row in rows]


def _read_scored(row: asyncpg.Record) -> ScoredVerdict:
    score = VerdictScore(
        row["outcome"], cast(Cause, row["cause"]), row["by_number"], row["by_s"],
        None if row["by_tx"] is None else TxHash(as_text(row["by_tx"])),
        None if row["by_wallet"] is None else as_address(row["by_wallet"]), row["cost_bps"],
    )  # fmt: skip
    return ScoredVerdict(
        row["evidence_id"], as_address(row["token"]), row["code"], row["level"], row["from_number"],
        row["from_s"], score, row["reported"],
    )  # fmt: skip
