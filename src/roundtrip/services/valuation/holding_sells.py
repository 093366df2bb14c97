"""One holding's simulated sells: the requests to the node, and the holding's worth by the answers."""

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
from roundtrip.chain.simulate.number_copies import NumberCopies
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
from roundtrip.services.runtime.check_context import CheckContext

from .token_batches import BatchAnswer, BatchRequest

MAX_PLACES = 3
"""The most places at which a holding is sold, separately at each."""
_MAX_HOLDERS = 3
"""The most known holders that try the sell of a token whose balances cannot be overridden."""

NO_HOLDER = Missing("token", "we know no wallet that holds this much of it and cannot give it to one")
NOTHING = RefusedCall("sell", "nothing comes back for it", 0)
TOO_MUCH = RefusedCall("sell", "together with what was sold just before, it is more than sells at once", 0)
NO_PLACE = RefusedCall("sell", "no pool buys it for eth or usdg", 0)
BETWEEN_VENUES = Missing("token", "its curve is closed and its pool has not opened")
NO_SELL = (NOTHING, TOO_MUCH, NO_PLACE)
"""Refusals in our own words, not the token's."""
NOT_TOLD = Missing("node", "the node did not answer")


@dataclass(frozen=True, slots=True)
class HoldingCase:
    """A holding and the inputs of its sells. ``holders``: known holders, for tokens whose balances cannot be
    overridden. ``places``: where it may trade; the first ``listed`` of them are known to exist. ``complete``:
    no pool is unknown, and none is against other money. ``at``: the only place to sell it, while any of it
    sells there. ``environment``: the seller's; ``other``: that of the control's wallets, which differ from
    it. ``passing``: venues where block numbers pass in simulations that keep NUMBER still, with ``copies``
    where any code of a trade reads it."""

    check_context: CheckContext
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
    passing: frozenset[Venue] = frozenset()
    copies: NumberCopies | None = None

    def only_place(self) -> VenuePlace | None:
        """The only place to sell it; None: any place will do, or that place is no longer known."""
        return next(
            (place for place in self.places if self.at is not None and place.venue.at() == self.at), None
        )

    def first_places(self) -> tuple[VenuePlace, ...]:
        """The places for the first round of sells."""
        only_place = self.only_place()
        return self.known_places() if only_place is None else (only_place,)

    def known_places(self) -> tuple[VenuePlace, ...]:
        """The first ``MAX_PLACES`` of the places that are known to exist."""
        return self.places[: min(self.listed, MAX_PLACES)]

    def build_setting(self) -> Setting:
        """What all its plans share."""
        return Setting(self.token, self.check_context.contracts, self.head.market, self.check_context.policy)

    def sellers(self, amount_raw: int) -> tuple[Seller, ...]:
        """Possible sellers of that amount: one that succeeds is enough."""
        env = self.environment
        if self.seller is not None:
            return (Seller(replace(env, buyer=self.seller), amount_raw, None),)
        if self.slot is not None:
            return (Seller(cast(env, f"holding {amount_raw}"), amount_raw, self.slot),)
        holders = self.holders[:_MAX_HOLDERS]
        return tuple(Seller(replace(env, buyer=holder), amount_raw, None) for holder in holders)

    def amounts(self) -> tuple[int, ...]:
        """The amounts to sell: the holding plus what was sold just before, and the latter alone."""
        total_raw = self.before_raw + self.amount_raw
        return (total_raw, self.before_raw) if self.before_raw > 0 else (total_raw,)

    def needs_control(self, venue: Venue) -> bool:
        """Whether the sell needs a control: a wallet that bought in the simulation and sells. A real seller
        needs none, and neither does a launchpad token, whose code does not distinguish buyers."""
        return self.seller is None and not venue.kind.startswith("launchpad_")

    def build_control(self, place: VenuePlace) -> Plan | Missing:
        """The control's plan for the place."""
        setting, policy = self.build_setting(), self.check_context.policy
        env = replace(self.other, approve_gas_limit=policy.approve_gas_limit, own_usdg_raw=0)
        paid_raw = legs.size_raw("thousandth", place, setting, env)
        if isinstance(paid_raw, Missing):
            return paid_raw
        # As long as it was held: a token may stop selling after any time.
        wait_s = max(policy.later_s, self.held_s)
        whole_raw = self.before_raw + self.amount_raw
        return holding_plans.control_plan(place, setting, env, whole_raw, self.slot, paid_raw, wait_s)

    def addresses_with_code(self) -> tuple[Address, ...]:
        """Addresses whose code must be read because it may depend on the block number. Empty if the node's
        simulations can advance the block number."""
        if self.head.known_dialect().lets_numbers_pass():
            return ()
        hooks = (place.venue.hook for place in self.places if place.venue.hook is not None)
        return tuple(dict.fromkeys((self.token, *hooks)))


