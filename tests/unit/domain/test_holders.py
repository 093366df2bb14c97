"""What is found of a token's holders: every rule with its edges, and what holds of any book."""

from dataclasses import replace

import pytest

from roundtrip.domain.deployer_deeds import DeployerDeeds, Status, deployer_deeds
from roundtrip.domain.holder_book import Holding, LaunchTold, Ledger
from roundtrip.domain.holder_ties import Tie, disagreement, ties
from roundtrip.domain.holders import (
    FRESH_S,
    MOST_FUNDED,
    Bundle,
    Concentration,
    Told,
    Wallet,
    balance_raw,
    biggest,
    bundles,
    concentration,
    crowded,
    entry_cap_micro_usd,
    has_bought,
    has_sold_out,
    holds_on_purpose,
    shares,
    snipers,
    suspicious,
    tags,
    top,
)
from roundtrip.domain.maker import Maker
from roundtrip.domain.types import BURN_ADDRESS, ZERO_ADDRESS
from unit.domain.holding import (
    AT_S,
    CREATOR,
    DEPLOYER,
    LOCKER,
    PLACES,
    POOL,
    TOKEN,
    address,
    book,
    deeds,
    launch,
    maker,
    paid_by,
    told,
    tx,
)

A, B, C, D, E = (address(number) for number in range(0xA1, 0xA6))
FUNDER, EXCHANGE = address(0xB1), address(0xB2)


# --- balances --------------------------------------------------------------------------------------


def test_a_balance_is_what_the_token_says_else_what_the_logs_say_and_never_below_zero() -> None:
    known = told(book({A: 5, B: 5, C: -3}), balances={B: 7, D: 2, E: 0})
    assert [balance_raw(known, one) for one in (A, B, C, D, E, FUNDER)] == [5, 7, 0, 2, 0, 0]


def test_the_top_leaves_out_places_burn_addresses_and_the_token_itself() -> None:
    of = book({A: 3, POOL: 50, LOCKER: 40, BURN_ADDRESS: 30, ZERO_ADDRESS: 20, TOKEN: 9, B: 0, C: -1})
    asked = {POOL: 50, BURN_ADDRESS: 30, B: 0}
    assert biggest(told(of, balances=asked), 10) == [(A, 3)]
    assert biggest(told(of), 0) == []


def test_of_equals_the_lower_address_comes_first_and_stays() -> None:
    of = book(dict.fromkeys((C, A, E, B, D), 7))
    assert [wallet for wallet, _ in biggest(told(of, balances={D: 7}), 3)] == [A, B, C]


def test_the_top_is_by_what_was_asked_and_by_that_alone_where_logs_drift() -> None:
    of = book({A: 10, B: 20, C: 30})
    asked = {A: 100, C: 1}
    assert biggest(told(of, balances=asked), 2) == [(A, 100), (B, 20)]
    assert biggest(told(of, balances=asked, drifts=True), 3) == [(A, 100), (C, 1)]


def test_ten_are_shown_where_nothing_is_said_of_how_many() -> None:
    of = book({address(number): number for number in range(1, 13)})
    assert [one.balance_raw for one in top(told(of))] == list(range(12, 2, -1))


@pytest.mark.parametrize(
    ("spent", "bought", "cap"),
    [
        (2_000_000, 10**18, 20_000), (None, 10**18, None), (5, 0, None), (0, 10**18, None),
        (10**6, 3 * 10**24, 0),
    ],
)  # fmt: skip
def test_an_entry_is_what_all_buys_cost(spent: int | None, bought: int, cap: int | None) -> None:
    of = book({A: Holding(balance_raw=1, bought_raw=bought, spent_micro_usd=spent)})
    shown = top(told(of, supply_raw=10**16))[0]
    assert shown.entry_cap_micro_usd == cap


def test_an_entry_of_a_whole_supply_keeps_what_a_base_unit_would_lose() -> None:
    # A dollar for 300 of a billion tokens: 3333.33 dollars for all; a third of a cent for one.
    of = book({A: Holding(bought_raw=300 * 10**18, spent_micro_usd=1_000)})
    assert entry_cap_micro_usd(told(of, supply_raw=10**27), A) == 3_333_333_333


@pytest.mark.parametrize(
    ("received", "sold", "bps"), [(0, 0, 0), (0, 5, 0), (3, 1, 3333), (3, 3, 10_000), (3, 4, 10_000)]
)
def test_what_was_sold_of_what_was_received(received: int, sold: int, bps: int) -> None:
    of = book({A: Holding(balance_raw=1, received_raw=received, sold_raw=sold)})
    assert top(told(of))[0].sold_bps == bps


