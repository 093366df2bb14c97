"""What one probe's simulation consists of. Pure; ``outcomes`` reads what it came to.

``legs`` has the parts that other simulated trades share.
"""

from dataclasses import replace

from roundtrip.domain.base.types import WEI_PER_ETH
from roundtrip.domain.check.evidence import CompletedBuy, Environment, Probe, Size
from roundtrip.domain.check.venue_reading import MAIN_SIZES
from roundtrip.venues import abi, amm_v3, erc20
from roundtrip.venues.base import Call

from .legs import (
    Setting,
    VenuePlace,
    cast,
    exit_blocks,
    gas_float,
    late_s,
    reads,
    route_to,
    sellable,
    slot_of,
    start_wei,
    token_read,
)
from .request import Plan, PlannedBlock, SimulatedStep

_BUY_DELAY_S = 1
"""The buy stands in the next block, a second on: timestamps must rise."""


# --- plans ----------------------------------------------------------------------------------------


def buy_plan(
    place: VenuePlace, setting: Setting, environment: Environment, size: Size, amount_raw: int
) -> Plan:
    """Trip 1: the buy alone, in the next block; for the sizes that may be sold, what is held later, and at
    last what its approvals take."""
    block = buy_block(place, setting, environment, size, amount_raw)
    if size not in MAIN_SIZES:
        return Plan(environment, (block,))
    policy, watched, passed_s = setting.policy, [], 0
    for round_s in (policy.later_s, policy.hour_s, policy.day_s):
        delay_s = round_s + late_s(environment, round_s)
        call = Call(setting.token, abi.call(erc20.BALANCE_OF, environment.buyer))
        step = SimulatedStep(f"held-{round_s}", environment.reader, call, policy.read_gas_limit)
        watched.append(PlannedBlock(delay_s - passed_s, (step,)))
        passed_s = delay_s
    *approvals, _ = place.file.plan_sell(place.venue, setting.token, setting.contracts, 1, environment.buyer)
    limit = policy.transfer_gas_limit
    steps = [
        SimulatedStep(f"approve-{n}", environment.buyer, call, limit) for n, call in enumerate(approvals)
    ]
    return Plan(environment, (block, *watched, PlannedBlock(1, tuple(steps))))


def sell_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    probe: Probe,
    amount_raw: int,
    bought: CompletedBuy,
    sell_at: VenuePlace | None = None,
) -> Plan:
    """Trip 2: the same buy by a wallet of its own, then in a later block the sell of a share of it.

    Trip 1 has told what is held. ``sell_at``: another place than where it was bought.
    """
    part = f"{probe.size} {probe.delay_s} {probe.share_bps} {probe.seller}"
    return trade_plan(place, setting, cast(environment, part), probe, amount_raw, bought, sell_at)


def trade_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    probe: Probe,
    amount_raw: int,
    bought: CompletedBuy,
    sell_at: VenuePlace | None = None,
    between: PlannedBlock | None = None,
) -> Plan:
    """The same by exactly this environment's wallets. ``between``: a block after the buy; what follows comes
    when it would have come without it."""
    environment = _with_measured_gas(environment, bought)
    held_raw = sellable(bought, probe, setting.policy)
    first = buy_block(place, setting, environment, probe.size, amount_raw, bought.gas)
    then, *rest = exit_blocks(sell_at or place, setting, environment, probe, held_raw, place)
    if between is None:
        return Plan(environment, (first, then, *rest))
    later = replace(then, delay_s=max(1, then.delay_s - between.delay_s))
    return Plan(environment, (first, between, later, *rest))


_APPROVE_GAS = 90_000
"""Half as much again as an approval usually takes."""


def _with_measured_gas(environment: Environment, bought: CompletedBuy) -> Environment:
    """The environment with the gas its approvals carry: at least what was measured and half again."""
    least = environment.approve_gas_limit or _APPROVE_GAS
    return replace(environment, approve_gas_limit=max(least, bought.approve_gas * 3 // 2))


def handed_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    size: Size,
    amount_raw: int,
    bought: CompletedBuy,
) -> Plan:
    """Trip 2: the same buy handed on, and what arrived. Where that sells nobody asks: a token may notice."""
    environment = cast(environment, f"{size} handed")
    receiver, policy = environment.receiver, setting.policy
    handed = Call(setting.token, abi.call(erc20.TRANSFER, receiver, max(1, bought.received_raw)))
    first = buy_block(place, setting, environment, size, amount_raw, bought.gas)
    steps = (
        SimulatedStep("transfer", environment.buyer, handed, policy.transfer_gas_limit),
        token_read("handed-token", setting, environment, receiver),
    )
    return Plan(environment, (first, PlannedBlock(policy.later_s, steps)))


def pull_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    size: Size,
    amount_raw: int,
    bought: CompletedBuy,
) -> Plan:
    """Trip 2: the same buy, then the router's own pull of the wallet's tokens, to hear the token's word.

    Where a hook takes part in swaps it is also seen what arrives of that, and of as much paid out: what a
    swap takes beyond it is the pool's own keep.
    """
    buyer, limit, contracts = environment.buyer, setting.policy.approve_gas_limit, setting.contracts
    bought_raw = max(1, bought.received_raw)
    sell_calls = place.file.plan_sell(place.venue, setting.token, contracts, bought_raw, buyer)
    puller, pull = place.file.plan_pull(place.venue, setting.token, contracts, bought_raw, buyer)
    steps = [SimulatedStep(f"approve-{n}", buyer, call, limit) for n, call in enumerate(sell_calls[:-1])]
    most = setting.policy.hook_gas_limit if place.venue.rival_hook() else limit
    pulled = SimulatedStep("pull", puller, pull, most)
    payers = [(puller, WEI_PER_ETH)]
    if place.venue.keeps_by_hook():
        payer, _ = place.file.plan_pay_out(place.venue, setting.token, contracts, buyer)
        paid_out = Call(setting.token, abi.call(erc20.TRANSFER, environment.receiver, bought_raw))
        before, after = (token_read(f"pool-{n}", setting, environment, payer) for n in ("before", "after"))
        last = token_read("paid-out", setting, environment, environment.receiver)
        left = token_read("pull-left", setting, environment, buyer)
        steps += [before, pulled, after, left, SimulatedStep("pay-out", payer, paid_out, most), last]
        payers.append((payer, WEI_PER_ETH))
    else:
        steps.append(pulled)
    first = buy_block(place, setting, environment, size, amount_raw, bought.gas)
    # The puller is paid for here and not at the start: a router hands what eth it holds to the buyer.
    then = PlannedBlock(setting.policy.later_s, tuple(steps), tuple(payers))
    return Plan(environment, (first, then))


