"""What one transaction comes to for a wallet. Pure; amounts are raw integers in base units."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from roundtrip.domain.base.events import CurveTraded, Transferred
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import is_curve

from .account import TRADES, EthWrapped, Said, StepKind, TransactionAccount, TransactionFacts, TransactionStep

Nets = Mapping[Address, Mapping[Address, int]]
"""By wallet and token: what came to it (above zero) or left it."""


def wrapped_once(said: Sequence[tuple[int, Said]], weth: Address) -> list[tuple[int, Said]]:
    """The same with every change of eth into weth and back told as one ``Wrapped``: some weth tells of it by
    a Transfer from or to the zero address, some by a log of its own, some by both."""
    found = [(index, _as_wrapped(one, weth)) for index, one in said]
    pairs = Counter(one for _, one in found if isinstance(one, EthWrapped))
    by_itself = Counter(one for _, one in said if isinstance(one, EthWrapped))
    # Of each that is told both ways as many are too many as there are of the rarer way.
    spare = {one: min(by_itself[one], count - by_itself[one]) for one, count in pairs.items()}
    kept = []
    for index, one in found:
        if isinstance(one, EthWrapped) and spare[one]:
            spare[one] -= 1
            continue
        kept.append((index, one))
    return kept


def _as_wrapped(one: Said, weth: Address) -> Said:
    if isinstance(one, Transferred) and one.token == weth and one.amount_raw:
        if one.sender == ZERO_ADDRESS != one.recipient:
            return EthWrapped(one.recipient, one.amount_raw, True)
        if one.recipient == ZERO_ADDRESS != one.sender:
            return EthWrapped(one.sender, one.amount_raw, False)
    return one


def nets(said: Iterable[tuple[int, Said]], weth: Address) -> dict[Address, dict[Address, int]]:
    """What came to every wallet and left it, as the tokens' contracts tell; nothing where both are alike."""
    found: defaultdict[Address, defaultdict[Address, int]] = defaultdict(lambda: defaultdict(int))
    for _, one in said:
        if isinstance(one, Transferred):
            found[one.recipient][one.token] += one.amount_raw
            found[one.sender][one.token] -= one.amount_raw
        elif isinstance(one, EthWrapped):
            found[one.account][weth] += one.amount_raw if one.wraps else -one.amount_raw
    return {wallet: {asset: raw for asset, raw in own.items() if raw} for wallet, own in found.items()}


def told_eth(doing: TransactionFacts, account: TransactionAccount, wallet: Address) -> int:
    """Wei that came to the wallet (above zero) or left it, as far as the transaction tells: what it sent
    along, or what a curve that it called kept of it; curves' payments; weth it unwrapped itself. What
    contracts hand out beside stands in no log."""
    bought = _bought_wei(doing, account) if wallet == doing.sender else None
    found = -doing.value_wei if wallet == doing.sender and doing.to != wallet else 0
    if bought is not None:
        found = -bought
    if wallet == doing.to and wallet != doing.sender:
        found += doing.value_wei
    for _, one in doing.said:
        if isinstance(one, EthWrapped) and one.account == wallet and not one.wraps:
            found += one.amount_raw
    for step in account.steps:
        sold = step.said if is_curve(step.venue) and step.kind == "sell" else None
        if isinstance(sold, CurveTraded) and sold.recipient == wallet and step.got is not None:
            found += step.got.raw if step.got.asset == ZERO_ADDRESS else 0
    return found


def _bought_wei(doing: TransactionFacts, account: TransactionAccount) -> int | None:
    """What a curve kept of the eth that the sender gave it by its own hand: the rest it gave back at once."""
    bought = [step for step in account.steps if step.kind == "buy" and _by_hand(doing, step)]
    return sum(step.paid.raw for step in bought if step.paid is not None) if bought else None


def _by_hand(doing: TransactionFacts, step: TransactionStep) -> bool:
    """Whether the sender itself called the curve that tells of the step, which is paid in eth."""
    said = step.said
    if not isinstance(said, CurveTraded) or step.at != doing.to or said.wallet != doing.sender:
        return False
    return step.paid is not None and ZERO_ADDRESS in (step.paid.asset, step.got and step.got.asset)


_WITHOUT_ETH: frozenset[StepKind] = frozenset({"approval", "transfer", "item"})


def tells_all_eth(doing: TransactionFacts, account: TransactionAccount) -> bool:
    """Whether ``told_eth`` of the sender leaves nothing out: nobody was called that could have handed eth
    out, or only contracts that say so when they do."""
    if doing.to is None:
        return False
    if not doing.has_data and not doing.to_has_code:
        return True
    kinds = {step.kind for step in account.steps}
    if doing.to == doing.weth and kinds <= {"wrap", "unwrap"}:
        return True
    if all(_by_hand(doing, step) for step in account.steps if step.kind in TRADES) and kinds <= {
        "buy",
        "sell",
    }:
        return True
    own = all(doing.to in (step.token, doing.permit2) for step in account.steps)
    return kinds <= _WITHOUT_ETH and not doing.value_wei and own
