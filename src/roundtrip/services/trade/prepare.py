"""Trades for the caller's own wallet, written and simulated before it signs them. Three batches to the node.

1: the token's facts and venues, and the wallet's holdings and allowances. 2: the check's sells, and a
rehearsal of the trade on every venue. 3: the final form, exactly as it is returned, and after a buy the sell
back. A sell that fails on every venue is rehearsed once more by the second route of v3 pools. This service
holds no key and sends nothing.
"""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import ROUND_DOWN, Decimal, localcontext
from typing import Annotated, Literal

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.wallet.calls import PLENTY_WEI
from roundtrip.domain.base.errors import CallerFault, ParamFault
from roundtrip.domain.base.figures import format_percent
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check import verdict_text
from roundtrip.domain.trade import text as trade_text
from roundtrip.domain.trade.judge import code_of_loss, level_of, refusal_code
from roundtrip.services.engine.token_check import open_check, prepare_inputs
from roundtrip.services.rehearsal import trade_builder
from roundtrip.services.rehearsal.final_run import MAX_SLIPPAGE_BPS, FinalRun, final_run
from roundtrip.services.rehearsal.rehearsal import (
    NO_LIQUIDITY,
    Rehearsals,
    all_dry,
    best_buy,
    best_sell,
    check_tradable,
    completed_sells,
    decimals_of,
    paid_with,
    read_later_raw,
    rehearse,
    rehearse_second_route,
    tradable,
    with_own_reason,
    with_smaller_buy,
    with_smaller_sell,
)
from roundtrip.services.rehearsal.trade_builder import DECIMALS, NotEnough, RehearsedTrade, Side, TradeBuilder
from roundtrip.services.rehearsal.verdict import (
    ShortCheck,
    TradeVerdict,
    check_sentence,
    money_text,
    sentence,
    short_check,
    symbol,
)
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import (
    AddressText,
    BaseUnits,
    Symbol,
    TokenAddress,
    TokenField,
    VenueAt,
    at,
    read_address,
    says,
)
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.money import (
    DECIMAL_PATTERN,
    ETH_DECIMALS,
    AssetAmount,
    Pays,
    amount,
    parse_amount,
    pays,
)
from roundtrip.services.trade.simulate import sell_back
from roundtrip.services.trade.simulation_answer import SellBack

Slippage = Annotated[
    int,
    msgspec.Meta(
        ge=1,
        le=MAX_SLIPPAGE_BPS,
        description="How much less than rehearsed the swap accepts, in hundredths of a percent: 100 is 1 %.",
    ),
]
WalletField = Annotated[AddressText, says("The wallet that will sign.")]


_NOT_ZERO = {"not": {"pattern": r"^[0.]*$"}}


class PrepareBuyParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What to buy, with how much, from which wallet."""

    token: TokenField
    sender: WalletField = msgspec.field(name="from")
    amount: Annotated[
        str,
        msgspec.Meta(
            pattern=DECIMAL_PATTERN,
            description='How much to spend: a decimal number in quotes, such as "0.1", of what the '
            "venue is paid in (venue.pays): eth or usdg.",
            extra_json_schema=_NOT_ZERO,
        ),
    ]
    slippage_bps: Slippage = 100
    fund: Annotated[bool, says("true: rehearse as if the wallet held plenty of eth.")] = False


class PrepareSellParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What to sell, how much of it, from which wallet."""

    token: TokenField
    sender: WalletField = msgspec.field(name="from")
    amount: Annotated[
        Annotated[
            str, msgspec.Meta(pattern="^(all|[0-9]{1,40}(\\.[0-9]{1,40})?)$", extra_json_schema=_NOT_ZERO)
        ]
        | None,
        says(
            "How much to sell: all, or whole tokens as a decimal number in quotes, such as "
            '"12.5". Give amount or percent; left out: percent counts.'
        ),
    ] = None
    percent: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=100)] | None,
        says(
            "Share of what the wallet holds, greater than 0 and at most 100. Give amount or "
            "percent; left out: amount counts."
        ),
    ] = None
    slippage_bps: Slippage = 100

    def share(self) -> Decimal | None:
        """The percent as it was written; None where ``amount`` is a number. Raises CallerFault."""
        if self.percent is not None:
            return Decimal(repr(self.percent))
        if self.amount is None:
            message = 'Give amount, such as "1.5" or "all", or percent, such as 50.'
            raise ParamFault("bad_input", message)
        return Decimal(100) if self.amount == "all" else None


