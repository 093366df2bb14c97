"""What one transaction adds to a wallet and takes from it. Pure; amounts are raw integers in base units."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from roundtrip.domain.base.events import CurveTraded, Transferred
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import is_curve

from .account import (
    TRADES,
    DecodedLog,
    EthWrapped,
    StepKind,
    TransactionFacts,
    TransactionStep,
    TransactionSummary,
)

NetChanges = Mapping[Address, Mapping[Address, int]]
"""Raw amounts by wallet and token: above zero received, below zero given."""


def merge_wraps(logs: Sequence[tuple[int, DecodedLog]], weth: Address) -> list[tuple[int, DecodedLog]]:
    """The same logs with each wrap or unwrap as one ``EthWrapped``. Some weth contracts log it as a Transfer
    from or to the zero address, some with an event of their own, some with both."""
    merged = [(index, _as_wrap(log, weth)) for index, log in logs]
    totals = Counter(log for _, log in merged if isinstance(log, EthWrapped))
    own_events = Counter(log for _, log in logs if isinstance(log, EthWrapped))
    # A wrap that was logged both ways counts twice: drop as many as the rarer way has.
    surplus = {wrap: min(own_events[wrap], total - own_events[wrap]) for wrap, total in totals.items()}
    unique = []
    for index, log in merged:
        if isinstance(log, EthWrapped) and surplus[log]:
            surplus[log] -= 1
            continue
        unique.append((index, log))
    return unique


def _as_wrap(log: DecodedLog, weth: Address) -> DecodedLog:
    if isinstance(log, Transferred) and log.token == weth and log.amount_raw:
        if log.sender == ZERO_ADDRESS != log.recipient:
            return EthWrapped(log.recipient, log.amount_raw, True)
        if log.recipient == ZERO_ADDRESS != log.sender:
            return EthWrapped(log.sender, log.amount_raw, False)
    return log


def sum_net_changes(
    logs: Iterable[tuple[int, DecodedLog]], weth: Address
) -> dict[Address, dict[Address, int]]:
    """Every wallet's net change by token, as the tokens' contracts log it; changes of zero are left out."""
    totals: defaultdict[Address, defaultdict[Address, int]] = defaultdict(lambda: defaultdict(int))
    for _, log in logs:
        if isinstance(log, Transferred):
            totals[log.recipient][log.token] += log.amount_raw
            totals[log.sender][log.token] -= log.amount_raw
        elif isinstance(log, EthWrapped):
            totals[log.account][weth] += log.amount_raw if log.wraps else -log.amount_raw
    return {
        wallet: {asset: raw for asset, raw in changes.items() if raw} for wallet, changes in totals.items()
    }


def sum_logged_eth(facts: TransactionFacts, summary: TransactionSummary, wallet: Address) -> int:
    """The wallet's net change in wei, as far as the transaction and its logs show it: the value it sent (or,
    of a curve that it called itself, what the curve kept), curves' payments, and weth that it unwrapped
    itself. Eth that contracts send otherwise appears in no log."""
    bought = _curve_buys_wei(facts, summary) if wallet == facts.sender else None
    total = -facts.value_wei if wallet == facts.sender and facts.to != wallet else 0
    if bought is not None:
        total = -bought
    if wallet == facts.to and wallet != facts.sender:
        total += facts.value_wei
    for _, log in facts.logs:
        if isinstance(log, EthWrapped) and log.account == wallet and not log.wraps:
            total += log.amount_raw
    for step in summary.steps:
        sale = step.log if is_curve(step.venue) and step.kind == "sell" else None
        if isinstance(sale, CurveTraded) and sale.recipient == wallet and step.got is not None:
            total += step.got.raw if step.got.asset == ZERO_ADDRESS else 0
    return total


def _curve_buys_wei(facts: TransactionFacts, summary: TransactionSummary) -> int | None:
    """What a curve kept of the eth from a sender that called it directly; it returned the rest at once.
    None: there was no such buy."""
    buys = [step for step in summary.steps if step.kind == "buy" and _is_direct(facts, step)]
    return sum(step.paid.raw for step in buys if step.paid is not None) if buys else None


def _is_direct(facts: TransactionFacts, step: TransactionStep) -> bool:
    """Whether the step is a trade for eth on a curve that the sender called directly."""
    log = step.log
    if not isinstance(log, CurveTraded) or step.at != facts.to or log.wallet != facts.sender:
        return False
    return step.paid is not None and ZERO_ADDRESS in (step.paid.asset, step.got and step.got.asset)


_WITHOUT_ETH: frozenset[StepKind] = frozenset({"approval", "transfer", "item"})


def logs_all_eth(facts: TransactionFacts, summary: TransactionSummary) -> bool:
    """Whether ``sum_logged_eth`` of the sender is complete: no contract that was called can send eth, or only
    contracts that log it when they do."""
    if facts.to is None:
        return False
    if not facts.has_data and not facts.to_has_code:
        return True
    kinds = {step.kind for step in summary.steps}
    if facts.to == facts.weth and kinds <= {"wrap", "unwrap"}:
        return True
    if all(_is_direct(facts, step) for step in summary.steps if step.kind in TRADES) and kinds <= {
        "buy",
        "sell",
    }:
        return True
    only_called = all(facts.to in (step.token, facts.permit2) for step in summary.steps)
    return kinds <= _WITHOUT_ETH and not facts.value_wei and only_called
