"""The pace of the chain, counts per minute, and whether the node is behind the index."""

from collections.abc import Sequence

from roundtrip.domain.base.types import BlockRef

_TEN = 10
HOUR_S, DAY_S = 3600, 86_400
BEHIND_S = 10
"""The index may be this much older than the newest block, a hundred blocks of a real chain, and the node this
much older than the index, before it counts as behind."""
_BEHIND_BLOCKS = 100
MIN_COVERED_S = 60
"""A rate per minute needs at least a minute."""


def block_time_ms(times_s: Sequence[int]) -> int | None:
    """The average over consecutive blocks with these times, the oldest first; None for fewer than two. Ten
    blocks that took more than twice the median of such tens, and a second more, are a pause and are left out.
    Block times are whole seconds, so single blocks say nothing about the pace."""
    last = len(times_s) - 1
    tens = [
        (times_s[end] - times_s[max(0, end - _TEN)], end - max(0, end - _TEN))
        for end in range(last, 0, -_TEN)
    ]
    if not tens:
        return None
    median_s = sorted(seconds for seconds, _ in tens)[len(tens) // 2]
    regular = [(seconds, blocks) for seconds, blocks in tens if seconds <= 2 * median_s + 1]
    return sum(seconds for seconds, _ in regular) * 1000 // sum(blocks for _, blocks in regular)


def covered_s(window_s: int, now_s: int, followed_from_s: int) -> int:
    """How much of the window until ``now_s`` the index covers."""
    return max(0, min(window_s, now_s - followed_from_s))


def per_minute(count: int, seconds: int) -> float | None:
    """``count`` in ``seconds`` as a rate per minute; None where the time is too short."""
    return round(count * 60 / seconds, 1) if seconds >= MIN_COVERED_S else None


def is_node_behind(head: BlockRef, followed: BlockRef) -> bool:
    """Whether the node's newest block is so far below the last indexed one that it is no brief delay: its
    answers are of blocks that the node does not have, or that were reorged out."""
    late_s = followed.timestamp_s - head.timestamp_s
    return followed.number > head.number and (
        late_s > BEHIND_S or followed.number - head.number > _BEHIND_BLOCKS
    )
