"""Verdicts to score, and their scores. Each function uses the caller's connection and does not end the
transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from roundtrip.domain.base.types import Address
from roundtrip.domain.scorecard.scorecard import CODES, HOUR_S, SELLABLE_CODES, Outcome, VerdictScore
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_optional, fetch_row, fetch_value


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A stored verdict to score."""

    id: int
    token: Address
    code: str
    level: str
    block_number: int
    checked_at: datetime
    document: bytes


@dataclass(frozen=True, slots=True)
class ScoredVerdict:
    """A verdict with its score. ``from_number``, ``from_s``: its block and that block's second."""

    id: int
    token: Address
    code: str
    level: str
    from_number: int
    from_s: int
    score: VerdictScore


@dataclass(frozen=True, slots=True)
class MissingReceipt:
    """A verdict that waits for a receipt of a trade, which the node did not return. ``tries``: tries so far;
    ``again_at``: the time of the next."""

    id: int
    token: Address
    code: str
    from_s: int
    tries: int
    again_at: datetime


# --- verdicts --------------------------------------------------------------------------------------


_COLUMNS = "id, token, verdict_code AS code, verdict_level AS level, block_number, checked_at, document"


async def scored_to(connection: Connection) -> int:
    """The id of the last evidence read for scoring; 0: none was read."""
    evidence_id = await fetch_optional(connection, int, "SELECT evidence_id FROM facts.score_cursor")
    return evidence_id or 0


async def first_checked_at(connection: Connection) -> datetime | None:
    """When the oldest stored check was made; None: there is none."""
    return await fetch_optional(
        connection, datetime, "SELECT checked_at FROM facts.evidence ORDER BY id LIMIT 1"
    )


async def waiting(connection: Connection, after_id: int, limit: int) -> list[StoredVerdict]:
    """At most ``limit`` verdicts after ``after_id``, the oldest first."""
    return await fetch(
        connection,
        StoredVerdict,
        f"SELECT {_COLUMNS} FROM facts.evidence WHERE id > $1 ORDER BY id LIMIT $2",  # noqa: S608
        after_id,
        limit,
    )


# Code by code, in the order of the index: however often a token was checked, no more rows are read.
SELLABLE_BEFORE = f"""
SELECT {_COLUMNS} FROM unnest($3::text[]) AS asked (code) CROSS JOIN LATERAL (
    SELECT * FROM facts.evidence WHERE token = $1 AND verdict_code = asked.code AND block_number < $2
    ORDER BY block_number DESC, id DESC LIMIT 1
) AS one ORDER BY block_number DESC, id DESC LIMIT 1
"""  # noqa: S608
# Not as json: a token's text may hold characters that PostgreSQL's json cannot, such as a zero byte. Quotes
# in a token's text are escaped, so it cannot match the pattern.
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
_NO_TRAPS = tuple(code for code in (*CODES, "quote_asset") if code not in (*_TRAPS, "unproven"))


async def sellable_before(connection: Connection, token: Address, before_number: int) -> StoredVerdict | None:
    """The newest verdict on a token before block ``before_number`` that a failed sell contradicts; None:
    there is none."""
    return await fetch_row(
        connection, StoredVerdict, SELLABLE_BEFORE, as_bytes(token), before_number, list(SELLABLE_CODES)
    )


async def later_checks(
    connection: Connection, verdict: StoredVerdict, until_s: int, limit: int = 50
) -> list[tuple[int, int, str]]:
    """Block, second and code of checks of the token after the verdict's block and up to second ``until_s``
    that contradict the verdict, in their order; of more than ``limit`` the first. A ``cannot_sell`` verdict
    is contradicted by any other proven code, any other verdict by ``cannot_sell``."""
    codes = _NO_TRAPS if verdict.code in _TRAPS else _TRAPS
    rows = await fetch(
        connection,
        tuple[int, str, int | None],
        LATER,
        as_bytes(verdict.token),
        verdict.block_number,
        list(codes),
        limit,
    )
    return [(number, at_s, code) for number, code, at_s in rows if at_s is not None and at_s <= until_s]


_BEFORE = (
    "EXISTS (SELECT FROM facts.score WHERE token = $2 AND hour = $3 AND code = $4 AND evidence_id <= $1)"
)


async def is_scored(connection: Connection, verdict: StoredVerdict, from_s: int) -> bool:
    """Whether a verdict, or an earlier one of its token, hour and code, is scored, or one of them waits for a
    receipt."""
    return await fetch_value(
        connection,
        bool,
        f"SELECT {_BEFORE} OR EXISTS (SELECT FROM facts.score_wait"  # noqa: S608
        " WHERE token = $2 AND hour = $3 AND code = $4)",
        verdict.id,
        as_bytes(verdict.token),
        from_s // HOUR_S,
        verdict.code,
    )


async def due(connection: Connection, now: datetime, limit: int) -> list[tuple[StoredVerdict, int]]:
    """Verdicts that wait for a receipt and are due for another try, with their tries so far."""
    return await fetch(
        connection,
        tuple[StoredVerdict, int],
        f"SELECT {_COLUMNS}, tries FROM (SELECT evidence_id, tries, again_at FROM facts.score_wait"  # noqa: S608
        " WHERE again_at <= $1 ORDER BY again_at, evidence_id LIMIT $2) AS due"
        " JOIN facts.evidence AS verdict ON verdict.id = due.evidence_id ORDER BY again_at, id",
        now,
        limit,
    )


