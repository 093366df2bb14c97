"""Finds the first block with a token's code, in a node's archive, and who put it there.

Code is searched with sixteen probes per trip, as in ``origins``: a chain of a hundred million blocks takes
nine trips, including confirmation. The search is correct because code stays: since EIP-6780 only a contract
made in the same transaction can destroy itself. An earlier contract at the same address, or an account that
runs another's code for a while (EIP-7702), may give contradicting answers, which is None."""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

from roundtrip.chain.blocks.block_ranges import between
from roundtrip.chain.blocks.full_blocks import (
    FullBlock,
    UnreadableBlock,
    block_call,
    read_block,
    read_receipt,
    receipt_call,
)
from roundtrip.chain.blocks.spans import NodeLied
from roundtrip.chain.blocks.state_witness import NoArchive, read_witnessed
from roundtrip.chain.rpc.client import Answer, RpcCall, RpcError, RpcNode, hex_bytes
from roundtrip.chain.rpc.errors import concern, describe_error
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.domain.transaction.account import account_at, operations
from roundtrip.venues import abi, entry_point
from roundtrip.venues.base import Log

__all__ = ["NoArchive", "TokenCreation", "contract_address", "find_creation", "find_first_block"]

PROBES = 16
"""States requested in one trip."""
_ONE_BYTE = 0x80
"""A byte below it is its own RLP."""


class TokenCreation(NamedTuple):
    """The creation of a token. ``how``: ``deployment``, the transaction itself created the contract;
    ``launch_tx``, a factory created it in the transaction of the token's first log. ``sender``: the
    transaction's sender, or the account of the user operation."""

    sender: Address
    tx_hash: TxHash
    how: Literal["deployment", "launch_tx"]


# --- the first block -------------------------------------------------------------------------------


async def find_first_block(node: RpcNode, token: Address, high: BlockRef) -> BlockRef | None:
    """The first block with the token's code at its end, up to ``high``, which should be final. None: not
    found out, or there is no code. Raises NoArchive if the node has no states that old, ServiceFull
    when the budget is spent."""
    try:
        number = await _search(node, token, high.number)
        if number is None:
            return None
        deciding = [_code_call(token, number), *([_code_call(token, number - 1)] if number else [])]
        block, answers = await read_witnessed(node, number, max(number - 1, 0), high, deciding)
        has_code, *had_code = [_has_code(answer) for answer in answers]
    except NoArchive:
        raise
    except NodeFault:
        return None
    if not has_code or any(had_code):
        return None
    return BlockRef(number, block.hash.lower(), int(block.timestamp, 16))


async def _search(node: RpcNode, token: Address, high: int) -> int | None:
    """The first block number with code; None: there is none. Raises NodeFault."""
    has_code_at: dict[int, bool] = {}
    # The newest comes first: a node that has it but not an older one has pruned that.
    numbers = [high, *between(-1, high, PROBES - 1)]
    while True:
        answers = await node.batch([_code_call(token, number) for number in numbers])
        has_code_at |= zip(numbers, _read_codes(answers, not has_code_at), strict=True)
        last_without = max((number for number, has in has_code_at.items() if not has), default=-1)
        first_with = min((number for number, has in has_code_at.items() if has), default=None)
        if first_with is None:
            return None
        if last_without > first_with:
            raise NodeFault("the node's answers contradict each other")
        if first_with == last_without + 1:
            return first_with
        numbers = between(last_without, first_with, PROBES)


def _code_call(token: Address, number: int) -> RpcCall:
    return RpcCall("eth_getCode", [token, hex(number)])


def _has_code(answer: Answer) -> bool:
    """Raises NoArchive if the node reports the state as pruned, NodeFault for other errors."""
    if isinstance(answer, RpcError) and concern(answer) == "pruned":
        raise NoArchive("the node no longer has that state")
    return bool(hex_bytes(answer))


def _read_codes(answers: Sequence[Answer], has_newest: bool) -> list[bool]:
    """``has_newest``: the first answer is of the newest block, which the node may not have reached yet."""
    has_code = [_has_code(answers[0])] if has_newest else []
    for answer in answers[len(has_code) :]:
        if isinstance(answer, RpcError) and concern(answer) == "behind":
            raise NoArchive("the node has no state that old")
        has_code.append(_has_code(answer))
    return has_code


