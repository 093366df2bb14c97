"""What would a wallet's own calls do: run them, see what moved, sell what they bring straight back.

Two trips to the node where the token that is bought is known to trade somewhere; one more for each thing that
only the run tells.
"""

import asyncio
from dataclasses import dataclass, replace

from roundtrip.chain.legs import Setting
from roundtrip.chain.rpc import Meter
from roundtrip.domain import sentences, trade_sentences
from roundtrip.domain.errors import NodeFault
from roundtrip.domain.evidence import Evidence, Missing
from roundtrip.domain.price import quote_in_wei
from roundtrip.domain.readings import loss_bps
from roundtrip.domain.trade import Changed, Exit, ExitFinding, Moved, Outcome, Ran, find_exit, judge_trade
from roundtrip.domain.types import Address, plain_decimal
from roundtrip.domain.verdict import judge

from . import environments
from .check_answer import at
from .context import Answered, Context
from .gather import Opened, closed
from .money import ETH_DECIMALS, Amount, amount, is_money, symbol_of, worth_wei
from .own_run import PLENTY_WEI, Case, Whole, measured, whole_run
from .sell_back import Brought, SoldBack, sold_back
from .simulate_answer import (
    ApprovalAnswer,
    CallAnswer,
    ShortCheck,
    SimulateParams,
    Simulation,
    TradeVerdict,
    sell_back,
    short_check,
)


