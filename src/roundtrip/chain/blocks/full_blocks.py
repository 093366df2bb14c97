"""Reads one block with its transactions, or one receipt, and checks that it is the requested one."""

import msgspec

from roundtrip.chain.rpc.client import Answer, RpcCall, RpcError
from roundtrip.chain.rpc.errors import describe_error
from roundtrip.chain.rpc.hex_fields import Quantity, Word
from roundtrip.chain.rpc.node_logs import UnverifiedLog
from roundtrip.domain.base.errors import NodeFault
from roundtrip.venues.base import Log

from .spans import NodeLied, SpanTx


class UnreadableBlock(NodeFault):
    """The answer has an unknown form. A retry does not help."""


class FullBlock(msgspec.Struct):
    """A block with its transactions; hex as the node gives it."""

    number: Quantity
    hash: Word
    transactions: tuple[SpanTx, ...]


class _BlockLogs(msgspec.Struct, rename="camel"):
    block_hash: Word
    transaction_hash: Word
    logs: list[UnverifiedLog]


class BlockReceipt(msgspec.Struct, frozen=True):
    """A transaction's logs, in order, and its block, as the node claims them."""

    block_hash: str
    logs: tuple[Log, ...]


_BLOCKS = msgspec.json.Decoder(FullBlock)
_RECEIPTS = msgspec.json.Decoder(_BlockLogs)


def block_call(number: int) -> RpcCall:
    """Asks for a block with its transactions."""
    return RpcCall("eth_getBlockByNumber", [hex(number), True])


def read_block(answer: Answer, number: int) -> FullBlock:
    """Decodes the answer to ``block_call``. Raises NodeFault."""
    if isinstance(answer, RpcError):
        raise NodeFault(f"the node sent no block {number} ({describe_error(answer)})")
    try:
        block = _BLOCKS.decode(answer)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UnreadableBlock(f"the node sent block {number} in an unreadable form") from error
    if int(block.number, 16) != number:
        raise NodeLied(f"the node sent a different block for block {number}")
    return block


def receipt_call(tx_hash: str) -> RpcCall:
    """Asks for a transaction's receipt."""
    return RpcCall("eth_getTransactionReceipt", [tx_hash])


def read_receipt(answer: Answer, tx_hash: str) -> BlockReceipt:
    """Decodes the answer to ``receipt_call``. Raises NodeFault."""
    if isinstance(answer, RpcError):
        raise NodeFault(f"the node sent no receipt ({describe_error(answer)})")
    try:
        receipt = _RECEIPTS.decode(answer)
        logs = tuple(log.decode() for log in receipt.logs)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UnreadableBlock("the node sent an unreadable receipt") from error
    if receipt.transaction_hash.lower() != tx_hash.lower():
        raise NodeLied("the node sent a different receipt than requested")
    return BlockReceipt(receipt.block_hash.lower(), logs)
