"""How old something is by our clock, which may have been put back since. Pure."""

AHEAD_S = 60
"""So far the clocks of several machines differ at most. What seems to come from later was written by a clock
that was wrong, then or now: how old it is nobody knows."""


def age_s(at_s: float, now_s: float) -> int | None:
    """Whole seconds since ``at_s``, 0 where clocks differ a little; None: nobody knows. Both since 1970."""
    return max(0, int(now_s - at_s)) if at_s <= now_s + AHEAD_S else None
