"""One transaction and what became of it, asked of a node by its hash. A node is not believed.

What is checked: transaction, receipt and block name each other by hash, number and place; who sent it and to
whom is the same in both; it is of this chain; its logs are its own, numbered without a gap, and make the
receipt's bloom, bit for bit; what failed has none. What cannot be seen: a whole answer that was made up.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

import msgspec

from roundtrip.chain.blocks.bloom import address_bits, topic_bits
from roundtrip.chain.blocks.spans import MOST_TIMESTAMP_S, NodeLied
from roundtrip.chain.rpc.client import NULL, REVERTED, Meter, RpcCall, RpcError, RpcNode, quantity
from roundtrip.chain.rpc.errors import describe_error
from roundtrip.chain.simulate.revert_reason import reason_in
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.names import reason
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.venues.base import Log

CHAINS_OWN_TYPES = 0x64
"""Transactions of this type and above are the chain's own doing: deposits, retries, its clock."""
_Quantity = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{1,64}\Z")]
_Word = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{64}\Z")]
_Address = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{40}\Z")]
_Bytes = Annotated[str, msgspec.Meta(pattern=r"\A0x([0-9a-fA-F]{2})*\Z")]
T = TypeVar("T")
_LOGS_IN_A_ROW = 1_000
"""So many are checked before others have their turn: 5 to 13 ms."""
_MOST_WEI = 2**128
_MOST_GAS_PRICE_WEI, _MOST_NUMBER = 2**96, 2**63
"""What lies beyond is no number that a chain has."""
OUT_OF_GAS = "out of gas"
_OUT_OF_GAS = re.compile(r"out ?of ?gas", re.IGNORECASE)
"""As geth and anvil say it. A contract's own words come with a revert."""
_HEX = re.compile(r"0x([0-9a-fA-F]{2})*")


@dataclass(frozen=True, slots=True)
class SentTransaction:
    """A transaction as it was sent. ``block``: number and hash of the one it is in, and its place there;
    None: it is in none yet."""

    hash: TxHash
    sender: Address
    to: Address | None
    value_wei: int
    data: bytes
    gas_limit: int
    nonce: int
    type: int
    block: tuple[int, str, int] | None

    def is_the_chains_own(self) -> bool:
        """Whether nobody here signed it."""
        return self.type >= CHAINS_OWN_TYPES


@dataclass(frozen=True, slots=True)
class MinedTransaction:
    """What became of it. ``logs``: each with its index in the block."""

    succeeded: bool
    gas_used: int
    gas_price_wei: int
    created: Address | None
    logs: tuple[tuple[int, Log], ...]

    def fee_wei(self) -> int:
        """What it cost its sender beside what it sent."""
        return self.gas_used * self.gas_price_wei


@dataclass(frozen=True, slots=True)
class BlockAround:
    """The block it is in. ``others``: how many transactions beside it and the chain's own are in it, and
    ``by_sender``: how many of those are its sender's; ``miner``: whom the block pays."""

    ref: BlockRef
    parent_hash: str
    miner: Address
    others: int
    by_sender: int


class _Tx(msgspec.Struct, rename="camel"):
    hash: _Word
    sender: _Address = msgspec.field(name="from")
    to: _Address | None
    value: _Quantity
    input: _Bytes
    gas: _Quantity
    nonce: _Quantity
    block_hash: _Word | None = None
    block_number: _Quantity | None = None
    transaction_index: _Quantity | None = None
    chain_id: _Quantity | None = None
    type: _Quantity = "0x0"


class _ReceiptLog(msgspec.Struct, rename="camel"):
    address: str
    topics: Annotated[list[str], msgspec.Meta(max_length=4)]
    data: _Bytes
    block_hash: str
    transaction_hash: str
    log_index: _Quantity
    removed: bool = False


class _TransactionReceipt(msgspec.Struct, rename="camel"):
    transaction_hash: _Word
    block_hash: _Word
    block_number: _Quantity
    transaction_index: _Quantity
    sender: _Address = msgspec.field(name="from")
    to: _Address | None
    status: _Quantity
    gas_used: _Quantity
    logs: list[_ReceiptLog]
    logs_bloom: Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{512}\Z")]
    effective_gas_price: _Quantity
    contract_address: _Address | None = None

    def place(self) -> tuple[int, str, int]:
        """As ``Sent.block``."""
        return int(self.block_number, 16), self.block_hash.lower(), int(self.transaction_index, 16)


class _Inside(msgspec.Struct):
    hash: _Word
    sender: _Address = msgspec.field(name="from")
    type: _Quantity = "0x0"


