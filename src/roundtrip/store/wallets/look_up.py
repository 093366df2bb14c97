"""What the index knows of an address, and tokens that bear a symbol, look alike, or begin as a query does."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.types import Address, HexBytes
from roundtrip.domain.market.look_alikes import COUNTED_TRADERS, Namesake
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_one, fetch_value

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
    the oldest; ``strangers`` were not launched there. None: a launchpad launched none."""

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
_MAX_UNREAD = 200
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
    return await fetch_value(connection, bool, _UNREAD, _MAX_UNREAD)


async def bearers(connection: Connection, symbol_key: str) -> Bearers:
    """The tokens that bear a symbol, normalised by ``names.symbol_key``."""
    return await fetch_one(connection, Bearers, _BEARERS, symbol_key)


# --- look-alikes -----------------------------------------------------------------------------------

MAX_LAUNCHED = 30
"""Launchpad tokens with one of the symbols that are compared: those launched first."""
MAX_READ = 50
"""Tokens of any origin that are compared, of the symbols and of the names: those whose metadata was read
first. A token's metadata is read when it is launched or gets its first pool."""

# $1 symbols, $2 names, $3 the token in question, $4 most launched, $5 most read, $6 traders counted
_NAMESAKES = """
WITH named AS MATERIALIZED (
    (SELECT launch.token_id AS id, true AS by_symbol FROM unnest($1::text[]) AS wanted (key)
        CROSS JOIN LATERAL (
            SELECT token_id, block_number, log_index FROM facts.launch WHERE symbol_key = wanted.key
            ORDER BY block_number, log_index LIMIT $4
        ) AS launch ORDER BY launch.block_number, launch.log_index LIMIT $4)
    UNION ALL
    (SELECT address.id, read.by_symbol FROM (
        (SELECT token.token, true AS by_symbol FROM unnest($1::text[]) AS wanted (key)
            CROSS JOIN LATERAL (
                SELECT token, read_number FROM facts.token WHERE symbol_key = wanted.key
                ORDER BY read_number LIMIT $5
            ) AS token ORDER BY token.read_number LIMIT $5)
        UNION ALL
        (SELECT token.token, false FROM unnest($2::text[]) AS wanted (key)
            CROSS JOIN LATERAL (
                SELECT token, read_number FROM facts.token WHERE lower(left(name, 64)) = wanted.key
                ORDER BY read_number LIMIT $5
            ) AS token ORDER BY token.read_number LIMIT $5)
    ) AS read JOIN facts.address AS address ON address.address = read.token)
    UNION ALL
    SELECT id, false FROM facts.address WHERE address = $3
), wanted AS MATERIALIZED (
    SELECT id, bool_or(by_symbol) AS by_symbol FROM named GROUP BY id
)
SELECT address.address AS token, token.symbol, token.name, wanted.by_symbol,
    least(
        (SELECT at_s FROM facts.launch WHERE token_id = wanted.id),
        (SELECT at_s FROM facts.pool WHERE token_id = wanted.id ORDER BY id LIMIT 1)
    ) AS first_s,
    (SELECT count(*) FROM facts.positions_in(wanted.id, $6::int)) AS traders
FROM wanted JOIN facts.address AS address ON address.id = wanted.id
LEFT JOIN facts.token AS token ON token.token = address.address
"""


async def read_namesakes(
    connection: Connection, token: Address, symbols: Collection[str], tokens_names: Collection[str]
) -> list[Namesake]:
    """Tokens with one of these symbols (normalised by ``names.symbol_key``) or names (in lower case), and the
    token in question if the index knows it."""
    return await fetch(
        connection,
        Namesake,
        _NAMESAKES,
        sorted(symbols),
        sorted(tokens_names),
        as_bytes(token),
        MAX_LAUNCHED,
        MAX_READ,
        COUNTED_TRADERS,
    )


# --- suggestions -----------------------------------------------------------------------------------

MAX_SUGGESTED = 200
"""Tokens of each kind that are ranked: many may begin alike."""
_ADDRESS_DIGITS = 40

# $1 symbol_key, $2 the name's beginning, $3 most of each kind, $4 how many
_BY_TEXT = """
WITH near AS (
    (SELECT token, symbol_key FROM facts.token
        WHERE symbol_key ~>=~ $1::text AND symbol_key ~<~ ($1::text || chr(1114111))
        ORDER BY symbol_key USING ~<~ LIMIT $3)
    UNION
    (SELECT token, symbol_key FROM facts.token
        WHERE lower(left(name, 64)) ~>=~ lower($2::text)
            AND lower(left(name, 64)) ~<~ (lower($2::text) || chr(1114111))
        ORDER BY lower(left(name, 64)) USING ~<~ LIMIT $3)
)
SELECT near.token, launch.at_s AS launched_s
FROM near LEFT JOIN facts.address AS address ON address.address = near.token
LEFT JOIN facts.launch AS launch ON launch.token_id = address.id
ORDER BY near.symbol_key IS DISTINCT FROM $1::text, launch.at_s IS NULL,
    CASE WHEN near.symbol_key = $1::text THEN launch.at_s ELSE -launch.at_s END, near.token LIMIT $4
"""

# $1 the first address, $2 the last one, $3 how many
_BY_ADDRESS = """
SELECT token.token, launch.at_s AS launched_s
FROM facts.token AS token LEFT JOIN facts.address AS address ON address.address = token.token
LEFT JOIN facts.launch AS launch ON launch.token_id = address.id
WHERE token.token >= $1 AND token.token <= $2 ORDER BY token.token LIMIT $3
"""


async def find_by_text(
    connection: Connection, symbol_key: str, name: str, limit: int
) -> list[tuple[Address, int | None]]:
    """Tokens whose symbol or name begins so, and when a launchpad launched each; None: none did. Those with
    this very symbol come first, the oldest launch before its copies; then those of a launchpad, the newest
    first."""
    return await fetch(
        connection, tuple[Address, int | None], _BY_TEXT, symbol_key, name, MAX_SUGGESTED, limit
    )


async def find_by_address(
    connection: Connection, digits: str, limit: int
) -> list[tuple[Address, int | None]]:
    """Tokens whose address begins with these hex digits, and when a launchpad launched each; None: none
    did."""
    low, high = (bytes.fromhex(digits.ljust(_ADDRESS_DIGITS, filling)) for filling in "0f")
    return await fetch(connection, tuple[Address, int | None], _BY_ADDRESS, low, high, limit)
