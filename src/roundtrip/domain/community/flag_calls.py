"""Flags on tokens: an account's prediction for a token, how it is proved, and the account's record.

Strangers decide a flag. What its own account, or wallets that may be the account's, do to the token proves
nothing, and neither do the deployer's trades. With each flag a control is stored: the same prediction for a
token drawn by chance. How often controls prove right is the base rate, which chance alone would have.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from roundtrip.domain.base.errors import IllegalMove

Kind = Literal["runs", "drains", "dead"]
KINDS: tuple[Kind, ...] = ("runs", "drains", "dead")
State = Literal["open", "seen", "proved", "failed", "void"]
Event = Literal["fits", "held", "fell", "proved", "late", "lost"]
"""``fits``: for runs, it pays three times as much. ``held``: it still does, long enough after. ``fell``: it
no longer does. ``proved``: for drains and dead, it came true. ``late``: its week is over. ``lost``: its week
is over, and near the end its state could not be read."""
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
"""By the chain's clock: later events prove nothing."""
MAX_OPEN, MAX_A_DAY = 10, 5
"""Open flags of an account, and flags that it makes in a day of UTC."""
RUNS_WEI = 3 * 10**17
"""A token runs when what 0.1 eth bought sells for this."""
DEAD_WEI = 10**16
"""A token is dead when what 0.1 eth bought sells for this or less: it is down 90 %."""
APART_S = 600
"""The least time between the two readings that prove a run: a momentary pump is not a run."""
SETTLED_S = 600
"""The age from which facts count: newer ones may be reorged out, or reversed."""
CROWD = 3
"""The fewest purses (``market/fairness.py``) that bought a token that runs: an account that pumps it alone
moves no other money."""
OWN_DIVISOR = 10
"""The account's own wallets may trade at most this part of what others did: more of it moved the price."""


def next_state(state: State, event: Event) -> State:
    """The state of a flag after the event. Raises IllegalMove."""
    new_state = LIFE.get((state, event))
    if new_state is None:
        raise IllegalMove(f"a flag that is {state} cannot be {event}")
    return new_state


@dataclass(frozen=True, slots=True)
class FlagWeek:
    """When a flag was made, by the chain's clock, when its time ends, and when its state was last read; None:
    never."""

    at_s: int
    ends_s: int
    answered_s: int | None = None

    def end(self, newest_s: int) -> Event | None:
        """The event that ends an unproved flag, as of ``newest_s``; None: it still waits. If the
        state could not be read in the flag's last day, the flag is void: nothing shows that it was wrong."""
        if newest_s <= self.ends_s + SETTLED_S:
            return None
        is_known = self.answered_s is not None and self.answered_s >= self.ends_s - DAY_S
        return "late" if is_known else "lost"

    def settled_s(self, newest_s: int) -> int:
        """The time up to which facts count, for an index that has reached ``newest_s``."""
        return min(newest_s - SETTLED_S, self.ends_s)


@dataclass(frozen=True, slots=True)
class FlagReading:
    """What the flag's tokens sold for in a block; 0 where they could not be sold."""

    block_number: int
    at_s: int
    pays_wei: int


@dataclass(frozen=True, slots=True)
class TradedSinceFlag:
    """Trades of a token since it was flagged: by the flag's own account and wallets that may be the
    account's, and by all others that count; ``purses``: how many of those bought, at most."""

    own_bought_wei: int = 0
    own_sold_wei: int = 0
    bought_wei: int = 0
    sold_wei: int = 0
    purses: int = 0

    def risen_by_others(self) -> bool:
        """Whether others paid for the rise."""
        return self.purses >= CROWD and self.own_bought_wei * OWN_DIVISOR <= self.bought_wei

    def fallen_by_others(self) -> bool:
        """Whether others sold."""
        return self.own_sold_wei * OWN_DIVISOR <= self.sold_wei


@dataclass(frozen=True, slots=True)
class FlaggedToken:
    """Liquidity and deployer of a token since it was flagged, without the account's own part.

    ``liquidity``, ``deployer_raw``: when it was flagged; None: there was none, or it is unknown. ``gone``,
    ``sold_raw``: the decrease since then, at two times: as of the settled facts, and now.
    """

    liquidity: int | None = None
    gone: tuple[int, int] = (0, 0)
    deployer_raw: int | None = None
    sold_raw: tuple[int, int] = (0, 0)


def run_event(state: State, seen_s: int | None, reading: FlagReading, ends_s: int) -> Event | None:
    """The event that a reading is for a flag of kind runs; ``seen_s``: when it first paid enough."""
    if reading.at_s > ends_s:
        return None
    fits = reading.pays_wei >= RUNS_WEI
    if state == "open" or seen_s is None:
        return "fits" if fits else None
    if not fits:
        return "fell"
    return "held" if reading.at_s - seen_s >= APART_S else None


def is_dead(reading: FlagReading) -> bool:
    """Whether it sells for ``DEAD_WEI`` or less. Another check tests that it had no trade for a day."""
    return reading.pays_wei <= DEAD_WEI


def quiet_since_s(week: FlagWeek, newest_s: int) -> int | None:
    """Since when a dead token must not have been traded; None: it was flagged less than a day ago, or the
    week is over. The day begins after the flag: earlier quiet proves nothing."""
    settled_s = newest_s - SETTLED_S
    if settled_s > week.ends_s or settled_s - week.at_s < DAY_S:
        return None
    return settled_s - DAY_S


def drain_cause(flagged: FlaggedToken) -> By | None:
    """What drained it: half of it gone, now and a while ago; None: it was not drained."""
    if flagged.liquidity is not None and 2 * min(flagged.gone) >= flagged.liquidity:
        return "liquidity"
    if flagged.deployer_raw is not None and 2 * min(flagged.sold_raw) >= flagged.deployer_raw:
        return "deployer"
    return None


# --- the account's record ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FlagScore:
    """Flags of an account that were proved, and all that were decided; and the same of their controls, or,
    where none of them is decided, of all accounts' controls of these kinds."""

    proved: int = 0
    decided: int = 0
    by_chance: int = 0
    drawn: int = 0

    @property
    def accuracy(self) -> float | None:
        """Proved divided by decided flags; None: none is decided."""
        return self.proved / self.decided if self.decided else None

    @property
    def base_rate(self) -> float | None:
        """The same of the controls; None: none is decided."""
        return self.by_chance / self.drawn if self.drawn else None

    @property
    def level(self) -> int:
        """1 + floor(log2(1 + proved)). It counts what proved right, including what was luck."""
        return (1 + self.proved).bit_length()

    @property
    def is_ahead(self) -> bool | None:
        """Whether it is right more often than chance, by a lead that luck alone gives for this number of
        flags in one case of six or fewer; None: the base rate is unknown."""
        if not self.drawn:
            return None
        chance = self.by_chance * self.decided // self.drawn
        lead = self.proved - chance
        return lead > 0 and lead * lead >= self.proved + chance
