"""The answer of a transaction's page: the explanation, and what each asset was worth then."""

from collections.abc import Callable

import msgspec

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import WEI_PER_ETH, ZERO_ADDRESS, Address
from roundtrip.domain.check.price import USDG_UNIT
from roundtrip.services.lookup.explain import ExplainParams, Explanation, explain
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import looking
from roundtrip.services.support.money import AssetAmount
from roundtrip.services.support.strangers_text import Symbol
from roundtrip.store.index.prices import PastPrices, TradedWorth, past_prices, traded_worths


class AssetChange(msgspec.Struct, frozen=True, rename="camel"):
    """What the wallet gave or got of one asset. ``amount``: in whole units. ``usd``: its worth then: of
    money by the index's price before that block, of a token by its trades in this very transaction; None: not
    known."""

    asset: str
    symbol: Symbol
    amount: str
    is_in: bool
    usd: float | None


class TransactionPage(msgspec.Struct, frozen=True, rename="camel"):
    """``changes``: what left the wallet first."""

    told: Explanation
    changes: list[AssetChange]
    fee_usd: float | None


async def transaction_page(ctx: Context, params: ExplainParams) -> UseCaseAnswer[TransactionPage]:
    """Raises as ``explain``. Without an index no worth is known."""
    answered = await explain(ctx, params)
    told = answered.answer
    value = await _read_values(ctx, told)
    changes = [_present_change(one, False, value) for one in told.paid]
    changes += [_present_change(one, True, value) for one in told.got]
    fee_usd = None if told.fee_eth is None else value("eth", round(told.fee_eth * WEI_PER_ETH))
    page = TransactionPage(told, changes, fee_usd)
    return UseCaseAnswer(page, answered.ttl_ms, meter=answered.meter)


Valuer = Callable[[str, int], float | None]
"""The dollars that so many base units of an asset were worth; None: not known."""


def _present_change(one: AssetAmount, is_in: bool, value: Valuer) -> AssetChange:
    return AssetChange(one.asset, one.symbol, one.amount, is_in, value(one.asset, int(one.raw)))


async def _read_values(ctx: Context, told: Explanation) -> Valuer:
    if told.tx_block is None or told.tx_time is None:
        return lambda asset, raw: None
    number, at_s = told.tx_block, int(told.tx_time.timestamp())
    try:
        async with looking(ctx) as (connection, _):
            prices = await past_prices(connection, ctx.contracts, {ctx.contracts.weth}, {number: at_s})
            traded = await traded_worths(connection, number, at_s, told.hash)
    except ServiceFull:
        return lambda asset, raw: None
    return lambda asset, raw: value_asset(asset, raw, number, prices, traded)


def value_asset(
    asset: str, raw: int, number: int, prices: PastPrices, traded: dict[Address, TradedWorth]
) -> float | None:
    """The dollars that ``raw`` base units were worth in the block ``number``. ``asset``: as in
    ``AssetAmount``. None: not known."""
    money = {"eth": ZERO_ADDRESS, "weth": prices.weth, "usdg": prices.usdg}
    if asset in money:
        micro_usd = prices.worth(money[asset], raw, number)
    else:
        trade = traded.get(Address(asset))
        micro_usd = None if trade is None else trade.micro_usd * raw // trade.token_raw
    return None if micro_usd is None else micro_usd / USDG_UNIT
