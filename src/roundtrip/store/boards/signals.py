"""What wallets did with launched tokens since a given time. A deed is everything of one kind (sold, moved or
burned) that one wallet did with one token; it is shown with its largest transaction."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Numeric
from roundtrip.domain.base.venue import LAUNCHPAD_POOLS
from roundtrip.domain.market.signals import Turnover
from roundtrip.store.server.rows import Connection, fetch

MAX_DEEDS = 700
"""How many deeds of each kind are read: those worth most, then those of the largest share of the supply. As
many whose worth and share are both unknown are read besides, so that they displace no other."""
MAX_WITHDRAWALS = 30
"""How many withdrawals are read: the largest of known worth, and as many of unknown worth, the newest."""
MAX_LAUNCHERS = 50
"""How many launchers are read, the newest."""
MAX_CHANGES = 2_000
"""The share of a change is unknown in a pool with more liquidity changes than this."""
LIQUIDITY_KEPT_S = 89 * 86_400
"""Of an older pool some liquidity changes may be deleted already."""
TRADED_WITHIN_S = 86_400
"""A pool counts by what was traded in it within this time."""
MAX_POOLS, MAX_TRADES = 30, 1_000
"""How many of a token's oldest pools are compared, and how many trades of each are read: enough to tell which
pools matter."""


@dataclass(frozen=True, slots=True)
class SignalDeed:
    """One kind of deed (``what``: sold, moved or burned) by one wallet with one token."""

    what: str
    token_id: int
    wallet_id: int


@dataclass(frozen=True, slots=True)
class DeedSum:
    """The sums of a deed. ``eth_wei``: what it brought; None: not known of some of it. ``supply_raw``: the
    token's supply; None: not known."""

    deed: SignalDeed
    token_raw: Numeric
    eth_wei: Numeric | None
    supply_raw: Numeric | None


@dataclass(frozen=True, slots=True)
class TracedDeed:
    """The largest transaction of a deed (``evidence``), the number of recipients, and the one that received
    most."""

    evidence: Spot
    recipients: int
    most_id: int | None
    most_raw: Numeric


_DEEDS = """
WITH summed AS MATERIALIZED (
    SELECT what, token_id, wallet_id, sum(token_raw) AS token_raw, max(block_number) AS block_number,
        CASE WHEN NOT bool_or(eth_wei IS NULL) THEN sum(eth_wei) END AS eth_wei
    FROM facts.inside WHERE at_s > $1 GROUP BY what, token_id, wallet_id
), supply AS MATERIALIZED (
    SELECT of.token_id, nullif(token.supply_raw, 0) AS supply_raw
    FROM (SELECT DISTINCT token_id FROM summed) AS of
    JOIN facts.address AS address ON address.id = of.token_id
    LEFT JOIN facts.token AS token ON token.token = address.address
), much AS (
    SELECT summed.*, supply_raw, row_number() OVER (
        PARTITION BY what, supply_raw IS NULL AND eth_wei IS NULL
        ORDER BY eth_wei DESC NULLS LAST, token_raw / supply_raw DESC NULLS LAST, block_number DESC
    ) AS place
    FROM summed JOIN supply USING (token_id)
    WHERE eth_wei >= $3::text::numeric OR token_raw * 10000 >= $2 * supply_raw
        OR (supply_raw IS NULL AND eth_wei IS NULL)
)
SELECT what, token_id, wallet_id, token_raw::text, eth_wei::text, supply_raw::text FROM much
WHERE place <= $4
"""


async def set_plan_mode(connection: Connection) -> None:
    """Has the statements of this transaction planned for their arguments, without parallel workers: a generic
    plan reads all stored days, and workers take longer to start than the statements run."""
    await connection.execute(
        "SELECT set_config('plan_cache_mode', 'force_custom_plan', true),"
        " set_config('max_parallel_workers_per_gather', '0', true)"
    )


async def deeds(connection: Connection, after_s: int, least_bps: int, least_wei: int) -> list[DeedSum]:
    """The deeds of at least so much of the supply or of eth, and those of unknown size; in no order."""
    return await fetch(connection, DeedSum, _DEEDS, after_s, least_bps, str(least_wei), MAX_DEEDS)


