"""Reads a payment: the tokens that a transaction moved, and whether it is final. The node is not trusted.

The checks, beyond those of ``transactions``: the transaction's block is the chain's block at that number, and
so is the finalized block, which is as high or higher. After finality both are read by one request, answered
by one node. The block holds the transaction at its index, and its bloom includes the receipt's. The block's
logs, requested separately, show the same transfers with the same amounts, which no bloom covers. Not
detected: a wholly forged chain.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from roundtrip.chain.blocks.bloom import log_bits
from roundtrip.chain.blocks.spans import LOGS_IN_A_ROW, NodeLied
from roundtrip.chain.rpc.client import Answer, Meter, RpcCall, RpcNode, quantity
from roundtrip.chain.rpc.hex_fields import Bloom, Quantity, Word
from roundtrip.chain.rpc.node_logs import UnverifiedBlockLog, decode_number
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.events import Transferred
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.venues import abi, erc20
from roundtrip.venues.base import Log

from .transactions import MinedTransaction, SentTransaction, decode_answer, read_transaction

_MAX_NUMBER = 2**63


@dataclass(frozen=True, slots=True)
class MinedPayment:
    """A transaction in a block. ``place``: its index there. ``transfers``: of every token, with the log's
    index in the block. ``bloom_bits``: set by its logs. ``finalized``: the chain's finalized block when
    the receipt was read."""

    sent: SentTransaction
    block_number: int
    block_hash: str
    place: int
    succeeded: bool
    transfers: tuple[tuple[int, Transferred], ...]
    bloom_bits: int
    finalized: BlockRef

    def is_final(self) -> bool:
        """Whether its block is final, provided that it is still the chain's: ``confirm`` checks that."""
        return self.block_number <= self.finalized.number


class _PaymentHeader(msgspec.Struct):
    number: Quantity
    hash: Word
    timestamp: Quantity

    def ref(self) -> BlockRef:
        return BlockRef(int(self.number, 16), self.hash.lower(), int(self.timestamp, 16))


class _PaymentBlock(_PaymentHeader, rename="camel"):
    logs_bloom: Bloom
    transactions: list[Word]


# --- requests --------------------------------------------------------------------------------------


async def find(
    node: RpcNode, tx_hash: TxHash, chain_id: int, meter: Meter
) -> MinedPayment | SentTransaction | None:
    """The transaction with its receipt's transfers; as it was sent, while it is in no block; None: the node
    does not know it. Raises NodeFault, and NodeLied where the node's answers contradict each other."""
    meters = Meter(), Meter()
    transaction, finalized = await asyncio.gather(
        read_transaction(node, tx_hash, chain_id, meters[0]),
        _read_finalized(node, meters[1]),
        return_exceptions=True,
    )
    meter.add(*meters)
    for outcome in (transaction, finalized):
        if isinstance(outcome, BaseException):
            raise outcome
    assert not isinstance(transaction, BaseException)
    assert not isinstance(finalized, BaseException)
    if transaction is None:
        return None
    sent, mined = transaction
    return sent if mined is None else await _as_payment(sent, mined, finalized)


async def confirm(
    node: RpcNode, payment: MinedPayment, token: Address, wallet: Address, chain_id: int, meter: Meter
) -> None:
    """Returns when the transaction is in a final block of the chain and the wallet's transfers of the token
    in it equal the receipt's. Raises NodeFault when that is not so, or cannot be checked. ``payment`` must be
    final by its own fields."""
    assert payment.is_final()
    calls = [
        # In this batch, so that the node pool adds no guard call of its own: see _of_one_node.
        RpcCall("eth_chainId", []),
        RpcCall("eth_getBlockByNumber", [hex(payment.finalized.number), False]),
        RpcCall("eth_getBlockByNumber", [hex(payment.block_number), False]),
        RpcCall(
            "eth_getLogs",
            [
                {
                    "blockHash": payment.block_hash,
                    "address": token,
                    "topics": [erc20.TRANSFER_TOPIC, "0x" + abi.word(wallet)],
                }
            ],
        ),
    ]
    chain, finalized, block, logs = await _of_one_node(node, calls, meter)
    if quantity(chain) != chain_id:
        raise NodeFault("the node is on a different chain")
    # The finalized block must still be the chain's: on another fork its finality proves nothing.
    if decode_answer(finalized, _PaymentHeader, "final block").ref() != payment.finalized:
        raise NodeLied("the block that was final has changed")
    _check_block(decode_answer(block, _PaymentBlock, "block"), payment)
    block_transfers = _read_transfers(
        decode_answer(logs, list[UnverifiedBlockLog], "logs"), payment, token, wallet
    )
    receipt_transfers = [
        (index, transfer)
        for index, transfer in payment.transfers
        if transfer.token == token and transfer.sender == wallet
    ]
    if block_transfers != receipt_transfers:
        raise NodeLied("the node's receipt and logs show different transfers")


