"""Blocks folded into facts: what the logs mean, given what was before. Pure but for what is ``Known``."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.chain.blocks.spans import BlockRead, SpanTx
from roundtrip.domain.base.events import (
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
from roundtrip.domain.transaction.operations import UserOperation, account_at, operations
from roundtrip.venues import launchpad_curve
from roundtrip.venues.base import Contracts
from roundtrip.venues.decode import Decoder
from roundtrip.venues.entry_point import ENTRY_POINTS
from roundtrip.venues.pair_order import sides

from .batch import Batch
from .fold_context import FoldContext, money
from .prices import PriceFold


class LoggedEvent(NamedTuple):
    """One log that means something, in its block."""

    tx_index: int
    log_index: int
    event: Event


@dataclass(frozen=True, slots=True)
class BlockEvents:
    """One block's transactions and what its logs tell, in order."""

    ref: BlockRef
    transactions: tuple[SpanTx, ...]
    told: list[LoggedEvent]


@dataclass(frozen=True, slots=True)
class MissingFacts:
    """What has to be known before blocks can be folded."""

    pools: set[str]
    tokens: set[Address]
    quotes: set[Address]


def told_by(blocks: Iterable[BlockRead], decoder: Decoder) -> list[BlockEvents]:
    """What the logs of these blocks tell, each for itself."""
    found = []
    for block in blocks:
        told = []
        for log, tx_index, log_index in block.entries:
            event = decoder(log)
            if event is not None:
                told.append(LoggedEvent(tx_index, log_index, event))
        found.append(BlockEvents(block.ref, block.transactions, told))
    return found


def list_wanted(blocks: Iterable[BlockEvents], known: FoldContext) -> MissingFacts:
    """What these blocks speak of that is not known yet."""
    pools: set[str] = set()
    tokens: set[Address] = set()
    quotes: set[Address] = set()
    for block in blocks:
        for _, _, event in block.told:
            if isinstance(event, Transferred | LaunchMoved):
                tokens.add(event.token)
            elif isinstance(event, Swapped | CurveTraded | CurveBoughtBack | LiquidityMoved | Priced):
                pools.add(event.at)
            elif isinstance(event, LaunchedToken):
                quotes.add(event.quote)
                tokens.add(event.token)
    return MissingFacts(pools - known.pools.keys(), tokens - known.launched.keys(), quotes - known.quotes)


