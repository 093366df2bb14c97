"""Accounts' reports on verdicts. Each function uses the caller's connection and does not end the
transaction."""

from dataclasses import dataclass
from datetime import datetime

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_optional, fetch_row, fetch_value

MAX_A_DAY = 5
"""Reports that an account may make in a day of UTC."""


class TooManyReports(Exception):
    """The account has used up its reports of today."""


@dataclass(frozen=True, slots=True)
class VerdictReport:
    """An account's report on a token, and its result. ``why_open`` None: the report is proved. ``again_at``:
    when it is reviewed again; None: never."""

    token: Address
    tx_hash: TxHash
    note: str
    why_open: str | None
    evidence_id: int | None
    again_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WaitingReport:
    """A report that came too early. ``tries``: how often it was reviewed again."""

    id: int
    token: Address
    tx_hash: TxHash
    tries: int


async def check_room(connection: Connection, account_id: int, day: datetime) -> None:
    """Raises TooManyReports: the account has no report left today. ``day``: the start of the day of UTC."""
    today = await fetch_value(
        connection,
        int,
        "SELECT count(*) FROM accounts.verdict_report WHERE account_id = $1 AND made_at >= $2",
        account_id,
        day,
    )
    if today >= MAX_A_DAY:
        raise TooManyReports


async def find_report(
    connection: Connection, account_id: int, token: Address, tx_hash: TxHash
) -> VerdictReport | None:
    """The account's earlier report on this token and transaction; None: there is none."""
    return await fetch_row(
        connection,
        VerdictReport,
        "SELECT token, tx_hash, note, why_open, evidence_id, again_at FROM accounts.verdict_report"
        " WHERE account_id = $1 AND token = $2 AND tx_hash = $3",
        account_id,
        as_bytes(token),
        as_bytes(tx_hash),
    )


async def add_report(
    connection: Connection, account_id: int, report: VerdictReport, now: datetime, day: datetime
) -> bool:
    """Inserts a report; False: the account had made it already. Locks the account, so that its concurrent
    reports wait for each other. Raises TooManyReports."""
    await connection.execute("SELECT FROM accounts.account WHERE id = $1 FOR NO KEY UPDATE", account_id)
    await check_room(connection, account_id, day)
    state = "proved" if report.why_open is None else "open"
    status = await connection.execute(
        "INSERT INTO accounts.verdict_report (account_id, token, tx_hash, note, state, why_open, evidence_id,"
        " made_at, again_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
        " ON CONFLICT (account_id, token, tx_hash) DO NOTHING",
        account_id, as_bytes(report.token), as_bytes(report.tx_hash), report.note, state, report.why_open,
        report.evidence_id, now, report.again_at,
    )  # fmt: skip
    return status == "INSERT 0 1"


async def due(connection: Connection, now: datetime, limit: int) -> list[WaitingReport]:
    """At most ``limit`` reports that are due for another review, those due longest first."""
    return await fetch(
        connection,
        WaitingReport,
        "SELECT id, token, tx_hash, tries FROM accounts.verdict_report WHERE again_at <= $1"
        " ORDER BY again_at, id LIMIT $2",
        now,
        limit,
    )


async def next_again(connection: Connection) -> datetime | None:
    """When the next review of an open report is due; None: none is."""
    return await fetch_optional(
        connection,
        datetime,
        "SELECT again_at FROM accounts.verdict_report WHERE again_at IS NOT NULL ORDER BY again_at LIMIT 1",
    )


async def save_review(
    connection: Connection,
    report: WaitingReport,
    why_open: str | None,
    evidence_id: int | None,
    again_at: datetime | None,
) -> bool:
    """Stores the result of another review; False: a concurrent review stored one first."""
    status = await connection.execute(
        "UPDATE accounts.verdict_report SET state = $3, why_open = $4, evidence_id = $5, again_at = $6,"
        " tries = tries + 1 WHERE id = $1 AND tries = $2 AND state = 'open'",
        report.id, report.tries, "proved" if why_open is None else "open", why_open, evidence_id, again_at,
    )  # fmt: skip
    return status == "UPDATE 1"


async def open_reports(connection: Connection) -> int:
    """How many reports are open."""
    return await fetch_value(
        connection, int, "SELECT count(*) FROM accounts.verdict_report WHERE state = 'open'"
    )
