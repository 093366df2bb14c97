"""One holding's sells: what is asked of the node for it, and what the answers say that it is worth."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.holders import holding_plans
from roundtrip.chain.holders.holding_plans import Control, Seller
from roundtrip.chain.rpc.client import RpcError
from roundtrip.chain.simulate import legs, token_facts
from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.chain.simulate.legs import Setting, VenuePlace, cast
from roundtrip.chain.simulate.request import Plan, Results
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import PoolFacts, Venue
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    CellOutcome,
    Environment,
    LaunchRecord,
    Missing,
    PoolLaunch,
    RefusedCall,
)
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.services.runtime.context import CheckContext

from .token_batches import BatchRequest, Told

MOST_PLACES = 3
"""On so many places a holding is sold, each by itself."""
_MOST_HOLDERS = 3

NO_HOLDER = Missing("token", "nobody is known who holds as much of it, and nobody can be given any")
NOTHING = RefusedCall("sell", "nothing comes back for it", 0)
TOO_MUCH = RefusedCall("sell", "with what was sold just before it is more than sells at once", 0)
NO_PLACE = RefusedCall("sell", "it trades nowhere that pays in eth or usdg", 0)
NOT_TOLD = Missing("node", "the node did not answer")


@dataclass(frozen=True, slots=True)
class HoldingCase:
    """A holding and what its sells are made with. ``holders``: who is known to hold the token, where nobody
    can be given any. ``places``: where it may trade, ``listed`` of them are known to be. ``complete``: no
    pool is unknown. ``at``: where alone it is sold, while anything of it sells there. ``environment``: how
    it is sold; ``other``: how those trade who are unlike that."""

    means: CheckContext
    head: ChainHead
    token: Address
    amount_raw: int
    before_raw: int
    held_s: int
    at: str | None
    seller: Address | None
    slot: BalanceSlot | None
    holders: tuple[Address, ...]
    environment: Environment
    other: Environment
    places: tuple[VenuePlace, ...]
    listed: int
    complete: bool

    def own(self) -> VenuePlace | None:
        """Where alone it is to be sold; None: nowhere in particular, or that is not known any more."""
        return next((one for one in self.places if self.at is not None and one.venue.at() == self.at), None)

    def first(self) -> tuple[VenuePlace, ...]:
        """Where it is sold before anything was asked."""
        own = self.own()
        return self.known_places() if own is None else (own,)

    def known_places(self) -> tuple[VenuePlace, ...]:
        """The first of those that are known to be."""
        return self.places[: min(self.listed, MOST_PLACES)]

    def setting(self) -> Setting:
        """What all its plans share."""
        return Setting(self.token, self.means.contracts, self.head.market, self.means.policy)

    def sellers(self, amount_raw: int) -> tuple[Seller, ...]:
        """Who sells so much: one of them is enough."""
        env = self.environment
        if self.seller is not None:
            return (Seller(replace(env, buyer=self.seller), amount_raw, None),)
        if self.slot is not None:
            return (Seller(cast(env, f"holding {amount_raw}"), amount_raw, self.slot),)
        known = self.holders[:_MOST_HOLDERS]
        return tuple(Seller(replace(env, buyer=one), amount_raw, None) for one in known)

    def amounts(self) -> tuple[int, ...]:
        """What is sold: all of it, with what was sold just before; and that alone."""
        whole = self.before_raw + self.amount_raw
        return (whole, self.before_raw) if self.before_raw > 0 else (whole,)

    def needs_control(self, venue: Venue) -> bool:
        """Whether a wallet that really bought has to be seen selling too. What a real seller gets is the
        truth itself; a launchpad's tokens are its own code, which knows no buyers."""
        return self.seller is None and not venue.kind.startswith("launchpad_")

    def control(self, place: VenuePlace) -> Plan | Missing:
        """Its plan."""
        setting, policy = self.setting(), self.means.policy
        env = replace(self.other, approve_gas_limit=policy.approve_gas_limit, own_usdg_raw=0)
        paid_raw = legs.size_raw("thousandth", place, setting, env)
        if isinstance(paid_raw, Missing):
            return paid_raw
        wait_s = max(policy.later_s, min(self.held_s, policy.day_s))
        whole_raw = self.before_raw + self.amount_raw
        return holding_plans.control_plan(place, setting, env, whole_raw, self.slot, paid_raw, wait_s)

    def addresses_with_code(self) -> tuple[Address, ...]:
        """Whose code must be known: those that may count blocks, where no simulation lets them pass."""
        if self.head.known_dialect().lets_numbers_pass():
            return ()
        hooks = (place.venue.hook for place in self.places if place.venue.hook is not None)
        return tuple(dict.fromkeys((self.token, *hooks)))