# --- requests --------------------------------------------------------------------------------------


def build_requests(case: HoldingCase, places: Sequence[VenuePlace]) -> list[BatchRequest]:
    """All requests that valuing the holding at these places takes."""
    setting = case.build_setting()
    requests = [BatchRequest("facts", plan=_build_facts_plan(case))]
    block = case.head.block
    with_code = {
        *case.addresses_with_code(),
        *(() if case.seller or case.slot else case.holders[:_MAX_HOLDERS]),
    }
    requests += [
        BatchRequest(("code", address), call=token_facts.code_call(address, block))
        for address in sorted(with_code)
    ]
    if with_code:
        requests.append(BatchRequest("proxy", call=token_facts.proxy_call(case.token, block)))
    if case.seller is None and case.slot is None:
        slots = token_facts.slot_calls(case.token, block)
        requests += [BatchRequest(("slot", number), call=call) for number, call in enumerate(slots)]
    for amount_raw in case.amounts():
        sellers = case.sellers(amount_raw)
        if not sellers:
            continue
        requests.append(
            BatchRequest(("balances", amount_raw), plan=holding_plans.balance_plan(setting, sellers))
        )
        for place in places:
            for number, seller in enumerate(sellers):
                for fund in (False, True) if seller.slot is None else (True,):
                    plan = holding_plans.sell_plan(place, setting, seller, fund)
                    key = ("sell", amount_raw, place, number, fund)
                    requests.append(BatchRequest(key, plan=plan, place=place, copies=case.copies))
    for place in places:
        plan_or_gap = case.build_control(place) if case.needs_control(place.venue) else None
        if isinstance(plan_or_gap, Plan):
            requests.append(BatchRequest(("control", place), plan_or_gap, place=place, copies=case.copies))
    return requests


def _build_facts_plan(case: HoldingCase) -> Plan:
    contracts, policy = case.check_context.contracts, case.check_context.policy
    return token_facts.facts_plan(case.token, case.places, contracts, case.environment, policy)


# --- answers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HoldingSells:
    """``states`` of all places; ``values``: for each place that was tried, the proceeds of each of
    ``HoldingCase.amounts`` in the place's quote. ``awaits_pool``: a launch that is on its curve, or between
    that and its pool."""

    states: Mapping[VenuePlace, PoolFacts | Missing]
    values: Mapping[VenuePlace, tuple[int | RefusedCall | Missing, ...]]
    awaits_pool: bool = False

    def with_more(self, other: "HoldingSells") -> "HoldingSells":
        """These sells, and those at places that were tried later or again. What is known is not replaced by
        what is not."""
        states = {
            place: self.states.get(place, state) if isinstance(state, Missing) else state
            for place, state in other.states.items()
        }
        values = {
            place: tuple(
                earlier if isinstance(later, Missing) else later
                for earlier, later in zip(self.values.get(place, tried), tried, strict=True)
            )
            for place, tried in other.values.items()
        }
        awaits_pool = self.awaits_pool or other.awaits_pool
        return HoldingSells({**self.states, **states}, {**self.values, **values}, awaits_pool)


