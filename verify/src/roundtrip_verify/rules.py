"""The verification: compares the claims with what the steps do."""

import re
from dataclasses import dataclass, field

from . import abi, json_reader, pools, report_text, routers
from .network import TradeOrder, TrustedNetwork
from .prepared_trade import (  # fmt: skip
    CURVE,
    ETH,
    USDG,
    V4,
    PreparedStep,
    TradeHead,
    TradeToVerify,
    read_head,
    read_trade,
)
from .report import REFUSED, VerifyReport, base_units, printable
from .routers import ExpectedCall

MAX_SLIPPAGE_BPS = 5000
ROUNDING_RAW = 2
"""How far a minimum may be below what the slippage allows: shares are rounded twice."""
MIN_GAS, MAX_GAS = 21_000, 2**24
"""The gas that any transaction takes, and the most that one may take (EIP-7825)."""
USUAL_VALID_S = (19 * 60, 21 * 60)
MAX_VAULT_RAW = 2**128
MAX_PERMIT2_RAW = 2**160 - 1
MAX_RAW = 2**255
"""Amounts below these mean themselves: routers and tokens read some higher ones as everything."""

_AT_LEAST = re.compile(r"at least ([0-9]{1,78}(?:\.[0-9]{1,255})?) \(([0-9]{1,78}) base units\)")
_UNIT_WORDS = "base units)"


@dataclass(slots=True)
class RuleFindings:
    """The report, as the rules fill it."""

    proven: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def report(self) -> VerifyReport:
        return VerifyReport(not self.findings, tuple(self.proven), tuple(self.findings), tuple(self.notes))


def verify(
    answer: object, network: TrustedNetwork, request: TradeOrder | None = None, now_s: int | None = None
) -> VerifyReport:
    """Compares a PreparedTrade (its JSON, parsed) with the steps that it asks the reader to sign.
    ``request``: what the reader had asked for; ``now_s``: seconds since 1970, to check the deadline. Raises
    only Unreadable: the answer, or the request, has the wrong shape."""
    body = json_reader.mapping(answer, "the answer")
    json_reader.no_error(body)
    head = read_head(body)
    result = RuleFindings()
    order = request or TradeOrder()
    _check_head(head, network, order, result)
    if head.refused:
        if json_reader.items(json_reader.get(body, "steps"), "steps"):
            result.findings.append("the trade is refused, but has steps")
        else:
            result.proven.append(REFUSED)
        return result.report()
    trade = read_trade(body, head)
    if not trade.steps:
        result.findings.append("the trade is not refused, but has no steps")
        return result.report()
    _check_claims(trade, network, result)
    _check_amount(trade, order, result)
    _check_times(trade, now_s, result)
    _check_numbering(trade, result)
    if trade.money in (ETH, USDG):
        minimum = _read_minimum(trade, result)
        _check_approvals(trade, network, result)
        _check_trade_step(trade, network, minimum, result)
    result.notes += report_text.notes(trade)
    return result.report()


# --- what is claimed -------------------------------------------------------------------------------


def _check_head(head: TradeHead, network: TrustedNetwork, order: TradeOrder, result: RuleFindings) -> None:
    report = result.findings.append
    if head.chain_id != network.chain_id:
        report(f"chainId is {head.chain_id}, but your network's is {network.chain_id}")
    if json_reader.is_reserved(head.wallet) or head.wallet in network.contracts():
        report(f"from is {head.wallet}, which is not a wallet")
    if json_reader.is_reserved(head.token) or head.token in network.machinery() | {head.wallet}:
        report(f"the token is {head.token}, which is not a token")
    if not 1 <= head.slippage_bps <= MAX_SLIPPAGE_BPS:
        report(f"slippageBps is {head.slippage_bps}, but must be 1 to {MAX_SLIPPAGE_BPS}")
    wallet = None if order.wallet is None else json_reader.address(order.wallet, "the wallet you asked for")
    token = None if order.token is None else json_reader.address(order.token, "the token you asked for")
    for label, requested, claimed in (
        ("from", wallet, head.wallet),
        ("the token", token, head.token),
        ("side", order.side, head.side),
        ("slippageBps", order.slippage_bps, head.slippage_bps),
    ):
        if requested is not None and requested != claimed:
            report(f"{label} is {claimed}, but you asked for {printable(requested)}")


