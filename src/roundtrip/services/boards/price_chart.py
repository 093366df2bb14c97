"""The price of a token as candles, with what happened beside it: for its page. The newest trades of a token
in its main pools, for its page."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import ParamFault
from roundtrip.domain.base.figures import format_eth, format_percent
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.base.venue import TRAITS, VenueKind
from roundtrip.domain.market.candles import (
    MAX_CANDLES,
    SPANS,
    Candle,
    CandleSpan,
    change_bps,
    choose_span,
    fold_candles,
    format_price,
)
from roundtrip.domain.verdicts.changes import PastVerdict, fold_spans
from roundtrip.domain.verdicts.words import level_word
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import Symbol, TokenParams, read_address
from roundtrip.services.support.index_reader import (
    IndexAnswer,
    Nothing,
    present_token,
    quote_token,
    reading,
    when,
)
from roundtrip.services.support.money import ETH_DECIMALS, USDG_DECIMALS
from roundtrip.store.boards import price_candles
from roundtrip.store.boards.price_candles import (
    LaunchMark,
    MainPool,
    NewestTrade,
    PastPrice,
    TraderTags,
    main_pools,
    newest_trades,
    read_trader_tags,
)
from roundtrip.store.check.evidence import past_verdicts
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.prices import past_prices
from roundtrip.store.index.tokens import Label, addresses_of, id_of, labels_of
from roundtrip.store.liquidity.positions import read_removals
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch.watches import follows_of
from roundtrip.venues.base import quote_name

TTL_MS = 2_000
"""Pages that are open at the same time share an answer for so long."""
CHANGES: dict[str, int] = {"5 min": 300, "1 h": 3_600, "24 h": 86_400}
MAX_MARKS = 60
_MAX_REMOVALS = 20
_MAX_VERDICTS = 500


class ChartParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which token, and how long each candle is. ``span`` empty: by the token's age."""

    address: str
    span: str = ""

    def token(self) -> Address:
        """The address, lower-cased. Raises ParamFault (bad_address)."""
        return read_address(self.address)

    def read_span(self) -> CandleSpan | None:
        """None: no span is given. Raises ParamFault (bad_input)."""
        if not self.span:
            return None
        chosen = next((name for name in SPANS if name == self.span), None)
        if chosen is None:
            raise ParamFault("bad_input", f"span must be one of {', '.join(SPANS)}.")
        return chosen


class CandleRow(msgspec.Struct, frozen=True, rename="camel"):
    """Prices in the quote, for one whole token. ``volume``: of the quote."""

    at: datetime
    open: str
    high: str
    low: str
    close: str
    volume: str
    buys: int
    sells: int


ChartMarkKind = Literal[
    "launch", "graduation", "deployer_sold", "insider_sold", "liquidity_removed", "verdict"
]


class ChartMark(msgspec.Struct, frozen=True, rename="camel"):
    """Something that happened. ``level``: of a verdict. ``tx``: null: it was no transaction."""

    at: datetime
    kind: ChartMarkKind
    text: str
    level: str | None = None
    tx: str | None = None


class ChartVerdict(msgspec.Struct, frozen=True):
    """Checks in a row with the same word: from the first, until the next other one. ``until``: what went well
    counts for a day after its last check, and what a snipe tax caused until that tax ends."""

    at: datetime
    until: datetime
    level: str
    word: str


class PriceNow(msgspec.Struct, frozen=True, rename="camel"):
    """The price after the last trade. ``usd`` null: what the quote is worth is not known. ``changes``:
    hundredths of a percent by span; null: the price before it is not known."""

    price: str
    usd: str | None
    at: datetime
    changes: dict[str, int | None]


class PriceChart(IndexAnswer, frozen=True, rename="camel"):
    """``unit``: eth, weth, usdg or the quote's address. ``now`` null: no price is known. ``venue``, ``pool``:
    where the last of the main pools is. ``is_cut``: older trades of the span were not read. ``marks``: the
    newest first; ``left_out``: how many more there are. ``verdicts``: of the stored checks, the oldest
    first."""

    address: str
    symbol: Symbol
    unit: str
    span: CandleSpan
    spans: list[str]
    venue: str | None
    pool: str | None
    now: PriceNow | None
    candles: list[CandleRow]
    is_cut: bool
    marks: list[ChartMark]
    left_out: int
    verdicts: list[ChartVerdict]


class QuoteScale(msgspec.Struct, frozen=True):
    """How amounts of a token and its quote are written, and the token's symbol, cleaned for display."""

    symbol: str | None
    quote: Address
    unit: str
    quote_decimals: int
    token_decimals: int

    def format_price(self, price_raw: int) -> str:
        """The price of one whole token."""
        return format_price(price_raw, self.token_decimals, self.quote_decimals)


