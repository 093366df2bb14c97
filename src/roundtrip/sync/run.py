"""Follows the chain: missing blocks in wide spans, then every new block; recovers from any error. Finds
where the followed chain and the node's chain fork. Reads launches and pools from before the first full
block, too: later blocks trade in these pools."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import asyncpg
import structlog

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.block_ranges import ranges
from roundtrip.chain.blocks.head_feed import Feed
from roundtrip.chain.blocks.past_logs import LogFilter, LogRange, PastBlock, read_past
from roundtrip.chain.blocks.span_stream import ForkSeen, spans
from roundtrip.chain.blocks.spans import NO_INPUT, BlockRead, NodeLied, SpanTx, read_refs
from roundtrip.chain.rpc.background import is_cancelled
from roundtrip.chain.rpc.client import RpcCall, RpcNode, quantity
from roundtrip.domain.base.errors import CannotRun, NodeFault, RoundtripError
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.store.index import cursor
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.server.rows import Connection
from roundtrip.store.server.sync_lock import SYNC_LOCK
from roundtrip.sync.apply import BEFORE_ALL, CursorMoved, Writer
from roundtrip.sync.ledger import BlockEvents, LoggedEvent
from roundtrip.venues import LISTINGS, launchpad
from roundtrip.venues.base import Contracts
from roundtrip.venues.decode import Decoder

_HEADERS_AT_ONCE = 128


class NodeBehind(NodeFault):
    """The node has not reached the followed head yet; it has no other block there."""

    def __init__(self) -> None:
        super().__init__("the node is behind the index")


class ForkTooDeep(Exception):
    """More blocks were replaced than the limit allows: the sync asks again and does not rewind."""

    def __init__(self, deepest: int) -> None:
        super().__init__(
            f"the node's chain differs for more than {deepest} blocks, which is more than a reorg may "
            "replace; if the node is right, run roundtrip sync --any-fork"
        )


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """``last``: the newest block that both chains have; None: none of the kept ones. ``replaced``: the node
    has another block after it; False: it has none, so it may only be behind."""

    last: BlockRef | None
    replaced: bool


class OtherChain(CannotRun):
    """The database follows another chain than the node."""

    def __init__(self) -> None:
        super().__init__(
            "this database holds a different chain than the node's; use another database, or empty this one "
            "with roundtrip forget"
        )


async def read_genesis_hash(node: RpcNode, chain_id: int) -> str:
    """The hash of the node's block 0, which must be the parent of its block 1. The database stores it to
    recognise its chain later. Raises NodeFault, also for another chain id."""
    (chain,) = await node.batch([RpcCall("eth_chainId", [])], budgeted=False)
    if quantity(chain) != chain_id:
        raise NodeFault(f"the node is on chain {quantity(chain)}, not {chain_id}")
    first, second = await read_refs(node, [0, 1])
    if first is None:
        raise NodeFault("the node does not have block 0")
    if second is not None and second[1] != first[0].hash:
        raise NodeLied("the node's block 1 does not follow its block 0")
    return first[0].hash


async def find_fork_point(node: RpcNode, kept: Sequence[BlockRef], first: int) -> ForkPoint:
    """Finds the newest of the followed blocks ``kept`` (oldest first) that the node has. ``first``: the
    number of the first block that was ever followed. Raises NodeFault."""
    last = await _find_last_common(node, kept)
    number = first - 1 if last is None else last.number
    # Read both again in one batch: one wrong answer must not cause a rewind.
    before, after = await read_refs(node, [max(number, 0), number + 1])
    if last is not None and (before is None or before[0].hash != last.hash):
        raise NodeLied(f"the node contradicts itself about block {number}")
    if after is not None and last is not None and after[1] != last.hash:
        raise NodeLied(f"the node's block {number + 1} does not follow its block {number}")
    if after is not None and any(block.hash == after[0].hash for block in kept[-_HEADERS_AT_ONCE:]):
        raise NodeLied(f"the node contradicts itself about block {number + 1}")
    return ForkPoint(last, after is not None)


async def _find_last_common(node: RpcNode, kept: Sequence[BlockRef]) -> BlockRef | None:
    for end in range(len(kept), 0, -_HEADERS_AT_ONCE):
        chunk = kept[max(0, end - _HEADERS_AT_ONCE) : end]
        # Having none of them is no error: the node's chain may be shorter. Every node has block 0.
        _, *refs = await read_refs(node, [0, *(block.number for block in chunk)])
        for block, ref in zip(reversed(chunk), reversed(refs), strict=True):
            if ref is not None and ref[0].hash == block.hash:
                return block
    return None


_FIRST_BLOCKS = 10_000
"""All nodes that were tried accept it; it holds a few hundred launches and pools."""
_MAX_BLOCKS = 200_000


def older_width() -> Width:
    """The adaptive number of older blocks per request."""
    return Width(_FIRST_BLOCKS, _MAX_BLOCKS)


async def read_older(
    node: RpcNode,
    contracts: Contracts,
    writer: Writer,
    connection: Connection,
    at: Cursor,
    width: Width,
    in_flight: int,
) -> AsyncGenerator[tuple[int, int], None]:
    """Reads from the cursor up to the first full block. Yields, after each range (one transaction), the
    number of its last block and of the facts it added; a caller that stops can resume there later. Raises
    NodeFault, ForkSeen and CursorMoved."""
    decoder, last = Decoder(contracts), at.start_number - 1
    reading = partial(read_past, node, launch_log_filter(contracts))
    stream = ranges(reading, LogRange.count_logs, at.older_number, last, width, in_flight)
    async with contextlib.aclosing(stream):
        async for past in stream:
            end = past.last
            if end.number == last and end.hash != at.block.hash:
                raise ForkSeen(end.number)
            decoded = [decode_past_block(block, decoder) for block in past.blocks]
            yield end.number, await writer.append_older(connection, at, decoded, end.number + 1)
            at = Cursor(at.start_number, at.block, end.number + 1)


def launch_log_filter(contracts: Contracts) -> LogFilter:
    """Selects the logs that list new pools and the steps of launches."""
    listed = {pair for file in LISTINGS for pair in file.listings(contracts)}
    listed |= set(launchpad.steps(contracts))
    return LogFilter(frozenset(address for address, _ in listed), frozenset(topic for _, topic in listed))


def decode_past_block(block: PastBlock, decoder: Decoder) -> BlockEvents:
    """Decodes a block's logs. Only the transactions' hashes are known: each sender is the zero address."""
    tx_indexes: dict[str, int] = {}
    events = []
    for entry in block.logs:
        event = decoder(entry.log)
        if event is not None:
            tx_index = tx_indexes.setdefault(entry.tx_hash, len(tx_indexes))
            events.append(LoggedEvent(tx_index, entry.log_index, event))
    transactions = tuple(
        SpanTx(tx_hash, ZERO_ADDRESS, None, "0x0", "0x0", NO_INPUT) for tx_hash in tx_indexes
    )
    return BlockEvents(block.ref, transactions, events)


_LOCK_TRY_S = 0.25
_MIN_WAIT_S, _MAX_WAIT_S = 0.2, 5.0
_FAR_BEHIND_BLOCKS = 1_000
_SHRUNK_S = 1.0
"""A local chain that is still shorter than the followed one after this time was reset."""
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
"""The database is unavailable or busy: the sync tries again."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of the sync. ``rows``: facts added since the start; ``head``: the newest block reported.
    ``older``: the block is from before the first full one; only launches and pools are read of it."""

    number: int
    head: int
    rows: int
    older: bool = False


@dataclass(frozen=True, slots=True)
class Following:
    """What the sync follows, and how. ``first``: where an empty database begins; None: ``look_back_blocks``
    behind the newest block. ``deepest_fork``: a fork of more blocks is refused; None: no limit.
    ``is_local``: the chain may be reset or become shorter. ``tell`` reports progress. ``listening``: opens
    the feed for as long as the sync leads. ``every_s``: the least time between two reads of new blocks."""

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
    every_s: float = 0.0
    clock: Callable[[], float] = time.monotonic
    listening: Callable[[], contextlib.AbstractAsyncContextManager[object]] = contextlib.nullcontext
    measures: Measures = field(default_factory=Measures)


class Sync:
    """``connect`` opens a connection that the sync owns and closes."""

    def __init__(self, following: Following, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._following = following
        self._connect = connect
        self._writer = Writer(following.contracts, following.eth_usd_pool)
        self._width = Width()
        self._older_width = older_width()
        self._rows = 0
        self._failures = 0
        self._leads: bool | None = None
        """The role that was logged last; None: none yet."""
        self._chain_checked = self._fork_checked = False
        """Whether the node was checked to be on this chain; and to have the followed blocks, since the last
        sign of a fork."""
        self._read_s = -1e9
        """When new blocks were read last."""
        self._number: int | None = None
        """The newest block that this sync wrote."""
        following.measures.watch("sync", "leads", lambda: int(self._leads is True))
        following.measures.watch("sync", "block", lambda: self._number)

    async def run(self, stays: bool = False) -> None:
        """Runs until cancelled; waits while another sync leads. Raises OtherChain when the database is of
        another chain, unless ``stays``: then it waits until that changes."""
        while True:
            try:
                await self._run_session()
            except OtherChain as fault:
                if not stays:
                    raise
                log.warning("not following the chain", error=str(fault))
            except DATABASE_FAULTS as fault:
                log.warning("the database is unavailable", error=type(fault).__name__)
            except Exception:
                # Keep going after any error: without the sync there are no alerts at all.
                log.exception("the sync failed and continues at its last block")
            if is_cancelled():
                raise asyncio.CancelledError
            self._writer.forget()
            await self._pause()

    async def _run_session(self) -> None:
        connection = await self._connect()
        try:
            await self._take_lead(connection)
            async with self._following.listening():
                await self._follow(connection)
        finally:
            with contextlib.suppress(*DATABASE_FAULTS):
                await connection.close(timeout=2.0)

    async def _follow(self, connection: Connection) -> None:
        # A crash may lose the last commits, and the cursor with them: their blocks are then read again.
        await connection.execute("SET synchronous_commit = off")
        self._fork_checked = self._chain_checked = False
        while True:
            try:
                if not self._chain_checked:
                    await self._check_chain(connection)
                    self._chain_checked = True
                if not self._fork_checked:
                    await self._rewind_fork(connection)
                    self._fork_checked = True
                await self._step(connection)
                self._failures = 0
            except CursorMoved:
                self._writer.forget()
            except ForkSeen:
                await self._pause_before_fork_search(self._fork_checked)
                self._fork_checked = False
            except (RoundtripError, ForkTooDeep) as fault:
                log_at = log.debug if isinstance(fault, NodeBehind) else log.warning
                log_at("following the node failed", error=str(fault))
                await self._pause()

    async def _take_lead(self, connection: Connection) -> None:
        """Takes the lock, which lasts as long as this connection. All writes go over this connection, so only
        the leader writes. While standing by it reads only the node's chain, once."""
        while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", SYNC_LOCK):
            if self._leads is not False:
                await self._check_chain_standing_by(connection)
                self._leads = False
                log.info("another sync leads; this one waits", pid=os.getpid())
            self._failures = 0
            await self._following.wait(_LOCK_TRY_S)
        if not self._leads:
            self._leads = True
            log.info("this sync leads", pid=os.getpid())

    async def _check_chain_standing_by(self, connection: Connection) -> None:
        """Raises OtherChain like the leader does. Ignores node errors: the check runs again when it leads."""
        with contextlib.suppress(RoundtripError):
            await self._hash_to_adopt(connection)

    async def _pause(self) -> None:
        self._failures += 1
        await self._following.wait(min(_MAX_WAIT_S, _MIN_WAIT_S * 2.0 ** min(self._failures - 1, 8)))

    async def _pause_before_fork_search(self, at_once: bool) -> None:
        """Pauses, except before the first search: two nodes in turn may look like a fork that is none."""
        if self._failures or not at_once:
            await self._pause()
        self._failures = max(self._failures, 1)

    async def _step(self, connection: Connection) -> None:
        """Reads the next missing blocks; waits for a block when there are none."""
        feed = self._following.feed
        at = await cursor.cursor(connection)
        if at is None:
            await self._begin(connection)
            return
        if not at.is_whole():
            await self._read_older(connection, at)
            return
        if feed.newest() > at.block.number:
            await self._wait_for_turn(feed.newest() - at.block.number)
            await self._read(connection, at.block)
            return
        hint = await feed.next(at.block.number)
        if hint.removed:
            self._fork_checked = False

    async def _wait_for_turn(self, missing: int) -> None:
        """Lets blocks gather, so that one read asks for many of them. Far behind, it does not wait."""
        wait_s = self._read_s + self._following.every_s - self._following.clock()
        if wait_s > 0 and missing < _FAR_BEHIND_BLOCKS:
            await self._following.wait(wait_s)
        self._read_s = self._following.clock()

    async def _begin(self, connection: Connection) -> None:
        following, first = self._following, self._following.first
        if first is None:
            newest = (await following.feed.next(-1)).number
            first = max(0, newest - following.look_back_blocks)
        parent, genesis_hash = await self._parent_of(first), await self._read_genesis_hash()
        await cursor.begin(connection, first, parent, genesis_hash, following.is_local)

    async def _read_genesis_hash(self) -> str:
        return await read_genesis_hash(self._following.node, self._following.chain_id)

    async def _check_chain(self, connection: Connection) -> None:
        """Raises OtherChain where the database is of another chain; adopts a local chain that was reset."""
        genesis_hash = await self._hash_to_adopt(connection)
        if genesis_hash is not None:
            await cursor.set_genesis_hash(connection, genesis_hash)

    async def _hash_to_adopt(self, connection: Connection) -> str | None:
        """The hash of block 0 of a local chain that was reset; None: the database is of this chain. Raises
        OtherChain."""
        genesis_hash, at = await self._read_genesis_hash(), await cursor.cursor(connection)
        if at is None or at.genesis_hash == genesis_hash:
            return None
        if not at.is_local or not self._following.is_local:
            raise OtherChain
        return genesis_hash

    async def _parent_of(self, first: int) -> BlockRef:
        if first == 0:
            return BEFORE_ALL
        (parent,) = await read_refs(self._following.node, [first - 1])
        if parent is None:
            raise NodeFault(f"the node does not have block {first - 1}, where the sync begins")
        return parent[0]

    async def _read(self, connection: Connection, at: BlockRef) -> None:
        """Appends the blocks that follow block ``at``, up to the head."""
        node, feed = self._following.node, self._following.feed
        newest_s, before_s = await self._newest_s(at), at.timestamp_s
        # With a least time between reads, blocks that come during this read wait for the next one.
        newest_now = feed.newest()
        until = (lambda: newest_now) if self._following.every_s else feed.newest
        stream = spans(node, at.number + 1, until, self._width, _IN_FLIGHT, at.hash)
        async with contextlib.aclosing(stream):
            async for blocks in stream:
                last = blocks[-1].ref
                if blocks[0].ref.timestamp_s < before_s:
                    raise NodeLied(f"the node's block {blocks[0].ref.number} is older than the one before it")
                before_s = last.timestamp_s
                newest = max(newest_s, last.timestamp_s)
                self._rows += await self._append(connection, blocks, newest)
                self._failures = 0
                self._following.tell(Progress(last.number, feed.newest(), self._rows))

    async def _append(self, connection: Connection, blocks: Sequence[BlockRead], newest_s: int) -> int:
        measures, began_s = self._following.measures, time.perf_counter()
        with measures.span("sync", "batch", is_root=True) as note:
            note("blocks", len(blocks))
            rows = await self._writer.append(connection, blocks, newest_s)
            note("rows", rows)
        self._number = blocks[-1].ref.number
        measures.observe("sync", "batch", "written", time.perf_counter() - began_s)
        measures.count("sync_blocks", by=len(blocks))
        measures.count("sync_facts", by=rows)
        return rows

    async def _read_older(self, connection: Connection, at: cursor.Cursor) -> None:
        """Reads launches and pools of the blocks before the first full one."""
        following, width = self._following, self._older_width
        reader = (following.node, following.contracts, self._writer, connection)
        stream = read_older(*reader, at, width, _IN_FLIGHT)
        async with contextlib.aclosing(stream):
            async for number, rows in stream:
                self._rows += rows
                self._failures = 0
                following.tell(Progress(number, following.feed.newest(), self._rows, older=True))

    async def _newest_s(self, at: BlockRef) -> int:
        """The newest block's timestamp, which decides what is too old to keep; 0 unless far behind."""
        newest = self._following.feed.newest()
        if newest - at.number < _FAR_BEHIND_BLOCKS:
            return 0
        (head,) = await read_refs(self._following.node, [newest])
        return 0 if head is None else head[0].timestamp_s

    async def _rewind_fork(self, connection: Connection) -> None:
        """Rewinds to the newest block that the node still has, where it lacks the one at the cursor."""
        at = await cursor.cursor(connection)
        if at is None:
            return
        following, deepest = self._following, self._following.deepest_fork
        kept = await cursor.stored_blocks(connection)
        if deepest is not None:
            kept = [block for block in kept if block.number >= at.block.number - deepest]
        fork = await find_fork_point(following.node, kept, at.start_number)
        target = fork.last or await self._parent_of(at.start_number)
        if target.hash == at.block.hash:
            return
        if not fork.replaced:
            if not following.is_local:
                raise NodeBehind
            await following.wait(_SHRUNK_S)
            # It may grow in between, by the same blocks: a local chain restarted from a snapshot makes the
            # same empty blocks again, and stays behind until it reaches its old height.
            fork = await find_fork_point(following.node, kept, at.start_number)
            target = fork.last or await self._parent_of(at.start_number)
            if target.hash == at.block.hash:
                return
        if target.timestamp_s < at.trades_from_s:
            # Earlier trades were pruned and cannot be unfolded from positions: everything is read again.
            target = await self._parent_of(at.start_number)
        depth = at.block.number - target.number
        if deepest is not None and depth > deepest:
            # A node that has none of these blocks yet is behind; it shows no fork.
            if kept and following.feed.newest() < kept[0].number:
                raise NodeBehind
            raise ForkTooDeep(deepest)
        log.warning("the chain was reorganized", depth=depth, to=target.number)
        await self._writer.rewind(connection, at.block, target)
