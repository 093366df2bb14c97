"""Hex text as the database's bytes. ``rows`` reads bytes as hex."""


def as_bytes(text: str) -> bytes:
    """``0x`` hex as bytes."""
    return bytes.fromhex(text[2:])
