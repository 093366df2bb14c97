"""The contracts that a trade reaches: those that the node's access list names, and those that their code
names. Plans and readings; pure.

A list is made at one moment, by a wallet with code that buys and sells in one transaction. So it misses what
a token calls only later, or only for other wallets. The addresses in the code and in the storage that the
code names are therefore added, and theirs, until nothing is new.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from roundtrip.chain.rpc.client import Answer, RpcCall, RpcError
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi
from roundtrip.venues.base import Call

from .block_dependence import CALLCODE, CALLS, DELEGATECALL, DELEGATED, reachable_instructions
from .code_signs import TRANSFERS
from .code_walk import ADDRESS, CALLER, NAMED, ORIGIN, SLOAD, TargetWalk, scan
from .number_copies import read_code
from .request import Plan

_LIST_GAS = 2**24
"""The most that a transaction may have (EIP-7825)."""
_ADDRESS_BYTES, _WORD_BYTES = 20, 32
_KEY = "(address,address,uint24,int24,address)"
"""Uniswap v4's PoolKey."""
_PUSH0, _DUP1, _CALL = 0x5F, 0x80, 0xF1
_WITH_TARGET = frozenset({_CALL, CALLCODE, DELEGATECALL, 0xFA})
"""CALL, CALLCODE, DELEGATECALL, STATICCALL."""
_MAX_PRECOMPILE = 0x13
"""The last one of Ethereum. Nitro's own start at 0x64, and tell its block number."""
_MAX_STEPS = 60_000
"""Of all walks through one code together."""
_PATHS = (
    *TRANSFERS,
    *(
        (int(abi.selector(f"{name}(address,{_KEY},(bool,int256,uint160),{more}bytes)"), 16), words * 32 + 4)
        for name, more, words in (("beforeSwap", "", 11), ("afterSwap", "int256,", 12))
    ),
)
"""The selector and the bytes of calldata of each call that ``transfer_calls`` follows."""
MIN_ADDRESS = 1 << 64
"""Lower values are numbers or precompiles: no contract's address starts with twelve zero bytes."""
_MAX_IMMUTABLES = 64
"""Words at the end of a code, where Vyper keeps immutables."""


# --- the access list of a whole trade --------------------------------------------------------------


def access_list_call(plan: Plan, pinned: BlockRef) -> RpcCall:
    """Asks for the access list of the plan's buy and its first sell, made by code at the buyer's address in
    one transaction. Only the list is used: a token may notice that code, so no result counts."""
    buyer = next(step.sender for block in plan.blocks for step in block.steps if step.label == "buy")
    calls = [
        step.call
        for block in plan.blocks
        for step in block.steps
        if step.sender == buyer and not re.fullmatch(r"sell-[1-9]\d*", step.label)
    ]
    overrides: dict[str, dict[str, object]] = {}
    max_fee_wei = plan.environment.max_fee_wei
    for account, wei in plan.blocks[0].balances:
        gas_wei = 2 * _LIST_GAS * max_fee_wei if account == buyer else 0
        overrides[account] = {"balance": hex(wei + gas_wei)}
    for contract, key, value in plan.blocks[0].storage:
        overrides.setdefault(contract, {}).setdefault("stateDiff", {})[key] = "0x" + abi.word(value)  # type: ignore[index]
    overrides.setdefault(buyer, {"balance": hex(2 * _LIST_GAS * max_fee_wei)})["code"] = (
        "0x" + driver_code(calls).hex()
    )
    fees = {"maxFeePerGas": hex(max_fee_wei), "maxPriorityFeePerGas": "0x0"}
    sent = {"from": buyer, "to": buyer, "gas": hex(_LIST_GAS), **fees}
    return RpcCall("eth_createAccessList", [sent, {"blockHash": pinned.hash}, overrides])


