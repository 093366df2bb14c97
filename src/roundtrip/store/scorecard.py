"""Verdicts that are to be scored, and their scores. Each function takes the caller's connection and ends no
transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

import asyncpg

from roundtrip.domain.scorecard import CODES, HOUR_S, Cause, Outcome, Score
from roundtrip.domain.types import Address, TxHash

from .words import as_address, as_bytes, as_text


@dataclass(frozen=True, slots=True)
class Verdict:
    """A stored verdict that is to be scored."""

    id: int
    token: Address
    code: str
    level: str
    block_number: int
    checked_at: datetime
    document: bytes


@dataclass(frozen=True, slots=True)
class Scored:
    """A verdict with what became of it. ``from_s``: its block's second."""

    id: int
    token: Address
    code: str
    level: str
    from_number: int
    from_s: int
    score: Score
    reported: bool = False


# --- verdicts --------------------------------------------------------------------------------------

_COLUMNS = "id, token, verdict_code, verdict_level, block_number, checked_at, document"


async def scored_to(connection: asyncpg.Connection) -> int:
    """Up to which evidence verdicts were scored; 0: none was."""
    found: int | None = await connection.fetchval("SELECT evidence_id FROM facts.score_cursor")
    return found or 0


async def waiting(connection: asyncpg.Connection, after_id: int, most: int) -> list[Verdict]:
    """The next verdicts that were not looked at, in the order in which they were made."""
    rows = await connection.fetch(
        f"SELECT {_COLUMNS} FROM facts.evidence WHERE id > $1 ORDER BY id LIMIT $2",  # noqa: S608
        after_id,
        most,
    )
    return [_verdict(row) for row in rows]


async def spoken_of(
    connection: asyncpg.Connection, token: Address, before_number: int, most: int
) -> list[Verdict]:
    """The newest verdicts on a token of before that block, those that are scored at all, the newest first."""
    rows = await connection.fetch(
        f"SELECT {_COLUMNS} FROM facts.evidence WHERE token = $1 AND block_number < $2"  # noqa: S608
        " AND verdict_code = ANY($4::text[]) ORDER BY id DESC LIMIT $3",
        as_bytes(token),
        before_number,
        most,
        list(CODES),
    )
    return [_verdict(row) for row in rows]


def _verdict(row: asyncpg.Record) -> Verdict:
    return Verdict(
        row["id"], as_address(row["token"]), row["verdict_code"], row["verdict_level"], row["block_number"],
        row["checked_at"], row["document"],
    )  # fmt: skip


async def later_checks(
    connection: asyncpg.Connection, verdict: Verdict, until_s: int, most: int = 50
) -> list[tuple[int, int, str]]:
    """Block, second and code of checks of the same token after the verdict's block and up to ``until_s`` of
    the chain, that prove it, in their order: of more than ``most`` the first. Of a verdict that it cannot be
    sold those that say otherwise, of any other those that say that."""
    rows = await connection.fetch(
        "SELECT block_number, verdict_code,"
        # Not as json: what a token says may be text that no json of the database can hold, as a zero byte.
        # A stranger's quotes are escaped, so none of his words look like this.
        " substring(convert_from(document, 'UTF8')"
        """  from '"block":[{][^{}]*"timestamp_s":([0-9]{1,15})[,}]')::bigint AS at_s"""
        " FROM (SELECT * FROM facts.evidence WHERE token = $1 AND id > $2 AND block_number > $3"
        "  AND verdict_code <> 'unproven' AND (verdict_code = 'cannot_sell') <> ($4 = 'cannot_sell')"
        "  ORDER BY id LIMIT $5) AS later ORDER BY id",
        as_bytes(verdict.token),
        verdict.id,
        verdict.block_number,
        verdict.code,
        most,
    )
    told = [(row["block_number"], row["at_s"], row["verdict_code"]) for row in rows]
    return [one for one in told if one[1] is not None and one[1] <= until_s]


async def has_score(connection: asyncpg.Connection, token: Address, from_s: int, code: str) -> int | None:
    """The verdict that is scored of that token, hour and code; None: none is yet."""
    found: int | None = await connection.fetchval(
        "SELECT evidence_id FROM facts.score WHERE token = $1 AND hour = $2 AND code = $3",
        as_bytes(token),
        from_s // HOUR_S,
        code,
    )
    return found


# --- scores ----------------------------------------------------------------------------------------


