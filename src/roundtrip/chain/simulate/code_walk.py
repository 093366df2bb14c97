"""Walks the paths that one call of a contract can take, by its bytecode. Pure.

The walk runs the code on abstract values: constants, the few others that matter here, and ``UNKNOWN``. The
calldata starts with a selector, so every form of dispatch (comparisons, a binary search, Vyper's jump tables)
leads to that function alone. A branch on an unknown condition is taken both ways. A jump to an unknown target
ends its path.
"""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .block_dependence import CALLS

UNKNOWN, CALLER, ORIGIN, ADDRESS, FIRST_WORD, NAMED = -1, -2, -3, -4, -5, -6
"""Values that are no constant. ``FIRST_WORD``: of the calldata; it starts with the selector. ``NAMED``: of
the storage at a constant position, or an argument of the call; only ``TargetWalk`` has it."""

BALANCE, GASPRICE, EXTCODEHASH, BLOCKHASH = 0x31, 0x3A, 0x3F, 0x40
WATCHED = frozenset({BALANCE, GASPRICE, EXTCODEHASH, BLOCKHASH})

Watch = Callable[[int, list[int]], None]
"""Gets an opcode and its operands, top of the stack first."""

_WORD_BITS, _SELECTOR_SHIFT, _ADDRESS_SHIFT, _SELECTOR_AT = 256, 224, 96, 28
_WORD = 1 << _WORD_BITS
_MAX_STACK = 1024
_PUSH0, _PUSH32, _DUP1, _DUP16, _SWAP1, _SWAP16 = 0x5F, 0x7F, 0x80, 0x8F, 0x90, 0x9F
_DIV, _EXP, _ISZERO, _AND, _SHL, _SHR = 0x04, 0x0A, 0x15, 0x16, 0x1B, 0x1C
_CALLVALUE, _CALLDATALOAD, _CALLDATASIZE, _CODECOPY = 0x34, 0x35, 0x36, 0x39
_MLOAD, _MSTORE, SLOAD, _JUMP, _JUMPI, _JUMPDEST = 0x51, 0x52, 0x54, 0x56, 0x57, 0x5B
_WRITES = frozenset({0x37, 0x39, 0x3C, 0x3E, 0x52, 0x53, 0x5E, 0xF1, 0xF2, 0xF4, 0xFA})
"""Instructions that may write memory."""
_ENDS = frozenset({0x00, 0xF3, 0xFD, 0xFE, 0xFF, _JUMP})
"""STOP, RETURN, REVERT, INVALID, SELFDESTRUCT, JUMP: only a jump reaches the code behind one."""
_PARTIES = {0x30: ADDRESS, 0x32: ORIGIN, 0x33: CALLER}

OPERANDS: dict[int, tuple[int, int]] = {
    0x00: (0, 0), **dict.fromkeys([*range(0x01, 0x08), 0x0A, 0x0B], (2, 1)), 0x08: (3, 1), 0x09: (3, 1),
    **dict.fromkeys([*range(0x10, 0x15), *range(0x16, 0x19), *range(0x1A, 0x1E), 0x20], (2, 1)),
    **dict.fromkeys([0x15, 0x19, 0x1E], (1, 1)),
    **dict.fromkeys([0x30, 0x32, 0x33, 0x34, 0x36, 0x38, 0x3A, 0x3D], (0, 1)),
    **dict.fromkeys([0x31, 0x35, 0x3B, 0x3F, 0x40, 0x49], (1, 1)),
    **dict.fromkeys([0x37, 0x39, 0x3E, 0x5E], (3, 0)), 0x3C: (4, 0),
    **dict.fromkeys([*range(0x41, 0x49), 0x4A, 0x58, 0x59, 0x5A], (0, 1)),
    0x50: (1, 0), **dict.fromkeys([0x51, 0x54, 0x5C], (1, 1)),
    **dict.fromkeys([0x52, 0x53, 0x55, 0x5D], (2, 0)),
    0x56: (1, 0), 0x57: (2, 0), 0x5B: (0, 0), **{0xA0 + topics: (2 + topics, 0) for topics in range(5)},
    0xF0: (3, 1), 0xF1: (7, 1), 0xF2: (7, 1), 0xF3: (2, 0), 0xF4: (6, 1), 0xF5: (4, 1), 0xFA: (6, 1),
    0xFD: (2, 0), 0xFF: (1, 0),
}  # fmt: skip
"""How many values each instruction takes from the stack and leaves there, without PUSH, DUP and SWAP. From
appendix H of the Ethereum yellow paper, and EIPs 1153, 4844, 5656, 7516 and 7939."""