def read_sells(
    case: HoldingCase, places: Sequence[VenuePlace], answers: Mapping[Hashable, BatchAnswer]
) -> HoldingSells:
    """Reads the answers to ``build_requests``."""
    results = _find_results(answers, "facts")
    contracts = case.check_context.contracts
    states = {
        place: token_facts.read_pool_facts(results, number, place, case.token, contracts)
        for number, place in enumerate(case.places)
    }
    launch = token_facts.read_launch(results, case.token, case.places, None, contracts)
    insiders = _find_insiders(case, results, answers, launch)
    values = {}
    for place in places:
        control = _read_control(case, place, answers, launch)
        values[place] = tuple(
            _value_place(case, place, raw, answers, control, insiders) for raw in case.amounts()
        )
    awaits_pool = isinstance(launch, LaunchRecord) and launch.phase in ("curve", "swept")
    return HoldingSells(states, values, awaits_pool)


def _find_results(answers: Mapping[Hashable, BatchAnswer], key: Hashable) -> Results | Missing:
    answer = answers.get(key, NOT_TOLD)
    return answer if isinstance(answer, dict | Missing) else NOT_TOLD


def _find_answer(answers: Mapping[Hashable, BatchAnswer], key: Hashable) -> msgspec.Raw | RpcError:
    answer = answers.get(key, NOT_TOLD)
    return RpcError(0, NOT_TOLD.why) if isinstance(answer, dict | Missing) else answer


def _find_insiders(
    case: HoldingCase,
    results: Results | Missing,
    answers: Mapping[Hashable, BatchAnswer],
    launch: AnyLaunch | Missing | None,
) -> frozenset[object]:
    """Owner, proxy admin, owner of the beacon and deployer: their sells prove nothing for other wallets."""
    proxy = token_facts.read_proxy(_find_answer(answers, "proxy"), case.token, NOT_TOLD)
    if isinstance(proxy, Missing):
        slots = [_find_answer(answers, ("slot", number)) for number in range(3)]
        proxy = token_facts.read_slots(slots, case.token, NOT_TOLD)
    facts = token_facts.read_token_facts(results, NOT_TOLD, proxy)
    insiders: set[object] = {facts.owner, facts.proxy_admin}
    if not isinstance(proxy, Missing):
        insiders.add(proxy.beacon_owner)
    if isinstance(launch, LaunchRecord | PoolLaunch):
        insiders.add(launch.deployer)
    return frozenset(insiders)


def _read_control(
    case: HoldingCase,
    place: VenuePlace,
    answers: Mapping[Hashable, BatchAnswer],
    launch: AnyLaunch | Missing | None,
) -> Control | None:
    if case.seller is not None:
        return None
    if not case.needs_control(place.venue):
        if isinstance(launch, LaunchRecord):
            return None
        unknown = Missing("node", "its launch is not known")
        return Control(launch if isinstance(launch, Missing) else unknown, ())
    plan = case.build_control(place)
    if isinstance(plan, Missing):
        return Control(plan, ())
    gap = _find_block_gap(case, place, answers, launch)
    if gap is not None:
        return Control(gap, ())
    whole_raw = case.before_raw + case.amount_raw
    return holding_plans.read_control(
        _find_results(answers, ("control", place)), place, plan, case.slot, whole_raw
    )


def _find_block_gap(
    case: HoldingCase,
    place: VenuePlace,
    answers: Mapping[Hashable, BatchAnswer],
    launch: AnyLaunch | Missing | None,
) -> Missing | None:
    """Why a simulated wait proves nothing: the token's or the hook's code may depend on the block number.
    None: it does not, or block numbers pass."""
    addresses = case.addresses_with_code()
    if place.venue in case.passing:
        return None
    if not addresses:
        return None
    trusted = {case.token} if isinstance(launch, LaunchRecord | PoolLaunch) else set()
    parties = [
        address
        for address in (case.token, place.venue.hook)
        if address is not None and address not in trusted
    ]
    codes = (token_facts.read_code(_find_answer(answers, ("code", address))) for address in parties)
    gaps = map(token_facts.block_count, codes)
    return next((gap for gap in gaps if gap is not None), None)


