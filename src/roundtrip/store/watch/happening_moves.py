"""Moves of tokens and of liquidity, and removals of active liquidity, as rules see them."""

from typing import NamedTuple

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, Numeric
from roundtrip.domain.market.price_history import MAX_MICRO_USD
from roundtrip.domain.market.signals import NARROW_TICKS
from roundtrip.domain.watch.rules import Happening, Verb
from roundtrip.store.boards.signals import MAX_CHANGES, MAX_POOLS
from roundtrip.store.liquidity.positions import GONE
from roundtrip.store.server.partitions import DAY_S

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

PRICED_WITHIN_S = 86_400
"""A move is valued at the token's last trade, where that is no older than this."""
ETH_WEI = 10**18
VALUABLE_WEI = 10**15
"""From this threshold on, moves are found by their worth (index trade_dear); below it, among the newest."""
_LARGE_RAW = 10**24
"""From this threshold of base units on, moves are found by their size (index transfer_large)."""
WHOLE_WITHIN_S = 80 * 86_400
"""No share is given for a pool that was older than this when it was drained: a week later some of its changes
may no longer be kept, and the answer must not depend on when it is asked for."""

_MOVES = """
WITH {before}moved AS MATERIALIZED (
    SELECT transfer.at_s, transfer.block_number, transfer.log_index, transfer.tx_hash, transfer.token_id,
        transfer.from_id, transfer.amount_raw
    FROM {source}
    WHERE transfer.amount_raw > 0
        AND transfer.from_id <> transfer.to_id AND transfer.to_id <> transfer.token_id
        AND transfer.from_id <> {zero}::int
        AND transfer.from_id <> ALL({machinery}::int[]) AND transfer.to_id <> ALL({machinery}::int[])
        AND NOT EXISTS (
            SELECT FROM facts.trades_at(transfer.at_s, transfer.block_number) AS trade
            JOIN facts.pool AS pool ON pool.id = trade.pool_id
            WHERE {within_trade} AND trade.tx_hash = transfer.tx_hash
                AND pool.token_id = transfer.token_id OFFSET 0)
        AND NOT EXISTS (
            SELECT FROM facts.liquidity AS change JOIN facts.pool AS pool ON pool.id = change.pool_id
            WHERE {within_change} AND change.at_s = transfer.at_s
                AND change.block_number = transfer.block_number AND change.tx_hash = transfer.tx_hash
                AND pool.token_id = transfer.token_id OFFSET 0)
        AND NOT EXISTS (
            SELECT FROM facts.address AS side JOIN facts.pool AS pool ON pool.at = side.address
            WHERE side.id IN (transfer.from_id, transfer.to_id)
                AND pool.block_number <= transfer.block_number OFFSET 0)
        AND {newest}
)
SELECT 'moving' AS verb, moved.block_number, moved.log_index, moved.at_s, moved.tx_hash,
    wallet.address AS wallet, token.address AS token,
    div(moved.amount_raw * traded.wei, traded.token_raw)::text AS eth_wei,
    CASE WHEN traded.micro_usd IS NOT NULL THEN least(
        div(moved.amount_raw * traded.micro_usd, traded.token_raw), {most_micro_usd}::numeric
    ) END::text AS micro_usd,
    moved.amount_raw::text AS part_raw, '{launched}' AS whole_raw, false AS by_deployer
FROM moved JOIN facts.address AS wallet ON wallet.id = moved.from_id
JOIN facts.address AS token ON token.id = moved.token_id
LEFT JOIN LATERAL (
    SELECT one.* FROM (
        SELECT pool.id, pool.quote_id FROM facts.pool AS pool
        WHERE pool.token_id = moved.token_id AND pool.in_money_from <= moved.block_number
        ORDER BY pool.token_id, pool.id LIMIT {places}::int
    ) AS place CROSS JOIN LATERAL (
        SELECT trade.block_number, trade.log_index, trade.token_raw, trade.micro_usd,
            coalesce(
                trade.eth_wei, CASE WHEN place.quote_id = ANY({eth}::int[]) THEN trade.quote_raw END
            ) AS wei
        FROM facts.last_trade_before(
            place.id, moved.at_s - {priced_s}::int, moved.at_s, moved.block_number, moved.log_index,
            {priced_from}::int, {priced_to}::int
        ) AS trade
    ) AS one ORDER BY one.block_number DESC, one.log_index DESC LIMIT 1
) AS traded ON true
"""
_TRANSFER = (
    "transfer.at_s, transfer.block_number, transfer.log_index, transfer.tx_hash, transfer.token_id,"
    " transfer.from_id, transfer.to_id, transfer.amount_raw"
)