_FOLDS: dict[int, Callable[[int, int], int]] = {
    0x01: lambda a, b: a + b, 0x02: lambda a, b: a * b, 0x03: lambda a, b: a - b,
    _DIV: lambda a, b: a // b if b else 0, 0x06: lambda a, b: a % b if b else 0,
    _EXP: lambda a, b: 1 << b if b < _WORD_BITS else 0,
    0x10: lambda a, b: a < b, 0x11: lambda a, b: a > b, 0x14: lambda a, b: a == b,
    _AND: lambda a, b: a & b, 0x17: lambda a, b: a | b, 0x18: lambda a, b: a ^ b,
    0x1A: lambda a, b: b >> 8 * (31 - a) & 255 if a < 32 else 0,
    _SHL: lambda a, b: b << a if a < _WORD_BITS else 0, _SHR: lambda a, b: b >> a if a < _WORD_BITS else 0,
}  # fmt: skip
"""What two constants give. The walk needs no other instruction: no compiler's dispatch uses one."""

_MAX_BLOCK = 256
"""Instructions that are walked without a look at the limit."""
_BLOCK_STEPS, _VALUES_A_STEP = 8, 4
"""The steps that a block counts beside its instructions, and the values on the stack that count as one step
more: to keep the state takes as long."""

_SCANNED = re.compile(
    rb"\x5b+|[\x00\x31\x32\x3a\x3f\x40\x56\xf3\xfd\xfe\xff]|"
    + b"|".join(b"\\x%02x.{0,%d}" % (_PUSH0 + size, size) for size in range(1, 33)),
    re.DOTALL,
)


def scan(code: bytes) -> tuple[frozenset[int], frozenset[int]]:
    """The offsets of all jump destinations, and which of BALANCE, ORIGIN, GASPRICE, EXTCODEHASH and BLOCKHASH
    (by opcode) the code has, but for those behind an end of the code and before a jump destination: they are
    unreachable, and mostly data."""
    targets: list[int] = []
    present: set[int] = set()
    reachable = True
    for match in _SCANNED.finditer(code):
        offset = match.start()
        op = code[offset]
        if op == _JUMPDEST:
            reachable = True
            targets.extend(range(offset, match.end()))
        elif op in _ENDS:
            reachable = False
        elif reachable and op < _PUSH0:
            present.add(op)
    return frozenset(targets), frozenset(present)


_PUSHES, _DUPS, _SWAPS, _GIVES, _TAKES, _JUMPS, _STOPS = range(7)
_OPAQUE = frozenset(range(0x100)).difference(
    _FOLDS, _PARTIES, {_CALLVALUE, _CALLDATASIZE, _CALLDATALOAD, _ISZERO, _MLOAD, SLOAD}
)
"""Instructions with a result that is always unknown."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Instructions, as ``_decode`` returns them, of which only the first may be a jump destination. ``end``:
    the offset behind them."""

    instructions: tuple[tuple[int, int, int], ...]
    end: int


def _decode(op: int, pushed: int) -> tuple[int, int, int]:
    """What the instruction does to the stack, the opcode, and the constant that it pushes or how many values
    it needs."""
    if _PUSH0 <= op <= _PUSH32:
        return _PUSHES, op, pushed
    if _DUP1 <= op <= _DUP16:
        return _DUPS, op, op - _DUP1 + 1
    if _SWAP1 <= op <= _SWAP16:
        return _SWAPS, op, op - _SWAP1 + 2
    if op in (_JUMP, _JUMPI):
        return _JUMPS, op, OPERANDS[op][0]
    if op in _ENDS or op not in OPERANDS:
        return _STOPS, op, 0
    taken, left = OPERANDS[op]
    return _GIVES if left else _TAKES, op, taken


def moves_address(op: int, operands: list[int]) -> bool:
    """Whether the instruction moves an address to the other end of its word, where it stays what it is."""
    return op in (_SHL, _SHR) and operands[0] == _ADDRESS_SHIFT


