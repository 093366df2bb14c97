"""Folds blocks into facts, given what earlier blocks held. Pure, but for its updates of ``FoldContext``.
Updates the tick and the active liquidity of pools with money log by log, and the dollar prices of the quotes
block by block, from the pools that trade them for usdg."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.chain.blocks.spans import BlockRead, SpanTx
from roundtrip.domain.base.events import (
    ActiveDepth,
    Buyback,
    CurveBoughtBack,
    CurveTraded,
    Event,
    HookFeeTaken,
    LaunchedToken,
    LaunchEvent,
    LaunchMoved,
    LaunchStep,
    LiquidityChange,
    LiquidityMoved,
    Operated,
    PoolOpened,
    PoolPlace,
    PositionMoved,
    PositionNumbered,
    PositionTransfer,
    Price,
    Priced,
    Spot,
    Swapped,
    TradeEvent,
    Transfer,
    Transferred,
    WalletFunded,
    WalletMet,
)
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef, TxHash
from roundtrip.domain.market.price_history import (
    MAX_MICRO_USD,
    capped_usdg,
    usdg_in_range,
    usdg_per_unit,
    worth_wei,
)
from roundtrip.domain.transaction.account import UserOperation, account_at, operations
from roundtrip.sync.batch import Batch, FoldContext, money
from roundtrip.venues import amm_v3, launchpad_curve
from roundtrip.venues.base import Contracts
from roundtrip.venues.decode import Decoder
from roundtrip.venues.pair_order import sides


class DepthFold:
    """Updates ``states``, by pool, and records each pool's state at the end of each block in ``changed``. A
    pool that is missing, or None, is not known until its next swap."""

    def __init__(
        self, states: dict[str, ActiveDepth | None], changed: dict[tuple[str, int], ActiveDepth | None]
    ) -> None:
        self._states = states
        self._changed = changed

    def note(self, at: str, block_number: int, state: ActiveDepth | None) -> None:
        """Notes what a log says of the pool ``at``."""
        self._states[at] = self._changed[at, block_number] = state

    def note_move(self, event: LiquidityMoved, block_number: int) -> int | None:
        """Notes a change of liquidity. Returns the active liquidity just before it; 0 where the change lies
        out of range; None: not known."""
        state = self._states.get(event.at)
        if state is None:
            return None
        if not event.tick_lower <= state.tick < event.tick_upper:
            return 0
        liquidity = state.liquidity + event.liquidity_delta
        if liquidity < 0:
            # No pool has less than nothing: what was known of it is wrong.
            self.note(event.at, block_number, None)
            return None
        self.note(event.at, block_number, ActiveDepth(state.tick, liquidity))
        return state.liquidity


QUOTE_FEE_PIPS = 500
"""Fee of the usdg pools that price the other quotes of launches: each quote can have only one such pool."""


class PriceFold:
    """Updates ``known.prices`` and records each change in ``changed``.

    One v3 pool with usdg prices each quote. Weth (and eth): the pool that the network names, else the first
    that held money. Quotes of launches: the pool with the usual fee. The deepest pool is not used, because
    anybody can borrow depth for a moment, for a pool of their own.
    """

    def __init__(
        self,
        known: FoldContext,
        contracts: Contracts,
        changed: dict[tuple[Address, int], Price],
        eth_usd_pool: Address | None = None,
    ) -> None:
        self._known = known
        self._eth_usd_pool = eth_usd_pool
        self._contracts = contracts
        self._changed = changed
        self._at_block_start = dict(known.prices)

    def begin_block(self) -> None:
        """Fixes the prices for the next block to those at the end of the one before. Within a block, and so
        within one transaction, anybody can bend a price at no cost."""
        self._at_block_start = dict(self._known.prices)

    def worth(self, quote: Address, quote_raw: int) -> tuple[int | None, int | None]:
        """The worth of an amount of a quote in wei of eth and in millionths of a dollar; None: unknown."""
        eth = self._price_of(self._contracts.weth)
        if quote in (ZERO_ADDRESS, self._contracts.weth):
            micro_usd = None if eth is None else capped_usdg(quote_raw, eth.usdg_raw)
            return quote_raw, micro_usd
        if quote == self._contracts.usdg:
            micro_usd = min(quote_raw, MAX_MICRO_USD)
        else:
            price = self._price_of(quote)
            if price is None:
                return None, None
            micro_usd = capped_usdg(quote_raw, price.usdg_raw)
        return None if eth is None else worth_wei(micro_usd, eth.usdg_raw), micro_usd

    def note_price_set(self, event: Priced, pool: PoolPlace, at: BlockRef) -> None:
        """Notes a pool's initial price. It does not count until the pool holds money."""
        if self._sets_price(pool) and pool.token not in self._known.prices:
            self._record_pool_price(pool, event.sqrt_price_x96, 0, at)

    def note_deposit(self, pool: PoolPlace, usdg_raw: int, at: BlockRef) -> None:
        """Notes a deposit: the first into a pool without swaps makes its price count."""
        before = self._known.prices.get(pool.token)
        if before is not None and before.at == pool.at and not before.depth_raw and usdg_raw > 0:
            self._record(before._replace(block_number=at.number, at_s=at.timestamp_s, depth_raw=usdg_raw))

    def note_swap(self, event: Swapped, pool: PoolPlace, at: BlockRef) -> None:
        """Notes the price after a swap."""
        if not self._sets_price(pool):
            return
        before = self._known.prices.get(pool.token)
        if before is None or before.at == pool.at or not before.depth_raw:
            depth_raw = usdg_in_range(event.sqrt_price_x96, event.liquidity, pool.token > pool.quote)
            self._record_pool_price(pool, event.sqrt_price_x96, depth_raw, at)

    def _price_of(self, quote: Address) -> Price | None:
        price = self._at_block_start.get(quote)
        return price if price is not None and price.depth_raw and price.usdg_raw else None

    def _sets_price(self, pool: PoolPlace) -> bool:
        contracts = self._contracts
        if pool.kind != amm_v3.KIND or pool.quote != contracts.usdg:
            return False
        if pool.token == contracts.weth:
            return self._eth_usd_pool in (None, pool.at)
        return pool.fee_pips == QUOTE_FEE_PIPS and pool.token in self._known.quotes

    def _record_pool_price(self, pool: PoolPlace, sqrt_price_x96: int, depth_raw: int, at: BlockRef) -> None:
        usdg_raw = usdg_per_unit(sqrt_price_x96, pool.token < pool.quote)
        self._record(Price(pool.token, at.number, at.timestamp_s, pool.at, usdg_raw, depth_raw))

    def _record(self, price: Price) -> None:
        self._known.prices[price.quote] = price
        self._changed[price.quote, price.block_number] = price


