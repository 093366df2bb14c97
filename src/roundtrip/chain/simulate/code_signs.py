"""What a token's code can read in a transfer that differs between wallets or transactions. Pure."""

from functools import lru_cache

from roundtrip.domain.check.evidence import CodeSign

from .code_walk import ADDRESS, CALLER, WATCHED, CallWalk, moves_address, scan

_SIGNS: dict[int, CodeSign] = {
    0x31: "balance",
    0x32: "origin",
    0x3A: "gas_price",
    0x3F: "code_hash",
    0x40: "block_hash",
}
"""By the instruction: BALANCE, ORIGIN, GASPRICE, EXTCODEHASH, BLOCKHASH."""
_COMPARES = frozenset({0x03, 0x14, 0x18})
"""SUB, EQ, XOR: what code compares two addresses with."""
_AND, _POP = 0x16, 0x50
_MAX_BYTES = 98_304
"""Four times the limit of EIP-170: the most that a Nitro chain can be set up for."""
TRANSFERS = ((0xA9059CBB, 68), (0x23B872DD, 100))
"""The selector and the bytes of calldata of transfer(address,uint256) and of
transferFrom(address,address,uint256)."""
MAX_STEPS = 24_000
"""Steps that are walked of each call: some five times what a usual token takes. What they do not reach is not
read."""


@lru_cache(maxsize=64)
def code_signs(code: bytes) -> tuple[CodeSign, ...]:
    """The signs on the paths that a transfer can take, sorted. Takes some milliseconds at most."""
    if len(code) > _MAX_BYTES:
        return ()
    targets, present = scan(code)
    wanted = {_SIGNS[op] for op in present}
    seen: set[CodeSign] = set()

    def watch(op: int, operands: list[int]) -> None:
        if op in WATCHED:
            if ADDRESS not in operands:
                seen.add(_SIGNS[op])
        elif not _is_usual(op, operands):
            seen.add("origin")

    for selector, calldata_bytes in TRANSFERS:
        if seen != wanted:
            CallWalk(code, targets, selector, calldata_bytes, watch).run(MAX_STEPS)
    return tuple(sorted(seen))


def _is_usual(op: int, operands: list[int]) -> bool:
    """Whether an instruction that takes the origin compares it with the caller, masks, shifts or drops it."""
    if op in _COMPARES:
        return CALLER in operands
    return op in (_AND, _POP) or moves_address(op, operands)
