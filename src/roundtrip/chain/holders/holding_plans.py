"""Sells of tokens that somebody holds: who sells them, what is simulated, and what it came to. Pure.

Tokens that are given where they lie in storage are looked at in a simulation of its own, at the second in
which they are sold: a token that is asked for a balance may take notice of it. And beside them a wallet that
really bought sells: a token can tell it from one whose balance was written.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from roundtrip.chain.simulate import legs, outcomes
from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.chain.simulate.legs import Setting, VenuePlace, cast, gas_float
from roundtrip.chain.simulate.outcomes import SellStart
from roundtrip.chain.simulate.probe_plans import buy_block
from roundtrip.chain.simulate.request import Plan, PlannedBlock, Results, SimulatedStep
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, Address
from roundtrip.domain.check.evidence import CellOutcome, Environment, Missing, Probe, RefusedCall, Sold
from roundtrip.venues import abi

_NEXT_S = 1
_BUY_GAS = 1_000_000
"""A buy carries half as much again: what the dearest honest tokens take."""
_LITTLE_APPROVE_GAS = 90_000
"""Half as much again as an approval usually takes."""
_RUNGS = tuple(16**power for power in range(6))
"""What a small buy brings is not known before it is to be sold: it is tried with all of the holding, and with
ever less; the last rung is less than a small buy brings of a holding worth a hundred eth."""
_SMALL = _RUNGS[1:3]
"""Parts of the holding that wallets sell which were given them: they tell a price that size does not push."""
_NEAR_BPS = 100
"""A price that is less than so much below another one is the same."""
_GIVEN = "given-"


# --- who sells -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seller:
    """A wallet that sells ``amount_raw``: its own tokens, or where there is a ``slot`` what it is given
    there."""

    environment: Environment
    amount_raw: int
    slot: BalanceSlot | None

    def wallet(self) -> Address:
        """Its address."""
        return self.environment.buyer

    def storage_given(self) -> tuple[tuple[Address, str, int], ...]:
        """What is written into the token's storage for it."""
        return () if self.slot is None else ((self.slot.asset, self.slot.of(self.wallet()), self.amount_raw),)


def look_plan(setting: Setting, sellers: tuple[Seller, ...]) -> Plan:
    """What the token says that each of them holds, when they sell."""
    env = sellers[0].environment
    reads = (legs.token_read(f"holds-{n}", setting, env, one.wallet()) for n, one in enumerate(sellers))
    given = tuple(word for one in sellers for word in one.storage_given())
    balances = ((env.reader, WEI_PER_ETH),)
    return Plan(env, (PlannedBlock(_NEXT_S + env.approved_s, tuple(reads), balances, storage=given),))


def read_look(results: Results | Missing, number: int, seller: Seller) -> int | Missing:
    """What the seller holds: as much as it sells, or more; of what it was given, exactly that."""
    if isinstance(results, Missing):
        return results
    found = results[f"holds-{number}"]
    held_raw = abi.uint_at(found.data, 0) if found.ok else None
    if held_raw is None:
        return Missing("token", "the token does not tell balances")
    if seller.slot is not None and held_raw != seller.amount_raw:
        return Missing("token", "the token does not confirm what a wallet was given")
    if held_raw < seller.amount_raw:
        return Missing("token", "its seller does not hold as much")
    return held_raw


# --- its sell --------------------------------------------------------------------------------------


def sell_plan(place: VenuePlace, setting: Setting, seller: Seller, fund: bool) -> Plan:
    """All that it sells, in the next blocks. ``fund``: it is given eth for gas; who was given tokens always
    is."""
    env, own = seller.environment, seller.wallet()
    then, *rest = legs.exit_blocks(
        place, setting, env, _whole(env), seller.amount_raw, place, clear_first=seller.slot is None
    )
    sweep = place.file.plan_sweep(setting.contracts, env.reader)
    limit = setting.policy.transfer_gas_limit
    swept = () if sweep is None or sweep.to == own else (SimulatedStep("sweep", env.reader, sweep, limit),)
    balances: tuple[tuple[Address, int], ...] = ((env.reader, WEI_PER_ETH),)
    if fund or seller.slot is not None:
        balances = (*balances, (own, 2 * gas_float(setting.policy, env)))
    nonces = () if seller.slot is None else ((own, env.nonce),)
    little = () if seller.slot is not None else _again(then.steps)
    steps = (*swept, *then.steps, *little)
    first = replace(then, delay_s=_NEXT_S, steps=steps, balances=balances, nonces=nonces)
    return Plan(env, (replace(first, storage=seller.storage_given()), *rest))


