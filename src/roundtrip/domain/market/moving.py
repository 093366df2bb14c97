"""The board of moving tokens: what it shows, what it holds back, and what to check for it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from roundtrip.domain.base import clock_age
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import LAUNCHPAD_KINDS, VenueKind

from .exposure import NEVER_READ, TokenExposure
from .fairness import WalletOrigins

WINDOW_S = 600
"""Ten minutes of the chain's time."""
ROWS = 20
CROWD = 3
"""The fewest purses: one actor with twenty wallets is no crowd."""
SHARED_PURSE = 10
"""Of wallets that may all belong to one person, young ones of an exchange or without a known payer, this many
count as one person. New users have young wallets, paid by exchanges and bridges, and on a new index every
wallet is young: without them the board would be empty. A false crowd then costs thirty paid wallets, and is
noise: every shown token can be sold to the launchpad's contracts, or was sold in a check."""
MAX_OF_A_SORT = 30
"""Tokens that are examined closely, each of those shown without a proof, with one, and held back: a flood of
one sort does not push out another."""
PROVEN_FOR_S = 3600
"""How long a sell that went through counts: an owner or a hook can switch selling off later."""
CHECKED_EVERY_S = 600
"""The board does not check a token again within this time, whatever the result was."""
MAX_CHECKED = 30
"""Tokens to check, those with most money: more than the board has rows."""

SELLS = frozenset({"ok", "toll_pool", "thin_pool", "high_fees", "heavy_fees"})
"""Verdict codes that include a simulated sell that went through."""
TRAP = "cannot_sell"
LEVELS = ("ok", "warn", "unknown", "danger")
"""Each worse than those before it."""
CAUGHT_FOR_S = 86_400
"""How long a trap found by a deep check outweighs any number of plain checks, which try no holder."""


@dataclass(frozen=True, slots=True)
class CheckedLevel:
    """The newest check of a token. ``at_s``: when by our clock, in seconds since 1970. ``loss_bps``: of the
    round trip; None: not measured. ``ends_s``: from when on it no longer counts, since the snipe tax in it
    has ended; None: no end is known."""

    code: str
    level: str
    at_s: float
    loss_bps: int | None = None
    ends_s: float | None = None

    def age_s(self, now_s: float) -> int | None:
        """Whole seconds; None: the clock was set back since, so the age is unknown."""
        return clock_age.age_s(self.at_s, now_s)

    def is_within(self, seconds: int, now_s: float) -> bool:
        """Whether the check is no older than ``seconds`` and has not ended; False for an unknown age."""
        age_s = self.age_s(now_s)
        has_ended = self.ends_s is not None and self.ends_s <= now_s
        return age_s is not None and age_s <= seconds and not has_ended


@dataclass(frozen=True, slots=True)
class TokenChecks:
    """The newest checks of a token; None: there is none. ``decided``: the newest conclusive deep one.
    ``deep``: the newest deep one, whatever its result. ``exposure``: what its buyers are exposed to."""

    checked: CheckedLevel | None
    decided: CheckedLevel | None
    deep: CheckedLevel | None = None
    exposure: TokenExposure = NEVER_READ

    def fresh(self, now_s: float) -> CheckedLevel | None:
        """The newest check, if it is young enough to count."""
        checked = self.checked
        return checked if checked is not None and checked.is_within(PROVEN_FOR_S, now_s) else None

    def find_trap(self, now_s: float) -> CheckedLevel | None:
        """The check that found a trap and still counts."""
        decided, checked = self.decided, self.checked
        if decided is not None and decided.code == TRAP and (decided.age_s(now_s) or 0) <= CAUGHT_FOR_S:
            return decided
        return checked if checked is not None and checked.code == TRAP else None

    def to_show(self, now_s: float) -> CheckedLevel | None:
        """The check that people are shown: what caught it, else the newest; or the conclusive deep one of
        the last day that found worse, which no plain check refutes. None: there is none young enough."""
        fresh, decided = self.fresh(now_s), self.decided
        if (caught := self.find_trap(now_s)) is not None:
            return caught
        if fresh is None or decided is None or not decided.is_within(CAUGHT_FOR_S, now_s):
            return fresh
        return decided if LEVELS.index(decided.level) > LEVELS.index(fresh.level) else fresh


