"""What tokens' buyers are exposed to, as it was read last. Each function uses the caller's connection and
ends no transaction."""

from collections.abc import Collection
from datetime import datetime, timedelta

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.exposure import NEVER_READ, LeavingLiquidity, TokenExposure
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection, fetch

KEPT_FOR = timedelta(days=1)


async def put_insiders(connection: Connection, token: Address, bps: int | None, at: datetime) -> None:
    """Stores the insiders' share as of ``at``, unless a newer one is stored. None: could not be found out."""
    await connection.execute(
        "INSERT INTO facts.exposure AS exposure (token, insiders_bps, insiders_at) VALUES ($1, $2, $3)"
        " ON CONFLICT (token) DO UPDATE SET insiders_bps = excluded.insiders_bps,"
        " insiders_at = excluded.insiders_at"
        " WHERE exposure.insiders_at IS NULL OR exposure.insiders_at <= excluded.insiders_at",
        as_bytes(token),
        bps,
        at,
    )


async def put_leaving(
    connection: Connection, token: Address, leaving: LeavingLiquidity | None, at: datetime
) -> None:
    """Stores what liquidity can leave as of ``at``, unless newer is stored. None: could not be found out."""
    await connection.execute(
        "INSERT INTO facts.exposure AS exposure (token, free_bps, unproven_bps, liquidity_at)"
        " VALUES ($1, $2, $3, $4) ON CONFLICT (token) DO UPDATE SET free_bps = excluded.free_bps,"
        " unproven_bps = excluded.unproven_bps, liquidity_at = excluded.liquidity_at"
        " WHERE exposure.liquidity_at IS NULL OR exposure.liquidity_at <= excluded.liquidity_at",
        as_bytes(token),
        None if leaving is None else leaving.free_bps,
        None if leaving is None else leaving.unproven_bps,
        at,
    )


async def read_exposures(connection: Connection, tokens: Collection[Address]) -> dict[Address, TokenExposure]:
    """The last reading of each of these tokens."""
    rows = await fetch(
        connection,
        tuple[Address, TokenExposure],
        "SELECT token, insiders_bps, extract(epoch FROM insiders_at)::float8 AS insiders_at_s, free_bps,"
        " unproven_bps, extract(epoch FROM liquidity_at)::float8 AS liquidity_at_s FROM facts.exposure"
        " WHERE token = ANY($1::bytea[])",
        [as_bytes(token) for token in set(tokens)],
    )
    known = dict(rows)
    return {token: known.get(token, NEVER_READ) for token in tokens}


async def forget(connection: Connection, before: datetime) -> None:
    """Deletes readings before ``before``."""
    await connection.execute(
        "DELETE FROM facts.exposure WHERE greatest(insiders_at, liquidity_at) < $1", before
    )
