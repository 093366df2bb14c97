"""How fast the chain goes, out of what was counted, and who is behind whom."""

from collections.abc import Sequence

from roundtrip.domain.base.types import BlockRef

_TEN = 10
HOUR_S, DAY_S = 3600, 86_400
BEHIND_S = 10
"""What was followed up to may be so much older than the newest block: a hundred blocks of a real chain."""
_BEHIND_BLOCKS = 100
LEAST_COVERED_S = 60
"""A rate by the minute needs a minute."""


def block_time_ms(times_s: Sequence[int]) -> int | None:
    """The average over consecutive blocks made at these times, the oldest first; None for fewer than two. Ten
    blocks that took over twice as long as ten mostly do, and a second more, are a pause: of that the pace is
    not told. A block's time is in whole seconds, so one alone tells nothing of it."""
    last = len(times_s) - 1
    tens = [
        (times_s[end] - times_s[max(0, end - _TEN)], end - max(0, end - _TEN))
        for end in range(last, 0, -_TEN)
    ]
    if not tens:
        return None
    usual_s = sorted(seconds for seconds, _ in tens)[len(tens) // 2]
    kept = [(seconds, blocks) for seconds, blocks in tens if seconds <= 2 * usual_s + 1]
    return sum(seconds for seconds, _ in kept) * 1000 // sum(blocks for _, blocks in kept)


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