# --- shares ----------------------------------------------------------------------------------------


def test_shares_of_every_sort_of_place() -> None:
    of = book({A: 3, POOL: 50, LOCKER: 40, BURN_ADDRESS: 30, ZERO_ADDRESS: -9, TOKEN: 9})
    found = shares(told(of, balances={ZERO_ADDRESS: 2}))
    assert (found.wallets, found.top_raw, found.in_pools_raw) == (1, 3, 50)
    assert (found.burned_raw, found.beside_raw) == (32, 49)


def test_a_burn_address_that_is_called_a_place_counts_once() -> None:
    of = book({BURN_ADDRESS: 30, POOL: 5})
    of.beginning = replace(of.beginning, places=replace(PLACES, beside=frozenset({BURN_ADDRESS, POOL})))
    found = shares(told(of))
    assert (found.in_pools_raw, found.burned_raw, found.beside_raw) == (5, 30, 0)


# --- the launch ------------------------------------------------------------------------------------


def test_snipers_are_the_launch_buyers_without_the_deployer() -> None:
    of = book(
        {
            A: Holding(balance_raw=1, received_raw=1000, sold_raw=500),
            B: Holding(balance_raw=2, received_raw=1000, sold_raw=998),
            C: Holding(balance_raw=0, received_raw=1000, sold_raw=499),
            CREATOR: Holding(balance_raw=0, received_raw=10, sold_raw=10),
            DEPLOYER: 100,
        },
        launch((DEPLOYER, 7), (A, 10), (B, 20), (C, 30), (CREATOR, 40)),
    )
    found = snipers(told(of))
    assert found is not None
    assert found.wallets == (A, B, C, CREATOR)
    assert (found.bought_raw, found.held_raw, found.sold_out) == (100, 3, 2)


@pytest.mark.parametrize("launched", [None, launch(), launch((DEPLOYER, 5))])
def test_nobody_sniped(launched: LaunchTold | None) -> None:
    assert snipers(told(book({}, launched))) is None


@pytest.mark.parametrize(
    ("balance", "received", "sold", "is_out"),
    [(0, 0, 0, False), (0, 10, 0, False), (0, 10, 5, True), (0, 11, 5, False), (1, 1000, 999, True),
     (1, 999, 998, False)],
)  # fmt: skip
def test_who_sold_out(balance: int, received: int, sold: int, is_out: bool) -> None:
    of = book({A: Holding(balance_raw=balance, received_raw=received, sold_raw=sold)})
    assert has_sold_out(told(of), A) is is_out


def test_three_of_one_funder_are_a_bundle_and_two_are_none() -> None:
    launched = launch((A, 1), (B, 2), (C, 4), (D, 8))
    wallets = {**paid_by(FUNDER, A, B, C), **paid_by(EXCHANGE, D)}
    known = told(book({A: 5, B: 6}, launched), wallets=wallets, families={FUNDER: 3, EXCHANGE: 1})
    assert bundles(known, launched) == [Bundle((A, B, C), FUNDER, None, 7, 11)]
    two = replace(known, wallets=paid_by(FUNDER, A, B))
    assert bundles(two, launched) == []
    assert bundles(two, launched, 2) == [Bundle((A, B), FUNDER, None, 3, 11)]


def _three(**changes: object) -> tuple[Told, LaunchTold]:
    launched = launch((A, 1), (B, 2), (C, 4))
    known = told(book({}, launched), wallets=paid_by(FUNDER, A, B, C), families={FUNDER: MOST_FUNDED})
    return replace(known, **changes), launched  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"families": {FUNDER: MOST_FUNDED + 1}},
        {"families": {}},
        {"never_group": frozenset({FUNDER})},
        {"wallets": paid_by(FUNDER, A, B, C) | {FUNDER: Wallet(is_contract=True)}},
        {"wallets": paid_by(POOL, A, B, C), "families": {POOL: 3}},
        {"wallets": paid_by(ZERO_ADDRESS, A, B, C), "families": {ZERO_ADDRESS: 3}},
    ],
)
def test_a_funder_that_groups_nobody(changes: dict[str, object]) -> None:
    assert len(bundles(*_three())) == 1
    assert bundles(*_three(**changes)) == []


def test_three_in_one_transaction_are_a_bundle_but_not_of_an_entry_point() -> None:
    launched = launch((A, 1, 9), (B, 2, 9), (C, 4, 9), (D, 8, 10))
    known = told(book({}, launched))
    assert bundles(known, launched) == [Bundle((A, B, C), None, tx(9), 7, 0)]
    assert bundles(replace(known, never_group=frozenset({tx(9)})), launched) == []


