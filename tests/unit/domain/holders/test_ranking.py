"""Who has most is the same, whether all are looked at or only those who moved."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import Address
from roundtrip.domain.holders.book import HolderColumns
from roundtrip.domain.holders.ranking import MAX_MOVED, HolderRanking

KEPT, LEAST = 8, 3
"""Small, so that a few wallets are many."""


def address(number: int) -> Address:
    return Address(f"0x{number:040x}")


def raws(wallets: dict[Address, HolderColumns], found: list[Address]) -> list[int]:
    return [wallets[wallet].balance_raw for wallet in found]


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_looking_at_those_who_moved_is_enough(seed: int, count: int) -> None:
    dice, kept = Random(seed), HolderRanking(kept=KEPT, min_certain=LEAST)
    wallets = {address(number): HolderColumns(dice.randint(-3, 30)) for number in range(count)}
    for _ in range(6):
        first, below = kept.look(wallets)
        best = sorted((one.balance_raw for one in wallets.values()), reverse=True)
        assert len(first) >= min(LEAST, len(wallets))
        assert raws(wallets, first) == best[: len(first)]
        assert set(below) <= {wallet for wallet, one in wallets.items() if one.balance_raw < 0}
        assert bool(below) == any(one.balance_raw < 0 for one in wallets.values())
        for _ in range(dice.randint(0, 6)):
            wallet = address(dice.randint(0, count + 3))
            wallets.setdefault(wallet, HolderColumns()).balance_raw += dice.randint(-12, 12)
            kept.touch([wallet])


def test_where_all_of_the_first_left_everybody_is_looked_at() -> None:
    wallets = {address(number): HolderColumns(100 + number) for number in range(30)}
    kept = HolderRanking(kept=KEPT, min_certain=LEAST)
    first, _ = kept.look(wallets)
    assert len(first) == KEPT
    for wallet in first:
        wallets[wallet].balance_raw = 0
    kept.touch(first)
    again, _ = kept.look(wallets)
    assert raws(wallets, again) == [121, 120, 119, 118, 117, 116, 115, 114]


def test_who_moved_is_forgotten_where_it_is_too_many() -> None:
    kept = HolderRanking(kept=KEPT, min_certain=LEAST)
    kept.look({})
    kept.touch(address(number) for number in range(MAX_MOVED + 1))
    assert kept.moved is None
