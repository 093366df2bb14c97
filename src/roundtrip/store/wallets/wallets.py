"""What a wallet did, by the index."""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts

MOST_ROWS = 4_000
"""So many positions and closings of one wallet are summed up, the newest: a bot has half a million."""
MOST_LAUNCHES_SHOWN = 10
MOST_HELD_SHOWN = 20
PRICES_BACK_S = (86_400, 9 * 86_400, 90 * 86_400)
"""How far back a token's last trade is looked for, in turn: most traded on the last day, and each day more is
one more place to look."""
TRADES_LOOKED_AT, PLACES_LOOKED_AT = 20, 8
"""The newest trades of a place, and the oldest places of a token: it began somewhere, and anybody can make it
a thousand more."""
LEAST_PRICED_WEI = 10**14
"""A trade of less tells no price: of a few base units, rounding makes any."""


@dataclass(frozen=True, slots=True)
class WalletLaunch:
    """A token that the wallet launched. ``generation`` 1: straight into a pool. ``steps``: swept, pooled,
    rescued. ``raised_raw``, ``threshold_raw``: what lies in its curve and what it takes, in the quote's base
    units; None: not known. ``bought_raw``, ``sold_raw``: of it by the wallet itself."""

    token_id: int
    at_s: int
    generation: int
    steps: frozenset[str]
    raised_raw: int | None
    threshold_raw: int | None
    bought_raw: int
    sold_raw: int


@dataclass(frozen=True, slots=True)
class TradeTotals:
    """All its positions together; of ``is_part`` the ``MOST_ROWS`` newest tokens' only. ``held``: positions
    in which something of what it bought is left. ``recent_tokens``: those it traded since a given time."""

    tokens: int
    buys: int
    sells: int
    spent_wei: int
    got_wei: int
    unpriced: int
    held: int
    recent_tokens: int
    is_part: bool


@dataclass(frozen=True, slots=True)
class WalletClosing:
    """One closing: what of, when (seconds since 1970), what it had cost and brought."""

    token_id: int
    at_s: int
    spent_wei: int
    got_wei: int


@dataclass(frozen=True, slots=True)
class WalletClosings:
    """Closings together; of ``is_part`` the ``MOST_ROWS`` newest."""

    closed: int
    won: int
    spent_wei: int
    got_wei: int
    is_part: bool


@dataclass(frozen=True, slots=True)
class ClosingsSummary:
    """All closings, those since a given time, and of all the one that won most and the one that won least."""

    all: WalletClosings
    recent: WalletClosings
    best: WalletClosing | None
    worst: WalletClosing | None


@dataclass(frozen=True, slots=True)
class OpenPosition:
    """A position with something left of what was bought, all amounts as in facts.position."""

    token_id: int
    held_raw: int
    cost_wei: int
    bought_raw: int
    spent_wei: int
    unpriced: int
    spent_micro_usd: int | None
    last_s: int


@dataclass(frozen=True, slots=True)
class LastTrade:
    """The newest trade of a token whose worth in eth is known."""

    at_s: int
    token_raw: int
    eth_wei: int


_LAUNCHED = """
SELECT launched.*, curve.raised_raw, coalesce(own.bought_raw, 0) AS bought_raw,
    coalesce(own.sold_raw, 0) AS sold_raw,
    ARRAY(SELECT step FROM facts.launch_step WHERE token_id = launched.token_id) AS steps
FROM (
    SELECT token_id, at_s, generation, threshold_raw, at, block_number, log_index FROM facts.launch
    WHERE deployer_id = $1 ORDER BY block_number DESC, log_index DESC LIMIT $2
) AS launched
LEFT JOIN facts.pool AS pool ON pool.at = launched.at
LEFT JOIN facts.curve AS curve ON curve.pool_id = pool.id
LEFT JOIN facts.position AS own ON own.wallet_id = $1 AND own.token_id = launched.token_id
ORDER BY launched.block_number DESC, launched.log_index DESC
"""


