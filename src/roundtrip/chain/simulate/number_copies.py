"""Lets block numbers pass in a simulation whose NUMBER cannot: copies of code in which another instruction
stands for NUMBER, and its value in each block. Pure. docs/decisions/0010 says when a verdict may use them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from roundtrip.chain.rpc.dialect import Dialect
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import NumberInstruction

from .block_dependence import BLOCKHASH, DELEGATED, NUMBER, reachable_instructions
from .code_walk import OPERANDS

INSTRUCTIONS: Mapping[NumberInstruction, int] = MappingProxyType(
    {"COINBASE": 0x41, "PREVRANDAO": 0x44, "BLOBBASEFEE": 0x4A}
)
"""What may stand for NUMBER, in this order. Each costs as much gas as NUMBER. Not GASLIMIT: a block whose
limit is a block number has no room for the calls of a crowd."""
_EXTCODECOPY, _EXTCODEHASH, _CODECOPY, _CODESIZE = 0x3C, 0x3F, 0x39, 0x38
_CREATE, _CREATE2 = 0xF0, 0xF5
_PUSH0, _PUSH32, _DUP1, _DUP16, _SWAP1, _SWAP16, _JUMPDEST = 0x5F, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0x5B
_ARBSYS_SELECTORS = frozenset(bytes.fromhex(head) for head in ("a3b1b31d", "2b407a82"))
"""arbBlockNumber() and arbBlockHash(uint256) of the precompile ArbSys."""


@dataclass(frozen=True, slots=True)
class NumberCopies:
    """``copies``: the code (``0x`` hex) that stands at each address. ``start``: NUMBER at the pinned block.
    ``still``: the copies get the number that the original gets, as a control."""

    instruction: NumberInstruction
    start: int
    copies: tuple[tuple[Address, str], ...]
    still: bool = False

    def numbers(self, delays_s: tuple[int, ...], clock: Iterable[int], dialect: Dialect) -> list[int]:
        """The number in each block of a plan. ``clock``: the numbers that the request gives its blocks."""
        if self.still:
            return list(clock) if dialect.own_numbers else [self.start] * len(delays_s)
        numbers, number = [], self.start
        for delay_s in delays_s:
            number += dialect.number_after(delay_s)
            numbers.append(number)
        return numbers

    def block_override(self, number: int, dialect: Dialect) -> dict[str, str]:
        """The override of a block that makes the instruction return ``number``."""
        if self.instruction == "COINBASE":
            return {"feeRecipient": f"0x{number:040x}"}
        if self.instruction == "BLOBBASEFEE":
            return {"blobBaseFee": hex(number)}
        # Nitro takes PREVRANDAO from the difficulty (its go-ethereum: internal/ethapi/override/override.go).
        return {"prevRandao": f"0x{number:064x}"} if dialect.sets_randomness else {"difficulty": hex(number)}


@dataclass(frozen=True, slots=True)
class OpcodeReading:
    """What a contract's code may do, by its reachable instructions. ``opaque``: it is no EVM code.
    ``asks_arbsys``: it has a selector that asks for the chain's own block number."""

    opcodes: frozenset[int]
    opaque: bool
    asks_arbsys: bool

    def reads_number(self) -> bool:
        """True where it may read NUMBER."""
        return NUMBER in self.opcodes

    def reads_block_hash(self) -> bool:
        """True where it may read BLOCKHASH."""
        return BLOCKHASH in self.opcodes

    def makes_contracts(self) -> bool:
        """True where it may create a contract, whose code nobody can read before."""
        return not self.opcodes.isdisjoint({_CREATE, _CREATE2})

    def inspects_code(self) -> bool:
        """True where it may hash or copy another contract's code."""
        return not self.opcodes.isdisjoint({_EXTCODEHASH, _EXTCODECOPY})