class TokenOf(msgspec.Struct, frozen=True):
    """The token that is traded."""

    address: TokenAddress
    symbol: Symbol
    decimals: Annotated[int, says("Decimals of a whole token.")]


class TradeVenue(msgspec.Struct, frozen=True):
    """Where it is traded, and what that is paid in, or pays."""

    kind: Annotated[VenueKind, says("Kind of venue.")]
    at: VenueAt
    pays: Annotated[Literal["eth", "weth", "usdg"], says("What a buy pays and a sell receives.")]


class ExpectedAmount(msgspec.Struct, frozen=True, rename="camel"):
    """What the rehearsal brought, and the least that arrives before the swap reverts on its own."""

    amount: Annotated[str, says("What the rehearsal brought, in whole units, a decimal number.")]
    raw: BaseUnits
    asset: Annotated[str, says("eth, weth, usdg or the token's address.")]
    symbol: Symbol
    min: Annotated[str, says("Least that the swap accepts before it reverts, in whole units.")]
    min_raw: BaseUnits


class TradeStep(msgspec.Struct, frozen=True):
    """One transaction to sign and send."""

    n: Annotated[int, says("Place in the order, from 1.")]
    does: Annotated[str, says("What the transaction does.")]
    to: Annotated[str, says("Address that it calls.")]
    data: Annotated[str, says("Calldata, hex.")]
    value: Annotated[str, says("Eth to send along, in wei.")]
    gas: Annotated[int, says("Gas limit.")]


class PreparedTrade(msgspec.Struct, frozen=True, rename="camel"):
    """Unsigned transactions that trade, in order, as they were run once in a simulation."""

    chain_id: Annotated[int, says("Chain to send to; Robinhood Chain is 4663.")]
    side: Annotated[Literal["buy", "sell"], says("Whether it buys or sells.")]
    sender: Annotated[str, says("The wallet that signs and sends.")] = msgspec.field(name="from")
    block: Annotated[int, says("Block of the rehearsal.")]
    token: Annotated[TokenOf, says("The token that is traded.")]
    venue: Annotated[TradeVenue, says("Where it is traded.")]
    spend: Annotated[AssetAmount, says("What the wallet gives.")]
    expect: Annotated[
        ExpectedAmount, says("What the rehearsal brought, and the least that the swap accepts.")
    ]
    slippage_bps: Annotated[
        int, says("How much less than rehearsed is accepted, in hundredths of a percent.")
    ]
    valid_until: Annotated[
        datetime, says("Deadline in the swap, twenty minutes after preparation; for a curve only advice.")
    ]
    refused: Annotated[
        bool,
        says(
            "true: steps is empty, because the token cannot be sold, selling straight back "
            "loses half or more, no sell was proven, or a check calls it a trap."
        ),
    ]
    steps: Annotated[list[TradeStep], says("Transactions to sign and send in this order.")]
    already_done: Annotated[
        list[str], says("Approvals that the wallet gave before, so that no step gives them.")
    ]
    sell_back: Annotated[
        SellBack | None,
        says("The sell after the buy. null: a sell was prepared, or there was no venue to try one on."),
    ]
    verdict: Annotated[TradeVerdict, says("What the final run came to.")]
    check: Annotated[ShortCheck, says("What a check says of the token.")]
    prepared_at: Annotated[datetime, says("When it was prepared.")]


VALID_S = 20 * 60
_MAX_DECIMALS = 36
"""The bound for any token; its own decimals are checked once they are read."""


