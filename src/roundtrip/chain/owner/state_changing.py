"""Which of a contract's functions may change anything, told from its bytecode. Pure.

A block may go wherever a constant in it leads: more ways than there are, so that what writes is seldom taken
for what only reads. A jump whose goal is calculated leads nowhere here.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

_JUMPDEST = b"\x5b"
_JUMP, _JUMPI, _PUSH1, _PUSH32 = 0x56, 0x57, 0x60, 0x7F
_ENDS = frozenset({0x00, 0xF3, 0xFD, 0xFE, _JUMP})
_CHANGES = frozenset({0x55, *range(0xA0, 0xA5), 0xF0, 0xF1, 0xF2, 0xF4, 0xF5, 0xFF})
"""SSTORE, LOG0 to LOG4, CREATE, CALL, CALLCODE, DELEGATECALL, CREATE2, SELFDESTRUCT."""


@dataclass(slots=True)
class _BasicBlock:
    start: int
    leads_to: set[int] = field(default_factory=set)
    changes: bool = False
    falls_through: bool = True


def changing(code: bytes, entries: Iterable[int]) -> frozenset[int]:
    """Those entries, by their offsets, from which something that changes state can be reached."""
    blocks = _blocks(code)
    starts = [block.start for block in blocks]
    numbers = {start: number for number, start in enumerate(starts) if code[start : start + 1] == _JUMPDEST}
    comes_from: dict[int, list[int]] = {}
    for number, block in enumerate(blocks):
        goals = {numbers[goal] for goal in block.leads_to if goal in numbers}
        if block.falls_through and number + 1 < len(blocks):
            goals.add(number + 1)
        for goal in goals:
            comes_from.setdefault(goal, []).append(number)
    left = [number for number, block in enumerate(blocks) if block.changes]
    found = set(left)
    while left:
        for number in comes_from.get(left.pop(), ()):
            if number not in found:
                found.add(number)
                left.append(number)
    return frozenset(entry for entry in entries if bisect_right(starts, entry) - 1 in found)


def _blocks(code: bytes) -> list[_BasicBlock]:
    blocks = [_BasicBlock(0)]
    at = 0
    while at < len(code):
        op, block = code[at], blocks[-1]
        if op == _JUMPDEST[0] and at != block.start:
            block = _BasicBlock(at)
            blocks.append(block)
        block.changes |= op in _CHANGES
        at += 1
        if _PUSH1 <= op <= _PUSH32:
            size = op - _PUSH1 + 1
            if size <= 3:
                block.leads_to.add(int.from_bytes(code[at : at + size], "big"))
            at += size
        elif op in _ENDS or op == _JUMPI:
            block.falls_through = op == _JUMPI
            blocks.append(_BasicBlock(at))
    return blocks
