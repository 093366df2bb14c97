"""A deployer's record: launches, graduations and sales of its own tokens."""

from collections.abc import Collection
from dataclasses import dataclass

from roundtrip.domain.base.types import ZERO_ADDRESS, Address, HexBytes, Numeric, TxHash
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_row

MAX_LAUNCHES = 200
"""How many of a deployer's newest launches are counted."""


@dataclass(frozen=True, slots=True)
class DeployerLaunches:
    """``launches``: a wallet's launches; ``graduated``: those that became a pool; ``sold_own``: those of
    which the wallet sold half or more of what it had bought. Of the newest 200. A launch into a pool is in
    none of the three: nothing moves when it graduates, so the index cannot detect it."""

    launches: int
    graduated: int
    sold_own: int


NOTHING = DeployerLaunches(0, 0, 0)
"""The record of a wallet without launches."""

_LAUNCHED = """
FROM unnest($1::int[]) AS given (wallet_id)
CROSS JOIN LATERAL (
    SELECT launch.token_id FROM facts.launch AS launch
    WHERE launch.deployer_id = given.wallet_id AND launch.generation <> 1
    ORDER BY launch.block_number DESC, launch.log_index DESC LIMIT $2
) AS launched
LEFT JOIN LATERAL (
    SELECT step.token_id FROM facts.launch_step AS step
    WHERE step.token_id = launched.token_id AND step.step = 'pooled' LIMIT 1
) AS step ON true
"""
_RECORDS = f"""
WITH launched AS MATERIALIZED (
    SELECT given.wallet_id, launched.token_id, step.token_id AS graduated_id {_LAUNCHED}
), sold AS MATERIALIZED (
    SELECT launched.wallet_id, count(*) AS tokens FROM launched
    JOIN facts.position AS own ON own.wallet_id = launched.wallet_id AND own.token_id = launched.token_id
    WHERE own.sold_raw > 0 AND 2 * own.sold_raw >= own.bought_raw GROUP BY launched.wallet_id
)
SELECT launched.wallet_id, count(*) AS launches, count(launched.graduated_id) AS graduated,
    coalesce(max(sold.tokens), 0) AS sold_own
FROM launched LEFT JOIN sold ON sold.wallet_id = launched.wallet_id GROUP BY launched.wallet_id
"""  # noqa: S608
_GRADUATIONS = f"""
SELECT given.wallet_id, count(*) AS launches, count(step.token_id) AS graduated
{_LAUNCHED} GROUP BY given.wallet_id
"""


async def records(connection: Connection, wallet_ids: Collection[int]) -> dict[int, DeployerLaunches]:
    """The record of each wallet; ``NOTHING`` for one without launches."""
    rows = await fetch(
        connection, tuple[int, DeployerLaunches], _RECORDS, list(set(wallet_ids)), MAX_LAUNCHES
    )
    return dict.fromkeys(wallet_ids, NOTHING) | dict(rows)


async def graduations(connection: Connection, wallet_ids: Collection[int]) -> dict[int, tuple[int, int]]:
    """Launches, and how many of them graduated, of each wallet. Cheaper than ``records``, for many."""
    rows = await fetch(
        connection, tuple[int, tuple[int, int]], _GRADUATIONS, list(set(wallet_ids)), MAX_LAUNCHES
    )
    return dict.fromkeys(wallet_ids, (0, 0)) | dict(rows)


@dataclass(frozen=True, slots=True)
class LaunchSpot:
    """Where a launchpad launched a token. ``at``: its curve, or in the first generation (1) its v3 pool.
    ``sender``: the sender of that transaction; None: not known, it is older than the index."""

    block_number: int
    at_s: int
    tx_hash: TxHash
    deployer: Address
    sender: Address | None
    generation: int
    quote: Address
    at: HexBytes


async def launch_of(connection: Connection, token: Address) -> LaunchSpot | None:
    """The token's launch; None: the index has none."""
    return await fetch_row(
        connection,
        LaunchSpot,
        "SELECT launch.block_number, launch.at_s, launch.tx_hash, deployer.address AS deployer, "
        "nullif(sender.address, $2) AS sender, launch.generation, quote.address AS quote, launch.at FROM "
        "facts.address AS token JOIN facts.launch AS launch ON launch.token_id = token.id JOIN facts.address "
        "AS deployer ON deployer.id = launch.deployer_id JOIN facts.address AS sender ON sender.id = "
        "launch.sender_id JOIN facts.address AS quote ON quote.id = launch.quote_id WHERE token.address = $1",
        as_bytes(token),
        as_bytes(ZERO_ADDRESS),
    )


@dataclass(frozen=True, slots=True)
class DeployerTrades:
    """A launch's deployer, and how much of its own token it bought and sold, in base units."""

    deployer_id: int
    deployer: Address
    bought_raw: Numeric
    sold_raw: Numeric


async def own(connection: Connection, token_id: int) -> DeployerTrades | None:
    """The deployer's own trades, for a launch on a curve; None: the index has no such launch."""
    return await fetch_row(
        connection,
        DeployerTrades,
        "SELECT launch.deployer_id, address.address AS deployer, coalesce(own.bought_raw, 0)::text AS "
        "bought_raw, coalesce(own.sold_raw, 0)::text AS sold_raw FROM facts.launch JOIN facts.address ON "
        "address.id = launch.deployer_id LEFT JOIN LATERAL facts.position_of(launch.deployer_id, "
        "launch.token_id) AS own ON true WHERE launch.token_id = $1 AND launch.generation <> 1",
        token_id,
    )
