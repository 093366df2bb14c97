"""A practice sell: at what the chain would pay this block, or not at all."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal, localcontext
from functools import partial

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.practice import practice
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import called_by
from roundtrip.services.trade.prepare import address
from roundtrip.services.valuation.holdings import HoldingToSell, slot_of, worth
from roundtrip.store.practice import league
from roundtrip.store.practice import practice as store
from roundtrip.store.practice.league import LeagueEligibility
from roundtrip.store.practice.practice import Slot, StoredPosition, TradeNotes
from roundtrip.store.server.rows import Connection

from .account import holding_of
from .ledger import (
    AccountPage,
    TradeRequest,
    begin,
    book_trade,
    mark_failed,
    mark_stuck,
    moment,
    once_for,
    run_or_repeat,
    twice,
    write,
)
from .pricing import PricedSell, SlotOf, Unsellable, Valuing, price_sell
from .schema import PositionAfter, PracticeSellParams, PracticeSold, PracticeVenue, eth_of, token_named

Pricing = Callable[[Context, ChainHead, HoldingToSell, Valuing, Meter], Awaitable[PricedSell | Unsellable]]
CountSell = Callable[..., Awaitable[LeagueEligibility]]
"""As ``store/practice/league.py`` has it."""


@dataclass(frozen=True, slots=True)
class SellPricing:
    """What prices a sell, and counts it. Tests give their own."""

    price: Pricing = price_sell
    worth: Valuing = worth
    slot_of: SlotOf = slot_of
    count_sell: CountSell = league.count_sell


MEANS = SellPricing()


async def practice_sell(
    ctx: Context, params: PracticeSellParams, account: Account, once: str | None
) -> UseCaseAnswer[PracticeSold]:
    """Raises CallerFault (bad_input, nothing_to_sell, too_small, would_fail), NodeFault, ServiceFull."""
    meter = Meter()
    return UseCaseAnswer(await sell(ctx, params, account, once, MEANS, meter), meter=meter)


async def sell(
    ctx: Context,
    params: PracticeSellParams,
    account: Account,
    once: str | None,
    means: SellPricing,
    meter: Meter,
) -> PracticeSold:
    """The sell by these means. Raises as ``practice_sell``."""
    share, token = Decimal(repr(float(params.percent))), address(params.token)
    named = once_for(once, "practice_sell", token, share.normalize())
    asked = TradeRequest(account, token, moment(ctx), ctx.heads.last_number(), named, PracticeSold)
    return await run_or_repeat(ctx, asked, twice(partial(_sell, ctx, asked, share, means, meter)))


async def _sell(
    ctx: Context, asked: TradeRequest, share: Decimal, means: SellPricing, meter: Meter
) -> PracticeSold:
    page = await begin(ctx, asked)
    if isinstance(page, PracticeSold):
        return page
    assert isinstance(page, AccountPage)
    if page.own is None:
        raise CallerFault("nothing_to_sell", "The account holds none of this token.")
    part_raw = _part_raw(page.own.position.held_raw, share)
    head = ctx.heads.current()
    slot = page.own.slot or await _slot(ctx, head, asked.token, means, meter)
    holding = holding_of(page.own, asked.at, part_raw, page.recent.sold_raw, slot)
    priced = await means.price(ctx, head, holding, means.worth, meter)
    is_all = part_raw == page.own.position.held_raw
    if isinstance(priced, Unsellable):
        if priced.by_check:
            await mark_stuck(ctx, asked)
        elif is_all and page.recent.sold_raw == 0:
            await mark_failed(ctx, asked, part_raw)
        raise CallerFault("would_fail", priced.why)
    if not is_all and priced.got_wei < practice.LEAST_WEI:
        least, brings = eth_of(practice.LEAST_WEI), eth_of(priced.got_wei)
        said = f"That part brings {brings} eth, and a part has to bring {least}: sell all of it."
        raise CallerFault("too_small", said)
    fill = partial(_fill, ctx, asked, part_raw, slot, priced, means)
    return await book_trade(ctx, asked, page, fill)


def _part_raw(held_raw: int, share: Decimal) -> int:
    """Base units to sell. Raises CallerFault."""
    with localcontext() as context:
        context.prec, context.rounding = 120, ROUND_DOWN
        part_raw = int(Decimal(held_raw) * share / 100)
    if part_raw == 0:
        raise CallerFault("nothing_to_sell", "That share of it is less than the token's least unit.")
    return min(held_raw, part_raw)


async def _slot(
    ctx: Context, head: ChainHead, token: Address, means: SellPricing, meter: Meter
) -> Slot | None:
    """Where the balances lie, where that was not found out before. Raises NodeFault."""
    found = await means.slot_of(ctx, head, token, meter)
    return None if found is None else Slot(found.layout, found.base)


async def _fill(
    ctx: Context,
    asked: TradeRequest,
    part_raw: int,
    slot: Slot | None,
    priced: PricedSell,
    means: SellPricing,
    connection: Connection,
    page: AccountPage,
) -> PracticeSold:
    assert page.own is not None, "what the price stood on is as it was"
    account, position, trade = practice.sell(page.account, page.own.position, part_raw, priced.got_wei)
    assert trade.profit_wei is not None
    kept = replace(page.own, position=position, slot=slot, failed_at=None, stuck_at=None)
    counted = await means.count_sell(
        connection,
        asked.account,
        asked.token,
        trade.profit_wei,
        priced.block,
        asked.at,
        venue=priced.venue.at(),
        contracts=ctx.contracts,
        bought_at=page.own.at,
    )
    if not counted.counts:
        account = practice.set_apart(account, trade)
    told = TradeNotes(priced.block, priced.venue.kind, None, counted.counts, counted.why_not)
    number = await write(connection, asked, account, kept, trade, told)
    names = await store.symbols(connection, [asked.token])
    return _answer(
        ctx, asked, priced, _SaleDone(number, account, kept, trade, counted, names.get(asked.token))
    )


@dataclass(frozen=True, slots=True)
class _SaleDone:
    number: int
    account: practice.PracticePurse
    kept: StoredPosition
    trade: practice.PracticeTrade
    counted: LeagueEligibility
    symbol: str | None


def _answer(ctx: Context, asked: TradeRequest, priced: PricedSell, done: _SaleDone) -> PracticeSold:
    position, decimals, trade = done.kept.position, done.kept.decimals, done.trade
    left = None
    if position.state == "open":
        left = PositionAfter(
            plain_decimal(position.held_raw, decimals), str(position.held_raw), eth_of(position.cost_wei)
        )
    answer = PracticeSold(
        text="",
        id=done.number,
        chain_id=ctx.chain_id,
        block=priced.block.number,
        block_hash=priced.block.hash,
        token=token_named(asked.token, done.symbol),
        venue=PracticeVenue(priced.venue.kind, priced.venue.at(), priced.venue.quote),
        sold=plain_decimal(trade.token_raw, decimals),
        sold_raw=str(trade.token_raw),
        got=eth_of(trade.eth_wei),
        cost=eth_of(trade.cost_wei),
        profit=eth_of(trade.profit_wei or 0),
        counted=done.counted.counts,
        set_apart=eth_of(0 if done.counted.counts else max(0, trade.profit_wei or 0)),
        why_not=done.counted.why_not,
        position=left,
        eth_left=eth_of(done.account.eth_wei),
        made_at=asked.at,
    )
    return msgspec.structs.replace(answer, text=_text(answer, trade.profit_wei or 0))


def _text(answer: PracticeSold, profit_wei: int) -> str:
    came = f"a profit of {eth_of(profit_wei)}" if profit_wei >= 0 else f"a loss of {eth_of(-profit_wei)}"
    said = [
        f"Sold {answer.sold} of {called_by(answer.token)} for {answer.got} practice eth at block "
        f"{answer.block}: it had cost {answer.cost}, {came}."
    ]
    if not answer.counted:
        said.append(f"It does not count for the league{f': {answer.why_not}' if answer.why_not else ''}.")
        if profit_wei > 0:
            said.append(f"Its gain of {answer.set_apart} is set apart and cannot be spent.")
    left = f"{answer.position.amount} of it are" if answer.position is not None else "None of it is"
    said.append(f"{left} left, and {answer.eth_left} practice eth.")
    return " ".join(said)