_LARGEST_TXS = """
WITH own AS MATERIALIZED (
    SELECT one.* FROM unnest($2::text[], $3::int[], $4::int[]) AS given (what, token_id, wallet_id)
    JOIN facts.inside AS one USING (what, token_id, wallet_id) WHERE one.at_s > $1
), largest AS (
    SELECT DISTINCT ON (what, token_id, wallet_id) * FROM (
        SELECT what, token_id, wallet_id, tx_hash, sum(token_raw) AS token_raw,
            max(block_number) AS block_number, max(log_index) AS log_index, max(at_s) AS at_s
        FROM own GROUP BY what, token_id, wallet_id, tx_hash
    ) AS per_tx ORDER BY what, token_id, wallet_id, token_raw DESC, block_number, log_index
), most AS (
    SELECT DISTINCT ON (what, token_id, wallet_id) * FROM (
        SELECT what, token_id, wallet_id, other_id, sum(token_raw) AS token_raw,
            count(other_id) OVER (PARTITION BY what, token_id, wallet_id) AS recipients
        FROM own GROUP BY what, token_id, wallet_id, other_id
    ) AS per_other ORDER BY what, token_id, wallet_id, token_raw DESC, other_id
)
SELECT what, token_id, wallet_id, largest.block_number, largest.log_index, largest.at_s, largest.tx_hash,
    most.recipients, most.other_id AS most_id, most.token_raw::text AS most_raw
FROM largest JOIN most USING (what, token_id, wallet_id)
"""


async def trace_deeds(
    connection: Connection, after_s: int, found: Collection[SignalDeed]
) -> dict[SignalDeed, TracedDeed]:
    """The largest transaction and the recipients of each of these deeds, since ``after_s``."""
    rows = await fetch(
        connection,
        tuple[SignalDeed, TracedDeed],
        _LARGEST_TXS,
        after_s,
        [deed.what for deed in found],
        [deed.token_id for deed in found],
        [deed.wallet_id for deed in found],
    )
    return dict(rows)


@dataclass(frozen=True, slots=True)
class PoolWithdrawal:
    """What a wallet took out of a pool and did not put back. ``is_own``: the launch created it.
    ``token_raw``, ``quote_raw`` None: the pool's logs do not say. ``weight``, ``before``: the
    liquidity that was taken and that was there before, times the width of its range; None: not known."""

    pool_id: int
    is_own: bool
    token_id: int
    quote_id: int
    wallet_id: int
    token_raw: Numeric | None
    quote_raw: Numeric | None
    weight: Numeric
    before: Numeric | None
    evidence: Spot


_WITHDRAWALS = """
WITH recent AS MATERIALIZED (
    SELECT change.pool_id, change.sender_id, change.block_number, change.log_index, change.at_s,
        change.tx_hash, change.token_raw, change.quote_raw, pool.token_id, pool.quote_id,
        pool.at = launch.at OR pool.kind = ANY($11::text[]) AS is_own,
        change.liquidity_delta * least(change.tick_upper - change.tick_lower, $2) AS weight
    FROM facts.liquidity AS change
    JOIN facts.pool AS pool ON pool.id = change.pool_id
    JOIN facts.launch AS launch ON launch.token_id = pool.token_id
    WHERE change.at_s > $1
), begun AS (
    SELECT pool_id, sender_id, min(block_number) AS first_number, min(at_s) AS first_s FROM (
        SELECT pool_id, sender_id, block_number, min(at_s) AS at_s FROM recent
        GROUP BY pool_id, sender_id, block_number HAVING sum(weight) < 0
    ) AS taking GROUP BY pool_id, sender_id
), gone AS MATERIALIZED (
    SELECT pool_id, sender_id, first_number, first_s, token_id, quote_id, is_own, -sum(weight) AS weight,
        CASE WHEN NOT bool_or(token_raw IS NULL) THEN -sum(token_raw) END AS token_raw,
        CASE WHEN NOT bool_or(quote_raw IS NULL) THEN -sum(quote_raw) END AS quote_raw
    FROM begun JOIN recent USING (pool_id, sender_id) WHERE recent.block_number >= begun.first_number
    GROUP BY pool_id, sender_id, first_number, first_s, token_id, quote_id, is_own HAVING sum(weight) < 0
), chosen AS MATERIALIZED (
    (SELECT gone.* FROM gone JOIN unnest($7::int[], $8::float8[]) AS price (quote_id, wei) USING (quote_id)
    WHERE quote_raw IS NOT NULL ORDER BY quote_raw * price.wei DESC, first_number DESC LIMIT $5)
    UNION ALL
    (SELECT * FROM gone WHERE (quote_raw IS NULL OR quote_id <> ALL ($7::int[])) AND (is_own OR EXISTS (
        SELECT FROM facts.trades_by_second(gone.pool_id, $9, $10, 1)
    )) ORDER BY first_number DESC LIMIT $5)
), largest AS (
    SELECT DISTINCT ON (pool_id, sender_id) pool_id, sender_id, tx_hash, recent.block_number, log_index, at_s
    FROM chosen JOIN recent USING (pool_id, sender_id)
    WHERE recent.block_number >= chosen.first_number AND recent.weight < 0
    ORDER BY pool_id, sender_id, recent.weight, recent.block_number, log_index
)
SELECT pool_id, chosen.is_own, chosen.token_id, chosen.quote_id, sender_id AS wallet_id,
    chosen.token_raw::text, chosen.quote_raw::text, chosen.weight::text,
    CASE WHEN earlier.changes <= $6 AND pool.block_number >= $3 AND pool.at_s > $4
        THEN earlier.weight END::text AS before,
    largest.block_number, largest.log_index, largest.at_s, largest.tx_hash
FROM chosen JOIN largest USING (pool_id, sender_id)
JOIN facts.pool AS pool ON pool.id = pool_id
CROSS JOIN LATERAL (
    SELECT count(*) AS changes, sum(weight) AS weight FROM (
        SELECT liquidity_delta * least(tick_upper - tick_lower, $2) AS weight
        FROM facts.liquidity AS change WHERE change.pool_id = chosen.pool_id
        AND change.at_s >= pool.at_s AND change.at_s <= chosen.first_s
        AND change.block_number < chosen.first_number LIMIT $6 + 1
    ) AS some_changes
) AS earlier
"""


