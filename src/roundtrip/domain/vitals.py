"""How fast the chain goes, out of what was counted, and who is behind whom."""

from .types import BlockRef

HOUR_S, DAY_S = 3600, 86_400
BEHIND_S = 10
"""What was followed up to may be so much older than the newest block: a hundred blocks of a real chain."""
_BEHIND_BLOCKS = 100
LEAST_COVERED_S = 60
"""A rate by the minute needs a minute."""


def block_time_ms(blocks: int, seconds: int) -> int | None:
    """The average of so many blocks in so many seconds; None where there was no block."""
    return seconds * 1000 // blocks if blocks > 0 else None


def covered_s(window_s: int, now_s: int, followed_from_s: int) -> int:
    """How much of the window until ``now_s`` the index has seen."""
    return max(0, min(window_s, now_s - followed_from_s))


def per_minute(count: int, seconds: int) -> float | None:
    """So many in so many seconds; None where those are too few to say."""
    return round(count * 60 / seconds, 1) if seconds >= LEAST_COVERED_S else None


def is_node_behind(head: BlockRef, followed: BlockRef) -> bool:
    """Whether the node's newest block is so far below what was followed that it is no moment's delay: answers
    are of blocks that the node does not know, or that were taken back."""
    late_s = followed.timestamp_s - head.timestamp_s
    return followed.number > head.number and (
        late_s > BEHIND_S or followed.number - head.number > _BEHIND_BLOCKS
    )
