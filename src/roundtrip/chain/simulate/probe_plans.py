"""Plans the simulation of one probe. Pure; ``outcomes`` reads the result.

``legs`` has the parts that other simulated trades share.
"""

from dataclasses import replace

from msgspec import structs

from roundtrip.domain.base.types import BPS, WEI_PER_ETH
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
    held_over_day,
    late_s,
    little_less_steps,
    plannable,
    planned_sell_raw,
    reads,
    route_to,
    slot_of,
    start_wei,
    token_read,
)
from .request import Plan, PlannedBlock, SimulatedStep

_BUY_DELAY_S = 1
"""The buy is in the next block, one second later: timestamps must rise."""


# --- plans -----------------------------------------------------------------------------------------


def buy_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    size: Size,
    amount_raw: int,
    crowd: list[PlannedBlock] | None = None,
) -> Plan:
    """Buy round: only the buy, in the next block. For sizes that may be sold, also later reads of the
    balance, and the approvals, to measure their gas. ``crowd``: blocks of other wallets' buys after it."""
    block = buy_block(place, setting, environment, size, amount_raw)
    if size not in MAIN_SIZES:
        return Plan(environment, (block,))
    policy, watched = setting.policy, list(crowd or ())
    passed_s = sum(crowd_block.delay_s for crowd_block in watched)
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


def measured_trip_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    probe: Probe,
    amount_raw: int,
    bought: CompletedBuy,
) -> Plan:
    """Sell round: a round trip in a pool that others traded in before, so that the buy brings another amount
    than in the buy round. That amount is read; its sell asks for the probe's share of ``bought``."""
    environment = _with_measured_gas(measured_wallet(environment, probe), bought)
    first = buy_block(place, setting, environment, probe.size, amount_raw)
    held_raw = plannable(bought, probe, setting.policy)
    return Plan(environment, (first, *exit_blocks(place, setting, environment, probe, held_raw, place)))


def traded_before_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    probe: Probe,
    small: tuple[Size, int, CompletedBuy],
    main: tuple[int, CompletedBuy],
    saves_gas: bool = False,
) -> Plan:
    """Sell round: a measured round trip by a wallet that traded before. It made a round trip with a small
    amount; an hour later it bought the amount of the last buy, sold nine tenths of it and sent a part of the
    rest to another wallet: little stays, so that the price is what it was. A day after that it buys
    again. ``small``: the small buy's size, what it pays, and its outcome in the buy round. ``main``: the same
    of the other buys, without a size. ``saves_gas``: the last sell is tried only once, for a node that
    charges much gas for data.

    No balance is read in the earlier trades: only the last sell is measured, and a read is a transaction, to
    which a token may react."""
    policy, held_raw = setting.policy, main[1].received_raw
    last = measured_trip_plan(place, setting, environment, probe, *main)
    environment = last.environment
    whole = Probe(small[0], policy.later_s, BPS, 0, probe.seller)
    most = replace(whole, size=probe.size, share_bps=_EARLIER_BPS)
    first = trade_plan(place, setting, environment, whole, *small[1:])
    second = trade_plan(place, setting, environment, most, *main)
    sent_raw = max(1, (held_raw - planned_sell_raw(most, held_raw)) // 2)
    transfer = Call(setting.token, abi.call(erc20.TRANSFER, environment.receiver, sent_raw))
    step = SimulatedStep("transfer", environment.buyer, transfer, policy.hand_on_gas_limit)
    *others, end = last.blocks
    *sells, after = end.steps
    if not saves_gas:
        planned_raw = planned_sell_raw(probe, plannable(main[1], probe, policy))
        sells += little_less_steps(place, setting, environment, planned_raw)
    trips = (
        (0, first.blocks, "first "),
        (policy.hour_s, (*second.blocks, PlannedBlock(policy.later_s, (step,))), "second "),
        (policy.day_s, (*others, structs.replace(end, steps=(*sells, after))), ""),
    )
    blocks: list[PlannedBlock] = []
    for wait_s, (buy, *rest), name in trips:
        if blocks:
            # The wallet's nonce counts on.
            buy = structs.replace(buy, delay_s=wait_s, nonces=())
        blocks += (_without_reads(block, name) if name else block for block in (buy, *rest))
    return Plan(environment, tuple(blocks))


_EARLIER_BPS = 9000
"""What the wallet sells of its second buy: with more there would be none left to send, with less the price
would stay higher than the main wallet met it."""


def _without_reads(block: PlannedBlock, name: str) -> PlannedBlock:
    """The block without its reads of balances, ``name`` before its labels."""
    steps = (step for step in block.steps if not step.label.endswith(("-quote", "-token")))
    return structs.replace(
        block, steps=tuple(structs.replace(step, label=name + step.label) for step in steps)
    )


def measured_wallet(environment: Environment, probe: Probe) -> Environment:
    """The wallet of a measured round trip."""
    return replace(cast(environment, f"{probe.size} {probe.delay_s}"), approve_gas_limit=0)


def sell_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    probe: Probe,
    amount_raw: int,
    bought: CompletedBuy,
    sell_at: VenuePlace | None = None,
) -> Plan:
    """Sell round: the same buy by a new wallet, then the sell of a share of it in a later block.

    ``bought``: the outcome of the buy round, with the balances. ``sell_at``: another venue to sell on.
    """
    return trade_plan(place, setting, main_wallet(environment), probe, amount_raw, bought, sell_at)