# --- what is asked ---------------------------------------------------------------------------------


def sell_requests(case: HoldingCase, places: Sequence[VenuePlace]) -> list[BatchRequest]:
    """Everything that tells what the holding sells for at these places."""
    setting = case.setting()
    requests = [BatchRequest("facts", plan=_facts_plan(case))]
    block = case.head.block
    coded = {*case.addresses_with_code(), *(() if case.seller or case.slot else case.holders[:_MOST_HOLDERS])}
    requests += [BatchRequest(("code", one), call=token_facts.code_call(one, block)) for one in sorted(coded)]
    if coded:
        requests.append(BatchRequest("admin", call=token_facts.admin_call(case.token, block)))
    for amount_raw in case.amounts():
        sellers = case.sellers(amount_raw)
        if not sellers:
            continue
        requests.append(BatchRequest(("look", amount_raw), plan=holding_plans.look_plan(setting, sellers)))
        for place in places:
            for number, one in enumerate(sellers):
                for fund in (False, True) if one.slot is None else (True,):
                    plan = holding_plans.sell_plan(place, setting, one, fund)
                    key = ("sell", amount_raw, place, number, fund)
                    requests.append(BatchRequest(key, plan=plan, place=place))
    for place in places:
        plan_or_gap = case.control(place) if case.needs_control(place.venue) else None
        if isinstance(plan_or_gap, Plan):
            requests.append(BatchRequest(("control", place), plan=plan_or_gap, place=place))
    return requests


def _facts_plan(case: HoldingCase) -> Plan:
    contracts, policy = case.means.contracts, case.means.policy
    return token_facts.facts_plan(case.token, case.places, contracts, case.environment, policy)


# --- what was answered -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HoldingSells:
    """``states`` of all places, and for each place that was tried what each of ``Case.amounts`` comes to
    there, in its money."""

    states: Mapping[VenuePlace, PoolFacts | Missing]
    values: Mapping[VenuePlace, tuple[int | RefusedCall | Missing, ...]]

    def with_more(self, other: "HoldingSells") -> "HoldingSells":
        """With places that were tried later."""
        return HoldingSells({**self.states, **other.states}, {**self.values, **other.values})


def read_sells(
    case: HoldingCase, places: Sequence[VenuePlace], told: Mapping[Hashable, Told]
) -> HoldingSells:
    """What the answers to ``sell_requests`` say."""
    results = _results(told, "facts")
    contracts = case.means.contracts
    states = {
        place: token_facts.read_pool_facts(results, number, place, case.token, contracts)
        for number, place in enumerate(case.places)
    }
    launch = token_facts.read_launch(results, case.token, case.places, None, contracts)
    out = _insiders(results, told, launch)
    values = {}
    for place in places:
        control = _control(case, place, told, launch)
        values[place] = tuple(_value(case, place, raw, told, control, out) for raw in case.amounts())
    return HoldingSells(states, values)


def _results(told: Mapping[Hashable, Told], key: Hashable) -> Results | Missing:
    answer = told.get(key, NOT_TOLD)
    return answer if isinstance(answer, dict | Missing) else NOT_TOLD


def _answer(told: Mapping[Hashable, Told], key: Hashable) -> msgspec.Raw | RpcError:
    answer = told.get(key, NOT_TOLD)
    return RpcError(0, NOT_TOLD.why) if isinstance(answer, dict | Missing) else answer


