"""Plans and reads simulated sells of a holding, to value it. Pure.

The seller is an account that holds the tokens, or a wallet whose balance is written into the token's storage
("given tokens"). A token can tell such a wallet from one that bought, so a control compares both. Balances
are read in a simulation of their own, at the second of the sell: a token may notice balance queries."""

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import structs

from roundtrip.chain.simulate import legs, outcomes
from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.chain.simulate.legs import Setting, VenuePlace, cast, gas_float
from roundtrip.chain.simulate.outcomes import SellStart
from roundtrip.chain.simulate.probe_plans import buy_block
from roundtrip.chain.simulate.request import Plan, PlannedBlock, Results, SimulatedStep
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, Address
from roundtrip.domain.check.evidence import CellOutcome, Environment, Missing, Probe, RefusedCall, Sold
from roundtrip.venues import abi

_NEXT_BLOCK_S = 1
_BUY_GAS = 1_000_000
"""The gas that a buy is taken to use. Its limit is 1.5 times that, enough for the most expensive honest
token."""
_LOW_APPROVE_GAS = 90_000
"""1.5 times the gas that an approval usually uses."""
_DIVISORS = tuple(16**power for power in range(6))
"""What a small buy brings is not known when its sell is planned: the sell is tried with the whole holding,
then with a 16th, a 256th and so on. The smallest part is less than a small buy brings, up to a holding worth
a hundred eth."""
_SMALL_DIVISORS = _DIVISORS[1:3]
"""The parts of the holding that wallets with given tokens sell: too small to move the price."""
_EQUAL_PRICE_BPS = 100
"""A price that is lower by less than this counts as equal."""
_GIVEN_PREFIX = "given-"
"""Begins the labels of the steps of wallets with given tokens."""


# --- sellers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seller:
    """A wallet that sells ``amount_raw``: its own tokens or, if there is a ``slot``, tokens written there."""

    environment: Environment
    amount_raw: int
    slot: BalanceSlot | None

    def wallet(self) -> Address:
        """Its address."""
        return self.environment.buyer

    def storage_given(self) -> tuple[tuple[Address, str, int], ...]:
        """The storage slots of the token that are written for it."""
        return () if self.slot is None else ((self.slot.asset, self.slot.of(self.wallet()), self.amount_raw),)


def balance_plan(setting: Setting, sellers: tuple[Seller, ...]) -> Plan:
    """Reads each seller's balance as the token reports it, at the time of the sell."""
    env = sellers[0].environment
    reads = (legs.token_read(f"holds-{n}", setting, env, seller.wallet()) for n, seller in enumerate(sellers))
    storage = tuple(word for seller in sellers for word in seller.storage_given())
    balances = ((env.reader, WEI_PER_ETH),)
    return Plan(env, (PlannedBlock(_NEXT_BLOCK_S + env.approved_s, tuple(reads), balances, storage=storage),))


def read_balance(results: Results | Missing, number: int, seller: Seller) -> int | Missing:
    """The balance of the seller with this number in ``balance_plan``. Missing where it is less than the
    amount to sell or, for given tokens, not exactly that amount."""
    if isinstance(results, Missing):
        return results
    result = results[f"holds-{number}"]
    held_raw = abi.uint_at(result.data, 0) if result.ok else None
    if held_raw is None:
        return Missing("token", "the token does not return balances")
    if seller.slot is not None and held_raw != seller.amount_raw:
        return Missing("token", "the token does not confirm the balance that a wallet was given")
    if held_raw < seller.amount_raw:
        return Missing("token", "its seller holds less than that")
    return held_raw


# --- the sell --------------------------------------------------------------------------------------


def sell_plan(place: VenuePlace, setting: Setting, seller: Seller, fund: bool) -> Plan:
    """The sell of the whole amount, in the next blocks. ``fund``: the wallet is given eth for gas; one with
    given tokens always is."""
    env, wallet = seller.environment, seller.wallet()
    sell_block, *rest = legs.exit_blocks(
        place, setting, env, _whole_probe(env), seller.amount_raw, place, clear_first=seller.slot is None
    )
    sweep = place.file.plan_sweep(setting.contracts, env.reader)
    limit = setting.policy.transfer_gas_limit
    swept = () if sweep is None or sweep.to == wallet else (SimulatedStep("sweep", env.reader, sweep, limit),)
    balances: tuple[tuple[Address, int], ...] = ((env.reader, WEI_PER_ETH),)
    if fund or seller.slot is not None:
        balances = (*balances, (wallet, 2 * gas_float(setting.policy, env)))
    nonces = () if seller.slot is None else ((wallet, env.nonce),)
    repeated = () if seller.slot is not None else _repeat_approvals(sell_block.steps)
    all_steps = (*swept, *sell_block.steps, *repeated)
    first_block = structs.replace(
        sell_block, delay_s=_NEXT_BLOCK_S, steps=all_steps, balances=balances, nonces=nonces
    )
    return Plan(env, (structs.replace(first_block, storage=seller.storage_given()), *rest))