def find_waiting_places(
    case: HoldingCase, places: Sequence[VenuePlace], answers: Mapping[Hashable, BatchAnswer]
) -> tuple[VenuePlace, ...]:
    """The places where a sell stays unknown because block numbers do not pass, and the node did answer."""
    results, contracts = _find_results(answers, "facts"), case.check_context.contracts
    launch = token_facts.read_launch(results, case.token, case.places, None, contracts)
    plans = {place: case.build_control(place) for place in places if case.needs_control(place.venue)}
    gaps = {
        place: _find_block_gap(case, place, answers, launch)
        for place, plan in plans.items()
        if isinstance(plan, Plan)
    }
    return tuple(place for place, gap in gaps.items() if gap is not None and gap.fault == "token")


def estimate_wei(
    case: HoldingCase, places: Sequence[VenuePlace], answers: Mapping[Hashable, BatchAnswer]
) -> int:
    """What the holding brings in wei at its best place, if its seller's sell alone is believed, without a
    control; 0: nothing is known."""
    total_raw = case.amounts()[0]
    sold = (
        _to_wei(case, place, _value_place(case, place, total_raw, answers, None, frozenset()))
        for place in places
    )
    return max((wei for wei in sold if isinstance(wei, int)), default=0)


def _value_place(
    case: HoldingCase,
    place: VenuePlace,
    amount_raw: int,
    answers: Mapping[Hashable, BatchAnswer],
    control: Control | None,
    insiders: frozenset[object],
) -> int | RefusedCall | Missing:
    """The proceeds of the first seller that sells, in the place's quote; else why the sell is refused, or is
    not known."""
    outcomes: list[int | RefusedCall | Missing] = []
    balances = _find_results(answers, ("balances", amount_raw))
    for number, seller in enumerate(case.sellers(amount_raw)):
        if case.seller is None and seller.slot is None:
            code = token_facts.read_code(_find_answer(answers, ("code", seller.wallet())))
            if seller.wallet() in insiders or code != b"":
                continue
        held_raw = holding_plans.read_balance(balances, number, seller)
        if isinstance(held_raw, Missing):
            outcomes.append(held_raw)
            continue
        outcome = _read_sell(place, seller, held_raw, answers, ("sell", amount_raw, place, number))
        least_share_bps = case.check_context.policy.sellable_share_bps
        outcomes.append(holding_plans.worth_raw(outcome, control, least_share_bps))
    proceeds = next((value for value in outcomes if isinstance(value, int)), None)
    refused = next((value for value in outcomes if isinstance(value, RefusedCall)), None)
    return proceeds if proceeds is not None else refused or next(iter(outcomes), NO_HOLDER)


def _read_sell(
    place: VenuePlace,
    seller: Seller,
    held_raw: int,
    answers: Mapping[Hashable, BatchAnswer],
    key: tuple[Hashable, ...],
) -> CellOutcome:
    """The sell with the seller's own eth; if that run is missing, the one with added eth for gas."""
    as_is = _find_results(answers, (*key, False))
    given = _find_results(answers, (*key, True))
    results = given if isinstance(as_is, Missing) else as_is
    return holding_plans.read_sell(results, place, seller, held_raw)


def find_deeper_places(case: HoldingCase, sells: HoldingSells) -> tuple[VenuePlace, ...]:
    """The deepest places that were not tried yet; none while the holding sells at its only place."""
    only_place = case.only_place()
    if only_place is not None and not _sells_nothing(only_place, sells):
        return ()
    open_places = [place for place in case.places if _is_there(sells.states[place])]
    ranked = sorted(open_places, key=lambda place: _read_depth_wei(case, place, sells), reverse=True)
    places = dict.fromkeys((*case.known_places(), *ranked[:MAX_PLACES]))
    return tuple(place for place in places if place not in sells.values)


def _sells_nothing(only_place: VenuePlace, sells: HoldingSells) -> bool:
    """Whether nothing of the holding sells any more at its only place. A missing answer from the node does
    not count as that. If a part still sells, the rest is only too much for the place."""
    if not _may_be_there(sells.states[only_place]):
        return True
    return not any(
        isinstance(value, int) or (isinstance(value, Missing) and value.fault == "node")
        for value in sells.values[only_place]
    )


