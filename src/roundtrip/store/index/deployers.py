"""A deployer's record: launches, graduations and sales of its own tokens."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.domain.base.types import ZERO_ADDRESS, Address, TxHash
from roundtrip.store.server.hex import as_address, as_bytes, as_text
from roundtrip.store.server.rows import Connection, fetch, fetch_row, optional_int

MOST_LAUNCHES = 200
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


class _DeployerRecordRow(NamedTuple):
    wallet_id: int
    launches: int
    graduated: int
    sold_own: int


class _GraduationCountRow(NamedTuple):
    wallet_id: int
    launches: int
    graduated: int


async def records(connection: Connection, wallet_ids: Collection[int]) -> dict[int, DeployerLaunches]:
    """The record of each wallet; ``NOTHING`` for one without launches."""
    by_wallet = dict.fromkeys(wallet_ids, NOTHING)
    for row in await fetch(connection, _DeployerRecordRow, _RECORDS, list(by_wallet), MOST_LAUNCHES):
        by_wallet[row.wallet_id] = DeployerLaunches(row.launches, row.graduated, row.sold_own)
    return by_wallet


async def graduations(connection: Connection, wallet_ids: Collection[int]) -> dict[int, tuple[int, int]]:
    """Launches, and how many of them graduated, of each wallet. Cheaper than ``records``, for many."""
    by_wallet = dict.fromkeys(wallet_ids, (0, 0))
    for row in await fetch(connection, _GraduationCountRow, _GRADUATIONS, list(by_wallet), MOST_LAUNCHES):
        by_wallet[row.wallet_id] = row.launches, row.graduated
    return by_wallet


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
    at: str


class _LaunchSpotRow(NamedTuple):
    block_number: int
    at_s: int
    tx_hash: bytes
    deployer: bytes
    sender: bytes
    generation: int
    quote: bytes
    at: bytes


async def launch_of(connection: Connection, token: Address) -> LaunchSpot | None:
    """The token's launch; None: the index has none."""
    row = await fetch_row(
        connection,
        _LaunchSpotRow,
        "SELECT launch.block_number, launch.at_s, launch.tx_hash, deployer.address AS deployer,"
        " sender.address AS sender, launch.generation, quote.address AS quote, launch.at"
        " FROM facts.address AS token JOIN facts.launch AS launch ON launch.token_id = token.id"
        " JOIN facts.address AS deployer ON deployer.id = launch.deployer_id"
        " JOIN facts.address AS sender ON sender.id = launch.sender_id"
        " JOIN facts.address AS quote ON quote.id = launch.quote_id WHERE token.address = $1",
        as_bytes(token),
    )
    if row is None:
        return None
    sender = as_address(row.sender)
    return LaunchSpot(
        row.block_number,
        row.at_s,
        TxHash(as_text(row.tx_hash)),
        as_address(row.deployer),
        None if sender == ZERO_ADDRESS else sender,
        row.generation,
        as_address(row.quote),
        as_text(row.at),
    )


@dataclass(frozen=True, slots=True)
class DeployerTrades:
    """A launch's deployer, and how much of its own token it bought and sold, in base units."""

    deployer_id: int
    deployer: Address
    bought_raw: int
    sold_raw: int


class _DeployerTradesRow(NamedTuple):
    deployer_id: int
    address: bytes
    bought_raw: str | None
    sold_raw: str | None


async def own(connection: Connection, token_id: int) -> DeployerTrades | None:
    """The deployer's own trades, for a launch on a curve; None: the index has no such launch."""
    row = await fetch_row(
        connection,
        _DeployerTradesRow,
        "SELECT launch.deployer_id, address.address, own.bought_raw::text, own.sold_raw::text"
        " FROM facts.launch JOIN facts.address ON address.id = launch.deployer_id"
        " LEFT JOIN LATERAL facts.position_of(launch.deployer_id, launch.token_id) AS own ON true"
        " WHERE launch.token_id = $1 AND launch.generation <> 1",
        token_id,
    )
    if row is None:
        return None
    bought_raw, sold_raw = optional_int(row.bought_raw) or 0, optional_int(row.sold_raw) or 0
    return DeployerTrades(row.deployer_id, as_address(row.address), bought_raw, sold_raw)
