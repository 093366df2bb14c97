"""The interfaces of the venue modules, all of which are pure, and the types that their plans consist of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple, Protocol

from roundtrip.domain.base.events import CurveTraded, Event, Swapped
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import PoolFacts, Quote, Venue, VenueKind
from roundtrip.domain.check.evidence import AnyLaunch, LaunchRecord


@dataclass(frozen=True, slots=True)
class Contracts:
    """The contract addresses of one network."""

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
    """Contracts of the same projects that no plan trades through: lockers, vaults, other routers."""

    def by_name(self) -> dict[str, Address]:
        """Every address by its field's name; numbered where one field holds several."""
        addresses: dict[str, Address] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, tuple):
                addresses |= {f"{field.name} {number}": address for number, address in enumerate(value, 1)}
            elif value is not None:
                addresses[field.name] = value
        return addresses

    def launchpad_addresses(self) -> frozenset[Address]:
        """The launchpad's own contracts, its lockers among them, and what else ``beside`` has."""
        named = (self.launchpad_factory, self.launchpad_hook, self.launchpad_router)
        return frozenset(at for at in (*named, *self.launchpad_v1_factories, *self.beside) if at)

    def all_addresses(self) -> frozenset[Address]:
        """Every address of the network's own contracts."""
        return frozenset(self.by_name().values())


def quote_name(address: Address, contracts: Contracts) -> Quote:
    """The quote's short name, or its address where it has none."""
    names: dict[Address, Quote] = {ZERO_ADDRESS: "eth", contracts.weth: "weth", contracts.usdg: "usdg"}
    return names.get(address, address)


class Call(NamedTuple):
    """One call that a wallet makes. ``data``: ``0x`` hex; ``value_wei``: the eth sent with it."""

    to: Address
    data: str
    value_wei: int = 0


@dataclass(frozen=True, slots=True)
class TradeTerms:
    """The limits of a trade. It reverts when the pool puts out less than ``min_raw`` (base units of the
    output), and in a block later than ``deadline_s`` (seconds since 1970; None: no deadline)."""

    min_raw: int = 0
    deadline_s: int | None = None


UNBOUND = TradeTerms()
"""For trades that are only simulated."""


class Log(NamedTuple):
    """One log of the chain. ``topics``: ``0x`` words in lower case."""

    address: Address
    topics: tuple[str, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class VenueListing:
    """A log announced that ``token`` may trade on ``venue``."""

    token: Address
    venue: Venue


class ListingFile(Protocol):
    """A module with logs that announce new venues."""

    def listings(self, contracts: Contracts) -> tuple[tuple[Address, str], ...]:
        """The contracts that announce new venues, each with the first topic of its log. Empty: none on this
        network."""
        ...

    def decode_listings(self, log: Log, contracts: Contracts) -> tuple[VenueListing, ...]:
        """The venues that a log of ``listings`` announces: one for each side that may be the token."""
        ...


class LogDecoder(NamedTuple):
    """How to decode one kind of log. ``topic``: its first topic. ``emitter``: the contract that must have
    emitted it; None: any, and the reader of the event has to know the emitter. ``read`` returns None for a
    log that does not fit its topic, and never raises."""

    emitter: Address | None
    topic: str
    read: Callable[[Log], Event | None]


class DecodingFile(Protocol):
    """A module with logs that become events of the index."""

    def decoders(self, contracts: Contracts) -> tuple[LogDecoder, ...]:
        """A decoder for each of its logs. Empty: no contract of this network emits them."""
        ...


class LaunchpadFile(Protocol):
    """A module that reads a launchpad."""

    def launch_calls(self, token: Address, contracts: Contracts) -> tuple[Call, ...]:
        """The calls that read the launch of ``token``. Empty: the network has no such launchpad."""
        ...

    def read_launch(
        self, token: Address, answers: tuple[bytes | None, ...], contracts: Contracts
    ) -> AnyLaunch | None:
        """The launch, from the answers to ``launch_calls`` in their order (None where a call reverted),
        without the curve's state. None: this launchpad did not launch the token."""
        ...


SwapReader = Callable[[Log], Swapped | CurveTraded | None]
"""Decodes the log of a trade; None: it does not fit its topic."""


class VenueFile(ListingFile, Protocol):
    """A module that trades on one kind of venue."""

    KIND: VenueKind
    SWAPS: Mapping[str, SwapReader]

    def candidates(self, token: Address, contracts: Contracts) -> tuple[Venue, ...]:
        """The standard venues of this kind where ``token`` may trade; used without an index."""
        ...

    def fact_calls(self, venue: Venue, contracts: Contracts) -> tuple[Call, ...]:
        """The calls that read the venue's state, in the order that ``read_facts`` takes their answers."""
        ...

    def read_facts(self, venue: Venue, token: Address, answers: tuple[bytes | None, ...]) -> PoolFacts:
        """The state from the answers (None where a call reverted)."""
        ...

    def plan_sweep(self, contracts: Contracts, to: Address) -> Call | None:
        """Empties the router of eth and weth: a trade that takes out the router's balance would otherwise
        count a stranger's dust as its own output. None: the venue has no such router."""
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
        """The buyer's calls that spend ``amount_raw`` of the quote: approvals of exactly that amount, then
        the buy."""
        ...

    def plan_output(self, venue: Venue, token: Address, contracts: Contracts, amount_raw: int) -> Call | None:
        """Asks for the pool's output of a buy, the first word of the answer: the amount that the router
        compares with the minimum, before the token's own tax. None: the buyer receives the pool's output."""
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
        """The wallet's calls that sell ``amount_raw`` of the token: approvals of exactly that amount, or of
        ``approve_raw``, then the sell."""
        ...

    def plan_second_sell(
        self,
        venue: Venue,
        token: Address,
        contracts: Contracts,
        amount_raw: int,
        seller: Address,
        approve_raw: int | None = None,
        terms: TradeTerms = UNBOUND,
    ) -> tuple[Call, ...]:
        """The same sell by another usual route. Empty: the venue has one route."""
        ...

    def spender(self, venue: Venue, contracts: Contracts) -> tuple[Address, str]:
        """The contract that a wallet approves before it trades here, and its name in a sentence."""
        ...

    def rebuild(
        self, venue: Venue, token: Address, launch: LaunchRecord | None, contracts: Contracts
    ) -> Venue | None:
        """The venue rebuilt from its key; equal to ``venue`` where that is genuine. A curve has no key: it is
        the one that ``launch`` names. None: there is no such venue."""
        ...

    def plan_pay_out(
        self, venue: Venue, token: Address, contracts: Contracts, buyer: Address
    ) -> tuple[Address, Call]:
        """The contract that hands the tokens over during a buy, and that transfer as a direct call."""
        ...

    def plan_pull(
        self, venue: Venue, token: Address, contracts: Contracts, amount_raw: int, seller: Address
    ) -> tuple[Address, Call]:
        """The contract that takes the wallet's tokens during a sell, and that transfer as a direct call:
        routers swallow a token's revert reason, a direct call returns it."""
        ...
