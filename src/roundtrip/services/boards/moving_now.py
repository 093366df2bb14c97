"""``moving_now``: the tokens with the most money coming in over the last ten minutes. The page of what
moves: the board's tokens with prices, depth and holders, and those that it holds back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base.figures import format_count, format_eth
from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.market.exposure import TokenExposure
from roundtrip.domain.market.fairness import FAIRNESS
from roundtrip.domain.market.moving import (
    CROWD,
    MAX_OF_A_SORT,
    SHARED_PURSE,
    WINDOW_S,
    CheckedLevel,
    MoneyFlow,
    MovingBoard,
    MovingGroup,
    board,
    crowd,
    flows_to_count,
    group_flows,
)
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import CheckedAt, CodeText, LevelText, says
from roundtrip.services.support.index_reader import (
    IndexAnswer,
    Nothing,
    TokenNamed,
    eth,
    present_token,
    quote_token,
    reading,
    when,
)
from roundtrip.services.support.shown_verdict import SHARED_MS, PageOfRows, ShownVerdict, present_verdict
from roundtrip.store.boards import market_figures, moving
from roundtrip.store.boards.market_figures import MarketDepth, PriceLine, WindowTurnover
from roundtrip.store.boards.moving import read_exposures
from roundtrip.store.index import vitals
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import Label, labels
from roundtrip.store.server.rows import Connection

from .token_market import MarketRow, PricedMoney, read_money

_NAMED = 3
"""Tokens of each kind that the text names; the rows hold all of them."""


class TokenCheck(msgspec.Struct, frozen=True, rename="camel"):
    """The newest check of a token, less than an hour old. Level unknown is to be treated as a no."""

    code: Annotated[CodeText, says("Verdict code of the check.")]
    level: Annotated[LevelText, says("Verdict level; treat unknown as a no.")]
    checked_at: CheckedAt
    age_s: Annotated[int, says("Seconds since the check.")]


class Moving(msgspec.Struct, frozen=True, rename="camel"):
    """Money and wallets that came into one token in the window, over all its pools and its curve."""

    token: Annotated[TokenNamed, says("The token.")]
    launchpad: Annotated[
        bool,
        says(
            "true: most of its money went to the launchpad's own curve or pool, so it is "
            "listed without a check. false: listed by its check."
        ),
    ]
    venue: Annotated[VenueKind, says("Kind of venue that took most of the money.")]
    net_in_eth: Annotated[float, says("Buys minus sells, in eth.")]
    in_eth: Annotated[float, says("Worth of its buys, in eth.")]
    out_eth: Annotated[float, says("Worth of its sells, in eth.")]
    in_usd: Annotated[float | None, says("Worth of its buys, in dollars. null: not known for all of them.")]
    buys: Annotated[int, says("Number of buys.")]
    sells: Annotated[int, says("Number of sells.")]
    buyers: Annotated[int, says("Different wallets that bought.")]
    sellers: Annotated[int, says("Different wallets that sold.")]
    crowd: Annotated[
        int,
        says(
            "Estimate of different people among the buyers: wallets with one funder count once; of new "
            "wallets with a funder that is new, an exchange or unknown, ten count as one."
        ),
    ]
    launched_at: Annotated[
        datetime | None, says("When the launchpad launched it on a curve. null: it did not.")
    ]
    opened_at: Annotated[datetime, says("When the oldest venue that it traded on opened.")]
    check: Annotated[TokenCheck | None, says("Its newest check. null: none within the last hour.")]


class MovingNow(IndexAnswer, frozen=True, rename="camel"):
    """Tokens with most money coming in over the last ten minutes, most money first."""

    since: Annotated[datetime, says("Start of the window: trades after this and up to blockTime count.")]
    tokens: Annotated[list[Moving], says("At most 20 tokens, the largest net inflow first.")]
    unproven: Annotated[int, says("Tokens left out because no simulated sell of them went through yet.")]
    traps: Annotated[int, says("Tokens left out because their check says that they cannot be sold.")]


async def moving_now(ctx: Context, params: Nothing) -> UseCaseAnswer[MovingNow]:
    """The board. Raises ServiceFull."""
    async with reading(ctx) as (connection, index_cursor):
        now_s = ctx.now_s()
        window = index_cursor.block.timestamp_s - WINDOW_S, index_cursor.block.timestamp_s
        counted = flows_to_count(await moving.flows(connection, window, ctx.contracts, CROWD), now_s)
        wallets = await moving.read_origins(connection, {buyer for flow in counted for buyer in flow.buyers})
        moving_board = board(counted, wallets, window[0], now_s)
        names = await labels(connection, [flow.token_id for flow in moving_board.rows])
        followed_s = await vitals.followed_from_s(connection, index_cursor)
    answer = MovingNow(
        text=_describe(moving_board, names, now_s, window, followed_s),
        chain_id=ctx.chain_id,
        block=index_cursor.block.number,
        block_time=when(window[1]),
        since=when(window[0]),
        tokens=[
            _present_row(flow, names[flow.token_id], crowd(flow.buyers, wallets, window[0]), now_s)
            for flow in moving_board.rows
        ],
        unproven=moving_board.unproven,
        traps=moving_board.traps,
    )
    return UseCaseAnswer(answer, ttl_ms=ctx.policy.answer_ttl_ms)


def _present_row(flow: MoneyFlow, label: Label, people: int, now_s: float) -> Moving:
    return Moving(
        token=present_token(label),
        launchpad=flow.is_launchpads(),
        venue=flow.venue,
        net_in_eth=eth(flow.net_wei()),
        in_eth=eth(flow.in_wei),
        out_eth=eth(flow.out_wei),
        in_usd=None if flow.in_micro_usd is None else flow.in_micro_usd / 10**6,
        buys=flow.buys,
        sells=flow.sells,
        buyers=len(flow.buyers),
        sellers=flow.sellers,
        crowd=people,
        launched_at=None if flow.launched_s is None else when(flow.launched_s),
        opened_at=when(flow.opened_s),
        check=_present_check(flow.fresh(now_s), now_s),
    )


def _present_check(checked: CheckedLevel | None, now_s: float) -> TokenCheck | None:
    if checked is None or (age_s := checked.age_s(now_s)) is None:
        return None
    return TokenCheck(checked.code, checked.level, when(int(checked.at_s)), age_s)


# --- in words --------------------------------------------------------------------------------------


def _describe(
    moving_board: MovingBoard,
    names: Mapping[int, Label],
    now_s: float,
    window: tuple[int, int],
    followed_s: int,
) -> str:
    span = f"In the ten minutes up to {when(window[1]):%Y-%m-%d %H:%M:%S} UTC"
    notes = []
    if followed_s > window[0]:
        notes.append(f"The index begins at {when(followed_s):%H:%M:%S} UTC: earlier trades are not counted.")
    if followed_s > window[0] - FAIRNESS.young_s:
        notes.append(
            "The index is younger than a day, so it knows no wallet to be old: "
            f"{SHARED_PURSE} new wallets count as one person."
        )
    notes += _describe_cautions(moving_board, names, now_s)
    notes += _describe_left_out(moving_board)
    return "\n".join([*_describe_rows(moving_board, names, span), *([" ".join(notes)] if notes else [])])


def _describe_rows(moving_board: MovingBoard, names: Mapping[int, Label], span: str) -> list[str]:
    """A heading, and a line for each of the first rows."""
    rows = moving_board.rows
    people = f"{CROWD} or more buyers (wallets that one wallet funded count once)"
    if not rows:
        listed = f"one that took in more eth than came out and had {people}"
        return [f"{span} there was no token to list, which is {listed}."]
    lines = [f"{span} {format_count(len(rows), 'token')} took in more eth than came out and had {people}:"]
    for rank, flow in enumerate(rows[:_NAMED], 1):
        buyers = format_count(len(flow.buyers), "buyer")
        token, net = quote_token(names[flow.token_id]), format_eth(flow.net_wei())
        lines.append(f"{rank}. {token}: {net} more in than out, {buyers}.")
    if len(rows) > _NAMED:
        lines.append(f"The rows hold {len(rows) - _NAMED} more.")
    return lines


def _describe_cautions(moving_board: MovingBoard, names: Mapping[int, Label], now_s: float) -> list[str]:
    """Warnings from the checks of listed tokens, and on tokens that are listed without a check."""
    by_level: dict[str, list[MoneyFlow]] = {"danger": [], "unknown": []}
    unchecked = 0
    for flow in moving_board.rows:
        fresh = flow.fresh(now_s)
        unchecked += fresh is None
        if fresh is not None and fresh.level in by_level:
            by_level[fresh.level].append(flow)
    parts = []
    if by_level["danger"]:
        tokens = _name_tokens(by_level["danger"], names)
        parts.append(f"You lose half or more of your money when you buy and sell {tokens}.")
    if by_level["unknown"]:
        tokens = _name_tokens(by_level["unknown"], names)
        parts.append(f"We could not find out whether you can sell {tokens}: treat that as a no.")
    if unchecked:
        was = "was" if unchecked == 1 else "were"
        parts.append(
            f"{format_count(unchecked, 'launchpad token')} {was} not checked in the last hour: "
            "run check_token before you buy."
        )
    return parts


def _name_tokens(flows: list[MoneyFlow], names: Mapping[int, Label]) -> str:
    rest = f" and {len(flows) - _NAMED} more" if len(flows) > _NAMED else ""
    return ", ".join(quote_token(names[flow.token_id]) for flow in flows[:_NAMED]) + rest


def _describe_left_out(moving_board: MovingBoard) -> list[str]:
    parts = []
    if moving_board.unproven:
        it = "it" if moving_board.unproven == 1 else "them"
        parts.append(f"{_left_out(moving_board.unproven)} no sell of {it} is proven yet.")
    if moving_board.traps:
        it = "it" if moving_board.traps == 1 else "them"
        parts.append(f"{_left_out(moving_board.traps)} a check found that you cannot sell {it}.")
    return parts


def _left_out(count: int) -> str:
    if count == 1:
        return "1 token is left out:"
    return f"{count} {'or more ' if count >= MAX_OF_A_SORT else ''}tokens are left out:"


_HEIGHT = 100
MovingWindow = Literal["5m", "10m", "1h", "6h", "24h"]
USUAL_WINDOW: MovingWindow = "10m"
"""That of the tool."""
WINDOWS_S: Mapping[MovingWindow, int] = MappingProxyType(
    {"5m": 300, USUAL_WINDOW: WINDOW_S, "1h": 3600, "6h": 21_600, "24h": 86_400}
)
_OF_A_SORT = 80
"""Tokens of each sort among which the page's rows are."""


class MovingParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``window``: how long ago the trades are that are counted. Which tokens are shown does not depend on
    it."""

    window: MovingWindow = USUAL_WINDOW


class MovingRow(MarketRow, frozen=True, rename="camel", kw_only=True):
    """A token. None: not known. ``change_...``: in hundredths of a percent. ``volume``: buys and sells of the
    window; ``makers``: wallets that traded in it; ``is_cut``: there may be more of each. ``kept_bps``: the
    share of the liquidity that nobody takes out. ``free_bps``, ``unproven_bps``: as in ``LeavingLiquidity``.
    ``insiders_bps``: their share of the supply. ``more_hold``: there are more ``holders``. ``line``: heights
    of a day's prices, 0 to 100, the oldest first. ``opened_at``: when it was launched, or its oldest place
    opened."""

    token: TokenNamed
    group: MovingGroup
    verdict: ShownVerdict | None
    venue: VenueKind
    change5m: int | None
    change1h: int | None
    change24h: int | None
    line: list[int | None]
    volume_eth: float
    volume_usd: float | None
    net_in_eth: float
    buys: int
    sells: int
    makers: int
    is_cut: bool
    kept_bps: int | None
    free_bps: int | None
    unproven_bps: int | None
    insiders_bps: int | None
    holders: int
    more_hold: bool
    age_s: int
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class _RowFacts:
    """What is read of a token for its row."""

    flow: MoneyFlow
    group: MovingGroup
    label: Label
    line: PriceLine
    depth: MarketDepth
    exposed: TokenExposure
    opened_s: int
    traded: WindowTurnover


async def moving_page(ctx: Context, params: MovingParams) -> UseCaseAnswer[PageOfRows[MovingRow]]:
    """The page's rows: the tokens with money coming in over the ten minutes up to the block, most money
    first, with what was traded in the window. Only what a long window counts may be older than ``SHARED_MS``:
    see ``TurnoverCache``. Raises ServiceFull."""
    span_s = WINDOWS_S[params.window]
    async with reading(ctx) as (connection, cursor):
        now_s, newest_s = ctx.now_s(), cursor.block.timestamp_s
        facts = await _read_rows(ctx, connection, cursor, span_s)
        followed_s = await vitals.followed_from_s(connection, cursor)
        money = await read_money(ctx, connection, cursor, [one.depth for one in facts])
    rows = [_present_page_row(one, money, now_s, newest_s) for one in facts]
    text = _describe_gaps(followed_s, (newest_s - WINDOW_S, newest_s))
    answer = PageOfRows(text, cursor.block.number, when(newest_s), rows)
    return UseCaseAnswer(answer, ttl_ms=SHARED_MS)


async def _read_rows(ctx: Context, connection: Connection, cursor: Cursor, span_s: int) -> list[_RowFacts]:
    now_s, newest_s = ctx.now_s(), cursor.block.timestamp_s
    window = newest_s - WINDOW_S, newest_s
    found = await moving.flows(connection, window, ctx.contracts, CROWD)
    counted = flows_to_count(found, now_s, _OF_A_SORT)
    wallets = await moving.read_origins(connection, {buyer for flow in counted for buyer in flow.buyers})
    grouped = group_flows(counted, wallets, window[0], now_s)
    flows = [flow for _, flow in grouped]
    followed_s = await vitals.followed_from_s(connection, cursor)
    names = await labels(connection, [flow.token_id for flow in flows])
    lines = await market_figures.read_prices(connection, flows, newest_s, followed_s, ctx.contracts)
    depths = await market_figures.read_depths(connection, flows, ctx.contracts)
    exposed = await read_exposures(connection, [flow.token for flow in flows])
    opened = await market_figures.read_opened(connection, [flow.token_id for flow in flows])
    if span_s == WINDOW_S:
        traded = {
            flow.token_id: WindowTurnover(flow.in_wei, flow.out_wei, flow.buys, flow.sells, flow.makers)
            for flow in flows
        }
    else:
        span = newest_s - span_s, newest_s
        traded = await ctx.turnovers.read_turnovers(connection, flows, span, ctx.contracts, now_s)
    return [
        _RowFacts(
            flow,
            its_group,
            names[flow.token_id],
            lines[flow.token_id],
            depths[flow.token_id],
            exposed[flow.token],
            opened.get(flow.token_id, flow.opened_s),
            traded[flow.token_id],
        )
        for its_group, flow in grouped
    ]


def _describe_gaps(followed_s: int, window: tuple[int, int]) -> str:
    if followed_s <= window[1] - market_figures.SPANS_S[-1]:
        return ""
    text = f"The index begins at {when(followed_s):%Y-%m-%d %H:%M} UTC: earlier trades are not counted."
    if followed_s > window[0] - FAIRNESS.young_s:
        text += f" No wallet is known to be old yet, so {SHARED_PURSE} new wallets count as one person."
    return text


def _present_page_row(one: _RowFacts, money: PricedMoney, now_s: float, newest_s: int) -> MovingRow:
    flow, traded, depth = one.flow, one.traded, one.depth
    leaving = one.exposed.liquidity(now_s)
    volume_wei = traded.in_wei + traded.out_wei
    return MovingRow(
        **money.market(one.line.newest, depth, one.label),
        token=present_token(one.label),
        group=one.group,
        verdict=present_verdict(replace(flow.checks, exposure=one.exposed), now_s),
        venue=flow.venue,
        change5m=one.line.change_bps(300),
        change1h=one.line.change_bps(3600),
        change24h=one.line.change_bps(86_400),
        line=_draw_line(one.line.points),
        volume_eth=eth(volume_wei),
        volume_usd=money.usd(ZERO_ADDRESS, volume_wei),
        net_in_eth=eth(traded.in_wei - traded.out_wei),
        buys=traded.buys,
        sells=traded.sells,
        makers=traded.makers,
        is_cut=traded.is_cut,
        kept_bps=depth.kept_bps,
        free_bps=None if leaving is None else leaving.free_bps,
        unproven_bps=None if leaving is None else leaving.unproven_bps,
        insiders_bps=one.exposed.insiders(now_s),
        holders=depth.holders,
        more_hold=depth.more_hold,
        age_s=max(0, newest_s - one.opened_s),
        opened_at=when(one.opened_s),
    )


def _draw_line(points: Sequence[int | None]) -> list[int | None]:
    """The heights of prices between the lowest (0) and the highest (100); half of that where all are
    equal."""
    known = [point for point in points if point is not None]
    low, high = (min(known), max(known)) if known else (0, 0)
    return [
        None if point is None else (point - low) * _HEIGHT // (high - low) if high > low else _HEIGHT // 2
        for point in points
    ]
