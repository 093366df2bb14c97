"""The token's price as a chart, and its newest trades: pieces of the token's page, or pages of their own."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby

from markupsafe import Markup
from starlette.responses import Response

from roundtrip.console.support.page_operations import own_operation, page_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.market.candles import SPANS
from roundtrip.services.boards.price_chart import (
    CandleRow,
    ChartParams,
    PriceChart,
    known_traders,
    price_chart,
    token_trades,
)
from roundtrip.services.support.answer_fields import TokenParams

# Open pages ask for these again and again. They count against no limit, since they ask no node. All readers
# of a token share one answer for two seconds, and an address gets its share of the places for runs.
_CHART = page_operation(
    price_chart, counts="never", shared_by=lambda params: f"{params.address.lower()} {params.span}",
    from_replica=True, errors=("bad_address", "busy"),
)  # fmt: skip
_TRADES = page_operation(
    token_trades, "newest_trades", counts="never", shared_by=lambda params: params.address.lower(),
    from_replica=True, bad_params="bad_address", errors=("busy",),
)  # fmt: skip
_KNOWN = own_operation(known_traders, counts="never", errors=("busy",))
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_MIN_ZEROS = 4
"""From so many zeros after the point on, they are counted."""
_DIGITS = 4
_WIDTH, _HEIGHT = 600, 160
LISTED = 30
"""Candles in the table, the newest."""


async def show_chart(visit: Visit) -> Response:
    """GET /token/{address}/chart: the price, its marks, and the candles as a table."""
    chart = await visit.ask(_CHART, ChartParams(visit.address, visit.query.get("span", "")))
    rows = [[_seconds(candle.at), *_read_figures(candle)] for candle in chart.candles]
    levels = draw_verdicts(chart)
    marks = [[_seconds(mark.at), mark.kind, mark.level] for mark in chart.marks]
    return visit.show(
        "chart_piece.html" if visit.is_piece() else "chart.html",
        chart=chart,
        listed=chart.candles[: -LISTED - 1 : -1],
        rows=json.dumps(rows, separators=(",", ":")),
        marks=json.dumps(marks, separators=(",", ":")),
        line=draw_line([row[4] for row in rows]),
        span_s=SPANS[chart.span],
        levels=levels,
        strip=[(level, len(list(run))) for level, run in groupby(levels)],
        shorten=shorten_price,
    )


async def show_trades(visit: Visit) -> Response:
    """GET /token/{address}/trades: the newest trades."""
    found = await visit.ask(_TRADES, TokenParams(visit.address))
    known = None if visit.session is None else await visit.ask(_KNOWN)
    return visit.show(
        "trades_piece.html" if visit.is_piece() else "trades.html",
        found=found,
        own=None if known is None else known.own,
        followed=[] if known is None else known.followed,
        shorten=shorten_price,
    )


_LETTERS = {"ok": "o", "unknown": "u", "warn": "w", "danger": "d"}
"""By level, each worse than those before it."""


def draw_verdicts(chart: PriceChart) -> str:
    """A letter for each candle: the level of the worst verdict in its span, ``-`` where there is none. The
    newest candle's lasts until now."""
    letters, span, ranks = "", timedelta(seconds=SPANS[chart.span]), [*_LETTERS]
    for candle in chart.candles:
        end = datetime.max.replace(tzinfo=UTC) if candle is chart.candles[-1] else candle.at + span
        held = [one.level for one in chart.verdicts if one.at < end and one.until > candle.at]
        letters += _LETTERS[max(held, key=ranks.index)] if held else "-"
    return letters


def _seconds(at: datetime) -> int:
    return round(at.timestamp())


def _read_figures(candle: CandleRow) -> list[float]:
    texts = candle.open, candle.high, candle.low, candle.close, candle.volume
    return [float(f"{float(text):.6g}") for text in texts]


def shorten_price(text: str | None, prefix: str = "") -> Markup:
    """A plain decimal cut to four significant digits; from 100 on to two decimals, from 1,000 on to none. A
    small one counts its zeros after the point: ``0.0₈4212`` has eight. The tooltip has the whole number; a
    dash: unknown."""
    if text is None:
        return Markup("–")
    whole, _, fraction = text.partition(".")
    digits = fraction.lstrip("0")
    zeros = len(fraction) - len(digits)
    if whole != "0" or not digits:
        digits = fraction[: max(2, _DIGITS - len(whole))] if len(whole) < _DIGITS else ""
        shown = f"{int(whole):,}.{digits}".rstrip("0").rstrip(".") if digits else f"{int(whole):,}"
    elif zeros < _MIN_ZEROS:
        shown = f"0.{'0' * zeros}{digits[:_DIGITS].rstrip('0')}"
    else:
        shown = f"0.0{str(zeros).translate(_SUBSCRIPTS)}{digits[:_DIGITS].rstrip('0')}"
    return Markup('<span title="{}">{}</span>').format(prefix + text, prefix + shown)


def draw_line(closes: Sequence[float]) -> str:
    """The line of the closing prices, as the points of an SVG. Empty: fewer than two."""
    if len(closes) < 2:
        return ""
    low, high = min(closes), max(closes)
    room = high - low or 1
    return " ".join(
        f"{_WIDTH * number / (len(closes) - 1):.1f},{_HEIGHT - 4 - (_HEIGHT - 8) * (close - low) / room:.1f}"
        for number, close in enumerate(closes)
    )
