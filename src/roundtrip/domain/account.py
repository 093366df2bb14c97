"""What one transaction did, step by step, out of what its logs tell. Pure.

A pool's own words are believed where the pool is known; a Transfer is what the contract that sent it says,
and anybody may make one that says anything. Amounts are raw integers in base units; the zero address is eth.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from .events import (
    CurveTraded,
    Event,
    HookFeeTaken,
    Launched,
    LaunchMoved,
    LiquidityMoved,
    PoolOpened,
    Swapped,
    Transferred,
)
from .evidence import VenueKind
from .operations import Operation, account_at, operations
from .types import ZERO_ADDRESS, Address

# --- read off one log, beside what history is made of --------------------------------------------------


class Allowed(NamedTuple):
    """``owner`` lets ``spender`` take so much of its token. ``until_s``: when a right by Permit2 ends."""

    token: Address
    owner: Address
    spender: Address
    amount_raw: int
    by_permit2: bool = False
    until_s: int | None = None

    def unlimited(self) -> bool:
        """True for amounts that stand for no bound, as ``trade.Allowance`` has it."""
        return self.amount_raw >= 2**128 or self.amount_raw == 2**96 - 1


class AllowedAll(NamedTuple):
    """``owner`` lets ``operator`` take everything it holds of a collection, or no longer."""

    collection: Address
    owner: Address
    operator: Address
    allowed: bool


class Wrapped(NamedTuple):
    """Eth was made weth, or weth eth (``wraps`` False), by ``account``."""

    account: Address
    amount_raw: int
    wraps: bool


class ItemMoved(NamedTuple):
    """Of a collection (ERC-721, ERC-1155) an item changed hands, so many ``pieces`` of it."""

    collection: Address
    sender: Address
    recipient: Address
    item: int
    pieces: int


class OperationEnded(NamedTuple):
    """An entry point says of an account's operation whether it went through."""

    account: Address
    succeeded: bool


Said = Event | Allowed | AllowedAll | Wrapped | ItemMoved | OperationEnded


# --- what is made of them ------------------------------------------------------------------------------

StepKind = Literal[
    "buy", "sell", "swap", "transfer", "item", "approval", "wrap", "unwrap", "launch", "graduation",
    "pool_opened", "liquidity_added", "liquidity_taken", "contract_made", "operation", "call",
]  # fmt: skip
Kind = Literal[
    "trade", "transfer", "approval", "wrap", "launch", "graduation", "liquidity", "contract_made",
    "operations", "call",
]  # fmt: skip


class Moved(NamedTuple):
    """So much of an asset."""

    asset: Address
    raw: int


