"""Trades, launches and graduations, as rules see them."""

from typing import NamedTuple

from roundtrip.domain.market.price_history import MOST_MICRO_USD
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
    address,
    maybe,
    page,
    spot_of,
    whole_raw,
)

LARGE_WEI, LARGE_MICRO_USD, LARGE_RAW = 10**17, 300 * 10**6, 10**24
"""A trade above one of these is found by its size (schema/0011); a smaller one, among the newest."""
FEW = 40_000
"""Rows of a day that are few enough to sort."""
PARTS = 96
"""The rows of a day are estimated from one of this many parts of it."""


class _TradeRow(NamedTuple):
    at_s: int
    block_number: int
    log_index: int
    tx_hash: bytes
    buys: bool
    wallet: bytes
    token: bytes
    quote: bytes
    in_money_from: int | None
    micro_usd: int | None
    token_raw: str
    quote_raw: str
    eth_wei: str | None
    launched: bool
    supply: str | None


async def trades(
    reader: HappeningReader, span: FactSpan, narrow: RuleFilter, buys: bool | None = None
) -> HappeningPage:
    """buying, selling; ``buys`` None: both. Worth what the sync stored with them; part of the token's
    supply."""
    asked, above = Arguments(), narrow.above("usd")
    if above is not None and above >= MOST_MICRO_USD:
        return HappeningPage((), None)
    chosen = await _share(reader, asked, span, narrow, buys)
    if chosen is None:
        where = _trade_where(asked, span, narrow, buys) + _least(asked, narrow)
        chosen = _arm(asked, span, where, _has_index(narrow) and await _is_few(reader, asked, span, where))
    rows = await reader.rows(_TradeRow, _NAMED.format(chosen=chosen), asked)
    happenings = [_read_trade(reader, row) for row in rows if row.in_money_from is not None]
    return page(rows, happenings, span)


_FIELDS = (
    "trade.at_s, trade.block_number, trade.log_index, trade.tx_hash, trade.trader_id, trade.buys,"
    " trade.pool_id, trade.token_raw, trade.quote_raw, trade.eth_wei, trade.micro_usd"
)
_NAMED = """
WITH chosen AS MATERIALIZED ({chosen})
SELECT chosen.at_s, chosen.block_number, chosen.log_index, chosen.tx_hash, chosen.buys,
    trader.address AS wallet, token.address AS token, quote.address AS quote, pool.in_money_from,
    chosen.micro_usd, chosen.token_raw::text, chosen.quote_raw::text, chosen.eth_wei::text,
    launch.token_id IS NOT NULL AS launched, told.supply_raw::text AS supply
FROM chosen JOIN facts.pool AS pool ON pool.id = chosen.pool_id
JOIN facts.address AS trader ON trader.id = chosen.trader_id
JOIN facts.address AS token ON token.id = pool.token_id
JOIN facts.address AS quote ON quote.id = pool.quote_id
LEFT JOIN facts.launch AS launch ON launch.token_id = pool.token_id
LEFT JOIN facts.token AS told ON told.token = token.address
"""


def _trade_where(asked: Arguments, span: FactSpan, narrow: RuleFilter, buys: bool | None) -> str:
    parts = [asked.within(span, "trade")]
    if buys is not None:
        parts.append("trade.buys" if buys else "NOT trade.buys")
    if narrow.wallets is not None:
        parts.append(f"trade.trader_id = ANY({asked(narrow.wallets)}::int[])")
    if narrow.pools is not None:
        parts.append(f"trade.pool_id = ANY({asked(narrow.pools)}::int[])")
    return " AND ".join(parts)


def _least(asked: Arguments, narrow: RuleFilter) -> str:
    """The condition of a threshold that the rows themselves decide."""
    wei, micro_usd = narrow.above("eth"), narrow.above("usd")
    if wei is not None:
        return f" AND coalesce(trade.eth_wei, trade.quote_raw) > {asked(wei)}::numeric"
    if micro_usd is not None:
        return f" AND trade.micro_usd > {asked(micro_usd)}::bigint"
    if narrow.least_raw is not None:
        return f" AND trade.token_raw > {asked(narrow.least_raw)}::numeric"
    return ""


