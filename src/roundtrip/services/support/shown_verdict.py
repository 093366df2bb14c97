"""The verdict that a row of a page shows."""

from datetime import UTC, datetime

import msgspec

from roundtrip.domain.market.moving import CheckedLevel, TokenChecks

SHARED_MS = 2_000
"""One answer of a page's rows serves all readers for so long."""


class ShownVerdict(msgspec.Struct, frozen=True, rename="camel"):
    """A check. ``level``: whose colour it is shown in. ``age_s`` None: not known."""

    code: str
    level: str
    checked_at: datetime
    age_s: int | None


class PageOfRows(msgspec.Struct, frozen=True, rename="camel"):
    """What the answers behind a page of rows begin with."""

    text: str
    block: int
    block_time: datetime


def present_verdict(checks: TokenChecks, now_s: float) -> ShownVerdict | None:
    """The check that people are shown; None: none is young enough."""
    checked = checks.to_show(now_s)
    return None if checked is None else _present(checked, now_s)


def present_stored(checks: TokenChecks, now_s: float) -> ShownVerdict | None:
    """The same, but an old check where there is no young one: level unknown, since it proves nothing now."""
    young = present_verdict(checks, now_s)
    if young is not None or checks.checked is None:
        return young
    return msgspec.structs.replace(_present(checks.checked, now_s), level="unknown")


def _present(checked: CheckedLevel, now_s: float) -> ShownVerdict:
    at = datetime.fromtimestamp(int(checked.at_s), UTC)
    return ShownVerdict(checked.code, checked.level, at, checked.age_s(now_s))