def driver_code(calls: Iterable[Call]) -> bytes:
    """Code that makes these calls, one after the other, when its own account calls it. It reverts at the
    first that fails, but for the last, and takes eth from others."""
    parts = [(call, bytes.fromhex(call.data.removeprefix("0x"))) for call in calls]
    # CALLER ADDRESS EQ PUSH1 9 JUMPI STOP STOP STOP JUMPDEST: a call by others stops.
    head = bytes.fromhex("33301460095700" + "0000" + "5b")
    size = len(head) + sum(_CALL_BYTES for _ in parts) + 1
    fail_at, data_at = size, size + len(_FAIL)
    body, data = b"", b""
    for call, calldata in parts:
        # CODECOPY the calldata to 0, CALL with it, ISZERO, PUSH3 fail, JUMPI.
        body += b"\x62" + len(calldata).to_bytes(3, "big")
        body += b"\x62" + (data_at + len(data)).to_bytes(3, "big") + bytes.fromhex("600039")
        body += bytes.fromhex("60006000") + b"\x62" + len(calldata).to_bytes(3, "big") + bytes.fromhex("6000")
        body += b"\x7f" + call.value_wei.to_bytes(32, "big") + b"\x73" + bytes.fromhex(call.to[2:])
        body += bytes.fromhex("5af115") + b"\x62" + fail_at.to_bytes(3, "big") + b"\x57"
        data += calldata
    if parts:
        # POP in place of the last jump, and JUMPDESTs that do nothing.
        body = body[:-5] + bytes.fromhex("505b5b5b5b")
    return head + body + b"\x00" + _FAIL + data


_FAIL = bytes.fromhex("5b60006000fd")
_CALL_BYTES = 11 + 10 + 33 + 21 + 3 + 5
"""The bytes of the code for one call."""


@dataclass(frozen=True, slots=True)
class TouchedContracts:
    """``completed``: the buy and the approvals succeeded, so the list has what the sale touched, if only up
    to its refusal."""

    addresses: tuple[Address, ...]
    completed: bool


class _Entry(msgspec.Struct):
    address: str


class _ListAnswer(msgspec.Struct, rename="camel"):
    access_list: list[_Entry]
    error: str | None = None


def read_access_list(answer: Answer, token: Address) -> TouchedContracts | None:
    """The answer to ``access_list_call``. None: the node has no list, or the token is not on it, so that the
    node took no code at the buyer's address."""
    if isinstance(answer, RpcError):
        return None
    try:
        read = msgspec.json.decode(answer, type=_ListAnswer)
        values = [int(entry.address, 16) for entry in read.access_list]
        addresses = tuple(_address(value) for value in values if value >= MIN_ADDRESS)
    except (msgspec.DecodeError, ValueError, OverflowError):
        return None
    return TouchedContracts(addresses, not read.error) if token in addresses else None


def _address(value: int) -> Address:
    return Address("0x" + value.to_bytes(_ADDRESS_BYTES, "big").hex())


# --- what code names -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamedInCode:
    """``addresses``: constants and immutables. ``slots``: the storage slots at constant positions that it
    reads."""

    addresses: frozenset[Address]
    slots: frozenset[int]


@lru_cache(maxsize=256)
def names_in(code: bytes) -> NamedInCode:
    """What a code names; nothing where it can run no other code. Results are kept by the code."""
    if code.startswith(DELEGATED):
        return NamedInCode(frozenset({_address(int.from_bytes(code[3:23], "big"))}), frozenset())
    if read_code(code).opcodes.isdisjoint(CALLS):
        return NamedInCode(frozenset(), frozenset())
    slots, before = set(transfer_calls(code).slots), None
    for _, op, pushed in reachable_instructions(code):
        if op == SLOAD and before is not None:
            slots.add(before)
        if op != _DUP1:
            before = int.from_bytes(pushed, "big") if pushed or op == _PUSH0 else None
    named = _large_constants(code) | transfer_calls(code).constants
    addresses = (_address(value) for value in named if value < 1 << 160)
    return NamedInCode(frozenset(addresses), frozenset(slots))


@lru_cache(maxsize=64)
def _large_constants(code: bytes) -> frozenset[int]:
    """The addresses and larger values that the code pushes, or has as immutables behind its instructions."""
    words = [pushed for _, _, pushed in reachable_instructions(code) if pushed]
    last = len(code) - _WORD_BYTES
    tail = range(last, max(-1, last - _WORD_BYTES * _MAX_IMMUTABLES), -_WORD_BYTES)
    words += [code[at : at + _WORD_BYTES] for at in tail]
    return frozenset(value for word in words if (value := int.from_bytes(word, "big")) >= MIN_ADDRESS)


@dataclass(frozen=True, slots=True)
class TransferCalls:
    """What a transfer, or a hook in a swap, may run. ``unnamed``: by opcode, the calls whose target is in
    neither the code nor a slot at a constant position, and is no sender or argument of the call; calls of the
    chain's own precompiles; and CALL where the paths are too long to follow. ``slots``: those positions.
    ``constants``: the targets that the code itself holds or computes."""

    unnamed: frozenset[int]
    slots: frozenset[int]
    constants: frozenset[int] = frozenset()