class Market(NamedTuple):
    """A place that is known to be what it says. ``is_money``: the quote is; else neither side is."""

    at: str
    kind: VenueKind
    token: Address
    quote: Address
    is_money: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened. ``who`` did it, ``to`` whom; ``paid`` and ``got`` as ``who`` sees it.
    ``said``: the log it was read of, where there is more to tell."""

    kind: StepKind
    who: Address | None = None
    to: Address | None = None
    venue: VenueKind | None = None
    at: str | None = None
    token: Address | None = None
    paid: Moved | None = None
    got: Moved | None = None
    said: Said | None = None


@dataclass(frozen=True, slots=True)
class Doing:
    """A transaction that went through. ``said``: what its logs tell, each with its log's index, in order.
    ``created``: the contract it made. ``machinery``: addresses of the network's own contracts; ``router``: of
    those the launchpad's, which buys for others; ``hook``: the launchpad's."""

    sender: Address
    to: Address | None
    value_wei: int
    has_data: bool
    created: Address | None
    said: Sequence[tuple[int, Said]]
    machinery: frozenset[Address] = frozenset()
    router: Address | None = None
    hook: Address | None = None
    entry_points: frozenset[Address] = frozenset()


@dataclass(frozen=True, slots=True)
class Account:
    """``accounts``: of the operations in it, each once. ``recipients``: whom it bought for, beside who sent
    it. ``strange_swaps``: how many contracts that are no known pool told of a trade."""

    kind: Kind
    steps: tuple[Step, ...]
    accounts: tuple[Address, ...]
    recipients: tuple[Address, ...]
    strange_swaps: int


_TRADES: tuple[StepKind, ...] = ("buy", "sell", "swap")
_BY_STEP: tuple[tuple[Kind, tuple[StepKind, ...]], ...] = (
    ("launch", ("launch",)),
    ("graduation", ("graduation",)),
    ("trade", _TRADES),
    ("liquidity", ("liquidity_added", "liquidity_taken", "pool_opened")),
    ("contract_made", ("contract_made",)),
    ("operations", ("operation",)),
    ("wrap", ("wrap", "unwrap")),
    ("transfer", ("transfer", "item")),
    ("approval", ("approval",)),
)
"""What a transaction is called by: the first that one of its steps is."""


def account(doing: Doing, markets: Mapping[str, Market]) -> Account:
    """What it did."""
    reader = _Reader(doing, markets)
    steps = reader.steps()
    kinds = {step.kind for step in steps}
    kind: Kind = next((kind for kind, named in _BY_STEP if kinds & set(named)), "call")
    if not steps:
        paid = Moved(ZERO_ADDRESS, doing.value_wei) if doing.value_wei else None
        steps = [Step("call", who=doing.sender, to=doing.to, paid=paid)]
    accounts = tuple(dict.fromkeys(one.account for one in reader.operations))
    return Account(kind, tuple(steps), accounts, tuple(reader.recipients), reader.strange_swaps)


def net_tokens(said: Iterable[tuple[int, Said]], wallet: Address, weth: Address) -> dict[Address, int]:
    """What came to the wallet (above zero) or left it of each token, as their contracts tell."""
    found: defaultdict[Address, int] = defaultdict(int)
    for _, one in said:
        if isinstance(one, Transferred):
            if one.recipient == wallet:
                found[one.token] += one.amount_raw
            if one.sender == wallet:
                found[one.token] -= one.amount_raw
        elif isinstance(one, Wrapped) and one.account == wallet:
            found[weth] += one.amount_raw if one.wraps else -one.amount_raw
    return {asset: raw for asset, raw in found.items() if raw}


def told_eth(doing: Doing, account: Account, wallet: Address) -> int:
    """Wei that came to the wallet (above zero) or left it, as far as the transaction tells: what it sent
    along, curves' payments, weth it unwrapped itself. What contracts hand out beside stands in no log."""
    found = -doing.value_wei if wallet == doing.sender and doing.to != wallet else 0
    if wallet == doing.to and wallet != doing.sender:
        found += doing.value_wei
    for _, one in doing.said:
        if isinstance(one, Wrapped) and one.account == wallet and not one.wraps:
            found += one.amount_raw
    for step in account.steps:
        sold = step.said if step.venue == "launchpad_curve" and step.kind == "sell" else None
        if isinstance(sold, CurveTraded) and sold.recipient == wallet and step.got is not None:
            found += step.got.raw if step.got.asset == ZERO_ADDRESS else 0
    return found


