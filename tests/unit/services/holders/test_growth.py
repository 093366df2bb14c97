"""The holders hour by hour, as the page draws them."""

from roundtrip.console.pages.token import draw_growth
from roundtrip.domain.holders.book import HolderBook
from roundtrip.services.holders.growth import GrowthPoint, list_points, present_growth
from roundtrip.services.holders.schema import Growth
from roundtrip.services.support.index_reader import when
from unit.domain.tokens import ALL, ANN, AT_S, BOB, CAT, CURVE, folded, minted, tx
from unit.services.holding import gathered, the_book, the_told

HOUR_S, DAY_S = 3600, 86_400
END_S = AT_S - AT_S % HOUR_S + HOUR_S
"""The end of the first transfers' hour."""


def grown() -> HolderBook:
    return folded(
        minted(CURVE),
        tx((CURVE, ANN, ALL // 2), at_s=AT_S),
        tx((CURVE, BOB, ALL // 4), at_s=END_S + 10),
        tx((BOB, CAT, 1), (ANN, CURVE, ALL // 4), at_s=END_S + 2 * HOUR_S + 10),
    )


def test_each_hour_since_the_first_transfer_has_a_point() -> None:
    now_s = END_S + 3 * HOUR_S + 60
    points = [(point.time, point.holders, point.top10_bps) for point in list_points(grown(), now_s)]
    assert points == [
        (when(END_S), 1, 5000),
        (when(END_S + HOUR_S), 2, 7500),
        (when(END_S + 2 * HOUR_S), 2, 7500),
        (when(END_S + 3 * HOUR_S), 3, 5000),
        (when(now_s), 3, 5000),
    ]


def test_only_the_last_week_has_points() -> None:
    now_s = END_S + 7 * DAY_S + 5 * HOUR_S
    points = list_points(grown(), now_s)
    assert (len(points), points[0].time) == (7 * 24 + 1, when(now_s - 7 * DAY_S + HOUR_S))
    assert {point.holders for point in points} == {3}


def test_growth_is_not_known_where_transfers_are_missing() -> None:
    answer = present_growth(gathered(inputs=the_told(book=the_book()), status="partial", why=("capped",)))
    assert (answer.holders, answer.growth, answer.points) == (None, None, [])
    assert answer.text.endswith("How the number of holders changed is not known.")


def test_growth_is_told_in_sentences() -> None:
    record = gathered()
    now_s = record.block.timestamp_s
    book = the_book(earlier={now_s - HOUR_S: 4, now_s - DAY_S: 1, now_s - 7 * DAY_S: None})
    answer = present_growth(gathered(inputs=the_told(book=book)))
    assert answer.growth == Growth(0, 3, None)
    assert (
        "4 wallets hold the token. That is +0 against an hour ago. That is +3 against a day ago."
        in answer.text
    )
    assert "week" not in answer.text


def test_lines_part_where_a_share_is_not_known() -> None:
    shares = [None, 5000, 10000, None, 0, 2500]
    drawn = draw_growth([GrowthPoint(when(0), number, share) for number, share in enumerate(shares)])
    assert drawn["holders"] == ["0.0,78.0 120.0,62.8 240.0,47.6 360.0,32.4 480.0,17.2 600.0,2.0"]
    assert drawn["top"] == ["120.0,40.0 240.0,2.0", "480.0,78.0 600.0,59.0"]
    assert draw_growth([GrowthPoint(when(0), 1, 1)]) == {}
