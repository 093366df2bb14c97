"""When logs are taken to lie: what matters does, rounding does not."""

import pytest

from roundtrip.domain.base.types import BURN_ADDRESS, ZERO_ADDRESS, Address
from roundtrip.domain.holders.balance_drift import exceeds_supply, has_drifted

SUPPLY = 10**27


@pytest.mark.parametrize(
    ("by_logs", "expected", "lies"),
    [
        (0, 0, False),
        (10**24, 10**24, False),
        # A few base units, as of a token that keeps shares.
        (10**24, 10**24 + 3, False),
        (0, 2, False),
        # Dust beside a large balance.
        (10**24, 10**24 - 10**21, False),
        # A hundredth of the balance.
        (10**24, 10**24 - 10**22, True),
        (10**20, 2 * 10**20, True),
        # A hundredth of a percent of the supply.
        (5 * 10**26, 5 * 10**26 + 10**23, True),
        (0, 10**23, True),
        # Nobody can have less than nothing, but for rounding of one who sent all he had.
        (-1, 0, False),
        (-(10**18) - 1, 0, True),
    ],
)
def test_what_matters_is_told_from_rounding(by_logs: int, expected: int, lies: bool) -> None:
    assert has_drifted(by_logs, expected, SUPPLY) is lies


def test_a_token_without_any_supply_lies_about_every_balance() -> None:
    assert has_drifted(0, 1, 0)
    assert not has_drifted(0, 0, 0)


A, B = Address("0x" + "a" * 40), Address("0x" + "b" * 40)


@pytest.mark.parametrize(
    ("balances", "supply", "is_over"),
    [
        ({}, SUPPLY, False),
        ({A: SUPPLY // 2, B: SUPPLY // 2}, SUPPLY, False),
        # Rounding, and a hundredth of a percent.
        ({A: SUPPLY, B: SUPPLY // 10_000 - 1}, SUPPLY, False),
        ({A: SUPPLY, B: SUPPLY // 10_000}, SUPPLY, True),
        ({A: 5 * SUPPLY}, SUPPLY, True),
        # What lies at a burn address may be deducted from the supply.
        ({A: SUPPLY, BURN_ADDRESS: SUPPLY, ZERO_ADDRESS: SUPPLY}, SUPPLY, False),
        ({A: 5}, 0, False),
    ],
)
def test_balances_that_the_supply_does_not_count(
    balances: dict[Address, int], supply: int, is_over: bool
) -> None:
    assert exceeds_supply(balances, supply) is is_over
