"""What smart_money and launch_bundle say."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from roundtrip.domain.holders.book import HolderColumns, LaunchBuys
from roundtrip.services.holders.handlers import present_smart_money
from roundtrip.services.holders.launch_bundle import present_launch_bundle
from roundtrip.services.holders.present import MAX_LISTED, present
from unit.domain.holding import DEPLOYER, address, book, launch, tx
from unit.services.holding import (
    FUNDER,
    LAUNCHED,
    NOW_S,
    UNIT,
    WIN,
    A,
    B,
    C,
    D,
    E,
    gathered,
    the_book,
    the_told,
    winner,
)


def test_smart_money_has_the_rows_of_the_whole_answer() -> None:
    whole = gathered(winners=(winner(A), winner(B), winner(C, span="all")), biggest_wins={A: WIN})
    answer, rows = present_smart_money(whole), present(whole).smart_money
    assert rows is not None
    assert (answer.holding, answer.sold_out, answer.wallets) == (rows.holding, rows.sold_out, rows.wallets)
    assert (answer.block, answer.block_time) == (2_000, datetime.fromtimestamp(NOW_S, UTC))
    assert f"\n{A} is rank 3 of the last 24h with a profit of 2 eth. Its best token ever was" in answer.text
    assert f'"WIN" ({address(0xC0FFEE)}) with 3 eth.' in answer.text
    assert answer.text.endswith(f"\n{C} is rank 3 of all time with a profit of 2 eth.")


def test_smart_money_of_what_is_not_known() -> None:
    reading = present_smart_money(gathered(status="reading", inputs=None, winners=(winner(A),)))
    assert (reading.holding, reading.sold_out, reading.wallets) == (None, None, [])
    assert "busy token" in reading.text
    unasked = present_smart_money(gathered(winners=None))
    assert (unasked.holding, unasked.wallets) == (None, [])
    assert "We could not look up which wallets on the winners list hold" in unasked.text


def test_smart_money_lists_a_hundred() -> None:
    crowd = [address(number) for number in range(1, MAX_LISTED + 6)]
    of = book(dict.fromkeys(crowd, HolderColumns(UNIT, UNIT, UNIT)))
    answer = present_smart_money(
        gathered(
            inputs=the_told(book=of), winners=tuple(winner(one, rank=n) for n, one in enumerate(crowd, 1))
        )
    )
    assert (answer.holding, len(answer.wallets)) == (MAX_LISTED + 5, MAX_LISTED)
    assert "5 more hold it and are not listed." in answer.text


def test_a_launch_bundle() -> None:
    launched = launch((A, 300 * UNIT, 9), (B, 200 * UNIT, 9), (C, 100 * UNIT), (D, UNIT, 7), (E, UNIT, 7),
                      (DEPLOYER, 50 * UNIT))  # fmt: skip
    answer = present_launch_bundle(
        gathered(launch=launched, inputs=the_told(book=the_book(launched=launched)))
    )
    bundle, pair = answer.groups
    assert (bundle.funder, bundle.same_transaction, bundle.is_bundle, bundle.count) == (
        FUNDER,
        False,
        True,
        3,
    )
    assert (bundle.bought_bps, bundle.held_bps) == (600, 350)
    assert [one.address for one in bundle.wallets] == [A, B, C]
    row = bundle.wallets[1]
    assert (row.bought_bps, row.held_bps, row.sold_bps, row.transaction) == (200, 0, 10_000, tx(9))
    assert (row.funder, row.funder_known, row.tags) == (FUNDER, True, ["sniper", "bundle"])
    assert (pair.same_transaction, pair.transaction, pair.is_bundle) == (True, tx(7), False)
    assert [one.address for one in pair.wallets] == [D, E]
    assert [(one.address, one.funder_known) for one in answer.others] == [(DEPLOYER, False)]
    assert (answer.buyers, answer.bought_bps, answer.held_bps) == (6, 652, 1390)
    assert (answer.not_listed, answer.funders_unknown) == (0, 3)
    assert (
        "6 wallets, its deployer among them, bought 6.52 % of the supply; together they now have 13.90 %."
        in answer.text
    )
    assert "The funders of 3 of them are not known: a bundle may be bigger than shown" in answer.text


def test_a_launch_bundle_of_many_lists_a_hundred() -> None:
    crowd = [address(number) for number in range(1, 131)]
    launched = launch(*((one, UNIT, 9) if n < 90 else (one, UNIT) for n, one in enumerate(crowd)))
    known = the_told(book=the_book(launched=launched), wallets={})
    answer = present_launch_bundle(gathered(launch=launched, inputs=known))
    assert (answer.buyers, answer.groups[0].count, len(answer.groups[0].wallets)) == (130, 90, 90)
    assert (len(answer.others), answer.not_listed) == (10, 30)
    assert "30 more bought and are not listed." in answer.text
    one_bundle = launch(*((one, UNIT, 9) for one in crowd))
    known = the_told(book=the_book(launched=one_bundle), wallets={})
    answer = present_launch_bundle(gathered(launch=one_bundle, inputs=known))
    assert (answer.groups[0].count, len(answer.groups[0].wallets), answer.others) == (130, 100, [])


def test_a_launch_bundle_while_it_is_read_says_what_it_has() -> None:
    answer = present_launch_bundle(gathered(status="reading", inputs=the_told(balances={A: UNIT})))
    assert (answer.groups, answer.buyers, answer.bought_bps, answer.held_bps) == ([], 4, 650, None)
    assert [(one.held_bps, one.sold_bps) for one in answer.others] == [(1, None), (None, None)] + [
        (None, None)
    ] * 2
    assert "Which of them belong together is not known yet." in answer.text
    asked = the_told(balances={A: UNIT, B: 0, C: 0, DEPLOYER: 0})
    answer = present_launch_bundle(gathered(status="reading", inputs=asked))
    assert [one.held_bps for one in answer.groups] == [1]
    assert answer.held_bps == 1


@pytest.mark.parametrize("launched", [None, launch()])
def test_a_launch_that_nobody_bought_in_or_knows(launched: LaunchBuys | None) -> None:
    answer = present_launch_bundle(
        gathered(launch=launched, inputs=the_told(book=the_book(launched=launched)))
    )
    assert (answer.groups, answer.others) == ([], [])
    assert answer.buyers == (None if launched is None else 0)
    assert ("We did not find the launch of" in answer.text) is (launched is None)


def test_launch_buyers_that_were_left_out_are_counted() -> None:
    answer = present_launch_bundle(gathered(launch=replace(LAUNCHED, left_out=7)))
    assert (answer.buyers, answer.not_listed) == (11, 7)
    assert "In its launch window 11 wallets, its deployer among them, bought" in answer.text
    assert "7 more bought and are not listed." in answer.text
