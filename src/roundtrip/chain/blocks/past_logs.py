"""Old logs of a few contracts, read in wide ranges and without their blocks.

The answer is checked for consistency: every log is of a requested contract and topic and of a block in the
range, and none is removed; blocks ascend, and so do a block's logs and their transactions; a block has one
hash and one time, and times do not fall. The range's last block is requested in the same batch: a node that
is behind, or on another fork there, cannot pass off an empty range.

Missing or forged logs cannot be detected this way: no bloom is read, because nearly all of many million
blocks hold no such log. A forged venue is checked on the chain before a verdict; a missing one is not tried,
as with a venue index that reads the same logs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError, RpcNode
from roundtrip.chain.rpc.node_logs import UnverifiedBlockLog, decode_number, decode_word
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues.base import Log

from .spans import NodeLied, ask, no_logs, read_ref, read_refs

_HEADERS_AT_ONCE = 100
_MAX_LOG_INDEX = 2**31 - 1
"""The database stores it in 4 bytes."""


class LogFilter(NamedTuple):
    """Selects logs of these contracts with one of these first topics; hex in lower case."""

    emitters: frozenset[Address]
    topics: frozenset[str]


class PastLog(NamedTuple):
    """One log and its place, as the node claims them, in accord with its other logs. ``at_s``: its block's
    time; None: not in the node's answer. ``log_index``: among all logs of its block."""

    log: Log
    number: int
    block_hash: str
    at_s: int | None
    tx_index: int
    tx_hash: str
    log_index: int


@dataclass(frozen=True, slots=True)
class PastBlock:
    """A block and its selected logs, in order."""

    ref: BlockRef
    logs: tuple[PastLog, ...]


@dataclass(frozen=True, slots=True)
class LogRange:
    """The selected logs of a range, in order. ``last``: its last block, with or without logs."""

    last: BlockRef
    blocks: tuple[PastBlock, ...]

    def count_logs(self) -> int:
        """The number of logs."""
        return sum(len(block.logs) for block in self.blocks)


_LOGS = msgspec.json.Decoder(list[UnverifiedBlockLog])


async def read_past(node: RpcNode, log_filter: LogFilter, first: int, last: int) -> LogRange:
    """The logs of blocks ``first`` to ``last``, both included. One trip; more where the node's logs hold no
    block time. Raises as ``spans.read_span``. Calls are not counted in the day's budget."""
    wanted = {
        "fromBlock": hex(first),
        "toBlock": hex(last),
        "address": sorted(log_filter.emitters),
        "topics": [sorted(log_filter.topics)],
    }
    calls = [RpcCall("eth_getLogs", [wanted]), RpcCall("eth_getBlockByNumber", [hex(last), False])]
    logs, header = await ask(node, calls)
    if isinstance(logs, RpcError):
        raise no_logs(logs, last - first + 1)
    end = read_ref(header, last)
    if end is None:
        raise NodeFault(f"the node does not have block {last}")
    placed = _decode_logs(logs)
    _check_filter(placed, log_filter, first, last)
    _check_order(placed)
    blocks = [tuple(block_logs) for _, block_logs in groupby(placed, lambda log: log.number)]
    places = [(block_logs[0].number, block_logs[0].block_hash, block_logs[0].at_s) for block_logs in blocks]
    refs = await _with_times(node, places, end[0])
    return LogRange(end[0], tuple(map(PastBlock, refs, blocks)))


def _decode_logs(logs: msgspec.Raw) -> list[PastLog]:
    try:
        return [_decode_log(raw) for raw in _LOGS.decode(logs)]
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("the node sent unreadable logs") from error


def _decode_log(raw: UnverifiedBlockLog) -> PastLog:
    number = decode_number(raw.block_number)
    if raw.removed:
        raise NodeLied(f"the node sent a removed log of block {number}")
    return PastLog(
        raw.decode(),
        number,
        decode_word(raw.block_hash),
        None if raw.block_timestamp is None else decode_number(raw.block_timestamp),
        decode_number(raw.transaction_index),
        decode_word(raw.transaction_hash),
        decode_number(raw.log_index),
    )


def _check_filter(placed: Iterable[PastLog], log_filter: LogFilter, first: int, last: int) -> None:
    for entry in placed:
        if not first <= entry.number <= last:
            raise NodeLied("the node sent a log of a block outside the requested range")
        if entry.log.address not in log_filter.emitters or log_filter.topics.isdisjoint(entry.log.topics[:1]):
            raise NodeLied(f"the node sent a log of block {entry.number} that was not requested")
        if entry.log_index > _MAX_LOG_INDEX:
            raise NodeLied(f"the node sent a log of block {entry.number} with an index out of bounds")


def _check_order(placed: Sequence[PastLog]) -> None:
    for before, after in pairwise(placed):
        if after.number < before.number:
            raise NodeLied("the node's logs are not in block order")
        if after.number > before.number:
            if after.block_hash == before.block_hash:
                raise NodeLied(f"the node sent block {before.number} under two numbers")
            continue
        if (after.block_hash, after.at_s) != (before.block_hash, before.at_s):
            raise NodeLied(f"the node sent logs of two different blocks {before.number}")
        if after.log_index <= before.log_index or after.tx_index < before.tx_index:
            raise NodeLied(f"the node's logs of block {before.number} are out of order")
        if (after.tx_index == before.tx_index) is not (after.tx_hash == before.tx_hash):
            raise NodeLied(
                f"the node sent two indexes or two hashes for one transaction of block {before.number}"
            )


async def _with_times(
    node: RpcNode, blocks: Sequence[tuple[int, str, int | None]], end: BlockRef
) -> list[BlockRef]:
    """The blocks with their times, read from headers where the logs do not hold them. ``blocks``: number,
    hash, and time or None. ``end``: the range's last block."""
    untimed = [number for number, _, at_s in blocks if at_s is None and number != end.number]
    headers = {end.number: end}
    for start in range(0, len(untimed), _HEADERS_AT_ONCE):
        for header_and_parent in await read_refs(node, untimed[start : start + _HEADERS_AT_ONCE]):
            if header_and_parent is None:
                raise NodeFault("the node sent logs of a block but not its header")
            ref, _ = header_and_parent
            headers[ref.number] = ref
    refs = []
    for number, block_hash, at_s in blocks:
        header = headers.get(number)
        if header is not None and header.hash != block_hash:
            raise NodeLied(f"the node sent a log of a different block {number}")
        if header is not None and at_s not in (None, header.timestamp_s):
            raise NodeLied(f"the node sent block {number} twice")
        timestamp_s = at_s if header is None else header.timestamp_s
        assert timestamp_s is not None
        refs.append(BlockRef(number, block_hash, timestamp_s))
    for before, after in pairwise((*refs, end)):
        if before.timestamp_s > after.timestamp_s:
            raise NodeLied(f"the node's block {before.number} is newer than its block {after.number}")
    return refs