async def launches(connection: Connection, wallet_id: int) -> list[WalletLaunch]:
    """Its newest ``MOST_LAUNCHES_SHOWN`` launches, the newest first."""
    rows = await connection.fetch(_LAUNCHED, wallet_id, MOST_LAUNCHES_SHOWN)
    return [
        WalletLaunch(
            row["token_id"],
            row["at_s"],
            row["generation"],
            frozenset(row["steps"]),
            _whole(row["raised_raw"]),
            _whole(row["threshold_raw"]),
            int(row["bought_raw"]),
            int(row["sold_raw"]),
        )
        for row in rows
    ]


async def pool_launches(connection: Connection, wallet_id: int) -> int:
    """How many tokens it launched straight into a pool; counted up to ``MOST_ROWS``."""
    count: int = await connection.fetchval(
        "SELECT count(*) FROM (SELECT FROM facts.launch WHERE deployer_id = $1 AND generation = 1 LIMIT $2)"
        " AS counted",
        wallet_id,
        MOST_ROWS,
    )
    return count


_TRADED = """
SELECT count(*) AS tokens, coalesce(sum(buys), 0) AS buys, coalesce(sum(sells), 0) AS sells,
    coalesce(sum(spent_wei), 0) AS spent_wei, coalesce(sum(got_wei), 0) AS got_wei,
    coalesce(sum(unpriced), 0) AS unpriced, count(*) FILTER (WHERE held_raw > 0) AS held,
    count(*) FILTER (WHERE last_s >= $3) AS recent_tokens,
    EXISTS (SELECT FROM facts.position WHERE wallet_id = $1 OFFSET $2) AS is_part
FROM (
    -- Tokens have their numbers in the order in which they were met.
    SELECT * FROM facts.position WHERE wallet_id = $1 ORDER BY token_id DESC LIMIT $2
) AS newest
"""


async def sum_trades(connection: Connection, wallet_id: int, since_s: int) -> TradeTotals:
    """Its positions summed up; ``since_s``: from when on a token counts as recently traded."""
    row = await connection.fetchrow(_TRADED, wallet_id, MOST_ROWS, since_s)
    tokens, buys, sells, spent, got, unpriced, held_now, recent, is_part = row
    return TradeTotals(tokens, buys, sells, int(spent), int(got), unpriced, held_now, recent, is_part)


_CLOSINGS = """
WITH newest AS MATERIALIZED (
    SELECT token_id, at_s, spent_wei, got_wei, block_number, log_index FROM facts.closing
    WHERE wallet_id = $1 ORDER BY at_s DESC LIMIT $3
)
SELECT count(*), count(*) FILTER (WHERE got_wei > spent_wei), coalesce(sum(spent_wei), 0),
    coalesce(sum(got_wei), 0), EXISTS (SELECT FROM facts.closing WHERE wallet_id = $1 OFFSET $3),
    count(*) FILTER (WHERE at_s >= $2), count(*) FILTER (WHERE at_s >= $2 AND got_wei > spent_wei),
    coalesce(sum(spent_wei) FILTER (WHERE at_s >= $2), 0),
    coalesce(sum(got_wei) FILTER (WHERE at_s >= $2), 0),
    EXISTS (SELECT FROM facts.closing WHERE wallet_id = $1 AND at_s >= $2 OFFSET $3),
    (SELECT ARRAY[token_id, at_s, spent_wei, got_wei] FROM newest
        ORDER BY got_wei - spent_wei DESC, block_number, log_index LIMIT 1),
    (SELECT ARRAY[token_id, at_s, spent_wei, got_wei] FROM newest
        ORDER BY got_wei - spent_wei, block_number, log_index LIMIT 1)
FROM newest
"""


async def closings(connection: Connection, wallet_id: int, since_s: int) -> ClosingsSummary:
    """What it closed; ``since_s``: from when on that is recent."""
    row = tuple(await connection.fetchrow(_CLOSINGS, wallet_id, since_s, MOST_ROWS))
    return ClosingsSummary(_sums(row[:5]), _sums(row[5:10]), _closing(row[10]), _closing(row[11]))


def _sums(row: tuple[Any, ...]) -> WalletClosings:
    closed, won, spent_wei, got_wei, is_part = row
    return WalletClosings(closed, won, int(spent_wei), int(got_wei), is_part)