def main_wallet(environment: Environment) -> Environment:
    """The main wallet: the same in every sell that is compared with another one of its own, so that only the
    sell differs. It approves with half as much gas again as was measured, as wallets do: some tokens sell
    only after an approval with more."""
    return replace(cast(environment, "main"), approve_gas_limit=0)


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
    """Like ``sell_plan``, with exactly this environment's wallets. ``between``: an extra block after the buy;
    the later blocks keep their times."""
    environment = _with_measured_gas(environment, bought)
    held_raw = plannable(bought, probe, setting.policy)
    first = buy_block(place, setting, environment, probe.size, amount_raw, bought.gas)
    sell_block, *rest = exit_blocks(
        sell_at or place, setting, environment, probe, held_raw, place,
        held_over_day_raw=held_over_day(bought, setting.policy),
    )  # fmt: skip
    if between is None:
        return Plan(environment, (first, sell_block, *rest))
    later = structs.replace(sell_block, delay_s=max(1, sell_block.delay_s - between.delay_s))
    return Plan(environment, (first, between, later, *rest))


_APPROVE_GAS = 90_000
"""1.5 times the usual gas of an approval."""


def _with_measured_gas(environment: Environment, bought: CompletedBuy) -> Environment:
    """The environment with a gas limit for approvals of at least 1.5 times the measured gas."""
    min_gas = environment.approve_gas_limit or _APPROVE_GAS
    return replace(environment, approve_gas_limit=max(min_gas, bought.approve_gas * 3 // 2))


def handed_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    size: Size,
    amount_raw: int,
    bought: CompletedBuy,
) -> Plan:
    """Sell round: the same buy, transferred to another wallet, and a read of what arrived, and of what a v3
    pool holds. Plans that sell do not read this: a token may react to a read."""
    environment = main_wallet(environment)
    receiver, policy = environment.receiver, setting.policy
    transfer_call = Call(setting.token, abi.call(erc20.TRANSFER, receiver, max(1, bought.received_raw)))
    first = buy_block(place, setting, environment, size, amount_raw, bought.gas)
    steps = (
        SimulatedStep("transfer", environment.buyer, transfer_call, policy.hand_on_gas_limit),
        token_read("handed-token", setting, environment, receiver),
        *_pool_reads(place, setting, environment),
    )
    return Plan(environment, (first, PlannedBlock(policy.later_s, steps)))


def _pool_reads(place: VenuePlace, setting: Setting, environment: Environment) -> list[SimulatedStep]:
    """A read of what a v3 pool holds; none elsewhere."""
    pool = place.venue.pool if place.venue.kind == amm_v3.KIND else None
    return [] if pool is None else [token_read("pool-held", setting, environment, pool)]


def pull_plan(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    size: Size,
    amount_raw: int,
    bought: CompletedBuy,
) -> Plan:
    """Sell round: the same buy, then the router's own pull of the wallet's tokens, to read the token's revert
    reason.

    Where a hook takes part in swaps the plan also reads what arrives of the pull, and of the same amount paid
    out: what a swap takes beyond that is the pool's own fee. It reads, too, what a v3 pool then holds.
    """
    buyer, limit, contracts = environment.buyer, setting.policy.approve_gas_limit, setting.contracts
    bought_raw = max(1, bought.received_raw)
    sell_calls = place.file.plan_sell(place.venue, setting.token, contracts, bought_raw, buyer)
    puller, pull = place.file.plan_pull(place.venue, setting.token, contracts, bought_raw, buyer)
    steps = [SimulatedStep(f"approve-{n}", buyer, call, limit) for n, call in enumerate(sell_calls[:-1])]
    gas_limit = setting.policy.hook_gas_limit if place.venue.rival_hook() else limit
    pull_step = SimulatedStep("pull", puller, pull, gas_limit)
    payers = [(puller, WEI_PER_ETH)]
    if place.venue.keeps_by_hook():
        payer, _ = place.file.plan_pay_out(place.venue, setting.token, contracts, buyer)
        pay_out = Call(setting.token, abi.call(erc20.TRANSFER, environment.receiver, bought_raw))
        before, after = (token_read(f"pool-{n}", setting, environment, payer) for n in ("before", "after"))
        received = token_read("paid-out", setting, environment, environment.receiver)
        remaining = token_read("pull-left", setting, environment, buyer)
        steps += [
            before,
            pull_step,
            after,
            remaining,
            SimulatedStep("pay-out", payer, pay_out, gas_limit),
            received,
        ]
        payers.append((payer, WEI_PER_ETH))
    else:
        steps += [pull_step, *_pool_reads(place, setting, environment)]
    first = buy_block(place, setting, environment, size, amount_raw, bought.gas)
    # The puller gets eth here and not at the start: a router sends the eth it holds to the buyer.
    pull_block = PlannedBlock(setting.policy.later_s, tuple(steps), tuple(payers))
    return Plan(environment, (first, pull_block))


def holder_pull_plan(place: VenuePlace, setting: Setting, environment: Environment) -> Plan:
    """The venue's own pull of one unit that the wallet holds, without a buy, to read the token's revert
    reason."""
    wallet, limit, contracts = environment.buyer, setting.policy.approve_gas_limit, setting.contracts
    approvals = place.file.plan_sell(place.venue, setting.token, contracts, 1, wallet)[:-1]
    puller, pull = place.file.plan_pull(place.venue, setting.token, contracts, 1, wallet)
    steps = (
        token_read("held-token", setting, environment, wallet),
        *(SimulatedStep(f"approve-{n}", wallet, call, limit) for n, call in enumerate(approvals)),
        SimulatedStep("pull", puller, pull, limit),
    )
    payers = (
        (wallet, gas_float(setting.policy, environment)),
        (puller, WEI_PER_ETH),
        (environment.reader, WEI_PER_ETH),
    )
    return Plan(environment, (PlannedBlock(_BUY_DELAY_S, steps, payers),))


def later_balance_plan(setting: Setting, environment: Environment, delay_s: int) -> Plan:
    """Reads the buyer's balance in a block ``delay_s`` seconds after the pinned one."""
    read = token_read("held-token", setting, environment, environment.buyer)
    return Plan(environment, (PlannedBlock(delay_s, (read,), ((environment.reader, WEI_PER_ETH),)),))


def pay_out_block(places: tuple[VenuePlace, ...], setting: Setting, environment: Environment) -> PlannedBlock:
    """Buy round: each candidate's own transfer of one unit, to read the token's revert reason on buys."""
    steps, payers = [], {}
    for number, place in enumerate(places):
        payer, call = place.file.plan_pay_out(
            place.venue, setting.token, setting.contracts, environment.buyer
        )
        payers[payer] = WEI_PER_ETH
        steps.append(SimulatedStep(f"pay-out-{number}", payer, call, setting.policy.approve_gas_limit))
    return PlannedBlock(_BUY_DELAY_S, tuple(steps), tuple(payers.items()))


def buy_block(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    size: Size,
    amount_raw: int,
    known_gas: int | None = None,
    most_gas: int | None = None,
) -> PlannedBlock:
    """Sweeps the router, funds the wallet, and buys. Once the buy's gas is known, its limit is 1.5 times
    that, as in a real wallet, and the token's balances are not read. ``most_gas``: a lower limit than the
    policy's."""
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
    max_gas = policy.hook_gas_limit if place.venue.rival_hook() else policy.buy_gas_limit
    max_gas = max_gas if most_gas is None else min(max_gas, most_gas)
    limit = max_gas if known_gas is None else min(max_gas, known_gas * 3 // 2)
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
    """Buys the venue's quote, and the other money that the wallet holds, with eth."""
    policy, buyer, contracts = setting.policy, environment.buyer, setting.contracts
    to_usdg, steps = route_to("usdg", setting), []
    if environment.own_usdg_raw and to_usdg:
        buy_usdg = amm_v3.plan_eth_to(
            contracts, to_usdg, environment.own_usdg_raw, environment.gas_float_wei // 4
        )
        steps.append(SimulatedStep("hold", buyer, buy_usdg, policy.transfer_gas_limit))
    if not place.pays_eth() and slot_of(place.venue, setting) is None:
        max_wei = start_wei(setting, environment, size) - gas_float(policy, environment) // 2
        route = route_to(place.venue.quote, setting)
        fund = amm_v3.plan_eth_to(contracts, route, amount_raw, max_wei)
        steps.append(SimulatedStep("fund", buyer, fund, policy.transfer_gas_limit))
    return steps
