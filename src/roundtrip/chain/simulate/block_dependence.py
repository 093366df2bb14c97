"""What can be told of a contract by reading its code. Pure."""

_TERMINATORS = frozenset({0x00, 0x56, 0xF3, 0xFD, 0xFE, 0xFF})
"""STOP, JUMP, RETURN, REVERT, INVALID, SELFDESTRUCT: what stands behind one is reached by a jump only."""
_JUMPDEST, _PUSH1, _PUSH32 = 0x5B, 0x60, 0x7F
_COUNTS = frozenset({0x40, 0x43})
"""BLOCKHASH and NUMBER."""
_CALLS = frozenset({0xF0, 0xF1, 0xF2, 0xF4, 0xF5, 0xFA})
"""CREATE, CALL, CALLCODE, DELEGATECALL, CREATE2, STATICCALL: what the code that runs then reads is not known
here."""
DELEGATED = bytes.fromhex("ef0100")
"""EIP-7702: an account that runs another's code."""


def may_count_blocks(code: bytes) -> bool:
    """Whether what a contract does can depend on block numbers: an instruction that reads one, or runs other
    code, can be reached. Bytes that only look like instructions, data of PUSHes and what no jump leads to, do
    not count: the walk is the one by which the machine itself knows where a jump may lead.
    """
    if code.startswith(DELEGATED):
        return True
    at, reached = 0, True
    while at < len(code):
        instruction = code[at]
        if instruction == _JUMPDEST:
            reached = True
        elif reached and (instruction in _COUNTS or instruction in _CALLS):
            return True
        elif instruction in _TERMINATORS:
            reached = False
        at += 1 + (instruction - _PUSH1 + 1 if _PUSH1 <= instruction <= _PUSH32 else 0)
    return False
