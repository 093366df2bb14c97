"""Blocks into the database: one transaction a batch, and the cursor moves with its facts or not at all."""

from collections.abc import Iterable, Sequence

from roundtrip.chain.blocks.spans import BlockRead
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.market.profit import ValuedFill, WalletPosition, fold
from roundtrip.store.index import cursor, curves, facts, insiders, rewind
from roundtrip.store.index.positions import (
    PositionClosing,
    PositionKey,
    fills_of,
    keys_after,
    positions,
    put_closings,
    put_positions,
    reset_positions,
)
from roundtrip.store.server import partitions
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts
from roundtrip.venues.decode import Decoder

from .batch import Batch
from .fold_context import FoldContext, money
from .insider_activity import Machinery, done_by
from .ledger import BatchFold, BlockEvents, MissingFacts, list_wanted, told_by
from .position_fold import fold_onto
from .requested_jobs import RequestedJobs

TRANSFERS_KEPT_S = 8 * 86_400
"""Seven days are kept. One more when they are written: of a fork the newest block may be older."""
MOST_POSITIONS = 50_000
"""Remembered between batches. Past it all are forgotten, and read again as they are traded."""
_MOST_REFOLDED = 5_000
NO_PARENT = "0x" + "0" * 64
BEFORE_ALL = BlockRef(-1, NO_PARENT, 0)
"""What the chain's first block follows."""


class CursorMoved(Exception):
    """The cursor is not where these blocks go on from: somebody else writes, too, or nothing began yet."""


