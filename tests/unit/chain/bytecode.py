"""Small contracts put together by hand, with functions told apart as solidity does: one comparison each."""

from roundtrip.venues.abi import selector

_AS_ADDRESS = "73" + "ff" * 20 + "16"
_AS_BOOL = "1515"
CHECKS = {"address": _AS_ADDRESS, "bool": _AS_BOOL, "uint256": "", "uint8": "60ff16"}
"""What a compiler does to an argument, by its type: it is how the type is told."""

STOP, RETURNS_ZERO = "00", "60006000526020" + "6000f3"


def writes(*types: str) -> str:
    """A function's body that keeps its arguments."""
    kept = (f"60{4 + 32 * n:02x}35{CHECKS[part]}60{n:02x}55" for n, part in enumerate(types))
    return "".join(kept) + ("" if types else "600160ff55") + STOP


def reads(*types: str) -> str:
    """A function's body that looks at its arguments and answers zero."""
    looked = (f"60{4 + 32 * n:02x}35{CHECKS[part]}50" for n, part in enumerate(types))
    return "".join(looked) + RETURNS_ZERO


def contract(functions: dict[str, str]) -> bytes:
    """Runtime code. ``functions``: bodies by signature, or by selector as ``0x`` and eight hex digits."""
    at = 6 + 11 * len(functions) + 5
    head, bodies = "60003560e01c", ""
    for name, body in functions.items():
        known = name if name.startswith("0x") else selector(name)
        head += f"8063{known[2:]}1461{at + len(bodies) // 2:04x}57"
        bodies += "5b" + body
    return bytes.fromhex(head + "60006000fd" + bodies)
