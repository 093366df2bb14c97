"""What the index knows of an address, and which tokens bear a symbol."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.types import Address, HexBytes
from roundtrip.store.server.rows import Connection, fetch, fetch_one, fetch_value

LaunchedAs = Literal["curve", "swept", "pooled", "rescued"]
"""The last step of a launch; ``curve`` before any."""


@dataclass(frozen=True, slots=True)
class LaunchFound:
    """A launch in its current state. ``at``: its curve, or of the first generation (1) its v3 pool."""

    token_id: int
    generation: int
    deployer_id: int
    deployer: Address
    quote: Address
    at: HexBytes
    block_number: int
    at_s: int
    stands: LaunchedAs


@dataclass(frozen=True, slots=True)
class Bearers:
    """The tokens that bear a symbol: ``launched`` of them on a launchpad, with the numbers of the newest and
    the oldest; ``strangers`` were not."""

    launched: int
    strangers: int
    newest_id: int | None
    oldest_id: int | None


_LAUNCH = """
SELECT launch.token_id, launch.generation, launch.deployer_id, deployer.address AS deployer,
    quote.address AS quote, launch.at, launch.block_number, launch.at_s,
    coalesce(step.step, 'curve') AS stands
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
SELECT launched, greatest(0, every - launched) AS strangers, newest_id, oldest_id FROM (
SELECT (SELECT count(*) FROM facts.launch WHERE symbol_key = $1) AS launched,
    (SELECT count(*) FROM facts.token WHERE symbol_key = $1) AS every,
    (SELECT token_id FROM facts.launch WHERE symbol_key = $1
        ORDER BY block_number DESC, log_index DESC LIMIT 1) AS newest_id,
    (SELECT token_id FROM facts.launch WHERE symbol_key = $1
        ORDER BY block_number, log_index LIMIT 1) AS oldest_id
) AS counted
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
"""Launches without a symbol that are read: some tokens have none however often they are read."""


async def launches_of(connection: Connection, token_ids: Collection[int]) -> dict[int, LaunchFound]:
    """The launches of these tokens in their current state; a token without one is missing."""
    rows = await fetch(connection, LaunchFound, _LAUNCH, list(token_ids))
    return {launch.token_id: launch for launch in rows}


async def has_traded(connection: Connection, wallet_id: int) -> bool:
    """Whether the wallet has ever traded."""
    return await fetch_value(
        connection, bool, "SELECT EXISTS (SELECT FROM facts.position WHERE wallet_id = $1)", wallet_id
    )


async def has_unread(connection: Connection) -> bool:
    """Whether the symbol of some of the newest launches was never read."""
    return await fetch_value(connection, bool, _UNREAD, _MOST_UNREAD)


async def bearers(connection: Connection, symbol_key: str) -> Bearers:
    """The tokens that bear a symbol, normalised by ``names.symbol_key``."""
    return await fetch_one(connection, Bearers, _BEARERS, symbol_key)
