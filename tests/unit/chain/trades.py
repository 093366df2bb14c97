"""Trades that several tests of this folder plan, and hand-made results of them."""

from dataclasses import replace

import pytest

from roundtrip.chain.simulate.legs import Setting, VenuePlace, size_raw
from roundtrip.chain.simulate.outcomes import read_buy, read_sell
from roundtrip.chain.simulate.probe_plans import buy_plan, pull_plan, sell_plan
from roundtrip.chain.simulate.request import Plan, Results, SimulatedStep, StepResult
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.check.evidence import (
    CompletedBuy,
    Environment,
    MarketRates,
    Probe,
    RefusedCall,
    Size,
    Sold,
)
from roundtrip.venues import amm_v3, amm_v4, erc20
from unit.chain.samples import ENVIRONMENT, GAS_PRICE_WEI, did, error_string, refused
from unit.venues.network import BELOW, CONTRACTS

BUYER, RECEIVER, READER = ENVIRONMENT.buyer, ENVIRONMENT.receiver, ENVIRONMENT.reader
TOKEN = BELOW
SETTING = Setting(
    TOKEN, CONTRACTS, MarketRates(1_000, 3_500_000_000, 500, None), POLICY, crowd_gaps_s=(1, 1, 1, 1, 1)
)

WETH, USDG = (
    next(
        VenuePlace(v, amm_v3)
        for v in amm_v3.candidates(TOKEN, CONTRACTS)
        if (v.quote, v.fee_pips) == (q, 3000)
    )
    for q in ("weth", "usdg")
)
ETH = next(VenuePlace(v, amm_v4) for v in amm_v4.candidates(TOKEN, CONTRACTS) if v.quote == "eth")
PLACES = pytest.mark.parametrize("place", [WETH, USDG], ids=["weth", "usdg"])
EVERY_PLACE = pytest.mark.parametrize("place", [WETH, USDG, ETH], ids=["weth", "usdg", "eth"])

BOUGHT = 5 * 10**20
PAID_WEI = 10**17
BUY_GAS, ALLOW_GAS, APPROVE_GAS, SELL_GAS = 151_003, 46_001, 44_007, 121_437

WHOLE = Probe("probe", 13, BPS, 0)
HALF = Probe("probe", 13, 5000, 0)
SLIVER = Probe("probe", 13, 100, 0)
HANDED = Probe("probe", 13, BPS, 0, "receiver")
HANDED_HALF = Probe("probe", 13, 5000, 0, "receiver")
PROBES = pytest.mark.parametrize(
    "probe",
    [WHOLE, HALF, SLIVER, HANDED, HANDED_HALF],
    ids=["whole", "half", "sliver", "handed", "half of what was handed"],
)
DELAYS = pytest.mark.parametrize("delay_s", [13, 3600, 86_400])

CARELESS = replace(
    ENVIRONMENT,
    gas_float_wei=3 * 10**18,
    size_bps=7_350,
    approves_all=True,
    approve_gas_limit=90_000,
    late_s=14,
    sell_gas_ladder=(2**24,),
)
ENVIRONMENTS = pytest.mark.parametrize("environment", [ENVIRONMENT, CARELESS], ids=["careful", "careless"])

LADDER = [400_000, 1_200_000, 3_000_000, 2**24]
PART_LADDER = [3_000_000, 2**24]
SOLD_LABELS = {
    "weth": ["sweep", "start-quote", "buy", "bought-quote"],
    "usdg": ["sweep", "fund", "start-quote", "allow-0", "buy", "bought-quote"],
}
"""The buy of trip 2, where the token is asked for no balance."""


def was_bought(received_raw: int = BOUGHT, *later_raw: int, gas: int = BUY_GAS) -> CompletedBuy:
    """What trip 1 told of the buy."""
    return CompletedBuy(PAID_WEI, received_raw, PAID_WEI, gas, later_raw)


