"""Whether a contract may depend on block numbers, by its bytecode. Pure."""

import re
from collections.abc import Iterator

_TERMINATORS = frozenset({0x00, 0x56, 0xF3, 0xFD, 0xFE, 0xFF})
"""STOP, JUMP, RETURN, REVERT, INVALID, SELFDESTRUCT: only a jump reaches the code after one."""
_JUMPDEST, _PUSH1, _PUSH32 = 0x5B, 0x60, 0x7F
BLOCKHASH, TIMESTAMP, NUMBER, CALLCODE, DELEGATECALL = 0x40, 0x42, 0x43, 0xF2, 0xF4
_COUNTS = frozenset({BLOCKHASH, NUMBER})
CALLS = frozenset({0xF0, 0xF1, CALLCODE, DELEGATECALL, 0xF5, 0xFA})
"""CREATE, CALL, CALLCODE, DELEGATECALL, CREATE2, STATICCALL: they run code that is not known here."""
DELEGATED = bytes.fromhex("ef0100")
"""EIP-7702: an account that runs another's code."""


def reachable_instructions(code: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The offset, the opcode and the pushed bytes of each instruction that may be reached. Data of PUSH
    instructions and bytes behind an end do not count. The walk finds jump destinations in the same way as the
    EVM does.
    """
    at, reachable = 0, True
    while at < len(code):
        instruction = code[at]
        size = instruction - _PUSH1 + 1 if _PUSH1 <= instruction <= _PUSH32 else 0
        reachable = reachable or instruction == _JUMPDEST
        if reachable:
            yield at, instruction, code[at + 1 : at + 1 + size].ljust(size, b"\0")
        if instruction in _TERMINATORS:
            reachable = False
        at += 1 + size


def may_count_blocks(code: bytes) -> bool:
    """Whether a contract may depend on block numbers: an instruction that reads one, or runs other code, is
    reachable."""
    if code.startswith(DELEGATED):
        return True
    at = 0
    while at < len(code):
        at = _PLAIN.match(code, at).end()  # type: ignore[union-attr]
        if code[at : at + 1] and code[at] not in _TERMINATORS:
            return True
        at = _UNREACHED.match(code, at).end()  # type: ignore[union-attr]
    return False


def _skipping(ends: frozenset[int]) -> re.Pattern[bytes]:
    """Matches whole instructions, with what PUSH pushes, up to one of ``ends``; a PUSH at the end of the code
    may lack some of its bytes."""
    pushes = (b"\\x%02x.{0,%d}+" % (op, op - _PUSH1 + 1) for op in range(_PUSH1, _PUSH32 + 1))
    others = (b"\\x%02x" % op for op in range(256) if not _PUSH1 <= op <= _PUSH32 and op not in ends)
    return re.compile(b"(?s:[%s]|%s)*+" % (b"".join(others), b"|".join(pushes)))


_PLAIN = _skipping(_TERMINATORS | _COUNTS | CALLS)
_UNREACHED = _skipping(frozenset({_JUMPDEST}))