def test_the_deployer_and_whom_he_paid_belong_together() -> None:
    launched = launch((A, 1), (DEPLOYER, 2), (B, 4))
    known = told(book({}, launched), wallets=paid_by(DEPLOYER, A, B), families={DEPLOYER: 2})
    assert bundles(known, launched) == [Bundle((A, DEPLOYER, B), DEPLOYER, None, 7, 0)]


def test_bundles_that_share_a_wallet_are_one() -> None:
    # Three in one transaction, four of one funder, and one of them in both; the fifth pair is none.
    launched = launch((A, 1, 9), (B, 2, 9), (C, 4, 9), (D, 8), (E, 16), (FUNDER, 32))
    known = told(
        book({}, launched),
        wallets={**paid_by(FUNDER, C, D, E), **paid_by(EXCHANGE, A, B)},
        families={FUNDER: 3, EXCHANGE: 2},
    )
    assert bundles(known, launched) == [Bundle((A, B, C, D, E, FUNDER), FUNDER, tx(9), 63, 0)]


def test_a_bundle_of_several_funders_is_named_after_the_one_that_paid_most_of_it() -> None:
    few, many = (A, B, C), tuple(address(number) for number in range(0xC1, 0xC5))
    launched = launch(*((one, 1) for one in (*few, FUNDER, *many)))
    wallets = {**paid_by(FUNDER, *few), **paid_by(EXCHANGE, FUNDER, *many)}
    known = told(book({}, launched), wallets=wallets, families={FUNDER: 3, EXCHANGE: 5})
    assert bundles(known, launched) == [Bundle((*few, FUNDER, *many), EXCHANGE, None, 8, 0)]


def test_a_chain_of_pairs_is_no_bundle() -> None:
    launched = launch((A, 1, 9), (B, 2, 9), (C, 4), (D, 8))
    wallets = {**paid_by(FUNDER, B, C), **paid_by(EXCHANGE, D)}
    known = told(book({}, launched), wallets=wallets, families={FUNDER: 2, EXCHANGE: 1})
    assert bundles(known, launched) == []
    assert [one.wallets for one in bundles(known, launched, 2)] == [(A, B, C)]


def test_the_bundle_that_bought_most_comes_first() -> None:
    few, many = (A, B, C), tuple(address(number) for number in range(0xC1, 0xC4))
    launched = launch(*((one, 1) for one in few), *((one, 2) for one in many))
    wallets = {**paid_by(FUNDER, *few), **paid_by(EXCHANGE, *many)}
    known = told(book({}, launched), wallets=wallets, families={FUNDER: 3, EXCHANGE: 3})
    assert [one.wallets for one in bundles(known, launched)] == [many, few]


# --- the deployer ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "status"),
    [
        (deeds(0), "never_held"),
        (deeds(1000, 1000), "holds_all"),
        (deeds(990, 1000, sold=10), "holds_all"),
        (deeds(989, 1000, sold=11), "holds_some"),
        (deeds(10, 1000, sold=990), "holds_some"),
        (deeds(9, 1000, sold=500, moved=491), "sold_out"),
        (deeds(0, 1000, sold=400, moved=300, pooled=300), "moved_out"),
        (deeds(0, 1000, sold=500, moved=250, pooled=250), "sold_out"),
        (deeds(0, 1000, sold=100, moved=400, pooled=50, burned=450), "moved_out"),
        (deeds(0, 1000, sold=200, moved=200, burned=600), "burned_out"),
        (deeds(0, 1000, sold=0, moved=500, burned=500), "moved_out"),
        # The token gave it without a transfer, and took it back so.
        (deeds(5), "holds_all"),
        (deeds(0, 1000), "moved_out"),
        # Sold what no transfer had brought: he had it.
        (deeds(0, 0, sold=7), "sold_out"),
    ],
)
def test_the_deployers_status(known: Told, status: Status) -> None:
    found = deployer_deeds(known)
    assert found is not None
    assert found.status == status


def test_what_the_deployer_holds_is_what_the_token_says() -> None:
    known = replace(deeds(1000, 1000, sold=3, moved=2, pooled=4, burned=5), balances={DEPLOYER: 6})
    assert deployer_deeds(known) == DeployerDeeds("moved_out", 1000, 0, 3, 2, 4, 5, 6)