@dataclass
class _Reader:
    """Goes over the logs once, in order."""

    doing: Doing
    markets: Mapping[str, Market]
    found: list[Step] = field(default_factory=list)
    recipients: list[Address] = field(default_factory=list)
    strange_swaps: int = 0
    operations: list[Operation] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)

    def steps(self) -> list[Step]:
        doing = self.doing
        events = ((0, index, one) for index, one in doing.said if isinstance(one, Event))
        self.operations = operations(events)
        if doing.created is not None:
            self.found.append(Step("contract_made", doing.sender, at=doing.created, paid=self._value()))
        for index, one in doing.said:
            self._read(index, one)
        if not doing.has_data and doing.value_wei and doing.to and not self._has("wrap"):
            plain = Step("transfer", doing.sender, doing.to, paid=Moved(ZERO_ADDRESS, doing.value_wei))
            self.found.insert(0, plain)
        return self._without_parts()

    def _value(self) -> Moved | None:
        return Moved(ZERO_ADDRESS, self.doing.value_wei) if self.doing.value_wei else None

    def _has(self, *kinds: StepKind) -> bool:
        return any(step.kind in kinds for step in self.found)

    def _read(self, index: int, one: Said) -> None:
        who = account_at(self.operations, index) or self.doing.sender
        if isinstance(one, Transferred):
            moved = Moved(one.token, one.amount_raw)
            self.found.append(Step("transfer", one.sender, one.recipient, token=one.token, paid=moved))
        elif isinstance(one, Swapped):
            self._swapped(one, who)
        elif isinstance(one, HookFeeTaken):
            self._hook_fee(one)
        elif isinstance(one, CurveTraded):
            self._curve_traded(one, who)
        elif isinstance(one, LiquidityMoved):
            self._liquidity(one, who)
        elif isinstance(one, Launched):
            kind: VenueKind = "amm_v3" if one.generation == 1 else "launchpad_curve"
            self.found.append(Step("launch", one.deployer, venue=kind, at=one.at, token=one.token, said=one))
        elif isinstance(one, LaunchMoved):
            self.found.append(Step("graduation", who, token=one.token, said=one))
        elif isinstance(one, PoolOpened):
            self.found.append(Step("pool_opened", who, venue=one.kind, at=one.at, said=one))
        else:
            self._beside(one)

    def _beside(self, one: Said) -> None:
        if isinstance(one, Allowed):
            self.found.append(Step("approval", one.owner, one.spender, token=one.token, said=one))
        elif isinstance(one, AllowedAll):
            self.found.append(Step("approval", one.owner, one.operator, token=one.collection, said=one))
        elif isinstance(one, Wrapped):
            kind: StepKind = "wrap" if one.wraps else "unwrap"
            self.found.append(Step(kind, one.account, paid=Moved(ZERO_ADDRESS, one.amount_raw), said=one))
        elif isinstance(one, ItemMoved):
            self.found.append(Step("item", one.sender, one.recipient, token=one.collection, said=one))
        elif isinstance(one, OperationEnded):
            self.found.append(Step("operation", one.account, said=one))

    # --- trades -----------------------------------------------------------------------------------

    def _swapped(self, one: Swapped, who: Address) -> None:
        market = self.markets.get(one.at)
        if one.sender == self.doing.hook:
            # The launchpad's hook sells what it took: nobody's trade.
            return
        self._last.pop(one.at, None)
        if market is None or market.kind == "launchpad_curve":
            self.strange_swaps += 1
            return
        token, quote = one.amount0, one.amount1
        if market.token > market.quote:
            token, quote = quote, token
        if token * quote >= 0:
            return
        self._last[one.at] = len(self.found)
        self._trade(market, who, token < 0, Moved(market.token, abs(token)), Moved(market.quote, abs(quote)))

    def _curve_traded(self, one: CurveTraded, who: Address) -> None:
        market = self.markets.get(one.at)
        if market is None or market.kind != "launchpad_curve":
            self.strange_swaps += 1
            return
        doing = self.doing
        nobody = doing.machinery | doing.entry_points | {ZERO_ADDRESS}
        if one.wallet == doing.router and one.recipient not in nobody and who == doing.sender:
            who = one.recipient
        if one.recipient != doing.sender and one.recipient not in nobody | {*self.recipients}:
            self.recipients.append(one.recipient)
        token, quote = Moved(market.token, one.token_raw), Moved(market.quote, one.quote_raw)
        self._trade(market, who, one.buys, token, quote, one)

    def _trade(
        self, market: Market, who: Address, buys: bool, token: Moved, quote: Moved, said: Said | None = None
    ) -> None:
        kind: StepKind = "swap" if not market.is_money else "buy" if buys else "sell"
        paid, got = (quote, token) if buys else (token, quote)
        self.found.append(Step(kind, who, None, market.kind, market.at, market.token, paid, got, said))

    def _hook_fee(self, one: HookFeeTaken) -> None:
        """Off what the trade just before it brought, or on top of what it cost."""
        place = self._last.pop(one.at, None)
        if place is None:
            return
        step = self.found[place]
        paid, got = step.paid, step.got
        assert paid is not None
        assert got is not None
        if one.currency == got.asset:
            step = replace(step, got=Moved(got.asset, max(0, got.raw - one.amount_raw)))
        elif one.currency == paid.asset:
            step = replace(step, paid=Moved(paid.asset, paid.raw + one.amount_raw))
        self.found[place] = step

    def _liquidity(self, one: LiquidityMoved, who: Address) -> None:
        market = self.markets.get(one.at)
        if market is None or one.liquidity_delta == 0:
            return
        kind: StepKind = "liquidity_added" if one.liquidity_delta > 0 else "liquidity_taken"
        sides: tuple[Moved | None, Moved | None] = None, None
        if one.amount0 is not None and one.amount1 is not None:
            low, high = sorted((market.token, market.quote))
            sides = Moved(low, abs(one.amount0)), Moved(high, abs(one.amount1))
        self.found.append(
            Step(kind, who, None, market.kind, market.at, market.token, sides[0], sides[1], one)
        )

    # --- what is a part of something else ---------------------------------------------------------

    def _without_parts(self) -> list[Step]:
        """What a trade, a launch or a change of liquidity is made of is no step of its own: tokens that go to
        or from a market or the network's machinery, eth that is wrapped on the way, rights that were used."""
        whole = self._has(*_TRADES, "launch", "graduation", "liquidity_added", "liquidity_taken")
        if not whole:
            return self.found
        inside = {*self.doing.machinery, *self.doing.entry_points}
        inside |= {Address(step.at) for step in self.found if step.at is not None}
        found = [step for step in self.found if not _is_part(step, inside)]
        if not self._has("launch", "graduation"):
            return found
        # What the launchpad pays out among its own and its creators.
        people = {self.doing.sender, *self.recipients, *(one.account for one in self.operations)}
        return [step for step in found if step.kind != "transfer" or {step.who, step.to} & people]


def _is_part(step: Step, inside: set[Address]) -> bool:
    if step.kind in ("transfer", "item"):
        of_launch = step.token in inside
        return step.who in inside or step.to in inside or of_launch
    if step.kind in ("wrap", "unwrap"):
        return step.who in inside
    if step.kind == "approval":
        said = step.said
        return step.who in inside or (isinstance(said, Allowed) and not said.unlimited())
    return False
