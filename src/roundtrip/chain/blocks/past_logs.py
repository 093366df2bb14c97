"""Logs of a few contracts from long ago, read in wide ranges and without their blocks.

A node is not believed as far as its answer can be held against itself: every log is of a contract and a kind
that were asked for, of a block in the range, and none is removed; blocks rise, and so do a block's logs and
their transactions; a block has one hash and one time, and times do not fall. The range's last block is asked
for in the same batch: a node that has not got so far, or stands on another fork there, gives no empty range.

What cannot be seen this way are logs left out or made up: no bloom is read, since of many million blocks
nearly all hold nothing. A place that was made up is asked of the chain before a verdict; one that was left
out is not tried, as with a book that reads the same logs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Annotated, NamedTuple

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError, RpcNode
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues.base import Log

from .spans import NodeLied, ask, no_logs, read_ref, read_refs

_HEADERS_AT_ONCE = 100
_MOST_LOG_INDEX = 2**31 - 1
"""It is stored in 4 bytes."""


class LogFilter(NamedTuple):
    """Which logs: of these contracts, with one of these first topics; hex in lower case."""

    emitters: frozenset[Address]
    topics: frozenset[str]


class PastLog(NamedTuple):
    """One log, the transaction it is of, and where it stands among all logs of its block."""

    log: Log
    tx_hash: str
    log_index: int


@dataclass(frozen=True, slots=True)
class PastBlock:
    """A block that has some of these logs, in order."""

    ref: BlockRef
    logs: tuple[PastLog, ...]


@dataclass(frozen=True, slots=True)
class LogRange:
    """What a range holds, in order. ``last``: its last block, whether or not that has any."""

    last: BlockRef
    blocks: tuple[PastBlock, ...]

    def count_logs(self) -> int:
        """How many there are."""
        return sum(len(block.logs) for block in self.blocks)


_Quantity = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{1,64}\Z")]
_Word = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{64}\Z")]


class _PastRawLog(msgspec.Struct, rename="camel", gc=False):
    address: Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{40}\Z")]
    topics: Annotated[list[_Word], msgspec.Meta(min_length=1, max_length=4)]
    data: Annotated[str, msgspec.Meta(pattern=r"\A0x([0-9a-fA-F]{2})*\Z")]
    block_number: _Quantity
    block_hash: _Word
    transaction_hash: _Word
    transaction_index: _Quantity
    log_index: _Quantity
    block_timestamp: _Quantity | None = None
    removed: bool = False


class _PlacedLog(NamedTuple):
    """A log with its numbers read. ``at_s``: when its block was made; None: the node does not tell it."""

    log: Log
    number: int
    block_hash: str
    at_s: int | None
    tx_index: int
    tx_hash: str
    log_index: int


_LOGS = msgspec.json.Decoder(list[_PastRawLog])


async def read_past(node: RpcNode, whose: LogFilter, first: int, last: int) -> LogRange:
    """The logs of blocks ``first`` to ``last``, both included. One trip; more where the node does not tell
    with a log when its block was made. Raises as ``spans.read_span``; calls are not taken off the day's
    budget."""
    wanted = {
        "fromBlock": hex(first),
        "toBlock": hex(last),
        "address": sorted(whose.emitters),
        "topics": [sorted(whose.topics)],
    }
    calls = [RpcCall("eth_getLogs", [wanted]), RpcCall("eth_getBlockByNumber", [hex(last), False])]
    logs, header = await ask(node, calls)
    if isinstance(logs, RpcError):
        raise no_logs(logs, last - first + 1)
    end = read_ref(header, last)
    if end is None:
        raise NodeFault(f"it has no block {last}")
    found = _decode_placed(logs)
    _check_whose(found, whose, first, last)
    _check_order(found)
    blocks = [tuple(own) for _, own in groupby(found, lambda one: one.number)]
    refs = [_ref_of(own) for own in blocks]
    timed = await _with_times(node, refs, end[0])
    return LogRange(end[0], tuple(_block(ref, own) for ref, own in zip(timed, blocks, strict=True)))


def _decode_placed(logs: msgspec.Raw) -> list[_PlacedLog]:
    try:
        return [_read(raw) for raw in _LOGS.decode(logs)]
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("it gave logs that cannot be read") from error


def _read(raw: _PastRawLog) -> _PlacedLog:
    number = int(raw.block_number, 16)
    if raw.removed:
        raise NodeLied(f"it gave a removed log of block {number}")
    topics = tuple(topic.lower() for topic in raw.topics)
    return _PlacedLog(
        Log(Address(raw.address.lower()), topics, bytes.fromhex(raw.data[2:])),
        number,
        raw.block_hash.lower(),
        None if raw.block_timestamp is None else int(raw.block_timestamp, 16),
        int(raw.transaction_index, 16),
        raw.transaction_hash.lower(),
        int(raw.log_index, 16),
    )


def _check_whose(found: Iterable[_PlacedLog], whose: LogFilter, first: int, last: int) -> None:
    for one in found:
        if not first <= one.number <= last:
            raise NodeLied("it gave a log of a block that was not asked for")
        if one.log.address not in whose.emitters or one.log.topics[0] not in whose.topics:
            raise NodeLied(f"it gave a log of block {one.number} that was not asked for")
        if one.log_index > _MOST_LOG_INDEX:
            raise NodeLied(f"it gave a log of block {one.number} whose place is out of bounds")


def _check_order(found: Sequence[_PlacedLog]) -> None:
    for one, after in pairwise(found):
        if after.number < one.number:
            raise NodeLied("the logs it gave are not in the order of their blocks")
        if after.number > one.number:
            if after.block_hash == one.block_hash:
                raise NodeLied(f"its block {one.number} has another number, too")
            continue
        if (after.block_hash, after.at_s) != (one.block_hash, one.at_s):
            raise NodeLied(f"it gave logs of two blocks {one.number}")
        if after.log_index <= one.log_index or after.tx_index < one.tx_index:
            raise NodeLied(f"the logs it gave of block {one.number} are not in their order")
        if (after.tx_index == one.tx_index) is not (after.tx_hash == one.tx_hash):
            raise NodeLied(f"it gave a transaction of block {one.number} two places or two hashes")


def _ref_of(own: tuple[_PlacedLog, ...]) -> tuple[int, str, int | None]:
    return own[0].number, own[0].block_hash, own[0].at_s


async def _with_times(
    node: RpcNode, blocks: Sequence[tuple[int, str, int | None]], end: BlockRef
) -> list[BlockRef]:
    """The blocks with their times, which are asked for where the logs did not tell them."""
    untold = [number for number, _, at_s in blocks if at_s is None and number != end.number]
    headers = {end.number: end}
    for start in range(0, len(untold), _HEADERS_AT_ONCE):
        for found in await read_refs(node, untold[start : start + _HEADERS_AT_ONCE]):
            if found is None:
                raise NodeFault("it gave no header of a block whose logs it gave")
            headers[found[0].number] = found[0]
    refs = []
    for number, block_hash, at_s in blocks:
        header = headers.get(number)
        if header is not None and header.hash != block_hash:
            raise NodeLied(f"it gave a log of another block {number}")
        if header is not None and at_s not in (None, header.timestamp_s):
            raise NodeLied(f"it gave block {number} two times")
        told_s = at_s if header is None else header.timestamp_s
        assert told_s is not None
        refs.append(BlockRef(number, block_hash, told_s))
    for before, after in pairwise((*refs, end)):
        if before.timestamp_s > after.timestamp_s:
            raise NodeLied(f"its block {before.number} is younger than its block {after.number}")
    return refs


def _block(ref: BlockRef, own: tuple[_PlacedLog, ...]) -> PastBlock:
    return PastBlock(ref, tuple(PastLog(one.log, one.tx_hash, one.log_index) for one in own))
