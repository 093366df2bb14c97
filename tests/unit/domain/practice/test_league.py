"""What a week is, what sells come to, and who stands before whom."""

from datetime import UTC, datetime

import pytest

from roundtrip.domain.practice.practice import WEEK_S, monday_s
from support.league_rules import CountedSell, LeagueWeek, board, build_entry

MONDAY = datetime(2025, 10, 6, tzinfo=UTC)
MONDAY_S = int(MONDAY.timestamp())
ONE = LeagueWeek(1, False, 100, 3, 2, "0xa", 90, 1000)


def seconds(*day: int) -> float:
    return datetime(*day, tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("at_s", "began_s"),
    [
        (MONDAY_S, MONDAY_S),
        (MONDAY_S + 0.9, MONDAY_S),
        (MONDAY_S - 1, MONDAY_S - WEEK_S),
        (MONDAY_S + WEEK_S - 1, MONDAY_S),
        (MONDAY_S + WEEK_S, MONDAY_S + WEEK_S),
        (seconds(2025, 10, 9, 12), MONDAY_S),
        # Sunday to Monday over a new year, and a leap day.
        (seconds(2023, 12, 31, 23, 59), seconds(2023, 12, 25)),
        (seconds(2024, 2, 29, 7), seconds(2024, 2, 26)),
        (seconds(1970, 1, 5), seconds(1970, 1, 5)),
        (seconds(1970, 1, 4), seconds(1969, 12, 29)),
    ],
)
def test_a_week_begins_on_monday_at_midnight_of_utc(at_s: int, began_s: int) -> None:
    found = monday_s(at_s)
    assert found == began_s
    assert datetime.fromtimestamp(found, UTC).isoweekday() == 1


def test_losses_count_and_the_first_of_equal_sells_is_the_best() -> None:
    sells = [
        CountedSell(7, "0xa", -50, 10),
        CountedSell(7, "0xb", 30, 12),
        CountedSell(7, "0xc", 30, 11),
        CountedSell(7, "0xd", 0, 13),
    ]
    assert build_entry(sells, is_agent=True) == LeagueWeek(7, True, 10, 4, 2, "0xb", 30, 13)
    assert build_entry(sells[:1], is_agent=False) == LeagueWeek(7, False, -50, 1, 0, "0xa", -50, 10)


def test_three_sells_are_an_entry() -> None:
    few, enough = ONE._replace(account_id=2, sells=2, profit_wei=999), ONE
    assert board([few, enough], "all") == [enough]


def test_the_most_profit_is_first_then_fewer_sells_then_who_was_done_earlier_then_the_older_account() -> None:
    ranked = [
        ONE._replace(profit_wei=101, sells=9, last_s=9999, account_id=9),
        ONE._replace(account_id=8, last_s=2000),
        ONE._replace(account_id=3, sells=4, last_s=10),
        ONE._replace(account_id=4, sells=4, last_s=11),
        ONE._replace(account_id=5, sells=4, last_s=11),
        ONE._replace(profit_wei=-1, account_id=1),
    ]
    assert board(reversed(ranked), "all") == ranked


def test_a_board_is_of_all_of_agents_or_of_people() -> None:
    person, agent = ONE, ONE._replace(account_id=2, is_agent=True)
    assert board([person, agent], "all") == [person, agent]
    assert board([person, agent], "agents") == [agent]
    assert board([person, agent], "people") == [person]
