"""Logs as a node sends them. Decoding checks their form. Whether they are true and complete, the caller
checks: it compares them with a bloom, a receipt or each other, or uses them as hints only."""

import re
from typing import Annotated

import msgspec

from roundtrip.domain.base.types import parse_address
from roundtrip.venues.base import Log

_WORD = re.compile("0x[0-9a-fA-F]{64}")
_QUANTITY = re.compile("0x[0-9a-fA-F]{1,64}")


class UnverifiedLog(msgspec.Struct, rename="camel", gc=False):
    """What a contract emitted, as a node claims it: hex as the node writes it, not checked before it is
    decoded. Also of a simulated call."""

    address: str
    topics: Annotated[tuple[str, ...], msgspec.Meta(max_length=4)]
    data: str

    def decode(self) -> Log:
        """The log, its hex in lower case. Raises ValueError where that has another form."""
        return Log(parse_address(self.address), tuple(map(decode_word, self.topics)), decode_bytes(self.data))


class UnverifiedBlockLog(UnverifiedLog):
    """A log with its place in the chain, as the node claims it. ``block_timestamp`` None: the node does not
    send it. ``removed``: a reorganization took it out of the chain."""

    block_number: str
    block_hash: str
    transaction_hash: str
    transaction_index: str
    log_index: str
    block_timestamp: str | None = None
    removed: bool = False


def decode_word(text: str) -> str:
    """The 32 bytes in lower case. Raises ValueError if it is not ``0x`` and 64 hex digits."""
    if not _WORD.fullmatch(text):
        raise ValueError("not 0x and 64 hex digits")
    return text.lower()


def decode_number(text: str) -> int:
    """Raises ValueError if it is not ``0x`` and 1 to 64 hex digits."""
    if not _QUANTITY.fullmatch(text):
        raise ValueError("not 0x and 1 to 64 hex digits")
    return int(text, 16)


def decode_bytes(text: str) -> bytes:
    """Raises ValueError if it is not ``0x`` and pairs of hex digits."""
    data = bytes.fromhex(text[2:])
    # bytes.fromhex skips spaces.
    if len(text) != 2 + 2 * len(data) or text[:2] != "0x":
        raise ValueError("not 0x and hex digits")
    return data
