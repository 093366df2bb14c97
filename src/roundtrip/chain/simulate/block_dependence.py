"""Whether a contract may depend on block numbers, by its bytecode. Pure."""

_TERMINATORS = frozenset({0x00, 0x56, 0xF3, 0xFD, 0xFE, 0xFF})
"""STOP, JUMP, RETURN, REVERT, INVALID, SELFDESTRUCT: only a jump reaches the code after one."""
_JUMPDEST, _PUSH1, _PUSH32 = 0x5B, 0x60, 0x7F
_COUNTS = frozenset({0x40, 0x43})
"""BLOCKHASH and NUMBER."""
_CALLS = frozenset({0xF0, 0xF1, 0xF2, 0xF4, 0xF5, 0xFA})
"""CREATE, CALL, CALLCODE, DELEGATECALL, CREATE2, STATICCALL: they run code that is not known here."""
DELEGATED = bytes.fromhex("ef0100")
"""EIP-7702: an account that runs another's code."""


def may_count_blocks(code: bytes) -> bool:
    """Whether a contract may depend on block numbers: an instruction that reads one, or runs other code, is
    reachable. Data of PUSH instructions and unreachable bytes do not count. The walk finds jump destinations
    in the same way as the EVM does.
    """
    if code.startswith(DELEGATED):
        return True
    at, reachable = 0, True
    while at < len(code):
        instruction = code[at]
        if instruction == _JUMPDEST:
            reachable = True
        elif reachable and (instruction in _COUNTS or instruction in _CALLS):
            return True
        elif instruction in _TERMINATORS:
            reachable = False
        at += 1 + (instruction - _PUSH1 + 1 if _PUSH1 <= instruction <= _PUSH32 else 0)
    return False
