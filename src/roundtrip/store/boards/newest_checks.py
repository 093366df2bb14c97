"""The newest checks: of given tokens, and of all tokens."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.moving import CheckedLevel, TokenChecks
from roundtrip.domain.verdicts.catch import Catch
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection, fetch

_CHECKS = """
SELECT given.token, newest.verdict_code AS newest_code, newest.verdict_level AS newest_level,
    newest.checked_at AS newest_at, newest.loss_bps AS newest_loss, newest.catch AS newest_catch,
    decided.verdict_code AS decided_code, decided.verdict_level AS decided_level,
    decided.checked_at AS decided_at,
    decided.loss_bps AS decided_loss, decided.catch AS decided_catch
FROM unnest($1::bytea[]) AS given (token)
LEFT JOIN LATERAL (
    SELECT verdict_code, verdict_level, checked_at, loss_bps, catch FROM facts.evidence
    WHERE evidence.token = given.token ORDER BY evidence.id DESC LIMIT 1
) AS newest ON true
LEFT JOIN LATERAL (
    SELECT verdict_code, verdict_level, checked_at, loss_bps, catch FROM facts.evidence
    WHERE evidence.token = given.token AND evidence.deep AND evidence.holders > 0
        AND evidence.verdict_level <> 'unknown'
    ORDER BY evidence.id DESC LIMIT 1
) AS decided ON true
"""


class _TokenChecksRow(NamedTuple):
    token: bytes
    newest_code: str | None
    newest_level: str | None
    newest_at: datetime | None
    newest_loss: int | None
    newest_catch: Catch | None
    decided_code: str | None
    decided_level: str | None
    decided_at: datetime | None
    decided_loss: int | None
    decided_catch: Catch | None


class NewestCheck(NamedTuple):
    """A check. ``asked``: a user requested it."""

    token: bytes
    block_number: int
    asked: bool


async def read_checks(connection: Connection, tokens: Collection[Address]) -> dict[Address, TokenChecks]:
    """The newest checks of each of the tokens."""
    rows = await fetch(connection, _TokenChecksRow, _CHECKS, [as_bytes(token) for token in set(tokens)])
    return {
        as_address(row.token): TokenChecks(
            as_checked(row.newest_code, row.newest_level, row.newest_at, row.newest_loss, row.newest_catch),
            as_checked(
                row.decided_code, row.decided_level, row.decided_at, row.decided_loss, row.decided_catch
            ),
        )
        for row in rows
    }


async def read_newest(connection: Connection, limit: int) -> list[NewestCheck]:
    """The newest ``limit`` checks, the newest first."""
    return await fetch(
        connection,
        NewestCheck,
        "SELECT token, block_number, asked FROM facts.evidence ORDER BY id DESC LIMIT $1",
        limit,
    )


def as_checked(
    code: str | None, level: str | None, at: datetime | None, loss_bps: int | None, catch: Catch | None
) -> CheckedLevel | None:
    """A check out of nullable columns."""
    if code is None or level is None or at is None:
        return None
    return CheckedLevel(code, level, at.timestamp(), loss_bps, catch)
