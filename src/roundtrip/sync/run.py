"""Follows the chain: what is missing in wide spans, then every new block, through whatever happens."""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import asyncpg
import structlog

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.head_feed import Feed
from roundtrip.chain.blocks.span_stream import ForkSeen, spans
from roundtrip.chain.blocks.spans import BlockRead, NodeLied, read_refs
from roundtrip.chain.rpc.background import is_cancelled
from roundtrip.chain.rpc.client import RpcNode
from roundtrip.domain.base.errors import NodeFault, RoundtripError
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.store.index import cursor
from roundtrip.store.server.rows import Connection
from roundtrip.store.server.sync_lock import SYNC_LOCK
from roundtrip.venues.base import Contracts

from .apply import BEFORE_ALL, CursorMoved, Writer
from .fork import ForkTooDeep, NodeBehind, OtherChain, first_hash_of, parting
from .history_backfill import older_width, read_older

_LOCK_TRY_S = 0.25
_FIRST_WAIT_S, _MOST_WAIT_S = 0.2, 5.0
_FAR_BEHIND_BLOCKS = 1_000
_SHRUNK_S = 1.0
"""A local chain that is still shorter than what was followed after so long has been taken back."""
_IN_FLIGHT = 4
log = structlog.get_logger(__name__)

DATABASE_FAULTS = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.TransactionRollbackError,
    asyncpg.LockNotAvailableError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
    TimeoutError,
    OSError,
)
"""The database is away, or busy: it is tried again."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the sync stands. ``rows``: facts added since the start; ``head``: the newest block heard of.
    ``older``: the block is from before the first one, of which launches and pools are read only."""

    number: int
    head: int
    rows: int
    older: bool = False


@dataclass(frozen=True, slots=True)
class Following:
    """What is followed, and how. ``first``: where an empty database begins; None: ``look_back_blocks`` behind
    the newest block. ``deepest_fork``: a fork of more blocks is not believed; None: any is. ``is_local``: the
    chain may have been begun anew, or become shorter. ``listening``: opens the feed, for as long as the sync
    leads."""

    node: RpcNode
    feed: Feed
    chain_id: int
    contracts: Contracts
    first: int | None
    look_back_blocks: int
    deepest_fork: int | None
    is_local: bool = False
    eth_usd_pool: Address | None = None
    tell: Callable[[Progress], None] = lambda _: None
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep
    listening: Callable[[], contextlib.AbstractAsyncContextManager[object]] = contextlib.nullcontext
    measures: Measures = field(default_factory=Measures)