async def simulate(ctx: Context, params: SimulateParams) -> Answered[Simulation]:
    """The whole simulation. A node that gives no usable answer leaves it unproven."""
    calls, wallet, meter = params.own_calls(), params.wallet(), Meter()
    try:
        head = ctx.heads.current()
        drawn = environments.draw(ctx.entropy(), head, ctx.policy)[0]
        setting = Setting(ctx.contracts.weth, ctx.contracts, head.market, ctx.policy)
        own = replace(drawn, buyer=wallet)
        case = Case(ctx, head, own, setting, wallet, calls, params.fund, meter)
        judged = await _judged(case)
    except NodeFault as fault:
        return Answered(_unproven(ctx, wallet, fault), counted=False, meter=meter)
    missing = judged.outcome.missing
    counted = missing is None or missing.fault != "node"
    return Answered(_present(case, judged), counted=counted, meter=meter)


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a simulation came to."""

    outcome: Outcome
    ran: Ran | None
    short: str | None = None
    evidence: Evidence | None = None


async def _judged(case: Case) -> _Judged:
    value_wei = sum(call.value_wei for call in case.calls)
    if value_wei > PLENTY_WEI:
        too_much = f"It would fail: no wallet holds {plain_decimal(value_wei, ETH_DECIMALS)} eth."
        return _Judged(Outcome("tx_reverts"), None, too_much)
    whole = await whole_run(case)
    ran = whole.ran
    if isinstance(ran, Missing):
        return _Judged(Outcome("unproven", missing=ran), None)
    short: str | None = None
    if not case.fund:
        if isinstance(whole.balance_wei, Missing):
            return _Judged(Outcome("unproven", missing=whole.balance_wei), ran)
        short = _short(case, ran, whole.balance_wei)
    spent, received = _gone(ran), _come(ran)
    if ran.reverted() or short is not None:
        return _Judged(
            judge_trade(ran, (), Changed(spent, received, short is not None), case.ctx.policy), ran, short
        )
    if len(whole.received(case)) > case.ctx.policy.most_received:
        many = Missing("token", "the calls bring more tokens than are tried")
        return _Judged(Outcome("unproven", missing=many), ran)
    return await _with_exits(case, whole, ran)


async def _with_exits(case: Case, whole: Whole, ran: Ran) -> _Judged:
    tokens = whole.received(case)
    held_wei = whole.balance_wei if isinstance(whole.balance_wei, int) else 0
    own = measured(case, ran, held_wei)
    ready = [(one, found) for one in tokens if isinstance(found := whole.opened.get(one.asset), Opened)]
    brought = [Brought(found, one) for one, found in ready]
    meters = [Meter() for _ in range(len(brought) + 2)]
    checking = (closed(found, meter) for (_, found), meter in zip(ready, meters[2:], strict=True))
    sold, cost_wei, checks = await asyncio.gather(
        sold_back(own, brought, meters[0]),
        _cost_wei(case, ran, bool(tokens), meters[1]),
        asyncio.gather(*checking),
    )
    case.meter.add(*meters)
    gaps = [found for one in tokens if isinstance(found := whole.opened.get(one.asset), Missing)]
    lost = [Exit(one.asset, one.raw, (), False, gap=gap) for one, gap in zip(tokens, gaps, strict=False)]
    exits = (*_exits(case, sold, cost_wei, checks), *(find_exit(one, case.ctx.policy) for one in lost))
    changed = Changed(_gone(ran), _come(ran), False, _money_lost(case, ran))
    outcome = judge_trade(ran, exits, changed, case.ctx.policy)
    token = outcome.decided.exit.token if outcome.decided is not None else None
    evidence = next((check for check in checks if check.token == token), None)
    return _Judged(outcome, ran, evidence=evidence)


# --- what was paid ---------------------------------------------------------------------------------


def _gone(ran: Ran) -> bool:
    return any(one.raw < 0 for one in ran.moved)


def _come(ran: Ran) -> bool:
    return any(one.raw > 0 for one in ran.moved)


def _short(case: Case, ran: Ran, balance_wei: int) -> str | None:
    """Why the wallet could not send all of the calls, with what it holds and what they took."""
    held_wei = balance_wei
    for number, (call, came, change) in enumerate(
        zip(case.calls, ran.calls, ran.eth_changes_wei, strict=True)
    ):
        gas_wei = came.gas_used * ran.gas_price_wei
        if held_wei < call.value_wei + gas_wei:
            has, needs = (plain_decimal(wei, ETH_DECIMALS) for wei in (held_wei, call.value_wei + gas_wei))
            which = "It" if len(case.calls) == 1 else f"Call {number + 1} of {len(case.calls)}"
            return f"{which} would fail: the wallet holds {has} eth and needs {needs}, gas included."
        held_wei += change - gas_wei
    return None


async def _cost_wei(case: Case, ran: Ran, needed: bool, meter: Meter) -> int | None:
    """What was spent for the tokens that came, money that came with them taken off; None where a part of it
    has no price."""
    if not needed:
        return 0
    contracts, market = case.ctx.contracts, case.head.market
    others = {one.asset for one in ran.moved if one.raw < 0 and not is_money(one.asset, contracts)}
    if others:
        market = await case.ctx.rates.join(market, others, case.head.block, meter)
    cost_wei = 0
    for one in ran.moved:
        if one.raw < 0 or is_money(one.asset, contracts):
            worth = worth_wei(abs(one.raw), one.asset, contracts, market)
            if worth is None:
                return None
            cost_wei += worth if one.raw < 0 else -worth
    return max(0, cost_wei)


def _money_lost(case: Case, ran: Ran) -> int | None:
    """Where money became money and nothing else moved: what that lost at the market's prices."""
    contracts, market = case.ctx.contracts, case.head.market
    if not all(is_money(one.asset, contracts) for one in ran.moved) or not _gone(ran) or not _come(ran):
        return None
    gone = [worth_wei(-one.raw, one.asset, contracts, market) for one in ran.moved if one.raw < 0]
    come = [worth_wei(one.raw, one.asset, contracts, market) for one in ran.moved if one.raw > 0]
    if any(worth is None for worth in (*gone, *come)):
        return None
    paid_wei = sum(worth or 0 for worth in gone)
    return loss_bps(paid_wei, sum(worth or 0 for worth in come)) if paid_wei > 0 else None


