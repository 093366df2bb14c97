"""A contract that makes the calls it is told to make, whoever calls it: one that trades, drains or gives."""

from roundtrip_development.devnet.sync_rpc import SyncRpc

Call = tuple[str, str, int]
"""Whom, calldata as 0x hex, and so many wei along."""


def robot(rpc: SyncRpc, address: str, *calls: Call) -> str:
    """Puts its code at the address, which may be a wallet's. Fails where one of its calls does."""
    code = b""
    for to, data, value_wei in calls:
        raw = bytes.fromhex(data[2:])
        for at in range(0, len(raw), 32):
            code += b"\x7f" + raw[at : at + 32].ljust(32, b"\0") + b"\x61" + at.to_bytes(2, "big") + b"\x52"
        # Sizes and places of what comes back and goes out, value, address, all the gas: CALL.
        code += b"\x5f\x5f\x61" + len(raw).to_bytes(2, "big") + b"\x5f\x7f" + value_wei.to_bytes(32, "big")
        code += b"\x73" + bytes.fromhex(to[2:]) + b"\x5a\xf1"
        # Over the REVERT where it went well.
        code += b"\x61" + (len(code) + 7).to_bytes(2, "big") + b"\x57\x5f\x5f\xfd\x5b"
    rpc.call("anvil_setCode", address, "0x" + code.hex() + "00")
    return address