def test_of_logs_that_drift_a_deployer_is_not_flattered() -> None:
    def found(held: int, ledger: Ledger) -> tuple[Status, int] | None:
        known = deployer_deeds(told(book({DEPLOYER: held}, ledgers={DEPLOYER: ledger}), drifts=True))
        return None if known is None else (known.status, known.received_raw)

    assert found(0, Ledger()) is None
    assert found(1000, Ledger()) == ("holds_all", 1000)
    # Of what came to him without a word he sold most.
    assert found(1000, Ledger(0, 0, 8000, 0, 1000)) == ("holds_some", 10_000)
    assert found(999, Ledger(0, 0, 1)) == ("holds_some", 1000)
    assert found(0, Ledger(0, 0, 8000, 0, 1000)) == ("sold_out", 9000)


def test_an_unknown_deployer_and_one_that_was_not_followed() -> None:
    assert deployer_deeds(told(book({}), maker=None)) is None
    assert deployer_deeds(told(book({}), maker=Maker(A, "deployment", (), None))) is None
    never = deployer_deeds(told(book({})))
    assert never is not None
    assert never.status == "never_held"


# --- how even it is --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "gini_bps", "nakamoto"),
    [([5], 0, 1), ([5, 5], 0, 2), ([5, 5, 5, 5], 0, 3), ([1, 3], 2500, 1), ([1, 1, 1, 3], 2500, 2),
     ([1, 1, 1, 7], 4500, 1), ([1, 2, 3], 2222, 2)],
)  # fmt: skip
def test_concentration_of_a_few(held: list[int], gini_bps: int, nakamoto: int) -> None:
    of = book({address(number): raw for number, raw in enumerate(held, 1)} | {POOL: 99, E: 0, D: -4})
    assert concentration(told(of)) == Concentration(gini_bps, nakamoto)


def test_no_concentration_of_nothing_or_of_logs_that_lie() -> None:
    assert concentration(told(book({POOL: 5, A: 0}))) is None
    assert concentration(told(book({A: 5}), drifts=True)) is None


# --- who they are ----------------------------------------------------------------------------------


def test_every_tag_in_its_order() -> None:
    of = book({A: Holding(bought_raw=1, first_buy_s=AT_S)})
    known = told(
        of,
        maker=Maker(A, "launchpad", (A,), None),
        wallets={A: Wallet(first_s=AT_S, is_contract=True, funder=A), B: Wallet(funder=A)},
        winners={A},
    )
    all_of_his = ("deployer", "creator", "sniper", "bundle", "fresh", "winner", "contract")
    assert tags(known, A, [A], [A]) == all_of_his
    # A contract that sends eth ties nobody to itself.
    assert tags(known, B, [], []) == ()
    assert tags(replace(known, wallets={B: Wallet(funder=A)}), B, [], []) == ("funded_by_deployer",)
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
    known = told(book({A: Holding(first_buy_s=bought_s)}), wallets={A: Wallet(first_s=first_s)})
    assert ("fresh" in tags(known, A, [], [])) is is_fresh


def test_a_deployer_who_pays_a_crowd_is_still_the_deployer() -> None:
    launched = launch((A, 1), (B, 2), (C, 4))
    paid = paid_by(DEPLOYER, A, B, C)
    for families in ({}, {DEPLOYER: MOST_FUNDED}, {DEPLOYER: MOST_FUNDED + 1}):
        known = told(book({}, launched), wallets=paid, families=families)
        assert tags(known, A, [], []) == ("funded_by_deployer",)
        assert [one.wallets for one in bundles(known, launched)] == [(A, B, C)]
        assert crowded(known, launched) == []
    busy = told(book({}), wallets=paid, families={DEPLOYER: MOST_FUNDED + 1}, never=(DEPLOYER,))
    assert tags(busy, A, [], []) == ()
    assert bundles(busy, launched) == []
    assert crowded(busy, launched) == [(DEPLOYER, 3)]


def test_a_funder_of_a_crowd_is_told_apart() -> None:
    launched = launch((A, 1), (B, 2), (C, 4), (D, 8), (E, 16))
    wallets = {**paid_by(EXCHANGE, A, B, C), **paid_by(FUNDER, D, E)}
    known = told(book({}, launched), wallets=wallets, families=dict.fromkeys((EXCHANGE, FUNDER), 501))
    assert crowded(known, launched) == [(EXCHANGE, 3)]
    assert crowded(replace(known, families={EXCHANGE: 500}), launched) == []


