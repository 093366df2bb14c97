"""The order in which a check tries the holders of a draw."""

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.proof_input import IndexInputs, TokenIndex
from roundtrip.services.engine.token_check import order_holders
from unit.venues.network import address

THIRD = POLICY.drawn_holders // 3
DRAWN = tuple(address(0x100 + number) for number in range(POLICY.drawn_holders))
"""First those that hold most, then those that traded last, then others."""
CAUGHT = tuple(address(0x500 + number) for number in range(4))


@pytest.mark.parametrize("caught", [(), CAUGHT[:1], CAUGHT, (*CAUGHT[:2], DRAWN[0], DRAWN[-1])])
def test_some_of_each_third_and_all_that_were_caught_are_among_those_that_are_tried(
    caught: tuple[str, ...],
) -> None:
    index = TokenIndex(facts=IndexInputs(DRAWN), caught=caught)  # type: ignore[arg-type]
    holders = order_holders(index, True, POLICY).holders
    assert len(holders) == len(set(holders)) == POLICY.drawn_holders
    tried = set(holders[: POLICY.most_holders])
    assert set(caught) <= tried
    for start in range(0, len(DRAWN), THIRD):
        assert len(tried & set(DRAWN[start : start + THIRD])) >= 2
    assert set(holders[:2]) <= {*DRAWN[:THIRD]}


def test_a_check_that_asks_no_holder_keeps_the_facts_as_they_are() -> None:
    facts = IndexInputs(())
    assert order_holders(TokenIndex(facts=facts, caught=CAUGHT), False, POLICY) is facts
    assert order_holders(TokenIndex(facts=facts, caught=CAUGHT), True, POLICY).holders == CAUGHT
