"""Prices a practice trade on the chain: a buy as a real wallet would make it, a sell by its value."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import REVERTED, Meter, RpcCall, RpcError, hex_bytes
from roundtrip.chain.rpc.errors import describe_error
from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.chain.simulate.legs import cast
from roundtrip.domain.base.errors import CallerFault, NodeFault, ServiceFull
from roundtrip.domain.base.figures import format_duration, format_shortfall
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import Evidence, Missing, RefusedCall
from roundtrip.domain.check.price import quote_raw
from roundtrip.domain.check.refusals import ROUTER_REASONS
from roundtrip.domain.check.venue_code import enough, has_stopped, stops_selling
from roundtrip.domain.check.verdict import Judgement
from roundtrip.domain.practice import practice
from roundtrip.domain.practice.practice import SellsBack
from roundtrip.domain.trade.judge import level_of, refusal_code
from roundtrip.domain.trade.text import failure_clause
from roundtrip.services.engine.token_check import check_token, start_check
from roundtrip.services.rehearsal.final_run import FinalRun, final_run
from roundtrip.services.rehearsal.rehearsal import (
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
from roundtrip.services.rehearsal.trade_builder import Holdings, RehearsedTrade, TradeBuilder
from roundtrip.services.rehearsal.verdict import (
    TradeVerdict,
    check_sentence,
    sells_elsewhere,
    sentence,
    short_check,
    symbol,
)
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.money import ETH_DECIMALS, Pays
from roundtrip.services.valuation.holding_sells import NO_SELL
from roundtrip.services.valuation.holdings import HoldingToSell, SellValue, Valued
from roundtrip.store.practice.practice import Slot
from roundtrip.venues import abi, erc20

_VALID_S = 20 * 60
_SLIPPAGE_BPS = 100
_READ_GAS = 300_000
_MAX_EXPLAINED = 1
"""Limit of checks that one account's page makes."""
_NO_RATE = Missing("node", "the eth price of the money that its pool takes is not known")

_WAIT = format_duration(practice.AT_ONCE_S)
_MINUTES = f"the last {_WAIT}"

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
    buy_round = await start_check(ctx, head, token, meter)
    check_tradable("buy", buy_round)
    builder = TradeBuilder(
        ctx=ctx,
        head=head,
        # A wallet that is new to the chain and holds only the eth for this buy.
        wallet=cast(buy_round.run.environments[0], "practice").buyer,
        side="buy",
        buy_round=buy_round,
        holdings=Holdings(0, 0, {}),
        deadline_s=max(int(ctx.now_s()), head.block.timestamp_s) + _VALID_S,
        decimals=decimals_of(buy_round),
        fund=True,
    )
    sizes_wei = [earlier_wei + buying.eth_wei, *([earlier_wei] if earlier_wei else [])]
    rehearsals = await rehearse_each(builder, [_amounts(builder, wei) for wei in sizes_wei], meter)
    whole = _choose_venue(builder, rehearsals[0], sizes_wei[0], buying.at)
    earlier = _choose_earlier(builder, rehearsals[1], earlier_wei, buying.at) if earlier_wei else None
    run_meter, payable_meter, slot_meter = Meter(), Meter(), Meter()
    final, payable_raw, slot = await at_once(
        final_run(builder, rehearsals[0], whole, _SLIPPAGE_BPS, run_meter),
        _read_payable(builder, whole, payable_meter),
        _find_slot(ctx, head, token, slot_of, slot_meter),
    )
    meter.add(run_meter, payable_meter, slot_meter)
    spent_wei, token_raw = _spent_wei(final.done, sizes_wei[0], whole), final.done.came_raw
    if earlier is not None:
        spent_wei -= _spent_wei(earlier, earlier_wei, earlier)
        token_raw -= earlier.came_raw
    if spent_wei <= 0 or token_raw <= 0:
        message = f"After what you bought of this token in {_MINUTES}, this buy brings nothing."
        raise CallerFault("would_fail", message)
    if spent_wei < practice.MIN_WEI:
        takes, least = format_shortfall(spent_wei, practice.MIN_WEI, ETH_DECIMALS)
        message = f"Its curve takes at most {takes} eth now, and the smallest practice buy is {least}."
        raise CallerFault("too_small", message)
    sells_back, verdict = _verdict(builder, final)
    return PricedBuy(
        block=head.block,
        venue=whole.written.place.venue,
        symbol=symbol(builder),
        decimals=builder.decimals,
        spent_wei=spent_wei,
        token_raw=token_raw,
        payable_raw=payable_raw,
        sells_back=sells_back,
        verdict=verdict,
        slot=slot,
    )


def _amounts(builder: TradeBuilder, wei: int) -> Amounts:
    market = builder.buy_round.run.setting.market
    amounts = {venue: quote_raw(wei, venue.quote, market) for venue in tradable(builder.buy_round)}
    return {venue: raw for venue, raw in amounts.items() if raw}


