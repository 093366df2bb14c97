"""Interprets one transaction, step by step, from its logs. Pure.

Parts (``drop_parts``): a trade, a launch or a change of liquidity consists of smaller moves that are no
steps of their own: token transfers between its party and pools or the network's contracts, eth wrapped on
the way, allowances that were used. A move with an end outside of these is kept: a drain may accompany a tiny
trade.

Owners (``TradeOwners``): a pool logs the amounts it took and gave, not the wallet that traded: the
transaction's sender may have traded with a victim's tokens, or on behalf of another wallet. A trade belongs
to the wallet that paid for it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
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
from roundtrip.domain.transaction.account import (
    TRADES,
    AllowanceGiven,
    CollectionAllowed,
    DecodedLog,
    EthWrapped,
    ItemMoved,
    Kind,
    KnownMarket,
    MovedAsset,
    NetChanges,
    OperationEnded,
    StepKind,
    TransactionFacts,
    TransactionStep,
    TransactionSummary,
    UserOperation,
    account_at,
    operations,
    sum_net_changes,
)

_VENUES: frozenset[StepKind] = frozenset(
    {*TRADES, "launch", "pool_opened", "liquidity_added", "liquidity_taken"}
)
"""Steps whose ``at`` is a pool or a curve."""
_WHOLES: frozenset[StepKind] = frozenset(
    {*TRADES, "launch", "graduation", "liquidity_added", "liquidity_taken"}
)
"""Steps that have parts."""


def list_internal_addresses(
    facts: TransactionFacts, steps: Iterable[TransactionStep], markets: Mapping[str, KnownMarket]
) -> set[Address]:
    """The network's own contracts, and the known pools and curves that the steps use."""
    steps = list(steps)
    internal = {*facts.machinery, *facts.entry_points}
    internal |= {Address(step.at) for step in steps if step.at is not None and step.kind in _VENUES}
    graduated = {step.token for step in steps if step.kind == "graduation"}
    curves = (market for market in markets.values() if is_curve(market.kind) and market.token in graduated)
    return internal | {Address(curve.at) for curve in curves}


def drop_parts(
    steps: list[TransactionStep],
    facts: TransactionFacts,
    changes: NetChanges,
    internal: set[Address],
    accounts: Collection[Address],
) -> list[TransactionStep]:
    """The steps that are no parts of others. ``accounts``: those of the transaction's operations."""
    if not any(step.kind in _WHOLES for step in steps):
        return steps
    trades = [step for step in steps if step.kind in TRADES]
    parts = _Parts(
        internal=internal,
        actors={facts.sender, *accounts, *(step.actor for step in trades if step.actor is not None)},
        proceeds={(step.to, step.got.asset) for step in trades if step.got is not None},
        intermediaries=_find_intermediaries(steps, changes, internal),
        launched={step.token for step in steps if step.kind in ("launch", "graduation")},
        weth=facts.weth,
    )
    return [step for step in steps if not parts.contains(step)]


def _find_intermediaries(
    steps: Iterable[TransactionStep], changes: NetChanges, internal: set[Address]
) -> set[tuple[Address, Address]]:
    """(address, token) pairs that only passed the token on, to or from an internal address."""
    pairs = set()
    for step in steps:
        if (
            step.kind == "transfer"
            and step.token is not None
            and step.actor is not None
            and step.to is not None
        ):
            for end, other in ((step.actor, step.to), (step.to, step.actor)):
                if other in internal and end != ZERO_ADDRESS and not changes.get(end, {}).get(step.token):
                    pairs.add((end, step.token))
    return pairs


@dataclass(frozen=True, slots=True)
class _Parts:
    """Decides which steps are parts of others. ``proceeds``: (recipient, asset) of the trades;
    ``intermediaries``: (address, token) pairs that only passed the token on."""

    internal: set[Address]
    actors: set[Address]
    proceeds: set[tuple[Address | None, Address]]
    intermediaries: set[tuple[Address, Address]]
    launched: set[Address | None]
    weth: Address

    def contains(self, step: TransactionStep) -> bool:
        """Whether the step is a part of another."""
        if step.kind in ("transfer", "item"):
            return self._contains_move(step)
        if step.kind in ("wrap", "unwrap"):
            return step.actor in self.internal or (step.actor, self.weth) in self.intermediaries
        if step.kind == "approval":
            spends = step.to in self.internal
            return step.actor in self.internal or (
                spends and isinstance(step.log, AllowanceGiven) and not step.log.is_unlimited()
            )
        return False

    def _contains_move(self, step: TransactionStep) -> bool:
        """Whether a transfer only connects the parties of a trade, a launch or a change of liquidity."""
        ends = step.actor, step.to
        if step.kind == "item" and step.actor == ZERO_ADDRESS and step.token in self.internal:
            # The position NFT that was minted for the liquidity.
            return True
        passing = [end in self.internal or (end, step.token) in self.intermediaries for end in ends]
        if not any(passing):
            return False
        # A launched token goes from its curve, which the index may not know yet, to the launchpad's own.
        into_launchpad = step.token in self.launched and step.to in self.internal
        return into_launchpad or all(
            is_passing or self._is_party(end, step.token)
            for end, is_passing in zip(ends, passing, strict=True)
        )

    def _is_party(self, end: Address | None, token: Address | None) -> bool:
        return end in self.actors or (token is not None and (end, token) in self.proceeds)


