"""Which token trades at a place: by the logs, by the index, and by checks."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check.evidence import Missing
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.candidates import Candidates
from roundtrip.services.trade.touched_assets import KnownPlaces, indexed_tokens, marks
from roundtrip.store.check.token_index import IndexedPlace
from roundtrip.venues import abi, launchpad_curve
from roundtrip.venues.base import Call
from unit.services.pool_books import TOKEN, book
from unit.venues.network import CONTRACTS

OTHER, PLACE = Address("0x" + "a1" * 20), Address("0x" + "b2" * 20)
CURVE = launchpad_curve.curve(ZERO_ADDRESS, PLACE, CONTRACTS)


@pytest.mark.parametrize("listed", [None, book(CURVE)])
@pytest.mark.parametrize("kind", ["launchpad_curve", "amm_v3", None])
def test_a_place_is_known_by_the_logs_or_by_the_index(
    listed: VenueIndex | None, kind: VenueKind | None
) -> None:
    known = KnownPlaces(listed, {} if kind is None else {PLACE: IndexedPlace(TOKEN, kind)})
    is_known = listed is not None or kind is not None
    assert known.token_at(PLACE) == (TOKEN if is_known else None)
    assert known.is_curve(PLACE) is (listed is not None or kind == "launchpad_curve")
    assert not known.is_curve(OTHER)


def test_a_check_tells_of_the_venues_that_it_tried() -> None:
    run: Any = SimpleNamespace(token=TOKEN)
    check = BuyRoundResult(run, "token", Candidates((CURVE,), 0, 0, True), 0, cast(Any, None), ())
    known = KnownPlaces(None, {}).with_checks([check, Missing("node", "no answer")])
    assert known.token_at(PLACE) == TOKEN
    assert known.is_curve(PLACE)
    call = Call(OTHER, abi.call("0x12345678", PLACE))
    assert set(indexed_tokens(call, known)) == {TOKEN}


def test_what_a_call_may_name_is_asked_for_and_its_zeros_are_not() -> None:
    call = Call(OTHER, abi.call("0x12345678", PLACE, 5))
    found = set(marks(call))
    assert {OTHER, PLACE} <= found
    assert not any("00" * 8 in mark for mark in found)
    assert len(set(marks(Call(OTHER, "0x" + "c3" * 9000)))) <= 3
    long = Call(OTHER, "0x" + bytes(n % 251 + 1 for n in range(9000)).hex())
    assert len(list(marks(long))) == 2049
