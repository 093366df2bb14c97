"""What the second environment does beside its trade, where it does, and what is moved past a pool."""

from dataclasses import replace
from typing import get_args

import pytest
from eth_abi.abi import decode

from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.chain.simulate.legs import Setting, VenuePlace, route_to, size_raw
from roundtrip.chain.simulate.outcomes import read_carried
from roundtrip.chain.simulate.probe_plans import buy_plan, pay_out_block, pull_plan, sell_plan
from roundtrip.chain.simulate.request import Plan, Results, SimulatedStep, StepResult
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, ZERO_ADDRESS, Address
from roundtrip.domain.check.evidence import (
    CompletedBuy,
    Environment,
    HookCarry,
    MarketRates,
    Missing,
    Probe,
    QuoteHop,
    QuoteRate,
    RefusedCall,
    Size,
)
from roundtrip.venues import amm_v3, amm_v4, erc20, launchpad_curve, launchpad_pool
from roundtrip.venues.base import Call
from unit.chain.samples import ENVIRONMENT, did, error_string, refused
from unit.venues.network import ABOVE, BELOW, CONTRACTS, address

TOKEN, OTHER = BELOW, ABOVE
ROUTE = (QuoteHop(CONTRACTS.usdg, 500), QuoteHop(OTHER, 3000))
RATE = QuoteRate(OTHER, 20 * 10**18, ROUTE, 18)
MARKET = MarketRates(1_000, 3_500_000_000, 500, None, (RATE,))
SETTING = Setting(TOKEN, CONTRACTS, MARKET, POLICY)
BLIND = replace(SETTING, market=MarketRates(1_000, Missing("node", "no pool"), None, None))

HELD_RAW = 7_000_001
FLOAT_WEI = 3 * 10**18
CARELESS = replace(
    ENVIRONMENT, gas_float_wei=FLOAT_WEI, approves_all=True, own_usdg_raw=HELD_RAW, company=True
)

WETH, USDG = (VenuePlace(amm_v3.candidates(TOKEN, CONTRACTS)[n], amm_v3) for n in (2, 6))
POOLED = VenuePlace(launchpad_pool.candidates(TOKEN, CONTRACTS)[0], launchpad_pool)
CURVE, DOLLAR_CURVE, OTHER_CURVE = (
    VenuePlace(launchpad_curve.curve(quote, address(0xC0), CONTRACTS), launchpad_curve)
    for quote in (ZERO_ADDRESS, CONTRACTS.usdg, OTHER)
)


def v4(quote: str = "eth", fee: int = 3000, hook: int | None = None) -> VenuePlace:
    money = {"eth": ZERO_ADDRESS, "weth": CONTRACTS.weth, "usdg": CONTRACTS.usdg}[quote]
    hooked = None if hook is None else address(hook)
    return VenuePlace(amm_v4.pool("amm_v4", TOKEN, quote, money, fee, 60, hooked), amm_v4)  # type: ignore[arg-type]


DYNAMIC, SWAPPING, IDLE = v4(fee=0x800000), v4(hook=0xABC0080), v4(hook=0xABC3F33)
EVERY = {
    "weth": WETH, "usdg": USDG, "v4 eth": v4(), "v4 weth": v4("weth"), "v4 usdg": v4("usdg"),
    "launchpad pool": POOLED, "curve": CURVE, "dollar curve": DOLLAR_CURVE, "other curve": OTHER_CURVE,
    "dynamic": DYNAMIC, "swap hook": SWAPPING, "idle hook": IDLE,
}  # fmt: skip
PLACES = pytest.mark.parametrize("place", EVERY.values(), ids=EVERY.keys())
COMPANIONABLE = (WETH, USDG, v4(), v4("weth"), v4("usdg"), POOLED, DYNAMIC, SWAPPING, IDLE)

BOUGHT = CompletedBuy(10**17, 5 * 10**20, 10**17, 151_003)
SHARES = (BPS, 5000, 100)


def plans_of(place: VenuePlace, environment: Environment, setting: Setting = SETTING) -> dict[str, Plan]:
    """Every plan of a place, by what it is for."""
    found: dict[str, Plan] = {"pay out": Plan(environment, (pay_out_block((place,), setting, environment),))}
    for size in get_args(Size):
        found[f"buy {size}"] = buy_plan(place, setting, environment, size, raw_of(place, size))
    found["pull"] = pull_plan(place, setting, environment, "probe", raw_of(place, "probe"), BOUGHT)
    for share in SHARES:
        probe = Probe("probe", 13, share, 1)
        found[f"sell {share}"] = sell_plan(place, setting, environment, probe, raw_of(place, "probe"), BOUGHT)
    handed = Probe("probe", 13, BPS, 1, "receiver")
    found["handed"] = sell_plan(place, setting, environment, handed, raw_of(place, "probe"), BOUGHT)
    return found


