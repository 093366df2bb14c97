"""What a sell asks for: when, under which gas limits, and who looks at what."""

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.simulate.legs import VenuePlace, late_s, planned_sell_raw, sellable, size_raw
from roundtrip.chain.simulate.probe_plans import sell_plan, traded_before_plan
from roundtrip.chain.simulate.request import Plan
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, ZERO_ADDRESS
from roundtrip.domain.check.evidence import CompletedBuy, Environment, Probe, Size
from roundtrip.venues import abi, amm_v3, amm_v4, erc20
from unit.chain.samples import ENVIRONMENT
from unit.chain.trades import (
    BOUGHT,
    CARELESS,
    DELAYS,
    ENVIRONMENTS,
    ETH,
    EVERY_PLACE,
    HALF,
    HANDED,
    HANDED_HALF,
    LADDER,
    PART_LADDER,
    PLACES,
    PROBES,
    READER,
    REBASED,
    SETTING,
    SLIVER,
    SOLD_LABELS,
    TOKEN,
    USDG,
    WETH,
    WHOLE,
    asks_balance_of_token,
    bought_by,
    labels,
    limits,
    sold_by,
    steps_of,
    was_bought,
    who_trades,
)
from unit.venues.network import CONTRACTS, address

HANDED_PARTS = pytest.mark.parametrize(
    ("probe", "amount"), [(HANDED, BOUGHT), (HANDED_HALF, BOUGHT // 2)], ids=["all", "half"]
)


def tried(attempts: int) -> list[str]:
    """The labels of so many attempts of a sell, each with the look after it."""
    return [label for n in range(attempts) for label in (f"sell-{n}", f"after-{n}-quote")]


@PLACES
@DELAYS
def test_a_sell_of_all_is_tried_under_every_limit_of_the_ladder(place: VenuePlace, delay_s: int) -> None:
    plan = sold_by(place, Probe("probe", delay_s, BPS, 0))
    buyer, _ = who_trades(plan)
    assert [labels(plan, n) for n in range(3)] == [
        SOLD_LABELS[place.venue.quote],
        ["approve-0"],
        ["held-quote", *tried(4), "after-token"],
    ]
    assert limits(plan, "sell") == LADDER
    assert limits(plan, "approve") == [90_000]
    approve, sell = amm_v3.plan_sell(place.venue, TOKEN, CONTRACTS, BOUGHT, buyer)
    assert {step.call for step in steps_of(plan) if step.label.startswith("sell")} == {sell}
    assert plan.blocks[1].steps[0].call == approve
    assert {step.sender for step in steps_of(plan) if step.label.startswith(("approve", "sell"))} == {buyer}


@PLACES
@PROBES
def test_every_balance_is_read_by_a_wallet_that_does_not_trade(place: VenuePlace, probe: Probe) -> None:
    for step in steps_of(sold_by(place, probe)):
        looks = step.label.endswith(("-quote", "-token"))
        assert (step.sender == READER) is (looks or step.label == "sweep"), step.label
        if looks:
            assert step.call.value_wei == 0


@EVERY_PLACE
@PROBES
@ENVIRONMENTS
def test_after_each_attempt_the_sellers_money_is_read_as_it_was_before(
    place: VenuePlace, probe: Probe, environment: Environment
) -> None:
    steps = steps_of(sold_by(place, probe, environment=environment))
    found = {step.label: n for n, step in enumerate(steps)}
    attempts = [label for label in found if label.startswith("sell-")]
    (before,) = (step for step in steps if step.label in ("held-quote", "handed-quote"))
    assert [found[label] for label in attempts[:1]] > [found[before.label]]
    for n, label in enumerate(attempts):
        assert label == f"sell-{n}"
        after = steps[found[label] + 1]
        assert (after.label, after.call) == (f"after-{n}-quote", before.call)
        assert (after.sender, after.gas_limit) == (READER, POLICY.read_gas_limit)


@PLACES
@DELAYS
@ENVIRONMENTS
@pytest.mark.parametrize("share_bps", [BPS, 5000, 100])
def test_the_sell_comes_when_it_should_and_the_approval_a_while_before(
    place: VenuePlace, delay_s: int, environment: Environment, share_bps: int
) -> None:
    plan = sold_by(place, Probe("probe", delay_s, share_bps, 0), environment=environment)
    late = late_s(environment, delay_s)
    assert [block.delay_s for block in plan.blocks] == [1, delay_s + late - 6, 6]
    assert sum(block.delay_s for block in plan.blocks[1:]) == delay_s + late
    assert all(block.delay_s > 0 for block in plan.blocks)
    assert labels(plan, 1) == ["approve-0"]
    assert {step.label.split("-")[0] for step in plan.blocks[2].steps} == {"held", "sell", "after"}
    # What was held then was asked in trip 1 at that very second.
    watched = bought_by(place, environment=environment).blocks
    asked_s = dict(zip((13, 3600, 86_400), accumulate(b.delay_s for b in watched[1:-1]), strict=True))
    assert asked_s[delay_s] == delay_s + late


@pytest.mark.parametrize(
    ("delay_s", "times"), [(0, 1), (13, 1), (239, 1), (240, 1), (479, 1), (480, 2), (3600, 15), (86_400, 360)]
)
def test_the_longer_the_wait_the_later_it_gets(delay_s: int, times: int) -> None:
    assert late_s(CARELESS, delay_s) == 14 * times
    assert late_s(ENVIRONMENT, delay_s) == 0


@pytest.mark.parametrize("approved_s", [1, 6, 12])
def test_a_wallet_approves_as_long_before_the_sell_as_it_does(approved_s: int) -> None:
    environment = replace(CARELESS, approved_s=approved_s)
    plan = sold_by(WETH, WHOLE, environment=environment)
    assert [block.delay_s for block in plan.blocks] == [1, 13 + 14 - approved_s, approved_s]


@EVERY_PLACE
@DELAYS
@ENVIRONMENTS
@pytest.mark.parametrize("share_bps", [BPS, 5000, 100])
def test_the_token_is_asked_for_no_balance_before_the_sell(
    place: VenuePlace, delay_s: int, environment: Environment, share_bps: int
) -> None:
    steps = steps_of(sold_by(place, Probe("probe", delay_s, share_bps, 0), environment=environment))
    last_sell = max(n for n, step in enumerate(steps) if step.label.startswith("sell-"))
    asking = [n for n, step in enumerate(steps) if asks_balance_of_token(step)]
    assert [steps[n].label for n in asking] == ["after-token"]
    assert asking[0] > last_sell


@EVERY_PLACE
@ENVIRONMENTS
@pytest.mark.parametrize("probe", [HANDED, HANDED_HALF], ids=["all", "half"])
def test_where_a_receiver_sells_the_token_is_asked_for_no_balance_before_it_has_sold(
    place: VenuePlace, environment: Environment, probe: Probe
) -> None:
    plan = sold_by(place, probe, environment=environment)
    steps, (_, receiver) = steps_of(plan), who_trades(plan)
    last_sell = max(n for n, step in enumerate(steps) if step.label.startswith("sell-"))
    (asking,) = (n for n, step in enumerate(steps) if asks_balance_of_token(step))
    assert asking > last_sell
    assert (steps[asking].label, steps[asking].sender) == ("after-token", READER)
    assert steps[asking].call.data == abi.call(erc20.BALANCE_OF, receiver)


@PLACES
@pytest.mark.parametrize(("probe", "amount"), [(HALF, BOUGHT // 2), (SLIVER, BOUGHT // 100)])
@ENVIRONMENTS
def test_a_part_is_tried_under_two_limits_and_no_more_than_it_is_approved(
    place: VenuePlace, probe: Probe, amount: int, environment: Environment
) -> None:
    plan = sold_by(place, probe, environment=environment)
    assert labels(plan, 2) == ["held-quote", *tried(2), "after-token"]
    assert limits(plan, "sell") == PART_LADDER == list(POLICY.part_gas_ladder)
    buyer, _ = who_trades(plan)
    approve_raw = abi.MAX_UINT256 if environment is CARELESS else amount
    (approve,) = plan.blocks[1].steps
    (sell,) = {step.call for step in plan.blocks[2].steps if step.label.startswith("sell")}
    assert (approve.call, sell) == amm_v3.plan_sell(place.venue, TOKEN, CONTRACTS, amount, buyer, approve_raw)
    assert {step.sender for step in plan.blocks[2].steps if step.label.startswith("sell")} == {buyer}


@given(st.integers(0, 2**255), st.sampled_from([100, 5000, BPS]))
def test_a_sell_never_asks_for_nothing_and_never_for_more_than_was_bought(bought: int, share: int) -> None:
    amount = planned_sell_raw(Probe("probe", 13, share, 0), bought)
    assert 1 <= amount <= max(1, bought)
    assert amount == max(1, bought * share // BPS)


@PLACES
@PROBES
@pytest.mark.parametrize("bought_raw", [0, 1, 2])
def test_labels_are_unique_in_every_plan(place: VenuePlace, probe: Probe, bought_raw: int) -> None:
    found = [step.label for step in steps_of(sold_by(place, probe, was_bought(bought_raw)))]
    assert len(set(found)) == len(found)


# --- an environment's manners ----------------------------------------------------------------------


@EVERY_PLACE
@PROBES
def test_a_wallet_that_approves_all_approves_the_most_there_is(place: VenuePlace, probe: Probe) -> None:
    plan = sold_by(place, probe, environment=CARELESS)
    exact = sold_by(place, probe)
    trader = who_trades(plan)[probe.seller == "receiver"]
    approvals = [step for step in steps_of(plan) if step.label.startswith("approve")]
    exactly = [step for step in steps_of(exact) if step.label.startswith("approve")]
    amount = planned_sell_raw(probe, BOUGHT)
    expected = place.file.plan_sell(
        place.venue, TOKEN, CONTRACTS, amount, trader, approve_raw=abi.MAX_UINT256
    )
    assert tuple(step.call for step in approvals) == expected[:-1]
    (data,) = (step.call.data for step in approvals if step.call.to == TOKEN)
    assert data.endswith("f" * 64)
    assert [s.call.data for s in exactly if s.call.to == TOKEN] == [data[:-64] + abi.word(amount)]
    assert limits(plan, "approve") == [90_000] * len(approvals)
    assert limits(exact, "approve") == [90_000] * len(exactly)


@PLACES
@DELAYS
@pytest.mark.parametrize(
    ("ladder", "all_limits"), [((), LADDER), ((2**24,), [2**24]), ((5 * 10**5, 10**6), [5 * 10**5, 10**6])]
)
def test_all_is_sold_under_the_environments_own_limits_where_it_has_some(
    place: VenuePlace, delay_s: int, ladder: tuple[int, ...], all_limits: list[int]
) -> None:
    environment = replace(ENVIRONMENT, sell_gas_ladder=ladder)
    plan = sold_by(place, Probe("probe", delay_s, BPS, 0), environment=environment)
    assert limits(plan, "sell") == all_limits
    assert len({step.call for step in steps_of(plan) if step.label.startswith("sell")}) == 1


@EVERY_PLACE
@PROBES
@pytest.mark.parametrize(
    ("measured", "limit"), [(0, 90_000), (60_000, 90_000), (60_001, 90_001), (200_000, 300_000)]
)
def test_approvals_carry_half_as_much_gas_again_as_was_measured(
    place: VenuePlace, probe: Probe, measured: int, limit: int
) -> None:
    """Also where the environment has a limit of its own: a token may sell only after a generous one."""
    known = replace(was_bought(), approve_gas=measured)
    assert set(limits(sold_by(place, probe, known), "approve")) == {limit}
    assert ENVIRONMENT.approve_gas_limit == 300_000


@pytest.mark.parametrize("probe", [HALF, SLIVER])
@pytest.mark.parametrize("ladder", [(), (2**24,), (5 * 10**5, 10**6, 2 * 10**6)])
def test_a_part_is_tried_under_two_limits_whatever_the_environment_has(
    probe: Probe, ladder: tuple[int, ...]
) -> None:
    environment = replace(ENVIRONMENT, sell_gas_ladder=ladder)
    assert limits(sold_by(WETH, probe, environment=environment), "sell") == PART_LADDER


@pytest.mark.parametrize("probe", [HANDED, HANDED_HALF])
@pytest.mark.parametrize(("ladder", "tried_under"), [((), LADDER), ((5 * 10**5, 10**6), [5 * 10**5, 10**6])])
def test_a_receivers_sell_is_tried_under_the_limits_of_the_buyers(
    probe: Probe, ladder: tuple[int, ...], tried_under: list[int]
) -> None:
    environment = replace(ENVIRONMENT, sell_gas_ladder=ladder)
    assert limits(sold_by(WETH, probe, environment=environment), "sell") == tried_under


def test_a_sell_with_much_gas_has_what_a_transaction_may_have() -> None:
    assert limits(sold_by(WETH, replace(WHOLE, seller="much gas")), "sell") == [2**24]


# --- what is held when it is sold ------------------------------------------------------------------


@pytest.mark.parametrize(("delay_s", "held"), [(13, BOUGHT + 5), (3600, BOUGHT * 3), (86_400, BOUGHT // 7)])
@pytest.mark.parametrize("share_bps", [BPS, 5000, 100])
def test_what_trip_1_was_told_is_held_at_each_delay_is_what_is_sold(
    delay_s: int, held: int, share_bps: int
) -> None:
    probe = Probe("probe", delay_s, share_bps, 0)
    assert sellable(REBASED, probe, POLICY) == held
    plan = sold_by(WETH, probe, REBASED)
    buyer, _ = who_trades(plan)
    amount = held * share_bps // BPS
    expected = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, amount, buyer)
    assert plan.blocks[1].steps[0].call == expected[0]
    assert {s.call for s in steps_of(plan) if s.label.startswith("sell")} == {expected[1]}


@DELAYS
def test_where_it_was_not_asked_what_was_bought_is_held(delay_s: int) -> None:
    assert sellable(was_bought(), Probe("large", delay_s, BPS, 0), POLICY) == BOUGHT
    assert sellable(was_bought(BOUGHT, 1, 2), Probe("probe", delay_s, BPS, 0), POLICY) == BOUGHT


@HANDED_PARTS
def test_what_is_handed_over_is_what_was_bought_whatever_is_held_later(probe: Probe, amount: int) -> None:
    assert sellable(REBASED, probe, POLICY) == BOUGHT
    plan = sold_by(WETH, probe, REBASED)
    _, receiver = who_trades(plan)
    assert plan.blocks[1].steps[0].call.data == abi.call("0xa9059cbb", receiver, BOUGHT)
    expected = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, amount, receiver)
    assert {s.call for s in steps_of(plan) if s.label.startswith("sell")} == {expected[1]}


# --- the receiver's plan ---------------------------------------------------------------------------


@HANDED_PARTS
def test_the_receiver_is_handed_all_and_sells_all_or_half_of_it_in_a_later_block(
    probe: Probe, amount: int
) -> None:
    plan = sold_by(WETH, probe)
    buyer, receiver = who_trades(plan)
    assert labels(plan, 1) == ["transfer"]
    assert labels(plan, 0) == SOLD_LABELS["weth"]
    assert labels(plan, 2) == ["handed-quote", "approve-0", *tried(4), "after-token"]
    assert [block.delay_s for block in plan.blocks] == [1, POLICY.later_s, POLICY.later_s]
    (transfer,), rest = plan.blocks[1].steps, plan.blocks[2].steps
    assert (transfer.sender, transfer.gas_limit) == (buyer, POLICY.hand_on_gas_limit)
    assert (transfer.call.to, transfer.call.data) == (TOKEN, abi.call("0xa9059cbb", receiver, BOUGHT))
    assert limits(plan, "sell") == LADDER
    approve, sell = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, amount, receiver)
    trades = [step for step in rest if step.label.startswith(("approve", "sell"))]
    assert [step.call for step in trades] == [approve, *[sell] * 4]
    assert {step.sender for step in trades} == {receiver}
    for looks in (step for step in rest if step.label.endswith("-quote")):
        assert (looks.sender, looks.call.data) == (READER, abi.call("0x4d2301cc", receiver))


# --- other places ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("place", "out"), [(WETH, USDG), (USDG, WETH), (WETH, ETH), (ETH, USDG)])
def test_what_was_bought_at_one_place_may_be_sold_at_another(place: VenuePlace, out: VenuePlace) -> None:
    amount = size_raw("probe", place, SETTING, ENVIRONMENT)
    assert isinstance(amount, int)
    plan = sell_plan(place, SETTING, ENVIRONMENT, WHOLE, amount, was_bought(), out)
    here, there = sold_by(place, WHOLE), sold_by(out, WHOLE)
    assert plan.blocks == (here.blocks[0], *there.blocks[1:])


@pytest.mark.parametrize(
    ("probe", "tried_under"), [(WHOLE, LADDER[:3]), (HALF, [3_000_000]), (HANDED, LADDER[:3])]
)
def test_in_a_strangers_hook_nothing_is_tried_under_more_than_anybody_pays(
    probe: Probe, tried_under: list[int]
) -> None:
    hooked = VenuePlace(amm_v4.pool("amm_v4", TOKEN, "eth", ZERO_ADDRESS, 3000, 60, address(0x80)), amm_v4)
    assert limits(sold_by(hooked, probe), "sell") == tried_under
    assert max(limits(sold_by(hooked, probe, was_bought(gas=2**24)), "buy")) == POLICY.hook_gas_limit
    assert limits(bought_by(hooked), "buy") == [POLICY.hook_gas_limit]


# --- a wallet that traded before --------------------------------------------------------------------

TRADED_BEFORE = Probe("probe", POLICY.hour_s, POLICY.half_bps, 0, "traded before")


def traded_before(place: VenuePlace, saves_gas: bool = False) -> Plan:
    small: tuple[Size, int, CompletedBuy] = ("thousandth", 10**14, was_bought(BOUGHT // 1000))
    return traded_before_plan(
        place, SETTING, ENVIRONMENT, TRADED_BEFORE, small, (10**17, was_bought()), saves_gas
    )


@EVERY_PLACE
def test_a_wallet_that_traded_before_made_two_trips_an_hour_and_a_day_before(place: VenuePlace) -> None:
    plan = traded_before(place)
    found = [step.label for step in steps_of(plan)]
    assert len(found) == len(set(found))
    sold = [label for label in found if label.split()[-1].startswith(("buy", "sell", "transfer"))]
    assert sold == [
        "first buy", "first sell-0", "second buy", "second sell-0", "second transfer",
        "buy", "sell-0", "sell-1", "sell-2", "sell-3",
    ]  # fmt: skip
    seconds = list(accumulate(block.delay_s for block in plan.blocks))
    at_s = dict(zip(("first", "second", "last"), (seconds[0], seconds[3], seconds[-3]), strict=True))
    assert at_s["second"] - seconds[2] == POLICY.hour_s
    assert at_s["last"] - seconds[-4] == POLICY.day_s
    assert seconds[-1] - at_s["last"] == POLICY.hour_s


@EVERY_PLACE
def test_no_balance_is_read_in_its_earlier_trades_and_its_nonce_is_set_once(place: VenuePlace) -> None:
    plan = traded_before(place)
    earlier = [step.label for step in steps_of(plan) if step.label.startswith(("first ", "second "))]
    assert not [label for label in earlier if label.endswith(("-quote", "-token"))]
    assert [bool(block.nonces) for block in plan.blocks] == [True] + [False] * (len(plan.blocks) - 1)


def test_where_data_is_dear_its_last_sell_is_tried_once() -> None:
    assert limits(traded_before(ETH), "sell") == [POLICY.piece_gas_limit] * 4
    assert limits(traded_before(ETH, saves_gas=True), "sell") == [POLICY.piece_gas_limit]
