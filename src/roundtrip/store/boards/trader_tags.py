"""What the index knows of wallets that trade a token. Runs on the caller's connection and ends no
transaction."""

from collections.abc import Collection
from typing import NamedTuple

from roundtrip.domain.holders.findings import MIN_BUNDLE
from roundtrip.domain.holders.launch_window import MAX_LAUNCH_BUYERS, WINDOW_BLOCKS
from roundtrip.domain.market.fairness import FAIRNESS
from roundtrip.domain.market.winners import SPANS
from roundtrip.store.server.rows import Connection, fetch

_WITHIN_S = 600
"""The launch window is shorter than this on every chain: so few days of trades are looked at."""

# $1 token, $2 wallets, $3 most_funded, $4 blocks of the window, $5 wallets of a bundle, $6 spans of boards
_TAGS = f"""
WITH begun AS MATERIALIZED (
    SELECT launch.deployer_id, launch.block_number, launch.at_s, pool.id AS pool_id
    FROM facts.launch AS launch JOIN facts.pool AS pool ON pool.at = launch.at WHERE launch.token_id = $1
), early AS MATERIALIZED (
    SELECT DISTINCT trade.trader_id FROM begun JOIN facts.trade AS trade ON trade.pool_id = begun.pool_id
        AND trade.at_s BETWEEN begun.at_s AND begun.at_s + {_WITHIN_S}
        AND trade.block_number <= begun.block_number + $4
    WHERE trade.buys AND trade.trader_id <> begun.deployer_id LIMIT {MAX_LAUNCH_BUYERS}
), bundled AS MATERIALIZED (
    SELECT unnest(array_agg(early.trader_id)) AS wallet_id
    FROM early JOIN facts.origin AS origin ON origin.wallet_id = early.trader_id
    WHERE origin.funder_id IS NOT NULL GROUP BY origin.funder_id HAVING count(*) >= $5 AND (
        SELECT count(*) FROM (
            SELECT FROM facts.origin AS paid WHERE paid.funder_id = origin.funder_id LIMIT $3::int + 1
        ) AS few
    ) <= $3::int
), shared AS MATERIALIZED (
    SELECT (SELECT count(*) FROM (
        SELECT FROM facts.origin AS paid WHERE paid.funder_id = begun.deployer_id LIMIT $3::int + 1
    ) AS few) > $3::int AS pays_many FROM begun
)
SELECT given.id AS wallet_id,
    EXISTS (SELECT FROM begun WHERE begun.deployer_id = given.id) AS is_deployer,
    EXISTS (SELECT FROM facts.origin AS origin JOIN begun ON begun.deployer_id = origin.funder_id
        JOIN shared ON NOT shared.pays_many WHERE origin.wallet_id = given.id) AS is_funded_by_deployer,
    given.id IN (SELECT trader_id FROM early) AS is_sniper,
    given.id IN (SELECT wallet_id FROM bundled) AS is_bundled, board.span, board.rank
FROM unnest($2::int[]) AS given (id) LEFT JOIN LATERAL (
    SELECT winner.span, winner.rank FROM facts.winner AS winner
    WHERE winner.wallet_id = given.id AND winner.profit_wei > 0
    ORDER BY array_position($6::text[], winner.span) LIMIT 1
) AS board ON true
"""  # noqa: S608


class TraderTags(NamedTuple):
    """What is known of a wallet. ``is_sniper``: it bought in the launch window and is not the deployer.
    ``is_bundled``: at least two more of those had their first eth from the same wallet, which did not pay
    crowds. ``span``, ``rank``: its rank among the winners; None: it is not on a board."""

    wallet_id: int
    is_deployer: bool
    is_funded_by_deployer: bool
    is_sniper: bool
    is_bundled: bool
    span: str | None
    rank: int | None


async def read_trader_tags(
    connection: Connection, token_id: int, wallet_ids: Collection[int]
) -> dict[int, TraderTags]:
    """The tags of each of these wallets, as far as the index knows."""
    rows = await fetch(
        connection,
        TraderTags,
        _TAGS,
        token_id,
        sorted(set(wallet_ids)),
        FAIRNESS.most_funded,
        WINDOW_BLOCKS,
        MIN_BUNDLE,
        list(SPANS),
    )
    return {row.wallet_id: row for row in rows}
