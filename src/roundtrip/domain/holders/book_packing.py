"""A table of addresses and integers as bytes: a line of JSON, the addresses, and one line per column with the
numbers in hex; all of it compressed. Half a million rows take about a second either way."""

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from roundtrip.domain.base.types import Address

MAX_BYTES = 1 << 30
"""The longest table that is read, decompressed: six million rows."""

_MAX_LISTS = 500
"""The most lists and objects that the JSON may hold: a hundred thousand nested ones crash its parser."""

_LEVEL = 1
"""The fastest: addresses and amounts are nearly random, and a higher level saves a twentieth."""

_NONE = "n"
_LETTERS = b"0123456789abcdef- \n" + _NONE.encode()

Column = Sequence[int | None]


def pack(header: dict[str, Any], addresses: Sequence[Address], columns: Iterable[Column]) -> bytes:
    """Deterministic. ``header``: JSON-compatible values with few lists. Every column is as long as
    ``addresses``."""
    head = json.dumps({**header, "rows": len(addresses)}, sort_keys=True, separators=(",", ":")).encode()
    lines = "\n".join(
        " ".join([_NONE if value is None else "%x" % value for value in column])  # noqa: UP031 (twice as fast)
        for column in columns
    )
    address_bytes = bytes.fromhex("".join([address[2:] for address in addresses]))
    return zlib.compress(b"\n".join((head, address_bytes + lines.encode())), _LEVEL)


def unpack(data: bytes) -> tuple[dict[str, Any], list[Address], list[list[int | None]]]:
    """Decodes ``pack``. Raises ValueError for anything else."""
    head, _, rest = _decompress(data).partition(b"\n")
    if head.count(b"[") + head.count(b"{") > _MAX_LISTS:
        raise ValueError("more lists than a table tells")
    header = json.loads(head)
    rows = header.pop("rows", None) if isinstance(header, dict) else None
    if type(rows) is not int or not 0 <= rows <= len(rest) // 20:
        raise ValueError("no table")
    digits, text = rest[: 20 * rows].hex(), rest[20 * rows :]
    if text.translate(None, _LETTERS):
        raise ValueError("what is no number in a table")
    addresses = [Address("0x" + digits[at : at + 40]) for at in range(0, 40 * rows, 40)]
    columns = [_numbers(line) for line in text.decode().split("\n")] if rows else []
    if any(len(column) != rows for column in columns):
        raise ValueError("a column of a table is too short or too long")
    return header, addresses, columns


def _decompress(data: bytes) -> bytes:
    reader = zlib.decompressobj()
    try:
        plain = reader.decompress(data, MAX_BYTES)
    except zlib.error as error:
        raise ValueError("not compressed") from error
    if not reader.eof or reader.unused_data:
        raise ValueError("cut short, too long, or more than one table")
    return plain


def _numbers(line: str) -> list[int | None]:
    return [None if word == _NONE else int(word, 16) for word in line.split(" ")]


def read_ints(values: Any) -> list[int]:
    """A list of integers from JSON. Raises ValueError or TypeError for anything else."""
    if not all(type(value) is int for value in values):
        raise ValueError("what should be a number is none")
    return list(values)


def read_texts(values: Any) -> list[str]:
    """A list of texts from JSON. Raises as ``read_ints``."""
    if not all(type(value) is str for value in values):
        raise ValueError("what should be a text is none")
    return list(values)
