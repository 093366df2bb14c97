"""Every transfer of one token, and the trades on its venues, read in wide ranges and without their blocks.

A node is not believed as far as its answer can be held against itself, as in ``past_logs``: every log is of a
contract and a kind that were asked for, of a block in the range, and none is removed; blocks rise, and so do
a block's logs and their transactions; a block has one hash and one time, and times do not fall. The range's
first and last block are asked for in the same batch: a node that has not got so far, or stands on another
fork there, gives no empty range.

What cannot be seen this way are logs left out or made up, as there. What wallets hold is asked of the token
itself, and where that says something else the answer says so.

"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import msgspec

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.block_ranges import between, ranges
from roundtrip.chain.blocks.span_stream import ForkSeen
from roundtrip.chain.blocks.spans import BlockTooLarge, HistoryPruned, SpanRefused, ask, no_logs, read_ref
from roundtrip.chain.rpc.client import NodeAnswerTooLarge, RpcCall, RpcError, RpcNode
from roundtrip.chain.rpc.errors import concern
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.base.venue import TRAITS
from roundtrip.domain.holders.token_flows import TokenTx
from roundtrip.venues import SWAPS, amm_v4
from roundtrip.venues.erc20 import TRANSFER_TOPIC

from .token_log_reader import (
    Sources,
    TokenLogReader,
    VenueSides,
    decode_logs,
    is_contract,
    merge_logs,
    times_of,
)

__all__ = [
    "HistoryPruned",
    "Sources",
    "TokenSpan",
    "VenueSides",
    "gives_logs",
    "new_width",
    "oldest_logs",
    "read_tokens",
    "token_spans",
]

FIRST_BLOCKS, MOST_BLOCKS = 256, 2_000_000
"""Logs of a few contracts are found by a node's own index: a range's width costs it little. One that gives
fewer says so, and is asked for half. Of a busy token's first minutes more than so many blocks would be a
hundred megabytes, which the node makes for nothing."""
IDS_A_CALL = 50
"""Ids of v4 pools in one filter."""
_PROBES = 16
_LOGS_IN_A_ROW = 1_000
"""So many are read before others have their turn."""


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """What a range holds, in order. ``last``: its last block, whether or not that has any logs;
    ``parent_hash``: of the block before ``first``. ``unreadable``: logs that are not what their topic says,
    as the transfers of an ERC-721: nothing of them is in ``txs``. ``times_told`` False: the node does not
    tell with a log when its block was made; then times are estimates, as ``read_tokens`` says. ``logs``: how
    many the node gave."""

    first: int
    last: BlockRef
    txs: tuple[TokenTx, ...]
    transfers: int
    unreadable: int
    times_told: bool
    parent_hash: str
    logs: int

    def count_logs(self) -> int:
        """How many the node gave."""
        return self.logs


def new_width() -> Width:
    """How many blocks are asked for at once."""
    return Width(FIRST_BLOCKS, MOST_BLOCKS)


async def read_tokens(node: RpcNode, sources: Sources, first: int, last: int) -> TokenSpan:
    """Blocks ``first`` to ``last``, both included. One trip, in which nothing is taken off the day's budget.

    A block's time is told with its logs. Where a node does not tell it, it is an estimate: read off the line
    between the range's first and last block, in whole seconds and never falling. The true one is between
    theirs, too. A header for each of half a million blocks would cost more than everything else.

    Raises HistoryPruned where the node has let logs that old go, and else as ``spans.read_span``."""
    *answers, start, end = await ask(node, _calls(sources, first, last))
    given: list[msgspec.Raw] = []
    for answer in answers:
        if isinstance(answer, RpcError):
            raise await _explain_refusal(node, sources, answer, first, last)
        given.append(answer)
    (begun, parent_hash), (over, _) = _header(start, first), _header(end, last)
    lists = [decode_logs(answer) for answer in given]
    reader = TokenLogReader(sources, first, last)
    try:
        logs = merge_logs(lists)
        for start_at in range(0, len(logs), _LOGS_IN_A_ROW):
            await asyncio.sleep(0)
            reader.take(logs[start_at : start_at + _LOGS_IN_A_ROW])
        times = times_of(reader.blocks, begun, over)
    except ValueError as error:
        raise NodeFault("it gave logs that cannot be read") from error
    txs = [tx for tx in reader.txs if tx.moves or tx.fills]
    if times is not None:
        txs = [tx._replace(at_s=times[tx.block_number]) for tx in txs]
    count = reader.transfers, reader.unreadable
    return TokenSpan(first, over, tuple(txs), *count, times is None, parent_hash, len(logs))


async def _read(node: RpcNode, sources: Sources, first: int, last: int) -> TokenSpan:
    try:
        return await read_tokens(node, sources, first, last)
    except NodeAnswerTooLarge as fault:
        # A token can say as much in a block as it likes to.
        if first < last:
            raise
        raise BlockTooLarge(f"its block {first} has more of the token than is read") from fault


async def token_spans(
    node: RpcNode,
    sources: Sources,
    first: int,
    last: BlockRef,
    width: Width,
    in_flight: int = 4,
    parent_hash: str | None = None,
) -> AsyncGenerator[TokenSpan]:
    """Blocks ``first`` to ``last`` in ranges that follow each other, as ``ranges`` asks for them, and raising
    what it does. ``parent_hash``: of the block before ``first``, where it is known. Raises HistoryPruned,
    and Forked where a range does not follow the one before, or ``last`` is another block by now. Close it
    (``contextlib.aclosing``): then nothing is left under way."""
    before = parent_hash
    reading = partial(_read, node, sources)
    stream = ranges(reading, TokenSpan.count_logs, first, last.number, width, in_flight)
    async with contextlib.aclosing(stream):
        async for span in stream:
            if before is not None and span.parent_hash != before:
                raise ForkSeen(span.first)
            if span.last.number == last.number and span.last.hash != last.hash:
                raise ForkSeen(last.number)
            before = span.last.hash
            yield span


async def oldest_logs(node: RpcNode, sources: Sources, low: int, high: int) -> int | None:
    """The first block of ``low`` to ``high`` from which on logs are given; None: not even those of ``high``,
    or it could not be found out. Sixteen blocks a trip. Raises ServiceFull."""
    # What is below was not given, what is at ``given`` was.
    below, given = low - 1, high + 1
    numbers = sorted({low, high, *between(low, high, _PROBES - 2)})
    while numbers:
        try:
            answers = await ask(node, [_probe(sources, number) for number in numbers])
        except NodeFault:
            return None
        found = [_is_given(answer) for answer in answers]
        if None in found or any(one and not after for one, after in pairwise(found)):
            return None
        below = max([below, *(number for number, one in zip(numbers, found, strict=True) if not one)])
        given = min([given, *(number for number, one in zip(numbers, found, strict=True) if one)])
        if given > high:
            return None
        numbers = between(below, given, _PROBES)
    return given


async def gives_logs(node: RpcNode, sources: Sources, number: int) -> bool:
    """Whether the node gives the token's logs of that block. Raises NodeFault, ServiceFull."""
    (answer,) = await ask(node, [_probe(sources, number)])
    return _is_given(answer) is True


