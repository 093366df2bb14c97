"""Which ERC-4337 user operation a log belongs to, by the logs of the entry points."""

from bisect import bisect
from collections.abc import Iterable
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from roundtrip.domain.base.events import Event, Operated, OperationsBegin
from roundtrip.domain.base.types import Address


class UserOperation(NamedTuple):
    """An operation of ``account``: the logs strictly between ``after`` and ``before``, two logs of one entry
    point in one transaction. Log indexes count the logs of the block."""

    after: int
    before: int
    account: Address


def operations(events: Iterable[tuple[int, int, Event]]) -> list[UserOperation]:
    """Lists the operations of one block, in the order in which they ended. ``events``: transaction index, log
    index and event, in order.

    Logs of the validation phase belong to no operation: otherwise a bundler could place another account's
    signed operation first and trade in that account's name. Each entry point is followed separately, because
    an operation may call another version of the entry point, which runs operations of its own."""
    ended = []
    started: dict[Address, tuple[int, int]] = {}
    for tx_index, log_index, event in events:
        if isinstance(event, OperationsBegin):
            started[event.entry_point] = tx_index, log_index
        elif isinstance(event, Operated):
            start_tx, after = started.get(event.entry_point, (-1, -1))
            if start_tx == tx_index:
                ended.append(UserOperation(after, log_index, event.account))
                started[event.entry_point] = tx_index, log_index
    return ended


def account_at(ended: list[UserOperation], log_index: int) -> Address | None:
    """The account whose operation the log belongs to, or None. Of nested operations it is the innermost,
    which ended first."""
    first = bisect(ended, log_index, key=attrgetter("before"))
    return next((op.account for op in islice(ended, first, None) if op.after < log_index), None)