def pay_out_plan(places: tuple[VenuePlace, ...], setting: Setting, environment: Environment) -> Plan:
    """Trip 1: every candidate's own hand-over of one unit, to hear the token's word on buys."""
    steps, payers = [], {}
    for number, place in enumerate(places):
        payer, call = place.file.plan_pay_out(
            place.venue, setting.token, setting.contracts, environment.buyer
        )
        payers[payer] = WEI_PER_ETH
        steps.append(SimulatedStep(f"pay-out-{number}", payer, call, setting.policy.approve_gas_limit))
    return Plan(environment, (PlannedBlock(_BUY_DELAY_S, tuple(steps), tuple(payers.items())),))


def buy_block(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    size: Size,
    amount_raw: int,
    known_gas: int | None = None,
) -> PlannedBlock:
    """The router cleared of strangers' dust, the money had, the buy. Once its gas is known the buy carries
    half as much again, as a wallet's does, and the token is asked for no balance."""
    policy, buyer = setting.policy, environment.buyer
    sweep = place.file.plan_sweep(setting.contracts, environment.reader)
    steps = (
        []
        if sweep is None
        else [SimulatedStep("sweep", environment.reader, sweep, policy.transfer_gas_limit)]
    )
    steps += _fund_steps(place, setting, environment, size, amount_raw)
    # Once its gas is known the token's balances are known too.
    calls_count = 2 if known_gas is None else 1
    steps += reads("start", place, setting, environment, buyer)[:calls_count]
    calls = place.file.plan_buy(place.venue, setting.token, setting.contracts, amount_raw, buyer)
    steps += [
        SimulatedStep(f"allow-{n}", buyer, call, policy.approve_gas_limit)
        for n, call in enumerate(calls[:-1])
    ]
    most = policy.hook_gas_limit if place.venue.rival_hook() else policy.buy_gas_limit
    limit = most if known_gas is None else min(most, known_gas * 3 // 2)
    steps.append(SimulatedStep("buy", buyer, calls[-1], limit))
    steps += reads("bought", place, setting, environment, buyer)[:calls_count]
    balances = (
        (buyer, start_wei(setting, environment, size)),
        (environment.receiver, gas_float(policy, environment)),
        (environment.reader, WEI_PER_ETH),
    )
    nonces = ((buyer, environment.nonce), (environment.receiver, environment.nonce))
    slot = slot_of(place.venue, setting)
    storage = () if slot is None else ((slot.asset, slot.of(buyer), amount_raw),)
    return PlannedBlock(_BUY_DELAY_S, tuple(steps), balances, nonces, storage)


def _fund_steps(
    place: VenuePlace, setting: Setting, environment: Environment, size: Size, amount_raw: int
) -> list[SimulatedStep]:
    """The money a venue is paid in, really bought with eth, and what else the wallet is to hold."""
    policy, buyer, contracts = setting.policy, environment.buyer, setting.contracts
    to_usdg, steps = route_to("usdg", setting), []
    if environment.own_usdg_raw and to_usdg:
        held = amm_v3.plan_eth_to(
            contracts, to_usdg, environment.own_usdg_raw, environment.gas_float_wei // 4
        )
        steps.append(SimulatedStep("hold", buyer, held, policy.transfer_gas_limit))
    if not place.pays_eth() and slot_of(place.venue, setting) is None:
        most_wei = start_wei(setting, environment, size) - gas_float(policy, environment) // 2
        route = route_to(place.venue.quote, setting)
        fund = amm_v3.plan_eth_to(contracts, route, amount_raw, most_wei)
        steps.append(SimulatedStep("fund", buyer, fund, policy.transfer_gas_limit))
    return steps
