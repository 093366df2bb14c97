"""Launches and pools from before the first block that is read in full: later trades are theirs, too."""

import contextlib
from collections.abc import AsyncGenerator
from functools import partial

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.block_ranges import ranges
from roundtrip.chain.blocks.past_logs import LogFilter, LogRange, PastBlock, read_past
from roundtrip.chain.blocks.span_stream import ForkSeen
from roundtrip.chain.blocks.spans import NO_INPUT, SpanTx
from roundtrip.chain.rpc.client import RpcNode
from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.server.rows import Connection
from roundtrip.venues import LISTINGS, launchpad
from roundtrip.venues.base import Contracts
from roundtrip.venues.decode import Decoder

from .apply import Writer
from .ledger import BlockEvents, LoggedEvent

_FIRST_BLOCKS = 10_000
"""They pass with all nodes that were tried, and hold a few hundred launches and pools."""
_MOST_BLOCKS = 200_000


def older_width() -> Width:
    """How many older blocks are asked for at once."""
    return Width(_FIRST_BLOCKS, _MOST_BLOCKS)


async def read_older(
    node: RpcNode,
    contracts: Contracts,
    writer: Writer,
    connection: Connection,
    at: Cursor,
    width: Width,
    in_flight: int,
) -> AsyncGenerator[tuple[int, int], None]:
    """Reads from where it stands up to the first block. After each range, which is one transaction, gives the
    last of its blocks and how many facts it added: whoever stops goes on from there another time. Raises
    NodeFault, Forked and CursorMoved."""
    decoder, last = Decoder(contracts), at.start_number - 1
    reading = partial(read_past, node, whose(contracts))
    stream = ranges(reading, LogRange.count_logs, at.older_number, last, width, in_flight)
    async with contextlib.aclosing(stream):
        async for past in stream:
            end = past.last
            if end.number == last and end.hash != at.block.hash:
                raise ForkSeen(end.number)
            told = [block_told(block, decoder) for block in past.blocks]
            yield end.number, await writer.append_older(connection, at, told, end.number + 1)
            at = Cursor(at.start_number, at.block, end.number + 1)


def whose(contracts: Contracts) -> LogFilter:
    """Whoever tells of new places, and what becomes of launches."""
    listed = {pair for file in LISTINGS for pair in file.listings(contracts)}
    listed |= set(launchpad.steps(contracts))
    return LogFilter(frozenset(who for who, _ in listed), frozenset(topic for _, topic in listed))


def block_told(block: PastBlock, decoder: Decoder) -> BlockEvents:
    """What a block's logs tell, with transactions of which only the hash is known: the zero address stands
    for who sent them."""
    places: dict[str, int] = {}
    told = []
    for log, tx_hash, log_index in block.logs:
        event = decoder(log)
        if event is not None:
            told.append(LoggedEvent(places.setdefault(tx_hash, len(places)), log_index, event))
    transactions = tuple(SpanTx(tx_hash, ZERO_ADDRESS, None, "0x0", "0x0", NO_INPUT) for tx_hash in places)
    return BlockEvents(block.ref, transactions, told)
