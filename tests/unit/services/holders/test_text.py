"""What is said of who holds a token in plain sentences."""

from dataclasses import replace

import msgspec
import pytest

from roundtrip.domain.base.types import BURN_ADDRESS, Address
from roundtrip.domain.holders.book import HolderColumns, InsiderLedger, LaunchBuys
from roundtrip.domain.holders.deployer_summary import Status
from roundtrip.domain.holders.findings import KnownWallet
from roundtrip.domain.holders.ties import Disagreement
from roundtrip.services.holders.launch_bundle import present_launch_bundle
from roundtrip.services.holders.present import present
from roundtrip.services.holders.schema import Drift
from unit.domain.holding import DEPLOYER, MAKER, POOL, TOKEN, book, launch
from unit.services.holding import (
    DAY_S,
    FUNDER,
    NOW_S,
    SUPPLY_RAW,
    UNIT,
    A,
    B,
    C,
    D,
    gathered,
    the_book,
    the_told,
    winner,
)


def test_the_text_of_a_whole_answer() -> None:
    text = present(gathered(winners=(winner(A), winner(B)))).text
    assert text == (
        f'4 wallets hold "PEPE" ({TOKEN}): the 4 biggest have 13.90 % of the supply, 80.00 % is in '
        "pools, 1.00 % is burned. "
        "5.00 % is held by the token contract itself, routers, lockers or the launchpad's contracts. "
        "Of the 2 biggest wallets whose age is known, 1 was first seen within the three days before the "
        f"first buy. Its deployer {DEPLOYER} still holds 0.40 % of the 0.50 % that reached it: 0.10 % was "
        "sold, 0.00 % moved to others, 0.00 % put into pools. "
        "Besides its deployer, 3 wallets bought 6.00 % in its launch window and now have 3.50 %; 1 sold "
        "everything. "
        f"3 launch buyers are a bundle, funded by {FUNDER}: they bought 6.00 % of the supply and now hold "
        "3.50 %. "
        "The deployer, launch buyers and wallets that the deployer funded or shares a purse with hold 3.90 % "
        "together. 1 wallet on the winners list bought it and holds it; 1 sold everything."
    )


def test_what_is_not_known_is_said() -> None:
    unsure = the_told(wallets={}, maker=None)
    text = present(gathered(inputs=unsure)).text
    assert "Its deployer is not known." in text
    assert "We found no bundle, but the funders of 4 launch buyers are not known: a bundle may be" in text
    known = the_told(wallets={one: KnownWallet(funder_known=True) for one in (A, B, C, DEPLOYER)})
    assert "No three launch buyers share" in present(gathered(inputs=known)).text


@pytest.mark.parametrize(
    ("status", "says"),
    [("never_held", "never held any"), ("holds_all", "all or almost all"), ("sold_out", "has sold out"),
     ("moved_out", "may belong to the same person"), ("burned_out", "0.00 % put into pools, 0.01 % burned.")],
)  # fmt: skip
def test_every_status_has_its_sentence(status: Status, says: str) -> None:
    ledgers = {
        "never_held": (InsiderLedger(), 0),
        "holds_all": (InsiderLedger(UNIT), UNIT),
        "sold_out": (InsiderLedger(UNIT, sold_raw=UNIT), 0),
        "moved_out": (InsiderLedger(UNIT, moved_raw=UNIT), 0),
        "burned_out": (InsiderLedger(UNIT, burned_raw=UNIT), 0),
    }
    ledger, held = ledgers[status]
    of = book({DEPLOYER: held}, None, {DEPLOYER: ledger})
    answer = present(gathered(inputs=the_told(book=of), launch=None))
    assert answer.deployer is not None
    assert answer.deployer.status == status
    assert says in answer.text