def _check_claims(trade: TradeToVerify, network: TrustedNetwork, result: RuleFindings) -> None:
    """Checks the amounts and the venue against each other."""
    report = result.findings.append
    head, paid, received = trade.head, trade.spend, trade.expect
    if (received if trade.buys else paid).asset != head.token:
        report(f"the trade {'buys' if trade.buys else 'sells'} something other than the token {head.token}")
    if trade.money not in (ETH, USDG):
        report(f"the money is {trade.money}, but must be eth or usdg")
    if trade.pays != trade.money:
        report(f"venue.pays is {trade.pays}, but the trade is in {trade.money}")
    if head.token == {ETH: network.weth, USDG: network.usdg}.get(trade.money):
        report("the token and the money are the same")
    known = network.contracts() | {head.token, head.wallet}
    if trade.kind == CURVE and (trade.at in known or json_reader.is_reserved(trade.at)):
        report(f"venue.at is {trade.at}, which is not a curve")
    for label, amount in (("spend.amount", paid), ("expect.amount", received), ("expect.min", trade.minimum)):
        if base_units(amount.text, trade.decimals_of(amount.asset)) != amount.raw:
            report(f"{label} is {printable(amount.text)}, but the answer gives it as {amount.raw} base units")
    most_raw = MAX_PERMIT2_RAW if routers.by_second_route(trade, network) else MAX_RAW
    if not 0 < paid.raw < (MAX_VAULT_RAW if trade.in_vault else most_raw):
        report(f"spend.raw is {paid.raw}, which is not a valid amount to spend")
    floor = received.raw * (10_000 - head.slippage_bps) // 10_000 - ROUNDING_RAW
    if not max(floor, 1) <= trade.minimum.raw <= received.raw:
        report(
            f"expect.minRaw is {trade.minimum.raw}: with slippageBps {head.slippage_bps} of {received.raw} "
            f"it must be {max(floor, 1)} to {received.raw}"
        )


def _check_amount(trade: TradeToVerify, order: TradeOrder, result: RuleFindings) -> None:
    if order.asset is not None and order.asset != trade.money:
        result.findings.append(f"the trade is in {trade.money}, but you asked for {printable(order.asset)}")
    if order.amount == "all" and not trade.buys:
        result.notes.append(f"Whether {trade.spend.raw} base units are all that the wallet holds.")
        return
    requested_raw = order.amount_raw
    if order.amount is not None:
        requested_raw = base_units(order.amount, trade.decimals_of(trade.spend.asset))
        if requested_raw is None:
            result.findings.append(
                f"the amount you asked for, {printable(order.amount)}, is not a valid amount"
            )
    if requested_raw is None or requested_raw == trade.spend.raw:
        return
    if trade.kind == CURVE and trade.buys and trade.spend.raw < requested_raw:
        result.notes.append("The trade spends less than you asked for: near its end a curve takes no more.")
        return
    result.findings.append(
        f"the trade spends {trade.spend.raw} base units, but you asked for {printable(requested_raw)}"
    )


def _check_times(trade: TradeToVerify, now_s: int | None, result: RuleFindings) -> None:
    shortest, longest = USUAL_VALID_S
    if not shortest <= trade.deadline_s - trade.prepared_s <= longest:
        result.notes.append("Why the trade is not valid for twenty minutes from preparedAt, as usual.")
    if now_s is None:
        return
    if now_s > trade.deadline_s:
        result.findings.append(f"the trade expired at {report_text.time(trade.deadline_s)}")
    elif trade.deadline_s > now_s + longest:
        result.notes.append("Why the trade is valid for longer than twenty minutes from now.")


def _check_numbering(trade: TradeToVerify, result: RuleFindings) -> None:
    for at, step in enumerate(trade.steps, 1):
        if step.n != at:
            result.findings.append(f"step {at} has the number {step.n}")
        if not MIN_GAS <= step.gas <= MAX_GAS:
            result.findings.append(f"step {at} has gas {step.gas}, but must have {MIN_GAS} to {MAX_GAS}")
        if step.strange:
            names = ", ".join(printable(name) for name in step.strange[:3])
            result.findings.append(f"step {at} has unknown fields: {names}")


