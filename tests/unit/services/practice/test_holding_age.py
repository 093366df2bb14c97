"""Whether practice sells a holding of a given age."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Evidence, Missing, RefusedCall
from roundtrip.domain.check.verdict import judge
from roundtrip.services.practice.pricing import Unsellable, judge_holding, value_at_ages
from roundtrip.services.valuation.holdings import HoldingToSell, SellValue, Valued
from unit.domain.builders import NODE, cells, evidence, refused_cells, sold, venue

TOKEN = Address("0x" + "70" * 20)
HOUR_S = POLICY.hour_s
STOPS = evidence(venue(refused_cells(full=sold(60), full_again=sold(60))))
TRAP = evidence(venue(refused_cells()))
SOUND = evidence(venue(cells(60)))


def judge_age(found: Evidence, held_s: int, oldest_s: int | None = None) -> Unsellable | None:
    holding = HoldingToSell(TOKEN, 1, held_s=held_s, oldest_s=held_s if oldest_s is None else oldest_s)
    return judge_holding(judge(found, POLICY), holding, POLICY)


def test_what_stops_selling_is_sold_only_before_it_is_known_to_have_stopped() -> None:
    assert judge(STOPS, POLICY).verdict.code == "cannot_sell"
    assert judge_age(STOPS, HOUR_S - 1) is None
    assert judge_age(STOPS, HOUR_S) == Unsellable(
        "Nothing was sold: you bought it 1 hour ago. You can sell it now for a loss of 0.60 %, but not after "
        "an hour or a day.",
        by_check=True,
    )


def test_where_one_part_is_too_old_and_another_is_not_it_is_not_known() -> None:
    found = judge_age(STOPS, 60, 2 * HOUR_S)
    assert found is not None
    assert not found.by_check
    assert "We could not find out what it sells for: it stops selling some time after a buy" in found.why


@pytest.mark.parametrize("held_s", [0, HOUR_S, 10 * HOUR_S])
def test_a_trap_never_sells_and_a_sound_token_at_any_age(held_s: int) -> None:
    trap = judge_age(TRAP, held_s)
    assert trap is not None
    assert trap.by_check
    assert judge_age(SOUND, held_s) is None


def test_what_the_node_left_open_is_its_fault() -> None:
    open_later = evidence(venue(refused_cells(full=sold(60), full_again=sold(60), hour=NODE)))
    assert judge(open_later, POLICY).verdict.level == "unknown"
    with pytest.raises(NodeFault):
        judge_age(open_later, 2 * HOUR_S)


SELLS, REFUSED = SellValue(5, cast(Any, None)), RefusedCall("sell", "too late", 0)
UNKNOWN = Missing("node", "it did not answer")


@pytest.mark.parametrize(
    ("ages", "value"),
    [
        ({60: SELLS}, SELLS),
        ({60: SELLS, 90: SELLS}, SELLS),
        ({60: SELLS, 90: REFUSED}, Missing("token", "its first part no longer sells")),
        ({60: SELLS, 90: UNKNOWN}, UNKNOWN),
        ({60: REFUSED, 90: SELLS}, REFUSED),
    ],
)
async def test_a_holding_of_two_ages_has_a_value_where_it_sells_at_both(
    ages: dict[int, Valued], value: Valued
) -> None:
    async def worth(
        ctx: object, head: object, holdings: Sequence[HoldingToSell], meter: object
    ) -> list[Valued]:
        return [ages[holding.held_s] for holding in holdings]

    other = HoldingToSell(TOKEN, 1, held_s=min(ages), oldest_s=min(ages))
    holdings = [other, HoldingToSell(TOKEN, 1, held_s=min(ages), oldest_s=max(ages)), other]
    found = await value_at_ages(cast(Any, None), cast(Any, None), holdings, cast(Any, worth), Meter())
    assert found == [ages[60], value, ages[60]]
