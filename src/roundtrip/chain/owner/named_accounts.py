"""Finds the accounts that a token names: in its code, in its storage, and in its events. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.chain.rpc.node_logs import UnverifiedLog
from roundtrip.chain.simulate.request import Plan, PlannedBlock, SimulatedStep, StepResult
from roundtrip.chain.simulate.token_facts import BEACON_SLOT, IMPLEMENTATION_SLOT, PROXY_ADMIN_SLOT
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import WEI_PER_ETH, Address, BlockRef
from roundtrip.domain.check.evidence import Environment
from roundtrip.venues import abi
from roundtrip.venues.base import Call
from roundtrip.venues.erc20 import TRANSFER_TOPIC

_FIRST_SLOTS = 32
_SLOTS_GAS = 400_000
"""Of a read of all slots of a contract, 66 at most: about 2,300 for each."""

_MIN_ADDRESS = 2**120
"""Smaller numbers are taken for amounts. One address in 2**40 is as small."""
_MAX_HASHES = 32
_MAX_LOGS = 100
"""Logs that are read at each end of a list."""
_RECENT_BLOCKS = 10_000
"""A range that nodes with a limit still serve."""
_PUSH1, _PUSH20, _PUSH32 = 0x60, 0x73, 0x7F
_TAIL_WORDS = 8
"""Vyper keeps immutables as words behind the code."""

ROLE_TOPICS = (
    "0x2f8788117e7eff1d82e926ec794901d17c78024a50270940304540a733656f0d",
    "0x8be0079c531659141344cd1fd0a4f28419497f9722a3daafe3b4186f6b6457e0",
    "0xdd0e34038ac38b2a1ce960229778ac48a8719bc900b6c4f8d0475c6e8b385a60",
    "0x65fae35e00000000000000000000000000000000000000000000000000000000",
)
"""RoleGranted(bytes32,address,address), OwnershipTransferred(address,address), Rely(address), and a call of
rely(address) in the log of a contract with wards."""
_APPROVAL_TOPIC = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"
_LEFT_OUT = frozenset({TRANSFER_TOPIC, _APPROVAL_TOPIC, PROXY_ADMIN_SLOT, IMPLEMENTATION_SLOT, BEACON_SLOT})


# --- code ------------------------------------------------------------------------------------------


def find_in_code(code: bytes) -> tuple[Address, ...]:
    """The addresses among the code's constants, in order, then those in the words behind the code."""
    words = [value for size, value in _constants(code) if size in (20, 32)]
    starts = range(len(code) - _TAIL_WORDS * abi.WORD, len(code), abi.WORD)
    words += [int.from_bytes(code[start : start + abi.WORD], "big") for start in starts if start >= 0]
    return _distinct(_address(word) for word in words)


def find_hashes(code: bytes) -> tuple[str, ...]:
    """The constants of 32 bytes that look like hashes: they may be first topics of events, or slots that the
    code chose. Left out are the topics of transfers and approvals, and the slots of EIP-1967."""
    words = [f"0x{value:064x}" for size, value in _constants(code) if size == abi.WORD]
    hashes = [word for word in words if word not in _LEFT_OUT and _looks_hashed(bytes.fromhex(word[2:]))]
    return tuple(dict.fromkeys(hashes))[:_MAX_HASHES]


def _looks_hashed(word: bytes) -> bool:
    """Neither a mask, nor a number, nor text at an end of the word."""
    return len(set(word)) > 12 and word[:2] != b"\0\0" and word[-2:] != b"\0\0"


def _constants(code: bytes) -> Iterator[tuple[int, int]]:
    """The size in bytes and the value of each constant."""
    offset = 0
    while offset < len(code):
        op = code[offset]
        offset += 1
        if _PUSH1 <= op <= _PUSH32:
            size = op - _PUSH1 + 1
            if offset + size <= len(code):
                yield size, int.from_bytes(code[offset : offset + size], "big")
            offset += size


def _address(value: int) -> Address | None:
    is_mask = value in (2**160 - 1, 2**160 - 2**96)
    return Address(f"0x{value:040x}") if _MIN_ADDRESS <= value < 2**160 and not is_mask else None


def _distinct(addresses: Iterable[Address | None]) -> tuple[Address, ...]:
    return tuple(dict.fromkeys(address for address in addresses if address is not None))


# --- storage ---------------------------------------------------------------------------------------


def slots_plan(environment: Environment, contracts: tuple[Address, ...], code: bytes = b"") -> Plan:
    """Reads the first slots of contracts, the slots of a beacon and of an implementation, and those that are
    hashes in ``code``: in place of the contracts' code stands a program that returns them."""
    slots = (*range(_FIRST_SLOTS), BEACON_SLOT, *find_hashes(code), IMPLEMENTATION_SLOT)
    steps = [
        SimulatedStep(f"slots-{contract}", environment.reader, Call(contract, "0x"), _SLOTS_GAS)
        for contract in contracts
    ]
    codes = tuple((contract, _slot_reader(slots)) for contract in contracts)
    block = PlannedBlock(1, tuple(steps), ((environment.reader, WEI_PER_ETH),), codes=codes)
    return Plan(environment, (block,))


def _slot_reader(slots: tuple[int | str, ...]) -> str:
    parts = [
        f"7f{abi.word(slot)}5461{number * abi.WORD:04x}52"  # PUSH32 slot SLOAD PUSH2 offset MSTORE
        for number, slot in enumerate(slots)
    ]
    return f"0x{''.join(parts)}61{len(slots) * abi.WORD:04x}5ff3"  # PUSH2 size PUSH0 RETURN


