"""What the board of what moves shows, what it holds back, and what is to be checked for it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base import clock_age
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import LAUNCHPAD_KINDS, VenueKind

from .fairness import WalletOrigins

WINDOW_S = 600
"""Ten minutes of the chain's time."""
ROWS = 20
CROWD = 3
"""So many purses: one actor with twenty wallets is no crowd."""
SHARED_PURSE = 10
"""Of wallets that may all be one's, young ones of an exchange or of nobody who is known, so many count as
one. New people come young, out of exchanges and bridges, and on a new index everybody is young: with none of
them counted the board would be empty. A false crowd costs thirty paid wallets then, and is noise: whatever is
listed can be sold to the launchpad's contracts, or was in a check."""
MOST_OF_A_SORT = 30
"""Of what is shown without a proof, with one, and held back, so many each are looked at closely: a flood of
one sort does not push out another."""
PROVEN_FOR_S = 3600
"""An owner or a hook can switch selling off later: so long a sell that went through counts."""
CHECKED_EVERY_S = 600
"""What was checked less long ago is not checked again for the board, whatever came of it."""
MOST_CHECKED = 30
"""Of what is to be checked those with most money: more than the board has rows."""

SELLS = frozenset({"ok", "toll_pool", "thin_pool", "high_fees", "heavy_fees"})
"""Codes of verdicts that a simulated sell went through for."""
TRAP = "cannot_sell"
CAUGHT_FOR_S = 86_400
"""So long what a deep check caught counts against any number of plain ones, which ask no holder."""


@dataclass(frozen=True, slots=True)
class CheckedLevel:
    """The newest check of a token. ``at_s``: when by our clock, in seconds since 1970."""

    code: str
    level: str
    at_s: float

    def age_s(self, now_s: float) -> int | None:
        """Whole seconds; None: our clock was put back since, and nobody knows."""
        return clock_age.age_s(self.at_s, now_s)

    def is_within(self, seconds: int, now_s: float) -> bool:
        """Whether it is no older than that; not where nobody knows."""
        age_s = self.age_s(now_s)
        return age_s is not None and age_s <= seconds


@dataclass(frozen=True, slots=True)
class MoneyFlow:
    """Money that went into a token and out of it in the window, by the trades whose worth in eth is known.

    ``launched_s``: when the launchpad launched it on a curve; None: it did not. ``opened_s``: when the oldest
    of the places opened where it was traded. ``venue``: the kind where most of the money went in.
    ``in_micro_usd``: None where it is not known of every buy. ``buyers``: interned addresses of
    the wallets that bought. ``checked``: the newest check; None: nobody ever did. ``deep``: the newest deep
    one, whatever came of it; ``decided``: the newest deep one that could tell.
    """

    token_id: int
    token: Address
    launched_s: int | None
    opened_s: int
    venue: VenueKind
    in_wei: int
    out_wei: int
    in_micro_usd: int | None
    buys: int
    sells: int
    buyers: tuple[int, ...]
    sellers: int
    checked: CheckedLevel | None
    deep: CheckedLevel | None = None
    decided: CheckedLevel | None = None

    def net_wei(self) -> int:
        """What came in and stayed."""
        return self.in_wei - self.out_wei

    def is_launchpads(self) -> bool:
        """Whether it is sold to the launchpad's own contracts, which take it back: then no sell has to be
        proven. A token of the launchpad in somebody else's pool is as any other."""
        return self.launched_s is not None and self.venue in LAUNCHPAD_KINDS

    def fresh(self, now_s: float) -> CheckedLevel | None:
        """The check that is young enough to say something."""
        checked = self.checked
        return checked if checked is not None and checked.is_within(PROVEN_FOR_S, now_s) else None


Standing = Literal["shown", "unproven", "trap"]


def standing(flow: MoneyFlow, now_s: float) -> Standing:
    """Whether a token may be shown. What could not be sold is held back until a check says otherwise,
    however old that is, and whoever launched it; what a deep check caught, for a day, until a deep one says
    otherwise."""
    decided = flow.decided
    caught = decided is not None and decided.code == TRAP and (decided.age_s(now_s) or 0) <= CAUGHT_FOR_S
    if caught or (flow.checked is not None and flow.checked.code == TRAP):
        return "trap"
    if flow.is_launchpads():
        return "shown"
    fresh = flow.fresh(now_s)
    return "shown" if fresh is not None and fresh.code in SELLS else "unproven"


def rank_flows(flows: Iterable[MoneyFlow]) -> list[MoneyFlow]:
    """Most money first."""
    return sorted(flows, key=lambda flow: (-flow.net_wei(), flow.token))


def flows_to_count(flows: Iterable[MoneyFlow], now_s: float) -> list[MoneyFlow]:
    """Those whose buyers' purses are counted: of each sort the ones with most money."""
    taken: dict[tuple[Standing, bool], int] = {}
    found = []
    for flow in rank_flows(flows):
        sort = standing(flow, now_s), flow.is_launchpads()
        taken[sort] = taken.get(sort, 0) + 1
        if taken[sort] <= MOST_OF_A_SORT:
            found.append(flow)
    return found


@dataclass(frozen=True, slots=True)
class MovingBoard:
    """``rows``: most money first. ``unproven``, ``traps``: how many would stand between them."""

    rows: tuple[MoneyFlow, ...]
    unproven: int
    traps: int


def board(flows: Iterable[MoneyFlow], wallets: WalletOrigins[int], from_s: int, now_s: float) -> MovingBoard:
    """The board. ``wallets``: what is known of the buyers. ``from_s``: when the window began, by the chain's
    clock; ``now_s`` is ours."""
    rows: list[MoneyFlow] = []
    held: dict[Standing, int] = {}
    for flow in rank_flows(flows):
        if len(rows) == ROWS:
            break
        if crowd(flow.buyers, wallets, from_s) < CROWD:
            continue
        stands = standing(flow, now_s)
        if stands == "shown":
            rows.append(flow)
        else:
            held[stands] = held.get(stands, 0) + 1
    return MovingBoard(tuple(rows), held.get("unproven", 0), held.get("trap", 0))


def crowd(buyers: Iterable[int], wallets: WalletOrigins[int], from_s: int) -> int:
    """As how many people the buyers of a window that began at ``from_s`` count: one a purse, and of a purse
    that many share one for every ten, at least one.

    Old is who was there a day before the window, not before the token: else nobody who came within a year
    would count for a token of a year. Who prepares wallets waits a day either way."""
    purses = Counter(wallets.purse(buyer, from_s) for buyer in buyers)
    return sum(
        max(1, count // SHARED_PURSE) if wallets.is_shared(purse) else 1 for purse, count in purses.items()
    )


def to_check(flows: Iterable[MoneyFlow], now_s: float) -> list[MoneyFlow]:
    """Those that are shown by a check, or held back, and were not checked deeply of late: who asks for plain
    checks keeps nobody from that. Known traps come last: many of them must not keep others from being
    checked."""
    wanted = [
        flow
        for flow in rank_flows(flows)
        if (flow.deep is None or not flow.deep.is_within(CHECKED_EVERY_S - 1, now_s))
        and not (flow.is_launchpads() and standing(flow, now_s) == "shown")
    ]
    return sorted(wanted, key=lambda flow: standing(flow, now_s) == "trap")


def flows_with_crowd(flows: Iterable[MoneyFlow], wallets: WalletOrigins[int], from_s: int) -> list[MoneyFlow]:
    """Those with a crowd, in the order given."""
    return [flow for flow in flows if crowd(flow.buyers, wallets, from_s) >= CROWD]
