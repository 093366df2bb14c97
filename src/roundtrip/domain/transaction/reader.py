"""What one transaction did, step by step, out of what its logs tell. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from roundtrip.domain.base.events import (
    CurveTraded,
    Event,
    HookFeeTaken,
    LaunchedToken,
    LaunchMoved,
    LiquidityMoved,
    PoolOpened,
    Swapped,
    Transferred,
)
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import FIRST_VENUE, is_curve

from .account import (
    TRADES,
    AllowanceGiven,
    CollectionAllowed,
    EthWrapped,
    ItemMoved,
    Kind,
    KnownMarket,
    MovedAsset,
    OperationEnded,
    Said,
    StepKind,
    TransactionAccount,
    TransactionFacts,
    TransactionStep,
)
from .containment import insides, without_parts
from .operations import UserOperation, account_at, operations
from .sums import nets
from .trades import Owners

_BY_STEP: tuple[tuple[Kind, tuple[StepKind, ...]], ...] = (
    ("launch", ("launch",)),
    ("graduation", ("graduation",)),
    ("trade", TRADES),
    ("liquidity", ("liquidity_added", "liquidity_taken", "pool_opened")),
    ("contract_made", ("contract_made",)),
    ("operations", ("operation",)),
    ("wrap", ("wrap", "unwrap")),
    ("transfer", ("transfer", "item")),
    ("approval", ("approval",)),
)
"""What a transaction is called by: the first that one of its steps is."""


def account(doing: TransactionFacts, markets: Mapping[str, KnownMarket]) -> TransactionAccount:
    """What it did. ``doing.said`` is as ``account_sums.wrapped_once`` leaves it."""
    reader = _Reader(doing, markets)
    found = reader.steps()
    accounts = tuple(dict.fromkeys(one.account for one in reader.operations))
    inside, moved = insides(doing, found, markets), nets(doing.said, doing.weth)
    owners = Owners(doing, moved, inside, accounts)
    found = owners.settle(found)
    recipients, losers = _beside_sender(doing, found, owners)
    steps = without_parts(found, doing, moved, inside, accounts)
    kinds = {step.kind for step in steps}
    kind: Kind = next((kind for kind, named in _BY_STEP if kinds & set(named)), "call")
    if not steps:
        paid = MovedAsset(ZERO_ADDRESS, doing.value_wei) if doing.value_wei else None
        steps = [TransactionStep("call", who=doing.sender, to=doing.to, paid=paid)]
    return TransactionAccount(kind, tuple(steps), accounts, recipients, losers, reader.strange_swaps)


def _beside_sender(
    doing: TransactionFacts, steps: list[TransactionStep], owners: Owners
) -> tuple[tuple[Address, ...], tuple[Address, ...]]:
    """Who has what was bought, and who lost money or what was traded; of money first."""
    trades = [step for step in steps if step.kind in TRADES]
    bought = dict.fromkeys(step.got.asset for step in trades if step.got is not None)
    told = [one for step in trades for one in (step.who, step.to) if one is not None]
    has = dict.fromkeys([*told, *(wallet for asset in bought for wallet in owners.gainers(asset))])
    sold = [step.paid.asset for step in trades if step.paid is not None]
    lost = dict.fromkeys([*owners.losers((doing.weth, doing.usdg)), *owners.losers((*sold, *bought))])
    nobody = {doing.sender, ZERO_ADDRESS, *owners.inside}
    recipients = tuple(wallet for wallet in has if wallet not in nobody)
    return recipients, tuple(wallet for wallet in lost if wallet not in nobody and wallet not in has)


@dataclass
class _Reader:
    """Goes over the logs once, in order."""

    doing: TransactionFacts
    markets: Mapping[str, KnownMarket]
    found: list[TransactionStep] = field(default_factory=list)
    strange_swaps: int = 0
    operations: list[UserOperation] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)

    def steps(self) -> list[TransactionStep]:
        doing = self.doing
        events = ((0, index, one) for index, one in doing.said if isinstance(one, Event))
        self.operations = operations(events)
        if doing.created is not None:
            self.found.append(
                TransactionStep("contract_made", doing.sender, at=doing.created, paid=self._value())
            )
        for index, one in doing.said:
            self._read(index, one)
        if not doing.has_data and doing.value_wei and doing.to not in (None, doing.weth):
            plain = TransactionStep(
                "transfer", doing.sender, doing.to, paid=MovedAsset(ZERO_ADDRESS, doing.value_wei)
            )
            self.found.insert(0, plain)
        return self.found

    def _value(self) -> MovedAsset | None:
        return MovedAsset(ZERO_ADDRESS, self.doing.value_wei) if self.doing.value_wei else None

    def _read(self, index: int, one: Said) -> None:
        who = account_at(self.operations, index) or self.doing.sender
        if isinstance(one, Transferred):
            moved = MovedAsset(one.token, one.amount_raw)
            self.found.append(
                TransactionStep("transfer", one.sender, one.recipient, token=one.token, paid=moved)
            )
        elif isinstance(one, Swapped):
            self._read_swap(one, who)
        elif isinstance(one, HookFeeTaken):
            self._hook_fee(one)
        elif isinstance(one, CurveTraded):
            self._curve_traded(one, who)
        elif isinstance(one, LiquidityMoved):
            self._liquidity(one, who)
        elif isinstance(one, LaunchedToken):
            kind = FIRST_VENUE[one.generation]
            self.found.append(
                TransactionStep("launch", one.deployer, venue=kind, at=one.at, token=one.token, said=one)
            )
        elif isinstance(one, LaunchMoved):
            self.found.append(TransactionStep("graduation", who, token=one.token, said=one))
        elif isinstance(one, PoolOpened):
            self.found.append(TransactionStep("pool_opened", who, venue=one.kind, at=one.at, said=one))
        else:
            self._beside(one)

    def _beside(self, one: Said) -> None:
        if isinstance(one, AllowanceGiven):
            self.found.append(TransactionStep("approval", one.owner, one.spender, token=one.token, said=one))
        elif isinstance(one, CollectionAllowed):
            self.found.append(
                TransactionStep("approval", one.owner, one.operator, token=one.collection, said=one)
            )
        elif isinstance(one, EthWrapped):
            kind: StepKind = "wrap" if one.wraps else "unwrap"
            self.found.append(
                TransactionStep(kind, one.account, paid=MovedAsset(ZERO_ADDRESS, one.amount_raw), said=one)
            )
        elif isinstance(one, ItemMoved):
            self.found.append(
                TransactionStep("item", one.sender, one.recipient, token=one.collection, said=one)
            )
        elif isinstance(one, OperationEnded):
            self.found.append(TransactionStep("operation", one.account, said=one))

    # --- trades -----------------------------------------------------------------------------------

    def _read_swap(self, one: Swapped, who: Address) -> None:
        market = self.markets.get(one.at)
        if one.sender == self.doing.hook:
            # The launchpad's hook sells what it took: nobody's trade.
            return
        self._last.pop(one.at, None)
        if market is None or is_curve(market.kind):
            self.strange_swaps += 1
            return
        token, quote = one.amount0, one.amount1
        if market.token > market.quote:
            token, quote = quote, token
        if token * quote >= 0:
            return
        self._last[one.at] = len(self.found)
        self._trade(
            market, who, token < 0, MovedAsset(market.token, abs(token)), MovedAsset(market.quote, abs(quote))
        )

    def _curve_traded(self, one: CurveTraded, who: Address) -> None:
        market = self.markets.get(one.at)
        if market is None or not is_curve(market.kind):
            self.strange_swaps += 1
            return
        doing = self.doing
        nobody = doing.machinery | doing.entry_points | {ZERO_ADDRESS}
        if one.wallet == doing.router and one.recipient not in nobody and who == doing.sender:
            who = one.recipient
        token, quote = MovedAsset(market.token, one.token_raw), MovedAsset(market.quote, one.quote_raw)
        self._trade(market, who, one.buys, token, quote, one)

    def _trade(
        self,
        market: KnownMarket,
        who: Address,
        buys: bool,
        token: MovedAsset,
        quote: MovedAsset,
        said: Said | None = None,
    ) -> None:
        kind: StepKind = "swap" if not market.is_money else "buy" if buys else "sell"
        paid, got = (quote, token) if buys else (token, quote)
        self.found.append(
            TransactionStep(kind, who, None, market.kind, market.at, market.token, paid, got, said)
        )

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
            step = replace(step, got=MovedAsset(got.asset, max(0, got.raw - one.amount_raw)))
        elif one.currency == paid.asset:
            step = replace(step, paid=MovedAsset(paid.asset, paid.raw + one.amount_raw))
        self.found[place] = step

    def _liquidity(self, one: LiquidityMoved, who: Address) -> None:
        market = self.markets.get(one.at)
        if market is None or one.liquidity_delta == 0:
            return
        kind: StepKind = "liquidity_added" if one.liquidity_delta > 0 else "liquidity_taken"
        sides: tuple[MovedAsset | None, MovedAsset | None] = None, None
        if one.amount0 is not None and one.amount1 is not None:
            low, high = sorted((market.token, market.quote))
            sides = MovedAsset(low, abs(one.amount0)), MovedAsset(high, abs(one.amount1))
        self.found.append(
            TransactionStep(kind, who, None, market.kind, market.at, market.token, sides[0], sides[1], one)
        )
