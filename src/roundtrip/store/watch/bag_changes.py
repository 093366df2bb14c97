"""What a wallet holds by the index, what has changed about it since it was bought, and what checks found then
and now. Each function uses the caller's connection and does not end the transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from roundtrip.domain.base.types import Address, Numeric
from roundtrip.domain.market.signals import NARROW_TICKS
from roundtrip.store.boards.signals import MAX_CHANGES, MAX_PLACES
from roundtrip.store.server.rows import Connection, fetch

from .happening_moves import WHOLE_WITHIN_S


@dataclass(frozen=True, slots=True)
class BagToken:
    """A token that a wallet holds by the index. ``held_raw``: what it bought and has not sold; 0 of a token
    it only received. ``cost_wei``: what that cost; None: the worth of some fill is unknown. ``realised_wei``:
    what its sales have brought over their cost, in all rounds; None as before. ``number``, ``at_s``: of the
    first buy of the round, or of the first transfer that is kept."""

    token_id: int
    held_raw: Numeric
    cost_wei: Numeric | None
    realised_wei: Numeric | None
    number: int
    at_s: int


_HELD = """
WITH held AS MATERIALIZED (
    SELECT token_id, held_raw, CASE WHEN round_unpriced = 0 THEN cost_wei END AS cost_wei,
        CASE WHEN unpriced = 0 THEN profit_wei + round_got_wei - round_spent_wei + cost_wei END
            AS realised_wei,
        round_number AS number, first_s
    FROM facts.position WHERE wallet_id = $1 AND held_raw > 0 ORDER BY token_id DESC LIMIT $2
), first AS MATERIALIZED (
    SELECT held.token_id, min(trade.at_s) AS at_s FROM held
    JOIN facts.trade AS trade ON trade.block_number = held.number AND trade.at_s >= held.first_s
    JOIN facts.pool AS pool ON pool.id = trade.pool_id AND pool.token_id = held.token_id
    WHERE trade.trader_id = $1 GROUP BY held.token_id
)
SELECT held.token_id, held.held_raw::text, held.cost_wei::text, held.realised_wei::text, held.number,
    coalesce(first.at_s, held.first_s) AS at_s
FROM held LEFT JOIN first ON first.token_id = held.token_id ORDER BY held.token_id DESC
"""
_GIVEN = """
WITH given AS MATERIALIZED (
    SELECT got.token_id, got.number, got.at_s FROM (
        SELECT token_id, sum(amount_raw) AS got_raw, min(block_number) AS number, min(at_s) AS at_s
        FROM facts.transfer WHERE to_id = $1 AND from_id <> $1 GROUP BY token_id
    ) AS got
    LEFT JOIN (
        SELECT token_id, sum(amount_raw) AS gone_raw FROM facts.transfer
        WHERE from_id = $1 AND to_id <> $1 GROUP BY token_id
    ) AS gone USING (token_id)
    WHERE got.got_raw > coalesce(gone.gone_raw, 0)
)
SELECT token_id, '0' AS held_raw, NULL AS cost_wei, NULL AS realised_wei, number, at_s FROM given
WHERE NOT EXISTS (
    SELECT FROM facts.position_of($1, given.token_id) AS bought WHERE bought.held_raw > 0
) ORDER BY token_id DESC LIMIT $2
"""


async def list_held(connection: Connection, wallet_id: int, limit: int) -> list[BagToken]:
    """The newest ``limit`` tokens that a wallet bought; where there is room, after them launchpad tokens that
    it only received, within the days for which transfers are kept."""
    tokens = await fetch(connection, BagToken, _HELD, wallet_id, limit)
    if len(tokens) < limit:
        tokens += await fetch(connection, BagToken, _GIVEN, wallet_id, limit - len(tokens))
    return tokens


@dataclass(frozen=True, slots=True)
class DeployerSold:
    """A launchpad token's deployer, how much of the token he had as far as that is known, and how much he has
    sold since."""

    deployer: Address
    had_raw: Numeric
    sold_raw: Numeric


_SOLD = """
SELECT given.token_id, deployer.address AS deployer,
    (greatest(own.bought_raw, own.sold_raw, 0) - coalesce(own.sold_raw, 0) + since.sold_raw)::text AS had_raw,
    since.sold_raw::text
