"""Blocks and all their logs, read in spans and checked against their headers. A node is not believed.

What is checked: every block is there, has the number that was asked for, follows the one before by its hash
and is not from before it. Every log names a block of the span by number and hash, and a transaction of it by
place and hash; none is removed; a block's logs are numbered from 0 without a gap, in the order of its
transactions; and the bloom made of all of them is the header's, bit for bit. An answer put together by two
nodes that stand on different forks does not pass, nor does one in which a log is missing, doubled or another
block's.

What cannot be seen this way: logs left out at a block's end whose bits others set too; altered data of a log,
which no bloom covers; topics in another order; a whole chain that was made up, as headers are not hashed
again. Data can only be lied about by the node itself, and what the sync makes of it is asked of the chain
again before a verdict.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated, NamedTuple

import msgspec

from roundtrip.chain.rpc.client import NodeAnswerTooLarge, NodeRefused, RpcCall, RpcError, RpcNode
from roundtrip.chain.rpc.errors import Concern, concern, describe_error
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BlockRef
from roundtrip.venues.base import Log

from .bloom import address_bits, topic_bits

MOST_TIMESTAMP_S = 2**31 - 1
"""Times are stored in 4 bytes."""
_CHAINS_OWN_TYPES = 0x64
"""Transactions of this type and above are the chain's own doing: deposits, retries, its clock."""
NO_INPUT = "0x"
_LOGS_IN_A_ROW = 1_000
"""So many are checked before others have their turn: 5 to 13 ms. A stranger can put 70,000 into a block."""
_NO_NARROWER: frozenset[Concern] = frozenset({"behind", "limited", "method"})


class NodeLied(NodeFault):
    """Its answer contradicts itself: it is left out of account and asked for again. A reorganisation while
    the node was answering looks the same."""


class SpanRefused(NodeFault):
    """The node does not give as much at once: fewer blocks may be had."""


class BlockTooLarge(NodeFault):
    """One block of what was asked for is more than is ever read."""


class HistoryPruned(NodeFault):
    """The node has let logs that old go: no fewer blocks may be had, and asking again does not help."""


_Quantity = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{1,64}\Z")]
_Word = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{64}\Z")]
_Address = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{40}\Z")]


class SpanTx(msgspec.Struct, frozen=True, gc=False):
    """As much of a transaction as is read here, hex as the node gives it, in lower case."""

    hash: _Word
    sender: _Address = msgspec.field(name="from")
    to: _Address | None
    value: _Quantity
    nonce: _Quantity
    input: str
    type: _Quantity = "0x0"

    def is_transfer(self) -> bool:
        """Whether somebody sends eth and nothing else: no contract is called. A bridge's deposit, which is
        the chain's own, has a sender who is nobody here."""
        return self.has_value() and self.input == NO_INPUT and int(self.type, 16) < _CHAINS_OWN_TYPES

    def has_value(self) -> bool:
        """Whether eth goes along, whoever sends it."""
        return self.value != "0x0" and int(self.value, 16) > 0


class BlockLog(NamedTuple):
    """One log of a block, and where in it: ``log_index`` counts from the block's first log."""

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


class _SpanHeader(msgspec.Struct, rename="camel"):
    number: _Quantity
    hash: _Word
    parent_hash: _Word
    timestamp: _Quantity

    def ref(self) -> BlockRef:
        timestamp_s = int(self.timestamp, 16)
        if timestamp_s > MOST_TIMESTAMP_S:
            raise NodeLied(f"the time of its block {int(self.number, 16)} is out of bounds")
        return BlockRef(int(self.number, 16), self.hash.lower(), timestamp_s)


class _SpanBlock(_SpanHeader):
    logs_bloom: Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{512}\Z")]
    transactions: tuple[SpanTx, ...]


class _SpanRawLog(msgspec.Struct, rename="camel", gc=False):
    address: str
    topics: Annotated[list[str], msgspec.Meta(max_length=4)]
    data: str
    block_number: str
    block_hash: str
    transaction_hash: str
    transaction_index: str
    log_index: str
    removed: bool = False


_HEADERS = msgspec.json.Decoder(_SpanHeader)
_BLOCKS = msgspec.json.Decoder(_SpanBlock)
_LOGS = msgspec.json.Decoder(list[_SpanRawLog])


# --- asking ----------------------------------------------------------------------------------------


