"""The report of a verification, and the format of numbers and strangers' words in its sentences."""

import re
from dataclasses import dataclass

_DECIMAL = re.compile(r"([0-9]{1,78})(?:\.([0-9]{1,255}))?")
_MAX_ESCAPED = 160
_MAX_SHOWN = 60

REFUSED = "refused: nothing to sign"
"""All that is proven of a refused trade."""


class UnreadableClaim(ValueError):
    """The input does not have the expected shape. The text is one sentence."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """``findings``: claims that do not hold. ``proven``: what is true of the steps, each sentence by itself.
    ``notes``: what the answer alone cannot prove. ``ok`` is True exactly without findings."""

    ok: bool
    proven: tuple[str, ...]
    findings: tuple[str, ...]
    notes: tuple[str, ...]


def lines(report: VerifyReport) -> list[str]:
    """The report for a terminal, in ASCII: the verdict first."""
    sentences = [f"WRONG:   {text}" for text in report.findings]
    sentences += [f"proven:  {text}" for text in report.proven]
    sentences += [f"unknown: {text}" for text in report.notes]
    if report.ok and REFUSED in report.proven:
        return ["REFUSED: there is nothing to sign.", *sentences]
    if report.ok:
        return ["OK: the steps do what the answer says and nothing else.", *sentences]
    return ["DO NOT SIGN: the steps differ from what the answer says.", *sentences]


def plain(raw: int, decimals: int) -> str:
    """Base units as a plain decimal number, without trailing zeros."""
    whole, rest = divmod(raw, 10**decimals)
    return f"{whole}.{rest:0{decimals}d}".rstrip("0").rstrip(".") if rest else str(whole)


def base_units(text: str, decimals: int) -> int | None:
    """The base units of a plain decimal number; None: it is not one, or finer than a base unit."""
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    whole, rest = match[1], (match[2] or "").rstrip("0")
    return None if len(rest) > decimals else int(whole + rest.ljust(decimals, "0"))


def printable(value: object) -> str:
    """A stranger's value, short and in ASCII: it may be anything."""
    if isinstance(value, str):
        # Escaping makes ten characters of one that is not ASCII: both lengths are limited.
        escaped = ascii(value if len(value) <= _MAX_SHOWN else value[:_MAX_SHOWN] + "...")
        return escaped if len(escaped) <= _MAX_ESCAPED else f"{escaped[:_MAX_ESCAPED]}...{escaped[-1]}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and abs(value) < 2**256:
        return str(value)
    return {int: "a huge number", float: "a fraction", list: "a list", dict: "an object"}.get(
        type(value), "something else"
    )
