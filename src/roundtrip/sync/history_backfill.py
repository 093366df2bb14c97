"""Reads launches and pools from before the first full block: later trades happen there, too."""

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