async def read_span(node: RpcNode, first: int, last: int) -> list[BlockRead]:
    """Blocks ``first`` to ``last``, both included, in one batch; what is checked is told above.

    Raises SpanRefused where fewer blocks may be had, NodeAnswerTooLarge likewise, NodeLied when the answer
    contradicts itself, NodeFault when there is none, and ServiceFull when this service's own limits of calls
    leave no room. Nothing else. Calls are not taken off the day's budget, as following the head is not.
    """
    numbers = range(first, last + 1)
    calls = [RpcCall("eth_getLogs", [{"fromBlock": hex(first), "toBlock": hex(last)}])]
    calls += [RpcCall("eth_getBlockByNumber", [hex(number), True]) for number in numbers]
    logs, *blocks = await ask(node, calls)
    return await check_answers([logs], blocks, numbers)


async def read_block(node: RpcNode, block_hash: str) -> BlockRead:
    """One block by its hash, checked as a span is; whatever the chain has become meanwhile."""
    calls = [
        RpcCall("eth_getLogs", [{"blockHash": block_hash}]),
        RpcCall("eth_getBlockByHash", [block_hash, True]),
    ]
    logs, block = await ask(node, calls)
    (read,) = await check_answers([logs], [block], None)
    if read.ref.hash != block_hash.lower():
        raise NodeLied("it gave another block than was asked for")
    return read


