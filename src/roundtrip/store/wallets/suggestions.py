"""Tokens whose symbol, name or address begins as a reader's query does."""

from typing import NamedTuple

from roundtrip.domain.base.types import Address
from roundtrip.store.server.rows import Connection, fetch

MOST_LOOKED_AT = 200
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


class SuggestedToken(NamedTuple):
    """``launched_s``: when a launchpad launched it; None: none did."""

    token: Address
    launched_s: int | None


async def find_by_text(
    connection: Connection, symbol_key: str, name: str, limit: int
) -> list[SuggestedToken]:
    """Tokens whose symbol or name begins so. Those with this very symbol come first, the oldest launch before
    its copies; then those of a launchpad, the newest first."""
    return await fetch(connection, SuggestedToken, _BY_TEXT, symbol_key, name, MOST_LOOKED_AT, limit)


async def find_by_address(connection: Connection, digits: str, limit: int) -> list[SuggestedToken]:
    """Tokens whose address begins with these hex digits."""
    low, high = (bytes.fromhex(digits.ljust(_ADDRESS_DIGITS, filling)) for filling in "0f")
    return await fetch(connection, SuggestedToken, _BY_ADDRESS, low, high, limit)
