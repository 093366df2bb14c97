"""How the launches of a deployer went."""

from collections.abc import Collection
from dataclasses import dataclass

from roundtrip.domain.base.types import ZERO_ADDRESS, Address, TxHash
from roundtrip.store.server.hex import as_address, as_bytes, as_text
from roundtrip.store.server.rows import Connection

MOST_LAUNCHES = 200
"""Of one deployer the newest so many are looked at: nobody's record changes with more."""


@dataclass(frozen=True, slots=True)
class DeployerLaunches:
    """``launches``: all of a wallet's; ``graduated``: those that became a pool; ``sold_own``: those of which
    it sold half or more of what it had bought. Of the newest 200. Of a launch into a pool nothing moves
    when it graduates, which the index cannot tell: it is in none of the three."""

    launches: int
    graduated: int
    sold_own: int


NOTHING = DeployerLaunches(0, 0, 0)
"""Of a wallet that launched nothing."""

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
SELECT given.wallet_id, count(*) AS launches, count(step.token_id) AS graduated,
    count(*) FILTER (WHERE own.sold_raw > 0 AND 2 * own.sold_raw >= own.bought_raw) AS sold_own
{_LAUNCHED}
LEFT JOIN facts.position AS own
    ON own.wallet_id = given.wallet_id AND own.token_id = launched.token_id
GROUP BY given.wallet_id
"""
_GRADUATIONS = f"""
SELECT given.wallet_id, count(*) AS launches, count(step.token_id) AS graduated
{_LAUNCHED} GROUP BY given.wallet_id
"""


async def records(connection: Connection, wallet_ids: Collection[int]) -> dict[int, DeployerLaunches]:
    """Of these wallets; who launched nothing has ``NOTHING``."""
    found = dict.fromkeys(wallet_ids, NOTHING)
    for row in await connection.fetch(_RECORDS, list(found), MOST_LAUNCHES):
        wallet_id, launches, graduated, sold_own = row
        found[wallet_id] = DeployerLaunches(launches, graduated, sold_own)
    return found


async def graduations(connection: Connection, wallet_ids: Collection[int]) -> dict[int, tuple[int, int]]:
    """The same of many, and less dear: launches, and how many of them graduated."""
    found = dict.fromkeys(wallet_ids, (0, 0))
    for wallet_id, launches, graduated in await connection.fetch(_GRADUATIONS, list(found), MOST_LAUNCHES):
        found[wallet_id] = launches, graduated
    return found


@dataclass(frozen=True, slots=True)
class LaunchSpot:
    """Where a launchpad launched a token. ``at``: its curve, or of the first generation (1) its v3 pool.
    ``sender``: who sent that transaction; None: not known, it is older than the index."""

    block_number: int
    at_s: int
    tx_hash: TxHash
    deployer: Address
    sender: Address | None
    generation: int
    quote: Address
    at: str


async def launch_of(connection: Connection, token: Address) -> LaunchSpot | None:
    """None: the index knows of no launch of it."""
    row = await connection.fetchrow(
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
    sender = as_address(row["sender"])
    return LaunchSpot(
        row["block_number"],
        row["at_s"],
        TxHash(as_text(row["tx_hash"])),
        as_address(row["deployer"]),
        None if sender == ZERO_ADDRESS else sender,
        row["generation"],
        as_address(row["quote"]),
        as_text(row["at"]),
    )


@dataclass(frozen=True, slots=True)
class DeployerTrades:
    """A launch's deployer, and what he bought and sold of it himself, in base units."""

    deployer_id: int
    deployer: Address
    bought_raw: int
    sold_raw: int


async def own(connection: Connection, token_id: int) -> DeployerTrades | None:
    """Of a launch on a curve. None: the index knows of none."""
    row = await connection.fetchrow(
        "SELECT launch.deployer_id, address.address, own.bought_raw::text, own.sold_raw::text"
        " FROM facts.launch JOIN facts.address ON address.id = launch.deployer_id"
        " LEFT JOIN facts.position AS own"
        " ON own.wallet_id = launch.deployer_id AND own.token_id = launch.token_id"
        " WHERE launch.token_id = $1 AND launch.generation <> 1",
        token_id,
    )
    if row is None:
        return None
    bought, sold = (int(row[name] or 0) for name in ("bought_raw", "sold_raw"))
    return DeployerTrades(row["deployer_id"], as_address(row["address"]), bought, sold)