async def _read_finalized(node: RpcNode, meter: Meter) -> BlockRef:
    (answer,) = await node.batch([RpcCall("eth_getBlockByNumber", ["finalized", False])], meter)
    finalized = decode_answer(answer, _PaymentHeader, "final block").ref()
    if finalized.number >= _MAX_NUMBER:
        raise NodeLied("the number of the node's final block is out of bounds")
    return finalized


async def _of_one_node(node: RpcNode, calls: Sequence[RpcCall], meter: Meter) -> list[Answer]:
    """Sends the calls until one node has answered all of them. A node pool may fill the gaps of a lagging
    node from another one, and the combined answer could be one that neither node gives; then more calls were
    sent than were passed."""
    for _ in range(2):
        attempt = Meter()
        answers = await node.batch(calls, attempt)
        meter.trips += attempt.trips
        meter.calls += attempt.calls
        meter.node_ms += attempt.node_ms
        if attempt.calls <= len(calls):
            return answers
    raise NodeFault("several nodes answered, but none of them all of it")


# --- answers ---------------------------------------------------------------------------------------


async def _as_payment(sent: SentTransaction, mined: MinedTransaction, finalized: BlockRef) -> MinedPayment:
    assert sent.block is not None
    number, block_hash, place = sent.block
    transfers, bloom = [], 0
    for count, (index, log) in enumerate(mined.logs):
        if count % LOGS_IN_A_ROW == 0:
            await asyncio.sleep(0)
        bloom |= log_bits(log)
        transfer = _decode_transfer(log)
        if transfer is not None:
            transfers.append((index, transfer))
    return MinedPayment(sent, number, block_hash, place, mined.succeeded, tuple(transfers), bloom, finalized)


def _decode_transfer(log: Log) -> Transferred | None:
    """Decodes a Transfer, only in exactly ERC-20's form."""
    if not log.topics or log.topics[0] != erc20.TRANSFER_TOPIC or len(log.data) != abi.WORD:
        return None
    return erc20.decode_transfer(log)


def _check_block(block: _PaymentBlock, payment: MinedPayment) -> None:
    if (int(block.number, 16), block.hash.lower()) != (payment.block_number, payment.block_hash):
        raise NodeLied("the transaction's block is no longer in the chain")
    hashes = block.transactions
    if not payment.place < len(hashes) or hashes[payment.place].lower() != payment.sent.hash:
        raise NodeLied("the node's block does not have the transaction at its index")
    if payment.bloom_bits & ~int(block.logs_bloom, 16):
        raise NodeLied("the block's bloom does not contain the receipt's logs")


def _read_transfers(
    logs: list[UnverifiedBlockLog], payment: MinedPayment, token: Address, wallet: Address
) -> list[tuple[int, Transferred]]:
    """The wallet's transfers of the token in this transaction, from the logs of its block."""
    transfers = []
    for raw in logs:
        if raw.removed or raw.block_hash.lower() != payment.block_hash:
            raise NodeLied("the node sent logs that were not requested")
        if raw.transaction_hash.lower() != payment.sent.hash:
            continue
        try:
            log, log_index = raw.decode(), decode_number(raw.log_index)
        except ValueError as error:
            raise NodeFault("the node sent unreadable logs") from error
        transfer = _decode_transfer(log)
        if transfer is not None and transfer.token == token and transfer.sender == wallet:
            transfers.append((log_index, transfer))
    return sorted(transfers, key=lambda indexed: indexed[0])