async def moves(reader: HappeningReader, span: FactSpan, rule_filter: RuleFilter) -> HappeningPage:
    """moving: a launchpad's token was transferred or burned. Transfers that do not count: from or to the
    network's own contracts or a place where anything trades, which are trades; into the token itself; and in
    a transaction in which that token was traded or its liquidity changed, where tokens pass through a router.
    Worth the price of the token's last trade before it, in one of its oldest money pools, if that was within
    a day."""
    arguments = Arguments()
    source = await _valuable_source(reader, arguments, span, rule_filter)
    if source is None:
        source = _filtered_source(arguments, span, rule_filter)
    statement = _MOVES.format(
        before=source.before,
        source=source.of,
        zero=arguments(reader.zero_id),
        machinery=arguments(reader.machinery_ids),
        eth=arguments(reader.eth_ids),
        within_trade=arguments.within(span, "trade"),
        within_change=arguments.within(span, "change"),
        newest=source.where + arguments.newest(span, "transfer"),
        places=arguments(MAX_POOLS),
        priced_from=arguments(span.from_s - PRICED_WITHIN_S),
        priced_to=arguments(span.to_s),
        priced_s=arguments(PRICED_WITHIN_S),
        most_micro_usd=MAX_MICRO_USD,
        launched=LAUNCHED_RAW,
    )
    rows = await reader.rows(Happening, statement, arguments)
    return page(rows, rows, span)


_VALUABLE = """least AS MATERIALIZED (
    SELECT pool.token_id, {wei}::numeric / max(dear.price) AS amount_raw
    FROM facts.dear_prices({dear}) AS dear JOIN facts.pool AS pool ON pool.id = dear.pool_id
    GROUP BY pool.token_id
), worth AS MATERIALIZED (
    SELECT {fields} FROM facts.transfer AS transfer
    LEFT JOIN least ON least.token_id = transfer.token_id + 0
    WHERE {within} AND transfer.amount_raw > coalesce(least.amount_raw, {wei}::numeric * 10000000)
        AND transfer.from_id <> {zero}::int AND transfer.from_id <> ALL({machinery}::int[])
        AND transfer.to_id <> ALL({machinery}::int[])
), """
_NEWEST_WORTH = """(
    SELECT * FROM worth ORDER BY at_s DESC, block_number DESC, log_index DESC OFFSET 0
) AS transfer"""


class _MoveSource(NamedTuple):
    """``before``: statements for WITH; ``of``: for FROM; ``where``: what stands before further conditions."""

    before: str
    of: str
    where: str