async def prepare_buy(ctx: Context, params: PrepareBuyParams) -> UseCaseAnswer[PreparedTrade]:
    """Prepares a buy. Raises CallerFault (bad_input, not_a_token, no_route, would_fail, too_small),
    NodeFault."""
    parse_amount(params.amount, ETH_DECIMALS, "eth")
    token, wallet, meter = (
        read_address(params.token, "token", "bad_input"),
        read_address(params.sender, "from", "bad_input"),
        Meter(),
    )
    builder = await _prepare_builder(ctx, "buy", token, wallet, params.fund, meter)
    amounts = {which: _amount_raw(params.amount, which) for which in DECIMALS}
    venues = tradable(builder.buy_round)
    by_venue = {venue: amounts[paid_with(venue)] for venue in venues}
    rehearsals = await rehearse(builder, by_venue, meter)
    chosen = best_buy(builder, rehearsals, amounts)
    if isinstance(chosen, CallerFault):
        raise with_smaller_buy(builder, chosen, by_venue)
    return _as_answered(
        builder, await final_run(builder, rehearsals, chosen, params.slippage_bps, meter), meter
    )


async def prepare_sell(ctx: Context, params: PrepareSellParams) -> UseCaseAnswer[PreparedTrade]:
    """Prepares a sell. Raises CallerFault (bad_input, no_route, nothing_to_sell, would_fail), NodeFault."""
    share = params.share()
    if share is None:
        parse_amount(params.amount or "", _MAX_DECIMALS, "the token")
    token, wallet, meter = (
        read_address(params.token, "token", "bad_input"),
        read_address(params.sender, "from", "bad_input"),
        Meter(),
    )
    builder = await _prepare_builder(ctx, "sell", token, wallet, False, meter)
    amount_raw = _sold_raw(builder, params, share)
    builder, amount_raw, rehearsals = await _rehearse_sell(builder, amount_raw, meter)
    chosen = best_sell(builder, rehearsals)
    if isinstance(chosen, CallerFault):
        builder, rehearsals, chosen = await _sell_by_second_route(
            builder, rehearsals, chosen, amount_raw, meter
        )
    return _as_answered(
        builder, await final_run(builder, rehearsals, chosen, params.slippage_bps, meter), meter
    )


_SHRINKING_BPS = 9000
"""Of a smaller part enough is left at the deadline, or the token is no longer worth a sale."""


async def _rehearse_sell(
    builder: TradeBuilder, amount_raw: int, meter: Meter
) -> tuple[TradeBuilder, int, Rehearsals]:
    """Rehearses the sell, and returns builder and amount with it. A sell of the whole balance or nearly all,
    where that shrinks by itself, becomes one of what is left at the deadline."""
    venues, asking, beside = tradable(builder.buy_round), Meter(), Meter()
    held_raw = builder.holdings.asset_raw
    if not held_raw * _SHRINKING_BPS <= amount_raw * BPS <= held_raw * BPS:
        return builder, amount_raw, await rehearse(builder, dict.fromkeys(venues, amount_raw), meter)
    rehearsals, later_raw = await at_once(
        rehearse(builder, dict.fromkeys(venues, amount_raw), asking),
        read_later_raw(builder.buy_round, builder.wallet, VALID_S, beside),
    )
    meter.add(asking, beside)
    if later_raw and later_raw < amount_raw:
        builder, amount_raw = replace(builder, shrinks=True), later_raw
        rehearsals = await rehearse(builder, dict.fromkeys(venues, amount_raw), meter)
    return builder, amount_raw, rehearsals


async def _sell_by_second_route(
    builder: TradeBuilder, rehearsals: Rehearsals, fault: CallerFault, amount_raw: int, meter: Meter
) -> tuple[TradeBuilder, Rehearsals, RehearsedTrade]:
    """The sell that the usual router of v3 pools refuses, through the other one. Raises CallerFault where
    that fails, too, with the usual route's fault."""
    second = None
    if fault.code == "would_fail" and not isinstance(fault, NotEnough):
        second = await rehearse_second_route(builder, rehearsals, amount_raw, meter)
    if second is not None and isinstance(chosen := best_sell(*second), RehearsedTrade):
        return *second, chosen
    fault = await with_own_reason(builder, fault, meter)
    if second is not None and not completed_sells(rehearsals.small):
        builder, rehearsals = second
    raise await with_smaller_sell(builder, rehearsals, fault, amount_raw, meter)


# --- the first batch -------------------------------------------------------------------------------


