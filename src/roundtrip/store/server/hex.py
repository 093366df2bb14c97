"""Conversion of addresses, hashes and places between hex text and the database's bytes."""

from roundtrip.domain.base.types import Address


def as_bytes(text: str) -> bytes:
    """``0x`` hex as bytes."""
    return bytes.fromhex(text[2:])


def as_text(value: bytes) -> str:
    """Bytes as ``0x`` hex in lower case."""
    return "0x" + value.hex()


def as_address(value: bytes) -> Address:
    """Twenty bytes as an address."""
    return Address("0x" + value.hex())
