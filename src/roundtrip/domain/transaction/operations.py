"""Whose operation a log belongs to, where account abstraction's entry points stand between."""

from bisect import bisect
from collections.abc import Iterable
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from roundtrip.domain.base.events import Event, Operated, OperationsBegin
from roundtrip.domain.base.types import Address


class UserOperation(NamedTuple):
    """What ``account`` did: the logs between two of an entry point's own in one transaction, neither of them
    counted in. Log indexes count the logs of the block."""

    after: int
    before: int
    account: Address


def operations(told: Iterable[tuple[int, int, Event]]) -> list[UserOperation]:
    """The operations of one block, in the order in which they ended. ``told``: transaction index, log index
    and event, in order.

    What is logged while operations are validated is of none: whoever puts somebody's signed operation first
    could trade in that one's name. Each entry point speaks for itself: an operation may call another version
    of it, which runs operations of its own."""
    found = []
    begun: dict[Address, tuple[int, int]] = {}
    for tx_index, log_index, event in told:
        if isinstance(event, OperationsBegin):
            begun[event.entry_point] = tx_index, log_index
        elif isinstance(event, Operated):
            since_tx, after = begun.get(event.entry_point, (-1, -1))
            if since_tx == tx_index:
                found.append(UserOperation(after, log_index, event.account))
                begun[event.entry_point] = tx_index, log_index
    return found


def account_at(found: list[UserOperation], log_index: int) -> Address | None:
    """Whose operation the log belongs to: of several around it the innermost, which ended first; None: it is
    of none."""
    first = bisect(found, log_index, key=attrgetter("before"))
    return next((one.account for one in islice(found, first, None) if one.after < log_index), None)