_new = tuple.__new__
"""Takes half as long as calling a class of tuples, of which a block makes thousands."""


class LoggedEvent(NamedTuple):
    """A decoded log and its place in the block."""

    tx_index: int
    log_index: int
    event: Event


@dataclass(frozen=True, slots=True)
class BlockEvents:
    """A block's transactions and the events of its logs, in order."""

    ref: BlockRef
    transactions: tuple[SpanTx, ...]
    events: list[LoggedEvent]


@dataclass(frozen=True, slots=True)
class MissingFacts:
    """Facts that must be read before blocks can be folded."""

    pools: set[str]
    tokens: set[Address]
    quotes: set[Address]


def decode_blocks(blocks: Iterable[BlockRead], decoder: Decoder) -> list[BlockEvents]:
    """Decodes the logs of each block; drops logs that no decoder knows."""
    decoded = []
    for block in blocks:
        events = []
        for log, tx_index, log_index in block.entries:
            event = decoder(log)
            if event is not None:
                events.append(_new(LoggedEvent, (tx_index, log_index, event)))
        decoded.append(BlockEvents(block.ref, block.transactions, events))
    return decoded


def list_missing(blocks: Iterable[BlockEvents], known: FoldContext) -> MissingFacts:
    """Lists what these blocks refer to and ``known`` lacks."""
    pools: set[str] = set()
    tokens: set[Address] = set()
    quotes: set[Address] = set()
    for block in blocks:
        for _, _, event in block.events:
            if isinstance(event, (Transferred, LaunchMoved)):
                tokens.add(event.token)
            elif isinstance(event, (Swapped, CurveTraded, CurveBoughtBack, LiquidityMoved, Priced)):
                pools.add(event.at)
            elif isinstance(event, LaunchedToken):
                quotes.add(event.quote)
                tokens.add(event.token)
    return MissingFacts(pools - known.pools.keys(), tokens - known.launched.keys(), quotes - known.quotes)


