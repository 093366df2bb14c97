"""ERC-20: selectors, the calls that every venue's plans share, and the Transfer event."""

from roundtrip.domain.base.events import PositionMoved, Transferred
from roundtrip.domain.base.types import Address

from . import abi
from .base import Call, Contracts, Log, LogDecoder

APPROVE = "0x095ea7b3"
BALANCE_OF = "0x70a08231"
TRANSFER = "0xa9059cbb"
TRANSFER_FROM = "0x23b872dd"
ALLOWANCE = "0xdd62ed3e"
DECIMALS = "0x313ce567"
SYMBOL = "0x95d89b41"
NAME = "0x06fdde03"
TOTAL_SUPPLY = "0x18160ddd"

# ERC-721 and ERC-1155: allowances of everything that a wallet holds of a collection.
IS_APPROVED_FOR_ALL = "0xe985e9c5"
SET_APPROVAL_FOR_ALL = "0xa22cb465"
GET_APPROVED = "0x081812fc"

# ERC-6909: allowances of what a wallet holds in a vault.
IS_OPERATOR = "0xb6363cf2"
SET_OPERATOR = "0x558a7297"
CLAIM_ALLOWANCE = "0x598af9e7"

TRANSFER_TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""Transfer(address,address,uint256)."""


def plan_approve(token: Address, spender: Address, amount_raw: int) -> Call:
    """approve(spender, amount)."""
    return Call(token, abi.call(APPROVE, spender, amount_raw))


def plan_transfer(token: Address, recipient: Address, amount_raw: int) -> Call:
    """transfer(recipient, amount)."""
    return Call(token, abi.call(TRANSFER, recipient, amount_raw))


def plan_transfer_from(token: Address, owner: Address, recipient: Address, amount_raw: int) -> Call:
    """transferFrom(owner, recipient, amount)."""
    return Call(token, abi.call(TRANSFER_FROM, owner, recipient, amount_raw))


def decoders(contracts: Contracts) -> tuple[LogDecoder, ...]:
    """Transfer, of any token."""
    return (LogDecoder(None, TRANSFER_TOPIC, decode_transfer),)


def decode_transfer(log: Log) -> Transferred | None:
    """Transfer(from, to indexed; value). An ERC-721 indexes the third argument, too."""
    token, topics, data = log
    if len(topics) != 3 or len(data) < abi.WORD:
        return None
    sender, recipient = abi.address_in(topics[1]), abi.address_in(topics[2])
    if sender is None or recipient is None:
        return None
    # tuple.__new__ takes half as long as calling the class: transfers are frequent.
    return tuple.__new__(Transferred, (token, sender, recipient, int.from_bytes(data[: abi.WORD], "big")))


def decode_position_transfer(log: Log) -> PositionMoved | None:
    """Transfer(from, to, tokenId indexed), an ERC-721's, of a position manager."""
    sender, recipient = abi.topic_address(log.topics, 1), abi.topic_address(log.topics, 2)
    number = abi.topic_uint(log.topics, 3)
    if len(log.topics) != 4 or sender is None or recipient is None or number is None:
        return None
    return PositionMoved(log.address, number, sender, recipient)
