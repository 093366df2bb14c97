"""All that is watched, in memory, as it is in the database while a step holds it."""

import asyncio
from collections.abc import Callable, Sequence

from roundtrip.domain.watch.rule_index import RuleIndex
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import watches
from roundtrip.store.watch.watches import WatchChange

_RELOADED_S = watches.ENDED_KEPT.total_seconds() / 2


class Subscriptions:
    """``empty`` makes an index without anything in it."""

    def __init__(self, empty: Callable[[], RuleIndex], now_s: Callable[[], float]) -> None:
        self._empty, self._now_s = empty, now_s
        self._index: RuleIndex | None = None
        self._change, self._loaded_s = 0, 0.0
        self._rewound = -1
        """The last reorganisation after which it is right from where each counts."""

    def forget(self) -> None:
        """All of it is read again. A database that is back after a crash, or is another copy, may have lost
        its last changes, and gives their numbers once more."""
        self._index = None

    async def index(
        self, connection: Connection, rewound: int, before: int, turned: Sequence[WatchChange] = ()
    ) -> RuleIndex:
        """As it is now. ``rewound``: with a reorganisation things count from elsewhere on, which is no change
        of them; ``turned``: those of which that is so since ``before``."""
        index = self._index
        if index is None or self._rewound != before or self._now_s() - self._loaded_s > _RELOADED_S:
            # Half of it would be taken for all.
            self._index = None
            index, self._change, self._loaded_s = self._empty(), 0, self._now_s()
            turned = ()
        for change in turned:
            _take_in(index, change)
        self._rewound = rewound
        while True:
            most = watches.MOST_CHANGES
            changes = await watches.changes_since(connection, self._change, most)
            for change in changes:
                _take_in(index, change)
                self._change = change.number
            if len(changes) < most:
                break
            await asyncio.sleep(0)
        self._index = index
        return index


def _take_in(index: RuleIndex, change: WatchChange) -> None:
    source, rule, wallet = change.source, change.rule, change.wallet
    if not change.live:
        index.remove(source.kind, source.id)
    elif rule is not None:
        index.add_rule(source, rule, wallet)
    elif wallet is not None:
        index.add_follow(source, wallet)
