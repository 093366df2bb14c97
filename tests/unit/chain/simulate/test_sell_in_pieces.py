"""Ten sales over a day in one simulation: what is asked, when, and what the balances after it say."""

from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.simulate.legs import (
    VenuePlace,
    exit_blocks,
    held_over_day,
    piece_amounts,
    piece_moments_s,
)
from roundtrip.chain.simulate.request import Plan, Results, StepResult
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.check.evidence import Missing, Probe, RefusedCall, Sold
from roundtrip.venues import abi, amm_v3, erc20
from unit.chain.samples import ENVIRONMENT, GAS_PRICE_WEI, did, error_string, refused
from unit.chain.trades import (
    APPROVE_GAS,
    BACK_WEI,
    BOUGHT,
    BUY_GAS,
    ETH,
    EVERY_PLACE,
    HELD_WEI,
    PAID_WEI,
    REBASED,
    SETTING,
    SOLD_LABELS,
    TOKEN,
    USDG,
    WETH,
    asks_balance_of_token,
    labels,
    limits,
    second_buy,
    sold,
    sold_by,
    steps_of,
    was_bought,
    who_trades,
)
from unit.venues.network import CONTRACTS

PIECES = Probe("probe", POLICY.day_s, BPS, 0, "pieces")
_MAX_BLOCKS = 16
_NODES_GAS = 50_000_000
"""What geth allows all calls of one simulation together, unless it is set otherwise."""


def seconds_of(plan: Plan, label: str) -> list[int]:
    """How long after the buy the blocks with such steps are."""
    times = list(accumulate(block.delay_s for block in plan.blocks))
    found = zip(times, plan.blocks, strict=True)
    return [at - 1 for at, block in found if any(s.label.startswith(label) for s in block.steps)]


# --- the plan --------------------------------------------------------------------------------------


@EVERY_PLACE
def test_one_approval_and_ten_sales_each_in_a_block_of_its_own(place: VenuePlace) -> None:
    plan = sold_by(place, PIECES)
    assert len(plan.blocks) == 12 <= _MAX_BLOCKS
    if place is not ETH:
        assert labels(plan, 0) == SOLD_LABELS[place.venue.quote]
    assert {label.split("-")[0] for label in labels(plan, 1)} == {"approve"}
    assert labels(plan, 2) == ["held-quote", "sell-0"]
    assert [labels(plan, n) for n in range(3, 11)] == [[f"sell-{n}"] for n in range(1, 9)]
    assert labels(plan, 11) == ["sell-9", "after-quote", "after-token"]


@EVERY_PLACE
def test_the_sales_are_spread_evenly_over_the_day(place: VenuePlace) -> None:
    plan = sold_by(place, PIECES)
    sales = seconds_of(plan, "sell-")
    assert (sales[0], sales[-1], len(sales)) == (POLICY.later_s, POLICY.day_s, 10)
    assert {later - earlier for earlier, later in pairwise(sales)} <= {9598, 9599}
    assert seconds_of(plan, "approve-") == [POLICY.later_s - ENVIRONMENT.approved_s]
    assert piece_moments_s(POLICY, POLICY.pieces) == sales


def test_the_buyer_approves_all_and_sells_tenths_of_it_without_a_look_at_the_token() -> None:
    plan = sold_by(WETH, PIECES)
    buyer, _ = who_trades(plan)
    approve, _ = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, BOUGHT, buyer)
    _, tenth = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, BOUGHT // 10, buyer)
    sells = [step for step in steps_of(plan) if step.label.startswith("sell-")]
    assert plan.blocks[1].steps[0].call == approve
    assert {(step.sender, step.call) for step in sells} == {(buyer, tenth)}
    assert [step.label for step in steps_of(plan) if asks_balance_of_token(step)] == ["after-token"]
    assert steps_of(plan)[-1].label == "after-token"


def test_a_node_would_run_it_even_if_every_sale_burns_all_its_gas() -> None:
    plan = sold_by(WETH, PIECES)
    assert limits(plan, "sell-") == [POLICY.piece_gas_limit] * 10
    assert sum(step.gas_limit for step in steps_of(plan)) < _NODES_GAS
    burned_wei = sum(limits(plan, "sell-")) * plan.environment.max_fee_wei
    (_, start_wei), *_ = plan.blocks[0].balances
    assert start_wei - PAID_WEI > burned_wei


def test_fifty_pieces_are_sold_over_the_day_and_a_node_would_run_them() -> None:
    plan = sold_by(WETH, replace(PIECES, seller="small pieces"))
    sales = seconds_of(plan, "sell-")
    assert (sales[0], sales[-1], len(sales)) == (POLICY.later_s, POLICY.day_s, 50)
    assert sum(step.gas_limit for step in steps_of(plan)) < _NODES_GAS