def _choose_venue(builder: TradeBuilder, rehearsals: Rehearsals, wei: int, at: str | None) -> RehearsedTrade:
    """The buy on the venue of the held position, if that can sell, so that price differences between venues
    cannot be exploited; else on the venue that a real buy would use. Raises CallerFault and NodeFault."""
    amounts = _amounts(builder, wei)
    unpriced = {venue: _NO_RATE for venue in tradable(builder.buy_round) if venue not in amounts}
    rehearsals = replace(rehearsals, rehearsed={**rehearsals.rehearsed, **unpriced})
    own = next((venue for venue in tradable(builder.buy_round) if at is not None and venue.at() == at), None)
    if own is not None and sells(builder, rehearsals, own):
        return _raise_unless_rehearsed(rehearsals.rehearsed[own])
    amount_by_money: dict[Pays, int | CallerFault] = {paid_with(venue): raw for venue, raw in amounts.items()}
    chosen = best_buy(builder, rehearsals, {"eth": 0, "usdg": 0, **amount_by_money})
    if isinstance(chosen, CallerFault):
        raise chosen
    return chosen


def _raise_unless_rehearsed(result: RehearsedTrade | CallerFault | Missing) -> RehearsedTrade:
    if isinstance(result, CallerFault):
        raise result
    if isinstance(result, Missing):
        raise NodeFault(result.why)
    return result


def _choose_earlier(
    builder: TradeBuilder, rehearsals: Rehearsals, wei: int, at: str | None
) -> RehearsedTrade:
    try:
        return _choose_venue(builder, rehearsals, wei, at)
    except CallerFault as error:
        message = f"What you bought of this token in {_MINUTES} cannot be bought now: ask again in {_WAIT}."
        raise CallerFault("would_fail", message) from error


def _spent_wei(done: RehearsedTrade, wei: int, chosen: RehearsedTrade) -> int:
    """The part of ``wei`` that the venue takes: a curve near its end takes less than all."""
    return practice.part_of(wei, done.taken_raw("buy"), chosen.written.amount_raw)


async def _read_payable(builder: TradeBuilder, chosen: RehearsedTrade, meter: Meter) -> int:
    """The token balance, at the block, of the contract that pays the tokens out. Raises CallerFault and
    NodeFault."""
    place = chosen.written.place
    payer, _ = place.file.plan_pay_out(place.venue, builder.token(), builder.ctx.contracts, builder.wallet)
    params = {"to": builder.token(), "data": abi.call(erc20.BALANCE_OF, payer), "gas": hex(_READ_GAS)}
    (answer,) = await builder.ctx.node.batch(
        [RpcCall("eth_call", [params, {"blockHash": builder.head.block.hash}])], meter
    )
    if isinstance(answer, RpcError):
        if answer.code != REVERTED:
            raise NodeFault(f"it returned no balance ({describe_error(answer)})")
        raise CallerFault("would_fail", "The token does not return how much of it its pool holds.")
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


def _verdict(builder: TradeBuilder, final: FinalRun) -> tuple[SellsBack, TradeVerdict]:
    """Whether the bought tokens could be sold straight back, and the verdict of that sell."""
    assert final.exit is not None
    checked = short_check(final.evidence, final.judgement, builder.ctx.policy)
    refused = refusal_code(final.exit.code, final.judgement)
    code = refused or final.exit.code
    text = sentence(builder, final, checked, refused)
    level = level_of(code, final.exit)
    own_pool = "" if sells_elsewhere(final) is None or refused else _OWN_POOL
    said = "" if refused else check_sentence(checked, level)
    text = " ".join(filter(None, (text, own_pool, said)))
    verdict = TradeVerdict(code, level, text)  # type: ignore[arg-type]
    if level == "unknown":
        return "unknown", verdict
    reading = final.exit.reading
    policy = builder.ctx.policy
    is_sellable = reading is None or enough(reading.full, policy)
    is_trap = code == "cannot_sell" and (reading is None or not stops_selling(reading, policy))
    return ("yes" if is_sellable and not is_trap else "no"), verdict


_OWN_POOL = "A practice position sells in the pool that it was bought in, so it may bring less."


# --- sells -----------------------------------------------------------------------------------------


async def price_sell(
    ctx: Context, head: ChainHead, holding: HoldingToSell, worth: ValueHoldings, meter: Meter
) -> PricedSell | Unsellable:
    """What the chain would pay for the whole holding at the block of ``head``; Unsellable also when that
    cannot be determined. Raises NodeFault."""
    check_meter, value_meter = Meter(), Meter()
    run, values = await at_once(
        check_token(ctx, holding.token, check_meter, head=head, crowd=False),
        value_at_ages(ctx, head, [holding], worth, value_meter),
    )
    meter.add(check_meter, value_meter)
    unsellable = judge_holding(run.judgement, holding, ctx.policy)
    if unsellable is not None:
        return unsellable
    (value,) = values
    if isinstance(value, Missing):
        return _unsellable_for(value)
    if isinstance(value, RefusedCall):
        return Unsellable(why_refused(_with_token_reason(value, run.evidence)), by_check=False)
    return PricedSell(head.block, value.venue, value.wei)


