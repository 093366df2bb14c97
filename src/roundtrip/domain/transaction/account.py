"""The data of one transaction's interpretation: its decoded logs, the steps that they add up to, the ERC-4337
user operation that each log belongs to, and what the transaction adds to a wallet and takes from it. Pure.

A known pool's logs are trusted. A Transfer is only a claim of the contract that logged it, and any
contract can log any Transfer. Amounts are raw integers in base units; the zero address is eth."""

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Literal, NamedTuple

from roundtrip.domain.base.events import CurveTraded, Event, Operated, OperationsBegin, Transferred
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import VenueKind, is_curve

# --- decoded logs, besides the indexed events -----------------------------------------------------------


class AllowanceGiven(NamedTuple):
    """``owner`` lets ``spender`` take ``amount_raw`` of its token. ``until_s``: when a Permit2 right ends."""

    token: Address
    owner: Address
    spender: Address
    amount_raw: int
    by_permit2: bool = False
    until_s: int | None = None

    def is_unlimited(self) -> bool:
        """True for amounts that mean "no limit", as in ``trade.judge.Allowance``."""
        return self.amount_raw >= 2**128 or self.amount_raw == 2**96 - 1


class CollectionAllowed(NamedTuple):
    """``owner`` lets ``operator`` take everything it holds of a collection, or no longer."""

    collection: Address
    owner: Address
    operator: Address
    allowed: bool


class EthWrapped(NamedTuple):
    """``account`` wrapped eth into weth, or unwrapped weth (``wraps`` False)."""

    account: Address
    amount_raw: int
    wraps: bool


class ItemMoved(NamedTuple):
    """``pieces`` of an item of a collection (ERC-721, ERC-1155) changed hands."""

    collection: Address
    sender: Address
    recipient: Address
    item: int
    pieces: int


class OperationEnded(NamedTuple):
    """An entry point logs whether an account's operation succeeded."""

    account: Address
    succeeded: bool


DecodedLog = Event | AllowanceGiven | CollectionAllowed | EthWrapped | ItemMoved | OperationEnded


# --- steps --------------------------------------------------------------------------------------------

StepKind = Literal[
    "buy", "sell", "swap", "transfer", "item", "approval", "wrap", "unwrap", "launch", "graduation",
    "pool_opened", "liquidity_added", "liquidity_taken", "contract_made", "operation", "call",
]  # fmt: skip
Kind = Literal[
    "trade", "transfer", "approval", "wrap", "launch", "graduation", "liquidity", "contract_made",
    "operations", "call",
]  # fmt: skip


class MovedAsset(NamedTuple):
    """An amount of an asset."""

    asset: Address
    raw: int


class KnownMarket(NamedTuple):
    """A verified pool or curve. ``is_money``: the quote is eth, weth or usdg; if False, neither side is."""

    at: str
    kind: VenueKind
    token: Address
    quote: Address
    is_money: bool


@dataclass(frozen=True, slots=True)
class TransactionStep:
    """One thing that happened. ``actor`` did it; ``to`` is the recipient, spender or callee; ``paid`` and
    ``got`` are from the actor's view. A trade without ``actor`` has an unknown owner. A trade's ``to`` is the
    recipient of its proceeds, if that is not the actor. ``log``: its log, where that holds more details."""

    kind: StepKind
    actor: Address | None = None
    to: Address | None = None
    venue: VenueKind | None = None
    at: str | None = None
    token: Address | None = None
    paid: MovedAsset | None = None
    got: MovedAsset | None = None
    log: DecodedLog | None = None


@dataclass(frozen=True, slots=True)
class TransactionFacts:
    """A successful transaction. ``logs``: (log index, decoded log), in order. ``created``: the contract that
    it deployed. ``machinery``: addresses of the network's own contracts; among them ``router`` and ``hook``
    are the launchpad's, and the router buys for others. ``to_has_code``: True if not known."""

    sender: Address
    to: Address | None
    value_wei: int
    has_data: bool
    created: Address | None
    logs: Sequence[tuple[int, DecodedLog]]
    weth: Address
    usdg: Address
    machinery: frozenset[Address] = frozenset()
    permit2: Address | None = None
    router: Address | None = None
    hook: Address | None = None
    entry_points: frozenset[Address] = frozenset()
    to_has_code: bool = True


@dataclass(frozen=True, slots=True)
class TransactionSummary:
    """What a transaction did. ``accounts``: those of its user operations, each once. ``recipients``: wallets
    other than the sender that hold what was bought. ``losers``: wallets other than the sender that lost money
    or a traded token. ``strange_swaps``: number of trades logged by contracts that are no known pools."""

    kind: Kind
    steps: tuple[TransactionStep, ...]
    accounts: tuple[Address, ...]
    recipients: tuple[Address, ...]
    losers: tuple[Address, ...]
    strange_swaps: int


TRADES: tuple[StepKind, ...] = ("buy", "sell", "swap")


class UserOperation(NamedTuple):
    """An operation of ``account``: the logs strictly between ``after`` and ``before``, two logs of one entry
    point in one transaction. Log indexes count the logs of the block."""

    after: int
    before: int
    account: Address


def operations(events: Iterable[tuple[int, int, Event]]) -> list[UserOperation]:
    """Lists the operations of one block, in the order in which they ended. ``events``: transaction index, log
    index and event, in order.

    Logs of the validation phase belong to no operation: otherwise a bundler could place another account's
    signed operation first and trade in that account's name. Each entry point is followed separately, because
    an operation may call another version of the entry point, which runs operations of its own."""
    ended = []
    started: dict[Address, tuple[int, int]] = {}
    for tx_index, log_index, event in events:
        if isinstance(event, OperationsBegin):
            started[event.entry_point] = tx_index, log_index
        elif isinstance(event, Operated):
            start_tx, after = started.get(event.entry_point, (-1, -1))
            if start_tx == tx_index:
                ended.append(UserOperation(after, log_index, event.account))
                started[event.entry_point] = tx_index, log_index
    return ended


def account_at(ended: list[UserOperation], log_index: int) -> Address | None:
    """The account whose operation the log belongs to, or None. Of nested operations it is the innermost,
    which ended first."""
    first = bisect(ended, log_index, key=attrgetter("before"))
    return next((op.account for op in islice(ended, first, None) if op.after < log_index), None)


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