class BatchFold:
    """Folds one batch. ``transfers_from_s``: earlier transfers are not kept. ``eth_usd_pool``: the pool that
    prices eth; None: the first with money."""

    def __init__(
        self,
        known: FoldContext,
        contracts: Contracts,
        parent_hash: str,
        transfers_from_s: int = 0,
        eth_usd_pool: Address | None = None,
    ) -> None:
        self._known = known
        self._contracts = contracts
        self._money = money(contracts)
        self._transfers_from_s = transfers_from_s
        self._batch = Batch(parent_hash)
        self._prices = PriceFold(known, contracts, self._batch.prices, eth_usd_pool)
        self._depths = DepthFold(known.states, self._batch.states)
        self._is_full = True
        self._block = BlockEvents(BlockRef(0, "", 0), (), [])
        self._last_trade: dict[tuple[int, str], int] = {}
        """The place in the batch of a pool's last trade, by transaction and pool, for a fee log after it."""
        self._last_move: tuple[int, int] | None = None
        """The transaction and the place in the batch of the liquidity that was moved last."""
        self._operations: list[UserOperation] | None = None
        self._launching: set[Address] = set()
        self._handlers: dict[type, Callable[[LoggedEvent, Spot], None]] = {
            PoolOpened: self._fold_pool_opened,
            Priced: self._fold_price_set,
            Swapped: self._fold_swap,
            HookFeeTaken: self._fold_hook_fee,
            LiquidityMoved: self._fold_liquidity,
            PositionNumbered: self._fold_number,
            PositionMoved: self._fold_position_transfer,
            CurveTraded: self._fold_curve_trade,
            CurveBoughtBack: self._fold_buyback,
            LaunchedToken: self._fold_launch,
            LaunchMoved: self._fold_launch_step,
            Transferred: self._fold_transfer,
        }

    def fold(self, blocks: Iterable[BlockEvents], meets_wallets: bool = True) -> Batch:
        """The batch of these blocks. The context must hold everything that ``list_missing`` lists.
        ``meets_wallets``: the blocks have all their transactions, with their senders and logs."""
        self._is_full, handlers = meets_wallets, self._handlers
        for block in blocks:
            self._block = block
            number, at_s, transactions = block.ref.number, block.ref.timestamp_s, block.transactions
            self._prices.begin_block()
            self._last_trade.clear()
            self._last_move = None
            self._operations = None
            self._launching = {
                logged.event.token for logged in block.events if isinstance(logged.event, LaunchedToken)
            }
            self._batch.blocks.append(block.ref)
            if meets_wallets:
                self._meet_wallets()
            for logged in block.events:
                tx_index, log_index, event = logged
                handler = handlers.get(type(event))
                if handler is not None:
                    tx_hash = TxHash(transactions[tx_index].hash)
                    handler(logged, _new(Spot, (number, log_index, at_s, tx_hash)))
        return self._batch

    # --- wallets -----------------------------------------------------------------------------------

    def _meet_wallets(self) -> None:
        """Notes every sender, recipient of eth and account of a user operation, in the transactions' order.
        A wallet that acts already had eth: a later payment of one wei does not count as its funding."""
        operated: dict[int, list[Address]] = {}
        for logged in self._block.events:
            if isinstance(logged.event, Operated):
                operated.setdefault(logged.tx_index, []).append(logged.event.account)
        # Most wallets were met and paid before: then there is nothing to note.
        met, funded = self._known.met, self._known.funded
        for index, tx in enumerate(self._block.transactions):
            sender, to = Address(tx.sender), tx.to
            if to is not None and not (to in met and to in funded) and tx.has_value():
                wallet = Address(to)
                self._meet(wallet)
                self._note_eth(wallet, sender if tx.is_transfer() and wallet != sender else None)
            if not (sender in met and sender in funded):
                self._meet(sender)
                self._note_eth(sender, None)
            for account in operated.get(index, ()) if operated else ():
                self._meet(account)
                self._note_eth(account, None)

    def _meet(self, wallet: Address) -> None:
        if wallet not in self._known.met:
            self._known.met.add(wallet)
            ref = self._block.ref
            self._batch.met.append(WalletMet(wallet, ref.number, ref.timestamp_s))

    def _note_eth(self, wallet: Address, funder: Address | None) -> None:
        if wallet not in self._known.funded:
            self._known.funded.add(wallet)
            ref = self._block.ref
            self._batch.funded.append(WalletFunded(wallet, funder, ref.number, ref.timestamp_s))

    # --- pools and launches ------------------------------------------------------------------------

    def _fold_pool_opened(self, logged: LoggedEvent, spot: Spot) -> None:
        event = logged.event
        assert isinstance(event, PoolOpened)
        token, quote, is_money = sides(event.currency0, event.currency1, self._known.quotes, self._contracts)
        since = spot.block_number if is_money else None
        key = event.fee_pips, event.tick_spacing, event.hook
        self._add_pool(PoolPlace(event.at, event.kind, token, quote, since, *key, spot))
        # Later changes of a pool whose blocks are not read in full are not known.
        if event.tick is not None and is_money and self._is_full:
            self._depths.note(event.at, spot.block_number, ActiveDepth(event.tick, 0))

    def _add_pool(self, pool: PoolPlace) -> None:
        if self._known.pools.get(pool.at) is None:
            self._known.pools[pool.at] = pool
            self._batch.pools.append(pool)

    def _fold_launch(self, logged: LoggedEvent, spot: Spot) -> None:
        event = logged.event
        assert isinstance(event, LaunchedToken)
        if self._known.launched.get(event.token):
            return
        self._known.launched[event.token] = True
        self._add_quote(event.quote, spot.block_number)
        self._batch.launches.append(LaunchEvent(spot, event, self._sender_of(logged)))
        if event.generation != 1:
            number = spot.block_number
            self._add_pool(
                PoolPlace(event.at, launchpad_curve.KIND, event.token, event.quote, number, 0, 0, None, spot)
            )

    def _add_quote(self, quote: Address, number: int) -> None:
        """Counts the quote of a launch as money from this block on, also in pools that exist already."""
        if quote in self._money or quote in self._known.quotes:
            return
        self._known.quotes.add(quote)
        self._batch.new_quotes.append((quote, number))
        for at, pool in self._known.pools.items():
            if pool is not None and pool.in_money_from is None and quote in (pool.token, pool.quote):
                token = pool.quote if pool.token == quote else pool.token
                reoriented = pool._replace(token=token, quote=quote, in_money_from=number)
                self._known.pools[at] = reoriented
                self._batch.reoriented.append(reoriented)

    def _fold_launch_step(self, logged: LoggedEvent, spot: Spot) -> None:
        event = logged.event
        assert isinstance(event, LaunchMoved)
        if self._known.launched.get(event.token):
            self._batch.steps.append(LaunchStep(spot, event))

    def _fold_transfer(self, logged: LoggedEvent, spot: Spot) -> None:
        event = logged.event
        assert isinstance(event, Transferred)
        # Transfers of the mint come before the log of the launch.
        if not (self._known.launched.get(event.token) or event.token in self._launching):
            return
        self._meet(event.recipient)
        if spot.at_s >= self._transfers_from_s:
            self._batch.transfers.append(_new(Transfer, (spot, event, self._actor_of(logged))))

    # --- trades ------------------------------------------------------------------------------------

    def _fold_curve_trade(self, logged: LoggedEvent, spot: Spot) -> None:
        event = logged.event
        assert isinstance(event, CurveTraded)
        pool = self._known.pools.get(event.at)
        if pool is None or pool.kind != launchpad_curve.KIND:
            return
        kept_raw = event.fee_raw + event.tax_raw
        trader = self._actor_of(logged)
        self._add_trade(logged, spot, pool, trader, event.buys, event.token_raw, event.quote_raw, kept_raw)

    def _fold_buyback(self, logged: LoggedEvent, spot: Spot) -> None:
        event = logged.event
        assert isinstance(event, CurveBoughtBack)
        pool = self._known.pools.get(event.at)
        if pool is not None and pool.kind == launchpad_curve.KIND:
            self._batch.buybacks.append(Buyback(spot, pool.at, event.quote_raw))

    def _fold_price_set(self, logged: LoggedEvent, spot: Spot) -> None:
        event = logged.event
        assert isinstance(event, Priced)
        pool = self._known.pools.get(event.at)
        if pool is None:
            return
        self._prices.note_price_set(event, pool, self._block.ref)
        if pool.in_money_from is not None:
            self._depths.note(event.at, spot.block_number, ActiveDepth(event.tick, 0))

    def _fold_swap(self, logged: LoggedEvent, spot: Spot) -> None:
        event = logged.event
        assert isinstance(event, Swapped)
        pool = self._known.pools.get(event.at)
        if pool is None or pool.in_money_from is None or pool.kind == launchpad_curve.KIND:
            return
        self._prices.note_swap(event, pool, self._block.ref)
        self._depths.note(event.at, spot.block_number, ActiveDepth(event.tick, event.liquidity))
        if event.sender == self._contracts.launchpad_hook:
            # The hook sells its fees: no wallet's trade, and maybe within one whose fee log comes later.
            return
        # A fee log that follows belongs to this swap, also where the swap is no trade.
        self._last_trade.pop((logged.tx_index, event.at), None)
        token_is_low = pool.token < pool.quote
        token, quote = event.amount0, event.amount1
        if not token_is_low:
            token, quote = quote, token
        if token == 0 or token * quote > 0:
            # Not where only the quote amount is 0: that is a trade for nothing.
            return
        if pool.token in self._money:
            # Money for money.
            return
        trader = self._actor_of(logged)
        self._add_trade(logged, spot, pool, trader, token < 0, abs(token), abs(quote))

    def _fold_hook_fee(self, logged: LoggedEvent, spot: Spot) -> None:
        """Corrects the trade just before: the launchpad's hook took its fee off what the trade brought, or on
        top of what it cost. The log of the swap does not include that fee."""
        event = logged.event
        assert isinstance(event, HookFeeTaken)
        index = self._last_trade.pop((logged.tx_index, event.at), None)
        if index is None:
            return
        trade = self._batch.trades[index]
        amount = -event.amount_raw
        if event.currency == trade.token:
            amount = amount if trade.buys else -amount
            self._batch.trades[index] = trade._replace(token_raw=max(0, trade.token_raw + amount))
        elif event.currency == trade.quote:
            amount = -amount if trade.buys else amount
            quote_raw = max(0, trade.quote_raw + amount)
            eth_wei, micro_usd = self._prices.worth(trade.quote, quote_raw)
            self._batch.trades[index] = trade._replace(
                quote_raw=quote_raw, eth_wei=eth_wei, micro_usd=micro_usd
            )

    def _add_trade(
        self,
        logged: LoggedEvent,
        spot: Spot,
        pool: PoolPlace,
        trader: Address,
        buys: bool,
        token_raw: int,
        quote_raw: int,
        kept_raw: int | None = None,
    ) -> None:
        eth_wei, micro_usd = self._prices.worth(pool.quote, quote_raw)
        self._meet(trader)
        self._last_trade[logged.tx_index, pool.at] = len(self._batch.trades)
        self._batch.trades.append(
            _new(
                TradeEvent,
                (
                    spot, pool.at, pool.token, pool.quote, trader, buys, token_raw, quote_raw, eth_wei,
                    micro_usd, kept_raw,
                ),
            )
        )  # fmt: skip

    def _fold_liquidity(self, logged: LoggedEvent, spot: Spot) -> None:
        event = logged.event
        assert isinstance(event, LiquidityMoved)
        self._last_move = None
        pool = self._known.pools.get(event.at)
        if pool is None or pool.in_money_from is None or pool.kind == launchpad_curve.KIND:
            return
        if event.liquidity_delta == 0:
            return
        token_raw, quote_raw = event.amount0, event.amount1
        if pool.token > pool.quote:
            token_raw, quote_raw = quote_raw, token_raw
        self._prices.note_deposit(pool, quote_raw or 0, self._block.ref)
        active_raw = self._depths.note_move(event, spot.block_number)
        self._last_move = logged.tx_index, len(self._batch.liquidity)
        self._batch.liquidity.append(
            LiquidityChange(
                spot, pool.at, pool.token, event.owner, self._actor_of(logged), event.tick_lower,
                event.tick_upper, event.liquidity_delta, token_raw, quote_raw, event.number, active_raw,
            )
        )  # fmt: skip

    def _fold_number(self, logged: LoggedEvent, spot: Spot) -> None:
        """Numbers the liquidity that the v3 position manager has just moved: nothing but its NFT moves
        between the two logs. The amounts are compared, so that no other change gets the number."""
        event, move, self._last_move = logged.event, self._last_move, None
        assert isinstance(event, PositionNumbered)
        if move is None or move[0] != logged.tx_index:
            return
        change = self._batch.liquidity[move[1]]
        pool = self._known.pools[change.at]
        assert pool is not None
        amounts = change.token_raw, change.quote_raw
        if pool.token > pool.quote:
            amounts = change.quote_raw, change.token_raw
        moved = change.owner, change.liquidity_delta, *amounts
        if moved == (event.manager, event.liquidity_delta, event.amount0, event.amount1):
            self._batch.liquidity[move[1]] = change._replace(number=event.number)

    def _fold_position_transfer(self, logged: LoggedEvent, spot: Spot) -> None:
        event = logged.event
        assert isinstance(event, PositionMoved)
        self._batch.position_transfers.append(PositionTransfer(spot, event))

    # --- who acted ---------------------------------------------------------------------------------

    def _sender_of(self, logged: LoggedEvent) -> Address:
        return Address(self._block.transactions[logged.tx_index].sender)

    def _account_of(self, logged: LoggedEvent) -> Address | None:
        """The account whose user operation emitted the log; None: it was no user operation."""
        if self._operations is None:
            self._operations = operations(self._block.events)
        return account_at(self._operations, logged.log_index) if self._operations else None

    def _actor_of(self, logged: LoggedEvent) -> Address:
        """The account whose user operation emitted the log, else the transaction's sender. Whom a trade pays
        does not count, nor whom the launch router names: anybody can have a famous wallet paid."""
        return self._account_of(logged) or self._sender_of(logged)
