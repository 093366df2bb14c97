"""What one probe's simulation consists of. Pure; ``outcomes`` reads what it came to.

Balances decide, read by a wallet of its own that neither trades nor is funded by the trader; gas is
added back. The quote side is read in wei for venues paid in eth, else in the quote's units.
"""

from dataclasses import dataclass, replace

from roundtrip.domain.evidence import (
    Bought,
    Environment,
    Hop,
    Market,
    Missing,
    Probe,
    Quote,
    Size,
    Venue,
)
from roundtrip.domain.policy import Policy
from roundtrip.domain.price import quote_raw, rate_of
from roundtrip.domain.readings import MAIN_SIZES
from roundtrip.domain.types import BPS, WEI_PER_ETH, Address
from roundtrip.venues import abi, amm_v3, erc20
from roundtrip.venues.base import Call, Contracts, VenueFile

from .simulate import Plan, PlannedBlock, Step
from .storage import BalanceSlot

GET_ETH_BALANCE = "0x4d2301cc"

_BUY_DELAY_S = 1
"""The buy stands in the next block, a second on: timestamps must rise."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What every probe of one token shares."""

    token: Address
    contracts: Contracts
    market: Market
    policy: Policy
    slots: tuple[BalanceSlot, ...] = ()
    """Money that is given where it lies in storage, because no swap brings it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A venue with the module that knows its kind."""

    venue: Venue
    file: VenueFile

    def pays_eth(self) -> bool:
        """True when the wallet pays and is paid in eth itself."""
        return self.venue.quote in ("eth", "weth")


def size_wei(size: Size, policy: Policy) -> int:
    """A size in wei."""
    divisors = {"probe": 1, "thousandth": policy.fee_divisor}
    divisors |= {"tenth": policy.smaller_divisors[0], "hundredth": policy.smaller_divisors[1]}
    return policy.large_wei if size == "large" else policy.probe_wei // divisors[size]


def size_raw(size: Size, place: Place, setting: Setting, environment: Environment) -> int | Missing:
    """A size as this environment trades it, in the units the venue is paid in; Missing when what an eth
    buys is not known."""
    if isinstance(setting.market.usdg_per_eth_raw, Missing) and place.venue.quote == "usdg":
        return setting.market.usdg_per_eth_raw
    wei = size_wei(size, setting.policy) * environment.size_bps // BPS
    raw = quote_raw(wei, place.venue.quote, setting.market)
    return Missing("node", "what an eth buys of the money side is not known") if raw is None else raw


# --- plans ----------------------------------------------------------------------------------------


def buy_plan(place: Place, setting: Setting, environment: Environment, size: Size, amount_raw: int) -> Plan:
    """Trip 1: the buy alone, in the next block; for the sizes that may be sold, what is held later, and at
    last what its approvals take."""
    block = _buy_block(place, setting, environment, size, amount_raw)
    if size not in MAIN_SIZES:
        return Plan(environment, (block,))
    policy, watched, passed_s = setting.policy, [], 0
    for round_s in (policy.later_s, policy.hour_s, policy.day_s):
        delay_s = round_s + late_s(environment, round_s)
        call = Call(setting.token, abi.call(erc20.BALANCE_OF, environment.buyer))
        step = Step(f"held-{round_s}", environment.reader, call, policy.read_gas_limit)
        watched.append(PlannedBlock(delay_s - passed_s, (step,)))
        passed_s = delay_s
    *approvals, _ = place.file.plan_sell(place.venue, setting.token, setting.contracts, 1, environment.buyer)
    limit = policy.transfer_gas_limit
    steps = [Step(f"approve-{n}", environment.buyer, call, limit) for n, call in enumerate(approvals)]
    return Plan(environment, (block, *watched, PlannedBlock(1, tuple(steps))))


def sell_plan(
    place: Place,
    setting: Setting,
    environment: Environment,
    probe: Probe,
    amount_raw: int,
    bought: Bought,
    sell_at: Place | None = None,
) -> Plan:
    """Trip 2: the same buy by a wallet of its own, then in a later block the sell of a share of it.

    The token is asked for no balance before the sell: a balance is told to a transaction, and a token may
    take notice of who asks. Trip 1 has told what is held. The approval stands in a block of its own, as a
    wallet's does. ``sell_at``: another place than where it was bought.
    """
    out = sell_at or place
    environment = _measured(environment, bought)
    environment = cast(environment, f"{probe.size} {probe.delay_s} {probe.share_bps} {probe.seller}")
    held_raw = sellable(bought, probe, setting.policy)
    planned_raw = planned(probe, held_raw)
    first = _buy_block(place, setting, environment, probe.size, amount_raw, bought.gas)
    if probe.seller == "receiver":
        blocks = _handed_blocks(place, setting, environment, probe, (held_raw, planned_raw))
        return Plan(environment, (first, *blocks))
    buyer = environment.buyer
    whole = probe.share_bps == BPS
    approvals, sells = _sell_steps(out, setting, environment, buyer, planned_raw, whole)
    held = _quote_read("held", out, setting, environment, buyer)
    after = _token_read("after-token", setting, environment, buyer)
    early_s = probe.delay_s + late_s(environment, probe.delay_s) - environment.approved_s
    return Plan(
        environment,
        (
            first,
            _company(place, setting, environment, probe.size, PlannedBlock(early_s, tuple(approvals))),
            PlannedBlock(environment.approved_s, (held, *sells, after)),
        ),
    )


