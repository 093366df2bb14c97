"""Templates and their filters, which escape strangers' text, isolate its text direction, and mark it; short
forms of figures for cells; and small charts that the server draws, as the points of an SVG."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from roundtrip.domain.base.figures import format_amount, format_duration, format_percent
from roundtrip.domain.base.router_codes import find_meaning
from roundtrip.domain.base.types import BPS, plain_decimal
from roundtrip.domain.check.refusals import NO_REASON, REASON_WITHHELD, ROUTER_REASONS, TRANSFER_REFUSED
from roundtrip.domain.market.exposure import INSIDERS_HIGH_BPS, INSIDERS_MINDED_BPS
from roundtrip.domain.verdicts.facts import TOP10_BOUNDS_BPS
from roundtrip.domain.verdicts.risks import MARKED_LOSS_BPS
from roundtrip.domain.verdicts.words import code_text, level_word


def stranger(text: str | None, placeholder: str = "no name") -> Markup:
    """Text that a stranger wrote. ``bdi`` keeps it from changing the direction of the text around it."""
    if not text:
        return Markup('<span class="none">{}</span>').format(placeholder)
    return Markup('<bdi class="stranger" title="written by a stranger">{}</bdi>').format(text)


def refusal(
    text: str | None, is_short: bool = False, told: str | None = None, is_callers: bool = False
) -> Markup:
    """The reason of a refused trade, quoted from the token. If it is only a router's code: words for that,
    with the code as tooltip. ``is_short``: for cells of tables. ``told``: the reason that the verdict names
    for the whole sell; where the router hides it, it was found without the router. ``is_callers``: of a call
    that the visitor wrote, whose wallet may lack the balance or the approval."""
    meaning = find_meaning(text)
    if meaning is not None and not is_short and (is_callers or text not in ROUTER_REASONS):
        return Markup('<span title="{}">{}</span>').format(text, meaning)
    if text not in ROUTER_REASONS:
        return stranger(text, NO_REASON)
    if is_short:
        return Markup("")
    words: str = TRANSFER_REFUSED if told == TRANSFER_REFUSED else REASON_WITHHELD
    hidden = (NO_REASON, TRANSFER_REFUSED, REASON_WITHHELD, *ROUTER_REASONS)
    if told and told not in hidden:
        words = Markup("{}; without the router the token says {}").format(_HIDDEN, stranger(told))
    return Markup('<span title="{}">{}</span>').format(text, words)


_HIDDEN = "the router hides the reason"


def address(text: str | None, page: str | None = None) -> Markup:
    """An address, shortened, with the whole address as tooltip and for copying. ``page``: the kind of page
    that it links to."""
    if not text:
        return Markup('<span class="none">not known</span>')
    short = f"{text[:6]}…{text[-4:]}"
    code = Markup('<code class="address" title="{0}" data-copy="{0}">{1}</code>').format(text, short)
    return code if page is None else Markup('<a href="/{}/{}">{}</a>').format(page, text, code)


_PART = re.compile(r'"[^"]*"|0x[0-9a-f]{64}|0x[0-9a-fA-F]{40}|\b\d+\.\d{7,}\b')
_MAX_DIGITS = 6


def render_sentence(text: str) -> Markup:
    """A sentence of an answer: quotations are marked as strangers' text (which contains no quotes), hashes
    and addresses become links. Long decimals are truncated, never rounded up, with the whole number as
    tooltip. Lists have one row a line."""
    html, end = Markup(""), 0
    for part in _PART.finditer(text):
        html += _with_breaks(text[end : part.start()])
        text_part = part.group()
        if text_part.startswith('"'):
            html += (
                Markup('"{}"').format(stranger(text_part[1:-1], "")) if len(text_part) > 2 else Markup('""')
            )
        elif not text_part.startswith("0x"):
            html += Markup('<span title="{}">{}</span>').format(text_part, _shorten_decimal(text_part))
        elif len(text_part) == 66:
            html += Markup('<a href="/transaction/{0}"><code title="{0}">{1}…</code></a>').format(
                text_part, text_part[:10]
            )
        else:
            html += Markup('<a href="/search?q={0}"><code title="{0}">{1}…{2}</code></a>').format(
                text_part, text_part[:6], text_part[-4:]
            )
        end = part.end()
    return html + _with_breaks(text[end:])


def _with_breaks(text: str) -> Markup:
    return Markup("<br>").join(keep_units(text).split("\n"))


def keep_units(text: str) -> str:
    """The text with its figures tied to their units: no line ends between them."""
    return re.sub(r"(?<=\d) (?=(?:%|eth|ETH|usdg)(?![a-z]))", "\u00a0", text)


def _shorten_decimal(text: str) -> str:
    """A plain decimal truncated to six significant digits; from 1000 on, to an integer. Services format
    figures with four digits and write more only where two close figures are compared."""
    whole, decimals = text.split(".")
    if len(whole) > 3:
        return f"{int(whole):,}"
    zeros = len(decimals) - len(decimals.lstrip("0")) if whole == "0" else 0
    digits = zeros + _MAX_DIGITS - (0 if whole == "0" else len(whole))
    return f"{whole}.{decimals[:digits]}".rstrip("0").rstrip(".")


def ether(text: str) -> str:
    """Amounts of eth with the unit as on a token's page, ``0.1 ETH``; quotations stay as they are."""
    return re.sub(r'"[^"]*"|(?<=[0-9]) eth\b', lambda m: " ETH" if m.group() == " eth" else m.group(), text)


