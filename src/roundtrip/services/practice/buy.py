"""A practice buy: spends pretend eth at the chain's real price."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.figures import format_about, format_shortfall
from roundtrip.domain.base.types import plain_decimal
from roundtrip.domain.practice import practice
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import read_address
from roundtrip.services.support.index_reader import called_by
from roundtrip.services.support.money import ETH_DECIMALS, parse_amount
from roundtrip.services.valuation.holdings import slot_of
from roundtrip.store.practice.practice import StoredPosition, TradeNotes
from roundtrip.store.server.rows import Connection

from .ledger import (
    AccountPage,
    TradeRequest,
    book_trade,
    now_of,
    read_request,
    repeat_key,
    retry_if_stale,
    run_or_repeat,
    write_trade,
)
from .pricing import Buying, PricedBuy, SlotOf, price_buy
from .schema import (
    PositionAfter,
    PracticeBought,
    PracticeBuyParams,
    PracticeVenue,
    eth_of,
    practice_eth,
    token_named,
)

Pricing = Callable[[Context, ChainHead, Buying, SlotOf | None, Meter], Awaitable[PricedBuy]]


@dataclass(frozen=True, slots=True)
class BuyPricing:
    """The functions that price a buy. Tests replace them."""

    price: Pricing = price_buy
    slot_of: SlotOf = slot_of


PRICING = BuyPricing()


async def practice_buy(
    ctx: Context, params: PracticeBuyParams, account: Account, once: str | None
) -> UseCaseAnswer[PracticeBought]:
    """Buys a token with practice eth. ``once``: the caller's idempotency key. Raises CallerFault (bad_input,
    not_a_token, no_route, would_fail, too_small), NodeFault and ServiceFull."""
    meter = Meter()
    return UseCaseAnswer(await buy(ctx, params, account, once, PRICING, meter), meter=meter)


async def buy(
    ctx: Context,
    params: PracticeBuyParams,
    account: Account,
    once: str | None,
    pricing: BuyPricing,
    meter: Meter,
) -> PracticeBought:
    """Buys with this pricing. Raises as ``practice_buy``."""
    eth_wei, token = (
        parse_amount(params.eth, ETH_DECIMALS, "eth", name="eth"),
        read_address(params.token, "token", "bad_input"),
    )
    if eth_wei < practice.MIN_WEI:
        least = eth_of(practice.MIN_WEI)
        raise CallerFault("too_small", f'eth must be at least "{least}", the smallest practice buy.')
    key = repeat_key(once, "practice_buy", token, eth_wei)
    request = TradeRequest(account, token, now_of(ctx), ctx.heads.last_number(), key, PracticeBought)
    run = retry_if_stale(partial(_buy, ctx, request, eth_wei, pricing, meter))
    return await run_or_repeat(ctx, request, run)


async def _buy(
    ctx: Context, request: TradeRequest, eth_wei: int, pricing: BuyPricing, meter: Meter
) -> PracticeBought:
    page = await read_request(ctx, request)
    if isinstance(page, PracticeBought):
        return page
    assert isinstance(page, AccountPage)
    _check_account(page, eth_wei)
    head = await ctx.heads.read_now()
    has_slot = page.own is not None and page.own.slot is not None
    at = None if page.own is None else page.own.at
    buying = Buying(request.token, eth_wei, page.recent.bought_wei, at)
    priced = await pricing.price(ctx, head, buying, None if has_slot else pricing.slot_of, meter)
    _check_cap(page, priced)
    return await book_trade(ctx, request, page, partial(_fill, ctx, request, priced))


def _check_account(page: AccountPage, eth_wei: int) -> None:
    """Raises CallerFault (would_fail) when the account has too little eth or too many positions."""
    has_wei = page.account.eth_wei
    if eth_wei > has_wei:
        has, needs = format_shortfall(has_wei, eth_wei, ETH_DECIMALS)
        message = f"You have {has} practice eth, and this buy needs {needs}."
        raise CallerFault("would_fail", message)
    if page.own is None and len(page.positions) >= practice.MAX_POSITIONS:
        raise CallerFault(
            "would_fail",
            f"You have {practice.MAX_POSITIONS} open positions, the most allowed: sell one first.",
        )


def _check_cap(page: AccountPage, priced: PricedBuy) -> None:
    """Limits a position to what its venue could pay out: more could not have been bought on the chain. Raises
    CallerFault (would_fail)."""
    held_raw = 0 if page.own is None else page.own.position.held_raw
    if held_raw + priced.token_raw > priced.payable_raw:
        cap, total = format_shortfall(priced.payable_raw, held_raw + priced.token_raw, priced.decimals)
        message = (
            f"Its venue holds {cap} tokens, and with this buy you would hold {total}: more than it could pay."
        )
        raise CallerFault("would_fail", message)


async def _fill(
    ctx: Context, request: TradeRequest, priced: PricedBuy, connection: Connection, page: AccountPage
) -> PracticeBought:
    _check_account(page, priced.spent_wei)
    position = page.own.position if page.own is not None else practice.PracticePosition(request.token)
    account, position, trade = practice.buy(page.account, position, priced.spent_wei, priced.token_raw)
    at = priced.venue.at()
    stored = StoredPosition(position, priced.decimals, priced.slot, request.at, request.at, at)
    if page.own is not None:
        slot = page.own.slot or priced.slot
        stored = replace(page.own, position=position, slot=slot, bought_at=request.at, at=at)
    notes = TradeNotes(priced.block, priced.venue.kind, priced.sells_back)
    trade_id = await write_trade(connection, request, account, stored, trade, notes)
    decimals = stored.decimals
    answer = PracticeBought(
        text="",
        id=trade_id,
        chain_id=ctx.chain_id,
        block=priced.block.number,
        block_hash=priced.block.hash,
        token=token_named(request.token, priced.symbol),
        venue=PracticeVenue(priced.venue.kind, at, priced.venue.quote),
        spent=eth_of(trade.eth_wei),
        received=plain_decimal(trade.token_raw, decimals),
        received_raw=str(trade.token_raw),
        sells_back=priced.sells_back,
        verdict=priced.verdict,
        position=PositionAfter(
            plain_decimal(position.held_raw, decimals), str(position.held_raw), eth_of(position.cost_wei)
        ),
        eth_left=eth_of(account.eth_wei),
        made_at=request.at,
    )
    text = _text(answer, trade, decimals, account.eth_wei, has_slot=stored.slot is not None)
    return msgspec.structs.replace(answer, text=text)


def _sell_back_text(answer: PracticeBought) -> str:
    """What the sell straight back came to. The verdict of one that worked says so itself."""
    text = answer.verdict.text
    if answer.sells_back == "yes":
        return text if text.startswith("It goes through, ") else f"You can sell it straight back. {text}"
    if answer.sells_back == "no":
        return f"You cannot sell it straight back. {text}"
    not_a_pass = "" if "This is not a pass" in text else " This is not a pass."
    return f"We could not find out whether you can sell it straight back. {text}{not_a_pass}"


def _text(
    answer: PracticeBought, trade: practice.PracticeTrade, decimals: int, left_wei: int, *, has_slot: bool
) -> str:
    sentences = [
        f"You bought {format_about(trade.token_raw, decimals)} of {called_by(answer.token)} for "
        f"{practice_eth(trade.eth_wei)} at block {answer.block:,}.",
        _sell_back_text(answer),
    ]
    if not has_slot:
        sentences.append(
            "We do not know where this token stores its balances: you can sell it here only while we know a "
            "wallet that holds as much."
        )
    sentences.append(f"You have {practice_eth(left_wei)} left.")
    return " ".join(sentences)
