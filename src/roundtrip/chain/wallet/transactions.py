"""Reads a transaction, its receipt and its block from a node, by the transaction's hash. The node is not
trusted.

The checks: transaction, receipt and block name each other by hash, number and index; transaction and receipt
have the same sender and receiver; the transaction is of this chain; the logs are its own, numbered without a
gap, and their bloom equals the receipt's, bit for bit; a failed transaction has none. Not detected: a wholly
forged answer.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from roundtrip.chain.blocks.bloom import log_bits
from roundtrip.chain.blocks.spans import (
    CHAINS_OWN_TYPES,
    LOGS_IN_A_ROW,
    MAX_TIMESTAMP_S,
    NodeHeader,
    NodeLied,
    SpanTx,
)
from roundtrip.chain.rpc.client import NULL, REVERTED, Answer, Meter, RpcCall, RpcError, RpcNode, quantity
from roundtrip.chain.rpc.errors import describe_error
from roundtrip.chain.rpc.hex_fields import Bloom, HexAddress, HexBytes, Quantity, Word
from roundtrip.chain.rpc.node_logs import UnverifiedBlockLog, decode_number
from roundtrip.chain.simulate.revert_reason import reason_in
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.names import reason
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.venues.base import Log

T = TypeVar("T")
_MAX_WEI = 2**128
_MAX_GAS_PRICE_WEI, _MAX_NUMBER = 2**96, 2**63
"""Bounds above any value on a chain."""
OUT_OF_GAS = "out of gas"
_OUT_OF_GAS = re.compile(r"out ?of ?gas", re.IGNORECASE)
"""As geth and anvil word it. A contract's own text comes with a revert."""
_HEX = re.compile(r"0x([0-9a-fA-F]{2})*")


@dataclass(frozen=True, slots=True)
class SentTransaction:
    """A transaction as it was sent. ``block``: the number and hash of its block, and its index there; None:
    pending."""

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
        """Whether the chain created it: no account signed it."""
        return self.type >= CHAINS_OWN_TYPES


@dataclass(frozen=True, slots=True)
class MinedTransaction:
    """A transaction's receipt. ``logs``: each with its index in the block."""

    succeeded: bool
    gas_used: int
    gas_price_wei: int
    created: Address | None
    logs: tuple[tuple[int, Log], ...]

    def fee_wei(self) -> int:
        """The fee that the sender paid."""
        return self.gas_used * self.gas_price_wei


@dataclass(frozen=True, slots=True)
class BlockAround:
    """The transaction's block. ``others``: how many more transactions it has, without those created by the
    chain. ``by_sender``: how many of them are of the same sender. ``miner``: the block's fee recipient."""

    ref: BlockRef
    parent_hash: str
    miner: Address
    others: int
    by_sender: int


class _Tx(SpanTx, frozen=True, kw_only=True, rename="camel"):
    input: HexBytes
    gas: Quantity
    block_hash: Word | None = None
    block_number: Quantity | None = None
    transaction_index: Quantity | None = None
    chain_id: Quantity | None = None


class _TransactionReceipt(msgspec.Struct, rename="camel"):
    transaction_hash: Word
    block_hash: Word
    block_number: Quantity
    transaction_index: Quantity
    sender: HexAddress = msgspec.field(name="from")
    to: HexAddress | None
    status: Quantity
    gas_used: Quantity
    logs: list[UnverifiedBlockLog]
    logs_bloom: Bloom
    effective_gas_price: Quantity
    contract_address: HexAddress | None = None

    def place(self) -> tuple[int, str, int]:
        """As ``SentTransaction.block``."""
        return int(self.block_number, 16), self.block_hash.lower(), int(self.transaction_index, 16)


class _BlockTx(msgspec.Struct):
    hash: Word
    sender: HexAddress = msgspec.field(name="from")
    type: Quantity = "0x0"


class _TransactionBlock(NodeHeader):
    miner: HexAddress
    transactions: list[_BlockTx]


# --- requests --------------------------------------------------------------------------------------


