"""Trades, launches and graduations, as rules see them."""

from typing import NamedTuple

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, Numeric
from roundtrip.domain.market.price_history import MAX_MICRO_USD
from roundtrip.domain.watch.rules import Happening
from roundtrip.store.server.rows import fetch, fetch_value

from .happening_rows import (
    LAUNCHED_RAW,
    PPM,
    Arguments,
    FactSpan,
    HappeningPage,
    HappeningReader,
    RuleFilter,
    page,
)

LARGE_WEI, LARGE_MICRO_USD, LARGE_RAW = 10**17, 300 * 10**6, 10**25
"""A rule's threshold from one of these on is tried by size (index trade_large_...); a lower one, on the
newest trades."""
FEW = 40_000
"""Rows of a day that are few enough to sort."""
PARTS = 96
"""The rows of a day are estimated from one of this many parts of it."""


class _TradingRow(NamedTuple):
    happening: Happening
    is_counted: bool

    @property
    def spot(self) -> Spot:
        return self.happening.spot


async def trades(
    reader: HappeningReader, span: FactSpan, rule_filter: RuleFilter, buys: bool | None = None
) -> HappeningPage:
    """buying, selling; ``buys`` None: both. Worth what the sync stored with them; part of the token's
    supply."""
    arguments, above = Arguments(), rule_filter.above("usd")
    if above is not None and above >= MAX_MICRO_USD:
        return HappeningPage((), None)
    chosen = await _share_sql(reader, arguments, span, rule_filter, buys)
    if chosen is None:
        where = _condition_sql(arguments, span, rule_filter, buys) + _threshold_sql(arguments, rule_filter)
        chosen = _chosen_sql(
            arguments, span, where, _has_index(rule_filter) and await _is_few(reader, arguments, span, where)
        )
    statement = _NAMED.format(chosen=chosen, eth=arguments(reader.eth_ids), launched=LAUNCHED_RAW)
    rows = await reader.rows(_TradingRow, statement, arguments)
    return page(rows, [row.happening for row in rows if row.is_counted], span)


_FIELDS = (
    "trade.at_s, trade.block_number, trade.log_index, trade.tx_hash, trade.trader_id, trade.buys,"
    " trade.pool_id, trade.token_raw, trade.quote_raw, trade.eth_wei, trade.micro_usd"
)
_NAMED = """
WITH chosen AS MATERIALIZED ({chosen})
SELECT CASE WHEN chosen.buys THEN 'buying' ELSE 'selling' END AS verb, chosen.block_number, chosen.log_index,
    chosen.at_s, chosen.tx_hash, trader.address AS wallet, token.address AS token,
    coalesce(chosen.eth_wei, CASE WHEN pool.quote_id = ANY({eth}::int[]) THEN chosen.quote_raw END)::text
        AS eth_wei,
    chosen.micro_usd::text, chosen.token_raw::text AS part_raw,
    CASE WHEN launch.token_id IS NULL THEN nullif(told.supply_raw, 0) ELSE {launched}::numeric END::text
        AS whole_raw,
    false AS by_deployer, pool.in_money_from IS NOT NULL AS is_counted
FROM chosen JOIN facts.pool AS pool ON pool.id = chosen.pool_id
JOIN facts.address AS trader ON trader.id = chosen.trader_id
JOIN facts.address AS token ON token.id = pool.token_id
LEFT JOIN facts.launch AS launch ON launch.token_id = pool.token_id
LEFT JOIN facts.token AS told ON told.token = token.address
"""


def _condition_sql(arguments: Arguments, span: FactSpan, rule_filter: RuleFilter, buys: bool | None) -> str:
    parts = [arguments.within(span, "trade")]
    if buys is not None:
        parts.append("trade.buys" if buys else "NOT trade.buys")
    if rule_filter.wallets is not None:
        parts.append(f"trade.trader_id = ANY({arguments(rule_filter.wallets)}::int[])")
    if rule_filter.pools is not None:
        parts.append(f"trade.pool_id = ANY({arguments(rule_filter.pools)}::int[])")
    return " AND ".join(parts)


def _threshold_sql(arguments: Arguments, rule_filter: RuleFilter) -> str:
    """The condition of a threshold that the rows themselves decide."""
    wei, micro_usd = rule_filter.above("eth"), rule_filter.above("usd")
    if wei is not None:
        return f" AND coalesce(trade.eth_wei, trade.quote_raw) > {arguments(wei)}::numeric"
    if micro_usd is not None:
        return f" AND trade.micro_usd > {arguments(micro_usd)}::bigint"
    if rule_filter.least_raw is not None:
        return f" AND trade.token_raw > {arguments(rule_filter.least_raw)}::numeric"
    return ""


