"""A wallet's positions, profit and family, as its page shows and draws them."""

from datetime import UTC, datetime

import pytest

from roundtrip.console.pages.wallet import (
    draw_profit,
    draw_ties,
    find_gain_bps,
    is_unknown,
    sort_positions,
    sum_gains,
)
from roundtrip.services.wallets.history import RealisedDay
from roundtrip.services.wallets.history_answer import HoldingAnswer, WalletHistory
from roundtrip.services.wallets.linked import LinkedWallets
from support.answers import build_answer

NOW = datetime(2026, 11, 27, 9, tzinfo=UTC)
A, B, C, FUNDER, OWN = ("0x" + digit * 40 for digit in "abcef")


def position(cost_eth: float | None, gain_eth: float | None, worth_eth: float = 1.0) -> HoldingAnswer:
    given = {"costEth": cost_eth, "gainEth": gain_eth, "worthEth": worth_eth}
    return build_answer(HoldingAnswer, given)


@pytest.mark.parametrize(
    ("cost_eth", "gain_eth", "bps"),
    [
        (2.0, 1.0, 5000),
        (3.0, -3.0, -10_000),
        (1.0, 0.0, 0),
        (0.0, 3.0, None),
        (None, None, None),
        (1.0, None, None),
    ],
)
def test_a_gain_is_told_as_a_share_of_the_cost(
    cost_eth: float | None, gain_eth: float | None, bps: int | None
) -> None:
    assert find_gain_bps(position(cost_eth, gain_eth)) == bps


def test_what_is_not_known_is_in_no_sum() -> None:
    unknown = position(1.0, None)
    assert sum_gains([unknown]) is None
    assert sum_gains([unknown, position(2.0, -1.0)]) == (-1.0, -5000, 1)


def test_positions_are_sorted_the_largest_first_and_the_unknown_last() -> None:
    rows = [position(None, None, 9.0), position(1.0, 1.0, 2.0), position(3.0, -2.0, 1.0)]
    assert [row.worth_eth for row in sort_positions(rows, "gain")] == [2.0, 1.0, 9.0]
    assert [row.worth_eth for row in sort_positions(rows, "worth")] == [9.0, 2.0, 1.0]


def day(date: str, profit_eth: float) -> RealisedDay:
    return RealisedDay(datetime.fromisoformat(f"2026-{date}T00:00:00Z"), 1, profit_eth)


def test_profits_rise_from_the_line_and_losses_fall_from_it_on_one_scale() -> None:
    profit, loss = draw_profit([day("11-24", 2.0), day("11-26", -1.0)], NOW)
    assert profit.y + profit.height == pytest.approx(profit.zero, abs=0.11)
    assert loss.y == loss.zero
    assert profit.height == pytest.approx(2 * loss.height, abs=0.11)
    # Four days are 150 wide each: the oldest first, today empty.
    assert (profit.x // 150, loss.x // 150) == (0, 2)
    assert loss.y + loss.height <= 120


def test_nothing_is_drawn_of_today_alone_nor_of_what_is_long_past() -> None:
    assert draw_profit([], NOW) == []
    assert draw_profit([day("11-27", 2.0)], NOW) == []
    assert draw_profit([day("01-02", 2.0)], NOW) == []
    assert [f"{bar.day:%m-%d}" for bar in draw_profit([day("01-02", 9.0), day("11-26", 1.0)], NOW)] == [
        "11-26"
    ]


def linked(*kin: tuple[str, str], funder: str | None = FUNDER) -> LinkedWallets:
    rows = [{"address": address, "score": 1, "reasons": [{"kind": kind}]} for address, kind in kin]
    given = {"address": OWN, "funder": funder and {"address": funder}, "linked": rows}
    return build_answer(LinkedWallets, given)


def test_a_family_is_the_funders_tree_and_its_own() -> None:
    answer = linked((A, "same_funder"), (FUNDER, "funded_by"), (B, "funded"), (C, "same_tokens"))
    above, below = draw_ties(answer)
    assert (above.heart, [node.address for node in above.nodes]) == (FUNDER, [OWN, A])
    assert [node.own for node in above.nodes] == [True, False]
    assert (below.heart, [node.address for node in below.nodes]) == (OWN, [B])
    assert draw_ties(linked(funder=None)) == []


def test_a_large_family_is_drawn_in_part() -> None:
    (tree,) = draw_ties(linked(*((f"0x{number:040x}", "same_funder") for number in range(14))))
    assert (len(tree.nodes), tree.not_drawn) == (12, 3)
    assert tree.nodes[-1].y < tree.height


def test_a_wallet_with_an_origin_or_a_trade_is_not_unknown() -> None:
    bare = {"originStatus": "unknown"}
    assert is_unknown(build_answer(WalletHistory, bare))
    assert not is_unknown(build_answer(WalletHistory, bare | {"originStatus": "known"}))
    assert not is_unknown(build_answer(WalletHistory, bare | {"record": {"trades": 1}}))
