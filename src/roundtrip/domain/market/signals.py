"""Unusual events of launches: one function a signal.

Each looks at what one wallet did to one token within an hour, summed up, and returns whether that is worth
showing; None: it cannot be decided, because its measure is unknown.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, Numeric

SUPPLY_BPS = 100
"""One percent of the supply: on a launch's curve such a sell moves the price by several percent, and few
outsiders ever hold as much."""
SOLD_WEI = 10**17
"""A tenth of an eth, the usual trade size here: an insider who takes out that much has begun to leave,
however small the share is by then."""
POOL_BPS = 1000
"""A tenth of a pool: without it prices move a tenth further with every trade. Below that, providers come and
go every minute."""
POOL_WEI = 10**18
"""Used where the share is unknown: a whole eth, about a quarter of what a launch's pool opens with."""
NARROW_TICKS = 40_000
"""Liquidity is weighted by the width of its range up to here, where a range holds nearly all the money of one
over every price: a narrow range has much liquidity for little money."""

PLACE_BPS = 1000
"""A pool with less than a tenth of a token's trades does not make its price: anyone can open such a pool,
deposit an eth and withdraw it, as often as they like."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Turnover:
    """What was traded in one place: the number of trades, and their value as far as it is known."""

    trades: int = 0
    wei: Numeric = 0


@dataclass(frozen=True, slots=True)
class SignalFacts:
    """What one wallet did to one token. Amounts are base units; None: unknown, or it does not apply.
    ``supply_raw``: the token's supply. ``eth_wei``: the proceeds. ``pool_bps``: the share of a pool's
    liquidity that was removed. ``launches``, ``graduated``: the wallet's own so far."""

    token_raw: int | None = None
    supply_raw: int | None = None
    eth_wei: int | None = None
    pool_bps: int | None = None
    launches: int = 0
    graduated: int = 0

    def supply_bps(self) -> int | None:
        """The share of the supply."""
        if self.token_raw is None or not self.supply_raw:
            return None
        return self.token_raw * BPS // self.supply_raw


def insider_sold(facts: SignalFacts, policy: Policy) -> bool | None:
    """The deployer, or a wallet it was first to pay, sold a large part of the token."""
    if facts.eth_wei is not None and facts.eth_wei >= SOLD_WEI:
        return True
    of_supply = _is_much(facts)
    return of_supply if of_supply is not None or facts.eth_wei is None else False


def insider_moved(facts: SignalFacts, policy: Policy) -> bool | None:
    """The deployer, or a wallet it was first to pay, sent a large part of the token to another wallet, which
    may sell it under its own name."""
    return _is_much(facts)


def liquidity_left(facts: SignalFacts, policy: Policy) -> bool | None:
    """A large part of a pool was removed, from a pool with something to remove."""
    if facts.eth_wei is not None and facts.eth_wei < policy.thin_quote_wei:
        return False
    if facts.pool_bps is not None:
        return facts.pool_bps >= POOL_BPS
    return None if facts.eth_wei is None else facts.eth_wei >= POOL_WEI


def serial_launcher(facts: SignalFacts, policy: Policy) -> bool | None:
    """A wallet with many launches, few of which became a pool, launched another token."""
    few = facts.graduated * policy.serial_graduated_divisor < facts.launches
    return facts.launches >= policy.serial_launches and few


def large_burn(facts: SignalFacts, policy: Policy) -> bool | None:
    """A large part of the token was sent where it is lost for good."""
    return _is_much(facts)


def is_traded_in(place: Turnover, everywhere: Iterable[Turnover]) -> bool:
    """Whether a large part of a token's trades is made in one of its places, by their value; by their number
    where no value is known."""
    places = list(everywhere)
    part, whole = place.wei, sum(other.wei for other in places)
    if not whole:
        part, whole = place.trades, sum(other.trades for other in places)
    return whole > 0 and part * BPS >= PLACE_BPS * whole


def interleave(kinds: Iterable[Sequence[T]], limit: int) -> list[T]:
    """The first ``limit`` items, taken in turn from each kind, its largest first, so that many items of one
    kind leave room for the others."""
    rows = itertools.zip_longest(*kinds)
    return [item for row in rows for item in row if item is not None][:limit]


def size(facts: SignalFacts) -> tuple[int, int]:
    """The sort key of signals of one kind: eth, then the share or the number that is shown."""
    share = facts.pool_bps if facts.pool_bps is not None else facts.supply_bps()
    return facts.eth_wei or 0, (share or 0) + facts.launches


def _is_much(facts: SignalFacts) -> bool | None:
    share = facts.supply_bps()
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
