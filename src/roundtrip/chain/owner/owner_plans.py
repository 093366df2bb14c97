"""Plans of hostile owner calls between a buy and its sell, and the reading of their results. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from roundtrip.chain.simulate import outcomes
from roundtrip.chain.simulate.legs import Setting, VenuePlace, cast, sellable
from roundtrip.chain.simulate.probe_plans import trade_plan
from roundtrip.chain.simulate.request import Plan, PlannedBlock, Results, SimulatedStep
from roundtrip.chain.simulate.token_facts import IMPLEMENTATION_SLOT
from roundtrip.domain.base.types import WEI_PER_ETH, Address
from roundtrip.domain.check.evidence import Caller, CellOutcome, CompletedBuy, Environment, OwnerCall, Probe
from roundtrip.venues import abi
from roundtrip.venues.base import Call

from .known_setters import Manner
from .owner_setters import Setter, bits, is_number

STAND_IN_CODE = "0x60003560e01c6352d1902d14601357600080fd5b7f" + IMPLEMENTATION_SLOT[2:] + "60005260206000f3"
"""Code that reverts on every call but proxiableUUID(), which upgrades call (EIP-1822). Any owner can deploy
such a contract."""

_OWNER_WEI = 100 * WEI_PER_ETH
_RISING = (
    10, 25, 49, 99, 100, 250, 500, 999, 2500, 5000, 9000, 9999, 10_000, 9 * 10**17, 2**64, 2**128,
)  # fmt: skip
"""Shares in units of 1/100, 1/1000, 1/10,000 and 1/1e18, below usual bounds, and numbers that are no share.
As many as an ordinary block has room for."""
_FALLING = (10**18, 10**9, 10**6, 1000, 10, 1)
_BESIDE_ADDRESSES = (99, 10_000, 2**128)
"""Numbers that are passed where a function takes an address, too."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The account that makes a hostile call."""

    by: Caller
    address: Address


@dataclass(frozen=True, slots=True)
class OwnerTry:
    """One simulation: a function, how it is called, and the caller. ``target``: the contract that is called;
    None: the token."""

    setter: Setter
    manner: Manner
    actor: Actor
    target: Address | None = None


@dataclass(frozen=True, slots=True)
class OwnerProbeSell:
    """The trade into which the calls are inserted."""

    place: VenuePlace
    setting: Setting
    environment: Environment
    probe: Probe
    amount_raw: int
    bought: CompletedBuy


@dataclass(frozen=True, slots=True)
class CallData:
    """One call's data, and its values in words."""

    data: str
    words: str


@dataclass(frozen=True, slots=True)
class PlannedTry:
    """A try and its plan. ``attempt`` None: the control, which calls only a view. ``passed``: the calls in
    order. ``stand_in``: the address of ``STAND_IN_CODE``, where the plan places it."""

    attempt: OwnerTry | None
    plan: Plan
    passed: tuple[CallData, ...]
    stand_in: Address


def tries(setters: tuple[Setter, ...], owner: Actor, upgrader: Actor, most: int) -> tuple[OwnerTry, ...]:
    """Up to ``most`` tries: every function in its most hostile manner before any in its second."""
    pending = [(setter, list(setter.manners())) for setter in setters]
    attempts: list[OwnerTry] = []
    while pending and len(attempts) < most:
        for setter, manners in pending:
            attempts.append(OwnerTry(setter, manners.pop(0), upgrader if setter.upgrades() else owner))
        pending = [(setter, manners) for setter, manners in pending if manners]
    return tuple(attempts[:most])


def plan(sell: OwnerProbeSell, actor: Actor, attempt: OwnerTry | None) -> PlannedTry:
    """The buy, the calls in their own block a second later, and the sell at the time of a sell without
    them."""
    label = "control" if attempt is None else f"{attempt.setter.selector} {attempt.manner}"
    env = cast(sell.environment, f"owner {label}")
    policy, token, place = sell.setting.policy, sell.setting.token, sell.place
    passed: tuple[CallData, ...] = (CallData(_TOTAL_SUPPLY, ""),)
    if attempt is not None:
        passed = hostile_calls(attempt, env, sell)
    limit = policy.owner_call_gas_limit
    sender = (attempt.actor if attempt is not None else actor).address
    target = token if attempt is None or attempt.target is None else attempt.target
    steps = (
        SimulatedStep(f"owner-{n}", sender, Call(target, call.data), limit) for n, call in enumerate(passed)
    )
    # The receiver takes no part in this trade, so its address can carry the code.
    codes = ((env.receiver, STAND_IN_CODE),) if attempt is not None and attempt.manner == "code" else ()
    between = PlannedBlock(1, tuple(steps), ((sender, _OWNER_WEI),), codes=codes)
    trade = trade_plan(place, sell.setting, env, sell.probe, sell.amount_raw, sell.bought, between=between)
    return PlannedTry(attempt, trade, passed, env.receiver)


_TOTAL_SUPPLY = "0x18160ddd"


def read_control(planned: PlannedTry, sell: OwnerProbeSell, results: Results) -> CellOutcome:
    """The sell's outcome when the owner does nothing."""
    return _read_sell(planned, sell, results)


