"""Evidence documents, kept as they were judged."""

from dataclasses import dataclass
from datetime import datetime

import asyncpg

from roundtrip.domain.types import Address


@dataclass(frozen=True, slots=True)
class KeptEvidence:
    """A stored document and the verdict it was read as then."""

    checked_at: datetime
    block_number: int
    policy_version: str
    verdict_code: str
    verdict_level: str
    document: bytes


async def keep(connection: asyncpg.Connection, token: Address, evidence: KeptEvidence) -> int:
    """Writes one document and gives its id."""
    row_id: int = await connection.fetchval(
        "INSERT INTO facts.evidence (checked_at, token, block_number, policy_version, verdict_code,"
        " verdict_level, document) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id",
        evidence.checked_at,
        bytes.fromhex(token[2:]),
        evidence.block_number,
        evidence.policy_version,
        evidence.verdict_code,
        evidence.verdict_level,
        evidence.document,
    )
    return row_id


async def latest(connection: asyncpg.Connection, token: Address) -> KeptEvidence | None:
    """The newest document about ``token``."""
    row = await connection.fetchrow(
        "SELECT checked_at, block_number, policy_version, verdict_code, verdict_level, document"
        " FROM facts.evidence WHERE token = $1 ORDER BY id DESC LIMIT 1",
        bytes.fromhex(token[2:]),
    )
    return None if row is None else KeptEvidence(**dict(row))
