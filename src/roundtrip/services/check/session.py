"""One check under way: what its two trips share."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import CodeFault, Meter, NodeAnswerTooLarge, RpcCall, RpcError
from roundtrip.chain.simulate.legs import Setting, VenuePlace
from roundtrip.chain.simulate.request import Plan, Results, build, read
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.evidence import (
    CompletedBuy,
    Environment,
    EnvironmentBuy,
    Missing,
    RefusedCall,
    Size,
    VenueEvidence,
)
from roundtrip.domain.check.venue_reading import main_size
from roundtrip.services.runtime.context import CheckContext

TOO_MUCH = "its answer is too large to read"

BlockDependent = Mapping[Address, Missing]
"""Contracts that may count blocks, and why nothing is known of them where a simulation cannot let as many
pass as the chain does."""


@dataclass(frozen=True, slots=True)
class CheckSession:
    """One check. ``counting`` is asked for only where no simulation lets block numbers pass as they do on the
    chain. ``deep``: it is also asked what could change it."""

    means: CheckContext
    head: ChainHead
    token: Address
    setting: Setting
    environments: tuple[Environment, ...]
    meter: Meter
    block_dependent: BlockDependent = field(default_factory=dict)
    deep: bool = False

    def request(self, plan: Plan) -> RpcCall:
        """The plan as a call on the pinned block."""
        return build(plan, self.head.block, self.head.known_dialect())

    def results(self, plan: Plan, answer: msgspec.Raw | RpcError) -> Results | Missing:
        """What the node answered to ``request``."""
        return read(plan, answer, self.head.block, self.head.known_dialect())

    async def ask_later(self, plans: list[tuple[VenuePlace, Plan]]) -> list[Results | Missing | RefusedCall]:
        """One trip for plans in which something is done and later sold. What counts blocks, and the node
        cannot let as many pass, is not asked: it would show another face than it does on the chain. Raises
        NodeFault."""
        known = [self._block_gap(place, plan) for place, plan in plans]
        asked = [one for one, gap in zip(plans, known, strict=True) if gap is None]
        found = iter((await self.ask([], asked))[1] if asked else [])
        return [next(found) if gap is None else gap for gap in known]

    def _block_gap(self, place: VenuePlace, plan: Plan) -> Missing | None:
        parties = (self.token, place.venue.hook or self.token, place.venue.quote_address)
        gap = next((self.block_dependent[one] for one in parties if one in self.block_dependent), None)
        waits = self.head.known_dialect().waits(tuple(block.delay_s for block in plan.blocks))
        return None if waits else gap

    async def ask(
        self, first: list[RpcCall], plans: list[tuple[VenuePlace, Plan]]
    ) -> tuple[list[msgspec.Raw | RpcError], list[Results | Missing | RefusedCall]]:
        """One trip: ``first`` and the plans. Raises NodeFault when ``first`` got no usable answer.

        Many plans go in several requests at once. A venue with a stranger's hook is asked apart: it can
        answer with megabytes, and then it is refused, and nothing else suffers.
        """
        groups = _group_plans(plans)
        calls = [[self.request(plans[number][1]) for number in group.numbers] for group in groups]
        sent = [first, *calls] if first else calls
        told = await self.means.node.batches(sent, self.meter)
        opening = told.pop(0) if first else []
        if isinstance(opening, CodeFault):
            # What was simulated beside it kept the node from answering plain reads.
            opening = await self.means.node.batch(first, self.meter)
        if isinstance(opening, NodeFault):
            raise opening
        found: dict[int, Results | Missing | RefusedCall] = {}
        for group, answers in zip(groups, told, strict=True):
            for at, number in enumerate(group.numbers):
                if isinstance(answers, NodeFault):
                    found[number] = group.outcome_of_fault(answers)
                else:
                    found[number] = self.results(plans[number][1], answers[at])
        return opening, [found[number] for number in range(len(plans))]


MOST_PLANS_A_REQUEST = 48
"""Beyond it a request passes a megabyte; nodes bound what they read."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Plans that go in one request, by their numbers."""

    numbers: tuple[int, ...]
    strange: bool

    def outcome_of_fault(self, fault: NodeFault) -> Missing | RefusedCall:
        """What a request without a usable answer says of its plans."""
        if not isinstance(fault, CodeFault):
            return Missing("node", fault.message)
        # A timeout says nothing of what the venue would do; an answer of megabytes is the hook's own.
        if self.strange and isinstance(fault, NodeAnswerTooLarge):
            return RefusedCall("buy", TOO_MUCH, 0)
        return Missing("token", fault.message)


def _group_plans(plans: list[tuple[VenuePlace, Plan]]) -> list[_Group]:
    strange: dict[VenuePlace, list[int]] = {}
    plain: list[int] = []
    for number, (place, _) in enumerate(plans):
        (strange.setdefault(place, []) if place.venue.rival_hook() else plain).append(number)
    cuts = range(0, len(plain), MOST_PLANS_A_REQUEST)
    together = [_Group(tuple(plain[cut : cut + MOST_PLANS_A_REQUEST]), False) for cut in cuts]
    return together + [_Group(tuple(own), True) for own in strange.values()]


@dataclass(frozen=True, slots=True)
class VenueTrial:
    """A venue on its way through the two trips."""

    place: VenuePlace
    facts: PoolFacts | Missing
    buys: tuple[EnvironmentBuy, ...]
    told: RefusedCall | Missing | None

    def completed_buy(self, size: Size, environment: int = 0) -> CompletedBuy | None:
        """What a buy of trip 1 came to, if it went through and left the venue open."""
        for buy in self.buys:
            if (buy.size, buy.environment) == (size, environment) and isinstance(buy.outcome, CompletedBuy):
                return None if buy.outcome.closes else buy.outcome
        return None

    def main_size(self) -> Size | None:
        """The size it is judged at; None where it did not buy."""
        size = main_size(VenueEvidence(self.place.venue, self.facts, self.buys))
        return size if isinstance(size, str) else None

    def exists(self) -> bool:
        """True for a pool that is known to exist."""
        return not isinstance(self.facts, Missing) and self.facts.exists