def raw_of(place: VenuePlace, size: Size) -> int:
    amount = size_raw(size, place, SETTING, ENVIRONMENT)
    assert isinstance(amount, int)
    return amount


def steps_of(plan: Plan, start: str = "") -> list[SimulatedStep]:
    return [step for block in plan.blocks for step in block.steps if step.label.startswith(start)]


def labels(plan: Plan, block: int) -> list[str]:
    return [step.label for step in plan.blocks[block].steps]


# --- company ---------------------------------------------------------------------------------------


@PLACES
def test_company_is_had_between_buy_and_sell_and_nowhere_else(place: VenuePlace) -> None:
    meant = {f"sell {share}" for share in SHARES} if place in COMPANIONABLE else set()
    for name, plan in plans_of(place, CARELESS).items():
        assert bool(steps_of(plan, "company")) is (name in meant), name
        if name in meant:
            assert labels(plan, 1)[0].startswith("company-0")
            assert not [x for x in labels(plan, 0) + labels(plan, 2) if x.startswith("company")]


@PLACES
def test_a_careful_wallet_has_no_company(place: VenuePlace) -> None:
    assert not any(steps_of(plan, "company") for plan in plans_of(place, ENVIRONMENT).values())


@pytest.mark.parametrize("place", COMPANIONABLE)
def test_company_is_two_others_who_buy_half_as_much_each(place: VenuePlace) -> None:
    plan = plans_of(place, CARELESS)["sell 10000"]
    half = raw_of(place, "probe") // 2
    found = steps_of(plan, "company")
    others = list(dict.fromkeys(step.sender for step in found))
    assert len(others) == 2
    assert others[0] == plan.environment.receiver
    assert not {plan.environment.buyer, plan.environment.reader} & set(others)
    for number, other in enumerate(others):
        fund = amm_v3.plan_eth_to(CONTRACTS, (QuoteHop(CONTRACTS.usdg, 500),), half, FLOAT_WEI)
        calls = [step.call for step in found if step.sender == other]
        buy = place.file.plan_buy(place.venue, TOKEN, CONTRACTS, half, other)
        assert calls == [*([] if place.pays_eth() else [fund]), *buy]
        assert all(step.label.startswith(f"company-{number}") for step in found if step.sender == other)
    assert {step.gas_limit for step in found} == {POLICY.company_gas_limit}
    assert len({step.label for step in found}) == len(found)


@pytest.mark.parametrize("place", COMPANIONABLE)
def test_company_can_pay_for_what_it_buys_and_its_gas(place: VenuePlace) -> None:
    plan = plans_of(place, CARELESS)["sell 10000"]
    balances = dict(plan.blocks[1].balances)
    for other in {step.sender for step in steps_of(plan, "company")}:
        spent = [step for step in steps_of(plan, "company") if step.sender == other]
        gas_wei = sum(step.gas_limit for step in spent) * CARELESS.max_fee_wei
        assert balances[other] > sum(step.call.value_wei for step in spent) + gas_wei


def test_where_the_money_was_given_there_is_no_company() -> None:
    slot = BalanceSlot(CONTRACTS.usdg, "solidity", 9)
    plans = plans_of(USDG, CARELESS, replace(SETTING, slots=(slot,)))
    assert not any(steps_of(plan, "company") for plan in plans.values())


