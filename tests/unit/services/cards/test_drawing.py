"""Cards: what they say and when, and that strangers' text stays text in its own place."""

from datetime import UTC, datetime
from xml.etree import ElementTree

import msgspec
import pytest

from roundtrip.channels.message_lines import utf16_length
from roundtrip.domain.base import names
from roundtrip.domain.check.verdict import CODES
from roundtrip.domain.verdicts.deciding import DecidingFigure
from roundtrip.domain.verdicts.risks import Risk
from roundtrip.services.cards.newest_check import (
    CheckSummary,
    TokenCard,
    cut_text,
    describe_card,
    draw_badge,
    draw_card,
    wrap_text,
)

TOKEN = "0x" + "5f" * 20
SOLD = CheckSummary(
    level="ok",
    code="ok",
    text="It sells.",
    symbol="FOX",
    figure=DecidingFigure("round_trip", 60, "A round trip costs 0.60 %", "0.60 %"),
    block=1_234_567,
    block_at=datetime(2026, 1, 5, 12, 0, 1, tzinfo=UTC),
    is_old=False,
    is_fresh=True,
    holders=0,
    risks=[],
)
HOSTILE = (
    "</text><script>alert(1)</script>",
    "]]>&#0;&lt;",
    '"><image href="/etc/passwd"/>',
    "\u202esafe\u0000\ufffe\ud800",
    "﷽" * 32,
    "日本語" * 30,
    "W" * 300,
    "a\u0335" * 64,
)


def card(**fields: object) -> TokenCard:
    return TokenCard(TOKEN, msgspec.structs.replace(SOLD, **fields))


