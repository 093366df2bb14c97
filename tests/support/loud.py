"""A contract that says what it is told to say: logs of anybody's choosing, whoever calls it."""

from roundtrip_development.devnet.sync_rpc import SyncRpc

Said = tuple[list[str], str]
"""Topics as 0x words, and data as 0x hex."""


def loud(rpc: SyncRpc, address: str, *said: Said) -> str:
    """Puts its code at the address, which may be one that somebody else is known by."""
    rpc.call("anvil_setCode", address, "0x" + b"".join(_emit(*one) for one in said).hex() + "00")
    return address


def _emit(topics: list[str], data: str) -> bytes:
    """MSTORE of each word of the data, then LOGn."""
    raw = bytes.fromhex(data[2:])
    code = b""
    for at in range(0, len(raw), 32):
        code += b"\x7f" + raw[at : at + 32].ljust(32, b"\0") + b"\x61" + at.to_bytes(2, "big") + b"\x52"
    for topic in reversed(topics):
        code += b"\x7f" + bytes.fromhex(topic[2:].rjust(64, "0"))
    size = b"\x61" + len(raw).to_bytes(2, "big")
    return code + size + b"\x5f" + bytes([0xA0 + len(topics)])
