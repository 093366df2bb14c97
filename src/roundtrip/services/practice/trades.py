"""Lists an account's last practice trades, and its profit over time."""

from datetime import UTC, datetime
from typing import Annotated, cast

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import plain_decimal
from roundtrip.domain.base.venue import VenueKind
from roundtrip.services.practice.schema import (
    Eth,
    PracticeTrades,
    TradeListed,
    eth_of,
    practice_eth,
    token_named,
)
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.money import ETH_DECIMALS
from roundtrip.store.practice import practice as store
from roundtrip.store.practice.practice import KeptTrade

MAX_TRADES = 50


async def practice_trades(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[PracticeTrades]:
    """The last trades, the newest first. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        trades = await store.trades(connection, account.id, MAX_TRADES)
    return UseCaseAnswer(PracticeTrades(_text(trades), [_present_trade(trade) for trade in trades]))


def _present_trade(trade: KeptTrade) -> TradeListed:
    is_traded, is_closed = trade.side in ("buy", "sell"), trade.profit_wei is not None
    has_token = trade.token is not None
    return TradeListed(
        id=trade.id,
        side=trade.side,
        token=None if trade.token is None else token_named(trade.token, trade.symbol),
        amount=plain_decimal(trade.token_raw, trade.decimals) if has_token else None,
        raw=str(trade.token_raw) if has_token else None,
        eth=eth_of(trade.eth_wei),
        price=_price(trade) if is_traded else None,
        cost=eth_of(trade.cost_wei) if is_closed else None,
        profit=None if trade.profit_wei is None else eth_of(trade.profit_wei),
        block=trade.block_number,
        block_hash=trade.block_hash,
        venue=cast(VenueKind | None, trade.venue),
        sells_back=trade.sells_back,
        counted=trade.counted,
        why_not=trade.why_not,
        made_at=trade.made_at,
    )


def _price(trade: KeptTrade) -> str:
    """Eth a whole token."""
    wei_e18 = trade.eth_wei * 10 ** (trade.decimals + ETH_DECIMALS) // trade.token_raw
    return _short(plain_decimal(wei_e18, 2 * ETH_DECIMALS))


def _short(text: str) -> str:
    """Cuts the fraction to 18 digits, from its first digit that is not 0 where the whole part is 0."""
    whole, _, fraction = text.partition(".")
    zeros = len(fraction) - len(fraction.lstrip("0")) if whole == "0" else 0
    digits = fraction[: zeros + ETH_DECIMALS].rstrip("0")
    return f"{whole}.{digits}" if digits else whole


def _text(trades: list[KeptTrade]) -> str:
    if not trades:
        return "You have made no practice trade yet."
    sells = [trade for trade in trades if trade.side == "sell"]
    profit_wei = sum(trade.profit_wei or 0 for trade in sells)
    count = "entry" if len(trades) == 1 else f"{len(trades)} entries"
    text = f"Your last {count}, the newest first."
    if sells:
        result = f"{'made' if profit_wei >= 0 else 'lost'} {practice_eth(abs(profit_wei))}"
        text += f" The {format_count(len(sells), 'sell')} among them {result}."
    return text


MAX_CLOSINGS = 200


class ProfitPoint(msgspec.Struct, frozen=True):
    """``total``: what all sells and write-offs up to this one took, losses off."""

    at: datetime
    profit: Eth
    total: Eth


class PracticeHistory(msgspec.Struct, frozen=True, rename="camel"):
    """Profit that was taken, by time."""

    text: str
    points: Annotated[list[ProfitPoint], says(f"The newest {MAX_CLOSINGS}, the oldest first.")]
    is_all: bool
    now: datetime


async def practice_history(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[PracticeHistory]:
    """The profit of sells and write-offs over time. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        closings = await store.closings(connection, account.id, MAX_CLOSINGS + 1)
    shown = closings[:MAX_CLOSINGS]
    points = [ProfitPoint(c.at, eth_of(c.profit_wei), eth_of(c.total_wei)) for c in reversed(shown)]
    text = _history_text(shown[0].total_wei if shown else None)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    return UseCaseAnswer(PracticeHistory(text, points, len(shown) == len(closings), now))


def _history_text(total_wei: int | None) -> str:
    if total_wei is None:
        return "You have sold nothing yet."
    result = f"{'made' if total_wei >= 0 else 'lost'} {practice_eth(abs(total_wei))}"
    return f"All your sells and write-offs together {result}."