async def read_refs(node: RpcNode, numbers: Sequence[int]) -> list[tuple[BlockRef, str] | None]:
    """Headers only: each block and the hash of the one before it; None where the node knows no such block.
    Raises NodeFault, also when it knows none of them."""
    calls = [RpcCall("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
    answers = await ask(node, calls)
    return [read_ref(answer, number) for answer, number in zip(answers, numbers, strict=True)]


async def ask(node: RpcNode, calls: Sequence[RpcCall]) -> list[msgspec.Raw | RpcError]:
    """One batch, not taken off the day's budget. Raises NodeFault, SpanRefused where it is too much."""
    try:
        return await node.batch(calls, budgeted=False)
    except NodeRefused as refused:
        said = concern(refused.error) if refused.error is not None else None
        if refused.http_status == 413 or said in ("batch", "range"):
            raise SpanRefused("it takes fewer calls at once") from refused
        raise


def asks_too_much(fault: NodeFault) -> bool:
    """Whether the node would give fewer blocks, and says so."""
    return isinstance(fault, SpanRefused | NodeAnswerTooLarge)


def no_logs(error: RpcError, blocks: int) -> NodeFault:
    """What it means that a node answers so when it is asked for the logs of so many blocks."""
    why = f"it gives no logs of {blocks} blocks ({describe_error(error)})"
    return (NodeFault if concern(error) in _NO_NARROWER else SpanRefused)(why)


# --- reading what came -----------------------------------------------------------------------------


async def check_answers(
    logs: Sequence[msgspec.Raw | RpcError],
    blocks: Sequence[msgspec.Raw | RpcError],
    numbers: Sequence[int] | None,
) -> list[BlockRead]:
    """The answers to a span's calls as blocks. ``logs``: lists of them, which together are all of the span's.
    ``numbers``: of the blocks; None: whatever they have. It asks nobody, and lets others have their turn
    between blocks and between logs. Raises as ``read_span``."""
    given: list[msgspec.Raw] = []
    for answer in logs:
        if isinstance(answer, RpcError):
            raise no_logs(answer, len(blocks))
        given.append(answer)
    try:
        headers = [_block(answer) for answer in blocks]
        refs = [header.ref() for header in headers]
        _check_links(headers, refs, numbers)
        found: list[_SpanRawLog] = []
        for answer in given:
            await asyncio.sleep(0)
            found += _LOGS.decode(answer)
        sorted_logs = await _by_block(found, refs)
        return [
            await _read(ref, header, own) for ref, header, own in zip(refs, headers, sorted_logs, strict=True)
        ]
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("it gave blocks or logs that cannot be read") from error


def _block(answer: msgspec.Raw | RpcError) -> _SpanBlock:
    if isinstance(answer, RpcError):
        raise NodeFault(f"it gave no block that was asked for ({describe_error(answer)})")
    return _BLOCKS.decode(answer)


def read_ref(answer: msgspec.Raw | RpcError, number: int) -> tuple[BlockRef, str] | None:
    """One of the answers that ``read_refs`` reads."""
    if isinstance(answer, RpcError):
        # A null is an error of code 0 here.
        if answer.code == 0 or concern(answer) == "behind":
            return None
        raise NodeFault(f"it gave no block {number} ({describe_error(answer)})")
    try:
        header = _HEADERS.decode(answer)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault(f"it gave a block {number} that cannot be read") from error
    ref = header.ref()
    if ref.number != number:
        raise NodeLied(f"it gave block {ref.number} for block {number}")
    return ref, header.parent_hash.lower()


def _check_links(headers: list[_SpanBlock], refs: list[BlockRef], numbers: Sequence[int] | None) -> None:
    for number, ref in zip(numbers or (), refs, strict=numbers is not None):
        if ref.number != number:
            raise NodeLied(f"it gave block {ref.number} for block {number}")
    for before, ref, header in zip(refs, refs[1:], headers[1:], strict=False):
        if header.parent_hash.lower() != before.hash:
            raise NodeLied(f"its block {before.number + 1} does not follow its block {before.number}")
        if ref.timestamp_s < before.timestamp_s:
            raise NodeLied(f"its block {ref.number} is from before its block {before.number}")


async def _by_block(logs: list[_SpanRawLog], refs: list[BlockRef]) -> list[list[_SpanRawLog]]:
    found: list[list[_SpanRawLog]] = [[] for _ in refs]
    places = {hex(ref.number): own for ref, own in zip(refs, found, strict=True)}
    for place, log in enumerate(logs):
        if place % _LOGS_IN_A_ROW == 0:
            await asyncio.sleep(0)
        own = places.get(log.block_number)
        if own is None:
            own = places.get(hex(int(log.block_number, 16)))
            if own is None:
                raise NodeLied("it gave a log of a block that was not asked for")
        own.append(log)
    return found


async def _read(ref: BlockRef, header: _SpanBlock, logs: list[_SpanRawLog]) -> BlockRead:
    transactions = _in_lower_case(header.transactions)
    entries = await _entries(ref, header, transactions, logs)
    return BlockRead(ref, header.parent_hash.lower(), transactions, entries)


async def _entries(
    ref: BlockRef, header: _SpanBlock, transactions: tuple[SpanTx, ...], logs: list[_SpanRawLog]
) -> tuple[BlockLog, ...]:
    """A block's logs in order. Raises NodeLied when they are not all of it, or not only of it."""
    bloom = 0
    entries: list[BlockLog] = []
    hashes = [tx.hash for tx in transactions]
    for place, raw in enumerate(logs):
        if place % _LOGS_IN_A_ROW == 0:
            await asyncio.sleep(0)
        tx_index = int(raw.transaction_index, 16)
        if raw.block_hash != ref.hash and raw.block_hash.lower() != ref.hash:
            raise NodeLied(f"it gave a log of another block {ref.number}")
        if raw.removed:
            raise NodeLied(f"it gave a removed log of block {ref.number}")
        if not 0 <= tx_index < len(hashes):
            raise NodeLied(f"it gave a log of no transaction of block {ref.number}")
        if raw.transaction_hash != hashes[tx_index] and raw.transaction_hash.lower() != hashes[tx_index]:
            raise NodeLied(f"it gave a log of another transaction of block {ref.number}")
        address, own = address_bits(raw.address)
        bloom |= own
        topics: list[str] = []
        for text in raw.topics:
            topic, own = topic_bits(text)
            bloom |= own
            topics.append(topic)
        log = Log(address, tuple(topics), _data(raw.data))
        entries.append(BlockLog(log, tx_index, int(raw.log_index, 16)))
    if len(entries) > _LOGS_IN_A_ROW:
        await asyncio.sleep(0)
    _check_order(ref, entries)
    if bloom != int(header.logs_bloom, 16):
        raise NodeLied(f"the logs it gave are not those of block {ref.number}, whose bloom is another")
    return tuple(entries)


def _check_order(ref: BlockRef, entries: list[BlockLog]) -> None:
    entries.sort(key=itemgetter(2))
    if [entry.log_index for entry in entries] != list(range(len(entries))):
        raise NodeLied(f"the logs it gave of block {ref.number} are not numbered one by one")
    owners = [entry.tx_index for entry in entries]
    if owners != sorted(owners):
        raise NodeLied(f"the logs it gave of block {ref.number} are not in the order of its transactions")


def _data(text: str) -> bytes:
    data = bytes.fromhex(text[2:])
    # bytes.fromhex passes over spaces.
    if not text.startswith("0x") or len(text) != 2 + 2 * len(data):
        raise ValueError("not 0x and hex digits")
    return data


def _in_lower_case(transactions: tuple[SpanTx, ...]) -> tuple[SpanTx, ...]:
    if all((tx.hash + tx.sender + (tx.to or "")).islower() for tx in transactions):
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
