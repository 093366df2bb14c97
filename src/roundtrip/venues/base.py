"""What every venue file offers, and the words its plans are made of."""

from dataclasses import dataclass, fields
from typing import Protocol

from roundtrip.domain.evidence import PoolFacts, Venue, VenueKind
from roundtrip.domain.types import Address


@dataclass(frozen=True, slots=True)
class Contracts:
    """The addresses of one network that plans are made against."""

    weth: Address
    usdg: Address
    multicall3: Address
    permit2: Address
    v3_factory: Address
    v3_position_manager: Address
    swap_router02: Address
    quoter_v2: Address
    v4_pool_manager: Address
    v4_position_manager: Address
    v4_state_view: Address
    v4_quoter: Address
    universal_router: Address
    eth_usd_feed: Address | None = None

    def known(self) -> frozenset[Address]:
        """Every address of the network's own machinery."""
        return frozenset(getattr(self, f.name) for f in fields(self)) - {None}


@dataclass(frozen=True, slots=True)
class Call:
    """One call a wallet makes. ``data`` is ``0x`` hex; ``value_wei`` goes along with it."""

    to: Address
    data: str
    value_wei: int = 0


class VenueFile(Protocol):
    """The shape of a module in this package. All of it is pure."""

    KIND: VenueKind

    def candidates(self, token: Address, contracts: Contracts) -> tuple[Venue, ...]:
        """The standard places of this kind where ``token`` may trade, when no index knows better."""
        ...

    def fact_calls(self, venue: Venue, contracts: Contracts) -> tuple[Call, ...]:
        """What to ask about the venue's state, in the order ``read_facts`` takes the answers."""
        ...

    def read_facts(self, venue: Venue, token: Address, answers: tuple[bytes | None, ...]) -> PoolFacts:
        """The state from the answers; None where a call reverted."""
        ...

    def plan_sweep(self, contracts: Contracts, to: Address) -> Call:
        """Takes what eth and weth lies in the router out of the way: a trade that takes out what is left
        of it would count a stranger's dust as its own."""
        ...

    def plan_buy(
        self, venue: Venue, token: Address, contracts: Contracts, amount_raw: int
    ) -> tuple[Call, ...]:
        """The wallet's calls that spend ``amount_raw`` of the quote; the last one is the buy."""
        ...

    def plan_sell(
        self,
        venue: Venue,
        token: Address,
        contracts: Contracts,
        amount_raw: int,
        seller: Address,
        approve_raw: int | None = None,
    ) -> tuple[Call, ...]:
        """The wallet's calls that sell ``amount_raw`` of the token; the last one is the sell. The others
        approve exactly that, or ``approve_raw``."""
        ...

    def plan_pay_out(
        self, venue: Venue, token: Address, contracts: Contracts, buyer: Address
    ) -> tuple[Address, Call]:
        """Who hands the tokens over during a buy, and that move as a direct call."""
        ...

    def plan_pull(
        self, venue: Venue, token: Address, contracts: Contracts, amount_raw: int, seller: Address
    ) -> tuple[Address, Call]:
        """Who takes the wallet's tokens during a sell, and that move as a direct call: routers swallow
        the reason a token gives, the token itself does not."""
        ...