def _insiders(
    results: Results | Missing, told: Mapping[Hashable, Told], launch: AnyLaunch | Missing | None
) -> frozenset[object]:
    """Those behind the token: what holds for them holds for nobody else."""
    own = token_facts.read_token_facts(results, RpcError(0, ""), _answer(told, "admin"))
    behind: set[object] = {own.owner, own.proxy_admin}
    if isinstance(launch, LaunchRecord | PoolLaunch):
        behind.add(launch.deployer)
    return frozenset(behind)


def _control(
    case: HoldingCase, place: VenuePlace, told: Mapping[Hashable, Told], launch: AnyLaunch | Missing | None
) -> Control | None:
    if case.seller is not None:
        return None
    if not case.needs_control(place.venue):
        if isinstance(launch, LaunchRecord):
            return None
        unknown = Missing("node", "its launch is not known")
        return Control(launch if isinstance(launch, Missing) else unknown, ())
    plan = case.control(place)
    if isinstance(plan, Missing):
        return Control(plan, ())
    gap = _block_gap(case, place, plan, told, launch)
    if gap is not None:
        return Control(gap, ())
    whole_raw = case.before_raw + case.amount_raw
    return holding_plans.read_control(_results(told, ("control", place)), place, plan, case.slot, whole_raw)


def _block_gap(
    case: HoldingCase,
    place: VenuePlace,
    plan: Plan,
    told: Mapping[Hashable, Told],
    launch: AnyLaunch | Missing | None,
) -> Missing | None:
    """Why nothing is known of what it does in later blocks: its code, or its pool's hook, may count them."""
    counted = case.addresses_with_code()
    if not counted or case.head.known_dialect().waits(tuple(block.delay_s for block in plan.blocks)):
        return None
    trusted = {case.token} if isinstance(launch, LaunchRecord | PoolLaunch) else set()
    parties = [one for one in (case.token, place.venue.hook) if one is not None and one not in trusted]
    gaps = (token_facts.block_count(_answer(told, ("code", one))) for one in parties)
    return next((gap for gap in gaps if gap is not None), None)


def _value(
    case: HoldingCase,
    place: VenuePlace,
    amount_raw: int,
    told: Mapping[Hashable, Told],
    control: Control | None,
    out: frozenset[object],
) -> int | RefusedCall | Missing:
    """Of several sellers the first that sells."""
    tried: list[int | RefusedCall | Missing] = []
    look = _results(told, ("look", amount_raw))
    for number, one in enumerate(case.sellers(amount_raw)):
        if case.seller is None and one.slot is None:
            code = token_facts.read_code(_answer(told, ("code", one.wallet())))
            if one.wallet() in out or code != b"":
                continue
        held_raw = holding_plans.read_look(look, number, one)
        if isinstance(held_raw, Missing):
            tried.append(held_raw)
            continue
        sold = _read_sell(place, one, held_raw, told, ("sell", amount_raw, place, number))
        least_bps = case.means.policy.sellable_share_bps
        tried.append(holding_plans.worth_raw(sold, control, least_bps))
    best = next((one for one in tried if isinstance(one, int)), None)
    refused = next((one for one in tried if isinstance(one, RefusedCall)), None)
    return best if best is not None else refused or next(iter(tried), NO_HOLDER)


def _read_sell(
    place: VenuePlace, seller: Seller, held_raw: int, told: Mapping[Hashable, Told], key: tuple[Hashable, ...]
) -> CellOutcome:
    """As the seller stands; with eth for gas where he has too little."""
    as_is = _results(told, (*key, False))
    given = _results(told, (*key, True))
    results = given if isinstance(as_is, Missing) else as_is
    return holding_plans.read_sell(results, place, seller, held_raw)


def deeper(case: HoldingCase, one: HoldingSells) -> tuple[VenuePlace, ...]:
    """Places that are among the deepest and were not tried; none while it sells where it is to be sold."""
    own = case.own()
    if own is not None and not _is_over(own, one):
        return ()
    there = [place for place in case.places if _is_there(one.states[place])]
    ranked = sorted(there, key=lambda place: _depth_wei(case, place, one), reverse=True)
    wanted = dict.fromkeys((*case.known_places(), *ranked[:MOST_PLACES]))
    return tuple(place for place in wanted if place not in one.values)


