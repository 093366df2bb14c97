"""Which venues a check tries: the standard ones while the book has gaps, and what it knows."""

from dataclasses import replace

import pytest

from roundtrip.chain.blocks.venue_index import ListedVenues, VenueIndex
from roundtrip.domain.base.events import PoolPlace, Spot
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, TxHash
from roundtrip.domain.base.venue import OtherPool, Venue
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.check.proof_input import TokenIndex
from roundtrip.services.engine import candidates as module
from roundtrip.services.engine.candidates import Candidates, unseen_venues
from roundtrip.venues import VENUES, abi, amm_v3, amm_v4, launchpad_curve, launchpad_pool
from roundtrip.venues.base import Contracts, Log
from unit.domain.builders import NODE
from unit.domain.launches import CURVE_ADDRESS, POOL_LAUNCH, launch
from unit.services.pool_books import TOKEN, book
from unit.venues.network import CONTRACTS, address

ODD = address(0xBADBAD)
"""Money that is nobody's money."""
STANDARD = tuple(venue for file in VENUES for venue in file.candidates(TOKEN, CONTRACTS))
KNOWN = amm_v4.pool("amm_v4", TOKEN, "eth", ZERO_ADDRESS, 1234, 7, address(0xC0))
NO_LAUNCHPAD = replace(CONTRACTS, launchpad_factory=None, launchpad_hook=None, launchpad_router=None)


MOST = 30


def candidates(
    book: VenueIndex | None, contracts: Contracts, token: Address, index: TokenIndex | None = None
) -> Candidates:
    listed = ListedVenues() if book is None else book.list_venues(token)
    return module.list_candidates(module.join_venues(listed, index, contracts), contracts, token, MOST)


def odd(quote: Address = ODD, fee_pips: int = 3000) -> Venue:
    pool = amm_v3.pool_address(CONTRACTS.v3_factory, TOKEN, quote, fee_pips)
    return Venue("amm_v3", quote, quote, pool, fee_pips)


def pool_of_launch(quote: Address) -> Venue:
    pool = launchpad_pool.pool(TOKEN, quote, 0, 200, CONTRACTS)
    assert pool is not None
    return pool


def test_without_a_book_the_standard_venues_are_tried() -> None:
    chosen = candidates(None, CONTRACTS, TOKEN)
    assert (chosen.venues, chosen.others, chosen.complete) == (STANDARD, 0, False)


def test_a_complete_book_gives_only_what_it_knows() -> None:
    chosen = candidates(book(KNOWN), CONTRACTS, TOKEN)
    assert (chosen.venues, chosen.others, chosen.complete) == ((KNOWN,), 0, True)


def test_a_complete_book_that_knows_nothing_leaves_nothing_to_try() -> None:
    chosen = candidates(book(), CONTRACTS, TOKEN)
    assert (chosen.venues, chosen.others, chosen.complete) == ((), 0, True)


def test_a_book_with_gaps_adds_the_standard_venues() -> None:
    chosen = candidates(book(KNOWN, complete=False), CONTRACTS, TOKEN)
    assert (chosen.venues, chosen.others, chosen.complete) == ((*STANDARD, KNOWN), 0, False)


@pytest.mark.parametrize("at", range(len(STANDARD)))
def test_no_standard_venue_is_tried_twice(at: int) -> None:
    chosen = candidates(book(STANDARD[at], KNOWN, complete=False), CONTRACTS, TOKEN)
    assert chosen.venues == (*STANDARD, KNOWN)
    assert len(set(chosen.venues)) == len(chosen.venues)


def test_another_tokens_venues_are_not_this_ones() -> None:
    assert candidates(book(KNOWN), CONTRACTS, address(0xD0)).venues == ()


@pytest.mark.parametrize("complete", [True, False])
def test_odd_money_is_left_out_and_counted(complete: bool) -> None:
    chosen = candidates(book(odd(), KNOWN, odd(fee_pips=500), complete=complete), CONTRACTS, TOKEN)
    assert chosen.others == 2
    assert chosen.venues == ((KNOWN,) if complete else (*STANDARD, KNOWN))


