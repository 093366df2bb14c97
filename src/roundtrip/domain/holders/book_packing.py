"""A table of addresses and whole numbers as bytes: a line of JSON, the addresses, and one line a column, the
numbers in hex; all of it compressed. Half a million rows take about a second either way.
"""

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from roundtrip.domain.base.types import Address

MOST_BYTES = 1 << 30
"""So long a table is read at most, decompressed: six million rows."""

_MOST_LISTS = 500
"""JSON has so many lists at most: of a hundred thousand, one in the other, its reader kills the process."""

_LEVEL = 1
"""The fastest: addresses and amounts are as good as random, and a higher level wins a twentieth."""

_NONE = "n"
_LETTERS = b"0123456789abcdef- \n" + _NONE.encode()

Column = Sequence[int | None]


def pack(told: dict[str, Any], addresses: Sequence[Address], columns: Iterable[Column]) -> bytes:
    """As bytes, the same for the same. ``told``: what JSON can tell, in few lists. Every column is as long
    as there are addresses."""
    head = json.dumps({**told, "rows": len(addresses)}, sort_keys=True, separators=(",", ":")).encode()
    lines = "\n".join(
        " ".join([_NONE if value is None else "%x" % value for value in column])  # noqa: UP031 (twice as fast)
        for column in columns
    )
    shorn = bytes.fromhex("".join([address[2:] for address in addresses]))
    return zlib.compress(b"\n".join((head, shorn + lines.encode())), _LEVEL)


def unpack(data: bytes) -> tuple[dict[str, Any], list[Address], list[list[int | None]]]:
    """What ``pack`` made. Raises ValueError for anything else."""
    head, _, rest = _decompress(data).partition(b"\n")
    if head.count(b"[") + head.count(b"{") > _MOST_LISTS:
        raise ValueError("more lists than a table tells")
    told = json.loads(head)
    rows = told.pop("rows", None) if isinstance(told, dict) else None
    if type(rows) is not int or not 0 <= rows <= len(rest) // 20:
        raise ValueError("no table")
    digits, text = rest[: 20 * rows].hex(), rest[20 * rows :]
    if text.translate(None, _LETTERS):
        raise ValueError("what is no number in a table")
    addresses = [Address("0x" + digits[at : at + 40]) for at in range(0, 40 * rows, 40)]
    columns = [_numbers(line) for line in text.decode().split("\n")] if rows else []
    if any(len(column) != rows for column in columns):
        raise ValueError("a column of a table is too short or too long")
    return told, addresses, columns


def _decompress(data: bytes) -> bytes:
    reader = zlib.decompressobj()
    try:
        plain = reader.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise ValueError("not compressed") from error
    if not reader.eof or reader.unused_data:
        raise ValueError("cut short, too long, or more than one table")
    return plain


def _numbers(line: str) -> list[int | None]:
    return [None if word == _NONE else int(word, 16) for word in line.split(" ")]


def wholes(told: Any) -> list[int]:
    """A list of whole numbers, as JSON told it. Raises ValueError or TypeError for anything else."""
    if not all(type(one) is int for one in told):
        raise ValueError("what should be a number is none")
    return list(told)


def texts(told: Any) -> list[str]:
    """The same of texts."""
    if not all(type(one) is str for one in told):
        raise ValueError("what should be a text is none")
    return list(told)
