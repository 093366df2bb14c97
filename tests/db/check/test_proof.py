"""What a check asked is kept with its evidence, for a day, and what is too old goes a little at a time."""

from datetime import UTC, datetime, timedelta

import asyncpg

from roundtrip.domain.base.types import Address
from roundtrip.store.check import evidence as store
from roundtrip.store.check.evidence import PROOF_KEPT, KeptEvidence, KeptProof, ProofLimits
from roundtrip.store.server.rows import Connection

TOKEN, OTHER = Address("0x" + "11" * 20), Address("0x" + "22" * 20)
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
FEW = ProofLimits(pruned_every=1, pruned_at_once=4)


async def checked(
    connection: Connection,
    at: datetime,
    proof: bytes | None = b"proof",
    token: Address = TOKEN,
    limits: ProofLimits = FEW,
) -> int:
    """One check that was made then; each deletes a few."""
    kept = KeptEvidence(at, 100, "p", "ok", "ok", f"evidence of {at}".encode())
    new = None if proof is None else store.NewProof(b"{}", [proof])
    row_id = await store.keep(connection, token, kept, new)
    await store.prune_proofs(connection, row_id, at, limits)
    return row_id


async def count(connection: Connection) -> int:
    found: int = await connection.fetchval("SELECT count(*) FROM facts.proof")
    return found


async def test_the_newest_is_given_with_its_own_evidence(connection: Connection) -> None:
    await checked(connection, NOW - 2 * SECOND, b"first")
    await checked(connection, NOW - SECOND, b"second")
    await checked(connection, NOW, b"another token's", OTHER)
    found = await store.latest_proof(connection, TOKEN, NOW)
    assert found == KeptProof(NOW - SECOND, f"evidence of {NOW - SECOND}".encode(), b"{}", [b"second"])
    assert await store.latest_proof(connection, Address("0x" + "33" * 20), NOW) is None


async def test_evidence_of_before_has_none(connection: Connection) -> None:
    await checked(connection, NOW, None)
    assert await store.latest_proof(connection, TOKEN, NOW) is None


async def test_it_is_given_for_a_day(connection: Connection) -> None:
    await checked(connection, NOW)
    assert await store.latest_proof(connection, TOKEN, NOW + PROOF_KEPT) is not None
    assert await store.latest_proof(connection, TOKEN, NOW + PROOF_KEPT + SECOND) is None


async def test_what_is_too_old_goes_a_few_at_a_time_and_its_evidence_stays(connection: Connection) -> None:
    await connection.execute("DELETE FROM facts.proof")
    ids = [await checked(connection, NOW + n * SECOND) for n in range(10)]
    late = NOW + PROOF_KEPT + 7 * SECOND
    await checked(connection, late)
    assert await count(connection) == 7
    await checked(connection, late)
    assert await count(connection) == 5
    await checked(connection, late)
    left = [row["evidence_id"] for row in await connection.fetch("SELECT * FROM facts.proof ORDER BY 1")]
    assert (left[:3], len(left)) == (ids[7:], 6)
    assert await connection.fetchval("SELECT count(*) FROM facts.evidence WHERE id = ANY($1)", ids) == 10


async def test_so_many_are_kept_and_no_more(connection: Connection) -> None:
    await connection.execute("DELETE FROM facts.proof")
    for n in range(10):
        await checked(connection, NOW + n * SECOND, limits=FEW._replace(kept=3))
    assert await count(connection) == 3


async def test_one_that_another_check_takes_away_holds_nobody_up(
    pool: asyncpg.Pool, connection: Connection
) -> None:
    async with pool.acquire() as other:
        await other.execute("DELETE FROM facts.proof")
        old = [await checked(other, NOW + n * SECOND) for n in range(3)]
        late = NOW + PROOF_KEPT + 5 * SECOND
        await connection.execute("SELECT 1 FROM facts.proof WHERE evidence_id = $1 FOR UPDATE", old[0])
        await other.execute("SET statement_timeout = '5s'")
        await checked(other, late)
        left = {row["evidence_id"] for row in await other.fetch("SELECT evidence_id FROM facts.proof")}
        assert left & set(old) == {old[0]}


async def test_it_goes_with_its_evidence(connection: Connection) -> None:
    row_id = await checked(connection, NOW)
    await connection.execute("DELETE FROM facts.evidence WHERE id = $1", row_id)
    assert await connection.fetchval("SELECT 1 FROM facts.proof WHERE evidence_id = $1", row_id) is None


async def test_it_is_stored_as_it_is_since_it_is_compressed(connection: Connection) -> None:
    storage = "SELECT attstorage FROM pg_attribute WHERE attrelid = 'facts.proof'::regclass AND attname = $1"
    assert await connection.fetchval(storage, "trips") == b"e"


async def test_what_comes_in_goes_out_again(connection: Connection) -> None:
    await connection.execute("DELETE FROM facts.proof")
    for n in range(200):
        await checked(connection, NOW + n * SECOND, limits=ProofLimits(100))
    assert 100 <= await count(connection) <= 116
