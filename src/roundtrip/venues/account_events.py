"""Logs that the index does not store, but that the report on one transaction needs."""

from collections.abc import Callable

from roundtrip.domain.transaction.account import (
    AllowanceGiven,
    CollectionAllowed,
    DecodedLog,
    EthWrapped,
    ItemMoved,
    OperationEnded,
)

from . import abi
from .base import Contracts, Log
from .entry_point import ENTRY_POINTS, USER_OPERATION_EVENT
from .erc20 import TRANSFER_TOPIC


def _topic(signature: str) -> str:
    return "0x" + abi.keccak(signature.encode()).hex()


APPROVAL = _topic("Approval(address,address,uint256)")
APPROVAL_FOR_ALL = _topic("ApprovalForAll(address,address,bool)")
PERMIT2_APPROVAL = _topic("Approval(address,address,address,uint160,uint48)")
PERMIT2_PERMIT = _topic("Permit(address,address,address,uint160,uint48,uint48)")
DEPOSIT = _topic("Deposit(address,uint256)")
WITHDRAWAL = _topic("Withdrawal(address,uint256)")
TRANSFER_SINGLE = _topic("TransferSingle(address,address,address,uint256,uint256)")


class AccountEventReader:
    """Decodes these logs on one network."""

    def __init__(self, contracts: Contracts) -> None:
        self._contracts = contracts
        self._decoders: dict[str, Callable[[Log], DecodedLog | None]] = {
            APPROVAL: _decode_approval,
            APPROVAL_FOR_ALL: _decode_approval_for_all,
            PERMIT2_APPROVAL: self._decode_permit2,
            PERMIT2_PERMIT: self._decode_permit2,
            DEPOSIT: self._decode_wrap,
            WITHDRAWAL: self._decode_wrap,
            TRANSFER_SINGLE: _decode_erc1155_transfer,
            TRANSFER_TOPIC: _decode_erc721_transfer,
            USER_OPERATION_EVENT: _decode_operation_end,
        }

    def __call__(self, log: Log) -> DecodedLog | None:
        """The decoded log; None for any other log, and for one that does not fit its topic. Never raises."""
        decode = self._decoders.get(log.topics[0]) if log.topics else None
        return None if decode is None else decode(log)

    def _decode_permit2(self, log: Log) -> DecodedLog | None:
        """Approval and Permit (owner, token, spender indexed; amount, expiration, ...)."""
        owner, token, spender = (abi.topic_address(log.topics, index) for index in (1, 2, 3))
        amount, until_s = abi.uint_at(log.data, 0, 160), abi.uint_at(log.data, 1, 48)
        if log.address != self._contracts.permit2 or len(log.topics) != 4:
            return None
        if owner is None or token is None or spender is None or amount is None or until_s is None:
            return None
        return AllowanceGiven(token, owner, spender, amount, by_permit2=True, until_s=until_s)

    def _decode_wrap(self, log: Log) -> DecodedLog | None:
        """Deposit(dst indexed; wad) and Withdrawal(src indexed; wad) of weth itself."""
        account, amount = abi.topic_address(log.topics, 1), abi.uint_at(log.data, 0)
        if log.address != self._contracts.weth or len(log.topics) != 2 or account is None or amount is None:
            return None
        return EthWrapped(account, amount, log.topics[0] == DEPOSIT)


def _decode_approval(log: Log) -> DecodedLog | None:
    """Approval(owner, spender indexed; value). An ERC-721's, which indexes the third argument, too, is not
    decoded."""
    owner, spender = abi.topic_address(log.topics, 1), abi.topic_address(log.topics, 2)
    amount = abi.uint_at(log.data, 0)
    if len(log.topics) != 3 or owner is None or spender is None or amount is None:
        return None
    return AllowanceGiven(log.address, owner, spender, amount)


def _decode_approval_for_all(log: Log) -> DecodedLog | None:
    """ApprovalForAll(owner, operator indexed; approved)."""
    owner, operator = abi.topic_address(log.topics, 1), abi.topic_address(log.topics, 2)
    allowed = abi.uint_at(log.data, 0, 1)
    if len(log.topics) != 3 or owner is None or operator is None or allowed is None:
        return None
    return CollectionAllowed(log.address, owner, operator, allowed == 1)


def _decode_erc721_transfer(log: Log) -> DecodedLog | None:
    """An ERC-721's Transfer(from, to, tokenId indexed)."""
    sender, recipient = abi.topic_address(log.topics, 1), abi.topic_address(log.topics, 2)
    item = abi.topic_uint(log.topics, 3)
    if len(log.topics) != 4 or sender is None or recipient is None or item is None:
        return None
    return ItemMoved(log.address, sender, recipient, item, 1)


def _decode_erc1155_transfer(log: Log) -> DecodedLog | None:
    """An ERC-1155's TransferSingle(operator, from, to indexed; id, value)."""
    sender, recipient = abi.topic_address(log.topics, 2), abi.topic_address(log.topics, 3)
    item, count = abi.uint_at(log.data, 0), abi.uint_at(log.data, 1)
    if len(log.topics) != 4 or sender is None or recipient is None or item is None or count is None:
        return None
    return ItemMoved(log.address, sender, recipient, item, count)


def _decode_operation_end(log: Log) -> DecodedLog | None:
    """Whether a UserOperation succeeded, of its UserOperationEvent. ``entry_point.decode_user_operation``
    reads the same log to tell which logs belong to the account."""
    account, succeeded = abi.topic_address(log.topics, 2), abi.uint_at(log.data, 1, 1)
    if log.address not in ENTRY_POINTS or len(log.topics) != 4 or account is None or succeeded is None:
        return None
    return OperationEnded(account, succeeded == 1)
