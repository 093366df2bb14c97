"""What a token's buyers are exposed to: what insiders hold, and what liquidity can leave."""

from dataclasses import dataclass

from roundtrip.domain.base import clock_age

INSIDERS_MINDED_BPS, INSIDERS_HIGH_BPS = 500, 2000
"""The share of the supply, held by insiders, from which this is a warning, and from which it is bad."""
EXPOSED_FOR_S = 900
"""How long a reading counts: wallets trade and liquidity moves."""
READ_EVERY_S = 300
"""A board has its tokens read again after this time."""


@dataclass(frozen=True, slots=True)
class LeavingLiquidity:
    """Shares of a token's liquidity, or of the money in it where that is more, in hundredths of a percent.
    ``free_bps``: somebody can withdraw it now. ``unproven_bps``: it is in contracts that are not known, or
    nobody knows who can withdraw it."""

    free_bps: int
    unproven_bps: int


@dataclass(frozen=True, slots=True)
class TokenExposure:
    """The last reading. ``insiders_bps``: their share of the supply; None: could not be found out. The times
    are by our clock, in seconds since 1970; None: never read."""

    insiders_bps: int | None = None
    insiders_at_s: float | None = None
    leaving: LeavingLiquidity | None = None
    liquidity_at_s: float | None = None

    def insiders(self, now_s: float) -> int | None:
        """Their share, if it was read lately; None: not known."""
        return self.insiders_bps if _is_young(self.insiders_at_s, now_s, EXPOSED_FOR_S) else None

    def liquidity(self, now_s: float) -> LeavingLiquidity | None:
        """What can leave, if it was read lately; None: not known."""
        return self.leaving if _is_young(self.liquidity_at_s, now_s, EXPOSED_FOR_S) else None

    def is_due(self, now_s: float) -> bool:
        """Whether to read it again."""
        is_read = (_is_young(at_s, now_s, READ_EVERY_S) for at_s in (self.insiders_at_s, self.liquidity_at_s))
        return not all(is_read)


NEVER_READ = TokenExposure()


def _is_young(at_s: float | None, now_s: float, within_s: int) -> bool:
    """False for a time that is ahead of our clock."""
    age_s = None if at_s is None else clock_age.age_s(at_s, now_s)
    return age_s is not None and age_s <= within_s