def without_raw(text: str) -> str:
    """A step's sentence without base units in brackets: they repeat the amount before them."""
    return re.sub(r" \(\d+ base units\)", "", text)


def percent(bps: int | float | None) -> str:
    """A share in bps (a hundredth of a percent): ``0.60 %``; a dash if it is not known."""
    return "–" if bps is None else keep_units(_sign(format_percent(round(bps))))


def number(value: int | float | None) -> str:
    """A count in full, ``1,234,567``; any other number with four significant digits and the full number as
    tooltip. A dash if it is not known."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return _sign(f"{value:,}")
    # A float's own digits: sums such as 0.1 + 0.7 are off in the 17th.
    return _cut_digits(f"{Decimal(f'{value:.15g}'):f}")


def decimal(text: str | None) -> str:
    """A plain decimal with four significant digits, with the full number as tooltip; a dash if not known."""
    return "–" if text is None else _cut_digits(text)


def _cut_digits(text: str, unit: str = "") -> str:
    """A plain decimal as in sentences, the full one in ``title`` if it is longer. ``unit``: a prefix."""
    whole, _, fraction = text.partition(".")
    shown = format_amount(int(whole + fraction), len(fraction))
    whole_shown = _sign(unit + shown)
    if Decimal(shown.replace(",", "")) == Decimal(text):
        return whole_shown
    return Markup('<span title="{}">{}</span>').format(unit + text, whole_shown)


def _sign(shown: str) -> str:
    """The figure with a minus as printers set it, not a hyphen."""
    return shown.replace("-", "−")


def usd(value: float | None) -> str:
    """An amount of dollars, formatted as ``number``; a dash if it is not known."""
    return "–" if value is None else _cut_digits(f"{Decimal(f'{value:.15g}'):f}", "$")


def moment(time: datetime | str | None) -> Markup:
    """A UTC time as a ``time`` element. The page's script shows how long ago it is, with the exact time as
    tooltip; where a sentence needs the time itself, use ``exact``."""
    return _render_time(time, Markup(" data-ago"))


def exact(time: datetime | str | None) -> Markup:
    """A UTC time as a ``time`` element that stays exact."""
    return _render_time(time, Markup(""))


def minute(time: datetime) -> str:
    """A UTC time without its seconds: ``2026-11-30 12:05``."""
    return f"{time:%Y-%m-%d %H:%M}"


def day(time: datetime) -> Markup:
    """The day of a UTC time: ``Monday, 30 November``."""
    return Markup('<time datetime="{}">{:%A}, {} {:%B}</time>').format(iso(time), time, time.day, time)


def _render_time(time: datetime | str | None, attribute: Markup) -> Markup:
    if time is None:
        return Markup("–")
    text = time if isinstance(time, str) else iso(time)
    time = datetime.fromisoformat(text)
    return Markup('<time datetime="{}"{}>{:%Y-%m-%d %H:%M:%S} UTC</time>').format(text, attribute, time)


def iso(time: datetime) -> str:
    """A UTC time as answers to programs have it."""
    return str(msgspec.to_builtins(time))


_FILTERS = {
    "stranger": stranger,
    "refusal": refusal,
    "said": render_sentence,
    "ether": ether,
    "without_raw": without_raw,
    "address": address,
    "percent": percent,
    "number": number,
    "usd": usd,
    "decimal": decimal,
    "moment": moment,
    "exact": exact,
    "minute": minute,
    "iso": iso,
    "day": day,
    "duration": format_duration,
}


class Templates:
    """The templates. ``static``: the path of each static file, by name."""

    def __init__(self, static: Mapping[str, str]) -> None:
        self._environment = Environment(
            loader=PackageLoader("roundtrip.console"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=lambda value: iso(value) if isinstance(value, datetime) else value,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(_FILTERS)
        self._environment.globals.update(
            static=static,
            level_word=level_word,
            code_text=code_text,
            insider_bounds=(INSIDERS_MINDED_BPS, INSIDERS_HIGH_BPS),
            top10_bounds=TOP10_BOUNDS_BPS,
            marked_loss_bps=MARKED_LOSS_BPS,
        )

    def render(self, name: str, **values: Any) -> str:
        """Renders the page or piece of this name."""
        return self._environment.get_template(name).render(**values)


def draw_line(points: Iterable[int | None], width: int, height: int) -> list[str]:
    """Pieces of a line as points of an SVG polyline, the heights from 0 to 100 turned to ``height``; a gap
    where a value is not known. A piece of one point is no line."""
    places = list(points)
    step = width / max(1, len(places) - 1)
    pieces: list[list[str]] = [[]]
    for number, point in enumerate(places):
        if point is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{number * step:.0f},{height - 1 - point * (height - 2) / 100:.1f}")
    return [" ".join(piece) for piece in pieces if len(piece) > 1]


_AGE_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def short_age(seconds: int) -> str:
    """A span in its largest whole unit: ``3 d``, ``20 min``."""
    for unit_s, unit in _AGE_UNITS:
        if seconds >= unit_s:
            return f"{seconds // unit_s:,} {unit}"
    return "0 s"


def short_amount(value: float) -> str:
    """An amount with three significant digits, cut: ``1.23K``, ``45.6M``, ``0.0123``."""
    for unit, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if value >= size:
            return _cut(value / size) + unit
    return _cut(value)


def _cut(value: float) -> str:
    raw = int(value * 10**18)
    digits = len(str(raw))
    if raw <= 0:
        return "0"
    cut = raw // 10 ** max(0, digits - 3) * 10 ** max(0, digits - 3)
    return plain_decimal(cut, 18)


def short_change(bps: int) -> str:
    """A change in percent with its sign, rounded: ``+12.3 %``; without decimals from 100 % on. Less than a
    whole loss is never ``−100 %``."""
    tenths, sign = (abs(bps) + 5) // 10, "−" if bps < 0 else "+"
    if -BPS < bps < 0:
        tenths = min(tenths, 999)
    return f"{sign}{(abs(bps) + 50) // 100:,} %" if tenths >= 1000 else f"{sign}{tenths / 10:.1f} %"


WIDTH, HEIGHT = 600, 120
_EDGE = 4
"""What is left free above the highest and below the lowest value, so that no line is cut."""


class SmallCurve(NamedTuple):
    """``points``: of an SVG of WIDTH by HEIGHT, left to right. ``zero``: the height of 0, which is always
    within the drawing. ``low``, ``high``: the least and the greatest value."""

    points: tuple[tuple[float, float], ...]
    zero: float
    low: Decimal
    high: Decimal

    def line(self) -> str:
        """The straight line through all points, for ``points`` of a polyline."""
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)

    def stairs(self, to: int | None = None) -> str:
        """As ``line``, but each value holds until the next one. ``to``: of the first so many points."""
        corners, points = list[str](), self.points[:to]
        for number, (x, y) in enumerate(points):
            if number:
                corners.append(f"{x:.1f},{points[number - 1][1]:.1f}")
            corners.append(f"{x:.1f},{y:.1f}")
        return " ".join(corners)


def draw_curve(values: Sequence[tuple[datetime, Decimal]]) -> SmallCurve | None:
    """The curve of values in order of time; None: fewer than two, or all of one moment."""
    if len(values) < 2 or values[0][0] == values[-1][0]:
        return None
    first, whole_s = values[0][0], (values[-1][0] - values[0][0]).total_seconds()
    low = min(Decimal(0), *(value for _, value in values))
    high = max(Decimal(0), *(value for _, value in values))
    span = (high - low) or Decimal(1)

    def height(value: Decimal) -> float:
        return round(_EDGE + float((high - value) / span) * (HEIGHT - 2 * _EDGE), 1)

    points = tuple(
        (round(WIDTH * (at - first).total_seconds() / whole_s, 1), height(value)) for at, value in values
    )
    return SmallCurve(points, height(Decimal(0)), low, high)
