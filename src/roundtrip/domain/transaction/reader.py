"""Interprets one transaction, step by step, from its logs. Pure."""

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
    DecodedLog,
    EthWrapped,
    ItemMoved,
    Kind,
    KnownMarket,
    MovedAsset,
    OperationEnded,
    StepKind,
    TransactionFacts,
    TransactionStep,
    TransactionSummary,
)
from .containment import drop_parts, list_internal_addresses
from .operations import UserOperation, account_at, operations
from .sums import sum_net_changes
from .trades import TradeOwners

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
"""A transaction has the first of these kinds that one of its steps has."""


def interpret_transaction(facts: TransactionFacts, markets: Mapping[str, KnownMarket]) -> TransactionSummary:
    """Interprets the transaction. ``facts.logs`` must come from ``sums.merge_wraps``."""
    reader = _Reader(facts, markets)
    steps = reader.read_steps()
    accounts = tuple(dict.fromkeys(op.account for op in reader.operations))
    internal, changes = (
        list_internal_addresses(facts, steps, markets),
        sum_net_changes(facts.logs, facts.weth),
    )
    owners = TradeOwners(facts, changes, internal, accounts)
    steps = owners.assign(steps)
    recipients, losers = _find_counterparties(facts, steps, owners)
    remaining = drop_parts(steps, facts, changes, internal, accounts)
    kinds = {step.kind for step in remaining}
    kind: Kind = next((kind for kind, named in _BY_STEP if kinds & set(named)), "call")
    if not remaining:
        paid = MovedAsset(ZERO_ADDRESS, facts.value_wei) if facts.value_wei else None
        remaining = [TransactionStep("call", actor=facts.sender, to=facts.to, paid=paid)]
    return TransactionSummary(kind, tuple(remaining), accounts, recipients, losers, reader.strange_swaps)


def _find_counterparties(
    facts: TransactionFacts, steps: list[TransactionStep], owners: TradeOwners
) -> tuple[tuple[Address, ...], tuple[Address, ...]]:
    """The summary's recipients and losers; losers of money come first."""
    trades = [step for step in steps if step.kind in TRADES]
    bought = dict.fromkeys(step.got.asset for step in trades if step.got is not None)
    parties = [wallet for step in trades for wallet in (step.actor, step.to) if wallet is not None]
    holders = dict.fromkeys(
        [*parties, *(wallet for asset in bought for wallet in owners.list_gainers(asset))]
    )
    sold = [step.paid.asset for step in trades if step.paid is not None]
    losers = dict.fromkeys(
        [*owners.list_losers((facts.weth, facts.usdg)), *owners.list_losers((*sold, *bought))]
    )
    excluded = {facts.sender, ZERO_ADDRESS, *owners.internal}
    recipients = tuple(wallet for wallet in holders if wallet not in excluded)
    return recipients, tuple(wallet for wallet in losers if wallet not in excluded and wallet not in holders)


