"""Writes blocks into the database: one transaction per batch, which moves the cursor with its facts.
Enqueues the jobs that new facts require, in the same transaction. ``list_deeds`` (pure) lists all sells,
moves and burns of a batch; the database selects those of launches' insiders."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from roundtrip.chain.blocks.spans import BlockRead
from roundtrip.domain.base.events import Deed, TradeEvent, Transfer
from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address, BlockRef, TxHash
from roundtrip.domain.market.profit import ValuedFill, WalletPosition, fold
from roundtrip.store.check.evidence import checked_since
from roundtrip.store.index import cursor, curves, facts, insiders, liquidity, rewind, tokens
from roundtrip.store.index.positions import (
    PositionKey,
    fills_of,
    keys_after,
    positions,
    put_closings,
    put_positions,
    reset_positions,
)
from roundtrip.store.scorecard.failed_sells import checked_among
from roundtrip.store.server import jobs, partitions
from roundtrip.store.server.rows import Connection
from roundtrip.sync.batch import Batch, FoldContext, money
from roundtrip.sync.failed_sells import FailedCall, list_failed_sells
from roundtrip.sync.ledger import BatchFold, BlockEvents, MissingFacts, decode_blocks, list_missing
from roundtrip.sync.position_fold import fold_onto
from roundtrip.venues.base import Contracts
from roundtrip.venues.decode import Decoder
from roundtrip.venues.entry_point import ENTRY_POINTS

RECHECKED = timedelta(days=1)
"""Tokens whose last check is older are only checked again on request."""
RECHECK_EVERY_S = 60
"""Minimum time between rechecks of one token: anybody can remove liquidity bit by bit."""
MAX_RECHECKS = 3
"""Rechecks of this kind that wait at once: anybody can remove liquidity of many tokens. A token that finds no
room is checked by whoever asks, and by the guard of those who hold it."""
CHAIN: Mapping[str, bool] = {"chain": True}
"""The payload of these jobs, so that they can be counted."""
FAILED_EVERY_S = 600
"""Minimum time between looks at the failed sells of one wallet and token."""
MAX_FAILED_A_TOKEN = 16
"""Failed sells of one token that are looked at in ``FAILED_EVERY_S``: somebody who fails on purpose from many
wallets must not fill the queue."""
_MAX_REMEMBERED = 50_000


class RequestedJobs:
    """Enqueues the jobs of recent blocks. Remembers the tokens whose names are known or requested."""

    def __init__(self) -> None:
        self._known_tokens: set[Address] = set()
        self._recheck_from_s: dict[Address, int] = {}
        self._failed_from_s: dict[tuple[Address, Address], int] = {}
        self._failed_counts: dict[tuple[Address, int], int] = {}

    async def enqueue(self, connection: Connection, batch: Batch, failed: Sequence[FailedCall] = ()) -> None:
        """Enqueues a "token" job for each token whose own data (its name) was not read yet, a "recheck" job
        for each token that was checked within a day (by the chain's clock) and whose launch took a step, or
        whose pool lost liquidity, and "failed_sell" jobs for sells of tokens checked within a day."""
        mentioned = {launch.launched.token for launch in batch.launches}
        mentioned |= {pool.token for pool in batch.pools if pool.in_money_from is not None}
        mentioned |= {trade.token for trade in batch.trades}
        new = mentioned - self._known_tokens
        if new:
            unread = new - await tokens.read_among(connection, new)
            await jobs.enqueue_many(connection, "token", sorted(unread))
            if len(self._known_tokens) > _MAX_REMEMBERED:
                self._known_tokens.clear()
            self._known_tokens |= new
        now_s = batch.blocks[-1].timestamp_s
        changed = {step.moved.token for step in batch.steps}
        changed |= {change.token for change in batch.liquidity if change.liquidity_delta < 0}
        changed = {token for token in changed if now_s >= self._recheck_from_s.get(token, 0)}
        now = datetime.fromtimestamp(now_s, UTC)
        room = MAX_RECHECKS - await jobs.waiting(connection, "recheck", CHAIN, now) if changed else 0
        if room > 0:
            checked_lately = await checked_since(connection, changed, now - RECHECKED)
            # Those that were enqueued last come last.
            checked = sorted(checked_lately, key=lambda token: (self._recheck_from_s.get(token, 0), token))
            checked = checked[:room]
            await jobs.enqueue_many(connection, "recheck", checked, CHAIN, run_at=now)
            if len(self._recheck_from_s) > _MAX_REMEMBERED:
                self._recheck_from_s.clear()
            self._recheck_from_s.update((token, now_s + RECHECK_EVERY_S) for token in checked)
        await self._enqueue_failed_sells(connection, failed, now_s)

    async def _enqueue_failed_sells(
        self, connection: Connection, failed: Sequence[FailedCall], now_s: int
    ) -> None:
        from_s = self._failed_from_s
        calls = {
            (call.sold, call.sender): call
            for call in reversed(failed)
            if now_s >= from_s.get((call.sold, call.sender), 0)
        }
        if not calls:
            return
        since = datetime.fromtimestamp(now_s, UTC) - RECHECKED
        checked = await checked_among(connection, {sold for sold, _ in calls}, since)
        counts, window = self._failed_counts, now_s // FAILED_EVERY_S
        if len(from_s) > _MAX_REMEMBERED:
            from_s.clear()
        if len(counts) > _MAX_REMEMBERED:
            counts.clear()
        for key, call in calls.items():
            token = checked.get(call.sold)
            count = 0 if token is None else counts.get((token, window), 0)
            if token is not None and count < MAX_FAILED_A_TOKEN:
                counts[token, window] = count + 1
                from_s[key] = now_s + FAILED_EVERY_S
                await jobs.enqueue(connection, "failed_sell", call.tx_hash, {"token": token})


class _TxHolding(NamedTuple):
    """One wallet's amount of one token within one transaction."""

    tx_hash: TxHash
    token: Address
    wallet: Address


def list_deeds(
    trades: Sequence[TradeEvent], transfers: Sequence[Transfer], machinery: Collection[Address], from_s: int
) -> list[Deed]:
    """Every sell, every burn by a holder, and every transfer to an address that may keep the tokens, from
    ``from_s`` on. What a wallet sold in a transaction may pass through other addresses there: only the rest
    of what it sent to them counts as moved. ``machinery``: the network's own contracts; a transfer to one of
    them does not give tokens away."""
    sold: dict[_TxHolding, int] = defaultdict(int)
    places: dict[TxHash, set[str]] = defaultdict(set)
    deeds = []
    for trade in trades:
        if trade.buys or trade.spot.at_s < from_s:
            continue
        sold[_TxHolding(trade.spot.tx_hash, trade.token, trade.trader)] += trade.token_raw
        places[trade.spot.tx_hash].add(trade.at)
        deeds.append(
            Deed("sold", trade.spot, trade.token, trade.trader, None, trade.token_raw, trade.eth_wei, True)
        )
    moves = []
    for transfer in transfers:
        spot, (token, sender, recipient, amount_raw), by = transfer
        if spot.at_s < from_s or sender == ZERO_ADDRESS or amount_raw == 0:
            continue
        if recipient in BURN_ADDRESSES:
            deeds.append(Deed("burned", spot, token, sender, recipient, amount_raw, None, by == sender))
        elif recipient in machinery or recipient in places.get(spot.tx_hash, ()):
            holding = _TxHolding(spot.tx_hash, token, sender)
            if holding in sold:
                sold[holding] -= min(sold[holding], amount_raw)
        elif recipient not in (sender, token) and sender not in machinery:
            moves.append(transfer)
    return deeds + list(_subtract_sales(moves, sold))


def _subtract_sales(moves: Iterable[Transfer], sold: dict[_TxHolding, int]) -> Iterable[Deed]:
    """The moves, less the amounts that were sold in the same transaction."""
    for spot, (token, sender, recipient, amount_raw), by in moves:
        holding = _TxHolding(spot.tx_hash, token, sender)
        resold_raw = min(sold.get(holding, 0), amount_raw)
        if resold_raw:
            sold[holding] -= resold_raw
        if amount_raw > resold_raw:
            rest_raw = amount_raw - resold_raw
            yield Deed("moved", spot, token, sender, recipient, rest_raw, None, by == sender)


TRANSFERS_KEPT_S = 8 * 86_400
"""Seven days are kept, and one more is written: after a fork the newest block may be older."""
MAX_POSITIONS = 50_000
"""Cached between batches. When there are more, the cache is cleared and filled again by trades."""
_MAX_REFOLDED = 5_000
"""Positions that ``refold`` rebuilds at once."""
NO_PARENT = "0x" + "0" * 64
BEFORE_ALL = BlockRef(-1, NO_PARENT, 0)
"""The parent of the chain's first block."""


class CursorMoved(Exception):
    """The cursor is not at the parent of these blocks: another process writes, or the sync has not begun."""


class Writer:
    """Writes one chain into one database. Its caches match the database at the cursor; a failed transaction
    clears them."""

    def __init__(self, contracts: Contracts, eth_usd_pool: Address | None = None) -> None:
        self._contracts = contracts
        self._eth_usd_pool = eth_usd_pool
        self._decoder = Decoder(contracts)
        self._machinery = contracts.all_addresses() | ENTRY_POINTS
        self._context: FoldContext | None = None
        self._ids = cursor.Ids()
        self._positions: dict[PositionKey, WalletPosition] = {}
        self._requested_jobs = RequestedJobs()
        self._days: set[tuple[str, int]] = set()
        """Daily tables and the days, counted from 1970, of which they have a partition."""
        self._at: str | None = None
        """What the caches match: the database after the block with this hash, or ``older`` and the number of
        the next older block; None: they are empty."""
        self._changes = 0

    def forget(self) -> None:
        """Clears all caches."""
        self._at = None
        self._context = None
        self._requested_jobs = RequestedJobs()
        self._ids.clear()
        self._positions.clear()
        self._days.clear()

    async def append(self, connection: Connection, blocks: Sequence[BlockRead], newest_s: int) -> int:
        """Adds blocks that follow the cursor; returns the number of facts. ``newest_s``: the timestamp of the
        chain's newest block. Raises CursorMoved. After any error nothing of them is in the database."""
        parent_hash, last = blocks[0].parent_hash, blocks[-1].ref
        decoded = decode_blocks(blocks, self._decoder)
        try:
            async with connection.transaction():
                changes = await cursor.advance(connection, parent_hash, last)
                context = await self._prepare_context(connection, changes, decoded, parent_hash)
                recent_s = newest_s - TRANSFERS_KEPT_S
                ledger = BatchFold(context, self._contracts, parent_hash, recent_s, self._eth_usd_pool)
                batch = ledger.fold(decoded)
                await self._write(connection, batch)
                # Not for older launches: not every trade of their curves is known.
                await curves.fold(connection, batch.launches, batch.trades, batch.buybacks, self._ids)
                if last.timestamp_s >= recent_s:
                    deeds = list_deeds(batch.trades, batch.transfers, self._machinery, recent_s)
                    await insiders.put(connection, deeds, self._ids)
                    failed = list_failed_sells(decoded, self._machinery)
                    await self._requested_jobs.enqueue(connection, batch, failed)
                await cursor.keep_blocks(connection, batch.blocks)
                await liquidity.forget_states(connection, blocks[0].ref.number, last.number)
                await facts.announce(connection, last.number)
        except BaseException:
            self.forget()
            raise
        self._at = last.hash
        self._trim(context)
        return batch.rows()

    async def append_older(
        self, connection: Connection, at: cursor.Cursor, decoded: Sequence[BlockEvents], end: int
    ) -> int:
        """Adds launches and pools of the blocks from ``at.older_number`` to before ``end``; returns the
        number of facts. Notes no wallets and enqueues no jobs. Raises like ``append``."""
        try:
            async with connection.transaction():
                changes = await cursor.advance_older(connection, at, end)
                context = await self._prepare_context(
                    connection, changes, decoded, f"older {at.older_number}"
                )
                batch = BatchFold(context, self._contracts, "").fold(decoded, meets_wallets=False)
                await self._write(connection, batch)
        except BaseException:
            self.forget()
            raise
        self._at = f"older {end}"
        self._trim(context)
        return batch.rows()

    async def rewind(self, connection: Connection, at: BlockRef, to: BlockRef) -> None:
        """Deletes every fact above block ``to`` and moves the cursor from ``at`` back to it. Raises
        CursorMoved."""
        self.forget()
        async with connection.transaction():
            if await cursor.advance(connection, at.hash, to) is None:
                raise CursorMoved
            # If even the first block was replaced, the blocks before it may be replaced, too.
            kept = to
            if await cursor.forget_older(connection, to.number):
                kept = BEFORE_ALL
                await cursor.delete_position_base(connection)
            touched = await keys_after(connection, kept.number, kept.timestamp_s)
            await rewind.take_away(connection, kept, at.number)
            await refold(connection, touched, self._contracts)
            await facts.announce(connection, to.number)

    # --- what the database holds -------------------------------------------------------------------

    async def _prepare_context(
        self, connection: Connection, changes: int | None, decoded: Sequence[BlockEvents], at: str
    ) -> FoldContext:
        """The context to fold these blocks with, which follow ``at``. ``changes``: how often another process
        changed folded facts; None: the cursor has moved. Raises CursorMoved."""
        if changes is None:
            raise CursorMoved
        # Another process wrote in between, or changed folded facts.
        if changes != self._changes or at != self._at:
            self.forget()
            self._changes = changes
        context = await self._read_context(connection)
        await self._read_missing(connection, context, list_missing(decoded, context))
        return context

    async def _read_context(self, connection: Connection) -> FoldContext:
        if self._context is None:
            quotes, prices = await cursor.launch_quotes(connection), await cursor.newest_prices(connection)
            self._context = FoldContext(quotes, prices)
        return self._context

    async def _read_missing(
        self, connection: Connection, context: FoldContext, missing: MissingFacts
    ) -> None:
        """Reads what the batch refers to and the context lacks."""
        if missing.pools:
            pools = await cursor.pools_at(connection, missing.pools, self._ids)
            context.pools.update((at, pools.get(at)) for at in missing.pools)
            context.states.update(await liquidity.newest_states(connection, pools, self._ids))
        # This searches all pools, so only for quotes that may become money with this batch.
        quotes = missing.quotes - money(self._contracts)
        if quotes:
            context.pools.update(await cursor.pools_without_money(connection, quotes, self._ids))
        if missing.tokens:
            launched = await cursor.launched_among(connection, missing.tokens)
            context.launched.update((token, token in launched) for token in missing.tokens)

    def _trim(self, context: FoldContext) -> None:
        context.trim()
        self._ids.trim()
        if len(self._positions) > MAX_POSITIONS:
            self._positions.clear()

    # --- what the batch adds -----------------------------------------------------------------------

    async def _write(self, connection: Connection, batch: Batch) -> None:
        ids, contracts = self._ids, self._contracts
        await facts.intern(connection, _addresses(batch), ids)
        await facts.put_pools(connection, batch.pools, ids)
        await self._read_pool_ids(connection, batch)
        await facts.reorient_pools(connection, batch.new_quotes, batch.reoriented, ids)
        await facts.put_launches(connection, batch.launches, batch.steps, ids)
        await self._create_partitions(connection, batch)
        await facts.put_trades(connection, batch.trades, contracts, ids)
        await curves.put_buybacks(connection, batch.buybacks, ids)
        await facts.put_liquidity(connection, batch.liquidity, ids)
        if batch.liquidity:
            first = batch.liquidity[0].spot
            await liquidity.fold_positions(connection, first.block_number, first.at_s)
        await facts.put_position_transfers(connection, batch.position_transfers, ids)
        await facts.put_states(connection, batch.states, ids)
        await facts.put_transfers(connection, batch.transfers, ids)
        await facts.put_prices(connection, batch.prices.values(), ids)
        await facts.put_origins(connection, batch.met, batch.funded, ids)
        await self._fold_positions(connection, batch)

    async def _read_pool_ids(self, connection: Connection, batch: Batch) -> None:
        """Reads the database ids of the batch's pools that are not cached."""
        mentioned = {row.at for row in batch.trades} | {row.at for row in batch.liquidity}
        mentioned |= {row.at for row in batch.buybacks} | {at for at, _ in batch.states}
        mentioned |= {row.at for row in batch.reoriented} | {row.at for row in batch.prices.values()}
        missing = mentioned - self._ids.pools.keys()
        if missing:
            await cursor.pools_at(connection, missing, self._ids)

    async def _create_partitions(self, connection: Connection, batch: Batch) -> None:
        for table, rows in (
            ("facts.trade", batch.trades),
            ("facts.liquidity", batch.liquidity),
            ("facts.transfer", batch.transfers),
        ):
            for day in sorted({row.spot.at_s // partitions.DAY_S for row in rows}):
                if (table, day) not in self._days:
                    at_s = day * partitions.DAY_S
                    await partitions.ensure(connection, table, at_s, at_s)  # type: ignore[arg-type]
                    self._days.add((table, day))

    async def _fold_positions(self, connection: Connection, batch: Batch) -> None:
        ids, fills = self._ids.addresses, []
        for spot, _, token, _, trader, buys, token_raw, _, eth_wei, micro_usd, _ in batch.trades:
            # tuple.__new__ takes half as long as calling the class.
            key = tuple.__new__(PositionKey, (ids[trader], ids[token]))
            fills.append((key, tuple.__new__(ValuedFill, (spot, buys, token_raw, eth_wei, micro_usd))))
        keys = {key for key, _ in fills}
        folded = self._positions
        folded.update(await positions(connection, keys - folded.keys()))
        closed = []
        for key, fill in fills:
            folded[key], closing = fold(folded.get(key), fill)
            if closing is not None:
                closed.append((key, closing))
        await put_positions(connection, {key: folded[key] for key in keys})
        await put_closings(connection, closed)


async def refold(connection: Connection, keys: Sequence[PositionKey], contracts: Contracts) -> None:
    """Rebuilds the positions of these keys from their trades, on top of the base of pruned trades."""
    for first in range(0, len(keys), _MAX_REFOLDED):
        chunk = keys[first : first + _MAX_REFOLDED]
        await reset_positions(connection, chunk)
        await fold_onto(connection, "position", fills_of(connection, chunk, contracts))


def _addresses(batch: Batch) -> Iterable[Address]:
    addresses: set[Address] = {quote for quote, _ in batch.new_quotes}
    for pool in batch.pools:
        addresses.update((pool.token, pool.quote))
        if pool.hook is not None:
            addresses.add(pool.hook)
    for pool in batch.reoriented:
        addresses.update((pool.token, pool.quote))
    for launch in batch.launches:
        launched = launch.launched
        addresses.update((launched.token, launched.deployer, launched.quote, launch.sender))
    addresses.update(step.moved.token for step in batch.steps)
    for trade in batch.trades:
        addresses.add(trade.trader)
        addresses.add(trade.token)
    for change in batch.liquidity:
        addresses.update((change.owner, change.sender))
    for given in batch.position_transfers:
        addresses.update((given.moved.manager, given.moved.sender, given.moved.recipient))
    for transfer in batch.transfers:
        moved = transfer.moved
        addresses.update((moved.token, moved.sender, moved.recipient))
    addresses.update(price.quote for price in batch.prices.values())
    addresses.update(row.wallet for row in batch.met)
    for row in batch.funded:
        addresses.add(row.wallet)
        if row.funder is not None:
            addresses.add(row.funder)
    return addresses