@pytest.mark.parametrize("amount_raw", [1, 999, 10**17])
def test_company_buys_of_the_round_size_however_little_is_traded(amount_raw: int) -> None:
    plan = sell_plan(WETH, SETTING, CARELESS, Probe("probe", 13, BPS, 1), amount_raw, BOUGHT)
    assert [step.call.value_wei for step in steps_of(plan, "company")] == [POLICY.probe_wei // 2] * 2


# --- other money -----------------------------------------------------------------------------------


@PLACES
def test_a_wallet_that_holds_dollars_too_has_bought_them_before_it_is_looked_at(place: VenuePlace) -> None:
    expected = amm_v3.plan_eth_to(CONTRACTS, (QuoteHop(CONTRACTS.usdg, 500),), HELD_RAW, FLOAT_WEI // 4)
    for name, plan in plans_of(place, CARELESS).items():
        held = steps_of(plan, "hold")
        assert len(held) == (name != "pay out"), name
        for step in held:
            assert (step.label, step.call) == ("hold", expected)
            assert (step.sender, step.gas_limit) == (plan.environment.buyer, POLICY.transfer_gas_limit)
            first = labels(plan, 0)
            assert first.index("hold") < first.index("start-quote")
            assert first.index("hold") < first.index("buy")


@PLACES
def test_a_wallet_that_is_to_hold_nothing_else_buys_nothing_else(place: VenuePlace) -> None:
    assert not any(steps_of(plan, "hold") for plan in plans_of(place, ENVIRONMENT).values())


def test_where_no_way_leads_to_dollars_none_are_held() -> None:
    assert not any(steps_of(plan, "hold") for plan in plans_of(WETH, CARELESS, BLIND).values())


def test_a_wallet_can_pay_for_what_it_holds_and_what_it_trades() -> None:
    block = plans_of(DOLLAR_CURVE, CARELESS)["buy probe"].blocks[0]
    sent = sum(step.call.value_wei for step in block.steps if step.label == "hold")
    (fund,) = (step.call.value_wei for step in block.steps if step.label == "fund")
    assert dict(block.balances)[CARELESS.buyer] == 10**17 + FLOAT_WEI
    assert 10**17 + FLOAT_WEI - sent - fund == FLOAT_WEI // 4


@pytest.mark.parametrize(
    ("place", "route", "amount"),
    [
        (USDG, ROUTE[:1], 350_000_000),
        (DOLLAR_CURVE, ROUTE[:1], 350_000_000),
        (OTHER_CURVE, ROUTE, 2 * 10**18),
    ],
)
def test_what_a_venue_is_paid_in_is_really_bought(
    place: VenuePlace, route: tuple[QuoteHop, ...], amount: int
) -> None:
    assert raw_of(place, "probe") == amount
    for name, plan in plans_of(place, ENVIRONMENT).items():
        if name in ("buy probe", "pull", "handed", "sell 10000"):
            (fund,) = steps_of(plan, "fund")
            most = 10**17 + ENVIRONMENT.gas_float_wei // 2
            assert fund.call == amm_v3.plan_eth_to(CONTRACTS, route, amount, most)
            assert labels(plan, 0).index("fund") < labels(plan, 0).index("start-quote")


def test_the_way_to_a_money_is_the_markets() -> None:
    assert route_to("usdg", SETTING) == ROUTE[:1]
    assert route_to(OTHER, SETTING) == ROUTE
    assert route_to(OTHER, BLIND) == route_to("usdg", BLIND) == route_to(address(9), SETTING) == ()


@PLACES
def test_what_is_paid_in_eth_needs_no_money_bought(place: VenuePlace) -> None:
    funded = any(steps_of(plan, "fund") for plan in plans_of(place, ENVIRONMENT).values())
    assert funded is (place.venue.quote not in ("eth", "weth"))


# --- curves ----------------------------------------------------------------------------------------


@PLACES
def test_a_curve_has_no_router_to_clear(place: VenuePlace) -> None:
    curve = place.venue.kind == "launchpad_curve"
    for name, plan in plans_of(place, CARELESS).items():
        assert len(steps_of(plan, "sweep")) == (not curve and name != "pay out"), name


def test_a_buy_on_a_curve_is_the_buyers_own_call() -> None:
    plan = plans_of(CURVE, ENVIRONMENT)["buy probe"]
    assert labels(plan, 0) == ["start-quote", "start-token", "buy", "bought-quote", "bought-token"]
    buy = plan.blocks[0].steps[2]
    assert (buy.call.to, buy.call.value_wei, buy.sender) == (address(0xC0), 10**17, ENVIRONMENT.buyer)
    arguments = decode(["uint256", "uint256", "address"], bytes.fromhex(buy.call.data[10:]))
    assert arguments == (10**17, 0, ENVIRONMENT.buyer)


# --- what is moved past the pool -------------------------------------------------------------------

CARRIED_LABELS = ["pool-before", "pull", "pool-after", "pull-left", "pay-out", "paid-out"]


@PLACES
def test_tokens_are_carried_past_the_pool_exactly_where_a_hook_takes_part_in_swaps(place: VenuePlace) -> None:
    hooked = place in (DYNAMIC, SWAPPING)
    assert place.venue.keeps_by_hook() is hooked
    for name, plan in plans_of(place, CARELESS).items():
        found = [step.label for step in steps_of(plan) if step.label in CARRIED_LABELS]
        expected = CARRIED_LABELS if hooked else ["pull"]
        assert found == (expected if name == "pull" else []), name


@pytest.mark.parametrize("place", [DYNAMIC, SWAPPING])
def test_what_is_carried_goes_where_a_trade_takes_it(place: VenuePlace) -> None:
    plan = plans_of(place, ENVIRONMENT)["pull"]
    steps = {step.label: step for step in plan.blocks[1].steps}
    manager, amount = CONTRACTS.v4_pool_manager, BOUGHT.received_raw
    moved = decode(["address", "address", "uint256"], bytes.fromhex(steps["pull"].call.data[10:]))
    assert moved == (ENVIRONMENT.buyer, manager, amount)
    assert steps["pull"].sender == CONTRACTS.permit2
    paid = decode(["address", "uint256"], bytes.fromhex(steps["pay-out"].call.data[10:]))
    assert (steps["pay-out"].sender, steps["pay-out"].call.to) == (manager, TOKEN)
    assert paid == (ENVIRONMENT.receiver, amount)
    for label, of in {
        "pool-before": manager,
        "pool-after": manager,
        "pull-left": ENVIRONMENT.buyer,
        "paid-out": ENVIRONMENT.receiver,
    }.items():
        assert steps[label].sender == ENVIRONMENT.reader
        assert steps[label].call == balance_of(of)
    assert dict(plan.blocks[1].balances) == {CONTRACTS.permit2: WEI_PER_ETH, manager: WEI_PER_ETH}
    assert manager not in dict(plan.blocks[0].balances)


@PLACES
def test_a_strangers_hooks_token_moves_under_the_gas_that_is_bearable_in_a_swap(place: VenuePlace) -> None:
    plan = plans_of(place, ENVIRONMENT)["pull"]
    moves = {step.gas_limit for step in steps_of(plan) if step.label in ("pull", "pay-out")}
    assert moves == {POLICY.hook_gas_limit if place.venue.rival_hook() else POLICY.approve_gas_limit}


def balance_of(of: Address) -> Call:
    return Call(TOKEN, erc20.BALANCE_OF + of[2:].rjust(64, "0"))


# --- and what came of it ---------------------------------------------------------------------------

MOVED = 1_000
GAP = Missing("node", "the simulation was not run")


def carried(**changes: StepResult) -> Results:
    found = {
        "buy": did(),
        "pool-before": did(5),
        "pull": did(1),
        "pool-after": did(905),
        "pull-left": did(0),
        "pay-out": did(1),
        "paid-out": did(970),
    }
    return found | {label.replace("_", "-"): result for label, result in changes.items()}


def test_what_arrived_and_what_was_received_is_read_from_balances() -> None:
    assert read_carried(carried(), MOVED) == HookCarry(MOVED, 900, 970)
    assert read_carried(carried(pool_before=did(905)), MOVED) == HookCarry(MOVED, 0, 970)


@pytest.mark.parametrize(
    ("left", "arrived"), [(0, 900), (100, 1000), (500, 1800), (MOVED - 1, 900_000), (MOVED, 900_000)]
)
def test_what_the_token_left_where_it_was_is_not_taken_from_what_arrived(left: int, arrived: int) -> None:
    assert read_carried(carried(pull_left=did(left)), MOVED) == HookCarry(MOVED, arrived, 970)


def test_a_plan_that_was_not_run_stays_missing() -> None:
    assert read_carried(GAP, MOVED) is GAP


@pytest.mark.parametrize(("label", "leg"), [("buy", "buy"), ("pull", "sell"), ("pay-out", "buy")])
def test_a_move_that_is_refused_is_refused_on_its_leg(label: str, leg: str) -> None:
    results = carried() | {label: refused(error_string("not so"), 12)}
    assert read_carried(results, MOVED) == RefusedCall(leg, "not so", 12)  # type: ignore[arg-type]


def test_of_several_refusals_the_first_move_counts() -> None:
    results = carried(buy=refused(gas=1), pull=refused(gas=2), pay_out=refused(gas=3))
    assert read_carried(results, MOVED) == RefusedCall("buy", None, 1)
    assert read_carried(results | {"buy": did()}, MOVED) == RefusedCall("sell", None, 2)


@pytest.mark.parametrize("label", ["pool-before", "pool-after", "paid-out", "pull-left"])
@pytest.mark.parametrize("answer", [refused(), refused(out_of_gas=True), did(b""), did(bytes(31))])
def test_a_balance_that_is_not_told_is_the_tokens_doing(label: str, answer: StepResult) -> None:
    found = read_carried(carried() | {label: answer}, MOVED)
    assert isinstance(found, Missing)
    assert found.fault == "token"
