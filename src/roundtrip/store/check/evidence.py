"""Evidence documents, stored as they were judged, and their proofs."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from roundtrip.domain.base.types import Address
from roundtrip.domain.verdicts.changes import PastVerdict
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_row, fetch_value, fetch_values

MAX_COMPARED = 1000
"""Checks of one token whose verdicts are compared: each is one row without its evidence."""


class KeptEvidence(NamedTuple):
    """A stored document and its verdict at the time. ``asked``: a user requested the check; otherwise it was
    enqueued by the service. ``deep``: the check also looked for what could change the verdict.
    ``holders``: real holders whose simulated sale gave a result. ``loss_bps``: of the round trip; None: not
    measured. ``ends_at``: from when on the verdict no longer counts, since its snipe tax has ended; None: no
    end is known."""

    checked_at: datetime
    block_number: int
    policy_version: str
    verdict_code: str
    verdict_level: str
    document: bytes
    asked: bool = True
    deep: bool = False
    holders: int = 0
    loss_bps: int | None = None
    ends_at: datetime | None = None


async def past_verdicts(connection: Connection, token: Address, limit: int) -> list[PastVerdict]:
    """What the token's newest ``limit`` checks found, the newest first."""
    return await fetch(
        connection,
        PastVerdict,
        "SELECT checked_at, block_number AS block, policy_version, verdict_code AS code, verdict_level AS "
        "level, deep AS is_deep, loss_bps, ends_at FROM facts.evidence WHERE token = $1 ORDER BY id DESC "
        "LIMIT $2",
        as_bytes(token),
        limit,
    )


async def latest(connection: Connection, token: Address) -> KeptEvidence | None:
    """The newest document about ``token``."""
    return await fetch_row(
        connection,
        KeptEvidence,
        "SELECT checked_at, block_number, policy_version, verdict_code, verdict_level, document, asked, deep,"
        " holders, loss_bps, ends_at FROM facts.evidence WHERE token = $1 ORDER BY id DESC LIMIT 1",
        as_bytes(token),
    )


async def made_at(connection: Connection, token: Address, checked_at: datetime) -> KeptEvidence | None:
    """The document of the check made at ``checked_at``, if it is among the token's newest hundred."""
    return await fetch_row(
        connection,
        KeptEvidence,
        "SELECT * FROM (SELECT checked_at, block_number, policy_version, verdict_code, verdict_level, "
        "document, asked, deep, holders, loss_bps, ends_at FROM facts.evidence WHERE token = $1 ORDER BY id "
        "DESC LIMIT 100) AS newest WHERE checked_at = $2 LIMIT 1",
        as_bytes(token),
        checked_at,
    )


async def latest_of_holders(connection: Connection, token: Address, since: datetime) -> KeptEvidence | None:
    """The newest check at ``since`` or later that tried real holders' sells and got a result, if it is among
    the token's newest hundred deep checks."""
    return await fetch_row(
        connection,
        KeptEvidence,
        "SELECT * FROM (SELECT checked_at, block_number, policy_version, verdict_code, verdict_level, "
        "document, asked, deep, holders, loss_bps, ends_at FROM facts.evidence WHERE token = $1 AND deep "
        "ORDER BY id DESC LIMIT 100) AS newest WHERE checked_at >= $2 AND holders > 0 LIMIT 1",
        as_bytes(token),
        since,
    )


async def checked_since(
    connection: Connection, tokens: Collection[Address], since: datetime
) -> frozenset[Address]:
    """Those of the tokens that a user checked at ``since`` or later."""
    checked = await fetch_values(
        connection,
        Address,
        "SELECT asked.token FROM unnest($1::bytea[]) AS asked (token) CROSS JOIN LATERAL (SELECT checked_at "
        "FROM facts.evidence WHERE evidence.token = asked.token AND evidence.asked ORDER BY id DESC LIMIT 1) "
        "AS newest WHERE newest.checked_at >= $2",
        [as_bytes(token) for token in tokens],
        since,
    )
    return frozenset(checked)


class KeptProof(NamedTuple):
    """A token's newest evidence, and its proof: the check's inputs as JSON (``began``), and the requests of
    each round trip to the node (``trips``), as compressed JSON."""

    checked_at: datetime
    evidence: bytes
    began: bytes
    trips: list[bytes]


PROOF_KEPT = timedelta(days=1)


class ProofLimits(NamedTuple):
    """``kept``: proofs at most; at 8 to 60 KB each they take up to three gigabytes. Those that are too old or
    too many are deleted with every ``pruned_every``-th insert, ``pruned_at_once`` at most, so that no check
    waits long and more are deleted than inserted."""

    kept: int = 50_000
    pruned_every: int = 16
    pruned_at_once: int = 64


PROOF_LIMITS = ProofLimits()


class NewProof(NamedTuple):
    """The proof of a document: see ``KeptProof``."""

    began: bytes
    trips: list[bytes]


_KEEP = """
WITH evidence AS (
    INSERT INTO facts.evidence (checked_at, token, block_number, policy_version, verdict_code,
        verdict_level, document, asked, deep, holders, loss_bps, ends_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id
), proof AS (
    INSERT INTO facts.proof (evidence_id, made_at, began, trips)
    SELECT id, $1, $13, $14 FROM evidence WHERE $13::bytea IS NOT NULL
)
SELECT id FROM evidence
"""


async def keep(
    connection: Connection, token: Address, evidence: KeptEvidence, proof: NewProof | None = None
) -> int:
    """Inserts one document and its proof, by one statement. Returns the document's id."""
    return await fetch_value(
        connection,
        int,
        _KEEP,
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
        evidence.loss_bps,
        evidence.ends_at,
        None if proof is None else proof.began,
        None if proof is None else proof.trips,
    )


async def prune_proofs(
    connection: Connection, row_id: int, now: datetime, limits: ProofLimits = PROOF_LIMITS
) -> None:
    """Deletes some proofs that are too old or too many, after every ``pruned_every``-th insert."""
    if row_id % limits.pruned_every:
        return
    await connection.execute(
        "DELETE FROM facts.proof WHERE evidence_id IN (SELECT evidence_id FROM (SELECT evidence_id, made_at"
        " FROM facts.proof ORDER BY evidence_id LIMIT $1 FOR UPDATE SKIP LOCKED) AS oldest"
        " WHERE made_at < $2 OR evidence_id <= $3)",
        limits.pruned_at_once,
        now - PROOF_KEPT,
        row_id - limits.kept,
    )


async def latest_proof(connection: Connection, token: Address, now: datetime) -> KeptProof | None:
    """The token's newest evidence and its proof; None: there is none, or the proof is deleted or too old."""
    return await fetch_row(
        connection,
        KeptProof,
        "SELECT evidence.checked_at, evidence.document AS evidence, proof.began, proof.trips"
        " FROM facts.evidence AS evidence JOIN facts.proof AS proof ON proof.evidence_id = evidence.id"
        " WHERE evidence.id = (SELECT id FROM facts.evidence WHERE token = $1 ORDER BY id DESC LIMIT 1)"
        " AND proof.made_at >= $2",
        as_bytes(token),
        now - PROOF_KEPT,
    )