def read_sell(results: Results | Missing, place: VenuePlace, seller: Seller, held_raw: int) -> CellOutcome:
    """What it came to. ``held_raw``: what it held before."""
    if isinstance(results, Missing):
        return results
    had = SellStart(0, seller.amount_raw, 0, prior_raw=held_raw - seller.amount_raw)
    return outcomes.read_exit(results, place, seller.environment, _whole(seller.environment), had)


def _whole(environment: Environment) -> Probe:
    return Probe("probe", _NEXT_S + environment.approved_s, BPS, 0)


# --- a wallet that really bought -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HoldingTrade:
    """So many tokens were sold for so much."""

    sold_raw: int
    back_raw: int

    def pays_less(self, other: "HoldingTrade", by_bps: int) -> bool:
        """Whether a token brings less here than there, by at least so much."""
        return self.back_raw * other.sold_raw * BPS < other.back_raw * self.sold_raw * (BPS - by_bps)


@dataclass(frozen=True, slots=True)
class Control:
    """``bought``: what the sell of a wallet came to that really bought before. ``given``: sells of some parts
    by wallets that were given them; nothing where nobody can be given any."""

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
    """A small real buy, ``wait_s`` later the sell of what it brought, and after it sells of small parts of
    ``amount_raw`` by wallets that are given them. What the buy brings is asked of nobody: the sell is tried
    with ever less."""
    policy = setting.policy
    known_gas = policy.hook_gas_limit if place.venue.rival_hook() else _BUY_GAS
    bought = buy_block(place, setting, env, "thousandth", paid_raw, known_gas)
    approvals: list[SimulatedStep] = []
    attempts = [legs.quote_read("held", place, setting, env, env.buyer)]
    for number, tried_raw in enumerate(rungs(amount_raw)):
        calls = place.file.plan_sell(place.venue, setting.token, setting.contracts, tried_raw, env.buyer)
        if number == 0:
            limit = env.approve_gas_limit
            approvals = [
                SimulatedStep(f"approve-{n}", env.buyer, call, limit) for n, call in enumerate(calls[:-1])
            ]
            approvals += _again(approvals)
        attempts.append(SimulatedStep(f"sell-{number}", env.buyer, calls[-1], policy.hook_gas_limit))
        attempts.append(legs.quote_read(f"after-{number}", place, setting, env, env.buyer))
    attempts.append(legs.token_read("after-token", setting, env, env.buyer))
    early_s = max(1, wait_s - env.approved_s)
    blocks = [bought, PlannedBlock(early_s, tuple(approvals)), PlannedBlock(env.approved_s, tuple(attempts))]
    if slot is not None:
        blocks += _given_blocks(place, setting, env, slot, amount_raw)
    return Plan(env, tuple(blocks))


def _again(steps: Iterable[SimulatedStep]) -> list[SimulatedStep]:
    """The approvals among these once more, with as little gas as wallets send: a token may want the one or
    the other. Where the second is refused the first one stands."""
    return [
        replace(step, label=f"again-{step.label}", gas_limit=_LITTLE_APPROVE_GAS)
        for step in steps
        if step.label.startswith("approve-")
    ]


