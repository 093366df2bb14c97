"""The last practice trades, as they were priced."""

from datetime import datetime
from typing import Annotated, cast

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import plain_decimal
from roundtrip.domain.base.venue import VenueKind
from roundtrip.services.accounts.database import accounts
from roundtrip.services.practice.schema import Eth, PracticeTrades, TradeListed, eth_of, token_named
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.money import ETH_DECIMALS
from roundtrip.store.practice import practice as store
from roundtrip.store.practice.practice import KeptTrade

MOST_TRADES = 50


async def practice_trades(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[PracticeTrades]:
    """Raises ServiceFull."""
    async with accounts(ctx) as connection:
        found = await store.trades(connection, account.id, MOST_TRADES)
    return UseCaseAnswer(PracticeTrades(_text(found), [_present_trade(one) for one in found]))


def _present_trade(one: KeptTrade) -> TradeListed:
    is_traded, is_closed = one.side in ("buy", "sell"), one.profit_wei is not None
    has_token = one.token is not None
    return TradeListed(
        id=one.id,
        side=one.side,
        token=None if one.token is None else token_named(one.token, one.symbol),
        amount=plain_decimal(one.token_raw, one.decimals) if has_token else None,
        raw=str(one.token_raw) if has_token else None,
        eth=eth_of(one.eth_wei),
        price=_price(one) if is_traded else None,
        cost=eth_of(one.cost_wei) if is_closed else None,
        profit=None if one.profit_wei is None else eth_of(one.profit_wei),
        block=one.block_number,
        block_hash=one.block_hash,
        venue=cast(VenueKind | None, one.venue),
        sells_back=one.sells_back,
        counted=one.counted,
        why_not=one.why_not,
        made_at=one.made_at,
    )


def _price(one: KeptTrade) -> str:
    """Eth for a whole token."""
    wei_e18 = one.eth_wei * 10 ** (one.decimals + ETH_DECIMALS) // one.token_raw
    return _short(plain_decimal(wei_e18, 2 * ETH_DECIMALS))


def _short(text: str) -> str:
    """Eighteen digits from the first that says something."""
    whole, _, fraction = text.partition(".")
    zeros = len(fraction) - len(fraction.lstrip("0")) if whole == "0" else 0
    kept = fraction[: zeros + ETH_DECIMALS].rstrip("0")
    return f"{whole}.{kept}" if kept else whole


def _text(found: list[KeptTrade]) -> str:
    if not found:
        return "There was no practice trade yet."
    sells = [one for one in found if one.side == "sell"]
    profit_wei = sum(one.profit_wei or 0 for one in sells)
    count = "1 entry" if len(found) == 1 else f"{len(found)} entries"
    took = f"took {eth_of(profit_wei)}" if profit_wei >= 0 else f"lost {eth_of(-profit_wei)}"
    said = f"The last {count} of the ledger, the newest first."
    if sells:
        said += f" {len(sells)} of them {'is a sell' if len(sells) == 1 else 'are sells'}, which {took} eth."
    return said


MOST_CLOSINGS = 200


class ProfitPoint(msgspec.Struct, frozen=True):
    """``total``: what all sells and write-offs up to this one took, losses off."""

    at: datetime
    profit: Eth
    total: Eth


class PracticeHistory(msgspec.Struct, frozen=True, rename="camel"):
    """Profit that was taken, by time."""

    text: str
    points: Annotated[
        list[ProfitPoint], msgspec.Meta(description=f"The newest {MOST_CLOSINGS}, the oldest first.")
    ]
    is_all: bool


async def practice_history(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[PracticeHistory]:
    """Raises ServiceFull."""
    async with accounts(ctx) as connection:
        closings = await store.closings(connection, account.id, MOST_CLOSINGS + 1)
    shown = closings[:MOST_CLOSINGS]
    points = [ProfitPoint(one.at, eth_of(one.profit_wei), eth_of(one.total_wei)) for one in reversed(shown)]
    return UseCaseAnswer(PracticeHistory(_text_history(points), points, len(shown) == len(closings)))


def _text_history(points: list[ProfitPoint]) -> str:
    if not points:
        return "Nothing was sold yet."
    total = points[-1].total
    took = f"lost {total[1:]}" if total.startswith("-") else f"took {total}"
    return f"All sells and write-offs together {took} practice eth."