# --- the sender ------------------------------------------------------------------------------------


async def find_creation(
    node: RpcNode, token: Address, first: BlockRef, first_tx: TxHash | None = None
) -> TokenCreation | None:
    """Finds the creation of the token in ``first``, the first block with its code. ``first_tx``: the
    transaction of its first log there; None: it is requested. Returns None if a contract made the token and
    it has no log in that block. Raises NodeFault if the node did not answer, ServiceFull."""
    try:
        (answer,) = await node.batch([block_call(first.number)])
        block = read_block(answer, first.number)
        if block.hash.lower() != first.hash:
            raise NodeLied(f"the node now has a different block {first.number}")
        for tx in block.transactions:
            sender = Address(tx.sender.lower())
            if tx.to is None and contract_address(sender, int(tx.nonce, 16)) == token:
                return TokenCreation(sender, TxHash(tx.hash.lower()), "deployment")
        tx_hash = first_tx or await _first_tx(node, token, first)
        return None if tx_hash is None else await _read_launch(node, token, block, tx_hash)
    except UnreadableBlock:
        return None


def contract_address(sender: Address, nonce: int) -> Address:
    """The address of the contract that a transaction with this sender and nonce makes: the last twenty bytes
    of keccak256(rlp([sender, nonce]))."""
    nonce_bytes = nonce.to_bytes((nonce.bit_length() + 7) // 8, "big")
    encoded_nonce = (
        nonce_bytes
        if len(nonce_bytes) == 1 and nonce_bytes[0] < _ONE_BYTE
        else bytes([0x80 + len(nonce_bytes)]) + nonce_bytes
    )
    body = b"\x94" + bytes.fromhex(sender[2:]) + encoded_nonce
    return Address("0x" + abi.keccak(bytes([0xC0 + len(body)]) + body)[12:].hex())


class _CreationLog(msgspec.Struct, rename="camel"):
    address: str
    block_hash: str
    transaction_hash: Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{64}\Z")]


async def _first_tx(node: RpcNode, token: Address, first: BlockRef) -> TxHash | None:
    """The transaction of the token's first log in the block; None: there is none."""
    filter_ = {"blockHash": first.hash, "address": token}
    (answer,) = await node.batch([RpcCall("eth_getLogs", [filter_])])
    if isinstance(answer, RpcError):
        raise NodeFault(f"the node sent no logs of the block ({describe_error(answer)})")
    try:
        logs = msgspec.json.decode(answer, type=list[_CreationLog])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("the node sent unreadable logs") from error
    if any((log.address.lower(), log.block_hash.lower()) != (token, first.hash) for log in logs):
        raise NodeLied("the node sent a log that was not requested")
    return TxHash(logs[0].transaction_hash.lower()) if logs else None


async def _read_launch(
    node: RpcNode, token: Address, block: FullBlock, tx_hash: TxHash
) -> TokenCreation | None:
    """The creation by a transaction: by its sender, or by the account of the user operation that emitted the
    token's first log in it."""
    tx = next((tx for tx in block.transactions if tx.hash.lower() == tx_hash), None)
    if tx is None:
        raise NodeLied("the node sent a log that belongs to no transaction of its block")
    (answer,) = await node.batch([receipt_call(tx_hash)])
    receipt = read_receipt(answer, tx_hash)
    if receipt.block_hash != block.hash.lower():
        raise NodeLied("the node sent a receipt of a different block")
    index = next((index for index, log in enumerate(receipt.logs) if log.address == token), None)
    if index is None:
        return None
    account = _operation_account(receipt.logs, index)
    return TokenCreation(account or Address(tx.sender.lower()), tx_hash, "launch_tx")


def _operation_account(logs: Sequence[Log], log_index: int) -> Address | None:
    events = []
    for index, log in enumerate(logs):
        event = entry_point.decode_operation_log(log)
        if event is not None:
            events.append((0, index, event))
    return account_at(operations(events), log_index)
