"""The verification: what is claimed against what the steps do."""

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

MOST_SLIPPAGE_BPS = 5000
ROUNDING_RAW = 2
"""By how much a minimum may be below what the slippage allows: shares are rounded twice."""
LEAST_GAS, MOST_GAS = 21_000, 2**24
"""What any transaction takes, and what one may take at most (EIP-7825)."""
USUAL_VALID_S = (19 * 60, 21 * 60)
MOST_VAULT_RAW = 2**128
MOST_RAW = 2**255
"""Below these, an amount means itself: from there on routers and tokens read some as everything."""

_AT_LEAST = re.compile(r"at least ([0-9]{1,78}(?:\.[0-9]{1,255})?) \(([0-9]{1,78}) base units\)")
_UNIT_WORDS = "base units)"


@dataclass(slots=True)
class RuleFindings:
    """What is gathered on the way."""

    proven: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def report(self) -> VerifyReport:
        return VerifyReport(not self.findings, tuple(self.proven), tuple(self.findings), tuple(self.notes))


def verify(
    answer: object, network: TrustedNetwork, request: TradeOrder | None = None, now_s: int | None = None
) -> VerifyReport:
    """Holds a PreparedTrade (its JSON, parsed) against the steps it asks the reader to sign. ``request``:
    what they had asked for; ``now_s``: seconds since 1970, to see whether the deadline is past. Raises
    Unreadable where the answer, or the request, has not the shape of one, and nothing else."""
    body = json_reader.mapping(answer, "the answer")
    json_reader.no_error(body)
    head = read_head(body)
    found = RuleFindings()
    asked = request or TradeOrder()
    _head(head, network, asked, found)
    if head.refused:
        if json_reader.items(json_reader.get(body, "steps"), "steps"):
            found.findings.append("the trade is refused, and has steps all the same")
        else:
            found.proven.append(REFUSED)
        return found.report()
    trade = read_trade(body, head)
    if not trade.steps:
        found.findings.append("the trade is not refused, and has no steps")
        return found.report()
    _claims(trade, network, found)
    _amount_asked(trade, asked, found)
    _times(trade, now_s, found)
    _numbering(trade, found)
    if trade.money in (ETH, USDG):
        least = _least(trade, found)
        _approvals(trade, network, found)
        _last(trade, network, least, found)
    found.notes += report_text.notes(trade)
    return found.report()


# --- what is claimed -------------------------------------------------------------------------------


def _head(head: TradeHead, network: TrustedNetwork, asked: TradeOrder, found: RuleFindings) -> None:
    says = found.findings.append
    if head.chain_id != network.chain_id:
        says(f"chainId is {head.chain_id}, and your network's is {network.chain_id}")
    if json_reader.is_reserved(head.wallet) or head.wallet in network.contracts():
        says(f"from is {head.wallet}, which is nobody's wallet")
    if json_reader.is_reserved(head.token) or head.token in network.machinery() | {head.wallet}:
        says(f"the token is {head.token}, which is no token")
    if not 1 <= head.slippage_bps <= MOST_SLIPPAGE_BPS:
        says(f"slippageBps is {head.slippage_bps}, and has to be 1 to {MOST_SLIPPAGE_BPS}")
    wallet = None if asked.wallet is None else json_reader.address(asked.wallet, "the wallet you asked for")
    token = None if asked.token is None else json_reader.address(asked.token, "the token you asked for")
    for what, wanted, claimed in (
        ("from", wallet, head.wallet),
        ("the token", token, head.token),
        ("side", asked.side, head.side),
        ("slippageBps", asked.slippage_bps, head.slippage_bps),
    ):
        if wanted is not None and wanted != claimed:
            says(f"{what} is {claimed}, and you asked for {printable(wanted)}")


