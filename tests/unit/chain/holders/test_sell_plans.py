"""What is asked of real holders, and what is read of it: their own tokens, nobody's gift but eth for gas."""

from dataclasses import replace

import pytest

from roundtrip.chain.holders import sell_plans
from roundtrip.chain.holders.sell_plans import (
    PinnedHolder,
    PlannedSell,
    balance_plan,
    plan_sells,
    read_balances,
    read_sell,
)
from roundtrip.chain.owner.owner_plans import OwnerProbeSell
from roundtrip.chain.simulate.legs import VenuePlace, gas_float
from roundtrip.chain.simulate.request import Results
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import CompletedBuy, Missing, RefusedCall, Sold
from roundtrip.venues import abi, erc20
from unit.chain.samples import ENVIRONMENT, did, refused
from unit.chain.trades import BOUGHT, EVERY_PLACE, SETTING, TOKEN, WETH, WHOLE
from unit.venues.network import address

ANN, BOB = address(0xA17), address(0xB0B)
RICH_WEI = 10**21


def sell(place: VenuePlace = WETH) -> OwnerProbeSell:
    return OwnerProbeSell(
        place, SETTING, ENVIRONMENT, WHOLE, 10**17, CompletedBuy(10**17, BOUGHT, 10**17, 100_000)
    )


def holder(held_raw: int | None = BOUGHT, wei: int | None = RICH_WEI, who: Address = ANN) -> PinnedHolder:
    return PinnedHolder(who, wei, (held_raw,) * 3)


def planned(place: VenuePlace = WETH, held_raw: int = BOUGHT, wei: int | None = RICH_WEI) -> PlannedSell:
    (one,) = plan_sells(sell(place), [holder(held_raw, wei)], [ANN])
    return one


@EVERY_PLACE
def test_nobody_is_given_tokens_code_or_a_nonce(place: VenuePlace) -> None:
    """Storage is set for the buyer's money alone, where a venue's money is given."""
    one = planned(place)
    assert one.plan is not None
    first, *rest = one.plan.blocks
    for block in one.plan.blocks:
        assert block.codes == ()
        assert ANN not in dict(block.balances)
        assert ANN not in dict(block.nonces)
        assert not any(where == TOKEN for where, _, _ in block.storage)
    assert not any(block.storage or block.nonces for block in rest)
    assert {step.sender for step in first.steps} <= {
        one.plan.environment.buyer, one.plan.environment.reader,
    }  # fmt: skip
    sellers = {step.sender for block in rest for step in block.steps}
    assert sellers == {ANN, one.plan.environment.reader}


@EVERY_PLACE
def test_what_was_allowed_long_ago_is_taken_back_first(place: VenuePlace) -> None:
    """Some tokens let nobody change an allowance that is not zero (usdt does not)."""
    one = planned(place)
    assert one.plan is not None
    clear, approve, *_ = one.plan.blocks[1].steps
    assert (clear.sender, clear.call.to, clear.call.to) == (ANN, TOKEN, approve.call.to)
    spender = clear.call.data[10:74]
    assert clear.call.data == erc20.APPROVE + spender + abi.word(0)
    assert approve.call.data == erc20.APPROVE + spender + abi.word(BOUGHT)


def test_who_has_too_little_for_gas_has_as_much_as_that_takes() -> None:
    least_wei = 2 * gas_float(POLICY, ENVIRONMENT)
    for wei, given in ((0, least_wei), (None, least_wei), (least_wei - 1, least_wei), (least_wei, None)):
        one = planned(wei=wei)
        assert one.plan is not None
        assert dict(one.plan.blocks[1].balances).get(ANN) == given