def _has_index(narrow: RuleFilter) -> bool:
    """Whether an index finds what a rule lets through."""
    if narrow.wallets is not None or narrow.pools is not None:
        return True
    wei, micro_usd = narrow.above("eth"), narrow.above("usd")
    return (wei is not None and wei >= LARGE_WEI) or (micro_usd is not None and micro_usd >= LARGE_MICRO_USD)


async def _is_few(reader: HappeningReader, asked: Arguments, span: FactSpan, where: str) -> bool:
    """Whether the rows are few enough to sort, as estimated from the newest part of the span. Where there are
    more, an index walk meets the newest soon. Without LIMIT: with one, the planner may walk the whole day for
    rows that do not exist."""
    if span.most is None:
        return True
    arguments = Arguments()
    arguments.values = list(asked.values)
    newest_s = min(span.to_s, span.before[0])
    part_s = max(1, (newest_s - span.from_s) // PARTS)
    count = await fetch_value(
        reader.connection,
        int,
        f"SELECT count(*) FROM facts.trade AS trade WHERE {where}"  # noqa: S608
        f" AND trade.at_s > {arguments(newest_s - part_s)}::int"
        f" AND trade.at_s <= {arguments(newest_s)}::int",
        *arguments.values,
    )
    return count * PARTS < FEW


def _arm(
    asked: Arguments, span: FactSpan, where: str, is_few: bool, source: str = "facts.trade AS trade"
) -> str:
    if not is_few:
        return f"SELECT {_FIELDS} FROM {source} WHERE {where} AND {asked.newest(span, 'trade')}"  # noqa: S608
    # MATERIALIZED, then sorted: otherwise the planner may walk the day from its end until it has met enough
    # rows, which may never happen.
    return (
        f"WITH trade AS MATERIALIZED (SELECT {_FIELDS} FROM {source} WHERE {where})"  # noqa: S608
        f" SELECT {_FIELDS} FROM trade WHERE {asked.newest(span, 'trade')}"
    )


class _SmallTokenRow(NamedTuple):
    id: int
    supply: str


_SMALL = """
SELECT pool.id, told.supply_raw::text AS supply FROM facts.token AS told
JOIN facts.address AS token ON token.address = told.token
JOIN facts.pool AS pool ON pool.token_id = token.id AND pool.in_money_from IS NOT NULL
WHERE told.supply_raw > 0 AND told.supply_raw < 10::numeric ^ 27
    AND NOT EXISTS (SELECT FROM facts.launch WHERE launch.token_id = token.id)
"""


async def _share(
    reader: HappeningReader, asked: Arguments, span: FactSpan, narrow: RuleFilter, buys: bool | None
) -> str | None:
    """A query for trades of more than a part of a token's supply: those of more base units than that part of
    a launch, whichever token it is, and those of tokens with a smaller supply. None: the rule has no such
    threshold."""
    ppm = narrow.above("%")
    if ppm is None or narrow.token is not None:
        return None
    least_raw = ppm * LAUNCHED_RAW // PPM
    where = f"{_trade_where(asked, span, narrow, buys)} AND trade.token_raw > {asked(least_raw)}::numeric"
    has_index = least_raw >= LARGE_RAW or narrow.wallets is not None
    arms = [_arm(asked, span, where, has_index and await _is_few(reader, asked, span, where))]
    small = await fetch(reader.connection, _SmallTokenRow, _SMALL)
    if small:
        ids = asked([token.id for token in small])
        least = asked([ppm * int(token.supply) // PPM for token in small])
        source = (
            f"unnest({ids}::int[], {least}::numeric[]) AS small (id, least_raw)"
            " JOIN facts.trade AS trade ON trade.pool_id = small.id"
        )
        where = f"{_trade_where(asked, span, narrow, buys)} AND trade.token_raw > small.least_raw"
        arms.append(_arm(asked, span, where, True, source))
    both = " UNION ".join(f"({arm})" for arm in arms)
    return f"SELECT * FROM ({both}) AS trade WHERE {asked.newest(span, 'trade')}"  # noqa: S608


def _read_trade(reader: HappeningReader, row: _TradeRow) -> Happening:
    wei = maybe(row.eth_wei)
    if wei is None and reader.is_eth(address(row.quote)):
        wei = int(row.quote_raw)
    return Happening(
        "buying" if row.buys else "selling",
        spot_of(row),
        address(row.wallet),
        address(row.token),
        wei,
        row.micro_usd,
        int(row.token_raw),
        whole_raw(row.launched, row.supply),
    )


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
            ) AS pool CROSS JOIN LATERAL (
                SELECT trade.* FROM facts.trade AS trade
                WHERE {within_trade} AND trade.pool_id = pool.id AND trade.at_s = launch.at_s
                OFFSET 0
            ) AS trade
            WHERE trade.block_number = launch.block_number AND trade.tx_hash = launch.tx_hash
                AND trade.buys AND trade.trader_id IN (launch.deployer_id, launch.sender_id)
        ) AS each
    ) AS bought
    WHERE {within}{more}
), chosen AS MATERIALIZED (SELECT * FROM first WHERE {least}{newest})
SELECT chosen.at_s, chosen.block_number, chosen.log_index, chosen.tx_hash, chosen.wei::text,
    chosen.micro_usd::text, wallet.address AS wallet, token.address AS token