class CallWalk:
    """The paths of one call without eth. ``watch`` gets each instruction on them that is ``WATCHED`` or takes
    ``ORIGIN``."""

    watched = WATCHED

    def __init__(
        self, code: bytes, targets: frozenset[int], selector: int, calldata_bytes: int, watch: Watch
    ) -> None:
        self._code, self._targets, self._watch = code, targets, watch
        self._selector, self._calldata_bytes = selector, calldata_bytes
        self._kept = targets | {selector, selector << _SELECTOR_SHIFT}
        """Constants that are not forgotten at a jump."""
        self._seen: set[tuple[int, tuple[int, ...]]] = set()
        self._reached: set[int] = set()
        self._pending: deque[tuple[int, tuple[int, ...]]] = deque()
        self._blocks: dict[int, _Block] = {}
        self._written: tuple[int, int] | None = None
        """The word written last, as ``_read_write`` returns it; None: not known."""

    def run(self, most_steps: int) -> int:
        """Walks all paths, as far as about ``most_steps`` steps lead: one for each instruction, and more for
        keeping the state. Returns the number of steps."""
        steps = 0
        self._visit(0, [])
        while self._pending and steps < most_steps:
            offset, values = self._pending.pop()
            stack, self._written = list(values), None
            following: int | None = offset
            while following is not None and steps < most_steps:
                block = self._blocks.get(following) or self._read_block(following)
                steps += _BLOCK_STEPS + len(block.instructions) + len(stack) // _VALUES_A_STEP
                following = self._run_block(block, stack)
        return steps

    def _visit(self, offset: int, stack: list[int]) -> None:
        """Continues at ``offset`` later, unless the same state was there before. Forgets all constants but
        those kept: with counters, every turn of a loop would be a state of its own."""
        values = tuple([v if v < 0 or v in self._kept else UNKNOWN for v in stack])
        if (offset, values) not in self._seen:
            self._seen.add((offset, values))
            if offset in self._reached:
                self._pending.appendleft((offset, values))
            else:
                self._reached.add(offset)
                self._pending.append((offset, values))

    def _read_block(self, start: int) -> _Block:
        """The instructions up to the next jump, jump destination or end."""
        code, at = self._code, start
        instructions: list[tuple[int, int, int]] = []
        while at < len(code) and len(instructions) < _MAX_BLOCK:
            op = code[at]
            if op == _JUMPDEST and instructions:
                break
            size = op - _PUSH0 if _PUSH0 <= op <= _PUSH32 else 0
            pushed = int.from_bytes(code[at + 1 : at + 1 + size].ljust(size, b"\0"), "big")
            instructions.append(_decode(op, pushed))
            at += 1 + size
            if op in _ENDS or op == _JUMPI:
                break
        block = self._blocks[start] = _Block(tuple(instructions), at)
        return block

    def _run_block(self, block: _Block, stack: list[int]) -> int | None:
        """Runs the block on the stack. Returns where the path goes on with the same constants; None: it
        ends, or goes on as a state of its own."""
        for kind, op, value in block.instructions:
            if kind == _PUSHES:
                stack.append(value)
                continue
            if len(stack) < value:
                return None
            if kind == _DUPS:
                stack.append(stack[-value])
            elif kind == _SWAPS:
                stack[-1], stack[-value] = stack[-value], stack[-1]
            else:
                operands = self._take(op, value, stack)
                if kind == _GIVES:
                    stack.append(UNKNOWN if op in _OPAQUE else self._result(op, operands))
                elif kind == _JUMPS:
                    return self._jump(operands, block.end, stack)
                elif kind == _STOPS:
                    return None
        if len(stack) > _MAX_STACK or block.end >= len(self._code):
            return None
        if block.end in self._targets:
            self._visit(block.end, stack)
            return None
        return block.end

    def _take(self, op: int, count: int, stack: list[int]) -> list[int]:
        operands = stack[: -count - 1 : -1]
        del stack[len(stack) - count :]
        if op in self.watched or ORIGIN in operands:
            self._watch(op, operands)
        if op in _WRITES:
            self._written = self._read_write(op, operands)
        return operands

    def _jump(self, operands: list[int], following: int, stack: list[int]) -> int | None:
        """``following``: the offset behind the jump. A branch forward that is certain keeps the constants: so
        Vyper's dispatch passes on what its jump table says of a function."""
        target, *conditions = operands
        if conditions == [0]:
            return following
        is_certain = not conditions or conditions[0] > 0
        if target in self._targets:
            if conditions and is_certain and target > following:
                return target
            self._visit(target, stack)
        if not is_certain:
            self._visit(following, stack)
        return None

    def _result(self, op: int, operands: list[int]) -> int:
        if op in _PARTIES:
            return _PARTIES[op]
        if len(operands) == 2:
            return self._combine(op, operands[0], operands[1])
        if op == _CALLVALUE:
            return 0
        if op == _CALLDATASIZE:
            return self._calldata_bytes
        if op == _CALLDATALOAD and operands[0] == 0:
            return FIRST_WORD
        if op == _ISZERO and operands[0] >= 0:
            return int(operands[0] == 0)
        if op == _MLOAD and self._written is not None and self._written[0] == operands[0]:
            return self._written[1]
        return UNKNOWN

    def _read_write(self, op: int, operands: list[int]) -> tuple[int, int] | None:
        """The memory offset and the value of the word that ends with what was written, if it was zero before:
        Vyper reads its jump tables so, and before version 0.3 the selector."""
        if op == _MSTORE and operands == [_SELECTOR_AT, FIRST_WORD]:
            return 0, self._selector
        if op != _CODECOPY or min(operands) < 0 or operands[2] > 32 or operands[0] + operands[2] < 32:
            return None
        to, start, size = operands
        copied = self._code[start : start + size].ljust(size, b"\0")
        return to + size - 32, int.from_bytes(copied, "big")

    def _combine(self, op: int, first: int, second: int) -> int:
        if first >= 0 and second >= 0:
            # Powers of other numbers take long to compute, and no jump depends on one.
            if op not in _FOLDS or (op == _EXP and first != 2):
                return UNKNOWN
            folded: int = _FOLDS[op](first, second)
            return folded % _WORD
        if FIRST_WORD in (first, second):
            return self._selector_of(op, first, second)
        if op == _AND:
            # Compilers mask an address before they use it.
            return next((value for value in (first, second) if value in _PARTIES.values()), UNKNOWN)
        return second if second in _PARTIES.values() and moves_address(op, [first, second]) else UNKNOWN

    def _selector_of(self, op: int, first: int, second: int) -> int:
        if (op, first) == (_SHR, _SELECTOR_SHIFT) or (op, second) == (_DIV, 1 << _SELECTOR_SHIFT):
            return self._selector
        if op == _AND and 0xFFFFFFFF << _SELECTOR_SHIFT in (first, second):
            return self._selector << _SELECTOR_SHIFT
        return UNKNOWN


