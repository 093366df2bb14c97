"""Prices, depth, holders and turnover of the tokens of a board, from the index: one statement for each.

A place is a pool or a curve. A price is that of the last trade in the place where most of the money goes in,
or, before that place opened, on the curve that the token was launched on; without what the launchpad kept."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple, Protocol

from roundtrip.domain.base.types import BPS, BURN_ADDRESSES, Address, Numeric
from roundtrip.domain.base.venue import VenueKind, is_curve
from roundtrip.domain.market.profit import DUST
from roundtrip.store.index.tokens import eth_quotes, ids_of
from roundtrip.store.server.rows import Connection, fetch
from roundtrip.venues.base import Contracts

SPANS_S = (0, 300, 3600, 86_400)
"""How long ago the prices are that changes are computed from."""
POINTS = 16
"""Prices of a sparkline before the newest one."""
MAX_TRADERS = 500
"""Traders of a token among whom its holders are counted."""
MAX_POSITIONS = 200
"""Positions of a pool that are summed, those with the most liquidity."""
MIN_WEI = 10**12
"""Smaller trades set no price: their amounts are rounded, and they cost nothing to make."""
MAX_COUNTED = 2_000
"""Trades of one place that a turnover counts, the newest."""
_MAX_PLACES = 5
"""Places of a token that a turnover counts, the oldest, besides that where most of the money goes in: anyone
can open any number of pools."""
_MAX_PASSED_OVER = 50
"""How many trades before a moment are searched for one that sets a price."""
_SEARCHED_S = 7 * 86_400
"""How long before a moment its last trade is looked for."""
_UNIT = 10**36

# $1 tokens, $2 places, $3 when each line begins, $4 now, $5 points, $6 spans, $7 quotes in eth, $8 smallest
# trade, $9 how long before a moment, $10 no trade is older
_PRICES = f"""
WITH asked AS MATERIALIZED (
    SELECT given.*, own.address = ANY($7::bytea[]) AS is_eth, curve.id AS curve_id
    FROM unnest($1::int[], $2::int[], $3::int[]) AS given (token_id, pool_id, from_s)
    JOIN facts.pool AS pool ON pool.id = given.pool_id
    JOIN facts.address AS own ON own.id = pool.quote_id
    LEFT JOIN facts.launch AS launch ON launch.token_id = given.token_id
    LEFT JOIN LATERAL (
        SELECT id FROM facts.pool AS one WHERE one.at = launch.at AND one.quote_id = pool.quote_id LIMIT 1
    ) AS curve ON curve.id <> given.pool_id
), moment AS MATERIALIZED (
    SELECT asked.token_id, n, CASE WHEN n < $5::int THEN from_s + (($4::int - from_s)::bigint * n / $5)::int
        ELSE $4 - ($6::int[])[n - $5 + 1] END AS at_s
    FROM asked CROSS JOIN generate_series(0, $5 + cardinality($6::int[]) - 1) AS n
), told AS MATERIALIZED (
    SELECT wanted.token_id, last.* FROM (
        SELECT token_id, pool_id, is_eth, array_agg(DISTINCT at_s) AS moments
        FROM asked JOIN moment USING (token_id) GROUP BY token_id, pool_id, is_eth
    ) AS wanted CROSS JOIN LATERAL facts.priced_trades(
        wanted.pool_id, wanted.moments, $9::int, $10::int, {_MAX_PASSED_OVER}, $8::numeric, wanted.is_eth
    ) AS last
), told_by_curve AS (
    SELECT wanted.token_id, last.* FROM (
        SELECT token_id, curve_id, is_eth, array_agg(DISTINCT at_s) AS moments
        FROM asked JOIN moment USING (token_id) WHERE curve_id IS NOT NULL
            AND (token_id, at_s) NOT IN (SELECT told.token_id, told.moment_s FROM told)
        GROUP BY token_id, curve_id, is_eth
    ) AS wanted CROSS JOIN LATERAL facts.priced_trades(
        wanted.curve_id, wanted.moments, $9::int, $10::int, {_MAX_PASSED_OVER}, $8::numeric, wanted.is_eth
    ) AS last
)
SELECT token_id, n, div(
    coalesce(eth_wei, quote_raw) * (quote_raw + CASE WHEN buys THEN -1 ELSE 1 END * coalesce(kept_raw, 0))
    * {_UNIT}, quote_raw * token_raw
) AS price
FROM moment JOIN (SELECT * FROM told UNION ALL SELECT * FROM told_by_curve) AS last USING (token_id)
WHERE last.moment_s = moment.at_s
"""  # noqa: S608

# $1 tokens, $2 places, $3 most traders, $4 part that is dust, $5 most positions, $6 position managers,
# $7 holders that never take anything out
_DEPTHS = """
SELECT given.token_id, pool.kind, quote.address AS quote, curve.raised_raw, held.quote_raw,
    state.liquidity AS active, held.kept,
    coalesce(pool.block_number >= cursor.positions_from AND pool.in_money_from <= pool.block_number, false)
        AS is_whole,
    owned.holders, owned.traders
