"""The only valid encoding of a call, with a name for every byte of it.

Calldata is not decoded and trusted: the expected call is written out in full, and the calldata has to equal
it, byte for byte. So no byte is left over, and the field's name says what a wrong byte would change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

try:
    from sha3 import keccak_256
except ImportError:
    # It has wheels for macOS and Windows, too.
    from Crypto.Hash import keccak as _keccak

    def keccak_256(data: bytes) -> Any:
        """The hash object of these bytes."""
        return _keccak.new(data=data, digest_bits=256)


WORD = 32


@dataclass(frozen=True, slots=True)
class Field:
    """Some bytes of a call, and their meaning. ``reads``: how to show them to people."""

    name: str
    data: bytes
    reads: Literal["number", "address", "code"]

    def as_text(self, data: bytes) -> str:
        """Bytes of the size of this field, as people read them."""
        if self.reads == "number" or (self.reads == "address" and any(data[:-20])):
            return str(int.from_bytes(data, "big"))
        return "0x" + (data[-20:] if self.reads == "address" else data).hex()


Fields = tuple[Field, ...]
"""A piece of calldata, in order."""


def keccak(data: bytes) -> bytes:
    """Keccak-256, as Ethereum uses it (not NIST SHA3)."""
    digest: bytes = keccak_256(data).digest()
    return digest


def number(name: str, value: int) -> Field:
    """An unsigned integer in a word. Callers ensure that it fits."""
    return Field(name, value.to_bytes(WORD, "big"), "number")


def address(name: str, value: str) -> Field:
    """An address (``0x`` hex) in a word."""
    return Field(name, bytes.fromhex(value[2:]).rjust(WORD, b"\0"), "address")


def code(name: str, digits: str) -> Field:
    """Bytes as they are, given as hex digits: a selector, or the commands of a router."""
    return Field(name, bytes.fromhex(digits), "code")


def size(fields: Sequence[Field]) -> int:
    """The size of these fields in bytes."""
    return sum([len(field.data) for field in fields])


def encode_fields(fields: Sequence[Field]) -> bytes:
    """The calldata."""
    return b"".join(field.data for field in fields)


def tail(name: str, content: Fields) -> Fields:
    """``bytes``: their length, the bytes, and zeros up to a whole word."""
    padding = Field(f"the padding behind {name}", bytes(-size(content) % WORD), "code")
    return (number(f"the length of {name}", size(content)), *content, *([padding] if padding.data else []))


def array(name: str, items: Sequence[Fields]) -> Fields:
    """``bytes[]``: the count, the offset of each, and each."""
    tails = [tail(f"item {at} of {name}", item) for at, item in enumerate(items, 1)]
    offsets, offset = [], WORD * len(items)
    for at, item in enumerate(tails, 1):
        offsets.append(number(f"the place of item {at} of {name}", offset))
        offset += size(item)
    flat = [field for item in tails for field in item]
    return (number(f"the count of {name}", len(items)), *offsets, *flat)


def read(fields: Sequence[Field], name: str, data: bytes) -> int | None:
    """The number in ``data`` at the field of that name; None: ``data`` is too short."""
    at = 0
    for field in fields:
        if field.name == name:
            piece = data[at : at + len(field.data)]
            return int.from_bytes(piece, "big") if len(piece) == len(field.data) else None
        at += len(field.data)
    raise KeyError(name)


def differences(expected: Fields, data: bytes) -> list[str]:
    """What in ``data`` differs from the expected call, field by field. Empty exactly when the bytes are the
    same."""
    first = expected[0]
    start = data[: len(first.data)]
    if start != first.data:
        return [f"{first.name} is 0x{start.hex()}, but must be 0x{first.data.hex()}"]
    if len(data) != size(expected):
        return [f"the calldata has {len(data)} bytes, but must have {size(expected)}"]
    texts, at = [], 0
    for field in expected:
        piece = data[at : at + len(field.data)]
        if piece != field.data:
            texts.append(f"{field.name} is {field.as_text(piece)}, but must be {field.as_text(field.data)}")
        at += len(field.data)
    return texts
