"""Blocks and all their logs, read in spans and checked against their headers."""

from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from roundtrip.domain.types import BlockRef
from roundtrip.venues.base import Log


class Tx(msgspec.Struct, frozen=True):
    """As much of a transaction as is read here, hex as the node gives it, in lower case."""

    hash: str
    sender: str = msgspec.field(name="from")
    to: str | None
    value: str
    nonce: str


class Entry(NamedTuple):
    """One log of a block, and where in it: ``log_index`` counts from the block's first log."""

    log: Log
    tx_index: int
    log_index: int


@dataclass(frozen=True, slots=True)
class BlockRead:
    """One block with its transactions and every log, in order."""

    ref: BlockRef
    parent_hash: str
    transactions: tuple[Tx, ...]
    entries: tuple[Entry, ...]