@pytest.mark.parametrize(
    ("held_raw", "sells_raw", "keeps_raw"),
    [
        (BOUGHT, BOUGHT, 0),
        (BOUGHT * 1000, BOUGHT, BOUGHT * 999),
        (BOUGHT // 100, BOUGHT // 100, 0),
        (BOUGHT // 2, BOUGHT // 2, 0),
    ],
)
def test_as_much_is_sold_as_the_checks_own_wallet_sells_or_all_there_is(
    held_raw: int, sells_raw: int, keeps_raw: int
) -> None:
    one = planned(held_raw=held_raw)
    assert (one.start.held_raw, one.start.prior_raw, one.held_raw()) == (sells_raw, keeps_raw, held_raw)
    assert one.plan is not None
    swaps = [step.call.data for block in one.plan.blocks for step in block.steps if "sell-" in step.label]
    assert swaps
    assert all(abi.word(sells_raw) in data for data in swaps)


@pytest.mark.parametrize("held_raw", [0, 1, BOUGHT // 100 - 1])
def test_dust_tells_nothing(held_raw: int) -> None:
    assert plan_sells(sell(), [holder(held_raw)], [ANN]) == ()


@pytest.mark.parametrize(("dust", "tried"), [(0, 12), (15, 12), (36, 12), (46, 2), (48, 0)])
def test_of_the_draw_the_first_that_hold_enough_are_tried(dust: int, tried: int) -> None:
    """``dust``: so many at the start of the draw hold next to nothing."""
    drawn = [address(0x500 + number) for number in range(POLICY.drawn_holders)]
    holders = [holder(BOUGHT if number >= dust else 1, who=who) for number, who in enumerate(drawn)]
    plans = plan_sells(sell(), holders, drawn)
    assert [one.holder for one in plans] == drawn[dust : dust + tried]


def test_a_balance_that_is_not_told_is_a_gap() -> None:
    (one,) = plan_sells(sell(), [holder(None)], [ANN])
    assert one.plan is None
    assert read_sell(one, sell(), {}) == (sell_plans.NO_BALANCE, None)


def test_what_is_held_is_asked_at_the_moments_of_the_sells() -> None:
    plan = balance_plan(SETTING, ENVIRONMENT, (ANN, BOB))
    moments = [sum(block.delay_s for block in plan.blocks[: n + 1]) for n in range(3)]
    assert moments == [1 + POLICY.later_s, 1 + POLICY.hour_s, 1 + POLICY.day_s]
    asked = [step.call.data for step in plan.blocks[1].steps]
    assert asked == [abi.call(erc20.BALANCE_OF, ANN), abi.call(erc20.BALANCE_OF, BOB)]
    results: Results = {}
    for block in plan.blocks:
        results |= {step.label: did(7) for step in block.steps}
    results["held-1-0"], results["eth-1"] = refused(), did(9)
    found = read_balances(results, (ANN, BOB), POLICY)
    assert found == (PinnedHolder(ANN, 7, (7, None, 7)), PinnedHolder(BOB, 9, (7, 7, 7)))


# --- what came of it --------------------------------------------------------------------------------


def fill_results(one: PlannedSell, back_wei: int, kept_raw: int = 0) -> Results:
    """Everything went through; the first sell brought so much."""
    assert one.plan is not None
    results: Results = {}
    for block in one.plan.blocks:
        results |= {step.label: did(0, 0) for step in block.steps}
    results |= {
        label: did(back_wei, 0)
        for label in results
        if label.startswith("after-") and label.endswith("-quote")
    }
    results["after-token"] = did(kept_raw)
    return results


def test_what_came_back_is_read_from_balances() -> None:
    one = planned(held_raw=3 * BOUGHT)
    outcome, later = read_sell(one, sell(), fill_results(one, 10**16, 2 * BOUGHT))
    assert isinstance(outcome, Sold)
    assert (outcome.planned_raw, outcome.sold_raw, outcome.back_raw) == (BOUGHT, BOUGHT, 10**16)
    assert later is None


def test_what_was_refused_is_looked_at_once_more_when_the_day_is_over() -> None:
    one = planned()
    results = fill_results(one, 10**16)
    results |= {label: refused() for label in results if label.startswith("sell-")}
    results |= {label: did(5, 0) for label in results if label.startswith("later-after-")}
    outcome, later = read_sell(one, sell(), results)
    assert isinstance(outcome, RefusedCall)
    assert isinstance(later, Sold)
    assert later.back_raw == 5
    results |= {label: refused() for label in results if "sell-" in label}
    assert isinstance(read_sell(one, sell(), results)[1], RefusedCall)


def test_all_of_it_is_over_when_a_day_is() -> None:
    one = planned()
    assert one.plan is not None
    assert sum(block.delay_s for block in one.plan.blocks) == 1 + POLICY.day_s
    late = replace(sell(), probe=replace(WHOLE, delay_s=POLICY.day_s))
    (one,) = plan_sells(late, [holder()], [ANN])
    assert one.plan is not None
    assert not any(step.label.startswith("later") for block in one.plan.blocks for step in block.steps)
    results = fill_results(one, 1)
    results |= {label: refused() for label in results if label.startswith("sell-")}
    outcome, later = read_sell(one, late, results)
    assert isinstance(outcome, RefusedCall)
    assert later is None


@pytest.mark.parametrize(("label", "fault"), [("buy", "token"), ("fund", "node")])
def test_without_the_buy_before_it_nothing_is_known(label: str, fault: str) -> None:
    one = planned()
    outcome, _ = read_sell(one, sell(), {**fill_results(one, 1), label: refused()})
    assert isinstance(outcome, Missing)
    assert outcome.fault == fault


def test_a_lost_simulation_is_missing() -> None:
    gap = Missing("node", "lost")
    assert read_sell(planned(), sell(), gap) == (gap, None)
