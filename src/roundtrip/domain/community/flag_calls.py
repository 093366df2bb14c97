"""Flags on tokens: what an account says will become of one, how that is proved, and what it says of the
account.

A flag is decided by what strangers do. What its own account does to the token, or wallets that may be its
own, proves nothing, and neither does what the token's deployer trades. With each flag the same is said of a
token drawn by chance, for nobody: how often that proves right is the base rate, which chance alone would
have.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from roundtrip.domain.base.types import BPS

Kind = Literal["runs", "drains", "dead"]
KINDS: tuple[Kind, ...] = ("runs", "drains", "dead")
State = Literal["open", "seen", "proved", "failed", "void"]
Event = Literal["fits", "held", "fell", "proved", "late", "lost"]
"""``fits``: of runs, it pays three times as much. ``held``: it still does, long enough after. ``fell``: it
does no more. ``proved``: of drains and dead, it is so. ``late``: its week is over. ``lost``: it is over, and
near its end nobody could find out."""
By = Literal["price", "liquidity", "deployer"]

LIFE: MappingProxyType[tuple[State, Event], State] = MappingProxyType(
    {
        ("open", "fits"): "seen",
        ("open", "proved"): "proved",
        ("open", "late"): "failed",
        ("open", "lost"): "void",
        ("seen", "held"): "proved",
        ("seen", "fell"): "open",
        ("seen", "late"): "failed",
        ("seen", "lost"): "void",
    }
)

DAY_S = 86_400
WEEK_S = 7 * DAY_S
"""By the chain's clock: what comes later proves nothing."""
MOST_OPEN, MOST_A_DAY = 10, 5
"""Flags of an account that wait, and that it makes in a day of UTC."""
RUNS_WEI = 3 * 10**17
"""What 0.1 eth bought pays that much."""
DEAD_WEI = 10**16
"""It pays no more: it is down 90 %."""
APART_S = 600
"""Between the two readings by which a token runs: a pump of a moment is none."""
SETTLED_S = 600
"""Facts count that are so old: newer ones may be taken away by a reorganisation, or taken back."""
CROWD = 3
"""So many purses have bought a token that runs: one that pumps it alone moves nobody else's money."""
OWN_DIVISOR = 10
"""What the account's own wallets traded is at most that part of what others did: more of it moved the
price."""


class IllegalFlagMove(Exception):
    """Nothing of the kind can happen to a flag as it stands; nothing was changed."""


def after(state: State, event: Event) -> State:
    """What a flag is then. Raises Illegal."""
    found = LIFE.get((state, event))
    if found is None:
        raise IllegalFlagMove(f"a flag that is {state} cannot be {event}")
    return found


@dataclass(frozen=True, slots=True)
class FlagWeek:
    """When a flag was made, by the chain's clock, when its time is over, and when it could last be found out
    how it stands; None: never."""

    at_s: int
    ends_s: int
    answered_s: int | None = None

    def end(self, newest_s: int) -> Event | None:
        """What becomes of a flag that nothing proved up to ``newest_s``; None: it still waits. Where nobody
        could find out in its last day it was not shown to be wrong."""
        if newest_s <= self.ends_s + SETTLED_S:
            return None
        known = self.answered_s is not None and self.answered_s >= self.ends_s - DAY_S
        return "late" if known else "lost"

    def settled_s(self, newest_s: int) -> int:
        """Up to when facts prove something, of an index that stands at ``newest_s``."""
        return min(newest_s - SETTLED_S, self.ends_s)


@dataclass(frozen=True, slots=True)
class FlagReading:
    """What a sell of the flag's tokens paid in a block; 0 where they could not be sold."""

    block_number: int
    at_s: int
    pays_wei: int


@dataclass(frozen=True, slots=True)
class TradedSinceFlag:
    """What was traded of a token since it was flagged: by the flag's own account and whoever may be the same,
    and by everybody else who counts; ``purses``: how many of those bought, at most."""

    own_bought_wei: int = 0
    own_sold_wei: int = 0
    bought_wei: int = 0
    sold_wei: int = 0
    purses: int = 0

    def risen_by_others(self) -> bool:
        """Whether others paid for what it is worth now."""
        return self.purses >= CROWD and self.own_bought_wei * OWN_DIVISOR <= self.bought_wei

    def fallen_by_others(self) -> bool:
        """Whether it was others who sold."""
        return self.own_sold_wei * OWN_DIVISOR <= self.sold_wei


@dataclass(frozen=True, slots=True)
class FlaggedToken:
    """Liquidity and deployer of a token since it was flagged, the account's own part left out.

    ``liquidity``, ``deployer_raw``: as it was flagged; None: there was none, or nobody knows.
    ``gone``, ``sold_raw``: less than then by so much, each at two times: as of what is settled, and now."""

    liquidity: int | None = None
    gone: tuple[int, int] = (0, 0)
    deployer_raw: int | None = None
    sold_raw: tuple[int, int] = (0, 0)


def runs(state: State, seen_s: int | None, now: FlagReading, ends_s: int) -> Event | None:
    """What a reading is to a flag that it runs; ``seen_s``: when it first paid enough."""
    if now.at_s > ends_s:
        return None
    fits = now.pays_wei >= RUNS_WEI
    if state == "open" or seen_s is None:
        return "fits" if fits else None
    if not fits:
        return "fell"
    return "held" if now.at_s - seen_s >= APART_S else None


def is_dead(now: FlagReading) -> bool:
    """Whether it pays so little. That nobody traded it for a day is told elsewhere."""
    return now.pays_wei <= DEAD_WEI


def quiet_since_s(week: FlagWeek, newest_s: int) -> int | None:
    """Since when nobody may have traded a token that is dead; None: it was flagged less than a day ago, or
    the week is over. A whole day after the flag: what was quiet before it is no news."""
    settled_s = newest_s - SETTLED_S
    if settled_s > week.ends_s or settled_s - week.at_s < DAY_S:
        return None
    return settled_s - DAY_S


def drains(left: FlaggedToken) -> By | None:
    """By what it drains: half of it gone, now and a while ago."""
    if left.liquidity is not None and 2 * min(left.gone) >= left.liquidity:
        return "liquidity"
    if left.deployer_raw is not None and 2 * min(left.sold_raw) >= left.deployer_raw:
        return "deployer"
    return None


# --- what it says of the account ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FlagScore:
    """Flags of an account that were proved, and all that were decided; and the same of what was drawn with
    them, or where nothing of that is decided of everybody's controls of these kinds."""

    proved: int = 0
    decided: int = 0
    by_chance: int = 0
    drawn: int = 0

    @property
    def accuracy(self) -> float | None:
        """proved / decided; None: nothing is decided."""
        return self.proved / self.decided if self.decided else None

    @property
    def base_rate(self) -> float | None:
        """The same of what was drawn by chance; None: nothing of that is decided."""
        return self.by_chance / self.drawn if self.drawn else None

    @property
    def level(self) -> int:
        """1 + floor(log2(1 + proved)). It counts how much was right, and not how much of it was luck."""
        return (1 + self.proved).bit_length()

    @property
    def is_ahead(self) -> bool | None:
        """Whether it is right more often than chance, by more than luck alone makes of so many flags, one
        time in six or less often; None: what chance makes is not known."""
        if not self.drawn:
            return None
        chance = self.by_chance * self.decided // self.drawn
        lead = self.proved - chance
        return lead > 0 and lead * lead >= self.proved + chance


def gone_bps(gone: int, whole: int) -> int:
    """What left, in hundredths of a percent, all of it at most."""
    return min(BPS, gone * BPS // whole)
