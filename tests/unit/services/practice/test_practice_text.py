"""The sentences of practice and of its league."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from roundtrip.domain.base.types import WEI_PER_ETH, Address
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.domain.practice.practice import PracticePurse, PracticeTrade
from roundtrip.services.practice.account import _describe_trades as trades_text
from roundtrip.services.practice.account import _history_text
from roundtrip.services.practice.account import _text as account_text
from roundtrip.services.practice.buy import _sell_back_text
from roundtrip.services.practice.league import _league_text
from roundtrip.services.practice.pricing import why_missing, why_refused
from roundtrip.services.rehearsal.verdict import TradeVerdict
from roundtrip.services.valuation.holding_sells import NO_PLACE
from roundtrip.store.index.tokens import Label
from roundtrip.store.practice.league import LeagueCounts, LeagueRank

TOKEN = Address("0x" + "70" * 20)
MONDAY_S = int(datetime(2025, 10, 6, tzinfo=UTC).timestamp())


def account(eth_wei: int, *worths: str | None, week: tuple[int, int] = (0, 0), **page: Any) -> str:
    """The text of an account; ``week``: sells and their profit."""
    purse = PracticePurse(eth_wei, eth_wei, 0, page.pop("apart_wei", 0))
    monday = SimpleNamespace(trades=page.pop("trades", ()))
    read = SimpleNamespace(
        page=SimpleNamespace(account=purse, monday=monday),
        week=SimpleNamespace(sells=week[0], profit_wei=week[1]),
    )
    positions = [SimpleNamespace(worth=worth) for worth in worths]
    return account_text(cast(Any, read), cast(Any, positions), eth_wei + WEI_PER_ETH // 3)


def test_an_account_is_summed_up() -> None:
    assert account(WEI_PER_ETH) == (
        "You have 1 practice eth and no open position. You have sold nothing this week."
    )
    assert account(WEI_PER_ETH // 7, "0.1", None, week=(1, -(10**15))) == (
        "You have 0.1428 practice eth and 2 open positions. "
        "With all positions sold at this block you would have 0.4761 practice eth, "
        "not counting 1 that cannot be sold or valued now. This week 1 sell lost 0.001 practice eth."
    )
    gift = PracticeTrade("gift", None, 0, WEI_PER_ETH, 0, None)
    assert account(WEI_PER_ETH, week=(2, 10**17), apart_wei=10**17, trades=(gift,)).endswith(
        "This week 2 sells made 0.1 practice eth. "
        "0.1 practice eth of profit from sells that do not count is set apart: you cannot spend it. "
        "This includes Monday's gift of 1 practice eth."
    )


@pytest.mark.parametrize(
    ("sells_back", "text", "expected"),
    [
        ("yes", "It goes through, and what it buys sold.", "It goes through, and what it buys sold."),
        ("yes", "A check says.", "You can sell it straight back. A check says."),
        ("no", "It goes through, but.", "You cannot sell it straight back. It goes through, but."),
        (
            "unknown",
            "The node gave no answer. This is not a pass: ask again.",
            "We could not find out whether you can sell it straight back. The node gave no answer. "
            "This is not a pass: ask again.",
        ),
        (
            "unknown",
            "We found no pool.",
            "We could not find out whether you can sell it straight back. We found no pool. "
            "This is not a pass.",
        ),
    ],
)
def test_a_buy_says_whether_it_sells_back(sells_back: str, text: str, expected: str) -> None:
    answer = SimpleNamespace(sells_back=sells_back, verdict=TradeVerdict("ok", "ok", text))
    assert _sell_back_text(cast(Any, answer)) == expected


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (RefusedCall("sell", 'pau"sed', 9), ' with "pau\'sed".'),
        (
            RefusedCall("sell", "STF", 9),
            ": the token refused the transfer, and the router gave no reason for it.",
        ),
        (RefusedCall("sell", None, 9), "; it gives no reason."),
        (NO_PLACE, ": no pool buys it for eth or usdg."),
    ],
)
def test_why_a_position_does_not_sell(refused: RefusedCall, why: str) -> None:
    assert why_refused(refused) == f"Selling this much of it fails at this block{why}"
    assert why_missing(Missing("node", "it was silent")) == (
        "We could not find out what it sells for: it was silent."
    )


def test_the_ledger_and_its_profit() -> None:
    sides = [("sell", 5 * 10**17), ("sell", -(10**17)), ("buy", None)]
    trades = [SimpleNamespace(side=side, profit_wei=profit_wei) for side, profit_wei in sides]
    assert trades_text(cast(Any, trades)) == (
        "Your last 3 entries, the newest first. The 2 sells among them made 0.4 practice eth."
    )
    assert trades_text(cast(Any, trades[2:])) == "Your last entry, the newest first."
    assert trades_text([]) == "You have made no practice trade yet."
    assert _history_text(-(10**15)) == "All your sells and write-offs together lost 0.001 practice eth."
    assert _history_text(None) == "You have sold nothing yet."


def test_the_league_has_one_row_a_line() -> None:
    tokens = {TOKEN: Label(TOKEN, "JOFAL", None, None, None)}
    won = LeagueRank("mite-2222", True, "Bot 7", 329_123_456 * 10**9, 3, 3, TOKEN, 10**17)
    lost = LeagueRank("mite-3333", False, None, -(10**17), 1234, 0, TOKEN, -1)
    lines = _league_text(
        "all", MONDAY_S, LeagueCounts(1005, 2), (won, lost, lost, lost), (won,), tokens
    ).split("\n")
    assert lines[:6] == [
        "Practice league of accounts, the week from Monday 2025-10-06, 00:00 UTC, to the next Monday:",
        f'1. mite-2222 (agent "Bot 7"): profit 0.3291 eth, 3 sells, 3 won, best "JOFAL" ({TOKEN}) 0.1 eth',
        "2. mite-3333: loss 0.1 eth, 1,234 sells, 0 won",
        "3. mite-3333: loss 0.1 eth, 1,234 sells, 0 won",
        "1,002 more entries.",
        "2 accounts have fewer than 3 sells that count.",
    ]
    assert lines[-2:] == ["Last week:", '1. mite-2222 (agent "Bot 7"): profit 0.3291 eth']