FROM unnest($1::int[], $2::int[]) AS given (token_id, pool_id)
CROSS JOIN facts.cursor AS cursor
CROSS JOIN LATERAL (
    SELECT count(*) AS traders, count(*) FILTER (WHERE (bought_raw - sold_raw) * $4::int > bought_raw)
        AS holders
    FROM facts.positions_in(given.token_id, $3::int)
) AS owned
JOIN facts.pool AS pool ON pool.id = given.pool_id
JOIN facts.address AS token ON token.id = pool.token_id
JOIN facts.address AS quote ON quote.id = pool.quote_id
LEFT JOIN facts.curve AS curve ON curve.pool_id = pool.id
LEFT JOIN LATERAL (
    SELECT tick, liquidity FROM facts.pool_state AS one WHERE one.pool_id = pool.id
    ORDER BY block_number DESC LIMIT 1
) AS state ON true
LEFT JOIN LATERAL (
    SELECT sum(CASE WHEN token.address < quote.address
        THEN lp.liquidity::float8 * (greatest(low, least(high, at)) - low)
        ELSE lp.liquidity::float8 * (1 / greatest(low, least(high, at)) - 1 / high) END) AS quote_raw,
        sum(lp.liquidity) FILTER (WHERE low <= at AND at < high
            AND CASE WHEN lp.owner_id = ANY($6::int[]) THEN moved.to_id ELSE lp.owner_id END
                = ANY($7::int[])) AS kept
    FROM (
        SELECT * FROM facts.lp_position AS one WHERE one.pool_id = pool.id AND one.liquidity > 0
        ORDER BY one.liquidity DESC LIMIT $5
    ) AS lp
    CROSS JOIN LATERAL (SELECT power(1.0001::float8, lp.tick_lower / 2.0::float8) AS low,
        power(1.0001::float8, lp.tick_upper / 2.0::float8) AS high,
        power(1.0001::float8, state.tick / 2.0::float8) AS at) AS root
    LEFT JOIN LATERAL (
        SELECT to_id FROM facts.lp_transfer WHERE manager_id = lp.owner_id AND number = lp.number
        ORDER BY manager_id DESC, number DESC, block_number DESC, log_index DESC LIMIT 1
    ) AS moved ON lp.owner_id = ANY($6)
) AS held ON state.tick IS NOT NULL
"""

# $1 tokens, $2 places, $3 after, $4 up to, $5 most trades of a place, $6 most places, $7 quotes in eth
_WINDOW_TURNOVERS = """
SELECT given.token_id, coalesce(sum(wei) FILTER (WHERE buys), 0)::text AS in_wei,
    coalesce(sum(wei) FILTER (WHERE NOT buys), 0)::text AS out_wei,
    count(*) FILTER (WHERE buys)::int AS buys, count(*) FILTER (WHERE NOT buys)::int AS sells,
    count(DISTINCT trader_id)::int AS makers, coalesce(max(of_place) >= $5::int, false) OR EXISTS (
        SELECT FROM (SELECT id FROM facts.pool AS one WHERE one.token_id = given.token_id
            ORDER BY id OFFSET $6 LIMIT 2) AS later WHERE later.id <> given.pool_id
    ) AS is_cut
