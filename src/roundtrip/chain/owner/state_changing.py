"""Finds the functions that may change state, and those that may call contracts, from bytecode. Pure.

A basic block may jump to every constant in it that is a jump target. That is more jumps than there are, so
that a function that writes is seldom taken for one that only reads. A jump to a computed target is not
followed.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

_JUMPDEST = b"\x5b"
_JUMP, _JUMPI, _PUSH1, _PUSH32 = 0x56, 0x57, 0x60, 0x7F
_ENDS = frozenset({0x00, 0xF3, 0xFD, 0xFE, _JUMP})
_CHANGES = frozenset({0x55, *range(0xA0, 0xA5), 0xF0, 0xF1, 0xF2, 0xF4, 0xF5, 0xFF})
"""SSTORE, LOG0 to LOG4, CREATE, CALL, CALLCODE, DELEGATECALL, CREATE2, SELFDESTRUCT."""
_CALLS = frozenset({0xF1, 0xF2, 0xF4, 0xFA})
"""CALL, CALLCODE, DELEGATECALL, STATICCALL."""


@dataclass(slots=True)
class _BasicBlock:
    start: int
    targets: set[int] = field(default_factory=set)
    reaches: bool = False
    """Whether it has one of the instructions that are searched."""
    falls_through: bool = True
    """Whether the next block may follow without a jump."""


def find_changing(code: bytes, entries: Iterable[int]) -> frozenset[int]:
    """The entries (offsets of functions) from which an instruction that changes state can be reached."""
    return _find_reaching(code, entries, _CHANGES)


def find_calling(code: bytes, entries: Iterable[int]) -> frozenset[int]:
    """The entries (offsets of functions) from which a call of a contract can be reached."""
    return _find_reaching(code, entries, _CALLS)


def _find_reaching(code: bytes, entries: Iterable[int], ops: frozenset[int]) -> frozenset[int]:
    blocks = _blocks(code, ops)
    starts = [block.start for block in blocks]
    numbers = {start: number for number, start in enumerate(starts) if code[start : start + 1] == _JUMPDEST}
    predecessors: dict[int, list[int]] = {}
    for number, block in enumerate(blocks):
        successors = {numbers[target] for target in block.targets if target in numbers}
        if block.falls_through and number + 1 < len(blocks):
            successors.add(number + 1)
        for successor in successors:
            predecessors.setdefault(successor, []).append(number)
    pending = [number for number, block in enumerate(blocks) if block.reaches]
    reaching = set(pending)
    while pending:
        for number in predecessors.get(pending.pop(), ()):
            if number not in reaching:
                reaching.add(number)
                pending.append(number)
    return frozenset(entry for entry in entries if bisect_right(starts, entry) - 1 in reaching)


def _blocks(code: bytes, ops: frozenset[int]) -> list[_BasicBlock]:
    blocks = [_BasicBlock(0)]
    offset = 0
    while offset < len(code):
        op, block = code[offset], blocks[-1]
        if op == _JUMPDEST[0] and offset != block.start:
            block = _BasicBlock(offset)
            blocks.append(block)
        block.reaches |= op in ops
        offset += 1
        if _PUSH1 <= op <= _PUSH32:
            size = op - _PUSH1 + 1
            if size <= 3:
                block.targets.add(int.from_bytes(code[offset : offset + size], "big"))
            offset += size
        elif op in _ENDS or op == _JUMPI:
            block.falls_through = op == _JUMPI
            blocks.append(_BasicBlock(offset))
    return blocks