def judge_holding(judgement: Judgement, holding: HoldingToSell, policy: Policy) -> Unsellable | None:
    """Why a check's verdict lets nobody sell what was bought so long ago. None: it may sell at this block,
    which its simulated sell decides: what stops selling later still sells before. Raises NodeFault."""
    verdict, best = judgement.verdict, judgement.best
    if verdict.level == "unknown":
        return _unsellable_for(judgement.missing or Missing("token", verdict.text))
    if verdict.code != "cannot_sell":
        return None
    reading = None if best is None else judgement.readings[best]
    if reading is None or not stops_selling(reading, policy):
        return Unsellable(f"Nothing was sold. {verdict.text}", by_check=True)
    if has_stopped(reading, holding.held_s, policy):
        ago = format_duration(holding.held_s)
        return Unsellable(f"Nothing was sold: you bought it {ago} ago. {verdict.text}", by_check=True)
    if has_stopped(reading, holding.oldest_s, policy):
        return _unsellable_for(_mixed_ages(holding))
    return None


def _mixed_ages(holding: HoldingToSell) -> Missing:
    first, last = format_duration(holding.oldest_s), format_duration(holding.held_s)
    ages = f"you bought {first} ago, and {last} ago"
    return Missing("token", f"it stops selling some time after a buy; {ages}")


async def value_at_ages(
    ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], worth: ValueHoldings, meter: Meter
) -> list[Valued]:
    """The value of each holding. One that was bought in parts has to sell at the age of its first part, too:
    which age counts is not known."""
    older = [number for number, holding in enumerate(holdings) if holding.oldest_s > holding.held_s]
    as_old = [replace(holdings[number], held_s=holdings[number].oldest_s) for number in older]
    values = await worth(ctx, head, [*holdings, *as_old], meter)
    firsts = dict(zip(older, values[len(holdings) :], strict=True))
    return [_agree(value, firsts.get(number, value)) for number, value in enumerate(values[: len(holdings)])]


def _agree(last: Valued, first: Valued) -> Valued:
    if isinstance(last, SellValue) and not isinstance(first, SellValue):
        return first if isinstance(first, Missing) else Missing("token", "its first part no longer sells")
    return last


def _with_token_reason(refused: RefusedCall, evidence: Evidence) -> RefusedCall:
    """The refusal, with the reason that the token gave to the check where a router withholds it."""
    if refused.reason not in ROUTER_REASONS:
        return refused
    refusals = (venue.told_on_sell for venue in evidence.venues)
    direct = next((told for told in refusals if isinstance(told, RefusedCall) and told.reason), refused)
    return replace(refused, reason=direct.reason)


async def add_token_reasons(
    ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], values: Sequence[Valued], meter: Meter
) -> list[Valued]:
    """The values. A refusal for which a router gives no reason gets the one that the token gives to a check,
    as in a sell; at most ``_MAX_EXPLAINED`` are checked, and one whose check fails stays as it is."""

    async def explain(refused: RefusedCall, token: Address, own: Meter) -> RefusedCall:
        try:
            run = await check_token(ctx, token, own, head=head, crowd=False)
        except (NodeFault, ServiceFull):
            return refused
        return _with_token_reason(refused, run.evidence)

    withheld = {
        number: value
        for number, value in enumerate(values)
        if isinstance(value, RefusedCall) and value.reason in ROUTER_REASONS
    }
    chosen = list(withheld.items())[:_MAX_EXPLAINED]
    meters = [Meter() for _ in chosen]
    waits = [
        explain(value, holdings[number].token, own)
        for (number, value), own in zip(chosen, meters, strict=True)
    ]
    explained = await at_once(*waits)
    meter.add(*meters)
    found = {number: reason for (number, _), reason in zip(chosen, explained, strict=True)}
    return [found.get(number, value) for number, value in enumerate(values)]


SELL_FAILS = "Selling this much of it fails at this block"
"""The beginning of every sentence that says why a holding cannot be sold."""


def why_refused(refused: RefusedCall) -> str:
    """A sentence that says why the holding cannot be sold."""
    why = f": {refused.reason}" if refused in NO_SELL else failure_clause(refused.reason)
    return f"{SELL_FAILS}{why}."


def why_missing(missing: Missing) -> str:
    """A sentence that says why the value is not known."""
    return f"We could not find out what it sells for: {missing.why.rstrip('.')}."


def _unsellable_for(missing: Missing) -> Unsellable:
    """Unsellable because the token leaves its value open. Raises NodeFault when it is the node's fault."""
    if missing.fault == "node":
        raise NodeFault(missing.why)
    return Unsellable(f"Nothing was sold. {why_missing(missing)}", by_check=False)