# --- scores ----------------------------------------------------------------------------------------


class ScoredMeanwhile(Exception):
    """Another transaction moved the cursor first; nothing was written."""


async def put(
    connection: Connection,
    scored: Sequence[ScoredVerdict],
    from_id: int,
    to_id: int,
    now: datetime,
    untold: Sequence[MissingReceipt] = (),
) -> int:
    """Inserts scores and waiting verdicts, and moves the cursor from ``from_id`` to ``to_id``. Returns how
    many scores are new. A verdict is left out where an earlier one of its token, hour and code has a score.
    Raises ScoredMeanwhile."""
    is_moved = await fetch_optional(
        connection,
        bool,
        "INSERT INTO facts.score_cursor AS cursor (evidence_id) SELECT $2::bigint WHERE $1::bigint = 0"
        " OR EXISTS (SELECT FROM facts.score_cursor)"
        " ON CONFLICT (only_one) DO UPDATE SET evidence_id = $2 WHERE cursor.evidence_id = $1 RETURNING true",
        from_id,
        to_id,
    )
    if not is_moved:
        raise ScoredMeanwhile
    written = 0
    for verdict in scored:
        key = verdict.id, as_bytes(verdict.token), verdict.from_s // HOUR_S, verdict.code
        if not await fetch_value(connection, bool, f"SELECT {_BEFORE}", *key):
            written += await _insert(connection, verdict, now)
    await connection.execute(
        "DELETE FROM facts.score_wait WHERE evidence_id = ANY($1::bigint[])",
        [verdict.id for verdict in scored],
    )
    for missing in untold:
        await connection.execute(
            "INSERT INTO facts.score_wait (evidence_id, token, code, hour, tries, again_at)"
            " VALUES ($1, $2, $3, $4, $5, $6)"
            " ON CONFLICT (evidence_id) DO UPDATE SET tries = excluded.tries, again_at = excluded.again_at",
            missing.id, as_bytes(missing.token), missing.code, missing.from_s // HOUR_S,
            missing.tries, missing.again_at,
        )  # fmt: skip
    return written


async def _insert(connection: Connection, verdict: ScoredVerdict, now: datetime) -> bool:
    score = verdict.score
    status = await connection.execute(
        "INSERT INTO facts.score (evidence_id, token, code, level, from_number, from_s, hour, outcome, "
        "cause, by_number, by_s, by_tx, by_wallet, cost_bps, scored_at) VALUES ($1, $2, $3, $4, $5, $6, $7, "
        "$8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING",
        verdict.id, as_bytes(verdict.token), verdict.code, verdict.level, verdict.from_number,
        verdict.from_s, verdict.from_s // HOUR_S,
        score.outcome, score.cause, score.block_number, score.at_s,
        None if score.tx_hash is None else as_bytes(score.tx_hash),
        None if score.wallet is None else as_bytes(score.wallet), score.cost_bps, now,
    )  # fmt: skip
    if status != "INSERT 0 1":
        return False
    await _count(connection, verdict)
    return True


async def _count(connection: Connection, verdict: ScoredVerdict) -> None:
    """Counts one more score, and one more token if it is the token's first of this code and outcome."""
    of_token = await fetch_value(
        connection,
        int,
        "INSERT INTO facts.score_token AS had (token, code, outcome, scored) VALUES ($1, $2, $3, 1)"
        " ON CONFLICT (token, code, outcome) DO UPDATE SET scored = had.scored + 1 RETURNING scored",
        as_bytes(verdict.token),
        verdict.code,
        verdict.score.outcome,
    )
    await connection.execute(
        "INSERT INTO facts.score_count AS had (code, outcome, scored, tokens) VALUES ($1, $2, 1, $3)"
        " ON CONFLICT (code, outcome) DO UPDATE SET scored = had.scored + 1, tokens = had.tokens + $3",
        verdict.code,
        verdict.score.outcome,
        int(of_token == 1),
    )


# --- the page --------------------------------------------------------------------------------------


async def counts(connection: Connection) -> dict[tuple[str, Outcome], tuple[int, int]]:
    """By code and outcome: the number of scores, and of tokens with one."""
    rows = await fetch(
        connection,
        tuple[tuple[str, Outcome], tuple[int, int]],
        "SELECT code, outcome, scored, tokens FROM facts.score_count",
    )
    return dict(rows)


async def mistakes(connection: Connection, before: tuple[int, int] | None, limit: int) -> list[ScoredVerdict]:
    """At most ``limit`` verdicts that were wrong, the newest first. ``before``: second and id of the last one
    of the previous page; None: the first page."""
    return await fetch(
        connection,
        ScoredVerdict,
        "SELECT evidence_id AS id, token, code, level, from_number, from_s, outcome, cause, by_number AS "
        "block_number, by_s AS at_s, by_tx AS tx_hash, by_wallet AS wallet, cost_bps FROM facts.score WHERE "
        "outcome = 'wrong' AND (from_s, evidence_id) < ($1::int, $2::bigint) ORDER BY from_s DESC, "
        "evidence_id DESC LIMIT $3",
        *(before or (2**31 - 1, 2**62)),
        limit,
    )