def _is_there(state: PoolFacts | Missing) -> bool:
    return not isinstance(state, Missing) and state.exists


def _read_depth_wei(case: HoldingCase, place: VenuePlace, sells: HoldingSells) -> int:
    state = sells.states[place]
    if isinstance(state, Missing):
        return 0
    return quote_in_wei(state.quote_reserve_raw, place.venue.quote, case.head.market) or 0


# --- worth -----------------------------------------------------------------------------------------


def value_holding(case: HoldingCase, sells: HoldingSells) -> tuple[int, Venue] | RefusedCall | Missing:
    """The holding's worth in wei, and the venue: the proceeds of everything less the proceeds of what was
    sold just before, each at its best place unless there is an only place. So the parts of a holding add up
    to the worth of the whole."""
    if case.amount_raw <= 0:
        return NOTHING
    counted = _select_sells(case, sells)
    if not counted:
        gaps = [state for state in sells.states.values() if isinstance(state, Missing)]
        return gaps[0] if gaps else _explain_no_place(case, sells)
    ranked = sorted(counted, key=lambda place: _read_depth_wei(case, place, sells), reverse=True)
    total = {place: _to_wei(case, place, counted[place][0]) for place in ranked}
    best = _find_best(total)
    if case.before_raw <= 0:
        return best if not isinstance(best, tuple) else _build_proceeds(best[0], best[1])
    earlier = {place: _to_wei(case, place, counted[place][1]) for place in ranked}
    gap = next((value for value in earlier.values() if isinstance(value, Missing)), None)
    best_earlier = _find_best(earlier)
    if not isinstance(best, tuple):
        return TOO_MUCH if isinstance(best, RefusedCall) and isinstance(best_earlier, tuple) else best
    if gap is not None or not isinstance(best_earlier, tuple):
        return gap or Missing("token", "what was sold just before cannot be sold alone")
    return _build_proceeds(best[0] - best_earlier[0], best[1])


def _select_sells(
    case: HoldingCase, sells: HoldingSells
) -> dict[VenuePlace, tuple[int | RefusedCall | Missing, ...]]:
    """The sells that count: those at the only place; if nothing sells there any more, those elsewhere, if any
    succeeds."""
    only_place = case.only_place()
    if only_place is not None and not _sells_nothing(only_place, sells):
        return {only_place: sells.values[only_place]}
    open_places = {
        place: values for place, values in sells.values.items() if _may_be_there(sells.states[place])
    }
    others = {place: values for place, values in open_places.items() if place != only_place}
    return others if any(isinstance(values[0], int) for values in others.values()) else open_places


def _may_be_there(state: PoolFacts | Missing) -> bool:
    return isinstance(state, Missing) or state.exists


def _explain_no_place(case: HoldingCase, sells: HoldingSells) -> RefusedCall | Missing:
    if sells.awaits_pool:
        return BETWEEN_VENUES
    return NO_PLACE if case.complete else Missing("token", "no pool that we know pays eth or usdg for it")


def _build_proceeds(wei: int, place: VenuePlace) -> tuple[int, Venue] | RefusedCall:
    return (wei, place.venue) if wei > 0 else NOTHING


def _to_wei(
    case: HoldingCase, place: VenuePlace, value: int | RefusedCall | Missing
) -> int | RefusedCall | Missing:
    if not isinstance(value, int):
        return value
    wei = quote_in_wei(value, place.venue.quote, case.head.market)
    return Missing("node", "the eth price of the pool's money is not known") if wei is None else wei


def _find_best(
    values: Mapping[VenuePlace, int | RefusedCall | Missing],
) -> tuple[int, VenuePlace] | RefusedCall | Missing:
    sold = [(wei, place) for place, wei in values.items() if isinstance(wei, int)]
    if sold:
        return max(sold, key=lambda sale: sale[0])
    missing = [value for value in values.values() if isinstance(value, Missing)]
    if missing:
        return missing[0]
    refused = [value for value in values.values() if isinstance(value, RefusedCall)]
    return next((refusal for refusal in refused if refusal.reason), refused[0])
