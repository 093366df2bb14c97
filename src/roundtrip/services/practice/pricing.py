"""Prices a practice trade on the chain: a buy as a real wallet would make it, a sell by its value."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import REVERTED, Meter, RpcCall, RpcError, hex_bytes
from roundtrip.chain.rpc.errors import describe_error
from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.chain.simulate.legs import cast
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.types import Address, BlockRef, plain_decimal
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.domain.check.price import quote_raw
from roundtrip.domain.check.venue_code import enough
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.domain.practice import practice
from roundtrip.domain.practice.practice import SellsBack
from roundtrip.domain.trade.judge import level_of, refusal_code
from roundtrip.services.check.pipeline import start_check
from roundtrip.services.check.sell_round import run_sell_round
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.money import ETH_DECIMALS
from roundtrip.services.trade.final_run import FinalRun, final_run
from roundtrip.services.trade.prepare import sentence, symbol
from roundtrip.services.trade.rehearsal import (
    Amounts,
    Rehearsals,
    best_buy,
    check_tradable,
    decimals_of,
    paid_with,
    rehearse_each,
    sells,
    tradable,
)
from roundtrip.services.trade.simulate import short_check
from roundtrip.services.trade.simulation_answer import TradeVerdict
from roundtrip.services.trade.trade_builder import Holdings, Pays, RehearsedTrade, TradeBuilder
from roundtrip.services.valuation.holdings import HoldingToSell, Valued
from roundtrip.store.practice.practice import Slot
from roundtrip.venues import abi, erc20

_VALID_S = 20 * 60
_SLIPPAGE_BPS = 100
_READ_GAS = 300_000
_NO_RATE = Missing("node", "what an eth buys of what its pool is paid in is not known")

_MINUTES = f"the last {practice.AT_ONCE_S // 60} minutes"

SlotOf = Callable[[Context, ChainHead, Address, Meter], Awaitable[BalanceSlot | None]]
ValueHoldings = Callable[
    [Context, ChainHead, Sequence[HoldingToSell], Meter], Coroutine[Any, Any, list[Valued]]
]


@dataclass(frozen=True, slots=True)
class Buying:
    """A buy for ``eth_wei``, after recent buys for ``earlier_wei``. ``at``: the pool, curve or pool id where
    the held position is sold; None: nothing is held."""

    token: Address
    eth_wei: int
    earlier_wei: int
    at: str | None


@dataclass(frozen=True, slots=True)
class PricedBuy:
    """A buy priced at ``block``. ``payable_raw``: the tokens that its venue could pay out at that block.
    ``slot`` None: the token's balance slot is not known."""

    block: BlockRef
    venue: Venue
    symbol: str | None
    decimals: int
    spent_wei: int
    token_raw: int
    payable_raw: int
    sells_back: SellsBack
    verdict: TradeVerdict
    slot: Slot | None


@dataclass(frozen=True, slots=True)
class PricedSell:
    """A sell priced at ``block``."""

    block: BlockRef
    venue: Venue
    got_wei: int


@dataclass(frozen=True, slots=True)
class Unsellable:
    """The reason, as a sentence, why nothing was sold. ``by_check``: the check says that the token cannot be
    sold; else only this amount at this block is known to fail."""

    why: str
    by_check: bool


# --- buys ------------------------------------------------------------------------------------------