# --- asking ----------------------------------------------------------------------------------------


def _calls(sources: Sources, first: int, last: int) -> list[RpcCall]:
    """Lists of logs, and behind them the two headers."""
    kinds = {quoted.kind for quoted in sources.venues.values()}
    topics = [TRANSFER_TOPIC]
    for kind, traits in TRAITS.items():
        topics += SWAPS[kind] if traits.is_contract and kind in kinds else ()
    own = sorted(at for at, quoted in sources.venues.items() if is_contract(quoted))
    ids = sorted(at for at, quoted in sources.venues.items() if not is_contract(quoted))
    block = {"fromBlock": hex(first), "toBlock": hex(last)}
    calls = [RpcCall("eth_getLogs", [{**block, "address": [sources.token, *own], "topics": [topics]}])]
    for start in range(0, len(ids), IDS_A_CALL):
        some = [[amm_v4.SWAP], ids[start : start + IDS_A_CALL]]
        asked = {**block, "address": [sources.contracts.v4_pool_manager], "topics": some}
        calls.append(RpcCall("eth_getLogs", [asked]))
    return calls + [RpcCall("eth_getBlockByNumber", [hex(number), False]) for number in (first, last)]


def _probe(sources: Sources, number: int) -> RpcCall:
    at = hex(number)
    asked = {"fromBlock": at, "toBlock": at, "address": [sources.token], "topics": [[TRANSFER_TOPIC]]}
    return RpcCall("eth_getLogs", [asked])


async def _explain_refusal(
    node: RpcNode, sources: Sources, error: RpcError, first: int, last: int
) -> NodeFault:
    """What it means that no logs of these blocks are given. Providers also speak of archives where a range
    is too wide for them: so the first block is asked for alone before the logs are taken to be gone."""
    if concern(error) != "pruned":
        return no_logs(error, last - first + 1)
    if last > first:
        (answer,) = await ask(node, [_probe(sources, first)])
        if _is_given(answer) is not False:
            return SpanRefused(f"it gives no logs of {last - first + 1} blocks")
    return HistoryPruned(f"it has let the logs of block {first} go")


def _is_given(answer: msgspec.Raw | RpcError) -> bool | None:
    """Whether logs of the block are given, False: they are gone; None: it does not say."""
    if isinstance(answer, RpcError):
        return False if concern(answer) == "pruned" else None
    try:
        decode_logs(answer)
    except NodeFault:
        return None
    return True


def _header(answer: msgspec.Raw | RpcError, number: int) -> tuple[BlockRef, str]:
    if isinstance(answer, RpcError) and concern(answer) == "pruned":
        raise HistoryPruned(f"it has let its block {number} go")
    found = read_ref(answer, number)
    if found is None:
        raise NodeFault(f"it has no block {number}")
    return found