@lru_cache(maxsize=256)
def read_code(code: bytes) -> OpcodeReading:
    """Reads the code. Results are kept by the code."""
    if code.startswith(DELEGATED):
        return OpcodeReading(frozenset(), False, False)
    instructions = list(reachable_instructions(code))
    return OpcodeReading(
        frozenset(op for _, op, _ in instructions),
        opaque=code[:1] == b"\xef",
        # Compilers also push a selector as the head of a whole word.
        asks_arbsys=any(selector in code for selector in _ARBSYS_SELECTORS),
    )


def copy_code(code: bytes, instruction: NumberInstruction) -> str:
    """The code with the instruction in place of every NUMBER, as ``0x`` hex: of the same length, so no jump
    moves."""
    copied = bytearray(code)
    for at in _number_offsets(code):
        copied[at] = INSTRUCTIONS[instruction]
    return "0x" + copied.hex()


def reads_own_copy(code: bytes) -> bool:
    """Whether the code may copy a part of itself that differs in its copy. Constants and immutables behind
    the instructions may be copied."""
    replaced = _number_offsets(code)
    stack: list[_ValueRange] = []
    for _, op, pushed in reachable_instructions(code):
        if op == _CODECOPY:
            _, start, size = (*reversed(stack[-3:]), _ANY, _ANY, _ANY)[:3]
            if any(start.low <= at < start.high + size.high for at in replaced):
                return True
        _step(stack, op, pushed, len(code))
    return False


def _number_offsets(code: bytes) -> list[int]:
    return [at for at, op, _ in reachable_instructions(code) if op == NUMBER]


# --- between which values the operands of a copy lie -----------------------------------------------


@dataclass(frozen=True, slots=True)
class _ValueRange:
    """A value between two others, both included."""

    low: int
    high: int


_MAX_WORD = 2**256 - 1
_ANY = _ValueRange(0, _MAX_WORD)


def _range_between(low: int, high: int) -> _ValueRange:
    return _ValueRange(low, high) if 0 <= low <= high <= _MAX_WORD else _ANY


def _step(stack: list[_ValueRange], op: int, pushed: bytes, code_bytes: int) -> None:
    """Runs one instruction on the ranges. What lay on the stack before a jump destination is not known."""
    if op == _JUMPDEST:
        stack.clear()
    elif _PUSH0 <= op <= _PUSH32:
        stack.append(_range_between(value := int.from_bytes(pushed, "big"), value))
    elif _DUP1 <= op <= _DUP16:
        depth = op - _DUP1 + 1
        stack.append(stack[-depth] if depth <= len(stack) else _ANY)
    elif _SWAP1 <= op <= _SWAP16:
        depth = op - _SWAP1 + 2
        stack[:0] = [_ANY] * (depth - len(stack))
        stack[-1], stack[-depth] = stack[-depth], stack[-1]
    else:
        taken, left = OPERANDS.get(op, (0, 0))
        stack[:0] = [_ANY] * (taken - len(stack))
        operands = [stack.pop() for _ in range(taken)]
        if left:
            stack.append(_ValueRange(code_bytes, code_bytes) if op == _CODESIZE else _combine(op, operands))


def _combine(op: int, operands: list[_ValueRange]) -> _ValueRange:
    if len(operands) != 2:
        return _ANY
    first, second = operands
    if op == 0x01:  # ADD
        return _range_between(first.low + second.low, first.high + second.high)
    if op == 0x02:  # MUL
        return _range_between(first.low * second.low, first.high * second.high)
    if op == 0x03:  # SUB
        return _range_between(first.low - second.high, first.high - second.low)
    if op == 0x06:  # MOD
        return _range_between(0, max(0, second.high - 1))
    if op == 0x16:  # AND
        return _range_between(0, min(first.high, second.high))
    if first.low != first.high or first.low > 255:
        return _ANY
    if op == 0x1B:  # SHL
        return _range_between(second.low << first.low, second.high << first.low)
    if op == 0x1C:  # SHR
        return _range_between(second.low >> first.low, second.high >> first.low)
    return _ANY