def _has_index(rule_filter: RuleFilter) -> bool:
    """Whether an index finds what a rule lets through."""
    if rule_filter.wallets is not None or rule_filter.pools is not None:
        return True
    wei, micro_usd = rule_filter.above("eth"), rule_filter.above("usd")
    return (wei is not None and wei >= LARGE_WEI) or (micro_usd is not None and micro_usd >= LARGE_MICRO_USD)


async def _is_few(reader: HappeningReader, arguments: Arguments, span: FactSpan, where: str) -> bool:
    """Whether the rows are few enough to sort, as estimated from the newest part of the span. Where there are
    more, an index walk meets the newest soon. Without LIMIT: with one, the planner may walk the whole day
    for rows that do not exist."""
    if span.limit is None:
        return True
    counting = Arguments()
    counting.values = list(arguments.values)
    newest_s = min(span.to_s, span.before[0])
    part_s = max(1, (newest_s - span.from_s) // PARTS)
    count = await fetch_value(
        reader.connection,
        int,
        f"SELECT count(*) FROM facts.trade AS trade WHERE {where}"  # noqa: S608
        f" AND trade.at_s > {counting(newest_s - part_s)}::int AND trade.at_s <= {counting(newest_s)}::int",
        *counting.values,
    )
    return count * PARTS < FEW


def _chosen_sql(
    arguments: Arguments, span: FactSpan, where: str, is_few: bool, source: str = "facts.trade AS trade"
) -> str:
    if not is_few:
        return f"SELECT {_FIELDS} FROM {source} WHERE {where} AND {arguments.newest(span, 'trade')}"  # noqa: S608
    # MATERIALIZED, then sorted: otherwise the planner may walk the day from its end until it has met enough
    # rows, which may never happen.
    return (
        f"WITH trade AS MATERIALIZED (SELECT {_FIELDS} FROM {source} WHERE {where})"  # noqa: S608
        f" SELECT {_FIELDS} FROM trade WHERE {arguments.newest(span, 'trade')}"
    )


_SMALL = """
SELECT pool.id, told.supply_raw::text AS supply FROM facts.token AS told
JOIN facts.address AS token ON token.address = told.token
JOIN facts.pool AS pool ON pool.token_id = token.id AND pool.in_money_from IS NOT NULL
WHERE told.supply_raw > 0 AND told.supply_raw < 10::numeric ^ 27
    AND NOT EXISTS (SELECT FROM facts.launch WHERE launch.token_id = token.id)
"""


async def _share_sql(
    reader: HappeningReader, arguments: Arguments, span: FactSpan, rule_filter: RuleFilter, buys: bool | None
) -> str | None:
    """A query for trades of more than a part of a token's supply: those of more base units than that part
    of a launch, whichever token it is, and those of tokens with a smaller supply. None: the rule has no such
    threshold."""
    ppm = rule_filter.above("%")
    if ppm is None or rule_filter.token is not None:
        return None
    least_raw = ppm * LAUNCHED_RAW // PPM
    where = (
        f"{_condition_sql(arguments, span, rule_filter, buys)}"
        f" AND trade.token_raw > {arguments(least_raw)}::numeric"
    )
    has_index = least_raw >= LARGE_RAW or rule_filter.wallets is not None
    arms = [_chosen_sql(arguments, span, where, has_index and await _is_few(reader, arguments, span, where))]
    small = await fetch(reader.connection, tuple[int, Numeric], _SMALL)
    if small:
        ids = arguments([pool_id for pool_id, _ in small])
        least = arguments([ppm * supply_raw // PPM for _, supply_raw in small])
        source = (
            f"unnest({ids}::int[], {least}::numeric[]) AS small (id, least_raw)"
            " JOIN facts.trade AS trade ON trade.pool_id = small.id"
        )
        where = f"{_condition_sql(arguments, span, rule_filter, buys)} AND trade.token_raw > small.least_raw"
        arms.append(_chosen_sql(arguments, span, where, True, source))
    both = " UNION ".join(f"({arm})" for arm in arms)
    return f"SELECT * FROM ({both}) AS trade WHERE {arguments.newest(span, 'trade')}"  # noqa: S608


# --- launches --------------------------------------------------------------------------------------

_LAUNCHES = """
WITH first AS (
    SELECT launch.token_id, launch.deployer_id, launch.at_s, launch.block_number, launch.log_index,
        launch.tx_hash, CASE WHEN launch.sender_id <> {zero}::int THEN bought.wei END AS wei,
        CASE WHEN launch.sender_id <> {zero}::int THEN bought.micro_usd END AS micro_usd
    FROM facts.launch AS launch CROSS JOIN LATERAL (
        SELECT CASE WHEN NOT bool_or(wei IS NULL) IS TRUE THEN coalesce(sum(wei), 0) END AS wei,
            CASE WHEN NOT bool_or(micro_usd IS NULL) IS TRUE THEN coalesce(sum(micro_usd), 0) END AS micro_usd
        FROM (
            SELECT trade.micro_usd, coalesce(
                trade.eth_wei, CASE WHEN pool.quote_id = ANY({eth}::int[]) THEN trade.quote_raw END
            ) AS wei
            FROM (
                SELECT pool.id, pool.quote_id FROM facts.pool AS pool
                WHERE pool.token_id = launch.token_id OFFSET 0
            ) AS pool
            CROSS JOIN LATERAL facts.trades_in_second(
                pool.id, launch.at_s, {from_s}::int, {to_s}::int
            ) AS trade
            WHERE trade.block_number = launch.block_number AND trade.tx_hash = launch.tx_hash
                AND trade.buys AND trade.trader_id IN (launch.deployer_id, launch.sender_id)
        ) AS each
    ) AS bought
    WHERE {within}{extra}
), chosen AS MATERIALIZED (SELECT * FROM first WHERE {threshold}{newest})
SELECT 'launching' AS verb, chosen.block_number, chosen.log_index, chosen.at_s, chosen.tx_hash,
    wallet.address AS wallet, token.address AS token, chosen.wei::text AS eth_wei, chosen.micro_usd::text,
    NULL AS part_raw, NULL AS whole_raw, false AS by_deployer
FROM chosen JOIN facts.address AS wallet ON wallet.id = chosen.deployer_id
JOIN facts.address AS token ON token.id = chosen.token_id
"""


async def launches(reader: HappeningReader, span: FactSpan, rule_filter: RuleFilter) -> HappeningPage:
    """launching, by the deployer. Worth what the deployer or the sender bought of the token in that
    transaction, 0 if nothing; not known of launches before the index's first block."""
    arguments, extra, threshold = Arguments(), "", ""
    if rule_filter.wallets is not None:
        extra += f" AND launch.deployer_id = ANY({arguments(rule_filter.wallets)}::int[])"
    if rule_filter.token is not None:
        extra += f" AND launch.token_id = {arguments(rule_filter.token)}::int"
    if (wei := rule_filter.above("eth")) is not None:
        threshold = f"first.wei > {arguments(wei)}::numeric AND "
    if (micro_usd := rule_filter.above("usd")) is not None:
        threshold = f"first.micro_usd > {arguments(micro_usd)}::numeric AND "
    statement = _LAUNCHES.format(
        zero=arguments(reader.zero_id),
        eth=arguments(reader.eth_ids),
        within=arguments.within(span, "launch"),
        from_s=arguments(span.from_s),
        to_s=arguments(span.to_s),
        newest=arguments.newest(span, "first"),
        extra=extra,
        threshold=threshold,
    )
    rows = await reader.rows(Happening, statement, arguments)
    return page(rows, rows, span)


_GRADUATIONS = """
SELECT step.block_number, step.log_index, step.at_s, step.tx_hash, wallet.address AS wallet,
    token.address AS token, quote.address AS quote, coalesce(step.quote_raw, swept.quote_raw)::text AS raised
FROM facts.launch_step AS step
JOIN facts.launch AS launch ON launch.token_id = step.token_id
JOIN facts.address AS wallet ON wallet.id = launch.deployer_id
JOIN facts.address AS token ON token.id = launch.token_id
JOIN facts.address AS quote ON quote.id = launch.quote_id
LEFT JOIN LATERAL (
    SELECT before.quote_raw FROM facts.launch_step AS before
    WHERE before.token_id = step.token_id AND before.step = 'swept'
        AND (before.block_number, before.log_index) < (step.block_number, step.log_index)
    ORDER BY before.block_number DESC, before.log_index DESC LIMIT 1
) AS swept ON true
WHERE step.step = 'pooled' AND {within}{extra} AND {newest}
"""


class _GraduatingRow(NamedTuple):
    spot: Spot
    wallet: Address
    token: Address
    quote: Address
    raised: Numeric | None


async def graduations(reader: HappeningReader, span: FactSpan, rule_filter: RuleFilter) -> HappeningPage:
    """graduating: a curve became a pool, as ``store/index/vitals`` counts them. By the token's deployer;
    worth what the curve had raised, at the price at the start of that block."""
    arguments, extra = Arguments(), ""
    if rule_filter.wallets is not None:
        extra += f" AND launch.deployer_id = ANY({arguments(rule_filter.wallets)}::int[])"
    if rule_filter.token is not None:
        extra += f" AND step.token_id = {arguments(rule_filter.token)}::int"
    statement = _GRADUATIONS.format(
        within=arguments.within(span, "step"), extra=extra, newest=arguments.newest(span, "step")
    )
    rows = await reader.rows(_GraduatingRow, statement, arguments)
    worths = await reader.worths((row.quote, row.raised, row.spot) for row in rows)
    happenings = [
        Happening("graduating", row.spot, row.wallet, row.token, wei, micro_usd, None, None)
        for row, (wei, micro_usd) in zip(rows, worths, strict=True)
    ]
    return page(rows, happenings, span)
