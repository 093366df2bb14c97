"""The data of one transaction's interpretation: its decoded logs, and the steps that they add up to.

A known pool's logs are trusted. A Transfer is only a claim of the contract that logged it, and any contract
can log any Transfer. Amounts are raw integers in base units; the zero address is eth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from roundtrip.domain.base.events import Event
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import VenueKind

# --- decoded logs, besides the indexed events -----------------------------------------------------------


class AllowanceGiven(NamedTuple):
    """``owner`` lets ``spender`` take ``amount_raw`` of its token. ``until_s``: when a Permit2 right ends."""

    token: Address
    owner: Address
    spender: Address
    amount_raw: int
    by_permit2: bool = False
    until_s: int | None = None

    def is_unlimited(self) -> bool:
        """True for amounts that mean "no limit", as in ``trade.Allowance``."""
        return self.amount_raw >= 2**128 or self.amount_raw == 2**96 - 1


class CollectionAllowed(NamedTuple):
    """``owner`` lets ``operator`` take everything it holds of a collection, or no longer."""

    collection: Address
    owner: Address
    operator: Address
    allowed: bool


class EthWrapped(NamedTuple):
    """``account`` wrapped eth into weth, or unwrapped weth (``wraps`` False)."""

    account: Address
    amount_raw: int
    wraps: bool


class ItemMoved(NamedTuple):
    """``pieces`` of an item of a collection (ERC-721, ERC-1155) changed hands."""

    collection: Address
    sender: Address
    recipient: Address
    item: int
    pieces: int


class OperationEnded(NamedTuple):
    """An entry point logs whether an account's operation succeeded."""

    account: Address
    succeeded: bool


DecodedLog = Event | AllowanceGiven | CollectionAllowed | EthWrapped | ItemMoved | OperationEnded


# --- steps --------------------------------------------------------------------------------------------

StepKind = Literal[
    "buy", "sell", "swap", "transfer", "item", "approval", "wrap", "unwrap", "launch", "graduation",
    "pool_opened", "liquidity_added", "liquidity_taken", "contract_made", "operation", "call",
]  # fmt: skip
Kind = Literal[
    "trade", "transfer", "approval", "wrap", "launch", "graduation", "liquidity", "contract_made",
    "operations", "call",
]  # fmt: skip


class MovedAsset(NamedTuple):
    """An amount of an asset."""

    asset: Address
    raw: int


class KnownMarket(NamedTuple):
    """A verified pool or curve. ``is_money``: the quote is eth, weth or usdg; if False, neither side is."""

    at: str
    kind: VenueKind
    token: Address
    quote: Address
    is_money: bool


@dataclass(frozen=True, slots=True)
class TransactionStep:
    """One thing that happened. ``actor`` did it; ``to`` is the recipient, spender or callee; ``paid`` and
    ``got`` are from the actor's view. A trade without ``actor`` has an unknown owner. A trade's ``to`` is the
    recipient of its proceeds, if that is not the actor. ``log``: its log, where that holds more details."""

    kind: StepKind
    actor: Address | None = None
    to: Address | None = None
    venue: VenueKind | None = None
    at: str | None = None
    token: Address | None = None
    paid: MovedAsset | None = None
    got: MovedAsset | None = None
    log: DecodedLog | None = None


@dataclass(frozen=True, slots=True)
class TransactionFacts:
    """A successful transaction. ``logs``: (log index, decoded log), in order. ``created``: the contract that
    it deployed. ``machinery``: addresses of the network's own contracts; among them ``router`` and ``hook``
    are the launchpad's, and the router buys for others. ``to_has_code``: True if not known."""

    sender: Address
    to: Address | None
    value_wei: int
    has_data: bool
    created: Address | None
    logs: Sequence[tuple[int, DecodedLog]]
    weth: Address
    usdg: Address
    machinery: frozenset[Address] = frozenset()
    permit2: Address | None = None
    router: Address | None = None
    hook: Address | None = None
    entry_points: frozenset[Address] = frozenset()
    to_has_code: bool = True


@dataclass(frozen=True, slots=True)
class TransactionSummary:
    """What a transaction did. ``accounts``: those of its user operations, each once. ``recipients``: wallets
    other than the sender that hold what was bought. ``losers``: wallets other than the sender that lost money
    or a traded token. ``strange_swaps``: number of trades logged by contracts that are no known pools."""

    kind: Kind
    steps: tuple[TransactionStep, ...]
    accounts: tuple[Address, ...]
    recipients: tuple[Address, ...]
    losers: tuple[Address, ...]
    strange_swaps: int


TRADES: tuple[StepKind, ...] = ("buy", "sell", "swap")