class _TransactionBlock(msgspec.Struct, rename="camel"):
    number: _Quantity
    hash: _Word
    parent_hash: _Word
    timestamp: _Quantity
    miner: _Address
    transactions: list[_Inside]


# --- asking ----------------------------------------------------------------------------------------


async def read_transaction(
    node: RpcNode, tx_hash: TxHash, chain_id: int, meter: Meter
) -> tuple[SentTransaction, MinedTransaction | None] | None:
    """The transaction and what became of it, None while it is in no block; None: the node knows of none.
    Raises NodeFault, and NodeLied where its answers contradict each other."""
    try:
        return await _read(node, tx_hash, chain_id, meter)
    except NodeLied:
        # A block made while it was answering, or a fork: another time it is the same to both questions.
        return await _read(node, tx_hash, chain_id, meter)


async def _read(
    node: RpcNode, tx_hash: TxHash, chain_id: int, meter: Meter
) -> tuple[SentTransaction, MinedTransaction | None] | None:
    calls = [
        RpcCall("eth_chainId", []),
        RpcCall("eth_getTransactionByHash", [tx_hash]),
        RpcCall("eth_getTransactionReceipt", [tx_hash]),
    ]
    chain, told, became = await node.batch(calls, meter)
    if quantity(chain) != chain_id:
        raise NodeFault("it is of another chain")
    if told is NULL:
        if became is not NULL:
            raise NodeLied("it gave a receipt and not the transaction")
        return None
    sent = _sent(told, tx_hash, chain_id)
    if sent.block is None and became is NULL:
        return sent, None
    receipt = _decode(became, _TransactionReceipt, "receipt")
    if sent.block is None:
        # Its block was made in between; the block says whether that is so.
        sent = replace(sent, block=receipt.place())
    return sent, await _as_mined(receipt, sent)


def block_call(sent: SentTransaction) -> RpcCall:
    """Asks for the block it is in."""
    assert sent.block is not None
    return RpcCall("eth_getBlockByHash", [sent.block[1], True])


def read_block(answer: msgspec.Raw | RpcError, sent: SentTransaction) -> BlockAround:
    """What ``block_call`` was answered. Raises as ``read_transaction``."""
    assert sent.block is not None
    number, block_hash, index = sent.block
    block = _decode(answer, _TransactionBlock, "block")
    timestamp_s = int(block.timestamp, 16)
    if block.hash.lower() != block_hash or int(block.number, 16) != number:
        raise NodeLied("it gave another block than was asked for")
    if timestamp_s > MOST_TIMESTAMP_S:
        raise NodeLied("the time of its block is out of bounds")
    if not index < len(block.transactions) or block.transactions[index].hash.lower() != sent.hash:
        raise NodeLied("its block does not have the transaction where it should be")
    others = [
        one
        for one in block.transactions
        if one.hash.lower() != sent.hash and int(one.type, 16) < CHAINS_OWN_TYPES
    ]
    own = sum(one.sender.lower() == sent.sender for one in others)
    ref = BlockRef(number, block_hash, timestamp_s)
    miner = Address(block.miner.lower())
    return BlockAround(ref, block.parent_hash.lower(), miner, len(others), own)


async def read_change(
    node: RpcNode, wallet: Address, least_wei: int, around: BlockAround, meter: Meter
) -> int | None:
    """By how much the wallet's eth changed over the block, in wei; None where the node does not say so, as
    one that has let the state go, or says what cannot be: before it the wallet had ``least_wei``."""
    calls = [
        RpcCall("eth_getBalance", [wallet, {"blockHash": block_hash}])
        for block_hash in (around.parent_hash, around.ref.hash)
    ]
    try:
        before, after = await node.batch(calls, meter)
        before_wei, after_wei = quantity(before), quantity(after)
    except NodeFault:
        return None
    if not least_wei <= before_wei < _MOST_WEI or after_wei >= _MOST_WEI:
        return None
    return after_wei - before_wei


async def read_reason(node: RpcNode, sent: SentTransaction, around: BlockAround, meter: Meter) -> str | None:
    """Why it failed, found by running it again on the state before its block; cleaned. Empty: it fails again
    and says nothing; None: it goes through there, or the node cannot run it."""
    call = {
        "from": sent.sender,
        "data": "0x" + sent.data.hex(),
        "value": hex(sent.value_wei),
        "gas": hex(sent.gas_limit),
    } | ({} if sent.to is None else {"to": sent.to})
    try:
        (answer,) = await node.batch([RpcCall("eth_call", [call, {"blockHash": around.parent_hash}])], meter)
    except NodeFault:
        return None
    if not isinstance(answer, RpcError):
        return None
    data = _revert_data(answer)
    if data is None:
        if answer.code != REVERTED and _OUT_OF_GAS.search(answer.message):
            return OUT_OF_GAS
        return "" if answer.code == REVERTED else None
    return reason(reason_in(data) or "")