async def read_transaction(
    node: RpcNode, tx_hash: TxHash, chain_id: int, meter: Meter
) -> tuple[SentTransaction, MinedTransaction | None] | None:
    """The transaction and its receipt (None while it is in no block); None: the node does not know it. Raises
    NodeFault, and NodeLied where the node's answers contradict each other."""
    try:
        return await _read(node, tx_hash, chain_id, meter)
    except NodeLied:
        # A new block, or a fork, between the two answers: a second read is consistent.
        return await _read(node, tx_hash, chain_id, meter)


async def _read(
    node: RpcNode, tx_hash: TxHash, chain_id: int, meter: Meter
) -> tuple[SentTransaction, MinedTransaction | None] | None:
    calls = [
        RpcCall("eth_chainId", []),
        RpcCall("eth_getTransactionByHash", [tx_hash]),
        RpcCall("eth_getTransactionReceipt", [tx_hash]),
    ]
    chain, transaction_answer, receipt_answer = await node.batch(calls, meter)
    if quantity(chain) != chain_id:
        raise NodeFault("the node is on a different chain")
    if transaction_answer is NULL:
        if receipt_answer is not NULL:
            raise NodeLied("the node sent a receipt without its transaction")
        return None
    sent = _as_sent(transaction_answer, tx_hash, chain_id)
    if sent.block is None and receipt_answer is NULL:
        return sent, None
    receipt = decode_answer(receipt_answer, _TransactionReceipt, "receipt")
    if sent.block is None:
        # It was mined between the two answers; its block shows whether that is true.
        sent = replace(sent, block=receipt.place())
    return sent, await _as_mined(receipt, sent)


def block_call(sent: SentTransaction) -> RpcCall:
    """Asks for the transaction's block."""
    assert sent.block is not None
    return RpcCall("eth_getBlockByHash", [sent.block[1], True])


def read_block(answer: Answer, sent: SentTransaction) -> BlockAround:
    """Decodes the answer to ``block_call``. Raises as ``read_transaction``."""
    assert sent.block is not None
    number, block_hash, index = sent.block
    block = decode_answer(answer, _TransactionBlock, "block")
    timestamp_s = int(block.timestamp, 16)
    if block.hash.lower() != block_hash or int(block.number, 16) != number:
        raise NodeLied("the node sent a different block than requested")
    if timestamp_s > MAX_TIMESTAMP_S:
        raise NodeLied("the timestamp of the node's block is out of bounds")
    if not index < len(block.transactions) or block.transactions[index].hash.lower() != sent.hash:
        raise NodeLied("the node's block does not have the transaction at its index")
    others = [
        tx
        for tx in block.transactions
        if tx.hash.lower() != sent.hash and int(tx.type, 16) < CHAINS_OWN_TYPES
    ]
    by_sender = sum(tx.sender.lower() == sent.sender for tx in others)
    ref = BlockRef(number, block_hash, timestamp_s)
    miner = Address(block.miner.lower())
    return BlockAround(ref, block.parent_hash.lower(), miner, len(others), by_sender)


async def read_change(
    node: RpcNode, wallet: Address, least_wei: int, around: BlockAround, meter: Meter
) -> int | None:
    """The change of the wallet's eth over the block, in wei. None where the node does not have the state, or
    gives an impossible balance: before the block the wallet had at least ``least_wei``."""
    calls = [
        RpcCall("eth_getBalance", [wallet, {"blockHash": block_hash}])
        for block_hash in (around.parent_hash, around.ref.hash)
    ]
    try:
        before, after = await node.batch(calls, meter)
        before_wei, after_wei = quantity(before), quantity(after)
    except NodeFault:
        return None
    if not least_wei <= before_wei < _MAX_WEI or after_wei >= _MAX_WEI:
        return None
    return after_wei - before_wei


async def read_reason(node: RpcNode, sent: SentTransaction, around: BlockAround, meter: Meter) -> str | None:
    """The cleaned revert reason, found by running the transaction on the state before its block. Empty: it
    fails without a reason; None: it succeeds there, or the node cannot run it."""
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


# --- answers ---------------------------------------------------------------------------------------


def _revert_data(error: RpcError) -> bytes | None:
    try:
        text = msgspec.json.decode(error.data, type=str)
    except (msgspec.DecodeError, ValueError):
        return None
    return bytes.fromhex(text[2:]) if _HEX.fullmatch(text) else None