def read_sell(results: Results | Missing, place: VenuePlace, seller: Seller, held_raw: int) -> CellOutcome:
    """The outcome of the sell. ``held_raw``: the balance before it."""
    if isinstance(results, Missing):
        return results
    start = SellStart(0, seller.amount_raw, 0, prior_raw=held_raw - seller.amount_raw)
    return outcomes.read_exit(results, place, seller.environment, _whole_probe(seller.environment), start)


def _whole_probe(environment: Environment) -> Probe:
    return Probe("probe", _NEXT_BLOCK_S + environment.approved_s, BPS, 0)


# --- a real buyer -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HoldingTrade:
    """A sell of ``sold_raw`` for ``back_raw``."""

    sold_raw: int
    back_raw: int

    def pays_less(self, other: "HoldingTrade", by_bps: int) -> bool:
        """Whether its price is lower than the other's, by more than ``by_bps``."""
        return self.back_raw * other.sold_raw * BPS < other.back_raw * self.sold_raw * (BPS - by_bps)


@dataclass(frozen=True, slots=True)
class Control:
    """What a holding's sell is compared with. ``bought``: the sell of a wallet that bought in the same
    simulation. ``given``: sells of small parts by wallets with given tokens; empty if no balance can be
    written."""

    bought: HoldingTrade | RefusedCall | Missing
    given: tuple[CellOutcome, ...]


def control_plan(
    place: VenuePlace,
    setting: Setting,
    env: Environment,
    amount_raw: int,
    slot: BalanceSlot | None,
    paid_raw: int,
    wait_s: int,
) -> Plan:
    """A small real buy, ``wait_s`` later the sell of its proceeds, and after it sells of small parts of
    ``amount_raw`` by wallets with given tokens. The proceeds of the buy are not read: the sell is tried with
    ever smaller amounts."""
    policy = setting.policy
    known_gas = policy.hook_gas_limit if place.venue.rival_hook() else _BUY_GAS
    buy = buy_block(place, setting, env, "thousandth", paid_raw, known_gas)
    approvals: list[SimulatedStep] = []
    attempts = [legs.quote_read("held", place, setting, env, env.buyer)]
    for number, tried_raw in enumerate(tried_amounts(amount_raw)):
        calls = place.file.plan_sell(place.venue, setting.token, setting.contracts, tried_raw, env.buyer)
        if number == 0:
            limit = env.approve_gas_limit
            approvals = [
                SimulatedStep(f"approve-{n}", env.buyer, call, limit) for n, call in enumerate(calls[:-1])
            ]
            approvals += _repeat_approvals(approvals)
        attempts.append(SimulatedStep(f"sell-{number}", env.buyer, calls[-1], policy.hook_gas_limit))
        attempts.append(legs.quote_read(f"after-{number}", place, setting, env, env.buyer))
    attempts.append(legs.token_read("after-token", setting, env, env.buyer))
    early_s = max(1, wait_s - env.approved_s)
    blocks = [buy, PlannedBlock(early_s, tuple(approvals)), PlannedBlock(env.approved_s, tuple(attempts))]
    if slot is not None:
        blocks += _given_blocks(place, setting, env, slot, amount_raw)
    return Plan(env, tuple(blocks))


def _repeat_approvals(steps: Iterable[SimulatedStep]) -> list[SimulatedStep]:
    """The approvals among the steps once more, with as little gas as wallets send: a token may require one or
    the other. If the second is refused, the first one stands."""
    return [
        structs.replace(step, label=f"again-{step.label}", gas_limit=_LOW_APPROVE_GAS)
        for step in steps
        if step.label.startswith("approve-")
    ]