async def _prepare_builder(
    ctx: Context, side: Side, token: Address, wallet: Address, fund: bool, meter: Meter
) -> TradeBuilder:
    # The wallet may hold the receipt of a block that the last poll did not see.
    inputs = await prepare_inputs(ctx, token, fresh=True)
    head = inputs.head
    asset = token if side == "sell" else ctx.contracts.usdg
    pairs = trade_builder.pairs_of(asset, inputs.candidates.venues, ctx.contracts)
    asking, beside = Meter(), Meter()
    calls = trade_builder.holdings_calls(wallet, asset, pairs, head, ctx.contracts)
    check, answers = await at_once(open_check(ctx, inputs, asking), ctx.node.batch(calls, beside))
    meter.add(asking, beside)
    check_tradable(side, check)
    return TradeBuilder(
        ctx=ctx,
        head=head,
        wallet=wallet,
        side=side,
        buy_round=check,
        holdings=trade_builder.read_holdings(answers, pairs, ctx.chain_id),
        # The chain's clock counts where it is ahead of ours.
        deadline_s=max(int(ctx.now_s()), head.block.timestamp_s) + VALID_S,
        decimals=decimals_of(check),
        fund=fund,
    )


# --- amounts ---------------------------------------------------------------------------------------


def _amount_raw(text: str, which: Pays) -> int | CallerFault:
    try:
        raw = parse_amount(text, DECIMALS[which], which)
    except CallerFault as fault:
        return fault
    most_raw = PLENTY_WEI if which == "eth" else PLENTY_WEI // _MIN_WEI_A_UNIT
    return raw if raw <= most_raw else CallerFault("would_fail", f"No wallet holds that much {which}.")


_MIN_WEI_A_UNIT = 10**6
"""A unit of usdg is worth more wei than this while an eth is below a million dollars."""


def _sold_raw(builder: TradeBuilder, params: PrepareSellParams, share: Decimal | None) -> int:
    """Base units to sell. Raises CallerFault."""
    held_raw = builder.holdings.asset_raw
    if held_raw == 0 and all_dry(builder.buy_round):
        raise CallerFault("no_route", NO_LIQUIDITY)
    if held_raw == 0:
        raise CallerFault(
            "nothing_to_sell",
            f"The wallet {builder.wallet} holds none of this token at block {builder.head.block.number:,}. "
            "If you bought it just now, ask again in a second.",
        )
    if share is None:
        return parse_amount(params.amount or "", builder.decimals, "this token")
    with localcontext() as context:
        context.prec, context.rounding = 120, ROUND_DOWN
        part_raw = int(Decimal(held_raw) * share / 100)
    if part_raw == 0:
        raise CallerFault(
            "nothing_to_sell",
            "That share of what the wallet holds is less than the token's smallest unit: sell more.",
        )
    return min(held_raw, part_raw)


# --- the answer ------------------------------------------------------------------------------------


def _as_answered(builder: TradeBuilder, final: FinalRun, meter: Meter) -> UseCaseAnswer[PreparedTrade]:
    answer = present(builder, final)
    by_node = answer.verdict.code == "unproven" and final.lost_by_node()
    return UseCaseAnswer(answer, counted=not by_node, meter=meter)


_ADVISORY = (
    "A curve has no deadline: validUntil is advice. Near its end it may fill only a part, at no worse a "
    "price than the minimum allows, and returns the rest."
)


def present(builder: TradeBuilder, final: FinalRun) -> PreparedTrade:
    """Every field of the answer."""
    ctx, venue, trade = builder.ctx, final.done.written.place.venue, final.done
    now_s = ctx.now_s()
    checked = short_check(final.evidence, final.judgement, ctx.policy)
    code = _code(builder, final)
    refused = refusal_code(code, final.judgement) if builder.side == "buy" else None
    name = pays(venue)
    assert name is not None
    return PreparedTrade(
        chain_id=ctx.chain_id,
        side=builder.side,
        sender=builder.wallet,
        block=builder.head.block.number,
        token=TokenOf(builder.token(), symbol(builder), builder.decimals),
        venue=TradeVenue(venue.kind, venue.pool or venue.pool_id, name),
        spend=_amount(builder, builder.paid_in(venue), trade.written.amount_raw),
        expect=_expected_amount(builder, final),
        slippage_bps=final.slippage_bps,
        valid_until=datetime.fromtimestamp(builder.deadline_s, UTC),
        refused=refused is not None,
        steps=[] if refused is not None else _steps(builder, final),
        already_done=list(trade.written.already),
        sell_back=sell_back(final.exit, final.evidence, ctx.contracts, ctx.policy) if final.exit else None,
        verdict=_verdict(builder, final, checked, refused),
        check=checked,
        prepared_at=at(now_s),
    )


