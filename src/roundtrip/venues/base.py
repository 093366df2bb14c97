"""What every venue file offers, and the words its plans are made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple, Protocol

from roundtrip.domain.base.events import CurveTraded, Event, Swapped
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import PoolFacts, Quote, Venue, VenueKind
from roundtrip.domain.check.evidence import AnyLaunch, LaunchRecord


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
    launchpad_factory: Address | None = None
    launchpad_hook: Address | None = None
    launchpad_router: Address | None = None
    launchpad_v1_factories: tuple[Address, ...] = ()
    beside: tuple[Address, ...] = ()
    """Of the same makers, and nothing here trades through them: lockers, vaults, other routers."""

    def by_name(self) -> dict[str, Address]:
        """Every address by its field's name; of several in one field each with its number."""
        found: dict[str, Address] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, tuple):
                found |= {f"{field.name} {number}": address for number, address in enumerate(value, 1)}
            elif value is not None:
                found[field.name] = value
        return found

    def all_addresses(self) -> frozenset[Address]:
        """Every address of the network's own machinery."""
        return frozenset(self.by_name().values())


def quote_name(address: Address, contracts: Contracts) -> Quote:
    """The money's short name, or its address where it has none."""
    names: dict[Address, Quote] = {ZERO_ADDRESS: "eth", contracts.weth: "weth", contracts.usdg: "usdg"}
    return names.get(address, address)


@dataclass(frozen=True, slots=True)
class Call:
    """One call a wallet makes. ``data`` is ``0x`` hex; ``value_wei`` goes along with it."""

    to: Address
    data: str
    value_wei: int = 0


@dataclass(frozen=True, slots=True)
class TradeTerms:
    """What a trade is bound to: it reverts below ``min_raw`` of what the pool puts out, in base units of
    what it brings, and in a block later than ``deadline_s``, in seconds since 1970. None: no deadline."""

    min_raw: int = 0
    deadline_s: int | None = None


UNBOUND = TradeTerms()
"""For trades that are only simulated."""


class Log(NamedTuple):
    """One event as the chain tells it. ``topics`` are ``0x`` words in lower case."""

    address: Address
    topics: tuple[str, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class VenueListing:
    """A log told that ``token`` may trade on ``venue``."""

    token: Address
    venue: Venue


class ListingFile(Protocol):
    """A module of this package that knows logs of new venues. All of it is pure."""

    def listings(self, contracts: Contracts) -> tuple[tuple[Address, str], ...]:
        """Who tells of new venues, each with the topic it does so under. Empty: nobody does here."""
        ...

    def decode_listings(self, log: Log, contracts: Contracts) -> tuple[VenueListing, ...]:
        """The venues that a log of ``listings`` tells of: one for each side that may be the token."""
        ...


class LogDecoder(NamedTuple):
    """How one kind of log is read. ``topic``: its first topic; ``emitter``: who must have sent it, None:
    anybody may, and who it was has to be known elsewhere. ``read`` gives None for a log that is not what its
    topic says, and never raises."""

    emitter: Address | None
    topic: str
    read: Callable[[Log], Event | None]


class DecodingFile(Protocol):
    """A module of this package whose logs the chain's history is made of. All of it is pure."""

    def decoders(self, contracts: Contracts) -> tuple[LogDecoder, ...]:
        """How its logs are read. Empty: nobody sends them here."""
        ...


class LaunchpadFile(Protocol):
    """A module of this package that knows a launchpad. All of it is pure."""

    def launch_calls(self, token: Address, contracts: Contracts) -> tuple[Call, ...]:
        """What to ask about the launch of ``token``. Empty: the network has no such launchpad."""
        ...

    def read_launch(
        self, token: Address, answers: tuple[bytes | None, ...], contracts: Contracts
    ) -> AnyLaunch | None:
        """The launch from the answers to ``launch_calls``, in their order, None where a call reverted; a
        curve's own state is not among them. None: the token was not launched there."""
        ...


SwapReader = Callable[[Log], Swapped | CurveTraded | None]
"""Reads the log of a trade; None: it is not what its topic says."""


class VenueFile(ListingFile, Protocol):
    """A module of this package that knows how to trade at one kind of venue. All of it is pure."""

    KIND: VenueKind
    SWAPS: Mapping[str, SwapReader]

    def candidates(self, token: Address, contracts: Contracts) -> tuple[Venue, ...]:
        """The standard places of this kind where ``token`` may trade, when no index knows better."""
        ...

    def fact_calls(self, venue: Venue, contracts: Contracts) -> tuple[Call, ...]:
        """What to ask about the venue's state, in the order ``read_facts`` takes the answers."""
        ...

    def read_facts(self, venue: Venue, token: Address, answers: tuple[bytes | None, ...]) -> PoolFacts:
        """The state from the answers; None where a call reverted."""
        ...

    def plan_sweep(self, contracts: Contracts, to: Address) -> Call | None:
        """Takes what eth and weth lies in the router out of the way: a trade that takes out what is left
        of it would count a stranger's dust as its own. None: nothing can lie there."""
        ...

    def plan_buy(
        self,
        venue: Venue,
        token: Address,
        contracts: Contracts,
        amount_raw: int,
        buyer: Address,
        terms: TradeTerms = UNBOUND,
    ) -> tuple[Call, ...]:
        """The buyer's calls that spend ``amount_raw`` of the quote; the last one is the buy. The others
        approve exactly that."""
        ...

    def plan_output(self, venue: Venue, token: Address, contracts: Contracts, amount_raw: int) -> Call | None:
        """Asks what the pool would put out for a buy: the first word of the answer. It is what the router
        holds the minimum against, before the token's own tax. None: what arrives is what is put out."""
        ...

    def plan_sell(
        self,
        venue: Venue,
        token: Address,
        contracts: Contracts,
        amount_raw: int,
        seller: Address,
        approve_raw: int | None = None,
        terms: TradeTerms = UNBOUND,
    ) -> tuple[Call, ...]:
        """The wallet's calls that sell ``amount_raw`` of the token; the last one is the sell. The others
        approve exactly that, or ``approve_raw``."""
        ...

    def spender(self, venue: Venue, contracts: Contracts) -> tuple[Address, str]:
        """Whom a wallet that trades here approves first, and the name it has in a sentence."""
        ...

    def rebuild(
        self, venue: Venue, token: Address, launch: LaunchRecord | None, contracts: Contracts
    ) -> Venue | None:
        """The venue made again from its key: the same where it is what it says. A curve has no key: it is the
        one that ``launch`` names. None: there is no such venue."""
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
