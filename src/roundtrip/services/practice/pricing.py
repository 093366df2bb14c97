"""What a practice trade comes to on the chain: a buy as a real wallet would make it, a sell by its worth."""

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
from roundtrip.services.trade.simulate import TradeVerdict, short_check
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
Valuing = Callable[[Context, ChainHead, Sequence[HoldingToSell], Meter], Coroutine[Any, Any, list[Valued]]]


@dataclass(frozen=True, slots=True)
class Buying:
    """``eth_wei`` more of a token, after ``earlier_wei`` just before. ``at``: where what is held of it is
    sold, the pool, the curve or the pool's id; None: nothing is held."""

    token: Address
    eth_wei: int
    earlier_wei: int
    at: str | None


@dataclass(frozen=True, slots=True)
class PricedBuy:
    """A buy at ``block``. ``payable_raw``: what its venue could pay out of the token then; ``slot`` None:
    where the token keeps its balances is not known."""

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
    """A sell at ``block``."""

    block: BlockRef
    venue: Venue
    got_wei: int


@dataclass(frozen=True, slots=True)
class Unsellable:
    """It was not sold, and why: a sentence. ``by_check``: the check says that it cannot be sold; else only
    that so much of it was not sold at this block is known."""

    why: str
    by_check: bool


# --- buys ------------------------------------------------------------------------------------------


async def price_buy(
    ctx: Context, head: ChainHead, buying: Buying, slot_of: SlotOf | None, meter: Meter
) -> PricedBuy:
    """What ``eth_wei`` more buys, after ``earlier_wei`` just before: what both buy together, less what those
    alone buy, on the same block. ``slot_of`` None: where the balances lie is known already. Raises
    CallerFault (not_a_token, no_route, would_fail, too_small) and NodeFault."""
    token, earlier_wei = buying.token, buying.earlier_wei
    found = await start_check(ctx, head, token, meter)
    check_tradable("buy", found)
    desk = TradeBuilder(
        ctx=ctx,
        head=head,
        # Nobody has seen it before, and it holds nothing but the money for this.
        wallet=cast(found.run.environments[0], "practice").buyer,
        side="buy",
        opened=found,
        holdings=Holdings(0, 0, {}),
        deadline_s=max(int(ctx.now_s()), head.block.timestamp_s) + _VALID_S,
        decimals=decimals_of(found),
        fund=True,
    )
    sizes = [earlier_wei + buying.eth_wei, *([earlier_wei] if earlier_wei else [])]
    tried = await rehearse_each(desk, [_amounts(desk, wei) for wei in sizes], meter)
    whole = _choose_venue(desk, tried[0], sizes[0], buying.at)
    before = _chosen_before(desk, tried[1], earlier_wei, buying.at) if earlier_wei else None
    running, paying, looking = Meter(), Meter(), Meter()
    final, payable_raw, slot = await at_once(
        final_run(desk, tried[0], whole, _SLIPPAGE_BPS, running),
        _payable(desk, whole, paying),
        _slot(ctx, head, token, slot_of, looking),
    )
    meter.add(running, paying, looking)
    spent_wei, token_raw = _spent_wei(final.done, sizes[0], whole), final.done.came_raw
    if before is not None:
        spent_wei -= _spent_wei(before, earlier_wei, before)
        token_raw -= before.came_raw
    if spent_wei <= 0 or token_raw <= 0:
        said = f"After what you bought of it in {_MINUTES} that much more brings nothing."
        raise CallerFault("would_fail", said)
    if spent_wei < practice.LEAST_WEI:
        said = f"Its curve takes no more than {plain_decimal(spent_wei, ETH_DECIMALS)} eth now."
        raise CallerFault("too_small", said)
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
    found = {venue: quote_raw(wei, venue.quote, market) for venue in tradable(desk.opened)}
    return {venue: raw for venue, raw in found.items() if raw}


def _choose_venue(desk: TradeBuilder, tried: Rehearsals, wei: int, at: str | None) -> RehearsedTrade:
    """Where a position is, while it sells there: whoever could choose anew would buy where it is cheap and
    sell where it is dear. Else where a real buy of so much would go. Raises CallerFault and NodeFault."""
    amounts = _amounts(desk, wei)
    unpriced = {venue: _NO_RATE for venue in tradable(desk.opened) if venue not in amounts}
    tried = replace(tried, rehearsed={**tried.rehearsed, **unpriced})
    own = next((venue for venue in tradable(desk.opened) if at is not None and venue.at() == at), None)
    if own is not None and sells(desk, tried, own):
        return _done(tried.rehearsed[own])
    asked: dict[Pays, int | CallerFault] = {paid_with(venue): raw for venue, raw in amounts.items()}
    chosen = best_buy(desk, tried, {"eth": 0, "usdg": 0, **asked})
    if isinstance(chosen, CallerFault):
        raise chosen
    return chosen


