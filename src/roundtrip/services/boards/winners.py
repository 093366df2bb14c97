"""``winners``: the wallets that closed the most profit in the last day."""

from typing import Annotated

import msgspec

from roundtrip.domain.base.figures import format_count, format_eth
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.market.fairness import FAIRNESS
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import SoldOutAt, WalletAddress, says
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
from roundtrip.store.boards import winners as boards
from roundtrip.store.boards.winners import ClosingTotals, RankedClosings, WinnersBoard
from roundtrip.store.index.tokens import Label, labels
from roundtrip.store.server.rows import Connection

SPAN = "24h"
SHOWN = 50
OLDEST_S = 600
"""Twenty times the age a board reaches while workers run jobs. An older board means that no worker runs them,
so the request counts it now."""
_DESCRIBED = 3
_LIVE_S = 20.0
"""Database timeout when a request counts the board: all callers share the answer."""
_DAY_S = 86_400
_PEOPLE = f"{FAIRNESS.least_buyers} different people (wallets that one wallet funded count once)"
_TOKENS = f"A token counts once it is a day old and was bought by at least {_PEOPLE}."
_WALLETS = (
    "Its deployer does not count, nor the wallet that sent the deployer its first eth, nor any wallet that "
    "got its first eth from either of them."
)


class BestTrade(msgspec.Struct, frozen=True, rename="camel"):
    """The token that a wallet made most with, from its first buy until it had sold out."""

    token: Annotated[TokenNamed, says("The token.")]
    profit_eth: Annotated[float, says("What it got minus what it spent, in eth.")]
    spent_eth: Annotated[float, says("What it paid for the token, in eth.")]
    multiple: Annotated[float | None, says("What it got divided by what it spent. null: it paid nothing.")]
    closed_at: SoldOutAt


class WinnerRow(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet, by what it closed in the last 24 hours."""

    rank: Annotated[int, says("Place on the board; 1 made the most profit.")]
    wallet: WalletAddress
    profit_eth: Annotated[float, says("Profit of everything it closed, losses subtracted, in eth.")]
    spent_eth: Annotated[float, says("What it had paid for that, in eth.")]
    return_multiple: Annotated[
        float | None, says("What it got divided by what it spent. null: it spent nothing.")
    ]
    closed: Annotated[int, says("Tokens that count and that it sold out of.")]
    won: Annotated[int, says("How many of those closed with a profit.")]
    win_rate: Annotated[float, msgspec.Meta(description="won divided by closed, 0 to 1.", ge=0, le=1)]
    best: Annotated[BestTrade, says("The token that it made most with.")]


class Winners(IndexAnswer, frozen=True, rename="camel"):
    """The most profit first. block and blockTime: up to which block it was counted."""

    age_s: Annotated[
        int, msgspec.Meta(description="Seconds between this count and the index's newest block.", ge=0)
    ]
    rows: Annotated[list[WinnerRow], says("At most 50 wallets, the largest profit first.")]


async def winners(ctx: Context, params: Nothing) -> UseCaseAnswer[Winners]:
    """The board as last counted; counts it now if no worker does. Raises ServiceFull."""
    async with reading(ctx) as (connection, index_cursor):
        newest = index_cursor.block
        board = await boards.load_board(connection, SPAN, SHOWN)
        if board is None or newest.timestamp_s - board.at_s > OLDEST_S:
            board = await boards.count_board(connection, SPAN, newest, timeout_s=_LIVE_S)
        rows = board.rows[:SHOWN]
        tokens = await labels(connection, [row.best_token_id for row in rows])
        age_s = newest.timestamp_s - board.at_s
        answer = Winners(
            text=_describe_board(board, rows, tokens, age_s)
            if rows
            else await _describe_empty(connection, board, newest),
            chain_id=ctx.chain_id,
            block=board.block_number,
            block_time=when(board.at_s),
            age_s=age_s,
            rows=[_present_winner(rank, row, tokens[row.best_token_id]) for rank, row in enumerate(rows, 1)],
        )
    return UseCaseAnswer(answer, ctx.policy.answer_ttl_ms)


def _present_winner(rank: int, row: RankedClosings, best: Label) -> WinnerRow:
    best_profit_wei = row.best_got_wei - row.best_spent_wei
    return WinnerRow(
        rank=rank,
        wallet=row.wallet,
        profit_eth=eth(row.profit_wei),
        spent_eth=eth(row.spent_wei),
        return_multiple=_compute_multiple(row.profit_wei, row.spent_wei),
        closed=row.closed,
        won=row.won,
        win_rate=row.won / row.closed,
        best=BestTrade(
            token=present_token(best),
            profit_eth=eth(best_profit_wei),
            spent_eth=eth(row.best_spent_wei),
            multiple=_compute_multiple(best_profit_wei, row.best_spent_wei),
            closed_at=when(row.best_s),
        ),
    )


def _compute_multiple(profit_wei: int, spent_wei: int) -> float | None:
    return (profit_wei + spent_wei) / spent_wei if spent_wei else None


# --- in words --------------------------------------------------------------------------------------


def _describe_board(
    board: WinnersBoard, rows: tuple[RankedClosings, ...], tokens: dict[int, Label], age_s: int
) -> str:
    since = f" ({format_count(age_s, 'second')} before the newest block)" if age_s else ""
    lines = [f"Most profit closed in the 24 hours up to block {board.block_number:,}{since}:"]
    for rank, row in enumerate(rows[:_DESCRIBED], 1):
        lines.append(f"{rank}. {_describe_row(row, tokens[row.best_token_id])}")
    if len(rows) > _DESCRIBED:
        lines.append(f"The rows hold {len(rows) - _DESCRIBED} more.")
    return "\n".join([*lines, f"{_TOKENS} {_WALLETS}"])


def _describe_row(row: RankedClosings, best: Label) -> str:
    won = "" if row.closed == 1 else f" ({row.won:,} with a profit)"
    return (
        f"{row.wallet} made {format_eth(row.profit_wei)} with {format_count(row.closed, 'closed position')}"
        f"{won}. Best: {quote_token(best)}, {format_eth(row.best_spent_wei)} became"
        f" {format_eth(row.best_got_wei)}."
    )


async def _describe_empty(connection: Connection, board: WinnersBoard, newest: BlockRef) -> str:
    totals = await boards.closings(connection, SPAN, board.at_s)
    span = f"the 24 hours up to block {board.block_number:,}"
    text = f"The board of {span} is empty. {_explain_empty(totals, board)}"
    if totals.first_s is not None and totals.first_s > board.at_s - _DAY_S:
        began = f"{when(totals.first_s):%Y-%m-%d %H:%M} UTC"
        text += f" The index begins at {began}: earlier trades are not counted."
    return text


def _explain_empty(totals: ClosingTotals, board: WinnersBoard) -> str:
    if not totals.closings:
        return f"No wallet sold out of a token in that time. {_TOKENS}"
    text = f"Wallets sold out of a token {format_count(totals.closings, 'time')}"
    # A worker that runs jobs stores the tokens that it found fair just now.
    if totals.fair or board.found:
        return f"{text}, but no wallet that counts made a profit. {_WALLETS}"
    if totals.young == totals.tokens:
        return f"{text}. All those tokens are younger than a day, so they do not count."
    few = f"bought by fewer than {_PEOPLE}"
    if totals.young:
        young = f"{totals.young:,} of {format_count(totals.tokens, 'token')} are younger than a day"
        return f"{text}, but none of those tokens counts: {young}, and the others were {few}."
    return f"{text}, but none of those tokens counts: all were {few}."
