"""Reads a block by its transactions' receipts, because its logs exceed one answer of the node.

A receipt holds the logs of its transaction, and a batch of one receipt is the smallest request, so nearly any
block can be read. The result is checked as a span is (``spans``).
"""

from collections.abc import Sequence

import msgspec

from roundtrip.chain.rpc.client import Answer, RpcCall, RpcError, RpcNode
from roundtrip.chain.rpc.errors import concern, describe_error
from roundtrip.chain.rpc.hex_fields import Word
from roundtrip.domain.base.errors import NodeFault

from .spans import BlockRead, NodeLied, SpanRefused, ask, asks_too_much, check_answers

_MAX_AT_ONCE = 16


class _Transaction(msgspec.Struct):
    hash: Word


class _BlockHashes(msgspec.Struct):
    hash: Word
    transactions: tuple[_Transaction, ...]


class _ReceiptHashes(msgspec.Struct, rename="camel"):
    block_hash: str
    transaction_hash: str
    logs: msgspec.Raw


_BLOCKS = msgspec.json.Decoder(_BlockHashes)
_RECEIPTS = msgspec.json.Decoder(_ReceiptHashes)


async def read_by_receipts(node: RpcNode, number: int) -> BlockRead:
    """Reads the block in several trips of a few receipts each, fewer where the node refuses that many. Raises
    as ``spans.read_span``; SpanRefused and NodeAnswerTooLarge when a single receipt is too much."""
    (answer,) = await ask(node, [RpcCall("eth_getBlockByNumber", [hex(number), True])])
    block = _read_block(answer)
    hashes = [transaction.hash for transaction in block.transactions]
    logs: list[Answer] = []
    at_once = _MAX_AT_ONCE
    while len(logs) < len(hashes):
        wanted = hashes[len(logs) : len(logs) + at_once]
        try:
            logs += await _logs_of(node, block.hash, wanted)
        except NodeFault as fault:
            if len(wanted) == 1 or not asks_too_much(fault):
                raise
            at_once = len(wanted) // 2
        else:
            at_once = min(2 * at_once, _MAX_AT_ONCE)
    (read,) = await check_answers(logs, [answer], [number])
    return read


async def _logs_of(node: RpcNode, block_hash: str, tx_hashes: Sequence[str]) -> list[msgspec.Raw]:
    """The logs of each transaction, undecoded. Raises NodeLied for a receipt of another block or
    transaction."""
    answers = await ask(node, [RpcCall("eth_getTransactionReceipt", [tx_hash]) for tx_hash in tx_hashes])
    logs: list[msgspec.Raw] = []
    for tx_hash, answer in zip(tx_hashes, answers, strict=True):
        receipt = _read_receipt(answer)
        if receipt.transaction_hash.lower() != tx_hash.lower():
            raise NodeLied("the node sent a different receipt than requested")
        if receipt.block_hash.lower() != block_hash.lower():
            raise NodeLied("the node sent a receipt of a different block")
        logs.append(receipt.logs)
    return logs


def _read_block(answer: Answer) -> _BlockHashes:
    if isinstance(answer, RpcError):
        raise NodeFault(f"the node sent none of the requested blocks ({describe_error(answer)})")
    try:
        return _BLOCKS.decode(answer)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("the node sent an unreadable block") from error


def _read_receipt(answer: Answer) -> _ReceiptHashes:
    if isinstance(answer, RpcError):
        refused = concern(answer) in ("batch", "range")
        raise (SpanRefused if refused else NodeFault)(f"the node sent no receipt ({describe_error(answer)})")
    try:
        return _RECEIPTS.decode(answer)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("the node sent an unreadable receipt") from error
