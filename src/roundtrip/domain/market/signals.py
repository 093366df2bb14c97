"""Odd things that happen to launches: one function a signal.

Each looks at what one wallet did to one token within an hour, summed up, and says whether that is worth
telling; None: it cannot be told, since what it would be measured by is not known.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS

SUPPLY_BPS = 100
"""One percent of all there is: on a launch's curve a sell of that moves the price by several percent, and
few outsiders ever hold as much."""
SOLD_WEI = 10**17
"""A tenth of an eth, the trade that everything here is judged by: an insider who takes out that much has
begun to leave, however small the share is by then."""
POOL_BPS = 1000
"""A tenth of a pool: without it prices move a tenth further with every trade. Below that, providers come and
go every minute."""
POOL_WEI = 10**18
"""Where the share is not known: a whole eth, about a quarter of what a launch's pool opens with."""
NARROW_TICKS = 40_000
"""Liquidity counts by how wide its range is, up to here, where a range holds nearly all the money that one
over every price would: a narrow range has much liquidity for little money."""

PLACE_BPS = 1000
"""A pool in which less than a tenth of a token's trades happen is not where its price is made: anybody opens
one beside it, puts an eth in and takes it out, as often as he likes."""

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Turnover:
    """What was traded in one place: so many trades, worth so much as far as that is known."""

    trades: int = 0
    wei: int = 0


@dataclass(frozen=True, slots=True)
class SignalFacts:
    """What one wallet did to one token. Amounts are base units, and what does not apply or is not known is
    None. ``supply_raw``: of all tokens there are. ``eth_wei``: what it brought. ``pool_bps``: of a pool's
    liquidity, what was taken. ``launches``, ``graduated``: the wallet's own so far."""

    token_raw: int | None = None
    supply_raw: int | None = None
    eth_wei: int | None = None
    pool_bps: int | None = None
    launches: int = 0
    graduated: int = 0

    def supply_bps(self) -> int | None:
        """The share of all there is."""
        if self.token_raw is None or not self.supply_raw:
            return None
        return self.token_raw * BPS // self.supply_raw


def insider_sold(seen: SignalFacts, policy: Policy) -> bool | None:
    """The deployer, or somebody it was first to pay, sold a good deal of the token."""
    if seen.eth_wei is not None and seen.eth_wei >= SOLD_WEI:
        return True
    of_supply = _is_much(seen)
    return of_supply if of_supply is not None or seen.eth_wei is None else False


def insider_moved(seen: SignalFacts, policy: Policy) -> bool | None:
    """One of them gave a good deal of it to somebody who may sell it under another name."""
    return _is_much(seen)


def liquidity_left(seen: SignalFacts, policy: Policy) -> bool | None:
    """A good part of a pool was taken away, in a pool where there was something to take."""
    if seen.eth_wei is not None and seen.eth_wei < policy.thin_quote_wei:
        return False
    if seen.pool_bps is not None:
        return seen.pool_bps >= POOL_BPS
    return None if seen.eth_wei is None else seen.eth_wei >= POOL_WEI


def serial_launcher(seen: SignalFacts, policy: Policy) -> bool | None:
    """Somebody launched once more of whose many launches few became a pool."""
    few = seen.graduated * policy.serial_graduated_divisor < seen.launches
    return seen.launches >= policy.serial_launches and few


def large_burn(seen: SignalFacts, policy: Policy) -> bool | None:
    """A good deal of the token was sent where nobody can have it again."""
    return _is_much(seen)


def is_traded_in(own: Turnover, everywhere: Iterable[Turnover]) -> bool:
    """Whether a good part of a token's trades is made in one of its places, by their worth; by their number
    where of none the worth is known."""
    places = list(everywhere)
    part, whole = own.wei, sum(place.wei for place in places)
    if not whole:
        part, whole = own.trades, sum(place.trades for place in places)
    return whole > 0 and part * BPS >= PLACE_BPS * whole


def foremost(found: Iterable[Sequence[Found]], most: int) -> list[Found]:
    """So many of them, taken in turn from each kind, whose largest stand first: many of one kind leave room
    for the others."""
    rows = itertools.zip_longest(*found)
    return [one for row in rows for one in row if one is not None][:most]


def size(seen: SignalFacts) -> tuple[int, int]:
    """By which signals of one kind are put in order: eth, then the share or the number that is told."""
    share = seen.pool_bps if seen.pool_bps is not None else seen.supply_bps()
    return seen.eth_wei or 0, (share or 0) + seen.launches


def _is_much(seen: SignalFacts) -> bool | None:
    share = seen.supply_bps()
    return None if share is None else share >= SUPPLY_BPS


SIGNALS: MappingProxyType[str, Callable[[SignalFacts, Policy], bool | None]] = MappingProxyType(
    {
        "insider_sold": insider_sold,
        "insider_moved": insider_moved,
        "liquidity_left": liquidity_left,
        "serial_launcher": serial_launcher,
        "large_burn": large_burn,
    }
)
"""Every signal."""