def _as_sent(answer: Answer, tx_hash: TxHash, chain_id: int) -> SentTransaction:
    tx = decode_answer(answer, _Tx, "transaction")
    if tx.hash.lower() != tx_hash:
        raise NodeLied("the node sent a different transaction than requested")
    if tx.chain_id is not None and int(tx.chain_id, 16) not in (chain_id, 0):
        raise NodeLied("the node sent a transaction of a different chain")
    block = None
    if tx.block_hash is not None:
        if tx.block_number is None or tx.transaction_index is None:
            raise NodeLied("the node sent a transaction of a block without its index")
        block = int(tx.block_number, 16), tx.block_hash.lower(), int(tx.transaction_index, 16)
    return SentTransaction(
        hash=tx_hash,
        sender=Address(tx.sender.lower()),
        to=None if tx.to is None else Address(tx.to.lower()),
        value_wei=int(tx.value, 16),
        data=bytes.fromhex(tx.input[2:]),
        gas_limit=int(tx.gas, 16),
        nonce=int(tx.nonce, 16),
        type=int(tx.type, 16),
        block=block,
    )


async def _as_mined(receipt: _TransactionReceipt, sent: SentTransaction) -> MinedTransaction:
    if receipt.transaction_hash.lower() != sent.hash or receipt.place() != sent.block:
        raise NodeLied("the node sent a different receipt than requested")
    if receipt.sender.lower() != sent.sender or (receipt.to and receipt.to.lower()) != sent.to:
        raise NodeLied("the node's receipt and transaction name different accounts")
    status, gas_used = int(receipt.status, 16), int(receipt.gas_used, 16)
    if status not in (0, 1) or (not sent.is_the_chains_own() and gas_used > sent.gas_limit):
        raise NodeLied("the node sent an impossible receipt")
    gas_price_wei = int(receipt.effective_gas_price, 16)
    if gas_price_wei >= _MAX_GAS_PRICE_WEI or receipt.place()[0] >= _MAX_NUMBER:
        raise NodeLied("the receipt's numbers are out of bounds")
    if status == 0 and receipt.logs:
        raise NodeLied("the node sent logs of a failed transaction")
    logs = await _logs(receipt.logs, sent)
    bloom = 0
    for count, (_, log) in enumerate(logs):
        if count % LOGS_IN_A_ROW == 0:
            await asyncio.sleep(0)
        bloom |= log_bits(log)
    if bloom != int(receipt.logs_bloom, 16):
        raise NodeLied("the receipt's logs do not match its bloom")
    created = receipt.contract_address if sent.to is None and status == 1 else None
    created_at = None if created is None else Address(created.lower())
    return MinedTransaction(status == 1, gas_used, gas_price_wei, created_at, logs)


async def _logs(raw_logs: Sequence[UnverifiedBlockLog], sent: SentTransaction) -> tuple[tuple[int, Log], ...]:
    assert sent.block is not None
    logs = []
    for count, raw in enumerate(raw_logs):
        if count % LOGS_IN_A_ROW == 0:
            await asyncio.sleep(0)
        if (
            raw.removed
            or raw.transaction_hash.lower() != sent.hash
            or raw.block_hash.lower() != sent.block[1]
        ):
            raise NodeLied("the receipt has logs of a different transaction")
        try:
            logs.append((decode_number(raw.log_index), raw.decode()))
        except ValueError as error:
            raise NodeFault("the node sent an unreadable receipt") from error
    first = logs[0][0] if logs else 0
    if [index for index, _ in logs] != list(range(first, first + len(logs))):
        raise NodeLied("the receipt's logs are not numbered consecutively")
    return tuple(logs)


def decode_answer(answer: Answer, shape: type[T], what: str) -> T:
    """Decodes an answer as ``shape``. ``what``: its name in an error. Raises NodeFault."""
    if isinstance(answer, RpcError):
        raise NodeFault(f"the node sent no {what} ({describe_error(answer)})")
    try:
        return msgspec.json.decode(answer, type=shape)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault(f"the node sent an unreadable {what}") from error