def rungs(amount_raw: int) -> tuple[int, ...]:
    """The amounts that are tried, the largest first."""
    return tuple(dict.fromkeys(max(1, amount_raw // part) for part in _RUNGS))


def _small(env: Environment, amount_raw: int, slot: BalanceSlot | None) -> list[Seller]:
    parts = sorted({max(1, amount_raw // part) for part in _SMALL})
    return [Seller(cast(env, f"{_GIVEN}{n}"), raw, slot) for n, raw in enumerate(parts)]


def _given_blocks(
    place: VenuePlace, setting: Setting, env: Environment, slot: BalanceSlot, amount_raw: int
) -> list[PlannedBlock]:
    """The smallest part first: it is hardly pushed down by the others."""
    early: list[SimulatedStep] = []
    late: list[SimulatedStep] = []
    sellers = _small(env, amount_raw, slot)
    # Nobody pays for more gas than that, and what burns it all costs the node the less.
    frugal = replace(env, sell_gas_ladder=(setting.policy.hook_gas_limit,))
    for number, one in enumerate(sellers):
        own, name = one.wallet(), f"{_GIVEN}{number}-"
        approvals, sells = legs.sell_steps(place, setting, frugal, own, one.amount_raw, whole=True)
        held = legs.quote_read("held", place, setting, env, own)
        left = legs.token_read("after-token", setting, env, own)
        early += [replace(step, label=name + step.label) for step in approvals]
        late += [replace(step, label=name + step.label) for step in (held, *sells, left)]
    balances = tuple((one.wallet(), 2 * gas_float(setting.policy, env)) for one in sellers)
    given = tuple(word for one in sellers for word in one.storage_given())
    return [
        PlannedBlock(_NEXT_S, tuple(early), balances, storage=given),
        PlannedBlock(env.approved_s, tuple(late)),
    ]


def read_control(
    results: Results | Missing, place: VenuePlace, plan: Plan, slot: BalanceSlot | None, amount_raw: int
) -> Control:
    """What both came to."""
    if isinstance(results, Missing):
        return Control(results, ())
    env, given = plan.environment, []
    for number, one in enumerate(_small(env, amount_raw, slot) if slot is not None else ()):
        name = f"{_GIVEN}{number}-"
        own = {label.removeprefix(name): told for label, told in results.items() if label.startswith(name)}
        had = SellStart(0, one.amount_raw, 0)
        given.append(outcomes.read_exit(own, place, env, _whole(env), had))
    return Control(_read_bought(results, place, env, rungs(amount_raw)), tuple(given))


NOT_BOUGHT = "nobody can buy it now, so what a wallet that bought it gets is not known"


def _read_bought(
    results: Results, place: VenuePlace, env: Environment, tried_raw: tuple[int, ...]
) -> HoldingTrade | RefusedCall | Missing:
    if any(not told.ok for label, told in results.items() if label.startswith(("fund", "allow-", "buy"))):
        return Missing("token", NOT_BOUGHT)
    done = next((n for n in range(len(tried_raw)) if results[f"sell-{n}"].ok), None)
    if done is None:
        last, left = results[f"sell-{len(tried_raw) - 1}"], results["after-token"]
        left_raw = abi.uint_at(left.data, 0) if left.ok else None
        if left_raw is None:
            return Missing("token", "the token does not tell balances")
        if left_raw < tried_raw[-1]:
            return Missing("token", "a small buy brings too little of it to be sold again")
        return RefusedCall("sell", last.reason(), last.gas_used)
    before = "held" if done == 0 else f"after-{done - 1}"
    own = {
        "held-quote": results[f"{before}-quote"],
        "sell-0": results[f"sell-{done}"],
        "after-0-quote": results[f"after-{done}-quote"],
        "after-token": results["after-token"],
    }
    found = outcomes.read_exit(own, place, env, _whole(env), SellStart(0, tried_raw[done], 0))
    return HoldingTrade(tried_raw[done], found.back_raw) if isinstance(found, Sold) else found


# --- what it is worth ------------------------------------------------------------------------------


def worth_raw(sold: CellOutcome, control: Control | None, least_sold_bps: int) -> int | RefusedCall | Missing:
    """What a sell brings a wallet that really holds the tokens, in the venue's money. ``control``: None where
    the seller's sell is the truth itself. Where wallets that bought get a worse price than those that were
    given theirs, it is worth as much less. ``least_sold_bps``: who keeps more than the rest has not sold."""
    if not isinstance(sold, Sold):
        return sold if isinstance(sold, Missing) else _judge_refusal(sold, control)
    if sold.back_raw <= 0:
        return RefusedCall("sell", "nothing comes back for it", sold.sell_gas)
    if sold.sold_raw * BPS < sold.held_raw * least_sold_bps:
        return RefusedCall("sell", "most of it stays unsold", sold.sell_gas)
    if control is None:
        return sold.back_raw
    real = control.bought
    if not isinstance(real, HoldingTrade):
        return real
    if real.back_raw <= 0:
        return RefusedCall("sell", "nothing comes back for it", 0)
    whole = HoldingTrade(sold.planned_raw, sold.back_raw)
    told = [HoldingTrade(one.planned_raw, one.back_raw) for one in control.given if isinstance(one, Sold)]
    fair = whole
    for one in told:
        fair = one if fair.pays_less(one, 0) else fair
    if not real.pays_less(fair, _NEAR_BPS):
        return sold.back_raw
    return sold.back_raw * real.back_raw * fair.sold_raw // (real.sold_raw * fair.back_raw)


def _judge_refusal(sold: RefusedCall, control: Control | None) -> RefusedCall | Missing:
    """A refusal stands where something tells that it is not the giving that is refused: who bought is refused
    too, or others sell who were given some. Else it tells of nobody who bought."""
    if control is None or isinstance(control.bought, RefusedCall):
        return sold
    if any(isinstance(one, Sold) for one in control.given):
        return sold
    if isinstance(control.bought, Missing):
        return control.bought
    return Missing("token", "it sells from a wallet that bought it and not from one that was given it")