# --- reading what came -----------------------------------------------------------------------------


def _revert_data(error: RpcError) -> bytes | None:
    try:
        text = msgspec.json.decode(error.data, type=str)
    except (msgspec.DecodeError, ValueError):
        return None
    return bytes.fromhex(text[2:]) if _HEX.fullmatch(text) else None


def _sent(answer: msgspec.Raw | RpcError, tx_hash: TxHash, chain_id: int) -> SentTransaction:
    told = _decode(answer, _Tx, "transaction")
    if told.hash.lower() != tx_hash:
        raise NodeLied("it gave another transaction than was asked for")
    if told.chain_id is not None and int(told.chain_id, 16) not in (chain_id, 0):
        raise NodeLied("it gave a transaction of another chain")
    block = None
    if told.block_hash is not None:
        if told.block_number is None or told.transaction_index is None:
            raise NodeLied("it gave a transaction that is in a block and has no place there")
        block = int(told.block_number, 16), told.block_hash.lower(), int(told.transaction_index, 16)
    return SentTransaction(
        hash=tx_hash,
        sender=Address(told.sender.lower()),
        to=None if told.to is None else Address(told.to.lower()),
        value_wei=int(told.value, 16),
        data=bytes.fromhex(told.input[2:]),
        gas_limit=int(told.gas, 16),
        nonce=int(told.nonce, 16),
        type=int(told.type, 16),
        block=block,
    )


async def _as_mined(told: _TransactionReceipt, sent: SentTransaction) -> MinedTransaction:
    if told.transaction_hash.lower() != sent.hash or told.place() != sent.block:
        raise NodeLied("it gave another receipt than was asked for")
    if told.sender.lower() != sent.sender or (told.to and told.to.lower()) != sent.to:
        raise NodeLied("its receipt and its transaction name others")
    status, gas_used = int(told.status, 16), int(told.gas_used, 16)
    if status not in (0, 1) or (not sent.is_the_chains_own() and gas_used > sent.gas_limit):
        raise NodeLied("its receipt is of no transaction that can be")
    gas_price_wei = int(told.effective_gas_price, 16)
    if gas_price_wei >= _MOST_GAS_PRICE_WEI or told.place()[0] >= _MOST_NUMBER:
        raise NodeLied("its receipt's numbers are out of bounds")
    if status == 0 and told.logs:
        raise NodeLied("it gave logs of what failed")
    logs = await _logs(told.logs, sent)
    bloom = 0
    for count, (_, log) in enumerate(logs):
        if count % _LOGS_IN_A_ROW == 0:
            await asyncio.sleep(0)
        bloom |= address_bits(log.address)[1]
        for topic in log.topics:
            bloom |= topic_bits(topic)[1]
    if bloom != int(told.logs_bloom, 16):
        raise NodeLied("its receipt's logs are not those of its bloom")
    created = told.contract_address if sent.to is None and status == 1 else None
    made = None if created is None else Address(created.lower())
    return MinedTransaction(status == 1, gas_used, gas_price_wei, made, logs)


async def _logs(told: Sequence[_ReceiptLog], sent: SentTransaction) -> tuple[tuple[int, Log], ...]:
    assert sent.block is not None
    found = []
    for place, one in enumerate(told):
        if place % _LOGS_IN_A_ROW == 0:
            await asyncio.sleep(0)
        if (
            one.removed
            or one.transaction_hash.lower() != sent.hash
            or one.block_hash.lower() != sent.block[1]
        ):
            raise NodeLied("its receipt has logs of something else")
        try:
            address, topics = address_bits(one.address)[0], tuple(topic_bits(t)[0] for t in one.topics)
        except ValueError as error:
            raise NodeFault("it gave a receipt that cannot be read") from error
        log = Log(address, topics, bytes.fromhex(one.data[2:]))
        found.append((int(one.log_index, 16), log))
    first = found[0][0] if found else 0
    if [index for index, _ in found] != list(range(first, first + len(found))):
        raise NodeLied("its receipt's logs are not numbered one by one")
    return tuple(found)


def _decode(answer: msgspec.Raw | RpcError, shape: type[T], what: str) -> T:
    if isinstance(answer, RpcError):
        raise NodeFault(f"it gave no {what} ({describe_error(answer)})")
    try:
        return msgspec.json.decode(answer, type=shape)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault(f"it gave a {what} that cannot be read") from error
