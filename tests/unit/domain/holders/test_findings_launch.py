"""What is said of a launch and its deployer by who holds the token."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.domain.holders.book import HolderColumns, InsiderLedger, LaunchBuys
from roundtrip.domain.holders.deployer import Maker
from roundtrip.domain.holders.deployer_summary import DeployerDeeds, Status, deployer_deeds
from roundtrip.domain.holders.findings import (
    MAX_FUNDED,
    Bundle,
    HolderInputs,
    KnownWallet,
    bundles,
    has_sold_out,
    snipers,
    suspicious,
)
from unit.domain.holding import (
    CREATOR,
    DEPLOYER,
    EXCHANGE,
    FUNDER,
    POOL,
    A,
    B,
    C,
    D,
    E,
    address,
    book,
    deeds,
    find_holders,
    launch,
    paid_by,
    tx,
)


def test_snipers_are_the_launch_buyers_without_the_deployer() -> None:
    of = book(
        {
            A: HolderColumns(balance_raw=1, received_raw=1000, sold_raw=500),
            B: HolderColumns(balance_raw=2, received_raw=1000, sold_raw=998),
            C: HolderColumns(balance_raw=0, received_raw=1000, sold_raw=499),
            CREATOR: HolderColumns(balance_raw=0, received_raw=10, sold_raw=10),
            DEPLOYER: 100,
        },
        launch((DEPLOYER, 7), (A, 10), (B, 20), (C, 30), (CREATOR, 40)),
    )
    found = snipers(find_holders(of))
    assert found is not None
    assert found.wallets == (A, B, C, CREATOR)
    assert (found.bought_raw, found.held_raw, found.sold_out) == (100, 3, 2)


@pytest.mark.parametrize("launched", [None, launch(), launch((DEPLOYER, 5))])
def test_nobody_sniped(launched: LaunchBuys | None) -> None:
    assert snipers(find_holders(book({}, launched))) is None


def test_who_raced_nobody_is_no_sniper_and_no_insider_unless_bundled() -> None:
    launched = replace(launch((DEPLOYER, 1), (A, 10), (B, 20), (C, 40), (D, 80)), is_opening=False)
    alone = find_holders(book({A: 10, D: 80}, launched))
    assert snipers(alone) is None
    assert suspicious(alone, launched) == (DEPLOYER, CREATOR)
    tied = replace(alone, wallets=paid_by(FUNDER, A, B, C), families={FUNDER: 3})
    assert snipers(tied) is None
    assert [one.wallets for one in bundles(tied, launched)] == [(A, B, C)]
    assert suspicious(tied, launched) == (DEPLOYER, CREATOR, A, B, C)
    assert suspicious(tied, replace(launched, is_opening=True)) == (DEPLOYER, CREATOR, A, B, C, D)


@pytest.mark.parametrize(
    ("balance", "received", "sold", "is_out"),
    [(0, 0, 0, False), (0, 10, 0, False), (0, 10, 5, True), (0, 11, 5, False), (1, 1000, 999, True),
     (1, 999, 998, False)],
)  # fmt: skip
def test_who_sold_out(balance: int, received: int, sold: int, is_out: bool) -> None:
    of = book({A: HolderColumns(balance_raw=balance, received_raw=received, sold_raw=sold)})
    assert has_sold_out(find_holders(of), A) is is_out


def test_three_of_one_funder_are_a_bundle_and_two_are_none() -> None:
    launched = launch((A, 1), (B, 2), (C, 4), (D, 8))
    wallets = {**paid_by(FUNDER, A, B, C), **paid_by(EXCHANGE, D)}
    known = find_holders(book({A: 5, B: 6}, launched), wallets=wallets, families={FUNDER: 3, EXCHANGE: 1})
    assert bundles(known, launched) == [Bundle((A, B, C), FUNDER, None, 7, 11)]
    two = replace(known, wallets=paid_by(FUNDER, A, B))
    assert bundles(two, launched) == []
    assert bundles(two, launched, 2) == [Bundle((A, B), FUNDER, None, 3, 11)]


def _three(**changes: object) -> tuple[HolderInputs, LaunchBuys]:
    launched = launch((A, 1), (B, 2), (C, 4))
    known = find_holders(book({}, launched), wallets=paid_by(FUNDER, A, B, C), families={FUNDER: MAX_FUNDED})
    return replace(known, **changes), launched  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"families": {FUNDER: MAX_FUNDED + 1}},
        {"families": {}},
        {"never_group": frozenset({FUNDER})},
        {"wallets": paid_by(FUNDER, A, B, C) | {FUNDER: KnownWallet(is_contract=True)}},
        {"wallets": paid_by(POOL, A, B, C), "families": {POOL: 3}},
        {"wallets": paid_by(ZERO_ADDRESS, A, B, C), "families": {ZERO_ADDRESS: 3}},
    ],
)
def test_a_funder_that_groups_nobody(changes: dict[str, object]) -> None:
    assert len(bundles(*_three())) == 1
    assert bundles(*_three(**changes)) == []


def test_three_in_one_transaction_are_a_bundle_but_not_of_an_entry_point() -> None:
    launched = launch((A, 1, 9), (B, 2, 9), (C, 4, 9), (D, 8, 10))
    known = find_holders(book({}, launched))
    assert bundles(known, launched) == [Bundle((A, B, C), None, tx(9), 7, 0)]
    assert bundles(replace(known, never_group=frozenset({tx(9)})), launched) == []


def test_the_deployer_and_whom_he_paid_belong_together() -> None:
    launched = launch((A, 1), (DEPLOYER, 2), (B, 4))
    known = find_holders(book({}, launched), wallets=paid_by(DEPLOYER, A, B), families={DEPLOYER: 2})
    assert bundles(known, launched) == [Bundle((A, DEPLOYER, B), DEPLOYER, None, 7, 0)]


def test_bundles_that_share_a_wallet_are_one() -> None:
    # Three in one transaction, four of one funder, and one of them in both; the fifth pair is none.
    launched = launch((A, 1, 9), (B, 2, 9), (C, 4, 9), (D, 8), (E, 16), (FUNDER, 32))
    known = find_holders(
        book({}, launched),
        wallets={**paid_by(FUNDER, C, D, E), **paid_by(EXCHANGE, A, B)},
        families={FUNDER: 3, EXCHANGE: 2},
    )
    assert bundles(known, launched) == [Bundle((A, B, C, D, E, FUNDER), FUNDER, tx(9), 63, 0)]


def test_a_bundle_of_several_funders_is_named_after_the_one_that_paid_most_of_it() -> None:
    few, many = (A, B, C), tuple(address(number) for number in range(0xC1, 0xC5))
    launched = launch(*((one, 1) for one in (*few, FUNDER, *many)))
    wallets = {**paid_by(FUNDER, *few), **paid_by(EXCHANGE, FUNDER, *many)}
    known = find_holders(book({}, launched), wallets=wallets, families={FUNDER: 3, EXCHANGE: 5})
    assert bundles(known, launched) == [Bundle((*few, FUNDER, *many), EXCHANGE, None, 8, 0)]


def test_a_chain_of_pairs_is_no_bundle() -> None:
    launched = launch((A, 1, 9), (B, 2, 9), (C, 4), (D, 8))
    wallets = {**paid_by(FUNDER, B, C), **paid_by(EXCHANGE, D)}
    known = find_holders(book({}, launched), wallets=wallets, families={FUNDER: 2, EXCHANGE: 1})
    assert bundles(known, launched) == []
    assert [one.wallets for one in bundles(known, launched, 2)] == [(A, B, C)]


def test_the_bundle_that_bought_most_comes_first() -> None:
    few, many = (A, B, C), tuple(address(number) for number in range(0xC1, 0xC4))
    launched = launch(*((one, 1) for one in few), *((one, 2) for one in many))
    wallets = {**paid_by(FUNDER, *few), **paid_by(EXCHANGE, *many)}
    known = find_holders(book({}, launched), wallets=wallets, families={FUNDER: 3, EXCHANGE: 3})
    assert [one.wallets for one in bundles(known, launched)] == [many, few]


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
def test_the_deployers_status(known: HolderInputs, status: Status) -> None:
    found = deployer_deeds(known)
    assert found is not None
    assert found.status == status


def test_what_the_deployer_holds_is_what_the_token_says() -> None:
    known = replace(deeds(1000, 1000, sold=3, moved=2, pooled=4, burned=5), balances={DEPLOYER: 6})
    assert deployer_deeds(known) == DeployerDeeds("moved_out", 1000, 0, 3, 2, 4, 5, 6)


def test_of_logs_that_drift_a_deployer_is_not_flattered() -> None:
    def found(held: int, ledger: InsiderLedger) -> tuple[Status, int] | None:
        known = deployer_deeds(find_holders(book({DEPLOYER: held}, ledgers={DEPLOYER: ledger}), drifts=True))
        return None if known is None else (known.status, known.received_raw)

    assert found(0, InsiderLedger()) is None
    # What left him without a readable log is not known.
    assert found(1000, InsiderLedger()) is None
    assert found(1000, InsiderLedger(2000)) == ("holds_some", 2000)
    # Of what came to him without a word he sold most.
    assert found(1000, InsiderLedger(0, 0, 8000, 0, 1000)) == ("holds_some", 10_000)
    assert found(999, InsiderLedger(0, 0, 1)) == ("holds_some", 1000)
    assert found(0, InsiderLedger(0, 0, 8000, 0, 1000)) == ("sold_out", 9000)


def test_an_unknown_deployer_and_one_that_was_not_followed() -> None:
    assert deployer_deeds(find_holders(book({}), maker=None)) is None
    assert deployer_deeds(find_holders(book({}), maker=Maker(A, "deployment", (), None))) is None
    never = deployer_deeds(find_holders(book({})))
    assert never is not None
    assert never.status == "never_held"
