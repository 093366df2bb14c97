"""Which venues are judged, and how what is asked of a node is put into requests."""

from dataclasses import replace

from roundtrip.chain.rpc.client import NodeAnswerTooLarge
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.request import Plan
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import CompletedBuy, EnvironmentBuy, Missing, RefusedCall
from roundtrip.services.engine.session import MAX_PLANS_A_REQUEST, VenueTrial, _group_plans, choose_venues
from roundtrip.venues import amm_v4
from unit.chain.samples import ENVIRONMENT
from unit.domain.builders import ABSENT, LIQUID, NODE
from unit.venues.network import BELOW, address

HOOK = address(0xC4)


def pool(number: int, hook: bool = False, fee_pips: int = 3000) -> Venue:
    """A pool of its own for every number."""
    return amm_v4.pool("amm_v4", BELOW, "eth", ZERO_ADDRESS, fee_pips, number + 1, HOOK if hook else None)


def tried(venue: Venue, brought_raw: int) -> VenueTrial:
    bought = CompletedBuy(POLICY.probe_wei, brought_raw, POLICY.probe_wei, 100_000)
    return VenueTrial(VenuePlace(venue, amm_v4), LIQUID, (EnvironmentBuy("probe", 0, bought),), None)


def numbers(found: list[VenueTrial]) -> list[int]:
    return [one.place.venue.tick_spacing - 1 for one in found]


def test_of_many_pools_those_are_judged_on_which_a_buy_brings_most() -> None:
    found = choose_venues([tried(pool(n), 1000 + n) for n in range(12)], POLICY)
    assert numbers(found) == list(range(4, 12))


def test_half_of_the_places_are_for_pools_without_a_strangers_hook() -> None:
    baits = [tried(pool(n, hook=True), 9000 + n) for n in range(12)]
    fair = [tried(pool(20 + n), 1000 + n) for n in range(6)]
    assert numbers(choose_venues(baits + fair, POLICY)) == [8, 9, 10, 11, 22, 23, 24, 25]
    assert numbers(choose_venues([*baits, fair[0]], POLICY)) == [*range(5, 12), 20]


def test_pools_whose_fee_is_a_toll_come_last() -> None:
    tolls = [tried(pool(n, fee_pips=900_000), 9000) for n in range(9)]
    assert 30 in numbers(choose_venues([*tolls, tried(pool(30), 1000)], POLICY))


def test_what_refused_or_is_not_known_is_judged_and_what_is_not_there_is_not() -> None:
    refused = replace(tried(pool(1), 1), buys=(EnvironmentBuy("probe", 0, RefusedCall("buy", None, 1)),))
    unknown = replace(tried(pool(2), 1), facts=NODE, buys=(EnvironmentBuy("probe", 0, NODE),))
    absent = replace(tried(pool(3), 1), facts=ABSENT, buys=())
    assert numbers(choose_venues([refused, unknown, absent], POLICY)) == [1, 2]


# --- requests -------------------------------------------------------------------------------------

PLAN = Plan(ENVIRONMENT, ())


def plans(*venues: Venue) -> dict[int, tuple[VenuePlace, Plan]]:
    return {number: (VenuePlace(venue, amm_v4), PLAN) for number, venue in enumerate(venues)}


def test_many_plans_go_in_several_requests() -> None:
    count = 2 * MAX_PLANS_A_REQUEST + 1
    groups = _group_plans(plans(*(pool(n % 5) for n in range(count))))
    assert [number for group in groups for number in group.names] == list(range(count))
    assert max(len(group.names) for group in groups) == MAX_PLANS_A_REQUEST


def test_a_pool_with_a_strangers_hook_is_asked_apart() -> None:
    plain, first, second = pool(1), pool(2, hook=True), pool(3, hook=True)
    groups = _group_plans(plans(plain, first, plain, second, first))
    assert [group.names for group in groups] == [(0, 2), (1, 4), (3,)]
    assert [group.strange for group in groups] == [False, True, True]


def test_who_answers_with_megabytes_is_refused_if_he_is_a_strangers_hook() -> None:
    plain, strange = _group_plans(plans(pool(1), pool(2, hook=True)))
    assert isinstance(strange.result_of_fault(NodeAnswerTooLarge("too much")), RefusedCall)
    result = plain.result_of_fault(NodeAnswerTooLarge("too much"))
    assert isinstance(result, Missing)
    assert result.fault == "token"
    gone = strange.result_of_fault(NodeFault("gone"))
    assert isinstance(gone, Missing)
    assert gone.fault == "node"
