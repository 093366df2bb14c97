"""The position of a reader in the event stream: the id of an event, after which a later stream resumes."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_NUMBER = "[0-9]{1,15}"
_POSITION = re.compile(rf"{_NUMBER}(?:\.{_NUMBER}){{6}}")
_MAX_ON_CHAIN = 2**31 - 1
"""Blocks, logs and their times are of four bytes in the database."""
LATE_S = 30.0
"""How long an id that was skipped is waited for: its transaction may end after one with a higher id."""
_MAX_MISSING = 10_000
"""Of a larger gap between two ids, only the highest so many ids are waited for."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """``evidence``, ``rewound``, ``alert``: ids up to which everything was sent. ``block``, ``log``: the same
    on the chain; ``block_s``: the block's time. ``at_s``: when the position was given out. Times are seconds
    since 1970."""

    evidence: int
    block: int
    log: int
    block_s: int
    rewound: int
    alert: int
    at_s: int

    def __str__(self) -> str:
        """As the id of an event."""
        numbers = (self.evidence, self.block, self.log, self.block_s, self.rewound, self.alert, self.at_s)
        return ".".join(map(str, numbers))


def parse_position(text: str) -> StreamPosition:
    """The position that an id names. Raises ValueError: it is no id of an event."""
    if not _POSITION.fullmatch(text):
        raise ValueError("no id of an event")
    position = StreamPosition(*map(int, text.split(".")))
    if max(position.block, position.log, position.block_s) > _MAX_ON_CHAIN:
        raise ValueError("no id of an event: no block of a chain")
    return position


@dataclass(slots=True)
class IdTracker:
    """Follows ids that are given out in order, while their rows come to light in any order."""

    last: int
    missing: dict[int, float] = field(default_factory=dict)
    """Ids below ``last`` without a row, and since when they are waited for, in seconds since 1970."""

    def note(self, row_id: int, now_s: float) -> None:
        """A row came to light."""
        self.missing.pop(row_id, None)
        if row_id > self.last:
            first = max(self.last + 1, row_id - _MAX_MISSING)
            self.missing.update(dict.fromkeys(range(first, row_id), now_s))
            self.last = row_id

    def forget_late(self, now_s: float) -> None:
        """Gives up ids that never came: their transactions were rolled back."""
        late = [row_id for row_id, since_s in self.missing.items() if since_s <= now_s - LATE_S]
        for row_id in late:
            del self.missing[row_id]

    def waited_for(self) -> Iterable[int]:
        """The missing ids."""
        return self.missing

    def sent(self) -> int:
        """The id up to which every row came to light."""
        return min(self.missing, default=self.last + 1) - 1
