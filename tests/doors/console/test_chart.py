"""The price of a token and its newest trades, as pieces of its page and as pages of their own."""

import itertools
import json
import re
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

from roundtrip.config.settings import Settings
from roundtrip.console.pages.chart import draw_line, draw_verdicts, shorten_price
from roundtrip.domain.verdicts.changes import PastVerdict
from roundtrip.services.boards.price_chart import CandleRow, PriceChart, join_verdicts
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.rows import as_bytes
from roundtrip_development.devnet.world import Built, describe
from support.clocks import Clock
from support.console_house import ConsoleHouse, house_of
from support.keys import Person

PIECE = {"hx-request": "true"}


@pytest.fixture
async def house(indexed: Context) -> AsyncIterator[ConsoleHouse]:
    """Where a stranger may make one call a minute."""
    async with house_of(indexed, Clock(), Settings(anon_per_minute=1)) as found:
        yield found


@pytest.fixture
async def token(indexed: Context, built: Built) -> AsyncIterator[str]:
    """A token that was launched, graduated and was traded since. The job that reads decimals has not run in
    this database, which other tests share."""
    token = built.tokens["graduated"]
    await indexed.pool.execute(
        "INSERT INTO facts.token (token, decimals, read_number) VALUES ($1, 18, 1)", as_bytes(token)
    )
    yield token
    await indexed.pool.execute("DELETE FROM facts.token WHERE token = $1", as_bytes(token))


async def page(house: ConsoleHouse, path: str, **headers: str) -> str:
    status, text, _ = await house.get(path, **headers)
    assert status == 200
    return text


async def test_the_chart_has_candles_with_marks_and_a_table_of_them(house: ConsoleHouse, token: str) -> None:
    text = await page(house, f"/token/{token}/chart?span=1h")
    figure = re.search('data-candles="(.*?)" data-marks="(.*?)"', text)
    assert figure is not None
    candles, marks = (json.loads(unescape(part)) for part in figure.groups())
    assert candles
    assert all(
        low <= min(first, last) <= max(first, last) <= high for _, first, high, low, last, _ in candles
    )
    assert all(before[4] == after[1] for before, after in itertools.pairwise(candles))
    assert {"launch", "graduation"} <= {kind for _, kind, _ in marks}
    assert "It was launched." in text
    assert text.count('<tr><td><time datetime="') == len(candles[-30:])
    assert 'href="/token/' + token + '/chart?span=5m"' in text


async def test_trades_are_told_with_their_wallets(house: ConsoleHouse, token: str) -> None:
    text = await page(house, f"/token/{token}/trades")
    assert "▲ Buy" in text
    rows = re.findall(r'<tr data-row="(\d+)-(\d+)">', text)
    places = [(int(block), int(log)) for block, log in rows]
    assert places == sorted(places, reverse=True)
    assert 0 < len(places) <= 30
    assert len(re.findall('href="/wallet/0x', text)) == len(places)


async def test_a_reader_finds_their_own_trades_and_those_of_wallets_that_they_follow(
    indexed: Context, built: Built, token: str
) -> None:
    keys = {one["address"]: one["privateKey"] for one in describe(built, "")["accounts"]}
    async with house_of(indexed, Clock()) as house:
        text = await page(house, f"/token/{token}/trades")
        assert "Mine</button>" not in text
        own, *others = dict.fromkeys(re.findall('href="/wallet/(0x[0-9a-f]{40})', text))
        session = await house.signed_in(Person(keys[own]))
        form = {"csrf": await house.csrf(session), "address": others[0]}
        status, _, _ = await house.post("/account/do/follow_wallet", form, session)
        assert status == 200
        _, text, _ = await house.get(f"/token/{token}/trades", session)
        assert "Mine</button>" in text
    rows = re.findall(r"<tr data-row=(?:(?!</tr>).)*", text, re.DOTALL)
    assert {" data-own" in row for row in rows} == {" data-followed" in row for row in rows} == {True, False}
    for row in rows:
        assert (" data-own" in row) == (f"/wallet/{own}" in row) == (">you</span>" in row)
        assert (" data-followed" in row) == (f"/wallet/{others[0]}" in row) == (">you follow</span>" in row)


async def test_open_pages_that_ask_again_meet_no_limit(house: ConsoleHouse, token: str) -> None:
    for piece in ("chart", "trades"):
        for _ in range(3):
            text = await page(house, f"/token/{token}/{piece}", **PIECE)
            assert text.lstrip().startswith("<section")
            assert "data-live" in text