def test_of_a_deployer_whose_logs_drift_what_it_holds_is_said() -> None:
    of = book({DEPLOYER: 0})
    for balances, says in (
        (
            {DEPLOYER: 71 * SUPPLY_RAW // 100},
            "holds 71.00 % now. What else it received, and where that went, is",
        ),
        ({}, f"What its deployer {DEPLOYER} did with it is not certain."),
    ):
        known = the_told(book=of, drifts=True, balances=balances)
        answer = present(gathered(inputs=known, launch=None, status="partial", why=("drifts",)))
        assert answer.deployer is None
        assert says in answer.text


@pytest.mark.parametrize(
    ("held", "says"),
    [
        ((SUPPLY_RAW, SUPPLY_RAW // 100), "101.00 % of the supply"),
        ((SUPPLY_RAW, 2 * SUPPLY_RAW - 1), "2.9 times the supply"),
        ((2**256 - 1, 0), "more than 1,000 times the supply"),
    ],
)
def test_balances_over_the_supply_are_said_first(held: tuple[int, int], says: str) -> None:
    known = the_told(drifts=True, balances=dict(zip((A, B), held, strict=True)) | {BURN_ADDRESS: SUPPLY_RAW})
    answer = present(gathered(inputs=known, status="partial", why=("oversupplied", "drifts")))
    first = f"Balances add up to {says} that the token reports."
    assert answer.why[0] == first
    assert answer.text.startswith(f"This answer is incomplete: every count is a minimum. {first} ")


def test_a_later_large_buy_is_told_of_with_the_launch() -> None:
    later = LaunchBuys(1_784, NOW_S, launch((A, SUPPLY_RAW // 80)).buys)
    text = "The first large buy came later, in block 1,784: 1 wallet bought 1.25 % within 30 blocks."
    for record in (gathered(large_buy=later), gathered(large_buy=later, status="reading")):
        assert text in present(record).text
        assert text in present_launch_bundle(record).text
    assert "large buy" not in present(gathered()).text


def test_who_bought_first_long_after_the_pools_opened_is_called_no_sniper() -> None:
    late = gathered(launch=replace(launch((A, SUPPLY_RAW // 100)), is_opening=False))
    answer, launched = present(late), present_launch_bundle(late)
    said = "Nobody raced to buy first, so there are no snipers: no liquidity had been added for 30 blocks."
    assert f"1 wallet bought 1.00 % in its launch window. {said}" in answer.text
    assert said in launched.text
    assert said not in present(gathered()).text
    assert answer.snipers is None
    assert "launch buyers and" not in answer.text
    assert launched.buyers == 1
    assert "sniper" not in launched.others[0].tags
    assert answer.forensics.suspicious_bps < present(gathered()).forensics.suspicious_bps  # type: ignore[operator]


def test_who_was_paid_by_nobody_in_a_plain_transfer_is_said() -> None:
    known = the_told(wallets={one: KnownWallet(funder_known=True) for one in (A, B)})
    launched = gathered(inputs=known)
    text = "No wallet sent 2 launch buyers the first eth in a plain transfer."
    assert text in present_launch_bundle(launched).text
    every = the_told(wallets={one: KnownWallet(funder_known=True) for one in (A, B, C, DEPLOYER)})
    assert text.replace("2", "4") in present(gathered(inputs=every)).text


@pytest.mark.parametrize(
    ("in_pools", "pooled", "is_said"), [(99, 100, True), (100, 100, False), (99, 99, False), (0, 0, False)]
)
def test_what_was_put_into_pools_and_lies_there_no_more(in_pools: int, pooled: int, is_said: bool) -> None:
    ledger = InsiderLedger(5_000 * UNIT, pooled_raw=pooled * UNIT)
    of = book({DEPLOYER: UNIT, POOL: in_pools * UNIT}, None, {DEPLOYER: ledger})
    text = present(gathered(inputs=the_told(book=of), launch=None)).text
    assert ("the liquidity was taken out" in text) is is_said


def test_a_launch_in_which_nobody_bought_is_said_once() -> None:
    empty = launch()
    message = present(gathered(inputs=the_told(book=the_book(launched=empty)), launch=empty)).text
    assert "No wallet bought in its launch window." in message
    assert "launch buyers share" not in message
    own = launch((DEPLOYER, 5))
    message = present(gathered(inputs=the_told(book=the_book(launched=own)), launch=own)).text
    assert "Only its deployer bought in its launch window." in message
    # Who holds is told of those who are there: nobody bought, and nobody is known to have deployed it.
    held = (
        (
            empty,
            MAKER,
            "The deployer and wallets that the deployer funded or shares a purse with hold 0.40 % together.",
        ),
        (launch((A, 5)), None, "Launch buyers hold 3.00 % together."),
        (empty, None, None),
    )
    for launched, maker, says in held:
        known = the_told(book=the_book(launched=launched), maker=maker)
        text = present(gathered(inputs=known, launch=launched)).text
        assert (says in text) if says else ("% together." not in text)


def test_what_may_be_missing_is_not_told_as_if_it_were_not_there() -> None:
    none = launch()
    part = {"status": "partial", "why": ("venues_unread",), "launch": none}
    known = the_told(book=the_book(launched=none))
    text = present(gathered(inputs=known, **part)).text
    assert "No wallet is known to have bought in its launch window." in text
    assert "No wallet on the winners list is known to have bought it and to hold it" in text
    assert "No wallet is known to have bought" in present_launch_bundle(gathered(inputs=known, **part)).text
    nothing = the_told(book=book({}), maker=None)
    assert (
        f'No wallet holds "PEPE" ({TOKEN}): 0.00 % is in'
        in present(gathered(inputs=nothing, launch=None)).text
    )
    text = present(gathered(inputs=nothing, **part)).text
    assert f'No wallet is known to hold "PEPE" ({TOKEN}): 0.00 % is in pools' in text


@pytest.mark.parametrize(
    ("aged", "says"),
    [
        ((), "We do not know how old the biggest wallets are."),
        ((A, C, D), "We do not know how old 1 of the 4 biggest wallets is."),
        ((A, B, C, D, DEPLOYER), None),
    ],
)
def test_of_whom_the_age_is_not_known_is_said(aged: tuple[Address, ...], says: str | None) -> None:
    wallets = {one: KnownWallet(first_s=NOW_S - 100 * DAY_S, funder_known=True) for one in aged}
    text = present(gathered(inputs=the_told(wallets=wallets))).text
    assert (says in text) if says else ("how old" not in text)


def test_a_deployer_who_sold_and_burned_is_said_to_have_done_both() -> None:
    ledger = InsiderLedger(100 * UNIT, sold_raw=40 * UNIT, burned_raw=60 * UNIT)
    of = book({DEPLOYER: 0}, None, {DEPLOYER: ledger})
    text = present(gathered(inputs=the_told(book=of), launch=None)).text
    assert "0.40 % was sold, 0.00 % moved to others, 0.00 % put into pools, 0.60 % burned." in text


def test_more_than_all_is_all() -> None:
    of = book({A: 3 * SUPPLY_RAW, POOL: -5}, None, {DEPLOYER: InsiderLedger(7 * SUPPLY_RAW)})
    off = Disagreement(1, 1, 2**255, -(2**255))
    answer = present(gathered(inputs=the_told(book=of, drifts=True, balances={A: 2**255}), disagreement=off))
    assert (answer.top[0].supply_bps, answer.holders and answer.holders.top10_bps) == (10_000, 10_000)
    assert answer.deployer is not None
    assert answer.deployer.received_bps == 10_000
    assert answer.forensics.drift == Drift(1, 1, 10_000, -10_000)
    msgspec.json.encode(answer)


@pytest.mark.parametrize(("raw", "is_said"), [(100 * UNIT - 1, False), (100 * UNIT, True)])
def test_what_the_token_itself_did_is_said(raw: int, is_said: bool) -> None:
    minted = present(gathered(inputs=the_told(book=the_book(minted_into_pools_raw=raw)))).text
    assert ("1.00 % was minted straight into pools" in minted) is is_said
    of = the_book()
    of.wallets[TOKEN] = HolderColumns(0, raw, 0, raw)
    assert (
        "The token contract itself sold 1.00 %." in present(gathered(inputs=the_told(book=of))).text
    ) is is_said