_APPROVE_GAS = 90_000
"""Half as much again as an approval usually takes."""


def _measured(environment: Environment, bought: Bought) -> Environment:
    """The environment with the gas its approvals carry: at least what was measured and half again."""
    least = environment.approve_gas_limit or _APPROVE_GAS
    return replace(environment, approve_gas_limit=max(least, bought.approve_gas * 3 // 2))


def _company(
    place: Place, setting: Setting, environment: Environment, size: Size, block: PlannedBlock
) -> PlannedBlock:
    """The block with two strangers' buys before its calls, half of the round size each. What the launchpad
    launches is its own code, which knows no trap for that."""
    if not environment.company or place.venue.kind == "launchpad_curve" or slot_of(place.venue, setting):
        return block
    round_raw, limit = (
        quote_raw(size_wei(size, setting.policy), place.venue.quote, setting.market),
        setting.policy.company_gas_limit,
    )
    half_raw = max(1, (round_raw or 0) // 2)
    others = (environment.receiver, cast(environment, "company").receiver)
    steps: list[Step] = []
    for number, other in enumerate(others):
        name = f"company-{number}"
        if not place.pays_eth():
            route = route_to(place.venue.quote, setting)
            fund = amm_v3.plan_eth_to(setting.contracts, route, half_raw, environment.gas_float_wei)
            steps.append(Step(f"{name}-fund", other, fund, limit))
        calls = place.file.plan_buy(place.venue, setting.token, setting.contracts, half_raw, other)
        steps += [Step(f"{name}-{n}", other, call, limit) for n, call in enumerate(calls)]
    worth_wei = size_wei("probe", setting.policy) + 2 * environment.gas_float_wei
    balances = tuple((other, worth_wei + _gas_float(setting.policy, environment)) for other in others)
    return replace(block, steps=(*steps, *block.steps), balances=(*block.balances, *balances))


def _handed_blocks(
    place: Place, setting: Setting, environment: Environment, probe: Probe, amounts_raw: tuple[int, int]
) -> tuple[PlannedBlock, PlannedBlock]:
    """All of it, the first amount, to another wallet, and in a later block that wallet sells the second."""
    handed_raw, sold_raw = amounts_raw
    receiver, policy = environment.receiver, setting.policy
    handed = Call(setting.token, abi.call(erc20.TRANSFER, receiver, handed_raw))
    transfer = Step("transfer", environment.buyer, handed, policy.transfer_gas_limit)
    before = _quote_read("handed", place, setting, environment, receiver)
    approvals, sells = _sell_steps(place, setting, environment, receiver, sold_raw, whole=False)
    after = _token_read("after-token", setting, environment, receiver)
    then = PlannedBlock(policy.later_s, (before, *approvals, *sells, after))
    return PlannedBlock(probe.delay_s, (transfer,)), then


def handed_plan(
    place: Place, setting: Setting, environment: Environment, size: Size, amount_raw: int, bought: Bought
) -> Plan:
    """Trip 2: the same buy handed on, and what arrived. Where that sells nobody asks: a token may notice."""
    environment = cast(environment, f"{size} handed")
    receiver, policy = environment.receiver, setting.policy
    handed = Call(setting.token, abi.call(erc20.TRANSFER, receiver, max(1, bought.received_raw)))
    first = _buy_block(place, setting, environment, size, amount_raw, bought.gas)
    steps = (
        Step("transfer", environment.buyer, handed, policy.transfer_gas_limit),
        _token_read("handed-token", setting, environment, receiver),
    )
    return Plan(environment, (first, PlannedBlock(policy.later_s, steps)))


def cast(environment: Environment, part: str) -> Environment:
    """The environment with wallets of their own for one part: a token that picks its victims by their
    address cannot be asked until it says yes."""

    def wallet(address: Address) -> Address:
        return Address("0x" + abi.keccak(bytes.fromhex(address[2:]) + part.encode())[12:].hex())

    return replace(environment, buyer=wallet(environment.buyer), receiver=wallet(environment.receiver))


def late_s(environment: Environment, delay_s: int) -> int:
    """How much later than the round delay this environment sells: more, the longer it waits."""
    return environment.late_s * max(1, delay_s // 240)


def pull_plan(
    place: Place, setting: Setting, environment: Environment, size: Size, amount_raw: int, bought: Bought
) -> Plan:
    """Trip 2: the same buy, then the router's own pull of the wallet's tokens, to hear the token's word.

    Where a hook takes part in swaps it is also seen what arrives of that, and of as much paid out: what a
    swap takes beyond it is the pool's own keep.
    """
    buyer, limit, contracts = environment.buyer, setting.policy.approve_gas_limit, setting.contracts
    bought_raw = max(1, bought.received_raw)
    sell_calls = place.file.plan_sell(place.venue, setting.token, contracts, bought_raw, buyer)
    puller, pull = place.file.plan_pull(place.venue, setting.token, contracts, bought_raw, buyer)
    steps = [Step(f"approve-{n}", buyer, call, limit) for n, call in enumerate(sell_calls[:-1])]
    most = setting.policy.hook_gas_limit if place.venue.rival_hook() else limit
    pulled = Step("pull", puller, pull, most)
    payers = [(puller, WEI_PER_ETH)]
    if place.venue.keeps_by_hook():
        payer, _ = place.file.plan_pay_out(place.venue, setting.token, contracts, buyer)
        paid_out = Call(setting.token, abi.call(erc20.TRANSFER, environment.receiver, bought_raw))
        before, after = (_token_read(f"pool-{n}", setting, environment, payer) for n in ("before", "after"))
        last = _token_read("paid-out", setting, environment, environment.receiver)
        left = _token_read("pull-left", setting, environment, buyer)
        steps += [before, pulled, after, left, Step("pay-out", payer, paid_out, most), last]
        payers.append((payer, WEI_PER_ETH))
    else:
        steps.append(pulled)
    first = _buy_block(place, setting, environment, size, amount_raw, bought.gas)
    # The puller is paid for here and not at the start: a router hands what eth it holds to the buyer.
    then = PlannedBlock(setting.policy.later_s, tuple(steps), tuple(payers))
    return Plan(environment, (first, then))


def pay_out_plan(places: tuple[Place, ...], setting: Setting, environment: Environment) -> Plan:
    """Trip 1: every candidate's own hand-over of one unit, to hear the token's word on buys."""
    steps, payers = [], {}
    for number, place in enumerate(places):
        payer, call = place.file.plan_pay_out(
            place.venue, setting.token, setting.contracts, environment.buyer
        )
        payers[payer] = WEI_PER_ETH
        steps.append(Step(f"pay-out-{number}", payer, call, setting.policy.approve_gas_limit))
    return Plan(environment, (PlannedBlock(_BUY_DELAY_S, tuple(steps), tuple(payers.items())),))


def planned(probe: Probe, bought_raw: int) -> int:
    """How much of what was bought the probe's sell asks for; never zero."""
    return max(1, bought_raw * probe.share_bps // BPS)


def sellable(bought: Bought, probe: Probe, policy: Policy) -> int:
    """What the buyer holds when this probe sells: what it was told in trip 1, else what it bought."""
    delays_s = (policy.later_s, policy.hour_s, policy.day_s)
    if probe.seller == "receiver" or len(bought.held_later_raw) != len(delays_s):
        return bought.received_raw
    return bought.held_later_raw[delays_s.index(probe.delay_s)]


def _gas_float(policy: Policy, environment: Environment) -> int:
    """Enough to pay for the dearest sell's every attempt, were gas ever that dear."""
    return max(environment.gas_float_wei, 2 * sum(policy.sell_gas_ladder) * environment.max_fee_wei)


def _start_wei(setting: Setting, environment: Environment, size: Size) -> int:
    return size_wei(size, setting.policy) + _gas_float(setting.policy, environment)


def _buy_block(
    place: Place,
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
    steps = [] if sweep is None else [Step("sweep", environment.reader, sweep, policy.transfer_gas_limit)]
    steps += _fund_steps(place, setting, environment, size, amount_raw)
    # Once its gas is known the token's balances are known too.
    asked = 2 if known_gas is None else 1
    steps += _reads("start", place, setting, environment, buyer)[:asked]
    calls = place.file.plan_buy(place.venue, setting.token, setting.contracts, amount_raw, buyer)
    steps += [Step(f"allow-{n}", buyer, call, policy.approve_gas_limit) for n, call in enumerate(calls[:-1])]
    most = policy.hook_gas_limit if place.venue.rival_hook() else policy.buy_gas_limit
    limit = most if known_gas is None else min(most, known_gas * 3 // 2)
    steps.append(Step("buy", buyer, calls[-1], limit))
    steps += _reads("bought", place, setting, environment, buyer)[:asked]
    balances = (
        (buyer, _start_wei(setting, environment, size)),
        (environment.receiver, _gas_float(policy, environment)),
        (environment.reader, WEI_PER_ETH),
    )
    nonces = ((buyer, environment.nonce), (environment.receiver, environment.nonce))
    slot = slot_of(place.venue, setting)
    given = () if slot is None else ((slot.asset, slot.of(buyer), amount_raw),)
    return PlannedBlock(_BUY_DELAY_S, tuple(steps), balances, nonces, given)


def _fund_steps(
    place: Place, setting: Setting, environment: Environment, size: Size, amount_raw: int
) -> list[Step]:
    """The money a venue is paid in, really bought with eth, and what else the wallet is to hold."""
    policy, buyer, contracts = setting.policy, environment.buyer, setting.contracts
    to_usdg, steps = route_to("usdg", setting), []
    if environment.own_usdg_raw and to_usdg:
        held = amm_v3.plan_eth_to(
            contracts, to_usdg, environment.own_usdg_raw, environment.gas_float_wei // 4
        )
        steps.append(Step("hold", buyer, held, policy.transfer_gas_limit))
    if not place.pays_eth() and slot_of(place.venue, setting) is None:
        most_wei = _start_wei(setting, environment, size) - _gas_float(policy, environment) // 2
        route = route_to(place.venue.quote, setting)
        fund = amm_v3.plan_eth_to(contracts, route, amount_raw, most_wei)
        steps.append(Step("fund", buyer, fund, policy.transfer_gas_limit))
    return steps


def slot_of(venue: Venue, setting: Setting) -> BalanceSlot | None:
    """Where the wallet is given what this venue is paid in; None: it buys that."""
    return next((slot for slot in setting.slots if slot.asset == venue.quote_address), None)


def route_to(quote: Quote, setting: Setting) -> tuple[Hop, ...]:
    """The v3 pools that lead from weth to a money; empty where no way is known."""
    if quote == "usdg":
        fee = setting.market.pool_fee_pips
        return () if fee is None else (Hop(setting.contracts.usdg, fee),)
    rate = rate_of(quote, setting.market)
    return () if rate is None else rate.route


def _sell_steps(
    place: Place,
    setting: Setting,
    environment: Environment,
    seller: Address,
    amount_raw: int,
    whole: bool,
) -> tuple[list[Step], list[Step]]:
    """Approvals, and the sell under each gas limit it is tried under, with what the seller has then: the
    first that goes through is what a wallet meets, and whatever comes of a later one nobody would send.
    """
    policy = setting.policy
    approve_raw = abi.MAX_UINT256 if environment.approves_all else None
    *approvals, sell = place.file.plan_sell(
        place.venue, setting.token, setting.contracts, max(1, amount_raw), seller, approve_raw
    )
    gas = environment.approve_gas_limit
    steps = [Step(f"approve-{n}", seller, call, gas) for n, call in enumerate(approvals)]
    limits = (environment.sell_gas_ladder or policy.sell_gas_ladder) if whole else policy.part_gas_ladder
    if place.venue.rival_hook():
        limits = tuple(dict.fromkeys(min(limit, policy.hook_gas_limit) for limit in limits))
    attempts = []
    for n, limit in enumerate(limits):
        attempts.append(Step(f"sell-{n}", seller, sell, limit))
        attempts.append(_quote_read(f"after-{n}", place, setting, environment, seller))
    return steps, attempts


def _quote_read(moment: str, place: Place, setting: Setting, environment: Environment, of: Address) -> Step:
    return _reads(moment, place, setting, environment, of)[0]


def _reads(moment: str, place: Place, setting: Setting, environment: Environment, of: Address) -> list[Step]:
    contracts = setting.contracts
    if place.pays_eth():
        quote = Call(contracts.multicall3, abi.call(GET_ETH_BALANCE, of))
    else:
        quote = Call(place.venue.quote_address, abi.call(erc20.BALANCE_OF, of))
    return [
        Step(f"{moment}-quote", environment.reader, quote, setting.policy.read_gas_limit),
        _token_read(f"{moment}-token", setting, environment, of),
    ]


def _token_read(label: str, setting: Setting, environment: Environment, of: Address) -> Step:
    tokens = Call(setting.token, abi.call(erc20.BALANCE_OF, of))
    return Step(label, environment.reader, tokens, setting.policy.read_gas_limit)
