"""The account of one transaction: what is read off its logs, and the steps that are made of it.

A pool's own words are believed where the pool is known; a Transfer is what the contract that sent it says,
and anybody may make one that says anything. Amounts are raw integers in base units; the zero address is eth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from roundtrip.domain.base.events import Event
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import VenueKind

# --- read off one log, beside what history is made of --------------------------------------------------


class AllowanceGiven(NamedTuple):
    """``owner`` lets ``spender`` take so much of its token. ``until_s``: when a right by Permit2 ends."""

    token: Address
    owner: Address
    spender: Address
    amount_raw: int
    by_permit2: bool = False
    until_s: int | None = None

    def is_unlimited(self) -> bool:
        """True for amounts that stand for no bound, as ``trade.Allowance`` has it."""
        return self.amount_raw >= 2**128 or self.amount_raw == 2**96 - 1


class CollectionAllowed(NamedTuple):
    """``owner`` lets ``operator`` take everything it holds of a collection, or no longer."""

    collection: Address
    owner: Address
    operator: Address
    allowed: bool


class EthWrapped(NamedTuple):
    """Eth was made weth, or weth eth (``wraps`` False), by ``account``."""

    account: Address
    amount_raw: int
    wraps: bool


class ItemMoved(NamedTuple):
    """Of a collection (ERC-721, ERC-1155) an item changed hands, so many ``pieces`` of it."""

    collection: Address
    sender: Address
    recipient: Address
    item: int
    pieces: int


class OperationEnded(NamedTuple):
    """An entry point says of an account's operation whether it went through."""

    account: Address
    succeeded: bool


Said = Event | AllowanceGiven | CollectionAllowed | EthWrapped | ItemMoved | OperationEnded


# --- what is made of them ------------------------------------------------------------------------------

StepKind = Literal[
    "buy", "sell", "swap", "transfer", "item", "approval", "wrap", "unwrap", "launch", "graduation",
    "pool_opened", "liquidity_added", "liquidity_taken", "contract_made", "operation", "call",
]  # fmt: skip
Kind = Literal[
    "trade", "transfer", "approval", "wrap", "launch", "graduation", "liquidity", "contract_made",
    "operations", "call",
]  # fmt: skip


class MovedAsset(NamedTuple):
    """So much of an asset."""

    asset: Address
    raw: int


class KnownMarket(NamedTuple):
    """A place that is known to be what it says. ``is_money``: the quote is; else neither side is."""

    at: str
    kind: VenueKind
    token: Address
    quote: Address
    is_money: bool


@dataclass(frozen=True, slots=True)
class TransactionStep:
    """One thing that happened. ``who`` did it, ``to`` whom; ``paid`` and ``got`` as ``who`` sees it. A trade
    without ``who`` is nobody's that is known; its ``to`` has what it brought, where that is not ``who``.
    ``said``: the log it was read of, where there is more to tell."""

    kind: StepKind
    who: Address | None = None
    to: Address | None = None
    venue: VenueKind | None = None
    at: str | None = None
    token: Address | None = None
    paid: MovedAsset | None = None
    got: MovedAsset | None = None
    said: Said | None = None


@dataclass(frozen=True, slots=True)
class TransactionFacts:
    """A transaction that went through. ``said``: what its logs tell, each with its log's index, in order.
    ``created``: the contract it made. ``machinery``: addresses of the network's own contracts; ``router``: of
    those the launchpad's, which buys for others; ``hook``: the launchpad's. ``to_has_code``: True where
    nobody knows."""

    sender: Address
    to: Address | None
    value_wei: int
    has_data: bool
    created: Address | None
    said: Sequence[tuple[int, Said]]
    weth: Address
    usdg: Address
    machinery: frozenset[Address] = frozenset()
    permit2: Address | None = None
    router: Address | None = None
    hook: Address | None = None
    entry_points: frozenset[Address] = frozenset()
    to_has_code: bool = True


@dataclass(frozen=True, slots=True)
class TransactionAccount:
    """``accounts``: of the operations in it, each once. ``recipients``: whom it bought for, beside who sent
    it. ``losers``: beside who sent it, out of whom money went, or a token that was traded.
    ``strange_swaps``: how many trades were told of by contracts that are no known pools."""

    kind: Kind
    steps: tuple[TransactionStep, ...]
    accounts: tuple[Address, ...]
    recipients: tuple[Address, ...]
    losers: tuple[Address, ...]
    strange_swaps: int


TRADES: tuple[StepKind, ...] = ("buy", "sell", "swap")