def parse(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314


def shown(svg: str) -> list[str]:
    return [text for text in parse(svg).itertext() if text]


def test_a_card_says_verdict_cost_block_and_time() -> None:
    assert shown(draw_card(card()))[1:] == [
        "roundtrip",
        "Can sell",
        '"FOX"',
        TOKEN,
        "A round trip costs 0.60 %",
        "It sells.",
        "As of block 1,234,567, 2026-01-05 12:00:01 UTC",
    ]
    assert shown(draw_badge(card()))[1:] == ["roundtrip", "can sell, 0.60 %, 2026-01-05 12:00 UTC"]


def test_a_card_says_which_token_it_looks_like() -> None:
    sentence = 'Its symbol is that of "WETH" <b>0x1</b>.'
    drawn = shown(draw_card(TokenCard(TOKEN, SOLD, sentence)))
    assert drawn[drawn.index(TOKEN) + 1 : drawn.index("It sells.")] == [sentence, "A round trip costs 0.60 %"]


def test_without_a_check_a_card_says_so() -> None:
    assert "Not checked yet" in shown(draw_card(TokenCard(TOKEN, None)))
    assert shown(draw_badge(TokenCard(TOKEN, None)))[1:] == ["roundtrip", "not checked yet"]


def test_unchecked_addresses_have_one_card() -> None:
    drawn = draw_card(TokenCard(TOKEN, None))
    assert drawn == draw_card(TokenCard("0x" + "a1" * 20, None))
    assert "0x" not in drawn
    assert shown(drawn)[0] == "Not checked yet"


@pytest.mark.parametrize(("level", "code"), [("ok", "ok"), ("warn", "high_fees"), ("ok", "quote_asset")])
def test_an_old_pass_is_no_pass(level: str, code: str) -> None:
    old = card(level=level, code=code, is_old=True)
    result = describe_card(old)
    assert (result.word, result.level, result.loss) == ("Old check", "unknown", "")
    assert "#56d364" not in draw_card(old)
    assert shown(draw_badge(old))[1:] == ["roundtrip", "old check"]


@pytest.mark.parametrize(("level", "code"), [("ok", "ok"), ("warn", "high_fees")])
def test_after_an_hour_a_badge_says_only_when(level: str, code: str) -> None:
    drawn = draw_badge(card(level=level, code=code, is_fresh=False))
    assert shown(drawn)[1:] == ["roundtrip", "checked 2026-01-05 12:00 UTC"]
    assert all(colour not in drawn for colour in ("#116329", "#7d4e00"))
    trap = draw_badge(card(level="danger", code="cannot_sell", is_fresh=False))
    assert shown(trap)[1:] == ["roundtrip", "honeypot: you cannot sell"]


def test_an_old_trap_stays_one() -> None:
    result = describe_card(card(level="danger", code="cannot_sell", is_old=True))
    assert (result.word, result.level) == ("Honeypot: you cannot sell", "danger")


@pytest.mark.parametrize("level", ["ok", "warn", "danger", "unknown"])
def test_levels_differ_by_more_than_colour(level: str) -> None:
    others = [other for other in ("ok", "warn", "danger", "unknown") if other != level]
    mine = describe_card(card(level=level, code="other"))
    assert mine.word not in [describe_card(card(level=other, code="other")).word for other in others]
    icon = (
        draw_card(card(level=level, code="other")).partition("<g ")[2].partition("</g>")[0].partition(">")[2]
    )
    assert all(icon not in draw_card(card(level=other, code="other")) for other in others)


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_verdict_has_a_card(code: str) -> None:
    assert len(shown(draw_card(card(code=code, level="danger", figure=None)))) >= 6


@pytest.mark.parametrize("text", HOSTILE)
def test_strangers_text_stays_text(text: str) -> None:
    svg = draw_card(card(symbol=text, text=f'The token says "{text}".'))
    tags = {element.tag.partition("}")[2] for element in parse(svg).iter()}
    assert tags == {"svg", "title", "rect", "g", "circle", "path", "text"}
    assert "\u202e" not in svg
    assert len(svg) < 8_000


@pytest.mark.parametrize("text", HOSTILE)
def test_long_text_is_cut_by_its_width(text: str) -> None:
    cut = cut_text(text, 50, 500)
    assert len(cut) <= 26
    assert cut.endswith("…") or cut == names.clean(text, 400)
    lines = wrap_text(f"It says {text} and more and more words that follow", 50, 500, 2)
    assert len(lines) == 2
    assert lines[1].endswith("…")


def test_a_sentence_that_is_cut_says_so() -> None:
    whole = describe_card(card(text="word " * 79 + "word")).sentence
    cut = describe_card(card(text="word " * 90)).sentence
    assert whole.endswith("word")
    assert cut.endswith("…")
    assert len(cut) <= 400
    assert utf16_length(describe_card(card(text="😀" * 399)).sentence) <= 400


@pytest.mark.parametrize(
    ("level", "shows"), [("ok", True), ("warn", True), ("danger", False), ("unknown", False)]
)
def test_only_what_can_be_sold_has_a_cost(level: str, shows: bool) -> None:
    result = describe_card(card(level=level, code="other"))
    assert bool(result.loss) == shows
    assert ("0.60 %" in draw_card(card(level=level, code="other"))) == shows


def test_text_that_fits_is_whole() -> None:
    assert wrap_text("one two three", 20, 1000, 2) == ["one two three"]
    assert cut_text("FOX", 50, 500) == "FOX"
    assert wrap_text("", 20, 1000, 2) == []


def test_a_cost_says_for_how_much_of_it_it_holds() -> None:
    loss = "0.41 % for the 60.01 % of it that sold"
    figure = DecidingFigure("round_trip", 41, f"A round trip costs {loss}", loss)
    partial = card(level="warn", figure=figure)
    assert describe_card(partial).loss == f"A round trip costs {loss}"
    assert loss in "".join(shown(draw_badge(partial)))


def test_a_cost_is_the_one_that_decided_and_is_said_once() -> None:
    short = "47.83 % after others have bought"
    figure = DecidingFigure("others", 4783, f"A round trip costs {short}", short)
    fees = card(
        level="warn", code="high_fees", figure=figure, risks=[Risk("tax", "danger", f"costs {short}")]
    )
    assert describe_card(fees).loss == f"A round trip costs {short}"
    assert f"A round trip costs {short}" in shown(draw_card(fees)), "it is not cut"
    assert shown(draw_badge(fees))[-1] == f"high fees, {short}, 2026-01-05 12:00 UTC"
