"""What is known of a holding's sells after several rounds."""

from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.services.valuation.holding_sells import HoldingSells
from roundtrip.venues import amm_v3
from unit.domain.builders import ABSENT, ITS_OWN, LIQUID, NODE, TOKEN
from unit.venues.network import CONTRACTS

FIRST, SECOND, *_ = (VenuePlace(venue, amm_v3) for venue in amm_v3.candidates(TOKEN, CONTRACTS))
REFUSED = RefusedCall("sell", "paused", 0)


def test_a_later_round_replaces_what_was_not_known() -> None:
    sells = HoldingSells({FIRST: NODE, SECOND: LIQUID}, {FIRST: (ITS_OWN, NODE)})
    later = HoldingSells({FIRST: LIQUID, SECOND: ABSENT}, {FIRST: (5, REFUSED), SECOND: (7, 8)})
    assert sells.with_more(later) == HoldingSells(later.states, later.values)


def test_a_later_round_without_an_answer_leaves_what_was_known() -> None:
    sells = HoldingSells({FIRST: LIQUID, SECOND: ABSENT}, {FIRST: (5, REFUSED), SECOND: (7, ITS_OWN)})
    gap = Missing("node", "the node timed out")
    later = HoldingSells({FIRST: gap, SECOND: gap}, {FIRST: (gap, gap)})
    assert sells.with_more(later) == sells
