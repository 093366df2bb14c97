"""Sells of a batch that may have failed: calls without an event. Pure: only the database knows which tokens
were checked, and only the receipt that a call failed."""

import contextlib
from collections.abc import Collection, Iterable
from typing import NamedTuple

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.venues.known_calls import CURVE_SELL, SELL_CALLS, find_sold

from .ledger import BlockEvents


class FailedCall(NamedTuple):
    """A call that sells a token and left no event. ``sold``: the token, or a contract that may be its
    curve."""

    sold: Address
    sender: Address
    tx_hash: TxHash


def list_failed_sells(blocks: Iterable[BlockEvents], routers: Collection[Address]) -> list[FailedCall]:
    """The calls to ``routers`` and to curves that sell a token and left no event."""
    failed = []
    for block in blocks:
        with_events: set[int] | None = None
        for index, tx in enumerate(block.transactions):
            head = tx.input[:10]
            if head not in SELL_CALLS or tx.to is None:
                continue
            if with_events is None:
                with_events = {logged.tx_index for logged in block.events}
            if index in with_events or not (head == CURVE_SELL or tx.to in routers):
                continue
            # The node's text may not be hex.
            with contextlib.suppress(ValueError):
                sold = find_sold(Address(tx.to), bytes.fromhex(tx.input[2:]))
                if sold is not None:
                    failed.append(FailedCall(sold, Address(tx.sender), TxHash(tx.hash)))
    return failed
