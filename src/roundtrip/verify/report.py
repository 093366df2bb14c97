"""What a verification says, and how numbers and stranger's words are put into its sentences."""

import re
from dataclasses import dataclass

_DECIMAL = re.compile(r"([0-9]{1,78})(?:\.([0-9]{1,255}))?")
_MOST_ESCAPED = 160
_MOST_SHOWN = 60

REFUSED = "refused: nothing to sign"
"""All that is proven of a refused trade."""


class UnreadableClaim(ValueError):
    """What was handed in has not the shape of what it should be. The text is one sentence."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """``findings``: what does not hold. ``proven``: what is true of the steps, each sentence by itself.
    ``notes``: what cannot be proven from the answer alone. ``ok`` is True exactly without findings."""

    ok: bool
    proven: tuple[str, ...]
    findings: tuple[str, ...]
    notes: tuple[str, ...]


def lines(report: VerifyReport) -> list[str]:
    """The report for a terminal, in ASCII: the verdict first."""
    said = [f"WRONG:   {text}" for text in report.findings]
    said += [f"proven:  {text}" for text in report.proven]
    said += [f"unknown: {text}" for text in report.notes]
    if report.ok and REFUSED in report.proven:
        return ["REFUSED: there is nothing to sign.", *said]
    if report.ok:
        return ["OK: the steps do what the answer says, and nothing else.", *said]
    return ["DO NOT SIGN: the steps are not what the answer says.", *said]


def plain(raw: int, decimals: int) -> str:
    """Base units as a plain decimal number, without zeros at the end."""
    whole, rest = divmod(raw, 10**decimals)
    return f"{whole}.{rest:0{decimals}d}".rstrip("0").rstrip(".") if rest else str(whole)


def base_units(text: str, decimals: int) -> int | None:
    """The base units of a plain decimal number; None when it is none, or finer than a base unit."""
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    whole, rest = match[1], (match[2] or "").rstrip("0")
    return None if len(rest) > decimals else int(whole + rest.ljust(decimals, "0"))


def printable(value: object) -> str:
    """A value somebody else wrote, short and in ASCII: it may hold anything."""
    if isinstance(value, str):
        # Of what is not ASCII a sign becomes ten: both are cut.
        escaped = ascii(value if len(value) <= _MOST_SHOWN else value[:_MOST_SHOWN] + "...")
        return escaped if len(escaped) <= _MOST_ESCAPED else f"{escaped[:_MOST_ESCAPED]}...{escaped[-1]}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and abs(value) < 2**256:
        return str(value)
    return {int: "a huge number", float: "a fraction", list: "a list", dict: "an object"}.get(
        type(value), "something else"
    )
