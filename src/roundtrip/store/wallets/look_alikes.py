"""Tokens with one of several symbols or names, with their age and how many wallets traded them."""

from collections.abc import Collection

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.look_alikes import COUNTED_TRADERS, Namesake
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection, fetch

MOST_LAUNCHED = 30
"""Launchpad tokens with one of the symbols that are compared: those launched first."""
MOST_READ = 50
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
        MOST_LAUNCHED,
        MOST_READ,
        COUNTED_TRADERS,
    )
