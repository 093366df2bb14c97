"""Templates, and how they show what answers say. Strangers' text is escaped, kept in its own direction, and
marked as theirs."""

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_LEVEL_WORDS = {"ok": "Sells", "warn": "Careful", "danger": "Danger", "unknown": "Not known"}
_CODE_WORDS = {"cannot_sell": "Trap", "quote_asset": "Money"}


def level_word(level: str, code: str) -> str:
    """One word for a verdict; a colour alone tells nothing to who cannot see it. What cannot be sold alone is
    a trap, and of money nothing was proven."""
    return _CODE_WORDS.get(code, _LEVEL_WORDS[level])


def stranger(text: str | None, instead: str = "no name") -> Markup:
    """What a stranger wrote. ``bdi``: it cannot turn the text around it."""
    if not text:
        return Markup('<span class="none">{}</span>').format(instead)
    return Markup('<bdi class="stranger" title="written by a stranger">{}</bdi>').format(text)


def address(text: str | None, to: str | None = None) -> Markup:
    """An address, short for the eye and whole for whoever copies or hovers. ``to``: the kind of page it leads
    to."""
    if not text:
        return Markup('<span class="none">not known</span>')
    short = f"{text[:6]}…{text[-4:]}"
    shown = Markup('<code class="address" title="{0}" data-copy="{0}">{1}</code>').format(text, short)
    return shown if to is None else Markup('<a href="/{}/{}">{}</a>').format(to, text, shown)


_PART = re.compile(r'"[^"]*"|0x[0-9a-f]{64}|0x[0-9a-fA-F]{40}|\b\d+\.\d{7,}\b')
_MOST_DIGITS = 6


def render_sentence(text: str) -> Markup:
    """A sentence of an answer: what stands in quotes is a stranger's, who cannot end the quote, and addresses
    lead to what they are. Long decimals are cut, never rounded up, and whole for whoever hovers."""
    found, done = Markup(""), 0
    for part in _PART.finditer(text):
        found += text[done : part.start()]
        one = part.group()
        if one.startswith('"'):
            found += Markup('"{}"').format(stranger(one[1:-1], "")) if len(one) > 2 else Markup('""')
        elif not one.startswith("0x"):
            found += Markup('<span title="{}">{}</span>').format(one, _cut(one))
        elif len(one) == 66:
            found += Markup('<a href="/transaction/{0}"><code title="{0}">{1}…</code></a>').format(
                one, one[:10]
            )
        else:
            found += Markup('<a href="/search?q={0}"><code title="{0}">{1}…{2}</code></a>').format(
                one, one[:6], one[-4:]
            )
        done = part.end()
    return found + text[done:]


def _cut(text: str) -> str:
    """A plain decimal without the digits that nobody reads: six that count, and no part of a thousand."""
    whole, part = text.split(".")
    if len(whole) > 3:
        return f"{int(whole):,}"
    zeros = len(part) - len(part.lstrip("0")) if whole == "0" else 0
    kept = zeros + _MOST_DIGITS - (0 if whole == "0" else len(whole))
    return f"{whole}.{part[:kept]}".rstrip("0").rstrip(".")


def percent(bps: int | float | None) -> str:
    """Hundredths of a percent as a person reads them; a dash where it is not known."""
    if bps is None:
        return "–"
    return f"{bps / 100:.2f}".rstrip("0").rstrip(".") + " %"


def number(value: int | float | None) -> str:
    """With its thousands apart; small ones by four digits that count."""
    if value is None:
        return "–"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    shown = f"{Decimal(f'{value:.4g}'):f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def decimal(text: str | None) -> Markup:
    """A plain decimal by its first digits that count, whole for whoever hovers."""
    if text is None:
        return Markup("–")
    return Markup('<span title="{}">{}</span>').format(text, number(float(text)))


def usd(value: float | None) -> str:
    """Dollars."""
    return "–" if value is None else f"${number(value)}"


def moment(text: str | None) -> Markup:
    """A time of UTC that the reader's own clock may say in its way."""
    if text is None:
        return Markup("–")
    at = datetime.fromisoformat(text)
    return Markup('<time datetime="{}">{:%Y-%m-%d %H:%M:%S} UTC</time>').format(text, at)


_FILTERS = {
    "stranger": stranger,
    "said": render_sentence,
    "address": address,
    "percent": percent,
    "number": number,
    "usd": usd,
    "decimal": decimal,
    "moment": moment,
}


class _Environment(Environment):
    def getattr(self, obj: Any, attribute: str) -> Any:
        """Of an answer the field of that name, also where dicts have a method called so: ``keys``."""
        return (
            obj[attribute] if isinstance(obj, dict) and attribute in obj else super().getattr(obj, attribute)
        )


class Templates:
    """``static``: the address of each file that pages load, by its name."""

    def __init__(self, static: Mapping[str, str]) -> None:
        self._environment = _Environment(
            loader=PackageLoader("roundtrip.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(_FILTERS)
        self._environment.globals.update(static=static, level_word=level_word)

    def render(self, name: str, **values: Any) -> str:
        """The page or piece of this name."""
        return self._environment.get_template(name).render(**values)
