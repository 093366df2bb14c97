"""Rates of the chain: never one that was not counted."""

import pytest

from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.market.chain_stats import block_time_ms, covered_s, is_node_behind, per_minute


@pytest.mark.parametrize(
    ("times_s", "expected"),
    [
        ([n // 10 for n in range(101)], 100),
        ([n // 4 for n in range(101)], 250),
        ([n * 2 for n in range(101)], 2000),
        ([7] * 101, 0),
        ([0, 3, 6, 10], 3333),
        ([5, 17], 12_000),
        ([5], None),
        ([], None),
    ],
)
def test_a_blocks_time_is_an_average(times_s: list[int], expected: int | None) -> None:
    assert block_time_ms(times_s) == expected


@pytest.mark.parametrize("pause_at", [1, 30, 55, 100])
@pytest.mark.parametrize(("each", "expected"), [(10, 100), (1, 1000)])
def test_a_pause_is_no_pace(pause_at: int, each: int, expected: int) -> None:
    """A history that was made at once, or a node that was away for a day."""
    times = [n // each + (86_400 if n >= pause_at else 0) for n in range(101)]
    assert block_time_ms(times) == expected


@pytest.mark.parametrize(
    ("from_s", "expected"), [(0, 600), (1400, 600), (1401, 599), (1990, 10), (2000, 0), (2001, 0)]
)
def test_a_window_is_covered_as_far_as_the_index_goes_back(from_s: int, expected: int) -> None:
    assert covered_s(600, 2000, from_s) == expected


@pytest.mark.parametrize(
    ("count", "seconds", "expected"),
    [(0, 600, 0.0), (1, 600, 0.1), (1234, 600, 123.4), (10, 60, 10.0), (10, 59, None), (0, 0, None)],
)
def test_a_rate_by_the_minute_needs_a_minute(count: int, seconds: int, expected: float | None) -> None:
    assert per_minute(count, seconds) == expected


@pytest.mark.parametrize(
    ("blocks", "seconds", "expected"),
    [(0, 0, False), (9, 10, False), (1, 11, True), (100, 0, False), (101, 0, True), (101, -900, True)],
)
def test_a_node_far_below_what_was_followed_is_behind_it(blocks: int, seconds: int, expected: bool) -> None:
    followed = BlockRef(5000 + blocks, "0x", 90_000 + seconds)
    assert is_node_behind(BlockRef(5000, "0x", 90_000), followed) is expected


def test_a_node_that_goes_on_is_not_behind() -> None:
    """A chain with more blocks from another time is a fork, which is gone back over."""
    assert not is_node_behind(BlockRef(5000, "0x", 90_000), BlockRef(4999, "0x", 95_000))
