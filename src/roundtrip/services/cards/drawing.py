"""Draws a token's card and badge as SVG, without scripts, styles or anything loaded from elsewhere."""

import unicodedata
from dataclasses import dataclass
from html import escape

from roundtrip.channels import message_lines
from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_sold_loss
from roundtrip.domain.verdicts.risks import worst_risk
from roundtrip.domain.verdicts.words import is_tradable, level_word

from .newest_check import TokenCard

WIDTH, HEIGHT = 1200, 630
FAMILY = "DejaVu Sans"
_FAMILIES = f"{FAMILY}, Verdana, sans-serif"
_LEFT, _INNER = 64, WIDTH - 2 * 64
_WORD_LEFT = 244
_TEXT_LENGTH = 400
_BADGE_SIZE = 11

_COLOURS = {"ok": "#56d364", "warn": "#f2cc60", "danger": "#ff8a80", "unknown": "#b6c2cf"}
"""Light, for a dark ground."""
_BADGE_COLOURS = {"ok": "#116329", "warn": "#7d4e00", "danger": "#a40e26", "unknown": "#424a53"}
"""Dark, for white text."""
_STROKE = 'fill="none" stroke-width="12" stroke-linecap="round" stroke-linejoin="round"'
_ICONS = {
    "ok": '<circle cx="72" cy="72" r="64"/><path d="M42 74l22 24 40-48"/>',
    "warn": '<path d="M72 10l64 118H8z"/><path d="M72 54v34M72 107v1"/>',
    "danger": '<path d="M46 8h52l38 38v52l-38 38H46L8 98V46z"/><path d="M50 50l44 44M94 50l-44 44"/>',
    "unknown": '<circle cx="72" cy="72" r="64"/><path d="M52 56c2-30 44-26 40 2c-2 14-20 16-20 30m0 20v1"/>',
}
"""A shape for each level, as colour alone is not accessible."""


@dataclass(frozen=True, slots=True)
class CardText:
    """What a card says. ``word``: the verdict in a word or three. ``level``: chooses colour and icon. The
    other lines may be empty. ``symbol``: in quotes, as a stranger wrote it."""

    word: str
    level: str
    symbol: str
    loss: str
    sentence: str
    as_of: str


def describe_card(card: TokenCard) -> CardText:
    """The card's text. A check that went well is no proof after a day; a danger stays one until a check says
    otherwise."""
    check = card.check
    if check is None:
        sentence = "No check of this token is stored. Open its page to check it."
        return CardText("Not checked yet", "unknown", "", "", sentence, "")
    symbol = f'"{names.reason(check.symbol)}"' if check.symbol else "no symbol"
    as_of = f"As of block {check.block:,}, {check.block_at:%Y-%m-%d %H:%M:%S} UTC"
    is_good = check.level in ("ok", "warn")
    if check.is_old and is_good:
        sentence = "This check is more than a day old and proves nothing now. Open the page to check again."
        return CardText("Old check", "unknown", symbol, "", sentence, as_of)
    loss, loss_bps = "", check.round_trip_loss_bps
    # Of what holders cannot sell, a new wallet's loss would mislead.
    if loss_bps is not None and is_good:
        loss = f"A round trip costs {format_sold_loss(loss_bps, check.sold_bps)}"
    risk = worst_risk(tuple(check.risks)) if loss else None
    if risk is not None:
        loss += f"; {risk.text}"
    sentence = message_lines.cut_text(names.clean(check.text, 2 * _TEXT_LENGTH), _TEXT_LENGTH)
    word = level_word(check.level, check.code)
    return CardText(word, check.level, symbol, loss, sentence, as_of)


