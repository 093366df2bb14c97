"""Which token another one passes for."""

from dataclasses import replace

import pytest

from roundtrip.domain.market.look_alikes import (
    COUNTED_TRADERS,
    MIN_TRADERS,
    ListedToken,
    Namesake,
    choose_original,
    find_listed,
)
from unit.venues.network import address

OWN = Namesake(address(1), "PEPE", None, True, 1000, 50)
ORIGINAL = Namesake(address(2), "PEPE", None, True, 500, 400)
STOCKS = (ListedToken("NVDA", address(8)), ListedToken("TSLA", address(9)))


def test_an_older_and_larger_token_is_the_original() -> None:
    assert choose_original(OWN, [OWN, ORIGINAL]) == ORIGINAL


@pytest.mark.parametrize(
    "other",
    [
        replace(ORIGINAL, first_s=1000),
        replace(ORIGINAL, first_s=2000),
        replace(ORIGINAL, first_s=None),
        replace(ORIGINAL, traders=50),
        replace(ORIGINAL, traders=0),
    ],
)
def test_a_younger_or_smaller_token_is_no_original(other: Namesake) -> None:
    assert choose_original(OWN, [OWN, other]) is None


def test_a_token_that_hardly_anybody_traded_is_no_original() -> None:
    own, few = replace(OWN, traders=0), replace(ORIGINAL, traders=MIN_TRADERS - 1)
    assert choose_original(own, [few]) is None
    assert choose_original(own, [replace(few, traders=MIN_TRADERS)]) is not None


def test_a_token_without_a_pool_is_younger_than_any_other() -> None:
    assert choose_original(replace(OWN, first_s=None), [ORIGINAL]) == ORIGINAL


def test_of_two_that_are_not_counted_further_the_older_one_is_the_original() -> None:
    own, other = replace(OWN, traders=COUNTED_TRADERS), replace(ORIGINAL, traders=COUNTED_TRADERS)
    assert choose_original(own, [own, other]) == other
    assert choose_original(other, [own, other]) is None


def test_the_largest_is_the_original_and_of_equals_the_oldest() -> None:
    older = replace(ORIGINAL, token=address(3), first_s=400)
    larger = replace(ORIGINAL, token=address(4), traders=401)
    assert choose_original(OWN, [ORIGINAL, older]) == older
    assert choose_original(OWN, [ORIGINAL, older, larger]) == larger


@pytest.mark.parametrize(("symbol", "listed"), [("NVDA", 0), ("NVD\u0410", 0), ("tsIa", 1), ("NVDAX", None)])
def test_a_listed_symbol_is_found(symbol: str, listed: int | None) -> None:
    expected = None if listed is None else STOCKS[listed]
    assert find_listed(address(1), symbol, STOCKS) == expected


def test_a_listed_token_looks_like_no_other() -> None:
    assert find_listed(address(9), "NVDA", STOCKS) is None
    assert find_listed(address(1), None, STOCKS) is None