def _claims(trade: TradeToVerify, network: TrustedNetwork, found: RuleFindings) -> None:
    """The amounts and the venue, among themselves."""
    says = found.findings.append
    head, paid, got = trade.head, trade.spend, trade.expect
    if (got if trade.buys else paid).asset != head.token:
        says(f"what is {'bought' if trade.buys else 'sold'} is not the token {head.token}")
    if trade.money not in (ETH, USDG):
        says(f"the money is {trade.money}, and has to be eth or usdg")
    if trade.pays != trade.money:
        says(f"venue.pays is {trade.pays}, and the trade is in {trade.money}")
    if head.token == {ETH: network.weth, USDG: network.usdg}.get(trade.money):
        says("the token and the money are the same")
    known = network.contracts() | {head.token, head.wallet}
    if trade.kind == CURVE and (trade.at in known or json_reader.is_reserved(trade.at)):
        says(f"venue.at is {trade.at}, which is no curve")
    for what, amount in (("spend.amount", paid), ("expect.amount", got), ("expect.min", trade.least)):
        if base_units(amount.text, trade.decimals_of(amount.asset)) != amount.raw:
            says(f"{what} is {printable(amount.text)}, and in base units it is said to be {amount.raw}")
    if not 0 < paid.raw < (MOST_VAULT_RAW if trade.in_vault else MOST_RAW):
        says(f"spend.raw is {paid.raw}, which is no amount to spend")
    floor = got.raw * (10_000 - head.slippage_bps) // 10_000 - ROUNDING_RAW
    if not max(floor, 1) <= trade.least.raw <= got.raw:
        says(
            f"expect.minRaw is {trade.least.raw}: with slippageBps {head.slippage_bps} of {got.raw} it has "
            f"to be {max(floor, 1)} to {got.raw}"
        )


def _amount_asked(trade: TradeToVerify, asked: TradeOrder, found: RuleFindings) -> None:
    if asked.asset is not None and asked.asset != trade.money:
        found.findings.append(f"the trade is in {trade.money}, and you meant {printable(asked.asset)}")
    if asked.amount == "all" and not trade.buys:
        found.notes.append(f"Whether {trade.spend.raw} base units are all that the wallet holds.")
        return
    wanted = asked.amount_raw
    if asked.amount is not None:
        wanted = base_units(asked.amount, trade.decimals_of(trade.spend.asset))
        if wanted is None:
            found.findings.append(f"the amount you asked for, {printable(asked.amount)}, is none")
    if wanted is None or wanted == trade.spend.raw:
        return
    if trade.kind == CURVE and trade.buys and trade.spend.raw < wanted:
        found.notes.append("Less is spent than you asked for: near its end a curve takes no more.")
        return
    found.findings.append(f"{trade.spend.raw} base units are spent, and you asked for {printable(wanted)}")


def _times(trade: TradeToVerify, now_s: int | None, found: RuleFindings) -> None:
    shortest, longest = USUAL_VALID_S
    if not shortest <= trade.deadline_s - trade.prepared_s <= longest:
        found.notes.append("Why the trade is not valid for twenty minutes from preparedAt, as trades are.")
    if now_s is None:
        return
    if now_s > trade.deadline_s:
        found.findings.append(f"it was valid until {report_text.time(trade.deadline_s)}, which is past")
    elif trade.deadline_s > now_s + longest:
        found.notes.append("Why the trade is valid for longer than twenty minutes from now.")


def _numbering(trade: TradeToVerify, found: RuleFindings) -> None:
    for at, step in enumerate(trade.steps, 1):
        if step.n != at:
            found.findings.append(f"step {at} has the number {step.n}")
        if not LEAST_GAS <= step.gas <= MOST_GAS:
            found.findings.append(f"step {at} has gas {step.gas}, and has to have {LEAST_GAS} to {MOST_GAS}")
        if step.strange:
            names = ", ".join(printable(name) for name in step.strange[:3])
            found.findings.append(f"step {at} has fields that no step has: {names}")


def _least(trade: TradeToVerify, found: RuleFindings) -> int:
    """The router's minimum, as the words of the last step tell it; the calldata is held against it."""
    says = found.findings.append
    words = trade.steps[-1].does
    told = _AT_LEAST.findall(words)
    if len(told) != 1 or words.count(_UNIT_WORDS) != 1:
        says("the words of the last step do not tell one minimum, as: at least 1.5 (1500000 base units)")
        return trade.least.raw
    decimal, raw = told[0][0], int(told[0][1])
    asset = trade.head.token if trade.buys else trade.money
    if base_units(decimal, trade.decimals_of(asset)) != raw:
        says(
            f"the words of the last step tell a minimum of {printable(decimal)},"
            f" and of {printable(raw)} base units"
        )
    if raw < trade.least.raw or (raw != trade.least.raw and not trade.buys):
        says(
            f"the words of the last step tell a minimum of {printable(raw)} base units, and expect.minRaw is "
            f"{trade.least.raw}"
        )
    if raw >= (MOST_VAULT_RAW if trade.in_vault else MOST_RAW):
        says("the minimum is no amount")
        return trade.least.raw
    return raw