async def liquidity_left(
    connection: Connection,
    after_s: int,
    now_s: int,
    start_number: int,
    most_ticks: int,
    wei_each: Mapping[int, float],
) -> list[PoolWithdrawal]:
    """What was taken out of the pools of launched tokens since ``after_s``, in no order: from the first block
    in which a wallet took out more than it put in. ``start_number``: the index's first block; not every
    change is known of an older pool. ``most_ticks``: wider ranges count no more. ``wei_each``: the worth of a
    base unit of each quote, to find the largest. Where that is not known, a pool without a trade for a day
    does not count."""
    return await fetch(
        connection,
        PoolWithdrawal,
        _WITHDRAWALS,
        after_s,
        most_ticks,
        start_number,
        now_s - LIQUIDITY_KEPT_S,
        MAX_WITHDRAWALS,
        MAX_CHANGES,
        list(wei_each),
        list(wei_each.values()),
        now_s - TRADED_WITHIN_S,
        now_s,
        [*LAUNCHPAD_POOLS],
    )


_TURNOVERS = """
WITH place AS (
    SELECT given.token_id, pool.id FROM unnest($1::int[]) AS given (token_id) CROSS JOIN LATERAL (
        SELECT id FROM facts.pool WHERE pool.token_id = given.token_id AND in_money_from IS NOT NULL
        ORDER BY id LIMIT $5
    ) AS pool
    UNION SELECT token_id, id FROM facts.pool WHERE id = ANY($2::int[])
)
SELECT token_id, id AS pool_id, traded.* FROM place CROSS JOIN LATERAL (
    SELECT count(*) AS trades, coalesce(sum(wei), 0)::text AS wei FROM (
        SELECT coalesce(eth_wei, CASE WHEN pool.quote_id = ANY($7::int[]) THEN quote_raw END) AS wei
        FROM facts.trades_by_second(place.id, $3, $4, $6::int) JOIN facts.pool AS pool ON pool.id = pool_id
    ) AS some_trades
) AS traded
"""


async def turnovers(
    connection: Connection, pools: Collection[tuple[int, int]], now_s: int, in_eth: Collection[int]
) -> dict[int, dict[int, Turnover]]:
    """What was traded within a day in these pools, given as token and pool, and in the tokens' oldest ones:
    by token, then by pool. ``in_eth``: quotes that are eth."""
    token_ids, pool_ids = {token_id for token_id, _ in pools}, [pool_id for _, pool_id in pools]
    rows = await fetch(
        connection,
        tuple[int, int, Turnover],
        _TURNOVERS,
        list(token_ids),
        pool_ids,
        now_s - TRADED_WITHIN_S,
        now_s,
        MAX_POOLS,
        MAX_TRADES,
        list(in_eth),
    )
    by_token: dict[int, dict[int, Turnover]] = {token_id: {} for token_id in token_ids}
    for token_id, pool_id, turnover in rows:
        by_token[token_id][pool_id] = turnover
    return by_token


@dataclass(frozen=True, slots=True)
class NewestLaunch:
    """A wallet's newest launch, and how many it made since the given time."""

    token_id: int
    deployer_id: int
    launches: int
    evidence: Spot


_LAUNCHERS = """
SELECT token_id, deployer_id, launches, block_number, log_index, at_s, tx_hash FROM (
    SELECT DISTINCT ON (deployer_id) deployer_id, token_id, tx_hash, block_number, log_index, at_s,
        count(*) OVER (PARTITION BY deployer_id) AS launches
    FROM facts.launch WHERE at_s > $1 AND generation <> 1
    ORDER BY deployer_id, block_number DESC, log_index DESC
) AS newest ORDER BY block_number DESC, log_index DESC LIMIT $2
"""


async def launchers(connection: Connection, after_s: int) -> list[NewestLaunch]:
    """The wallets that launched since ``after_s``, the newest first. Launches of generation 1, straight
    into a v3 pool, are left out."""
    return await fetch(connection, NewestLaunch, _LAUNCHERS, after_s, MAX_LAUNCHERS)
