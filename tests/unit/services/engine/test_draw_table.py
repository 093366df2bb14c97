"""The tables of what the draw misses: how a share is computed, and that the page has them."""

from dataclasses import replace
from random import Random

import pytest

from roundtrip.domain.base.policy import POLICY
from truth.draw_table import (
    DEPTHS_ETH,
    KINDS,
    ONE_IN,
    DrawnCheck,
    Scale,
    draw_checks,
    markdown,
    missed_by_address,
    read_page,
)
from unit.venues.network import address

(CHECK,) = draw_checks(50, 1)
INTERVALS = 2000


def scale(*values: float, low: float = 1, high: float = 10_000) -> Scale:
    return Scale("", "", low, high, lambda check: values)


@pytest.mark.parametrize(
    ("values", "one_in", "missed"),
    [
        ((), 4, 1),
        # Its middle lies in a third of all intervals that are a quarter long.
        ((100,), 4, 2 / 3),
        ((10,), 4, 2 / 3),
        ((10, 100), 4, 1 / 3),
        ((10, 100, 1000), 4, 0),
        # The ends lie in one interval each.
        ((1, 10_000), 4, 1),
        # What is beyond the scale helps with none.
        ((0, 0.5, 20_000), 4, 1),
        ((100,), 16, 1 - 1 / 15),
        ((100, 100), 16, 1 - 1 / 15),
    ],
)
def test_a_share_is_that_of_the_intervals_without_a_value(
    values: tuple[float, ...], one_in: int, missed: float
) -> None:
    assert scale(*values).missed(CHECK, one_in) == pytest.approx(missed)


@pytest.mark.parametrize("one_in", ONE_IN)
def test_drawn_intervals_find_the_same_share(one_in: int) -> None:
    draw = Random(one_in)
    values = [draw.uniform(0, 1) for _ in range(9)]
    starts = [draw.uniform(0, 1 - 1 / one_in) for _ in range(INTERVALS)]
    missed = sum(not any(start <= value <= start + 1 / one_in for value in values) for start in starts)
    even = Scale("", "", 0, 1, lambda check: values, is_even=True)
    assert even.missed(CHECK, one_in) == pytest.approx(missed / INTERVALS, abs=0.04)


def test_intervals_between_two_whole_numbers_do_not_count() -> None:
    """1 to 4 lie at 0.25, 0.57, 0.78 and 0.93 of this scale, and a sixteenth holds one of them at most."""
    tried = ((), (1, 2), (1, 2, 3, 4))
    missed = [replace(scale(*some, high=5), has_steps=True).missed(CHECK, 16) for some in tried]
    assert missed == pytest.approx([1, 0.5, 0])


def test_a_trap_by_address_is_missed_where_no_wallet_has_its_residue() -> None:
    addresses = [address(number) for number in range(300)]
    assert missed_by_address([], 8) == 1
    assert missed_by_address(addresses[:1], 8) == 7 / 8
    assert missed_by_address(addresses, 8) == 0
    assert missed_by_address([], 1) == 1
    assert missed_by_address(addresses[:1], 1) == 0


@pytest.mark.parametrize("depth_eth", DEPTHS_ETH)
def test_every_wallet_counts_at_every_depth_and_only_sizes_differ(depth_eth: int) -> None:
    (check,) = draw_checks(depth_eth, 1)
    assert len(check.members) == sum(POLICY.crowd_counts)
    assert rest_of(check) == rest_of(CHECK)


def rest_of(check: DrawnCheck) -> list[object]:
    """What does not depend on depth."""
    kinds = [kind.addresses(check) for kind in KINDS]
    return [check.gaps_s, check.main, [sale[:2][1] for sale in check.sales()], kinds]


def test_a_sale_in_pieces_counts_once_for_each_piece() -> None:
    (seller,) = {sale[0].number for sale in CHECK.sales() if sale[0].wallet.way == "pieces"}
    pieces = [raw for member, _, raw in CHECK.sales() if member.number == seller]
    assert len(pieces) == POLICY.pieces
    assert sum(pieces) == CHECK.members[seller].held_raw
    assert sum(1 for _ in CHECK.sales()) == len(CHECK.members) - 1 + POLICY.pieces


def test_the_page_has_the_tables_of_the_draw() -> None:
    assert read_page() == markdown(), "make write NAME=draw"
