"""What nitro's blocks have that anvil's do not: the parent chain's number, and a transaction of the chain's own."""

import hashlib
from typing import Any

from support.data_fee import MIN_BASE_FEE_WEI

Json = dict[str, Any]

GAS_LIMIT = 2**50
CHAIN_SENDER = "0x00000000000000000000000000000000000a4b05"
CHAIN_TYPE = "0x6a"
_VERSION = 51
"""Of the rules; a header's mixHash holds it."""
_NEWER_OPCODES = frozenset((0x5C, 0x5D, 0x5E, 0x5F))
"""TLOAD, TSTORE, MCOPY, PUSH0: later than the first version's rules."""


def parent_number(number: int) -> int:
    """What NUMBER is in a block of nitro's: the parent chain's height, a tick every 120 blocks. Above all
    that the local chain's contracts remember, as the real one is."""
    return 23_000_000 + number // 120


def translate_block(block: Json) -> None:
    """A header, or a block with its transactions or their hashes, as nitro has it."""
    number = int(block["number"], 16)
    block["l1BlockNumber"] = hex(parent_number(number))
    block["gasLimit"] = hex(GAS_LIMIT)
    block["difficulty"] = "0x1"
    block["mixHash"] = f"0x{0:016x}{parent_number(number):016x}{_VERSION:016x}{0:016x}"
    block["baseFeePerGas"] = hex(max(MIN_BASE_FEE_WEI, int(block["baseFeePerGas"], 16)))
    if "transactions" in block:
        transactions = block["transactions"]
        in_full = bool(transactions) and isinstance(transactions[0], dict)
        for transaction in transactions if in_full else ():
            shift_index(transaction)
        block["transactions"] = [_chain_hash(number), *transactions]


def chain_transaction(block: Json) -> Json:
    """The first transaction of a block, made by the chain itself: without gas and without a signature."""
    number = int(block["number"], 16)
    return {
        "blockHash": block["hash"],
        "blockNumber": block["number"],
        "from": CHAIN_SENDER,
        "gas": "0x0",
        "gasPrice": "0x0",
        "hash": _chain_hash(number),
        "input": f"0x6bf6a42d{10**9:064x}{parent_number(number):064x}{number:064x}{1:064x}",
        "nonce": "0x0",
        "to": CHAIN_SENDER,
        "transactionIndex": "0x0",
        "value": "0x0",
        "type": CHAIN_TYPE,
        "chainId": "0x1237",
        "v": "0x0",
        "r": "0x0",
        "s": "0x0",
    }


def chain_receipt(block: Json) -> Json:
    """The receipt of that transaction."""
    return {
        "blockHash": block["hash"],
        "blockNumber": block["number"],
        "contractAddress": None,
        "cumulativeGasUsed": "0x0",
        "effectiveGasPrice": block["baseFeePerGas"],
        "from": CHAIN_SENDER,
        "gasUsed": "0x0",
        "gasUsedForL1": "0x0",
        "l1BlockNumber": block["l1BlockNumber"],
        "logs": [],
        "status": "0x1",
        "to": CHAIN_SENDER,
        "transactionHash": _chain_hash(int(block["number"], 16)),
        "transactionIndex": "0x0",
        "type": CHAIN_TYPE,
    }


def _chain_hash(number: int) -> str:
    return "0x" + hashlib.sha256(f"the chain's own, {number}".encode()).hexdigest()


def shift_index(placed: Json) -> None:
    """Moves a transaction, a receipt or a log behind the chain's own transaction."""
    if placed.get("transactionIndex") is not None:
        placed["transactionIndex"] = hex(int(placed["transactionIndex"], 16) + 1)
    for log in placed.get("logs", []):
        shift_index(log)


def is_of_first_version(prev_randao: str) -> bool:
    """Whether a header with this mixHash has the first version of the rules."""
    return int(prev_randao[34:50], 16) == 0


def without_newer_opcodes(code: str) -> str:
    """Code as the first version of the rules runs it: newer opcodes are invalid."""
    changed, place = bytearray.fromhex(code[2:]), 0
    while place < len(changed):
        opcode = changed[place]
        if opcode in _NEWER_OPCODES:
            changed[place] = 0xFE
        place += 1 + max(0, opcode - 0x5F if 0x60 <= opcode <= 0x7F else 0)
    return "0x" + changed.hex()
