"""What the index knows of one address, and who bears a symbol."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.types import Address
from roundtrip.store.server.hex import as_address, as_text
from roundtrip.store.server.rows import Connection

LaunchedAs = Literal["curve", "swept", "pooled", "rescued"]
"""The last step that a launch took; on its curve before any."""


@dataclass(frozen=True, slots=True)
class LaunchFound:
    """A launch as it stands. ``at``: its curve, or of the first generation (1) its v3 pool."""

    token_id: int
    generation: int
    deployer_id: int
    deployer: Address
    quote: Address
    at: str
    block_number: int
    at_s: int
    stands: LaunchedAs


@dataclass(frozen=True, slots=True)
class Bearers:
    """Tokens that bear one symbol: ``launched`` of them on a launchpad, of which the ``newest`` and the
    ``oldest``, by their interned addresses; and ``strangers``, which were not."""

    launched: int
    strangers: int
    newest_id: int | None
    oldest_id: int | None


_LAUNCH = """
SELECT launch.token_id, launch.generation, launch.deployer_id, deployer.address AS deployer,
    quote.address AS quote, launch.at, launch.block_number, launch.at_s, step.step
FROM facts.launch AS launch
JOIN facts.address AS deployer ON deployer.id = launch.deployer_id
JOIN facts.address AS quote ON quote.id = launch.quote_id
LEFT JOIN LATERAL (
    SELECT step.step FROM facts.launch_step AS step WHERE step.token_id = launch.token_id
    ORDER BY step.block_number DESC, step.log_index DESC LIMIT 1
) AS step ON true
WHERE launch.token_id = ANY($1::int[])
"""

_BEARERS = """
SELECT (SELECT count(*) FROM facts.launch WHERE symbol_key = $1) AS launched,
    (SELECT count(*) FROM facts.token WHERE symbol_key = $1) AS every,
    (SELECT token_id FROM facts.launch WHERE symbol_key = $1
        ORDER BY block_number DESC, log_index DESC LIMIT 1) AS newest_id,
    (SELECT token_id FROM facts.launch WHERE symbol_key = $1
        ORDER BY block_number, log_index LIMIT 1) AS oldest_id
"""

_UNREAD = """
SELECT EXISTS (
    SELECT FROM (
        SELECT token_id FROM facts.launch WHERE symbol_key IS NULL
        ORDER BY symbol_key DESC, block_number DESC, log_index DESC LIMIT $1
    ) AS newest
    JOIN facts.address AS address ON address.id = newest.token_id
    WHERE NOT EXISTS (SELECT FROM facts.token AS token WHERE token.token = address.address)
)
"""
_MOST_UNREAD = 200
"""Of launches without a symbol so many are looked at: some tokens have none however often they are read."""


async def launches_of(connection: Connection, token_ids: Collection[int]) -> dict[int, LaunchFound]:
    """How the launches of these tokens stand; who was never launched is not among them."""
    rows = await connection.fetch(_LAUNCH, list(token_ids))
    return {
        row["token_id"]: LaunchFound(
            row["token_id"],
            row["generation"],
            row["deployer_id"],
            as_address(row["deployer"]),
            as_address(row["quote"]),
            as_text(row["at"]),
            row["block_number"],
            row["at_s"],
            row["step"] or "curve",
        )
        for row in rows
    }


async def has_traded(connection: Connection, wallet_id: int) -> bool:
    """Whether the wallet ever traded."""
    found: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM facts.position WHERE wallet_id = $1)", wallet_id
    )
    return found


async def has_unread(connection: Connection) -> bool:
    """Whether of the newest launches some were never asked for their symbol."""
    found: bool = await connection.fetchval(_UNREAD, _MOST_UNREAD)
    return found


async def bearers(connection: Connection, symbol_key: str) -> Bearers:
    """Who bears a symbol, as ``names.symbol_key`` has it."""
    row = await connection.fetchrow(_BEARERS, symbol_key)
    assert row is not None
    strangers = max(0, row["every"] - row["launched"])
    return Bearers(row["launched"], strangers, row["newest_id"], row["oldest_id"])
