"""The newest trades of a token in its main pools, for its page."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import IndexAnswer, Nothing, reading, when
from roundtrip.services.support.money import USDG_DECIMALS
from roundtrip.services.support.strangers_text import Symbol
from roundtrip.services.support.wallet_params import read_address
from roundtrip.store.boards.price_candles import NewestTrade, main_pools, newest_trades
from roundtrip.store.boards.trader_tags import TraderTags, read_trader_tags
from roundtrip.store.index.addresses import id_of
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.watch.watches import follows_of

from .price_chart import TTL_MS, QuoteScale, read_scale

SHOWN = 30
TraderTag = Literal["deployer", "funded by deployer", "sniper", "bundle"]


class TradesParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which token."""

    address: str

    def token(self) -> Address:
        """The address, lower-cased. Raises ParamFault (bad_address)."""
        return read_address(self.address)


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


async def token_trades(ctx: Context, params: TradesParams) -> UseCaseAnswer[TokenTrades]:
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
    return UseCaseAnswer(_present(ctx, token, index_cursor, scale, trades, tags), TTL_MS)


def _present(
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


class FollowedWallets(msgspec.Struct, frozen=True):
    """The wallets that an account follows."""

    wallets: list[str]


async def followed_wallets(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[FollowedWallets]:
    """The wallets that the account follows. Raises ServiceFull (busy)."""
    async with reading(ctx) as (connection, _):
        follows = await follows_of(connection, account.id)
    return UseCaseAnswer(FollowedWallets([follow.wallet for follow in follows]))