def test_at_any_hour_all_of_it_is_tried_at_ten_moments_and_the_money_is_read_after_each() -> None:
    plan = sold_by(WETH, replace(PIECES, seller="any hour"))
    buyer, _ = who_trades(plan)
    _, whole = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, BOUGHT, buyer)
    sells = [step for step in steps_of(plan) if step.label.startswith("sell-")]
    assert {(step.sender, step.call) for step in sells} == {(buyer, whole)}
    assert seconds_of(plan, "sell-") == piece_moments_s(POLICY, 10)
    after = [step.label for step in steps_of(plan) if step.label.startswith("after-")]
    assert after == [*(f"after-{n}-quote" for n in range(10)), "after-token"]


def test_in_a_pool_with_a_strangers_hook_no_piece_may_take_more_gas_than_others() -> None:
    hooked = replace(ETH, venue=replace(ETH.venue, hook=Address("0x" + "77" * 18 + "00c8")))
    assert hooked.venue.rival_hook()
    policy = replace(POLICY, piece_gas_limit=5_000_000)
    blocks = exit_blocks(hooked, replace(SETTING, policy=policy), ENVIRONMENT, PIECES, BOUGHT, hooked)
    gas = {s.gas_limit for block in blocks for s in block.steps if s.label.startswith("sell-")}
    assert gas == {POLICY.hook_gas_limit}