def _exits(
    case: Case, sold: list[SoldBack], cost_wei: int | None, checks: list[Evidence]
) -> tuple[ExitFinding, ...]:
    """Each token with its share of the cost, by what it brings back: together they lose what all lost."""
    policy, shares = case.ctx.policy, [cost_wei] * len(sold)
    if len(sold) > 1 and cost_wei is not None:
        backs_wei = [_back_wei(find_exit(one.exit(0), policy), one) for one in sold]
        whole_wei = sum(backs_wei)
        shares = [cost_wei * back // whole_wei if whole_wei else cost_wei for back in backs_wei]
    return tuple(
        find_exit(one.exit(share, check), policy)
        for one, share, check in zip(sold, shares, checks, strict=True)
    )


def _back_wei(found: ExitFinding, one: SoldBack) -> int:
    shown = found.shown()
    if shown is None or found.venue is None:
        return 0
    market = one.brought.opened.run.setting.market
    return max(0, quote_in_wei(shown.back_raw, found.venue.venue.quote, market) or 0)


# --- the answer ------------------------------------------------------------------------------------


def _unproven(ctx: Context, wallet: Address, fault: NodeFault) -> Simulation:
    """Nothing was heard of the chain."""
    outcome = Outcome("unproven", missing=Missing("node", fault.message))
    text = sentences.unproven(outcome.missing or Missing("node", ""))
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


def _present(case: Case, judged: _Judged) -> Simulation:
    ctx, ran, outcome = case.ctx, judged.ran, judged.outcome
    # What the wallet cannot send moves nothing.
    moves = ran is not None and judged.short is None
    decided, evidence = outcome.decided, judged.evidence
    checked = None
    if evidence is not None:
        checked = short_check(evidence, judge(evidence, ctx.policy), ctx.policy)
    return Simulation(
        chain_id=ctx.chain_id,
        block=case.head.block.number,
        sender=case.wallet,
        verdict=TradeVerdict(outcome.code, outcome.level(), _text(case, judged, checked)),  # type: ignore[arg-type]
        calls=_calls(case, judged),
        spent=_amounts(case, ran, -1) if ran is not None and moves else [],
        received=_amounts(case, ran, 1) if ran is not None and moves else [],
        approvals=_approvals(case, ran) if ran is not None and moves else [],
        sell_back=sell_back(decided, evidence, ctx.contracts) if decided and evidence else None,
        check=checked,
        simulated_at=at(ctx.now_s()),
    )


def _text(case: Case, judged: _Judged, checked: ShortCheck | None) -> str:
    outcome, ran = judged.outcome, judged.ran
    if ran is None:
        return judged.short or sentences.unproven(outcome.missing or Missing("node", "no answer"))
    said = [trade_sentences.sentence(outcome, ran, judged.short, case.ctx.policy)]
    if judged.short is None:
        spenders = {one.spender for one in ran.allowances if _is_known(case, one.spender)}
        said.insert(0, trade_sentences.opening(ran.allowances, frozenset(spenders)))
    if checked is not None and checked.verdict.level in ("danger", "unknown"):
        said.append(f"A check of the token says: {checked.verdict.text}")
    return " ".join(part for part in said if part)


def _is_known(case: Case, spender: Address) -> bool:
    book = case.ctx.heads.book
    return spender in case.ctx.contracts.known() or (book is not None and book.token_at(spender) is not None)


def _calls(case: Case, judged: _Judged) -> list[CallAnswer]:
    if judged.ran is None:
        return [CallAnswer(False, 0, judged.short) for _ in case.calls] if judged.short else []
    return [
        CallAnswer(one.ok, one.gas_used, None if one.ok else trade_sentences.reason(one))
        for one in judged.ran.calls
    ]


def _amounts(case: Case, ran: Ran, sign: int) -> list[Amount]:
    return [_amount(case, ran, one, sign) for one in ran.moved if one.raw * sign > 0]


def _amount(case: Case, ran: Ran, one: Moved, sign: int) -> Amount:
    decimals, symbol = ran.told.get(one.asset, (None, None))
    return amount(one.raw * sign, one.asset, decimals, symbol_of(symbol), case.ctx.contracts)


def _approvals(case: Case, ran: Ran) -> list[ApprovalAnswer]:
    found = []
    for one in ran.allowances:
        decimals, _ = ran.told.get(one.token, (None, None))
        shown = None if one.raw is None or one.unlimited() else plain_decimal(one.raw, decimals or 0)
        found.append(ApprovalAnswer(one.token, one.spender, shown, one.unlimited()))
    return found
