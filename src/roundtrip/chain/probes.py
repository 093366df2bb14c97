"""What one probe's simulation consists of, and what its balances say. Pure.

Balances decide, read by a wallet of its own that neither trades nor is funded by the trader; gas is
added back. The quote side is read in wei for venues paid in eth, else in the quote's units.
"""

import re
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.evidence import (
    Bought,
    BuyOutcome,
    CellOutcome,
    Environment,
    Market,
    Missing,
    Probe,
    Refused,
    Size,
    Sold,
    Venue,
)
from roundtrip.domain.policy import Policy
from roundtrip.domain.price import quote_raw
from roundtrip.domain.readings import MAIN_SIZES
from roundtrip.domain.types import BPS, WEI_PER_ETH, Address
from roundtrip.venues import abi, amm_v3
from roundtrip.venues.base import Call, Contracts, VenueFile

from .simulate import Plan, PlannedBlock, Results, Step

GET_ETH_BALANCE = "0x4d2301cc"
TRANSFER = "0xa9059cbb"

_BUY_DELAY_S = 1
"""The buy stands in the next block, a second on: timestamps must rise."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What every probe of one token shares."""

    token: Address
    contracts: Contracts
    market: Market
    policy: Policy


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


def size_raw(size: Size, place: Place, setting: Setting) -> int | Missing:
    """A size in the units the venue is paid in; Missing when what an eth buys is not known."""
    if isinstance(setting.market.usdg_per_eth_raw, Missing) and not place.pays_eth():
        return setting.market.usdg_per_eth_raw
    raw = quote_raw(size_wei(size, setting.policy), place.venue.quote, setting.market)
    return Missing("node", "no route to the money side") if raw is None else raw


# --- plans ----------------------------------------------------------------------------------------


def buy_plan(place: Place, setting: Setting, environment: Environment, size: Size, amount_raw: int) -> Plan:
    """Trip 1: the buy alone, in the next block; for the sizes that may be sold, what is held later."""
    block = _buy_block(place, setting, environment, size, amount_raw)
    if size not in MAIN_SIZES:
        return Plan(environment, (block,))
    policy, watched, passed_s = setting.policy, [], 0
    for delay_s in (policy.later_s, policy.hour_s, policy.day_s):
        call = Call(setting.token, abi.call(amm_v3.BALANCE_OF, environment.buyer))
        step = Step(f"held-{delay_s}", environment.reader, call, policy.read_gas_limit)
        watched.append(PlannedBlock(delay_s - passed_s, (step,)))
        passed_s = delay_s
    return Plan(environment, (block, *watched))


