"""Reads spans of blocks with all their logs, and checks them against the headers. The node is not trusted.

The checks: every requested block is present, follows the one before by its hash and is not older than it.
Every log names a block of the span by number and hash, and a transaction of that block by index and hash;
none is removed; a block's logs are numbered from 0 without a gap, in the order of its transactions; and their
bloom equals the header's, bit for bit. So an answer mixed from two nodes on different forks fails, and so
does one in which a log is missing, doubled or another block's.

Not detected: logs missing at a block's end whose bits other logs set, too; altered data of a log, which no
bloom covers; reordered topics; a wholly forged chain, because headers are not hashed again. Only the node
itself can forge data, and what the sync derives from it is checked on the chain again before a verdict.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

import msgspec

from roundtrip.chain.rpc.client import Answer, NodeAnswerTooLarge, NodeRefused, RpcCall, RpcError, RpcNode
from roundtrip.chain.rpc.errors import Concern, concern, describe_error
from roundtrip.chain.rpc.hex_fields import Bloom, HexAddress, Quantity, Word
from roundtrip.chain.rpc.node_logs import UnverifiedBlockLog, decode_bytes
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BlockRef
from roundtrip.venues.base import Log

from .bloom import bloom_of, in_lower_case

MAX_TIMESTAMP_S = 2**31 - 1
"""The database stores times in 4 bytes."""
CHAINS_OWN_TYPES = 0x64
"""Transactions of this type and above are created by the chain: deposits, retries, its clock."""
NO_INPUT = "0x"
LOGS_IN_A_ROW = 1_000
"""Logs checked before the event loop gets a turn: 5 to 13 ms. Anyone can put 70,000 logs into a block."""
_NO_NARROWER: frozenset[Concern] = frozenset({"behind", "limited", "method"})


class NodeLied(NodeFault):
    """The answer contradicts itself: it is discarded and requested again. A reorganisation while the node was
    answering looks the same."""


class SpanRefused(NodeFault):
    """The node does not return that much at once: fewer blocks may work."""


class BlockTooLarge(NodeFault):
    """A single block has more logs than this service reads."""


class HistoryPruned(NodeFault):
    """The node dropped logs that old: neither fewer blocks nor a retry helps."""


class SpanTx(msgspec.Struct, frozen=True, gc=False):
    """The fields of a transaction that are read here, as ``0x`` hex; in a ``BlockRead`` hash and addresses
    are in lower case."""

    hash: Word
    sender: HexAddress = msgspec.field(name="from")
    to: HexAddress | None
    value: Quantity
    nonce: Quantity
    input: str
    type: Quantity = "0x0"

    def is_transfer(self) -> bool:
        """Whether an account sends eth without a call. A bridge's deposit, created by the chain, does not
        count: its sender is no account of this chain."""
        return self.has_value() and self.input == NO_INPUT and int(self.type, 16) < CHAINS_OWN_TYPES

    def has_value(self) -> bool:
        """Whether the transaction sends eth, whatever its sender."""
        return self.value != "0x0" and int(self.value, 16) > 0


class BlockLog(NamedTuple):
    """One log of a block. ``log_index``: counted from the block's first log."""

    log: Log
    tx_index: int
    log_index: int


@dataclass(frozen=True, slots=True)
class BlockRead:
    """One block with its transactions and every log, in order."""

    ref: BlockRef
    parent_hash: str
    transactions: tuple[SpanTx, ...]
    entries: tuple[BlockLog, ...]


class NodeHeader(msgspec.Struct, rename="camel"):
    """The fields of a block's header that are read here, hex as the node writes it."""

    number: Quantity
    hash: Word
    parent_hash: Word
    timestamp: Quantity

    def ref(self) -> BlockRef:
        """The block. Raises NodeLied if its time is out of bounds."""
        timestamp_s = int(self.timestamp, 16)
        if timestamp_s > MAX_TIMESTAMP_S:
            raise NodeLied(f"the timestamp of the node's block {int(self.number, 16)} is out of bounds")
        return BlockRef(int(self.number, 16), self.hash.lower(), timestamp_s)


class _SpanBlock(NodeHeader):
    logs_bloom: Bloom
    transactions: tuple[SpanTx, ...]


_new = tuple.__new__
_HEADERS = msgspec.json.Decoder(NodeHeader)
_BLOCKS = msgspec.json.Decoder(_SpanBlock)
_LOGS = msgspec.json.Decoder(list[UnverifiedBlockLog])


# --- requests --------------------------------------------------------------------------------------


async def read_span(node: RpcNode, first: int, last: int) -> list[BlockRead]:
    """Reads blocks ``first`` to ``last``, both included, in one batch, with the checks above.

    Raises SpanRefused or NodeAnswerTooLarge where fewer blocks may work, NodeLied when the answer contradicts
    itself, NodeFault when there is none, and ServiceFull when this service's own limits of calls are reached;
    nothing else. Like following the head, the calls are not counted in the day's budget.
    """
    numbers = range(first, last + 1)
    calls = [RpcCall("eth_getLogs", [{"fromBlock": hex(first), "toBlock": hex(last)}])]
    calls += [RpcCall("eth_getBlockByNumber", [hex(number), True]) for number in numbers]
    logs, *blocks = await ask(node, calls)
    return await check_answers([logs], blocks, numbers)


