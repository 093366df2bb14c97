"""The dependencies that a use case receives as an argument; tests pass their own and patch nothing. Limits
how many rules are replayed at once: each replay keeps the database busy for seconds."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import asyncpg

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.doctor import Finding
from roundtrip.chain.rpc.bulkhead import BoundedNode, Bulkhead, Lane
from roundtrip.chain.rpc.client import Meter, RpcNode
from roundtrip.chain.simulate.rates import Rates
from roundtrip.domain.accounts.account import Allowances, CallAllowance, Payments
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.market.look_alikes import ListedToken
from roundtrip.services.runtime.book_cache import BookCache
from roundtrip.services.runtime.check_context import CheckContext
from roundtrip.services.runtime.check_steps import CheckSteps
from roundtrip.services.runtime.holder_tier import IsHolder, nobody_holds
from roundtrip.services.runtime.notifiers import CLOSED, Notifiers
from roundtrip.services.runtime.turnover_cache import TurnoverCache
from roundtrip.store.replicas.pools import NO_REPLICAS, ReplicaLoan, Replicas
from roundtrip.venues.base import Contracts

MAX_AT_ONCE = 2
"""Rules that one process replays at a time; of one account, one."""
_AGAIN_S = 3


class ReplaySlots:
    """The slots for replays, each held by an account."""

    def __init__(self, most: int = MAX_AT_ONCE) -> None:
        self._most = most
        self._account_ids: set[int] = set()

    @contextlib.contextmanager
    def hold_slot(self, account_id: int) -> Iterator[None]:
        """Holds a slot for the block. Raises ServiceFull (busy) at once when none is free, so that no caller
        waits while it holds a connection."""
        if account_id in self._account_ids:
            raise ServiceFull(
                "busy", f"Another rule of yours is being tested. Retry in {_AGAIN_S} seconds.", _AGAIN_S
            )
        if len(self._account_ids) >= self._most:
            raise ServiceFull(
                "busy", f"Too many rules are being tested. Retry in {_AGAIN_S} seconds.", _AGAIN_S
            )
        self._account_ids.add(account_id)
        try:
            yield
        finally:
            self._account_ids.discard(account_id)


A = TypeVar("A")

_ALLOWANCES = Allowances(CallAllowance(10), CallAllowance(60, 20_000), CallAllowance(300, 200_000))


@dataclass(frozen=True, slots=True)
class Context:
    """``now_s``: seconds since 1970. ``entropy``: 32 unpredictable bytes. ``lacks``: what of the node and the
    network did not work when last checked. ``books``: holder books that this process has read;
    ``turnovers``: those of long windows that it has counted. ``replays``: the slots for replays of rules.
    ``public_url``: the service's URL for users, and the name that they sign in to. ``allowances``: callers'
    rate limits. ``is_holder``: whether a wallet gets the holders' limits; it needs ``holder_min`` whole
    tokens of the service's own token, once there is one. ``payments``: how calls past the day's limit are
    paid for; None: they cannot be. ``service_id``: id of the database, shared by all processes of a service
    and unique to it. ``outward``: sends messages to users' channels. ``measures``: durations in this process.
    ``bulkhead``: shares the node's time between callers. ``address``: the request's client address; None: its
    accounts are not limited. ``stock_tokens``, ``explorer_url``: as the network's configuration has them.
    ``steps``: of the checks that run in this process.
    ``index_patience_s``: how long a check waits for the database; without it a check says less.
    ``replicas``: may answer reads of the index. ``loan``: the one that answers this request; None: the
    primary does."""

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
    turnovers: TurnoverCache = field(default_factory=TurnoverCache)
    replays: ReplaySlots = field(default_factory=ReplaySlots)
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
    stock_tokens: tuple[ListedToken, ...] = ()
    explorer_url: str | None = None
    index_patience_s: float = 0.5
    steps: CheckSteps = field(default_factory=CheckSteps)
    replicas: Replicas = NO_REPLICAS
    loan: ReplicaLoan | None = None

    def index_pool(self) -> asyncpg.Pool | ReplicaLoan:
        """Lends connections that only read the index."""
        return self.pool if self.loan is None else self.loan

    def for_caller(
        self, caller: str, lane: Lane, token: str | None = None, address: str | None = None
    ) -> "Context":
        """The context for one request of ``caller``, whose node calls are limited to ``lane``. ``token``: the
        token that the request is about."""
        node = BoundedNode.of(self.node, self.bulkhead, lane, caller, token)
        return replace(self, node=node, address=address)

    def at_size(self, probe_wei: int) -> "Context":
        """The context whose checks spend that much."""
        return replace(self, policy=self.policy.at_size(probe_wei))

    def means(self, node: RpcNode | None = None) -> CheckContext:
        """The dependencies of its checks; ``node``: replaces the context's own."""
        return CheckContext(self.chain_id, self.contracts, node or self.node, self.policy, self.rates)


@dataclass(frozen=True, slots=True)
class UseCaseAnswer(Generic[A]):
    """An answer, how long it may be shared with other callers, and whether it counts against the caller's
    limit. ``meter``: what the node calls cost; None: there were none, or they are not counted. ``block``: the
    block of the answer, where sharing depends on it. ``is_absence``: the answer says
    that something does not exist yet, so it is shared only while that block is the newest."""

    answer: A
    ttl_ms: int = 0
    counted: bool = True
    meter: Meter | None = None
    block: int = 0
    is_absence: bool = False
