"""Limits how many rules are replayed at once: each replay keeps the database busy for seconds."""

import contextlib
from collections.abc import Iterator

from roundtrip.domain.base.errors import ServiceFull

MAX_AT_ONCE = 2
"""Limit in one process. One account gets one slot."""
_AGAIN_S = 3


class ReplaySlots:
    """The slots, by account id."""

    def __init__(self, most: int = MAX_AT_ONCE) -> None:
        self._most = most
        self._account_ids: set[int] = set()

    @contextlib.contextmanager
    def hold_slot(self, account_id: int) -> Iterator[None]:
        """Holds a slot for the block. Raises ServiceFull (busy) at once when none is free, so that no caller
        waits while it holds a connection."""
        if account_id in self._account_ids:
            raise ServiceFull(
                "busy", f"Another rule of yours is being tested. Retry in {_AGAIN_S} seconds.", _AGAIN_S
            )
        if len(self._account_ids) >= self._most:
            raise ServiceFull(
                "busy", f"Too many rules are being tested. Retry in {_AGAIN_S} seconds.", _AGAIN_S
            )
        self._account_ids.add(account_id)
        try:
            yield
        finally:
            self._account_ids.discard(account_id)
