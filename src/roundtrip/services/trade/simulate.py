"""Simulates a wallet's own calls: runs them, reads what moved, sells what they bring straight back.

Two batches to the node where the index knows a venue of the bought token; one more for each thing that only
the run shows.
"""

from dataclasses import dataclass, replace

from roundtrip.chain.blocks import environments
from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import CodeFault, Meter
from roundtrip.chain.simulate.legs import Setting
from roundtrip.chain.wallet.calls import PLENTY_WEI, WalletCalls
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.figures import format_about, format_close, format_count, format_shortfall
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, ZERO_ADDRESS, Address, plain_decimal
from roundtrip.domain.check import verdict_text
from roundtrip.domain.check.evidence import CompletedBuy, Evidence, Missing
from roundtrip.domain.check.price import quote_decimals, quote_in_wei
from roundtrip.domain.check.sales import Sale, loss_bps
from roundtrip.domain.check.venue_code import stops_selling
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.check.verdict_text import sell_reason_text
from roundtrip.domain.trade import text as trade_text
from roundtrip.domain.trade.judge import (
    COST_UNKNOWN,
    NOT_EVERYWHERE,
    BalanceChange,
    CallResult,
    Exit,
    ExitFinding,
    RunResult,
    TradeOutcome,
    WalletChanges,
    judge_exit,
    judge_share,
    judge_trade,
    part_raw,
    split_cost,
)
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.check_run import try_sells
from roundtrip.services.rehearsal.rehearsal import find_token_reason
from roundtrip.services.rehearsal.sell_back import (
    SellBackResult,
    brought_token,
    exit_gas,
    other_venues_gas,
    sell_all,
    worth_wei,
)
from roundtrip.services.rehearsal.verdict import ShortCheck, TradeVerdict, short_check
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import at
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.money import (
    ETH_DECIMALS,
    USDG_DECIMALS,
    AssetAmount,
    amount,
    is_money,
    money_wei,
    symbol_of,
)
from roundtrip.services.trade.own_gas import describe_own_gas, run_with_own_gas
from roundtrip.services.trade.own_sending import SendingFault, find_sending_fault
from roundtrip.services.trade.simulate_params import SimulateParams
from roundtrip.services.trade.simulation_answer import ApprovalAnswer, CallOutcomeAnswer, SellBack, Simulation
from roundtrip.services.trade.touched_assets import (
    TOO_DEAR,
    GasBudget,
    KnownPlaces,
    WalletCase,
    read_known_places,
    usual_limits,
    with_gas_limits,
)
from roundtrip.services.trade.wallet_run import (
    TOO_MANY_ASSETS,
    FullRun,
    received_tokens,
    run_calls,
    run_watched,
    same_effects,
    sent_elsewhere_wei,
)
from roundtrip.venues.base import Call, Contracts, quote_name

_MONEY_DECIMALS = {"eth": ETH_DECIMALS, "weth": ETH_DECIMALS, "usdg": USDG_DECIMALS}