@lru_cache(maxsize=64)
def transfer_calls(code: bytes) -> TransferCalls:
    """Follows transfers and swap callbacks through the code. Takes some milliseconds, at most some
    hundred."""
    unnamed, slots, constants = set[int](), set[int](), set[int]()
    if code.startswith(DELEGATED) or read_code(code).opcodes.isdisjoint(CALLS):
        return TransferCalls(frozenset(), frozenset())
    targets, _ = scan(code)
    kept, steps = _large_constants(code), 0

    def watch(op: int, operands: list[int]) -> None:
        if op == SLOAD and operands[0] >= 0:
            slots.add(operands[0])
        elif op in _WITH_TARGET and operands[1] >= MIN_ADDRESS:
            constants.add(operands[1] & ((1 << 160) - 1))
        elif op in _WITH_TARGET and not _is_named(operands[1]):
            unnamed.add(op)

    for selector, calldata_bytes in _PATHS:
        walk = TargetWalk(code, targets, selector, calldata_bytes, watch, set(kept))
        steps += walk.run(_MAX_STEPS - steps)
    if steps >= _MAX_STEPS:
        unnamed.add(_CALL)
    return TransferCalls(frozenset(unnamed), frozenset(slots), frozenset(constants))


def _is_named(target: int) -> bool:
    if target >= 0:
        return target <= _MAX_PRECOMPILE or target >= MIN_ADDRESS
    return target in (CALLER, ORIGIN, ADDRESS, NAMED)


def addresses_in_word(word: int) -> Iterator[Address]:
    """The addresses that a storage word may hold: it alone, or packed with others, also one that begins with
    up to three zero bytes."""
    most_shift = 0 if word < 1 << 160 else 8 * (_WORD_BYTES - _ADDRESS_BYTES + _MAX_ZEROS)
    for shift in range(0, most_shift + 1, 8):
        value = word >> shift & ((1 << 160) - 1)
        if value >= MIN_ADDRESS:
            yield _address(value)


_MAX_ZEROS = 3


Slot = tuple[Address, int]


@dataclass(slots=True)
class CodeGraph:
    """The codes and storage words read so far. ``known``: contracts of the network, which need no reading."""

    known: frozenset[Address]
    codes: dict[Address, bytes] = field(default_factory=dict)
    words: dict[Slot, int] = field(default_factory=dict)

    def reached_from(self, roots: Iterable[Address]) -> set[Address]:
        """The roots and all that they name, directly or not, without known contracts and accounts that have
        no code. Addresses whose code is not read are among them."""
        reached, pending = set[Address](), list(roots)
        while pending:
            address = pending.pop()
            if address not in reached and address not in self.known and self.codes.get(address) != b"":
                reached.add(address)
                pending.extend(self.named_by(address))
        return reached

    def named_by(self, address: Address) -> set[Address]:
        """The addresses that this contract's code and the storage it reads name, as far as they are read."""
        named = set(names_in(self.codes.get(address, b"")).addresses)
        for slot in self._slots_of(address):
            named.update(addresses_in_word(self.words.get(slot, 0)))
        return named

    def unread(self, roots: Iterable[Address]) -> tuple[list[Address], list[Slot]]:
        """Codes and slots that have to be read to know what is reached."""
        reached = sorted(self.reached_from(roots))
        slots = {slot for address in reached for slot in self._slots_of(address)}
        return [address for address in reached if address not in self.codes], sorted(
            slots - self.words.keys()
        )

    def _slots_of(self, address: Address) -> set[Slot]:
        """The slots that the code names, in its own storage and in that of contracts that may delegate to
        it."""
        slots = names_in(self.codes.get(address, b"")).slots
        owners = {address, *self._delegators()} if slots else set()
        return {(owner, slot) for owner in owners for slot in slots}

    def _delegators(self) -> list[Address]:
        return [owner for owner, code in self.codes.items() if DELEGATECALL in read_code(code).opcodes]


def storage_call(slot: Slot, pinned: BlockRef) -> RpcCall:
    """The word in a storage slot at the pinned block."""
    owner, key = slot
    return RpcCall("eth_getStorageAt", [owner, f"0x{key:064x}", {"blockHash": pinned.hash}])