class Moved(Exception):
    """Somebody else scored verdicts meanwhile; nothing was written."""


async def put(
    connection: asyncpg.Connection, scored: Sequence[Scored], from_id: int, to_id: int, now: datetime
) -> int:
    """Writes scores and moves the cursor from ``from_id`` to ``to_id``; how many are new. Of a token, hour
    and code that has one already nothing is written. Raises Moved."""
    moved = await connection.fetchval(
        "INSERT INTO facts.score_cursor AS cursor (evidence_id) SELECT $2::bigint WHERE $1::bigint = 0"
        " OR EXISTS (SELECT FROM facts.score_cursor)"
        " ON CONFLICT (only_one) DO UPDATE SET evidence_id = $2 WHERE cursor.evidence_id = $1 RETURNING true",
        from_id,
        to_id,
    )
    if not moved:
        raise Moved
    written = 0
    for one in scored:
        written += await _insert(connection, one, now)
    return written


async def _insert(connection: asyncpg.Connection, one: Scored, now: datetime) -> bool:
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
    await _count(connection, one.code, score.outcome, 1)
    return True


def _columns(score: Score) -> tuple[object, ...]:
    return (
        score.outcome, score.cause, score.block_number, score.at_s,
        None if score.tx_hash is None else as_bytes(score.tx_hash),
        None if score.wallet is None else as_bytes(score.wallet), score.cost_bps,
    )  # fmt: skip


async def _count(connection: asyncpg.Connection, code: str, outcome: str, by: int) -> None:
    await connection.execute(
        "INSERT INTO facts.score_count AS had (code, outcome, scored) VALUES ($1, $2, greatest(0, $3))"
        " ON CONFLICT (code, outcome) DO UPDATE SET scored = had.scored + $3",
        code,
        outcome,
        by,
    )


async def settle_by(connection: asyncpg.Connection, one: Scored, now: datetime) -> bool:
    """A score that a report proved, in place of what stood there; what was wrong stays as it was found first.
    Whether it changed anything."""
    if await _insert(connection, one, now):
        return True
    row = await connection.fetchrow(
        "SELECT evidence_id, outcome FROM facts.score WHERE token = $1 AND hour = $2 AND code = $3"
        " FOR UPDATE",
        as_bytes(one.token),
        one.from_s // HOUR_S,
        one.code,
    )
    before = row["outcome"]
    if before == "wrong" or before == one.score.outcome:
        return False
    await connection.execute(
        "UPDATE facts.score SET outcome = $2, cause = $3, by_number = $4, by_s = $5, by_tx = $6,"
        " by_wallet = $7, cost_bps = $8, reported = true, scored_at = $9 WHERE evidence_id = $1",
        row["evidence_id"],
        *_columns(one.score),
        now,
    )
    await _count(connection, one.code, before, -1)
    await _count(connection, one.code, one.score.outcome, 1)
    return True


# --- the page --------------------------------------------------------------------------------------


async def counts(connection: asyncpg.Connection) -> dict[tuple[str, Outcome], int]:
    """How many there are of each code and outcome."""
    rows = await connection.fetch("SELECT code, outcome, scored FROM facts.score_count")
    return {(row["code"], cast(Outcome, row["outcome"])): row["scored"] for row in rows}


async def mistakes(connection: asyncpg.Connection, before: tuple[int, int] | None, most: int) -> list[Scored]:
    """Verdicts that were wrong, the newest first; ``before``: second and id of the last one that was
    shown."""
    rows = await connection.fetch(
        "SELECT * FROM facts.score WHERE outcome = 'wrong' AND (from_s, evidence_id) < ($1::int, $2::bigint)"
        " ORDER BY from_s DESC, evidence_id DESC LIMIT $3",
        *(before or (2**31 - 1, 2**62)),
        most,
    )
    return [_scored(row) for row in rows]


def _scored(row: asyncpg.Record) -> Scored:
    score = Score(
        row["outcome"], cast(Cause, row["cause"]), row["by_number"], row["by_s"],
        None if row["by_tx"] is None else TxHash(as_text(row["by_tx"])),
        None if row["by_wallet"] is None else as_address(row["by_wallet"]), row["cost_bps"],
    )  # fmt: skip
    return Scored(
        row["evidence_id"], as_address(row["token"]), row["code"], row["level"], row["from_number"],
        row["from_s"], score, row["reported"],
    )  # fmt: skip
