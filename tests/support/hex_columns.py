"""Columns of bytes as hex, for tests that read the driver's own records."""

from roundtrip.domain.base.types import Address


def as_text(value: bytes) -> str:
    """Bytes as ``0x`` hex in lower case."""
    return "0x" + value.hex()


def as_address(value: bytes) -> Address:
    """Twenty bytes as an address."""
    return Address("0x" + value.hex())
