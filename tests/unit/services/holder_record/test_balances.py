"""What a token tells of its holders, held against its transfers."""

from random import Random

import pytest

from roundtrip.chain.holders.views import Views
from roundtrip.domain.base.types import BURN_ADDRESS, ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.holders.book import HolderColumns
from roundtrip.services.holder_record.balances import _wallets_to_read, compare_to_logs
from unit.domain.holding import POOL, address, book

A, B = address(0xA1), address(0xA2)
AT = BlockRef(2_000, "0x" + "ab" * 32, 1_760_000_000)
ALL = 10**27


def drifts(
    supply: int, expected: dict[Address, int | None], held: dict[Address, HolderColumns | int]
) -> bool:
    made = book(held)
    made.block = AT
    return compare_to_logs(made, AT, supply, Views(None, expected, {})).drifts


NEVER = HolderColumns(balance_raw=-ALL)
THROWN = HolderColumns(balance_raw=-ALL * 9 // 10, received_raw=ALL // 10, first_s=5)
DUST = HolderColumns(balance_raw=-ALL + 1, received_raw=1, first_s=5)


@pytest.mark.parametrize(
    ("supply", "expected", "held", "lies"),
    [
        (ALL, {A: ALL, ZERO_ADDRESS: 0}, {A: ALL, ZERO_ADDRESS: NEVER}, False),
        # At 0xdEaD tokens lie as anywhere else.
        (ALL, {A: ALL, BURN_ADDRESS: ALL}, {A: ALL, ZERO_ADDRESS: NEVER}, True),
        # Thrown away, and still of the supply; or no longer, and told of no more.
        (ALL, {ZERO_ADDRESS: ALL // 10}, {A: ALL * 9 // 10, ZERO_ADDRESS: THROWN}, False),
        (ALL * 9 // 10, {ZERO_ADDRESS: 0}, {A: ALL * 9 // 10, ZERO_ADDRESS: THROWN}, False),
        # More at nobody than was ever sent there; and some where nothing was, counted in the supply or not.
        (ALL, {ZERO_ADDRESS: ALL // 5}, {A: ALL * 9 // 10, ZERO_ADDRESS: THROWN}, True),
        (ALL, {ZERO_ADDRESS: ALL // 10}, {A: ALL, ZERO_ADDRESS: NEVER}, True),
        (2 * ALL, {ZERO_ADDRESS: ALL}, {A: ALL, ZERO_ADDRESS: NEVER}, True),
        # Dust that was thrown away is no cover for more than that, minted in secret or not.
        (ALL, {ZERO_ADDRESS: 1}, {A: ALL - 1, ZERO_ADDRESS: DUST}, False),
        (2 * ALL, {ZERO_ADDRESS: ALL + 1}, {A: ALL - 1, ZERO_ADDRESS: DUST}, True),
        (ALL * 6 // 5, {ZERO_ADDRESS: ALL * 3 // 10}, {A: ALL * 9 // 10, ZERO_ADDRESS: THROWN}, True),
        # What was burned by its log and is of the supply again was minted anew.
        (ALL, {ZERO_ADDRESS: 0}, {A: ALL * 9 // 10, ZERO_ADDRESS: THROWN}, True),
        # A unit of rounding.
        (ALL, {A: 0, B: ALL}, {A: -1, B: ALL, ZERO_ADDRESS: NEVER}, False),
        # Nobody minted it.
        (ALL, {A: ALL}, {A: ALL}, True),
    ],
)
def test_what_does_not_add_up(
    supply: int, expected: dict[Address, int | None], held: dict[Address, HolderColumns | int], lies: bool
) -> None:
    assert drifts(supply, expected, held) is lies


def test_of_another_block_nothing_is_held_against_it() -> None:
    found = compare_to_logs(book({A: 5}), AT, ALL, Views(None, {A: 7, B: None}, {}))
    assert (found.drifts, found.supply_raw, found.by_wallet) == (False, ALL, {A: 7})
    assert found.unread == {B}


def test_a_pool_that_no_readable_log_names_is_read() -> None:
    made = book({A: 5})
    assert POOL in made.beginning.places.pools - made.wallets.keys()
    assert POOL in _wallets_to_read(made, (), Random(1))