def sell_plan(
    place: Place, setting: Setting, environment: Environment, probe: Probe, amount_raw: int, bought_raw: int
) -> Plan:
    """Trip 2: the same buy, then in a later block the sell of a share of ``bought_raw``."""
    planned_raw = planned(probe, bought_raw)
    buyer, receiver = environment.buyer, environment.receiver
    first = _buy_block(place, setting, environment, probe.size, amount_raw)
    steps: list[Step] = []
    between: list[PlannedBlock] = []
    if probe.seller == "receiver":
        handed = Call(setting.token, abi.call(TRANSFER, receiver, planned_raw))
        transfer = Step("transfer", buyer, handed, setting.policy.transfer_gas_limit)
        between.append(PlannedBlock(probe.delay_s, (transfer,)))
        steps += _reads("handed", place, setting, environment, receiver)
        # What arrives is not known beforehand where transfers are taxed: the largest part that the
        # receiver turns out to hold is sold.
        for number, divisor in enumerate(_HANDED_DIVISORS):
            steps += _sell_steps(place, setting, receiver, planned_raw // divisor, f"-{number}", whole=False)
        steps += _reads("after", place, setting, environment, receiver)
    else:
        steps += _reads("held", place, setting, environment, buyer)
        steps += _sell_steps(place, setting, buyer, planned_raw, "", whole=probe.share_bps == BPS)
        steps += _reads("after", place, setting, environment, buyer)
    # A token may take notice of a receipt in the same block; who sells has always held for a block.
    delay_s = setting.policy.later_s if between else probe.delay_s
    return Plan(environment, (first, *between, PlannedBlock(delay_s, tuple(steps))))


def pull_plan(
    place: Place, setting: Setting, environment: Environment, size: Size, amount_raw: int, bought_raw: int
) -> Plan:
    """Trip 2: the same buy, then the router's own pull of the wallet's tokens, to hear the token's word."""
    buyer, limit, contracts = environment.buyer, setting.policy.approve_gas_limit, setting.contracts
    sell_calls = place.file.plan_sell(place.venue, setting.token, contracts, bought_raw, buyer)
    puller, pull = place.file.plan_pull(place.venue, setting.token, contracts, bought_raw, buyer)
    steps = [Step(f"approve-{n}", buyer, call, limit) for n, call in enumerate(sell_calls[:-1])]
    steps.append(Step("pull", puller, pull, limit))
    first = _buy_block(place, setting, environment, size, amount_raw)
    # The puller is paid for here and not at the start: a router hands what eth it holds to the buyer.
    then = PlannedBlock(setting.policy.later_s, tuple(steps), ((puller, WEI_PER_ETH),))
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


_HANDED_DIVISORS = (1, 2, 10)


def planned(probe: Probe, bought_raw: int) -> int:
    """How much of what was bought the probe's sell asks for; never zero."""
    return max(1, bought_raw * probe.share_bps // BPS)


def _gas_float(policy: Policy, environment: Environment) -> int:
    """Enough to pay for the dearest sell's every attempt, were gas ever that dear."""
    return max(policy.gas_float_wei, 2 * sum(policy.sell_gas_ladder) * environment.max_fee_wei)


def _start_wei(setting: Setting, environment: Environment, size: Size) -> int:
    return size_wei(size, setting.policy) + _gas_float(setting.policy, environment)


def _buy_block(
    place: Place, setting: Setting, environment: Environment, size: Size, amount_raw: int
) -> PlannedBlock:
    policy, buyer = setting.policy, environment.buyer
    steps: list[Step] = []
    if not place.pays_eth():
        most_wei = _start_wei(setting, environment, size) - _gas_float(setting.policy, environment) // 2
        fee = setting.market.pool_fee_pips or 0
        fund = amm_v3.plan_eth_to_usdg(setting.contracts, fee, amount_raw, most_wei)
        steps.append(Step("fund", buyer, fund, policy.transfer_gas_limit))
    steps += _reads("start", place, setting, environment, buyer)
    calls = place.file.plan_buy(place.venue, setting.token, setting.contracts, amount_raw)
    steps += [Step(f"allow-{n}", buyer, call, policy.approve_gas_limit) for n, call in enumerate(calls[:-1])]
    steps.append(Step("buy", buyer, calls[-1], policy.buy_gas_limit))
    steps += _reads("bought", place, setting, environment, buyer)
    balances = (
        (buyer, _start_wei(setting, environment, size)),
        (environment.receiver, _gas_float(policy, environment)),
        (environment.reader, WEI_PER_ETH),
    )
    nonces = ((buyer, environment.nonce), (environment.receiver, environment.nonce))
    return PlannedBlock(_BUY_DELAY_S, tuple(steps), balances, nonces)


def _sell_steps(
    place: Place, setting: Setting, seller: Address, amount_raw: int, mark: str, whole: bool
) -> list[Step]:
    policy = setting.policy
    *approvals, sell = place.file.plan_sell(
        place.venue, setting.token, setting.contracts, max(1, amount_raw), seller
    )
    steps = [
        Step(f"approve{mark}-{n}", seller, call, policy.approve_gas_limit) for n, call in enumerate(approvals)
    ]
    limits = policy.sell_gas_ladder if whole else (policy.partial_sell_gas_limit,)
    return steps + [Step(f"sell{mark}-{n}", seller, sell, limit) for n, limit in enumerate(limits)]


def _reads(moment: str, place: Place, setting: Setting, environment: Environment, of: Address) -> list[Step]:
    contracts = setting.contracts
    if place.pays_eth():
        quote = Call(contracts.multicall3, abi.call(GET_ETH_BALANCE, of))
    else:
        quote = Call(place.venue.quote_address, abi.call(amm_v3.BALANCE_OF, of))
    tokens = Call(setting.token, abi.call(amm_v3.BALANCE_OF, of))
    limit = setting.policy.read_gas_limit
    return [
        Step(f"{moment}-quote", environment.reader, quote, limit),
        Step(f"{moment}-token", environment.reader, tokens, limit),
    ]


# --- readings -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Balances:
    quote_raw: int
    token_raw: int


def _balances(results: Results, moment: str) -> _Balances | Missing:
    quote = abi.uint_at(results[f"{moment}-quote"].data, 0) if results[f"{moment}-quote"].ok else None
    tokens = abi.uint_at(results[f"{moment}-token"].data, 0) if results[f"{moment}-token"].ok else None
    if quote is None:
        return Missing("node", "a balance of the money side could not be read")
    if tokens is None:
        return Missing("token", "the token does not tell balances")
    return _Balances(quote, tokens)


def read_buy(
    results: Results | Missing, place: Place, environment: Environment, amount_raw: int
) -> BuyOutcome:
    """What the buy of trip 1 came to."""
    if isinstance(results, Missing):
        return results
    refused = _first_refusal(results, (("fund", "fund"), ("allow-0", "approve"), ("buy", "buy")))
    if refused is not None:
        # The money for it could not be had by a real swap: nothing is known of the venue.
        return Missing("node", "no route to the money side") if refused.step == "fund" else refused
    start, after = _balances(results, "start"), _balances(results, "bought")
    if isinstance(start, Missing):
        return start
    if isinstance(after, Missing):
        return after
    gas_wei = _gas_between(results, ("allow-", "buy"), place, environment)
    paid = start.quote_raw - after.quote_raw - gas_wei
    received = after.token_raw - start.token_raw
    later = [result for label, result in results.items() if re.fullmatch(r"held-\d+", label)]
    held = tuple(abi.uint_at(result.data, 0) if result.ok else None for result in later)
    return Bought(
        paid_raw=paid,
        received_raw=received,
        offered_raw=amount_raw,
        gas=results["buy"].gas_used,
        held_later_raw=tuple(received if raw is None else raw for raw in held),
    )


def sellable(bought: Bought, probe: Probe, policy: Policy) -> int:
    """What the buyer holds when this probe sells: what it was told in trip 1, else what it bought."""
    delays_s = (policy.later_s, policy.hour_s, policy.day_s)
    if probe.seller == "receiver" or len(bought.held_later_raw) != len(delays_s):
        return bought.received_raw
    return bought.held_later_raw[delays_s.index(probe.delay_s)]


def read_sell(
    results: Results | Missing,
    place: Place,
    environment: Environment,
    probe: Probe,
    amount_raw: int,
    bought_raw: int,
) -> CellOutcome:
    """What a probe of trip 2 came to."""
    bought = read_buy(results, place, environment, amount_raw)
    if not isinstance(bought, Bought) or isinstance(results, Missing):
        assert not isinstance(bought, Bought)
        return bought
    moment: Literal["handed", "held"] = "held"
    if probe.seller == "receiver":
        moment = "handed"
        refused = _first_refusal(results, (("transfer", "transfer"),))
        if refused is not None:
            return refused
    sells = [(label, result) for label, result in results.items() if label.startswith("sell")]
    done = [(label, result) for label, result in sells if result.ok]
    if not done:
        approval = _first_refusal(results, (("approve-0", "approve"), ("approve-0-0", "approve")))
        return approval or Refused("sell", sells[-1][1].reason(), sells[-1][1].gas_used)
    before, after = _balances(results, moment), _balances(results, "after")
    if isinstance(before, Missing):
        return before
    if isinstance(after, Missing):
        return after
    gas_wei = _gas_between(results, ("approve", "sell"), place, environment)
    planned_raw = before.token_raw if probe.seller == "receiver" else planned(probe, bought_raw)
    return Sold(
        paid_raw=bought.paid_raw,
        held_raw=bought.received_raw if probe.seller == "receiver" else before.token_raw,
        planned_raw=planned_raw,
        sold_raw=before.token_raw - after.token_raw,
        back_raw=after.quote_raw - before.quote_raw + gas_wei,
        buy_gas=bought.gas,
        sell_gas=done[0][1].gas_used,
    )


def read_told(results: Results | Missing, label: str) -> Refused | Missing | None:
    """What the token said to a move made directly; None when it did not object."""
    if isinstance(results, Missing):
        return results
    told = results[label]
    leg: _Leg = "sell" if label == "pull" else "buy"
    return None if told.ok else Refused(leg, told.reason(), told.gas_used)


_Leg = Literal["fund", "buy", "approve", "transfer", "sell"]


def _first_refusal(results: Results, legs: tuple[tuple[str, _Leg], ...]) -> Refused | None:
    for label, step in legs:
        result = results.get(label)
        if result is not None and not result.ok:
            return Refused(step, result.reason(), result.gas_used)
    return None


def _gas_between(results: Results, prefixes: tuple[str, ...], place: Place, environment: Environment) -> int:
    """What the wallet paid for gas in these calls, in wei; nothing where money is not eth."""
    if not place.pays_eth():
        return 0
    price = min(environment.max_fee_wei, environment.base_fee_wei + environment.tip_wei)
    return price * sum(result.gas_used for label, result in results.items() if label.startswith(prefixes))