# --- what the steps do -----------------------------------------------------------------------------


def _same(at: int, step: PreparedStep, expected: ExpectedCall, found: RuleFindings) -> bool:
    """True when a step is, to the byte, the call it has to be."""
    wrong = abi.differences(expected.fields, step.data)
    if step.to != expected.to:
        wrong.append(f"it goes to {step.to} and has to go to {expected.to}")
    if step.value != expected.value:
        wrong.append(f"it sends {step.value} wei along and has to send {expected.value}")
    found.findings += [f"step {at}: {text}" for text in wrong]
    return not wrong


RESET, TOKEN_APPROVAL, PERMIT2_APPROVAL = "reset", "approval", "permit2"


def _approvals(trade: TradeToVerify, network: TrustedNetwork, found: RuleFindings) -> None:
    """Every step before the last one."""
    pays_eth = trade.buys and trade.money == ETH
    needed = [] if pays_eth else [TOKEN_APPROVAL, *([PERMIT2_APPROVAL] if trade.in_vault else [])]
    asset = network.usdg if trade.buys else trade.head.token
    spender, amount = routers.spender(trade, network), trade.spend.raw
    order = [_approval_kind(step) for step in trade.steps[:-1]]
    for at, (step, kind) in enumerate(zip(trade.steps, order, strict=False), 1):
        if kind is None or (kind != RESET and kind not in needed) or not needed:
            found.findings.append(f"step {at} is nothing that this trade needs")
            continue
        if kind == PERMIT2_APPROVAL:
            expected = routers.permit2_approve(asset, network, amount, trade.deadline_s)
        else:
            expected = routers.approve(asset, spender, 0 if kind == RESET else amount)
        if _same(at, step, expected, found):
            found.proven.append(report_text.approval(at, kind, trade, network, asset, spender))
    if not _in_order(order):
        found.findings.append(
            "the approvals are not in order, or one stands twice, or one is only taken away"
        )
    left_out = len([kind for kind in needed if kind not in order])
    if left_out != trade.already_done:
        found.findings.append(
            f"{left_out} of the {len(needed)} approvals this trade needs are not among the steps, and "
            f"alreadyDone names {trade.already_done}"
        )


def _approval_kind(step: PreparedStep) -> str | None:
    selector, amount = step.data[:4].hex(), step.data[36:68]
    if selector == routers.APPROVE:
        return TOKEN_APPROVAL if any(amount) else RESET
    return PERMIT2_APPROVAL if selector == routers.PERMIT2_APPROVE else None


def _in_order(order: list[str | None]) -> bool:
    """True for reset, approval, permit2, of which each may be missing, but no reset stands without the
    approval behind it."""
    rest = order[1:] if order[:2] == [RESET, TOKEN_APPROVAL] else order
    return rest in ([], [TOKEN_APPROVAL], [PERMIT2_APPROVAL], [TOKEN_APPROVAL, PERMIT2_APPROVAL])


def _last(trade: TradeToVerify, network: TrustedNetwork, least: int, found: RuleFindings) -> None:
    """The trade itself."""
    at, step = len(trade.steps), trade.steps[-1]
    if trade.kind == CURVE:
        if _same(at, step, routers.curve(trade, least), found):
            found.proven += report_text.curve(at, trade, least)
        return
    pool, expected = pools.find(trade, network, least, step)
    doubts = pools.doubts(trade, network, pool)
    found.findings += [f"step {at}: {text}" for text in doubts]
    if _same(at, step, expected, found) and not doubts:
        found.proven += report_text.swap(at, trade, network, pool, least)
    if pool.hook and trade.kind == V4:
        found.notes.append(
            f"What the pool's hook 0x{pool.hook:040x} does during the swap, and may change later."
        )
