"""Reads strangers' JSON piece by piece. All functions raise UnreadableClaim, and nothing else."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .report import UnreadableClaim, printable

_RESERVED = 2

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_DIGITS = re.compile(r"0|[1-9][0-9]{0,77}")
_CODE = re.compile(r"[a-z_]{1,40}")
_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)

MAX_DATA_CHARACTERS = 20_000
MAX_STEPS = 10
_MAX_INTEGER = 2**64
_MAX_TEXT = 10_000
_MAX_FILE = 2_000_000
_MAX_BRACKETS = 2_000
"""The deepest nesting; the standard parser can crash on deeper input."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_TIME_S = 253_402_300_800
"""The year 10000."""


def parse_file(path: Path) -> dict[str, Any]:
    """The JSON object of a file, of which no more is read than ``parse`` takes. Also raises OSError and
    UnicodeDecodeError."""
    with path.open(encoding="utf-8") as stream:
        return parse(stream.read(_MAX_FILE + 1))


def parse(text: str) -> dict[str, Any]:
    """A JSON object. A duplicate name is refused, because another parser may take the other value."""
    if len(text) > _MAX_FILE or text.count("[") + text.count("{") > _MAX_BRACKETS:
        raise UnreadableClaim("The file is larger or more deeply nested than any answer of the service.")
    try:
        value = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_no_constant)
    except UnreadableClaim:
        raise
    except (ValueError, RecursionError):
        raise UnreadableClaim("The file is not valid JSON, or is nested too deeply.") from None
    return mapping(value, "the file")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise UnreadableClaim("The file has a duplicate name in one object.")
    return fields


def _no_constant(name: str) -> object:
    raise UnreadableClaim(f"The file contains {name}, which is not valid JSON.")


def mapping(value: object, label: str) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise UnreadableClaim(f"{label} is {printable(value)}, but must be an object.")
    return value


def no_error(answer: dict[str, Any]) -> None:
    """Raises UnreadableClaim where the service returned an error instead of an answer."""
    error = answer.get("error")
    if isinstance(error, dict) and "token" not in answer:
        code = error.get("code")
        named = code if isinstance(code, str) and _CODE.fullmatch(code) else "without a code"
        message = printable(error.get("message"))
        raise UnreadableClaim(f"The file is an error, not a prepared trade: {named}, {message}.")


def get(holder: dict[str, Any], name: str) -> object:
    """A required field."""
    if name not in holder:
        raise UnreadableClaim(f"{name} is missing.")
    return holder[name]


def text(value: object, label: str) -> str:
    """A string of limited length."""
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise UnreadableClaim(f"{label} is {printable(value)}, but must be a string.")
    return value


def one_of(value: object, label: str, *allowed: str) -> str:
    """One of a few words."""
    word = text(value, label)
    if word not in allowed:
        raise UnreadableClaim(f"{label} is {printable(value)}, but must be one of {', '.join(allowed)}.")
    return word


def boolean(value: object, label: str) -> bool:
    """True or false, and nothing that counts as them."""
    if not isinstance(value, bool):
        raise UnreadableClaim(f"{label} is {printable(value)}, but must be true or false.")
    return value


def integer(value: object, label: str) -> int:
    """A JSON integer from zero on, below 2**64."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MAX_INTEGER:
        raise UnreadableClaim(
            f"{label} is {printable(value)}, but must be a whole number from 0 to below 2**64."
        )
    return value


def digits(value: object, label: str) -> int:
    """A whole number below 2**256 as a string of digits, without leading zeros."""
    if not isinstance(value, str) or _DIGITS.fullmatch(value) is None or int(value) >= 2**256:
        raise UnreadableClaim(
            f"{label} is {printable(value)}, but must be a whole number below 2**256, in digits."
        )
    return int(value)


def address(value: object, label: str) -> str:
    """An address, in lower case."""
    if not isinstance(value, str) or _ADDRESS.fullmatch(value) is None:
        raise UnreadableClaim(f"{label} is {printable(value)}, but must be an address.")
    return value.lower()


def is_reserved(address_text: str) -> bool:
    """True for addresses that no wallet has: zero, and those that routers read as the caller and as
    themselves."""
    return int(address_text, 16) <= _RESERVED


def hexadecimal(value: object, label: str) -> bytes:
    """Bytes as ``0x`` hex."""
    if not isinstance(value, str) or len(value) > MAX_DATA_CHARACTERS or _HEX.fullmatch(value) is None:
        raise UnreadableClaim(
            f"{label} is {printable(value)}, but must be 0x and whole bytes in hex, within the size limit."
        )
    return bytes.fromhex(value[2:])


def time_s(value: object, label: str) -> int:
    """An ISO 8601 time with its zone, as whole seconds since 1970, rounded down."""
    seconds = None
    if isinstance(value, str) and _TIME.fullmatch(value) is not None:
        try:
            seconds = (datetime.fromisoformat(value) - _EPOCH) // timedelta(seconds=1)
        except (ValueError, OverflowError):
            seconds = None
    if seconds is None or not 0 <= seconds < _MAX_TIME_S:
        raise UnreadableClaim(
            f"{label} is {printable(value)}, but must be an ISO 8601 time with a zone, after 1970."
        )
    return seconds


def items(value: object, label: str) -> list[Any]:
    """A JSON list."""
    if not isinstance(value, list):
        raise UnreadableClaim(f"{label} is {printable(value)}, but must be a list.")
    return value