class BatchFold:
    """Folds one batch. ``transfers_from_s``: transfers before it are not kept. ``eth_usd_pool``: which pool
    tells what an eth is worth; None: the first with money."""

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
        self._nobody = contracts.all_addresses() | ENTRY_POINTS | {ZERO_ADDRESS}
        self._transfers_from_s = transfers_from_s
        self._batch = Batch(parent_hash)
        self._prices = PriceFold(known, contracts, self._batch.prices, eth_usd_pool)
        self._block = BlockEvents(BlockRef(0, "", 0), (), [])
        self._last: dict[tuple[int, str], int] = {}
        self._operations: list[UserOperation] | None = None
        self._launching: set[Address] = set()
        self._fold: dict[type, Callable[[LoggedEvent, Spot], None]] = {
            PoolOpened: self._pool_opened,
            Priced: self._fold_price_set,
            Swapped: self._fold_swap,
            HookFeeTaken: self._hook_fee_taken,
            LiquidityMoved: self._liquidity_moved,
            CurveTraded: self._curve_traded,
            CurveBoughtBack: self._curve_bought_back,
            LaunchedToken: self._fold_launch,
            LaunchMoved: self._launch_moved,
            Transferred: self._fold_transfer,
        }

    def fold(self, blocks: Iterable[BlockEvents], meets_wallets: bool = True) -> Batch:
        """The batch of these blocks; all that is ``wanted`` is known. ``meets_wallets``: what they have of
        transactions is all of them, with who sent them."""
        for block in blocks:
            self._block = block
            self._prices.settle()
            self._last.clear()
            self._operations = None
            self._launching = {one.event.token for one in block.told if isinstance(one.event, LaunchedToken)}
            self._batch.blocks.append(block.ref)
            if meets_wallets:
                self._meet_wallets()
            for told in block.told:
                fold = self._fold.get(type(told.event))
                if fold is not None:
                    sent = TxHash(block.transactions[told.tx_index].hash)
                    fold(told, Spot(block.ref.number, told.log_index, block.ref.timestamp_s, sent))
        return self._batch

    # --- wallets -----------------------------------------------------------------------------------

    def _meet_wallets(self) -> None:
        """Every sender, everybody who was sent eth, and whose operations were run; in the transactions'
        order. Who acts had eth by then, whoever gave it: a later payment of one wei funds nobody."""
        operated: dict[int, list[Address]] = {}
        for told in self._block.told:
            if isinstance(told.event, Operated):
                operated.setdefault(told.tx_index, []).append(told.event.account)
        for place, tx in enumerate(self._block.transactions):
            sender = Address(tx.sender)
            if tx.to is not None and tx.has_value():
                wallet = Address(tx.to)
                self._meet(wallet)
                self._has_eth(wallet, sender if tx.is_transfer() and wallet != sender else None)
            for account in (sender, *operated.get(place, ())):
                self._meet(account)
                self._has_eth(account, None)

    def _meet(self, wallet: Address) -> None:
        if wallet not in self._known.met:
            self._known.met.add(wallet)
            ref = self._block.ref
            self._batch.met.append(WalletMet(wallet, ref.number, ref.timestamp_s))

    def _has_eth(self, wallet: Address, funder: Address | None) -> None:
        if wallet not in self._known.funded:
            self._known.funded.add(wallet)
            ref = self._block.ref
            self._batch.funded.append(WalletFunded(wallet, funder, ref.number, ref.timestamp_s))

    # --- pools and launches ------------------------------------------------------------------------

    def _pool_opened(self, told: LoggedEvent, spot: Spot) -> None:
        event = told.event
        assert isinstance(event, PoolOpened)
        token, quote, is_money = sides(event.currency0, event.currency1, self._known.quotes, self._contracts)
        since = spot.block_number if is_money else None
        key = event.fee_pips, event.tick_spacing, event.hook
        self._open(PoolPlace(event.at, event.kind, token, quote, since, *key, spot))

    def _open(self, pool: PoolPlace) -> None:
        if self._known.pools.get(pool.at) is None:
            self._known.pools[pool.at] = pool
            self._batch.pools.append(pool)

    def _fold_launch(self, told: LoggedEvent, spot: Spot) -> None:
        event = told.event
        assert isinstance(event, LaunchedToken)
        if self._known.launched.get(event.token):
            return
        self._known.launched[event.token] = True
        self._become_money(event.quote, spot.block_number)
        self._batch.launches.append(LaunchEvent(spot, event, self._sender(told)))
        if event.generation != 1:
            number = spot.block_number
            self._open(
                PoolPlace(event.at, launchpad_curve.KIND, event.token, event.quote, number, 0, 0, None, spot)
            )

    def _become_money(self, quote: Address, number: int) -> None:
        """What a launch was made against is money from here on, in pools that were there before, too."""
        if quote in self._money or quote in self._known.quotes:
            return
        self._known.quotes.add(quote)
        self._batch.new_quotes.append((quote, number))
        for at, pool in self._known.pools.items():
            if pool is not None and pool.in_money_from is None and quote in (pool.token, pool.quote):
                token = pool.quote if pool.token == quote else pool.token
                turned = pool._replace(token=token, quote=quote, in_money_from=number)
                self._known.pools[at] = turned
                self._batch.turned.append(turned)

    def _launch_moved(self, told: LoggedEvent, spot: Spot) -> None:
        event = told.event
        assert isinstance(event, LaunchMoved)
        if self._known.launched.get(event.token):
            self._batch.steps.append(LaunchStep(spot, event))

    def _fold_transfer(self, told: LoggedEvent, spot: Spot) -> None:
        event = told.event
        assert isinstance(event, Transferred)
        # A token moves before its launch is told: what it minted.
        if not (self._known.launched.get(event.token) or event.token in self._launching):
            return
        self._meet(event.recipient)
        if spot.at_s >= self._transfers_from_s:
            self._batch.transfers.append(Transfer(spot, event, self._doer(told)))

    # --- trades ------------------------------------------------------------------------------------

    def _curve_traded(self, told: LoggedEvent, spot: Spot) -> None:
        event = told.event
        assert isinstance(event, CurveTraded)
        pool = self._known.pools.get(event.at)
        if pool is None or pool.kind != launchpad_curve.KIND:
            return
        kept_raw = event.fee_raw + event.tax_raw
        trader = self._trader(told)
        self._trade(told, spot, pool, trader, event.buys, event.token_raw, event.quote_raw, kept_raw)

    def _curve_bought_back(self, told: LoggedEvent, spot: Spot) -> None:
        event = told.event
        assert isinstance(event, CurveBoughtBack)
        pool = self._known.pools.get(event.at)
        if pool is not None and pool.kind == launchpad_curve.KIND:
            self._batch.buybacks.append(Buyback(spot, pool.at, event.quote_raw))

    def _fold_price_set(self, told: LoggedEvent, spot: Spot) -> None:
        event = told.event
        assert isinstance(event, Priced)
        pool = self._known.pools.get(event.at)
        if pool is not None:
            self._prices.note_price_set(event, pool, self._block.ref)

    def _fold_swap(self, told: LoggedEvent, spot: Spot) -> None:
        event = told.event
        assert isinstance(event, Swapped)
        pool = self._known.pools.get(event.at)
        if pool is None or pool.in_money_from is None or pool.kind == launchpad_curve.KIND:
            return
        self._prices.note_swap(event, pool, self._block.ref)
        if event.sender == self._contracts.launchpad_hook:
            # It sells what it took: nobody's trade, and within one whose fee is still to be told.
            return
        # A fee that follows is of this swap, also where it is no trade.
        self._last.pop((told.tx_index, event.at), None)
        token_is_low = pool.token < pool.quote
        token, quote = event.amount0, event.amount1
        if not token_is_low:
            token, quote = quote, token
        if token == 0 or token * quote > 0:
            # What moved the token and brought or cost nothing is a trade for nothing.
            return
        if pool.token in self._money:
            # Money for money.
            return
        trader = self._trader(told)
        self._trade(told, spot, pool, trader, token < 0, abs(token), abs(quote))

    def _hook_fee_taken(self, told: LoggedEvent, spot: Spot) -> None:
        """The launchpad's hook took its fee off what the trade just before it brought, or on top of what it
        cost: the log of a swap does not know of it."""
        event = told.event
        assert isinstance(event, HookFeeTaken)
        place = self._last.pop((told.tx_index, event.at), None)
        if place is None:
            return
        trade = self._batch.trades[place]
        amount = -event.amount_raw
        if event.currency == trade.token:
            amount = amount if trade.buys else -amount
            self._batch.trades[place] = trade._replace(token_raw=max(0, trade.token_raw + amount))
        elif event.currency == trade.quote:
            amount = -amount if trade.buys else amount
            quote_raw = max(0, trade.quote_raw + amount)
            eth_wei, micro_usd = self._prices.worth(trade.quote, quote_raw)
            self._batch.trades[place] = trade._replace(
                quote_raw=quote_raw, eth_wei=eth_wei, micro_usd=micro_usd
            )

    def _trade(
        self,
        told: LoggedEvent,
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
        self._last[told.tx_index, pool.at] = len(self._batch.trades)
        self._batch.trades.append(
            TradeEvent(
                spot, pool.at, pool.token, pool.quote, trader, buys, token_raw, quote_raw, eth_wei,
                micro_usd, kept_raw,
            )
        )  # fmt: skip

    def _liquidity_moved(self, told: LoggedEvent, spot: Spot) -> None:
        event = told.event
        assert isinstance(event, LiquidityMoved)
        pool = self._known.pools.get(event.at)
        if pool is None or pool.in_money_from is None or pool.kind == launchpad_curve.KIND:
            return
        if event.liquidity_delta == 0:
            return
        token_raw, quote_raw = event.amount0, event.amount1
        if pool.token > pool.quote:
            token_raw, quote_raw = quote_raw, token_raw
        self._prices.note_deposit(pool, quote_raw or 0, self._block.ref)
        self._batch.liquidity.append(
            LiquidityChange(
                spot, pool.at, pool.token, event.owner, self._doer(told), event.tick_lower,
                event.tick_upper, event.liquidity_delta, token_raw, quote_raw,
            )
        )  # fmt: skip

    # --- whose -------------------------------------------------------------------------------------

    def _sender(self, told: LoggedEvent) -> Address:
        return Address(self._block.transactions[told.tx_index].sender)

    def _account(self, told: LoggedEvent) -> Address | None:
        """Whose operation it was, where an entry point stands between."""
        if self._operations is None:
            self._operations = operations(self._block.told)
        return account_at(self._operations, told.log_index)

    def _doer(self, told: LoggedEvent) -> Address:
        """Whose operation it was, else who sent the transaction."""
        return self._account(told) or self._sender(told)

    def _trader(self, told: LoggedEvent) -> Address:
        """Whose operation it was; whom the launch router bought for on a curve; else who sent the
        transaction. Whom anything else pays is no sign of who trades: anybody may have a famous wallet
        paid."""
        account = self._account(told)
        if account is not None:
            return account
        event, router = told.event, self._contracts.launchpad_router
        if isinstance(event, CurveTraded) and event.wallet == router and event.recipient not in self._nobody:
            return event.recipient
        return self._sender(told)