def sell_back(
    finding: ExitFinding, evidence: Evidence, contracts: Contracts, policy: Policy
) -> SellBack | None:
    """The deciding sell; None where there was no venue to try it on."""
    if finding.venue is None or finding.reading is None:
        return None
    venue, shown = finding.venue.venue, finding.shown_sell(policy)
    probe, sold = shown if shown is not None else (None, None)
    decimals = evidence.facts.decimals if isinstance(evidence.facts.decimals, int) else 0
    sold_raw = 0 if sold is None else part_raw(sold)
    back = None
    if sold is not None and sold_raw:
        asset = ZERO_ADDRESS if venue.quote == "weth" else venue.quote_address
        back = amount(sold.back_raw, asset, quote_decimals(venue.quote, evidence.market), None, contracts)
    return SellBack(
        token=finding.exit.token,
        venue=venue.kind,
        at=venue.pool or venue.pool_id,
        sold=plain_decimal(sold_raw, decimals),
        back=back,
        round_trip_loss_bps=_loss(finding, policy),
        reverts=sell_reason_text(finding.venue, finding.reading),
        share_bps=0 if sold is None else min(BPS, -(-sold_raw * BPS // max(1, sold.held_raw))),
        after_s=probe.delay_s if probe is not None and sold_raw else None,
        price_impact_bps=finding.price_impact_bps(),
        later_loss_bps=finding.later_loss_bps(policy),
    )


def _loss(finding: ExitFinding, policy: Policy) -> int | None:
    """The loss of the sell that is shown; None where the price paid is not known, or too little sells."""
    _, sold = finding.shown_sell(policy) or (None, None)
    if sold is None or sold.paid_raw <= 0 or finding.code in ("no_route", "unproven"):
        return None
    stops = finding.reading is not None and stops_selling(finding.reading, policy)
    if finding.code == "cannot_sell" and not stops:
        return None
    cost_raw = max(1, sold.paid_raw * sold.sold_raw // max(1, sold.held_raw))
    return -((sold.back_raw - cost_raw) * 10_000 // cost_raw)


async def simulate(ctx: Context, params: SimulateParams) -> UseCaseAnswer[Simulation]:
    """The whole simulation. A node that gives no usable answer leaves it unproven."""
    calls, wallet, meter = params.own_calls(), params.wallet(), Meter()
    try:
        head, places = await at_once(ctx.heads.read_now(), read_known_places(ctx, calls))
        case = _case(ctx, head, params, calls, places, meter)
        nonces, fees, beside = params.own_nonces(), params.own_fees(), Meter()
        judged, sending = await at_once(
            _judge_calls(case), find_sending_fault(ctx, head, wallet, nonces, fees, beside)
        )
        judged = _as_sent(judged, sending)
        # It ran beside the others: it adds requests, and no trip to the node.
        meter.calls += beside.calls
    except NodeFault as fault:
        # A fault caused by the called code counts: the caller chose to run it.
        counted = isinstance(fault, CodeFault)
        return UseCaseAnswer(_unproven(ctx, wallet, fault), counted=counted, meter=meter)
    missing = judged.outcome.missing
    counted = missing is None or missing.fault != "node"
    return UseCaseAnswer(_present(case, judged), counted=counted, meter=meter)


def _case(
    ctx: Context,
    head: ChainHead,
    params: SimulateParams,
    calls: tuple[Call, ...],
    places: KnownPlaces,
    meter: Meter,
) -> WalletCase:
    environment = replace(environments.draw(ctx.entropy(), head, ctx.policy)[0], buyer=params.wallet())
    setting = Setting(ctx.contracts.weth, ctx.contracts, head.market, ctx.policy)
    gas = GasBudget(ctx.policy.trade_gas_budget)
    return WalletCase(
        ctx, head, environment, setting, params.wallet(), calls, places, params.fund, meter, gas,
        params.own_gas(), params.own_fees(),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _JudgedCalls:
    """The result of a simulation. ``short``: why the wallet cannot pay for the call ``short_at``, or the
    chain refuses it. ``why``: why a call fails, where its own reason does not say it. ``waits``: why the
    chain does not take the calls now; empty: it does."""

    outcome: TradeOutcome
    ran: RunResult | None
    short: str | None = None
    short_at: int = 0
    why: str | None = None
    evidence: Evidence | None = None
    tokens: int = 1
    waits: str = ""


def _as_sent(judged: _JudgedCalls, sending: SendingFault | None) -> _JudgedCalls:
    """The result with the nonces and fees that the wallet sets."""
    if sending is None:
        return judged
    if not sending.is_refused:
        return replace(judged, outcome=replace(judged.outcome, warned=True), waits=sending.text)
    text = f"It would fail: {sending.text[0].lower()}{sending.text[1:]}"
    return _JudgedCalls(TradeOutcome("tx_reverts"), judged.ran, text, sending.number)


async def _judge_calls(case: WalletCase) -> _JudgedCalls:
    value_wei = sum(call.value_wei for call in case.calls)
    if value_wei > PLENTY_WEI:
        too_much = f"It would fail: no wallet holds {format_close(value_wei, ETH_DECIMALS)} eth."
        return _JudgedCalls(TradeOutcome("tx_reverts"), None, too_much)
    full_run = await run_calls(case)
    result, balance_wei = full_run.ran, full_run.balance_wei
    if isinstance(result, Missing):
        return _JudgedCalls(TradeOutcome("unproven", missing=result), None)
    if isinstance(balance_wei, Missing):
        if not case.fund:
            return _JudgedCalls(TradeOutcome("unproven", missing=balance_wei), result)
        balance_wei = 0
    short = None if case.fund else _find_unpaid(case, result, balance_wei)
    if result.has_reverted() or short is not None:
        changes = WalletChanges(False, False, short is not None)
        outcome = judge_trade(result, (), changes, case.ctx.policy, _known_spenders(case, result))
        if short is None:
            result = await _with_token_reason(case, full_run, result)
        return _JudgedCalls(outcome, result, *((short[1], short[0]) if short is not None else ()))
    starved = await run_with_own_gas(case, full_run.assets, result, balance_wei)
    if isinstance(starved, Missing):
        return _JudgedCalls(TradeOutcome("unproven", missing=starved), None)
    if starved is not None:
        return _JudgedCalls(TradeOutcome("tx_reverts"), starved, why=describe_own_gas(case, result, starved))
    if len(received_tokens(case, result)) > case.ctx.policy.most_received:
        return _JudgedCalls(TradeOutcome("unproven", missing=_TOO_MANY_TOKENS), result)
    return await _run_as_sent(
        case, full_run, result, with_gas_limits(case, full_run.estimated_gas, result, balance_wei)
    )


async def _run_as_sent(
    case: WalletCase, full_run: FullRun, rehearsed: RunResult, variants: list[WalletCalls]
) -> _JudgedCalls:
    """Repeats the calls with the gas and eth that the wallet would send, and at the same time runs the sells
    of what they bring and the checks' sell rounds."""
    checked = [
        (change, full_run.checks.get(change.asset, _NOT_LOOKED_AT))
        for change in received_tokens(case, rehearsed)
    ]
    tradable = [(change, check) for change, check in checked if isinstance(check, BuyRoundResult)]
    tokens = [brought_token(check, change) for change, check in tradable]
    limits = usual_limits(case, rehearsed)
    least_gas = exit_gas(limits, len(tokens), case.ctx.policy)
    planned = case.gas.plan(variants, least_gas, other_venues_gas(limits, tokens, case.ctx.policy))
    if planned is None:
        return _JudgedCalls(TradeOutcome("unproven", missing=TOO_DEAR), rehearsed, tokens=len(tokens))
    variants, selling_gas = planned
    meters = [Meter() for _ in range(len(tokens) + 2)]
    checking = (try_sells(check, meter) for (_, check), meter in zip(tradable, meters[2:], strict=True))
    sent, sell_backs, checks = await at_once(
        run_watched(case, variants, full_run.assets, meters[0]),
        sell_all(variants[0], tokens, meters[1], selling_gas),
        at_once(*checking),
    )
    case.meter.add(*meters)
    result = sent.single.proven(sent.assets)
    if isinstance(result, Missing):
        return _JudgedCalls(TradeOutcome("unproven", missing=result), None)
    if not same_effects(result, rehearsed) and received_tokens(case, result):
        return _JudgedCalls(TradeOutcome("unproven", missing=_DIFFERENT_AS_SENT), result)
    if result.has_reverted():
        result = await _with_token_reason(case, full_run, result)
        return _JudgedCalls(TradeOutcome("tx_reverts"), result)
    if tokens and sent.calls is not variants[0]:
        # With the usual gas it fails: repeat the sells with the calls as they are sent.
        sell_backs = await sell_all(sent.calls, tokens, case.meter, selling_gas)
    unchecked = [(change, missing) for change, missing in checked if isinstance(missing, Missing)]
    exits = _exits(
        case,
        sell_backs,
        _cost_wei(case, full_run, result),
        checks,
        sent_elsewhere_wei(case.calls, result),
        is_whole=not unchecked,
    )
    exits += tuple(
        judge_exit(Exit(change.asset, change.raw, (), False, gap=missing), case.ctx.policy)
        for change, missing in unchecked
    )
    if not received_tokens(case, result):
        exits = ()
    changes = WalletChanges(
        _gives_something(result), _gets_something(result), False, _lost_bps(case, full_run, result)
    )
    outcome = judge_trade(result, exits, changes, case.ctx.policy, _known_spenders(case, result))
    return _name_traps(_JudgedCalls(outcome, result, tokens=max(1, len(exits))), checks, case.ctx.policy)


def _name_traps(judged: _JudgedCalls, checks: list[Evidence], policy: Policy) -> _JudgedCalls:
    """With the check of the token that decided. One that calls a token a trap goes first, and is a warning:
    no sell of this wallet shows what real holders meet."""
    decided = judged.outcome.decided
    traps = [check for check in checks if judge(check, policy).verdict.code == "cannot_sell"]
    own = [check for check in checks if decided is not None and check.token == decided.exit.token]
    shown = [check for check in own if check in traps] or traps or own
    return replace(
        judged,
        outcome=replace(judged.outcome, warned=judged.outcome.warned or bool(traps)),
        evidence=shown[0] if shown else None,
    )


async def _with_token_reason(case: WalletCase, full_run: FullRun, result: RunResult) -> RunResult:
    """The run. Its first failed call gets the reason that the token gives, where a router withholds it."""
    number = next((n for n, call in enumerate(result.calls) if not call.ok), None)
    if number is None:
        return result
    checks = [check for check in full_run.checks.values() if isinstance(check, BuyRoundResult)]
    failed = result.calls[number]
    reason = await find_token_reason(failed.reason, checks, case.wallet, case.meter)
    told = (*result.calls[:number], replace(failed, token_reason=reason), *result.calls[number + 1 :])
    return replace(result, calls=told)


_NOT_LOOKED_AT = Missing("node", "the pools of a token that the calls bring were not read")
_TOO_MANY_TOKENS = Missing("token", "the calls bring more tokens than one simulation sells")
_OWN_LIMITS = (_TOO_MANY_TOKENS, TOO_MANY_ASSETS, NOT_EVERYWHERE, COST_UNKNOWN)
"""Caused by asking for all of it in one request, and by no token."""
_DIFFERENT_AS_SENT = Missing("token", "with the wallet's own eth and gas the calls do something else")


# --- the cost --------------------------------------------------------------------------------------


def _gives_something(result: RunResult) -> bool:
    return bool(result.items) or any(change.raw < 0 for change in result.moved)


def _gets_something(result: RunResult) -> bool:
    return any(change.raw > 0 for change in result.moved)


def _find_unpaid(case: WalletCase, result: RunResult, balance_wei: int) -> tuple[int, str] | None:
    """The number of the first call that the wallet cannot pay for, and the sentence; None: it can pay all."""
    held_wei = balance_wei
    for number, (call, outcome, change) in enumerate(
        zip(case.calls, result.calls, result.eth_changes_wei, strict=True)
    ):
        gas_wei = outcome.gas_used * result.gas_price_wei
        asks_wei = call.value_wei + max(
            gas_wei, case.asks_wei(number, outcome.gas_used, result.gas_price_wei)
        )
        if held_wei < asks_wei:
            held, needed = format_shortfall(held_wei, asks_wei, ETH_DECIMALS)
            subject = "It" if len(case.calls) == 1 else f"Call {number + 1} of {len(case.calls)}"
            sentence = f"{subject} would fail: the wallet holds {held} eth and needs {needed}, gas included."
            return number, sentence
        held_wei += change - gas_wei
    return None


def _cost_wei(case: WalletCase, full_run: FullRun, result: RunResult) -> int | None:
    """The value spent, less the money received; None where a part of it has no price."""
    if result.items:
        return None
    cost_wei = 0
    for change in result.moved:
        if change.raw > 0 and not is_money(change.asset, case.ctx.contracts):
            continue
        value_wei = _worth_wei(case, full_run, change)
        if value_wei is None:
            return None
        cost_wei += value_wei if change.raw < 0 else -value_wei
    return max(0, cost_wei)


def _worth_wei(case: WalletCase, full_run: FullRun, change: BalanceChange) -> int | None:
    """The worth at the pinned block: money at the market's price, a token at the cost of the check's buy."""
    if is_money(change.asset, case.ctx.contracts):
        return money_wei(abs(change.raw), change.asset, case.ctx.contracts, case.head.market)
    check = full_run.checks.get(change.asset)
    return worth_wei(check, abs(change.raw)) if isinstance(check, BuyRoundResult) else None


def _lost_bps(case: WalletCase, full_run: FullRun, result: RunResult) -> int | None:
    """The loss of the value spent, where only money was received; None where a part of it has no price."""
    if (
        received_tokens(case, result)
        or not _gives_something(result)
        or not _gets_something(result)
        or result.items
    ):
        return None
    spent = [_worth_wei(case, full_run, change) for change in result.moved if change.raw < 0]
    received = [_worth_wei(case, full_run, change) for change in result.moved if change.raw > 0]
    if any(worth is None for worth in (*spent, *received)):
        return None
    paid_wei = sum(worth or 0 for worth in spent)
    return loss_bps(paid_wei, sum(worth or 0 for worth in received)) if paid_wei > 0 else None


def _exits(
    case: WalletCase,
    sell_backs: list[SellBackResult],
    cost_wei: int | None,
    checks: list[Evidence],
    sent_wei: int,
    is_whole: bool,
) -> tuple[ExitFinding, ...]:
    """Judges each token with its share of the cost (``split_cost``). ``sent_wei``: the part of the cost that
    goes elsewhere. ``is_whole``: these are all the tokens that the calls bring; else what the others cost is
    not known, and none of these is blamed for it."""
    policy = case.ctx.policy

    def exit_of(sell_back: SellBackResult, evidence: Evidence, share: int | None) -> Exit:
        return sell_back.exit(share, evidence, sent_wei * (share or 0) // (cost_wei or 1))

    pairs = list(zip(sell_backs, checks, strict=True))
    if (len(pairs) == 1 and is_whole) or cost_wei is None:
        return tuple(judge_exit(exit_of(*pair, cost_wei), policy) for pair in pairs)
    usual_wei = [_usual_wei(*pair, policy) for pair in pairs]
    if not is_whole:
        shares = [cost_wei if usual is None else min(usual, cost_wei) for usual in usual_wei]
        exits = [exit_of(*pair, share) for pair, share in zip(pairs, shares, strict=True)]
        return tuple(judge_exit(exit_, policy) for exit_ in exits)
    return tuple(
        judge_share((exit_of(*pair, least), exit_of(*pair, most)), policy)
        for pair, least, most in zip(pairs, *split_cost(cost_wei, usual_wei, sent_wei), strict=True)
    )


def _usual_wei(sell_back: SellBackResult, check: Evidence, policy: Policy) -> int | None:
    """What as much of the token usually costs: what the check's cheapest buy paid for it, with what the token
    takes of a buy, in the pool that decides; or what it brings back, with the loss of the check's round trip.
    The larger counts. None: the check bought none."""
    back_wei = _back_wei(judge_exit(sell_back.exit(0), policy), sell_back, policy)
    judgement = judge(check, policy)
    reading = None if judgement.best is None else judgement.readings[judgement.best]
    if judgement.best is None or reading is None:
        return None
    venue, raw = check.venues[judgement.best], sell_back.brought.moved.raw
    bought = [buy.outcome for buy in venue.buys if isinstance(buy.outcome, CompletedBuy)]
    # At the lowest unit price: a larger buy moves the price, and what it brings back shows that.
    paid_raw = min(
        (buy.paid_raw * raw // buy.received_raw for buy in bought if buy.received_raw > 0), default=0
    )
    asked_wei = quote_in_wei(paid_raw, venue.venue.quote, check.market) or 0
    lost_bps = min(BPS - 1, max(0, reading.full.loss_bps)) if isinstance(reading.full, Sale) else 0
    return max(asked_wei, back_wei * BPS // (BPS - lost_bps))


def _back_wei(finding: ExitFinding, sell_back: SellBackResult, policy: Policy) -> int:
    sell = finding.shown_sell(policy)
    if sell is None or finding.venue is None:
        return 0
    _, sold = sell
    market = sell_back.brought.buy_round.run.setting.market
    return max(0, quote_in_wei(sold.back_raw, finding.venue.venue.quote, market) or 0)


# --- the answer ------------------------------------------------------------------------------------


def _unproven(ctx: Context, wallet: Address, fault: NodeFault) -> Simulation:
    """The answer where the node gave no usable answer."""
    outcome = TradeOutcome("unproven", missing=Missing("node", fault.message))
    text = verdict_text.unproven(outcome.missing or Missing("node", ""))
    return Simulation(
        chain_id=ctx.chain_id,
        block=ctx.heads.last_number(),
        sender=wallet,
        verdict=TradeVerdict("unproven", "unknown", text),
        calls=[],
        spent=[],
        received=[],
        approvals=[],
        sell_back=None,
        check=None,
        simulated_at=at(ctx.now_s()),
    )


def _present(case: WalletCase, judged: _JudgedCalls) -> Simulation:
    ctx, result, outcome = case.ctx, judged.ran, judged.outcome
    # Calls that the wallet cannot pay for move nothing.
    moves = result is not None and judged.short is None
    decided, evidence = outcome.decided, judged.evidence
    check = None
    if evidence is not None:
        check = short_check(evidence, judge(evidence, ctx.policy), ctx.policy)
    text = f"{_text(case, judged, check)} {judged.waits}".rstrip()
    return Simulation(
        chain_id=ctx.chain_id,
        block=case.head.block.number,
        sender=case.wallet,
        verdict=TradeVerdict(outcome.code, outcome.level(), text),  # type: ignore[arg-type]
        calls=_calls(case, judged),
        spent=_amounts(case, result, -1) if result is not None and moves else [],
        received=_amounts(case, result, 1) if result is not None and moves else [],
        approvals=_approvals(case, result) if result is not None and moves else [],
        sell_back=sell_back(decided, evidence, ctx.contracts, ctx.policy) if decided and evidence else None,
        check=check,
        simulated_at=at(ctx.now_s()),
    )


def _text(case: WalletCase, judged: _JudgedCalls, check: ShortCheck | None) -> str:
    outcome, result = judged.outcome, judged.ran
    if outcome.missing is TOO_DEAR:
        millions = case.ctx.policy.trade_gas_budget // 10**6
        what = "The calls use" if judged.tokens < 2 else f"To sell {judged.tokens} tokens back uses"
        alone = "" if judged.tokens < 2 else " Simulate each buy alone."
        return (
            f"{what} too much gas: all simulations of one request together may use {millions:,} million gas."
            f"{alone} This is not a pass."
        )
    if any(outcome.missing is limit for limit in _OWN_LIMITS) and outcome.missing is not None:
        why = outcome.missing.why
        return f"{why[0].upper()}{why[1:]}. This is not a pass."
    if result is None:
        return judged.short or verdict_text.unproven(outcome.missing or Missing("node", ""))
    leaving = _describe_spent(case, result) if outcome.code == "nothing_received" else None
    spenders, policy = _known_spenders(case, result), case.ctx.policy
    fails = judged.short or judged.why
    sentences = [trade_text.sentence(outcome, result, fails, policy, judged.tokens, leaving, spenders)]
    if judged.short is None:
        warnings = trade_text.warnings_text(result, spenders)
        sentences.insert(1 if outcome.code == "tx_reverts" else 0, warnings)
    sent_wei = sent_elsewhere_wei(case.calls, result)
    if sent_wei and outcome.decided is not None:
        sentences.append(
            f"{format_about(sent_wei, ETH_DECIMALS)} eth of what it spends leaves for other addresses."
        )
    is_milder = outcome.decided is not None and outcome.level() == "ok"
    if check is not None and check.verdict.level in ("danger", "unknown", *(("warn",) if is_milder else ())):
        decided = outcome.decided.exit.token if outcome.decided is not None else None
        other = evidence.token if (evidence := judged.evidence) is not None else None
        which = "the token" if other in (None, decided) else other
        sentences.append(f"A check of {which} says: {check.verdict.text}")
    return " ".join(part for part in sentences if part)


def _describe_spent(case: WalletCase, result: RunResult) -> str | None:
    """What leaves the wallet, such as "0.5 eth and 12 of the token 0x…"; None: no balance falls."""
    texts = [_describe_given(change, result, case.ctx.contracts) for change in result.moved if change.raw < 0]
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:]))) or None


def _describe_given(change: BalanceChange, result: RunResult, contracts: Contracts) -> str:
    decimals, _ = result.metadata.get(change.asset, (None, None))
    unit = quote_name(change.asset, contracts)
    if unit in _MONEY_DECIMALS:
        return f"{format_about(-change.raw, _MONEY_DECIMALS[unit])} {unit}"
    if change.asset in result.collections and not decimals:
        return f"{format_count(-change.raw, 'item')} of the collection {change.asset}"
    units = "" if decimals is not None else " base units"
    return f"{format_about(-change.raw, decimals or 0)}{units} of the token {change.asset}"


def _known_spenders(case: WalletCase, result: RunResult) -> dict[Address, str]:
    """Those of the spenders that are known, with their names in a sentence."""
    spenders = {allowance.spender for allowance in (*result.allowances, *result.lowered)}
    return {
        spender: name for spender in spenders if (name := case.places.name_of(spender, case.ctx.contracts))
    }


def _calls(case: WalletCase, judged: _JudgedCalls) -> list[CallOutcomeAnswer]:
    if judged.ran is None:
        return [CallOutcomeAnswer(False, 0, None) for _ in case.calls] if judged.short else []
    if judged.short is not None:
        # The calls before the one that cannot be paid would succeed.
        number = judged.short_at
        outcomes = [
            CallOutcomeAnswer(call.ok, call.gas_used, _reason(call)) for call in judged.ran.calls[:number]
        ]
        return outcomes + [CallOutcomeAnswer(False, 0, None)] * (len(case.calls) - number)
    return [CallOutcomeAnswer(call.ok, call.gas_used, _reason(call)) for call in judged.ran.calls]


def _reason(call: CallResult) -> str | None:
    return None if call.ok else call.token_reason or names.reason(call.reason or "") or None


def _amounts(case: WalletCase, result: RunResult, sign: int) -> list[AssetAmount]:
    return [_amount(case, result, change, sign) for change in result.moved if change.raw * sign > 0]


def _amount(case: WalletCase, result: RunResult, change: BalanceChange, sign: int) -> AssetAmount:
    decimals, symbol = result.metadata.get(change.asset, (None, None))
    return amount(change.raw * sign, change.asset, decimals, symbol_of(symbol), case.ctx.contracts)


def _approvals(case: WalletCase, result: RunResult) -> list[ApprovalAnswer]:
    approvals = []
    for allowance in result.allowances:
        decimals, _ = result.metadata.get(allowance.token, (None, None))
        amount_text = (
            None
            if allowance.raw is None or allowance.is_unlimited()
            else plain_decimal(allowance.raw, decimals or 0)
        )
        approvals.append(
            ApprovalAnswer(allowance.token, allowance.spender, amount_text, allowance.is_unlimited())
        )
    return approvals
