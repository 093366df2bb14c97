"""What a use case is given instead of reaching for it: tests pass their own and patch nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import asyncpg

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.doctor import Finding
from roundtrip.chain.rpc.bulkhead import BoundedNode, Bulkhead, Lane
from roundtrip.chain.rpc.client import Meter, RpcNode
from roundtrip.chain.simulate.rates import Rates, RateSource
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.domain.accounts.credits import Payments
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.policy import Policy
from roundtrip.venues.base import Contracts

from .book_cache import BookCache
from .holder_tier import IsHolder, nobody_holds
from .notifiers import CLOSED, Notifiers
from .replay_slots import Replays

A = TypeVar("A")

_ALLOWANCES = Allowances(CallAllowance(10), CallAllowance(60, 20_000), CallAllowance(300, 200_000))


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What a check is made with, its beginning apart: as much of a context as has to be had again to make the
    same check once more."""

    chain_id: int
    contracts: Contracts
    node: RpcNode
    policy: Policy
    rates: RateSource


@dataclass(frozen=True, slots=True)
class Context:
    """``now_s``: seconds since 1970. ``entropy``: 32 bytes nobody can foresee. ``lacks``: what of the node
    and the network did not work when it was last looked at. ``books``: who holds what, as far as this process
    has read it. ``public_url``: where people reach this service; whose name they sign for. ``allowances``:
    how often callers may ask. ``is_holder``: who has the holders' limits; each of them holds ``holder_min``
    whole tokens of the service's own, once it has one. ``payments``: how calls past the day's limit are paid
    for; None: they are not. ``service_id``: of the database that it stands on, the same for all processes of
    a service and no other's. ``outward``: what talks to the servers of people who are told something.
    ``measures``: how long things took in this process. ``bulkhead``: shares the node's time between
    callers. ``address``: from which a request came, None where its accounts are not bounded."""

    chain_id: int
    contracts: Contracts
    node: RpcNode
    heads: Heads
    policy: Policy
    pool: asyncpg.Pool
    rates: Rates
    now_s: Callable[[], float]
    entropy: Callable[[], bytes]
    lacks: Callable[[], tuple[Finding, ...]] = tuple
    books: BookCache = field(default_factory=BookCache)
    replays: Replays = field(default_factory=Replays)
    public_url: str = "http://127.0.0.1:8463"
    allowances: Allowances = _ALLOWANCES
    is_holder: IsHolder = nobody_holds
    holder_min: int = 100_000
    has_own_token: bool = False
    payments: Payments | None = None
    service_id: str = ""
    outward: Notifiers = CLOSED
    measures: Measures = field(default_factory=Measures)
    bulkhead: Bulkhead = field(default_factory=Bulkhead)
    address: str | None = None

    def for_caller(
        self, caller: str, lane: Lane, token: str | None = None, address: str | None = None
    ) -> "Context":
        """The context for one request of ``caller``, whose node has places of ``lane`` only. ``token``: what
        the request is about."""
        node = BoundedNode.of(self.node, self.bulkhead, lane, caller, token)
        return replace(self, node=node, address=address)

    def means(self, node: RpcNode | None = None) -> CheckContext:
        """What its checks are made with; ``node``: who stands before the node."""
        return CheckContext(self.chain_id, self.contracts, node or self.node, self.policy, self.rates)


@dataclass(frozen=True, slots=True)
class UseCaseAnswer(Generic[A]):
    """An answer, how long everyone may share it, and whether it counts against the caller's limit.
    ``block``: the one that it is of, where that matters to who shares it. ``is_absence``: it says that
    something is not there yet, and is shared no longer than that block is the newest."""

    answer: A
    ttl_ms: int = 0
    counted: bool = True
    meter: Meter | None = None
    block: int = 0
    is_absence: bool = False
