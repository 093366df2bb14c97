"""A practice sell: at the price that the chain would pay at this block, or not at all."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal, localcontext
from functools import partial

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.figures import format_about, format_amount, format_shortfall
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.practice import practice
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import read_address
from roundtrip.services.support.index_reader import called_by
from roundtrip.services.support.money import ETH_DECIMALS
from roundtrip.services.valuation.holdings import HoldingToSell, slot_of, worth
from roundtrip.store.practice import league
from roundtrip.store.practice import practice as store
from roundtrip.store.practice.practice import Slot, StoredPosition, TradeNotes
from roundtrip.store.server.rows import Connection

from .account import holding_of
from .ledger import (
    AccountPage,
    TradeRequest,
    book_trade,
    mark_failed,
    mark_stuck,
    now_of,
    read_request,
    repeat_key,
    retry_if_stale,
    run_or_repeat,
    write_trade,
)
from .pricing import PricedSell, SlotOf, Unsellable, ValueHoldings, price_sell
from .schema import (
    PositionAfter,
    PracticeSellParams,
    PracticeSold,
    PracticeVenue,
    eth_of,
    practice_eth,
    token_named,
)

Pricing = Callable[
    [Context, ChainHead, HoldingToSell, ValueHoldings, Meter], Awaitable[PricedSell | Unsellable]
]
CountSell = Callable[..., Awaitable[str | None]]
"""The signature of ``league.count_sell`` in the store."""


@dataclass(frozen=True, slots=True)
class SellPricing:
    """The functions that price and count a sell. Tests replace them."""

    price: Pricing = price_sell
    worth: ValueHoldings = worth
    slot_of: SlotOf = slot_of
    count_sell: CountSell = league.count_sell


PRICING = SellPricing()


async def practice_sell(
    ctx: Context, params: PracticeSellParams, account: Account, once: str | None
) -> UseCaseAnswer[PracticeSold]:
    """Sells a part of a practice position. ``once``: the caller's idempotency key. Raises CallerFault
    (bad_input, nothing_to_sell, too_small, would_fail), NodeFault, ServiceFull."""
    meter = Meter()
    return UseCaseAnswer(await sell(ctx, params, account, once, PRICING, meter), meter=meter)


async def sell(
    ctx: Context,
    params: PracticeSellParams,
    account: Account,
    once: str | None,
    pricing: SellPricing,
    meter: Meter,
) -> PracticeSold:
    """Sells with this pricing. Raises as ``practice_sell``."""
    percent, token = Decimal(repr(float(params.percent))), read_address(params.token, "token", "bad_input")
    key = repeat_key(once, "practice_sell", token, percent.normalize())
    request = TradeRequest(account, token, now_of(ctx), ctx.heads.last_number(), key, PracticeSold)
    run = retry_if_stale(partial(_sell, ctx, request, percent, pricing, meter))
    return await run_or_repeat(ctx, request, run)


async def _sell(
    ctx: Context, request: TradeRequest, percent: Decimal, pricing: SellPricing, meter: Meter
) -> PracticeSold:
    page = await read_request(ctx, request)
    if isinstance(page, PracticeSold):
        return page
    assert isinstance(page, AccountPage)
    if page.own is None:
        raise CallerFault("nothing_to_sell", f"You have no open practice position in {request.token}.")
    part_raw = _part_raw(page.own.position.held_raw, percent)
    head = await ctx.heads.read_now()
    slot = page.own.slot or await _find_slot(ctx, head, request.token, pricing, meter)
    holding = holding_of(page.own, request.at, part_raw, page.recent.sold_raw, slot)
    priced = await pricing.price(ctx, head, holding, pricing.worth, meter)
    is_all = part_raw == page.own.position.held_raw
    if isinstance(priced, Unsellable):
        if priced.by_check:
            await mark_stuck(ctx, request)
        elif is_all and page.recent.sold_raw == 0:
            await mark_failed(ctx, request, part_raw)
        raise CallerFault("would_fail", priced.why)
    if not is_all and priced.got_wei < practice.MIN_WEI:
        brings, least = format_shortfall(priced.got_wei, practice.MIN_WEI, ETH_DECIMALS)
        message = f"That part brings {brings} eth, and a part must bring {least}: sell more, or all of it."
        raise CallerFault("too_small", message)
    fill = partial(_fill, ctx, request, part_raw, slot, priced, pricing)
    return await book_trade(ctx, request, page, fill)


def _part_raw(held_raw: int, percent: Decimal) -> int:
    """The raw amount to sell. Raises CallerFault (nothing_to_sell) if it is 0."""
    with localcontext() as context:
        context.prec, context.rounding = 120, ROUND_DOWN
        part_raw = int(Decimal(held_raw) * percent / 100)
    if part_raw == 0:
        raise CallerFault(
            "nothing_to_sell",
            "That share of your position is less than the token's smallest unit: sell more.",
        )
    return min(held_raw, part_raw)


async def _find_slot(
    ctx: Context, head: ChainHead, token: Address, pricing: SellPricing, meter: Meter
) -> Slot | None:
    """Searches the token's balance slot. Raises NodeFault."""
    slot = await pricing.slot_of(ctx, head, token, meter)
    return None if slot is None else Slot(slot.layout, slot.base)