@dataclass(slots=True)
class TradeOwners:
    """Assigns trades to wallets. ``internal``: pools and the network's contracts, which trade for others.
    ``accounts``: those of the transaction's operations."""

    facts: TransactionFacts
    changes: NetChanges
    internal: Collection[Address]
    accounts: Collection[Address]
    _unspent: dict[tuple[Address, Address], int] = field(default_factory=dict)
    _gainers: dict[Address, list[Address]] = field(default_factory=dict)

    def assign(self, steps: Sequence[TransactionStep]) -> list[TransactionStep]:
        """The steps, where a trade keeps its ``actor`` only if that wallet paid for it, and ``to`` is the
        recipient of the proceeds if another wallet got them."""
        assigned = list(steps)
        trades = [number for number, step in enumerate(assigned) if step.kind in TRADES]
        proven = {number for number in trades if self._names_owner(assigned[number])}
        for number in sorted(proven):
            self._spend(assigned[number])
        # The last hop of a route over several pools may be logged first.
        for order in (trades, trades[::-1]):
            for number in order:
                if number not in proven and self._is_paid(assigned[number]):
                    proven.add(number)
                    self._spend(assigned[number])
        for number in trades:
            step = assigned[number] if number in proven else replace(assigned[number], actor=None)
            assigned[number] = replace(step, to=self._find_recipient(step))
        return assigned

    def list_gainers(self, asset: Address) -> list[Address]:
        """Wallets with a net gain of the asset, the largest first, that got some of it from an internal
        address or from an address that only passed it on."""
        if asset not in self._gainers:
            recipients = {
                log.recipient
                for _, log in self.facts.logs
                if isinstance(log, Transferred)
                and log.token == asset
                and (log.sender in self.internal or not self.changes[log.sender].get(asset))
            }
            gainers = [wallet for wallet in recipients if self.changes[wallet].get(asset, 0) > 0]
            outside = [wallet for wallet in gainers if not self._is_internal(wallet)]
            self._gainers[asset] = sorted(outside, key=lambda wallet: (-self.changes[wallet][asset], wallet))
        return self._gainers[asset]

    def list_losers(self, assets: Collection[Address]) -> list[Address]:
        """Wallets with a net loss of one of the assets."""
        return [
            wallet
            for wallet, changes in self.changes.items()
            if not self._is_internal(wallet) and any(changes.get(asset, 0) < 0 for asset in assets)
        ]

    def _is_internal(self, wallet: Address) -> bool:
        return wallet in self.internal or wallet == ZERO_ADDRESS

    def _names_owner(self, step: TransactionStep) -> bool:
        """Whether the log itself names the owner: a curve logs its caller; the launchpad's router, as the
        caller, buys for the recipient."""
        log = step.log
        return isinstance(log, CurveTraded) and (
            log.wallet == step.actor or (log.wallet == self.facts.router and log.recipient == step.actor)
        )

    def _is_paid(self, step: TransactionStep) -> bool:
        actor, paid = step.actor, step.paid
        if actor is None or paid is None:
            return False
        return self._read_unspent(actor, paid.asset) >= paid.raw or self._is_paid_unlogged(step, actor)

    def _is_paid_unlogged(self, step: TransactionStep, actor: Address) -> bool:
        """An account, or a wallet that runs code of its own, can pay eth that appears in no log. It counts as
        the payer if it gained the most of what was bought, and no other wallet is seen paying."""
        assert step.paid is not None
        assert step.got is not None
        runs_code = actor in self.accounts or actor == self.facts.sender == self.facts.to
        if not runs_code or step.paid.asset not in (ZERO_ADDRESS, self.facts.weth):
            return False
        wrappers = {log.account for _, log in self.facts.logs if isinstance(log, EthWrapped) and log.wraps}
        payers = wrappers | set(self.list_losers((self.facts.weth,)))
        if any(not self._is_internal(payer) for payer in payers - {actor}):
            return False
        return self.list_gainers(step.got.asset)[:1] == [actor]

    def _key(self, wallet: Address, asset: Address) -> tuple[Address, Address]:
        return wallet, ZERO_ADDRESS if asset == self.facts.weth else asset

    def _read_unspent(self, wallet: Address, asset: Address) -> int:
        """What the wallet gave away, less the cost of its proven trades, plus their proceeds. Eth and weth
        are one asset here."""
        key = self._key(wallet, asset)
        if key not in self._unspent:
            is_eth = key[1] == ZERO_ADDRESS
            given = -self.changes.get(wallet, {}).get(self.facts.weth if is_eth else asset, 0)
            sends = is_eth and wallet == self.facts.sender != self.facts.to
            self._unspent[key] = given + (self.facts.value_wei if sends else 0)
        return self._unspent[key]

    def _spend(self, step: TransactionStep) -> None:
        if step.actor is None or step.paid is None or step.got is None:
            return
        for moved, sign in ((step.paid, -1), (step.got, 1)):
            self._unspent[self._key(step.actor, moved.asset)] = (
                self._read_unspent(step.actor, moved.asset) + sign * moved.raw
            )

    def _find_recipient(self, step: TransactionStep) -> Address | None:
        """The wallet that got the proceeds, unless it is the trade's actor."""
        if isinstance(step.log, CurveTraded):
            return None if step.log.recipient == step.actor else step.log.recipient
        assert step.got is not None
        if step.actor is not None and self.changes.get(step.actor, {}).get(step.got.asset, 0) > 0:
            return None
        return next(iter(self.list_gainers(step.got.asset)), None)


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
    """Interprets the transaction. ``facts.logs`` must come from ``account.merge_wraps``."""
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
