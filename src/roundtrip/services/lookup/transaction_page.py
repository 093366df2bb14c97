"""The answer of a transaction's page: the explanation, what each asset was worth then, and what checks said
of its tokens."""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import WEI_PER_ETH, ZERO_ADDRESS, Address
from roundtrip.domain.check.price import USDG_UNIT
from roundtrip.domain.verdicts.changes import PastVerdict
from roundtrip.services.lookup.explain import ExplainParams, Explanation, explain
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import looking
from roundtrip.services.support.money import AssetAmount
from roundtrip.services.support.strangers_text import Symbol
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.check.evidence import MAX_COMPARED
from roundtrip.store.index.prices import PastPrices, TradedWorth, past_prices, traded_worths
from roundtrip.store.server.errors import DATABASE_FAULTS

_MAX_TOKENS = 4
"""Whose verdicts are read for one page."""
_READ_S = 5.0


class AssetChange(msgspec.Struct, frozen=True, rename="camel"):
    """What the wallet gave or got of one asset. ``amount``: in whole units. ``usd``: its worth then: of
    money by the index's price before that block, of a token by its trades in this very transaction; None: not
    known."""

    asset: str
    symbol: Symbol
    amount: str
    is_in: bool
    usd: float | None


class VerdictAtBlock(msgspec.Struct, frozen=True, rename="camel"):
    """What a stored check found."""

    code: str
    level: str
    block: int
    checked_at: datetime


class TokenVerdicts(msgspec.Struct, frozen=True, rename="camel"):
    """``then``: of the last check at or before the transaction's block; None: none is stored. ``newest``: of
    the last check at all."""

    token: str
    symbol: Symbol
    then: VerdictAtBlock | None
    newest: VerdictAtBlock


class TransactionPage(msgspec.Struct, frozen=True, rename="camel"):
    """``changes``: what left the wallet first. ``verdicts``: of the tokens among them that were ever
    checked; None: they could not be read."""

    told: Explanation
    changes: list[AssetChange]
    fee_usd: float | None
    verdicts: list[TokenVerdicts] | None


async def transaction_page(ctx: Context, params: ExplainParams) -> UseCaseAnswer[TransactionPage]:
    """Raises as ``explain``. Without an index no worth is known."""
    answered = await explain(ctx, params)
    told = answered.answer
    value = await _read_values(ctx, told)
    changes = [_present_change(one, False, value) for one in told.paid]
    changes += [_present_change(one, True, value) for one in told.got]
    fee_usd = None if told.fee_eth is None else value("eth", round(told.fee_eth * WEI_PER_ETH))
    page = TransactionPage(told, changes, fee_usd, await _read_verdicts(ctx, told))
    return UseCaseAnswer(page, answered.ttl_ms, meter=answered.meter)


async def _read_verdicts(ctx: Context, told: Explanation) -> list[TokenVerdicts] | None:
    if told.tx_block is None:
        return []
    tokens = {one.asset: one.symbol for one in (*told.paid, *told.got) if one.asset.startswith("0x")}
    found = []
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            for token, symbol in [*tokens.items()][:_MAX_TOKENS]:
                past = await evidence_store.past_verdicts(connection, Address(token), MAX_COMPARED)
                if past:
                    then = find_verdict(past, told.tx_block)
                    found.append(TokenVerdicts(token, symbol, then, _present_verdict(past[0])))
    except DATABASE_FAULTS:
        return None
    return found


def find_verdict(newest_first: Sequence[PastVerdict], block: int) -> VerdictAtBlock | None:
    """The last verdict at ``block`` or before it."""
    return next((_present_verdict(one) for one in newest_first if one.block <= block), None)


def _present_verdict(one: PastVerdict) -> VerdictAtBlock:
    return VerdictAtBlock(one.code, one.level, one.block, one.checked_at)


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
