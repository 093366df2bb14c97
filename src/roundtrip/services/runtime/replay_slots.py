"""How many rules are replayed at once: each keeps the database busy for seconds."""

import contextlib
from collections.abc import Iterator

from roundtrip.domain.base.errors import ServiceFull

MOST_AT_ONCE = 2
"""In one process. Of one account one."""
_AGAIN_S = 3


class Replays:
    """Those that are under way."""

    def __init__(self, most: int = MOST_AT_ONCE) -> None:
        self._most = most
        self._whose: set[int] = set()

    @contextlib.contextmanager
    def one(self, account_id: int) -> Iterator[None]:
        """Raises ServiceFull (busy) at once where there is no room: nobody waits with a connection."""
        if account_id in self._whose:
            raise ServiceFull("busy", "Another rule of yours is being tried just now.", _AGAIN_S)
        if len(self._whose) >= self._most:
            raise ServiceFull("busy", "Others try their rules just now.", _AGAIN_S)
        self._whose.add(account_id)
        try:
            yield
        finally:
            self._whose.discard(account_id)