def find_in_storage(result: StepResult) -> tuple[Address, ...] | None:
    """The addresses in a contract's slots, a beacon's included; an implementation's not. None: they could not
    be read."""
    if not result.ok or len(result.data) < (_FIRST_SLOTS + 2) * abi.WORD:
        return None
    words = [int.from_bytes(result.data[at : at + abi.WORD], "big") for at in range(0, len(result.data), 32)]
    return _distinct(_address(value) for word in words[:-1] for value in _unpack(word))


def is_proxy(result: StepResult) -> bool:
    """Whether the slots of a contract name an implementation."""
    return result.ok and any(result.data[-abi.WORD :])


def _unpack(word: int) -> Iterator[int]:
    """What may be an address in a slot, alone or with small values beside it."""
    size = (word.bit_length() + 7) // 8
    if size <= 20:
        yield word
        return
    beside = size - 20
    if all(byte <= _SMALL for byte in (word >> 160).to_bytes(beside, "big")):
        yield word % 2**160
    # Text begins in a word's first byte.
    below = (word % 2 ** (8 * beside)).to_bytes(beside, "big")
    if size < abi.WORD and all(byte <= _SMALL for byte in below):
        yield word >> (8 * beside)


_SMALL = 32
"""The largest byte of a value beside an address: a switch, decimals, a share in percent."""


# --- events ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogCalls:
    """Reads of a token's events. ``recent``: of the last blocks, and the head's block. ``whole``: of the
    whole chain, and transfers by which it made tokens; a node may refuse these or take too long."""

    recent: tuple[RpcCall, RpcCall]
    whole: tuple[RpcCall, RpcCall]


LogAnswers = Sequence[msgspec.Raw | RpcError] | NodeFault


def log_calls(token: Address, code: bytes, head: BlockRef) -> LogCalls:
    """The reads of the token's events but for transfers and approvals."""
    topics = [[*ROLE_TOPICS, *(topic for topic in find_hashes(code) if topic not in ROLE_TOPICS)]]

    def call(first: int, wanted: Sequence[object]) -> RpcCall:
        blocks = {"fromBlock": hex(first), "toBlock": hex(head.number)}
        return RpcCall("eth_getLogs", [{"address": token, "topics": wanted, **blocks}])

    header = RpcCall("eth_getBlockByNumber", [hex(head.number), False])
    made = [TRANSFER_TOPIC, "0x" + abi.word(0)]
    return LogCalls(
        recent=(call(max(0, head.number - _RECENT_BLOCKS + 1), topics), header),
        whole=(call(0, topics), call(0, made)),
    )


class _Header(msgspec.Struct):
    hash: str


@dataclass(frozen=True, slots=True)
class EventAccounts:
    """Accounts in a token's events. ``roles``: in events that give a role, the latest first. ``supply``: for
    whom it made tokens, in order. ``others``: in its other events. ``whole``: all events were read."""

    roles: tuple[Address, ...]
    supply: tuple[Address, ...]
    others: tuple[Address, ...]
    whole: bool


def find_in_logs(recent: LogAnswers, whole: LogAnswers, head: BlockRef) -> EventAccounts:
    """Reads the answers to ``log_calls``. Where the node serves no range of the whole chain, the last blocks'
    events."""
    if isinstance(recent, NodeFault) or not _has_block(recent[1], head):
        return EventAccounts((), (), (), False)
    every, made = (None, None) if isinstance(whole, NodeFault) else map(_logs, whole)
    logs = every if every is not None else _logs(recent[0]) or []
    ends = logs if len(logs) <= 2 * _MAX_LOGS else logs[:_MAX_LOGS] + logs[-_MAX_LOGS:]
    roles = [log for log in reversed(ends) if log.topics and log.topics[0] in ROLE_TOPICS]
    others = [log for log in ends if not log.topics or log.topics[0] not in ROLE_TOPICS]
    return EventAccounts(
        roles=_distinct(account for log in roles for account in _in_log(log, "first")),
        supply=_distinct(account for log in (made or [])[:_MAX_LOGS] for account in _in_log(log, "first")),
        others=_distinct(account for log in others for account in _in_log(log, "all")),
        whole=every is not None and made is not None and len(ends) == len(logs),
    )


def _in_log(log: UnverifiedLog, which: Literal["first", "all"]) -> Iterator[Address | None]:
    """The addresses in a log's topics; with ``all``, or where it has no further topic, also in its data."""
    words = [int(topic, 16) for topic in log.topics[1:]]
    if which == "all" or len(log.topics) == 1:
        data = bytes.fromhex(log.data.removeprefix("0x"))[: 16 * abi.WORD]
        words += [int.from_bytes(data[at : at + abi.WORD], "big") for at in range(0, len(data), abi.WORD)]
    return map(_address, words)


def _logs(answer: msgspec.Raw | RpcError) -> list[UnverifiedLog] | None:
    if isinstance(answer, RpcError):
        return None
    try:
        logs = msgspec.json.decode(answer, type=list[UnverifiedLog])
        for log in logs:
            _distinct(_in_log(log, "all"))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return logs


def _has_block(answer: msgspec.Raw | RpcError, head: BlockRef) -> bool:
    if isinstance(answer, RpcError):
        return False
    try:
        header = msgspec.json.decode(answer, type=_Header | None)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return header is not None and header.hash.lower() == head.hash.lower()


GroupedAccounts = dict[Literal["deployer", "role", "storage", "code", "supply", "event"], tuple[Address, ...]]
"""Accounts by where they are named, those that most likely have rights first."""
