"""The entry points of ERC-4337: the account of an operation acts, another address sends the transaction."""

from collections.abc import Callable

from roundtrip.domain.base.events import Operated, OperationsBegin
from roundtrip.domain.base.types import Address

from . import abi
from .base import Contracts, Log, LogDecoder

ENTRY_POINTS = frozenset(
    {
        Address("0x5ff137d4b0fdcd49dca30c7cf57e578a026d2789"),
        Address("0x0000000071727de22e5e9d8baf0edac6f37da032"),
        Address("0x4337084d9e255ff0702461cf8895ce9e3b5ff108"),
    }
)
"""Versions 0.6, 0.7 and 0.8: one address each, the same on every chain."""

BEFORE_EXECUTION = "0xbb47ee3e183a558b1a2ff0874b079f3fc5478b7454eacf2bfc5af2ff5878f972"
"""BeforeExecution()."""
SIGNATURE_AGGREGATOR_CHANGED = "0x575ff3acadd5ab348fe1855e217e0f3678f8d767d7494c9f9fefbee2e17cca4d"
"""SignatureAggregatorChanged(address)."""
USER_OPERATION_EVENT = "0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f"
"""UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)."""


def decoders(contracts: Contracts) -> tuple[LogDecoder, ...]:
    """Every entry point's logs: the start of its operations, and each operation."""
    return tuple(
        LogDecoder(entry_point, topic, decode)
        for entry_point in sorted(ENTRY_POINTS)
        for topic, decode in _DECODERS.items()
    )


def decode_operation_log(log: Log) -> OperationsBegin | Operated | None:
    """An entry point's log about operations; None for any other log."""
    decode = _DECODERS.get(log.topics[0]) if log.topics and log.address in ENTRY_POINTS else None
    return None if decode is None else decode(log)


def decode_execution_start(log: Log) -> OperationsBegin | None:
    """BeforeExecution(), emitted once all operations are validated."""
    return OperationsBegin(log.address) if len(log.topics) == 1 else None


def decode_aggregator_change(log: Log) -> OperationsBegin | None:
    """SignatureAggregatorChanged(aggregator indexed). Operations in groups run from here on: version 0.6
    validates them only after its BeforeExecution."""
    aggregator = abi.topic_address(log.topics, 1)
    return OperationsBegin(log.address) if len(log.topics) == 2 and aggregator is not None else None


def decode_user_operation(log: Log) -> Operated | None:
    """UserOperationEvent(userOpHash, sender, paymaster indexed; nonce, success, actualGasCost,
    actualGasUsed), emitted after the operation."""
    account, paymaster = abi.topic_address(log.topics, 2), abi.topic_address(log.topics, 3)
    success, last = abi.uint_at(log.data, 1, 1), abi.uint_at(log.data, 3)
    if len(log.topics) != 4 or account is None or paymaster is None or success is None or last is None:
        return None
    return Operated(log.address, account)


_DECODERS: dict[str, Callable[[Log], OperationsBegin | Operated | None]] = {
    BEFORE_EXECUTION: decode_execution_start,
    SIGNATURE_AGGREGATOR_CHANGED: decode_aggregator_change,
    USER_OPERATION_EVENT: decode_user_operation,
}