async def price_buy(
    ctx: Context, head: ChainHead, buying: Buying, slot_of: SlotOf | None, meter: Meter
) -> PricedBuy:
    """What ``eth_wei`` buys after recent buys for ``earlier_wei``: what both buy together less what the
    earlier ones buy alone, at the same block. ``slot_of`` None: the balance slot is known already. Raises
    CallerFault (not_a_token, no_route, would_fail, too_small) and NodeFault."""
    token, earlier_wei = buying.token, buying.earlier_wei
    opened = await start_check(ctx, head, token, meter)
    check_tradable("buy", opened)
    desk = TradeBuilder(
        ctx=ctx,
        head=head,
        # A wallet that is new to the chain and holds only the eth for this buy.
        wallet=cast(opened.run.environments[0], "practice").buyer,
        side="buy",
        opened=opened,
        holdings=Holdings(0, 0, {}),
        deadline_s=max(int(ctx.now_s()), head.block.timestamp_s) + _VALID_S,
        decimals=decimals_of(opened),
        fund=True,
    )
    sizes_wei = [earlier_wei + buying.eth_wei, *([earlier_wei] if earlier_wei else [])]
    rehearsals = await rehearse_each(desk, [_amounts(desk, wei) for wei in sizes_wei], meter)
    whole = _choose_venue(desk, rehearsals[0], sizes_wei[0], buying.at)
    earlier = _choose_earlier(desk, rehearsals[1], earlier_wei, buying.at) if earlier_wei else None
    run_meter, payable_meter, slot_meter = Meter(), Meter(), Meter()
    final, payable_raw, slot = await at_once(
        final_run(desk, rehearsals[0], whole, _SLIPPAGE_BPS, run_meter),
        _read_payable(desk, whole, payable_meter),
        _find_slot(ctx, head, token, slot_of, slot_meter),
    )
    meter.add(run_meter, payable_meter, slot_meter)
    spent_wei, token_raw = _spent_wei(final.done, sizes_wei[0], whole), final.done.came_raw
    if earlier is not None:
        spent_wei -= _spent_wei(earlier, earlier_wei, earlier)
        token_raw -= earlier.came_raw
    if spent_wei <= 0 or token_raw <= 0:
        message = f"After what you bought of it in {_MINUTES} that much more brings nothing."
        raise CallerFault("would_fail", message)
    if spent_wei < practice.LEAST_WEI:
        message = f"Its curve takes no more than {plain_decimal(spent_wei, ETH_DECIMALS)} eth now."
        raise CallerFault("too_small", message)
    sells_back, verdict = _verdict(desk, final)
    return PricedBuy(
        block=head.block,
        venue=whole.written.place.venue,
        symbol=symbol(desk),
        decimals=desk.decimals,
        spent_wei=spent_wei,
        token_raw=token_raw,
        payable_raw=payable_raw,
        sells_back=sells_back,
        verdict=verdict,
        slot=slot,
    )


def _amounts(desk: TradeBuilder, wei: int) -> Amounts:
    market = desk.opened.run.setting.market
    amounts = {venue: quote_raw(wei, venue.quote, market) for venue in tradable(desk.opened)}
    return {venue: raw for venue, raw in amounts.items() if raw}


def _choose_venue(desk: TradeBuilder, rehearsals: Rehearsals, wei: int, at: str | None) -> RehearsedTrade:
    """The buy on the venue of the held position, if that can sell, so that price differences between venues
    cannot be exploited; else on the venue that a real buy would use. Raises CallerFault and NodeFault."""
    amounts = _amounts(desk, wei)
    unpriced = {venue: _NO_RATE for venue in tradable(desk.opened) if venue not in amounts}
    rehearsals = replace(rehearsals, rehearsed={**rehearsals.rehearsed, **unpriced})
    own = next((venue for venue in tradable(desk.opened) if at is not None and venue.at() == at), None)
    if own is not None and sells(desk, rehearsals, own):
        return _raise_unless_rehearsed(rehearsals.rehearsed[own])
    amount_by_money: dict[Pays, int | CallerFault] = {paid_with(venue): raw for venue, raw in amounts.items()}
    chosen = best_buy(desk, rehearsals, {"eth": 0, "usdg": 0, **amount_by_money})
    if isinstance(chosen, CallerFault):
        raise chosen
    return chosen


def _raise_unless_rehearsed(result: RehearsedTrade | CallerFault | Missing) -> RehearsedTrade:
    if isinstance(result, CallerFault):
        raise result
    if isinstance(result, Missing):
        raise NodeFault(result.why)
    return result


def _choose_earlier(desk: TradeBuilder, rehearsals: Rehearsals, wei: int, at: str | None) -> RehearsedTrade:
    try:
        return _choose_venue(desk, rehearsals, wei, at)
    except CallerFault as error:
        message = f"What you bought of it in {_MINUTES} cannot be bought now: ask again in as many."
        raise CallerFault("would_fail", message) from error


def _spent_wei(done: RehearsedTrade, wei: int, chosen: RehearsedTrade) -> int:
    """The part of ``wei`` that the venue takes: a curve near its end takes less than all."""
    return practice.part_of(wei, done.taken_raw("buy"), chosen.written.amount_raw)