FROM unnest($1::int[], $2::int[]) AS given (token_id, pool_id) CROSS JOIN LATERAL (
    (SELECT id FROM facts.pool AS one WHERE one.token_id = given.token_id ORDER BY id LIMIT $6::int)
    UNION SELECT given.pool_id
) AS place
JOIN facts.pool AS pool ON pool.id = place.id JOIN facts.address AS quote ON quote.id = pool.quote_id
LEFT JOIN LATERAL (
    SELECT trader_id, buys, count(*) OVER () AS of_place,
        coalesce(eth_wei, CASE WHEN quote.address = ANY($7::bytea[]) THEN quote_raw END) AS wei
    FROM facts.trades_by_second(place.id, $3, $4, $5)
) AS trade ON wei IS NOT NULL GROUP BY given.token_id, given.pool_id
"""

# $1 tokens, $2 most places
_OPENED = """
SELECT given.token_id, least(launch.at_s, place.at_s) AS opened_s FROM unnest($1::int[]) AS given (token_id)
LEFT JOIN facts.launch AS launch ON launch.token_id = given.token_id
CROSS JOIN LATERAL (
    SELECT min(oldest.at_s) AS at_s FROM (
        SELECT at_s FROM facts.pool AS one WHERE one.token_id = given.token_id ORDER BY id LIMIT $2
    ) AS oldest
) AS place WHERE launch.at_s IS NOT NULL OR place.at_s IS NOT NULL
"""


class PlacedToken(Protocol):
    """A token, the place where most of its money goes in, and when the oldest of its places opened."""

    @property
    def token_id(self) -> int: ...
    @property
    def pool_id(self) -> int: ...
    @property
    def opened_s(self) -> int: ...


@dataclass(frozen=True, slots=True)
class PriceLine:
    """Prices of a token, in wei for 10^36 base units; None: not known. ``points``: the sparkline, the oldest
    first, the newest price last. ``spans``: the price of so many seconds ago, by ``SPANS_S``."""

    points: tuple[int | None, ...]
    spans: Mapping[int, int | None]

    @property
    def newest(self) -> int | None:
        """The newest price."""
        return self.spans[0]

    def change_bps(self, span_s: int) -> int | None:
        """The change within a span, in hundredths of a percent; None: not known."""
        then, now = self.spans[span_s], self.newest
        return (now - then) * BPS // then if then and now is not None else None


@dataclass(frozen=True, slots=True)
class MarketDepth:
    """What lies in the place where most of a token's money goes in. ``quote_raw``: of the money, in base
    units of ``quote``; None: not known. ``kept_bps``: the share of the depth at the price that nobody takes
    out, because the launchpad has it or it was burned; None: not known. ``holders``: wallets that bought more
    than they sold, among ``MAX_TRADERS``; ``more_hold``: there may be more, as so many traded. Transfers are
    not counted."""

    quote: Address
    quote_raw: int | None
    kept_bps: int | None
    holders: int
    more_hold: bool


@dataclass(frozen=True, slots=True)
class WindowTurnover:
    """What was traded of a token in a span, by the trades with a known worth in eth. ``makers``: different
    wallets. ``is_cut``: there may be more, since a place had ``MAX_COUNTED`` trades or more, or the token has
    more places than are counted."""

    in_wei: Numeric = 0
    out_wei: Numeric = 0
    buys: int = 0
    sells: int = 0
    makers: int = 0
    is_cut: bool = False


class _DepthRow(NamedTuple):
    token_id: int
    kind: VenueKind
    quote: Address
    raised_raw: Numeric | None
    quote_raw: float | None
    active: Decimal | None
    kept: Decimal | None
    is_whole: bool
    holders: int
    traders: int


async def read_prices(
    connection: Connection,
    flows: Sequence[PlacedToken],
    now_s: int,
    followed_s: int,
    contracts: Contracts,
    least_wei: int = MIN_WEI,
    many: int = POINTS,
) -> dict[int, PriceLine]:
    """The prices by token, with so ``many`` points before the newest. Each line begins when the token's
    oldest place opened, when the index began (``followed_s``), or a day ago: at the latest of these. Trades
    of less than ``least_wei`` are left out."""
    from_s = [max(flow.opened_s, followed_s, now_s - SPANS_S[-1]) for flow in flows]
    rows = await fetch(
        connection,
        tuple[tuple[int, int], Numeric],
        _PRICES,
        [flow.token_id for flow in flows],
        [flow.pool_id for flow in flows],
        from_s,
        now_s,
        many,
        list(SPANS_S),
        eth_quotes(contracts),
        least_wei,
        _SEARCHED_S,
        now_s - SPANS_S[-1] - _SEARCHED_S,
    )
    known = dict(rows)
    return {flow.token_id: _read_line(flow.token_id, known, many) for flow in flows}


def _read_line(token_id: int, known: Mapping[tuple[int, int], int], many: int) -> PriceLine:
    spans = {span_s: known.get((token_id, many + n)) for n, span_s in enumerate(SPANS_S)}
    points = tuple(known.get((token_id, n)) for n in range(many))
    return PriceLine((*points, spans[0]), spans)


async def read_depths(
    connection: Connection, flows: Collection[PlacedToken], contracts: Contracts
) -> dict[int, MarketDepth]:
    """The depth and the holders by token."""
    managers = {contracts.v3_position_manager, contracts.v4_position_manager}
    keepers = {*BURN_ADDRESSES, *contracts.launchpad_addresses()}
    numbers = await ids_of(connection, managers | keepers)
    rows = await fetch(
        connection,
        _DepthRow,
        _DEPTHS,
        [flow.token_id for flow in flows],
        [flow.pool_id for flow in flows],
        MAX_TRADERS,
        DUST,
        MAX_POSITIONS,
        [numbers[manager] for manager in managers if manager in numbers],
        [numbers[keeper] for keeper in keepers if keeper in numbers],
    )
    return {row.token_id: _read_depth(row) for row in rows}


def _read_depth(row: _DepthRow) -> MarketDepth:
    owned = row.holders, row.traders >= MAX_TRADERS
    if is_curve(row.kind):
        return MarketDepth(row.quote, row.raised_raw, BPS, *owned)
    # Where the index lacks a change, positions may be missing, or have less.
    if not row.is_whole or row.quote_raw is None:
        return MarketDepth(row.quote, None, None, *owned)
    kept_bps = int((row.kept or 0) * BPS / row.active) if row.active else None
    return MarketDepth(row.quote, int(row.quote_raw), kept_bps, *owned)


async def read_opened(connection: Connection, token_ids: Collection[int]) -> dict[int, int]:
    """When each of these tokens was launched, or the oldest of its places opened, whichever was first; those
    without either are left out."""
    rows = await fetch(connection, tuple[int, int], _OPENED, list(token_ids), _MAX_PLACES)
    return dict(rows)


async def read_turnovers(
    connection: Connection,
    flows: Collection[PlacedToken],
    span: tuple[int, int],
    contracts: Contracts,
    most: int = MAX_COUNTED,
) -> dict[int, WindowTurnover]:
    """What was traded of each token after the first and up to the second of ``span``, by token."""
    rows = await fetch(
        connection,
        tuple[int, WindowTurnover],
        _WINDOW_TURNOVERS,
        [flow.token_id for flow in flows],
        [flow.pool_id for flow in flows],
        *span,
        most,
        _MAX_PLACES,
        eth_quotes(contracts),
    )
    known = dict(rows)
    return {flow.token_id: known.get(flow.token_id, WindowTurnover()) for flow in flows}