async def test_what_is_not_known_is_said(house: ConsoleHouse, built: Built) -> None:
    nowhere = "0x" + "12" * 20
    assert "No trade of" in await page(house, f"/token/{nowhere}/chart")
    assert "No trade of it is known." in await page(house, f"/token/{nowhere}/trades")
    for path in (f"/token/{nowhere}/chart?span=2h", "/token/0x12/trades"):
        status, _, _ = await house.get(path)
        assert status == 400


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0.00000000421237", "0.0₈4212"),
        ("0.000121141", "0.0001211"),
        ("0.00001", "0.0₄1"),
        ("0", "0"),
        ("1.5", "1.5"),
        ("104.999", "104.99"),
        ("3.14159", "3.141"),
        ("1234567.8", "1,234,567"),
    ],
)
def test_a_small_price_counts_its_zeros(text: str, shown: str) -> None:
    assert shorten_price(text, "$") == f'<span title="${text}">${shown}</span>'
    assert shorten_price(None) == "–"


def verdict(
    hours: float, level: str = "ok", code: str = "ok", ends_at: datetime | None = None
) -> PastVerdict:
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
    return PastVerdict(at, int(hours), "1", code, level, False, None, ends_at)


def test_verdicts_over_time_hold_a_day_and_dangers_until_the_next() -> None:
    checks = [verdict(60, "danger", "cannot_sell"), verdict(30), verdict(3), verdict(2), verdict(1, "warn")]
    joined = join_verdicts(checks, verdict(100).checked_at)
    start = verdict(0).checked_at
    assert [
        (one.level, (one.at - start) // timedelta(hours=1), (one.until - start) // timedelta(hours=1))
        for one in joined
    ] == [("warn", 1, 2), ("ok", 2, 27), ("ok", 30, 54), ("danger", 60, 100)]
    assert joined[-1].word == "Honeypot: you cannot sell"
    assert join_verdicts([], start) == []


def test_a_verdict_ends_with_the_snipe_tax_that_caused_it() -> None:
    ends_at = verdict(1.5).checked_at
    checks = [verdict(1, "danger", "heavy_fees", ends_at)]
    (held,) = join_verdicts(checks, verdict(100).checked_at)
    assert (held.level, held.until) == ("danger", ends_at)
    assert strip(checks, 1, 2, 50) == "d--"
    # A check before that end takes its place at once.
    assert [one.until for one in join_verdicts([verdict(1.25), *checks], verdict(2).checked_at)] == [
        verdict(1.25).checked_at,
        verdict(2).checked_at,
    ]


def strip(newest_first: Sequence[PastVerdict], *hours: int) -> str:
    """The letters of candles that begin at these hours; the newest one lasts until hour 71."""
    candles = [CandleRow(verdict(hour).checked_at, "1", "1", "1", "1", "0", 1, 0) for hour in hours]
    chart = PriceChart(
        "", 1, 1, newest_first[0].checked_at, "", None, "eth", "1h", [], None, None, None, candles, False, [],
        0, join_verdicts(newest_first, verdict(71).checked_at),
    )  # fmt: skip
    return draw_verdicts(chart)


def test_each_candle_has_the_verdict_of_its_span() -> None:
    checks = [verdict(60, "danger", "cannot_sell"), verdict(2), verdict(1, "warn")]
    assert strip(checks, 0, 1, 2, 40, 50) == "-wo-d"


@pytest.mark.parametrize(
    ("levels", "letter"),
    [
        (("danger", "warn", "unknown", "ok"), "d"),
        (("ok", "danger", "ok"), "d"),
        (("unknown", "warn", "ok"), "w"),
        (("unknown", "ok"), "u"),
        (("ok",), "o"),
    ],
)
def test_a_candle_shows_the_worst_of_its_verdicts(levels: tuple[str, ...], letter: str) -> None:
    checks = [verdict(5 + place / 10, level, level) for place, level in enumerate(levels)]
    assert strip(checks[::-1], 5, 6)[0] == letter


def test_the_line_spans_the_drawing() -> None:
    assert draw_line([3.0]) == ""
    assert draw_line([1.0, 3.0, 2.0]) == "0.0,156.0 300.0,4.0 600.0,80.0"
    assert draw_line([5.0, 5.0]) == "0.0,156.0 600.0,156.0"
