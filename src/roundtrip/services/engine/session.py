"""The session of one check: its setting, and the node requests of its rounds."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import CodeFault, Meter, NodeAnswerTooLarge, RpcCall, RpcError
from roundtrip.chain.simulate.crowd_outcomes import CrowdBuys
from roundtrip.chain.simulate.legs import Setting, VenuePlace
from roundtrip.chain.simulate.number_copies import NumberCopies
from roundtrip.chain.simulate.request import Plan, Results, build, read
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import PoolFacts, Venue
from roundtrip.domain.check.evidence import (
    CompletedBuy,
    CrowdWallet,
    Environment,
    EnvironmentBuy,
    Missing,
    RefusedCall,
    Size,
    VenueEvidence,
)
from roundtrip.domain.check.proof_input import RecalledWallet
from roundtrip.domain.check.venue_reading import brought_raw, main_size, pool_keep_bps
from roundtrip.services.runtime.check_context import CheckContext

TOO_MUCH = "its answer is too large to read"

Name = TypeVar("Name", bound=Hashable)
Reads = Mapping[str, RpcCall]
"""Plain requests by name, in the order in which they are sent."""
ReadAnswers = Mapping[str, msgspec.Raw | RpcError]
PlanResult = Results | Missing | RefusedCall

BlockGaps = Mapping[Venue, Missing]
"""Venues whose trades may depend on block numbers, where the node's simulations cannot advance them, and the
reason why their later sells are unknown."""


@dataclass(frozen=True, slots=True)
class CheckSession:
    """The state that the rounds of one check share. ``counting``: the venues where block numbers pass,
    because code that a trade reaches may read them. ``block_gaps`` and ``copies`` (of code, reading another
    instruction in place of NUMBER) are for nodes whose simulations cannot advance the block number. The buy
    round fills these three. ``deep``: as in ``CheckInputs``.
    """

    means: CheckContext
    head: ChainHead
    token: Address
    setting: Setting
    environments: tuple[Environment, ...]
    meter: Meter
    counting: frozenset[Venue] = frozenset()
    block_gaps: BlockGaps = field(default_factory=dict)
    copies: NumberCopies | None = None
    deep: bool = False
    crowd_seed: bytes | None = None
    """The seed of the crowd's wallets; None: no crowd trades."""
    recalled: tuple[RecalledWallet, ...] = ()
    """Wallets of earlier checks that trade, too, the newest first."""

    def request(self, plan: Plan) -> RpcCall:
        """The plan as a request on the pinned block; with the copies where block numbers are to pass, and
        the node cannot let them."""
        dialect = self.head.known_dialect()
        needs_copies = plan.passes_numbers and not dialect.can_pass(plan.delays_s())
        return build(plan, self.head.block, dialect, self.copies if needs_copies else None)

    def results(self, plan: Plan, answer: msgspec.Raw | RpcError) -> Results | Missing:
        """Reads the node's answer to ``request``."""
        return read(plan, answer, self.head.block, self.head.known_dialect())

    async def ask_later(self, plans: Mapping[Name, tuple[VenuePlace, Plan]]) -> dict[Name, PlanResult]:
        """Sends one batch of plans that sell in a later block. A plan with contracts that may read the block
        number is not sent where the node cannot advance it: its result is Missing. Raises NodeFault."""
        gaps = {name: self._block_gap(place, plan) for name, (place, plan) in plans.items()}
        sendable = {name: plan for name, plan in plans.items() if gaps[name] is None}
        results = (await self.ask({}, sendable))[1] if sendable else {}
        return {name: results[name] if gap is None else gap for name, gap in gaps.items()}

    def _block_gap(self, place: VenuePlace, plan: Plan) -> Missing | None:
        can_pass = self.head.known_dialect().can_pass(plan.delays_s())
        return None if can_pass else self.block_gaps.get(place.venue)

    def _with_numbers(self, place: VenuePlace, plan: Plan) -> Plan:
        return replace(plan, passes_numbers=True) if place.venue in self.counting else plan

    async def ask(
        self, reads: Reads, plans: Mapping[Name, tuple[VenuePlace, Plan]]
    ) -> tuple[ReadAnswers, dict[Name, PlanResult]]:
        """Sends plain reads and simulations at once, and returns their answers under the same names.

        Many plans are split into several requests. Plans of a venue with a rival hook have a request of their
        own, because a hook can answer with megabytes: then only they are refused. Raises NodeFault when the
        reads have no usable answer.
        """
        plans = {name: (place, self._with_numbers(place, plan)) for name, (place, plan) in plans.items()}
        groups = _group_plans(plans)
        batches = [[self.request(plans[name][1]) for name in group.names] for group in groups]
        calls = list(reads.values())
        answers = await self.means.node.batches([calls, *batches] if calls else batches, self.meter)
        read_answers = answers.pop(0) if calls else []
        if isinstance(read_answers, CodeFault):
            # A simulation in the same batch kept the node from answering plain reads.
            read_answers = await self.means.node.batch(calls, self.meter)
        if isinstance(read_answers, NodeFault):
            raise read_answers
        results: dict[Name, PlanResult] = {}
        for group, batch in zip(groups, answers, strict=True):
            if isinstance(batch, NodeFault):
                results |= dict.fromkeys(group.names, group.result_of_fault(batch))
            else:
                for name, answer in zip(group.names, batch, strict=True):
                    results[name] = self.results(plans[name][1], answer)
        return dict(zip(reads, read_answers, strict=True)), {name: results[name] for name in plans}