def _read_minimum(trade: TradeToVerify, result: RuleFindings) -> int:
    """The router's minimum, from the words of the last step; the calldata is checked against it."""
    report = result.findings.append
    words = trade.steps[-1].does
    matches = _AT_LEAST.findall(words)
    if len(matches) != 1 or words.count(_UNIT_WORDS) != 1:
        report("the text of the last step must state one minimum, such as: at least 1.5 (1500000 base units)")
        return trade.minimum.raw
    decimal, raw = matches[0][0], int(matches[0][1])
    asset = trade.head.token if trade.buys else trade.money
    if base_units(decimal, trade.decimals_of(asset)) != raw:
        report(
            f"the text of the last step states a minimum of {printable(decimal)},"
            f" but {printable(raw)} base units"
        )
    if raw < trade.minimum.raw or (raw != trade.minimum.raw and not trade.buys):
        report(
            f"the text of the last step states a minimum of {printable(raw)} base units, but "
            f"expect.minRaw is "
            f"{trade.minimum.raw}"
        )
    if raw >= (MAX_VAULT_RAW if trade.in_vault else MAX_RAW):
        report("the minimum is not a valid amount")
        return trade.minimum.raw
    return raw


# --- what the steps do -----------------------------------------------------------------------------


def _check_call(at: int, step: PreparedStep, expected: ExpectedCall, result: RuleFindings) -> bool:
    """True when a step is, to the byte, the expected call."""
    problems = abi.differences(expected.fields, step.data)
    if step.to != expected.to:
        problems.append(f"the call goes to {step.to}, but must go to {expected.to}")
    if step.value != expected.value:
        problems.append(f"the call sends {step.value} wei, but must send {expected.value}")
    result.findings += [f"step {at}: {text}" for text in problems]
    return not problems


RESET, TOKEN_APPROVAL, PERMIT2_APPROVAL = "reset", "approval", "permit2"


def _check_approvals(trade: TradeToVerify, network: TrustedNetwork, result: RuleFindings) -> None:
    """Checks every step before the last one."""
    pays_eth, by_permit2 = trade.buys and trade.money == ETH, routers.by_permit2(trade, network)
    needed = [] if pays_eth else [TOKEN_APPROVAL, *([PERMIT2_APPROVAL] if by_permit2 else [])]
    asset = network.usdg if trade.buys else trade.head.token
    spender, amount = routers.spender(trade, network), trade.spend.raw
    kinds = [_approval_kind(step) for step in trade.steps[:-1]]
    for at, (step, kind) in enumerate(zip(trade.steps, kinds, strict=False), 1):
        if kind is None or (kind != RESET and kind not in needed) or not needed:
            result.findings.append(f"step {at} is not part of this trade")
            continue
        if kind == PERMIT2_APPROVAL:
            expected = routers.permit2_approve(asset, network, amount, trade.deadline_s)
        else:
            expected = routers.approve(asset, spender, 0 if kind == RESET else amount)
        if _check_call(at, step, expected, result):
            result.proven.append(report_text.approval(at, kind, trade, network, asset, spender))
    if not _in_order(kinds):
        result.findings.append(
            "the approvals are out of order or duplicate, or one is revoked and not given again"
        )
    left_out = len([kind for kind in needed if kind not in kinds])
    if left_out != trade.already_done:
        result.findings.append(
            f"{left_out} of the {len(needed)} approvals that this trade needs are not among the steps, but "
            f"alreadyDone counts {trade.already_done}"
        )


def _approval_kind(step: PreparedStep) -> str | None:
    selector, amount = step.data[:4].hex(), step.data[36:68]
    if selector == routers.APPROVE:
        return TOKEN_APPROVAL if any(amount) else RESET
    return PERMIT2_APPROVAL if selector == routers.PERMIT2_APPROVE else None


def _in_order(kinds: list[str | None]) -> bool:
    """True for reset, approval, permit2, in this order; each may be missing, but a reset is followed by the
    approval."""
    rest = kinds[1:] if kinds[:2] == [RESET, TOKEN_APPROVAL] else kinds
    return rest in ([], [TOKEN_APPROVAL], [PERMIT2_APPROVAL], [TOKEN_APPROVAL, PERMIT2_APPROVAL])


def _check_trade_step(
    trade: TradeToVerify, network: TrustedNetwork, minimum: int, result: RuleFindings
) -> None:
    """Checks the trade itself."""
    at, step = len(trade.steps), trade.steps[-1]
    if trade.kind == CURVE:
        if _check_call(at, step, routers.curve(trade, minimum), result):
            result.proven += report_text.curve(at, trade, minimum)
        return
    pool, expected = pools.find_pool(trade, network, minimum, step)
    doubts = pools.doubts(trade, network, pool)
    result.findings += [f"step {at}: {text}" for text in doubts]
    if _check_call(at, step, expected, result) and not doubts:
        result.proven += report_text.swap(at, trade, network, pool, minimum)
    if pool.hook and trade.kind == V4:
        result.notes.append(
            f"What the pool's hook 0x{pool.hook:040x} does during the swap, and may change later."
        )