REBASED = was_bought(BOUGHT, BOUGHT + 5, BOUGHT * 3, BOUGHT // 7)

# --- plans -----------------------------------------------------------------------------------------


def bought_by(place: VenuePlace, size: Size = "probe", environment: Environment = ENVIRONMENT) -> Plan:
    """Trip 1 of this place."""
    amount = size_raw(size, place, SETTING, environment)
    assert isinstance(amount, int)
    return buy_plan(place, SETTING, environment, size, amount)


def sold_by(
    place: VenuePlace, probe: Probe, known: CompletedBuy | None = None, environment: Environment = ENVIRONMENT
) -> Plan:
    """Trip 2 of this probe."""
    amount = size_raw(probe.size, place, SETTING, environment)
    assert isinstance(amount, int)
    return sell_plan(place, SETTING, environment, probe, amount, known or was_bought())


def pulled_by(place: VenuePlace, known: CompletedBuy | None = None) -> Plan:
    """Trip 2 as the router's own pull."""
    return pull_plan(place, SETTING, ENVIRONMENT, "probe", 10**17, known or was_bought())


def steps_of(plan: Plan) -> list[SimulatedStep]:
    """Every step, in order."""
    return [step for block in plan.blocks for step in block.steps]


def labels(plan: Plan, block: int) -> list[str]:
    """One block's labels, in order."""
    return [step.label for step in plan.blocks[block].steps]


def limits(plan: Plan, start: str) -> list[int]:
    """The gas limits of the steps whose label begins so."""
    return [step.gas_limit for step in steps_of(plan) if step.label.startswith(start)]


def who_trades(plan: Plan) -> tuple[Address, Address]:
    """The plan's buyer and receiver."""
    return plan.environment.buyer, plan.environment.receiver


def asks_balance_of_token(step: SimulatedStep) -> bool:
    """True when this step has the token tell a balance."""
    return step.call.to == TOKEN and step.call.data.startswith(erc20.BALANCE_OF)


# --- results ---------------------------------------------------------------------------------------

START_WEI = 3 * 10**17
BACK_WEI = 99_401_234_567_890_123
HELD_WEI = START_WEI - PAID_WEI - (BUY_GAS + APPROVE_GAS) * GAS_PRICE_WEI


def renamed(changes: dict[str, StepResult]) -> Results:
    """Results by label, given with _ for -."""
    return {label.replace("_", "-"): result for label, result in changes.items()}


def buy_results(place: VenuePlace, **changes: StepResult) -> Results:
    """A buy that paid PAID_WEI, or 350 dollars, for BOUGHT; ``changes`` by label with _ for -."""
    if place is WETH:
        found = {
            "sweep": did(gas=61_000),
            "start-quote": did(START_WEI),
            "start-token": did(0),
            "buy": did(gas=BUY_GAS),
            "bought-quote": did(START_WEI - PAID_WEI - BUY_GAS * GAS_PRICE_WEI),
        }
    else:
        found = {
            "sweep": did(gas=61_000),
            "fund": did(gas=140_000),
            "start-quote": did(350_000_000),
            "start-token": did(0),
            "allow-0": did(gas=ALLOW_GAS),
            "buy": did(gas=BUY_GAS),
            "bought-quote": did(0),
        }
    found["bought-token"] = did(BOUGHT)
    return found | renamed(changes)


def bought(place: VenuePlace, **changes: StepResult) -> object:
    """What such a buy is read as."""
    return read_buy(buy_results(place, **changes), place, ENVIRONMENT, PAID_WEI)


def second_buy(place: VenuePlace, **changes: StepResult) -> Results:
    """The buy of trip 2, where the token was asked for no balance."""
    found = buy_results(place, **changes)
    return {label: found[label] for label in found if label not in ("start-token", "bought-token")}


def attempts(sells: tuple[StepResult, ...], had_wei: int, back_wei: int) -> Results:
    """Every attempt pays its gas, and each that goes through brings ``back_wei``, read after it."""
    found: Results = {}
    for n, sell in enumerate(sells):
        had_wei += (back_wei if sell.ok else 0) - sell.gas_used * GAS_PRICE_WEI
        found |= {f"sell-{n}": sell, f"after-{n}-quote": did(had_wei)}
    return found


def sell_results(
    *sells: StepResult, left: int = 0, back_wei: int = BACK_WEI, **changes: StepResult
) -> Results:
    """A sell for eth. The approval was paid for before the money was counted."""
    found = second_buy(WETH) | {"approve-0": did(gas=APPROVE_GAS), "held-quote": did(HELD_WEI)}
    found |= attempts(sells, HELD_WEI, back_wei) | {"after-token": did(left)}
    return found | renamed(changes)


def handed_results(
    *sells: StepResult, left: int = 0, back_wei: int = BACK_WEI, **changes: StepResult
) -> Results:
    """A receiver's sell for eth: what its approval costs is counted, and it ends with ``left`` tokens."""
    found = second_buy(WETH) | {
        "transfer": did(gas=51_000),
        "handed-quote": did(START_WEI),
        "approve-0": did(gas=APPROVE_GAS),
    }
    found |= attempts(sells, START_WEI - APPROVE_GAS * GAS_PRICE_WEI, back_wei) | {"after-token": did(left)}
    return found | renamed(changes)


def sold(
    results: Results, probe: Probe = WHOLE, place: VenuePlace = WETH, known: CompletedBuy | None = None
) -> object:
    """What such a sell is read as."""
    return read_sell(results, place, ENVIRONMENT, probe, known or was_bought(), POLICY)


def whole_sale(sell_gas: int = SELL_GAS) -> Sold:
    """All of it sold by the buyer, for BACK_WEI."""
    return Sold(PAID_WEI, BOUGHT, BOUGHT, BOUGHT, BACK_WEI, BUY_GAS, sell_gas)


def handed_sale(
    arrived_raw: int = BOUGHT, asked_raw: int = BOUGHT, moved_raw: int | None = None, sell_gas: int = SELL_GAS
) -> Sold:
    """What a receiver sold of what reached it, for BACK_WEI."""
    moved = asked_raw if moved_raw is None else moved_raw
    return Sold(PAID_WEI, BOUGHT, asked_raw, moved, BACK_WEI, BUY_GAS, sell_gas, arrived_raw)


def no_more() -> StepResult:
    """The ladder's later attempts: the tokens are gone."""
    return refused(error_string("STF"), 33_333)


FREE = RefusedCall("buy", "the buy cost nothing, which no real trade does", BUY_GAS)