@pytest.mark.parametrize(
    ("holding", "supply", "bought", "holds"),
    [
        (Holding(1, 1), 10_000, False, False),
        (Holding(1, 1, 1), 10_000, True, True),
        (Holding(1, 1, 1), 10_001, True, False),
        (Holding(1, 1, 1, spent_micro_usd=10**7), 10_001, True, True),
        (Holding(1, 1, 1, spent_micro_usd=10**7 - 1), 10_001, True, False),
        (Holding(50, 50, 1), 100_000, True, True),
        (Holding(50, 50, 1), 100_001, False, False),
        (Holding(0, 50, 50), 50, True, False),
    ],
)
def test_who_holds_on_purpose(holding: Holding, supply: int, bought: bool, holds: bool) -> None:
    known = told(book({A: holding}), supply, winners=(A,))
    assert (has_bought(known, A), holds_on_purpose(known, A)) == (bought, holds)
    assert ("winner" in tags(known, A, [], [])) is bought


def test_what_went_to_and_fro_is_no_reason_not_to_have_sold_out() -> None:
    assert has_sold_out(told(book({A: Holding(0, 4000, 1000, 1000)})), A)
    assert not has_sold_out(told(book({A: Holding(2, 4000, 1000, 998)})), A)
    assert not has_sold_out(told(book({A: Holding(0, 4000, 1000, 499)})), A)


def test_suspicious_hands_each_once_and_no_places() -> None:
    launched = launch((A, 1), (DEPLOYER, 1), (POOL, 1))
    wallets = {**paid_by(DEPLOYER, A, B, LOCKER), **paid_by(FUNDER, C)}
    known = told(book({}, launched), wallets=wallets)
    assert suspicious(known, launched) == (DEPLOYER, CREATOR, A, B)
    assert suspicious(replace(known, maker=maker()), None) == (DEPLOYER, A, B)
    # A wallet that launches may name any stranger; who launches through a contract may be behind it.
    for is_contract, others in ((False, (A, B)), (True, (CREATOR, A)), (None, (CREATOR, A, B))):
        wallets[DEPLOYER] = Wallet(is_contract=is_contract)
        found = suspicious(replace(known, wallets=wallets), launched)
        assert found == (DEPLOYER, *others)
    named = {**paid_by(DEPLOYER, CREATOR), DEPLOYER: Wallet(is_contract=False)}
    assert suspicious(replace(known, wallets=named), None) == (DEPLOYER, CREATOR)
    assert suspicious(replace(known, maker=None), launched) == (A, DEPLOYER)


def test_every_tie_has_what_shows_it() -> None:
    launched = launch((A, 1, 9), (B, 1, 9), (C, 1, 9), (DEPLOYER, 1))
    wallets = {**paid_by(FUNDER, A, B, C), **paid_by(DEPLOYER, D)}
    known = told(book({}, launched), wallets=wallets, families={FUNDER: 3})
    assert ties(known, launched) == [
        Tie(DEPLOYER, "deployed", None, tx(1)),
        Tie(D, "funded_by_deployer", DEPLOYER, tx(0xFA)),
        *(Tie(one, "same_transaction", None, tx(9)) for one in (A, B, C)),
        *(Tie(one, "same_funder", FUNDER, tx(0xFA)) for one in (A, B, C)),
        *(Tie(one, "sniped", None, tx(9)) for one in (A, B, C)),
    ]
    assert ties(replace(known, maker=None), None) == []


def test_logs_held_against_what_the_token_tells() -> None:
    of = book({A: 60, B: 40, ZERO_ADDRESS: 10})
    same = disagreement(told(of, supply_raw=100, balances={A: 60}))
    assert (same.wallets_asked, same.wallets_off, same.most_off_raw, same.supply_off_raw) == (1, 0, 0, 0)
    # A token whose supply still counts what went to nowhere is no liar.
    assert disagreement(told(of, supply_raw=110)).supply_off_raw == 0
    thrown = book({A: 60, B: 40, ZERO_ADDRESS: Holding(balance_raw=-100, received_raw=10, first_s=5)})
    for tells, supply_raw, off_raw in ((10, 110, 0), (0, 100, 0), (0, 110, -10), (30, 130, -20)):
        one = told(thrown, supply_raw=supply_raw, balances={ZERO_ADDRESS: tells})
        assert disagreement(one).supply_off_raw == off_raw
    off = disagreement(told(of, supply_raw=150, balances={A: 90, B: 39, C: 1}))
    assert (off.wallets_asked, off.wallets_off, off.most_off_raw, off.supply_off_raw) == (3, 3, 30, -40)
    assert disagreement(told(of, supply_raw=90)).supply_off_raw == 10