@given(st.integers(1, 10**30))
def test_the_pieces_are_equal_and_the_last_takes_the_rest(raw: int) -> None:
    pieces = piece_amounts(raw, POLICY.pieces)
    assert sum(pieces) == raw
    assert all(piece > 0 for piece in pieces)
    assert len(pieces) == (10 if raw >= 10 else 1)
    assert {*pieces[:-1]} <= {raw // 10}
    assert raw // 10 <= pieces[-1] <= raw // 10 + 9 or len(pieces) == 1


def test_of_less_than_ten_units_there_is_one_sale_after_a_day() -> None:
    blocks = exit_blocks(WETH, SETTING, ENVIRONMENT, PIECES, 3, WETH)
    assert [[step.label for step in block.steps] for block in blocks] == [
        ["approve-0"],
        ["held-quote", "sell-0", "after-quote", "after-token"],
    ]
    assert sum(block.delay_s for block in blocks) == POLICY.day_s


def test_of_a_token_that_rebases_no_sale_asks_for_more_than_there_ever_is() -> None:
    least = BOUGHT // 7
    sells = [s.call.data for s in steps_of(sold_by(WETH, PIECES, REBASED)) if s.label == "sell-0"]
    (tenth,) = sells
    assert abi.word(least // 10) in tenth


@given(bought_raw=st.integers(10**20, 10**30), hourly=st.floats(0.5, 2.0), began_s=st.integers(0, 3_599))
def test_of_a_token_that_rebases_by_the_hour_a_sale_asks_for_nearly_what_there_is(
    bought_raw: int, hourly: float, began_s: int
) -> None:
    def held_raw(at_s: int) -> int:
        return int(bought_raw * hourly ** ((began_s + at_s) // 3600))

    delays_s = (POLICY.later_s, POLICY.hour_s, POLICY.day_s)
    bought = was_bought(bought_raw, *(held_raw(at_s) for at_s in delays_s))
    asked = held_over_day(bought, POLICY)
    moments_s = piece_moments_s(POLICY, POLICY.pieces)
    assert len(asked) in (0, len(moments_s))
    # In the first hour two balances are less than a step apart.
    for at_s, amounts in [*zip(moments_s, asked, strict=False)][1:]:
        there_raw = held_raw(at_s)
        assert min(amounts) <= there_raw
        fitting = max(raw for raw in amounts if raw <= there_raw)
        assert fitting >= there_raw * 0.99 * min(hourly, 1 / hourly) ** 2 - 1


def test_at_any_hour_a_token_that_rebases_has_an_approval_for_each_amount() -> None:
    probe = replace(PIECES, seller="any hour")
    plan = sold_by(ETH, probe, REBASED)
    names = [step.label for step in steps_of(plan)]
    assert [name for name in names if name.startswith("sell-")] == [f"sell-{n}" for n in range(30)]
    assert {name.split("-")[1] for name in names if name.startswith("approval-")} == set(map(str, range(30)))
    assert seconds_of(plan, "sell-") == seconds_of(plan, "approval-") == piece_moments_s(POLICY, 10)
    assert not any(step.label.startswith("approval-") for step in steps_of(sold_by(ETH, probe)))


def test_what_was_approved_before_is_cleared_first_where_that_is_asked() -> None:
    blocks = exit_blocks(WETH, SETTING, ENVIRONMENT, PIECES, BOUGHT, WETH, clear_first=True)
    assert [step.label for step in blocks[0].steps] == ["clear", "approve-0"]
    assert all(step.call.data[:10] == erc20.APPROVE[:10] for step in blocks[0].steps)


# --- what the balances say -------------------------------------------------------------------------

PIECE_GAS = [120_000 + n for n in range(10)]


def ten_results(oks: list[bool], back_wei: int = BACK_WEI, left: int = 0, **changes: StepResult) -> Results:
    """The buy and ten sales, those that went through for ``back_wei`` together, and each for its gas."""
    found = second_buy(WETH) | {"approve-0": did(gas=APPROVE_GAS), "held-quote": did(HELD_WEI)}
    for n, (ok, gas) in enumerate(zip(oks, PIECE_GAS, strict=True)):
        found[f"sell-{n}"] = did(gas=gas) if ok else refused(error_string(f"no {n}"), gas)
    paid_wei = sum(PIECE_GAS) * GAS_PRICE_WEI
    found |= {"after-quote": did(HELD_WEI + back_wei - paid_wei), "after-token": did(left)}
    return found | {label.replace("_", "-"): result for label, result in changes.items()}


def test_ten_sales_are_read_to_the_wei() -> None:
    found = sold(ten_results([True] * 10), PIECES)
    assert found == Sold(PAID_WEI, BOUGHT, BOUGHT, BOUGHT, BACK_WEI, BUY_GAS, PIECE_GAS[9])


@given(st.lists(st.booleans(), min_size=10, max_size=10).filter(any), st.integers(0, 10**18))
def test_refused_pieces_cost_gas_that_is_added_back_too(oks: list[bool], back_wei: int) -> None:
    left = BOUGHT * oks.count(False) // 10
    gas = max(used for used, ok in zip(PIECE_GAS, oks, strict=True) if ok)
    found = sold(ten_results(oks, back_wei, left), PIECES)
    assert found == Sold(PAID_WEI, BOUGHT, BOUGHT - left, BOUGHT - left, back_wei, BUY_GAS, gas)


@pytest.mark.parametrize("last", [False, True])
def test_the_last_piece_that_was_sold_is_the_one_with_the_rest(last: bool) -> None:
    held = BOUGHT + 7
    oks = [not last, *[False] * 8, last]
    asked = BOUGHT // 10 + (7 if last else 0)
    found = sold(ten_results(oks, left=held - asked), PIECES, known=was_bought(held))
    assert isinstance(found, Sold)
    assert (found.planned_raw, found.sold_raw) == (asked, asked)


def test_what_one_piece_takes_beyond_its_tenth_was_not_asked_for() -> None:
    """A token that shows ten times the balance sells it all as the first tenth."""
    found = sold(ten_results([True, *[False] * 9], left=0), PIECES)
    assert isinstance(found, Sold)
    assert (found.planned_raw, found.sold_raw) == (BOUGHT // 10, BOUGHT)


def test_pieces_that_went_through_and_moved_nothing_sold_nothing() -> None:
    found = sold(ten_results([True] * 10, 0, BOUGHT), PIECES)
    assert isinstance(found, Sold)
    assert (found.sold_raw, found.back_raw) == (0, 0)


def test_where_no_piece_is_sold_the_first_one_says_why() -> None:
    assert sold(ten_results([False] * 10), PIECES) == RefusedCall("sell", "no 0", PIECE_GAS[0])


def test_where_the_approval_is_refused_that_is_why() -> None:
    no = refused(error_string("no approval"), 30_000)
    found = sold(ten_results([False] * 10, approve_0=no), PIECES)
    assert found == RefusedCall("approve", "no approval", 30_000)


@pytest.mark.parametrize("lost", ["after-quote", "after-token", "held-quote"])
def test_a_balance_that_is_not_told_leaves_it_unknown(lost: str) -> None:
    assert isinstance(sold(ten_results([True] * 10) | {lost: refused(b"", 1)}, PIECES), Missing)


def test_of_a_token_that_rebases_what_is_left_is_compared_with_what_there_would_be() -> None:
    left = BOUGHT // 70
    found = sold(ten_results([True] * 10, left=left), PIECES, known=REBASED)
    assert isinstance(found, Sold)
    assert (found.held_raw, found.sold_raw) == (BOUGHT // 7, BOUGHT // 7 - left)


def test_a_venue_that_pays_in_usdg_has_no_gas_to_add_back() -> None:
    found = second_buy(USDG) | {"approve-0": did(gas=APPROVE_GAS), "held-quote": did(7)}
    found |= {f"sell-{n}": did(gas=gas) for n, gas in enumerate(PIECE_GAS)}
    sale = sold(found | {"after-quote": did(340_000_007), "after-token": did(0)}, PIECES, USDG)
    assert isinstance(sale, Sold)
    assert sale.back_raw == 340_000_000
