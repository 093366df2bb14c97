"""What people say of verdicts. Each function takes the caller's connection and ends no transaction."""

from dataclasses import dataclass
from datetime import datetime

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.store.server.hex import as_address, as_bytes, as_text
from roundtrip.store.server.rows import Connection

MOST_A_DAY = 5
"""Reports of an account in a day of UTC."""


class TooManyReports(Exception):
    """The account has reported as often as it may today."""


@dataclass(frozen=True, slots=True)
class VerdictReport:
    """What an account reported of a token, and what came of it. ``why_open`` None: it is proved.
    ``again_at``: when it is weighed again; None: it is not."""

    token: Address
    tx_hash: TxHash
    note: str
    why_open: str | None
    evidence_id: int | None
    again_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WaitingReport:
    """A report that came too early, and how often it was weighed again."""

    id: int
    token: Address
    tx_hash: TxHash
    tries: int


async def check_room(connection: Connection, account_id: int, day: datetime) -> None:
    """Raises TooMany. ``day``: when the day of UTC began."""
    today: int = await connection.fetchval(
        "SELECT count(*) FROM accounts.verdict_report WHERE account_id = $1 AND made_at >= $2",
        account_id,
        day,
    )
    if today >= MOST_A_DAY:
        raise TooManyReports


async def find_report(
    connection: Connection, account_id: int, token: Address, tx_hash: TxHash
) -> VerdictReport | None:
    """What the account reported of that already."""
    row = await connection.fetchrow(
        "SELECT * FROM accounts.verdict_report WHERE account_id = $1 AND token = $2 AND tx_hash = $3",
        account_id,
        as_bytes(token),
        as_bytes(tx_hash),
    )
    if row is None:
        return None
    return VerdictReport(token, tx_hash, row["note"], row["why_open"], row["evidence_id"], row["again_at"])


async def add_report(
    connection: Connection, account_id: int, report: VerdictReport, now: datetime, day: datetime
) -> bool:
    """Keeps a report; False: the account had made it already. Raises TooMany. Of one account that reports
    twice at once one waits for the other."""
    await connection.execute("SELECT FROM accounts.account WHERE id = $1 FOR NO KEY UPDATE", account_id)
    await check_room(connection, account_id, day)
    state = "proved" if report.why_open is None else "open"
    done: str = await connection.execute(
        "INSERT INTO accounts.verdict_report (account_id, token, tx_hash, note, state, why_open, evidence_id,"
        " made_at, again_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
        " ON CONFLICT (account_id, token, tx_hash) DO NOTHING",
        account_id, as_bytes(report.token), as_bytes(report.tx_hash), report.note, state, report.why_open,
        report.evidence_id, now, report.again_at,
    )  # fmt: skip
    return done == "INSERT 0 1"


async def due(connection: Connection, now: datetime, most: int) -> list[WaitingReport]:
    """Reports that are to be weighed again, those that wait longest first."""
    rows = await connection.fetch(
        "SELECT id, token, tx_hash, tries FROM accounts.verdict_report WHERE again_at <= $1"
        " ORDER BY again_at, id LIMIT $2",
        now,
        most,
    )
    return [
        WaitingReport(
            row["id"],
            as_address(row["token"]),
            TxHash(as_text(row["tx_hash"])),
            row["tries"],
        )
        for row in rows
    ]


async def next_again(connection: Connection) -> datetime | None:
    """When the next one is to be weighed again; None: none is."""
    found: datetime | None = await connection.fetchval(
        "SELECT again_at FROM accounts.verdict_report WHERE again_at IS NOT NULL ORDER BY again_at LIMIT 1"
    )
    return found


async def weighed_again(
    connection: Connection,
    one: WaitingReport,
    why_open: str | None,
    evidence_id: int | None,
    again_at: datetime | None,
) -> bool:
    """Keeps what a report came to; False: somebody else weighed it meanwhile."""
    done: str = await connection.execute(
        "UPDATE accounts.verdict_report SET state = $3, why_open = $4, evidence_id = $5, again_at = $6,"
        " tries = tries + 1 WHERE id = $1 AND tries = $2 AND state = 'open'",
        one.id, one.tries, "proved" if why_open is None else "open", why_open, evidence_id, again_at,
    )  # fmt: skip
    return done == "UPDATE 1"


async def open_reports(connection: Connection) -> int:
    """How many reports are open."""
    found: int = await connection.fetchval(
        "SELECT count(*) FROM accounts.verdict_report WHERE state = 'open'"
    )
    return found