def _closing(values: list[Decimal] | None) -> WalletClosing | None:
    return None if values is None else WalletClosing(*map(int, values))


_HELD = """
SELECT token_id, held_raw, cost_wei, bought_raw, spent_wei, unpriced, spent_micro_usd, last_s
FROM (SELECT * FROM facts.position WHERE wallet_id = $1 ORDER BY token_id DESC LIMIT $2) AS newest
WHERE held_raw > 0 ORDER BY cost_wei DESC, last_s DESC, token_id LIMIT $3
"""


async def list_held(connection: Connection, wallet_id: int) -> list[OpenPosition]:
    """Of its positions with something left those that cost most, of the ``MOST_ROWS`` newest tokens'."""
    rows = await connection.fetch(_HELD, wallet_id, MOST_ROWS, MOST_HELD_SHOWN)
    found = []
    for token_id, held_raw, cost, bought, spent, unpriced, micro_usd, last_s in rows:
        paid = int(spent), unpriced, _whole(micro_usd)
        found.append(OpenPosition(token_id, int(held_raw), int(cost), int(bought), *paid, last_s))
    return found


_LAST_TRADES = """
SELECT DISTINCT ON (token_id) token_id, last_s, last_token_raw, last_eth_wei FROM (
    SELECT given.token_id, place.id, told.* FROM unnest($1::int[]) AS given (token_id)
    CROSS JOIN LATERAL (
        SELECT pool.id, pool.quote_id FROM facts.pool AS pool
        WHERE pool.token_id = given.token_id AND pool.in_money_from IS NOT NULL ORDER BY pool.id LIMIT $7
    ) AS place
    JOIN facts.address AS quote ON quote.id = place.quote_id
    CROSS JOIN LATERAL (
        SELECT count(DISTINCT trader_id) AS traders, sum(wei) AS wei,
            (array_agg(at_s ORDER BY nth))[1] AS last_s,
            (array_agg(token_raw ORDER BY nth))[1] AS last_token_raw,
            (array_agg(wei ORDER BY nth))[1] AS last_eth_wei
        FROM (
            SELECT trader_id, at_s, token_raw,
                row_number() OVER (ORDER BY at_s DESC, block_number DESC, log_index DESC) AS nth,
                coalesce(eth_wei, CASE WHEN quote.address = ANY($2::bytea[]) THEN quote_raw END) AS wei
            FROM facts.trade
            WHERE pool_id = place.id AND at_s >= $4 AND at_s < $5 AND token_raw > 0
            ORDER BY at_s DESC, block_number DESC, log_index DESC LIMIT $6
        ) AS newest WHERE wei >= $3
    ) AS told
    WHERE told.traders > 0
) AS priced ORDER BY token_id, traders DESC, wei DESC, id
"""


async def last_trades(
    connection: Connection, token_ids: Collection[int], contracts: Contracts, now_s: int
) -> dict[int, LastTrade]:
    """The newest trade of each of these tokens that tells a price in eth, in the one of its
    ``PLACES_LOOKED_AT`` oldest places where most wallets stand behind the ``TRADES_LOOKED_AT`` newest trades:
    one trade in a place of his own must not be everybody's price. ``now_s``: of the newest block."""
    in_eth = [as_bytes(ZERO_ADDRESS), as_bytes(contracts.weth)]
    found: dict[int, LastTrade] = {}
    end_s = now_s + 1
    for back_s in PRICES_BACK_S:
        left = [one for one in token_ids if one not in found]
        if not left:
            break
        times = now_s - back_s, end_s
        looked_at = TRADES_LOOKED_AT, PLACES_LOOKED_AT
        rows = await connection.fetch(_LAST_TRADES, left, in_eth, LEAST_PRICED_WEI, *times, *looked_at)
        for token_id, at_s, token_raw, eth_wei in rows:
            found[token_id] = LastTrade(at_s, int(token_raw), int(eth_wei))
        end_s = now_s - back_s
    return found


def _whole(value: Decimal | None) -> int | None:
    return None if value is None else int(value)