class Writer:
    """Writes one chain into one database. What it remembers is true of the database at the cursor; where a
    transaction fails it forgets everything and reads it again."""

    def __init__(self, contracts: Contracts, eth_usd_pool: Address | None = None) -> None:
        self._contracts = contracts
        self._eth_usd_pool = eth_usd_pool
        self._decoder = Decoder(contracts)
        self._machinery = Machinery.of(contracts)
        self._known: FoldContext | None = None
        self._ids = cursor.Ids()
        self._positions: dict[PositionKey, WalletPosition] = {}
        self._wishes = RequestedJobs()
        self._at: str | None = None
        self._changes = 0

    def forget(self) -> None:
        """Everything that is remembered."""
        self._at = None
        self._known = None
        self._wishes = RequestedJobs()
        self._ids.clear()
        self._positions.clear()

    async def append(self, connection: Connection, blocks: Sequence[BlockRead], newest_s: int) -> int:
        """Adds blocks that follow the cursor, and gives how many facts that were. ``newest_s``: when the
        newest block of the chain was made. Raises CursorMoved; then, and with any other error, nothing of
        them is in the database."""
        parent_hash, last = blocks[0].parent_hash, blocks[-1].ref
        told = told_by(blocks, self._decoder)
        try:
            async with connection.transaction():
                changes = await cursor.advance(connection, parent_hash, last)
                known = await self._known_for(connection, changes, told, parent_hash)
                recent_s = newest_s - TRANSFERS_KEPT_S
                ledger = BatchFold(known, self._contracts, parent_hash, recent_s, self._eth_usd_pool)
                batch = ledger.fold(told)
                await self._put(connection, batch)
                # Not of what is older: of its curves not every trade is known.
                await curves.fold(connection, batch.launches, batch.trades, batch.buybacks, self._ids)
                if last.timestamp_s >= recent_s:
                    deeds = done_by(batch.trades, batch.transfers, self._machinery, recent_s)
                    await insiders.put(connection, deeds, self._ids)
                    await self._wishes.of(connection, batch)
                await cursor.keep_blocks(connection, batch.blocks)
                await facts.announce(connection, last.number)
        except BaseException:
            self.forget()
            raise
        self._at = last.hash
        self._trim(known)
        return batch.rows()

    async def append_older(
        self, connection: Connection, at: cursor.Cursor, told: Sequence[BlockEvents], end: int
    ) -> int:
        """Adds launches and pools of the blocks from ``at.older_number`` to before ``end``, and gives how
        many facts that were. No wallets are met, and nothing is wished for. Raises as ``append``."""
        try:
            async with connection.transaction():
                changes = await cursor.advance_older(connection, at, end)
                known = await self._known_for(connection, changes, told, f"older {at.older_number}")
                batch = BatchFold(known, self._contracts, "").fold(told, meets_wallets=False)
                await self._put(connection, batch)
        except BaseException:
            self.forget()
            raise
        self._at = f"older {end}"
        self._trim(known)
        return batch.rows()

    async def rewind(self, connection: Connection, at: BlockRef, to: BlockRef) -> None:
        """Takes every fact above block ``to`` away; the cursor goes from ``at`` back there. Raises
        CursorMoved."""
        self.forget()
        async with connection.transaction():
            if await cursor.advance(connection, at.hash, to) is None:
                raise CursorMoved
            # Where not even the first block is left, older ones may be others, too.
            kept = to
            if await cursor.forget_older(connection, to.number):
                kept = BEFORE_ALL
                await cursor.forget_retired(connection)
            touched = await keys_after(connection, kept.number, kept.timestamp_s)
            await rewind.take_away(connection, kept, at.number)
            await refold(connection, touched, self._contracts)
            await facts.announce(connection, to.number)

    # --- what was before ---------------------------------------------------------------------------

    async def _known_for(
        self, connection: Connection, changes: int | None, told: Sequence[BlockEvents], at: str
    ) -> FoldContext:
        """What has to be known of before to fold these blocks, which go on from ``at``. ``changes``: how
        often somebody else changed what was folded; None: the cursor has moved. Raises CursorMoved."""
        if changes is None:
            raise CursorMoved
        # Somebody else wrote in between, or changed what was folded before.
        if changes != self._changes or at != self._at:
            self.forget()
            self._changes = changes
        known = await self._knows(connection)
        await self._learn(connection, known, list_wanted(told, known))
        return known

    async def _knows(self, connection: Connection) -> FoldContext:
        if self._known is None:
            quotes, prices = await cursor.launch_quotes(connection), await cursor.newest_prices(connection)
            self._known = FoldContext(quotes, prices)
        return self._known

    async def _learn(self, connection: Connection, known: FoldContext, want: MissingFacts) -> None:
        """Reads what the batch speaks of and is not remembered."""
        if want.pools:
            found = await cursor.pools_at(connection, want.pools, self._ids)
            known.pools.update((at, found.get(at)) for at in want.pools)
        # Looked for among all pools, so only what may become money with this batch.
        quotes = want.quotes - money(self._contracts)
        if quotes:
            known.pools.update(await cursor.unpaid_pools_of(connection, quotes, self._ids))
        if want.tokens:
            launched = await cursor.launched_among(connection, want.tokens)
            known.launched.update((token, token in launched) for token in want.tokens)

    def _trim(self, known: FoldContext) -> None:
        known.trim()
        self._ids.trim()
        if len(self._positions) > MOST_POSITIONS:
            self._positions.clear()

    # --- what is new -------------------------------------------------------------------------------

    async def _put(self, connection: Connection, batch: Batch) -> None:
        ids, contracts = self._ids, self._contracts
        await facts.intern(connection, _addresses(batch), ids)
        await facts.put_pools(connection, batch.pools, ids)
        await self._number_places(connection, batch)
        await facts.turn_pools(connection, batch.new_quotes, batch.turned, ids)
        await facts.put_launches(connection, batch.launches, batch.steps, ids)
        await self._make_days(connection, batch)
        await facts.put_trades(connection, batch.trades, contracts, ids)
        await curves.put_buybacks(connection, batch.buybacks, ids)
        await facts.put_liquidity(connection, batch.liquidity, ids)
        await facts.put_transfers(connection, batch.transfers, ids)
        await facts.put_prices(connection, batch.prices.values(), ids)
        await facts.put_origins(connection, batch.met, batch.funded, ids)
        await self._fold_positions(connection, batch)

    async def _number_places(self, connection: Connection, batch: Batch) -> None:
        """The numbers of pools that are known by their place alone: forgotten ones are read again."""
        spoken = {row.at for row in batch.trades} | {row.at for row in batch.liquidity}
        spoken |= {row.at for row in batch.buybacks}
        spoken |= {row.at for row in batch.turned} | {row.at for row in batch.prices.values()}
        missing = spoken - self._ids.pools.keys()
        if missing:
            await cursor.pools_at(connection, missing, self._ids)

    async def _make_days(self, connection: Connection, batch: Batch) -> None:
        for table, rows in (
            ("facts.trade", batch.trades),
            ("facts.liquidity", batch.liquidity),
            ("facts.transfer", batch.transfers),
        ):
            days = sorted({row.spot.at_s // partitions.DAY_S for row in rows})
            for day in days:
                at_s = day * partitions.DAY_S
                await partitions.ensure(connection, table, at_s, at_s)  # type: ignore[arg-type]

    async def _fold_positions(self, connection: Connection, batch: Batch) -> None:
        known, fills = self._ids.addresses, []
        for row in batch.trades:
            key = PositionKey(known[row.trader], known[row.token])
            fills.append((key, ValuedFill(row.spot, row.buys, row.token_raw, row.eth_wei, row.micro_usd)))
        keys = {key for key, _ in fills}
        found = self._positions
        found.update(await positions(connection, keys - found.keys()))
        closed = []
        for key, fill in fills:
            found[key], closing = fold(found.get(key), fill)
            if closing is not None:
                closed.append(PositionClosing(key, closing))
        await put_positions(connection, {key: found[key] for key in keys})
        await put_closings(connection, closed)


async def refold(connection: Connection, keys: Sequence[PositionKey], contracts: Contracts) -> None:
    """The positions of these keys made again from their trades, and from where trades are gone."""
    for first in range(0, len(keys), _MOST_REFOLDED):
        some = keys[first : first + _MOST_REFOLDED]
        await reset_positions(connection, some)
        await fold_onto(connection, "position", fills_of(connection, some, contracts))


def _addresses(batch: Batch) -> Iterable[Address]:
    """Everyone who stands in a row of it."""
    found: set[Address] = {quote for quote, _ in batch.new_quotes}
    for pool in batch.pools:
        found.update((pool.token, pool.quote))
        if pool.hook is not None:
            found.add(pool.hook)
    for pool in batch.turned:
        found.update((pool.token, pool.quote))
    for launch in batch.launches:
        told = launch.launched
        found.update((told.token, told.deployer, told.quote, launch.sender))
    found.update(step.moved.token for step in batch.steps)
    for trade in batch.trades:
        found.add(trade.trader)
        found.add(trade.token)
    for change in batch.liquidity:
        found.update((change.owner, change.sender))
    for transfer in batch.transfers:
        moved = transfer.moved
        found.update((moved.token, moved.sender, moved.recipient))
    found.update(price.quote for price in batch.prices.values())
    found.update(one.wallet for one in batch.met)
    for one in batch.funded:
        found.add(one.wallet)
        if one.funder is not None:
            found.add(one.funder)
    return found