def draw_card(card: TokenCard) -> str:
    """The card: 1200 x 630, light on dark. Unchecked addresses have one and the same: strangers can name any
    number of them, and each picture that differs takes the place of another."""
    text = describe_card(card)
    address = "" if card.check is None else card.address
    colour = _COLOURS[text.level]
    # A token that looks like another one says so above its costs, which make room.
    is_look_alike = bool(address and card.look_alike)
    loss_y, sentence_y = (478, 520) if is_look_alike else (458, 508)
    word_size = min(120, int((WIDTH - _LEFT - _WORD_LEFT) / _ems(text.word)))
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="{_FAMILIES}">',
            f"<title>{escape(f'{text.word}: {address}. {text.as_of}'.rstrip('.: '))}</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#0d1117"/>',
            f'<rect width="{WIDTH}" height="16" fill="{colour}"/>',
            _line("roundtrip", 88, 34, "#e6edf3", bold=True),
            f'<g transform="translate({_LEFT} 132)" stroke="{colour}" {_STROKE}>{_ICONS[text.level]}</g>',
            _line(text.word, 246, word_size, colour, bold=True, left=_WORD_LEFT),
            _line(text.symbol, 352, 52, "#ffffff", bold=True),
            _line(address, 400, 27, "#b6c2cf"),
            *([_line(card.look_alike, 436, 25, _COLOURS["warn"], bold=True)] if is_look_alike else []),
            _line(text.loss, loss_y, 36, "#ffffff", bold=True),
            *(
                _line(line, sentence_y + 38 * index, 27, "#d5dde5")
                for index, line in enumerate(wrap_text(text.sentence, 27, _INNER, 2))
            ),
            _line(text.as_of, 604, 24, "#b6c2cf"),
            "</svg>",
        ]
    )


def _line(text: str, y: int, size: int, colour: str, *, bold: bool = False, left: int = _LEFT) -> str:
    """One line of text with its baseline at ``y``. A frame clips it, whatever strangers' characters are."""
    width = WIDTH - _LEFT - left
    shown = escape(cut_text(text, size, width))
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<svg x="{left}" y="{y - size}" width="{width}" height="{size * 13 // 10}">'
        f'<text y="{size}" font-size="{size}" fill="{colour}"{weight}>{shown}</text></svg>'
    )


def draw_badge(card: TokenCard) -> str:
    """A badge, 20 pixels high: the verdict in a word; and if it can be sold, the cost of a round trip and the
    block's time. After an hour the time is all that is said of a check that went well."""
    text = describe_card(card)
    name, verdict, level, check = "roundtrip", text.word.lower(), text.level, card.check
    is_good = check is not None and not check.is_old and check.level in ("ok", "warn") and level != "danger"
    if check is not None and is_good and is_tradable(check.code):
        # A time and not an age: caches of other sites keep a badge for longer than a minute.
        moment = f"{check.block_at:%Y-%m-%d %H:%M} UTC"
        if check.is_fresh:
            cost = text.loss.removeprefix("A round trip costs ").replace("; ", ", ")
            verdict = ", ".join(filter(None, (verdict, cost, moment)))
        else:
            verdict, level = f"checked {moment}", "unknown"
    left, right = (int(_ems(part) * _BADGE_SIZE * 0.9) + 14 for part in (name, verdict))
    title = escape(f"{name}: {verdict}. {text.as_of}".strip(". "))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{title}" font-family="Verdana, {FAMILY}, sans-serif" font-size="{_BADGE_SIZE}" '
        f'fill="#fff"><title>{title}</title>'
        f'<rect width="{left + right}" height="20" rx="3" fill="{_BADGE_COLOURS[level]}"/>'
        f'<path d="M3 0h{left - 3}v20h-{left - 3}a3 3 0 0 1-3-3v-14a3 3 0 0 1 3-3z" fill="#30363d"/>'
        f'<text x="7" y="14" textLength="{left - 14}">{name}</text>'
        f'<text x="{left + 7}" y="14" textLength="{right - 14}">{escape(verdict)}</text></svg>'
    )


def wrap_text(text: str, size: int, width: int, most_lines: int) -> list[str]:
    """``text`` cleaned and broken into at most ``most_lines``; the last is cut with an ellipsis."""
    words = names.clean(text, _TEXT_LENGTH).split()
    lines: list[str] = []
    while words and len(lines) < most_lines - 1:
        count = 1
        while count < len(words) and _ems(" ".join(words[: count + 1])) * size <= width:
            count += 1
        lines.append(cut_text(" ".join(words[:count]), size, width))
        words = words[count:]
    return [*lines, cut_text(" ".join(words), size, width)] if words else lines


def cut_text(text: str, size: int, width: int) -> str:
    """``text`` cleaned; its beginning and an ellipsis where it is wider than ``width`` at this font size."""
    text = names.clean(text, _TEXT_LENGTH)
    if _ems(text) * size <= width:
        return text
    while text and (_ems(text) + 1) * size > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _ems(text: str) -> float:
    """About how wide the text is in its font's bold, in ems; rather too wide."""
    return sum(_em(character) for character in text)


def _em(character: str) -> float:
    if unicodedata.category(character)[0] == "M":
        return 0.0
    if character > "\u2fff" or unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in " .,:;'!|ijlI()[]/":
        return 0.42
    return 1.0 if character in "MWmw@%…—&" else 0.7