def _code(builder: TradeBuilder, final: FinalRun) -> str:
    """The code of a buy by its sell-back, of a sell by its price impact and by what it loses."""
    if final.exit is not None:
        return final.exit.code
    return code_of_loss(max(final.impact_bps or 0, final.lost_bps or 0), builder.ctx.policy)


def _amount(builder: TradeBuilder, asset: Address, raw: int) -> AssetAmount:
    return amount(raw, asset, builder.decimals, symbol(builder), builder.ctx.contracts)


def _expected_amount(builder: TradeBuilder, final: FinalRun) -> ExpectedAmount:
    asset = builder.comes_in(final.done.written.place.venue)
    arrived, minimum = _amount(builder, asset, final.done.came_raw), _amount(builder, asset, final.min_raw)
    return ExpectedAmount(
        arrived.amount, arrived.raw, arrived.asset, arrived.symbol, minimum.amount, minimum.raw
    )


def _steps(builder: TradeBuilder, final: FinalRun) -> list[TradeStep]:
    """The steps exactly as they ran, gas limits included."""
    written = final.done.written
    rows = zip(written.does, written.calls, final.gas_limits, strict=True)
    return [
        TradeStep(n, does, call.to, call.data, str(call.value_wei), gas)
        for n, (does, call, gas) in enumerate(rows, start=1)
    ]


def _verdict(
    builder: TradeBuilder, final: FinalRun, checked: ShortCheck, refused: str | None
) -> TradeVerdict:
    code = refused or _code(builder, final)
    text = sentence(builder, final, checked, refused)
    sentences = [text if refused is None else f"Refused. {text}"]
    venue, written = final.done.written.place.venue, final.done.written
    if refused is None:
        sentences += _cost_sentences(builder, final, checked)
        if final.cut:
            most = money_text(builder, builder.paid_in(venue), written.amount_raw)
            sentences.append(f"The venue takes at most {most} now: the trade spends only that.")
        if builder.side == "sell":
            sentences += _kept_sentences(builder, final)
        if builder.side == "sell" and builder.holdings.eth_wei < _gas_wei(final):
            sentences.append("The wallet does not hold enough eth for the gas.")
        if venue.is_curve:
            sentences.append(_ADVISORY)
    is_unpriced = builder.side == "sell" and final.lost_bps is None
    level = level_of(code, final.exit, is_unpriced)
    if refused is None and (said := check_sentence(checked, level if builder.side == "buy" else "")):
        sentences.append(said)
    return TradeVerdict(code, level, " ".join(sentences))  # type: ignore[arg-type]


def _cost_sentences(builder: TradeBuilder, final: FinalRun, checked: ShortCheck) -> list[str]:
    """What the pool, its hook or the token takes, and where that lowered the minimum."""
    venue = final.done.written.place.venue
    keeps = verdict_text.keeps_text(final.evidence, venue, final.judgement.readings, builder.ctx.policy)
    if checked.verdict.level == "danger" and keeps.removesuffix(".") in checked.verdict.text:
        # The check's own sentence follows.
        keeps = ""
    return [text for text in (keeps, trade_text.lowered_minimum(final.lowered_bps)) if text]


def _kept_sentences(builder: TradeBuilder, final: FinalRun) -> list[str]:
    """What stays in the wallet of what was to be sold, where the token lets only a part go."""
    trade = final.done
    taken_raw, kept_raw = trade.taken_raw("sell"), trade.taken_raw("sell") - trade.spent_raw
    if kept_raw * BPS < taken_raw:
        return []
    share, kept = format_percent(kept_raw * BPS // taken_raw), money_text(builder, builder.token(), kept_raw)
    return [f"{share} of what it sells stays in the wallet: {kept}. The token lets only the rest go."]


def _gas_wei(final: FinalRun) -> int:
    ran = final.done.ran
    return sum(call.gas_used for call in ran.calls) * ran.gas_price_wei
