"""The crowd that is drawn: every field within the policy's bounds, and all ways and moments in each crowd."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.chain.blocks.environments import draw
from roundtrip.chain.rpc.dialect import ANVIL, GETH, NITRO, Dialect
from roundtrip.chain.simulate.crowd_plans import plain_wallet
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.probe_plans import main_wallet
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import CrowdWallet
from roundtrip.domain.check.proof_input import MAIN_WALLET, RecalledWallet
from roundtrip.services.engine.crowd import draw_crowd, draw_gaps, recall_wallets
from roundtrip.services.engine.session import CheckSession
from unit.chain.trades import ETH, EVERY_PLACE, USDG, WETH
from unit.services.engine.crowds import CURVE, HEAD, SEED, drawn, session, spent

COUNT = 26
PLAIN = 12
MAIN_TIMES = {POLICY.later_s, POLICY.hour_s, POLICY.day_s}
LAST_S = POLICY.day_s + POLICY.later_s
ROOM = 10**24
seeds = st.binary(min_size=32, max_size=32)
QUICK = settings(max_examples=15, deadline=None)


def others(wallets: tuple[CrowdWallet, ...]) -> list[CrowdWallet]:
    """All but the plain one."""
    return [wallet for number, wallet in enumerate(wallets) if number != PLAIN]


def are_spread(values: Sequence[int], lowest: int, highest: int) -> bool:
    """Whether each value lies in a part of its own, of as many equal parts of a scale of powers of two, even
    between two of them."""
    steps = len(values) / place(highest, lowest)
    return all(
        place(value, lowest) * steps <= n + 1 and n <= place(value + 1, lowest) * steps
        for n, value in enumerate(values)
    )


def place(value: int, lowest: int) -> Fraction:
    octave = (value // lowest).bit_length() - 1
    return octave + Fraction(value, lowest << octave) - 1


@EVERY_PLACE
@QUICK
@given(seed=seeds)
def test_every_field_is_within_its_bounds(place: VenuePlace, seed: bytes) -> None:
    wallets = drawn(place, seed)
    assert len(wallets) == COUNT == sum(POLICY.crowd_counts)
    for wallet in wallets:
        assert wallet.wallet.startswith("0x")
        assert len(wallet.wallet) == 42
        assert 1 <= wallet.nonce <= 300
        assert wallet.again_wei == 0 or wallet.size_wei // 10 <= wallet.again_wei <= wallet.size_wei
        assert POLICY.crowd_purse_wei[0] <= wallet.purse_wei <= POLICY.crowd_purse_wei[1]
        assert wallet.weth_wei == 0 or 10**16 <= wallet.weth_wei <= 10**18
        assert wallet.usdg_raw == 0 or 10**6 <= wallet.usdg_raw <= 40 * 10**6
        assert wallet.tip_wei == 0 or 10**6 <= wallet.tip_wei <= POLICY.crowd_most_tip_wei
        assert POLICY.later_s <= wallet.after_s <= LAST_S


@QUICK
@given(seeds)
def test_sizes_rise_and_so_many_are_of_each_span(seed: bytes) -> None:
    sizes = [wallet.size_wei for wallet in drawn(seed=seed)]
    assert sizes == sorted(sizes)
    at = 0
    for (lowest, highest), count in zip(POLICY.crowd_sizes_wei, POLICY.crowd_counts, strict=True):
        assert all(lowest <= size <= highest for size in sizes[at : at + count])
        at += count


@QUICK
@given(seeds)
def test_no_two_wallets_are_one(seed: bytes) -> None:
    assert len({wallet.wallet for wallet in drawn(seed=seed)}) == COUNT


@QUICK
@given(seeds)
def test_one_in_four_buys_twice(seed: bytes) -> None:
    assert sum(wallet.again_wei > 0 for wallet in drawn(seed=seed)) == COUNT // 4


@EVERY_PLACE
@QUICK
@given(seed=seeds)
def test_one_wallet_differs_only_in_that_it_sells_last(place: VenuePlace, seed: bytes) -> None:
    wallets = drawn(place, seed)
    plain = wallets[PLAIN]
    assert replace(plain, wallet=plain.wallet, nonce=0, size_wei=0) == CrowdWallet(
        plain.wallet, 0, 0, 0, 5 * 10**16, 0, 0, 0, False, LAST_S, BPS, "usual"
    )
    assert all(wallet.after_s < LAST_S for wallet in others(wallets))


@QUICK
@given(seeds)
def test_every_moment_has_wallets_that_sell(seed: bytes) -> None:
    times = [wallet.after_s for wallet in others(drawn(seed=seed))]
    assert [times.count(at_s) for at_s in sorted(MAIN_TIMES)] == [4, 4, 3]
    odd = sorted(at_s for at_s in times if at_s not in MAIN_TIMES)
    hours = ((3700, 7200), (7201, 10_800))
    assert are_spread(odd[:7], 14, 3540)
    assert all(low <= at_s <= high for at_s, (low, high) in zip(odd[7:9], hours, strict=True))
    assert len(odd[9:]) == 5
    assert are_spread(odd[9:], 10_801, 84_000)


@QUICK
@given(seeds)
def test_two_wallets_have_no_values_from_one_part_of_a_scale(seed: bytes) -> None:
    wallets = others(drawn(seed=seed))
    bounds = {
        "purse_wei": (25, POLICY.crowd_purse_wei),
        "tip_wei": (16, (10**6, POLICY.crowd_most_tip_wei)),
        "weth_wei": (6, (10**16, 10**18)),
        "usdg_raw": (6, (10**6, 40 * 10**6)),
    }
    for name, (count, (lowest, highest)) in bounds.items():
        values = sorted(getattr(wallet, name) for wallet in wallets if getattr(wallet, name))
        assert len(values) == count
        assert are_spread(values, lowest, highest)


@QUICK
@given(seeds)
def test_sizes_cover_each_span(seed: bytes) -> None:
    sizes = [wallet.size_wei for wallet in drawn(seed=seed)]
    for (lowest, highest), count in zip(POLICY.crowd_sizes_wei, POLICY.crowd_counts, strict=True):
        assert are_spread(sizes[:count], lowest, highest)
        sizes = sizes[count:]


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_no_drawn_time_is_lost_to_the_wallet_that_sells_in_pieces(seed: bytes) -> None:
    (pieces,) = [wallet for wallet in drawn(seed=seed) if wallet.way == "pieces"]
    assert pieces.after_s in MAIN_TIMES


@EVERY_PLACE
@QUICK
@given(seed=seeds)
def test_every_way_of_selling_is_tried(place: VenuePlace, seed: bytes) -> None:
    wallets = drawn(place, seed)
    assert Counter(wallet.way for wallet in wallets) == {"usual": COUNT - 4, "pieces": 1, "second route": 3}
    assert all(wallet.share_bps == BPS for wallet in wallets if wallet.way != "usual")
    parts = sorted(wallet.share_bps for wallet in wallets if wallet.share_bps < BPS)
    assert len(parts) == 5
    assert are_spread(parts, 100, BPS - 1)
    largest = wallets[-1]
    assert (largest.way, largest.share_bps) == ("usual", BPS)


@QUICK
@given(seeds)
def test_a_curve_has_no_second_route(seed: bytes) -> None:
    ways = [(wallet.way, wallet.share_bps) for wallet in drawn(CURVE, seed)]
    assert {way for way, _ in ways} == {"usual", "pieces"}
    assert ways.count(("usual", BPS)) == COUNT - 6


@pytest.mark.parametrize(
    ("dialect", "tips"), [(None, True), (ANVIL, True), (GETH, True), (NITRO, False)], ids=repr
)
def test_tips_are_drawn_where_the_node_charges_them(dialect: Dialect | None, tips: bool) -> None:
    actual = drawn(head=replace(HEAD, dialect=dialect))
    assert any(wallet.tip_wei for wallet in actual) is tips
    # Without tips nothing else changes.
    assert [replace(wallet, tip_wei=0) for wallet in actual] == [replace(w, tip_wei=0) for w in drawn()]


@pytest.mark.parametrize(
    "field", ["weth_wei", "usdg_raw", "tip_wei", "approves_all", "again_wei"], ids=lambda name: name
)
def test_in_a_few_crowds_some_have_it_and_some_do_not(field: str) -> None:
    actual = [
        bool(getattr(wallet, field)) for n in range(4) for wallet in others(drawn(seed=bytes([n]) * 32))
    ]
    assert 0.1 * len(actual) < sum(actual) < 0.9 * len(actual)


def test_the_same_seed_and_venue_draw_the_same_crowd() -> None:
    assert drawn() == drawn()


@pytest.mark.parametrize(
    ("place", "seed"), [(USDG, SEED), (ETH, SEED), (CURVE, SEED), (WETH, b"\x5f" * 32)],
    ids=["usdg", "eth", "curve", "seed"],
)  # fmt: skip
def test_another_venue_or_seed_draws_another_crowd(place: VenuePlace, seed: bytes) -> None:
    here, there = drawn(), drawn(place, seed)
    assert not {wallet.wallet for wallet in here} & {wallet.wallet for wallet in there}
    assert [wallet.size_wei for wallet in here] != [wallet.size_wei for wallet in there]
    assert [wallet.after_s for wallet in here] != [wallet.after_s for wallet in there]


@QUICK
@given(seeds)
def test_one_wallet_delegates_and_sells_all_of_it_by_the_usual_route(seed: bytes) -> None:
    (wallet,) = [wallet for wallet in drawn(seed=seed) if wallet.delegates]
    assert (wallet.way, wallet.share_bps) == ("usual", BPS)


@QUICK
@given(seeds)
def test_the_largest_is_plain_and_trades_alone(seed: bytes) -> None:
    *among, alone = draw_crowd(seed, WETH, HEAD, POLICY)
    assert tuple(among) == drawn(seed=seed)
    assert POLICY.crowd_largest_wei * 9 // 10 <= alone.size_wei <= POLICY.crowd_largest_wei
    expected = plain_wallet(alone.wallet, alone.nonce, alone.size_wei, POLICY.later_s)
    assert alone == expected


@settings(max_examples=100, deadline=None)
@given(seeds)
def test_the_gaps_between_buys_are_spread_within_their_bounds(seed: bytes) -> None:
    gaps = draw_gaps(seed, POLICY)
    assert len(gaps) == POLICY.crowd_buy_blocks + 1
    assert all(1 <= gap_s <= 60 for gap_s in gaps)
    assert are_spread(sorted(gaps), *POLICY.crowd_gaps_s)


def test_gaps_are_in_any_order_and_no_value_is_a_heap() -> None:
    drawn_gaps = [draw_gaps(bytes([n]) * 32, POLICY) for n in range(200)]
    for at in zip(*drawn_gaps, strict=True):
        assert min(at) <= 2
        assert max(at) >= 50
    highest = Counter(max(gaps) for gaps in drawn_gaps)
    assert max(highest.values()) < 20


# --- recalled wallets ---------------------------------------------------------------------------------


def session_with(*recalled: RecalledWallet) -> CheckSession:
    return replace(session(), recalled=recalled)


def of_seed(number: int, seed: bytes = SEED) -> RecalledWallet:
    return RecalledWallet(WETH.venue.at() or "", "0x" + seed.hex(), number)


def test_wallets_of_this_venue_are_recalled_smallest_first() -> None:
    stranger = replace(of_seed(3), at="0x" + "ee" * 20)
    actual = recall_wallets(session_with(of_seed(9), stranger, of_seed(2), of_seed(2)), WETH, ROOM)
    assert actual == (drawn()[2], drawn()[9])


def test_a_recalled_main_wallet_buys_and_sells_as_it_did() -> None:
    (wallet,) = recall_wallets(session_with(of_seed(MAIN_WALLET)), WETH, ROOM)
    main = main_wallet(draw(SEED, HEAD, POLICY)[0])
    assert (wallet.wallet, wallet.nonce) == (main.buyer, main.nonce)
    assert (wallet.size_wei, wallet.after_s) == (POLICY.probe_wei, POLICY.later_s)


def test_recalled_wallets_are_at_most_four_and_leave_half_of_the_room() -> None:
    every = session_with(*(of_seed(number) for number in range(COUNT)))
    assert len(recall_wallets(every, WETH, ROOM)) == POLICY.most_recalled
    in_room = recall_wallets(every, WETH, 2 * spent(drawn()[0]))
    assert len(in_room) == POLICY.most_recalled
    assert sum(map(spent, in_room)) <= spent(drawn()[0])


def test_every_other_wallet_approves_everything() -> None:
    """So that even the three that a thin pool bears approve in both manners."""
    firsts = set()
    for n in range(20):
        crowd = drawn(seed=n.to_bytes(32, "big"))
        both = [{one.approves_all, other.approves_all} for one, other in pairwise(crowd[:12])]
        assert all(pair == {True, False} for pair in both)
        firsts.add(crowd[0].approves_all)
    assert firsts == {True, False}
