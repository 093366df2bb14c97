"""The verdict that a row of a page shows."""

from datetime import UTC, datetime

import msgspec

from roundtrip.domain.market.exposure import TokenExposure
from roundtrip.domain.market.moving import CheckedLevel, TokenChecks
from roundtrip.domain.verdicts.words import ShownCatch, level_colour

SHARED_MS = 2_000
"""One answer of a page's rows serves all readers for so long."""


class ShownVerdict(msgspec.Struct, frozen=True, rename="camel"):
    """A check. ``level``: whose colour it is shown in, never better than the verdict's. ``catch``: what a
    code ok does not say. ``age_s`` None: not known."""

    code: str
    level: str
    catch: ShownCatch | None
    checked_at: datetime
    age_s: int | None


def present_verdict(checks: TokenChecks, now_s: float) -> ShownVerdict | None:
    """The check that people are shown; None: none is young enough."""
    checked = checks.to_show(now_s)
    return None if checked is None else _present(checked, checks.exposure, now_s)


def present_stored(checks: TokenChecks, now_s: float) -> ShownVerdict | None:
    """The same, but an old check where there is no young one: level unknown, since it proves nothing now."""
    young = present_verdict(checks, now_s)
    if young is not None or checks.checked is None:
        return young
    old = _present(checks.checked, checks.exposure, now_s)
    # What the check itself caught still holds: a new check of another size may not see it.
    catch = None if old.catch == "insiders_unknown" else old.catch
    return msgspec.structs.replace(old, level="unknown", catch=catch)


def _present(checked: CheckedLevel, exposure: TokenExposure, now_s: float) -> ShownVerdict:
    at = datetime.fromtimestamp(int(checked.at_s), UTC)
    catch: ShownCatch | None = checked.shown_catch()
    if catch is None and (checked.code, checked.level) == ("ok", "ok"):
        catch = exposure.catch(now_s)
    level = level_colour(checked.level, checked.code, catch)
    return ShownVerdict(checked.code, level, catch, at, checked.age_s(now_s))