def read(planned: PlannedTry, sell: OwnerProbeSell, results: Results) -> OwnerCall:
    """The calls that succeeded, and the sell's outcome after them."""
    attempt = planned.attempt
    assert attempt is not None
    succeeded = [call for n, call in enumerate(planned.passed) if results[f"owner-{n}"].ok]
    return OwnerCall(
        function=attempt.setter.name,
        passed=succeeded[-1].words if succeeded else "",
        by=attempt.actor.by,
        sender=attempt.actor.address,
        buyer=planned.plan.environment.buyer,
        calls=tuple(call.data for call in succeeded),
        outcome=_read_sell(planned, sell, results) if succeeded else None,
        stand_in=planned.stand_in if attempt.manner == "code" else None,
        target=attempt.target,
    )


def _read_sell(planned: PlannedTry, sell: OwnerProbeSell, results: Results) -> CellOutcome:
    env, policy = planned.plan.environment, sell.setting.policy
    return outcomes.read_sell(results, sell.place, env, sell.probe, sell.bought, policy)


# --- hostile values -------------------------------------------------------------------------------


def hostile_calls(attempt: OwnerTry, env: Environment, sell: OwnerProbeSell) -> tuple[CallData, ...]:
    """The calls of one manner, in order; a call that reverts changes nothing."""
    setter, manner = attempt.setter, attempt.manner
    held_raw = max(1, sellable(sell.bought, sell.probe, sell.setting.policy))
    with_address = any(part.startswith("address") for part in setter.types)
    sizes = [bits(part) - part.startswith("int") for part in setter.types if is_number(part)]
    numbers: tuple[int, ...] = (0,)
    if sizes:
        numbers = _numbers(manner, with_address, held_raw, 2 ** min(sizes) - 1)
    targets: tuple[tuple[Address, str], ...] = ((env.buyer, ""),)
    if with_address:
        targets = _targets(manner, env, sell)
    calls = []
    for target, name in targets:
        for number in numbers:
            values = list(_values(setter.types, target, attempt.actor.address, number, manner))
            words = [name] if with_address else []
            words += [str(number)] if sizes else []
            words += [str(manner != "off").lower()] if "bool" in setter.types else []
            calls.append(CallData(setter.selector + encode(setter.types, values), ", ".join(words)))
    return tuple(calls)


def _targets(manner: Manner, env: Environment, sell: OwnerProbeSell) -> tuple[tuple[Address, str], ...]:
    """The addresses to pass, each with its words."""
    if manner == "code":
        return ((env.receiver, "a contract without functions"),)
    contracts, token, place = sell.setting.contracts, sell.setting.token, sell.place
    payer, _ = place.file.plan_pay_out(place.venue, token, contracts, env.buyer)
    puller, _ = place.file.plan_pull(place.venue, token, contracts, 1, env.buyer)
    counterparties = dict.fromkeys((payer, puller))
    return ((env.buyer, "the buyer"), *((address, "where it trades") for address in counterparties))


def _numbers(manner: Manner, with_address: bool, held_raw: int, most: int) -> tuple[int, ...]:
    """The numbers to pass, in order. None is so large that a sum overflows: 2**256 - 1 would be no
    cooldown."""
    if manner == "zero":
        return (0,)
    if manner == "down":
        falling: tuple[int, ...] = (held_raw // 2, held_raw // 10, *_FALLING)
        return tuple(sorted({number for number in falling if number <= most}, reverse=True))
    if with_address:
        return (*(n for n in (held_raw, *_BESIDE_ADDRESSES) if n <= most),)
    return (*(n for n in _RISING if n <= most), *((most,) if most < _RISING[-1] else ()))


def _values(
    types: tuple[str, ...], target: Address, actor: Address, number: int, manner: Manner
) -> Iterator[int | str | bool]:
    """One value per argument. Of two addresses the second is the caller's, as in a forced transfer to it."""
    last = max((n for n, part in enumerate(types) if is_number(part)), default=0)
    has_target = False
    for n, part in enumerate(types):
        if part.startswith("address"):
            yield actor if has_target else target
            has_target = True
        elif part.startswith("bool"):
            yield manner != "off"
        elif is_number(part):
            value = 0 if manner == "last" and n != last else number
            yield value << (256 - bits(part)) if part.startswith("bytes") else value
        else:
            yield 0


def encode(types: tuple[str, ...], values: list[int | str | bool]) -> str:
    """Arguments as hex without a selector; an array holds its value once. Bytes are those of a ``0x`` text,
    else empty, as text is."""
    heads, tails, tails_at = [], "", abi.WORD * len(types)
    for part, value in zip(types, values, strict=True):
        if part.endswith("[]"):
            tail = abi.word(0) if part.startswith(("bytes[", "string[")) else abi.word(1) + abi.word(value)
        elif part in ("bytes", "string"):
            tail = abi.bytes_tail(value) if part == "bytes" and isinstance(value, str) else abi.word(0)
        else:
            heads.append(abi.word(value))
            continue
        heads.append(abi.word(tails_at + len(tails) // 2))
        tails += tail
    return "".join(heads) + tails