@pytest.mark.parametrize("pooled", [False, True])
def test_money_that_a_launch_is_paid_in_is_tried_everywhere(pooled: bool) -> None:
    own = launchpad_curve.curve(ODD, CURVE_ADDRESS, CONTRACTS)
    of_launch = (own, pool_of_launch(ODD)) if pooled else (own,)
    chosen = candidates(book(*of_launch, odd(), odd(address(0xBAD))), CONTRACTS, TOKEN)
    assert chosen.venues == (*of_launch, odd())
    assert chosen.others == 1


def log_of_a_pool(low: Address, high: Address) -> Log:
    """The manager's Initialize of a launch's pool."""
    assert CONTRACTS.launchpad_hook is not None
    topics = (amm_v4.INITIALIZE, "0x" + "00" * 32, "0x" + abi.word(low), "0x" + abi.word(high))
    data = bytes.fromhex(abi.word(0) + abi.word(200) + abi.word(CONTRACTS.launchpad_hook) + 2 * abi.word(0))
    return Log(CONTRACTS.v4_pool_manager, topics, data)


def test_what_was_launched_against_a_token_is_not_money_to_sell_it_for() -> None:
    listed = launchpad_pool.decode_listings(log_of_a_pool(TOKEN, ODD), CONTRACTS)
    (of_another,) = (listing.venue for listing in listed if listing.token == TOKEN)
    chosen = candidates(book(of_another, KNOWN, odd()), CONTRACTS, TOKEN)
    assert chosen.venues == (KNOWN,)


@pytest.mark.parametrize("hook", [None, address(0xC0)])
def test_beyond_a_bound_the_oldest_are_tried_and_the_others_named(hook: Address | None) -> None:
    many = [amm_v4.pool("amm_v4", TOKEN, "eth", ZERO_ADDRESS, 100 + n, 7, hook) for n in range(MOST + 5)]
    other = amm_v4.pool("amm_v4", TOKEN, "eth", ZERO_ADDRESS, 500, 10, None if hook else address(0xC1))
    chosen = candidates(book(*many, other), CONTRACTS, TOKEN)
    assert chosen.venues == (*many[:MOST], other)
    assert (chosen.others, chosen.left_out, chosen.complete) == (0, 5, True)


# --- what the index adds -----------------------------------------------------------------------------


def place(venue: Venue) -> PoolPlace:
    """The venue as the index stores it."""
    fee, spacing, hook = venue.fee_pips, venue.tick_spacing, venue.hook
    quote = venue.quote_address
    return PoolPlace(
        venue.at() or "", venue.kind, TOKEN, quote, 0, fee, spacing, hook, Spot(1, 1, 1, TxHash(""))
    )


def own_curve(quote: Address) -> Venue:
    return launchpad_curve.curve(quote, CURVE_ADDRESS, CONTRACTS)


def test_the_indexs_venues_come_first_and_each_once() -> None:
    younger = amm_v4.pool("amm_v4", TOKEN, "eth", ZERO_ADDRESS, 500, 7, address(0xC0))
    listed = ListedVenues((KNOWN, younger), {}, 100)
    old = own_curve(ZERO_ADDRESS)
    index = TokenIndex(200, 200, (place(old), place(KNOWN)))
    known = module.join_venues(listed, index, CONTRACTS)
    assert (known.venues, known.complete) == ((old, KNOWN, younger), True)
    assert listed.venues == (KNOWN, younger)


@pytest.mark.parametrize(
    ("complete_from", "whole_to", "complete"),
    [(100, 99, True), (100, 98, False), (100, None, False), (None, 200, False), (0, None, True)],
)
def test_only_logs_and_an_index_without_a_gap_between_them_are_complete(
    complete_from: int | None, whole_to: int | None, complete: bool
) -> None:
    listed = ListedVenues((KNOWN,), {}, complete_from)
    known = module.join_venues(listed, TokenIndex(200, whole_to), CONTRACTS)
    assert known.complete is complete
    # Not read is not known, wherever the logs begin.
    assert module.join_venues(listed, None, CONTRACTS).complete is (complete_from == 0)