def _is_over(own: VenuePlace, one: HoldingSells) -> bool:
    """Whether nothing of it sells any more where it is to be sold. What the node did not tell is not known,
    and where a part sells the rest is too much."""
    if not _may_be_there(one.states[own]):
        return True
    return not any(
        isinstance(value, int) or (isinstance(value, Missing) and value.fault == "node")
        for value in one.values[own]
    )


def _is_there(state: PoolFacts | Missing) -> bool:
    return not isinstance(state, Missing) and state.exists


def _depth_wei(case: HoldingCase, place: VenuePlace, one: HoldingSells) -> int:
    state = one.states[place]
    if isinstance(state, Missing):
        return 0
    return quote_in_wei(state.quote_reserve_raw, place.venue.quote, case.head.market) or 0


# --- what it is worth ------------------------------------------------------------------------------


def settle(case: HoldingCase, one: HoldingSells) -> tuple[int, Venue] | RefusedCall | Missing:
    """In wei, and where: what all of it brings less what was sold just before brings, each where that brings
    most, if it is not to be sold in one place. So parts of a holding bring together what the whole does."""
    if case.amount_raw <= 0:
        return NOTHING
    at = _sells_that_count(case, one)
    if not at:
        gaps = [state for state in one.states.values() if isinstance(state, Missing)]
        return gaps[0] if gaps else _nowhere(case)
    ranked = sorted(at, key=lambda place: _depth_wei(case, place, one), reverse=True)
    whole = {place: _in_wei(case, place, at[place][0]) for place in ranked}
    best = _best(whole)
    if case.before_raw <= 0:
        return best if not isinstance(best, tuple) else _proceeds(best[0], best[1])
    before = {place: _in_wei(case, place, at[place][1]) for place in ranked}
    gap = next((value for value in before.values() if isinstance(value, Missing)), None)
    first = _best(before)
    if not isinstance(best, tuple):
        return TOO_MUCH if isinstance(best, RefusedCall) and isinstance(first, tuple) else best
    if gap is not None or not isinstance(first, tuple):
        return gap or Missing("token", "what was sold just before does not sell by itself")
    return _proceeds(best[0] - first[0], best[1])


def _sells_that_count(
    case: HoldingCase, one: HoldingSells
) -> dict[VenuePlace, tuple[int | RefusedCall | Missing, ...]]:
    """What counts of what was tried: the place where it is to be sold; where that is over, the others, if it
    sells there."""
    own = case.own()
    if own is not None and not _is_over(own, one):
        return {own: one.values[own]}
    at = {place: values for place, values in one.values.items() if _may_be_there(one.states[place])}
    others = {place: values for place, values in at.items() if place != own}
    return others if any(isinstance(values[0], int) for values in others.values()) else at


def _may_be_there(state: PoolFacts | Missing) -> bool:
    return isinstance(state, Missing) or state.exists


def _nowhere(case: HoldingCase) -> RefusedCall | Missing:
    return NO_PLACE if case.complete else Missing("node", "it is not known where it trades")


def _proceeds(wei: int, place: VenuePlace) -> tuple[int, Venue] | RefusedCall:
    return (wei, place.venue) if wei > 0 else NOTHING


def _in_wei(
    case: HoldingCase, place: VenuePlace, value: int | RefusedCall | Missing
) -> int | RefusedCall | Missing:
    if not isinstance(value, int):
        return value
    wei = quote_in_wei(value, place.venue.quote, case.head.market)
    return Missing("node", "what an eth buys of the money side is not known") if wei is None else wei


def _best(
    values: Mapping[VenuePlace, int | RefusedCall | Missing],
) -> tuple[int, VenuePlace] | RefusedCall | Missing:
    sold = [(wei, place) for place, wei in values.items() if isinstance(wei, int)]
    if sold:
        return max(sold, key=lambda one: one[0])
    missing = [value for value in values.values() if isinstance(value, Missing)]
    if missing:
        return missing[0]
    refused = [value for value in values.values() if isinstance(value, RefusedCall)]
    return next((one for one in refused if one.reason), refused[0])
