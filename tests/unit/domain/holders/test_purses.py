"""Which wallets of a token have one purse."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.holders.book import LaunchBuys
from roundtrip.domain.holders.findings import MAX_FUNDED, HolderInputs, KnownWallet, suspicious
from roundtrip.domain.holders.purses import PurseCount, count_purses, funder_groups, insiders, purses
from roundtrip.domain.holders.ties import ties
from unit.domain.holding import (
    AT_S,
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
    book,
    find_holders,
    launch,
    tx,
)

DAY_S = 86_400


def _paid(funder: Address, at_s: int | None = AT_S) -> KnownWallet:
    return KnownWallet(funder=funder, funder_known=True, funded_s=at_s, funded_tx=tx(0xFA))


def _known(wallets: Mapping[Address, KnownWallet], family: int = 9, **more: object) -> HolderInputs:
    of = book({A: 50, B: 20, C: 10, DEPLOYER: 100})
    return replace(find_holders(of, wallets=wallets, families={FUNDER: family}), **more)  # type: ignore[arg-type]


def test_whom_the_deployers_funder_paid_is_of_his_purse_without_a_launch_buy() -> None:
    known = _known({A: _paid(FUNDER, AT_S - 14), B: _paid(EXCHANGE), DEPLOYER: _paid(FUNDER)})
    (purse,) = purses(known, None)
    assert (purse.wallets, purse.holding, purse.funder) == ((DEPLOYER, A), 2, FUNDER)
    assert (purse.held_raw, purse.has_deployer) == (150, True)
    # B's funder paid an unknown number of wallets: it may be of another purse than it seems.
    assert count_purses(known, [purse]) == PurseCount(wallets=3, purses=2, unknown=1)
    shown = [(tie.wallet, tie.kind, tie.to, tie.tx_hash) for tie in ties(known, None)]
    assert shown[1:] == [
        (A, "same_funder", FUNDER, tx(0xFA)), (DEPLOYER, "same_funder", FUNDER, tx(0xFA)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("family", "apart_s", "is_tied"),
    [(100, DAY_S, True), (100, DAY_S + 1, False), (101, 3600, True), (101, 3601, False),
     (MAX_FUNDED, 3600, True), (MAX_FUNDED + 1, 0, False)],
)  # fmt: skip
def test_who_pays_many_ties_only_those_that_he_paid_close_together(
    family: int, apart_s: int, is_tied: bool
) -> None:
    known = _known({A: _paid(FUNDER, AT_S - apart_s), DEPLOYER: _paid(FUNDER)}, family)
    assert bool(purses(known, None)) is is_tied


@pytest.mark.parametrize(
    "changes",
    [
        {"families": {}},
        {"never_group": frozenset({FUNDER})},
        {"wallets": {A: _paid(FUNDER, None), DEPLOYER: _paid(FUNDER)}},
        {"wallets": {A: replace(_paid(FUNDER), is_contract=True), DEPLOYER: _paid(FUNDER)}},
        {"wallets": {POOL: _paid(FUNDER), DEPLOYER: _paid(FUNDER)}},
    ],
)
def test_what_ties_nobody(changes: dict[str, object]) -> None:
    known = _known({A: _paid(FUNDER), DEPLOYER: _paid(FUNDER)})
    assert len(funder_groups(known)) == 1
    assert funder_groups(replace(known, **changes)) == []  # type: ignore[arg-type]


def test_a_funder_who_holds_is_of_the_purse_and_whom_the_deployer_paid_is_at_any_time() -> None:
    known = _known(
        {DEPLOYER: _paid(FUNDER), FUNDER: _paid(EXCHANGE), A: _paid(DEPLOYER, AT_S + 90 * DAY_S)}, 1
    )
    (purse,) = purses(known, None)
    assert purse.wallets == (DEPLOYER, A, FUNDER)
    assert purse.holding == 2


def test_insiders_are_the_suspicious_and_all_of_the_deployers_purse() -> None:
    wallets = {A: _paid(FUNDER), B: _paid(EXCHANGE), C: _paid(EXCHANGE), DEPLOYER: _paid(FUNDER)}
    known = _known(wallets, families={FUNDER: 2, EXCHANGE: 2})
    launched = launch((B, 1), (C, 2))
    assert suspicious(known, None) == (DEPLOYER, CREATOR)
    # Strangers with one payer are none, unless they bought at the launch.
    assert insiders(known, None, purses(known, None)) == (DEPLOYER, CREATOR, A)
    opening = replace(launched, is_opening=True)
    assert insiders(known, opening, purses(known, opening)) == (DEPLOYER, CREATOR, B, C, A)


def test_purses_join_with_bundles_and_the_largest_comes_first() -> None:
    launched: LaunchBuys = launch((C, 1, 9), (D, 2, 9), (E, 3))
    wallets = {A: _paid(EXCHANGE), B: _paid(EXCHANGE), C: _paid(FUNDER), DEPLOYER: _paid(FUNDER)}
    known = _known(wallets, families={FUNDER: 2, EXCHANGE: 2})
    first, second = purses(known, launched)
    assert (first.wallets, first.has_deployer, first.tx_hash) == ((DEPLOYER, C, D), True, tx(9))
    assert (second.wallets, second.has_deployer, second.funder) == ((A, B), False, EXCHANGE)
    assert count_purses(known, [first, second]) == PurseCount(4, 2, 0)