class Sync:
    """``connect``: opens a connection of its own."""

    def __init__(self, following: Following, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._following = following
        self._connect = connect
        self._writer = Writer(following.contracts, following.eth_usd_pool)
        self._width = Width()
        self._older_width = older_width()
        self._rows = 0
        self._failures = 0
        self._leads: bool | None = None
        """What was told last; None: nothing yet."""
        self._is_ours = self._looked = False
        """Whether the node was seen to be of this chain; and to have what was followed of it, since there was
        reason to doubt that."""
        self._number: int | None = None
        """The newest block that this one wrote down."""
        following.measures.watch("sync", "leads", lambda: int(self._leads is True))
        following.measures.watch("sync", "block", lambda: self._number)

    async def run(self, stays: bool = False) -> None:
        """Until it is cancelled; it stands by as long as another one leads. Raises OtherChain when the
        database is another chain's; one that ``stays`` waits for that to end."""
        while True:
            try:
                await self._session()
            except OtherChain as fault:
                if not stays:
                    raise
                log.warning("the chain is not followed", error=str(fault))
            except DATABASE_FAULTS as fault:
                log.warning("the database is away", error=type(fault).__name__)
            except Exception:
                # Whatever it was, the chain goes on: without the sync there are no alerts at all.
                log.exception("the sync failed, and begins again where it stands")
            if is_cancelled():
                raise asyncio.CancelledError
            self._writer.forget()
            await self._pause()

    async def _session(self) -> None:
        connection = await self._connect()
        try:
            await self._lead(connection)
            async with self._following.listening():
                await self._follow(connection)
        finally:
            with contextlib.suppress(*DATABASE_FAULTS):
                await connection.close(timeout=2.0)

    async def _follow(self, connection: Connection) -> None:
        # What a crash loses of it is read from the chain again, since the cursor is lost with it.
        await connection.execute("SET synchronous_commit = off")
        self._looked = self._is_ours = False
        while True:
            try:
                if not self._is_ours:
                    await self._check_whose(connection)
                    self._is_ours = True
                if not self._looked:
                    await self._look_for_a_fork(connection)
                    self._looked = True
                await self._step(connection)
                self._failures = 0
            except CursorMoved:
                self._writer.forget()
            except ForkSeen:
                await self._again(self._looked)
                self._looked = False
            except (RoundtripError, ForkTooDeep) as fault:
                tell = log.debug if isinstance(fault, NodeBehind) else log.warning
                tell("the node could not be followed", error=str(fault))
                await self._pause()

    async def _lead(self, connection: Connection) -> None:
        """Takes the lock, which lasts as long as this connection does: all that is written goes over it, so
        that nobody writes who does not lead. Until then the node is asked only whose it is, and once."""
        while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", SYNC_LOCK):
            if self._leads is not False:
                await self._must_fit(connection)
                self._leads = False
                log.info("another sync leads, this one stands by", pid=os.getpid())
            self._failures = 0
            await self._following.wait(_LOCK_TRY_S)
        if not self._leads:
            self._leads = True
            log.info("this sync leads", pid=os.getpid())

    async def _must_fit(self, connection: Connection) -> None:
        """Raises OtherChain as whoever leads does; what the node cannot tell now is asked again then."""
        with contextlib.suppress(RoundtripError):
            await self._is_to_adopt(connection)

    async def _pause(self) -> None:
        self._failures += 1
        await self._following.wait(min(_MOST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(self._failures - 1, 8)))

    async def _again(self, at_once: bool) -> None:
        """The first time a fork is looked for at once; two nodes in turn may tell of one that is none."""
        if self._failures or not at_once:
            await self._pause()
        self._failures = max(self._failures, 1)

    async def _step(self, connection: Connection) -> None:
        """Reads what is there to read; else waits for a block."""
        feed = self._following.feed
        at = await cursor.cursor(connection)
        if at is None:
            await self._begin(connection)
            return
        if not at.is_whole():
            await self._read_older(connection, at)
            return
        if feed.newest() > at.block.number:
            await self._read(connection, at.block)
            return
        hint = await feed.next(at.block.number)
        if hint.removed:
            self._looked = False

    async def _begin(self, connection: Connection) -> None:
        following, first = self._following, self._following.first
        if first is None:
            newest = (await following.feed.next(-1)).number
            first = max(0, newest - following.look_back_blocks)
        parent, first_hash = await self._parent_of(first), await self._first_hash()
        await cursor.begin(connection, first, parent, first_hash, following.is_local)

    async def _first_hash(self) -> str:
        return await first_hash_of(self._following.node, self._following.chain_id)

    async def _check_whose(self, connection: Connection) -> None:
        """Raises OtherChain where the database is another chain's, but for a local one that was made anew."""
        first_hash = await self._is_to_adopt(connection)
        if first_hash is not None:
            await cursor.adopt(connection, first_hash)

    async def _is_to_adopt(self, connection: Connection) -> str | None:
        """The first block's hash of a local chain that was made anew; None: the database is this chain's."""
        first_hash, at = await self._first_hash(), await cursor.cursor(connection)
        if at is None or at.first_hash == first_hash:
            return None
        if not at.is_local or not self._following.is_local:
            raise OtherChain
        return first_hash

    async def _parent_of(self, first: int) -> BlockRef:
        if first == 0:
            return BEFORE_ALL
        (found,) = await read_refs(self._following.node, [first - 1])
        if found is None:
            raise NodeFault(f"it has no block {first - 1}, where the sync is to begin")
        return found[0]

    async def _read(self, connection: Connection, at: BlockRef) -> None:
        """Appends what is known to follow block ``at``."""
        node, feed = self._following.node, self._following.feed
        newest_s, before_s = await self._newest_s(at), at.timestamp_s
        stream = spans(node, at.number + 1, feed.newest, self._width, _IN_FLIGHT, at.hash)
        async with contextlib.aclosing(stream):
            async for blocks in stream:
                last = blocks[-1].ref
                if blocks[0].ref.timestamp_s < before_s:
                    raise NodeLied(f"its block {blocks[0].ref.number} is older than the one before it")
                before_s = last.timestamp_s
                newest = max(newest_s, last.timestamp_s)
                self._rows += await self._append(connection, blocks, newest)
                self._failures = 0
                self._following.tell(Progress(last.number, feed.newest(), self._rows))

    async def _append(self, connection: Connection, blocks: Sequence[BlockRead], newest_s: int) -> int:
        measures, began_s = self._following.measures, time.perf_counter()
        with measures.span("sync", "batch", is_root=True) as span:
            span.note("blocks", len(blocks))
            rows = await self._writer.append(connection, blocks, newest_s)
            span.note("rows", rows)
        self._number = blocks[-1].ref.number
        measures.observe("sync", "batch", "written", time.perf_counter() - began_s)
        measures.count("sync_blocks", by=len(blocks))
        measures.count("sync_facts", by=rows)
        return rows

    async def _read_older(self, connection: Connection, at: cursor.Cursor) -> None:
        """Launches and pools of the blocks before the first."""
        following, width = self._following, self._older_width
        given = (following.node, following.contracts, self._writer, connection)
        stream = read_older(*given, at, width, _IN_FLIGHT)
        async with contextlib.aclosing(stream):
            async for number, rows in stream:
                self._rows += rows
                self._failures = 0
                following.tell(Progress(number, following.feed.newest(), self._rows, older=True))

    async def _newest_s(self, at: BlockRef) -> int:
        """When the newest block was made; far behind it decides what is too old to be kept."""
        newest = self._following.feed.newest()
        if newest - at.number < _FAR_BEHIND_BLOCKS:
            return 0
        (found,) = await read_refs(self._following.node, [newest])
        return 0 if found is None else found[0].timestamp_s

    async def _look_for_a_fork(self, connection: Connection) -> None:
        """Goes back to the newest block that the node still has, where it has not the one at the cursor."""
        at = await cursor.cursor(connection)
        if at is None:
            return
        following, deepest = self._following, self._following.deepest_fork
        kept = await cursor.blocks_kept(connection)
        if deepest is not None:
            kept = [block for block in kept if block.number >= at.block.number - deepest]
        found = await parting(following.node, kept, at.start_number)
        to = found.last or await self._parent_of(at.start_number)
        if to.hash == at.block.hash:
            return
        if not found.replaced:
            if not following.is_local:
                raise NodeBehind
            await following.wait(_SHRUNK_S)
            # It may grow meanwhile, and by the same blocks: a chain that was started anew from where it was
            # once kept makes its empty ones as before, and is behind for as long as it once ran.
            found = await parting(following.node, kept, at.start_number)
            to = found.last or await self._parent_of(at.start_number)
            if to.hash == at.block.hash:
                return
        if to.timestamp_s < at.trades_from_s:
            # Of trades from before then only what they made of positions is left: all is read anew.
            to = await self._parent_of(at.start_number)
        depth = at.block.number - to.number
        if deepest is not None and depth > deepest:
            # Who has none of these blocks yet is no fork: nobody is told to believe one.
            if kept and following.feed.newest() < kept[0].number:
                raise NodeBehind
            raise ForkTooDeep(deepest)
        log.warning("the chain was reorganised", depth=depth, to=to.number)
        await self._writer.rewind(connection, at.block, to)