async def _fill(
    ctx: Context,
    request: TradeRequest,
    part_raw: int,
    slot: Slot | None,
    priced: PricedSell,
    pricing: SellPricing,
    connection: Connection,
    page: AccountPage,
) -> PracticeSold:
    assert page.own is not None, "book_trade found the same position as the price"
    account, position, trade = practice.sell(page.account, page.own.position, part_raw, priced.got_wei)
    assert trade.profit_wei is not None
    stored = replace(page.own, position=position, slot=slot, failed_at=None, stuck_at=None)
    why_not = await pricing.count_sell(
        connection,
        request.account,
        request.token,
        trade.profit_wei,
        priced.block,
        request.at,
        venue=priced.venue.at(),
        contracts=ctx.contracts,
        bought_at=page.own.at,
    )
    if why_not is not None:
        account = practice.set_apart(account, trade)
    notes = TradeNotes(priced.block, priced.venue.kind, None, why_not is None, why_not)
    trade_id = await write_trade(connection, request, account, stored, trade, notes)
    symbols = await store.symbols(connection, [request.token])
    sale = _BookedSale(trade_id, account, stored, trade, why_not, symbols.get(request.token))
    return _answer(ctx, request, priced, sale)


@dataclass(frozen=True, slots=True)
class _BookedSale:
    trade_id: int
    account: practice.PracticePurse
    stored: StoredPosition
    trade: practice.PracticeTrade
    why_not: str | None
    symbol: str | None


def _answer(ctx: Context, request: TradeRequest, priced: PricedSell, sale: _BookedSale) -> PracticeSold:
    position, decimals, trade = sale.stored.position, sale.stored.decimals, sale.trade
    position_after = None
    if position.state == "open":
        position_after = PositionAfter(
            plain_decimal(position.held_raw, decimals), str(position.held_raw), eth_of(position.cost_wei)
        )
    answer = PracticeSold(
        text="",
        id=sale.trade_id,
        chain_id=ctx.chain_id,
        block=priced.block.number,
        block_hash=priced.block.hash,
        token=token_named(request.token, sale.symbol),
        venue=PracticeVenue(priced.venue.kind, priced.venue.at(), priced.venue.quote),
        sold=plain_decimal(trade.token_raw, decimals),
        sold_raw=str(trade.token_raw),
        got=eth_of(trade.eth_wei),
        cost=eth_of(trade.cost_wei),
        profit=eth_of(trade.profit_wei or 0),
        counted=sale.why_not is None,
        set_apart=eth_of(0 if sale.why_not is None else max(0, trade.profit_wei or 0)),
        why_not=sale.why_not,
        position=position_after,
        eth_left=eth_of(sale.account.eth_wei),
        made_at=request.at,
    )
    return msgspec.structs.replace(answer, text=_text(answer, sale))


def _text(answer: PracticeSold, sale: _BookedSale) -> str:
    trade, position, decimals = sale.trade, sale.stored.position, sale.stored.decimals
    profit_wei = trade.profit_wei or 0
    result = f"a {'profit' if profit_wei >= 0 else 'loss'} of {format_amount(abs(profit_wei), ETH_DECIMALS)}"
    sentences = [
        f"You sold {format_about(trade.token_raw, decimals)} of {called_by(answer.token)} for "
        f"{practice_eth(trade.eth_wei)} at block {answer.block:,}. "
        f"It had cost {format_amount(trade.cost_wei, ETH_DECIMALS)}: {result}."
    ]
    if not answer.counted:
        reason = f": {answer.why_not}" if answer.why_not else ""
        sentences.append(f"It does not count for the league{reason}.")
        if profit_wei > 0:
            sentences.append("Its profit is set apart: you cannot spend it.")
    is_open = position.state == "open"
    purse = practice_eth(sale.account.eth_wei)
    if is_open:
        sentences.append(f"You have {format_about(position.held_raw, decimals)} of it left, and {purse}.")
    else:
        # A real wallet may keep a part of it: some tokens do not let all go.
        sentences.append(f"The practice position is closed. You have {purse}.")
    return " ".join(sentences)