@dataclass
class _Reader:
    """Reads the logs once, in order. ``_last_swap``: by pool, the step number of its last swap."""

    facts: TransactionFacts
    markets: Mapping[str, KnownMarket]
    steps: list[TransactionStep] = field(default_factory=list)
    strange_swaps: int = 0
    operations: list[UserOperation] = field(default_factory=list)
    _last_swap: dict[str, int] = field(default_factory=dict)

    def read_steps(self) -> list[TransactionStep]:
        facts = self.facts
        events = ((0, index, log) for index, log in facts.logs if isinstance(log, Event))
        self.operations = operations(events)
        if facts.created is not None:
            self.steps.append(
                TransactionStep("contract_made", facts.sender, at=facts.created, paid=self._sent_eth())
            )
        for index, log in facts.logs:
            self._read(index, log)
        if not facts.has_data and facts.value_wei and facts.to not in (None, facts.weth):
            plain = TransactionStep(
                "transfer", facts.sender, facts.to, paid=MovedAsset(ZERO_ADDRESS, facts.value_wei)
            )
            self.steps.insert(0, plain)
        return self.steps

    def _sent_eth(self) -> MovedAsset | None:
        return MovedAsset(ZERO_ADDRESS, self.facts.value_wei) if self.facts.value_wei else None

    def _read(self, index: int, log: DecodedLog) -> None:
        actor = account_at(self.operations, index) or self.facts.sender
        if isinstance(log, Transferred):
            moved = MovedAsset(log.token, log.amount_raw)
            self.steps.append(
                TransactionStep("transfer", log.sender, log.recipient, token=log.token, paid=moved)
            )
        elif isinstance(log, Swapped):
            self._read_swap(log, actor)
        elif isinstance(log, HookFeeTaken):
            self._read_hook_fee(log)
        elif isinstance(log, CurveTraded):
            self._read_curve_trade(log, actor)
        elif isinstance(log, LiquidityMoved):
            self._read_liquidity(log, actor)
        elif isinstance(log, LaunchedToken):
            kind = FIRST_VENUE[log.generation]
            self.steps.append(
                TransactionStep("launch", log.deployer, venue=kind, at=log.at, token=log.token, log=log)
            )
        elif isinstance(log, LaunchMoved):
            self.steps.append(TransactionStep("graduation", actor, token=log.token, log=log))
        elif isinstance(log, PoolOpened):
            self.steps.append(TransactionStep("pool_opened", actor, venue=log.kind, at=log.at, log=log))
        else:
            self._read_account_log(log)

    def _read_account_log(self, log: DecodedLog) -> None:
        if isinstance(log, AllowanceGiven):
            self.steps.append(TransactionStep("approval", log.owner, log.spender, token=log.token, log=log))
        elif isinstance(log, CollectionAllowed):
            self.steps.append(
                TransactionStep("approval", log.owner, log.operator, token=log.collection, log=log)
            )
        elif isinstance(log, EthWrapped):
            kind: StepKind = "wrap" if log.wraps else "unwrap"
            self.steps.append(
                TransactionStep(kind, log.account, paid=MovedAsset(ZERO_ADDRESS, log.amount_raw), log=log)
            )
        elif isinstance(log, ItemMoved):
            self.steps.append(
                TransactionStep("item", log.sender, log.recipient, token=log.collection, log=log)
            )
        elif isinstance(log, OperationEnded):
            self.steps.append(TransactionStep("operation", log.account, log=log))

    # --- trades -----------------------------------------------------------------------------------

    def _read_swap(self, log: Swapped, actor: Address) -> None:
        market = self.markets.get(log.at)
        if log.sender == self.facts.hook:
            # The launchpad's hook sells the fees it took; that is no wallet's trade.
            return
        self._last_swap.pop(log.at, None)
        if market is None or is_curve(market.kind):
            self.strange_swaps += 1
            return
        token, quote = log.amount0, log.amount1
        if market.token > market.quote:
            token, quote = quote, token
        if token * quote >= 0:
            return
        self._last_swap[log.at] = len(self.steps)
        self._add_trade(
            market,
            actor,
            token < 0,
            MovedAsset(market.token, abs(token)),
            MovedAsset(market.quote, abs(quote)),
        )

    def _read_curve_trade(self, log: CurveTraded, actor: Address) -> None:
        market = self.markets.get(log.at)
        if market is None or not is_curve(market.kind):
            self.strange_swaps += 1
            return
        facts = self.facts
        excluded = facts.machinery | facts.entry_points | {ZERO_ADDRESS}
        if log.wallet == facts.router and log.recipient not in excluded and actor == facts.sender:
            actor = log.recipient
        token, quote = MovedAsset(market.token, log.token_raw), MovedAsset(market.quote, log.quote_raw)
        self._add_trade(market, actor, log.buys, token, quote, log)

    def _add_trade(
        self,
        market: KnownMarket,
        actor: Address,
        buys: bool,
        token: MovedAsset,
        quote: MovedAsset,
        log: DecodedLog | None = None,
    ) -> None:
        kind: StepKind = "swap" if not market.is_money else "buy" if buys else "sell"
        paid, got = (quote, token) if buys else (token, quote)
        self.steps.append(
            TransactionStep(kind, actor, None, market.kind, market.at, market.token, paid, got, log)
        )

    def _read_hook_fee(self, log: HookFeeTaken) -> None:
        """Takes the fee off the proceeds of the swap before it, or adds it to the cost."""
        place = self._last_swap.pop(log.at, None)
        if place is None:
            return
        step = self.steps[place]
        paid, got = step.paid, step.got
        assert paid is not None
        assert got is not None
        if log.currency == got.asset:
            step = replace(step, got=MovedAsset(got.asset, max(0, got.raw - log.amount_raw)))
        elif log.currency == paid.asset:
            step = replace(step, paid=MovedAsset(paid.asset, paid.raw + log.amount_raw))
        self.steps[place] = step

    def _read_liquidity(self, log: LiquidityMoved, actor: Address) -> None:
        market = self.markets.get(log.at)
        if market is None or log.liquidity_delta == 0:
            return
        kind: StepKind = "liquidity_added" if log.liquidity_delta > 0 else "liquidity_taken"
        sides: tuple[MovedAsset | None, MovedAsset | None] = None, None
        if log.amount0 is not None and log.amount1 is not None:
            low, high = sorted((market.token, market.quote))
            sides = MovedAsset(low, abs(log.amount0)), MovedAsset(high, abs(log.amount1))
        self.steps.append(
            TransactionStep(kind, actor, None, market.kind, market.at, market.token, sides[0], sides[1], log)
        )