def test_money_of_an_older_launch_is_money_for_what_the_logs_list() -> None:
    listed = ListedVenues((), {odd().at() or "": ODD}, 100)
    unpaid = OtherPool("0x" + "0e" * 20, address(0xBAD))
    index = TokenIndex(200, 200, (place(own_curve(ODD)), place(odd(fee_pips=500))), (unpaid,))
    known = module.join_venues(listed, index, CONTRACTS)
    assert known.venues == (own_curve(ODD), odd(fee_pips=500))
    assert known.others == 2
    assert known.other_pools == (OtherPool(odd().at() or "", ODD), unpaid)


def test_of_a_crowd_in_the_index_the_oldest_are_kept_and_not_called_all() -> None:
    many = [amm_v4.pool("amm_v4", TOKEN, "eth", ZERO_ADDRESS, 100 + n, 7, None) for n in range(257)]
    listed = ListedVenues((), {}, 100)
    for count, complete in ((256, True), (257, False)):
        index = TokenIndex(200, 200, tuple(place(venue) for venue in many[:count]))
        known = module.join_venues(listed, index, CONTRACTS)
        assert (known.venues, known.complete) == (tuple(many[:256]), complete)


# --- what the launchpad knows and the book does not -----------------------------------------------


def curve() -> Venue:
    return launchpad_curve.curve(ZERO_ADDRESS, CURVE_ADDRESS, CONTRACTS)


def test_a_curve_that_was_not_known_is_added() -> None:
    assert unseen_venues(CONTRACTS, TOKEN, launch(), STANDARD) == (curve(),)
    assert unseen_venues(CONTRACTS, TOKEN, launch(), (*STANDARD, curve())) == ()


def test_a_curve_paid_in_other_money_is_added_with_that() -> None:
    (chosen,) = unseen_venues(CONTRACTS, TOKEN, launch(quote_address=ODD), ())
    assert (chosen.kind, chosen.quote, chosen.quote_address, chosen.pool) == (
        "launchpad_curve", ODD, ODD, CURVE_ADDRESS,
    )  # fmt: skip


def test_a_pool_of_the_usual_key_is_known_already() -> None:
    pooled = launch(None, phase="pooled")
    assert unseen_venues(CONTRACTS, TOKEN, pooled, STANDARD) == ()
    assert unseen_venues(CONTRACTS, TOKEN, pooled, ()) == (pool_of_launch(ZERO_ADDRESS),)


def test_a_pool_of_another_key_is_added() -> None:
    pooled = launch(None, phase="pooled", pool_fee_pips=500, tick_spacing=10)
    (chosen,) = unseen_venues(CONTRACTS, TOKEN, pooled, STANDARD)
    assert (chosen.kind, chosen.fee_pips, chosen.tick_spacing) == ("launchpad_pool", 500, 10)
    assert chosen.hook == CONTRACTS.launchpad_hook
    assert unseen_venues(CONTRACTS, TOKEN, pooled, (chosen,)) == ()


@pytest.mark.parametrize("phase", ["swept", "rescued"])
def test_a_closed_launch_trades_nowhere(phase: str) -> None:
    assert unseen_venues(CONTRACTS, TOKEN, launch(None, phase=phase), ()) == ()


@pytest.mark.parametrize("known", [None, NODE])
def test_without_a_launch_there_is_nothing_more(known: Missing | None) -> None:
    assert unseen_venues(CONTRACTS, TOKEN, known, ()) == ()


def test_a_launch_into_a_pool_trades_in_that() -> None:
    usual = replace(POOL_LAUNCH, quote_address=CONTRACTS.weth)
    assert unseen_venues(CONTRACTS, TOKEN, usual, STANDARD) == ()
    pool = amm_v3.pool_address(CONTRACTS.v3_factory, TOKEN, CONTRACTS.weth, 10_000)
    assert unseen_venues(CONTRACTS, TOKEN, usual, ()) == (
        Venue("amm_v3", "weth", CONTRACTS.weth, pool, 10_000),
    )
    assert unseen_venues(
        CONTRACTS, TOKEN, replace(usual, quote_address=ODD, pool_fee_pips=3000), STANDARD
    ) == (odd(),)


def test_without_a_launchpad_there_is_no_pool_of_one() -> None:
    assert unseen_venues(NO_LAUNCHPAD, TOKEN, launch(None, phase="pooled"), ()) == ()
    assert all(v.kind in ("amm_v3", "amm_v4") for v in candidates(None, NO_LAUNCHPAD, TOKEN).venues)