FROM unnest($1::int[], $2::int[], $3::int[]) AS given (token_id, number, at_s)
JOIN facts.launch AS launch ON launch.token_id = given.token_id
JOIN facts.address AS deployer ON deployer.id = launch.deployer_id
LEFT JOIN LATERAL facts.position_of(launch.deployer_id, given.token_id) AS own ON true
CROSS JOIN LATERAL (
    SELECT coalesce(sum(trade.token_raw), 0) AS sold_raw
    FROM facts.trades_of(launch.deployer_id, given.at_s) AS trade
    JOIN facts.pool AS pool ON pool.id = trade.pool_id
    WHERE own.sells > 0 AND own.last_s >= given.at_s AND pool.token_id = given.token_id AND NOT trade.buys
        AND trade.block_number >= given.number
) AS since
"""


async def deployers_sold(connection: Connection, bought: Sequence[BagToken]) -> dict[int, DeployerSold]:
    """By token, what its deployer has sold since it was bought. What he got other than by buying is unknown:
    it is taken to be at least what he sold."""
    return dict(await fetch(connection, tuple[int, DeployerSold], _SOLD, *_columns_of(bought)))


@dataclass(frozen=True, slots=True)
class LiquidityLeft:
    """The money pool in which a token had most liquidity when it was bought: how much that was, weighted by
    the width of its ranges, and how much of it is gone, net of what others have added since."""

    before: int
    gone: int


_LEFT = """
SELECT given.token_id, sums.changes,
    coalesce(sums.before, 0)::text AS before, coalesce(sums.since, 0)::text AS since
FROM unnest($1::int[], $2::int[], $3::int[]) AS given (token_id, number, at_s)
CROSS JOIN LATERAL (
    SELECT pool.id, pool.at_s FROM facts.pool AS pool
    WHERE pool.token_id = given.token_id AND pool.in_money_from IS NOT NULL
        AND pool.block_number >= $4 AND pool.at_s > $5
    ORDER BY pool.id LIMIT $6
) AS place
CROSS JOIN LATERAL (
    SELECT count(*) AS changes,
        sum(weight) FILTER (WHERE block_number < given.number) AS before,
        sum(weight) FILTER (WHERE block_number >= given.number) AS since
    FROM (
        SELECT change.block_number,
            change.liquidity_delta * least(change.tick_upper - change.tick_lower, $7) AS weight
        FROM facts.liquidity AS change WHERE change.pool_id = place.id AND change.at_s >= place.at_s
        LIMIT $8 + 1
    ) AS changes
) AS sums
"""


async def liquidity_left(
    connection: Connection, bought: Sequence[BagToken], start_number: int, now_s: int
) -> dict[int, LiquidityLeft]:
    """By token; a token is left out where a change of its liquidity is unknown. ``start_number``: the index's
    first block; ``now_s``: the time of its last."""
    rows = await fetch(
        connection,
        tuple[int, int, Numeric, Numeric],
        _LEFT,
        *_columns_of(bought),
        start_number,
        now_s - WHOLE_WITHIN_S,
        MAX_PLACES,
        NARROW_TICKS,
        MAX_CHANGES,
    )
    largest: dict[int, LiquidityLeft] = {}
    incomplete = {token_id for token_id, changes, _, _ in rows if changes > MAX_CHANGES}
    for token_id, _, before, since in rows:
        known = largest.get(token_id)
        if token_id not in incomplete and before > (0 if known is None else known.before):
            largest[token_id] = LiquidityLeft(before, min(before, max(0, -since)))
    return largest


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """A stored check."""

    checked_at: datetime
    block_number: int
    code: str
    level: str
    document: bytes


_FIELDS = "checked_at, block_number, verdict_code AS code, verdict_level AS level, document"
_AT_BUY_AND_NEWEST = f"""
SELECT given.token_id, one.* FROM unnest($1::int[], $2::int[], $3::int[]) AS given (token_id, number, at_s)
JOIN facts.address AS token ON token.id = given.token_id
CROSS JOIN LATERAL (
    (SELECT false AS is_now, {_FIELDS} FROM facts.evidence
    WHERE evidence.token = token.address AND block_number <= given.number ORDER BY id DESC LIMIT 1)
    UNION ALL
    (SELECT true, {_FIELDS} FROM facts.evidence
    WHERE evidence.token = token.address ORDER BY id DESC LIMIT 1)
) AS one
"""  # noqa: S608


async def checks(
    connection: Connection, bought: Sequence[BagToken]
) -> tuple[dict[int, StoredCheck], dict[int, StoredCheck]]:
    """By token: the newest check made at the buy or before it, and the newest of all."""
    at_buy: dict[int, StoredCheck] = {}
    newest: dict[int, StoredCheck] = {}
    rows = await fetch(connection, tuple[int, bool, StoredCheck], _AT_BUY_AND_NEWEST, *_columns_of(bought))
    for token_id, is_now, check in rows:
        (newest if is_now else at_buy)[token_id] = check
    return at_buy, newest


def _columns_of(bought: Collection[BagToken]) -> tuple[list[int], list[int], list[int]]:
    return (
        [token.token_id for token in bought],
        [token.number for token in bought],
        [token.at_s for token in bought],
    )