async def _read_payable(desk: TradeBuilder, chosen: RehearsedTrade, meter: Meter) -> int:
    """The token balance, at the block, of the contract that pays the tokens out. Raises CallerFault and
    NodeFault."""
    place = chosen.written.place
    payer, _ = place.file.plan_pay_out(place.venue, desk.token(), desk.ctx.contracts, desk.wallet)
    params = {"to": desk.token(), "data": abi.call(erc20.BALANCE_OF, payer), "gas": hex(_READ_GAS)}
    (answer,) = await desk.ctx.node.batch(
        [RpcCall("eth_call", [params, {"blockHash": desk.head.block.hash}])], meter
    )
    if isinstance(answer, RpcError):
        if answer.code != REVERTED:
            raise NodeFault(f"it told no balance ({describe_error(answer)})")
        raise CallerFault("would_fail", "The token does not tell what its pool holds of it.")
    return abi.uint_at(hex_bytes(answer), 0) or 0


async def _find_slot(
    ctx: Context, head: ChainHead, token: Address, slot_of: SlotOf | None, meter: Meter
) -> Slot | None:
    """The token's balance slot; None also on a NodeFault, because the sell searches again."""
    if slot_of is None:
        return None
    try:
        slot = await slot_of(ctx, head, token, meter)
    except NodeFault:
        return None
    return None if slot is None else Slot(slot.layout, slot.base)


def _verdict(desk: TradeBuilder, final: FinalRun) -> tuple[SellsBack, TradeVerdict]:
    """Whether the bought tokens could be sold straight back, and the verdict of that sell."""
    assert final.exit is not None
    checked = short_check(final.evidence, final.judgement, desk.ctx.policy)
    refused = refusal_code(final.exit.code, final.judgement.verdict)
    code = refused or final.exit.code
    text = sentence(desk, final, checked, refused)
    level = level_of(code, final.exit)
    verdict = TradeVerdict(code, level, text)  # type: ignore[arg-type]
    if level == "unknown":
        return "unknown", verdict
    reading = final.exit.reading
    is_sellable = reading is None or enough(reading.full, desk.ctx.policy)
    return ("yes" if is_sellable and code != "cannot_sell" else "no"), verdict


# --- sells -----------------------------------------------------------------------------------------


async def judge_token(ctx: Context, head: ChainHead, token: Address, meter: Meter) -> Judgement:
    """Checks a token at the block of ``head``. Raises NodeFault."""
    return judge(await run_sell_round(await start_check(ctx, head, token, meter), meter), ctx.policy)


async def price_sell(
    ctx: Context, head: ChainHead, holding: HoldingToSell, worth: ValueHoldings, meter: Meter
) -> PricedSell | Unsellable:
    """What the chain would pay for the whole holding at the block of ``head``; Unsellable also when that
    cannot be determined. Raises NodeFault."""
    check_meter, value_meter = Meter(), Meter()
    judgement, values = await at_once(
        judge_token(ctx, head, holding.token, check_meter), worth(ctx, head, [holding], value_meter)
    )
    meter.add(check_meter, value_meter)
    verdict = judgement.verdict
    if verdict.code == "cannot_sell":
        return Unsellable(f"It cannot be sold: {verdict.text}", by_check=True)
    if verdict.level == "unknown":
        return _unsellable_for(judgement.missing or Missing("token", verdict.text))
    (value,) = values
    if isinstance(value, Missing):
        return _unsellable_for(value)
    if isinstance(value, RefusedCall):
        return Unsellable(why_refused(value), by_check=False)
    return PricedSell(head.block, value.venue, value.wei)


def why_refused(refused: RefusedCall) -> str:
    """A sentence that says why the holding cannot be sold."""
    reason = names.reason(refused.reason or "")
    ending = f' ("{reason}").' if reason else "; no reason was given."
    return f"So much of it cannot be sold at this block{ending}"


def why_missing(missing: Missing) -> str:
    """A sentence that says why the value is not known."""
    return f"What it would sell for could not be found out: {missing.why}."


def _unsellable_for(missing: Missing) -> Unsellable:
    """Unsellable because the token leaves its value open. Raises NodeFault when it is the node's fault."""
    if missing.fault == "node":
        raise NodeFault(missing.why)
    return Unsellable(f"Nothing was sold. {why_missing(missing)}", by_check=False)
