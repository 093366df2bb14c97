"""Figures in sentences: four significant digits, thousands separated. Fields hold the exact figure."""

from .types import BPS, plain_decimal

_DIGITS = 4
_COMPARED_DIGITS = 6
"""Significant digits of an amount that is at fault, unless it is written exactly."""
_EXACT_DIGITS = 12
"""The most significant digits with which such an amount is written exactly."""
_ETH_DECIMALS, _GWEI_DECIMALS = 18, 9
_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def format_percent(bps: int) -> str:
    """Formats bps as a percentage with two decimals: ``60`` is ``0.60 %``."""
    sign, bps = ("-" if bps < 0 else ""), abs(bps)
    return f"{sign}{bps * 100 // BPS:,}.{bps % 100:02d} %"


def format_loss(bps: int) -> str:
    """``a loss of 0.60 %``, or a gain."""
    return f"a loss of {format_percent(bps)}" if bps >= 0 else f"a gain of {format_percent(-bps)}"


def format_sold_loss(loss_bps: int, sold_bps: int | None) -> str:
    """The loss of a sell, and what it holds for: ``0.41 % for the 60.01 % of it that sold``. ``sold_bps``:
    the part that sold; None: not known."""
    loss = format_percent(loss_bps)
    if sold_bps is None or sold_bps >= BPS:
        return loss
    return f"{loss} for the {format_percent(sold_bps)} of it that sold"


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """A count and its noun: ``1 wallet``, ``1,234 wallets``. ``plural``: where it is not the noun and s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def format_amount(raw: int, decimals: int) -> str:
    """``raw`` base units with four significant digits, cut toward zero: never more than there is."""
    return _format_digits(raw, decimals, _DIGITS)


def format_nearest(raw: int, decimals: int) -> str:
    """``raw`` base units, not below zero, rounded to four significant digits: for a price, which is measured
    and not owned."""
    unit: int = 10 ** max(0, len(str(raw)) - _DIGITS)
    return format_amount((raw + unit // 2) // unit * unit, decimals)


def format_about(raw: int, decimals: int) -> str:
    """As ``format_amount``, with ``about`` before it where digits are cut."""
    return f"{'' if _cut(abs(raw), _DIGITS) == abs(raw) else 'about '}{format_amount(raw, decimals)}"


def _format_digits(raw: int, decimals: int, digits: int) -> str:
    sign, whole_and_rest = ("-" if raw < 0 else ""), plain_decimal(abs(raw), decimals)
    whole, _, fraction = whole_and_rest.partition(".")
    if len(whole) >= digits:
        return f"{sign}{int(whole[:digits].ljust(len(whole), '0')):,}"
    zeros = len(fraction) - len(fraction.lstrip("0"))
    places = digits - len(whole) if whole != "0" else zeros + digits
    fraction = fraction[:places].rstrip("0")
    return f"{sign}{int(whole):,}.{fraction}" if fraction else f"{sign}{int(whole):,}"


def format_shortfall(has_raw: int, needs_raw: int, decimals: int) -> tuple[str, str]:
    """What there is, and what is needed: each exact, or as ``about`` so much where that takes over
    twelve digits, with enough digits for them to differ. Never more than there is, nor than is needed."""
    digits = _COMPARED_DIGITS
    while has_raw < needs_raw and _cut(has_raw, digits) == _cut(needs_raw, digits):
        digits += 1
    return _format_close(has_raw, decimals, digits), _format_close(needs_raw, decimals, digits)


def format_close(raw: int, decimals: int) -> str:
    """``raw`` base units exactly, or as ``about`` so much, cut toward zero, where that takes over twelve
    digits: for the amount that is at fault."""
    return _format_close(raw, decimals, _COMPARED_DIGITS)


def _format_close(raw: int, decimals: int, digits: int) -> str:
    if _cut(raw, _EXACT_DIGITS) == raw:
        return _format_digits(raw, decimals, max(_EXACT_DIGITS, digits))
    return f"about {_format_digits(raw, decimals, digits)}"


def _cut(raw: int, digits: int) -> int:
    """``raw`` rounded down to so many significant digits."""
    unit: int = 10 ** max(0, len(str(abs(raw))) - digits)
    return raw // unit * unit


def format_eth(wei: int) -> str:
    """An amount of eth: ``0.1234 eth``; less than a gwei in wei: ``7 wei``."""
    if 0 < abs(wei) < 10**_GWEI_DECIMALS:
        return f"{wei:,} wei"
    return f"{format_amount(wei, _ETH_DECIMALS)} eth"


def format_gas_price(wei: int) -> str:
    """The price of a unit of gas: ``1.5 gwei``; less than a hundredth of a gwei in wei: ``7 wei``."""
    return f"{wei:,} wei" if wei < 10**7 else f"{format_amount(wei, _GWEI_DECIMALS)} gwei"


def format_duration(seconds: int) -> str:
    """A span of time in its largest whole unit: ``3 days``, ``1 hour``, ``20 seconds``."""
    for unit_s, noun in _UNITS:
        if seconds >= unit_s:
            return format_count(seconds // unit_s, noun)
    return "0 seconds"
