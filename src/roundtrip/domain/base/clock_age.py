"""Ages by this machine's clock, which may have been set back in the meantime. Pure."""

AHEAD_S = 60
"""The largest difference expected between the clocks of several machines. A time further ahead was written by
a clock that was wrong, then or now: its age is unknown."""


def age_s(at_s: float, now_s: float) -> int | None:
    """Whole seconds since ``at_s``, 0 where clocks differ a little; None: unknown. Both are seconds since
    1970."""
    return max(0, int(now_s - at_s)) if at_s <= now_s + AHEAD_S else None
