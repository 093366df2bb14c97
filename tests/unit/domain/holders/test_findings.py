"""What is found of a token's holders: every rule with its edges, and what holds of any book."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.types import BURN_ADDRESS, ZERO_ADDRESS
from roundtrip.domain.holders.book import HolderColumns
from roundtrip.domain.holders.deployer import Maker
from roundtrip.domain.holders.findings import (
    FRESH_S,
    MAX_FUNDED,
    Concentration,
    KnownWallet,
    balance_raw,
    biggest,
    bundles,
    busy_funders,
    concentration,
    entry_cap_micro_usd,
    has_bought,
    has_sold_out,
    holds_on_purpose,
    shares,
    suspicious,
    tags,
    top,
)
from roundtrip.domain.holders.ties import HolderTie, disagreement, ties
from unit.domain.holding import (
    AT_S,
    CREATOR,
    DEPLOYER,
    EXCHANGE,
    FUNDER,
    LOCKER,
    PLACES,
    POOL,
    TOKEN,
    A,
    B,
    C,
    D,
    E,
    address,
    book,
    find_holders,
    launch,
    maker,
    paid_by,
    tx,
)

# --- balances --------------------------------------------------------------------------------------


def test_a_balance_is_what_the_token_says_else_what_the_logs_say_and_never_below_zero() -> None:
    known = find_holders(book({A: 5, B: 5, C: -3}), balances={B: 7, D: 2, E: 0})
    assert [balance_raw(known, one) for one in (A, B, C, D, E, FUNDER)] == [5, 7, 0, 2, 0, 0]


def test_the_top_leaves_out_places_burn_addresses_and_the_token_itself() -> None:
    of = book({A: 3, POOL: 50, LOCKER: 40, BURN_ADDRESS: 30, ZERO_ADDRESS: 20, TOKEN: 9, B: 0, C: -1})
    asked = {POOL: 50, BURN_ADDRESS: 30, B: 0}
    assert biggest(find_holders(of, balances=asked), 10) == [(A, 3)]
    assert biggest(find_holders(of), 0) == []


def test_of_equals_the_lower_address_comes_first_and_stays() -> None:
    of = book(dict.fromkeys((C, A, E, B, D), 7))
    assert [wallet for wallet, _ in biggest(find_holders(of, balances={D: 7}), 3)] == [A, B, C]


def test_the_top_is_by_what_was_asked_and_by_that_alone_where_logs_drift() -> None:
    of = book({A: 10, B: 20, C: 30})
    asked = {A: 100, C: 1}
    assert biggest(find_holders(of, balances=asked), 2) == [(A, 100), (B, 20)]
    assert biggest(find_holders(of, balances=asked, drifts=True), 3) == [(A, 100), (C, 1)]


def test_ten_are_shown_where_nothing_is_said_of_how_many() -> None:
    of = book({address(number): number for number in range(1, 13)})
    assert [one.balance_raw for one in top(find_holders(of))] == list(range(12, 2, -1))


@pytest.mark.parametrize(
    ("spent", "bought", "cap"),
    [
        (2_000_000, 10**18, 20_000), (None, 10**18, None), (5, 0, None), (0, 10**18, None),
        (10**6, 3 * 10**24, 0),
    ],
)  # fmt: skip
def test_an_entry_is_what_all_buys_cost(spent: int | None, bought: int, cap: int | None) -> None:
    of = book({A: HolderColumns(balance_raw=1, bought_raw=bought, spent_micro_usd=spent)})
    shown = top(find_holders(of, supply_raw=10**16))[0]
    assert shown.entry_cap_micro_usd == cap


def test_an_entry_of_a_whole_supply_keeps_what_a_base_unit_would_lose() -> None:
    # A dollar for 300 of a billion tokens: 3333.33 dollars for all; a third of a cent for one.
    of = book({A: HolderColumns(bought_raw=300 * 10**18, spent_micro_usd=1_000)})
    assert entry_cap_micro_usd(find_holders(of, supply_raw=10**27), A) == 3_333_333_333


@pytest.mark.parametrize(
    ("received", "sold", "bps"), [(0, 0, 0), (0, 5, 0), (3, 1, 3333), (3, 3, 10_000), (3, 4, 10_000)]
)
def test_what_was_sold_of_what_was_received(received: int, sold: int, bps: int) -> None:
    of = book({A: HolderColumns(balance_raw=1, received_raw=received, sold_raw=sold)})
    assert top(find_holders(of))[0].sold_bps == bps


# --- shares ----------------------------------------------------------------------------------------


def test_shares_of_every_sort_of_place() -> None:
    of = book({A: 3, POOL: 50, LOCKER: 40, BURN_ADDRESS: 30, ZERO_ADDRESS: -9, TOKEN: 9})
    found = shares(find_holders(of, balances={ZERO_ADDRESS: 2}))
    assert (found.wallets, found.top_raw, found.in_pools_raw) == (1, 3, 50)
    assert (found.burned_raw, found.locked_raw) == (32, 49)


def test_a_burn_address_that_is_called_a_place_counts_once() -> None:
    of = book({BURN_ADDRESS: 30, POOL: 5})
    of.beginning = replace(of.beginning, places=replace(PLACES, beside=frozenset({BURN_ADDRESS, POOL})))
    found = shares(find_holders(of))
    assert (found.in_pools_raw, found.burned_raw, found.locked_raw) == (5, 30, 0)


# --- how even it is --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "gini_bps", "nakamoto"),
    [([5], 0, 1), ([5, 5], 0, 2), ([5, 5, 5, 5], 0, 3), ([1, 3], 2500, 1), ([1, 1, 1, 3], 2500, 2),
     ([1, 1, 1, 7], 4500, 1), ([1, 2, 3], 2222, 2)],
)  # fmt: skip
def test_concentration_of_a_few(held: list[int], gini_bps: int, nakamoto: int) -> None:
    of = book({address(number): raw for number, raw in enumerate(held, 1)} | {POOL: 99, E: 0, D: -4})
    assert concentration(find_holders(of)) == Concentration(gini_bps, nakamoto)


def test_no_concentration_of_nothing_or_of_logs_that_lie() -> None:
    assert concentration(find_holders(book({POOL: 5, A: 0}))) is None
    assert concentration(find_holders(book({A: 5}), drifts=True)) is None


# --- who they are ----------------------------------------------------------------------------------


def test_every_tag_in_its_order() -> None:
    of = book({A: HolderColumns(bought_raw=1, first_buy_s=AT_S)})
    known = find_holders(
        of,
        maker=Maker(A, "launchpad", (A,), None),
        wallets={A: KnownWallet(first_s=AT_S, is_contract=True, funder=A), B: KnownWallet(funder=A)},
        winners={A},
    )
    all_of_his = ("deployer", "creator", "sniper", "bundle", "fresh", "winner", "contract")
    assert tags(known, A, [A], [A]) == all_of_his
    # A contract that sends eth ties nobody to itself.
    assert tags(known, B, [], []) == ()
    assert tags(replace(known, wallets={B: KnownWallet(funder=A)}), B, [], []) == ("funded_by_deployer",)
    assert tags(replace(known, maker=None), B, [], []) == ()
    assert tags(known, C, [A], [B]) == ()


@pytest.mark.parametrize(
    ("first_s", "bought_s", "is_fresh"),
    [
        (AT_S, AT_S, True), (AT_S, AT_S + FRESH_S, True), (AT_S, AT_S + FRESH_S + 1, False),
        (AT_S, AT_S - 1, False), (None, AT_S, False), (AT_S, None, False),
    ],
)  # fmt: skip
def test_who_is_fresh(first_s: int | None, bought_s: int | None, is_fresh: bool) -> None:
    known = find_holders(
        book({A: HolderColumns(first_buy_s=bought_s)}), wallets={A: KnownWallet(first_s=first_s)}
    )
    assert ("fresh" in tags(known, A, [], [])) is is_fresh


def test_a_deployer_who_pays_a_crowd_is_still_the_deployer() -> None:
    launched = launch((A, 1), (B, 2), (C, 4))
    paid = paid_by(DEPLOYER, A, B, C)
    for families in ({}, {DEPLOYER: MAX_FUNDED}, {DEPLOYER: MAX_FUNDED + 1}):
        known = find_holders(book({}, launched), wallets=paid, families=families)
        assert tags(known, A, [], []) == ("funded_by_deployer",)
        assert [one.wallets for one in bundles(known, launched)] == [(A, B, C)]
        assert busy_funders(known, launched) == []
    busy = find_holders(book({}), wallets=paid, families={DEPLOYER: MAX_FUNDED + 1}, never=(DEPLOYER,))
    assert tags(busy, A, [], []) == ()
    assert bundles(busy, launched) == []
    assert busy_funders(busy, launched) == [(DEPLOYER, 3)]


def test_a_funder_of_a_crowd_is_told_apart() -> None:
    launched = launch((A, 1), (B, 2), (C, 4), (D, 8), (E, 16))
    wallets = {**paid_by(EXCHANGE, A, B, C), **paid_by(FUNDER, D, E)}
    known = find_holders(book({}, launched), wallets=wallets, families=dict.fromkeys((EXCHANGE, FUNDER), 501))
    assert busy_funders(known, launched) == [(EXCHANGE, 3)]
    assert busy_funders(replace(known, families={EXCHANGE: 500}), launched) == []


@pytest.mark.parametrize(
    ("holding", "supply", "bought", "holds"),
    [
        (HolderColumns(1, 1), 10_000, False, False),
        (HolderColumns(1, 1, 1), 10_000, True, True),
        (HolderColumns(1, 1, 1), 10_001, True, False),
        (HolderColumns(1, 1, 1, spent_micro_usd=10**7), 10_001, True, True),
        (HolderColumns(1, 1, 1, spent_micro_usd=10**7 - 1), 10_001, True, False),
        (HolderColumns(50, 50, 1), 100_000, True, True),
        (HolderColumns(50, 50, 1), 100_001, False, False),
        (HolderColumns(0, 50, 50), 50, True, False),
    ],
)
def test_who_holds_on_purpose(holding: HolderColumns, supply: int, bought: bool, holds: bool) -> None:
    known = find_holders(book({A: holding}), supply, winners=(A,))
    assert (has_bought(known, A), holds_on_purpose(known, A)) == (bought, holds)
    assert ("winner" in tags(known, A, [], [])) is bought


def test_what_went_to_and_fro_is_no_reason_not_to_have_sold_out() -> None:
    assert has_sold_out(find_holders(book({A: HolderColumns(0, 4000, 1000, 1000)})), A)
    assert not has_sold_out(find_holders(book({A: HolderColumns(2, 4000, 1000, 998)})), A)
    assert not has_sold_out(find_holders(book({A: HolderColumns(0, 4000, 1000, 499)})), A)


def test_suspicious_hands_each_once_and_no_places() -> None:
    launched = launch((A, 1), (DEPLOYER, 1), (POOL, 1))
    wallets = {**paid_by(DEPLOYER, A, B, LOCKER), **paid_by(FUNDER, C)}
    known = find_holders(book({}, launched), wallets=wallets)
    assert suspicious(known, launched) == (DEPLOYER, CREATOR, A, B)
    assert suspicious(replace(known, maker=maker()), None) == (DEPLOYER, A, B)
    # A wallet that launches may name any stranger; who launches through a contract may be behind it.
    for is_contract, others in ((False, (A, B)), (True, (CREATOR, A)), (None, (CREATOR, A, B))):
        wallets[DEPLOYER] = KnownWallet(is_contract=is_contract)
        found = suspicious(replace(known, wallets=wallets), launched)
        assert found == (DEPLOYER, *others)
    named = {**paid_by(DEPLOYER, CREATOR), DEPLOYER: KnownWallet(is_contract=False)}
    assert suspicious(replace(known, wallets=named), None) == (DEPLOYER, CREATOR)
    assert suspicious(replace(known, maker=None), launched) == (A, DEPLOYER)


def test_every_tie_has_what_shows_it() -> None:
    launched = launch((A, 1, 9), (B, 1, 9), (C, 1, 9), (DEPLOYER, 1))
    wallets = {**paid_by(FUNDER, A, B, C), **paid_by(DEPLOYER, D)}
    known = find_holders(book({}, launched), wallets=wallets, families={FUNDER: 3})
    assert ties(known, launched) == [
        HolderTie(DEPLOYER, "deployed", None, tx(1)),
        HolderTie(D, "funded_by_deployer", DEPLOYER, tx(0xFA)),
        *(HolderTie(one, "same_transaction", None, tx(9)) for one in (A, B, C)),
        *(HolderTie(one, "same_funder", FUNDER, tx(0xFA)) for one in (A, B, C)),
        *(HolderTie(one, "sniped", None, tx(9)) for one in (A, B, C)),
    ]
    assert ties(replace(known, maker=None), None) == []


def test_logs_held_against_what_the_token_tells() -> None:
    of = book({A: 60, B: 40, ZERO_ADDRESS: 10})
    same = disagreement(find_holders(of, supply_raw=100, balances={A: 60}))
    assert (same.wallets_asked, same.wallets_off, same.most_off_raw, same.supply_off_raw) == (1, 0, 0, 0)
    # A token whose supply still counts what went to nowhere is no liar.
    assert disagreement(find_holders(of, supply_raw=110)).supply_off_raw == 0
    thrown = book({A: 60, B: 40, ZERO_ADDRESS: HolderColumns(balance_raw=-100, received_raw=10, first_s=5)})
    for tells, supply_raw, off_raw in ((10, 110, 0), (0, 100, 0), (0, 110, -10), (30, 130, -20)):
        one = find_holders(thrown, supply_raw=supply_raw, balances={ZERO_ADDRESS: tells})
        assert disagreement(one).supply_off_raw == off_raw
    off = disagreement(find_holders(of, supply_raw=150, balances={A: 90, B: 39, C: 1}))
    assert (off.wallets_asked, off.wallets_off, off.most_off_raw, off.supply_off_raw) == (3, 3, 30, -40)
    assert disagreement(find_holders(of, supply_raw=90)).supply_off_raw == 10