def _done(found: RehearsedTrade | CallerFault | Missing) -> RehearsedTrade:
    if isinstance(found, CallerFault):
        raise found
    if isinstance(found, Missing):
        raise NodeFault(found.why)
    return found


def _chosen_before(desk: TradeBuilder, tried: Rehearsals, wei: int, at: str | None) -> RehearsedTrade:
    try:
        return _choose_venue(desk, tried, wei, at)
    except CallerFault as fault:
        said = f"What you bought of it in {_MINUTES} cannot be bought now: ask again in as many."
        raise CallerFault("would_fail", said) from fault


def _spent_wei(done: RehearsedTrade, wei: int, chosen: RehearsedTrade) -> int:
    """Of ``wei`` what its venue takes: near its end a curve takes less."""
    return practice.part_of(wei, done.taken_raw("buy"), chosen.written.amount_raw)


async def _payable(desk: TradeBuilder, chosen: RehearsedTrade, meter: Meter) -> int:
    """What whoever pays the tokens out has of them at the block. Raises CallerFault and NodeFault."""
    place = chosen.written.place
    payer, _ = place.file.plan_pay_out(place.venue, desk.token(), desk.ctx.contracts, desk.wallet)
    asked = {"to": desk.token(), "data": abi.call(erc20.BALANCE_OF, payer), "gas": hex(_READ_GAS)}
    (answer,) = await desk.ctx.node.batch(
        [RpcCall("eth_call", [asked, {"blockHash": desk.head.block.hash}])], meter
    )
    if isinstance(answer, RpcError):
        if answer.code != REVERTED:
            raise NodeFault(f"it told no balance ({describe_error(answer)})")
        raise CallerFault("would_fail", "The token does not tell what its pool holds of it.")
    return abi.uint_at(hex_bytes(answer), 0) or 0


async def _slot(
    ctx: Context, head: ChainHead, token: Address, slot_of: SlotOf | None, meter: Meter
) -> Slot | None:
    """Where its balances lie; None also where the node did not tell: a sell asks again."""
    if slot_of is None:
        return None
    try:
        found = await slot_of(ctx, head, token, meter)
    except NodeFault:
        return None
    return None if found is None else Slot(found.layout, found.base)


def _verdict(desk: TradeBuilder, final: FinalRun) -> tuple[SellsBack, TradeVerdict]:
    """Whether what it bought could be sold straight back, and what that came to."""
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
    at_once = reading is None or enough(reading.full, desk.ctx.policy)
    return ("yes" if at_once and code != "cannot_sell" else "no"), verdict


# --- sells -----------------------------------------------------------------------------------------


async def judge_token(ctx: Context, head: ChainHead, token: Address, meter: Meter) -> Judgement:
    """The check's own judgement at the block of ``head``. Raises NodeFault."""
    return judge(await run_sell_round(await start_check(ctx, head, token, meter), meter), ctx.policy)


async def price_sell(
    ctx: Context, head: ChainHead, holding: HoldingToSell, worth: Valuing, meter: Meter
) -> PricedSell | Unsellable:
    """What the chain would pay for all of it at the block of ``head``. What cannot be found out is no price.
    Raises NodeFault."""
    checking, valuing = Meter(), Meter()
    judgement, valued = await at_once(
        judge_token(ctx, head, holding.token, checking), worth(ctx, head, [holding], valuing)
    )
    meter.add(checking, valuing)
    verdict = judgement.verdict
    if verdict.code == "cannot_sell":
        return Unsellable(f"It cannot be sold: {verdict.text}", by_check=True)
    if verdict.level == "unknown":
        return _not_found_out(judgement.missing or Missing("token", verdict.text))
    (found,) = valued
    if isinstance(found, Missing):
        return _not_found_out(found)
    if isinstance(found, RefusedCall):
        return Unsellable(why_refused(found), by_check=False)
    return PricedSell(head.block, found.venue, found.wei)


def why_refused(found: RefusedCall) -> str:
    """Why it cannot be sold, in a sentence."""
    said = names.reason(found.reason or "")
    why = f' ("{said}").' if said else "; no reason was given."
    return f"So much of it cannot be sold at this block{why}"


def why_missing(found: Missing) -> str:
    """Why it is not known, in a sentence."""
    return f"What it would sell for could not be found out: {found.why}."


def _not_found_out(missing: Missing) -> Unsellable:
    """What the token keeps to itself. Raises NodeFault where only the node could tell."""
    if missing.fault == "node":
        raise NodeFault(missing.why)
    return Unsellable(f"Nothing was sold. {why_missing(missing)}", by_check=False)
