"""What people say of verdicts. Each function takes the caller's connection and ends no transaction."""

from dataclasses import dataclass
from datetime import datetime

import asyncpg

from roundtrip.domain.types import Address, TxHash

from .words import as_bytes

MOST_A_DAY = 5
"""Reports of a mite in a day of UTC."""


class TooMany(Exception):
    """The mite has reported as often as it may today."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a mite reported of a token, and what came of it. ``why_open`` None: it is proved."""

    token: Address
    tx_hash: TxHash
    note: str
    why_open: str | None
    evidence_id: int | None


async def check_room(connection: asyncpg.Connection, mite_id: int, day: datetime) -> None:
    """Raises TooMany. ``day``: when the day of UTC began."""
    today: int = await connection.fetchval(
        "SELECT count(*) FROM accounts.verdict_report WHERE mite_id = $1 AND made_at >= $2", mite_id, day
    )
    if today >= MOST_A_DAY:
        raise TooMany


async def reported(
    connection: asyncpg.Connection, mite_id: int, token: Address, tx_hash: TxHash
) -> Report | None:
    """What the mite reported of that already."""
    row = await connection.fetchrow(
        "SELECT * FROM accounts.verdict_report WHERE mite_id = $1 AND token = $2 AND tx_hash = $3",
        mite_id,
        as_bytes(token),
        as_bytes(tx_hash),
    )
    if row is None:
        return None
    return Report(token, tx_hash, row["note"], row["why_open"], row["evidence_id"])


async def add_report(
    connection: asyncpg.Connection, mite_id: int, report: Report, now: datetime, day: datetime
) -> bool:
    """Keeps a report; False: the mite had made it already. Raises TooMany. Of one mite that reports twice at
    once one waits for the other."""
    await connection.execute("SELECT FROM accounts.mite WHERE id = $1 FOR NO KEY UPDATE", mite_id)
    await check_room(connection, mite_id, day)
    state = "proved" if report.why_open is None else "open"
    done: str = await connection.execute(
        "INSERT INTO accounts.verdict_report (mite_id, token, tx_hash, note, state, why_open, evidence_id,"
        " made_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (mite_id, token, tx_hash) DO NOTHING",
        mite_id, as_bytes(report.token), as_bytes(report.tx_hash), report.note, state, report.why_open,
        report.evidence_id, now,
    )  # fmt: skip
    return done == "INSERT 0 1"


async def open_reports(connection: asyncpg.Connection) -> int:
    """How many reports are open."""
    found: int = await connection.fetchval(
        "SELECT count(*) FROM accounts.verdict_report WHERE state = 'open'"
    )
    return found