async def read_scale(
    ctx: Context, connection: Connection, token: Address, pools: list[MainPool]
) -> QuoteScale | None:
    """None: the token is not traded, or decimals are not known."""
    if not pools:
        return None
    quote = (await addresses_of(connection, [pools[-1].quote_id]))[pools[-1].quote_id]
    labels = await labels_of(connection, [token, quote])
    unit = quote_name(quote, ctx.contracts)
    known = {"eth": ETH_DECIMALS, "weth": ETH_DECIMALS, "usdg": USDG_DECIMALS}
    quote_decimals = known.get(unit, labels[quote].decimals)
    token_decimals = labels[token].decimals
    if quote_decimals is None or token_decimals is None:
        return None
    return QuoteScale(present_token(labels[token]).symbol, quote, unit, quote_decimals, token_decimals)


async def price_chart(ctx: Context, params: ChartParams) -> UseCaseAnswer[PriceChart]:
    """The newest candles of the token in its main pools, and its marks. Asks no node. Raises ParamFault
    (bad_address, bad_input), ServiceFull (busy)."""
    token, chosen = params.token(), params.read_span()
    async with reading(ctx) as (connection, index_cursor):
        token_id = await id_of(connection, token)
        newest_s = index_cursor.block.timestamp_s
        pools = (
            []
            if token_id is None
            else await price_candles.main_pools(connection, token_id, newest_s, ctx.contracts)
        )
        scale = await read_scale(ctx, connection, token, pools)
        if token_id is None or scale is None:
            answer = _present(ctx, token, index_cursor, chosen or "1m", pools, None)
            return UseCaseAnswer(answer, TTL_MS)
        span, candles, is_cut = await _read_candles(connection, pools, chosen, newest_s)
        now = await _read_now(ctx, connection, pools, scale, index_cursor)
        from_s = candles[0].from_s if candles else newest_s - MAX_CANDLES * SPANS[span]
        checks = await past_verdicts(connection, token, _MAX_VERDICTS)
        marks = await _read_marks(connection, token, token_id, checks, from_s)
    verdicts = join_verdicts(checks, when(newest_s))
    answer = _present(ctx, token, index_cursor, span, pools, scale, candles, is_cut, now, marks, verdicts)
    return UseCaseAnswer(answer, TTL_MS)


async def _read_candles(
    connection: Connection, pools: list[MainPool], chosen: CandleSpan | None, newest_s: int
) -> tuple[CandleSpan, list[Candle], bool]:
    """The span of one candle, the candles, and whether older trades were left out. If there are too many
    trades for the span to be read, a shorter one is taken, unless ``chosen`` names one."""
    ids = [pool.id for pool in pools]
    span = chosen or choose_span(newest_s - pools[0].opened_s)
    while True:
        span_s = SPANS[span]
        from_s = newest_s // span_s * span_s - (MAX_CANDLES - 1) * span_s
        buckets, is_cut = await price_candles.read_buckets(connection, ids, span_s, from_s, newest_s)
        if not is_cut or chosen is not None:
            break
        shorter = choose_span(newest_s - buckets[0].from_s if buckets else 0)
        if SPANS[shorter] >= span_s:
            break
        span = shorter
    return span, fold_candles(buckets), is_cut