_ADDRESS_MASK, _BYTE_BITS = (1 << 160) - 1, 8


class TargetWalk(CallWalk):
    """``CallWalk`` that also knows where an address comes from. ``watch`` gets the calls of other code, and
    the reads of storage."""

    watched = CALLS | {SLOAD}

    def __init__(
        self,
        code: bytes,
        targets: frozenset[int],
        selector: int,
        calldata_bytes: int,
        watch: Watch,
        kept: set[int],
    ) -> None:
        """``kept``: constants that are not forgotten at a jump: addresses and large positions of storage."""
        super().__init__(code, targets, selector, calldata_bytes, watch)
        self._kept |= kept

    def _result(self, op: int, operands: list[int]) -> int:
        if (op == SLOAD and operands[0] >= 0) or (op == _CALLDATALOAD and operands[0] > 0):
            return NAMED
        if NAMED in operands and _takes_address(op, operands):
            return NAMED
        return super()._result(op, operands)


def _takes_address(op: int, operands: list[int]) -> bool:
    """Whether the instruction takes an address out of a word that holds it with others, at whole bytes."""
    first, second = operands[0], operands[-1]
    if op == _AND:
        return max(first, second) & _ADDRESS_MASK == _ADDRESS_MASK and max(first, second) >= 0
    if op == _SHR:
        return first >= 0 and first % _BYTE_BITS == 0
    return (
        op == _DIV and second > 0 and second.bit_count() == 1 and (second.bit_length() - 1) % _BYTE_BITS == 0
    )