async def read_block(node: RpcNode, block_hash: str) -> BlockRead:
    """Reads one block by its hash, with the checks of a span, even if it was reorganised away."""
    calls = [
        RpcCall("eth_getLogs", [{"blockHash": block_hash}]),
        RpcCall("eth_getBlockByHash", [block_hash, True]),
    ]
    logs, block = await ask(node, calls)
    (read,) = await check_answers([logs], [block], None)
    if read.ref.hash != block_hash.lower():
        raise NodeLied("the node sent a different block than requested")
    return read


async def read_refs(node: RpcNode, numbers: Sequence[int]) -> list[tuple[BlockRef, str] | None]:
    """Reads headers only: each block and its parent's hash; None where the node knows no such block. Raises
    NodeFault, also when it knows none of them."""
    calls = [RpcCall("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
    answers = await ask(node, calls)
    return [read_ref(answer, number) for answer, number in zip(answers, numbers, strict=True)]


async def ask(node: RpcNode, calls: Sequence[RpcCall]) -> list[Answer]:
    """Sends one batch, not counted in the day's budget. Raises NodeFault, and SpanRefused where it is too
    large."""
    try:
        return await node.batch(calls, budgeted=False)
    except NodeRefused as refused:
        subject = concern(refused.error) if refused.error is not None else None
        if refused.http_status == 413 or subject in ("batch", "range"):
            raise SpanRefused("the node accepts fewer calls in one request") from refused
        raise


def asks_too_much(fault: NodeFault) -> bool:
    """Whether the node refused the size of the request."""
    return isinstance(fault, SpanRefused | NodeAnswerTooLarge)


def no_logs(error: RpcError, blocks: int) -> NodeFault:
    """The fault to raise for an error in place of the logs of this many blocks."""
    why = f"the node sent no logs of {blocks} blocks ({describe_error(error)})"
    return (NodeFault if concern(error) in _NO_NARROWER else SpanRefused)(why)


# --- answers ---------------------------------------------------------------------------------------


async def check_answers(
    logs: Sequence[Answer], blocks: Sequence[Answer], numbers: Sequence[int] | None
) -> list[BlockRead]:
    """Decodes and checks the answers to a span's calls. ``logs``: lists that together hold all logs of the
    span. ``numbers``: of the blocks; None: not checked. Sends nothing, and gives the event loop a turn after
    a thousand logs. Raises as ``read_span``."""
    log_lists: list[msgspec.Raw] = []
    for answer in logs:
        if isinstance(answer, RpcError):
            raise no_logs(answer, len(blocks))
        log_lists.append(answer)
    try:
        headers = [_block(answer) for answer in blocks]
        refs = [header.ref() for header in headers]
        _check_links(headers, refs, numbers)
        raw_logs: list[UnverifiedBlockLog] = []
        for answer in log_lists:
            await asyncio.sleep(0)
            raw_logs += _LOGS.decode(answer)
        read, in_a_row = [], 0
        for ref, header, block_logs in zip(refs, headers, await _group_by_block(raw_logs, refs), strict=True):
            in_a_row += len(block_logs)
            if in_a_row > LOGS_IN_A_ROW:
                in_a_row = len(block_logs)
                await asyncio.sleep(0)
            read.append(await _read(ref, header, block_logs))
        return read
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("the node sent unreadable blocks or logs") from error


def _block(answer: Answer) -> _SpanBlock:
    if isinstance(answer, RpcError):
        raise NodeFault(f"the node sent none of the requested blocks ({describe_error(answer)})")
    return _BLOCKS.decode(answer)


def read_ref(answer: Answer, number: int) -> tuple[BlockRef, str] | None:
    """One answer of ``read_refs``."""
    if isinstance(answer, RpcError):
        # The client turns a null into an error of code 0.
        if answer.code == 0 or concern(answer) == "behind":
            return None
        raise NodeFault(f"the node sent no block {number} ({describe_error(answer)})")
    try:
        header = _HEADERS.decode(answer)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault(f"the node sent block {number} in an unreadable form") from error
    ref = header.ref()
    if ref.number != number:
        raise NodeLied(f"the node sent block {ref.number} for block {number}")
    return ref, header.parent_hash.lower()


def _check_links(headers: list[_SpanBlock], refs: list[BlockRef], numbers: Sequence[int] | None) -> None:
    for number, ref in zip(numbers or (), refs, strict=numbers is not None):
        if ref.number != number:
            raise NodeLied(f"the node sent block {ref.number} for block {number}")
    for before, ref, header in zip(refs, refs[1:], headers[1:], strict=False):
        if header.parent_hash.lower() != before.hash:
            raise NodeLied(f"the node's block {before.number + 1} does not follow its block {before.number}")
        if ref.timestamp_s < before.timestamp_s:
            raise NodeLied(f"the node's block {ref.number} is older than its block {before.number}")


async def _group_by_block(
    logs: list[UnverifiedBlockLog], refs: list[BlockRef]
) -> list[list[UnverifiedBlockLog]]:
    groups: list[list[UnverifiedBlockLog]] = [[] for _ in refs]
    by_number = {hex(ref.number): group for ref, group in zip(refs, groups, strict=True)}
    for part in _in_parts(logs):
        await asyncio.sleep(0)
        for number, of_block in groupby(part, attrgetter("block_number")):
            group = by_number.get(number)
            if group is None:
                group = by_number.get(hex(int(number, 16)))
                if group is None:
                    raise NodeLied("the node sent a log of a block outside the requested range")
            group.extend(of_block)
    return groups


def _in_parts(logs: list[UnverifiedBlockLog]) -> Iterable[list[UnverifiedBlockLog]]:
    """The logs in parts, between which the event loop gets a turn."""
    return (logs[first : first + LOGS_IN_A_ROW] for first in range(0, len(logs), LOGS_IN_A_ROW))


async def _read(ref: BlockRef, header: _SpanBlock, logs: list[UnverifiedBlockLog]) -> BlockRead:
    transactions = _in_lower_case(header.transactions)
    entries = await _entries(ref, header, transactions, logs)
    return BlockRead(ref, header.parent_hash.lower(), transactions, entries)


async def _entries(
    ref: BlockRef, header: _SpanBlock, transactions: tuple[SpanTx, ...], logs: list[UnverifiedBlockLog]
) -> tuple[BlockLog, ...]:
    """A block's logs in order. Raises NodeLied when they are not exactly the block's logs."""
    entries: list[BlockLog] = []
    addresses: set[str] = set()
    topics: set[str] = set()
    hashes = [tx.hash for tx in transactions]
    for part in _in_parts(logs):
        entries += _read_logs(ref, hashes, part, addresses, topics)
        if len(logs) > LOGS_IN_A_ROW:
            await asyncio.sleep(0)
    _check_order(ref, entries)
    if bloom_of(addresses, topics) != int(header.logs_bloom, 16):
        raise NodeLied(f"the node's logs do not match the bloom of block {ref.number}")
    return tuple(entries)


def _read_logs(
    ref: BlockRef, hashes: list[str], logs: list[UnverifiedBlockLog], addresses: set[str], topics: set[str]
) -> list[BlockLog]:
    """Some logs of a block. Adds what they have to ``addresses`` and ``topics``, not checked yet. Raises
    NodeLied for a log of another block or transaction."""
    entries = []
    block_hash, at, tx_hash, tx_index = ref.hash, "", "", -1
    for raw in logs:
        if raw.block_hash != block_hash and raw.block_hash.lower() != block_hash:
            raise NodeLied(f"the node sent a log of a different block {ref.number}")
        if raw.removed:
            raise NodeLied(f"the node sent a removed log of block {ref.number}")
        if raw.transaction_hash != tx_hash or raw.transaction_index != at:
            at, tx_hash = raw.transaction_index, raw.transaction_hash
            tx_index = _index_of_transaction(ref, hashes, at, tx_hash)
        data = decode_bytes(raw.data)
        address, words = in_lower_case(raw.address), tuple(map(in_lower_case, raw.topics))
        addresses.add(address)
        topics.update(words)
        # tuple.__new__ takes half as long as calling the class.
        entries.append(_new(BlockLog, (_new(Log, (address, words, data)), tx_index, int(raw.log_index, 16))))
    return entries


def _index_of_transaction(ref: BlockRef, hashes: list[str], at: str, tx_hash: str) -> int:
    """The place of a log's transaction in its block. Raises NodeLied where another one is there."""
    tx_index = int(at, 16)
    if not 0 <= tx_index < len(hashes):
        raise NodeLied(f"the node sent a log that belongs to no transaction of block {ref.number}")
    if tx_hash.lower() != hashes[tx_index]:
        raise NodeLied(f"the node sent a log of a different transaction of block {ref.number}")
    return tx_index


def _check_order(ref: BlockRef, entries: list[BlockLog]) -> None:
    entries.sort(key=itemgetter(2))
    if [entry[2] for entry in entries] != list(range(len(entries))):
        raise NodeLied(f"the node's logs of block {ref.number} are not numbered consecutively")
    tx_indexes = [entry[1] for entry in entries]
    if tx_indexes != sorted(tx_indexes):
        raise NodeLied(f"the node's logs of block {ref.number} are not in transaction order")


def _in_lower_case(transactions: tuple[SpanTx, ...]) -> tuple[SpanTx, ...]:
    if not transactions or "".join([tx.hash + tx.sender + (tx.to or "") for tx in transactions]).islower():
        return transactions
    return tuple(
        SpanTx(
            tx.hash.lower(),
            tx.sender.lower(),
            tx.to and tx.to.lower(),
            tx.value.lower(),
            tx.nonce.lower(),
            tx.input.lower(),
            tx.type.lower(),
        )
        for tx in transactions
    )
