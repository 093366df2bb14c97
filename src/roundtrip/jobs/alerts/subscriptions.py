"""All rules and follows in memory, as they are in the database while a step holds its lock."""

import asyncio
from collections.abc import Callable, Sequence

from roundtrip.domain.watch.rule_index import RuleIndex
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import watches
from roundtrip.store.watch.watches import WatchChange

_RELOAD_S = watches.ENDED_KEPT.total_seconds() / 2


class Subscriptions:
    """``empty`` makes an empty index."""

    def __init__(self, empty: Callable[[], RuleIndex], now_s: Callable[[], float]) -> None:
        self._empty, self._now_s = empty, now_s
        self._index: RuleIndex | None = None
        self._change, self._loaded_s = 0, 0.0
        self._rewound = -1
        """The last reorg that the start blocks in the index include."""

    def forget(self) -> None:
        """Drops the index, so that all of it is read again. A database that is back after a crash, or is
        another copy, may have lost its last changes and may reuse their numbers."""
        self._index = None

    async def index(
        self, connection: Connection, rewound: int, before: int, moved: Sequence[WatchChange] = ()
    ) -> RuleIndex:
        """The index as it is now. A reorg moves the start blocks of rules and follows without changing them:
        ``rewound`` is the last reorg, ``moved`` are the watches that moved since reorg ``before``."""
        index = self._index
        if index is None or self._rewound != before or self._now_s() - self._loaded_s > _RELOAD_S:
            # If reading fails half way, the part must not be used as the whole.
            self._index = None
            index, self._change, self._loaded_s = self._empty(), 0, self._now_s()
            moved = ()
        for change in moved:
            _apply(index, change)
        self._rewound = rewound
        while True:
            changes = await watches.changes_since(connection, self._change, watches.MAX_CHANGES)
            for change in changes:
                _apply(index, change)
                self._change = change.number
            if len(changes) < watches.MAX_CHANGES:
                break
            await asyncio.sleep(0)
        self._index = index
        return index


def _apply(index: RuleIndex, change: WatchChange) -> None:
    source, rule, wallet = change.source, change.rule, change.wallet
    if not change.live:
        index.remove(source.kind, source.id)
    elif rule is not None:
        index.add_rule(source, rule, wallet)
    elif wallet is not None:
        index.add_follow(source, wallet)