@dataclass(frozen=True, slots=True)
class MoneyFlow:
    """Money into and out of a token in the window, by the trades with a known value in eth.

    ``launched_s``: when the launchpad launched it on a curve; None: it did not. ``opened_s``: when the oldest
    of the places where it was traded opened. ``venue``: the kind where most of the money went in.
    ``in_micro_usd``: None where it is unknown of any buy. ``buyers``: interned addresses of the wallets that
    bought. ``checked``: the newest check; None: there is none. ``deep``: the newest deep one, whatever its
    result; ``decided``: the newest conclusive deep one. ``pool_id``: the place where most of the money went
    in. ``makers``: different wallets that bought or sold.
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
    pool_id: int = 0
    makers: int = 0

    def net_wei(self) -> int:
        """Money in less money out."""
        return self.in_wei - self.out_wei

    def is_launchpads(self) -> bool:
        """Whether it is sold to the launchpad's own contracts, which take it back: no sell has to be proven
        then. A launchpad's token in a stranger's pool is like any other."""
        return self.launched_s is not None and self.venue in LAUNCHPAD_KINDS

    @property
    def checks(self) -> TokenChecks:
        """The checks that decide where it stands."""
        return TokenChecks(self.checked, self.decided, self.deep)

    def fresh(self, now_s: float) -> CheckedLevel | None:
        """The newest check, if it is young enough to count."""
        return self.checks.fresh(now_s)


Standing = Literal["shown", "unproven", "trap"]


def standing(flow: MoneyFlow, now_s: float) -> Standing:
    """Whether a token may be shown. A token that could not be sold is held back until a check says otherwise,
    however old that check is, and whoever launched the token. A trap found by a deep check is held back for a
    day, until a deep check says otherwise."""
    if flow.checks.find_trap(now_s) is not None:
        return "trap"
    if flow.is_launchpads():
        return "shown"
    fresh = flow.fresh(now_s)
    return "shown" if fresh is not None and fresh.code in SELLS else "unproven"


def rank_flows(flows: Iterable[MoneyFlow]) -> list[MoneyFlow]:
    """Most money first."""
    return sorted(flows, key=lambda flow: (-flow.net_wei(), flow.token))


def flows_to_count(flows: Iterable[MoneyFlow], now_s: float, most: int = MAX_OF_A_SORT) -> list[MoneyFlow]:
    """The flows for which buyers' purses are counted: those with the most money of each sort, ``most`` of
    it."""
    counts: dict[tuple[Standing, bool], int] = {}
    counted = []
    for flow in rank_flows(flows):
        sort = standing(flow, now_s), flow.is_launchpads()
        counts[sort] = counts.get(sort, 0) + 1
        if counts[sort] <= most:
            counted.append(flow)
    return counted


@dataclass(frozen=True, slots=True)
class MovingBoard:
    """``rows``: most money first. ``unproven``, ``traps``: how many tokens between them are held back."""

    rows: tuple[MoneyFlow, ...]
    unproven: int
    traps: int


def board(flows: Iterable[MoneyFlow], wallets: WalletOrigins[int], from_s: int, now_s: float) -> MovingBoard:
    """The board. ``wallets``: what is known of the buyers. ``from_s``: when the window began, by the chain's
    clock; ``now_s`` is by ours."""
    rows: list[MoneyFlow] = []
    held_back: dict[Standing, int] = {}
    for flow in rank_flows(flows):
        if len(rows) == ROWS:
            break
        if crowd(flow.buyers, wallets, from_s) < CROWD:
            continue
        state = standing(flow, now_s)
        if state == "shown":
            rows.append(flow)
        else:
            held_back[state] = held_back.get(state, 0) + 1
    return MovingBoard(tuple(rows), held_back.get("unproven", 0), held_back.get("trap", 0))


MovingGroup = Literal["listed", "danger", "checking"]
"""Where people see a token: proven to sell, found to be dangerous, or not proven yet."""
MAX_OF_A_GROUP: Mapping[MovingGroup, int] = MappingProxyType({"listed": 80, "danger": 10, "checking": 10})


def group(flow: MoneyFlow, now_s: float) -> MovingGroup:
    """The group of a token. Whoever launched it, it is listed only if a check sold it."""
    shown = flow.checks.to_show(now_s)
    if shown is None:
        return "checking"
    if shown.code == TRAP or shown.level == "danger":
        return "danger"
    return "listed" if shown.level != "unknown" and shown.code in SELLS else "checking"


def group_flows(
    flows: Iterable[MoneyFlow], wallets: WalletOrigins[int], from_s: int, now_s: float
) -> list[tuple[MovingGroup, MoneyFlow]]:
    """The flows with a crowd and their groups, most money first; of each group so many as a page shows."""
    counts: Counter[MovingGroup] = Counter()
    rows = []
    for flow in rank_flows(flows):
        its_group = group(flow, now_s)
        if counts[its_group] < MAX_OF_A_GROUP[its_group] and crowd(flow.buyers, wallets, from_s) >= CROWD:
            counts[its_group] += 1
            rows.append((its_group, flow))
    return rows


def crowd(buyers: Iterable[int], wallets: WalletOrigins[int], from_s: int) -> int:
    """How many people the buyers of a window that began at ``from_s`` count as: one per purse, and of a
    shared purse one for every ten buyers, at least one.

    A wallet is old if it existed a day before the window, not before the token: otherwise no wallet of the
    last year would count for a token a year old. An attacker who prepares wallets waits a day either way.
    """
    purses = Counter(wallets.purse(buyer, from_s) for buyer in buyers)
    return sum(
        max(1, count // SHARED_PURSE) if wallets.is_shared(purse) else 1 for purse, count in purses.items()
    )


def flows_to_check(flows: Iterable[MoneyFlow], now_s: float) -> list[MoneyFlow]:
    """The flows that need a check to be shown, or are held back, and had no deep check lately; plain checks,
    which any caller can request, do not prevent one. A token on the launchpad's contracts needs one where
    no young check says whether it sells. Those come after the others, since many can be launched at little
    cost, and known traps last."""
    due = [
        flow
        for flow in rank_flows(flows)
        if (flow.deep is None or not flow.deep.is_within(CHECKED_EVERY_S - 1, now_s))
        and not (_needs_no_proof(flow, now_s) and group(flow, now_s) != "checking")
    ]
    return sorted(due, key=lambda flow: (standing(flow, now_s) == "trap", _needs_no_proof(flow, now_s)))


def _needs_no_proof(flow: MoneyFlow, now_s: float) -> bool:
    return flow.is_launchpads() and standing(flow, now_s) == "shown"


def flows_with_crowd(flows: Iterable[MoneyFlow], wallets: WalletOrigins[int], from_s: int) -> list[MoneyFlow]:
    """The flows with a crowd, in the order given."""
    return [flow for flow in flows if crowd(flow.buyers, wallets, from_s) >= CROWD]