async def _read_now(
    ctx: Context, connection: Connection, pools: list[MainPool], scale: QuoteScale, index_cursor: Cursor
) -> PriceNow | None:
    # The worth is that at the start of a block: this one starts after the index's newest.
    newest_s, number = index_cursor.block.timestamp_s, index_cursor.block.number + 1
    times = {newest_s, *(newest_s - span_s for span_s in CHANGES.values())}
    past = await price_candles.read_prices(connection, [pool.id for pool in pools], times)
    last = past.get(newest_s)
    if last is None:
        return None
    changes = {
        name: change_bps(_price_of(past.get(newest_s - span_s)), last.price_raw)
        for name, span_s in CHANGES.items()
    }
    worth = await past_prices(connection, ctx.contracts, [scale.quote], {number: newest_s})
    one_micro_usd = worth.worth(scale.quote, 10**scale.quote_decimals, number)
    usd = None
    if one_micro_usd is not None:
        # As a price in a money of as many decimals as the quote, so that nothing is cut before the digits.
        usd = scale.format_price(last.price_raw * one_micro_usd // 10**USDG_DECIMALS)
    return PriceNow(scale.format_price(last.price_raw), usd, when(last.at_s), changes)


def _price_of(past: PastPrice | None) -> int | None:
    return None if past is None else past.price_raw


async def _read_marks(
    connection: Connection, token: Address, token_id: int, checks: Sequence[PastVerdict], from_s: int
) -> list[ChartMark]:
    """The marks from ``from_s`` on, the newest first."""
    marks = [
        ChartMark(when(mark.at_s), mark.kind, _describe_mark(mark), tx=mark.tx_hash)
        for mark in await price_candles.read_launch_marks(connection, token_id)
        if mark.at_s >= from_s
    ]
    for removal in await read_removals(connection, token, from_s - 1, _MAX_REMOVALS):
        who = "Its deployer" if removal.by_deployer else removal.wallet
        text = f"{who} removed {format_percent(removal.share_bps)} of a pool's active liquidity."
        spot = removal.spot
        marks.append(ChartMark(when(spot.at_s), "liquidity_removed", text, tx=spot.tx_hash))
    for span in fold_spans(reversed(checks)):
        after, before = span.first, span.before
        if not {"code", "level"} & {*span.changed} or before is None or after.checked_at < when(from_s):
            continue
        text = f"The verdict went from {_verdict_word(before)} to {_verdict_word(after)}."
        marks.append(ChartMark(after.checked_at, "verdict", text, level=after.level))
    return sorted(marks, key=lambda mark: mark.at, reverse=True)


_HOLDS = timedelta(days=1)


def join_verdicts(newest_first: Sequence[PastVerdict], now: datetime) -> list[ChartVerdict]:
    """The verdicts of these checks over time. ``now``: up to when the newest holds."""
    joined: list[ChartVerdict] = []
    ends = [now, *(check.checked_at for check in newest_first)]
    for check, end in reversed(list(zip(newest_first, ends, strict=False))):
        word, at = _verdict_word(check), check.checked_at
        until = end if check.level == "danger" else min(end, at + _HOLDS)
        until = until if check.ends_at is None else min(until, check.ends_at)
        if joined and joined[-1].word == word and joined[-1].until == at:
            at = joined.pop().at
        joined.append(ChartVerdict(at, max(at, until), check.level, word))
    return joined


def _verdict_word(verdict: PastVerdict) -> str:
    return level_word(verdict.level, verdict.code)


def _describe_mark(mark: LaunchMark) -> str:
    if mark.kind == "launch":
        return "It was launched."
    if mark.kind == "graduation":
        return "It graduated: its curve became a pool."
    who = "Its deployer" if mark.kind == "deployer_sold" else f"{mark.wallet}, funded by its deployer,"
    return f"{who} sold{'' if mark.eth_wei is None else f' for {format_eth(mark.eth_wei)}'}."


def _present(
    ctx: Context,
    token: Address,
    index_cursor: Cursor,
    span: CandleSpan,
    pools: list[MainPool],
    scale: QuoteScale | None,
    candles: Iterable[Candle] = (),
    is_cut: bool = False,
    now: PriceNow | None = None,
    marks: Sequence[ChartMark] = (),
    verdicts: Sequence[ChartVerdict] = (),
) -> PriceChart:
    return PriceChart(
        text=_describe(token, pools, scale, now),
        chain_id=ctx.chain_id,
        block=index_cursor.block.number,
        block_time=when(index_cursor.block.timestamp_s),
        address=token,
        symbol=None if scale is None else scale.symbol,
        unit="" if scale is None else scale.unit,
        span=span,
        spans=list(SPANS),
        venue=venue_label(pools[-1].kind) if pools else None,
        pool=pools[-1].at if pools else None,
        now=now,
        candles=[] if scale is None else [_present_candle(scale, candle) for candle in candles],
        is_cut=is_cut,
        marks=[*marks[:MAX_MARKS]],
        left_out=max(0, len(marks) - MAX_MARKS),
        verdicts=[*verdicts],
    )


def venue_label(kind: VenueKind) -> str:
    """The kind of a pool for people."""
    return TRAITS[kind].label


def _present_candle(scale: QuoteScale, candle: Candle) -> CandleRow:
    return CandleRow(
        when(candle.from_s),
        scale.format_price(candle.open_raw),
        scale.format_price(candle.high_raw),
        scale.format_price(candle.low_raw),
        scale.format_price(candle.close_raw),
        plain_decimal(candle.volume_raw, scale.quote_decimals),
        candle.buys,
        candle.sells,
    )


def _describe(token: Address, pools: list[MainPool], scale: QuoteScale | None, now: PriceNow | None) -> str:
    name = quote_token(Label(token, None, None, None, None))
    if not pools:
        return f"No trade of {name} is known."
    if scale is None:
        return f"No price of {name} is known: its decimals, or those of what it is paid in, are not read yet."
    if now is None:
        return f"No price of {name} is known: no trade of it that sets one is stored."
    changes = "".join(
        f", {'+' if bps > 0 else ''}{format_percent(bps)} in {span}"
        for span, bps in now.changes.items()
        if bps is not None
    )
    return f"The last price of {name} is {now.price} {scale.unit}{changes}."


SHOWN = 30
TraderTag = Literal["deployer", "funded by deployer", "sniper", "bundle"]


class TradeRow(msgspec.Struct, frozen=True, rename="camel"):
    """A trade. ``tokens`` null: the token's decimals are not known. ``usd``, ``price``: null: not known.
    ``winner``: its rank among the winners, such as ``#3 24h``; null: it is on no board."""

    id: str
    is_buy: bool
    wallet: str
    tags: list[TraderTag]
    winner: str | None
    tokens: str | None
    quote: str | None
    usd: str | None
    price: str | None
    at: datetime
    tx: str


class TokenTrades(IndexAnswer, frozen=True, rename="camel"):
    """``unit``: eth, weth, usdg or the quote's address; empty: it is not known."""

    address: str
    symbol: Symbol
    unit: str
    trades: list[TradeRow]


async def token_trades(ctx: Context, params: TokenParams) -> UseCaseAnswer[TokenTrades]:
    """The newest trades in the token's main pools, the newest first. Asks no node. Raises ParamFault
    (bad_address), ServiceFull (busy)."""
    token = params.token()
    trades: list[NewestTrade] = []
    tags: dict[int, TraderTags] = {}
    scale = None
    async with reading(ctx) as (connection, index_cursor):
        token_id = await id_of(connection, token)
        if token_id is not None:
            newest_s = index_cursor.block.timestamp_s
            pools = await main_pools(connection, token_id, newest_s, ctx.contracts)
            scale = await read_scale(ctx, connection, token, pools)
            trades = await newest_trades(connection, [pool.id for pool in pools], SHOWN)
            tags = await read_trader_tags(connection, token_id, [trade.trader_id for trade in trades])
    return UseCaseAnswer(_present_trades(ctx, token, index_cursor, scale, trades, tags), TTL_MS)


def _present_trades(
    ctx: Context,
    token: Address,
    index_cursor: Cursor,
    scale: QuoteScale | None,
    trades: Sequence[NewestTrade],
    tags: dict[int, TraderTags],
) -> TokenTrades:
    rows = [_present_trade(trade, tags[trade.trader_id], scale) for trade in trades]
    return TokenTrades(
        text=f"The newest trades of {token} in its main pools." if rows else f"No trade of {token} is known.",
        chain_id=ctx.chain_id,
        block=index_cursor.block.number,
        block_time=when(index_cursor.block.timestamp_s),
        address=token,
        symbol=None if scale is None else scale.symbol,
        unit="" if scale is None else scale.unit,
        trades=rows,
    )


def _present_trade(trade: NewestTrade, tags: TraderTags, scale: QuoteScale | None) -> TradeRow:
    is_priced = scale is not None and trade.price_raw is not None
    applicable: dict[TraderTag, bool] = {
        "deployer": tags.is_deployer,
        "funded by deployer": tags.is_funded_by_deployer,
        "sniper": tags.is_sniper,
        "bundle": tags.is_bundled,
    }
    return TradeRow(
        id=f"{trade.block_number}-{trade.log_index}",
        is_buy=trade.buys,
        wallet=trade.wallet,
        tags=[tag for tag, applies in applicable.items() if applies],
        winner=None if tags.rank is None else f"#{tags.rank} {tags.span}",
        tokens=None if scale is None else plain_decimal(trade.token_raw, scale.token_decimals),
        quote=None if scale is None else plain_decimal(trade.quote_raw, scale.quote_decimals),
        usd=None if trade.micro_usd is None else plain_decimal(trade.micro_usd, USDG_DECIMALS),
        price=scale.format_price(trade.price_raw) if is_priced else None,  # type: ignore[union-attr,arg-type]
        at=when(trade.at_s),
        tx=trade.tx_hash,
    )


class KnownTraders(msgspec.Struct, frozen=True):
    """An account's wallet, and those that it follows."""

    own: str
    followed: list[str]


async def known_traders(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[KnownTraders]:
    """The account's wallet and those that it follows. Raises ServiceFull (busy)."""
    async with reading(ctx) as (connection, _):
        follows = await follows_of(connection, account.id)
    return UseCaseAnswer(KnownTraders(account.wallet, [follow.wallet for follow in follows]))