async def _valuable_source(
    reader: HappeningReader, arguments: Arguments, span: FactSpan, rule_filter: RuleFilter
) -> _MoveSource | None:
    """Transfers that may be worth more than the rule's threshold, valued at the highest trade
    price of any of the token's pools in those days; of a token without a price that high, transfers of more
    than 10^7 base units per wei of the threshold. None: the rule has no such threshold, or the newest
    transfers answer it."""
    if span.limit is None or rule_filter.wallets is not None or rule_filter.token is not None:
        return None
    wei, micro_usd = rule_filter.above("eth"), rule_filter.above("usd")
    priced = span._replace(from_s=(span.from_s - PRICED_WITHIN_S) // DAY_S * DAY_S)
    if micro_usd is not None:
        prices = await reader.eth_usdg(priced, "trade")
        # A trade with a known worth in dollars but not in eth is in no price index.
        wei = None if prices is None or not prices.is_always else micro_usd * ETH_WEI // prices.highest
    if wei is None or wei < VALUABLE_WEI:
        return None
    # A little less, since amounts and prices were rounded.
    least_wei = wei * 999 // 1000 - 1
    before = _VALUABLE.format(
        dear=", ".join(
            f"{arguments(bound)}::int"
            for bound in (priced.from_s, priced.to_s, priced.after_number, priced.to_number)
        ),
        within=arguments.within(span, "transfer"),
        wei=arguments(least_wei),
        zero=arguments(reader.zero_id),
        machinery=arguments(reader.machinery_ids),
        fields=_TRANSFER,
    )
    return _MoveSource(before, _NEWEST_WORTH, "")


def _filtered_source(arguments: Arguments, span: FactSpan, rule_filter: RuleFilter) -> _MoveSource:
    parts, is_few = [arguments.within(span, "transfer")], False
    if rule_filter.wallets is not None:
        parts.append(f"transfer.from_id = ANY({arguments(rule_filter.wallets)}::int[])")
        is_few = True
    if rule_filter.token is not None:
        parts.append(f"transfer.token_id = {arguments(rule_filter.token)}::int")
        is_few = True
    if (ppm := rule_filter.above("%")) is not None:
        least_raw = ppm * LAUNCHED_RAW // PPM
        parts.append(f"transfer.amount_raw > {arguments(least_raw)}::numeric")
        is_few = is_few or least_raw >= _LARGE_RAW
    where = " AND ".join(parts)
    if not is_few:
        seconds = f"{arguments(span.from_s)}::int, {arguments(span.to_s)}::int"
        return _MoveSource("", f"facts.transfers_within({seconds}) AS transfer", f"{where} AND ")
    # By themselves: an index finds them first; they are sorted afterwards.
    chosen = f"SELECT {_TRANSFER} FROM facts.transfer AS transfer WHERE {where}"  # noqa: S608
    return _MoveSource(f"chosen AS MATERIALIZED ({chosen}), ", "chosen AS transfer", "")


# --- liquidity -------------------------------------------------------------------------------------

_DRAINS = """
WITH gone AS (
    SELECT change.pool_id, change.sender_id, change.tx_hash, min(change.at_s) AS at_s,
        min(change.block_number) AS block_number,
        min(change.log_index) FILTER (WHERE change.liquidity_delta < 0) AS log_index,
        -sum(change.liquidity_delta * least(change.tick_upper - change.tick_lower, {ticks}::int)) AS part_raw,
        CASE WHEN NOT bool_or(change.quote_raw IS NULL) THEN greatest(-sum(change.quote_raw), 0) END
            AS quote_raw
    FROM facts.liquidity AS change WHERE {within}{extra}
    GROUP BY change.pool_id, change.sender_id, change.tx_hash, change.block_number
    HAVING sum(change.liquidity_delta * least(change.tick_upper - change.tick_lower, {ticks}::int)) < 0
), chosen AS MATERIALIZED (
    SELECT gone.*, pool.token_id, pool.quote_id, pool.at_s AS opened_s,
        pool.block_number >= {start}::int AND pool.at_s > gone.at_s - {whole_s}::int AS may_be_whole
    FROM gone JOIN facts.pool AS pool ON pool.id = gone.pool_id
    WHERE pool.in_money_from IS NOT NULL AND pool.token_id <> ALL({money}::int[]){threshold} AND {newest}
), change AS (
    SELECT of.pool_id, one.*, sum(one.weight) OVER kept - one.weight AS before
    FROM (SELECT DISTINCT pool_id, opened_s FROM chosen WHERE may_be_whole) AS of CROSS JOIN LATERAL (
        SELECT change.tx_hash, change.at_s, change.block_number, change.log_index,
            change.liquidity_delta * least(change.tick_upper - change.tick_lower, {ticks}::int) AS weight
        FROM facts.liquidity AS change
        WHERE change.pool_id = of.pool_id AND change.at_s BETWEEN of.opened_s AND {to_s}::int
        ORDER BY change.at_s, change.block_number, change.log_index LIMIT {changes}::int + 1
    ) AS one WINDOW kept AS (PARTITION BY of.pool_id ORDER BY one.block_number, one.log_index)
), begun AS MATERIALIZED (
    SELECT DISTINCT ON (pool_id, block_number, tx_hash) pool_id, block_number, tx_hash, before FROM change
    ORDER BY pool_id, block_number, tx_hash, log_index
)
SELECT chosen.block_number, chosen.log_index, chosen.at_s, chosen.tx_hash, wallet.address AS wallet,
    token.address AS token, quote.address AS quote, chosen.part_raw::text, chosen.quote_raw::text,
    CASE WHEN begun.before > 0 THEN begun.before END::text AS before_raw, false AS by_deployer
FROM chosen JOIN facts.address AS wallet ON wallet.id = chosen.sender_id
JOIN facts.address AS token ON token.id = chosen.token_id
JOIN facts.address AS quote ON quote.id = chosen.quote_id
LEFT JOIN begun ON chosen.may_be_whole AND begun.pool_id = chosen.pool_id
    AND begun.block_number = chosen.block_number AND begun.tx_hash = chosen.tx_hash
"""


class _GoneRow(NamedTuple):
    """What left a pool, and what the pool had before; None: not known."""

    spot: Spot
    wallet: Address
    token: Address
    quote: Address
    part_raw: Numeric
    quote_raw: Numeric | None
    before_raw: Numeric | None
    by_deployer: bool


async def _present_gone(
    reader: HappeningReader, verb: Verb, statement: str, arguments: Arguments, span: FactSpan
) -> HappeningPage:
    """The happenings of the statement's rows, each worth the quote that came out. Where more left than was
    there before, the share is all of it."""
    rows = await reader.rows(_GoneRow, statement, arguments)
    worths = await reader.worths((row.quote, row.quote_raw, row.spot) for row in rows)
    happenings = [
        Happening(
            verb, row.spot, row.wallet, row.token, *worth, row.part_raw,
            None if row.before_raw is None else max(row.before_raw, row.part_raw), row.by_deployer,
        )
        for row, worth in zip(rows, worths, strict=True)
    ]  # fmt: skip
    return page(rows, happenings, span)


async def drains(
    reader: HappeningReader, span: FactSpan, rule_filter: RuleFilter, start_number: int
) -> HappeningPage:
    """draining: a wallet took more out of a money pool, in one transaction, than it put in; liquidity counts
    by the width of its range, as in ``signals``. Worth the quote that came out, where the pool reports it, at
    the price at the start of the block. A share of what the pool had before that transaction, known where
    every change of the pool is; ``start_number`` is the index's first block. Where others added so much
    within the transaction that the wallet took out more than the pool had before, the share is all of it."""
    arguments, extra = Arguments(), ""
    if rule_filter.wallets is not None:
        extra += f" AND change.sender_id = ANY({arguments(rule_filter.wallets)}::int[])"
    if rule_filter.pools is not None:
        extra += f" AND change.pool_id = ANY({arguments(rule_filter.pools)}::int[])"
    threshold = await worth_threshold(reader, arguments, span, rule_filter)
    statement = _DRAINS.format(
        ticks=arguments(NARROW_TICKS),
        within=arguments.within(span, "change"),
        extra=extra,
        start=arguments(start_number),
        whole_s=arguments(WHOLE_WITHIN_S),
        money=arguments(reader.money_ids),
        threshold=threshold,
        newest=arguments.newest(span, "gone"),
        to_s=arguments(span.to_s),
        changes=arguments(MAX_CHANGES),
    )
    return await _present_gone(reader, "draining", statement, arguments, span)


async def worth_threshold(
    reader: HappeningReader, arguments: Arguments, span: FactSpan, rule_filter: RuleFilter
) -> str:
    """The condition on ``gone``, what left a pool, of a threshold that the quote taken out decides, at the
    best price of the span; for a quote that is neither eth nor the dollar, that any was taken out."""
    wei, micro_usd = rule_filter.above("eth"), rule_filter.above("usd")
    if wei is None and micro_usd is None:
        return ""
    prices = await reader.eth_usdg(span, "liquidity")
    if wei is not None:
        of_eth, of_usdg = wei, 0 if prices is None else (wei - 1) * prices.lowest // ETH_WEI - 1
    else:
        above = micro_usd or 0
        of_eth, of_usdg = 0 if prices is None else (above - 1) * ETH_WEI // prices.highest - 1, above - 1
    eth, money = arguments(reader.eth_ids), arguments(reader.money_ids)
    return (
        f" AND gone.quote_raw > CASE WHEN pool.quote_id = ANY({eth}::int[]) THEN {arguments(of_eth)}::numeric"
        f" WHEN pool.quote_id = ANY({money}::int[]) THEN {arguments(of_usdg)}::numeric ELSE 0 END"
    )


# --- removals --------------------------------------------------------------------------------------

_REMOVALS = """{gone}, chosen AS MATERIALIZED (
    SELECT gone.*, pool.token_id, pool.quote_id FROM gone JOIN facts.pool AS pool ON pool.id = gone.pool_id
    WHERE pool.in_money_from IS NOT NULL AND pool.token_id <> ALL({money}::int[]){threshold} AND {newest}
)
SELECT chosen.block_number, chosen.log_index, chosen.at_s, chosen.tx_hash, wallet.address AS wallet,
    token.address AS token, quote.address AS quote, chosen.part_raw::text, chosen.quote_raw::text,
    chosen.active_raw::text AS before_raw, launch.token_id IS NOT NULL AS by_deployer
FROM chosen JOIN facts.address AS wallet ON wallet.id = chosen.sender_id
JOIN facts.address AS token ON token.id = chosen.token_id
JOIN facts.address AS quote ON quote.id = chosen.quote_id
LEFT JOIN facts.launch AS launch ON launch.token_id = chosen.token_id
    AND launch.deployer_id = chosen.sender_id
"""


async def removals(reader: HappeningReader, span: FactSpan, rule_filter: RuleFilter) -> HappeningPage:
    """removing: a wallet took more active liquidity out of a money pool, in one transaction, than it put in
    (``store/liquidity/positions.GONE``). Worth the quote that came out, as in ``drains``. A share of the
    pool's active liquidity just before; None: not known. Where others added so much within the transaction
    that the wallet took out more than was active before, the share is all of it."""
    arguments = Arguments()
    where = arguments.within(span, "change")
    if rule_filter.wallets is not None:
        where += f" AND change.sender_id = ANY({arguments(rule_filter.wallets)}::int[])"
    if rule_filter.pools is not None:
        where += f" AND change.pool_id = ANY({arguments(rule_filter.pools)}::int[])"
    threshold = await worth_threshold(reader, arguments, span, rule_filter)
    if (ppm := rule_filter.above("%")) is not None:
        threshold += f" AND gone.part_raw * {PPM} > gone.active_raw * {arguments(ppm)}::bigint"
    statement = _REMOVALS.format(
        gone=GONE.format(where=where),
        money=arguments(reader.money_ids),
        threshold=threshold,
        newest=arguments.newest(span, "gone"),
    )
    return await _present_gone(reader, "removing", statement, arguments, span)