def tried_amounts(amount_raw: int) -> tuple[int, ...]:
    """The amounts that the real buyer tries to sell, the largest first."""
    return tuple(dict.fromkeys(max(1, amount_raw // part) for part in _DIVISORS))


def _small_sellers(env: Environment, amount_raw: int, slot: BalanceSlot | None) -> list[Seller]:
    parts = sorted({max(1, amount_raw // part) for part in _SMALL_DIVISORS})
    return [Seller(cast(env, f"{_GIVEN_PREFIX}{n}"), raw, slot) for n, raw in enumerate(parts)]


def _given_blocks(
    place: VenuePlace, setting: Setting, env: Environment, slot: BalanceSlot, amount_raw: int
) -> list[PlannedBlock]:
    """The sells by wallets with given tokens, the smallest first, so that the others do not move its
    price."""
    early: list[SimulatedStep] = []
    late: list[SimulatedStep] = []
    sellers = _small_sellers(env, amount_raw, slot)
    # No wallet pays for more gas, and a token that burns all of it costs the node less.
    limits = (setting.policy.hook_gas_limit,)
    for number, seller in enumerate(sellers):
        wallet, name = seller.wallet(), f"{_GIVEN_PREFIX}{number}-"
        approvals, sells = legs.sell_steps(place, setting, env, wallet, seller.amount_raw, limits)
        held = legs.quote_read("held", place, setting, env, wallet)
        after = legs.token_read("after-token", setting, env, wallet)
        early += [structs.replace(step, label=name + step.label) for step in approvals]
        late += [structs.replace(step, label=name + step.label) for step in (held, *sells, after)]
    balances = tuple((seller.wallet(), 2 * gas_float(setting.policy, env)) for seller in sellers)
    storage = tuple(word for seller in sellers for word in seller.storage_given())
    return [
        PlannedBlock(_NEXT_BLOCK_S, tuple(early), balances, storage=storage),
        PlannedBlock(env.approved_s, tuple(late)),
    ]


def read_control(
    results: Results | Missing, place: VenuePlace, plan: Plan, slot: BalanceSlot | None, amount_raw: int
) -> Control:
    """Reads the results of ``control_plan``."""
    if isinstance(results, Missing):
        return Control(results, ())
    env, given_outcomes = plan.environment, []
    for number, seller in enumerate(_small_sellers(env, amount_raw, slot) if slot is not None else ()):
        name = f"{_GIVEN_PREFIX}{number}-"
        seller_results = {
            label.removeprefix(name): result for label, result in results.items() if label.startswith(name)
        }
        start = SellStart(0, seller.amount_raw, 0)
        given_outcomes.append(outcomes.read_exit(seller_results, place, env, _whole_probe(env), start))
    return Control(_read_bought(results, place, env, tried_amounts(amount_raw)), tuple(given_outcomes))


NOT_BOUGHT = "no wallet can buy it now, so the result for a buyer is not known"


def _read_bought(
    results: Results, place: VenuePlace, env: Environment, tried_raw: tuple[int, ...]
) -> HoldingTrade | RefusedCall | Missing:
    if any(not result.ok for label, result in results.items() if label.startswith(("fund", "allow-", "buy"))):
        return Missing("token", NOT_BOUGHT)
    sold_index = next((n for n in range(len(tried_raw)) if results[f"sell-{n}"].ok), None)
    if sold_index is None:
        last, after_token = results[f"sell-{len(tried_raw) - 1}"], results["after-token"]
        after_raw = abi.uint_at(after_token.data, 0) if after_token.ok else None
        if after_raw is None:
            return Missing("token", "the token does not return balances")
        if after_raw < tried_raw[-1]:
            return Missing("token", "a small buy brings too little of it to sell again")
        return RefusedCall("sell", last.reason(), last.gas_used)
    quote_label = "held" if sold_index == 0 else f"after-{sold_index - 1}"
    renamed = {
        "held-quote": results[f"{quote_label}-quote"],
        "sell-0": results[f"sell-{sold_index}"],
        "after-0-quote": results[f"after-{sold_index}-quote"],
        "after-token": results["after-token"],
    }
    outcome = outcomes.read_exit(
        renamed, place, env, _whole_probe(env), SellStart(0, tried_raw[sold_index], 0)
    )
    return HoldingTrade(tried_raw[sold_index], outcome.back_raw) if isinstance(outcome, Sold) else outcome


# --- the value ------------------------------------------------------------------------------


def worth_raw(sold: CellOutcome, control: Control | None, least_sold_bps: int) -> int | RefusedCall | Missing:
    """What a sell brings a wallet that really holds the tokens, in the venue's money. ``control`` None: the
    seller's own sell is decisive. If wallets that bought get a worse price than those with given tokens, the
    value is reduced in proportion. ``least_sold_bps``: a sell of a smaller part of the holding does not
    count."""
    if not isinstance(sold, Sold):
        return sold if isinstance(sold, Missing) else _judge_refusal(sold, control)
    if sold.back_raw <= 0:
        return RefusedCall("sell", "the sell returns nothing", sold.sell_gas)
    if sold.sold_raw * BPS < sold.held_raw * least_sold_bps:
        return RefusedCall("sell", "most of it stays unsold", sold.sell_gas)
    if control is None:
        return sold.back_raw
    bought = control.bought
    if not isinstance(bought, HoldingTrade):
        return bought
    if bought.back_raw <= 0:
        return RefusedCall("sell", "the sell returns nothing", 0)
    largest = HoldingTrade(sold.planned_raw, sold.back_raw)
    given_trades = [
        HoldingTrade(outcome.planned_raw, outcome.back_raw)
        for outcome in control.given
        if isinstance(outcome, Sold)
    ]
    best = largest
    for trade in given_trades:
        best = trade if best.pays_less(trade, 0) else best
    if not bought.pays_less(best, _EQUAL_PRICE_BPS):
        return sold.back_raw
    return sold.back_raw * bought.back_raw * best.sold_raw // (bought.sold_raw * best.back_raw)


def _judge_refusal(sold: RefusedCall, control: Control | None) -> RefusedCall | Missing:
    """A refusal counts if the given balance is not its cause: a real buyer is refused too, or other wallets
    with given tokens sell. Else it says nothing about real buyers."""
    if control is None or isinstance(control.bought, RefusedCall):
        return sold
    if any(isinstance(outcome, Sold) for outcome in control.given):
        return sold
    if isinstance(control.bought, Missing):
        return control.bought
    return Missing("token", "it sells from a wallet that bought it, but not from one that was given it")