FROM chosen JOIN facts.address AS wallet ON wallet.id = chosen.deployer_id
JOIN facts.address AS token ON token.id = chosen.token_id
"""


class _LaunchRow(NamedTuple):
    at_s: int
    block_number: int
    log_index: int
    tx_hash: bytes
    wei: str | None
    micro_usd: str | None
    wallet: bytes
    token: bytes


async def launches(reader: HappeningReader, span: FactSpan, narrow: RuleFilter) -> HappeningPage:
    """launching, by the deployer. Worth what the deployer or the sender bought of the token in that
    transaction, 0 if nothing; not known of launches before the index's first block."""
    asked, more, least = Arguments(), "", ""
    if narrow.wallets is not None:
        more += f" AND launch.deployer_id = ANY({asked(narrow.wallets)}::int[])"
    if narrow.token is not None:
        more += f" AND launch.token_id = {asked(narrow.token)}::int"
    if (wei := narrow.above("eth")) is not None:
        least = f"first.wei > {asked(wei)}::numeric AND "
    if (micro_usd := narrow.above("usd")) is not None:
        least = f"first.micro_usd > {asked(micro_usd)}::numeric AND "
    statement = _LAUNCHES.format(
        zero=asked(reader.zero_id),
        eth=asked(reader.eth_ids),
        within=asked.within(span, "launch"),
        within_trade=asked.within(span, "trade"),
        newest=asked.newest(span, "first"),
        more=more,
        least=least,
    )
    rows = await reader.rows(_LaunchRow, statement, asked)
    happenings = [
        Happening(
            "launching", spot_of(row), address(row.wallet), address(row.token), maybe(row.wei),
            maybe(row.micro_usd), None, None,
        )
        for row in rows
    ]  # fmt: skip
    return page(rows, happenings, span)


_GRADUATIONS = """
SELECT step.at_s, step.block_number, step.log_index, step.tx_hash, wallet.address AS wallet,
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
WHERE step.step = 'pooled' AND {within}{more} AND {newest}
"""


class _GraduationRow(NamedTuple):
    at_s: int
    block_number: int
    log_index: int
    tx_hash: bytes
    wallet: bytes
    token: bytes
    quote: bytes
    raised: str | None


async def graduations(reader: HappeningReader, span: FactSpan, narrow: RuleFilter) -> HappeningPage:
    """graduating: a curve became a pool, as ``chain_vitals`` counts them. By the token's deployer; worth what
    the curve had raised, at the price at the start of that block."""
    asked, more = Arguments(), ""
    if narrow.wallets is not None:
        more += f" AND launch.deployer_id = ANY({asked(narrow.wallets)}::int[])"
    if narrow.token is not None:
        more += f" AND step.token_id = {asked(narrow.token)}::int"
    statement = _GRADUATIONS.format(
        within=asked.within(span, "step"), more=more, newest=asked.newest(span, "step")
    )
    rows = await reader.rows(_GraduationRow, statement, asked)
    sums = [(address(row.quote), maybe(row.raised), spot_of(row)) for row in rows]
    worths = await reader.worths(sums)
    happenings = [
        Happening("graduating", spot, address(row.wallet), address(row.token), wei, micro_usd, None, None)
        for row, (_, _, spot), (wei, micro_usd) in zip(rows, sums, worths, strict=True)
    ]
    return page(rows, happenings, span)