MAX_PLANS_A_REQUEST = 48
MAX_CALLS_A_REQUEST = 450
"""With more plans, or more simulated calls, a request exceeds a megabyte, which nodes refuse."""


@dataclass(frozen=True, slots=True)
class PlanGroup(Generic[Name]):
    """Plans of one request, by name. ``strange``: of a venue with a rival hook."""

    names: tuple[Name, ...]
    strange: bool

    def result_of_fault(self, fault: NodeFault) -> Missing | RefusedCall:
        """The result of each plan where the request has no usable answer."""
        if not isinstance(fault, CodeFault):
            return Missing("node", fault.message)
        # A timeout says nothing about the venue; the hook itself causes an answer of megabytes.
        if self.strange and isinstance(fault, NodeAnswerTooLarge):
            return RefusedCall("buy", TOO_MUCH, 0)
        return Missing("token", fault.message)


def _group_plans(plans: Mapping[Name, tuple[VenuePlace, Plan]]) -> list[PlanGroup[Name]]:
    groups: dict[VenuePlace | None, list[list[Name]]] = {None: [[]]}
    calls: dict[VenuePlace | None, int] = {None: 0}
    for name, (place, plan) in plans.items():
        strange = place if place.venue.rival_hook() else None
        own = groups.setdefault(strange, [[]])
        more = sum(len(block.steps) for block in plan.blocks)
        is_full = len(own[-1]) == MAX_PLANS_A_REQUEST or calls.get(strange, 0) + more > MAX_CALLS_A_REQUEST
        if own[-1] and is_full:
            own.append([])
            calls[strange] = 0
        own[-1].append(name)
        calls[strange] = calls.get(strange, 0) + more
    return [
        PlanGroup(tuple(names), strange is not None)
        for strange, requests in groups.items()
        for names in requests
        if names
    ]


@dataclass(frozen=True, slots=True)
class VenueTrial:
    """A venue after the buy round. ``transfer_refusal``: why a plain transfer out of the venue was refused,
    which routers hide."""

    place: VenuePlace
    facts: PoolFacts | Missing
    buys: tuple[EnvironmentBuy, ...]
    transfer_refusal: RefusedCall | Missing | None
    main_given_raw: int = 0
    """What the venue gave for the main buy, by its logs; 0: they do not say."""
    crowd_wallets: tuple[CrowdWallet, ...] = ()
    crowd: CrowdBuys | Missing | None = None
    """The crowd's measured buys, where the venue's formula does not explain the main buy."""
    crowd_parts: int = 1
    """In how many simulations the crowd trades (``crowd.crowd_parts``)."""
    recalled_wallets: tuple[CrowdWallet, ...] = ()
    """Wallets of earlier checks that trade in a simulation of their own."""
    largest_wallets: tuple[CrowdWallet, ...] = ()
    """The wallet with the largest size, which trades in a simulation of its own; none without a crowd."""

    def completed_buy(self, size: Size, environment: int = 0) -> CompletedBuy | None:
        """The buy of this size, if it succeeded and left the venue open."""
        for buy in self.buys:
            if (buy.size, buy.environment) == (size, environment) and isinstance(buy.outcome, CompletedBuy):
                return None if buy.outcome.closes else buy.outcome
        return None

    def main_size(self) -> Size | None:
        """The judged size; None where no buy succeeded."""
        size = main_size(VenueEvidence(self.place.venue, self.facts, self.buys))
        return size if isinstance(size, str) else None

    def is_closing(self) -> bool:
        """True where one of its buys, such as the large one, would sell a curve out."""
        return any(isinstance(buy.outcome, CompletedBuy) and buy.outcome.closes for buy in self.buys)

    def exists(self) -> bool:
        """True for a pool that is known to exist."""
        return not isinstance(self.facts, Missing) and self.facts.exists


def bought_raw(venue: VenueTrial) -> int:
    """Base units of the token from the judged buy."""
    return brought_raw(VenueEvidence(venue.place.venue, venue.facts, venue.buys))


def choose_venues(venues: list[VenueTrial], policy: Policy) -> list[VenueTrial]:
    """The venues of the sell round: at most ``most_venues`` that bought, by the amount bought (every venue is
    paid the same worth), and all that refused or are unknown. A pool's own liquidity does not count.

    Pools whose own fee is a toll come last. Half of the places are reserved for pools without a rival hook.
    Otherwise a few cheap pools that refuse sells could displace the honest one.
    """
    existing = [
        venue for venue in venues if not (isinstance(venue.facts, PoolFacts) and not venue.facts.exists)
    ]
    buying = [venue for venue in existing if venue.main_size() is not None]

    def order(trial: VenueTrial) -> tuple[bool, int]:
        venue = trial.place.venue
        toll = not venue.keeps_by_hook() and pool_keep_bps(venue.fee_pips) >= policy.toll_warn_bps
        return toll, -bought_raw(trial)

    ranked, limit = sorted(buying, key=order), policy.most_venues
    hooked = [venue for venue in ranked if venue.place.venue.rival_hook()]
    plain = [venue for venue in ranked if not venue.place.venue.rival_hook()]
    chosen = plain[: max(limit - len(hooked), limit // 2)]
    chosen += hooked[: limit - len(chosen)]
    return [venue for venue in existing if venue in chosen or venue not in buying]
