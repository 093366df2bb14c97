"""Evidence documents, kept as they were judged."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from roundtrip.domain.base.types import Address
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection


@dataclass(frozen=True, slots=True)
class KeptEvidence:
    """A stored document and the verdict it was read as then. ``asked``: somebody wanted to know; else it was
    made again because something had changed. ``deep``: it was also asked what could change it. ``holders``:
    as so many real holders it sold."""

    checked_at: datetime
    block_number: int
    policy_version: str
    verdict_code: str
    verdict_level: str
    document: bytes
    asked: bool = True
    deep: bool = False
    holders: int = 0


async def keep(connection: Connection, token: Address, evidence: KeptEvidence) -> int:
    """Writes one document and gives its id."""
    row_id: int = await connection.fetchval(
        "INSERT INTO facts.evidence (checked_at, token, block_number, policy_version, verdict_code,"
        " verdict_level, document, asked, deep, holders)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id",
        evidence.checked_at,
        as_bytes(token),
        evidence.block_number,
        evidence.policy_version,
        evidence.verdict_code,
        evidence.verdict_level,
        evidence.document,
        evidence.asked,
        evidence.deep,
        evidence.holders,
    )
    return row_id


async def latest(connection: Connection, token: Address) -> KeptEvidence | None:
    """The newest document about ``token``."""
    row = await connection.fetchrow(
        "SELECT checked_at, block_number, policy_version, verdict_code, verdict_level, document"
        " FROM facts.evidence WHERE token = $1 ORDER BY id DESC LIMIT 1",
        as_bytes(token),
    )
    return None if row is None else KeptEvidence(**dict(row))


async def made_at(connection: Connection, token: Address, checked_at: datetime) -> KeptEvidence | None:
    """The document of the check that was made then: of a token that is checked again and again, among the
    newest hundred."""
    row = await connection.fetchrow(
        "SELECT * FROM (SELECT checked_at, block_number, policy_version, verdict_code, verdict_level,"
        " document, asked, deep FROM facts.evidence WHERE token = $1 ORDER BY id DESC LIMIT 100) AS newest"
        " WHERE checked_at = $2 LIMIT 1",
        as_bytes(token),
        checked_at,
    )
    return None if row is None else KeptEvidence(**dict(row))


async def checked_since(
    connection: Connection, tokens: Collection[Address], since: datetime
) -> frozenset[Address]:
    """Those of the tokens that somebody asked about since then."""
    rows = await connection.fetch(
        "SELECT asked.token FROM unnest($1::bytea[]) AS asked (token) CROSS JOIN LATERAL"
        " (SELECT checked_at FROM facts.evidence WHERE evidence.token = asked.token AND evidence.asked"
        " ORDER BY id DESC LIMIT 1)"
        " AS newest WHERE newest.checked_at >= $2",
        [as_bytes(token) for token in tokens],
        since,
    )
    return frozenset(as_address(row["token"]) for row in rows)


@dataclass(frozen=True, slots=True)
class KeptProof:
    """The newest evidence about a token whose proof is kept, and that: what the check began with, as JSON,
    and its trips, each compressed."""

    checked_at: datetime
    evidence: bytes
    began: bytes
    trips: list[bytes]


PROOF_KEPT = timedelta(days=1)
MOST_PROOFS = 50_000
"""Of 8 to 60 KB each: one to three gigabytes at most, however many checks a day sees."""
_PRUNED_EVERY, _PRUNED_AT_ONCE = 16, 64


async def keep_proof(
    connection: Connection, row_id: int, began: bytes, trips: list[bytes], now: datetime
) -> None:
    """Writes what the check of evidence ``row_id`` began with and asked. Every sixteenth takes away of the
    oldest what is too old or too much: at most 64, so that no check waits long, and more than are written."""
    await connection.execute(
        "INSERT INTO facts.proof (evidence_id, made_at, began, trips) VALUES ($1, $2, $3, $4)",
        row_id,
        now,
        began,
        trips,
    )
    if row_id % _PRUNED_EVERY:
        return
    await connection.execute(
        "DELETE FROM facts.proof WHERE evidence_id IN (SELECT evidence_id FROM (SELECT evidence_id, made_at"
        " FROM facts.proof ORDER BY evidence_id LIMIT $1 FOR UPDATE SKIP LOCKED) AS oldest"
        " WHERE made_at < $2 OR evidence_id <= $3)",
        _PRUNED_AT_ONCE,
        now - PROOF_KEPT,
        row_id - MOST_PROOFS,
    )


async def latest_proof(connection: Connection, token: Address, now: datetime) -> KeptProof | None:
    """Of the newest evidence about ``token``, where its proof is kept and not too old."""
    row = await connection.fetchrow(
        "SELECT evidence.checked_at, evidence.document AS evidence, proof.began, proof.trips"
        " FROM facts.evidence AS evidence JOIN facts.proof AS proof ON proof.evidence_id = evidence.id"
        " WHERE evidence.id = (SELECT id FROM facts.evidence WHERE token = $1 ORDER BY id DESC LIMIT 1)"
        " AND proof.made_at >= $2",
        as_bytes(token),
        now - PROOF_KEPT,
    )
    return None if row is None else KeptProof(**dict(row))
